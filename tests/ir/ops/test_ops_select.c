/* test_ops_select.c — ir/ops/select.c: Slice, Split, Concat, Pad. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define GREATEST "9223372036854775807"
#define LEAST "-9223372036854775808"

static void slice_selects_fixed_ranges(void **state)
{
    (void)state;
    assert_types("f32[2,4]", "Slice", .inputs = {"f32[3,4]", "i64[1] [1]", "i64[1] [3]"});
    assert_values("f32[2] [1, 2]", "Slice", .inputs = {"f32[4] 0..", "i64[1] [1]", "i64[1] [3]"});
    assert_values("f32[2] [2, 3]", "Slice", .inputs = {"f32[4] 0..", "i64[1] [-2]", "i64[1] [100]"});
    assert_values("f32[0] []", "Slice", .inputs = {"f32[4] 0..", "i64[1] [3]", "i64[1] [1]"});
    assert_values("f32[2,1] [1, 4]", "Slice", .inputs = {"f32[2,3] 0..", "i64[1] [1]", "i64[1] [2]", "i64[1] [-1]"});
    assert_values("f32[1,2] [3, 5]", "Slice",
                  .inputs = {"f32[2,3] 0..", "i32[2] [0, 1]", "i32[2] [9, 9]", "i32[2] [1, 0]", "i32[2] [2, 1]"});
}

static void slice_accepts_negative_steps(void **state)
{
    (void)state;
    assert_values("f32[4] [3, 2, 1, 0]", "Slice",
                  .inputs = {"f32[4] 0..", "i64[1] [-1]", "i64[1] [" LEAST "]", "i64[1] [0]", "i64[1] [-1]"});
    assert_values("f32[2] [3, 1]", "Slice",
                  .inputs = {"f32[4] 0..", "i64[1] [" GREATEST "]", "i64[1] [-5]", "i64[1] [0]", "i64[1] [-2]"});
    assert_values("f32[1] [3]", "Slice",
                  .inputs = {"f32[4] 0..", "i64[1] [3]", "i64[1] [0]", "i64[1] [0]", "i64[1] [" LEAST "]"});
    assert_values("f32[0] []", "Slice",
                  .inputs = {"f32[0] []", "i64[1] [3]", "i64[1] [" LEAST "]", "i64[1] [0]", "i64[1] [-1]"});
}

static void slice_bounds_are_affine(void **state)
{
    (void)state;
    assert_types("f32[L,4]", "Slice", .inputs = {"f32[64,4]", "i64[1] [0]", "i64[1] known [L]"});
    assert_types("f32[L-1,4]", "Slice", .inputs = {"f32[L,4]", "i64[1] [0]", "i64[1] [-1]"});
    assert_types("f32[L-1,4]", "Slice", .inputs = {"f32[L,4]", "i64[1] [1]", "i64[1] [" GREATEST "]"});
    assert_types("f32[L,4]", "Slice", .inputs = {"f32[L,4]", "i64[1] [0]", "i64[1] [64]"}); /* L is at most 64 */
    assert_types("f32[L,4]", "Slice",
                 .inputs = {"f32[L,4]", "i64[1] [-1]", "i64[1] [" LEAST "]", "i64[1] [0]", "i64[1] [-1]"});
    assert_types("f32[1,4]", "Slice", .inputs = {"f32[L,4]", "i64[1] [0]", "i64[1] [1]"});
    assert_types("f32[L]", "Slice",
                 .inputs = {"f32[2L]", "i64[1] [0]", "i64[1] [" GREATEST "]", "i64[1] [0]", "i64[1] [2]"});
    assert_types("f32[(L+1)/2]", "Slice",
                 .inputs = {"f32[L]", "i64[1] [0]", "i64[1] [" GREATEST "]", "i64[1] [0]", "i64[1] [2]"});
}

static void slice_refuses_bounds_that_depend_on_the_length(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_UNSUPPORTED, "along axis 0, the effect of the end, 5, on a dimension of L", "Slice",
                       .inputs = {"f32[L]", "i64[1] [0]", "i64[1] [5]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "the start, L-5", "Slice",
                       .inputs = {"f32[64]", "i64[1] known [L-5]", "i64[1] [64]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "the starts, \"in1\", are unknown", "Slice",
                       .inputs = {"f32[4]", "i64[1]", "i64[1] [2]"});
}

static void slice_refuses_malformed_bounds(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "the step along axis 0 is 0", "Slice",
                       .inputs = {"f32[4]", "i64[1] [0]", "i64[1] [2]", "i64[1] [0]", "i64[1] [0]"});
    assert_shape_fault(MDOT_MALFORMED, "1 starts, 2 ends", "Slice",
                       .inputs = {"f32[4]", "i64[1] [0]", "i64[2] [2, 2]"});
    assert_shape_fault(MDOT_MALFORMED, "twice", "Slice",
                       .inputs = {"f32[4,4]", "i64[2] [0, 0]", "i64[2] [2, 2]", "i64[2] [0, -2]"});
    assert_shape_fault(MDOT_MALFORMED, "axis 3", "Slice",
                       .inputs = {"f32[4]", "i64[1] [0]", "i64[1] [2]", "i64[1] [3]"});
}

static void split_makes_equal_parts(void **state)
{
    (void)state;
    assert_types("f32[L,2]; f32[L,2]", "Split", "axis=-1", .inputs = {"f32[L,4]"}, .output_count = 2);
    assert_types("f32[L]; f32[L]", "Split", .inputs = {"f32[2L]"}, .output_count = 2);
    assert_values("f32[3] [0, 1, 2]; f32[3] [3, 4, 5]; f32[1] [6]", "Split", "num_outputs=3", .inputs = {"f32[7] 0.."},
                  .output_count = 3);
    assert_values("f32[1] [0]; f32[1] [1]; f32[0] []", "Split", .inputs = {"f32[2] 0.."}, .output_count = 3);
    assert_shape_fault(MDOT_UNSUPPORTED, "L does not divide into 2 parts", "Split", .inputs = {"f32[L]"},
                       .output_count = 2);
    assert_shape_fault(MDOT_MALFORMED, "num_outputs is 3", "Split", "num_outputs=3", .inputs = {"f32[6]"},
                       .output_count = 2);
}

static void split_makes_parts_of_given_sizes(void **state)
{
    (void)state;
    assert_types("f32[1]; f32[L-1]", "Split", .inputs = {"f32[L]", "i64[2] known [1, L-1]"}, .output_count = 2);
    assert_values("f32[2,1] [0, 3]; f32[2,2] [1, 2, 4, 5]", "Split", "axis=1",
                  .inputs = {"f32[2,3] 0..", "i64[2] [1, 2]"}, .output_count = 2);
    assert_values("f32[1] [2]", "Split", .inputs = {"f32[3] 0..", "i64[2] [2, 1]"}, .output_count = 2, .only = "_x");
    assert_types("i64[1] known [4]; i64[2] known [L, 5]", "Split",
                 .inputs = {"i64[3] known [4, L, 5]", "i64[2] [1, 2]"}, .output_count = 2);
    assert_shape_fault(MDOT_MALFORMED, "the parts have 5 elements together instead of 6", "Split",
                       .inputs = {"f32[6]", "i64[2] [2, 3]"}, .output_count = 2);
    assert_shape_fault(MDOT_UNSUPPORTED, "the parts have 5 elements together instead of L", "Split",
                       .inputs = {"f32[L]", "i64[2] [2, 3]"}, .output_count = 2);
    assert_shape_fault(MDOT_MALFORMED, "2 sizes for 3 outputs", "Split", .inputs = {"f32[6]", "i64[2] [2, 4]"},
                       .output_count = 3);
    assert_shape_fault(MDOT_MALFORMED, "part 0 is negative", "Split", .inputs = {"f32[6]", "i64[2] [-1, 7]"},
                       .output_count = 2);
}

static void concat_adds_along_its_axis(void **state)
{
    (void)state;
    assert_types("f32[2,L+3]", "Concat", "axis=1", .inputs = {"f32[2,L]", "f32[2,3]"});
    assert_types("f32[3L]", "Concat", "axis=-1", .inputs = {"f32[L]", "f32[2L]"});
    assert_values("f32[2,3] [0, 1, 0, 2, 3, 1]", "Concat", "axis=-1", .inputs = {"f32[2,2] 0..", "f32[2,1] 0.."});
    assert_values("i64[3] [0, 0, 1]", "Concat", "axis=0", .inputs = {"i64[1] 0..", "i64[0] []", "i64[2] 0.."});
    assert_types("i64[4] known [1, L, 12, 32]", "Concat", "axis=0",
                 .inputs = {"i64[2] known [1, L]", "i64[2] [12, 32]"});
    assert_types("f32[2] known [L, 2]", "Concat", "axis=0", .inputs = {"f32[1] known [L]", "f32[1] [2]"});
    assert_types("i64[3]", "Concat", "axis=0", .inputs = {"i64[2] known [1, L]", "i64[1]"});
}

static void concat_refuses_mismatched_shapes(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "input 1, [3, 2], does not continue [2, 2] along axis 1", "Concat", "axis=1",
                       .inputs = {"f32[2,2]", "f32[3,2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "input 1", "Concat", "axis=1", .inputs = {"f32[2,2]", "f32[L,2]"});
    assert_shape_fault(MDOT_MALFORMED, "1 dimensions instead of 2", "Concat", "axis=1",
                       .inputs = {"f32[2,2]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "input 1, \"in1\", is of type i64, but input 0, \"in0\", of type f32", "Concat",
                       "axis=0", .inputs = {"f32[2]", "i64[2]"});
}

static void pad_fills_by_its_mode(void **state)
{
    (void)state;
    assert_values("f32[6] [0, 0, 0, 1, 2, 0]", "Pad", .inputs = {"f32[3] 0..", "i64[2] [2, 1]"});
    assert_values("f32[6] [9, 9, 0, 1, 2, 9]", "Pad", .inputs = {"f32[3] 0..", "i64[2] [2, 1]", "f32[] [9]"});
    assert_values("f32[6] [2, 1, 0, 1, 2, 1]", "Pad", "mode=\"reflect\"", .inputs = {"f32[3] 0..", "i64[2] [2, 1]"});
    assert_values("f32[6] [0, 0, 0, 1, 2, 2]", "Pad", "mode=\"edge\"", .inputs = {"f32[3] 0..", "i64[2] [2, 1]"});
    assert_values("f32[6] [1, 2, 0, 1, 2, 0]", "Pad", "mode=\"wrap\"", .inputs = {"f32[3] 0..", "i64[2] [2, 1]"});
    assert_values("f32[3] [5, 5, 5]", "Pad", "mode=\"reflect\"", .inputs = {"f32[1] [5]", "i64[2] [1, 1]"});
}

static void pad_accepts_axes_and_negative_pads(void **state)
{
    (void)state;
    assert_types("f32[2,L+3]", "Pad", .inputs = {"f32[2,L]", "i64[4] [0, 1, 0, 2]"});
    assert_types("f32[2,L-1]", "Pad", .inputs = {"f32[2,L]", "i64[2] [0, -1]", "_", "i64[1] [-1]"});
    assert_values("f32[2] [1, 2]", "Pad", .inputs = {"f32[4] 0..", "i64[2] [-1, -1]"});
    assert_values("f32[1,3] [0, 2, 3]", "Pad", .inputs = {"f32[2,2] 0..", "i64[4] [-1, 1, 0, 0]"});
    assert_types("i64[3] known [1, L, 0]", "Pad", .inputs = {"i64[2] known [1, L]", "i64[2] [0, 1]"});
    assert_types("i64[3] known [2L, 1, L]", "Pad",
                 .inputs = {"i64[2] known [1, L]", "i64[2] [1, 0]", "i64[] known [2L]"});
}

static void pad_refuses_mismatched_pads(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "take more from axis 0", "Pad", .inputs = {"f32[2]", "i64[2] [-2, -1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "take more from axis 0", "Pad", .inputs = {"f32[L]", "i64[2] [-2, 0]"});
    /* The same if the two pads only leave something together, because each pad must fit into the axis by itself. */
    assert_shape_fault(MDOT_MALFORMED, "take more from axis 0", "Pad",
                       .inputs = {"f32[2]", "i64[2] [" LEAST ", " GREATEST "]"});
    assert_eval_fault(MDOT_MALFORMED, "take more from axis 0", "Pad",
                      .inputs = {"f32[2] 0..", "i64[2] [" LEAST ", " GREATEST "]"});
    assert_shape_fault(MDOT_MALFORMED, "take more from axis 0", "Pad",
                       .inputs = {"f32[4]", "i64[2] [-" GREATEST ", " GREATEST "]"});
    assert_shape_fault(MDOT_MALFORMED, "1 pads for 1 axes", "Pad", .inputs = {"f32[2]", "i64[1] [1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "mode \"mirror\"", "Pad", "mode=\"mirror\"",
                       .inputs = {"f32[2]", "i64[2] [1, 1]"});
    assert_shape_fault(MDOT_MALFORMED, "input 2, \"in2\", is of type i64", "Pad",
                       .inputs = {"f32[2]", "i64[2] [1, 1]", "i64[] [1]"});
    assert_shape_fault(MDOT_MALFORMED, "constant value must have one element", "Pad",
                       .inputs = {"f32[2]", "i64[2] [1, 1]", "f32[2,3]"});
    assert_shape_fault(MDOT_MALFORMED, "empty", "Pad", "mode=\"edge\"", .inputs = {"f32[0]", "i64[2] [1, 1]"});
    assert_eval_fault(MDOT_MALFORMED, "empty", "Pad", "mode=\"edge\"", .inputs = {"f32[0] []", "i64[2] [1, 1]"});
}

static void slicing_costs_the_elements_it_keeps(void **state)
{
    (void)state;
    assert_cost(0, 40 + 16, 40, 0, "Slice", .inputs = {"f32[100,L]", "i64[1] [0]", "i64[1] [1]"});
    assert_cost(0, 40 + 80, 120, 0, "Concat", "axis=0", .inputs = {"f32[L]", "f32[2L]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slice_selects_fixed_ranges),
        cmocka_unit_test(slice_accepts_negative_steps),
        cmocka_unit_test(slice_bounds_are_affine),
        cmocka_unit_test(slice_refuses_bounds_that_depend_on_the_length),
        cmocka_unit_test(slice_refuses_malformed_bounds),
        cmocka_unit_test(split_makes_equal_parts),
        cmocka_unit_test(split_makes_parts_of_given_sizes),
        cmocka_unit_test(concat_adds_along_its_axis),
        cmocka_unit_test(concat_refuses_mismatched_shapes),
        cmocka_unit_test(pad_fills_by_its_mode),
        cmocka_unit_test(pad_accepts_axes_and_negative_pads),
        cmocka_unit_test(pad_refuses_mismatched_pads),
        cmocka_unit_test(slicing_costs_the_elements_it_keeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
