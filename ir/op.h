/* op.h — a row of the operator table: one row of ops.def per operator.
 *
 * A row names the operator's shape rule, cost rule and reference evaluator, which are together in the file of its
 * family (ir/ops/<family>.c). It also names the lowering: the kind of kernel that the operator becomes. Adding an
 * ordinary operator takes one row, three functions and tests; docs/how-to/add-an-operator.md has the steps.
 */
#pragma once

#include "ir/arena.h"
#include "ir/tensor.h"

struct ir_graph; /* graph.h */
struct ir_node;
struct ir_operands; /* operands.h */

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
    IR_LOWER_TREES,      /* an ensemble of decision trees */
    IR_LOWER_RECURRENCE, /* a loop over steps, each reading the results of the step before */
    IR_LOWER_LOOP,       /* the begin or the end of a loop over steps, whose body lies between them (ir/ops.h) */
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
    double parameters;                /* constant input elements that training would update */
} ir_cost;

/* A shape rule types every present output of `node` from its typed inputs, and sets `known` if content follows. It
 * reports MALFORMED with the node's name for inputs that the operator's definition forbids, and UNSUPPORTED for valid
 * inputs that have no form as a dimension (ir_dim). */
typedef mdot_status (*ir_shape_fn)(struct ir_graph *graph, struct ir_node *node, mdot_error *err);
/* Computes the output's type from the operands: the rule of an operator with a single output. */
typedef mdot_status (*ir_result_fn)(const struct ir_operands *args, ir_type *out_type);
/* Computes the type of output `output`: the rule of an operator with several outputs. */
typedef mdot_status (*ir_outputs_fn)(const struct ir_operands *args, int output, ir_type *out_type);
/* Sets the FLOPs in *io_cost, and corrects the bytes and parameters of ir_node_cost, which calls it. */
typedef void (*ir_cost_fn)(const struct ir_node *node, int64_t length, ir_cost *io_cost);
/* Evaluates on concrete tensors; ir_eval_node calls it. Inputs that the node lacks are NULL. Allocates each present
 * output in the arena, except for those that `result` and `outputs` type: they are there, with zeros. */
typedef mdot_status (*ir_eval_fn)(ir_arena *arena, const struct ir_node *node, ir_inputs in, ir_wide **out,
                                  mdot_error *err);

typedef enum ir_opcode {
#define OP(name, ...) IR_OP_##name,
#include "ir/ops.def"
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
    ir_result_fn result;   /* of the only output; NULL: `shape` has a rule of its own, or `outputs` */
    ir_outputs_fn outputs; /* of several outputs, or NULL */
    ir_cost_fn cost;       /* NULL: no FLOPs */
    ir_eval_fn eval;       /* NULL: shape and cost only */
    double slope;          /* by which a result moves with an operand at most; 0: unlimited or unknown (ops.def) */
    ir_lowering lowering;
} ir_op;

extern const ir_op ir_ops[IR_OP_COUNT];
