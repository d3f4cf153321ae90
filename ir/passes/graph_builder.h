/* graph_builder.h — creates nodes inside a pass, so that a rewrite reads like its formula:
 *
 *     ir_value *gate = ir_build_op1(b, IR_OP_Sigmoid, ir_build_mul(b, x, ir_build_scalar(b, 1.702)));
 *     ir_replace(b, node->outputs[0], ir_build_mul(b, x, gate));
 *
 * At most one argument of a call may create a node, besides constants. The C compiler chooses the order of
 * evaluation, and the order of nodes must be the same with every compiler.
 *
 * New nodes go in front of the node being rewritten, carry its name (or another that a rule sets), and are typed at
 * once. Failures persist: after the first, every call returns NULL and changes nothing, and NULL operands give NULL
 * results. Therefore a rule may ignore the status; ir_rewrite checks it.
 */
#pragma once

#include "ir/graph.h"
#include "ir/ops.h"

typedef struct ir_builder ir_builder;
/* A rule examines one node. If it applies, it builds the replacement and calls ir_replace. */
typedef void ir_rule_fn(ir_builder *b, ir_node *node);
typedef ir_rule_fn *ir_rule;

struct ir_builder {
    ir_graph *graph;
    ir_node *at;          /* new nodes are inserted before it */
    const char *name;     /* name for new nodes; initially the name of `at` */
    mdot_dtype dtype;     /* type of constants from ir_build_scalar and ir_build_filled; initially that of the first
                           * output of `at` */
    int first_new;        /* values with this id or a higher one were made for `at` */
    const ir_rule *rules; /* of ir_rewrite_by_opcode, like `otherwise` */
    ir_rule otherwise;
    bool changed;       /* set by ir_replace, or by a rule that changes the graph in another way */
    mdot_status status; /* the first failure */
    mdot_error *err;
};

/* Applies the rule to every node from first to last, including the nodes it creates, and removes dead nodes. Rules
 * must terminate, so a rule must not create a node that it would rewrite again. */
mdot_status ir_rewrite(ir_graph *graph, ir_rule rule, bool *out_changed, mdot_error *err);
/* The same with a rule per opcode; NULL: no rule. `otherwise` applies to nodes that no rule changed; it may be NULL. */
mdot_status ir_rewrite_by_opcode(ir_graph *graph, const ir_rule *rules, ir_rule otherwise, bool *out_changed,
                                 mdot_error *err);

/* Redirects every use of `old` to `replacement`. Returns false, with the graph unchanged, if replacement is NULL or
 * its type differs. A graph output keeps its name and its own node: if the replacement is an input, a constant or
 * another output, an Identity is inserted. */
bool ir_replace(ir_builder *b, ir_value *old, ir_value *replacement);

/* Output i if it exists and has readers, else NULL. */
static inline ir_value *ir_read_output(const ir_node *node, int i)
{
    ir_value *value = i < node->output_count ? node->outputs[i] : NULL;
    return value != NULL && value->use_count ? value : NULL;
}

/* Is the value another one with a different shape (Reshape, Squeeze and similar)? */
static inline bool ir_is_reshaped(const ir_value *value)
{
    return value->def != NULL && value->def->op != NULL && value->def->op->lowering == IR_LOWER_ALIAS;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

/* Leaves the node untyped, so attributes can be set. Inputs may be NULL: absent. */
ir_node *ir_build_node(ir_builder *b, ir_opcode op, ir_value *const *inputs, int input_count, int output_count);
void ir_build_set(ir_builder *b, ir_node *node, ir_attr attr);
/* Infers the node's types and returns the first output. */
ir_value *ir_build_infer(ir_builder *b, ir_node *node);

/* An operator with attributes and one output: ir_build_with(b, IR_OP_Softmax, IR_VALUES(x), IR_ATTRS(IR_INT("axis",
 * 1))). Inputs at the end may be NULL: absent. NULL if one that the operator requires is NULL. */
ir_value *ir_build_with(ir_builder *b, ir_opcode op, ir_value *const *inputs, int input_count, const ir_attr *attrs,
                        int attr_count);

/* Operators without attributes. All inputs are required. */
ir_value *ir_build_op1(ir_builder *b, ir_opcode op, ir_value *x);
ir_value *ir_build_op2(ir_builder *b, ir_opcode op, ir_value *x, ir_value *y);
ir_value *ir_build_op3(ir_builder *b, ir_opcode op, ir_value *x, ir_value *y, ir_value *z);

static inline ir_value *ir_build_add(ir_builder *b, ir_value *x, ir_value *y)
{
    return ir_build_op2(b, IR_OP_Add, x, y);
}
static inline ir_value *ir_build_sub(ir_builder *b, ir_value *x, ir_value *y)
{
    return ir_build_op2(b, IR_OP_Sub, x, y);
}
static inline ir_value *ir_build_mul(ir_builder *b, ir_value *x, ir_value *y)
{
    return ir_build_op2(b, IR_OP_Mul, x, y);
}
static inline ir_value *ir_build_div(ir_builder *b, ir_value *x, ir_value *y)
{
    return ir_build_op2(b, IR_OP_Div, x, y);
}
static inline ir_value *ir_build_exp(ir_builder *b, ir_value *x) { return ir_build_op1(b, IR_OP_Exp, x); }
static inline ir_value *ir_build_log(ir_builder *b, ir_value *x) { return ir_build_op1(b, IR_OP_Log, x); }
static inline ir_value *ir_build_sqrt(ir_builder *b, ir_value *x) { return ir_build_op1(b, IR_OP_Sqrt, x); }
static inline ir_value *ir_build_tanh(ir_builder *b, ir_value *x) { return ir_build_op1(b, IR_OP_Tanh, x); }
static inline ir_value *ir_build_mat_mul(ir_builder *b, ir_value *x, ir_value *y)
{
    return ir_build_op2(b, IR_OP_MatMul, x, y);
}
static inline ir_value *ir_build_where(ir_builder *b, ir_value *condition, ir_value *yes, ir_value *no)
{
    return ir_build_op3(b, IR_OP_Where, condition, yes, no);
}

/* Returns x itself if it already has the type. */
ir_value *ir_build_cast(ir_builder *b, ir_value *x, mdot_dtype dtype);
/* `op` is one of the Reduce operators; reduced dimensions are kept with extent 1. */
ir_value *ir_build_reduce(ir_builder *b, ir_opcode op, ir_value *x, const int64_t *axes, int axis_count);
/* LayerNormalization or RMSNormalization of the axes from `axis` on; `bias` may be NULL. */
ir_value *ir_build_norm(ir_builder *b, ir_opcode op, ir_value *x, ir_value *scale, ir_value *bias, int64_t axis,
                        double epsilon);
/* The elements of x at `indices` along an axis. */
ir_value *ir_build_gather(ir_builder *b, ir_value *x, const int64_t *indices, int64_t count, int64_t axis);
/* Combines the transpose with one that produces x. If the order of elements stays the same, returns a reshape or x
 * itself. */
ir_value *ir_build_transpose(ir_builder *b, ir_value *x, const int64_t *perm);
ir_value *ir_build_concat(ir_builder *b, int64_t axis, ir_value *const *parts, int count);
/* x[..., from:to, ...] along one axis. */
ir_value *ir_build_slice(ir_builder *b, ir_value *x, int64_t axis, int64_t from, int64_t to);
/* Splits into parts of the given extents along an axis. False: failure. */
bool ir_build_split(ir_builder *b, ir_value *x, int64_t axis, const int64_t *extents, int count, ir_value **out_parts);
/* Reshapes x. The shape is a constant if 0 and -1 can express it; otherwise Squeeze and Unsqueeze are used. Returns x
 * itself, or the value below its own changes of shape, if that already has the shape. */
ir_value *ir_build_reshape(ir_builder *b, ir_value *x, const ir_dim *dims, int rank);
/* Adds a dimension of one element in front of dimension `axis`. */
ir_value *ir_build_unit_axis(ir_builder *b, ir_value *x, int axis);
ir_value *ir_build_expand(ir_builder *b, ir_value *x, const ir_dim *dims, int rank);

/* ---- Constants -------------------------------------------------------------------------------------------------- */

/* A constant of rank 0 in the builder's dtype, rounded to it. */
ir_value *ir_build_scalar(ir_builder *b, double value);
/* A constant with one value in every element. */
ir_value *ir_build_filled(ir_builder *b, const int64_t *dims, int rank, double value);
ir_value *ir_build_integer(ir_builder *b, int64_t value);                     /* i64, rank 0 */
ir_value *ir_build_integers(ir_builder *b, const int64_t *values, int count); /* i64, rank 1 */
/* `data` must live as long as the graph. */
ir_value *ir_build_constant(ir_builder *b, mdot_dtype dtype, const int64_t *dims, int rank, const void *data);

/* The dimensions as i64 values at run time, of rank 0 and rank 1. Numbers become constants. Symbolic dimensions are
 * computed from the shape of a graph input that has the symbol. */
ir_value *ir_build_dim(ir_builder *b, ir_dim dim);
ir_value *ir_build_dims(ir_builder *b, const ir_dim *dims, int count);
/* 0 … count - 1, i64. */
ir_value *ir_build_range(ir_builder *b, ir_dim count);

/* Allocates from the graph's arena. If memory is exhausted, returns NULL and the builder fails. */
void *ir_build_alloc(ir_builder *b, int64_t count, size_t size_bytes);

/* ---- fold.c: folds the constants of one node, for passes that fold during their own walk ------------------------- */

/* Replaces the outputs of a typed node by constants if they are known at compile time. */
void ir_fold_node(ir_builder *b, ir_node *node);

/* ---- cse.c: common subexpression elimination: equal operators on equal inputs are computed once ------------------ */

mdot_status ir_eliminate_common_subexpressions(ir_graph *graph, bool *out_changed, mdot_error *err);
