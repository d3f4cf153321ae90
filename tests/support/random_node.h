/* random_node.h — a node of any operator on whatever inputs and attributes, for tests that ask every row of the
 * operator table the same. Most are malformed; small dimensions and shared shapes make enough of them valid.
 */
#ifndef MDOT_TESTS_RANDOM_NODE_H
#define MDOT_TESTS_RANDOM_NODE_H

#include "ir/ops.h"

enum { RANDOM_NODE_INPUTS = 9 };

/* 0 … count - 1; the state is any number but zero. */
int random_pick(uint64_t *state, int count);
mdot_dtype random_dtype(uint64_t *state);

/* A node called "the node" at the end of the graph. Its inputs are constants, some of the optional ones absent (NULL);
 * `tensors`, of RANDOM_NODE_INPUTS, gets their content. */
ir_node *random_node(uint64_t *state, ir_graph *graph, const ir_op *op, const ir_wide **tensors);

#endif
