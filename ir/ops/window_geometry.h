/* window_geometry.h — a window that slides over the spatial dimensions of a feature map [N, C, D1, D2 …]: the geometry that
 * convolutions and poolings share.
 */
#ifndef IR_OPS_WINDOW_GEOMETRY_H
#define IR_OPS_WINDOW_GEOMETRY_H

#include "ir/ops/operands.h"

enum { IR_MAX_SPATIAL = MDOT_MAX_RANK - 2 };

typedef struct ir_window {
    int rank; /* spatial dimensions */
    int64_t kernel[IR_MAX_SPATIAL], stride[IR_MAX_SPATIAL], dilation[IR_MAX_SPATIAL];
    int64_t before[IR_MAX_SPATIAL], after[IR_MAX_SPATIAL]; /* padding */
} ir_window;

/* The attributes kernel_shape, strides, dilations, pads of a node over `rank` spatial dimensions; with `kernel`, the
 * kernel is that and kernel_shape must agree. Padding by auto_pad is settled by ir_window_slide. */
mdot_status ir_window_read(const ir_operands *from, int rank, const int64_t *kernel, ir_window *out_window);
/* Extents that the window leaves of `in`, as auto_pad and ceil_mode say; fills in the padding that auto_pad means.
 * MALFORMED where the window does not fit once. */
mdot_status ir_window_slide(const ir_operands *from, ir_window *window, const ir_dim *in, ir_dim *out_extents);
/* The same in the other direction: extents of a transposed convolution's result. */
mdot_status ir_window_unslide(const ir_operands *from, ir_window *window, const ir_dim *in, ir_dim *out_extents);

#endif
