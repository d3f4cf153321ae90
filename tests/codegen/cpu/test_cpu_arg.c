/* test_cpu_arg.c — ArgMax and ArgMin on rows with NaN, from ONNX operators to code, compared with the evaluator: NaN is
 * a row's extreme, as in NumPy and PyTorch. ONNX Runtime's order depends on the vector length. */
#include "tests/support/graph_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const int64_t lengths[] = {1, 2, 7, 16, 33, 40, 0};

/* A negative number's root is NaN. */
#define ARGS(input, axis)                                                                                              \
    "x = " input "\nn = Sqrt(x)\na = ArgMax(n) {" axis "}\nb = ArgMax(n) {select_last_index=1, " axis "}\n"            \
    "c = ArgMin(n) {" axis "}\nd = ArgMin(n) {select_last_index=1, " axis "}\nreturn a, b, c, d\n"

static void nan_is_the_extreme_of_a_row(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(ARGS("input f32[L,37]", "axis=1, keepdims=0"), lengths);
    assert_code_agrees(ARGS("input f32[L,3]", "axis=1"), lengths);
    assert_code_agrees(ARGS("input f64[L,37]", "axis=1"), lengths);
    assert_code_agrees(ARGS("input f16[L,37]", "axis=1"), lengths);
}

static void nan_is_the_extreme_of_a_column(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(ARGS("input f32[L,37]", "axis=0"), lengths);
    assert_code_agrees(ARGS("input f32[2,L,19]", "axis=1, keepdims=0"), lengths);
    assert_code_agrees(ARGS("input f32[1]", "axis=0"), lengths);
}

/* The nearest of twelve rows: the products have a common factor, and pairs of values and indices. */
static void extremes_of_products_have_indices(void **state)
{
    (void)state;
    assert_code_agrees_everywhere("x = input f32[L,1,8,64]\nw = weights f32[12,8,64]\np = Mul(x, w)\n"
                                  "a = ArgMax(p) {axis=2}\nb = ArgMin(p) {axis=2}\nreturn a, b\n",
                                  lengths);
    assert_code_agrees("x = input f32[L,1,5,64]\nw = weights f32[12,5,1]\np = Mul(x, w)\n"
                       "a = ArgMax(p) {axis=2, keepdims=0}\nreturn a\n",
                       lengths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_is_the_extreme_of_a_row),
        cmocka_unit_test(nan_is_the_extreme_of_a_column),
        cmocka_unit_test(extremes_of_products_have_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
