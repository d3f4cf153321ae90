/* lower_contrib.c — rewrites ONNX Runtime's contributed operators in terms of ONNX's before recognition. Then the rules
 * for other models fuse the parts again. */
#include "ir/passes/pass_rules.h"

#include "ir/ops/families.h"
#include "ir/passes.h"

/* Gelu and BiasGelu use erf, FastGelu uses tanh; each of x, or of x + bias. */
static void bias_gelu(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *bias = ir_node_input(node, 1);
    const char *approximate = node->op == &ir_ops[IR_OP_FastGelu] ? "tanh" : "none";
    if (bias != NULL) x = ir_build_add(b, x, bias);
    ir_replace(b, node->outputs[0],
               ir_build_with(b, IR_OP_Gelu, &x, 1, IR_ATTRS(IR_STRING("approximate", approximate))));
}

static void quick_gelu(ir_builder *b, ir_node *node)
{
    ir_replace(b, node->outputs[0],
               ir_build_with(b, IR_OP_Swish, node->inputs, 1,
                             IR_ATTRS(IR_FLOAT("alpha", ir_node_float(node, "alpha", 1.702)))));
}

/* LayerNormalization over the last dimension. Mean and inverse deviation go to the outputs of `node` that have
 * readers. */
static ir_value *layer_norm(ir_builder *b, ir_node *node, ir_value *x, ir_value *gamma, ir_value *beta, ir_value *mean,
                            ir_value *inverse_deviation)
{
    if (x == NULL) return NULL;
    ir_value *inputs[] = {x, gamma, beta};
    bool statistics = mean != NULL || inverse_deviation != NULL;
    ir_node *norm = ir_build_node(b, IR_OP_LayerNormalization, inputs, beta != NULL ? 3 : 2, statistics ? 3 : 1);
    ir_build_set(b, norm, IR_INT("axis", -1));
    ir_build_set(b, norm, IR_FLOAT("epsilon", ir_node_float(node, "epsilon", 1e-12)));
    ir_value *result = ir_build_infer(b, norm);
    if (result != NULL && mean != NULL) ir_replace(b, mean, norm->outputs[1]);
    if (result != NULL && inverse_deviation != NULL) ir_replace(b, inverse_deviation, norm->outputs[2]);
    return result;
}

/* Inputs: x, skip, gamma, beta? (LayerNormalization only), bias?. Outputs: norm, mean?, inverse deviation?, sum?. */
static void skip_norm(ir_builder *b, ir_node *node)
{
    bool is_rms = node->op == &ir_ops[IR_OP_SkipSimplifiedLayerNormalization];
    ir_value *x = node->inputs[0], *gamma = node->inputs[2], *bias = ir_node_input(node, is_rms ? 3 : 4);
    if (bias != NULL) x = ir_build_add(b, x, bias); /* added first, so the linear that produces x can absorb it */
    ir_value *sum = ir_build_add(b, x, node->inputs[1]), *norm;
    if (is_rms)
        norm = ir_build_norm(b, IR_OP_RMSNormalization, sum, gamma, NULL, -1, ir_node_float(node, "epsilon", 1e-12));
    else
        norm =
            layer_norm(b, node, sum, gamma, ir_node_input(node, 3), ir_read_output(node, 1), ir_read_output(node, 2));
    ir_replace(b, ir_read_output(node, 3), sum);
    ir_replace(b, node->outputs[0], norm);
}

/* Inputs: input_ids [B, S], segment_ids?, word, position and segment? embeddings, gamma, beta, mask?, position_ids?.
 * Outputs: norm, mask_index? (valid tokens of each row), sum?. */
static void embed_layer_norm(ir_builder *b, ir_node *node)
{
    ir_value *ids = node->inputs[0], *segments = ir_node_input(node, 1), *segment_table = ir_node_input(node, 4);
    ir_value *mask = ir_node_input(node, 7), *positions = ir_node_input(node, 8);
    if (positions == NULL) positions = ir_build_range(b, ids->type.dim[1]);
    ir_value *sum = ir_build_op2(b, IR_OP_Gather, node->inputs[2], ids);
    sum = ir_build_add(b, sum, ir_build_op2(b, IR_OP_Gather, node->inputs[3], positions));
    if (segments != NULL && segment_table != NULL)
        sum = ir_build_add(b, sum, ir_build_op2(b, IR_OP_Gather, segment_table, segments));
    ir_value *norm = layer_norm(b, node, sum, node->inputs[5], node->inputs[6], NULL, NULL);
    ir_value *valid = ir_read_output(node, 1);
    if (valid != NULL && mask != NULL) {
        int64_t axis = 1;
        ir_value *counted = ir_build_cast(b, ir_build_cast(b, mask, MDOT_DTYPE_BOOL), valid->type.dtype);
        ir_value *count = counted != NULL ? ir_build_reduce(b, IR_OP_ReduceSum, counted, &axis, 1) : NULL;
        ir_replace(b, valid, ir_build_reshape(b, count, valid->type.dim, valid->type.rank));
    } else if (valid != NULL) {
        b->dtype = valid->type.dtype;
        ir_replace(b, valid, ir_build_expand(b, ir_build_scalar(b, 0), valid->type.dim, valid->type.rank));
    }
    ir_replace(b, ir_read_output(node, 2), sum);
    ir_replace(b, node->outputs[0], norm);
}

/* Inputs: x, position ids, cosine and sine caches. A single position id is that of the first token. */
static void rotary_embedding(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *positions = node->inputs[1];
    ir_dim tokens[] = {x->type.dim[0], x->type.dim[x->type.rank - 2]};
    int64_t heads;
    b->status = ir_contrib_rotary_heads(node, &x->type, &node->inputs[2]->type, &heads, b->err);
    if (b->status != MDOT_OK) return;
    if (positions->type.rank == 1) {
        ir_value *counted = ir_build_range(b, tokens[1]);
        positions = ir_build_expand(b, ir_build_add(b, counted, positions), tokens, 2);
    }
    if (positions == NULL) return;
    ir_value *rotated =
        ir_build_with(b, IR_OP_RotaryEmbedding, IR_VALUES(x, node->inputs[2], node->inputs[3], positions),
                      IR_ATTRS(IR_INT("interleaved", ir_node_int(node, "interleaved", 0)), IR_INT("num_heads", heads),
                               IR_INT("rotary_embedding_dim", ir_node_int(node, "rotary_embedding_dim", 0))));
    ir_replace(b, node->outputs[0], rotated);
}

static void fused_gemm(ir_builder *b, ir_node *node)
{
    ir_activation activation;
    if (ir_fused_gemm_activation(node, &activation, NULL) != MDOT_OK) return; /* inference refused it */
    ir_value *result = ir_build_with(
        b, IR_OP_Gemm, node->inputs, node->input_count,
        IR_ATTRS(IR_FLOAT("alpha", ir_node_float(node, "alpha", 1)), IR_FLOAT("beta", ir_node_float(node, "beta", 1)),
                 IR_INT("transA", ir_node_int(node, "transA", 0)), IR_INT("transB", ir_node_int(node, "transB", 0))));
    if (activation.opcode != IR_OP_COUNT)
        result = ir_build_with(b, activation.opcode, &result, 1, activation.attrs, activation.attr_count);
    ir_replace(b, node->outputs[0], result);
}

const ir_rule ir_rules_lower_contrib[IR_OP_COUNT] = {
    [IR_OP_MSGelu] = bias_gelu,
    [IR_OP_BiasGelu] = bias_gelu,
    [IR_OP_FastGelu] = bias_gelu,
    [IR_OP_QuickGelu] = quick_gelu,
    [IR_OP_SkipLayerNormalization] = skip_norm,
    [IR_OP_EmbedLayerNormalization] = embed_layer_norm,
    [IR_OP_SkipSimplifiedLayerNormalization] = skip_norm,
    [IR_OP_MSRotaryEmbedding] = rotary_embedding,
    [IR_OP_FusedGemm] = fused_gemm,
    [IR_OP_MSAttention] = ir_contrib_attention,
    [IR_OP_MultiHeadAttention] = ir_contrib_multi_head_attention,
};
