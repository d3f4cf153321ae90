/* contrib_attention.c — ONNX Runtime's Attention and MultiHeadAttention as ONNX's Attention (opset 24).
 *
 * Both come to operands of heads side by side in rows, an additive mask over [B, heads, N, T], and past keys and
 * values. Integer masks say with 0 which keys to leave out; they are filled with mask_filter_value (-10000), as ONNX
 * Runtime does.
 */
#include "ir/ops.h"
#include "ir/passes/contrib.h"

typedef struct operands {
    ir_value *q, *k, *v;                    /* [B, rows, heads · D] */
    ir_value *integer_mask, *additive_mask; /* NULL: none */
    ir_value *past_key, *past_value;        /* [B, heads, P, D]; NULL: none */
    int64_t heads;
} operands;

/* ---- Masks ------------------------------------------------------------------------------------------------------ */

/* Which of T keys may be seen, as a bool that broadcasts to [B, heads, N, T]; NULL: a shape that the operator does not
 * define, or that mdot does not know. Shapes: [B] counts of valid keys, [B, T], [B, N, T], [B, 1, N, T]. */
static ir_value *visible_keys(ir_builder *b, ir_value *mask, ir_dim keys)
{
    ir_dim one = ir_dim_number(1);
    const ir_dim *dim = mask->type.dim;
    mask = b_cast(b, mask, MDOT_DTYPE_I64);
    switch (mask ? mask->type.rank : 0) {
    case 1: {
        ir_value *positions = b_op3(b, IR_OP_Range, b_integer(b, 0), b_dim(b, keys), b_integer(b, 1));
        return b_op2(b, IR_OP_Less, positions, b_reshape(b, mask, (ir_dim[]){dim[0], one, one, one}, 4));
    }
    case 2:
        mask = b_reshape(b, mask, (ir_dim[]){dim[0], one, one, dim[1]}, 4);
        break;
    case 3:
        mask = b_reshape(b, mask, (ir_dim[]){dim[0], one, dim[1], dim[2]}, 4);
        break;
    case 4:
        break;
    default:
        return NULL;
    }
    return b_cast(b, mask, MDOT_DTYPE_BOOL);
}

/* False: the masks cannot be expressed. */
static bool combined_mask(ir_builder *b, const ir_node *node, const operands *o, ir_value **out_mask)
{
    ir_value *mask = o->additive_mask;
    if (o->integer_mask) {
        ir_dim keys = o->k->type.dim[1];
        if (o->past_key) {
            ir_dim past = o->past_key->type.dim[2];
            keys = (ir_dim){keys.scale + past.scale, keys.offset + past.offset};
        }
        ir_value *filter = b_scalar(b, ir_node_float(node, "mask_filter_value", -10000));
        ir_value *visible = visible_keys(b, o->integer_mask, keys);
        ir_value *added = b_where(b, visible, b_scalar(b, 0), filter);
        if (!added) return false;
        mask = mask ? b_add(b, mask, added) : added;
    }
    *out_mask = mask;
    return true;
}

/* ---- The node --------------------------------------------------------------------------------------------------- */

/* Attention with `output_count` outputs, 1 or 3; NULL: failed. */
static ir_node *attention_node(ir_builder *b, const ir_node *node, const operands *o, int output_count)
{
    ir_value *mask;
    if (!o->q || !o->k || !o->v || !combined_mask(b, node, o, &mask)) return NULL;
    ir_value *inputs[] = {o->q, o->k, o->v, mask, o->past_key, o->past_value};
    ir_node *made = b_node(b, IR_OP_Attention, inputs, o->past_key ? 6 : mask ? 4 : 3, output_count);
    b_set_int(b, made, "q_num_heads", o->heads);
    b_set_int(b, made, "kv_num_heads", o->heads);
    b_set_int(b, made, "is_causal", ir_node_int(node, "unidirectional", 0));
    double scale = ir_node_float(node, "scale", 0);
    if (scale != 0) b_set_float(b, made, "scale", scale);
    return b_infer(b, made) ? made : NULL;
}

/* ---- com.microsoft.Attention ------------------------------------------------------------------------------------- */

/* past [2, B, heads, P, D] → its key or value. */
static ir_value *half_of_past(ir_builder *b, ir_value *past, int64_t half)
{
    return b_reshape(b, b_slice(b, past, 0, half, half + 1), past->type.dim + 1, 4);
}

static ir_value *with_leading_one(ir_builder *b, ir_value *value)
{
    ir_dim dims[5] = {ir_dim_number(1)};
    for (int i = 0; i < 4; i++) dims[i + 1] = value->type.dim[i];
    return b_reshape(b, value, dims, 5);
}

/* Widths of Q, K and V; false when qkv_hidden_sizes is not three numbers that fill the projection. */
static bool hidden_sizes(const ir_node *node, int64_t columns, int64_t *out)
{
    const ir_attr *attr = ir_node_attr(node, "qkv_hidden_sizes");
    for (int i = 0; i < 3; i++) out[i] = attr && attr->count == 3 ? attr->ints[i] : columns / 3;
    return (!attr || attr->count == 0 || attr->count == 3) && out[0] + out[1] + out[2] == columns;
}

/* Inputs: x [B, N, K], weights [K, 3 · hidden], bias?, mask_index?, past?, attention_bias?. Outputs: rows, present?. */
void contrib_attention(ir_builder *b, ir_node *node)
{
    ir_value *weights = node->inputs[1], *bias = ir_node_input(node, 2), *past = ir_node_input(node, 4);
    int64_t widths[3];
    operands o = {.integer_mask = ir_node_input(node, 3),
                  .additive_mask = ir_node_input(node, 5),
                  .heads = ir_node_int(node, "num_heads", 0)};
    if (o.heads < 1 || ir_node_input(node, 6) || ir_node_int(node, "do_rotary", 0)) return;
    if (!hidden_sizes(node, weights->type.dim[1].offset, widths)) return;
    ir_value *projected = b_mat_mul(b, node->inputs[0], weights), *parts[3];
    if (bias) projected = b_add(b, projected, bias);
    if (!b_split(b, projected, 2, widths, 3, parts)) return;
    o.q = parts[0];
    o.k = parts[1];
    o.v = parts[2];
    if (past) {
        o.past_key = half_of_past(b, past, 0);
        o.past_value = half_of_past(b, past, 1);
    }
    ir_value *present = b_read_output(node, 1);
    ir_node *made = attention_node(b, node, &o, present ? 3 : 1);
    if (!made) return;
    if (present) {
        ir_value *halves[] = {with_leading_one(b, made->outputs[1]), with_leading_one(b, made->outputs[2])};
        b_replace(b, present, b_concat(b, 0, halves, 2));
    }
    b_replace(b, node->outputs[0], made->outputs[0]);
}

/* ---- com.microsoft.MultiHeadAttention ---------------------------------------------------------------------------- */

/* [B, rows, heads, count, D] → part `i` as [B, rows, heads · D]. */
static ir_value *packed_part(ir_builder *b, ir_value *packed, int64_t i)
{
    const ir_dim *dim = packed->type.dim;
    ir_dim rows[] = {dim[0], dim[1], ir_dim_number(dim[2].offset * dim[4].offset)};
    return b_reshape(b, b_slice(b, packed, 3, i, i + 1), rows, 3);
}

/* [B, heads, rows, D], as keys and values of another sequence may come, → [B, rows, heads · D]. */
static ir_value *as_rows(ir_builder *b, ir_value *value)
{
    if (!value || value->type.rank != 4) return value;
    const ir_dim *dim = value->type.dim;
    ir_dim rows[] = {dim[0], dim[2], ir_dim_number(dim[1].offset * dim[3].offset)};
    return b_reshape(b, b_transpose(b, value, (const int64_t[]){0, 2, 1, 3}), rows, 3);
}

/* Adds to `rows` its share of the bias for Q, K and V, which starts at *at. */
static ir_value *with_bias(ir_builder *b, ir_value *rows, ir_value *bias, int64_t *at)
{
    if (!bias || !rows) return rows;
    int64_t width = rows->type.dim[2].offset, from = *at;
    *at += width;
    return b_add(b, rows, b_slice(b, bias, 0, from, *at));
}

/* Inputs: query, key?, value?, bias?, key_padding_mask?, attention_bias?, past_key?, past_value?. Query may hold all
 * three packed, key both keys and values. Outputs: rows, present_key?, present_value?. */
void contrib_multi_head_attention(ir_builder *b, ir_node *node)
{
    ir_value *query = node->inputs[0], *key = ir_node_input(node, 1), *value = ir_node_input(node, 2);
    operands o = {.integer_mask = ir_node_input(node, 4),
                  .additive_mask = ir_node_input(node, 5),
                  .past_key = ir_node_input(node, 6),
                  .past_value = ir_node_input(node, 7),
                  .heads = ir_node_int(node, "num_heads", 0)};
    bool all_packed = query->type.rank == 5, pair_packed = key && key->type.rank == 5;
    if (o.heads < 1 || !o.past_key != !o.past_value || (!all_packed && !key)) return;
    if (!all_packed && !pair_packed && !value) return;
    o.q = all_packed ? packed_part(b, query, 0) : query;
    o.k = all_packed ? packed_part(b, query, 1) : pair_packed ? packed_part(b, key, 0) : as_rows(b, key);
    o.v = all_packed ? packed_part(b, query, 2) : pair_packed ? packed_part(b, key, 1) : as_rows(b, value);
    ir_value *bias = ir_node_input(node, 3);
    int64_t at = 0;
    o.q = with_bias(b, o.q, bias, &at);
    o.k = with_bias(b, o.k, bias, &at);
    o.v = with_bias(b, o.v, bias, &at);
    bool presents = b_read_output(node, 1) || b_read_output(node, 2);
    ir_node *made = attention_node(b, node, &o, presents ? 3 : 1);
    if (!made) return;
    if (presents) {
        b_replace(b, b_read_output(node, 1), made->outputs[1]);
        b_replace(b, b_read_output(node, 2), made->outputs[2]);
    }
    b_replace(b, node->outputs[0], made->outputs[0]);
}
