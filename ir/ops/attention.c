/* attention.c — Attention as defined by ONNX (opset 23, 24 and 25): heads in three or four dimensions, grouped
 * queries, masks, causal and sliding windows, past keys and values, a cap on the scores.
 *
 * softmax_precision is ignored, because everything is computed in double.
 */
#include "ir/ops/attention.h"

#include "ir/ops/operands.h"

#include <math.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, KEY_COUNTS }; /* inputs */
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };           /* outputs */

const char *const ir_attention_replaces[IR_MAX_MASKS] = {"mdot.replaces", "mdot.replaces1", "mdot.replaces2"};

typedef struct geometry {
    mdot_dtype dtype;
    int rank; /* rank of Q, K, V and Y: 3 or 4 */
    ir_dim batch, heads, kv_heads, queries, new_keys, past, keys, dim, value_dim;
    ir_dim hidden; /* channels of Y if it has three dimensions */
} geometry;

/* The four dimensions of Q, K or V: batch, heads, rows, channels. */
static mdot_status split_heads(const ir_operands *args, int i, const char *what, const char *heads_attr, int rank,
                               ir_dim *out)
{
    ir_type type;
    BS_TRY(ir_operand_need(args, i, what, rank, &type));
    BS_TRY(ir_operand_need_floats(args, i, what));
    BS_TRY(ir_operand_need_same(args, i, Q));
    int64_t heads = ir_node_int(args->node, heads_attr, 0);
    if (rank == 4) {
        for (int k = 0; k < 4; k++) out[k] = type.dim[k];
    } else {
        out[0] = type.dim[0];
        out[1] = ir_dim_number(heads);
        out[2] = type.dim[1];
        if (heads <= 0 || !ir_dim_div_exact(type.dim[2], out[1], &out[3])) {
            char text[IR_DIM_TEXT_BYTES];
            return ir_malformed(args, "%s channels of the %s are not divisible into %lld heads",
                                ir_dim_text(type.dim[2], args->graph->symbol, text, sizeof text), what,
                                (long long)heads);
        }
    }
    if (ir_dim_is_number(out[1]) && out[1].offset > 0) return MDOT_OK;
    return ir_unsupported(args, "the number of heads of the %s is not fixed", what);
}

static mdot_status read_past(const ir_operands *args, geometry *g)
{
    ir_type key, value;
    bool has_past = ir_operand_given(args, PAST_KEY);
    if (has_past != ir_operand_given(args, PAST_VALUE))
        return ir_malformed(args, "past_key and past_value require each other");
    g->past = ir_dim_number(0);
    if (has_past) {
        BS_TRY(ir_operand_need(args, PAST_KEY, "past key", 4, &key));
        BS_TRY(ir_operand_need(args, PAST_VALUE, "past value", 4, &value));
        BS_TRY(ir_operand_need_same(args, PAST_KEY, Q));
        BS_TRY(ir_operand_need_same(args, PAST_VALUE, Q));
        bool fits = ir_dim_equal(key.dim[0], g->batch) && ir_dim_equal(value.dim[0], g->batch) &&
                    ir_dim_equal(key.dim[1], g->kv_heads) && ir_dim_equal(value.dim[1], g->kv_heads) &&
                    ir_dim_equal(key.dim[2], value.dim[2]) && ir_dim_equal(key.dim[3], g->dim) &&
                    ir_dim_equal(value.dim[3], g->value_dim);
        if (!fits) return ir_malformed(args, "the shapes of past_key or past_value do not match K and V");
        g->past = key.dim[2];
    }
    if (ir_dim_add(g->past, g->new_keys, &g->keys)) return MDOT_OK;
    return ir_unsupported(args,
                          "the number of keys is not a sum of a multiple of the length and one rounded quotient of it");
}

/* A mask broadcasts to (batch, heads, queries, keys), but may have fewer keys. */
static mdot_status check_mask(const ir_operands *args, const geometry *g, int input)
{
    if (!ir_operand_given(args, input)) return MDOT_OK;
    ir_type mask = ir_operand_type(args, input);
    ir_dim full[4] = {g->batch, g->heads, g->queries, g->keys};
    bool fits = mask.rank >= 1 && mask.rank <= 4 && ir_dim_always_le(args->graph, mask.dim[mask.rank - 1], g->keys);
    for (int k = 2; k <= mask.rank && fits; k++) {
        ir_dim dim = mask.dim[mask.rank - k];
        fits = ir_dim_is(dim, 1) || ir_dim_equal(dim, full[4 - k]);
    }
    if (!fits) {
        char text[IR_SHAPE_TEXT_BYTES], full_text[IR_SHAPE_TEXT_BYTES];
        return ir_refuse(args, ir_dims_fault(4, full), "a mask of shape %s does not broadcast to %s",
                         ir_shape_text(args, mask.rank, mask.dim, text), ir_shape_text(args, 4, full, full_text));
    }
    if (mask.dtype == MDOT_DTYPE_BOOL || ir_dtype_is_float(mask.dtype)) return MDOT_OK;
    return ir_malformed(args, "a mask of type %s is neither bool nor floating", mdot_dtype_name(mask.dtype));
}

static mdot_status check_key_counts(const ir_operands *args, const geometry *g)
{
    ir_type counts;
    if (!ir_operand_given(args, KEY_COUNTS)) return MDOT_OK;
    BS_TRY(ir_operand_need(args, KEY_COUNTS, "nonpad_kv_seqlen", 1, &counts));
    BS_TRY(ir_operand_need_integers(args, KEY_COUNTS, "nonpad_kv_seqlen"));
    if (!ir_dim_equal(counts.dim[0], g->batch))
        return ir_malformed(args, "nonpad_kv_seqlen must have one number per sequence");
    if (!ir_operand_given(args, PAST_KEY)) return MDOT_OK;
    return ir_malformed(args, "nonpad_kv_seqlen and past_key exclude each other");
}

static mdot_status read_geometry(const ir_operands *args, geometry *out)
{
    ir_type type;
    ir_dim q[4], k[4], v[4];
    BS_TRY(ir_operand_need(args, Q, "query", -1, &type));
    if (type.rank != 3 && type.rank != 4)
        return ir_malformed(args, "the query has %d dimensions instead of 3 or 4", type.rank);
    BS_TRY(split_heads(args, Q, "query", "q_num_heads", type.rank, q));
    BS_TRY(split_heads(args, K, "key", "kv_num_heads", type.rank, k));
    BS_TRY(split_heads(args, V, "value", "kv_num_heads", type.rank, v));
    bool fits = ir_dim_equal(q[0], k[0]) && ir_dim_equal(q[0], v[0]) && ir_dim_equal(k[1], v[1]) &&
                ir_dim_equal(k[2], v[2]) && ir_dim_equal(q[3], k[3]) && q[1].offset % k[1].offset == 0;
    if (!fits) return ir_malformed(args, "the shapes of query, key and value do not match");
    geometry g = {.dtype = type.dtype, .rank = type.rank, .batch = q[0], .heads = q[1], .kv_heads = k[1]};
    g.queries = q[2];
    g.new_keys = k[2];
    g.dim = q[3];
    g.value_dim = v[3];
    if (!ir_dim_mul(g.value_dim, g.heads, &g.hidden)) return ir_unsupported(args, "the width of its output overflows");
    BS_TRY(read_past(args, &g));
    for (int i = 0; i < IR_MAX_MASKS; i++) BS_TRY(check_mask(args, &g, ir_mask_input(i)));
    BS_TRY(check_key_counts(args, &g));
    int64_t stage = ir_node_int(args->node, "qk_matmul_output_mode", 0);
    if (stage < IR_SCORE_RAW || stage > IR_SCORE_PROBABILITY)
        return ir_malformed(args, "qk_matmul_output_mode is %lld, but must be between 0 and 3", (long long)stage);
    *out = g;
    return MDOT_OK;
}

mdot_status ir_outputs_attention(const ir_operands *args, int output, ir_type *out_type)
{
    geometry g;
    BS_TRY(read_geometry(args, &g));
    switch (output) {
    case PRESENT_KEY: *out_type = (ir_type){g.dtype, 4, {g.batch, g.kv_heads, g.keys, g.dim}}; break;
    case PRESENT_VALUE: *out_type = (ir_type){g.dtype, 4, {g.batch, g.kv_heads, g.keys, g.value_dim}}; break;
    case SCORES: *out_type = (ir_type){g.dtype, 4, {g.batch, g.heads, g.queries, g.keys}}; break;
    default:
        *out_type = (ir_type){g.dtype, 4, {g.batch, g.heads, g.queries, g.value_dim}};
        if (g.rank == 3) *out_type = (ir_type){g.dtype, 3, {g.batch, g.queries, g.hidden}};
    }
    return MDOT_OK;
}

void ir_cost_attention(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_graph range = {.max_length = length};
    ir_operands args = ir_operands_of_graph(&range, node, NULL);
    geometry g;
    if (read_geometry(&args, &g) != MDOT_OK) return;
    out_cost->flops = ir_attention_flops((double)ir_dim_at(g.batch, length), (double)g.heads.offset,
                                         (double)ir_dim_at(g.queries, length), (double)ir_dim_at(g.keys, length),
                                         (double)ir_dim_at(g.dim, length), (double)ir_dim_at(g.value_dim, length));
}

static ir_heads heads_of(const geometry *g, double *data, ir_dim heads, ir_dim rows, ir_dim channels)
{
    return g->rank == 4 ? ir_heads_of_4d(data, heads.offset, rows.offset, channels.offset)
                        : ir_heads_of_3d(data, heads.offset, rows.offset, channels.offset);
}

/* Copies `rows` rows of every head to another place and layout. */
static void copy_heads(const geometry *g, ir_heads to, ir_heads from, int64_t rows, int64_t channels)
{
    for (int64_t b = 0; b < g->batch.offset; b++) {
        for (int64_t h = 0; h < g->kv_heads.offset; h++) {
            for (int64_t n = 0; n < rows; n++) {
                const double *source = from.data + b * from.batch + h * from.head + n * from.row;
                double *target = to.data + b * to.batch + h * to.head + n * to.row;
                for (int64_t d = 0; d < channels; d++) target[d] = source[d];
            }
        }
    }
}

/* Joins past keys or values (NULL: absent) and the new ones behind them into one tensor of four dimensions. */
static void join_past(const geometry *g, const ir_wide *past, const ir_wide *fresh, ir_dim channels, ir_wide *present)
{
    ir_heads target = ir_heads_of_4d(present->f, g->kv_heads.offset, g->keys.offset, channels.offset);
    if (past != NULL) {
        ir_heads old = ir_heads_of_4d(past->f, g->kv_heads.offset, g->past.offset, channels.offset);
        copy_heads(g, target, old, g->past.offset, channels.offset);
    }
    target.data += g->past.offset * target.row;
    copy_heads(g, target, heads_of(g, fresh->f, g->kv_heads, g->new_keys, channels), g->new_keys.offset,
               channels.offset);
}

/* Reads the options from attributes and masks. */
static void read_options(const ir_node *node, ir_inputs input, const geometry *g, ir_attention *a)
{
    a->scale = ir_node_float(node, "scale", 1 / sqrt((double)g->dim.offset));
    a->softcap = ir_node_float(node, "softcap", 0);
    a->masked = -INFINITY;
    a->causal = ir_node_int(node, "is_causal", 0) != 0;
    a->left_window = ir_node_int(node, "left_window_size", -1);
    a->right_window = ir_node_int(node, "right_window_size", -1);
    a->offset = g->past.offset;
    const ir_wide *mask = ir_tensor_input(node, input, MASK), *counts = ir_tensor_input(node, input, KEY_COUNTS);
    if (mask != NULL) *(mask->f != NULL ? &a->bias : &a->keep) = ir_attention_mask_of(mask);
    for (int i = 0; i < IR_MAX_MASKS; i++) {
        a->replaces[i] = ir_node_float(node, ir_attention_replaces[i], 0);
        const ir_wide *more = i > 0 ? ir_tensor_input(node, input, ir_mask_input(i)) : NULL;
        if (more != NULL) a->more[i - 1] = ir_attention_mask_of(more);
    }
    if (counts != NULL) {
        a->key_counts = counts->i;
        a->offset_by_count = true;
    }
}

mdot_status ir_eval_attention(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    geometry g;
    ir_wide *keys, *values;
    BS_TRY(read_geometry(&args, &g));
    BS_TRY(ir_make_output(arena, &args, PRESENT_KEY, out, &keys));
    BS_TRY(ir_make_output(arena, &args, PRESENT_VALUE, out, &values));
    join_past(&g, ir_tensor_input(node, input, PAST_KEY), input[K], g.dim, keys);
    join_past(&g, ir_tensor_input(node, input, PAST_VALUE), input[V], g.value_dim, values);
    ir_attention a = {.batch = g.batch.offset, .heads = g.heads.offset, .kv_heads = g.kv_heads.offset};
    a.queries = g.queries.offset;
    a.keys = g.keys.offset;
    a.dim = g.dim.offset;
    a.value_dim = g.value_dim.offset;
    a.q = heads_of(&g, input[Q]->f, g.heads, g.queries, g.dim);
    a.k = ir_heads_of_4d(keys->f, a.kv_heads, a.keys, a.dim);
    a.v = ir_heads_of_4d(values->f, a.kv_heads, a.keys, a.value_dim);
    a.out = heads_of(&g, out[Y]->f, g.heads, g.queries, g.value_dim);
    a.scores = ir_node_wants(node, SCORES) ? out[SCORES]->f : NULL;
    a.stage = (ir_score_stage)ir_node_int(node, "qk_matmul_output_mode", 0);
    read_options(node, input, &g, &a);
    return ir_attend(&a, arena, node, err);
}
