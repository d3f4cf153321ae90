/* output_placement.h — chooses the placement of a computed value. */
#ifndef IR_PLAN_OUTPUT_PLACEMENT_H
#define IR_PLAN_OUTPUT_PLACEMENT_H

#include "plan/builder.h"

/* Chooses the placement of a value that is about to be computed: its graph output, else its part of a concatenation
 * that is its only reader, else scratch. `trailing` restricts the placement to those that the kernel can write:
 * dense ones (PL_PLACEMENT_TYPED also requires a buffer of the value's own shape), any, or those where that many
 * last dimensions are the columns of a matrix. */
enum { PL_PLACEMENT_TYPED = -2, PL_PLACEMENT_DENSE = -1, PL_PLACEMENT_ANYWHERE = 0 };
bool pl_place_output(pl_builder *b, const ir_value *v, int trailing);

#endif
