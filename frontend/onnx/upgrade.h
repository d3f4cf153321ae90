/* upgrade.h — nodes of any opset → the form of FE_NEWEST_OPSET, which is all that the rest of the compiler knows.
 * Private to frontend/.
 */
#ifndef FE_UPGRADE_H
#define FE_UPGRADE_H

#include "frontend/onnx/context.h"
#include "ir/ops.h"

enum { FE_NEWEST_OPSET = 28 };

typedef struct fe_upgrader {
    const fe_context *context;
    ir_graph *graph;
    ir_node *typed; /* nodes up to this one were offered to the shape rules; NULL: none */
} fe_upgrader;

/* The row for an operator of domain "" or another; NULL: unknown. Operators that were renamed are found by old names.
 */
const ir_op *fe_find_operator(const char *domain, const char *op_type, int64_t opset);

/* Rewrites `node`, the graph's last, of domain "" in the form of `opset`. Nodes may be added around it; its output
 * values stay what later nodes read. A node that cannot be rewritten gets op = NULL and the reason in its op_type. */
mdot_status fe_upgrade_node(fe_upgrader *u, ir_node *node, int64_t opset);

/* q_operators.c: writes `node`, the graph's last, of an operator that mdot does not have, as dequantisation, an
 * operator on floats and quantisation, where it is one on bytes with scales; else it stays. MALFORMED, OUT_OF_MEMORY.
 */
mdot_status fe_write_q_operator(const fe_upgrader *u, ir_node *node);

/* Forgets the types that rewriting needed: inference is a pass of its own, under a bound length. */
void fe_forget_types(const fe_upgrader *u);

/* ---- graph_edit.c: what rewriting is made of. NULL and false: memory ran out. ----------------------------------------- */

/* A value's type from the shape rules, or rank -1 where they do not reach. */
const ir_type *fe_type_of(fe_upgrader *u, const ir_value *value);
/* The same between nodes, where the last one is upgraded, too. */
const ir_type *fe_type_of_upgraded(fe_upgrader *u, const ir_value *value);
/* Constants named after the node. */
ir_value *fe_add_ints(const fe_upgrader *u, const ir_node *node, const char *what, const int64_t *values, int count);
ir_value *fe_add_scalar(const fe_upgrader *u, const ir_node *node, const char *what, mdot_dtype dtype, double value);
/* Sets input `index`, growing the list with absent inputs. */
bool fe_set_input(const fe_upgrader *u, ir_node *node, int index, ir_value *value);
bool fe_set_tensor(const fe_upgrader *u, ir_node *node, const char *name, const ir_tensor *tensor);
/* An operator with one output in front of `node`, or behind it; named after it. */
ir_node *fe_insert_before(const fe_upgrader *u, ir_node *node, ir_opcode op, ir_value *const *inputs, int count);
ir_node *fe_insert_after(const fe_upgrader *u, ir_node *node, ir_opcode op, ir_value *const *inputs, int count);
/* Lets output i of `node` be what output 0 of `last` was, and the other way round: later nodes, which read the node's
 * value, then read what `last` makes of it. */
void fe_swap_output(ir_node *node, int i, ir_node *last);
bool fe_give_up(const fe_upgrader *u, ir_node *node, const char *reason);

#endif
