/* metadata.h — metadata of nodes, as onnxscript writes it. Private to frontend/onnx. */
#ifndef FE_METADATA_H
#define FE_METADATA_H

#include "frontend/onnx/context.h"

/* onnxscript names the rule that made a node, and the modules and ATen operators that it came from, for example
 * "torch.nn.modules.batchnorm.BatchNorm2d/batch_norm: aten.batch_norm.default". */
bool fe_is_folded_node(const Onnx__NodeProto *proto);
/* The module that a node was exported from, for example "layers.0.attn", in the scratch arena. NULL: unknown, or the
 * network itself. */
mdot_status fe_node_module(const fe_context *context, const Onnx__NodeProto *proto, const char **out_module);

#endif
