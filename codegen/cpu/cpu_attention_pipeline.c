/* cpu_attention_pipeline.c — see cpu_attention.h.
 *
 * An item is 16 queries by 32 keys. The items of a slice form one sequence: all keys of the first queries, then all
 * keys of the next. Iteration i of the only loop does three things, whose instructions alternate:
 *
 *   scores   of item i              tile products, stored in slot i of a ring
 *   weights  of item i - LAG        2^score as bf16, from the ring to the ring, summed per lane
 *   contexts of item i - 2 LAG      tile products; the sums stay in tiles for all keys of a group of queries
 *
 * Therefore vector instructions run in the shadow of tile products, and a score is stored once and loaded once. Two
 * iterations lie between a store and its load, because the measured latency of product, store and load is longer than
 * one (the lag of one cost 10 % more time in a prototype on Sapphire Rapids).
 *
 * A maximum would need all scores of a query before the first weight. The pipeline subtracts none, because f32 and bf16
 * have the same exponents: 2^score is as exact at 2^50 as at 1. The sums show afterwards whether this was valid. A
 * group with a sum outside SMALLEST … GREATEST, or with a context that is NaN or infinite, is reported as unsafe, and
 * the caller computes it again with maxima. This covers masked rows, NaN and infinity, whose definitions are then in
 * one place. For example, logits of ±25 are safe: 2^(25 log2(e)) is 2^36.
 *
 * The sum adds the weights after their truncation to bf16, so that the weights of the contexts add up to one.
 */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/real_functions.h"

#include <assert.h>
#include <math.h>

enum { LAG = 2, SLOTS = 2 * LAG, QUERIES = CG_AMX_ROWS, KEYS = CG_AMX_STEP, PAIRS = KEYS / 2 };
enum { MAX_CONTEXT_TILES = 4, SCORES = MAX_CONTEXT_TILES, LEFT = SCORES + 2, RIGHT = LEFT + 1 };
/* A slot: scores [key, query], weights as pairs of keys, the queries' sums so far, and the item. */
enum {
    ROW = CG_AMX_ROW_BYTES,
    WEIGHTS_AT = KEYS * ROW,
    SUM_AT = WEIGHTS_AT + PAIRS * ROW,
    ITEM_AT = SUM_AT + ROW,
    SLOT_BYTES = ITEM_AT + ROW
};
static const double SMALLEST = 0x1p-40, GREATEST = 0x1p60;
static const double NEVER = -1000; /* a score from here on has the weight 0 beside any safe sum */

static_assert((int)RIGHT < (int)CG_AMX_TILES, "tiles");

bool cg_attention_is_pipelined(const pl_attention *k)
{
    return k->value_dim <= MAX_CONTEXT_TILES * CG_AMX_ROWS && !(k->softcap > 0) && k->mask_count <= 1 &&
           (!(k->replaces[0] < 0) || k->replaces[0] <= NEVER);
}

static int64_t query_words(const pl_attention *k) { return (k->dim + KEYS - 1) / KEYS * (KEYS / 2) * QUERIES; }

static int64_t most(ir_dim dim, const pl_plan *plan, int64_t unit)
{
    return (ir_dim_most(dim, 1, plan->max_length) + unit - 1) / unit * unit;
}

static int64_t mask_bytes_per_key(const pl_attention *k) { return 4 * (cg_mask_varies_by_query(k, 0) ? QUERIES : 1); }

int64_t cg_pipeline_bytes(const pl_attention *k)
{
    return SLOTS * SLOT_BYTES + 4 * (query_words(k) + k->value_dim * QUERIES + QUERIES);
}

int64_t cg_pipeline_length_bytes(const pl_plan *plan, const pl_attention *k)
{
    return most(k->keys, plan, KEYS) * mask_bytes_per_key(k) + 4 * (most(k->queries, plan, QUERIES) / QUERIES);
}

LLVMValueRef cg_pipeline_group(cg_emitter *e, const cg_attention_head *head, LLVMValueRef query)
{
    return LLVMBuildUDiv(e->builder, cg_isub(e, query, head->slice.from), cg_int(e, QUERIES), "");
}

typedef struct pipeline {
    cg_stream stream; /* a query group; the first query is the emitted stage's */
    const pl_attention *k;
    const cg_amx_head *packed;
    LLVMValueRef ring, factor, mask, unsafe;
    LLVMValueRef keys, end; /* key count; end of the query slice */
} pipeline;

typedef struct item {
    LLVMValueRef slot, query, key; /* the first of each */
} item;

static LLVMValueRef slot_at(cg_emitter *e, const pipeline *p, LLVMValueRef index)
{
    LLVMValueRef number = LLVMBuildAnd(e->builder, index, cg_int(e, SLOTS - 1), "");
    return cg_at(e, e->i8, p->ring, cg_imul(e, number, cg_int(e, SLOT_BYTES)));
}

static void store_item(cg_emitter *e, const item *it)
{
    cg_store(e, it->query, cg_at(e, e->i8, it->slot, cg_int(e, ITEM_AT)), 0);
    cg_store(e, it->key, cg_at(e, e->i8, it->slot, cg_int(e, ITEM_AT + 8)), 0);
}

static item load_item(cg_emitter *e, const pipeline *p, LLVMValueRef index, int lag)
{
    item it = {.slot = slot_at(e, p, cg_isub(e, index, cg_int(e, lag)))};
    it.query = cg_load(e, e->i64, cg_at(e, e->i8, it.slot, cg_int(e, ITEM_AT)), 0);
    it.key = cg_load(e, e->i64, cg_at(e, e->i8, it.slot, cg_int(e, ITEM_AT + 8)), 0);
    return it;
}

static LLVMValueRef is_first(cg_emitter *e, const item *it)
{
    return LLVMBuildICmp(e->builder, LLVMIntEQ, it->key, cg_int(e, 0), "");
}

static LLVMValueRef is_last(cg_emitter *e, const pipeline *p, const item *it)
{
    LLVMValueRef next_value = cg_iadd(e, it->key, cg_int(e, KEYS));
    return LLVMBuildICmp(e->builder, LLVMIntSGE, next_value, cg_visible_keys(e, p->stream.head, it->query, QUERIES),
                         "");
}

/* A scaled mask element. One that replaces the score becomes -inf, because its weight is zero anyway. */
static LLVMValueRef replace(cg_emitter *e, const pipeline *p, LLVMValueRef scaled)
{
    if (!(p->k->replaces[0] < 0)) return scaled;
    LLVMTypeRef type = LLVMTypeOf(scaled);
    LLVMValueRef limit = cg_scale_mask(e, cg_const(e, type, p->k->replaces[0]));
    LLVMValueRef replaces = LLVMBuildFCmp(e->builder, LLVMRealOLE, scaled, limit, "");
    return cg_select(e, replaces, cg_const(e, type, -INFINITY), scaled);
}

static void store_key_mask(cg_emitter *e, const pipeline *p, LLVMValueRef key, int lanes)
{
    LLVMTypeRef type = cg_vector(e, e->f32, lanes);
    LLVMValueRef mask = cg_const(e, type, 0);
    if (p->k->mask_count > 0) {
        LLVMValueRef source = cg_at(e, e->f32, p->stream.head->mask[0], key);
        mask = replace(e, p, cg_scale_mask(e, cg_load(e, type, source, 0)));
    }
    cg_store(e, mask, cg_at(e, e->f32, p->mask, key), 0);
}

/* Computes the mask of all keys once per head: a number per key, and -inf after the last key. */
static void fill_key_mask(cg_emitter *e, const pipeline *p)
{
    LLVMValueRef whole = cg_round_down(e, p->keys, QUERIES);
    LLVMValueRef end = cg_round_down(e, cg_iadd(e, p->keys, cg_int(e, KEYS - 1)), KEYS);
    CG_FOR (e, key, cg_int(e, 0), whole, QUERIES) store_key_mask(e, p, key.index, QUERIES);
    CG_FOR (e, key, whole, p->keys, 1) store_key_mask(e, p, key.index, 1);
    CG_FOR (e, key, p->keys, end, 1)
        cg_store(e, cg_const(e, e->f32, -INFINITY), cg_at(e, e->f32, p->mask, key.index), 0);
}

/* Computes a query group's mask: a row of lanes per key, and -inf after the last key. */
static void fill_query_mask(cg_emitter *e, pipeline *p, const item *it)
{
    LLVMTypeRef type = cg_lanes_type(e);
    LLVMValueRef end = cg_round_down(e, cg_iadd(e, p->keys, cg_int(e, KEYS - 1)), KEYS);
    p->stream.first_query = it->query;
    cg_load_mask(e, &p->stream, 0);
    if (p->k->replaces[0] < 0) {
        CG_FOR_NONEMPTY (e, key, cg_int(e, 0), p->keys, 1) {
            LLVMValueRef address = cg_at(e, type, p->mask, key.index);
            cg_store(e, replace(e, p, cg_load(e, type, address, ROW)), address, ROW);
        }
    }
    CG_FOR (e, key, p->keys, end, 1) cg_store(e, cg_const(e, type, -INFINITY), cg_at(e, type, p->mask, key.index), ROW);
}

typedef struct weights {
    const pipeline *p;
    item it;
    LLVMValueRef mask;    /* of the item's first key */
    LLVMValueRef visible; /* causal: a lane's last key, counted from the item's first, i32 */
    LLVMValueRef sum[2];
    int done; /* pairs */
} weights;

static weights begin_weights(cg_emitter *e, pipeline *p, LLVMValueRef index, LLVMValueRef sum)
{
    weights w = {.p = p, .it = load_item(e, p, index, LAG)};
    LLVMTypeRef type = cg_lanes_type(e);
    LLVMValueRef zero = cg_const(e, type, 0), first = is_first(e, &w.it);
    if (cg_mask_varies_by_query(p->k, 0)) {
        CG_IF (e, first) fill_query_mask(e, p, &w.it);
        w.mask = cg_at(e, type, p->mask, w.it.key);
    } else {
        w.mask = cg_at(e, e->f32, p->mask, w.it.key);
    }
    if (p->k->causal) {
        LLVMValueRef last_value = cg_iadd(e, w.it.query, cg_isub(e, p->keys, p->stream.head->queries));
        last_value = LLVMBuildTrunc(e->builder, cg_isub(e, last_value, w.it.key), e->i32, "");
        w.visible = cg_iadd(e, cg_splat(e, last_value, QUERIES), cg_iota(e, e->i32, QUERIES));
    }
    w.sum[0] = cg_select(e, first, zero, sum);
    w.sum[1] = zero;
    return w;
}

static LLVMValueRef weight_of(cg_emitter *e, weights *w, int key)
{
    const pipeline *p = w->p;
    LLVMTypeRef type = cg_lanes_type(e), words = cg_with_element(type, e->i32);
    LLVMValueRef product = cg_load(e, type, cg_at(e, type, w->it.slot, cg_int(e, key)), ROW), mask;
    if (cg_mask_varies_by_query(p->k, 0))
        mask = cg_load(e, type, cg_at(e, type, w->mask, cg_int(e, key)), ROW);
    else
        mask = cg_splat(e, cg_load(e, e->f32, cg_at(e, e->f32, w->mask, cg_int(e, key)), 0), QUERIES);
    LLVMValueRef score = cg_fma(e, product, cg_stream_scale(e, &p->stream), mask);
    LLVMValueRef weight = cg_exp2_before_truncation(e, score);
    if (p->k->causal) {
        LLVMValueRef is_visible = LLVMBuildICmp(e->builder, LLVMIntSGE, w->visible, cg_const_int(words, key), "");
        weight = cg_select(e, is_visible, weight, cg_const(e, type, 0));
    }
    weight = cg_truncate_weight(e, weight);
    w->sum[key % 2] = cg_fadd(e, w->sum[key % 2], weight);
    return weight;
}

/* A value that exists at this point of the sequence of tile instructions. Without it, LLVM's scheduler would move the
 * additions behind the last product and keep all weights on the stack. The assembly is empty. */
static LLVMValueRef settle(cg_emitter *e, LLVMValueRef value)
{
    if (e->target->use_generic_vectors) return value;
    LLVMTypeRef type = LLVMTypeOf(value), function = LLVMFunctionType(type, &type, 1, false);
    static const char constraints[] = "=v,0";
    LLVMValueRef empty = LLVMGetInlineAsm(function, "", 0, constraints, sizeof constraints - 1, true, false,
                                          LLVMInlineAsmDialectATT, false);
    return LLVMBuildCall2(e->builder, function, empty, &value, 1, "");
}

/* Computes weights for key pairs up to `end`. */
static void emit_weights(cg_emitter *e, weights *w, int end)
{
    for (; w->done < end; w->done++) {
        LLVMValueRef row = cg_at(e, e->i8, w->it.slot, cg_int(e, WEIGHTS_AT + w->done * ROW));
        LLVMValueRef low = weight_of(e, w, 2 * w->done), high = weight_of(e, w, 2 * w->done + 1);
        cg_store(e, cg_pair_weights(e, low, high), row, ROW);
    }
    for (int i = 0; i < 2; i++) w->sum[i] = settle(e, w->sum[i]);
}

static LLVMValueRef end_weights(cg_emitter *e, const weights *w)
{
    LLVMValueRef sum = cg_fadd(e, w->sum[0], w->sum[1]);
    cg_store(e, sum, cg_at(e, e->i8, w->it.slot, cg_int(e, SUM_AT)), ROW);
    return sum;
}

static int context_tiles(const pipeline *p) { return (int)(p->k->value_dim / CG_AMX_ROWS); }

/* Emits the item's products, and between them the weights of the earlier item. */
static void emit_products(cg_emitter *e, const pipeline *p, const item *scores, const item *contexts, weights *w)
{
    int64_t key_bytes = p->packed->key_bytes;
    int steps = (int)(key_bytes / ROW), total = 2 * steps + context_tiles(p), done = 0;
    LLVMValueRef row = cg_int(e, ROW), stride = cg_int(e, key_bytes);
    LLVMValueRef keys = cg_at(e, e->i8, p->packed->keys, cg_imul(e, scores->key, stride));
    LLVMValueRef values = cg_at(e, e->i8, p->packed->values, cg_imul(e, contexts->key, cg_int(e, 2)));
    for (int half = 0; half < 2; half++) cg_amx_zero(e, SCORES + half);
    for (int c = 0; c < steps; c++) {
        cg_amx_load(e, RIGHT, cg_at(e, e->i8, p->stream.q_transposed, cg_int(e, (int64_t)c * CG_AMX_ROWS * ROW)), row);
        for (int half = 0; half < 2; half++) {
            int64_t offset = half * CG_AMX_ROWS * key_bytes + (int64_t)c * ROW;
            cg_amx_load(e, LEFT, cg_at(e, e->i8, keys, cg_int(e, offset)), stride);
            cg_amx_dot(e, SCORES + half, LEFT, RIGHT);
            emit_weights(e, w, PAIRS * ++done / total);
        }
    }
    cg_amx_load(e, RIGHT, cg_at(e, e->i8, contexts->slot, cg_int(e, WEIGHTS_AT)), row);
    for (int t = 0; t < context_tiles(p); t++) {
        LLVMValueRef channel = cg_imul(e, p->packed->value_bytes, cg_int(e, (int64_t)t * CG_AMX_ROWS));
        cg_amx_load(e, LEFT, cg_at(e, e->i8, values, channel), p->packed->value_bytes);
        cg_amx_dot(e, t, LEFT, RIGHT);
        if (t == 0) cg_amx_store(e, SCORES, scores->slot, row);
        emit_weights(e, w, PAIRS * ++done / total);
    }
    cg_amx_store(e, SCORES + 1, cg_at(e, e->i8, scores->slot, cg_int(e, CG_AMX_ROWS * ROW)), row);
}

static void begin_contexts(cg_emitter *e, const pipeline *p, const item *it)
{
    CG_IF (e, is_first(e, it)) {
        for (int t = 0; t < context_tiles(p); t++) cg_amx_zero(e, t);
    }
}

/* Checks a finished group, divides by the sums, and stores the result rows. */
static void finish_group(cg_emitter *e, pipeline *p, const item *it)
{
    LLVMTypeRef type = cg_lanes_type(e);
    LLVMValueRef zero = cg_const(e, type, 0), context = p->stream.context;
    for (int t = 0; t < context_tiles(p); t++)
        cg_amx_store(e, t, cg_at(e, e->i8, context, cg_int(e, (int64_t)t * CG_AMX_ROWS * ROW)), cg_int(e, ROW));
    cg_loop row;
    cg_loop_begin(e, &row, cg_int(e, 0), cg_int(e, p->k->value_dim), 1, 1, &zero, false);
    LLVMValueRef value = cg_load(e, type, cg_at(e, type, context, row.index), ROW);
    LLVMValueRef check = cg_fma(e, value, zero, row.carried[0]); /* 0, or NaN if the value is NaN or infinite */
    cg_loop_end(e, &row, &check);
    LLVMValueRef sum = cg_load(e, type, cg_at(e, e->i8, it->slot, cg_int(e, SUM_AT)), ROW);
    LLVMValueRef low = LLVMBuildFCmp(e->builder, LLVMRealULT, sum, cg_const(e, type, SMALLEST), "");
    LLVMValueRef high = LLVMBuildFCmp(e->builder, LLVMRealUGT, sum, cg_const(e, type, GREATEST), "");
    LLVMValueRef wrong = LLVMBuildFCmp(e->builder, LLVMRealUNE, row.out[0], zero, "");
    wrong = LLVMBuildOr(e->builder, wrong, LLVMBuildOr(e->builder, low, high, ""), "");
    LLVMValueRef bits = LLVMBuildBitCast(e->builder, wrong, e->i16, "");
    LLVMValueRef group = cg_pipeline_group(e, p->stream.head, it->query);
    LLVMValueRef mask = LLVMBuildZExt(e->builder, bits, e->i32, "");
    cg_store(e, mask, cg_at(e, e->i32, p->unsafe, group), 0);
    cg_store(e, cg_fdiv(e, cg_const(e, type, 1), sum), p->factor, ROW);
    p->stream.first_query = it->query;
    cg_store_context(e, &p->stream, p->factor);
}

static void load_queries(cg_emitter *e, pipeline *p, const item *it)
{
    CG_IF (e, is_first(e, it)) {
        p->stream.first_query = it->query;
        cg_load_queries(e, &p->stream);
    }
}

/* The next item; after the last one, the last one again. */
static void next_item(cg_emitter *e, const pipeline *p, const item *it, LLVMValueRef *out_query, LLVMValueRef *out_key)
{
    LLVMValueRef ends = is_last(e, p, it), next_value = cg_iadd(e, it->query, cg_int(e, QUERIES));
    LLVMValueRef has_next = LLVMBuildICmp(e->builder, LLVMIntSLT, next_value, p->end, "");
    LLVMValueRef query = cg_select(e, has_next, next_value, it->query);
    LLVMValueRef key = cg_select(e, has_next, cg_int(e, 0), it->key);
    *out_query = cg_select(e, ends, query, it->query);
    *out_key = cg_select(e, ends, key, cg_iadd(e, it->key, cg_int(e, KEYS)));
}

static LLVMValueRef item_count(cg_emitter *e, const pipeline *p, LLVMValueRef first)
{
    LLVMValueRef zero = cg_int(e, 0), one = cg_int(e, 1);
    cg_loop query;
    cg_loop_begin(e, &query, first, p->end, QUERIES, 1, &zero, false);
    LLVMValueRef keys = cg_iadd(e, cg_visible_keys(e, p->stream.head, query.index, QUERIES), cg_int(e, KEYS - 1));
    LLVMValueRef steps = cg_imax(e, LLVMBuildAShr(e->builder, keys, cg_int(e, 5), ""), one);
    LLVMValueRef count = cg_iadd(e, query.carried[0], steps);
    cg_loop_end(e, &query, &count);
    return query.out[0];
}

/* In the first and last iterations some stages have no item. They compute on leftovers in the ring, and the results are
 * not used. */
static void emit_items(cg_emitter *e, pipeline *p)
{
    LLVMValueRef first = p->stream.head->slice.from, last_value;
    LLVMValueRef state[] = {first, cg_int(e, 0), cg_const(e, cg_lanes_type(e), 0)};
    last_value = cg_iadd(e, item_count(e, p, first), cg_int(e, 2 * LAG));
    for (int i = 0; i < SLOTS; i++) {
        item it = {slot_at(e, p, cg_int(e, i)), first, cg_int(e, 0)};
        store_item(e, &it);
    }
    cg_loop loop;
    cg_loop_begin(e, &loop, cg_int(e, 0), last_value, 1, 3, state, false);
    item contexts = load_item(e, p, loop.index, 2 * LAG);
    item scores = {slot_at(e, p, loop.index), loop.carried[0], loop.carried[1]};
    load_queries(e, p, &scores);
    begin_contexts(e, p, &contexts);
    weights w = begin_weights(e, p, loop.index, loop.carried[2]);
    emit_products(e, p, &scores, &contexts, &w);
    state[2] = end_weights(e, &w); /* before the branch, because LLVM would move the additions behind it */
    LLVMValueRef is_item = LLVMBuildICmp(e->builder, LLVMIntSGE, loop.index, cg_int(e, 2 * LAG), "");
    CG_IF (e, LLVMBuildAnd(e->builder, is_item, is_last(e, p, &contexts), "")) finish_group(e, p, &contexts);
    store_item(e, &scores);
    next_item(e, p, &scores, &state[0], &state[1]);
    cg_loop_end(e, &loop, state);
}

LLVMValueRef cg_attention_pipeline(cg_emitter *e, const cg_attention_head *head, const cg_amx_head *packed,
                                   LLVMValueRef scratch)
{
    const pl_attention *k = head->k;
    pipeline p = {.k = k, .packed = packed, .ring = scratch, .keys = head->keys, .end = head->slice.to};
    p.stream =
        (cg_stream){.head = head, .vectors = 1, .width = QUERIES, .first_key = cg_int(e, 0), .key_count = head->keys};
    p.stream.unit = cg_log2_e;
    p.stream.last_query = cg_isub(e, head->queries, cg_int(e, 1));
    p.stream.q_transposed = cg_at(e, e->i8, scratch, cg_int(e, SLOTS * SLOT_BYTES));
    p.stream.context = cg_at(e, e->f32, p.stream.q_transposed, cg_int(e, query_words(k)));
    p.factor = cg_at(e, e->f32, p.stream.context, cg_int(e, k->value_dim * QUERIES));
    p.mask = p.stream.mask[0] = packed->end;
    LLVMValueRef steps = cg_round_down(e, cg_iadd(e, p.keys, cg_int(e, KEYS - 1)), KEYS);
    p.unsafe = cg_at(e, e->i8, packed->end, cg_imul(e, steps, cg_int(e, mask_bytes_per_key(k))));
    LLVMValueRef has_keys = LLVMBuildICmp(e->builder, LLVMIntSGT, head->keys, cg_int(e, 0), "");
    LLVMValueRef has_queries = LLVMBuildICmp(e->builder, LLVMIntSLT, head->slice.from, p.end, "");
    CG_FOR (e, group, head->slice.from, p.end, QUERIES) {
        LLVMValueRef number = cg_pipeline_group(e, head, group.index);
        cg_store(e, cg_const_int(e->i32, 1), cg_at(e, e->i32, p.unsafe, number), 0);
    }
    CG_IF (e, LLVMBuildAnd(e->builder, has_keys, has_queries, "")) {
        if (!cg_mask_varies_by_query(k, 0)) fill_key_mask(e, &p);
        int64_t rows = query_words(k) / QUERIES;
        for (int64_t row = k->dim / 2; row < rows; row++)
            cg_store(e, cg_const(e, cg_lanes_type(e), 0),
                     cg_at(e, cg_lanes_type(e), p.stream.q_transposed, cg_int(e, row)), ROW);
        emit_items(e, &p);
    }
    return p.unsafe;
}
