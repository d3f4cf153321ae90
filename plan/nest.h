/* nest.h — nests of values, and the ends of reductions. */
#ifndef IR_PLAN_NEST_H
#define IR_PLAN_NEST_H

#include "plan/builder.h"

/* Every emitter creates the kernels of a node (of a root: with its chain) and places their results. */
mdot_status pl_emit_value(pl_builder *b, const ir_value *v);
mdot_status pl_emit_copy(pl_builder *b, const ir_value *v, int output); /* nest.c: copies a graph output from another
                                                                         * placement */
/* Adds loops over a shape and returns the index that they form. Dimensions of one element get no loop. */
void pl_add_loops(pl_builder *b, pl_nest *nest, int rank, const ir_dim *dims, const pl_expr **out_index);
/* Adds a reduction loop after all others and returns its variable, or zero for a dimension of one element. */
const pl_expr *pl_add_reduction(pl_builder *b, pl_nest *nest, ir_dim dim);
/* Collapses and appends a nest; a nest without points is dropped. */
mdot_status pl_end_nest(pl_builder *b, const char *name, const pl_nest *nest);
/* Ends the nest of a root with the store of its chain's tail. `result` is the root as an expression of ACC 0; `index`
 * is the root's index. */
mdot_status pl_finish_nest(pl_builder *b, const ir_node *node, pl_nest *nest, const pl_expr *result,
                           const pl_expr *const *index);

#endif
