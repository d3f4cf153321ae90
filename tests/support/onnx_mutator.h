/* onnx_mutator.h — changes ONNX models at random, but by structure: most results are models again, with other
 * operators, attributes, shapes, types, constants, loop bodies, external data locations or opset versions. It serves
 * the fuzz targets for ONNX, and tests of hostile jobs.
 *
 * The structure comes from protobuf-c's descriptors, so the mutator knows each message and field in onnx.proto.
 * Operator names come from the operator table, all other words from strings in the code that reads models; the build
 * extracts them (tests/fuzz/words.sh). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Changes `size` bytes in `data` to a result of at most `capacity` bytes, like LLVMFuzzerMutate. May be NULL. */
typedef size_t (*mutate_bytes_fn)(uint8_t *data, size_t size, size_t capacity);

/* Changes a model of `size` bytes, at `data`, to one with at most `capacity` bytes, and returns the size. Returns 0,
 * and leaves the bytes, if they are not an ONNX model or if the result is too large. Equal seeds give equal results
 * unless mutate_bytes, which changes byte fields, differs. */
size_t onnx_mutate(uint8_t *data, size_t size, size_t capacity, uint64_t seed, mutate_bytes_fn mutate_bytes);
/* Copies parts of the second model into the first one. `out` has `capacity` bytes. Returns 0 like onnx_mutate. */
size_t onnx_combine(const uint8_t *first, size_t first_size, const uint8_t *second, size_t second_size, uint8_t *out,
                    size_t capacity, uint64_t seed);

/* A random word from the code that reads models, for example "axis" or "com.microsoft". */
const char *onnx_word(uint64_t random);
