/* The attention kernel against softmax in double: every remainder of queries, keys and channels, every kind of mask,
 * in fp32 and bf16 on every CPU level. The buffers end or start at inaccessible memory. */
#include "codegen/cpu/amx.h"
#include "codegen/cpu/bf16.h"
#include "codegen/cpu/cpu_kind.h"
#include "ir/plan/kernel_kind.h"
#include "tests/support/cg_harness.h"
#include "tests/support/guard.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { Q, K, V, OUT, MASK, BUFFERS, SCRATCH = BUFFERS, POINTERS };

typedef void (*kernel)(void *q, void *k, void *v, void *out, void *mask, void *scratch, int64_t length);

typedef enum mask_kind {
    MASK_NONE,
    MASK_KEYS,      /* one row for all queries: 0 or -1e9 */
    MASK_BATCHES,   /* one row per batch item: 0 or -inf */
    MASK_QUERIES,   /* a matrix for all heads, any values */
    MASK_EVERYTHING /* a matrix per batch item and head, of -FLT_MAX, -inf and small values */
} mask_kind;

/* Values beyond ordinary numbers, in the middle query, key or element of the mask. */
typedef enum poison {
    POISON_NONE,
    POISON_QUERY,   /* NaN */
    POISON_KEY,     /* NaN */
    POISON_MASK,    /* NaN */
    POISON_NO_MASK, /* +inf in the mask */
    POISON_LOGITS,  /* scores of one key overflow to +inf for some queries and -inf for others */
    POISON_ALL      /* scores of all keys overflow to -inf */
} poison;

static const ir_dim the_length = {1, 0};

typedef struct shape {
    ir_dim batch, queries, keys;
    int64_t heads, kv_heads, dim, value_dim;
    mask_kind mask;
    bool causal;
    bool fused;   /* q, k and v are column ranges of one matrix, heads side by side, as one projection makes them */
    bool aligned; /* fused, and as bf16 requires: heads and rows start at multiples of sixteen channels */
    bool half;    /* the plan stores q, k, v and out in 16 bits */
    int64_t hide; /* MASK_KEYS, MASK_BATCHES: number of masked keys at the start of each row; -1 = all */
    double softcap, replaces;
    double scale; /* 0: 1 / sqrt(dim) */
    poison poison;
} shape;

/* The shape's numbers at one length. An operand has strides for batch, head and row. */
typedef struct sizes {
    int64_t batch, queries, keys;
    int64_t stride[4][3], count[4], offset[4];
    int64_t mask_stride[3], mask_count; /* batch, head, query */
} sizes;

/* ---- Layout ----------------------------------------------------------------------------------------------------- */

static ir_dim times(ir_dim d, int64_t n)
{
    return (ir_dim){d.scale * n, d.offset * n};
}

/* [batch, position, head, channel] if fused, otherwise [batch, head, position, channel]. A fused row contains all
 * operands. */
static pl_heads operand(const shape *s, int which, int64_t heads, ir_dim positions, int64_t dim)
{
    if (!s->fused)
        return (pl_heads){which, ir_dim_number(0), times(positions, heads * dim), times(positions, dim),
                          ir_dim_number(dim)};
    /* the other columns belong to other operands */
    int64_t before = s->aligned ? 16 : 2, row = heads * dim + before + 1;
    if (s->aligned) row += 15;
    return (pl_heads){which, ir_dim_number(before), times(positions, row), ir_dim_number(dim), ir_dim_number(row)};
}

static pl_attention describe(const shape *s)
{
    pl_attention k = {
        .batch = s->batch,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .queries = s->queries,
        .keys = s->keys,
        .dim = s->dim,
        .value_dim = s->value_dim,
        .scale = s->scale != 0 ? s->scale : 1 / sqrt((double)s->dim),
        .q = operand(s, Q, s->heads, s->queries, s->dim),
        .k = operand(s, K, s->kv_heads, s->keys, s->dim),
        .v = operand(s, V, s->kv_heads, s->keys, s->value_dim),
        .out = operand(s, OUT, s->heads, s->queries, s->value_dim),
        .mask = s->mask == MASK_NONE ? -1 : MASK,
        .causal = s->causal,
        .softcap = s->softcap,
        .replaces = s->replaces,
    };
    /* Masks are only tested if queries or keys are a number, or both are the length, so that strides stay affine. */
    if (s->mask == MASK_BATCHES) k.mask_batch = s->keys;
    if (s->mask >= MASK_QUERIES) k.mask_query = s->keys;
    if (s->mask == MASK_EVERYTHING) {
        assert_true(ir_dim_is_number(s->queries));
        k.mask_head = times(s->keys, s->queries.offset);
        k.mask_batch = times(k.mask_head, s->heads);
    }
    return k;
}

/* A plan for this kernel: one kernel over buffers of rows. */
static void make_plan(const shape *s, const pl_attention *k, pl_buffer buffers[BUFFERS], pl_plan *out_plan)
{
    const pl_heads *operands[] = {&k->q, &k->k, &k->v, &k->out};
    for (int b = 0; b < BUFFERS; b++) {
        buffers[b] = (pl_buffer){.kind = PL_SCRATCH, .reads = s->half ? PL_READ_HALF : PL_READ_WHOLE};
        buffers[b].type = (ir_type){.dtype = MDOT_DTYPE_F32, .rank = 2, .dim = {the_length}};
        if (b != MASK) buffers[b].type.dim[1] = operands[b]->row_stride;
    }
    buffers[MASK].reads = PL_READ_WHOLE;
    *out_plan = (pl_plan){.buffer_count = BUFFERS, .buffers = buffers, .max_length = 1024};
}

static sizes sizes_at(const pl_attention *k, int64_t length)
{
    sizes z = {
        .batch = ir_dim_at(k->batch, length),
        .queries = ir_dim_at(k->queries, length),
        .keys = ir_dim_at(k->keys, length),
    };
    const pl_heads *operands[] = {&k->q, &k->k, &k->v, &k->out};
    for (int i = 0; i < 4; i++) {
        const pl_heads *h = operands[i];
        bool is_key = i == K || i == V;
        z.offset[i] = ir_dim_at(h->offset, length);
        z.stride[i][0] = ir_dim_at(h->batch_stride, length);
        z.stride[i][1] = ir_dim_at(h->head_stride, length);
        z.stride[i][2] = ir_dim_at(h->row_stride, length);
        z.count[i] = z.offset[i] + (z.batch - 1) * z.stride[i][0] +
                     ((is_key ? k->kv_heads : k->heads) - 1) * z.stride[i][1] +
                     ((is_key ? z.keys : z.queries) - 1) * z.stride[i][2] + (i < V ? k->dim : k->value_dim);
    }
    z.mask_stride[0] = ir_dim_at(k->mask_batch, length);
    z.mask_stride[1] = ir_dim_at(k->mask_head, length);
    z.mask_stride[2] = ir_dim_at(k->mask_query, length);
    z.mask_count = (z.batch - 1) * z.mask_stride[0] + (k->heads - 1) * z.mask_stride[1] +
                   (z.queries - 1) * z.mask_stride[2] + z.keys;
    return z;
}

/* ---- Data and reference ----------------------------------------------------------------------------------------- */

static float random_value(void)
{
    return (float)(rand() % 2001 - 1000) * 1e-3f;
}

static void fill_mask(const shape *s, const sizes *z, float *mask)
{
    for (int64_t i = 0; i < z->mask_count; i++) {
        bool front = s->hide < 0 || i % z->keys < s->hide;
        switch (s->mask) {
        case MASK_KEYS:
            mask[i] = front || rand() % 4 == 0 ? -1e9f : 0;
            break;
        case MASK_BATCHES:
            mask[i] = front ? -INFINITY : 0;
            break;
        case MASK_QUERIES:
            mask[i] = 3 * random_value();
            break;
        case MASK_EVERYTHING:
            mask[i] = rand() % 3 ? random_value() : rand() % 2 ? -FLT_MAX : -INFINITY;
            break;
        case MASK_NONE:
            break;
        }
    }
}

static void poison_heads(const pl_heads *h, int64_t heads, int64_t positions, float *data, int64_t length, bool all,
                         float value, bool alternates)
{
    for (int64_t head = 0; head < heads; head++)
        for (int64_t i = all ? 0 : positions / 2; i < (all ? positions : positions / 2 + 1); i++)
            data[ir_dim_at(h->offset, length) + head * ir_dim_at(h->head_stride, length) +
                 i * ir_dim_at(h->row_stride, length)] = alternates && i % 2 ? -value : value;
}

static void poison_data(const shape *s, const pl_attention *k, const sizes *z, float *const data[BUFFERS], int64_t at)
{
    switch (s->poison) {
    case POISON_NONE:
        break;
    case POISON_QUERY:
        poison_heads(&k->q, k->heads, z->queries, data[Q], at, false, NAN, false);
        break;
    case POISON_KEY:
        poison_heads(&k->k, k->kv_heads, z->keys, data[K], at, false, NAN, false);
        break;
    case POISON_MASK:
    case POISON_NO_MASK:
        for (int64_t i = z->keys / 2; i < z->mask_count; i += z->keys)
            data[MASK][i] = s->poison == POISON_MASK ? NAN : INFINITY;
        break;
    case POISON_LOGITS:
    case POISON_ALL:
        poison_heads(&k->q, k->heads, z->queries, data[Q], at, true, 1e25f, s->poison == POISON_LOGITS);
        poison_heads(&k->k, k->kv_heads, z->keys, data[K], at, true, s->poison == POISON_ALL ? -1e25f : 0, false);
        if (s->poison == POISON_LOGITS) poison_heads(&k->k, k->kv_heads, z->keys, data[K], at, false, -1e25f, false);
        break;
    }
}

/* Computes the context of one query: zeros if all keys are masked. */
static void attend(const pl_attention *k, const sizes *z, float *const data[BUFFERS], int64_t b, int64_t h, int64_t q,
                   double *context)
{
    int64_t kv = h / (k->heads / k->kv_heads);
    double *score = malloc((size_t)z->keys * sizeof *score), largest = -INFINITY, sum = 0;
    assert_non_null(score);
    const float *query = data[Q] + z->offset[Q] + b * z->stride[Q][0] + h * z->stride[Q][1] + q * z->stride[Q][2];
    const float *keys = data[K] + z->offset[K] + b * z->stride[K][0] + kv * z->stride[K][1];
    const float *values = data[V] + z->offset[V] + b * z->stride[V][0] + kv * z->stride[V][1];
    for (int64_t i = 0; i < z->keys; i++) {
        score[i] = 0;
        for (int64_t d = 0; d < k->dim; d++) score[i] += (double)query[d] * keys[i * z->stride[K][2] + d];
        score[i] *= k->scale;
        if (fabs(score[i]) > FLT_MAX) score[i] = (float)score[i]; /* overflows, as in the kernel */
        if (k->softcap > 0) score[i] = k->softcap * tanh(score[i] / k->softcap);
        if (k->mask >= 0) {
            double mask = data[MASK][b * z->mask_stride[0] + h * z->mask_stride[1] + q * z->mask_stride[2] + i];
            score[i] = k->replaces < 0 && mask <= k->replaces ? mask : score[i] + mask;
        }
        /* In the model's f32, such a mask absorbs the scores, so that equally masked keys get equal weights. */
        if (score[i] < -1e8) score[i] = (float)score[i];
        if (k->causal && i > q + z->keys - z->queries) score[i] = -INFINITY;
        largest = fmax(largest, score[i]);
    }
    for (int64_t d = 0; d < k->value_dim; d++) context[d] = 0;
    for (int64_t i = 0; i < z->keys; i++) {
        bool is_masked = score[i] == -INFINITY && (largest > score[i] || k->mask >= 0 || k->causal);
        double weight = is_masked ? 0 : exp(score[i] - largest);
        sum += weight;
        for (int64_t d = 0; d < k->value_dim; d++) context[d] += weight * values[i * z->stride[V][2] + d];
    }
    for (int64_t d = 0; d < k->value_dim; d++) context[d] = sum == 0 ? 0 : context[d] / sum;
    free(score);
}

/* ---- One kernel ------------------------------------------------------------------------------------------------- */

static void check_context(const pl_attention *k, const sizes *z, float *const data[BUFFERS], bool *written,
                          double tolerance)
{
    double *want = malloc((size_t)k->value_dim * sizeof *want);
    assert_non_null(want);
    for (int64_t b = 0; b < z->batch; b++)
        for (int64_t h = 0; h < k->heads; h++)
            for (int64_t q = 0; q < z->queries; q++) {
                attend(k, z, data, b, h, q, want);
                int64_t at = z->offset[OUT] + b * z->stride[OUT][0] + h * z->stride[OUT][1] + q * z->stride[OUT][2];
                for (int64_t d = 0; d < k->value_dim; d++) {
                    double got = data[OUT][at + d];
                    written[at + d] = true;
                    if (fabs(got - want[d]) <= tolerance || (isnan(got) && isnan(want[d]))) continue;
                    fail_msg("queries %d keys %d dim %d,%d mask %d causal %d: [%d, %d, %d, %d] is %.9g, not %.9g",
                             (int)z->queries, (int)z->keys, (int)k->dim, (int)k->value_dim, k->mask, k->causal, (int)b,
                             (int)h, (int)q, (int)d, got, want[d]);
                }
            }
    free(want);
}

/* Weights are rounded to 8 bits independently, and so are values that are stored in 16 bits. */
static double tolerance_of(const cg_cpu_target *target, const pl_plan *plan, const pl_attention *k)
{
    bool half_out = cg_stored_dtype(target, &plan->buffers[OUT]) == MDOT_DTYPE_BF16;
    bool half = cg_multiplies_bf16(target, plan, &(pl_kernel){.kind = PL_ATTENTION, .attention = *k});
    return 1e-5 + (half ? 4e-3 : 0) + (half_out ? 1.0 / 256 : 0);
}

static void run_kernel(kernel run, const cg_cpu_target *target, const shape *s, int64_t at, int64_t scratch_bytes,
                       guard_side side)
{
    pl_attention k = describe(s);
    sizes z = sizes_at(&k, at);
    pl_buffer buffers[BUFFERS];
    pl_plan plan;
    make_plan(s, &k, buffers, &plan);
    bool half = cg_multiplies_bf16(target, &plan, &(pl_kernel){.kind = PL_ATTENTION, .attention = k});
    guarded buffer[BUFFERS + 1];
    float *data[BUFFERS];
    for (int b = 0; b < BUFFERS; b++) {
        int64_t count = b == MASK ? z.mask_count : z.count[b];
        bool is_narrow = cg_stored_dtype(target, &buffers[b]) == MDOT_DTYPE_BF16;
        buffer[b] = guard_create((size_t)count * (is_narrow ? 2 : 4), side);
        data[b] = malloc((size_t)(count + 1) * sizeof(float));
        assert_non_null(data[b]);
        for (int64_t i = 0; i < count && b != MASK; i++) data[b][i] = b == OUT ? 77 : random_value();
        if (b == MASK) fill_mask(s, &z, data[MASK]);
    }
    poison_data(s, &k, &z, data, at);
    for (int b = 0; b < BUFFERS; b++) {
        int64_t count = b == MASK ? z.mask_count : z.count[b];
        bool is_narrow = cg_stored_dtype(target, &buffers[b]) == MDOT_DTYPE_BF16;
        for (int64_t i = 0; i < count; i++) {
            if (half && b < OUT) data[b][i] = ir_bf16_to_f32(ir_f32_to_bf16(data[b][i]));
            if (is_narrow)
                ((uint16_t *)buffer[b].data)[i] = ir_f32_to_bf16(data[b][i]);
            else
                ((float *)buffer[b].data)[i] = data[b][i];
        }
    }
    buffer[SCRATCH] = guard_create((size_t)scratch_bytes, side);
    run(buffer[Q].data, buffer[K].data, buffer[V].data, buffer[OUT].data, buffer[MASK].data, buffer[SCRATCH].data, at);
    bool is_narrow = cg_stored_dtype(target, &buffers[OUT]) == MDOT_DTYPE_BF16;
    for (int64_t i = 0; i < z.count[OUT]; i++)
        data[OUT][i] = is_narrow ? ir_bf16_to_f32(((uint16_t *)buffer[OUT].data)[i]) : ((float *)buffer[OUT].data)[i];
    bool *written = calloc((size_t)z.count[OUT], sizeof *written);
    assert_non_null(written);
    check_context(&k, &z, data, written, tolerance_of(target, &plan, &k));
    for (int64_t i = 0; i < z.count[OUT]; i++) assert_true(written[i] || data[OUT][i] == 77);
    free(written);
    for (int b = 0; b <= BUFFERS; b++) {
        assert_true(guard_intact(&buffer[b]));
        guard_destroy(&buffer[b]);
        if (b < BUFFERS) free(data[b]);
    }
}

static void emit_kernel(harness *h, const shape *s, const char *name, int64_t *out_scratch_bytes)
{
    LLVMValueRef buffers[BUFFERS];
    pl_attention k = describe(s);
    pl_buffer descriptions[BUFFERS];
    pl_plan plan;
    make_plan(s, &k, descriptions, &plan);
    cg_begin_function(&h->e, name, POINTERS);
    for (int b = 0; b < BUFFERS; b++) buffers[b] = cg_pointer(&h->e, b);
    bool has_tiles = h->e.target->matmul == CG_MATMUL_AMX; /* normally an entry function does this */
    if (has_tiles) cg_amx_configure(&h->e);
    const pl_kernel described = {.kind = PL_ATTENTION, .attention = k};
    cg_attention_kind.emit(&h->e, &plan, &described, buffers, cg_pointer(&h->e, SCRATCH));
    if (has_tiles) cg_amx_release(&h->e);
    cg_end_function(&h->e);
    *out_scratch_bytes = cg_attention_kind.scratch_bytes(&plan, &described, h->e.target);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

static void check_on(const cg_cpu_target *target, const shape *s, const int64_t *lengths, int count)
{
    harness h;
    int64_t scratch_bytes;
    harness_begin_for(&h, target);
    emit_kernel(&h, s, "attention", &scratch_bytes);
    harness_load(&h);
    kernel run = (kernel)(uintptr_t)harness_get(&h, "attention");
    for (int i = 0; i < count; i++) {
        run_kernel(run, target, s, lengths[i], scratch_bytes, i % 2 ? GUARD_BELOW : GUARD_BEYOND);
        if (!s->aligned) run_kernel(run, target, s, lengths[i], scratch_bytes, i % 2 ? GUARD_BEYOND : GUARD_BELOW);
    }
    harness_end(&h);
}

/* Runs in fp32, because all kernels except matrix kernels are the same in every precision; with `half` also in bf16. */
static void check_in(bool half, const shape *s, const int64_t *lengths, int count)
{
    int targets;
    const cg_cpu_target *const *target = harness_targets(&targets);
    for (int t = 0; t < targets; t++)
        if (half ? target[t]->matmul > CG_MATMUL_BF16_WEIGHTS : target[t]->matmul == CG_MATMUL_F32)
            check_on(target[t], s, lengths, count);
}

static void check_shape(const shape *s, const int64_t *lengths, int count)
{
    check_in(false, s, lengths, count);
}

static const int64_t every_remainder[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 15, 16,  17,  18,  23,
                                          31, 32, 33, 47, 48, 49, 50, 63, 64, 65, 70, 96, 100, 127, 128, 130};
enum { REMAINDERS = sizeof every_remainder / sizeof every_remainder[0] };

static shape square(int64_t heads, int64_t dim, mask_kind mask)
{
    return (shape){ir_dim_number(1), the_length, the_length, heads, heads, dim, dim, mask, .fused = true};
}

static void self_attention_masks_keys_at_every_length(void **state)
{
    (void)state;
    shape s = square(2, 32, MASK_KEYS);
    check_shape(&s, every_remainder, REMAINDERS);
}

static void mask_matrix_matches_at_every_length(void **state)
{
    (void)state;
    shape s = square(2, 16, MASK_QUERIES);
    check_shape(&s, every_remainder, REMAINDERS);
}

static void causal_attention_matches_at_every_length(void **state)
{
    (void)state;
    shape s = square(1, 8, MASK_NONE);
    s.causal = true;
    check_shape(&s, every_remainder, REMAINDERS);
}

/* Capped and replaced scores with every kind of mask, both streaming and with few positions. */
static void scores_are_capped_and_replaced(void **state)
{
    (void)state;
    static const struct {
        mask_kind mask;
        double softcap, replaces;
    } cases[] = {{MASK_NONE, 0.7, 0},     {MASK_KEYS, 0.7, 0},       {MASK_KEYS, 0, -1e9},  {MASK_BATCHES, 0.7, 0},
                 {MASK_QUERIES, 0, -1.5}, {MASK_QUERIES, 0.7, -1.5}, {MASK_KEYS, 0.7, -1e9}};
    static const int64_t lengths[] = {1, 5, 16, 47, 64, 65, 130};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int causal = 0; causal < 2; causal++) {
            shape s = square(2, 12, cases[i].mask);
            s.softcap = cases[i].softcap;
            s.replaces = cases[i].replaces;
            s.causal = causal;
            s.hide = i % 2 ? -1 : 3;
            check_shape(&s, lengths, 7);
            s.queries = s.keys = ir_dim_number(4);
            s.batch = the_length;
            if (s.mask != MASK_BATCHES) check_shape(&s, lengths, 3);
        }
    }
}

/* The scores are too great for -1e9 to absorb them in f32. */
static void masked_rows_average_the_values_for_great_scores(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 47, 64, 130};
    for (int half = 0; half < 2; half++) {
        shape s = square(2, 16, MASK_KEYS);
        s.hide = -1;
        s.scale = 1e4;
        s.replaces = -1e9;
        s.aligned = s.half = half;
        check_in(half, &s, lengths, 5);
        s.queries = s.keys = ir_dim_number(4);
        s.batch = the_length;
        if (!half) check_shape(&s, lengths, 3);
    }
}

/* NaN and infinite scores reach every query that attends to them, as in the operators of the model. */
static void nan_and_infinity_reach_the_result(void **state)
{
    (void)state;
    static const int64_t lengths[] = {5, 65};
    for (int p = POISON_QUERY; p <= POISON_ALL; p++) {
        for (int kind = 0; kind < 4; kind++) { /* no mask, by key, by key and replaced, by query */
            bool needs_mask = p == POISON_MASK || p == POISON_NO_MASK;
            shape s = square(2, 16, kind == 0 ? MASK_NONE : kind == 3 ? MASK_QUERIES : MASK_KEYS);
            if ((needs_mask && kind == 0) || (p == POISON_ALL && kind > 0)) continue;
            s.poison = p;
            s.replaces = kind == 2 ? -1e9 : 0;
            check_shape(&s, lengths, 2);
            s.aligned = true;
            s.half = kind % 2;
            check_in(true, &s, lengths, 2);
            s.aligned = s.half = false;
            s.queries = s.keys = ir_dim_number(4);
            s.batch = ir_dim_number(1);
            check_shape(&s, lengths, 1);
        }
    }
}

static void odd_and_unequal_channel_counts_match(void **state)
{
    (void)state;
    static const int64_t channels[][2] = {{1, 1}, {37, 5}, {64, 24}, {9, 40}, {17, 65}}, lengths[] = {3, 20, 67};
    for (size_t i = 0; i < sizeof channels / sizeof channels[0]; i++) {
        shape s = square(3, channels[i][0], MASK_NONE);
        s.value_dim = channels[i][1];
        s.fused = i % 2;
        check_shape(&s, lengths, 3);
    }
}

static void grouped_heads_batches_and_unequal_lengths_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 40, 90};
    shape s = {ir_dim_number(2), ir_dim_number(13), the_length, 6, 2, 12, 20, MASK_EVERYTHING, .causal = false};
    check_shape(&s, lengths, 4);
    s.queries = the_length;
    s.keys = ir_dim_number(70);
    s.mask = MASK_BATCHES;
    s.hide = 3;
    s.fused = true;
    check_shape(&s, lengths, 4);
}

static void causal_attention_accepts_more_keys_or_more_queries(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 4, 30, 66, 129};
    shape s = {ir_dim_number(1), the_length, ir_dim_number(130), 1, 1, 4, 4, MASK_NONE, .causal = true};
    check_shape(&s, lengths, 5);
    s.keys = ir_dim_number(7); /* all keys of the first queries are masked */
    s.mask = MASK_KEYS;
    check_shape(&s, lengths, 5);
}

static void batches_of_a_few_positions_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 17, 33}, channels[][2] = {{16, 16}, {32, 32}, {5, 1}, {37, 19}, {64, 8}};
    static const int64_t positions[][2] = {{1, 1}, {3, 3}, {4, 4}, {5, 3}, {2, 8}, {16, 1}, {1, 7}, {17, 1}};
    static const mask_kind masks[] = {MASK_NONE, MASK_EVERYTHING, MASK_BATCHES};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        shape s = {.batch = the_length, .heads = 4, .kv_heads = i % 2 ? 4 : 2, .mask = masks[i % 3], .hide = 1};
        s.queries = ir_dim_number(positions[i][0]);
        s.keys = ir_dim_number(positions[i][1]);
        s.dim = channels[i % 5][0];
        s.value_dim = channels[i % 5][1];
        s.fused = i % 2;
        s.causal = i % 4 == 3;
        check_shape(&s, lengths, 4);
    }
}

static void whole_blocks_of_masked_keys_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {65, 128, 129, 190};
    shape s = square(1, 8, MASK_KEYS);
    s.hide = 128;
    check_shape(&s, lengths, 4);
    s.mask = MASK_BATCHES;
    check_shape(&s, lengths, 4);
    s.hide = -1;
    check_shape(&s, lengths, 4);
}

/* Shapes that the plan runs as matrix kernels, for all special cases of bf16: pairs of keys, and operands in 16 or 32
 * bits. */
static void pairs_of_keys_and_channels_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 17, 33, 64, 65, 130};
    static const int64_t channels[][2] = {{16, 16}, {32, 32}, {48, 16}, {64, 128}};
    static const mask_kind masks[] = {MASK_KEYS, MASK_QUERIES, MASK_NONE, MASK_BATCHES};
    for (size_t i = 0; i < 8; i++) {
        shape s = square(2, channels[i / 2][0], masks[i / 2]);
        s.value_dim = channels[i / 2][1];
        s.kv_heads = i == 2 ? 1 : 2;
        s.aligned = true;
        s.half = i % 2;
        s.causal = i / 2 == 2;
        s.hide = i / 2 == 3 ? 65 : 0;
        s.softcap = i == 0 || i == 5 ? 2 : 0;
        s.replaces = i == 1 || i == 6 ? -1e8 : 0;
        pl_attention k = describe(&s);
        pl_buffer buffers[BUFFERS];
        pl_plan plan;
        make_plan(&s, &k, buffers, &plan);
        assert_true(pl_is_matrix(&plan, &(pl_kernel){.kind = PL_ATTENTION, .attention = k}));
        check_in(true, &s, lengths, sizeof lengths / sizeof lengths[0]);
    }
}

/* Heads of few channels and batches of few positions run in f32, although the plan may store `out` in 16 bits. */
static void other_kernels_of_bf16_images_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 17, 66};
    shape few = square(2, 8, MASK_KEYS), small = {.batch = the_length, .heads = 4, .kv_heads = 2};
    small.queries = small.keys = ir_dim_number(3);
    small.dim = small.value_dim = 19;
    check_in(true, &few, lengths, 3);
    check_in(true, &small, lengths, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_attention_masks_keys_at_every_length),
        cmocka_unit_test(mask_matrix_matches_at_every_length),
        cmocka_unit_test(causal_attention_matches_at_every_length),
        cmocka_unit_test(scores_are_capped_and_replaced),
        cmocka_unit_test(masked_rows_average_the_values_for_great_scores),
        cmocka_unit_test(nan_and_infinity_reach_the_result),
        cmocka_unit_test(odd_and_unequal_channel_counts_match),
        cmocka_unit_test(grouped_heads_batches_and_unequal_lengths_match),
        cmocka_unit_test(causal_attention_accepts_more_keys_or_more_queries),
        cmocka_unit_test(batches_of_a_few_positions_match),
        cmocka_unit_test(whole_blocks_of_masked_keys_match),
        cmocka_unit_test(pairs_of_keys_and_channels_match),
        cmocka_unit_test(other_kernels_of_bf16_images_match),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
