/* onnx_mutator.h — changes ONNX models at random, but by their structure: most results are models again, with other
 * operators, attributes, shapes, types, constants, bodies of loops, locations of external data or versions of
 * opsets. It serves the fuzz targets that read ONNX, and tests of hostile jobs.
 *
 * The structure is that of protobuf-c's descriptors, so that the mutator knows each message and field of
 * onnx.proto. Words come from two places: operators from the operator table, all others from the strings of the
 * code that reads models, which the build extracts (tests/fuzz/words.sh). */
#ifndef TEST_ONNX_MUTATOR_H
#define TEST_ONNX_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

/* Changes `size` bytes in `data` to a result of at most `capacity` bytes, like LLVMFuzzerMutate. May be NULL. */
typedef size_t (*mutate_bytes_fn)(uint8_t *data, size_t size, size_t capacity);

/* Changes a model of `size` bytes, at `data`, to one of at most `capacity` bytes, and returns its size. Returns 0,
 * and leaves the bytes, if they are not an ONNX model or if the result is too large. Equal seeds give equal results
 * unless mutate_bytes, which changes byte fields, differs. */
size_t onnx_mutate(uint8_t *data, size_t size, size_t capacity, uint64_t seed, mutate_bytes_fn mutate_bytes);
/* Copies parts of the second model into the first one. `out` has `capacity` bytes. Returns 0 like onnx_mutate. */
size_t onnx_combine(const uint8_t *first, size_t first_size, const uint8_t *second, size_t second_size, uint8_t *out,
                    size_t capacity, uint64_t seed);

/* A random word of the code that reads models, for example "axis" or "com.microsoft". */
const char *onnx_word(uint64_t random);

#endif
