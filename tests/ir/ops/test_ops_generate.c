/* test_ops_generate.c — ir/ops/generate.c: Shape, Size, Constant, ConstantOfShape, EyeLike, Range. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void shape_keeps_the_symbol(void **state)
{
    (void)state;
    assert_types("i64[3] known [2, L, 128]", "Shape", .inputs = {"f32[2,L,128]"});
    assert_types("i64[0] known []", "Shape", .inputs = {"f32[]"});
    assert_types("i64[2] known [L, 128]", "Shape", "start=1", .inputs = {"f32[2,L,128]"});
    assert_types("i64[1] known [L]", "Shape", "start=-2, end=-1", .inputs = {"f32[2,L,128]"});
    assert_types("i64[3] known [2, L, 128]", "Shape", "start=-9, end=9", .inputs = {"f32[2,L,128]"});
    assert_types("i64[0] known []", "Shape", "start=2, end=1", .inputs = {"f32[2,L,128]"});
    assert_values("i64[2] [2, 3]", "Shape", .inputs = {"f32[2,3] 0.."});
    assert_values("i64[1] [3]", "Shape", "start=1", .inputs = {"f32[2,3] 0.."});
}

static void size_is_known_if_it_is_affine(void **state)
{
    (void)state;
    assert_types("i64[] known [6L]", "Size", .inputs = {"f32[2,L,3]"});
    assert_types("i64[] known [1]", "Size", .inputs = {"f32[]"});
    assert_types("i64[]", "Size", .inputs = {"f32[L,L]"});
    assert_values("i64[] [6]", "Size", .inputs = {"f32[2,3] 0.."});
}

static void constants_are_read_from_every_attribute(void **state)
{
    (void)state;
    assert_types("i64[2] known [4, 5]", "Constant", "value=tensor i64[2] [4, 5]", .inputs = {NULL});
    assert_types("f32[2]", "Constant", "value=tensor f32[2] [4, 5.5]", .inputs = {NULL});
    assert_types("i64[] known [7]", "Constant", "value_int=7", .inputs = {NULL});
    assert_types("i64[2] known [7, 8]", "Constant", "value_ints=[7, 8]", .inputs = {NULL});
    assert_types("f32[]", "Constant", "value_float=0.5", .inputs = {NULL});
    assert_values("f32[2] [4, 5]", "Constant", "value=tensor f32[2] [4, 5]", .inputs = {NULL});
    assert_values("f32[2] [0.5, 1.5]", "Constant", "value_floats=[0.5, 1.5]", .inputs = {NULL});
    assert_values("f32[] [0.5]", "Constant", "value_float=0.5", .inputs = {NULL});
    assert_values("i64[2] [7, 8]", "Constant", "value_ints=[7, 8]", .inputs = {NULL});
    assert_values("i64[] [7]", "Constant", "value_int=7", .inputs = {NULL});
    assert_shape_fault(MDOT_UNSUPPORTED, "value_string", "Constant", "value_string=\"text\"", .inputs = {NULL});
    assert_shape_fault(MDOT_MALFORMED, "0 attributes", "Constant", NULL, .inputs = {NULL});
    assert_eval_fault(MDOT_UNSUPPORTED, "the non-numeric type", "Constant", "value=tensor f32[2] unread",
                      .inputs = {NULL});
}

static void constant_of_shape_fills(void **state)
{
    (void)state;
    assert_types("f32[2,L]", "ConstantOfShape", .inputs = {"i64[2] known [2, L]"});
    assert_types("i64[2] known [3, 3]", "ConstantOfShape", "value=tensor i64[1] [3]", .inputs = {"i64[1] [2]"});
    assert_types("i64[L]", "ConstantOfShape", "value=tensor i64[1] [3]", .inputs = {"i64[1] known [L]"});
    assert_values("f32[2] [0, 0]", "ConstantOfShape", .inputs = {"i64[1] [2]"});
    assert_values("bool[1,2] [1, 1]", "ConstantOfShape", "value=tensor bool[1] [1]", .inputs = {"i64[2] [1, 2]"});
    assert_values("f32[] [0]", "ConstantOfShape", .inputs = {"i64[0] []"});
    assert_shape_fault(MDOT_MALFORMED, "dimension 0 is negative", "ConstantOfShape", .inputs = {"i64[1] [-2]"});
    assert_shape_fault(MDOT_MALFORMED, "2 elements instead of 1", "ConstantOfShape", "value=tensor f32[2] [1, 2]",
                       .inputs = {"i64[1] [2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "depends on data", "ConstantOfShape", .inputs = {"i64[2]"});
}

static void eye_like_has_ones_on_its_diagonal(void **state)
{
    (void)state;
    assert_types("f32[L,L]", "EyeLike", .inputs = {"f32[L,L]"});
    assert_types("i64[2,3]", "EyeLike", "dtype=7", .inputs = {"f32[2,3]"});
    assert_values("f32[2,3] [1, 0, 0, 0, 1, 0]", "EyeLike", .inputs = {"f32[2,3] 0.."});
    assert_values("i64[2,3] [0, 1, 0, 0, 0, 1]", "EyeLike", "dtype=7, k=1", .inputs = {"f32[2,3] 0.."});
    assert_values("f32[2,2] [0, 0, 1, 0]", "EyeLike", "k=-1", .inputs = {"f32[2,2] 0.."});
    assert_values("f32[2,2] [0, 0, 0, 0]", "EyeLike", "k=9223372036854775807", .inputs = {"f32[2,2] 0.."});
    assert_shape_fault(MDOT_MALFORMED, "1 dimensions instead of 2", "EyeLike", .inputs = {"f32[2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "element type 8", "EyeLike", "dtype=8", .inputs = {"f32[2,2]"});
}

static void range_counts_integers(void **state)
{
    (void)state;
    assert_types("i64[L]", "Range", .inputs = {"i64[] [0]", "i64[] known [L]", "i64[] [1]"});
    assert_types("i64[3] known [L, L+2, L+4]", "Range",
                 .inputs = {"i64[] known [L]", "i64[] known [L+5]", "i64[] [2]"});
    assert_types("i32[0] known []", "Range", .inputs = {"i32[] [3]", "i32[] [1]", "i32[] [1]"});
    assert_types("i64[L]", "Range", .inputs = {"i64[] known [L]", "i64[] [0]", "i64[] [-1]"});
    assert_values("i64[3] [5, 3, 1]", "Range", .inputs = {"i64[] [5]", "i64[] [0]", "i64[] [-2]"});
    assert_shape_fault(MDOT_MALFORMED, "number other than 0", "Range",
                       .inputs = {"i64[] [0]", "i64[] [3]", "i64[] [0]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "\"in1\" is unknown", "Range", .inputs = {"i64[] [0]", "i64[]", "i64[] [1]"});
    assert_types("i64[(L+1)/2]", "Range", .inputs = {"i64[] [0]", "i64[] known [L]", "i64[] [2]"});
    assert_shape_fault(MDOT_MALFORMED, "input 1, \"in1\", is of type i32", "Range",
                       .inputs = {"i64[] [0]", "i32[] [3]", "i64[] [1]"});
}

static void range_counts_floats(void **state)
{
    (void)state;
    assert_values("f32[3] [1, 1.5, 2]", "Range", .inputs = {"f32[] [1]", "f32[] [2.5]", "f32[] [0.5]"});
    assert_types("f32[L]", "Range", .inputs = {"f32[] [0]", "f32[] known [L]", "f32[] [1]"});
    assert_values("f32[2] [1, 3]", "Range", .inputs = {"f32[] [1]", "f32[] [4]", "f32[] [2]"});
    assert_values("f32[0] []", "Range", .inputs = {"f32[] [1]", "f32[] [0]", "f32[] [0.5]"});
    assert_shape_fault(MDOT_MALFORMED, "is infinite", "Range", .inputs = {"f32[] [1]", "f32[] [2.5]", "f32[] [0]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "\"in1\" is unknown", "Range", .inputs = {"f32[] [1]", "f32[]", "f32[] [1]"});
}

static void shapes_cost_nothing_and_fills_cost_writes(void **state)
{
    (void)state;
    assert_cost(0, 0, 0, 0, "Shape", .inputs = {"f32[2,L]"});
    assert_cost(0, 16, 80, 0, "ConstantOfShape", .inputs = {"i64[2] known [2, L]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_keeps_the_symbol),
        cmocka_unit_test(size_is_known_if_it_is_affine),
        cmocka_unit_test(constants_are_read_from_every_attribute),
        cmocka_unit_test(constant_of_shape_fills),
        cmocka_unit_test(eye_like_has_ones_on_its_diagonal),
        cmocka_unit_test(range_counts_integers),
        cmocka_unit_test(range_counts_floats),
        cmocka_unit_test(shapes_cost_nothing_and_fills_cost_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
