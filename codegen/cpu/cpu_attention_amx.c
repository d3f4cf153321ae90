/* cpu_attention_amx.c — the products of streaming attention with matrix tiles: see cpu_attention.h.
 *
 * Scores are keys × queries and contexts channels × queries, as in the stream's own tiles. Left factors are the keys,
 * row by row, and the transposed values, so a row is one channel of consecutive keys. Both are packed in scratch once
 * per head, in whole tiles, so every tile load stays inside a buffer. Right factors come from the vector code: the
 * transposed queries' pairs of channels, and the weights' pairs of keys. */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

#include <assert.h>

enum { SIDE = 2, LEFT = SIDE * SIDE, RIGHT = LEFT + SIDE, QUERIES = CG_AMX_ROW_BYTES / 4, CHUNK = 16 };

static_assert(CG_AMX_STEP == 2 * CG_AMX_BF16, "channels or keys of a tile");

static int64_t round_up(int64_t channels) { return (channels + CG_AMX_STEP - 1) / CG_AMX_STEP * CG_AMX_STEP; }

static LLVMValueRef keys_in_steps(cg_emitter *e, const cg_attention_head *head)
{
    return cg_round_down(e, cg_iadd(e, head->keys, cg_int(e, CG_AMX_STEP - 1)), CG_AMX_STEP);
}

int64_t cg_amx_head_bytes(const pl_plan *plan, const pl_attention *k)
{
    return 2 * round_up(ir_dim_most(k->keys, 1, plan->max_length)) * (k->value_dim + round_up(k->dim));
}

/* Packs rows in whole channel steps, with zeros after the head's channels and keys. */
static void pack_keys(cg_emitter *e, const cg_attention_head *head, LLVMValueRef target, int64_t row_bytes)
{
    const pl_attention *k = head->k;
    LLVMTypeRef stored = cg_stored_type(e, head->plan, k->k.buffer), halves = cg_vector(e, e->i16, CHUNK);
    CG_FOR (e, key, cg_int(e, 0), head->keys, 1) {
        LLVMValueRef source = cg_at(e, stored, head->key, cg_imul(e, key.index, head->key_stride));
        LLVMValueRef row = cg_at(e, e->i8, target, cg_imul(e, key.index, cg_int(e, row_bytes)));
        for (int64_t c = 0; c < round_up(k->dim); c += CHUNK) {
            LLVMValueRef value = cg_const_int(halves, 0), address = cg_int(e, c);
            if (c < k->dim)
                value = cg_f32_to_bf16(
                    e, cg_load_elements(e, head->plan, k->k.buffer, cg_at(e, stored, source, address), CHUNK));
            cg_store(e, value, cg_at(e, e->i16, row, address), 2 * CHUNK);
        }
    }
    CG_FOR (e, key, head->keys, keys_in_steps(e, head), 1) {
        for (int64_t c = 0; c < round_up(k->dim); c += CHUNK)
            cg_store(e, cg_const_int(halves, 0),
                     cg_at(e, e->i8, target, cg_iadd(e, cg_imul(e, key.index, cg_int(e, row_bytes)), cg_int(e, 2 * c))),
                     2 * CHUNK);
    }
}

/* Sixteen channels from a key's value, each in a word's low half; zeros if the key is after the last. */
static LLVMValueRef value_or_nothing(cg_emitter *e, const cg_attention_head *head, LLVMValueRef key,
                                     LLVMValueRef channel)
{
    LLVMValueRef last_value = cg_isub(e, head->keys, cg_int(e, 1));
    LLVMValueRef is_key = LLVMBuildICmp(e->builder, LLVMIntSLE, key, last_value, "");
    LLVMValueRef words = cg_value_bf16(e, head, cg_imin(e, key, last_value), channel);
    return cg_select(e, is_key, words, cg_const_int(LLVMTypeOf(words), 0));
}

/* Transposes sixteen channels for a step of keys; key pairs share a word. */
static void turn_values(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key, LLVMValueRef channel,
                        LLVMValueRef target, LLVMValueRef row_bytes)
{
    LLVMValueRef rows[CG_AMX_BF16];
    LLVMTypeRef floats = cg_vector(e, e->f32, CHUNK);
    for (int i = 0; i < CG_AMX_BF16; i++) {
        LLVMValueRef key = cg_iadd(e, first_key, cg_int(e, 2 * i));
        LLVMValueRef low = value_or_nothing(e, head, key, channel);
        LLVMValueRef high = value_or_nothing(e, head, cg_iadd(e, key, cg_int(e, 1)), channel);
        high = LLVMBuildShl(e->builder, high, cg_const_int(LLVMTypeOf(high), 16), "");
        rows[i] = LLVMBuildBitCast(e->builder, LLVMBuildOr(e->builder, low, high, ""), floats, "");
    }
    cg_transpose(e, rows);
    LLVMValueRef column = cg_at(e, e->i8, target, cg_imul(e, first_key, cg_int(e, 2)));
    for (int i = 0; i < CHUNK; i++) {
        LLVMValueRef row = cg_imul(e, cg_iadd(e, channel, cg_int(e, i)), row_bytes);
        cg_store(e, rows[i], cg_at(e, e->i8, column, row), CG_AMX_ROW_BYTES);
    }
}

cg_amx_head cg_amx_pack_head(cg_emitter *e, const cg_attention_head *head, LLVMValueRef target)
{
    const pl_attention *k = head->k;
    LLVMValueRef steps = keys_in_steps(e, head);
    cg_amx_head packed = {
        .values = target, .value_bytes = cg_imul(e, steps, cg_int(e, 2)), .key_bytes = 2 * round_up(k->dim)};
    packed.keys = cg_at(e, e->i8, target, cg_imul(e, packed.value_bytes, cg_int(e, k->value_dim)));
    packed.end = cg_at(e, e->i8, packed.keys, cg_imul(e, steps, cg_int(e, packed.key_bytes)));
    pack_keys(e, head, packed.keys, packed.key_bytes);
    CG_FOR (e, key, cg_int(e, 0), head->keys, CG_AMX_STEP)
        CG_FOR_NONEMPTY (e, channel, cg_int(e, 0), cg_int(e, k->value_dim), CHUNK)
            turn_values(e, head, key.index, channel.index, packed.values, packed.value_bytes);
    return packed;
}

/* Up to two by two tiles of rows and queries, at a row and a query in a scratch matrix of words. */
typedef struct tiles {
    int rows, columns;
    LLVMValueRef at, bytes; /* address of the first sum; bytes between rows */
} tiles;

static LLVMValueRef sums_pointer(cg_emitter *e, const tiles *t, int i, int j)
{
    LLVMValueRef row = cg_imul(e, t->bytes, cg_int(e, (int64_t)i * CG_AMX_ROWS));
    return cg_at(e, e->f32, cg_at(e, e->i8, t->at, row), cg_int(e, (int64_t)j * QUERIES));
}

/* sums += left × right. The second row tile is CG_AMX_ROWS rows of `left_bytes` later, the second query tile QUERIES
 * words later. */
static void add_matmul(cg_emitter *e, const tiles *t, LLVMValueRef left, LLVMValueRef left_bytes, LLVMValueRef right)
{
    for (int i = 0; i < t->rows; i++) {
        LLVMValueRef row = cg_imul(e, left_bytes, cg_int(e, (int64_t)i * CG_AMX_ROWS));
        cg_amx_load(e, LEFT + i, cg_at(e, e->i8, left, row), left_bytes);
    }
    for (int j = 0; j < t->columns; j++)
        cg_amx_load(e, RIGHT + j, cg_at(e, e->f32, right, cg_int(e, (int64_t)j * QUERIES)), t->bytes);
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < t->columns; j++) cg_amx_dot(e, i * SIDE + j, LEFT + i, RIGHT + j);
}

static void store_sums(cg_emitter *e, const tiles *t)
{
    for (int i = 0; i < t->rows; i++)
        for (int j = 0; j < t->columns; j++) cg_amx_store(e, i * SIDE + j, sums_pointer(e, t, i, j), t->bytes);
}

static LLVMValueRef word(cg_emitter *e, const cg_amx_block *b, LLVMValueRef matrix, LLVMValueRef row, int query)
{
    return cg_at(e, e->f32, cg_at(e, e->f32, matrix, cg_imul(e, row, cg_int(e, b->width))), cg_int(e, query));
}

/* Tile count of queries from `query` on, at most two. */
static int columns_at(const cg_amx_block *b, int query) { return b->width - query > QUERIES ? SIDE : 1; }

void cg_amx_scores(cg_emitter *e, const cg_amx_block *b)
{
    LLVMValueRef key_bytes = cg_int(e, b->head->key_bytes);
    CG_FOR_NONEMPTY (e, key, cg_int(e, 0), b->key_count, CG_AMX_STEP) {
        LLVMValueRef keys = cg_at(e, e->i8, b->head->keys, cg_imul(e, cg_iadd(e, b->first_key, key.index), key_bytes));
        for (int query = 0; query < b->width; query += SIDE * QUERIES) {
            tiles t = {SIDE, columns_at(b, query), word(e, b, b->weights, key.index, query), cg_int(e, 4 * b->width)};
            for (int i = 0; i < SIDE; i++)
                for (int j = 0; j < t.columns; j++) cg_amx_zero(e, i * SIDE + j);
            for (int64_t c = 0; c < b->head->key_bytes; c += CG_AMX_ROW_BYTES) {
                LLVMValueRef pairs = word(e, b, b->q_transposed, cg_int(e, c / 4), query);
                add_matmul(e, &t, cg_at(e, e->i8, keys, cg_int(e, c)), key_bytes, pairs);
            }
            store_sums(e, &t);
        }
    }
}

static void add_contexts(cg_emitter *e, const cg_amx_block *b, int64_t channel, int query)
{
    int rows = b->channels - channel > CG_AMX_ROWS ? SIDE : 1;
    tiles t = {rows, columns_at(b, query), word(e, b, b->context, cg_int(e, channel), query), cg_int(e, 4 * b->width)};
    LLVMValueRef first = cg_imul(e, b->head->value_bytes, cg_int(e, channel));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < t.columns; j++) cg_amx_load(e, i * SIDE + j, sums_pointer(e, &t, i, j), t.bytes);
    CG_FOR_NONEMPTY (e, key, cg_int(e, 0), b->key_count, CG_AMX_STEP) {
        LLVMValueRef address = cg_iadd(e, first, cg_imul(e, cg_iadd(e, b->first_key, key.index), cg_int(e, 2)));
        LLVMValueRef pair = LLVMBuildLShr(e->builder, key.index, cg_int(e, 1), "");
        LLVMValueRef value = cg_at(e, e->i8, b->head->values, address), weights = word(e, b, b->weights, pair, query);
        add_matmul(e, &t, value, b->head->value_bytes, weights);
    }
    store_sums(e, &t);
}

void cg_amx_contexts(cg_emitter *e, const cg_amx_block *b)
{
    for (int64_t channel = 0; channel < b->channels; channel += SIDE * CG_AMX_ROWS)
        for (int query = 0; query < b->width; query += SIDE * QUERIES) add_contexts(e, b, channel, query);
}
