/* functions.h — inlines ModelProto.functions, including nested calls. Private to frontend/onnx. */
#ifndef FE_FUNCTIONS_H
#define FE_FUNCTIONS_H

#include "frontend/onnx/flat.h"

enum { FE_MAX_CALL_DEPTH = 64 };

/* Lists the nodes of the model's graph. Values are numbered; their definitions follow in fe_define_values. */
mdot_status fe_flatten(const fe_context *context, const Onnx__ModelProto *model, fe_flat *out_flat);
/* The number of a value in the graph's scope; a new name gets a new number. */
mdot_status fe_flat_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value);

#endif
