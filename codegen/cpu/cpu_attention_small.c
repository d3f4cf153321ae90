/* cpu_attention_small.c — attention among few positions, for example between the parts of one operator; all in
 * registers.
 *
 * Channels are in the lanes: a score is a dot product, summed across lanes, and a context row is a sum of value
 * rows. There are as many such problems as batches times heads. They are independent, so the processor overlaps the
 * sums of one with the other instructions of the next. All weights of a problem are computed by one exponential.
 */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

#include "codegen/cpu/cpu_target.h"

#include <math.h>

enum {
    MAX_KEYS = 8,
    MAX_SCORES = 16,   /* queries × keys: lanes of the exponential */
    MAX_CHUNKS = 4,    /* vectors of channels */
    MAX_REGISTERS = 24 /* keys and values together, so few registers spill */
};

static int64_t chunks_of(int64_t channels, const cg_cpu_target *target)
{
    return (channels + target->lanes - 1) / target->lanes;
}

bool cg_attention_is_small(const pl_attention *k, const cg_cpu_target *target)
{
    if (!ir_dim_is_number(k->queries) || !ir_dim_is_number(k->keys)) return false;
    int64_t queries = k->queries.offset, keys = k->keys.offset;
    int64_t key_chunks = chunks_of(k->dim, target), value_chunks = chunks_of(k->value_dim, target);
    return keys > 0 && keys <= MAX_KEYS && queries <= MAX_SCORES && queries * keys <= MAX_SCORES &&
           key_chunks <= MAX_CHUNKS && value_chunks <= MAX_CHUNKS &&
           keys * (key_chunks + value_chunks) <= MAX_REGISTERS;
}

static int chunk_lanes(const cg_emitter *e, int64_t channels, int chunk)
{
    int64_t left = channels - (int64_t)chunk * e->target->lanes;
    return left < e->target->lanes ? (int)left : e->target->lanes;
}

static LLVMValueRef chunk_pointer(cg_emitter *e, LLVMTypeRef element, LLVMValueRef base, LLVMValueRef stride,
                                  int64_t row, int chunk)
{
    LLVMValueRef start = cg_at(e, element, base, cg_imul(e, cg_int(e, row), stride));
    return cg_at(e, element, start, cg_int(e, (int64_t)chunk * e->target->lanes));
}

static void load_row(cg_emitter *e, LLVMValueRef base, LLVMValueRef stride, int64_t row, int64_t channels,
                     LLVMValueRef *chunks)
{
    for (int c = 0; c < chunks_of(channels, e->target); c++) {
        LLVMTypeRef type = cg_vector(e, e->f32, chunk_lanes(e, channels, c));
        chunks[c] = cg_load(e, type, chunk_pointer(e, e->f32, base, stride, row, c), 0);
    }
}

static LLVMValueRef dot(cg_emitter *e, int64_t channels, const LLVMValueRef *a, const LLVMValueRef *b)
{
    int lanes = e->target->lanes;
    LLVMValueRef sum = NULL;
    for (int c = 0; c < chunks_of(channels, e->target); c++) {
        if (sum != NULL && chunk_lanes(e, channels, c) == lanes) {
            sum = cg_fma(e, a[c], b[c], sum);
            continue;
        }
        LLVMValueRef product = cg_resize(e, cg_fmul(e, a[c], b[c]), lanes, 0);
        sum = sum != NULL ? cg_fadd(e, sum, product) : product;
    }
    return sum != NULL ? cg_reduce_add(e, sum) : cg_const(e, e->f32, 0); /* no channels */
}

static LLVMValueRef masked_score(cg_emitter *e, const cg_attention_head *h, LLVMValueRef product, int64_t query,
                                 int64_t key)
{
    const pl_attention *k = h->k;
    if (k->causal && key > query + k->keys.offset - k->queries.offset) return cg_const(e, e->f32, -INFINITY);
    LLVMValueRef scale = cg_const(e, e->f32, k->scale * cg_score_unit(k));
    LLVMValueRef mask[PL_MAX_MASKS];
    for (int i = 0; i < k->mask_count; i++) {
        LLVMValueRef address = cg_iadd(e, cg_imul(e, cg_int(e, query), h->mask_stride[i]), cg_int(e, key));
        mask[i] = cg_load(e, e->f32, cg_at(e, e->f32, h->mask[i], address), 0);
    }
    return cg_finish_score(e, k, cg_fmul(e, product, scale), mask);
}

/* All scores' unnormalised weights in one vector. */
static LLVMValueRef weigh(cg_emitter *e, const pl_attention *k, const LLVMValueRef *score)
{
    LLVMValueRef maximum[MAX_SCORES];
    int keys = (int)k->keys.offset, count = (int)k->queries.offset * keys, width = 1;
    while (width < count) width *= 2;
    LLVMValueRef below = cg_const(e, cg_vector(e, e->f32, width), 0);
    for (int i = 0; i < count; i++) {
        LLVMValueRef *largest = &maximum[i / keys];
        *largest = i % keys == 0 ? cg_const(e, e->f32, cg_no_maximum) : *largest;
        *largest = cg_fmax(e, score[i], *largest);
    }
    for (int i = 0; i < count; i++) {
        LLVMValueRef difference = cg_fsub(e, score[i], maximum[i / keys]);
        below = width == 1 ? difference
                           : LLVMBuildInsertElement(e->builder, below, difference, cg_const_int(e->i32, i), "");
    }
    return cg_softmax_power(e, k, below);
}

/* Computes one query's context from the keys' weights. */
static void write_context(cg_emitter *e, const cg_attention_head *h, int query, LLVMValueRef weights,
                          LLVMValueRef (*values)[MAX_CHUNKS])
{
    const pl_attention *k = h->k;
    int keys = (int)k->keys.offset;
    LLVMValueRef weight[MAX_KEYS], sum = NULL;
    for (int i = 0; i < keys; i++) {
        weight[i] = cg_lanes(weights) == 1
                        ? weights
                        : LLVMBuildExtractElement(e->builder, weights, cg_const_int(e->i32, query * keys + i), "");
        sum = sum != NULL ? cg_fadd(e, sum, weight[i]) : weight[i];
    }
    LLVMValueRef factor = cg_context_factor(e, k, sum);
    for (int i = 0; i < keys; i++) weight[i] = cg_fmul(e, weight[i], factor);
    for (int c = 0; c < chunks_of(k->value_dim, e->target); c++) {
        int lanes = chunk_lanes(e, k->value_dim, c);
        LLVMValueRef context = cg_fmul(e, cg_splat(e, weight[0], lanes), values[0][c]);
        for (int i = 1; i < keys; i++) context = cg_fma(e, cg_splat(e, weight[i], lanes), values[i][c], context);
        LLVMTypeRef stored = cg_stored_type(e, h->plan, k->out.buffer);
        LLVMValueRef target = chunk_pointer(e, stored, h->out, h->out_stride, query, c);
        cg_store_elements(e, h->plan, k->out.buffer, context, target);
    }
}

void cg_attention_small(cg_emitter *e, const cg_attention_head *h)
{
    const pl_attention *k = h->k;
    int queries = (int)k->queries.offset, keys = (int)k->keys.offset;
    LLVMValueRef key[MAX_KEYS][MAX_CHUNKS], value[MAX_KEYS][MAX_CHUNKS], query[MAX_CHUNKS];
    LLVMValueRef score[MAX_SCORES];
    for (int i = 0; i < keys; i++) {
        load_row(e, h->key, h->key_stride, i, k->dim, key[i]);
        load_row(e, h->value, h->value_stride, i, k->value_dim, value[i]);
    }
    for (int i = 0; i < queries; i++) {
        load_row(e, h->q, h->q_stride, i, k->dim, query);
        for (int j = 0; j < keys; j++) score[i * keys + j] = masked_score(e, h, dot(e, k->dim, query, key[j]), i, j);
    }
    LLVMValueRef weights = weigh(e, k, score);
    for (int i = 0; i < queries; i++) write_context(e, h, i, weights, value);
}
