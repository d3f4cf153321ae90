/* geometry.h — windows that slide over feature maps, and the positions from which Resize takes elements. */
#pragma once

#include "ir/ops/operands.h"

/* ---- window_geometry.c: a window that slides over the spatial dimensions of a feature map [N, C, D1, D2 …]: the
 * geometry that convolutions and poolings share. */

enum { IR_MAX_SPATIAL = MDOT_MAX_RANK - 2 };

typedef struct ir_window {
    int rank; /* number of spatial dimensions */
    int64_t kernel[IR_MAX_SPATIAL], stride[IR_MAX_SPATIAL], dilation[IR_MAX_SPATIAL];
    ir_dim before[IR_MAX_SPATIAL], after[IR_MAX_SPATIAL]; /* padding; numbers, unless ir_window_slide resolved auto_pad
                                                           * along the length with a stride */
} ir_window;

/* Reads the attributes kernel_shape, strides, dilations and pads of a node over `rank` spatial dimensions. If
 * `kernel` is given, it is the kernel and kernel_shape must agree. ir_window_slide resolves padding by auto_pad. */
mdot_status ir_window_read(const ir_operands *args, int rank, const int64_t *kernel, ir_window *out_window);
/* Extents that remain of `in` according to auto_pad and ceil_mode; fills in the padding for auto_pad. MALFORMED if
 * the window is larger than the padded input. The extent along the length has a floor if the stride exceeds 1. */
mdot_status ir_window_slide(const ir_operands *args, ir_window *window, const ir_dim *in, ir_dim *out_extents);
/* The inverse: extents of a transposed convolution's result. */
mdot_status ir_window_unslide(const ir_operands *args, ir_window *window, const ir_dim *in, ir_dim *out_extents);

/* The element under tap `tap` of the window at `position`, as an offset in a channel with extents `dims`. -1: it is in
 * the padding. */
int64_t ir_window_tap(const ir_window *window, const int64_t *position, const int64_t *tap, const int64_t *dims);

/* ---- resize.c: where Resize takes the elements of its result from: one weighted sum along each axis, one axis after
 * the other. The evaluator and the pass that expands the operator share it. */

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
    double start, end; /* region of interest, as fractions of the axis */
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
mdot_status ir_resize_read(const ir_operands *args, ir_resize *out_resize, ir_type *out_type);
/* The whole number k if the axis is scaled by 1/k, which is not exact in f32; otherwise 0. */
int64_t ir_resize_divisor(const ir_resize_axis *a);
/* Does the axis keep its elements? */
bool ir_resize_keeps(const ir_resize *r, const ir_resize_axis *a);
/* Element count in the sum for each element of the result. */
int64_t ir_resize_taps(const ir_resize *r, const ir_resize_axis *a);
/* The position in the input of element `at` of the result. False: it is extrapolated. The extents must be numbers. */
bool ir_resize_position_of(const ir_resize *r, const ir_resize_axis *a, int64_t at, double *out_position);
/* The elements' weights from *out_first on, which may lie outside: there, the next element at the edge counts. */
void ir_resize_weights(const ir_resize *r, const ir_resize_axis *a, double position, int64_t *out_first,
                       double *out_weights);
