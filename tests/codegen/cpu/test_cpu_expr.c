/* Operators and conversions in every element type, in vectors and scalars, against the plan interpreter. */
#include "codegen/cpu/cpu_values.h"
#include "tests/support/assertions.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32, MDOT_DTYPE_F64, MDOT_DTYPE_F16, MDOT_DTYPE_BF16, MDOT_DTYPE_I8,
                                    MDOT_DTYPE_I16, MDOT_DTYPE_I32, MDOT_DTYPE_I64, MDOT_DTYPE_U8,   MDOT_DTYPE_U16,
                                    MDOT_DTYPE_U32, MDOT_DTYPE_U64, MDOT_DTYPE_BOOL};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

/* Less than one vector, whole vectors for both levels, and all remainders. */
static const int64_t lengths[] = {1, 3, 7, 8, 15, 16, 17, 32, 47, 0};

typedef enum operand_class {
    FLOATS = 1,
    SIGNED = 2,
    UNSIGNED = 4,
    BOOLS = 8,
    INTEGERS = 6,
    NUMBERS = 7,
    ALL = 15
} operand_class;

static operand_class class_of(mdot_dtype dtype)
{
    if (dtype == MDOT_DTYPE_BOOL) return BOOLS;
    return ir_dtype_is_float(dtype) ? FLOATS : ir_dtype_is_unsigned(dtype) ? UNSIGNED : SIGNED;
}

typedef struct operator_case {
    pl_expr_op op;
    unsigned classes;
    double low, high; /* range of signed operands */
} operator_case;

static const operator_case unary_cases[] = {
    {PL_NEG, FLOATS | SIGNED, -5, 5}, {PL_ABS, NUMBERS, -5, 5},          {PL_SIGN, NUMBERS, -2, 2},
    {PL_SQRT, FLOATS, 0, 9},          {PL_EXP, FLOATS, -4, 4},           {PL_LOG, FLOATS, 0.125, 9},
    {PL_SIN, FLOATS, -9, 9},          {PL_COS, FLOATS, -9, 9},           {PL_TANH, FLOATS, -4, 4},
    {PL_ERF, FLOATS, -4, 4},          {PL_SIGMOID, FLOATS, -9, 9},       {PL_GELU, FLOATS, -5, 5},
    {PL_GELU_TANH, FLOATS, -5, 5},    {PL_FLOOR, FLOATS, -9, 9},         {PL_CEIL, FLOATS, -9, 9},
    {PL_ROUND, FLOATS, -9, 9},        {PL_NOT, INTEGERS | BOOLS, -9, 9}, {PL_ISNAN, FLOATS, -9, 9},
    {PL_ISINF, FLOATS, -9, 9},
};

static const operator_case binary_cases[] = {
    {PL_ADD, NUMBERS, -100, 100},
    {PL_SUB, NUMBERS, -100, 100},
    {PL_MUL, NUMBERS, -100, 100},
    {PL_DIV, NUMBERS, -9, 9},
    {PL_FLOORDIV, NUMBERS, -9, 9},
    {PL_PYMOD, NUMBERS, -9, 9},
    {PL_FMOD, NUMBERS, -9, 9},
    {PL_POW, NUMBERS, -4, 4},
    {PL_MIN, ALL, -9, 9},
    {PL_MAX, ALL, -9, 9},
    {PL_AND, INTEGERS | BOOLS, -9, 9},
    {PL_OR, INTEGERS | BOOLS, -9, 9},
    {PL_XOR, INTEGERS | BOOLS, -9, 9},
    {PL_SHL, UNSIGNED, 0, 70},
    {PL_SHR, UNSIGNED, 0, 70},
    {PL_EQ, ALL, -2, 2},
    {PL_LT, ALL, -2, 2},
    {PL_LE, ALL, -2, 2},
};

static int vector_of(plan_fixture *f, mdot_dtype dtype, const operator_case *c)
{
    bool is_unsigned = ir_dtype_is_unsigned(dtype);
    double high = dtype == MDOT_DTYPE_BOOL ? 1 : c->high;
    return plan_input_between(f, dtype, is_unsigned ? 0 : c->low, high, PLAN_SHAPE(PLAN_L));
}

/* out[i] = value, over the length */
static void pointwise(plan_fixture *f, const pl_expr *value)
{
    assert_non_null(value);
    int out = plan_output(f, value->dtype, PLAN_SHAPE(PLAN_L));
    plan_nest(f, (pl_nest){.loop_count = 1,
                           .extent = {PLAN_L},
                           .store_count = 1,
                           .store = {{.buffer = out, .index = pl_index(f->arena, 0), .value = value}}});
}

static const pl_expr *element(plan_fixture *f, int buffer)
{
    return pl_load(f->arena, buffer, f->buffers[buffer].type.dtype, pl_index(f->arena, 0));
}

static void every_operator_matches_the_interpreter(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        plan_fixture f;
        plan_begin(&f, 47);
        for (size_t c = 0; c < sizeof unary_cases / sizeof unary_cases[0]; c++) {
            if (!(unary_cases[c].classes & class_of(dtypes[d]))) continue;
            int x = vector_of(&f, dtypes[d], &unary_cases[c]);
            pointwise(&f, pl_unary(f.arena, unary_cases[c].op, element(&f, x)));
        }
        for (size_t c = 0; c < sizeof binary_cases / sizeof binary_cases[0]; c++) {
            if (!(binary_cases[c].classes & class_of(dtypes[d]))) continue;
            int x = vector_of(&f, dtypes[d], &binary_cases[c]), y = vector_of(&f, dtypes[d], &binary_cases[c]);
            pointwise(&f, pl_binary(f.arena, binary_cases[c].op, element(&f, x), element(&f, y)));
        }
        srand((unsigned)d);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

static void every_cast_matches_the_interpreter(void **state)
{
    (void)state;
    for (int from = 0; from < DTYPE_COUNT; from++) {
        plan_fixture f;
        plan_begin(&f, 47);
        operator_case near = {.low = -7, .high = 7}, far = {.low = -100, .high = 120};
        int small = vector_of(&f, dtypes[from], &near), large = vector_of(&f, dtypes[from], &far);
        for (int to = 0; to < DTYPE_COUNT; to++) {
            pointwise(&f, pl_cast(f.arena, element(&f, small), dtypes[to]));
            pointwise(&f, pl_cast(f.arena, element(&f, large), dtypes[to]));
        }
        srand((unsigned)from);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

/* ---- Boundary values, which random operands miss ----------------------------------------------------------------- */

/* Compiles out[i] = value for vectors and runs it on a pattern that repeats over 35 elements. */
static void run_on(plan_fixture *f, const void *pattern, size_t size, int count, void *out, mdot_cpu_isa level)
{
    enum { N = 35 };
    unsigned char in[N * 8];
    for (int i = 0; i < N; i++)
        for (size_t b = 0; b < size; b++)
            in[(size_t)i * size + b] = ((const unsigned char *)pattern)[(size_t)(i % count) * size + b];
    const void *inputs[] = {in};
    void *outputs[] = {out};
    harness_run_plan(&f->plan, level, inputs, outputs, N);
}

#define FOR_EACH_LEVEL(level)                                                                                          \
    for (mdot_cpu_isa level = MDOT_CPU_X86_64_V3; level <= MDOT_CPU_AARCH64_NEON; level++)                             \
        if (harness_runs_fp32(level))

static void casts_from_floats_out_of_range_are_defined(void **state)
{
    (void)state;
    static const float pattern[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 300.5f, -1.5f};
    static const int64_t want_i64[] = {0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 300, -1};
    FOR_EACH_LEVEL(level)
    {
        plan_fixture f;
        plan_begin(&f, 64);
        int x = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L));
        pointwise(&f, pl_cast(f.arena, element(&f, x), MDOT_DTYPE_I64));
        int64_t got[35];
        run_on(&f, pattern, sizeof pattern[0], 7, got, level);
        for (int i = 0; i < 35; i++) assert_int_equal(got[i], want_i64[i % 7]);
        plan_end(&f);
    }
}

static void f16_rounds_to_nearest_even_once(void **state)
{
    (void)state;
    /* 1 + 2^-11 + 2^-40 lies above the tie between 1 and 1 + 2^-10. Rounded to f32 it would become the tie. */
    static const double pattern[] = {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 1 + 3 * 0x1p-11, 65504, 1e9, -0x1p-25, NAN};
    FOR_EACH_LEVEL(level)
    {
        plan_fixture f;
        plan_begin(&f, 64);
        int x = plan_input(&f, MDOT_DTYPE_F64, PLAN_SHAPE(PLAN_L));
        pointwise(&f, pl_cast(f.arena, element(&f, x), MDOT_DTYPE_F16));
        uint16_t got[35];
        run_on(&f, pattern, sizeof pattern[0], 7, got, level);
        for (int i = 0; i < 35; i++) {
            if (i % 7 == 6) {
                assert_compare(got[i] & 0x7c00, ==, 0x7c00);
                assert_compare(got[i] & 0x3ff, !=, 0);
            } else
                assert_int_equal(got[i], ir_f64_to_f16(pattern[i % 7]));
        }
        plan_end(&f);
    }
}

static void bf16_rounds_to_nearest_even_and_keeps_nan(void **state)
{
    (void)state;
    static const float pattern[] = {1, 1.00390625f, 1.01171875f, 3.3895314e38f, -0.0f, INFINITY, NAN};
    FOR_EACH_LEVEL(level)
    {
        plan_fixture f;
        plan_begin(&f, 64);
        int x = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L));
        pointwise(&f, pl_cast(f.arena, element(&f, x), MDOT_DTYPE_BF16));
        uint16_t got[35];
        run_on(&f, pattern, sizeof pattern[0], 7, got, level);
        for (int i = 0; i < 35; i++) {
            if (i % 7 == 6)
                assert_true(isnan(ir_bf16_to_f32(got[i])));
            else
                assert_int_equal(got[i], ir_f32_to_bf16(pattern[i % 7]));
        }
        plan_end(&f);
    }
}

static void integer_division_never_traps(void **state)
{
    (void)state;
    static const int32_t pattern[] = {0, -1, INT32_MIN, INT32_MAX, 7};
    FOR_EACH_LEVEL(level)
    {
        for (int op = PL_DIV; op <= PL_FMOD; op++) {
            plan_fixture f;
            plan_begin(&f, 64);
            int x = plan_input(&f, MDOT_DTYPE_I32, PLAN_SHAPE(PLAN_L));
            const pl_expr *least = pl_const_i(f.arena, MDOT_DTYPE_I32, INT32_MIN);
            pointwise(&f, pl_binary(f.arena, (pl_expr_op)op, least, element(&f, x)));
            int32_t got[35];
            run_on(&f, pattern, sizeof pattern[0], 5, got, level);
            bool quotient = op == PL_DIV || op == PL_FLOORDIV;
            for (int i = 0; i < 35; i += 5) {
                assert_int_equal(got[i], 0);
                assert_int_equal(got[i + 1], quotient ? INT32_MIN : 0);
                assert_int_equal(got[i + 2], quotient);
            }
            plan_end(&f);
        }
    }
}

/* Quotients up to 2^2097 take several steps, in some lanes only. */
static void remainders_of_far_numbers_are_exact(void **state)
{
    (void)state;
    static const double pattern[] = {1e308, 3, -1e300, 0x1.fffffffffffffp1023, 5e-324, -0.0, INFINITY, NAN, 1e18};
    static const float narrow[] = {1e38F, 3, -3e38F, 1e-45F, INFINITY, 1e20F, -0.0F, NAN, 7.5F};
    static const double divisors[] = {3, 5e-324, 2.5e-308, 0.1, -1e-10, 1e308, INFINITY, 0, 0x1.fffffffffffffp-1};
    enum { COUNT = sizeof pattern / sizeof *pattern };
    FOR_EACH_LEVEL(level)
    {
        for (size_t d = 0; d < sizeof divisors / sizeof *divisors; d++) {
            double got[35];
            float single[35], divisor = (float)divisors[d];
            for (int wide = 0; wide < 2; wide++) {
                mdot_dtype dtype = wide ? MDOT_DTYPE_F64 : MDOT_DTYPE_F32;
                plan_fixture f;
                plan_begin(&f, 64);
                int x = plan_input(&f, dtype, PLAN_SHAPE(PLAN_L));
                const pl_expr *by = pl_const_f(f.arena, dtype, wide ? divisors[d] : (double)divisor);
                pointwise(&f, pl_binary(f.arena, PL_FMOD, element(&f, x), by));
                if (wide)
                    run_on(&f, pattern, sizeof *pattern, COUNT, got, level);
                else
                    run_on(&f, narrow, sizeof *narrow, COUNT, single, level);
                plan_end(&f);
            }
            for (int i = 0; i < 35; i++) {
                double wanted = fmod(pattern[i % COUNT], divisors[d]);
                float less = fmodf(narrow[i % COUNT], divisor);
                if (isnan(wanted))
                    assert_true(isnan(got[i]));
                else
                    assert_memory_equal(&got[i], &wanted, sizeof wanted);
                if (isnan(less))
                    assert_true(isnan(single[i]));
                else
                    assert_memory_equal(&single[i], &less, sizeof less);
            }
        }
    }
}

static void min_and_max_keep_nan_of_either_operand(void **state)
{
    (void)state;
    static const float pattern[] = {NAN, -2, 3};
    FOR_EACH_LEVEL(level)
    {
        for (int side = 0; side < 4; side++) {
            plan_fixture f;
            plan_begin(&f, 64);
            int x = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L));
            const pl_expr *zero = pl_const_f(f.arena, MDOT_DTYPE_F32, 0), *value = element(&f, x);
            const pl_expr *negated = pl_unary(f.arena, PL_NEG, value);
            const pl_expr *arguments[4][2] = {{zero, value}, {value, zero}, {value, negated}, {negated, value}};
            pointwise(&f, pl_binary(f.arena, PL_MAX, arguments[side][0], arguments[side][1]));
            float got[35];
            run_on(&f, pattern, sizeof pattern[0], 3, got, level);
            for (int i = 0; i + 2 < 35; i += 3) {
                assert_true(isnan(got[i]));
                assert_compare(got[i + 1], ==, side < 2 ? 0 : 2);
                assert_compare(got[i + 2], ==, 3);
            }
            plan_end(&f);
        }
    }
}

/* A chain of doublings has 2^16 paths through 16 nodes. */
static void common_subexpressions_are_emitted_once(void **state)
{
    (void)state;
    plan_fixture f;
    plan_begin(&f, 47);
    int x = plan_input(&f, MDOT_DTYPE_F64, PLAN_SHAPE(PLAN_L));
    const pl_expr *value = element(&f, x);
    for (int i = 0; i < 16; i++) value = pl_binary(f.arena, PL_ADD, value, value);
    harness h;
    harness_begin(&h, MDOT_CPU_X86_64_V3);
    harness_begin_function(&h.e, "sum", 1);
    LLVMValueRef buffers[] = {cg_pointer(&h.e, 0)};
    cg_scope scope = {.buffers = buffers, .vector_loop = 0, .lanes = 4, .loops = {cg_int(&h.e, 0)}};
    cg_expr(&h.e, &scope, &f.plan, value);
    int instructions = 0;
    LLVMBasicBlockRef block = LLVMGetInsertBlock(h.e.builder);
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) instructions++;
    assert_compare(instructions, <, 30);
    cg_end_function(&h.e);
    harness_end(&h);
    plan_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_matches_the_interpreter),
        cmocka_unit_test(every_cast_matches_the_interpreter),
        cmocka_unit_test(casts_from_floats_out_of_range_are_defined),
        cmocka_unit_test(f16_rounds_to_nearest_even_once),
        cmocka_unit_test(bf16_rounds_to_nearest_even_and_keeps_nan),
        cmocka_unit_test(integer_division_never_traps),
        cmocka_unit_test(remainders_of_far_numbers_are_exact),
        cmocka_unit_test(min_and_max_keep_nan_of_either_operand),
        cmocka_unit_test(common_subexpressions_are_emitted_once),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
