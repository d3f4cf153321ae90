/* test_ops_reduce.c — reduction shapes, costs and values, ArgMax and ArgMin. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void reductions_follow_their_definition(void **state)
{
    (void)state;
    assert_values("f32[1,1] [5]", .op = "ReduceSum", .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]"}); /* all */
    assert_values("f32[] [5]", .op = "ReduceSum", .attrs = "keepdims=0",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]"}); /* all to a scalar */
    assert_values("f32[2,1] [2, 3]", .op = "ReduceSum",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[1] [1]"}); /* rows */
    assert_values("f32[3] [5, 3, -3]", .op = "ReduceSum", .attrs = "keepdims=0",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[1] [-2]"}); /* columns */
    assert_values("f32[2] [14, 22]", .op = "ReduceSum", .attrs = "keepdims=0",
                  .inputs = {"f32[2,2,2] [1, 2, 3, 4, 5, 6, 7, 8]", "i64[2] [0, 2]"}); /* outer and inner */
    assert_values("f32[] [5]", .op = "ReduceSum", .attrs = "keepdims=0",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[0] []"}); /* empty axes mean all */
    assert_values("f32[2,3] [1, -2, 3, 4, 5, -6]", .op = "ReduceSum", .attrs = "noop_with_empty_axes=1",
                  /* with this attribute, empty axes reduce zero axes */
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[0] []"});
    assert_values("f32[3] [1, 4, 9]", .op = "ReduceSumSquare", .attrs = "noop_with_empty_axes=1",
                  /* with zero axes, elements are still squared */
                  .inputs = {"f32[3] [1, -2, 3]"});
    assert_values("f32[] [3]", .op = "ReduceSum", .inputs = {"f32[] [3]"});
    assert_values("f32[2] [0.666667, 1]", .op = "ReduceMean", .attrs = "keepdims=0",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[1] [1]"}); /* mean */
    assert_values("i32[] [2]", .op = "ReduceMean", .attrs = "keepdims=0",
                  .inputs = {"i32[3] [1, 2, 5]"}); /* mean of integers truncates */
    assert_values("f32[2] [3, 5]", .op = "ReduceMax", .attrs = "keepdims=0",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[1] [1]"});           /* max */
    assert_values("f32[1] [nan]", .op = "ReduceMax", .inputs = {"f32[3] [1, nan, 2]"}); /* max keeps nan */
    assert_values("i8[1] [-127]", .op = "ReduceMax", .inputs = {"i8[2] [-128, -127]"}); /* max of negative integers */
    assert_values("u64[1] [18446744073709551615]", .op = "ReduceMax", .inputs = {"u64[2] [1, 18446744073709551615]"});
    assert_values("bool[2] [0, 1]", .op = "ReduceMax", .attrs = "keepdims=0",
                  .inputs = {"bool[2,2] [0, 0, 0, 1]", "i64[1] [1]"}); /* max of bools is any */
    assert_values("bool[2] [1, 0]", .op = "ReduceMin", .attrs = "keepdims=0",
                  .inputs = {"bool[2,2] [1, 1, 0, 1]", "i64[1] [1]"}); /* min of bools is all */
    assert_values("f32[2] [-2, -6]", .op = "ReduceMin", .attrs = "keepdims=0",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[1] [1]"}); /* min */
    assert_values("f32[2] [-6, -120]", .op = "ReduceProd", .attrs = "keepdims=0",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[1] [1]"});                 /* prod */
    assert_values("u32[1] [65536]", .op = "ReduceProd", .inputs = {"u32[2] [65536, 65537]"}); /* prod wraps */
    assert_values("f32[2] [6, 15]", .op = "ReduceL1", .attrs = "keepdims=0",
                  .inputs = {"f32[2,3] [1, -2, 3, 4, 5, -6]", "i64[1] [1]"}); /* l1 */
    assert_values("i32[1] [7]", .op = "ReduceL1", .inputs = {"i32[2] [-3, 4]"});
    assert_values("f32[1] [5]", .op = "ReduceL2", .inputs = {"f32[2] [3, -4]"});          /* l2 */
    assert_values("f64[1] [1.38629]", .op = "ReduceLogSum", .inputs = {"f64[2] [1, 3]"}); /* log sum */
    assert_values("f64[1] [1000.69]", .op = "ReduceLogSumExp",
                  .inputs = {"f64[2] [1000, 1000]"}); /* log sum exp of large numbers is finite */
    assert_values("f64[3] [-inf, inf, nan]", .op = "ReduceLogSumExp", .attrs = "keepdims=0",
                  .inputs = {"f64[3,2] [-inf, -inf, inf, 0, nan, 0]", "i64[1] [1]"});    /* log sum exp of infinities */
    assert_values("f32[1] [25]", .op = "ReduceSumSquare", .inputs = {"f32[2] [3, -4]"}); /* sum square */
    assert_values("i64[1] [9223372030926249001]", .op = "ReduceSumSquare", .inputs = {"i64[1] [3037000499]"});
}

static void empty_reductions_give_the_identity(void **state)
{
    (void)state;
    /* sum, empty tensor */
    assert_values("f32[2,1] [0, 0]", .op = "ReduceSum", .inputs = {"f32[2,0] []", "i64[1] [1]"});
    /* prod, empty tensor */
    assert_values("f32[2,1] [1, 1]", .op = "ReduceProd", .inputs = {"f32[2,0] []", "i64[1] [1]"});
    assert_values("f32[2,1] [-inf, -inf]", .op = "ReduceMax",
                  /* max, empty tensor */
                  .inputs = {"f32[2,0] []", "i64[1] [1]"});
    /* max of zero integers */
    assert_values("i8[1,1] [-128]", .op = "ReduceMax", .inputs = {"i8[1,0] []", "i64[1] [1]"});
    assert_values("bool[1,1] [1]", .op = "ReduceMin", .inputs = {"bool[1,0] []", "i64[1] [1]"}); /* min of zero bools */
    assert_values("f32[1,1] [-inf]", .op = "ReduceLogSumExp",
                  .inputs = {"f32[1,0] []", "i64[1] [1]"}); /* log sum exp, empty tensor */
    assert_values("f32[1,0] []", .op = "ReduceSum",
                  .inputs = {"f32[2,0] []", "i64[1] [0]"}); /* empty along another axis */
}

static void arg_max_and_arg_min_give_indices(void **state)
{
    (void)state;
    assert_values("i64[1,3] [1, 0, 0]", .op = "ArgMax", .inputs = {"f32[2,3] [1, 5, 3, 4, 2, 3]"}); /* columns */
    assert_values("i64[2] [1, 0]", .op = "ArgMax", .attrs = "axis=-1, keepdims=0",
                  .inputs = {"f32[2,3] [1, 5, 3, 4, 2, 3]"}); /* rows */
    assert_values("i64[1] [2]", .op = "ArgMax", .attrs = "axis=0, select_last_index=1",
                  .inputs = {"i32[4] [7, 9, 9, 1]"}); /* argmax takes the last equal */
    assert_values("i64[1,1] [1]", .op = "ArgMin", .attrs = "axis=1", .inputs = {"f32[1,4] [2, 1, 1, 3]"});
    assert_values("i64[1] [2]", .op = "ArgMin", .attrs = "axis=0, select_last_index=1",
                  .inputs = {"f32[4] [2, 1, 1, 3]"}); /* argmin takes the last equal */
    assert_values("i64[1] [0]", .op = "ArgMax",
                  .inputs = {"u64[2] [18446744073709551615, 1]"});                 /* argmax is unsigned */
    assert_values("i64[1] [1]", .op = "ArgMax", .inputs = {"f32[3] [1, nan, 2]"}); /* argmax finds nan */
}

static void shapes_follow_from_axes(void **state)
{
    (void)state;
    assert_types("f32[1,1,8]", .op = "ReduceMean", .inputs = {"f32[1,L,8]", "i64[1] [1]"}); /* length is reduced */
    assert_types("f32[1,L]", .op = "ReduceMean", .attrs = "keepdims=0",
                 .inputs = {"f32[1,L,8]", "i64[1] [-1]"}); /* length is kept */
    assert_types("i64[L]", .op = "ArgMax", .attrs = "axis=1, keepdims=0",
                 .inputs = {"f32[L,8]"}); /* argmax makes indices */
    assert_types("i64[] known [6L]", .op = "ReduceProd", .attrs = "keepdims=0", .inputs = {"i64[3] known [2, L, 3]"});
    assert_types("i64[1] known [L+3]", .op = "ReduceSum", .inputs = {"i64[2] known [L, 3]"});
    assert_types("i64[1] known [L]", .op = "ReduceMax", .inputs = {"i64[2] known [L, 1]"});
    /* max depends on the length */
    assert_types("i64[1]", .op = "ReduceMax", .inputs = {"i64[2] known [L, 5]"});
    assert_types("i64[1]", .op = "ReduceProd",
                 .inputs = {"i64[2] known [L, L]"}); /* product of two lengths: the known value is lost */
}

static void wrong_axes_are_refused_by_name(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "axis 2", .op = "ReduceSum",
                       .inputs = {"f32[2,3]", "i64[1] [2]"}); /* axis out of range */
    assert_shape_fault(MDOT_MALFORMED, "twice", .op = "ReduceSum",
                       .inputs = {"f32[2,3]", "i64[2] [1, -1]"}); /* axis twice */
    assert_shape_fault(MDOT_MALFORMED, "axis 1 is empty", .op = "ArgMin", .attrs = "axis=1", .inputs = {"f32[2,0]"});
    assert_shape_fault(MDOT_MALFORMED, "axis -3", .op = "ArgMax", .attrs = "axis=-3",
                       .inputs = {"f32[2,3]"}); /* argmax axis out of range */
    assert_shape_fault(MDOT_MALFORMED, "is of type bool, where the operator takes", .op = "ReduceSum",
                       .inputs = {"bool[2]"}); /* sum of bools is refused */
}

static void axes_must_be_known(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_UNSUPPORTED, "known when the model is compiled", .op = "ReduceSum",
                       .inputs = {"f32[2,3]", "i64[1]"}); /* axes from run time */
}

static void arg_max_of_an_empty_tensor_is_refused(void **state)
{
    (void)state;
    assert_eval_fault(MDOT_MALFORMED, "empty", .op = "ArgMax", .attrs = "axis=0",
                      .inputs = {"f32[0,3] []"}); /* argmax, empty tensor */
}

static void cost_counts_each_element_and_the_final_step(void **state)
{
    (void)state;
    assert_cost(80 + 10, 4 * 80 + 8, 4 * 10, 0, .op = "ReduceMean", .inputs = {"f32[L,8]", "i64[1] [1]"});
    assert_cost(2 * 80, 4 * 80, 4, 0, .op = "ReduceSumSquare", .inputs = {"f32[L,8]"});
    assert_cost(80, 4 * 80, 8 * 10, 0, .op = "ArgMax", .attrs = "axis=1", .inputs = {"f32[L,8]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_follow_their_definition),
        cmocka_unit_test(empty_reductions_give_the_identity),
        cmocka_unit_test(arg_max_and_arg_min_give_indices),
        cmocka_unit_test(shapes_follow_from_axes),
        cmocka_unit_test(wrong_axes_are_refused_by_name),
        cmocka_unit_test(axes_must_be_known),
        cmocka_unit_test(arg_max_of_an_empty_tensor_is_refused),
        cmocka_unit_test(cost_counts_each_element_and_the_final_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
