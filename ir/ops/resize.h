/* resize.h — where Resize takes the elements of its result from: one weighted sum along each axis, one axis after the
 * other. The evaluator and the pass that expands the operator share it. */
#ifndef IR_OPS_RESIZE_H
#define IR_OPS_RESIZE_H

#include "ir/ops/operands.h"

typedef enum ir_resize_mode { IR_RESIZE_NEAREST, IR_RESIZE_LINEAR, IR_RESIZE_CUBIC } ir_resize_mode;
typedef enum ir_resize_position {
    IR_RESIZE_HALF_PIXEL,
    IR_RESIZE_PYTORCH_HALF_PIXEL,
    IR_RESIZE_HALF_PIXEL_SYMMETRIC,
    IR_RESIZE_ALIGN_CORNERS,
    IR_RESIZE_ASYMMETRIC,
    IR_RESIZE_CROP,
    IR_RESIZE_HALF_PIXEL_OF_TF /* opset 11 and 12, for nearest */
} ir_resize_position;
typedef enum ir_resize_rounding {
    IR_RESIZE_PREFER_FLOOR,
    IR_RESIZE_PREFER_CEIL,
    IR_RESIZE_FLOOR,
    IR_RESIZE_CEIL
} ir_resize_rounding;

typedef struct ir_resize_axis {
    int axis;
    ir_dim in, out;
    double scale;      /* of the node, or out / in; 0 if it depends on the length */
    double start, end; /* of the region of interest, as fractions of the axis */
} ir_resize_axis;

typedef struct ir_resize {
    int count; /* number of axes */
    ir_resize_axis axes[MDOT_MAX_RANK];
    ir_resize_mode mode;
    ir_resize_position position;
    ir_resize_rounding rounding; /* of nearest */
    double cubic_a, extrapolation;
    bool exclude_outside, antialias;
} ir_resize;

/* MALFORMED, UNSUPPORTED. Types the result in *out_type. */
mdot_status ir_resize_read(const ir_operands *from, ir_resize *out_resize, ir_type *out_type);
/* The whole number k if the axis is scaled by 1/k, which is not exact in f32; otherwise 0. */
int64_t ir_resize_divisor(const ir_resize_axis *a);
/* Does the axis keep its elements? */
bool ir_resize_keeps(const ir_resize *r, const ir_resize_axis *a);
/* Number of elements in the sum for each element of the result. */
int64_t ir_resize_taps(const ir_resize *r, const ir_resize_axis *a);
/* The position in the input of element `at` of the result. False: it is extrapolated. The extents must be numbers. */
bool ir_resize_position_of(const ir_resize *r, const ir_resize_axis *a, int64_t at, double *out_position);
/* The weights of the elements from *out_first on, which may lie outside: there, the next element at the edge counts. */
void ir_resize_weights(const ir_resize *r, const ir_resize_axis *a, double position, int64_t *out_first,
                       double *out_weights);

#endif
