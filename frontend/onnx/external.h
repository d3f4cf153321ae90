/* external.h — tensors that a model keeps in other files. Private to frontend/onnx. */
#ifndef FE_EXTERNAL_H
#define FE_EXTERNAL_H

#include "frontend/onnx/context.h"

/* Fails if options->output is the file of a tensor whose data_location is EXTERNAL, in any folder. */
mdot_status fe_check_external(const fe_context *context, const Onnx__TensorProto *proto);
/* Reads the `size_bytes` > 0 bytes of a tensor whose data_location is EXTERNAL. */
mdot_status fe_read_external(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                             const char *name, size_t size_bytes, const void **out_data);

#endif
