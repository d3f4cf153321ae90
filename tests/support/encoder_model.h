/* encoder_model.h — a small predictor for tests, in PyTorch's export form. It has a sum of an embedding and a linear,
 * then pre-norm encoder layers with decomposed GELU and masked attention, whose Reshape and Transpose chains compute
 * shapes, then a masked mean pool and a head. The weights are pseudo-random and always the same. */
#pragma once

#include "tests/support/onnx_builder.h"

enum { ENCODER_TYPES = 10, ENCODER_FEATURES = 5, ENCODER_WIDTH = 32, ENCODER_HEADS = 4, ENCODER_HIDDEN = 48 };

/* Inputs "type" i64[1,N], "load" f32[1,N,5], "mask" bool[1,N]; output "latency" f32[1,1]. */
pb_buffer encoder_model(int layers);
/* Writes `bytes` to folder/name and frees them. The returned path is malloc'ed. */
char *write_model(const char *folder, const char *name, pb_buffer bytes);
