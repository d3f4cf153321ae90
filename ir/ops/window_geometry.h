/* window_geometry.h — a window that slides over the spatial dimensions of a feature map [N, C, D1, D2 …]: the
 * geometry that convolutions and poolings share. */
#ifndef IR_OPS_WINDOW_GEOMETRY_H
#define IR_OPS_WINDOW_GEOMETRY_H

#include "ir/ops/operands.h"

enum { IR_MAX_SPATIAL = MDOT_MAX_RANK - 2 };

typedef struct ir_window {
    int rank; /* number of spatial dimensions */
    int64_t kernel[IR_MAX_SPATIAL], stride[IR_MAX_SPATIAL], dilation[IR_MAX_SPATIAL];
    ir_dim before[IR_MAX_SPATIAL], after[IR_MAX_SPATIAL]; /* padding; numbers, unless ir_window_slide resolved auto_pad
                                                           * along the length with a stride */
} ir_window;

/* Reads the attributes kernel_shape, strides, dilations and pads of a node over `rank` spatial dimensions. If
 * `kernel` is given, it is the kernel and kernel_shape must agree. ir_window_slide resolves padding by auto_pad. */
mdot_status ir_window_read(const ir_operands *from, int rank, const int64_t *kernel, ir_window *out_window);
/* Extents that remain of `in` according to auto_pad and ceil_mode; fills in the padding for auto_pad. MALFORMED if
 * the window is larger than the padded input. The extent along the length has a floor if the stride exceeds 1. */
mdot_status ir_window_slide(const ir_operands *from, ir_window *window, const ir_dim *in, ir_dim *out_extents);
/* The inverse: extents of a transposed convolution's result. */
mdot_status ir_window_unslide(const ir_operands *from, ir_window *window, const ir_dim *in, ir_dim *out_extents);

#endif
