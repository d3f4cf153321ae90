/* onnx_tensor.h — TensorProto → ir_tensor. Private to frontend/onnx. */
#ifndef FE_ONNX_TENSOR_H
#define FE_ONNX_TENSOR_H

#include "frontend/onnx/context.h"

/* Imports a TensorProto as constant data. `kind` and `name` identify it in messages, for example "initializer" and
 * "W". Data is borrowed from the file if it is aligned there. */
mdot_status fe_import_tensor(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                             const char *name, const ir_tensor **out_tensor);

#endif
