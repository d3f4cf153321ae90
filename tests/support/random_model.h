/* random_model.h — makes a valid model from arbitrary bytes: each byte chooses an operator and inputs. It serves tests
 * and a fuzz target that compare compiled code with the evaluator. Discontinuous operators, for example rounding and
 * comparisons, are left out, because there the two may rightly differ. */
#pragma once

#include "tests/support/onnx_builder.h"

#include <stddef.h>
#include <stdint.h>

/* f32 inputs "x" [N,8] and "y" [2,N,8], which a model may leave unused; one output "z" or more. Always succeeds. */
pb_buffer random_model(const uint8_t *bytes, size_t count);
