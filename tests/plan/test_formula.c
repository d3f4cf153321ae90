/* test_formula.c — formulas on constants, which the builders fold to a constant. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/plan_builder.h"

/* The value of a formula of x and y in f64. */
static double value_of(const char *formula, double x, double y)
{
    ir_arena *arena = ir_arena_create(0);
    const pl_symbol symbols[] = {{"x", pl_const_f(arena, MDOT_DTYPE_F64, x)},
                                 {"y", pl_const_f(arena, MDOT_DTYPE_F64, y)}};
    const pl_expr *result = pl_formula(arena, formula, symbols, 2);
    assert_non_null(result);
    assert_int_equal(result->op, PL_CONST);
    double value = result->dtype == MDOT_DTYPE_BOOL ? (double)result->n : result->f;
    ir_arena_destroy(arena);
    return value;
}

static void operators_bind_as_in_c(void **state)
{
    (void)state;
    static const struct {
        const char *formula;
        double value;
    } cases[] = {
        {"1 + 2 * x", 7},
        {"x - 1 - 1", 1},
        {"12 / x / 2", 2},
        {"-x * y + 1", -29},
        {"x < y ? x : y < x ? y : 0", 3},
        {"x <= 3 ? (y == 10 ? 1 : 2) : 3", 1},
        {"x + 1 < y - 6", 0},
        {"a = x + y; b = a * a; b - a", 156},
        {"x == 3 ? 1 : 2", 1}, /* a comparison is no definition */
        {"max(min(x, y), -2.5e-1) * sqrt(4)", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(value_of(cases[i].formula, 3, 10) == cases[i].value);
}

static void functions_keep_small_numbers_and_signs(void **state)
{
    (void)state;
    for (double x = 1e-18; x < 1e3; x *= 3.7) {
        assert_true(fabs(value_of("log1p(x)", x, 0) / log1p(x) - 1) < 1e-14);
        assert_true(x > 500 || fabs(value_of("expm1(x)", x, 0) / expm1(x) - 1) < 1e-14);
        assert_true(fabs(value_of("atan(x)", x, 0) / atan(x) - 1) < 1e-14);
        assert_true(value_of("atan(x)", -x, 0) == -value_of("atan(x)", x, 0));
        assert_true(fabs(value_of("softplus(x)", -x, 0) / log1p(exp(-x)) - 1) < 1e-12 || x > 300);
    }
    assert_true(signbit(value_of("odd(x, y)", -0.0, 5)) != 0);
    assert_true(isnan(value_of("odd(x, y)", NAN, 5)));
}

static void numbers_have_the_first_operands_type(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    const pl_symbol x = {"x", pl_acc(arena, 0, MDOT_DTYPE_F32)}, none = {"x", NULL};
    const pl_expr *sum = pl_formula(arena, "x + 0.1", &x, 1);
    assert_non_null(sum);
    assert_int_equal(sum->op, PL_ADD);
    assert_int_equal(sum->arg[1]->dtype, MDOT_DTYPE_F32);
    assert_true(sum->arg[1]->f == (double)0.1F);
    assert_null(pl_formula(arena, "x + 1", &none, 1));
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_bind_as_in_c),
        cmocka_unit_test(functions_keep_small_numbers_and_signs),
        cmocka_unit_test(numbers_have_the_first_operands_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
