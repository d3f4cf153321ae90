/* hostile_mutate.h — how libFuzzer changes inputs that hold a model. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* For LLVMFuzzerCustomMutator and LLVMFuzzerCustomCrossOver on inputs with `prefix` bytes and a model. They change
 * models by structure (onnx_mutator.h), and all else as libFuzzer does. */
size_t hostile_mutate(uint8_t *data, size_t size, size_t capacity, unsigned seed, size_t prefix);
size_t hostile_combine(const uint8_t *first, size_t first_size, const uint8_t *second, size_t second_size, uint8_t *out,
                       size_t capacity, unsigned seed, size_t prefix);

/* Defines both for a target whose inputs begin with `prefix` bytes. */
#define HOSTILE_MUTATORS(prefix)                                                                                       \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);                        \
    size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size, const uint8_t *second,                   \
                                     size_t second_size, uint8_t *out, size_t capacity, unsigned seed);                \
    size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed)                         \
    {                                                                                                                  \
        return hostile_mutate(data, size, capacity, seed, prefix);                                                     \
    }                                                                                                                  \
    size_t LLVMFuzzerCustomCrossOver(const uint8_t *first, size_t first_size, const uint8_t *second,                   \
                                     size_t second_size, uint8_t *out, size_t capacity, unsigned seed)                 \
    {                                                                                                                  \
        return hostile_combine(first, first_size, second, second_size, out, capacity, seed, prefix);                   \
    }
