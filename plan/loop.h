/* loop.h — plans loops (ir/loop_nodes.h) as recurrences: pl_begin_loop emits the initial states, and pl_end_loop turns
 * all kernels since then into the steps. The kernels of the body are emitted in between, as outside of loops. */
#ifndef IR_PLAN_LOOP_H
#define IR_PLAN_LOOP_H

#include "plan/builder.h"

/* UNSUPPORTED for a loop within a loop. */
mdot_status pl_begin_loop(pl_builder *b, const ir_node *begin);
mdot_status pl_end_loop(pl_builder *b, const ir_node *end);

/* Numbers the loops and notes the loop of each value (pl_value.loop), and the values of which each element is read
 * only for the same element of a result of the step (pl_value.ends_step). False: out of memory. */
bool pl_find_loops(pl_builder *b);

/* How often a node reads a value of loop `loop` (0: none) for each time that the value is computed: the number of
 * steps if the node is in a loop that the value is outside of, otherwise 1. */
double pl_reads_by_steps(const pl_builder *b, const ir_node *reader, int loop);

#endif
