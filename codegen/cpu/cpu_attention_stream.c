/* cpu_attention_stream.c — attention of one head, streaming over keys, queries in the lanes of vectors.
 *
 *   for each block of queries                   up to a register tile wide: 64 on v4, 16 on v3
 *     transpose the queries into scratch        so that a vector holds one channel of consecutive queries
 *     for each block of KEYS keys
 *       scores  [key, query]     = k · q        tile.c: rows are keys, the panel is the transposed queries
 *       weights [key, query]     = 2^(score - running maximum), summed per lane
 *       context [channel, query] += v · weights tile.c: rows are channels, the panel is the weights
 *     divide by the sums and transpose into out
 *
 * Each query is a lane from beginning to end, so maximum, sum and rescaling (Milakov and Gimelshein, "Online normalizer
 * calculation for softmax", 2018) need no operation across lanes, and the scores of all keys are never in memory at
 * once.
 *
 * Surplus lanes of the last block of queries repeat the last query: they read what it reads and write what it writes.
 * A query that may attend to no key at all gives zeros, as ONNX's Attention asks (opset 24).
 */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/tile.h"

#include <math.h>

enum {
    KEYS = 64, /* scores of 64 keys × 64 queries are 16 KB */
    MAX_LANES = 16
};

typedef struct stream {
    const attention_head *head;
    int vectors; /* of the block of queries */
    int64_t width;
    LLVMValueRef first_query, last_query; /* of the block; of all */
    LLVMValueRef q_turned;                /* scratch: dim rows of `width` */
    LLVMValueRef weights;                 /* scratch: KEYS rows */
    LLVMValueRef context;                 /* scratch: value_dim rows */

    LLVMValueRef first_key, key_count; /* of the block of keys */
    LLVMValueRef maximum[CG_MAX_TILE_VECTORS], rescale[CG_MAX_TILE_VECTORS];
} stream;

static LLVMTypeRef vector_type(cg_emitter *e)
{
    return cg_vector(e, e->f32, e->target->lanes);
}

static unsigned vector_bytes(const cg_emitter *e)
{
    return 4 * (unsigned)e->target->lanes;
}

/* Vector j of row `row` of a scratch matrix. */
static LLVMValueRef block_pointer(cg_emitter *e, const stream *s, LLVMValueRef matrix, LLVMValueRef row, int j)
{
    LLVMValueRef start = cg_at(e, e->f32, matrix, cg_imul(e, row, cg_int(e, s->width)));
    return cg_at(e, e->f32, start, cg_int(e, (int64_t)j * e->target->lanes));
}

/* ---- Transposing between rows of memory and lanes --------------------------------------------------------------- */

/* Pointers to `lanes` consecutive queries' rows, the first at query `first`; beyond the last query, the last. */
static void query_rows(cg_emitter *e, const stream *s, LLVMValueRef base, LLVMValueRef stride, LLVMValueRef first,
                       LLVMValueRef *rows)
{
    for (int i = 0; i < e->target->lanes; i++) {
        LLVMValueRef query = cg_imin(e, cg_iadd(e, first, cg_int(e, i)), s->last_query);
        rows[i] = cg_at(e, e->f32, base, cg_imul(e, query, stride));
    }
}

/* Turns `count` (at most a vector) columns, from `column` on, of the queries' rows into lanes, applies `map`, and
 * stores them as rows of a scratch matrix. */
typedef LLVMValueRef (*value_map)(cg_emitter *e, const stream *s, LLVMValueRef value);

static void rows_to_lanes(cg_emitter *e, const stream *s, LLVMValueRef *rows, LLVMValueRef column, int count,
                          value_map map, LLVMValueRef to)
{
    LLVMValueRef turned[MAX_LANES];
    int lanes = e->target->lanes;
    for (int i = 0; i < lanes; i++) {
        LLVMValueRef part = cg_load(e, cg_vector(e, e->f32, count), cg_at(e, e->f32, rows[i], column), 0);
        turned[i] = map(e, s, cg_resize(e, part, lanes, 0));
    }
    cg_transpose(e, turned);
    for (int i = 0; i < count; i++) {
        LLVMValueRef row = cg_iadd(e, column, cg_int(e, i));
        cg_store(e, turned[i], cg_at(e, e->f32, to, cg_imul(e, row, cg_int(e, s->width))), vector_bytes(e));
    }
}

/* The way back: `count` rows of a scratch matrix, times `factor` per lane, to columns of the queries' rows. */
static void lanes_to_rows(cg_emitter *e, const stream *s, LLVMValueRef from, LLVMValueRef factor, LLVMValueRef column,
                          int count, LLVMValueRef *rows)
{
    LLVMValueRef turned[MAX_LANES];
    int lanes = e->target->lanes;
    for (int i = 0; i < lanes; i++) {
        LLVMValueRef row = cg_iadd(e, column, cg_int(e, i));
        LLVMValueRef address = cg_at(e, e->f32, from, cg_imul(e, row, cg_int(e, s->width)));
        turned[i] = cg_const(e, vector_type(e), 0);
        if (i < count) turned[i] = cg_fmul(e, cg_load(e, vector_type(e), address, vector_bytes(e)), factor);
    }
    cg_transpose(e, turned);
    for (int i = 0; i < lanes; i++)
        cg_store(e, cg_resize(e, turned[i], count, 0), cg_at(e, e->f32, rows[i], column), 0);
}

static LLVMValueRef scale_query(cg_emitter *e, const stream *s, LLVMValueRef value)
{
    return cg_fmul(e, value, cg_const(e, LLVMTypeOf(value), s->head->k->scale * cg_log2_e));
}

static void load_queries(cg_emitter *e, const stream *s)
{
    int lanes = e->target->lanes;
    int64_t dim = s->head->k->dim, whole = dim / lanes * lanes;
    LLVMValueRef rows[MAX_LANES];
    cg_loop group, column;
    cg_loop_begin(e, &group, cg_int(e, 0), cg_int(e, s->width), lanes, 0, NULL, false);
    query_rows(e, s, s->head->q, s->head->q_stride, cg_iadd(e, s->first_query, group.index), rows);
    LLVMValueRef to = cg_at(e, e->f32, s->q_turned, group.index);
    if (whole > 0) {
        cg_loop_begin(e, &column, cg_int(e, 0), cg_int(e, whole), lanes, 0, NULL, false);
        rows_to_lanes(e, s, rows, column.index, lanes, scale_query, to);
        cg_loop_end(e, &column, NULL);
    }
    if (dim > whole) rows_to_lanes(e, s, rows, cg_int(e, whole), (int)(dim - whole), scale_query, to);
    cg_loop_end(e, &group, NULL);
}

/* `factors` are in memory, a vector a group of queries. */
static void store_context(cg_emitter *e, const stream *s, LLVMValueRef factors)
{
    int lanes = e->target->lanes;
    int64_t dim = s->head->k->value_dim, whole = dim / lanes * lanes;
    LLVMValueRef rows[MAX_LANES];
    cg_loop group, column;
    cg_loop_begin(e, &group, cg_int(e, 0), cg_int(e, s->width), lanes, 0, NULL, false);
    query_rows(e, s, s->head->out, s->head->out_stride, cg_iadd(e, s->first_query, group.index), rows);
    LLVMValueRef factor = cg_load(e, vector_type(e), cg_at(e, e->f32, factors, group.index), vector_bytes(e));
    LLVMValueRef from = cg_at(e, e->f32, s->context, group.index);
    if (whole > 0) {
        cg_loop_begin(e, &column, cg_int(e, 0), cg_int(e, whole), lanes, 0, NULL, false);
        lanes_to_rows(e, s, from, factor, column.index, lanes, rows);
        cg_loop_end(e, &column, NULL);
    }
    if (dim > whole) lanes_to_rows(e, s, from, factor, cg_int(e, whole), (int)(dim - whole), rows);
    cg_loop_end(e, &group, NULL);
}

/* ---- Masks ------------------------------------------------------------------------------------------------------ */

static LLVMValueRef scale_mask(cg_emitter *e, const stream *s, LLVMValueRef value)
{
    (void)s;
    return cg_scale_mask(e, value);
}

static bool mask_varies_by_query(const stream *s)
{
    return s->head->k->mask >= 0 && !ir_dim_is(s->head->k->mask_query, 0);
}

/* Fills `weights` with the mask of the block, as [key, query]: the scores start from it. */
static void load_mask(cg_emitter *e, const stream *s)
{
    int lanes = e->target->lanes;
    LLVMValueRef rows[MAX_LANES], mask = cg_at(e, e->f32, s->head->mask, s->first_key);
    LLVMValueRef whole = cg_round_down(e, s->key_count, lanes);
    cg_loop group, column, key, lane;
    cg_loop_begin(e, &group, cg_int(e, 0), cg_int(e, s->width), lanes, 0, NULL, false);
    query_rows(e, s, mask, s->head->mask_stride, cg_iadd(e, s->first_query, group.index), rows);
    LLVMValueRef to = cg_at(e, e->f32, s->weights, group.index);
    cg_loop_begin(e, &column, cg_int(e, 0), whole, lanes, 0, NULL, true);
    rows_to_lanes(e, s, rows, column.index, lanes, scale_mask, to);
    cg_loop_end(e, &column, NULL);
    cg_loop_end(e, &group, NULL);
    /* Less than a vector of keys is left: one element at a time. */
    cg_loop_begin(e, &key, whole, s->key_count, 1, 0, NULL, true);
    cg_loop_begin(e, &lane, cg_int(e, 0), cg_int(e, s->width), 1, 0, NULL, false);
    LLVMValueRef query = cg_imin(e, cg_iadd(e, s->first_query, lane.index), s->last_query);
    LLVMValueRef from = cg_iadd(e, cg_imul(e, query, s->head->mask_stride), key.index);
    LLVMValueRef value = cg_scale_mask(e, cg_load(e, e->f32, cg_at(e, e->f32, mask, from), 0));
    LLVMValueRef at = cg_iadd(e, cg_imul(e, key.index, cg_int(e, s->width)), lane.index);
    cg_store(e, value, cg_at(e, e->f32, s->weights, at), 0);
    cg_loop_end(e, &lane, NULL);
    cg_loop_end(e, &key, NULL);
}

/* `value` where the lane's query may see the key, else -inf. Surplus lanes see all keys, as the last query does. */
static LLVMValueRef hide_future(cg_emitter *e, const stream *s, LLVMValueRef key, int j, LLVMValueRef value)
{
    int lanes = e->target->lanes;
    LLVMValueRef lane = cg_iadd(e, cg_iota(e, e->i64, lanes), cg_const(e, cg_vector(e, e->i64, lanes), j * lanes));
    LLVMValueRef query = cg_iadd(e, cg_splat(e, s->first_query, lanes), lane);
    LLVMValueRef limit = cg_iadd(e, query, cg_splat(e, cg_isub(e, s->head->keys, s->head->queries), lanes));
    LLVMValueRef absolute = cg_splat(e, cg_iadd(e, s->first_key, key), lanes);
    LLVMValueRef seen = LLVMBuildICmp(e->builder, LLVMIntSLE, absolute, limit, "");
    return cg_select(e, seen, value, cg_const(e, vector_type(e), -INFINITY));
}

/* ---- One block of keys ------------------------------------------------------------------------------------------ */

/* What a score starts from: the mask. */
static LLVMValueRef start_score(cg_emitter *e, const stream *s, LLVMValueRef key, int j)
{
    LLVMValueRef start;
    if (s->head->k->mask < 0) {
        start = cg_const(e, vector_type(e), 0);
    } else if (mask_varies_by_query(s)) {
        start = cg_load(e, vector_type(e), block_pointer(e, s, s->weights, key, j), vector_bytes(e));
    } else {
        LLVMValueRef at = cg_iadd(e, s->first_key, key);
        LLVMValueRef mask = cg_load(e, e->f32, cg_at(e, e->f32, s->head->mask, at), 0);
        start = cg_splat(e, cg_scale_mask(e, mask), e->target->lanes);
    }
    return s->head->k->causal ? hide_future(e, s, key, j, start) : start;
}

/* Scores of a tile of keys; `maximum` has a vector for each vector of queries. */
static void emit_score_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *maximum)
{
    const stream *s = context;
    cg_tile tile = {.rows = rows->count, .vectors = s->vectors};
    cg_tile_operands operands = {.row_step = cg_int(e, 1), .panel = s->q_turned, .panel_step = s->width};
    LLVMValueRef first = cg_at(e, e->f32, s->head->key, cg_imul(e, s->first_key, s->head->key_stride));
    for (int i = 0; i < rows->count; i++) {
        operands.row[i] = cg_row_pointer(e, rows, i, first, s->head->key_stride);
        for (int j = 0; j < s->vectors; j++) tile.acc[i * s->vectors + j] = start_score(e, s, rows->index[i], j);
    }
    cg_tile_accumulate(e, &tile, &operands, cg_int(e, s->head->k->dim), NULL);
    for (int i = 0; i < rows->count; i++)
        for (int j = 0; j < s->vectors; j++) {
            LLVMValueRef score = tile.acc[i * s->vectors + j];
            maximum[j] = cg_fmax(e, score, maximum[j]);
            cg_store(e, score, block_pointer(e, s, s->weights, rows->index[i], j), vector_bytes(e));
        }
}

/* The context of a tile of channels so far, rescaled to the new maximum. */
static void start_context(cg_emitter *e, const stream *s, const LLVMValueRef *channel, cg_tile *tile)
{
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->vectors; j++) {
            LLVMValueRef address = block_pointer(e, s, s->context, channel[i], j);
            LLVMValueRef old = cg_load(e, vector_type(e), address, vector_bytes(e));
            tile->acc[i * tile->vectors + j] = cg_fmul(e, old, s->rescale[j]);
        }
}

static void store_tile(cg_emitter *e, const stream *s, const LLVMValueRef *channel, const cg_tile *tile)
{
    for (int i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->vectors; j++)
            cg_store(e, tile->acc[i * tile->vectors + j], block_pointer(e, s, s->context, channel[i], j),
                     vector_bytes(e));
}

/* The block's first value row. */
static LLVMValueRef value_rows(cg_emitter *e, const stream *s)
{
    return cg_at(e, e->f32, s->head->value, cg_imul(e, s->first_key, s->head->value_stride));
}

/* Turns one key's scores into weights, which stay in memory for the other channels, and adds them to `sum`. */
static void weigh_key(cg_emitter *e, const stream *s, LLVMValueRef key, LLVMValueRef *weight, LLVMValueRef *sum)
{
    for (int j = 0; j < s->vectors; j++) {
        LLVMValueRef address = block_pointer(e, s, s->weights, key, j);
        LLVMValueRef score = cg_load(e, vector_type(e), address, vector_bytes(e));
        weight[j] = cg_exp2_negative(e, cg_fsub(e, score, s->maximum[j]));
        sum[j] = cg_fadd(e, sum[j], weight[j]);
        cg_store(e, weight[j], address, vector_bytes(e));
    }
}

/* Channels of the tile that weighs: a third of a tile's accumulators, so that registers are left for exponentials. */
static int weighing_channels(const cg_emitter *e, const stream *s)
{
    int64_t channels = e->target->tile_rows * e->target->tile_vectors / (3 * s->vectors);
    if (channels > s->head->k->value_dim) channels = s->head->k->value_dim;
    return (int)(channels < CG_MAX_TILE_ROWS ? channels : CG_MAX_TILE_ROWS);
}

/* The first tile of channels also weighs the keys: the exponentials' work beside multiplication runs in the shadow of
 * the tile's, where a loop of its own would wait for it. */
static void emit_weighing_tile(cg_emitter *e, const stream *s, int channels, LLVMValueRef *sum)
{
    cg_tile tile = {.rows = channels, .vectors = s->vectors};
    LLVMValueRef channel[CG_MAX_TILE_ROWS], carried[CG_MAX_CARRIED], weight[CG_MAX_TILE_VECTORS];
    int count = tile.rows * tile.vectors;
    for (int i = 0; i < channels; i++) channel[i] = cg_int(e, i);
    start_context(e, s, channel, &tile);
    for (int i = 0; i < count; i++) carried[i] = tile.acc[i];
    for (int j = 0; j < s->vectors; j++) carried[count + j] = sum[j];
    cg_loop key;
    cg_loop_begin(e, &key, cg_int(e, 0), s->key_count, 1, count + s->vectors, carried, false);
    LLVMValueRef value = cg_at(e, e->f32, value_rows(e, s), cg_imul(e, key.index, s->head->value_stride));
    LLVMValueRef *new_sum = carried + count;
    for (int j = 0; j < s->vectors; j++) new_sum[j] = key.carried[count + j];
    weigh_key(e, s, key.index, weight, new_sum);
    for (int i = 0; i < channels; i++) {
        LLVMValueRef scalar = cg_load(e, e->f32, cg_at(e, e->f32, value, channel[i]), 0);
        LLVMValueRef splat = cg_splat(e, scalar, e->target->lanes);
        for (int j = 0; j < s->vectors; j++) {
            int at = i * s->vectors + j;
            carried[at] = cg_fma(e, splat, weight[j], key.carried[at]);
        }
    }
    cg_loop_end(e, &key, carried);
    for (int i = 0; i < count; i++) tile.acc[i] = key.out[i];
    for (int j = 0; j < s->vectors; j++) sum[j] = key.out[count + j];
    store_tile(e, s, channel, &tile);
}

/* Adds the block's keys, weighed, to a tile of the other channels. */
static void emit_context_tile(cg_emitter *e, void *context, const cg_rows *rows, LLVMValueRef *carried)
{
    (void)carried;
    const stream *s = context;
    LLVMValueRef channel[CG_MAX_TILE_ROWS], skipped = cg_int(e, weighing_channels(e, s));
    cg_tile tile = {.rows = rows->count, .vectors = s->vectors};
    cg_tile_operands operands = {.row_step = s->head->value_stride, .panel = s->weights, .panel_step = s->width};
    LLVMValueRef first = cg_at(e, e->f32, value_rows(e, s), skipped);
    for (int i = 0; i < rows->count; i++) {
        operands.row[i] = cg_row_pointer(e, rows, i, first, cg_int(e, 1));
        channel[i] = cg_iadd(e, rows->index[i], skipped);
    }
    start_context(e, s, channel, &tile);
    cg_tile_accumulate(e, &tile, &operands, s->key_count, NULL);
    store_tile(e, s, channel, &tile);
}

/* `state` is the maxima and the sums so far, a vector for each vector of queries. */
static void emit_key_block(cg_emitter *e, stream *s, LLVMValueRef *state)
{
    LLVMValueRef *sum = state + s->vectors;
    for (int j = 0; j < s->vectors; j++) s->maximum[j] = state[j];
    if (mask_varies_by_query(s)) load_mask(e, s);
    cg_for_rows(e, s->key_count, s->maximum, s->vectors, emit_score_tile, s);
    for (int j = 0; j < s->vectors; j++) {
        s->rescale[j] = cg_exp2_negative(e, cg_fsub(e, state[j], s->maximum[j]));
        state[j] = s->maximum[j];
        sum[j] = cg_fmul(e, sum[j], s->rescale[j]);
    }
    int channels = weighing_channels(e, s);
    int64_t others = s->head->k->value_dim - channels;
    emit_weighing_tile(e, s, channels, sum);
    if (others > 0) cg_for_rows(e, cg_int(e, others), NULL, 0, emit_context_tile, s);
}

/* ---- One block of queries --------------------------------------------------------------------------------------- */

static void clear_context(cg_emitter *e, const stream *s)
{
    cg_loop loop;
    LLVMValueRef zero = cg_const(e, vector_type(e), 0);
    cg_loop_begin(e, &loop, cg_int(e, 0), cg_int(e, s->head->k->value_dim), 1, 0, NULL, false);
    for (int j = 0; j < s->vectors; j++)
        cg_store(e, zero, block_pointer(e, s, s->context, loop.index, j), vector_bytes(e));
    cg_loop_end(e, &loop, NULL);
}

/* How many keys the block's last query may see: later ones need not be looked at. */
static LLVMValueRef visible_keys(cg_emitter *e, const stream *s)
{
    if (!s->head->k->causal) return s->head->keys;
    LLVMValueRef end = cg_imin(e, cg_iadd(e, s->first_query, cg_int(e, s->width)), s->head->queries);
    return cg_iadd(e, end, cg_isub(e, s->head->keys, s->head->queries));
}

static void emit_query_block(cg_emitter *e, stream *s, LLVMValueRef first_query)
{
    LLVMValueRef state[2 * CG_MAX_TILE_VECTORS];
    int vectors = s->vectors;
    s->first_query = first_query;
    load_queries(e, s);
    clear_context(e, s);
    for (int j = 0; j < vectors; j++) {
        state[j] = cg_const(e, vector_type(e), cg_no_maximum);
        state[vectors + j] = cg_const(e, vector_type(e), 0);
    }
    cg_loop block;
    LLVMValueRef visible = visible_keys(e, s);
    cg_loop_begin(e, &block, cg_int(e, 0), visible, KEYS, 2 * vectors, state, true);
    s->first_key = block.index;
    s->key_count = cg_imin(e, cg_isub(e, visible, block.index), cg_int(e, KEYS));
    for (int j = 0; j < 2 * vectors; j++) state[j] = block.carried[j];
    emit_key_block(e, s, state);
    cg_loop_end(e, &block, state);

    LLVMValueRef one = cg_const(e, vector_type(e), 1), zero = cg_const(e, vector_type(e), 0);
    LLVMValueRef nothing = cg_const(e, vector_type(e), cg_no_maximum);
    for (int j = 0; j < vectors; j++) {
        LLVMValueRef seen = LLVMBuildFCmp(e->builder, LLVMRealUGT, block.out[j], nothing, "");
        LLVMValueRef factor = cg_select(e, seen, cg_fdiv(e, one, block.out[vectors + j]), zero);
        cg_store(e, factor, block_pointer(e, s, s->weights, cg_int(e, 0), j), vector_bytes(e));
    }
    store_context(e, s, s->weights);
}

void cg_attention_stream(cg_emitter *e, const attention_head *head, LLVMValueRef scratch)
{
    int lanes = e->target->lanes;
    stream s = {.head = head, .last_query = cg_isub(e, head->queries, cg_int(e, 1)), .q_turned = scratch};
    LLVMValueRef done = head->share.from;
    /* Blocks as wide as a tile, then, for what is left of the queries, one of half and one of a quarter of that. */
    for (int vectors = e->target->tile_vectors; vectors >= 1; vectors /= 2) {
        s.vectors = vectors;
        s.width = (int64_t)vectors * lanes;
        s.weights = cg_at(e, e->f32, scratch, cg_int(e, head->k->dim * s.width));
        s.context = cg_at(e, e->f32, s.weights, cg_int(e, KEYS * s.width));
        /* As long as narrower blocks would not cover the rest with fewer lanes. */
        LLVMValueRef end = cg_isub(e, head->share.to, cg_int(e, s.width - lanes));
        cg_loop block;
        cg_loop_begin(e, &block, done, end, s.width, 1, &done, true);
        emit_query_block(e, &s, block.index);
        LLVMValueRef next = cg_iadd(e, block.index, cg_int(e, s.width));
        cg_loop_end(e, &block, &next);
        done = block.out[0];
    }
}

int64_t cg_attention_stream_grain(const cg_cpu_target *target)
{
    return (int64_t)target->tile_vectors * target->lanes;
}

int64_t cg_attention_stream_scratch_bytes(const pl_attention *k, const cg_cpu_target *target)
{
    return (k->dim + KEYS + k->value_dim) * target->tile_vectors * target->lanes * 4;
}
