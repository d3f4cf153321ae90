/* expand.c — replaces operators that have no kernel by operators that have one.
 *
 * Runs late, after all recognition. A rule's result may contain operators expanded in turn, for example a softmax in
 * f64 inside an attention in f64. */
#include "ir/passes/pass_rules.h"

#include "ir/passes.h"

/* Refuses a Dropout that `simplify` kept, because it draws random numbers. */
static void refuse_dropout(ir_builder *b, ir_node *node)
{
    b->status = mdot_fail(
        b->err, MDOT_UNSUPPORTED,
        "%s: node %s (Dropout) runs in training mode, which needs random numbers; export the model for inference",
        b->graph->name, node->name);
}

const ir_rule ir_rules_expand[IR_OP_COUNT] = {
    [IR_OP_Dropout] = refuse_dropout,
    [IR_OP_Softmax] = ir_expand_softmax,
    [IR_OP_LogSoftmax] = ir_expand_softmax,
    [IR_OP_ReduceLogSumExp] = ir_expand_log_sum_exp,
    [IR_OP_LayerNormalization] = ir_expand_layer_norm,
    [IR_OP_RMSNormalization] = ir_expand_rms_norm,
    [IR_OP_SimplifiedLayerNormalization] = ir_expand_rms_norm,
    [IR_OP_GroupNormalization] = ir_expand_group_norm,
    [IR_OP_InstanceNormalization] = ir_expand_instance_norm,
    [IR_OP_BatchNormalization] = ir_expand_batch_norm,
    [IR_OP_MeanVarianceNormalization] = ir_expand_mean_variance_norm,
    [IR_OP_LpNormalization] = ir_expand_lp_norm,
    [IR_OP_Sum] = ir_expand_variadic,
    [IR_OP_Mean] = ir_expand_variadic,
    [IR_OP_Min] = ir_expand_variadic,
    [IR_OP_Max] = ir_expand_variadic,
    [IR_OP_Attention] = ir_expand_attention,
    [IR_OP_Conv] = ir_expand_convolution,
    [IR_OP_ConvTranspose] = ir_expand_conv_transpose,
    [IR_OP_Resize] = ir_expand_resize,
    [IR_OP_MaxPool] = ir_expand_max_pool,
    [IR_OP_AveragePool] = ir_expand_average_pool,
    [IR_OP_GlobalMaxPool] = ir_expand_global_pool,
    [IR_OP_GlobalAveragePool] = ir_expand_global_pool,
    [IR_OP_LSTM] = ir_expand_recurrent,
    [IR_OP_GRU] = ir_expand_recurrent,
    [IR_OP_RNN] = ir_expand_recurrent,
    [IR_OP_RotaryEmbedding] = ir_expand_rotary_embedding,
};
