/* upgrade.h — rewrites nodes of any opset into the form of FE_NEWEST_OPSET, the only form that the rest of the
 * compiler knows. Private to frontend/. */
#ifndef FE_UPGRADE_H
#define FE_UPGRADE_H

#include "frontend/onnx/graph_edit.h"

enum { FE_NEWEST_OPSET = 28 };

/* The row for an operator of domain "" or another; NULL: unknown. Old names of renamed operators are found, too. */
const ir_op *fe_find_operator(const char *domain, const char *op_type, int64_t opset);

/* Rewrites `node`, the last of the graph, of domain "" and in the form of `opset`. Nodes may be added around it.
 * Later nodes keep reading its output values. A node that cannot be rewritten gets op = NULL and the reason in its
 * op_type. */
mdot_status fe_upgrade_node(fe_upgrader *u, ir_node *node, int64_t opset);

#endif
