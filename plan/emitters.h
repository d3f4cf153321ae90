/* emitters.h — the parts of the planner that emit kernels, and the decisions before them. */
#pragma once

#include "plan/plan_builder.h"

/* decide.c: decides the state of output `k` of a pointwise, moving or aliasing node, and emits its nest if it gets a
 * buffer. */
mdot_status pl_decide(pl_builder *b, const ir_node *node, int k);

/* chain.c: the pointwise operators that continue each root. */
void pl_claim_chains(pl_builder *b);

/* nest.c: every emitter creates a node's kernels (for a root: with the chain) and places the results. */
mdot_status pl_emit_value(pl_builder *b, const ir_value *v);
mdot_status pl_emit_copy(pl_builder *b, const ir_value *v, int output); /* nest.c: copies a graph output from another
                                                                         * placement */
/* Adds loops over a shape and returns the index that they form. Dimensions of one element get no loop. */
void pl_add_loops(pl_builder *b, pl_nest *nest, int rank, const ir_dim *dims, const pl_expr **out_index);
/* Adds a reduction loop after all others and returns its variable, or zero for a dimension of one element. */
const pl_expr *pl_add_reduction(pl_builder *b, pl_nest *nest, ir_dim dim);
/* Collapses and appends a nest; a nest without points is dropped. */
mdot_status pl_end_nest(pl_builder *b, const char *name, const pl_nest *nest);
/* Ends the nest of a root with the store of the chain's tail. `result` is the root as an expression of ACC 0; `index`
 * is the root's index. */
mdot_status pl_finish_nest(pl_builder *b, const ir_node *node, pl_nest *nest, const pl_expr *result,
                           const pl_expr *const *index);

/* collapse.c: merges loops that can run as one. */
void pl_collapse_loops(pl_builder *b, pl_nest *nest);

/* pointwise.c: definitions of pointwise operators, one expression each. */
const pl_expr *pl_define_pointwise(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
/* A pointwise formula's size as a tree: nodes, and reads of operand `v`. Trees grow multiplicatively along chains. */
typedef struct pl_growth {
    int nodes, copies;
} pl_growth;
pl_growth pl_pointwise_growth(pl_builder *b, const ir_node *node, const ir_value *v);

/* move.c: elements before the first one along each axis. False: they are known only at run time. */
bool pl_read_pads(const ir_node *node, int rank, ir_dim *out_before);
/* The value of elements that a Pad adds: its constant, or zero. */
const pl_expr *pl_pad_constant(pl_builder *b, const ir_node *node);
const pl_expr *pl_define_move(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
const pl_expr *pl_define_alias(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index);
/* move.c: the index into a shape that differs from `from` only in one-element dimensions. */
void pl_transfer_index(pl_builder *b, const ir_type *from, const pl_expr *const *index, const ir_type *to,
                       const pl_expr **out_index);

/* gather_nests.c: definitions of operators that gather elements. */
extern const pl_define_fn pl_gathers[IR_OP_COUNT];

typedef mdot_status pl_emit_fn(pl_builder *b, const ir_node *node);
pl_emit_fn pl_emit_reduction;                               /* reduce_nests.c: reductions as nests */
pl_emit_fn pl_emit_norm_nests;                              /* norm_nests.c: normalisations that are no norm kernel */
pl_emit_fn pl_emit_linear, pl_emit_norm, pl_emit_attention; /* fused.c: kernels of these kinds */
pl_emit_fn pl_emit_matmul;                                  /* plan_matmul.c: MatMul, Einsum and other linears */
pl_emit_fn pl_emit_trees;                                   /* plan_trees.c: kernels of decision trees */
pl_emit_fn pl_emit_sequential;                              /* sequence.c: sequential kernels */
pl_emit_fn pl_emit_recurrence;                              /* recurrence.c: recurrences */

/* Is the Linear node a matrix kernel? Its rows must be affine in L. */
bool pl_is_linear(const ir_node *node);
/* Is the normalisation a norm kernel? It must be f32, with rows and columns affine in L and softmax over the last
 * axis. */
bool pl_is_norm(const ir_node *node);
/* Dimensions per norm row. */
int pl_norm_trailing(const ir_node *node);

/* ---- loop.c: plans loops (ir/ops.h) as recurrences: pl_begin_loop emits the initial states, and pl_end_loop turns
 * all kernels since then into the steps. The kernels of the body are emitted in between, as outside of loops.
 */

/* UNSUPPORTED for a loop within a loop. */
pl_emit_fn pl_begin_loop, pl_end_loop;

/* Numbers the loops, and notes each value's loop (pl_value.loop) and the values whose elements are read only for the
 * same element of a step result (pl_value.ends_step). False: out of memory. */
bool pl_find_loops(pl_builder *b);

/* How often a node reads a value of loop `loop` (0: none) for each time that the value is computed: the step count if
 * the node is in a loop that the value is outside, otherwise 1. */
double pl_reads_by_steps(const pl_builder *b, const ir_node *reader, int loop);
