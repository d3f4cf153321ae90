/* test_expr.c — expressions: folding, index algebra, strides, text. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "plan/expr.h"
#include "plan/kind_tools.h"
#include "tests/support/assertions.h"
#include "tests/support/decimal_point.h"

static ir_arena *arena;

static int set_up(void **state)
{
    (void)state;
    arena = ir_arena_create(0);
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    ir_arena_destroy(arena);
    return 0;
}

static const pl_expr *number(int64_t n) { return pl_const_i(arena, MDOT_DTYPE_I64, n); }
static const pl_expr *real(double x) { return pl_const_f(arena, MDOT_DTYPE_F32, x); }
static const pl_expr *length(void) { return pl_dim(arena, ir_dim_affine(1, 0)); }
static const pl_expr *op(pl_expr_op o, const pl_expr *a, const pl_expr *b) { return pl_binary(arena, o, a, b); }

static char *print(const pl_expr *e)
{
    bs_memstream text;
    assert_true(bs_memstream_open(&text));
    pl_put_expr(text.file, e);
    char *whole = bs_memstream_close(&text, NULL);
    char *copy = ir_arena_strdup(arena, whole);
    free(whole);
    return copy;
}

static void assert_text(const pl_expr *e, const char *text)
{
    assert_non_null(e);
    assert_string_equal(print(e), text);
}

static void constants_fold_in_their_type(void **state)
{
    (void)state;
    assert_text(op(PL_ADD, number(2), number(3)), "5");
    assert_text(op(PL_FLOORDIV, number(-7), number(2)), "-4");
    assert_text(op(PL_PYMOD, number(-7), number(4)), "1");
    assert_text(op(PL_DIV, number(-7), number(2)), "-3");
    assert_text(op(PL_ADD, pl_const_i(arena, MDOT_DTYPE_U8, 250), pl_const_i(arena, MDOT_DTYPE_U8, 10)), "u8 4");
    assert_text(op(PL_LT, real(1), real(2)), "bool 1");
    assert_text(op(PL_MUL, real(0.1), real(10)), "f32 1");
    assert_text(pl_unary(arena, PL_SQRT, real(16)), "f32 4");
}

static void floats_are_rounded_to_their_type(void **state)
{
    (void)state;
    assert_compare(real(0.1)->f, ==, (double)0.1f);
    assert_compare(pl_const_f(arena, MDOT_DTYPE_F16, 65519)->f, ==, 65504);
    assert_compare(pl_const_f(arena, MDOT_DTYPE_BF16, 1.00390625)->f, ==, 1);
    assert_compare(pl_const_f(arena, MDOT_DTYPE_F64, 0.1)->f, ==, 0.1);
}

static void zeros_and_ones_are_folded_in_indices(void **state)
{
    (void)state;
    const pl_expr *i = pl_index(arena, 0);
    assert_ptr_equal(op(PL_ADD, i, number(0)), i);
    assert_ptr_equal(op(PL_ADD, number(0), i), i);
    assert_ptr_equal(op(PL_MUL, i, number(1)), i);
    assert_text(op(PL_MUL, i, number(0)), "0");
    assert_text(op(PL_MUL, number(0), length()), "0");
    assert_ptr_equal(op(PL_FLOORDIV, i, number(1)), i);
    assert_text(op(PL_PYMOD, i, number(1)), "0");
}

static void constant_terms_are_combined(void **state)
{
    (void)state;
    const pl_expr *i = pl_index(arena, 0);
    assert_text(op(PL_ADD, op(PL_ADD, i, number(3)), number(4)), "(i0 + 7)");
    assert_text(op(PL_MUL, op(PL_MUL, number(3), i), number(4)), "(i0 * 12)");
    assert_text(op(PL_SUB, i, number(4)), "(i0 + -4)");
    assert_ptr_equal(op(PL_ADD, op(PL_SUB, i, number(4)), number(4)), i);
}

static void floating_point_zero_is_not_folded(void **state)
{
    (void)state;
    const pl_expr *x = pl_load(arena, 1, MDOT_DTYPE_F32, pl_index(arena, 0));
    assert_text(op(PL_ADD, x, real(0)), "add(b1[i0], f32 0)"); /* -0 + 0 is 0 */
    assert_text(op(PL_MUL, x, real(0)), "mul(b1[i0], f32 0)"); /* NaN · 0 is NaN */
}

static void flattening_inverts_unflattening(void **state)
{
    (void)state;
    const pl_expr *r = pl_index(arena, 0), *l = length();
    const pl_expr *outer = op(PL_FLOORDIV, r, l), *inner = op(PL_PYMOD, r, l);
    assert_text(op(PL_ADD, op(PL_MUL, outer, l), inner), "i0");
    const pl_expr *other = op(PL_PYMOD, r, number(4));
    assert_text(op(PL_ADD, op(PL_MUL, outer, l), other), "(((i0 / L) * L) + (i0 % 4))");
}

static void selections_with_constant_conditions_fold(void **state)
{
    (void)state;
    const pl_expr *i = pl_index(arena, 0), *j = pl_index(arena, 1);
    assert_ptr_equal(pl_select(arena, op(PL_LT, number(1), number(2)), i, j), i);
    assert_ptr_equal(pl_select(arena, op(PL_LT, number(2), number(1)), i, j), j);
    assert_ptr_equal(op(PL_MIN, i, i), i);
}

/* 1 / x distinguishes the two zeros. There is only one NaN. */
static void zeros_of_two_signs_are_two_constants(void **state)
{
    (void)state;
    const pl_expr *x = pl_load(arena, 0, MDOT_DTYPE_F32, pl_index(arena, 0));
    assert_false(pl_expr_equal(real(0.0), real(-0.0)));
    assert_true(pl_expr_equal(real(-0.0), real(-0.0)));
    assert_true(pl_expr_equal(real(NAN), real(-NAN)));
    assert_false(pl_expr_equal(real(NAN), real(0)));
    assert_false(pl_expr_equal(op(PL_ADD, x, real(0.0)), op(PL_ADD, x, real(-0.0))));
    assert_true(pl_expr_equal(op(PL_ADD, x, real(-0.0)), op(PL_ADD, x, real(-0.0))));
}

/* With an intermediate rounding to f32 they would become ties and go to even. */
static void f16_constants_are_rounded_once(void **state)
{
    (void)state;
    assert_compare(pl_const_f(arena, MDOT_DTYPE_F16, 1 + 0x1p-11 + 0x1p-30)->f, ==, 1 + 0x1p-10);
    assert_compare(pl_const_f(arena, MDOT_DTYPE_BF16, 1 + 0x1p-8 + 0x1p-30)->f, ==, 1 + 0x1p-7);
    assert_compare(pl_const_f(arena, MDOT_DTYPE_F16, 1 + 0x1p-11)->f, ==, 1);
}

static void numbers_use_a_decimal_point_in_every_locale(void **state)
{
    (void)state;
    decimal_point_begin("<U002C>");
    const char *text = print(op(PL_ADD, real(0.5), pl_load(arena, 0, MDOT_DTYPE_F32, number(0))));
    decimal_point_end();
    assert_non_null(strstr(text, "f32 0.5"));
}

static void casts_to_the_same_type_are_folded(void **state)
{
    (void)state;
    const pl_expr *i = pl_index(arena, 0);
    assert_ptr_equal(pl_cast(arena, i, MDOT_DTYPE_I64), i);
    assert_text(pl_cast(arena, real(2.75), MDOT_DTYPE_I32), "i32 2");
    assert_text(pl_cast(arena, real(-0.5), MDOT_DTYPE_BOOL), "bool 1");
    assert_text(pl_cast(arena, i, MDOT_DTYPE_F32), "cast f32(i0)");
}

static void dims_are_affine_in_the_length(void **state)
{
    (void)state;
    assert_text(pl_dim(arena, ir_dim_affine(0, 7)), "7");
    assert_text(pl_dim(arena, ir_dim_affine(1, 0)), "L");
    assert_text(pl_dim(arena, ir_dim_affine(3, -1)), "((L * 3) + -1)");
}

static void strides_are_found_where_they_are_constant(void **state)
{
    (void)state;
    const pl_expr *i = pl_index(arena, 0), *j = pl_index(arena, 1), *k = pl_index(arena, 2);
    const pl_expr *row = op(PL_ADD, op(PL_MUL, i, length()), j);
    const pl_expr *at = op(PL_ADD, op(PL_MUL, row, number(128)), op(PL_MUL, k, number(-2)));
    int64_t stride;
    assert_true(pl_expr_stride(at, 1, &stride));
    assert_int_equal(stride, 128);
    assert_true(pl_expr_stride(at, 2, &stride));
    assert_int_equal(stride, -2);
    assert_true(pl_expr_stride(at, 3, &stride));
    assert_int_equal(stride, 0);
    assert_false(pl_expr_stride(at, 0, &stride)); /* 128 L */
}

static void data_dependent_and_quotient_indices_have_no_stride(void **state)
{
    (void)state;
    const pl_expr *i = pl_index(arena, 0);
    int64_t stride;
    const pl_expr *gathered = pl_load(arena, 0, MDOT_DTYPE_I64, i);
    assert_false(pl_expr_stride(gathered, 0, &stride));
    assert_true(pl_expr_stride(gathered, 1, &stride));
    assert_int_equal(stride, 0);
    assert_false(pl_expr_stride(op(PL_FLOORDIV, i, number(2)), 0, &stride));
}

static void index_uses_are_found_inside_loads(void **state)
{
    (void)state;
    const pl_expr *x = pl_load(arena, 0, MDOT_DTYPE_F32, pl_index(arena, 3));
    assert_true(pl_expr_uses_index(pl_unary(arena, PL_EXP, x), 3));
    assert_false(pl_expr_uses_index(pl_unary(arena, PL_EXP, x), 2));
}

static void missing_operands_give_missing_expressions(void **state)
{
    (void)state;
    const pl_expr *i = pl_index(arena, 0);
    assert_null(op(PL_ADD, i, NULL));
    assert_null(op(PL_ADD, NULL, i));
    assert_null(pl_unary(arena, PL_NEG, NULL));
    assert_null(pl_select(arena, NULL, i, i));
    assert_null(pl_cast(arena, NULL, MDOT_DTYPE_F32));
    assert_null(pl_load(arena, 0, MDOT_DTYPE_F32, NULL));
}

static int64_t integer(pl_expr_op o, mdot_dtype dtype, int64_t a, int64_t b)
{
    return pl_scalar_apply(o, dtype, dtype, (pl_scalar[]){{.n = a}, {.n = b}}).n;
}

static void integers_wrap_and_never_trap(void **state)
{
    (void)state;
    assert_int_equal(integer(PL_ADD, MDOT_DTYPE_I8, 127, 1), -128);
    assert_int_equal(integer(PL_MUL, MDOT_DTYPE_I64, INT64_MAX, 2), -2);
    assert_int_equal(integer(PL_DIV, MDOT_DTYPE_I64, INT64_MIN, -1), INT64_MIN);
    assert_int_equal(integer(PL_DIV, MDOT_DTYPE_I32, 5, 0), 0);
    assert_int_equal(integer(PL_PYMOD, MDOT_DTYPE_I32, 5, 0), 0);
    assert_int_equal(integer(PL_POW, MDOT_DTYPE_I64, 3, 4), 81);
    assert_int_equal(integer(PL_POW, MDOT_DTYPE_I64, -1, -3), -1);
}

static void remainders_take_the_right_sign(void **state)
{
    (void)state;
    assert_int_equal(integer(PL_PYMOD, MDOT_DTYPE_I32, -7, 3), 2);
    assert_int_equal(integer(PL_PYMOD, MDOT_DTYPE_I32, 7, -3), -2);
    assert_int_equal(integer(PL_FMOD, MDOT_DTYPE_I32, -7, 3), -1);
    assert_int_equal(integer(PL_FLOORDIV, MDOT_DTYPE_I32, 7, -3), -3);
    pl_scalar m = pl_scalar_apply(PL_PYMOD, MDOT_DTYPE_F32, MDOT_DTYPE_F32, (pl_scalar[]){{.f = -1}, {.f = 3}});
    assert_compare(m.f, ==, 2);
}

static void unsigned_numbers_compare_as_such(void **state)
{
    (void)state;
    assert_int_equal(integer(PL_MAX, MDOT_DTYPE_U64, -1, 1), -1);
    assert_int_equal(integer(PL_DIV, MDOT_DTYPE_U64, -1, 2), INT64_MAX);
    assert_int_equal(integer(PL_SHR, MDOT_DTYPE_U8, 0x80, 3), 0x10);
    assert_int_equal(integer(PL_SHL, MDOT_DTYPE_U8, 0x81, 1), 0x02);
}

static void nan_passes_through_min_and_max(void **state)
{
    (void)state;
    const pl_scalar left[] = {{.f = NAN}, {.f = 1}}, right[] = {{.f = 1}, {.f = NAN}};
    assert_true(isnan(pl_scalar_apply(PL_MIN, MDOT_DTYPE_F32, MDOT_DTYPE_F32, left).f));
    assert_true(isnan(pl_scalar_apply(PL_MAX, MDOT_DTYPE_F32, MDOT_DTYPE_F32, right).f));
}

static void exhausted_memory_gives_null(void **state)
{
    (void)state;
    ir_arena *tight = ir_arena_create(1);
    assert_non_null(tight);
    assert_null(pl_index(tight, 0));
    assert_null(pl_const_f(tight, MDOT_DTYPE_F32, 1));
    assert_null(pl_dim(tight, ir_dim_affine(2, 1)));
    ir_arena_destroy(tight);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constants_fold_in_their_type),
        cmocka_unit_test(floats_are_rounded_to_their_type),
        cmocka_unit_test(zeros_and_ones_are_folded_in_indices),
        cmocka_unit_test(constant_terms_are_combined),
        cmocka_unit_test(floating_point_zero_is_not_folded),
        cmocka_unit_test(flattening_inverts_unflattening),
        cmocka_unit_test(selections_with_constant_conditions_fold),
        cmocka_unit_test(zeros_of_two_signs_are_two_constants),
        cmocka_unit_test(f16_constants_are_rounded_once),
        cmocka_unit_test(numbers_use_a_decimal_point_in_every_locale),
        cmocka_unit_test(casts_to_the_same_type_are_folded),
        cmocka_unit_test(dims_are_affine_in_the_length),
        cmocka_unit_test(strides_are_found_where_they_are_constant),
        cmocka_unit_test(data_dependent_and_quotient_indices_have_no_stride),
        cmocka_unit_test(index_uses_are_found_inside_loads),
        cmocka_unit_test(missing_operands_give_missing_expressions),
        cmocka_unit_test(integers_wrap_and_never_trap),
        cmocka_unit_test(remainders_take_the_right_sign),
        cmocka_unit_test(unsigned_numbers_compare_as_such),
        cmocka_unit_test(nan_passes_through_min_and_max),
        cmocka_unit_test(exhausted_memory_gives_null),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
