/* The linear kernel against sums in double: every remainder in rows, columns and k, every epilogue kind, in fp32 and
 * bf16 on every CPU level. The buffers end or start at inaccessible memory. */
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/dot_products.h"
#include "tests/support/assertions.h"
#include "tests/support/cg_harness.h"
#include "tests/support/guard.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A, WEIGHT, BIAS, OUT, OTHER, BUFFERS, SCRATCH = BUFFERS, POINTERS };

typedef void (*kernel)(void *a, void *weight, void *bias, void *out, void *other, void *scratch, int64_t length);

/* ---- Epilogues: their expressions in a plan and their reference -------------------------------------------------- */

/* The buffers stored in 16 bits by the plan where it may: the weight if the target's precision requires it, and A and
 * out in every other shape. */
typedef struct form {
    const cg_cpu_target *target;
    bool half_a, half_out, whole_weight;
} form;

typedef struct shape {
    int64_t rows; /* 0 = the run-time length */
    int64_t k, columns;
    int64_t a_offset, a_stride, out_offset, out_stride;
    bool bias;
    const struct epilogue_case *epilogue;
} shape;

typedef struct epilogue_case {
    const char *name;
    const pl_expr *(*build)(ir_arena *arena, const shape *s);
    double (*reference)(double sum, double own, double other, int64_t row, int64_t column);
} epilogue_case;

static const pl_expr *sum_of(ir_arena *arena) { return pl_acc(arena, 0, MDOT_DTYPE_F32); }

/* row * stride + column + offset */
static const pl_expr *element(ir_arena *arena, int buffer, int64_t stride, int64_t offset)
{
    const pl_expr *row = pl_binary(arena, PL_MUL, pl_index(arena, 0), pl_const_i(arena, MDOT_DTYPE_I64, stride));
    const pl_expr *index = pl_binary(arena, PL_ADD, row, pl_index(arena, 1));
    index = pl_binary(arena, PL_ADD, index, pl_const_i(arena, MDOT_DTYPE_I64, offset));
    return pl_load(arena, buffer, MDOT_DTYPE_F32, index);
}

static const pl_expr *own(ir_arena *arena, const shape *s) { return element(arena, OUT, s->out_stride, s->out_offset); }

static const pl_expr *other(ir_arena *arena, const shape *s) { return element(arena, OTHER, s->columns, 0); }

static const pl_expr *build_gelu(ir_arena *arena, const shape *s)
{
    (void)s;
    return pl_unary(arena, PL_GELU, sum_of(arena));
}

static const pl_expr *build_residual(ir_arena *arena, const shape *s)
{
    return pl_binary(arena, PL_ADD, own(arena, s), sum_of(arena));
}

static const pl_expr *build_two_terms(ir_arena *arena, const shape *s)
{
    const pl_expr *sum = pl_binary(arena, PL_ADD, sum_of(arena), other(arena, s));
    return pl_binary(arena, PL_ADD, sum, own(arena, s));
}

static const pl_expr *build_gelu_of_residual(ir_arena *arena, const shape *s)
{
    return pl_unary(arena, PL_GELU, build_residual(arena, s));
}

static const pl_expr *build_gated(ir_arena *arena, const shape *s)
{
    return pl_binary(arena, PL_MUL, pl_unary(arena, PL_SIGMOID, sum_of(arena)), own(arena, s));
}

static const pl_expr *build_relu(ir_arena *arena, const shape *s)
{
    (void)s;
    return pl_binary(arena, PL_MAX, sum_of(arena), pl_const_f(arena, MDOT_DTYPE_F32, 0));
}

static const pl_expr *build_indices(ir_arena *arena, const shape *s)
{
    (void)s;
    const pl_expr *ten = pl_const_i(arena, MDOT_DTYPE_I64, 10);
    const pl_expr *place =
        pl_binary(arena, PL_ADD, pl_binary(arena, PL_MUL, pl_index(arena, 0), ten), pl_index(arena, 1));
    return pl_binary(arena, PL_SUB, pl_cast(arena, place, MDOT_DTYPE_F32), sum_of(arena));
}

#define REFERENCE(name, expression)                                                                                    \
    static double name(double sum, double own_value, double other_value, int64_t row, int64_t column)                  \
    {                                                                                                                  \
        (void)own_value, (void)other_value, (void)row, (void)column;                                                   \
        return expression;                                                                                             \
    }
static double gelu(double x) { return x / 2 * erfc(-x * sqrt(0.5)); }
REFERENCE(ref_none, sum)
REFERENCE(ref_gelu, gelu(sum))
REFERENCE(ref_residual, sum + own_value)
REFERENCE(ref_two_terms, sum + other_value + own_value)
REFERENCE(ref_gelu_of_residual, gelu(sum + own_value))
REFERENCE(ref_gated, own_value / (1 + exp(-sum)))
REFERENCE(ref_relu, fmax(sum, 0))
REFERENCE(ref_indices, (double)(10 * row + column) - sum)

static const epilogue_case epilogues[] = {
    {"none", NULL, ref_none},
    {"gelu", build_gelu, ref_gelu},
    {"residual in place", build_residual, ref_residual},
    {"two terms", build_two_terms, ref_two_terms},
    {"gelu of residual", build_gelu_of_residual, ref_gelu_of_residual},
    {"gated in place", build_gated, ref_gated},
    {"relu", build_relu, ref_relu},
    {"indices", build_indices, ref_indices},
};
enum { EPILOGUES = sizeof epilogues / sizeof epilogues[0] };

/* ---- One kernel ------------------------------------------------------------------------------------------------- */

static float random_value(void) { return (float)(rand() % 2001 - 1000) * 1e-3f; }

static guarded random_floats(int64_t count, guard_side side)
{
    guarded g = guard_create((size_t)count * sizeof(float), side);
    for (int64_t i = 0; i < count; i++) ((float *)g.data)[i] = random_value();
    return g;
}

static bool is_bf16(const form *f) { return f->target->matmul != CG_MATMUL_F32; }

/* The weight as the plan describes it, packed for the target. */
static guarded packed(const form *f, const pl_buffer *description, const shape *s, const float *dense, guard_side side)
{
    ir_tensor tensor = {
        .dtype = MDOT_DTYPE_F32, .rank = 2, .dims = {s->k, s->columns}, .count = s->k * s->columns, .data = dense};
    const cg_packing *packing = cg_packing_of(f->target->layout, description);
    guarded g = guard_create((size_t)cg_packed_bytes(packing, &tensor, PL_MATRIX), side);
    cg_pack(packing, &tensor, PL_MATRIX, g.data);
    return g;
}

static bool reads_own(const shape *s)
{
    return s->epilogue->build == build_residual || s->epilogue->build == build_two_terms ||
           s->epilogue->build == build_gelu_of_residual || s->epilogue->build == build_gated;
}

/* A direct strip starts the sums from the previous `out`, and so does a residual. In these cases out has 32 bits. */
static void describe(const form *f, const shape *s, pl_buffer descriptions[BUFFERS])
{
    for (int b = 0; b < BUFFERS; b++) {
        descriptions[b] = (pl_buffer){.kind = PL_SCRATCH, .reads = PL_READ_WHOLE};
        descriptions[b].type.dtype = MDOT_DTYPE_F32;
    }
    descriptions[WEIGHT].kind = descriptions[BIAS].kind = PL_WEIGHT;
    descriptions[WEIGHT].use = descriptions[BIAS].use = PL_MATRIX;
    descriptions[WEIGHT].reads = PL_READ_HALF | (f->whole_weight ? PL_READ_WHOLE : 0);
    if (f->half_a) descriptions[A].reads = PL_READ_HALF;
    if (f->half_out && !reads_own(s)) descriptions[OUT].reads = PL_READ_HALF;
}

static void emit_kernel(harness *h, ir_arena *arena, const form *f, const shape *s, const char *name,
                        int64_t *out_scratch_bytes)
{
    LLVMValueRef buffers[BUFFERS];
    pl_buffer descriptions[BUFFERS];
    pl_plan plan = {.arena = arena, .buffer_count = BUFFERS, .buffers = descriptions, .max_length = 1024};
    describe(f, s, descriptions);
    pl_linear k = {
        .a = {A, ir_dim_number(s->a_offset), ir_dim_number(s->a_stride)},
        .rows = s->rows > 0 ? ir_dim_number(s->rows) : ir_dim_affine(1, 0),
        .k = s->k,
        .columns = s->columns,
        .weight = WEIGHT,
        .bias = s->bias ? BIAS : -1,
        .epilogue = s->epilogue->build ? s->epilogue->build(arena, s) : NULL,
        .out = {OUT, ir_dim_number(s->out_offset), ir_dim_number(s->out_stride)},
    };
    harness_begin_function(&h->e, name, POINTERS);
    for (int b = 0; b < BUFFERS; b++) buffers[b] = cg_pointer(&h->e, b);
    bool has_tiles = f->target->matmul == CG_MATMUL_AMX; /* normally an entry function does this */
    if (has_tiles) cg_amx_configure(&h->e);
    const pl_kernel described = {.kind = PL_LINEAR, .linear = k};
    cg_linear_kind.emit(&h->e, &plan, &described, buffers, cg_pointer(&h->e, SCRATCH));
    if (has_tiles) cg_amx_release(&h->e);
    cg_end_function(&h->e);
    *out_scratch_bytes = cg_linear_kind.scratch_bytes(&plan, &described, h->e.target);
}

/* One run's inputs and outputs, converted to f32. */
typedef struct data {
    const float *a, *turned, *bias, *before, *others, *after; /* turned: the weight, where the elements of a column
                                                               * are adjacent */
} data;

static double expected(const shape *s, const data *d, int64_t row, int64_t column)
{
    double sum = s->bias ? d->bias[column] : 0;
    for (int64_t k = 0; k < s->k; k++)
        sum += (double)d->a[s->a_offset + row * s->a_stride + k] * d->turned[column * s->k + k];
    return s->epilogue->reference(sum, d->before[s->out_offset + row * s->out_stride + column],
                                  d->others[row * s->columns + column], row, column);
}

static void check_result(const form *f, const shape *s, const data *d, int64_t rows, int64_t out_count,
                         double tolerance)
{
    int64_t next = 0; /* the gaps between rows must stay as they are */
    for (int64_t row = 0; row < rows; row++) {
        int64_t start = s->out_offset + row * s->out_stride;
        for (; next < start; next++) assert_compare(d->after[next], ==, d->before[next]);
        for (int64_t column = 0; column < s->columns; column++, next++) {
            double want = expected(s, d, row, column), got = d->after[next];
            if (fabs(got - want) <= tolerance * fmax(1, fabs(want))) continue;
            fail_msg("%s, %s, k %d, columns %d, rows %d, half %d %d: [%d, %d] is %.9g, not %.9g", f->target->name,
                     s->epilogue->name, (int)s->k, (int)s->columns, (int)rows, f->half_a, f->half_out, (int)row,
                     (int)column, got, want);
        }
    }
    for (; next < out_count; next++) assert_compare(d->after[next], ==, d->before[next]);
}

static float rounded(float value) { return ir_bf16_to_f32(ir_f32_to_bf16(value)); }

static void round_all(float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) values[i] = rounded(values[i]);
}

/* A buffer with these values, in the target's stored type. */
static guarded stored(const form *f, const pl_buffer *description, const float *values, int64_t count, guard_side side)
{
    bool half = cg_stored_dtype(f->target, description) == MDOT_DTYPE_BF16;
    guarded g = guard_create((size_t)count * (half ? 2 : 4), side);
    for (int64_t i = 0; i < count; i++)
        if (half)
            ((uint16_t *)g.data)[i] = ir_f32_to_bf16(values[i]);
        else
            ((float *)g.data)[i] = values[i];
    return g;
}

static void read_stored(const form *f, const pl_buffer *description, const guarded *g, float *values, int64_t count)
{
    bool half = cg_stored_dtype(f->target, description) == MDOT_DTYPE_BF16;
    for (int64_t i = 0; i < count; i++)
        values[i] = half ? ir_bf16_to_f32(((uint16_t *)g->data)[i]) : ((float *)g->data)[i];
}

static float *random_values(int64_t count)
{
    float *values = malloc((size_t)(count + 1) * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) values[i] = random_value();
    return values;
}

static void run_kernel(const harness *h, const char *name, const form *f, const shape *s, int64_t rows,
                       int64_t scratch_bytes, guard_side side)
{
    pl_buffer descriptions[BUFFERS];
    describe(f, s, descriptions);
    int64_t out_count = s->out_offset + (rows - 1) * s->out_stride + s->columns;
    int64_t a_count = s->a_offset + (rows - 1) * s->a_stride + s->k;
    int64_t padded = (s->columns + CG_PANEL_COLUMNS - 1) / CG_PANEL_COLUMNS * CG_PANEL_COLUMNS;
    bool half_out = cg_stored_dtype(f->target, &descriptions[OUT]) == MDOT_DTYPE_BF16;
    bool half_weight = cg_stored_dtype(f->target, &descriptions[WEIGHT]) == MDOT_DTYPE_BF16;
    bool half_operands = half_weight && f->target->matmul > CG_MATMUL_BF16_WEIGHTS;
    float *dense = random_values(s->k * s->columns), *a_values = random_values(a_count);
    float *before = random_values(out_count), *after = random_values(out_count);
    if (half_out) round_all(before, out_count);

    guarded a = stored(f, &descriptions[A], a_values, a_count, side);
    guarded weight = packed(f, &descriptions[WEIGHT], s, dense, side);
    guarded bias = random_floats(padded, side), out = stored(f, &descriptions[OUT], before, out_count, side);
    guarded others = random_floats(rows * s->columns, side);
    guarded scratch = guard_create((size_t)scratch_bytes, side);
    read_stored(f, &descriptions[A], &a, a_values, a_count);
    if (half_weight) round_all(dense, s->k * s->columns);
    if (half_operands) round_all(a_values, a_count);

    const guarded *const buffers[] = {&a, &weight, &bias, &out, &others, &scratch};
    harness_call(h, name, buffers, BUFFERS + 1, rows);
    read_stored(f, &descriptions[OUT], &out, after, out_count);
    float *turned = random_values(s->k * s->columns);
    for (int64_t k = 0; k < s->k; k++)
        for (int64_t c = 0; c < s->columns; c++) turned[c * s->k + k] = dense[k * s->columns + c];
    data d = {a_values, turned, bias.data, before, others.data, after};
    check_result(f, s, &d, rows, out_count, half_out ? 1.0 / 256 : 2e-5);
    guarded *all[] = {&a, &weight, &bias, &out, &others, &scratch};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_true(guard_intact(all[i]));
        guard_destroy(all[i]);
    }
    free(dense);
    free(turned);
    free(a_values);
    free(before);
    free(after);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------ */

/* Emits, links and runs one kernel per shape. Shapes with a run-time row count run with many counts. */
static void check_form(const form *base, const shape *shapes, int count)
{
    form forms[] = {*base, *base};
    const form *f = base;
    forms[1].half_a = forms[1].half_out = is_bf16(base);
    static const int64_t all_rows[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,  13,  14,
                                       15, 16, 17, 18, 19, 20, 33, 95, 96, 97, 98, 101, 192, 200};
    static const int64_t some_rows[] = {1, 6, 19, 97}; /* all precisions use the same walk over rows */
    const int64_t *row_counts = is_bf16(f) ? some_rows : all_rows;
    size_t row_count = is_bf16(f) ? sizeof some_rows / sizeof *some_rows : sizeof all_rows / sizeof *all_rows;
    ir_arena *arena = ir_arena_create(0);
    int64_t *scratch_bytes = malloc((size_t)count * sizeof *scratch_bytes);
    harness h;
    char name[32];
    harness_begin_for(&h, f->target);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "linear%d", i);
        emit_kernel(&h, arena, &forms[(i + i / 2) % 2], &shapes[i], name, &scratch_bytes[i]);
    }
    harness_load(&h);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "linear%d", i);
        f = &forms[(i + i / 2) % 2];
        if (shapes[i].rows > 0) {
            run_kernel(&h, name, f, &shapes[i], shapes[i].rows, scratch_bytes[i], GUARD_BELOW);
            run_kernel(&h, name, f, &shapes[i], shapes[i].rows, scratch_bytes[i], GUARD_BEYOND);
            continue;
        }
        for (size_t r = 0; r < row_count; r++)
            run_kernel(&h, name, f, &shapes[i], row_counts[r], scratch_bytes[i], r % 2 ? GUARD_BELOW : GUARD_BEYOND);
    }
    harness_end(&h);
    free(scratch_bytes);
    ir_arena_destroy(arena);
}

/* Code for plain vectors differs from code for dot-product instructions only in multiplications. The walk over rows,
 * columns and k is the same. If both run here, a few shapes suffice for plain vectors, because LLVM takes ten times as
 * long for them. */
static bool is_second(const cg_cpu_target *const *targets, int t)
{
    for (int first = 0; targets[t]->use_generic_vectors && first < t; first++)
        if (targets[first]->matmul == targets[t]->matmul && !targets[first]->use_generic_vectors) return true;
    return false;
}

static void check_shapes(const shape *shapes, int count)
{
    enum { MOST = 2 * EPILOGUES, ONE_OF = 3 };
    int targets;
    const cg_cpu_target *const *target = harness_targets(&targets);
    shape few[MOST];
    int few_count = 0;
    assert_compare(count, <=, MOST);
    for (int i = 0; i < count; i += ONE_OF) few[few_count++] = shapes[i];
    for (int t = 0; t < targets; t++) {
        bool second = is_second(target, t);
        check_form(&(form){.target = target[t]}, second ? few : shapes, second ? few_count : count);
    }
}

static shape dense_shape(int64_t k, int64_t columns, const epilogue_case *epilogue)
{
    return (shape){
        .k = k, .columns = columns, .a_stride = k, .out_stride = columns, .bias = true, .epilogue = epilogue};
}

static void every_epilogue_matches_over_one_and_several_k_blocks(void **state)
{
    (void)state;
    shape shapes[2 * EPILOGUES];
    for (int i = 0; i < EPILOGUES; i++) {
        shapes[2 * i] = dense_shape(40, 72, &epilogues[i]);
        shapes[2 * i + 1] = dense_shape(300, 72, &epilogues[i]);
    }
    check_shapes(shapes, 2 * EPILOGUES);
}

static void odd_columns_and_k_with_gaps_between_rows_match(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1},   {3, 10},  {37, 37},  {8, 99},    {16, 128}, {128, 64},
                                       {129, 1}, {2, 200}, {131, 15}, {256, 130}, {7, 16},   {257, 63}};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    shape shapes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        shapes[i] = dense_shape(sizes[i][0], sizes[i][1], &epilogues[i % 4]);
        shapes[i].a_stride += i % 5;
        shapes[i].a_offset = i % 3;
        shapes[i].out_stride += i % 7;
        shapes[i].out_offset = i % 4;
        shapes[i].bias = i % 3 != 0;
    }
    check_shapes(shapes, COUNT);
}

/* A strip's long epilogue is computed while the next strip is summed. */
static void long_epilogues_over_several_strips_match(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{96, 128}, {128, 200}, {300, 256}};
    static const int which[] = {1, 4, 5}; /* gelu, gelu of residual, gated in place */
    shape shapes[9];
    for (int i = 0; i < 9; i++) {
        shapes[i] = dense_shape(sizes[i / 3][0], sizes[i / 3][1], &epilogues[which[i % 3]]);
        shapes[i].out_stride += i % 2;
    }
    check_shapes(shapes, 9);
}

static void constant_row_counts_match(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 2, 5, 6, 7, 96, 99};
    enum { COUNT = sizeof rows / sizeof rows[0] };
    shape shapes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        shapes[i] = dense_shape(64 + 19 * i, 70 - i, &epilogues[i % EPILOGUES]);
        shapes[i].rows = rows[i];
    }
    check_shapes(shapes, COUNT);
}

static void random_shapes_match(void **state)
{
    (void)state;
    enum { COUNT = 8 };
    shape shapes[COUNT];
    srand(7);
    for (int i = 0; i < COUNT; i++) {
        shapes[i] = dense_shape(1 + rand() % 300, 1 + rand() % 200, &epilogues[rand() % EPILOGUES]);
        shapes[i].a_stride += rand() % 4;
        shapes[i].out_stride += rand() % 4;
    }
    check_shapes(shapes, COUNT);
}

/* If another kernel reads a weight whole, it is stored in f32 for all kernels. The other factor may have 16 bits. */
static void weights_stored_in_f32_match(void **state)
{
    (void)state;
    int targets;
    const cg_cpu_target *const *target = harness_targets(&targets);
    shape shapes[] = {dense_shape(37, 72, &epilogues[0]), dense_shape(300, 128, &epilogues[1])};
    for (int t = 0; t < targets; t++)
        check_form(&(form){.target = target[t], .half_a = true, .whole_weight = true}, shapes, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_epilogue_matches_over_one_and_several_k_blocks),
        cmocka_unit_test(odd_columns_and_k_with_gaps_between_rows_match),
        cmocka_unit_test(long_epilogues_over_several_strips_match),
        cmocka_unit_test(constant_row_counts_match),
        cmocka_unit_test(random_shapes_match),
        cmocka_unit_test(weights_stored_in_f32_match),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
