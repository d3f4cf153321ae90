/* kind_linear.h — the rule for dividing linear kernels among calls, and linears with 3x3 windows. */
#ifndef IR_PLAN_KIND_LINEAR_H
#define IR_PLAN_KIND_LINEAR_H

#include "plan/plan.h"

/* A linear with a constant number of rows is divided among calls if it has more rows than this. */
enum { PL_LINEAR_UNSPLIT_ROWS = 96 };

/* 3x3 windows of images that move by one position: the element at position (y, x), tap (i, j) and channel c is at
 * (y + i) * y_stride + (x + j) * x_stride + c from the image's first element. */
typedef struct pl_taps {
    int64_t height, width; /* positions of an image, both even */
    int64_t channels;      /* of a tap */
    int64_t y_stride, x_stride;
    ir_dim image_stride;
} pl_taps;

/* Does the linear have such windows, with sizes for which the transform of codegen/cpu/cpu_linear_winograd.c is faster
 * than a sum over all taps? */
bool pl_taps_of(const pl_linear *k, pl_taps *out);

#endif
