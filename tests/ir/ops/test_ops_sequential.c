/* test_ops_sequential.c — ir/ops/sequential.c: CumSum, TopK, ScatterElements, ScatterND, TensorScatter. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void cum_sum_adds_up(void **state)
{
    (void)state;
    assert_types("f32[2,L]", "CumSum", .inputs = {"f32[2,L]", "i64[] [1]"});
    assert_types("f32[2,L]", "CumSum", .inputs = {"f32[2,L]", "i64[]"});
    assert_values("f32[4] [0, 1, 3, 6]", "CumSum", .inputs = {"f32[4] 0..", "i64[] [0]"});
    assert_values("f32[4] [0, 0, 1, 3]", "CumSum", "exclusive=1", .inputs = {"f32[4] 0..", "i32[] [-1]"});
    assert_values("f32[4] [6, 6, 5, 3]", "CumSum", "reverse=1", .inputs = {"f32[4] 0..", "i64[1] [0]"});
    assert_values("f32[4] [6, 5, 3, 0]", "CumSum", "exclusive=1, reverse=1", .inputs = {"f32[4] 0..", "i64[] [0]"});
    assert_values("f32[2,2] [0, 1, 2, 4]", "CumSum", .inputs = {"f32[2,2] 0..", "i64[] [0]"});
    assert_values("i32[2] [2147483647, -2147483648]", "CumSum", .inputs = {"i32[2] [2147483647, 1]", "i64[] [0]"});
    assert_shape_fault(MDOT_MALFORMED, "axis 2", "CumSum", .inputs = {"f32[2,L]", "i64[] [2]"});
    assert_eval_fault(MDOT_MALFORMED, "the axis has 2 elements instead of 1", "CumSum",
                      .inputs = {"f32[2] 0..", "i64[2] [0, 0]"});
}

static void top_k_sorts_and_breaks_ties_by_index(void **state)
{
    (void)state;
    assert_types("f32[L,2]; i64[L,2]", "TopK", .inputs = {"f32[L,5]", "i64[1] [2]"}, .output_count = 2);
    assert_types("f32[L]; i64[L]", "TopK", .inputs = {"f32[L]", "i64[1] known [L]"}, .output_count = 2);
    assert_values("f32[3] [5, 5, 3]; i64[3] [1, 3, 0]", "TopK", .inputs = {"f32[5] [3, 5, 1, 5, 2]", "i64[1] [3]"},
                  .output_count = 2);
    assert_values("i64[2] [2, 0]", "TopK", "largest=0", .inputs = {"f32[4] [2, 5, 1, 2]", "i64[1] [2]"},
                  .output_count = 2, .only = "_x");
    assert_values("i64[1,2] [3, 2]; i64[1,2] [1, 0]", "TopK", "axis=0",
                  .inputs = {"i64[2,2] [1, 2, 3, 0]", "i64[1] [1]"}, .output_count = 2);
    assert_values("f32[2] [nan, 2]; i64[2] [1, 0]", "TopK", .inputs = {"f32[3] [2, nan, 1]", "i64[1] [2]"},
                  .output_count = 2);
    assert_values("i64[1] [9223372036854775807]; i64[1] [1]", "TopK",
                  .inputs = {"i64[2] [9223372036854775806, 9223372036854775807]", "i64[1] [1]"}, .output_count = 2);
    assert_values("i64[1] [1]", "TopK", .inputs = {"u64[2] [1, 18446744073709551615]", "i64[1] [1]"}, .output_count = 2,
                  .only = "_x");
}

static void top_k_needs_a_known_fitting_k(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_UNSUPPORTED, "depends on data", "TopK", .inputs = {"f32[5]", "i64[1]"}, .output_count = 2);
    assert_shape_fault(MDOT_MALFORMED, "K, 6, must be one number between 0 and the dimension's 5", "TopK",
                       .inputs = {"f32[5]", "i64[1] [6]"}, .output_count = 2);
    assert_shape_fault(MDOT_UNSUPPORTED, "K, 2, must be one number between 0 and the dimension's L", "TopK",
                       .inputs = {"f32[L]", "i64[1] [2]"}, .output_count = 2);
}

static void scatter_elements_writes_and_combines(void **state)
{
    (void)state;
    assert_types("f32[3,L]", "ScatterElements", .inputs = {"f32[3,L]", "i64[2,L]", "f32[2,L]"});
    assert_values("f32[3] [0, 9, 8]", "ScatterElements", .inputs = {"f32[3] 0..", "i64[2] [1, -1]", "f32[2] [9, 8]"});
    assert_values("f32[2,2] [0, 7, 8, 3]", "ScatterElements", "axis=1",
                  .inputs = {"f32[2,2] 0..", "i64[2,1] [1, 0]", "f32[2,1] [7, 8]"});
    assert_values("f32[2] [0, 6]", "ScatterElements", "reduction=\"add\"",
                  .inputs = {"f32[2] 0..", "i64[2] [1, 1]", "f32[2] [2, 3]"});
    assert_values("f32[2] [0, 6]", "ScatterElements", "reduction=\"mul\"",
                  .inputs = {"f32[2] 0..", "i64[2] [1, 1]", "f32[2] [2, 3]"});
    assert_values("i64[2] [4, 1]", "ScatterElements", "reduction=\"max\"",
                  .inputs = {"i64[2] 0..", "i64[2] [0, 1]", "i64[2] [4, -3]"});
    assert_values("i64[2] [0, -3]", "ScatterElements", "reduction=\"min\"",
                  .inputs = {"i64[2] 0..", "i64[2] [0, 1]", "i64[2] [4, -3]"});
    assert_values("i8[1] [-128]", "ScatterElements", "reduction=\"add\"",
                  .inputs = {"i8[1] [127]", "i64[1] [0]", "i8[1] [1]"});
}

static void scatter_elements_refuses_mismatched_operands(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "do not match data of shape [3]", "ScatterElements",
                       .inputs = {"f32[3]", "i64[2]", "f32[1]"});
    assert_shape_fault(MDOT_MALFORMED, "input 2, \"in2\", is of type i64", "ScatterElements",
                       .inputs = {"f32[3]", "i64[1]", "i64[1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "reduction \"mean\"", "ScatterElements", "reduction=\"mean\"",
                       .inputs = {"f32[3]", "i64[1]", "f32[1]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "index 3", "ScatterElements",
                      .inputs = {"f32[3] 0..", "i64[1] [3]", "f32[1] [1]"});
}

static void scatter_nd_writes_slices(void **state)
{
    (void)state;
    assert_types("f32[L,4]", "ScatterND", .inputs = {"f32[L,4]", "i64[2,1]", "f32[2,4]"});
    assert_values("f32[2,2] [0, 1, 8, 9]", "ScatterND", .inputs = {"f32[2,2] 0..", "i64[1,1] [1]", "f32[1,2] [8, 9]"});
    assert_values("f32[2,2] [0, 9, 8, 3]", "ScatterND",
                  .inputs = {"f32[2,2] 0..", "i64[2,2] [1, 0, 0, -1]", "f32[2] [8, 9]"});
    assert_values("f32[2] [0, 4]", "ScatterND", "reduction=\"add\"",
                  .inputs = {"f32[2] 0..", "i64[2,1] [1, 1]", "f32[2] [1, 2]"});
    assert_shape_fault(MDOT_MALFORMED, "do not match", "ScatterND", .inputs = {"f32[2,2]", "i64[1,1]", "f32[1,3]"});
    assert_shape_fault(MDOT_MALFORMED, "do not match", "ScatterND", .inputs = {"f32[2]", "i64[1,2]", "f32[1]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "index 2", "ScatterND",
                      .inputs = {"f32[2] 0..", "i64[1,1] [2]", "f32[1] [1]"});
}

static void tensor_scatter_writes_into_a_cache(void **state)
{
    (void)state;
    assert_types("f32[2,L,4]", "TensorScatter", .inputs = {"f32[2,L,4]", "f32[2,1,4]", "i64[2]"});
    assert_values("f32[1,3,1] [7, 8, 2]", "TensorScatter", .inputs = {"f32[1,3,1] 0..", "f32[1,2,1] [7, 8]"});
    assert_values("f32[2,2,1] [0, 7, 8, 3]", "TensorScatter",
                  .inputs = {"f32[2,2,1] 0..", "f32[2,1,1] [7, 8]", "i64[2] [1, 0]"});
    assert_values("f32[1,3,1] [8, 1, 7]", "TensorScatter", "mode=\"circular\"",
                  .inputs = {"f32[1,3,1] 0..", "f32[1,2,1] [7, 8]", "i64[1] [5]"});
    assert_values("f32[1,2,2] [0, 7, 2, 8]", "TensorScatter", "axis=-1",
                  .inputs = {"f32[1,2,2] 0..", "f32[1,2,1] [7, 8]", "i64[1] [1]"});
}

static void tensor_scatter_refuses_mismatched_operands(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "does not match a cache", "TensorScatter",
                       .inputs = {"f32[1,2,1]", "f32[1,3,1]"});
    assert_shape_fault(MDOT_MALFORMED, "along axis 0", "TensorScatter", "axis=0",
                       .inputs = {"f32[1,2,1]", "f32[1,2,1]"});
    assert_shape_fault(MDOT_MALFORMED, "the write indices", "TensorScatter",
                       .inputs = {"f32[1,2,1]", "f32[1,1,1]", "i64[2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "mode \"ring\"", "TensorScatter", "mode=\"ring\"",
                       .inputs = {"f32[1,2,1]", "f32[1,1,1]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "write index 2", "TensorScatter",
                      .inputs = {"f32[1,2,1] 0..", "f32[1,1,1] [7]", "i64[1] [2]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "write index -1", "TensorScatter", "mode=\"circular\"",
                      .inputs = {"f32[1,2,1] 0..", "f32[1,1,1] [7]", "i64[1] [-1]"});
}

static void only_scatter_reductions_cost_flops(void **state)
{
    (void)state;
    assert_cost(20, 80 + 8, 80, 0, "CumSum", .inputs = {"f32[2,L]", "i64[] [1]"});
    assert_cost(0, 40 + 8, 8 + 16, 0, "TopK", .inputs = {"f32[10]", "i64[1] [2]"}, .output_count = 2);
    assert_cost(0, 40 + 16 + 8, 40, 0, "ScatterElements", .inputs = {"f32[L]", "i64[2]", "f32[2]"});
    assert_cost(2, 40 + 16 + 8, 40, 0, "ScatterElements", "reduction=\"max\"",
                .inputs = {"f32[L]", "i64[2]", "f32[2]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cum_sum_adds_up),
        cmocka_unit_test(top_k_sorts_and_breaks_ties_by_index),
        cmocka_unit_test(top_k_needs_a_known_fitting_k),
        cmocka_unit_test(scatter_elements_writes_and_combines),
        cmocka_unit_test(scatter_elements_refuses_mismatched_operands),
        cmocka_unit_test(scatter_nd_writes_slices),
        cmocka_unit_test(tensor_scatter_writes_into_a_cache),
        cmocka_unit_test(tensor_scatter_refuses_mismatched_operands),
        cmocka_unit_test(only_scatter_reductions_cost_flops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
