/* ops.h — the operator table (op.h) applied to nodes and graphs: look-up, inference, reference evaluation, and the
 * check that a graph can be compiled. */
#ifndef IR_OPS_H
#define IR_OPS_H

#include "ir/graph.h"
#include "ir/op.h"

static inline ir_opcode ir_node_opcode(const ir_node *node)
{
    return node->op->opcode;
}
/* NULL: the operator is not in the table. "ai.onnx" and "" are one domain. */
const ir_op *ir_op_find(const char *domain, const char *name);

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
