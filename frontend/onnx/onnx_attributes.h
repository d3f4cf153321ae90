/* onnx_attributes.h — AttributeProto → ir_attr, and Constant nodes → constant data. Private to frontend/. */
#ifndef FE_ONNX_ATTRIBUTES_H
#define FE_ONNX_ATTRIBUTES_H

#include "frontend/onnx/flat.h"

/* Converts all attributes of `source` into `node`'s. Graphs, types and lists of tensors, which only operators that mdot
 * does not have use, become IR_ATTR_GRAPH without content. */
mdot_status fe_import_attributes(const fe_context *context, const fe_node *source, ir_node *node);

/* What a Constant node holds, whichever of its attributes gives it. */
mdot_status fe_import_constant(const fe_context *context, const fe_node *source, const ir_tensor **out_tensor);

#endif
