/* ops.h — the operator table (op.h) applied to nodes and graphs: look-up, inference, reference evaluation, and the
 * check that a graph can be compiled. */
#pragma once

#include "ir/graph.h"
#include "ir/op.h"

static inline ir_opcode ir_node_opcode(const ir_node *node) { return node->op->opcode; }
/* Is the node's operator one of those listed? */
#define IR_IS_ONE_OF(node, ...) ir_node_is_one_of(node, (const ir_opcode[]){__VA_ARGS__, IR_OP_COUNT})
static inline bool ir_node_is_one_of(const ir_node *node, const ir_opcode *opcodes)
{
    while (*opcodes != IR_OP_COUNT && *opcodes != node->op->opcode) opcodes++;
    return *opcodes != IR_OP_COUNT;
}
/* NULL: the operator is not in the table. "ai.onnx" and "" are one domain. */
const ir_op *ir_op_find(const char *domain, const char *name);

/* ---- Applying the table to a graph ------------------------------------------------------------------------------ */

/* Types the outputs of a node of the table, and sets `known` (ir/infer.c). */
mdot_status ir_infer_node(ir_graph *graph, ir_node *node, mdot_error *err);

/* The cost of one forward evaluation (ir/ops/helpers.c): bytes read (each distinct input once), bytes written,
 * parameters (the elements of distinct floating constants with more than one element), and the FLOPs of the operator's
 * cost rule. */
ir_cost ir_node_cost(const ir_node *node, int64_t length);

/* The reference evaluation in double precision (ir/evaluate.c). Inputs are concrete and in the graph's order; outputs
 * are allocated in `arena`. Shapes come from the data. Evaluators assume well-formed nodes, because ir_infer_node
 * accepted them before. */
mdot_status ir_evaluate(const ir_graph *graph, ir_inputs inputs, ir_arena *arena, ir_wide **out_outputs,
                        mdot_error *err);

/* Does the same with less precision, which shows what it costs this model on these inputs, independent of kernels.
 * BF16 or F16: the factors of every matmul are rounded beforehand. F32: every result is rounded to f32, as in an
 * implementation with one kernel per operator. NONE: equals ir_evaluate. */
mdot_status ir_evaluate_in(const ir_graph *graph, mdot_dtype rounding, ir_inputs inputs, ir_arena *arena,
                           ir_wide **out_outputs, mdot_error *err);

/* Like F32, with random noise of up to `units` last places on the results of sums and approximated functions. The
 * difference from the evaluation without noise shows the sensitivity of each output to an implementation's freedom. */
mdot_status ir_evaluate_noisily(const ir_graph *graph, uint64_t seed, double units, ir_inputs inputs, ir_arena *arena,
                                ir_wide **out_outputs, mdot_error *err);

/* Fractional powers of integers are computed in f64; from here on, their last digits are open. */
#define IR_EXACT_POWER 0x1p36

/* Checks that a graph can be compiled. UNSUPPORTED lists all nodes whose operator is unknown or lacks a lowering in
 * one message, or names a value that holds strings. */
mdot_status ir_check_supported(const ir_graph *graph, mdot_error *err);

/* ---- loop_nodes.c: loops in a graph, whose nodes stay in the graph's one list.
 *
 *     index, state… = mdot.LoopBegin(initial…)
 *     …                                              the body: the nodes that depend on a result of the LoopBegin
 *     final…, stack… = mdot.LoopEnd(index, steps, next…, element…)     attributes states, axes, reverse
 *
 * The body runs once per step. In the first step a state has its initial value, and in each later step the `next` of
 * the step before. `index` is the number of the step, from 0 on. After the last step, `final` is the last `next`, or
 * the initial value if there are no steps. `stack` holds the element of every step along a new axis, from the last step
 * to the first if `reverse` is set. The number of steps is known at compile time: a number, or affine in L.
 *
 * Because the body is part of the list, shape rules and passes treat its nodes like all others. A rewriting is right if
 * it is right in every step. LoopBegin is no function of its inputs, and therefore lacks the trait IR_STATELESS. A
 * value of the body reaches other nodes through the LoopEnd alone.
 */

enum { IR_LOOP_INDEX = 0, IR_LOOP_STEPS = 1, IR_LOOP_NEXT = 2 }; /* inputs of a LoopEnd */

static inline bool ir_is_loop_begin(const ir_node *node)
{
    return node != NULL && node->op != NULL && node->op->opcode == IR_OP_LoopBegin;
}
static inline bool ir_is_loop_end(const ir_node *node)
{
    return node != NULL && node->op != NULL && node->op->opcode == IR_OP_LoopEnd;
}

/* The LoopBegin of a LoopEnd. NULL: the first input is another value. */
ir_node *ir_loop_begin_of(const ir_node *end);
/* The LoopEnd of a LoopBegin. NULL: there is none. */
ir_node *ir_loop_end_of(const ir_node *begin);
int ir_loop_states(const ir_node *begin);
int ir_loop_elements(const ir_node *end);
/* The steps' axis in stack k, for elements of `rank` dimensions: 0 … rank. -1: out of range. */
int ir_loop_axis(const ir_node *end, int k, int rank);
bool ir_loop_is_reversed(const ir_node *end, int k);

/* Sets out_inside[id] for the results of the LoopBegin and for every value between it and its LoopEnd that depends on
 * them, and clears it for all others. The array has an entry for each id of the graph. */
void ir_loop_mark(const ir_graph *graph, const ir_node *begin, bool *out_inside);
/* Is an output of the node marked? */
bool ir_loop_holds(const bool *inside, const ir_node *node);

/* A graph's nodes in a topological order in which only a loop's body is between its LoopBegin and its LoopEnd. Other
 * nodes between them move before the LoopBegin. NULL: out of memory. */
ir_node **ir_loop_order(const ir_graph *graph, ir_arena *arena, int *out_count);
