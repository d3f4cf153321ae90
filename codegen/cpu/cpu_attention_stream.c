/* cpu_attention_stream.c — attention of one head, streaming over keys, with queries in the vector lanes.
 *
 *   for each block of queries                   up to a register tile wide: 64 on v4, 16 on v3
 *     transpose the queries into scratch        so that a vector holds one channel of consecutive queries
 *     for each block of KEYS keys
 *       scores  [key, query]     = k · q        register_tile.c: rows are keys, the panel is the transposed queries
 *       weights [key, query]     = 2^(score - running maximum), summed per lane
 *       context [channel, query] += v · weights register_tile.c: rows are channels, the panel is the weights
 *     divide by the sums and transpose into out
 *
 * Each query stays in one lane from beginning to end. Therefore maximum, sum and rescaling (Milakov and Gimelshein,
 * "Online normalizer calculation for softmax", 2018) need no operation across lanes, and memory holds the scores of
 * only one block of keys at a time.
 *
 * With bf16 dot products, a row of the panels is two channels, or two keys: half as many steps of the same loops.
 * The scale is then applied after the product, so that queries are rounded once. With matrix tiles, vectors do only
 * the work other than multiplication. Blocks of keys are then longer, because each block loads and stores the
 * contexts so far. Most kernels with tiles run cpu_attention_pipeline.c, and here only the queries that it leaves.
 *
 * Surplus lanes of the last block of queries repeat the last query: they read the same data and write the same
 * results. A query that may attend to no key at all gives zeros, as ONNX's Attention requires (opset 24).
 */
#include "codegen/cpu/cpu_attention.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/real_functions.h"
#include "codegen/cpu/tiles.h"

#include <math.h>

enum {
    KEYS = 64,        /* scores of 64 keys × 64 queries are 16 KB */
    KEYS_BY_AMX = 128 /* in steps of keys */
};

/* Vector j in row `row` of a scratch matrix. */
static LLVMValueRef block_pointer(cg_emitter *e, const cg_stream *s, LLVMValueRef matrix, LLVMValueRef row, int j)
{
    LLVMValueRef start = cg_at(e, e->f32, matrix, cg_imul(e, row, cg_int(e, s->width)));
    return cg_at(e, e->f32, start, cg_int(e, (int64_t)j * e->target->lanes));
}

/* Row count of q_transposed. With tiles: channel pairs, in steps. */
static int64_t query_rows_of(const pl_attention *k, bool tiles)
{
    return tiles ? (k->dim + CG_AMX_STEP - 1) / CG_AMX_STEP * (CG_AMX_STEP / 2) : k->dim;
}

/* Has mask i own rows? The first shares the scores', except with tiles. */
static bool has_own_rows(const pl_attention *k, int i, bool tiles)
{
    return i == 0 ? tiles : cg_mask_varies_by_query(k, i);
}

/* Words of scratch, in matrices as wide as the widest block: queries, weights, contexts and masks. */
static int64_t stream_words(const pl_attention *k, bool tiles, const cg_cpu_target *target)
{
    int64_t block = tiles ? KEYS_BY_AMX : KEYS, rows = query_rows_of(k, tiles) + k->value_dim + block;
    for (int i = 0; i < k->mask_count || (i == 0 && tiles); i++) rows += has_own_rows(k, i, tiles) ? block : 0;
    return rows * target->tile_vectors * target->lanes;
}

/* `value` if the lane's query may attend to the key, otherwise -inf. Surplus lanes attend to all keys, as the last
 * query does. */
static LLVMValueRef mask_future(cg_emitter *e, const cg_stream *s, LLVMValueRef key, int j, LLVMValueRef value)
{
    int lanes = e->target->lanes;
    LLVMValueRef lane = cg_iadd(e, cg_iota(e, e->i64, lanes), cg_const(e, cg_vector(e, e->i64, lanes), j * lanes));
    LLVMValueRef query = cg_iadd(e, cg_splat(e, s->first_query, lanes), lane);
    LLVMValueRef limit = cg_iadd(e, query, cg_splat(e, cg_isub(e, s->head->keys, s->head->queries), lanes));
    LLVMValueRef absolute = cg_splat(e, cg_iadd(e, s->first_key, key), lanes);
    LLVMValueRef is_visible = LLVMBuildICmp(e->builder, LLVMIntSLE, absolute, limit, "");
    return cg_select(e, is_visible, value, cg_const(e, cg_lanes_type(e), -INFINITY));
}

/* The elements of mask i. */
static LLVMValueRef mask_of(cg_emitter *e, const cg_stream *s, int i, LLVMValueRef key, int j)
{
    if (s->key_mask[i] != NULL) return s->key_mask[i];
    if (cg_mask_varies_by_query(s->head->k, i))
        return cg_load(e, cg_lanes_type(e), block_pointer(e, s, s->mask[i], key, j), cg_lanes_bytes(e));
    LLVMValueRef address = cg_iadd(e, s->first_key, key);
    LLVMValueRef mask = cg_load(e, e->f32, cg_at(e, e->f32, s->head->mask[i], address), 0);
    return cg_splat(e, mask, e->target->lanes);
}

static LLVMValueRef mask_causal(cg_emitter *e, const cg_stream *s, LLVMValueRef key, int j, LLVMValueRef score)
{
    return s->head->k->causal ? mask_future(e, s, key, j, score) : score;
}

/* Is anything left to do after the sum of products? Then future keys are masked there, too. */
static bool scores_are_finished(const cg_stream *s) { return s->head->k->softcap > 0 || s->head->k->mask_count > 0; }

/* The initial value of a score. */
static LLVMValueRef start_score(cg_emitter *e, const cg_stream *s, LLVMValueRef key, int j)
{
    LLVMValueRef start = cg_const(e, cg_lanes_type(e), 0);
    return scores_are_finished(s) ? start : mask_causal(e, s, key, j, start);
}

/* The finished score, given the sum that began with start_score. */
static LLVMValueRef end_score(cg_emitter *e, const cg_stream *s, LLVMValueRef key, int j, LLVMValueRef sum)
{
    LLVMValueRef mask[PL_MAX_MASKS];
    if (!scores_are_finished(s)) return sum;
    for (int i = 0; i < s->head->k->mask_count; i++) mask[i] = mask_of(e, s, i, key, j);
    return mask_causal(e, s, key, j, cg_finish_score(e, s->head->k, sum, mask));
}

/* The score, given the unscaled dot product. */
static LLVMValueRef score_of(cg_emitter *e, const cg_stream *s, LLVMValueRef key, int j, LLVMValueRef product)
{
    if (scores_are_finished(s)) return end_score(e, s, key, j, cg_fmul(e, product, cg_stream_scale(e, s)));
    return cg_fma(e, product, cg_stream_scale(e, s), start_score(e, s, key, j));
}

/* Dot products for a key tile, by channel pairs, then scaled and masked. */
static void score_bf16(cg_emitter *e, const cg_stream *s, const cg_rows *rows, cg_tile *tile)
{
    const pl_attention *k = s->head->k;
    cg_tile_operands operands = {.row_step = cg_int(e, 1), .panel = s->q_transposed, .panel_step = s->width};
    for (int i = 0; i < rows->count; i++) {
        operands.row[i] = cg_row_pointer(e, e->i16, rows, i, s->keys.first, s->keys.stride);
        for (int j = 0; j < s->vectors; j++) tile->acc[i * s->vectors + j] = cg_const(e, cg_lanes_type(e), 0);
    }
    tile->use_bf16_dot = true;
    cg_tile_accumulate(e, tile, &operands, cg_int(e, k->dim / 2), NULL);
    for (int i = 0; i < rows->count; i++)
        for (int j = 0; j < s->vectors; j++) {
            LLVMValueRef *score = &tile->acc[i * s->vectors + j];
            *score = score_of(e, s, rows->index[i], j, *score);
        }
}

static void score_f32(cg_emitter *e, const cg_stream *s, const cg_rows *rows, cg_tile *tile)
{
    cg_tile_operands operands = {.row_step = cg_int(e, 1), .panel = s->q_transposed, .panel_step = s->width};
    LLVMValueRef first = cg_at(e, e->f32, s->head->key, cg_imul(e, s->first_key, s->head->key_stride));
    for (int i = 0; i < rows->count; i++) {
        operands.row[i] = cg_row_pointer(e, e->f32, rows, i, first, s->head->key_stride);
        for (int j = 0; j < s->vectors; j++) tile->acc[i * s->vectors + j] = start_score(e, s, rows->index[i], j);
    }
    cg_tile_accumulate(e, tile, &operands, cg_int(e, s->head->k->dim), NULL);
    for (int i = 0; i < rows->count; i++) /* before the first store, because masks and scores share memory */
        for (int j = 0; j < s->vectors; j++) {
            LLVMValueRef *score = &tile->acc[i * s->vectors + j];
            *score = end_score(e, s, rows->index[i], j, *score);
        }
}

/* Scores for a key tile; `maximum` has a vector per query vector. */
static void emit_score_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *maximum)
{
    const cg_stream *s = context;
    cg_tile tile = {.rows = rows->count, .vectors = s->vectors};
    if (s->head->use_bf16_dot)
        score_bf16(e, s, rows, &tile);
    else
        score_f32(e, s, rows, &tile);
    for (int i = 0; i < rows->count; i++)
        for (int j = 0; j < s->vectors; j++) {
            LLVMValueRef score = tile.acc[i * s->vectors + j];
            maximum[j] = cg_fmax(e, score, maximum[j]);
            cg_store(e, score, block_pointer(e, s, s->weights, rows->index[i], j), cg_lanes_bytes(e));
        }
}

/* Loads a channel tile's contexts so far, rescaled to the new maximum. */
static void start_context(cg_emitter *e, const cg_stream *s, const LLVMValueRef *channel, cg_tile *tile)
{
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->vectors; j++) {
            LLVMValueRef address = block_pointer(e, s, s->context, channel[i], j);
            LLVMValueRef old = cg_load(e, cg_lanes_type(e), address, cg_lanes_bytes(e));
            tile->acc[i * tile->vectors + j] = cg_fmul(e, old, s->rescale[j]);
        }
}

static void store_tile(cg_emitter *e, const cg_stream *s, const LLVMValueRef *channel, const cg_tile *tile)
{
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->vectors; j++)
            cg_store(e, tile->acc[i * tile->vectors + j], block_pointer(e, s, s->context, channel[i], j),
                     cg_lanes_bytes(e));
}

/* The weight of a score minus the maximum. Beside matrix tiles it is only as exact as bf16. There, excluded keys get
 * the weight 0 rather than 2^-100, except where cg_context_factor infers from the sum that there are keys. */
static LLVMValueRef softmax_power(cg_emitter *e, const cg_stream *s, LLVMValueRef x)
{
    if (!s->head->tiles) return cg_softmax_power(e, s->head->k, x);
    if (s->unit == 1) x = cg_fmul(e, x, cg_const(e, LLVMTypeOf(x), cg_log2_e));
    if (s->head->k->mask_count == 0 && !s->head->k->causal) x = cg_fmax(e, cg_const(e, LLVMTypeOf(x), -100), x);
    return cg_exp2_before_truncation(e, x);
}

/* Computes vector j of one key's softmax weights from the scores, and adds it to `sum`. */
static LLVMValueRef softmax_weight(cg_emitter *e, const cg_stream *s, LLVMValueRef key, int j, LLVMValueRef *sum)
{
    LLVMValueRef address = block_pointer(e, s, s->weights, key, j);
    LLVMValueRef score = cg_load(e, cg_lanes_type(e), address, cg_lanes_bytes(e));
    LLVMValueRef weight = softmax_power(e, s, cg_fsub(e, score, s->maximum[j]));
    if (s->head->tiles) weight = cg_truncate_weight(e, weight);
    sum[j] = cg_fadd(e, sum[j], weight);
    return weight;
}

/* Turns the scores for a key, or a key pair, into weights, and stores them for the other channels. */
static void softmax_step(cg_emitter *e, const cg_stream *s, LLVMValueRef step, LLVMValueRef *weight, LLVMValueRef *sum)
{
    for (int j = 0; j < s->vectors; j++) {
        if (s->head->use_bf16_dot) {
            LLVMValueRef key = cg_imul(e, step, cg_int(e, 2));
            LLVMValueRef low = softmax_weight(e, s, key, j, sum);
            LLVMValueRef high = softmax_weight(e, s, cg_iadd(e, key, cg_int(e, 1)), j, sum);
            weight[j] = s->head->tiles ? cg_pair_weights(e, low, high) : cg_interleave_weights(e, low, high);
        } else {
            weight[j] = softmax_weight(e, s, step, j, sum);
        }
        cg_store(e, weight[j], block_pointer(e, s, s->weights, step, j), cg_lanes_bytes(e));
    }
}

static LLVMValueRef softmax_steps(cg_emitter *e, const cg_stream *s)
{
    if (!s->head->use_bf16_dot) return s->key_count;
    return LLVMBuildLShr(e->builder, cg_iadd(e, s->key_count, cg_int(e, 1)), cg_int(e, 1), "");
}

/* The values that contexts sum: step i's values are at element i * step. */
typedef struct value_steps {
    LLVMTypeRef element;
    LLVMValueRef first, step;
} value_steps;

static value_steps steps_of_values(cg_emitter *e, const cg_stream *s)
{
    if (s->head->use_bf16_dot) return (value_steps){e->i32, s->value_pairs, cg_int(e, s->head->k->value_dim)};
    LLVMValueRef first = cg_at(e, e->f32, s->head->value, cg_imul(e, s->first_key, s->head->value_stride));
    return (value_steps){e->f32, first, s->head->value_stride};
}

/* Channels in the tile that also computes the weights: a third of the accumulators, so registers remain for the
 * exponentials. */
static int fused_channels(const cg_emitter *e, const cg_stream *s)
{
    int64_t channels = e->target->tile_rows * e->target->tile_vectors / (3 * s->vectors);
    if (channels > s->head->k->value_dim) channels = s->head->k->value_dim;
    return (int)(channels < CG_MAX_TILE_ROWS ? channels : CG_MAX_TILE_ROWS);
}

/* The first tile of channels also computes the weights. The exponentials' instructions overlap with the tile's
 * multiplications, while a separate loop would have to wait for them. */
static void emit_fused_tile(cg_emitter *e, const cg_stream *s, int channels, LLVMValueRef *sum)
{
    cg_tile tile = {.rows = channels, .vectors = s->vectors};
    LLVMValueRef channel[CG_MAX_TILE_ROWS], carried[CG_MAX_CARRIED], weight[CG_MAX_TILE_VECTORS];
    int count = tile.rows * tile.vectors;
    for (int i = 0; i < channels; i++) channel[i] = cg_int(e, i);
    start_context(e, s, channel, &tile);
    for (int i = 0; i < count; i++) carried[i] = tile.acc[i];
    for (int j = 0; j < s->vectors; j++) carried[count + j] = sum[j];
    cg_loop step;
    value_steps values = steps_of_values(e, s);
    cg_loop_begin(e, &step, cg_int(e, 0), softmax_steps(e, s), 1, count + s->vectors, carried, false);
    LLVMValueRef value = cg_at(e, values.element, values.first, cg_imul(e, step.index, values.step));
    LLVMValueRef *new_sum = carried + count;
    for (int j = 0; j < s->vectors; j++) new_sum[j] = step.carried[count + j];
    softmax_step(e, s, step.index, weight, new_sum);
    for (int i = 0; i < channels; i++) {
        LLVMValueRef scalar = cg_load(e, values.element, cg_at(e, values.element, value, channel[i]), 0);
        LLVMValueRef splat = cg_splat(e, scalar, e->target->lanes);
        for (int j = 0; j < s->vectors; j++) {
            LLVMValueRef before = step.carried[i * s->vectors + j];
            carried[i * s->vectors + j] =
                s->head->use_bf16_dot ? cg_bf16_dot(e, splat, weight[j], before) : cg_fma(e, splat, weight[j], before);
        }
    }
    cg_loop_end(e, &step, carried);
    for (int i = 0; i < count; i++) tile.acc[i] = step.out[i];
    for (int j = 0; j < s->vectors; j++) sum[j] = step.out[count + j];
    store_tile(e, s, channel, &tile);
}

/* Adds the block's weighted values to a tile of the other channels. */
static void emit_context_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried)
{
    (void)carried;
    const cg_stream *s = context;
    LLVMValueRef channel[CG_MAX_TILE_ROWS], first_channel = cg_int(e, fused_channels(e, s));
    cg_tile tile = {.rows = rows->count, .vectors = s->vectors, .use_bf16_dot = s->head->use_bf16_dot};
    value_steps values = steps_of_values(e, s);
    cg_tile_operands operands = {.row_step = values.step, .panel = s->weights, .panel_step = s->width};
    LLVMValueRef first = cg_at(e, values.element, values.first, first_channel);
    for (int i = 0; i < rows->count; i++) {
        operands.row[i] = cg_row_pointer(e, values.element, rows, i, first, cg_int(e, 1));
        channel[i] = cg_iadd(e, rows->index[i], first_channel);
    }
    start_context(e, s, channel, &tile);
    cg_tile_accumulate(e, &tile, &operands, softmax_steps(e, s), NULL);
    store_tile(e, s, channel, &tile);
}

/* With an odd key count, the last pair's second key is missing and gets the score -inf. */
static void mask_missing_key(cg_emitter *e, const cg_stream *s)
{
    LLVMValueRef odd = LLVMBuildAnd(e->builder, s->key_count, cg_int(e, 1), "");
    CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntNE, odd, cg_int(e, 0), "")) {
        for (int j = 0; j < s->vectors; j++)
            cg_store(e, cg_const(e, cg_lanes_type(e), -INFINITY), block_pointer(e, s, s->weights, s->key_count, j),
                     cg_lanes_bytes(e));
    }
}

/* Scales and masks the scores that tiles have stored, and finds the maxima. */
static void finish_scores(cg_emitter *e, cg_stream *s)
{
    LLVMValueRef maximum[CG_MAX_TILE_VECTORS];
    cg_loop key;
    cg_loop_begin(e, &key, cg_int(e, 0), s->key_count, 1, s->vectors, s->maximum, false);
    for (int i = 0; i < s->head->k->mask_count; i++)
        if (!cg_mask_varies_by_query(s->head->k, i))
            s->key_mask[i] = mask_of(e, s, i, key.index, 0); /* once, because the stores follow */
    for (int j = 0; j < s->vectors; j++) {
        LLVMValueRef address = block_pointer(e, s, s->weights, key.index, j);
        LLVMValueRef product = cg_load(e, cg_lanes_type(e), address, cg_lanes_bytes(e));
        LLVMValueRef score = score_of(e, s, key.index, j, product);
        maximum[j] = cg_fmax(e, score, key.carried[j]);
        cg_store(e, score, address, cg_lanes_bytes(e));
    }
    for (int i = 0; i < PL_MAX_MASKS; i++) s->key_mask[i] = NULL;
    cg_loop_end(e, &key, maximum);
    for (int j = 0; j < s->vectors; j++) s->maximum[j] = key.out[j];
}

/* Computes all weights of the block, padded with zeros to a step of keys, and rescales the contexts so far to the
 * new maximum. */
static void softmax_for_tiles(cg_emitter *e, const cg_stream *s, LLVMValueRef *sum)
{
    LLVMValueRef weight[CG_MAX_TILE_VECTORS], next_value[CG_MAX_TILE_VECTORS], zero = cg_const(e, cg_lanes_type(e), 0);
    LLVMValueRef steps = softmax_steps(e, s);
    LLVMValueRef end = cg_round_down(e, cg_iadd(e, steps, cg_int(e, CG_AMX_STEP / 2 - 1)), CG_AMX_STEP / 2);
    cg_loop step;
    cg_loop_begin(e, &step, cg_int(e, 0), steps, 1, s->vectors, sum, false);
    for (int j = 0; j < s->vectors; j++) next_value[j] = step.carried[j];
    softmax_step(e, s, step.index, weight, next_value);
    cg_loop_end(e, &step, next_value);
    for (int j = 0; j < s->vectors; j++) sum[j] = step.out[j];
    CG_FOR (e, row, steps, end, 1) {
        for (int j = 0; j < s->vectors; j++)
            cg_store(e, zero, block_pointer(e, s, s->weights, row.index, j), cg_lanes_bytes(e));
    }
    CG_FOR_NONEMPTY (e, row, cg_int(e, 0), cg_int(e, s->head->k->value_dim), 1) {
        for (int j = 0; j < s->vectors; j++) {
            LLVMValueRef address = block_pointer(e, s, s->context, row.index, j);
            LLVMValueRef old = cg_load(e, cg_lanes_type(e), address, cg_lanes_bytes(e));
            cg_store(e, cg_fmul(e, old, s->rescale[j]), address, cg_lanes_bytes(e));
        }
    }
}

static cg_amx_block block_of_tiles(const cg_stream *s)
{
    return (cg_amx_block){.head = &s->packed,
                          .width = (int)s->width,
                          .channels = s->head->k->value_dim,
                          .first_key = s->first_key,
                          .key_count = s->key_count,
                          .q_transposed = s->q_transposed,
                          .weights = s->weights,
                          .context = s->context};
}

/* Computes the block's scores in s->weights, and their maxima. */
static void emit_scores(cg_emitter *e, cg_stream *s)
{
    if (s->head->tiles) {
        cg_amx_block tiles = block_of_tiles(s);
        cg_amx_scores(e, &tiles);
        finish_scores(e, s);
        mask_missing_key(e, s);
        return;
    }
    if (s->head->use_bf16_dot) s->keys = cg_bf16_keys(e, s->head, s->first_key, s->key_count, s->keys_copy);
    cg_for_rows(e, s->key_count, s->maximum, s->vectors, emit_score_tile, s);
    if (!s->head->use_bf16_dot) return;
    cg_interleave_values(e, s->head, s->first_key, s->key_count, s->value_pairs);
    mask_missing_key(e, s);
}

static void emit_contexts(cg_emitter *e, cg_stream *s, LLVMValueRef *sum)
{
    if (s->head->tiles) {
        cg_amx_block tiles = block_of_tiles(s);
        softmax_for_tiles(e, s, sum);
        cg_amx_contexts(e, &tiles);
        return;
    }
    int channels = fused_channels(e, s);
    int64_t remaining = s->head->k->value_dim - channels;
    emit_fused_tile(e, s, channels, sum);
    if (remaining > 0) cg_for_rows(e, cg_int(e, remaining), NULL, 0, emit_context_tile, s);
}

/* `state` holds the maxima and the sums so far, a vector for each vector of queries. */
static void emit_key_block(cg_emitter *e, cg_stream *s, LLVMValueRef *state)
{
    LLVMValueRef *sum = state + s->vectors;
    for (int j = 0; j < s->vectors; j++) s->maximum[j] = state[j];
    for (int i = 0; i < s->head->k->mask_count; i++)
        if (cg_mask_varies_by_query(s->head->k, i)) cg_load_mask(e, s, i);
    emit_scores(e, s);
    for (int j = 0; j < s->vectors; j++) {
        s->rescale[j] = cg_softmax_power(e, s->head->k, cg_fsub(e, state[j], s->maximum[j]));
        state[j] = s->maximum[j];
        sum[j] = cg_fmul(e, sum[j], s->rescale[j]);
    }
    emit_contexts(e, s, sum);
}

static void clear_rows(cg_emitter *e, const cg_stream *s, LLVMValueRef matrix, int64_t source, int64_t target)
{
    LLVMValueRef zero = cg_const(e, cg_lanes_type(e), 0);
    if (source == target) return;
    CG_FOR_NONEMPTY (e, loop, cg_int(e, source), cg_int(e, target), 1) {
        for (int j = 0; j < s->vectors; j++)
            cg_store(e, zero, block_pointer(e, s, matrix, loop.index, j), cg_lanes_bytes(e));
    }
}

static void emit_query_block(cg_emitter *e, cg_stream *s, LLVMValueRef first_query)
{
    LLVMValueRef state[2 * CG_MAX_TILE_VECTORS];
    int vectors = s->vectors;
    s->first_query = first_query;
    cg_load_queries(e, s);
    if (s->head->tiles) clear_rows(e, s, s->q_transposed, s->head->k->dim / 2, query_rows_of(s->head->k, true));
    clear_rows(e, s, s->context, 0, s->head->k->value_dim);
    for (int j = 0; j < vectors; j++) {
        state[j] = cg_const(e, cg_lanes_type(e), cg_no_maximum);
        state[vectors + j] = cg_const(e, cg_lanes_type(e), 0);
    }
    cg_loop block;
    LLVMValueRef visible = cg_visible_keys(e, s->head, s->first_query, s->width);
    cg_loop_begin(e, &block, cg_int(e, 0), visible, s->block, 2 * vectors, state, true);
    s->first_key = block.index;
    s->key_count = cg_imin(e, cg_isub(e, visible, block.index), cg_int(e, s->block));
    for (int j = 0; j < 2 * vectors; j++) state[j] = block.carried[j];
    emit_key_block(e, s, state);
    cg_loop_end(e, &block, state);

    for (int j = 0; j < vectors; j++) {
        LLVMValueRef factor = cg_context_factor(e, s->head->k, block.out[vectors + j]);
        cg_store(e, factor, block_pointer(e, s, s->weights, cg_int(e, 0), j), cg_lanes_bytes(e));
    }
    cg_store_context(e, s, s->weights);
}

/* Offset of the packed head in scratch with tiles. The pipeline has ended before the stream begins, so they share the
 * part before it. The offset is the same in all buckets, because they share the code. */
static int64_t packed_head_at(const pl_attention *k, const cg_cpu_target *target)
{
    int64_t stream = 4 * stream_words(k, true, target);
    int64_t pipeline = cg_attention_is_pipelined(k) ? (cg_pipeline_bytes(k) + 63) / 64 * 64 : 0;
    return pipeline > stream ? pipeline : stream;
}

static int64_t tile_scratch_bytes(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target)
{
    int64_t bytes = packed_head_at(k, target) + cg_amx_head_bytes(plan, k);
    return cg_attention_is_pipelined(k) ? bytes + cg_pipeline_length_bytes(plan, k) : bytes;
}

/* Has the pipeline left the query group, one vector wide, to the stream? */
static LLVMValueRef is_unsafe(cg_emitter *e, const cg_stream *s, LLVMValueRef unsafe, LLVMValueRef first_query)
{
    LLVMValueRef group = cg_pipeline_group(e, s->head, first_query);
    LLVMValueRef word = cg_load(e, e->i32, cg_at(e, e->i32, unsafe, group), 0);
    return LLVMBuildICmp(e->builder, LLVMIntNE, word, cg_const_int(e->i32, 0), "");
}

void cg_attention_stream(cg_emitter *e, const cg_attention_head *head, LLVMValueRef scratch)
{
    int lanes = e->target->lanes;
    const pl_attention *k = head->k;
    cg_stream s = {.head = head, .last_query = cg_isub(e, head->queries, cg_int(e, 1)), .q_transposed = scratch};
    s.unit = cg_score_unit(k);
    s.block = head->tiles ? KEYS_BY_AMX : KEYS;
    bool is_pipelined = head->tiles && cg_attention_is_pipelined(k);
    LLVMValueRef unsafe = NULL;
    if (head->tiles) {
        s.packed = cg_amx_pack_head(e, head, cg_at(e, e->i8, scratch, cg_int(e, packed_head_at(k, e->target))));
        if (is_pipelined) unsafe = cg_attention_pipeline(e, head, &s.packed, scratch);
    }
    LLVMValueRef done = head->slice.from;
    /* Blocks as wide as a tile; then, for the remaining queries, a half-width and a quarter-width block. The pipeline
     * leaves single groups, for which one code block suffices. */
    for (int vectors = is_pipelined ? 1 : e->target->tile_vectors; vectors >= 1; vectors /= 2) {
        s.vectors = vectors;
        s.width = (int64_t)vectors * lanes;
        s.weights = s.mask[0] = cg_at(e, e->f32, scratch, cg_int(e, query_rows_of(k, head->tiles) * s.width));
        s.context = cg_at(e, e->f32, s.weights, cg_int(e, s.block * s.width));
        s.value_pairs = cg_at(e, e->f32, s.context, cg_int(e, k->value_dim * s.width));
        for (int i = 0; i < k->mask_count; i++) {
            if (!has_own_rows(k, i, head->tiles)) continue;
            s.mask[i] = s.value_pairs;
            s.value_pairs = cg_at(e, e->f32, s.mask[i], cg_int(e, s.block * s.width));
        }
        s.keys_copy = cg_at(e, e->i32, s.value_pairs, cg_int(e, KEYS / 2 * k->value_dim));
        /* Repeats while narrower blocks would need at least as many lanes for the rest. */
        LLVMValueRef end = cg_isub(e, head->slice.to, cg_int(e, s.width - lanes));
        cg_loop block;
        cg_loop_begin(e, &block, done, end, s.width, 1, &done, true);
        cg_if is_left;
        if (is_pipelined) cg_if_begin(e, &is_left, is_unsafe(e, &s, unsafe, block.index));
        emit_query_block(e, &s, block.index);
        if (is_pipelined) cg_if_end(e, &is_left);
        LLVMValueRef next_value = cg_iadd(e, block.index, cg_int(e, s.width));
        cg_loop_end(e, &block, &next_value);
        done = block.out[0];
    }
}

int64_t cg_attention_stream_grain(const cg_cpu_target *target) { return (int64_t)target->tile_vectors * target->lanes; }

int64_t cg_attention_stream_scratch_bytes(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target)
{
    bool half = cg_attention_uses_bf16(plan, k, target), tiles = half && target->matmul == CG_MATMUL_AMX;
    if (tiles) return tile_scratch_bytes(plan, k, target);
    int64_t bytes = 4 * stream_words(k, false, target);
    return half ? bytes + 4 * (KEYS / 2) * (k->value_dim + k->dim) : bytes;
}
