/* expand.h — rules that rewrite one operator into others that have a kernel; the table is in expand.c. A rule leaves a
 * node alone whose kernel can express it as it is. */
#ifndef IR_PASSES_EXPAND_H
#define IR_PASSES_EXPAND_H

#include "ir/passes/builder.h"

/* expand_norm.c */
void expand_softmax(ir_builder *b, ir_node *node);
void expand_layer_norm(ir_builder *b, ir_node *node);
void expand_rms_norm(ir_builder *b, ir_node *node);
void expand_group_norm(ir_builder *b, ir_node *node);
void expand_instance_norm(ir_builder *b, ir_node *node);
void expand_batch_norm(ir_builder *b, ir_node *node);
void expand_mean_variance_norm(ir_builder *b, ir_node *node);
void expand_lp_norm(ir_builder *b, ir_node *node);
void expand_log_sum_exp(ir_builder *b, ir_node *node);

/* expand_attention.c */
void expand_attention(ir_builder *b, ir_node *node);

/* expand_rotary.c */
void expand_rotary_embedding(ir_builder *b, ir_node *node);

#endif
