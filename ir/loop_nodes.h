/* loop_nodes.h — loops in a graph, whose nodes stay in the graph's one list.
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
#ifndef IR_LOOP_NODES_H
#define IR_LOOP_NODES_H

#include "ir/ops.h"

enum { IR_LOOP_INDEX = 0, IR_LOOP_STEPS = 1, IR_LOOP_NEXT = 2 }; /* inputs of a LoopEnd */

static inline bool ir_is_loop_begin(const ir_node *node)
{
    return node != NULL && node->op != NULL && node->op->opcode == IR_OP_LoopBegin;
}
static inline bool ir_is_loop_end(const ir_node *node)
{
    return node != NULL && node->op != NULL && node->op->opcode == IR_OP_LoopEnd;
}

/* The LoopBegin of a LoopEnd. NULL: its first input is another value. */
ir_node *ir_loop_begin_of(const ir_node *end);
/* The LoopEnd of a LoopBegin. NULL: there is none. */
ir_node *ir_loop_end_of(const ir_node *begin);
/* The number of states of a LoopBegin. */
int ir_loop_states(const ir_node *begin);
/* The number of stacks of a LoopEnd. */
int ir_loop_elements(const ir_node *end);
/* The place of the steps among the axes of stack k, for elements of `rank` dimensions: 0 … rank. -1: out of range. */
int ir_loop_axis(const ir_node *end, int k, int rank);
bool ir_loop_is_reversed(const ir_node *end, int k);

/* Sets out_inside[id] for the results of the LoopBegin and for every value between it and its LoopEnd that depends on
 * them, and clears it for all others. The array has an entry for each id of the graph. */
void ir_loop_mark(const ir_graph *graph, const ir_node *begin, bool *out_inside);
/* Is an output of the node marked? */
bool ir_loop_holds(const bool *inside, const ir_node *node);

/* The nodes of a graph in a topological order in which only the body of a loop is between its LoopBegin and its
 * LoopEnd. Other nodes between them move in front of the LoopBegin. NULL: out of memory. */
ir_node **ir_loop_order(const ir_graph *graph, ir_arena *arena, int *out_count);

#endif
