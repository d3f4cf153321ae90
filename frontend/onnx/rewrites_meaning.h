/* rewrites_meaning.h — defaults and meanings that changed: functions of upgrade.c's table. Each rewrites a node of
 * an opset below that of its row into the form of that opset, or gives the node up with a reason. False: out of
 * memory. Private to frontend/onnx. */
#ifndef FE_REWRITES_MEANING_H
#define FE_REWRITES_MEANING_H

#include "frontend/onnx/graph_edit.h"

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
