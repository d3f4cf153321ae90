/* view.h — strided views: the placements of values that only re-address another value. */
#ifndef IR_PLAN_VIEW_H
#define IR_PLAN_VIEW_H

#include "plan/builder.h"

/* The placement of output `k` of a node that only re-addresses its placed input. False: the node needs code. */
bool pl_view(pl_builder *b, const ir_node *node, int k, pl_placement *out);
/* Does the same with the input at `source`. */
bool pl_view_from(pl_builder *b, const ir_node *node, int k, const pl_placement *source, pl_placement *out);
/* The placement as a matrix whose columns are the last `trailing` dimensions. */
bool pl_matrix_view(const pl_placement *placement, const ir_type *type, int trailing, pl_matrix *out);
/* The placement of a Reshape's result as windows of its input, which is placed at `source`. False: dimensions of the
 * input are in rows and columns at once, or there are too many, or memory runs out. */
bool pl_window_view(pl_builder *b, const ir_node *node, const pl_placement *source, pl_placement *out);
/* Operand 0, 1 or 2 of an Attention node as heads. */
bool pl_heads_view(const ir_node *node, int operand, const pl_placement *placement, pl_heads *out);
/* Strides of its additive mask over (batch, head, query); keys are adjacent. */
bool pl_mask_view(const ir_node *node, const pl_placement *placement, ir_dim out_stride[3]);
/* Does a reshape only add or remove dimensions of one element? */
bool pl_only_units_differ(const ir_type *from, const ir_type *to);
/* The part that operand `k` fills in the placed result of a Concat. */
bool pl_concat_part(pl_builder *b, const ir_node *node, int k, pl_placement *out);
/* Strides of a placement for a shape that differs only in dimensions of one element. */
void pl_transfer_strides(const ir_type *from, const ir_dim *stride, const ir_type *to, ir_dim *out_stride);
/* Decoded operands of Slice: element i along dimension d is element start[d] + i * step[d]. */
bool pl_slice(pl_builder *b, const ir_node *node, ir_dim *out_start, int64_t *out_step);
/* The start of output k of a Split along the axis. */
bool pl_split(pl_builder *b, const ir_node *node, int k, int *out_axis, ir_dim *out_begin);
int pl_axis(const ir_node *node, const char *name, int64_t fallback, int rank);

#endif
