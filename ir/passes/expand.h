/* expand.h — rules that rewrite one operator into others that have a kernel. The table is in expand.c. A rule leaves
 * a node unchanged if its kernel can express it directly. */
#ifndef IR_PASSES_EXPAND_H
#define IR_PASSES_EXPAND_H

#include "ir/passes/builder.h"

/* expand_norm.c */
void ir_expand_softmax(ir_builder *b, ir_node *node);
void ir_expand_layer_norm(ir_builder *b, ir_node *node);
void ir_expand_rms_norm(ir_builder *b, ir_node *node);
void ir_expand_group_norm(ir_builder *b, ir_node *node);
void ir_expand_instance_norm(ir_builder *b, ir_node *node);
void ir_expand_batch_norm(ir_builder *b, ir_node *node);
void ir_expand_mean_variance_norm(ir_builder *b, ir_node *node);
void ir_expand_lp_norm(ir_builder *b, ir_node *node);
void ir_expand_log_sum_exp(ir_builder *b, ir_node *node);

/* expand_variadic.c */
void ir_expand_variadic(ir_builder *b, ir_node *node);

/* expand_attention.c */
void ir_expand_attention(ir_builder *b, ir_node *node);

/* expand_recurrent.c */
void ir_expand_recurrent(ir_builder *b, ir_node *node);

/* expand_windows.c */
void ir_expand_convolution(ir_builder *b, ir_node *node);
void ir_expand_max_pool(ir_builder *b, ir_node *node);
void ir_expand_average_pool(ir_builder *b, ir_node *node);
void ir_expand_global_pool(ir_builder *b, ir_node *node);

/* expand_conv_transpose.c */
void ir_expand_conv_transpose(ir_builder *b, ir_node *node);

/* expand_resize.c */
void ir_expand_resize(ir_builder *b, ir_node *node);

/* expand_rotary.c */
void ir_expand_rotary_embedding(ir_builder *b, ir_node *node);

#endif
