/* expand_attention.c — rewrites ONNX's Attention (opset 24) into the kernel's form (attention_patterns.h), or
 * decomposes it into MatMul, Softmax and pointwise operators as in the operator's function body.
 *
 * The kernel takes f32, additive masks, and causality for square scores. Boolean masks, masks shorter than
 * the keys, causal masks with an offset, windows and nonpad_kv_seqlen are combined into one additive mask. Past keys
 * and values are concatenated. Scores as an output and other types require the primitive operators.
 */
#include "ir/ops/attention.h"
#include "ir/passes/attention_patterns.h"
#include "ir/passes/pass_rules.h"

#include <math.h>

typedef struct attention {
    const ir_node *node;
    ir_value *q, *k, *v; /* 4-D, including the past */
    ir_value *bias;      /* additive mask over [B, heads, N, M]; NULL: absent */
    int64_t heads, kv_heads;
    double scale, softcap;
    ir_dim queries, keys;
    ir_dim offset; /* number of keys before the first query's key: the past */
    bool causal;
} attention;

/* The positions 0, 1, … as i64, along axis 2 or 3 of four. */
static ir_value *positions(ir_builder *b, ir_dim count, int axis)
{
    ir_value *range = ir_build_range(b, count);
    ir_dim dims[4] = {ir_dim_number(1), ir_dim_number(1), ir_dim_number(1), ir_dim_number(1)};
    dims[axis] = count;
    return ir_build_reshape(b, range, dims, 4);
}

/* 0 where the condition is true, -inf elsewhere. */
static ir_value *allowed(ir_builder *b, ir_value *condition)
{
    ir_value *nothing = ir_build_scalar(b, 0);
    return ir_build_where(b, condition, nothing, ir_build_scalar(b, -INFINITY));
}

/* The model's own mask as an additive mask, padded with -inf to all keys (opset 24). */
static ir_value *input_mask(ir_builder *b, const attention *a)
{
    ir_value *mask = ir_node_input(a->node, 3);
    if (mask == NULL) return NULL;
    mask = mask->type.dtype == MDOT_DTYPE_BOOL ? allowed(b, mask) : ir_build_cast(b, mask, b->dtype);
    if (mask == NULL || mask->type.rank < 1) return mask;
    int last_index = mask->type.rank - 1;
    ir_dim have = mask->type.dim[last_index];
    if (ir_dim_equal(have, a->keys)) return mask;
    ir_dim missing[MDOT_MAX_RANK];
    for (int i = 0; i < last_index; i++) missing[i] = mask->type.dim[i];
    if (!ir_dim_sub(a->keys, have, &missing[last_index])) {
        if (b->status == MDOT_OK)
            b->status =
                ir_fail(a->node, b->err, MDOT_UNSUPPORTED,
                        "the number of keys that the mask lacks is not a sum of a multiple of the length and one "
                        "rounded quotient of it");
        return NULL;
    }
    ir_value *filling = ir_build_expand(b, ir_build_scalar(b, -INFINITY), missing, mask->type.rank);
    return ir_build_concat(b, last_index, (ir_value *[]){mask, filling}, 2);
}

static ir_value *sum_of(ir_builder *b, ir_value *mask, ir_value *more)
{
    return mask != NULL ? ir_build_add(b, mask, more) : more;
}

/* nonpad_kv_seqlen [B], shaped along the batch of four dimensions. */
static ir_value *valid_keys(ir_builder *b, const attention *a)
{
    ir_value *count = ir_node_input(a->node, 6);
    if (count == NULL) return NULL;
    ir_dim dims[] = {count->type.dim[0], ir_dim_number(1), ir_dim_number(1), ir_dim_number(1)};
    return ir_build_reshape(b, ir_build_cast(b, count, MDOT_DTYPE_I64), dims, 4);
}

static bool has_window(const ir_node *node)
{
    return ir_node_int(node, "left_window_size", -1) >= 0 || ir_node_int(node, "right_window_size", -1) >= 0;
}

/* Restricts keys to those from `left` before a query's own position to `right` behind it. A negative size means
 * unbounded. */
static ir_value *with_window(ir_builder *b, const attention *a, ir_value *mask, ir_value *own_value)
{
    int64_t left = ir_node_int(a->node, "left_window_size", -1), right = ir_node_int(a->node, "right_window_size", -1);
    ir_value *keys = positions(b, a->keys, 3);
    if (left >= 0) {
        ir_value *first = ir_build_sub(b, own_value, ir_build_integer(b, left));
        mask = sum_of(b, mask, allowed(b, ir_build_op2(b, IR_OP_GreaterOrEqual, keys, first)));
    }
    if (right >= 0) {
        ir_value *last_value = ir_build_add(b, own_value, ir_build_integer(b, right));
        mask = sum_of(b, mask, allowed(b, ir_build_op2(b, IR_OP_LessOrEqual, keys, last_value)));
    }
    return mask;
}

/* Combines all masks into one. It includes the causal mask only if the kernel's flag cannot express it. */
static ir_value *combined_mask(ir_builder *b, attention *a, bool for_kernel)
{
    ir_value *mask = input_mask(b, a), *valid = valid_keys(b, a), *own_value = NULL;
    bool square = ir_dim_equal(a->queries, a->keys) && ir_dim_is(a->offset, 0) && valid == NULL;
    bool adds_causal = a->causal && !(for_kernel && square);
    if (adds_causal || has_window(a->node)) { /* a query's position among the keys */
        ir_value *offset =
            valid != NULL ? ir_build_sub(b, valid, ir_build_dim(b, a->queries)) : ir_build_dim(b, a->offset);
        own_value = ir_build_add(b, positions(b, a->queries, 2), offset);
    }
    if (adds_causal) {
        mask = sum_of(b, mask, allowed(b, ir_build_op2(b, IR_OP_LessOrEqual, positions(b, a->keys, 3), own_value)));
        a->causal = false;
    }
    if (has_window(a->node)) mask = with_window(b, a, mask, own_value);
    if (valid != NULL) mask = sum_of(b, mask, allowed(b, ir_build_op2(b, IR_OP_Less, positions(b, a->keys, 3), valid)));
    return mask;
}

/* The result for a kernel: on the node's own rows if possible, else on four dimensions. */
static ir_value *as_kernel(ir_builder *b, const attention *a)
{
    const ir_node *node = a->node;
    ir_attention_spec spec = {.q = a->q,
                              .k = a->k,
                              .v = a->v,
                              .heads = a->heads,
                              .kv_heads = a->kv_heads,
                              .scale = a->scale,
                              .softcap = a->softcap,
                              .replaces = {ir_node_float(node, ir_attention_replaces[0], 0)},
                              .causal = a->causal};
    if (a->bias != NULL) {
        spec.mask[spec.mask_count++] = ir_build_attention_mask(b, a->bias, a->keys);
        if (spec.mask[0] == NULL) return NULL;
    }
    bool rows = node->inputs[0]->type.rank == 3;
    if (!rows || ir_node_input(node, 4) != NULL) {
        ir_value *heads = ir_build_attention(b, &spec);
        return rows ? ir_build_join_heads(b, heads) : heads;
    }
    spec.q = node->inputs[0];
    spec.k = node->inputs[1];
    spec.v = node->inputs[2];
    return ir_build_attention(b, &spec);
}

/* Repeats every key or value head for each query head that reads it. */
static ir_value *repeated_heads(ir_builder *b, ir_value *value, int64_t heads, int64_t kv_heads)
{
    if (heads == kv_heads) return value;
    const ir_dim *dim = value->type.dim;
    ir_dim one[] = {dim[0], dim[1], ir_dim_number(1), dim[2], dim[3]};
    ir_dim part[] = {dim[0], dim[1], ir_dim_number(heads / kv_heads), dim[2], dim[3]};
    ir_dim total[] = {dim[0], ir_dim_number(heads), dim[2], dim[3]};
    return ir_build_reshape(b, ir_build_expand(b, ir_build_reshape(b, value, one, 5), part, 5), total, 4);
}

/* Softmax over the keys, in f32 at least. Rows that the bias masks completely become zero. */
static ir_value *probabilities(ir_builder *b, const attention *a, ir_value *scores)
{
    bool narrow = b->dtype == MDOT_DTYPE_F16 || b->dtype == MDOT_DTYPE_BF16;
    scores = ir_build_cast(b, scores, narrow ? MDOT_DTYPE_F32 : b->dtype);
    ir_value *weights = ir_build_with(b, IR_OP_Softmax, &scores, 1, IR_ATTRS(IR_INT("axis", -1)));
    weights = ir_build_cast(b, weights, b->dtype);
    if (a->bias == NULL) return weights;
    int64_t last_index = a->bias->type.rank - 1;
    ir_value *greatest = ir_build_reduce(b, IR_OP_ReduceMax, a->bias, &last_index, 1);
    ir_value *sees_none = ir_build_op2(b, IR_OP_Equal, greatest, ir_build_scalar(b, -INFINITY));
    return ir_build_where(b, sees_none, ir_build_scalar(b, 0), weights);
}

static ir_value *as_primitives(ir_builder *b, const attention *a)
{
    ir_value *k = repeated_heads(b, a->k, a->heads, a->kv_heads), *v = repeated_heads(b, a->v, a->heads, a->kv_heads);
    ir_value *stages[4]; /* the candidates for qk_matmul_output_mode */
    ir_value *scaled = ir_build_mul(b, a->q, ir_build_scalar(b, a->scale)), *columns = ir_build_swap_last(b, k);
    stages[0] = ir_build_mat_mul(b, scaled, columns);
    stages[1] = stages[0];
    if (a->softcap > 0) {
        ir_value *cap = ir_build_scalar(b, a->softcap);
        stages[1] = ir_build_mul(b, ir_build_tanh(b, ir_build_div(b, stages[0], cap)), cap);
    }
    stages[2] = a->bias != NULL ? ir_build_add(b, stages[1], a->bias) : stages[1];
    stages[3] = probabilities(b, a, stages[2]);
    int64_t mode = ir_node_int(a->node, "qk_matmul_output_mode", 0);
    if (mode >= 0 && mode < 4) ir_replace(b, ir_read_output(a->node, 3), stages[mode]);
    ir_value *heads = ir_build_mat_mul(b, stages[3], v);
    return a->node->inputs[0]->type.rank == 3 ? ir_build_join_heads(b, heads) : heads;
}

static bool is_in_kernel_form(const ir_node *node)
{
    const ir_value *mask = ir_node_input(node, 3);
    if (ir_node_input(node, ir_mask_input(1)) != NULL) return true; /* only recognise_attention adds a mask there */
    const ir_type *q = &node->inputs[0]->type, *k = &node->inputs[1]->type;
    if (q->dtype != MDOT_DTYPE_F32 || ir_node_attr(node, "scale") == NULL) return false;
    if (ir_node_attr(node, "q_num_heads") == NULL || ir_node_attr(node, "kv_num_heads") == NULL) return false;
    if (node->output_count > 1 || node->input_count > 4 || has_window(node)) return false;
    if (ir_node_int(node, "is_causal", 0) && !ir_dim_equal(q->dim[q->rank - 2], k->dim[k->rank - 2])) return false;
    return mask == NULL || (mask->type.dtype == MDOT_DTYPE_F32 && mask->type.rank == 4 &&
                            ir_dim_equal(mask->type.dim[3], k->dim[k->rank - 2]));
}

/* Reads the operands with four dimensions and the past in front. */
static void read_operands(ir_builder *b, attention *a)
{
    const ir_node *node = a->node;
    bool rows = node->inputs[0]->type.rank == 3;
    int64_t heads = ir_node_int(node, "q_num_heads", 1), kv_heads = ir_node_int(node, "kv_num_heads", 1);
    a->q = rows ? ir_build_split_heads(b, node->inputs[0], heads) : node->inputs[0];
    a->k = rows ? ir_build_split_heads(b, node->inputs[1], kv_heads) : node->inputs[1];
    a->v = rows ? ir_build_split_heads(b, node->inputs[2], kv_heads) : node->inputs[2];
    ir_value *past_key = ir_node_input(node, 4), *past_value = ir_node_input(node, 5);
    if (past_key != NULL) {
        a->offset = past_key->type.dim[2];
        a->k = ir_build_concat(b, 2, (ir_value *[]){past_key, a->k}, 2);
    }
    if (past_value != NULL) a->v = ir_build_concat(b, 2, (ir_value *[]){past_value, a->v}, 2);
}

void ir_expand_attention(ir_builder *b, ir_node *node)
{
    if (is_in_kernel_form(node)) return;
    attention a = {.node = node, .softcap = ir_node_float(node, "softcap", 0)};
    b->dtype = node->inputs[0]->type.dtype;
    read_operands(b, &a);
    if (a.q == NULL || a.k == NULL || a.v == NULL) return;
    a.heads = a.q->type.dim[1].offset;
    a.kv_heads = a.k->type.dim[1].offset;
    a.queries = a.q->type.dim[2];
    a.keys = a.k->type.dim[2];
    a.causal = ir_node_int(node, "is_causal", 0);
    a.scale = ir_node_float(node, "scale", 1 / sqrt((double)a.q->type.dim[3].offset));
    bool for_kernel = b->dtype == MDOT_DTYPE_F32 && ir_read_output(node, 3) == NULL;
    a.bias = combined_mask(b, &a, for_kernel);
    ir_replace(b, ir_read_output(node, 1), a.k);
    ir_replace(b, ir_read_output(node, 2), a.v);
    ir_replace(b, node->outputs[0], for_kernel ? as_kernel(b, &a) : as_primitives(b, &a));
}
