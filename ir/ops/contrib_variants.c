/* contrib_variants.c — operators of com.microsoft that equal an operator of ONNX or another contributed one with
 * operands in different positions: RotaryEmbedding, SkipSimplifiedLayerNormalization (docs/ContribOperators.md of
 * onnxruntime). The operator that they are a variant of defines their semantics; the `contrib` pass rewrites them
 * accordingly. */
#include "ir/ops/operands.h"

enum { X, POSITIONS, COS, SIN };

mdot_status ir_contrib_rotary_heads(const ir_node *node, const ir_type *x, const ir_type *cache, int64_t *out_heads,
                                    mdot_error *err)
{
    int64_t heads = ir_node_int(node, "num_heads", 0);
    if (ir_node_int(node, "is_packed_batching", 0) != 0 || ir_node_float(node, "scale", 1) != 1)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "packed batches and a scale are unsupported");
    if (x->rank == 3 && heads == 0 && cache->rank == 2 && ir_dim_is_number(cache->dim[1]) && cache->dim[1].offset > 0 &&
        ir_dim_is_number(x->dim[2])) /* heads as wide as the channels that the caches rotate */
        heads = x->dim[2].offset / (2 * cache->dim[1].offset);
    *out_heads = heads;
    return MDOT_OK;
}

mdot_status ir_result_contrib_rotary(const ir_operands *args, ir_type *out_type)
{
    ir_type x, cosine, sine, positions;
    int64_t heads;
    BS_TRY(ir_operand_need(args, X, "input", -1, &x));
    BS_TRY(ir_operand_need(args, POSITIONS, "position ids", -1, &positions));
    BS_TRY(ir_operand_need(args, COS, "cosine cache", 2, &cosine));
    BS_TRY(ir_operand_need(args, SIN, "sine cache", 2, &sine));
    if (x.rank != 3 && x.rank != 4) return ir_malformed(args, "an input of %d dimensions instead of 3 or 4", x.rank);
    BS_TRY(ir_contrib_rotary_heads(args->node, &x, &cosine, &heads, args->err));
    ir_dim channels = x.dim[x.rank - 1];
    bool divides = x.rank == 4 || (heads > 0 && ir_dim_div_exact(channels, ir_dim_number(heads), &channels));
    int64_t rotated = ir_node_int(args->node, "rotary_embedding_dim", 0);
    if (!divides || !ir_dim_is_number(channels) || rotated < 0)
        return ir_malformed(args, "its channels are not divisible into heads");
    if (rotated == 0) rotated = channels.offset;
    bool fits = rotated % 2 == 0 && rotated <= channels.offset && ir_dim_is(cosine.dim[1], rotated / 2) &&
                ir_dim_is(sine.dim[1], rotated / 2);
    if (!fits) return ir_malformed(args, "the caches do not match %lld rotated channels", (long long)rotated);
    bool one = positions.rank == 1 && ir_dim_is(positions.dim[0], 1);
    bool part = positions.rank == 2 && ir_dim_equal(positions.dim[0], x.dim[0]) &&
                ir_dim_equal(positions.dim[1], x.dim[x.rank - 2]);
    if (!one && !part) return ir_malformed(args, "position ids must be one number, or one for each token");
    *out_type = x;
    return MDOT_OK;
}

/* A single position id belongs to the first token. */
static ir_wide *positions_of(ir_arena *arena, const ir_wide *x, const ir_wide *position_ids)
{
    int64_t dims[] = {x->dims[0], x->dims[x->rank - 2]};
    ir_wide *positions = ir_wide_create(arena, MDOT_DTYPE_I64, 2, dims);
    for (int64_t k = 0; positions != NULL && k < positions->count; k++)
        positions->i[k] = position_ids->rank == 2 ? position_ids->i[k] : position_ids->i[0] + k % dims[1];
    return positions;
}

mdot_status ir_eval_contrib_rotary(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    ir_operands from = ir_operands_of_tensors(node, in, err);
    ir_type x, cache = ir_operand_type(&from, COS);
    int64_t heads;
    BS_TRY(ir_result_contrib_rotary(&from, &x));
    BS_TRY(ir_contrib_rotary_heads(node, &x, &cache, &heads, err));
    const ir_wide *operands[] = {in[X], in[COS], in[SIN], positions_of(arena, in[X], in[POSITIONS])};
    ir_node like = *node;
    ir_attr *attrs = IR_NEW_ARRAY(arena, ir_attr, node->attr_count + 1);
    if (attrs == NULL || operands[3] == NULL) return ir_fail_memory(node, err);
    /* the first attribute of a name takes precedence */
    attrs[0] = (ir_attr){.name = "num_heads", .kind = IR_ATTR_INT, .i = heads};
    for (int k = 0; k < node->attr_count; k++) attrs[k + 1] = node->attrs[k];
    like.attrs = attrs;
    like.attr_count++;
    return ir_eval_rotary_embedding(arena, &like, operands, out, err);
}

enum { SKIP = 1, GAMMA = 2, BIAS = 3, SUM = 3 };

mdot_status ir_outputs_skip_simplified(const ir_operands *args, int output, ir_type *out_type)
{
    ir_type skip, vector;
    BS_TRY(ir_operand_need(args, 0, "input", -1, out_type));
    BS_TRY(ir_operand_need(args, SKIP, "skip", out_type->rank, &skip));
    bool is_same = out_type->rank >= 1;
    for (int d = 0; d < out_type->rank; d++) is_same = is_same && ir_dim_equal(skip.dim[d], out_type->dim[d]);
    for (int i = GAMMA; i <= BIAS && is_same; i++) {
        if (!ir_operand_given(args, i)) continue;
        BS_TRY(ir_operand_need(args, i, i == GAMMA ? "gamma" : "bias", 1, &vector));
        is_same = ir_dim_equal(vector.dim[0], out_type->dim[out_type->rank - 1]);
    }
    if (!is_same) return ir_malformed(args, "the shapes of skip, gamma and bias do not match the input");
    if (output > 0 && output < SUM && ir_node_wants(args->node, output) && args->node->outputs[output]->use_count > 0)
        return ir_unsupported(args, "a consumer of its statistics is unsupported");
    return MDOT_OK;
}

mdot_status ir_eval_skip_simplified(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                    mdot_error *err)
{
    const ir_wide *bias = ir_tensor_input(node, input, BIAS);
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_wide *sum;
    BS_TRY(ir_make_output(arena, &args, SUM, out, &sum));
    for (int64_t k = 0; k < sum->count; k++)
        sum->f[k] = input[0]->f[k] + input[SKIP]->f[k] + (bias != NULL ? bias->f[k % bias->count] : 0);
    ir_node like = *node;
    ir_attr *attrs = IR_NEW_ARRAY(arena, ir_attr, node->attr_count + 2);
    if (attrs == NULL) return ir_fail_memory(node, err);
    for (int k = 0; k < node->attr_count; k++) attrs[k] = node->attrs[k];
    /* used if the attribute is absent */
    attrs[node->attr_count] = (ir_attr){.name = "epsilon", .kind = IR_ATTR_FLOAT, .f = 1e-12};
    attrs[node->attr_count + 1] = (ir_attr){.name = "axis", .kind = IR_ATTR_INT, .i = -1};
    like.attrs = attrs;
    like.attr_count += 2;
    like.input_count = 2;
    like.output_count = 1;
    return ir_eval_rms_norm(arena, &like, (const ir_wide *const[]){sum, input[GAMMA]}, out, err);
}
