/* contrib_attention.c — ONNX Runtime's Attention and MultiHeadAttention as ONNX's Attention (opset 24).
 *
 * Both come to operands of heads side by side in rows and one additive mask. Integer masks say with 0 which keys to
 * leave out; those are filled with mask_filter_value, as ONNX Runtime does. What is beyond that (past keys, packed
 * operands) the shape rules have refused.
 */
#include "ir/ops.h"
#include "ir/passes/contrib.h"

typedef struct operands {
    ir_value *q, *k, *v;                    /* [B, rows, heads · D] */
    ir_value *integer_mask, *additive_mask; /* NULL: none */
} operands;

/* ---- Masks ------------------------------------------------------------------------------------------------------ */

/* Which of the keys may be seen, as a bool that broadcasts to [B, heads, N, keys]. Masks are [B] counts of valid keys,
 * [B, keys] or [B, N, keys]. */
static ir_value *visible_keys(ir_builder *b, ir_value *mask, ir_dim keys)
{
    ir_dim one = ir_dim_number(1);
    const ir_dim *dim = mask->type.dim;
    if (mask->type.rank == 1) {
        ir_value *positions =
            ir_build_op3(b, IR_OP_Range, ir_build_integer(b, 0), ir_build_dim(b, keys), ir_build_integer(b, 1));
        ir_value *counts =
            ir_build_reshape(b, ir_build_cast(b, mask, MDOT_DTYPE_I64), (ir_dim[]){dim[0], one, one, one}, 4);
        return ir_build_op2(b, IR_OP_Less, positions, counts);
    }
    ir_dim queries = mask->type.rank == 3 ? dim[1] : one;
    return ir_build_cast(b, ir_build_reshape(b, mask, (ir_dim[]){dim[0], one, queries, keys}, 4), MDOT_DTYPE_BOOL);
}

static ir_value *combined_mask(ir_builder *b, const ir_node *node, const operands *o)
{
    if (o->integer_mask == NULL) return o->additive_mask;
    ir_value *filter = ir_build_scalar(b, ir_node_float(node, "mask_filter_value", -10000));
    ir_value *added =
        ir_build_where(b, visible_keys(b, o->integer_mask, o->k->type.dim[1]), ir_build_scalar(b, 0), filter);
    return o->additive_mask != NULL ? ir_build_add(b, o->additive_mask, added) : added;
}

/* ---- The node --------------------------------------------------------------------------------------------------- */

/* Attention with `output_count` outputs; NULL: building failed. */
static ir_node *attention_node(ir_builder *b, const ir_node *node, const operands *o, int output_count)
{
    if (o->q == NULL || o->k == NULL || o->v == NULL) return NULL;
    ir_value *inputs[] = {o->q, o->k, o->v, combined_mask(b, node, o)};
    ir_node *made = ir_build_node(b, IR_OP_Attention, inputs, inputs[3] != NULL ? 4 : 3, output_count);
    int64_t heads = ir_node_int(node, "num_heads", 1);
    ir_build_set_int(b, made, "q_num_heads", heads);
    ir_build_set_int(b, made, "kv_num_heads", heads);
    ir_build_set_int(b, made, "is_causal", ir_node_int(node, "unidirectional", 0));
    double scale = ir_node_float(node, "scale", 0); /* 0 stands for the root of the head's size */
    if (scale != 0) ir_build_set_float(b, made, "scale", scale);
    return ir_build_infer(b, made) != NULL ? made : NULL;
}

/* Inputs: x [B, N, K], weights [K, widths of Q, K and V], bias?, integer mask?, past?, additive mask?. */
void ir_contrib_attention(ir_builder *b, ir_node *node)
{
    ir_value *weights = node->inputs[1], *bias = ir_node_input(node, 2), *parts[3];
    const ir_attr *sizes = ir_node_ints(node, "qkv_hidden_sizes");
    int64_t widths[3];
    for (int i = 0; i < 3; i++) {
        widths[i] = sizes != NULL && sizes->count == 3 ? sizes->ints[i] : weights->type.dim[1].offset / 3;
    }
    ir_value *projected = ir_build_mat_mul(b, node->inputs[0], weights);
    if (bias != NULL) projected = ir_build_add(b, projected, bias);
    if (!ir_build_split(b, projected, 2, widths, 3, parts)) return;
    operands o = {parts[0], parts[1], parts[2], ir_node_input(node, 3), ir_node_input(node, 5)};
    ir_node *made = attention_node(b, node, &o, 1);
    if (made != NULL) ir_replace(b, node->outputs[0], made->outputs[0]);
}

/* Adds to `rows` its share of the bias for Q, K and V, which starts at *at. */
static ir_value *with_bias(ir_builder *b, ir_value *rows, ir_value *bias, int64_t *at)
{
    if (bias == NULL) return rows;
    int64_t from = *at;
    *at += rows->type.dim[2].offset;
    return ir_build_add(b, rows, ir_build_slice(b, bias, 0, from, *at));
}

/* Inputs: query, key, value, bias?, integer mask?, additive mask?. Outputs: rows, present_key?, present_value?. */
void ir_contrib_multi_head_attention(ir_builder *b, ir_node *node)
{
    ir_value *bias = ir_node_input(node, 3);
    int64_t at = 0;
    operands o = {.integer_mask = ir_node_input(node, 4), .additive_mask = ir_node_input(node, 5)};
    o.q = with_bias(b, node->inputs[0], bias, &at);
    o.k = with_bias(b, node->inputs[1], bias, &at);
    o.v = with_bias(b, node->inputs[2], bias, &at);
    bool presents = ir_read_output(node, 1) != NULL || ir_read_output(node, 2) != NULL;
    ir_node *made = attention_node(b, node, &o, presents ? 3 : 1);
    if (made == NULL) return;
    for (int i = 1; i < made->output_count; i++) ir_replace(b, ir_read_output(node, i), made->outputs[i]);
    ir_replace(b, node->outputs[0], made->outputs[0]);
}
