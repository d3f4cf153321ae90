/* attention_build.c — builds Attention nodes and the operators around them (attention_patterns.h). */
#include "ir/passes/attention_patterns.h"

#include "ir/ops/attention.h"

static const int64_t swap_heads[] = {0, 2, 1, 3};

ir_value *ir_build_join_heads(ir_builder *b, ir_value *value)
{
    if (value == NULL) return NULL;
    const ir_dim *dim = value->type.dim;
    ir_dim rows[] = {dim[0], dim[2], ir_dim_number(dim[1].offset * dim[3].offset)};
    return ir_build_reshape(b, ir_build_transpose(b, value, swap_heads), rows, 3);
}

ir_value *ir_build_split_heads(ir_builder *b, ir_value *value, int64_t heads)
{
    if (value == NULL) return NULL;
    const ir_dim *dim = value->type.dim;
    ir_dim split[] = {dim[0], dim[1], ir_dim_number(heads), ir_dim_number(dim[2].offset / heads)};
    return ir_build_transpose(b, ir_build_reshape(b, value, split, 4), swap_heads);
}

ir_value *ir_build_swap_last(ir_builder *b, ir_value *value)
{
    if (value == NULL || value->type.rank < 2) return value;
    int64_t perm[MDOT_MAX_RANK];
    int rank = value->type.rank;
    for (int i = 0; i < rank; i++) perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    return ir_build_transpose(b, value, perm);
}

ir_value *ir_build_attention_mask(ir_builder *b, ir_value *mask, ir_dim keys)
{
    ir_dim dims[4] = {ir_dim_number(1), ir_dim_number(1), ir_dim_number(1), ir_dim_number(1)};
    if (mask == NULL) return NULL;
    for (int i = 0; i < mask->type.rank; i++) dims[4 - mask->type.rank + i] = mask->type.dim[i];
    mask = ir_build_reshape(b, mask, dims, 4);
    dims[3] = keys;
    return ir_build_expand(b, mask, dims, 4);
}

ir_value *ir_build_attention(ir_builder *b, const ir_attention_spec *spec)
{
    ir_value *inputs[9] = {spec->q, spec->k, spec->v};
    ir_attr attrs[5 + IR_MAX_MASKS] = {IR_INT("q_num_heads", spec->heads), IR_INT("kv_num_heads", spec->kv_heads),
                                       IR_FLOAT("scale", spec->scale), IR_INT("is_causal", spec->causal)};
    int count = 4;
    if (spec->softcap > 0) attrs[count++] = IR_FLOAT("softcap", spec->softcap);
    for (int i = 0; i < spec->mask_count; i++) {
        inputs[ir_mask_input(i)] = spec->mask[i];
        if (spec->replaces[i] < 0) attrs[count++] = IR_FLOAT(ir_attention_replaces[i], spec->replaces[i]);
    }
    return ir_build_with(b, IR_OP_Attention, inputs, 9, attrs, count);
}
