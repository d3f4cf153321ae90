/* value.h — a value at an index, as an expression. */
#ifndef IR_PLAN_VALUE_H
#define IR_PLAN_VALUE_H

#include "plan/builder.h"

/* Element `index` (rank expressions) of a value in any state. */
const pl_expr *pl_value_at(pl_builder *b, const ir_value *v, const pl_expr *const *index);
/* Does the same from the value's definition, for placed values under construction. */
const pl_expr *pl_define(pl_builder *b, const ir_value *v, const pl_expr *const *index);
/* An operand that broadcasts to a shape of rank `rank`. */
const pl_expr *pl_operand_at(pl_builder *b, const ir_value *v, int rank, const pl_expr *const *index);
/* The placement of a placed value; a constant gets its buffer now. NULL: the value has no placement, or memory is
 * exhausted. */
const pl_placement *pl_placement_of(pl_builder *b, const ir_value *v);
/* The element's index in the placement's buffer. */
const pl_expr *pl_position(pl_builder *b, const pl_placement *placement, const ir_type *type,
                           const pl_expr *const *index);
const pl_expr *pl_load_at(pl_builder *b, const pl_placement *placement, const ir_type *type,
                          const pl_expr *const *index);
/* Row-major position of an index in a shape, in Horner form; and the inverse. */
const pl_expr *pl_flatten(pl_builder *b, int rank, const ir_dim *dims, const pl_expr *const *index);
bool pl_unflatten(pl_builder *b, const pl_expr *flat, int rank, const ir_dim *dims, const pl_expr **out_index);
/* Operation counts, which decide whether a value may be computed more than once. */
double pl_expr_cost(const pl_expr *expr, int *budget);
double pl_elements(const pl_builder *b, const ir_value *v); /* at full length */

#endif
