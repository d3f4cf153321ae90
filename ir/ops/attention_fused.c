/* attention_fused.c — attention in the form of ONNX Runtime's optimiser: MultiHeadAttention and Attention
 * (com.microsoft; docs/ContribOperators.md of onnxruntime), with key padding masks of one to three dimensions, and past
 * keys and values before the new ones. */
#include "ir/ops/attention.h"

#include "ir/ops/operands.h"

#include <math.h>

typedef struct geometry {
    mdot_dtype dtype;
    int64_t heads;
    ir_dim batch, queries, past, keys; /* keys: including the past */
    ir_dim dim, value_dim;             /* per head */
    ir_dim hidden, value_hidden;       /* over all heads */
} geometry;

static mdot_status read_heads(const ir_operands *args, geometry *g)
{
    g->heads = ir_node_int(args->node, "num_heads", 0);
    if (g->heads > 0 && ir_dim_div_exact(g->hidden, ir_dim_number(g->heads), &g->dim) &&
        ir_dim_div_exact(g->value_hidden, ir_dim_number(g->heads), &g->value_dim))
        return MDOT_OK;
    return ir_malformed(args, "its channels are not divisible into %lld heads", (long long)g->heads);
}

/* An integer mask: valid keys per sequence (batch), or nonzero elements of (batch, keys) or (batch, queries, keys). */
static mdot_status check_key_mask(const ir_operands *args, int i, const geometry *g)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    ir_type mask = ir_operand_type(args, i);
    BS_TRY(ir_operand_need_integers(args, i, "mask"));
    bool fits = mask.rank >= 1 && mask.rank <= 3 && ir_dim_equal(mask.dim[0], g->batch) &&
                (mask.rank < 2 || ir_dim_equal(mask.dim[mask.rank - 1], g->keys)) &&
                (mask.rank < 3 || ir_dim_equal(mask.dim[1], g->queries));
    if (fits) return MDOT_OK;
    char text[IR_SHAPE_TEXT_BYTES];
    return ir_unsupported(
        args, "a mask of shape %s must have one of the shapes (batch), (batch, keys), (batch, queries, keys)",
        ir_shape_text(args, mask.rank, mask.dim, text));
}

/* The bias added to the scores: (batch or 1, heads or 1, queries, keys). */
static mdot_status check_score_bias(const ir_operands *args, int i, const geometry *g)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    ir_type bias;
    BS_TRY(ir_operand_need(args, i, "attention bias", 4, &bias));
    BS_TRY(ir_operand_need_floats(args, i, "attention bias"));
    ir_dim full[4] = {g->batch, ir_dim_number(g->heads), g->queries, g->keys};
    bool fits = true;
    for (int k = 0; k < 4; k++)
        fits = fits && (ir_dim_equal(bias.dim[k], full[k]) || (k < 2 && ir_dim_is(bias.dim[k], 1)));
    if (fits) return MDOT_OK;
    char text[IR_SHAPE_TEXT_BYTES], full_text[IR_SHAPE_TEXT_BYTES];
    return ir_malformed(args, "an attention bias of shape %s does not broadcast to %s",
                        ir_shape_text(args, 4, bias.dim, text), ir_shape_text(args, 4, full, full_text));
}

/* Reads a past, which lies before g->keys new keys. Operands `first` to `last_index` are past keys and values, each
 * (batch, heads, rows, channels); a single operand holds both, (2, batch, heads, rows, channels). */
static mdot_status read_past(const ir_operands *args, int first, int last_index, geometry *g)
{
    bool single = first == last_index;
    int rank = single ? 5 : 4;
    for (int i = first; i <= last_index; i++) {
        ir_type past;
        if (!ir_operand_given(args, i) && !ir_operand_given(args, first)) continue;
        BS_TRY(ir_operand_need(args, i, "past", rank, &past));
        BS_TRY(ir_operand_need_same(args, i, 0));
        const ir_dim *dim = past.dim + rank - 4,
                     wanted[] = {g->batch, ir_dim_number(g->heads), dim[2], i == first ? g->dim : g->value_dim};
        bool fits = (!single || (ir_dim_is(past.dim[0], 2) && ir_dim_equal(g->dim, g->value_dim))) &&
                    (i == first || ir_dim_equal(dim[2], g->past));
        for (int d = 0; d < 4; d++) fits = fits && ir_dim_equal(dim[d], wanted[d]);
        if (!fits) {
            char text[IR_SHAPE_TEXT_BYTES];
            return ir_refuse(
                args, MDOT_MALFORMED,
                "a past of shape %s does not match the batch, heads and channels of the new keys and values",
                ir_shape_text(args, rank, past.dim, text));
        }
        g->past = dim[2];
    }
    if (ir_dim_add(g->past, g->keys, &g->keys)) return MDOT_OK;
    return ir_unsupported(args,
                          "the number of keys is not a sum of a multiple of the length and one rounded quotient of it");
}

static void set_cost(const ir_node *node, int64_t length, const geometry *g, ir_cost *out_cost)
{
    out_cost->flops = ir_attention_flops((double)ir_dim_at(g->batch, length), (double)g->heads,
                                         (double)ir_dim_at(g->queries, length), (double)ir_dim_at(g->keys, length),
                                         (double)ir_dim_at(g->dim, length), (double)ir_dim_at(g->value_dim, length));
}

/* An attention with the node's sizes, attributes and masks. The caller sets Q, K, V and the result. */
static ir_attention begin_attention(const ir_node *node, const geometry *g, const ir_wide *mask, const ir_wide *bias)
{
    ir_attention a = {.batch = g->batch.offset, .heads = g->heads, .kv_heads = g->heads};
    a.queries = g->queries.offset;
    a.keys = g->keys.offset;
    a.dim = g->dim.offset;
    a.value_dim = g->value_dim.offset;
    a.scale = ir_node_float(node, "scale", 0);
    if (a.scale == 0) a.scale = 1 / sqrt((double)a.dim); /* 0 selects the default */
    a.masked = ir_node_float(node, "mask_filter_value", -10000);
    a.causal = ir_node_int(node, "unidirectional", 0) != 0;
    a.left_window = a.right_window = -1;
    a.offset = g->past.offset;
    if (mask != NULL && mask->rank == 1) a.key_counts = mask->i;
    if (mask != NULL && mask->rank == 2) a.keep = (ir_attention_mask){mask, {a.keys, 0, 0, 1}, a.keys};
    if (mask != NULL && mask->rank == 3) a.keep = (ir_attention_mask){mask, {a.queries * a.keys, 0, a.keys, 1}, a.keys};
    if (bias != NULL) a.bias = ir_attention_mask_of(bias);
    return a;
}

/* Past keys or values (NULL: none) and the new ones behind them: (batch, heads, keys, channels). */
static mdot_status join_past(ir_arena *arena, const ir_node *node, const geometry *g, const double *past,
                             ir_heads fresh, int64_t channels, ir_wide **out, mdot_error *err)
{
    int64_t dims[] = {g->batch.offset, g->heads, g->keys.offset, channels}, before = g->past.offset;
    mdot_status status = ir_make_wide(arena, node, g->dtype, 4, dims, out, err);
    for (int64_t k = 0; status == MDOT_OK && k < (*out)->count; k++) {
        int64_t c = k % channels, row = k / channels % dims[2], h = k / channels / dims[2] % g->heads;
        int64_t b = k / channels / dims[2] / g->heads;
        (*out)->f[k] = row < before ? past[((b * g->heads + h) * before + row) * channels + c]
                                    : fresh.data[b * fresh.batch + h * fresh.head + (row - before) * fresh.row + c];
    }
    return status;
}

/* ---- MultiHeadAttention: query, key, value, their biases, mask, score bias → output, present key, present value - */

enum { MHA_QUERY, MHA_KEY, MHA_VALUE, MHA_BIAS, MHA_MASK, MHA_SCORE_BIAS, MHA_PAST_KEY, MHA_PAST_VALUE };

/* Where query, key or value is: a separate tensor, or one of `parts` adjacent per head. */
typedef struct operand_slice {
    int input, part, parts;
} operand_slice;

static operand_slice slice_of(const ir_operands *args, int operand)
{
    if (!ir_operand_given(args, MHA_KEY) && !ir_operand_given(args, MHA_VALUE))
        return (operand_slice){MHA_QUERY, operand, 3};
    if (!ir_operand_given(args, MHA_VALUE) && operand != MHA_QUERY)
        return (operand_slice){MHA_KEY, operand - MHA_KEY, 2};
    return (operand_slice){operand, 0, 1};
}

/* The type of query, key or value as rows (batch, rows, heads * channels). The operand may have this form, or be
 * packed, (batch, rows, heads, parts, channels). Keys or values may also be by head, (batch, heads, rows, channels). */
static mdot_status read_rows(const ir_operands *args, int operand, ir_type *out)
{
    static const char *const names[] = {"query", "key", "value"};
    operand_slice position = slice_of(args, operand);
    const char *name = names[position.input];
    if (!ir_operand_given(args, position.input)) return ir_malformed(args, "a value requires a key");
    ir_type type = ir_operand_type(args, position.input);
    int64_t heads = ir_node_int(args->node, "num_heads", 0);
    BS_TRY(ir_operand_need_floats(args, position.input, name));
    BS_TRY(ir_operand_need_same(args, position.input, MHA_QUERY));
    *out = (ir_type){type.dtype, 3, {type.dim[0], type.dim[1], type.dim[2]}};
    if (position.parts == 1 && type.rank == 3) return MDOT_OK;
    bool by_head = position.parts == 1 && type.rank == 4 && operand != MHA_QUERY;
    bool packed = position.parts > 1 && type.rank == 5 && ir_dim_is(type.dim[3], position.parts);
    bool fits = (by_head || packed) && ir_dim_is(type.dim[by_head ? 1 : 2], heads) &&
                ir_dim_mul(type.dim[type.rank - 1], ir_dim_number(heads), &out->dim[2]);
    if (by_head) out->dim[1] = type.dim[2];
    if (!fits)
        return ir_unsupported(
            args, "the %s has %d dimensions; supported are rows, packed Q, K and V, and keys or values by head", name,
            type.rank);
    if (by_head && ir_operand_given(args, MHA_BIAS))
        return ir_unsupported(args, "a bias is unsupported if keys and values are by head");
    return MDOT_OK;
}

static mdot_status read_multi_head(const ir_operands *args, geometry *out)
{
    ir_type input[3], bias;
    for (int i = MHA_QUERY; i <= MHA_VALUE; i++) BS_TRY(read_rows(args, i, &input[i]));
    const ir_dim *q = input[MHA_QUERY].dim, *k = input[MHA_KEY].dim, *v = input[MHA_VALUE].dim;
    if (!ir_dim_equal(q[0], k[0]) || !ir_dim_equal(q[0], v[0]) || !ir_dim_equal(k[1], v[1]) ||
        !ir_dim_equal(q[2], k[2]))
        return ir_malformed(args, "the shapes of query, key and value do not match");
    geometry g = {.dtype = input[MHA_QUERY].dtype, .batch = q[0], .queries = q[1], .keys = k[1]};
    g.hidden = q[2];
    g.value_hidden = v[2];
    BS_TRY(read_heads(args, &g));
    if (ir_operand_given(args, MHA_BIAS)) {
        ir_dim width;
        BS_TRY(ir_operand_need(args, MHA_BIAS, "bias", 1, &bias));
        BS_TRY(ir_operand_need_same(args, MHA_BIAS, MHA_QUERY));
        if (!ir_dim_add(g.hidden, g.hidden, &width) || !ir_dim_add(width, g.value_hidden, &width) ||
            !ir_dim_equal(bias.dim[0], width))
            return ir_malformed(args, "the length of the bias differs from the width of query, key and value");
    }
    BS_TRY(read_past(args, MHA_PAST_KEY, MHA_PAST_VALUE, &g));
    BS_TRY(check_key_mask(args, MHA_MASK, &g));
    BS_TRY(check_score_bias(args, MHA_SCORE_BIAS, &g));
    *out = g;
    return MDOT_OK;
}

mdot_status ir_outputs_multi_head_attention(const ir_operands *args, int output, ir_type *out_type)
{
    geometry g;
    BS_TRY(read_multi_head(args, &g));
    ir_dim heads = ir_dim_number(g.heads);
    *out_type = (ir_type){g.dtype, 4, {g.batch, heads, g.keys, output == 1 ? g.dim : g.value_dim}};
    if (output == 0) *out_type = (ir_type){g.dtype, 3, {g.batch, g.queries, g.value_hidden}};
    return MDOT_OK;
}

void ir_cost_multi_head_attention(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_graph range = {.max_length = length};
    ir_operands args = ir_operands_of_graph(&range, node, NULL);
    geometry g = {.heads = 0}; /* zero FLOPs if the node is malformed */
    read_multi_head(&args, &g);
    set_cost(node, length, &g, out_cost);
}

/* Query, key or value of `rows` by head, plus the bias (NULL: absent) from `first` on. */
static mdot_status project(ir_arena *arena, const ir_operands *args, ir_inputs in, int operand, const int64_t dims[4],
                           const ir_wide *bias, int64_t first, ir_wide **out)
{
    operand_slice position = slice_of(args, operand);
    const ir_wide *input = in[position.input];
    int64_t heads = dims[1], rows = dims[2], channels = dims[3];
    BS_TRY(ir_make_wide(arena, args->node, input->dtype, 4, dims, out, args->err));
    for (int64_t k = 0; k < (*out)->count; k++) {
        int64_t c = k % channels, row = k / channels % rows, h = k / channels / rows % heads;
        int64_t b = k / channels / rows / heads, source = k; /* unchanged if it is by head already */
        if (input->rank != 4) source = (((b * rows + row) * heads + h) * position.parts + position.part) * channels + c;
        (*out)->f[k] = input->f[source] + (bias != NULL ? bias->f[first + h * channels + c] : 0);
    }
    return MDOT_OK;
}

mdot_status ir_eval_multi_head_attention(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                         mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    geometry g;
    ir_wide *q, *k, *v;
    const ir_wide *past_key = ir_tensor_input(node, input, MHA_PAST_KEY);
    const ir_wide *past_value = ir_tensor_input(node, input, MHA_PAST_VALUE);
    const ir_wide *bias = ir_tensor_input(node, input, MHA_BIAS);
    BS_TRY(read_multi_head(&args, &g));
    int64_t hidden = g.hidden.offset, fresh = g.keys.offset - g.past.offset;
    int64_t of_query[] = {g.batch.offset, g.heads, g.queries.offset, g.dim.offset};
    int64_t of_key[] = {g.batch.offset, g.heads, fresh, g.dim.offset};
    int64_t of_value[] = {g.batch.offset, g.heads, fresh, g.value_dim.offset};
    BS_TRY(project(arena, &args, input, MHA_QUERY, of_query, bias, 0, &q));
    BS_TRY(project(arena, &args, input, MHA_KEY, of_key, bias, hidden, &k));
    BS_TRY(project(arena, &args, input, MHA_VALUE, of_value, bias, 2 * hidden, &v));
    BS_TRY(join_past(arena, node, &g, past_key != NULL ? past_key->f : NULL,
                     ir_heads_of_4d(k->f, g.heads, fresh, g.dim.offset), g.dim.offset, &k, err));
    BS_TRY(join_past(arena, node, &g, past_value != NULL ? past_value->f : NULL,
                     ir_heads_of_4d(v->f, g.heads, fresh, g.value_dim.offset), g.value_dim.offset, &v, err));
    ir_attention a =
        begin_attention(node, &g, ir_tensor_input(node, input, MHA_MASK), ir_tensor_input(node, input, MHA_SCORE_BIAS));
    a.q = ir_heads_of_4d(q->f, g.heads, a.queries, a.dim);
    a.k = ir_heads_of_4d(k->f, g.heads, a.keys, a.dim);
    a.v = ir_heads_of_4d(v->f, g.heads, a.keys, a.value_dim);
    a.out = ir_heads_of_3d(out[0]->f, g.heads, a.queries, a.value_dim);
    if (ir_node_wants(node, 1)) out[1] = k;
    if (ir_node_wants(node, 2)) out[2] = v;
    return ir_attend(&a, arena, node, err);
}

/* ---- Attention: input, weights of Q, K and V concatenated, bias, mask, past, score bias -------------------------- */

enum { MSA_INPUT, MSA_WEIGHTS, MSA_BIAS, MSA_MASK, MSA_PAST, MSA_SCORE_BIAS, MSA_PAST_LENGTH };

/* The widths of Q and K, and of V: from qkv_hidden_sizes, or a third of the weight columns each. */
static mdot_status read_widths(const ir_operands *args, ir_dim columns, geometry *g)
{
    const ir_attr *sizes = ir_node_ints(args->node, "qkv_hidden_sizes");
    if (sizes != NULL && sizes->count > 0) {
        bool fits = sizes->count == 3 && sizes->ints[0] == sizes->ints[1];
        if (fits) {
            g->hidden = ir_dim_number(sizes->ints[0]);
            g->value_hidden = ir_dim_number(sizes->ints[2]);
        }
        ir_dim sum;
        fits = fits && ir_dim_add(g->hidden, g->hidden, &sum) && ir_dim_add(sum, g->value_hidden, &sum) &&
               ir_dim_equal(sum, columns);
        if (!fits) return ir_malformed(args, "qkv_hidden_sizes do not match the weights");
        return MDOT_OK;
    }
    if (!ir_dim_div_exact(columns, ir_dim_number(3), &g->hidden))
        return ir_malformed(args, "the number of columns of the weights differs from that of Q, K and V");
    g->value_hidden = g->hidden;
    return MDOT_OK;
}

static mdot_status read_ms_attention(const ir_operands *args, geometry *out)
{
    ir_type input, weights, bias;
    if (ir_operand_given(args, MSA_PAST_LENGTH))
        return ir_unsupported(args, "past_present_share_buffer is unsupported");
    BS_TRY(ir_operand_need(args, MSA_INPUT, "input", 3, &input));
    BS_TRY(ir_operand_need_floats(args, MSA_INPUT, "input"));
    BS_TRY(ir_operand_need(args, MSA_WEIGHTS, "weights", 2, &weights));
    BS_TRY(ir_operand_need_same(args, MSA_WEIGHTS, MSA_INPUT));
    if (ir_node_int(args->node, "do_rotary", 0)) return ir_unsupported(args, "rotary embedding is unsupported");
    if (!ir_dim_equal(input.dim[2], weights.dim[0]))
        return ir_malformed(args, "the number of rows of the weights differs from the number of channels of the input");
    geometry g = {.dtype = input.dtype, .batch = input.dim[0], .queries = input.dim[1], .keys = input.dim[1]};
    BS_TRY(read_widths(args, weights.dim[1], &g));
    BS_TRY(read_heads(args, &g));
    if (ir_operand_given(args, MSA_BIAS)) {
        BS_TRY(ir_operand_need(args, MSA_BIAS, "bias", 1, &bias));
        BS_TRY(ir_operand_need_same(args, MSA_BIAS, MSA_INPUT));
        if (!ir_dim_equal(bias.dim[0], weights.dim[1]))
            return ir_malformed(args, "the length of the bias differs from the number of columns of the weights");
    }
    if (ir_node_wants(args->node, 1) && !ir_dim_equal(g.dim, g.value_dim))
        return ir_malformed(args, "present keys and values in one output must have equally many channels");
    BS_TRY(read_past(args, MSA_PAST, MSA_PAST, &g));
    BS_TRY(check_key_mask(args, MSA_MASK, &g));
    BS_TRY(check_score_bias(args, MSA_SCORE_BIAS, &g));
    *out = g;
    return MDOT_OK;
}

mdot_status ir_outputs_ms_attention(const ir_operands *args, int output, ir_type *out_type)
{
    geometry g;
    BS_TRY(read_ms_attention(args, &g));
    *out_type = (ir_type){g.dtype, 3, {g.batch, g.queries, g.value_hidden}};
    if (output == 1)
        *out_type = (ir_type){g.dtype, 5, {ir_dim_number(2), g.batch, ir_dim_number(g.heads), g.keys, g.dim}};
    return MDOT_OK;
}

void ir_cost_ms_attention(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_graph range = {.max_length = length};
    ir_operands args = ir_operands_of_graph(&range, node, NULL);
    geometry g = {.heads = 0};
    if (read_ms_attention(&args, &g) != MDOT_OK) g = (geometry){.heads = 0};
    set_cost(node, length, &g, out_cost);
    double rows = ir_value_elements(node->inputs[MSA_INPUT], length);
    double columns = (double)ir_dim_at(node->inputs[MSA_WEIGHTS]->type.dim[1], length);
    out_cost->flops += 2 * rows * columns; /* the projections: elements of the input times columns */
}

/* Computes Q, K and V of every token, concatenated: input · weights + bias. */
static mdot_status project_packed(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    const ir_wide *x = input[MSA_INPUT], *weights = input[MSA_WEIGHTS], *bias = ir_tensor_input(node, input, MSA_BIAS);
    int64_t width = weights->dims[0], columns = weights->dims[1];
    mdot_status status = ir_make_wide(arena, node, x->dtype, 3, (int64_t[]){x->dims[0], x->dims[1], columns}, out, err);
    for (int64_t r = 0; status == MDOT_OK && r < x->dims[0] * x->dims[1]; r++) {
        double *row = (*out)->f + r * columns;
        for (int64_t c = 0; bias != NULL && c < columns; c++) row[c] = bias->f[c];
        for (int64_t k = 0; k < width; k++)
            for (int64_t c = 0; c < columns; c++) row[c] += x->f[r * width + k] * weights->f[k * columns + c];
    }
    return status;
}

mdot_status ir_eval_ms_attention(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    geometry g;
    ir_wide *packed, *k, *v;
    const ir_wide *past = ir_tensor_input(node, input, MSA_PAST);
    BS_TRY(read_ms_attention(&args, &g));
    BS_TRY(project_packed(arena, node, input, &packed, err));
    ir_attention a =
        begin_attention(node, &g, ir_tensor_input(node, input, MSA_MASK), ir_tensor_input(node, input, MSA_SCORE_BIAS));
    int64_t hidden = g.hidden.offset, columns = packed->dims[2];
    a.q = (ir_heads){packed->f, a.queries * columns, a.dim, columns};
    ir_heads new_keys = a.q, new_values = {packed->f + 2 * hidden, a.queries * columns, a.value_dim, columns};
    new_keys.data += hidden;
    const double *past_keys = past != NULL ? past->f : NULL, *past_values = past_keys;
    if (past != NULL) past_values += past->count / 2;
    BS_TRY(join_past(arena, node, &g, past_keys, new_keys, a.dim, &k, err));
    BS_TRY(join_past(arena, node, &g, past_values, new_values, a.value_dim, &v, err));
    a.k = ir_heads_of_4d(k->f, g.heads, a.keys, a.dim);
    a.v = ir_heads_of_4d(v->f, g.heads, a.keys, a.value_dim);
    a.out = ir_heads_of_3d(out[0]->f, g.heads, a.queries, a.value_dim);
    if (ir_node_wants(node, 1)) {
        ir_copy_elements(out[1], 0, k, 0, k->count);
        ir_copy_elements(out[1], k->count, v, 0, v->count);
    }
    return ir_attend(&a, arena, node, err);
}
