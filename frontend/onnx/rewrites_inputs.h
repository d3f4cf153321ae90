/* rewrites_inputs.h — attributes that became inputs: functions of upgrade.c's table. Each rewrites a node of an
 * opset below that of its row into the form of that opset, or gives the node up with a reason. False: out of memory.
 * Private to frontend/onnx. */
#ifndef FE_REWRITES_INPUTS_H
#define FE_REWRITES_INPUTS_H

#include "frontend/onnx/graph_edit.h"

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

#endif
