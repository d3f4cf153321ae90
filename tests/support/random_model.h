/* random_model.h — a valid model made of whatever bytes: each chooses an operator and what it reads. For tests and a
 * fuzz target that hold compiled code to the evaluator; operators that jump, as rounding and comparing do, are left
 * out, since there the two may differ rightly. */
#ifndef TEST_RANDOM_MODEL_H
#define TEST_RANDOM_MODEL_H

#include "tests/support/onnx_builder.h"

#include <stddef.h>
#include <stdint.h>

/* f32 inputs "x" [N,8] and "y" [2,N,8], of which a model may read none; one output "z" or more. Never fails. */
pb_buffer random_model(const uint8_t *bytes, size_t count);

#endif
