/* The attention kernel against softmax in double: every remainder of queries, keys and channels, every kind of mask, on
 * both CPU levels, with buffers that end or start at inaccessible memory. */
#include "tests/support/cg_harness.h"
#include "tests/support/guard.h"

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
    MASK_BATCHES,   /* one row a batch: 0 or -inf */
    MASK_QUERIES,   /* a matrix for all heads, any values */
    MASK_EVERYTHING /* a matrix a batch and head, of -FLT_MAX, -inf and small values */
} mask_kind;

typedef struct shape {
    ir_dim batch, queries, keys;
    int64_t heads, kv_heads, dim, value_dim;
    mask_kind mask;
    bool causal;
    bool
        fused; /* q, k and v are column ranges of one matrix's rows, heads side by side, as one projection makes them */
    int64_t hide; /* MASK_KEYS, MASK_BATCHES: so many keys at the front are masked, of each row's keys; -1: all */
} shape;

/* The shape's numbers at one length. Strides of an operand: batch, head, row. */
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

/* [batch, position, head, channel] where fused, else [batch, head, position, channel]. `fused_row` is a row of all. */
static pl_heads operand(const shape *s, int which, int64_t heads, ir_dim positions, int64_t dim)
{
    if (!s->fused)
        return (pl_heads){which, ir_dim_number(0), times(positions, heads * dim), times(positions, dim),
                          ir_dim_number(dim)};
    int64_t row = heads * dim + 3; /* three columns belong to someone else */
    return (pl_heads){which, ir_dim_number(2), times(positions, row), ir_dim_number(dim), ir_dim_number(row)};
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
        .scale = 1 / sqrt((double)s->dim),
        .q = operand(s, Q, s->heads, s->queries, s->dim),
        .k = operand(s, K, s->kv_heads, s->keys, s->dim),
        .v = operand(s, V, s->kv_heads, s->keys, s->value_dim),
        .out = operand(s, OUT, s->heads, s->queries, s->value_dim),
        .mask = s->mask == MASK_NONE ? -1 : MASK,
        .causal = s->causal,
    };
    /* Masks are only tested where one of queries and keys is a number, or both are the length: strides stay affine. */
    if (s->mask == MASK_BATCHES) k.mask_batch = s->keys;
    if (s->mask >= MASK_QUERIES) k.mask_query = s->keys;
    if (s->mask == MASK_EVERYTHING) {
        assert_true(ir_dim_is_number(s->queries));
        k.mask_head = times(s->keys, s->queries.offset);
        k.mask_batch = times(k.mask_head, s->heads);
    }
    return k;
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

/* One query's context. `none`: it may attend to no key. */
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
        if (k->mask >= 0)
            score[i] += data[MASK][b * z->mask_stride[0] + h * z->mask_stride[1] + q * z->mask_stride[2] + i];
        /* As in the model's own f32, scores drown in such a mask: keys masked alike weigh alike. */
        if (score[i] < -1e8) score[i] = (float)score[i];
        if (k->causal && i > q + z->keys - z->queries) score[i] = -INFINITY;
        largest = fmax(largest, score[i]);
    }
    for (int64_t d = 0; d < k->value_dim; d++) context[d] = 0;
    for (int64_t i = 0; i < z->keys; i++) {
        double weight = score[i] == -INFINITY ? 0 : exp(score[i] - largest);
        sum += weight;
        for (int64_t d = 0; d < k->value_dim; d++) context[d] += weight * values[i * z->stride[V][2] + d];
    }
    for (int64_t d = 0; d < k->value_dim; d++) context[d] = sum > 0 ? context[d] / sum : 0;
    free(score);
}

/* ---- One kernel ------------------------------------------------------------------------------------------------- */

static void check_context(const pl_attention *k, const sizes *z, float *const data[BUFFERS], bool *written)
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
                    if (fabs(got - want[d]) <= 1e-5) continue;
                    fail_msg("queries %d keys %d dim %d,%d mask %d causal %d: [%d, %d, %d, %d] is %.9g, not %.9g",
                             (int)z->queries, (int)z->keys, (int)k->dim, (int)k->value_dim, k->mask, k->causal, (int)b,
                             (int)h, (int)q, (int)d, got, want[d]);
                }
            }
    free(want);
}

static void run_kernel(kernel run, const shape *s, int64_t length, int64_t scratch_bytes, guard_side side)
{
    pl_attention k = describe(s);
    sizes z = sizes_at(&k, length);
    guarded buffer[BUFFERS + 1];
    float *data[BUFFERS];
    for (int b = 0; b < BUFFERS; b++) {
        int64_t count = b == MASK ? z.mask_count : z.count[b];
        buffer[b] = guard_create((size_t)count * sizeof(float), side);
        data[b] = buffer[b].data;
        if (b != MASK)
            for (int64_t i = 0; i < count; i++) data[b][i] = b == OUT ? 77 : random_value();
    }
    buffer[SCRATCH] = guard_create((size_t)scratch_bytes, side);
    fill_mask(s, &z, data[MASK]);
    run(data[Q], data[K], data[V], data[OUT], data[MASK], buffer[SCRATCH].data, length);
    bool *written = calloc((size_t)z.count[OUT], sizeof *written);
    assert_non_null(written);
    check_context(&k, &z, data, written);
    for (int64_t i = 0; i < z.count[OUT]; i++) assert_true(written[i] || data[OUT][i] == 77);
    free(written);
    for (int b = 0; b <= BUFFERS; b++) {
        assert_true(guard_intact(&buffer[b]));
        guard_destroy(&buffer[b]);
    }
}

static void emit_kernel(harness *h, const shape *s, const char *name, int64_t *out_scratch_bytes)
{
    LLVMValueRef buffers[BUFFERS];
    pl_attention k = describe(s);
    pl_plan plan = {.max_length = 1024};
    cg_begin_function(&h->e, name, POINTERS);
    for (int b = 0; b < BUFFERS; b++) buffers[b] = cg_pointer(&h->e, b);
    cg_attention(&h->e, &plan, &k, buffers, cg_pointer(&h->e, SCRATCH));
    cg_end_function(&h->e);
    *out_scratch_bytes = cg_attention_scratch_bytes(&plan, &k, h->e.target);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

static void check_shape(const shape *s, const int64_t *lengths, int count)
{
    static const mdot_cpu_level levels[] = {MDOT_CPU_X86_64_V3, MDOT_CPU_X86_64_V4};
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        if (!harness_runs(levels[l])) continue;
        harness h;
        int64_t scratch_bytes;
        harness_begin(&h, levels[l]);
        emit_kernel(&h, s, "attention", &scratch_bytes);
        harness_load(&h);
        kernel run = (kernel)(uintptr_t)harness_get(&h, "attention");
        for (int i = 0; i < count; i++) {
            run_kernel(run, s, lengths[i], scratch_bytes, GUARD_BELOW);
            run_kernel(run, s, lengths[i], scratch_bytes, GUARD_BEYOND);
        }
        harness_end(&h);
    }
}

static const ir_dim length = {1, 0};
static const int64_t every_remainder[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 15, 16,  17,  18,  23,
                                          31, 32, 33, 47, 48, 49, 50, 63, 64, 65, 70, 96, 100, 127, 128, 130};
enum { REMAINDERS = sizeof every_remainder / sizeof every_remainder[0] };

static shape square(int64_t heads, int64_t dim, mask_kind mask)
{
    return (shape){ir_dim_number(1), length, length, heads, heads, dim, dim, mask, false, true, 0};
}

static void self_attention_with_masked_keys_at_every_length(void **state)
{
    (void)state;
    shape s = square(2, 32, MASK_KEYS);
    check_shape(&s, every_remainder, REMAINDERS);
}

static void mask_matrix_at_every_length(void **state)
{
    (void)state;
    shape s = square(2, 16, MASK_QUERIES);
    check_shape(&s, every_remainder, REMAINDERS);
}

static void causal_at_every_length(void **state)
{
    (void)state;
    shape s = square(1, 8, MASK_NONE);
    s.causal = true;
    check_shape(&s, every_remainder, REMAINDERS);
}

static void odd_channels_and_other_value_channels(void **state)
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

static void grouped_heads_batches_and_unequal_lengths(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 5, 40, 90};
    shape s = {ir_dim_number(2), ir_dim_number(13), length, 6, 2, 12, 20, MASK_EVERYTHING, false, false, 0};
    check_shape(&s, lengths, 4);
    s.queries = length;
    s.keys = ir_dim_number(70);
    s.mask = MASK_BATCHES;
    s.hide = 3;
    s.fused = true;
    check_shape(&s, lengths, 4);
}

static void causal_with_more_keys_or_more_queries(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 4, 30, 66, 129};
    shape s = {ir_dim_number(1), length, ir_dim_number(130), 1, 1, 4, 4, MASK_NONE, true, false, 0};
    check_shape(&s, lengths, 5);
    s.keys = ir_dim_number(7); /* the first queries see nothing */
    s.mask = MASK_KEYS;
    check_shape(&s, lengths, 5);
}

static void batches_of_a_few_positions(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 17, 33}, channels[][2] = {{16, 16}, {32, 32}, {5, 1}, {37, 19}, {64, 8}};
    static const int64_t positions[][2] = {{1, 1}, {3, 3}, {4, 4}, {5, 3}, {2, 8}, {16, 1}, {1, 7}, {17, 1}};
    static const mask_kind masks[] = {MASK_NONE, MASK_EVERYTHING, MASK_BATCHES};
    for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
        shape s = {.batch = length, .heads = 4, .kv_heads = i % 2 ? 4 : 2, .mask = masks[i % 3], .hide = 1};
        s.queries = ir_dim_number(positions[i][0]);
        s.keys = ir_dim_number(positions[i][1]);
        s.dim = channels[i % 5][0];
        s.value_dim = channels[i % 5][1];
        s.fused = i % 2;
        s.causal = i % 4 == 3;
        check_shape(&s, lengths, 4);
    }
}

static void whole_blocks_of_masked_keys(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_attention_with_masked_keys_at_every_length),
        cmocka_unit_test(mask_matrix_at_every_length),
        cmocka_unit_test(causal_at_every_length),
        cmocka_unit_test(odd_channels_and_other_value_channels),
        cmocka_unit_test(grouped_heads_batches_and_unequal_lengths),
        cmocka_unit_test(causal_with_more_keys_or_more_queries),
        cmocka_unit_test(batches_of_a_few_positions),
        cmocka_unit_test(whole_blocks_of_masked_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
