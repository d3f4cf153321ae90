/* hostile_mutate.c — see hostile_mutate.h. */
#include "tests/fuzz/hostile_mutate.h"
#include "tests/support/onnx_mutator.h"

#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);

enum { PLAIN_PART = 8 };

size_t hostile_mutate(uint8_t *data, size_t size, size_t capacity, unsigned seed, size_t prefix)
{
    /* One change in eight comes from libFuzzer and reaches the readers of the wire format. */
    if (size > prefix && capacity > prefix && seed % PLAIN_PART != 0) {
        size_t made = onnx_mutate(data + prefix, size - prefix, capacity - prefix, seed, LLVMFuzzerMutate);
        if (made > 0) {
            if (prefix > 0 && seed % 3 == 0) LLVMFuzzerMutate(data, prefix, prefix);
            return prefix + made;
        }
    }
    return LLVMFuzzerMutate(data, size, capacity);
}

size_t hostile_combine(const uint8_t *first, size_t first_size, const uint8_t *second, size_t second_size, uint8_t *out,
                       size_t capacity, unsigned seed, size_t prefix)
{
    if (first_size <= prefix || second_size <= prefix || capacity <= prefix) return 0;
    memcpy(out, first, prefix);
    size_t made = onnx_combine(first + prefix, first_size - prefix, second + prefix, second_size - prefix, out + prefix,
                               capacity - prefix, seed);
    return made > 0 ? prefix + made : 0;
}
