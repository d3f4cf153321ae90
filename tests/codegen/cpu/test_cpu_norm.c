/* The norm kernel against the definition in double: every mode, every column remainder, rows in registers and rows
 * through scratch memory, on both CPU levels. The buffers end or start at inaccessible memory. */
#include "codegen/cpu/cpu_kind.h"
#include "tests/support/assertions.h"
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

enum { X, GAMMA, BETA, OUT, SUM, BUFFERS, SCRATCH = BUFFERS, POINTERS };

static const mdot_cpu_isa levels[] = {MDOT_CPU_X86_64_V3, MDOT_CPU_X86_64_V4, MDOT_CPU_AARCH64_NEON};

typedef struct shape {
    pl_norm_mode mode;
    ir_dim rows, columns;
    int64_t gap; /* elements between rows in out and in sum */
    bool gamma, beta;
    bool residual; /* the input is x + the previous sum, stored there again */
    bool epilogue; /* 2 * result + x */
} shape;

static ir_dim plus(ir_dim d, int64_t n) { return ir_dim_affine(d.scale, d.offset + n); }

static const pl_expr *element(ir_arena *arena, int buffer, ir_dim stride)
{
    const pl_expr *row = pl_binary(arena, PL_MUL, pl_index(arena, 0), pl_dim(arena, stride));
    return pl_load(arena, buffer, MDOT_DTYPE_F32, pl_binary(arena, PL_ADD, row, pl_index(arena, 1)));
}

static pl_norm describe(ir_arena *arena, const shape *s)
{
    pl_norm k = {
        .mode = s->mode,
        .rows = s->rows,
        .columns = s->columns,
        .input = element(arena, X, s->columns),
        .epsilon = 1e-5,
        .gamma = s->gamma ? GAMMA : -1,
        .beta = s->beta ? BETA : -1,
        .out = {OUT, ir_dim_number(1), plus(s->columns, s->gap)},
        .sum = {s->residual ? SUM : -1, ir_dim_number(0), plus(s->columns, s->gap)},
    };
    const pl_expr *x = k.input;
    if (s->residual) k.input = pl_binary(arena, PL_ADD, x, element(arena, SUM, k.sum.row_stride));
    if (!s->epilogue) return k;
    const pl_expr *two = pl_const_f(arena, MDOT_DTYPE_F32, 2);
    k.epilogue = pl_binary(arena, PL_ADD, pl_binary(arena, PL_MUL, pl_acc(arena, 0, MDOT_DTYPE_F32), two), x);
    return k;
}

static int64_t emit_kernel(harness *h, ir_arena *arena, const shape *s, const char *name)
{
    LLVMValueRef buffers[BUFFERS];
    pl_buffer descriptions[BUFFERS] = {{0}};
    pl_plan plan = {.buffer_count = BUFFERS, .buffers = descriptions, .max_length = 300};
    for (int b = 0; b < BUFFERS; b++) descriptions[b].type.dtype = MDOT_DTYPE_F32;
    pl_norm k = describe(arena, s);
    harness_begin_function(&h->e, name, POINTERS);
    for (int b = 0; b < BUFFERS; b++) buffers[b] = cg_pointer(&h->e, b);
    const pl_kernel described = {.kind = PL_NORM, .norm = k};
    cg_norm_kind.emit(&h->e, &plan, &described, buffers, cg_pointer(&h->e, SCRATCH));
    cg_end_function(&h->e);
    return cg_norm_kind.scratch_bytes(&plan, &described, h->e.target);
}

static double mean_of(const double *x, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i];
    return sum / (double)count;
}

static void scale_by_deviation(double *x, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++) squares += x[i] * x[i];
    for (int64_t i = 0; i < count; i++) x[i] /= sqrt(squares / (double)count + 1e-5);
}

/* In place: the result replaces the row's input. */
static void normalise(pl_norm_mode mode, double *x, int64_t count)
{
    double mean = mean_of(x, count), largest = -INFINITY, sum = 0;
    if (mode == PL_NORM_LAYER)
        for (int64_t i = 0; i < count; i++) x[i] -= mean;
    if (mode == PL_NORM_LAYER || mode == PL_NORM_RMS) {
        scale_by_deviation(x, count);
        return;
    }
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, x[i]);
    for (int64_t i = 0; i < count; i++) sum += exp(x[i] - largest);
    for (int64_t i = 0; i < count; i++)
        x[i] = mode == PL_NORM_SOFTMAX ? exp(x[i] - largest) / sum : x[i] - largest - log(sum);
}

typedef struct problem {
    const shape *shape;
    int64_t rows, columns, stride, count; /* out's and sum's stride and element count */
    guarded buffer[BUFFERS + 1];
    float *data[BUFFERS], *sum_before;
} problem;

static float random_value(void) { return (float)(rand() % 2001 - 1000) * 2e-3f; }

static void create_problem(problem *p, const shape *s, int64_t length, int64_t scratch_bytes, guard_side side)
{
    *p = (problem){.shape = s, .rows = ir_dim_at(s->rows, length), .columns = ir_dim_at(s->columns, length)};
    p->stride = p->columns + s->gap;
    p->count = (p->rows - 1) * p->stride + p->columns;
    int64_t counts[BUFFERS] = {p->rows * p->columns, p->columns, p->columns, p->count + 1, p->count};
    for (int b = 0; b < BUFFERS; b++) {
        p->buffer[b] = guard_create((size_t)counts[b] * sizeof(float), side);
        p->data[b] = p->buffer[b].data;
        for (int64_t i = 0; i < counts[b]; i++) p->data[b][i] = b == OUT ? 77 : random_value();
    }
    /* If the size is not a multiple of the vector alignment, an aligned buffer can only start at a page, so the guard
     * stands below it. */
    p->buffer[SCRATCH] = guard_create((size_t)scratch_bytes, scratch_bytes % 64 ? GUARD_BELOW : side);
    p->sum_before = malloc((size_t)p->count * sizeof(float));
    assert_non_null(p->sum_before);
    memcpy(p->sum_before, p->data[SUM], (size_t)p->count * sizeof(float));
}

static void expect(const problem *p, const char *what, int64_t row, int64_t column, double got, double want)
{
    if (fabs(got - want) <= 1e-5 * fmax(1, fabs(want))) return;
    fail_msg("%s of mode %d, rows %d, columns %d: [%d, %d] is %.9g, not %.9g", what, p->shape->mode, (int)p->rows,
             (int)p->columns, (int)row, (int)column, got, want);
}

static void check_row(const problem *p, int64_t row, double *want)
{
    const shape *s = p->shape;
    const float *x = p->data[X] + row * p->columns, *out = p->data[OUT] + 1 + row * p->stride;
    const float *sum = p->data[SUM] + row * p->stride, *before = p->sum_before + row * p->stride;
    for (int64_t c = 0; c < p->columns; c++) {
        want[c] = s->residual ? (double)x[c] + before[c] : x[c];
        expect(p, "sum", row, c, sum[c], s->residual ? want[c] : before[c]);
    }
    normalise(s->mode, want, p->columns);
    for (int64_t c = 0; c < p->columns; c++) {
        if (s->gamma) want[c] *= p->data[GAMMA][c];
        if (s->beta) want[c] += p->data[BETA][c];
        if (s->epilogue) want[c] = 2 * want[c] + x[c];
        expect(p, "result", row, c, out[c], want[c]);
    }
    if (row == p->rows - 1) return;
    for (int64_t c = p->columns; c < p->stride; c++) {
        assert_compare(out[c], ==, 77);
        assert_compare(sum[c], ==, before[c]);
    }
}

static void check_problem(problem *p)
{
    double *want = malloc((size_t)p->columns * sizeof *want);
    assert_non_null(want);
    for (int64_t row = 0; row < p->rows; row++) check_row(p, row, want);
    assert_compare(p->data[OUT][0], ==, 77);
    free(want);
    free(p->sum_before);
    for (int b = 0; b <= BUFFERS; b++) {
        assert_true(guard_intact(&p->buffer[b]));
        guard_destroy(&p->buffer[b]);
    }
}

static void call_kernel(const harness *h, const char *name, const guarded *buffers, int64_t length)
{
    const guarded *in_order[POINTERS];
    for (int b = 0; b < POINTERS; b++) in_order[b] = &buffers[b];
    harness_call(h, name, in_order, POINTERS, length);
}

static void check_shapes(const shape *shapes, int count, const int64_t *lengths, int length_count)
{
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        if (!harness_runs(levels[l])) continue;
        ir_arena *arena = ir_arena_create(0);
        int64_t *scratch_bytes = malloc((size_t)count * sizeof *scratch_bytes);
        harness h;
        char name[32];
        harness_begin(&h, levels[l]);
        for (int i = 0; i < count; i++) {
            snprintf(name, sizeof name, "norm%d", i);
            scratch_bytes[i] = emit_kernel(&h, arena, &shapes[i], name);
        }
        harness_load(&h);
        for (int i = 0; i < count; i++)
            for (int j = 0; j < length_count; j++) {
                problem p;
                snprintf(name, sizeof name, "norm%d", i);
                create_problem(&p, &shapes[i], lengths[j], scratch_bytes[i], (i + j) % 2 ? GUARD_BELOW : GUARD_BEYOND);
                call_kernel(&h, name, p.buffer, lengths[j]);
                check_problem(&p);
            }
        harness_end(&h);
        free(scratch_bytes);
        ir_arena_destroy(arena);
    }
}

static const pl_norm_mode modes[] = {PL_NORM_LAYER, PL_NORM_RMS, PL_NORM_SOFTMAX, PL_NORM_LOG_SOFTMAX};
enum { MODES = sizeof modes / sizeof modes[0] };

static bool has_parameters(pl_norm_mode mode) { return mode == PL_NORM_LAYER || mode == PL_NORM_RMS; }

static void rows_of_constant_length_match(void **state)
{
    (void)state;
    static const int64_t columns[] = {1, 2, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 128, 130, 255, 256, 257, 300, 521};
    enum { COLUMNS = sizeof columns / sizeof columns[0] };
    static const int64_t rows[] = {1, 2, 5};
    shape shapes[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        pl_norm_mode mode = modes[i % MODES];
        bool parameters = has_parameters(mode);
        shapes[i] = (shape){.mode = mode, .rows = {.scale = 1}, .columns = ir_dim_number(columns[i]), .gap = i % 3};
        shapes[i].gamma = parameters && i % 5;
        shapes[i].beta = parameters && i % 7;
        shapes[i].residual = i % 3 == 0;
        shapes[i].epilogue = i % 2 == 0;
    }
    check_shapes(shapes, COLUMNS, rows, 3);
    for (int i = 0; i < COLUMNS; i++) shapes[i].mode = modes[(i + 2) % MODES], shapes[i].gamma = shapes[i].beta = false;
    check_shapes(shapes, COLUMNS, rows, 3);
}

static void rows_of_run_time_length_match(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 32, 40, 63, 64, 65, 66, 128, 129, 200};
    shape shapes[2 * MODES];
    for (int i = 0; i < 2 * MODES; i++) {
        bool parameters = has_parameters(modes[i % MODES]);
        shapes[i] = (shape){.mode = modes[i % MODES],
                            .rows = ir_dim_number(3),
                            .columns = {.scale = 1, .offset = i / MODES},
                            .gap = i % 2};
        shapes[i].gamma = shapes[i].beta = parameters;
        shapes[i].residual = shapes[i].epilogue = i >= MODES;
    }
    check_shapes(shapes, 2 * MODES, lengths, sizeof lengths / sizeof lengths[0]);
}

/* One row with `columns` values on every level. */
static void check_single_row(pl_norm_mode mode, int64_t columns, float *x, const float *want, float tolerance)
{
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        if (!harness_runs(levels[l])) continue;
        ir_arena *arena = ir_arena_create(0);
        shape s = {.mode = mode, .rows = ir_dim_number(1), .columns = ir_dim_number(columns)};
        harness h;
        guarded buffers[POINTERS];
        for (int b = 0; b < POINTERS; b++) {
            int64_t elements = b == X ? columns : b == OUT ? columns + 1 : 0;
            buffers[b] = guard_create((size_t)elements * sizeof(float), GUARD_BEYOND);
        }
        const float *out = buffers[OUT].data;
        memcpy(buffers[X].data, x, (size_t)columns * sizeof(float));
        harness_begin(&h, levels[l]);
        assert_int_equal(emit_kernel(&h, arena, &s, "norm"), 0);
        harness_load(&h);
        call_kernel(&h, "norm", buffers, 0);
        for (int64_t i = 0; i < columns; i++) assert_float_equal(out[1 + i], want[i], tolerance);
        for (int b = 0; b < POINTERS; b++) guard_destroy(&buffers[b]);
        harness_end(&h);
        ir_arena_destroy(arena);
    }
}

static void softmax_matches_on_extreme_values(void **state)
{
    (void)state;
    float x[5] = {-INFINITY, 3e38f, -3e38f, 3e38f, 0};
    const float want[5] = {0, 0.5f, 0, 0.5f, 0};
    check_single_row(PL_NORM_SOFTMAX, 5, x, want, 0);
}

/* A variance computed as E[x²] - E[x]² would lose all digits to the mean. */
static void variance_matches_far_from_zero(void **state)
{
    (void)state;
    float x[4] = {10001, 10002, 10003, 10004}, want[4];
    for (int i = 0; i < 4; i++) want[i] = (float)((i - 1.5) / sqrt(1.25 + 1e-5));
    check_single_row(PL_NORM_LAYER, 4, x, want, 1e-5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_constant_length_match),
        cmocka_unit_test(rows_of_run_time_length_match),
        cmocka_unit_test(softmax_matches_on_extreme_values),
        cmocka_unit_test(variance_matches_far_from_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
