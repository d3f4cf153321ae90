/* fused.h — linear, norm and attention kernels. */
#ifndef IR_PLAN_FUSED_H
#define IR_PLAN_FUSED_H

#include "plan/builder.h"

mdot_status pl_emit_linear(pl_builder *b, const ir_node *node);
mdot_status pl_emit_norm(pl_builder *b, const ir_node *node);
mdot_status pl_emit_attention(pl_builder *b, const ir_node *node);
/* Is the Linear node a matrix kernel? Its rows must be affine in L. */
bool pl_is_linear(const ir_node *node);
/* Is the normalisation a norm kernel? It must be f32, with rows and columns affine in L and softmax over the last
 * axis. */
bool pl_is_norm(const ir_node *node);
/* Number of dimensions that a norm's rows span. */
int pl_norm_trailing(const ir_node *node);

#endif
