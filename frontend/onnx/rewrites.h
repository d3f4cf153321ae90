/* rewrites.h — the functions of upgrade.c's table. Each rewrites a node of an opset below that of its row into the
 * form of that opset, or gives the node up with a reason. False: out of memory. Private to frontend/. */
#ifndef FE_REWRITES_H
#define FE_REWRITES_H

#include "frontend/onnx/upgrade.h"

/* rewrites_inputs.c: attributes that became inputs */
bool fe_rewrite_axes(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_reshape(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_slice(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_split(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_pad(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_clip(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_top_k(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_dropout(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_resize(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_tile(fe_upgrader *u, ir_node *node, int64_t opset);

/* rewrites_meaning.c: defaults and meanings that changed */
bool fe_rewrite_broadcast(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_prelu(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_gemm(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_selu(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_cast(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_concat(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_softmax(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_batch_normalization(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_group_normalization(fe_upgrader *u, ir_node *node, int64_t opset);
bool fe_rewrite_constant_of_shape(fe_upgrader *u, ir_node *node, int64_t opset);

#endif
