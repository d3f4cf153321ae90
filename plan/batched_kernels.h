/* batched_kernels.h — selects the kernels that process the rows of several items at once, in a call with several items.
 * The decision is common to all backends.
 *
 * The matrices of such a kernel have the rows of all items, and its weights are read once. Kernels that combine units
 * across the length, for example attention, run item by item.
 */
#ifndef IR_PLAN_BATCHED_KERNELS_H
#define IR_PLAN_BATCHED_KERNELS_H

#include "plan/plan.h"

/* Sets is_rowwise of every kernel and most_items of the plan, after all kernels exist. */
void pl_decide_items(pl_plan *plan);

#endif
