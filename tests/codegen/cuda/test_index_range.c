/* test_index_range.c — index expression ranges. A range always covers the true range, and it keeps the unit as far as
 * it can be followed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "codegen/cuda/cuda_stages.h"
#include "tests/support/cuda_plan_fixture.h"

static const pl_expr *number(int64_t n) { return pl_const_i(cuda_arena, MDOT_DTYPE_I64, n); }

static const pl_expr *binary(pl_expr_op op, const pl_expr *a, const pl_expr *b)
{
    return pl_binary(cuda_arena, op, a, b);
}

/* Loop 0 runs over three rows per unit, loop 1 over 8 columns. Lengths go up to 64. */
static cu_range span_of(const pl_expr *e)
{
    cu_space space = {.max_length = 64, .loop_count = 2, .loop = {{3, 0, 2}, {0, 0, 7}}};
    return cu_range_of(&space, e);
}

static void assert_span(cu_range s, int64_t unit, int64_t low, int64_t high)
{
    assert_int_equal(s.unit, unit);
    assert_int_equal(s.low, low);
    assert_int_equal(s.high, high);
}

static const pl_expr *element(void)
{
    return binary(PL_ADD, binary(PL_MUL, pl_index(cuda_arena, 0), number(8)), pl_index(cuda_arena, 1));
}

static void element_indices_stay_within_the_unit(void **state)
{
    (void)state;
    assert_span(span_of(element()), 24, 0, 23);
    assert_span(span_of(binary(PL_SUB, element(), number(8))), 24, -8, 15);
}

static void rows_divided_by_unit_size_give_the_unit(void **state)
{
    (void)state;
    assert_span(span_of(binary(PL_FLOORDIV, pl_index(cuda_arena, 0), number(3))), 1, 0, 0);
    assert_span(span_of(binary(PL_PYMOD, pl_index(cuda_arena, 0), number(3))), 0, 0, 2);
    assert_span(span_of(binary(PL_FLOORDIV, element(), number(8))), 3, 0, 2);
}

static void indivisible_rows_have_global_bounds(void **state)
{
    (void)state;
    assert_span(span_of(binary(PL_FLOORDIV, pl_index(cuda_arena, 0), number(2))), 0, 0, 95);
    assert_span(span_of(binary(PL_PYMOD, pl_index(cuda_arena, 0), number(2))), 0, 0, 1);
    assert_span(span_of(binary(PL_MUL, pl_index(cuda_arena, 0), pl_index(cuda_arena, 1))), 0, 0, 191 * 7);
}

static void clamped_data_is_bounded(void **state)
{
    (void)state;
    const pl_expr *data = pl_load(cuda_arena, 0, MDOT_DTYPE_I64, pl_index(cuda_arena, 0));
    assert_false(cu_range_is_bounded(span_of(data)));
    assert_span(span_of(binary(PL_MAX, binary(PL_MIN, data, number(127)), number(0))), 0, 0, 127);
    assert_false(cu_range_is_bounded(span_of(binary(PL_ADD, data, number(1)))));
}

static void selections_span_both_branches(void **state)
{
    (void)state;
    const pl_expr *is_first = binary(PL_LT, pl_index(cuda_arena, 0), number(1));
    assert_span(span_of(pl_select(cuda_arena, is_first, number(4), number(9))), 0, 4, 9);
    assert_span(span_of(pl_select(cuda_arena, is_first, element(), binary(PL_ADD, element(), number(2)))), 24, 0, 25);
    assert_span(span_of(pl_select(cuda_arena, is_first, number(4), pl_index(cuda_arena, 0))), 0, 0, 191);
}

static void overflow_gives_no_bound(void **state)
{
    (void)state;
    const pl_expr *large = binary(PL_MUL, pl_index(cuda_arena, 0), number(INT64_MAX / 2));
    assert_false(cu_range_is_bounded(span_of(binary(PL_ADD, large, large))));
    const pl_expr *narrow =
        pl_cast(cuda_arena, binary(PL_MUL, pl_index(cuda_arena, 0), number(INT32_MAX)), MDOT_DTYPE_I32);
    assert_false(cu_range_is_bounded(span_of(narrow)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_indices_stay_within_the_unit),
        cmocka_unit_test(rows_divided_by_unit_size_give_the_unit),
        cmocka_unit_test(indivisible_rows_have_global_bounds),
        cmocka_unit_test(clamped_data_is_bounded),
        cmocka_unit_test(selections_span_both_branches),
        cmocka_unit_test(overflow_gives_no_bound),
    };
    return cmocka_run_group_tests(tests, cuda_arena_begin, cuda_arena_end);
}
