/* random_node.h — a node of any operator with arbitrary inputs and attributes, for tests over every operator table row.
 * Most nodes are malformed. Small dimensions and common shapes make enough of them valid. */
#pragma once

#include "ir/ops.h"

enum { RANDOM_NODE_INPUTS = 9 };

/* Returns 0 … count - 1. The state must be different from zero. */
int random_pick(uint64_t *state, int count);
mdot_dtype random_dtype(uint64_t *state);

/* A node named "the node" at the end of the graph. The inputs are constants, and some optional inputs are absent
 * (NULL). `tensors`, with RANDOM_NODE_INPUTS elements, receives the content. */
ir_node *random_node(uint64_t *state, ir_graph *graph, const ir_op *op, const ir_wide **tensors);
