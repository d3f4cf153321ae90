/* units.h — how a kernel's accesses move from one unit of the length to the next, for the rule of row-wise kernels.
 *
 * Items are calls of one entry at individual lengths. Their tensors are concatenated without padding. A kernel that
 * computes each unit of the length from that unit alone sees them as one call at the sum of the lengths.
 *
 * A kernel can process items together if advancing by one unit moves every access of a tensor with the length by that
 * tensor's unit, and changes nothing else. Then each index differs between an item's own call and the joint call by
 * the units of the preceding items, which is the position of the item's tensor. Extents may exceed the length by a
 * number of units, for example behind a token that is put in front of the sequence. The number must be equal in the
 * kernel and in all its tensors.
 */
#ifndef IR_PLAN_UNITS_H
#define IR_PLAN_UNITS_H

#include "plan/plan.h"

/* The meaning of one unit of the length in the current kernel. */
typedef struct pl_units {
    const pl_plan *plan;
    int loop;       /* the loop over the units */
    int64_t scale;  /* points of the loop per unit */
    int64_t offset; /* units beyond the length */
} pl_units;

/* Sets the loop over the units. False: its extent is not scale * (L + offset). */
bool pl_begin_units(pl_units *u, int loop, ir_dim extent);
/* Does the access advance by `step` elements per unit, as the tensor does? Constants are equal for every item. */
bool pl_access_follows(const pl_units *u, int buffer, int64_t step);
/* The same for an access at offset + unit * scale * stride. */
bool pl_stride_follows(const pl_units *u, int buffer, ir_dim offset, ir_dim stride);
bool pl_matrix_follows(const pl_units *u, const pl_matrix *m);
/* The same for the windows of `m`. False, for example, if they slide over the units, so that windows at the end of an
 * item would reach into the next item. */
bool pl_windows_follow(const pl_units *u, const pl_matrix *m, const pl_windows *windows);
/* The increase of the expression's value from unit to unit. False: it is not a number, or unknown. */
bool pl_find_step(const pl_units *u, const pl_expr *e, int64_t *out_step);
/* Is the value equal for equal rows, at any position? */
bool pl_is_of_unit(const pl_units *u, const pl_expr *e);

#endif
