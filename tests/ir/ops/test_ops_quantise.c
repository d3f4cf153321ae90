/* test_ops_quantise.c — ir/ops/quantise.c: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, MatMulInteger. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void quantised_numbers_are_rounded_and_kept_in_range(void **state)
{
    (void)state;
    assert_types("u8[L,3]", "QuantizeLinear", .inputs = {"f32[L,3]", "f32[]"});
    assert_types("i8[L,3]", "QuantizeLinear", .inputs = {"f32[L,3]", "f32[3]", "i8[3]"});
    assert_types("f32[L,3]", "DequantizeLinear", .inputs = {"u8[L,3]", "f32[]", "u8[]"});
    /* ties go to even, as in ONNX */
    assert_values("u8[5] [0, 10, 12, 12, 255]", "QuantizeLinear",
                  .inputs = {"f32[5] [-100, 0, 1, 1.25, 900]", "f32[] [0.5]", "u8[] [10]"});
    assert_values("f32[3] [-5, 0, 122.5]", "DequantizeLinear",
                  .inputs = {"u8[3] [0, 10, 255]", "f32[] [0.5]", "u8[] [10]"});
}

static void scale_or_zero_point_alone_may_follow_the_axis(void **state)
{
    (void)state;
    assert_values("i8[2,2] [2, 1, 5, 3]", "QuantizeLinear",
                  .inputs = {"f32[2,2] [1, 1, 4, 4]", "f32[2] [1, 2]", "i8[1] [1]"});
    assert_values("i8[2,2] [2, -4, 5, -1]", "QuantizeLinear",
                  .inputs = {"f32[2,2] [1, 1, 4, 4]", "f32[] [1]", "i8[2] [1, -5]"});
    assert_values("f32[2,2] [0, 6, 3, 9]", "DequantizeLinear",
                  .inputs = {"i8[2,2] [1, 1, 4, 4]", "f32[] [1]", "i8[2] [1, -5]"});
}

static void mismatched_scales_are_refused(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "the scale has [2] elements, but axis 1 has [3]", "QuantizeLinear",
                       .inputs = {"f32[L,3]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "the zero point has [2] elements", "DequantizeLinear",
                       .inputs = {"u8[L,3]", "f32[]", "u8[2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "blocks of elements", "DequantizeLinear", .inputs = {"u8[4,3]", "f32[2,3]"});
}

static void dynamic_range_holds_zero(void **state)
{
    (void)state;
    assert_types("u8[L,2]; f32[]; u8[]", "DynamicQuantizeLinear", .inputs = {"f32[L,2]"}, .output_count = 3);
    assert_values("u8[2] [0, 0]; f32[] [nan]; u8[] [0]", "DynamicQuantizeLinear", .inputs = {"f32[2] [nan, 1]"},
                  .output_count = 3);
    assert_values("u8[3] [0, 127, 255]; f32[] [1]; u8[] [0]", "DynamicQuantizeLinear",
                  .inputs = {"f32[3] [0, 127, 255]"}, .output_count = 3);
    assert_values("u8[2] [0, 0]; f32[] [0]; u8[] [0]", "DynamicQuantizeLinear", .inputs = {"f32[2] [0, 0]"},
                  .output_count = 3);
}

static void mat_mul_integer_subtracts_zero_points(void **state)
{
    (void)state;
    assert_types("i32[L,4]", "MatMulInteger", .inputs = {"u8[L,6]", "i8[6,4]", "u8[]", "i8[4]"});
    assert_types("i32[4]", "MatMulInteger", .inputs = {"u8[6]", "i8[6,4]", "u8[1]", "i8[1]"});
    assert_types("i32[]", "MatMulInteger", .inputs = {"u8[6]", "i8[6]", "u8[1]", "i8[1]"});
    assert_values("i32[2,1] [1, 5]", "MatMulInteger", .inputs = {"u8[2,2] 0..", "i8[2,1] [1, 1]"});
    assert_values("i32[2,1] [1, 1]", "MatMulInteger", .inputs = {"u8[2,2] 0..", "i8[2,1] [1, 1]", "u8[2] [0, 2]"});
    assert_values("i32[] [-2]", "MatMulInteger", .inputs = {"u8[2] [1, 3]", "i8[2] [2, 0]", "u8[1] [2]", "i8[1] [3]"});
}

static void mismatched_zero_points_are_refused(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "\"in2\" must have one element for each of the factor's rows", "MatMulInteger",
                       .inputs = {"u8[2,6]", "i8[6,4]", "u8[3]"});
    assert_shape_fault(MDOT_MALFORMED, "\"in3\" must have one element for each of the factor's columns",
                       "MatMulInteger", .inputs = {"u8[2,6]", "i8[6,4]", "_", "i8[6]"});
    /* a vector has one dimension, so zero points per row or column are refused */
    assert_shape_fault(MDOT_MALFORMED, "rows", "MatMulInteger", .inputs = {"u8[6]", "i8[6,4]", "u8[6]"});
    assert_shape_fault(MDOT_MALFORMED, "columns", "MatMulInteger", .inputs = {"u8[2,6]", "i8[6]", "_", "i8[6]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "more than one dimension", "MatMulInteger",
                       .inputs = {"u8[2,6]", "i8[6,4]", "u8[2,1]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantised_numbers_are_rounded_and_kept_in_range),
        cmocka_unit_test(scale_or_zero_point_alone_may_follow_the_axis),
        cmocka_unit_test(mismatched_scales_are_refused),
        cmocka_unit_test(dynamic_range_holds_zero),
        cmocka_unit_test(mat_mul_integer_subtracts_zero_points),
        cmocka_unit_test(mismatched_zero_points_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
