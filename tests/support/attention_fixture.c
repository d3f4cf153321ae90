/* attention_fixture.c — see attention_fixture.h. */
#include "tests/support/attention_fixture.h"

#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/dot_products.h"
#include "plan/kernel_kind.h"
#include "tests/support/cg_harness.h"
#include "tests/support/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { Q, K, V, OUT, MASK, BUFFERS, SCRATCH = BUFFERS, POINTERS };

typedef void (*kernel)(void *q, void *k, void *v, void *out, void *mask, void *scratch, int64_t length);

static const ir_dim the_length = {.scale = 1};

/* The shape's numbers at one length. An operand has strides for batch, head and row. */
typedef struct sizes {
    int64_t batch, queries, keys;
    int64_t stride[4][3], count[4], offset[4];
    int64_t mask_stride[3], mask_count; /* batch, head, query */
} sizes;

/* ---- Layout ----------------------------------------------------------------------------------------------------- */

static ir_dim times(ir_dim d, int64_t n) { return ir_dim_affine(d.scale * n, d.offset * n); }

/* [batch, position, head, channel] if fused, otherwise [batch, head, position, channel]. A fused row contains all
 * operands. */
static pl_heads operand(const attention_shape *s, int which, int64_t heads, ir_dim positions, int64_t dim)
{
    if (!s->fused)
        return (pl_heads){which, ir_dim_number(0), times(positions, heads * dim), times(positions, dim),
                          ir_dim_number(dim)};
    /* the other columns belong to other operands */
    int64_t before = s->aligned ? 16 : 2, row = heads * dim + before + 1;
    if (s->aligned) row += 15;
    return (pl_heads){which, ir_dim_number(before), times(positions, row), ir_dim_number(dim), ir_dim_number(row)};
}

static pl_attention describe(const attention_shape *s)
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
        .mask_count = s->mask != MASK_NONE,
        .mask = {{.buffer = MASK}},
        .causal = s->causal,
        .softcap = s->softcap,
        .replaces = {s->replaces},
    };
    /* Masks are only tested if queries or keys are a number, or both are the length, so strides stay affine. */
    if (s->mask == MASK_BATCHES) k.mask[0].batch_stride = s->keys;
    if (s->mask >= MASK_QUERIES) k.mask[0].row_stride = s->keys;
    if (s->mask == MASK_EVERYTHING) {
        assert_true(ir_dim_is_number(s->queries));
        k.mask[0].head_stride = times(s->keys, s->queries.offset);
        k.mask[0].batch_stride = times(k.mask[0].head_stride, s->heads);
    }
    return k;
}

/* A plan for this kernel: one kernel over buffers of rows. */
static void make_plan(const attention_shape *s, const pl_attention *k, pl_buffer buffers[BUFFERS], pl_plan *out_plan)
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
    z.mask_stride[0] = ir_dim_at(k->mask[0].batch_stride, length);
    z.mask_stride[1] = ir_dim_at(k->mask[0].head_stride, length);
    z.mask_stride[2] = ir_dim_at(k->mask[0].row_stride, length);
    z.mask_count = (z.batch - 1) * z.mask_stride[0] + (k->heads - 1) * z.mask_stride[1] +
                   (z.queries - 1) * z.mask_stride[2] + z.keys;
    return z;
}

/* ---- Data and reference ----------------------------------------------------------------------------------------- */

static float random_value(void) { return (float)(rand() % 2001 - 1000) * 1e-3f; }

/* Element of a query or key: whole numbers, so that every order of the dot product is exact. */
static float operand_value(const attention_shape *s, int which)
{
    if (s->logits == 0 || which >= V) return random_value();
    return which == K ? (float)(rand() % 5 - 2) : (float)((rand() % 17 - 8) * s->logits / 64);
}

static void fill_mask(const attention_shape *s, const sizes *z, float *mask)
{
    for (int64_t i = 0; i < z->mask_count; i++) {
        bool front = s->hide < 0 || i % z->keys < s->hide;
        switch (s->mask) {
        case MASK_KEYS: mask[i] = front || rand() % 4 == 0 ? (float)(s->masked < 0 ? s->masked : -1e9) : 0; break;
        case MASK_BATCHES: mask[i] = front ? (float)(s->masked < 0 ? s->masked : -INFINITY) : 0; break;
        case MASK_QUERIES:
            mask[i] = 3 * random_value();
            if (s->masked < 0) mask[i] = i / z->keys % 3 == 0 || rand() % 3 == 0 ? (float)s->masked : 0;
            break;
        case MASK_EVERYTHING: mask[i] = rand() % 3 ? random_value() : rand() % 2 ? -FLT_MAX : -INFINITY; break;
        case MASK_NONE: break;
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

static void poison_data(const attention_shape *s, const pl_attention *k, const sizes *z, float *const data[BUFFERS],
                        int64_t at)
{
    switch (s->poison) {
    case POISON_NONE: break;
    case POISON_QUERY: poison_heads(&k->q, k->heads, z->queries, data[Q], at, false, NAN, false); break;
    case POISON_KEY: poison_heads(&k->k, k->kv_heads, z->keys, data[K], at, false, NAN, false); break;
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
        if (k->mask_count > 0) {
            double mask = data[MASK][b * z->mask_stride[0] + h * z->mask_stride[1] + q * z->mask_stride[2] + i];
            double biased = mask != 0 ? (float)((float)score[i] + mask) : score[i];
            score[i] = k->replaces[0] < 0 && mask <= k->replaces[0] ? mask : biased;
        }
        if (k->causal && i > q + z->keys - z->queries) score[i] = -INFINITY;
        largest = fmax(largest, score[i]);
    }
    for (int64_t d = 0; d < k->value_dim; d++) context[d] = 0;
    for (int64_t i = 0; i < z->keys; i++) {
        bool is_masked = score[i] == -INFINITY && (largest > score[i] || k->mask_count > 0 || k->causal);
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
                             (int)z->queries, (int)z->keys, (int)k->dim, (int)k->value_dim, k->mask_count, k->causal,
                             (int)b, (int)h, (int)q, (int)d, got, want[d]);
                }
            }
    free(want);
}

/* Weights are rounded to 8 bits independently, and so are values stored in 16 bits. */
static double tolerance_of(const cg_cpu_target *target, const pl_plan *plan, const pl_attention *k)
{
    bool half_out = cg_stored_dtype(target, &plan->buffers[OUT]) == MDOT_DTYPE_BF16;
    bool half = cg_multiplies_bf16(target, plan, &(pl_kernel){.kind = PL_ATTENTION, .attention = *k});
    return 1e-5 + (half ? 4e-3 : 0) + (half_out ? 1.0 / 256 : 0);
}

static void run_kernel(const harness *h, const attention_shape *s, int64_t at, int64_t scratch_bytes, guard_side side)
{
    const cg_cpu_target *target = h->e.target;
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
        for (int64_t i = 0; i < count && b != MASK; i++) data[b][i] = b == OUT ? 77 : operand_value(s, b);
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
    const guarded *const in_order[] = {&buffer[Q],   &buffer[K],    &buffer[V],
                                       &buffer[OUT], &buffer[MASK], &buffer[SCRATCH]};
    harness_call(h, "attention", in_order, POINTERS, at);
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

static void emit_kernel(harness *h, const attention_shape *s, const char *name, int64_t *out_scratch_bytes)
{
    LLVMValueRef buffers[BUFFERS];
    pl_attention k = describe(s);
    pl_buffer descriptions[BUFFERS];
    pl_plan plan;
    make_plan(s, &k, descriptions, &plan);
    harness_begin_function(&h->e, name, POINTERS);
    for (int b = 0; b < BUFFERS; b++) buffers[b] = cg_pointer(&h->e, b);
    bool has_tiles = h->e.target->matmul == CG_MATMUL_AMX; /* normally an entry function does this */
    if (has_tiles) cg_amx_configure(&h->e);
    const pl_kernel described = {.kind = PL_ATTENTION, .attention = k};
    cg_attention_kind.emit(&h->e, &plan, &described, buffers, cg_pointer(&h->e, SCRATCH));
    if (has_tiles) cg_amx_release(&h->e);
    cg_end_function(&h->e);
    *out_scratch_bytes = cg_attention_kind.scratch_bytes(&plan, &described, h->e.target);
}

/* ---- Checks ----------------------------------------------------------------------------------------------------- */

static void check_on(const cg_cpu_target *target, const attention_shape *s, const int64_t *lengths, int count)
{
    harness h;
    int64_t scratch_bytes;
    harness_begin_for(&h, target);
    emit_kernel(&h, s, "attention", &scratch_bytes);
    harness_load(&h);
    static const double masked[] = {-1e4, -65504, -1e6, -1e9, -1e12, -FLT_MAX, -INFINITY}, logits[] = {1, 64, 8192};
    for (int i = 0; s->sums && i < count * 7 * 3; i++) {
        attention_shape data = *s;
        data.masked = masked[i % 7];
        data.logits = logits[i / 7 % 3];
        run_kernel(&h, &data, lengths[i / 21], scratch_bytes, GUARD_BEYOND);
    }
    for (int i = 0; i < count; i++) {
        run_kernel(&h, s, lengths[i], scratch_bytes, i % 2 ? GUARD_BELOW : GUARD_BEYOND);
        if (!s->aligned) run_kernel(&h, s, lengths[i], scratch_bytes, i % 2 ? GUARD_BEYOND : GUARD_BELOW);
    }
    harness_end(&h);
}

static void check_in(bool bf16, const attention_shape *s, const int64_t *lengths, int count)
{
    int targets;
    const cg_cpu_target *const *target = harness_targets(&targets);
    for (int t = 0; t < targets; t++)
        if (bf16 ? target[t]->matmul > CG_MATMUL_BF16_WEIGHTS : target[t]->matmul == CG_MATMUL_F32)
            check_on(target[t], s, lengths, count);
}

void attention_check(const attention_shape *s, const int64_t *lengths, int count)
{
    check_in(false, s, lengths, count);
}

void attention_check_bf16(const attention_shape *s, const int64_t *lengths, int count)
{
    check_in(true, s, lengths, count);
}

bool attention_is_matrix(const attention_shape *s)
{
    pl_attention k = describe(s);
    pl_buffer buffers[BUFFERS];
    pl_plan plan;
    make_plan(s, &k, buffers, &plan);
    return pl_is_matrix(&plan, &(pl_kernel){.kind = PL_ATTENTION, .attention = k});
}

attention_shape attention_square(int64_t heads, int64_t dim, attention_mask mask)
{
    return (attention_shape){ir_dim_number(1), the_length, the_length, heads, heads, dim, dim, mask, .fused = true};
}
