/* onnx_attributes.h — AttributeProto → ir_attr, and Constant nodes → constant data. Private to frontend/. */
#ifndef FE_ONNX_ATTRIBUTES_H
#define FE_ONNX_ATTRIBUTES_H

#include "frontend/onnx/flat.h"

/* Converts all attributes of `source` into attributes of `node`. Graphs, types and lists of tensors become
 * IR_ATTR_GRAPH with empty content, because only operators that mdot lacks use them. */
mdot_status fe_import_attributes(const fe_context *context, const fe_node *source, ir_node *node);

/* The tensor that a Constant node holds, from any of its attributes. */
mdot_status fe_import_constant(const fe_context *context, const fe_node *source, const ir_tensor **out_tensor);

#endif
