/* builder.h — making nodes inside a pass, so that a rewrite reads like its formula:
 *
 *     ir_value *gate = ir_build_op1(b, IR_OP_Sigmoid, ir_build_mul(b, x, ir_build_scalar(b, 1.702)));
 *     ir_replace(b, node->outputs[0], ir_build_mul(b, x, gate));
 *
 * Of a call's arguments one makes a node at most, beside constants: which comes first is the C compiler's choice, and
 * graphs have one order whatever built mdot.
 *
 * New nodes go in front of the node being rewritten, carry its name (or another that a rule sets), and are typed as
 * they are made. Failures stick: after the first, every call returns NULL and changes nothing, and NULL operands give
 * NULL results, so that a rule need not look at the status; ir_rewrite does.
 */
#ifndef IR_PASSES_BUILDER_H
#define IR_PASSES_BUILDER_H

#include "ir/ops.h"

typedef struct ir_builder {
    ir_graph *graph;
    ir_node *at;      /* new nodes go before it */
    const char *name; /* of new nodes; at first that of at */
    mdot_dtype
        dtype; /* of the constants that ir_build_scalar and ir_build_filled make; at first that of at's first output */
    int first_new;      /* values with ids from here on were made for `at` */
    bool changed;       /* set by ir_replace, or by a rule that changes the graph otherwise */
    mdot_status status; /* the first failure */
    mdot_error *err;
} ir_builder;

/* A rule looks at one node and, where it applies, builds what stands for it and calls ir_replace. */
typedef void (*ir_rule)(ir_builder *b, ir_node *node);

/* Applies the rule to every node from the first to the last, to those that it makes as well, and removes what dies.
 * Rules must come to an end: none may make what it would rewrite again. */
mdot_status ir_rewrite(ir_graph *graph, ir_rule rule, bool *out_changed, mdot_error *err);

/* Every use of `old` reads `replacement` afterwards. Nothing happens, and false comes back, when replacement is NULL or
 * not of old's type. A graph output keeps its name and a node of its own: where the replacement is an input, a constant
 * or another output, an Identity is put between. */
bool ir_replace(ir_builder *b, ir_value *old, ir_value *replacement);

/* Output i when it is there and somebody reads it, else NULL. */
static inline ir_value *ir_read_output(const ir_node *node, int i)
{
    ir_value *value = i < node->output_count ? node->outputs[i] : NULL;
    return value != NULL && value->use_count ? value : NULL;
}

/* Whether the value is another one under another shape (Reshape and its kin). */
static inline bool ir_is_reshaped(const ir_value *value)
{
    return value->def != NULL && value->def->op != NULL && value->def->op->lowering == IR_LOWER_ALIAS;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

/* Not typed yet, so that attributes can be set. Inputs may be NULL: absent. */
ir_node *ir_build_node(ir_builder *b, ir_opcode op, ir_value *const *inputs, int input_count, int output_count);
void ir_build_set_int(ir_builder *b, ir_node *node, const char *name, int64_t value);
void ir_build_set_ints(ir_builder *b, ir_node *node, const char *name, const int64_t *values, int count);
void ir_build_set_float(ir_builder *b, ir_node *node, const char *name, double value);
void ir_build_set_string(ir_builder *b, ir_node *node, const char *name, const char *value);
/* Types the node; its first output. */
ir_value *ir_build_infer(ir_builder *b, ir_node *node);

/* Operators without attributes, all of whose inputs must be there. */
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
static inline ir_value *ir_build_exp(ir_builder *b, ir_value *x)
{
    return ir_build_op1(b, IR_OP_Exp, x);
}
static inline ir_value *ir_build_log(ir_builder *b, ir_value *x)
{
    return ir_build_op1(b, IR_OP_Log, x);
}
static inline ir_value *ir_build_sqrt(ir_builder *b, ir_value *x)
{
    return ir_build_op1(b, IR_OP_Sqrt, x);
}
static inline ir_value *ir_build_tanh(ir_builder *b, ir_value *x)
{
    return ir_build_op1(b, IR_OP_Tanh, x);
}
static inline ir_value *ir_build_mat_mul(ir_builder *b, ir_value *x, ir_value *y)
{
    return ir_build_op2(b, IR_OP_MatMul, x, y);
}
static inline ir_value *ir_build_where(ir_builder *b, ir_value *condition, ir_value *yes, ir_value *no)
{
    return ir_build_op3(b, IR_OP_Where, condition, yes, no);
}

/* x itself where it has the type already. */
ir_value *ir_build_cast(ir_builder *b, ir_value *x, mdot_dtype dtype);
/* `op` is one of the Reduce operators; dimensions are kept. */
ir_value *ir_build_reduce(ir_builder *b, ir_opcode op, ir_value *x, const int64_t *axes, int axis_count);
/* Joined with the transpose that x may be; a reshape, or x itself, where that changes no order. */
ir_value *ir_build_transpose(ir_builder *b, ir_value *x, const int64_t *perm);
void ir_read_perm(const ir_node *transpose, int64_t *out_perm);
ir_value *ir_build_concat(ir_builder *b, int64_t axis, ir_value *const *parts, int count);
/* x[..., from:to, ...] along one axis. */
ir_value *ir_build_slice(ir_builder *b, ir_value *x, int64_t axis, int64_t from, int64_t to);
/* Splits into parts of the given extents along an axis; false: failed. */
bool ir_build_split(ir_builder *b, ir_value *x, int64_t axis, const int64_t *extents, int count, ir_value **out_parts);
/* Reshape, with a constant shape where 0 and -1 can say it; or Squeeze and Unsqueeze. x itself, or what is under its
 * own changes of shape, where that has the shape already. */
ir_value *ir_build_reshape(ir_builder *b, ir_value *x, const ir_dim *dims, int rank);
ir_value *ir_build_expand(ir_builder *b, ir_value *x, const ir_dim *dims, int rank);

/* ---- Constants -------------------------------------------------------------------------------------------------- */

/* A rank-0 constant of the builder's dtype, rounded to it. */
ir_value *ir_build_scalar(ir_builder *b, double value);
/* One value in every element. */
ir_value *ir_build_filled(ir_builder *b, const int64_t *dims, int rank, double value);
ir_value *ir_build_integer(ir_builder *b, int64_t value);                     /* i64, rank 0 */
ir_value *ir_build_integers(ir_builder *b, const int64_t *values, int count); /* i64, rank 1 */
/* `data` must live as long as the graph. */
ir_value *ir_build_constant(ir_builder *b, mdot_dtype dtype, const int64_t *dims, int rank, const void *data);

/* i64 values that are these dimensions at run time: constants where they are numbers, else arithmetic on the shape of a
 * graph input that has the symbol. Rank 0, and rank 1. */
ir_value *ir_build_dim(ir_builder *b, ir_dim dim);
ir_value *ir_build_dims(ir_builder *b, const ir_dim *dims, int count);
/* 0 … count - 1, i64. */
ir_value *ir_build_range(ir_builder *b, ir_dim count);

/* Room in the graph's arena; NULL and a failed builder when memory is out. */
void *ir_build_alloc(ir_builder *b, int64_t count, size_t size_bytes);

#endif
