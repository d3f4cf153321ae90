/* test_ops_reduce.c — shapes, costs and values of reductions, ArgMax and ArgMin. */
#include "op_cases.h"

#define DATA "f32[2,3] [1, -2, 3, 4, 5, -6]"

static const op_case reductions[] = {
    {"sum_of_all", "ReduceSum", "", {DATA}, {"f32[1,1] [5]"}},
    {"sum_of_all_to_a_scalar", "ReduceSum", "keepdims=0", {DATA}, {"f32[] [5]"}},
    {"sum_of_rows", "ReduceSum", "", {DATA, "i64[1] [1]"}, {"f32[2,1] [2, 3]"}},
    {"sum_of_columns", "ReduceSum", "keepdims=0", {DATA, "i64[1] [-2]"}, {"f32[3] [5, 3, -3]"}},
    {"sum_of_outer_and_inner",
     "ReduceSum",
     "keepdims=0",
     {"f32[2,2,2] [1, 2, 3, 4, 5, 6, 7, 8]", "i64[2] [0, 2]"},
     {"f32[2] [14, 22]"}},
    {"empty_axes_mean_all", "ReduceSum", "keepdims=0", {DATA, "i64[0] []"}, {"f32[] [5]"}},
    {"empty_axes_may_mean_none", "ReduceSum", "noop_with_empty_axes=1", {DATA, "i64[0] []"}, {DATA}},
    {"none_still_squares", "ReduceSumSquare", "noop_with_empty_axes=1", {"f32[3] [1, -2, 3]"}, {"f32[3] [1, 4, 9]"}},
    {"sum_of_a_scalar", "ReduceSum", "", {"f32[] [3]"}, {"f32[] [3]"}},
    {"mean", "ReduceMean", "keepdims=0", {DATA, "i64[1] [1]"}, {"f32[2] [0.6666666666666666, 1]"}},
    {"mean_of_integers_truncates", "ReduceMean", "keepdims=0", {"i32[3] [1, 2, 5]"}, {"i32[] [2]"}},
    {"max", "ReduceMax", "keepdims=0", {DATA, "i64[1] [1]"}, {"f32[2] [3, 5]"}},
    {"max_keeps_nan", "ReduceMax", "", {"f32[3] [1, nan, 2]"}, {"f32[1] [nan]"}},
    {"max_of_negative_integers", "ReduceMax", "", {"i8[2] [-128, -127]"}, {"i8[1] [-127]"}},
    {"max_of_unsigned", "ReduceMax", "", {"u64[2] [1, 18446744073709551615]"}, {"u64[1] [18446744073709551615]"}},
    {"max_of_bools_is_any", "ReduceMax", "keepdims=0", {"bool[2,2] [0, 0, 0, 1]", "i64[1] [1]"}, {"bool[2] [0, 1]"}},
    {"min_of_bools_is_all", "ReduceMin", "keepdims=0", {"bool[2,2] [1, 1, 0, 1]", "i64[1] [1]"}, {"bool[2] [1, 0]"}},
    {"min", "ReduceMin", "keepdims=0", {DATA, "i64[1] [1]"}, {"f32[2] [-2, -6]"}},
    {"prod", "ReduceProd", "keepdims=0", {DATA, "i64[1] [1]"}, {"f32[2] [-6, -120]"}},
    {"prod_wraps", "ReduceProd", "", {"u8[2] [16, 17]"}, {"u8[1] [16]"}},
    {"l1", "ReduceL1", "keepdims=0", {DATA, "i64[1] [1]"}, {"f32[2] [6, 15]"}},
    {"l1_of_integers", "ReduceL1", "", {"i32[2] [-3, 4]"}, {"i32[1] [7]"}},
    {"l2", "ReduceL2", "", {"f32[2] [3, -4]"}, {"f32[1] [5]"}},
    {"log_sum", "ReduceLogSum", "", {"f64[2] [1, 3]"}, {"f64[1] [1.3862943611198906]"}},
    {"log_sum_exp_does_not_overflow", "ReduceLogSumExp", "", {"f64[2] [1000, 1000]"}, {"f64[1] [1000.6931471805599]"}},
    {"log_sum_exp_of_infinities",
     "ReduceLogSumExp",
     "keepdims=0",
     {"f64[3,2] [-inf, -inf, inf, 0, nan, 0]", "i64[1] [1]"},
     {"f64[3] [-inf, inf, nan]"}},
    {"sum_square", "ReduceSumSquare", "", {"f32[2] [3, -4]"}, {"f32[1] [25]"}},
    {"sum_square_of_integers", "ReduceSumSquare", "", {"i64[1] [3037000499]"}, {"i64[1] [9223372030926249001]"}},
};

static const op_case of_nothing[] = {
    {"sum_of_nothing", "ReduceSum", "", {"f32[2,0] []", "i64[1] [1]"}, {"f32[2,1] [0, 0]"}},
    {"prod_of_nothing", "ReduceProd", "", {"f32[2,0] []", "i64[1] [1]"}, {"f32[2,1] [1, 1]"}},
    {"max_of_nothing", "ReduceMax", "", {"f32[2,0] []", "i64[1] [1]"}, {"f32[2,1] [-inf, -inf]"}},
    {"max_of_no_integers", "ReduceMax", "", {"i8[1,0] []", "i64[1] [1]"}, {"i8[1,1] [-128]"}},
    {"min_of_no_bools", "ReduceMin", "", {"bool[1,0] []", "i64[1] [1]"}, {"bool[1,1] [1]"}},
    {"log_sum_exp_of_nothing", "ReduceLogSumExp", "", {"f32[1,0] []", "i64[1] [1]"}, {"f32[1,1] [-inf]"}},
    {"nothing_along_another_axis", "ReduceSum", "", {"f32[2,0] []", "i64[1] [0]"}, {"f32[1,0] []"}},
};

static const op_case arguments[] = {
    {"argmax_of_columns", "ArgMax", "", {"f32[2,3] [1, 5, 3, 4, 2, 3]"}, {"i64[1,3] [1, 0, 0]"}},
    {"argmax_of_rows", "ArgMax", "axis=-1, keepdims=0", {"f32[2,3] [1, 5, 3, 4, 2, 3]"}, {"i64[2] [1, 0]"}},
    {"argmax_takes_the_last_of_equals",
     "ArgMax",
     "axis=0, select_last_index=1",
     {"i32[4] [7, 9, 9, 1]"},
     {"i64[1] [2]"}},
    {"argmin", "ArgMin", "axis=1", {"f32[1,4] [2, 1, 1, 3]"}, {"i64[1,1] [1]"}},
    {"argmin_takes_the_last_of_equals",
     "ArgMin",
     "axis=0, select_last_index=1",
     {"f32[4] [2, 1, 1, 3]"},
     {"i64[1] [2]"}},
    {"argmax_is_unsigned", "ArgMax", "", {"u64[2] [18446744073709551615, 1]"}, {"i64[1] [0]"}},
    {"argmax_finds_nan", "ArgMax", "", {"f32[3] [1, nan, 2]"}, {"i64[1] [1]"}},
};

static void reductions_follow_their_definition(void **state)
{
    (void)state;
    EXPECT(expect_values, reductions, 1e-6);
    EXPECT(expect_values, of_nothing, 0);
    EXPECT(expect_values, arguments, 0);
}

static const op_case types[] = {
    {"length_is_reduced", "ReduceMean", "", {"f32[1,L,8]", "i64[1] [1]"}, {"f32[1,1,8]"}},
    {"length_is_kept", "ReduceMean", "keepdims=0", {"f32[1,L,8]", "i64[1] [-1]"}, {"f32[1,L]"}},
    {"argmax_makes_indices", "ArgMax", "axis=1, keepdims=0", {"f32[L,8]"}, {"i64[L]"}},
    {"product_of_known_dims", "ReduceProd", "keepdims=0", {"i64[3] known [2, L, 3]"}, {"i64[] known [6L]"}},
    {"sum_of_known", "ReduceSum", "", {"i64[2] known [L, 3]"}, {"i64[1] known [L+3]"}},
    {"max_of_known", "ReduceMax", "", {"i64[2] known [L, 1]"}, {"i64[1] known [L]"}},
    {"max_is_not_decided", "ReduceMax", "", {"i64[2] known [L, 5]"}, {"i64[1] unknown"}},
    {"product_of_lengths_is_not_affine", "ReduceProd", "", {"i64[2] known [L, L]"}, {"i64[1] unknown"}},
};

static const op_case malformed[] = {
    {"axis_out_of_range", "ReduceSum", "", {"f32[2,3]", "i64[1] [2]"}, {"axis 2"}},
    {"axis_twice", "ReduceSum", "", {"f32[2,3]", "i64[2] [1, -1]"}, {"twice"}},
    {"argmax_axis_out_of_range", "ArgMax", "axis=-3", {"f32[2,3]"}, {"axis -3"}},
    {"bools_have_no_sum", "ReduceSum", "", {"bool[2]"}, {"not defined for bool"}},
};

static const op_case unsupported[] = {
    {"axes_from_run_time", "ReduceSum", "", {"f32[2,3]", "i64[1]"}, {"known when the model is compiled"}},
};

static const op_case unanswerable[] = {
    {"argmax_of_nothing", "ArgMax", "axis=0", {"f32[0,3] []"}, {"empty"}},
};

static void shapes_follow_from_axes(void **state)
{
    (void)state;
    expect_types(types, sizeof types / sizeof types[0]);
    EXPECT(expect_type_faults, malformed, MDOT_MALFORMED);
    EXPECT(expect_type_faults, unsupported, MDOT_UNSUPPORTED);
    EXPECT(expect_value_faults, unanswerable, MDOT_MALFORMED);
}

static void cost_counts_steps_and_finishes(void **state)
{
    (void)state;
    const op_case mean = {"mean", "ReduceMean", "", {"f32[L,8]", "i64[1] [1]"}, {""}};
    ir_cost cost = case_cost(&mean, 4);
    assert_float_equal(cost.flops, 32 + 4, 0);
    assert_float_equal(cost.bytes_read, 4 * 32 + 8, 0);
    assert_float_equal(cost.bytes_written, 4 * 4, 0);
    assert_float_equal(cost.parameters, 0, 0);
    const op_case square = {"square", "ReduceSumSquare", "", {"f32[L,8]"}, {""}};
    assert_float_equal(case_cost(&square, 4).flops, 64, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_follow_their_definition),
        cmocka_unit_test(shapes_follow_from_axes),
        cmocka_unit_test(cost_counts_steps_and_finishes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
