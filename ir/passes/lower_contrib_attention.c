/* lower_contrib_attention.c — rewrites ONNX Runtime's Attention and MultiHeadAttention as ONNX's Attention (opset 24).
 *
 * Both are reduced to one additive mask and operands whose heads are adjacent in rows. If an operand is packed or
 * given by head, all operands are brought to the form by head. In integer masks, 0 marks the keys to leave out; those
 * are filled with mask_filter_value, as in ONNX Runtime. Past keys and values become those of ONNX's Attention.
 */
#include "ir/ops/families.h"
#include "ir/passes/attention_patterns.h"
#include "ir/passes/pass_rules.h"

typedef struct operands {
    ir_value *q, *k, *v;                    /* [B, rows, heads · D], or all three [B, heads, rows, D] */
    ir_value *integer_mask, *additive_mask; /* NULL: absent */
    ir_value *past_key, *past_value;        /* [B, heads, rows, D]; NULL: absent, or without rows */
    ir_dim keys;                            /* including the past */
} operands;

/* The visible keys, as a bool that broadcasts to [B, heads, N, keys]. Masks are [B] counts of valid keys, [B, keys]
 * or [B, N, keys]. */
static ir_value *visible_keys(ir_builder *b, ir_value *mask, ir_dim keys)
{
    ir_dim one = ir_dim_number(1);
    const ir_dim *dim = mask->type.dim;
    if (mask->type.rank == 1) {
        ir_value *positions = ir_build_range(b, keys);
        ir_value *counts =
            ir_build_reshape(b, ir_build_cast(b, mask, MDOT_DTYPE_I64), (ir_dim[]){dim[0], one, one, one}, 4);
        return ir_build_op2(b, IR_OP_Less, positions, counts);
    }
    ir_dim queries = mask->type.rank == 3 ? dim[1] : one;
    return ir_build_cast(b, ir_build_reshape(b, mask, (ir_dim[]){dim[0], one, queries, keys}, 4), MDOT_DTYPE_BOOL);
}

/* A filter of this value or less absorbs every score, so a row's scores without a key are equal. */
#define ABSORBING_FILTER (-1e12)

/* If a mask leaves out every key of a row, the row's softmax is that of the scores alone. There the filter is 0,
 * because scores of about 1 are rounded to a thousandth beside -10000. Causal rows that see only masked keys keep this
 * rounding. */
static ir_value *combined_mask(ir_builder *b, const ir_node *node, const operands *o)
{
    if (o->integer_mask == NULL) return o->additive_mask;
    double number = ir_node_float(node, "mask_filter_value", -10000);
    ir_value *filter = ir_build_scalar(b, number), *none = ir_build_scalar(b, 0), *of_masked = filter;
    ir_value *visible = visible_keys(b, o->integer_mask, o->keys);
    if (visible == NULL) return NULL;
    if (number > ABSORBING_FILTER) {
        ir_value *any = ir_build_reduce(b, IR_OP_ReduceMax, visible, &(int64_t){visible->type.rank - 1}, 1);
        of_masked = ir_build_where(b, any, filter, none);
    }
    ir_value *added = ir_build_where(b, visible, none, of_masked);
    return o->additive_mask != NULL ? ir_build_add(b, o->additive_mask, added) : added;
}

/* Adds the past, and counts the keys. */
static void set_past(operands *o, ir_value *key, ir_value *value)
{
    if (o->k == NULL) return;
    o->keys = o->k->type.dim[o->k->type.rank - 2];
    if (key == NULL || value == NULL || ir_dim_is(key->type.dim[2], 0)) return;
    o->past_key = key;
    o->past_value = value;
    (void)ir_dim_add(o->keys, key->type.dim[2], &o->keys); /* the shape rule has computed it */
}

/* Builds Attention with `output_count` outputs. NULL: building failed. */
static ir_node *attention_node(ir_builder *b, const ir_node *node, const operands *o, int output_count)
{
    if (o->q == NULL || o->k == NULL || o->v == NULL) return NULL;
    ir_value *inputs[] = {o->q, o->k, o->v, combined_mask(b, node, o), o->past_key, o->past_value};
    int count = o->past_key != NULL ? 6 : inputs[3] != NULL ? 4 : 3;
    ir_node *made = ir_build_node(b, IR_OP_Attention, inputs, count, output_count);
    int64_t heads = ir_node_int(node, "num_heads", 1);
    ir_build_set(b, made, IR_INT("q_num_heads", heads));
    ir_build_set(b, made, IR_INT("kv_num_heads", heads));
    ir_build_set(b, made, IR_INT("is_causal", ir_node_int(node, "unidirectional", 0)));
    double scale = ir_node_float(node, "scale", 0); /* 0 selects the default, one over the square root of the head
                                                     * size */
    if (scale != 0) ir_build_set(b, made, IR_FLOAT("scale", scale));
    return ir_build_infer(b, made) != NULL ? made : NULL;
}

/* Keys (0) or values (1) of both: [2, B, heads, rows, D] → [B, heads, rows, D]. */
static ir_value *half_of(ir_builder *b, ir_value *pair, int64_t choice)
{
    if (pair == NULL || ir_dim_is(pair->type.dim[3], 0)) return NULL;
    ir_value *half = ir_build_slice(b, pair, 0, choice, choice + 1);
    return half != NULL ? ir_build_reshape(b, half, half->type.dim + 1, 4) : NULL;
}

/* [B, heads, rows, D] → [1, B, heads, rows, D] */
static ir_value *stacked(ir_builder *b, ir_value *x)
{
    ir_dim dims[5] = {ir_dim_number(1)};
    if (x == NULL) return NULL;
    for (int d = 0; d < 4; d++) dims[1 + d] = x->type.dim[d];
    return ir_build_reshape(b, x, dims, 5);
}

/* Inputs: x [B, N, K], weights [K, widths of Q, K and V], bias?, integer mask?, past?, additive mask?. Outputs: rows,
 * present? [2, B, heads, keys, D]. */
void ir_contrib_attention(ir_builder *b, ir_node *node)
{
    ir_value *weights = node->inputs[1], *bias = ir_node_input(node, 2), *parts[3];
    const ir_attr *sizes = ir_node_ints(node, "qkv_hidden_sizes");
    int64_t widths[3];
    for (int i = 0; i < 3; i++)
        widths[i] = sizes != NULL && sizes->count == 3 ? sizes->ints[i] : weights->type.dim[1].offset / 3;
    ir_value *projected = ir_build_mat_mul(b, node->inputs[0], weights);
    if (bias != NULL) projected = ir_build_add(b, projected, bias);
    if (!ir_build_split(b, projected, 2, widths, 3, parts)) return;
    operands o = {.q = parts[0], .k = parts[1], .v = parts[2]};
    o.integer_mask = ir_node_input(node, 3);
    o.additive_mask = ir_node_input(node, 5);
    ir_value *past = ir_node_input(node, 4), *present = ir_read_output(node, 1);
    ir_value *past_key = half_of(b, past, 0), *past_value = half_of(b, past, 1);
    set_past(&o, past_key, past_value);
    ir_node *made = attention_node(b, node, &o, present != NULL || o.past_key != NULL ? 3 : 1);
    if (made == NULL) return;
    if (present != NULL) {
        ir_value *key = stacked(b, made->outputs[1]), *pair[] = {key, stacked(b, made->outputs[2])};
        ir_replace(b, present, ir_build_concat(b, 0, pair, 2));
    }
    ir_replace(b, node->outputs[0], made->outputs[0]);
}

/* Adds the slice of the bias for Q, K or V, which starts at *at, to rows or to heads. */
static ir_value *with_bias(ir_builder *b, ir_value *x, ir_value *bias, int64_t *offset)
{
    if (bias == NULL || x == NULL) return x;
    const ir_dim *dim = x->type.dim;
    bool by_head = x->type.rank == 4;
    int64_t source = *offset;
    *offset += by_head ? dim[1].offset * dim[3].offset : dim[2].offset;
    ir_value *share = ir_build_slice(b, bias, 0, source, *offset);
    if (by_head) share = ir_build_reshape(b, share, (ir_dim[]){dim[1], ir_dim_number(1), dim[3]}, 3);
    return ir_build_add(b, x, share);
}

/* One of the parts that are adjacent in each head: [B, rows, heads, parts, D] → [B, heads, rows, D]. */
static ir_value *part_of(ir_builder *b, ir_value *packed, int64_t part)
{
    static const int64_t by_head[] = {0, 2, 1, 3};
    const ir_dim *dim = packed->type.dim;
    ir_value *own_value = ir_build_slice(b, packed, 3, part, part + 1);
    own_value =
        own_value != NULL ? ir_build_reshape(b, own_value, (ir_dim[]){dim[0], dim[1], dim[2], dim[4]}, 4) : NULL;
    return own_value != NULL ? ir_build_transpose(b, own_value, by_head) : NULL;
}

/* Reads query, key and value, packed or separate. If one of them is by head, all are brought to that form. */
static void read_multi_head(ir_builder *b, const ir_node *node, operands *o)
{
    ir_value *q = node->inputs[0], *k = ir_node_input(node, 1), *v = ir_node_input(node, 2);
    o->q = k == NULL ? part_of(b, q, 0) : q;
    o->k = k == NULL ? part_of(b, q, 1) : v == NULL ? part_of(b, k, 0) : k;
    o->v = k == NULL ? part_of(b, q, 2) : v == NULL ? part_of(b, k, 1) : v;
    if (o->q == NULL || o->k == NULL || o->v == NULL) return;
    bool by_head = o->q->type.rank == 4 || o->k->type.rank == 4 || o->v->type.rank == 4;
    ir_value **part[] = {&o->q, &o->k, &o->v};
    for (int i = 0; i < 3 && by_head; i++)
        if ((*part[i])->type.rank == 3) *part[i] = ir_build_split_heads(b, *part[i], ir_node_int(node, "num_heads", 1));
}

/* Inputs: query, key?, value?, bias?, integer mask?, additive mask?, past key?, past value?. Outputs: rows,
 * present_key?, present_value?. */
void ir_contrib_multi_head_attention(ir_builder *b, ir_node *node)
{
    ir_value *bias = ir_node_input(node, 3);
    int64_t offset = 0;
    operands o = {.integer_mask = ir_node_input(node, 4), .additive_mask = ir_node_input(node, 5)};
    read_multi_head(b, node, &o);
    o.q = with_bias(b, o.q, bias, &offset);
    o.k = with_bias(b, o.k, bias, &offset);
    o.v = with_bias(b, o.v, bias, &offset);
    set_past(&o, ir_node_input(node, 6), ir_node_input(node, 7));
    bool presents = o.past_key != NULL || ir_read_output(node, 1) != NULL || ir_read_output(node, 2) != NULL;
    ir_node *made = attention_node(b, node, &o, presents ? 3 : 1);
    if (made == NULL) return;
    for (int i = 1; i < made->output_count; i++) {
        ir_value *old = ir_read_output(node, i);
        if (old != NULL) ir_replace(b, old, made->outputs[i]);
    }
    ir_value *rows = made->outputs[0];
    ir_replace(b, node->outputs[0], rows->type.rank == 4 ? ir_build_join_heads(b, rows) : rows);
}
