/* ops.h — the operator table: one row of ops.def per operator.
 *
 * A row names the operator's shape rule, cost rule and reference evaluator, which are together in the file of its
 * family (ir/ops/<family>.c). It also names the lowering: the kind of kernel that the operator becomes. Adding an
 * ordinary operator takes one row, three functions and tests; HACKING.md has an example.
 */
#ifndef IR_OPS_H
#define IR_OPS_H

#include "ir/graph.h"

/* How an operator reaches machine code. This is data for the planner, independent of backends. */
typedef enum ir_lowering {
    IR_LOWER_POINTWISE,  /* one expression per output element, with broadcast operands: part of a nest or an epilogue */
    IR_LOWER_MOVE,       /* one load per output element at a computed index: transposes, slices, gathers, … */
    IR_LOWER_ALIAS,      /* the same bytes in another shape: Reshape and similar operators */
    IR_LOWER_REDUCE,     /* a nest with reduction loops, including matmuls without packed weights */
    IR_LOWER_LINEAR,     /* matmul with constant packed weights */
    IR_LOWER_ATTENTION,  /* fused streaming attention */
    IR_LOWER_NORM,       /* row-wise normalisation, including softmax */
    IR_LOWER_SEQUENTIAL, /* not a loop nest: sorting, scatter, scans */
    IR_LOWER_RECURRENCE, /* a loop over steps, each of which reads the results of the one before */
    IR_LOWER_EXPAND,     /* rewritten into other operators by the `expand` pass */
    IR_LOWER_FOLD,       /* must disappear by constant folding: shapes and similar values */
    IR_LOWER_NONE,       /* known only for shape and cost (jobs); compile refuses it */
    IR_LOWER_COUNT
} ir_lowering;

enum { /* traits */
       IR_COMMUTATIVE = 1u << 0,
       IR_VARIADIC = 1u << 1,  /* the last input may repeat */
       IR_STATELESS = 1u << 2, /* equal inputs give equal outputs: may be folded and merged */
       IR_SHAPE_ONLY = 1u << 3 /* reads only its inputs' shapes */
};

/* The cost of one forward evaluation at a given length. A multiply-add counts as two FLOPs. */
typedef struct ir_cost {
    double flops;
    double bytes_read, bytes_written; /* each distinct tensor once */
    double parameters;                /* elements of constant inputs that training would update */
} ir_cost;

/* A shape rule types every present output of `node` from its typed inputs, and sets `known` if content follows. It
 * reports MALFORMED with the node's name for inputs that the operator's definition forbids, and UNSUPPORTED for valid
 * inputs that are not affine in L. */
typedef mdot_status (*ir_shape_fn)(ir_graph *graph, ir_node *node, mdot_error *err);
typedef void (*ir_cost_fn)(const ir_node *node, int64_t length, ir_cost *out_cost);
/* Evaluates on concrete tensors. Inputs that the node lacks are NULL. Allocates each present output in the arena. */
typedef mdot_status (*ir_eval_fn)(ir_arena *arena, const ir_node *node, const ir_wide *const *in, ir_wide **out,
                                  mdot_error *err);

typedef enum ir_opcode {
#define OP(name, ...) IR_OP_##name,
#include "ir/ops.def"
#undef OP
    IR_OP_COUNT
} ir_opcode;

typedef struct ir_op {
    ir_opcode opcode;
    const char *name;   /* ONNX's name */
    const char *domain; /* "" is ai.onnx; "com.microsoft"; "mdot" */
    int min_inputs, max_inputs;
    int min_outputs, max_outputs;
    unsigned traits;
    ir_shape_fn shape;
    ir_cost_fn cost;
    ir_eval_fn eval; /* NULL: shape and cost only */
    ir_lowering lowering;
} ir_op;

extern const ir_op ir_ops[IR_OP_COUNT];

static inline ir_opcode ir_node_opcode(const ir_node *node)
{
    return node->op->opcode;
}
/* NULL: the operator is not in the table. "ai.onnx" and "" are one domain. */
const ir_op *ir_op_find(const char *domain, const char *name);
const char *ir_lowering_name(ir_lowering lowering);

/* ---- Applying the table to a graph ------------------------------------------------------------------------------ */

/* Types every value and sets `known` (ir/infer.c). Every operator must be in the table. */
mdot_status ir_infer(ir_graph *graph, mdot_error *err);
mdot_status ir_infer_node(ir_graph *graph, ir_node *node, mdot_error *err);

/* The reference evaluation in double precision (ir/evaluate.c). Inputs are concrete and in the graph's order; outputs
 * are allocated in `arena`. Shapes come from the data. Evaluators assume well-formed nodes, because ir_infer accepted
 * them before. */
mdot_status ir_evaluate(const ir_graph *graph, const ir_wide *const *inputs, ir_arena *arena, ir_wide **out_outputs,
                        mdot_error *err);

/* Does the same with the factors of every matmul rounded to `half` (BF16, F16) beforehand. This shows the accuracy
 * that such a precision costs this model on these inputs, independent of kernels. F32: equals ir_evaluate. */
mdot_status ir_evaluate_in(const ir_graph *graph, mdot_dtype half, const ir_wide *const *inputs, ir_arena *arena,
                           ir_wide **out_outputs, mdot_error *err);

/* Checks that a graph can be compiled. UNSUPPORTED lists all nodes whose operator is unknown or lacks a lowering in
 * one message, or names a value that holds strings. */
mdot_status ir_check_supported(const ir_graph *graph, mdot_error *err);

#endif
