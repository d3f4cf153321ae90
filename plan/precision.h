/* precision.h — selects the buffers that images with 16-bit precision keep in 16 bits. The decision is common to all
 * backends.
 *
 * A matrix kernel rounds the factors of its products when it reads them. Therefore a buffer that only matrix kernels
 * read is stored in rounded form. A residual, which a norm also reads, stays in f32, and so do sums, statistics,
 * inputs and outputs. The results are the same whether a matrix kernel rounds a factor or reads it in rounded form,
 * because rounding twice changes nothing.
 */
#ifndef IR_PLAN_PRECISION_H
#define IR_PLAN_PRECISION_H

#include "plan/plan.h"

/* Sets `reads` of every buffer, after all kernels exist. */
void pl_decide_precision(pl_plan *plan);

#endif
