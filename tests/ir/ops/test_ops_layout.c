/* test_ops_layout.c — ir/ops/layout.c: operators for shape and element order. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void reshape_copies_zeros_and_infers_one(void **state)
{
    (void)state;
    assert_types("f32[2,12]", "Reshape", .inputs = {"f32[2,3,4]", "i64[2] [0, -1]"});
    assert_types("f32[4,2,3]", "Reshape", .inputs = {"f32[2,3,4]", "i64[3] [4, -1, 3]"});
    assert_types("f32[]", "Reshape", .inputs = {"f32[1,1]", "i64[0] []"});
    assert_values("f32[3,2] [0, 1, 2, 3, 4, 5]", "Reshape", .inputs = {"f32[2,3] 0..", "i64[2] [-1, 2]"});
    assert_values("i64[4] [0, 1, 2, 3]", "Reshape", .inputs = {"i64[2,2] 0..", "i64[1] [4]"});
}

static void reshape_allowzero_takes_zeros_literally(void **state)
{
    (void)state;
    assert_types("f32[3,0]", "Reshape", "allowzero=1", .inputs = {"f32[0,3]", "i64[2] [3, 0]"});
    assert_shape_fault(MDOT_MALFORMED, "allowzero", "Reshape", "allowzero=1", .inputs = {"f32[0,3]", "i64[2] [0, -1]"});
}

static void reshape_cancels_the_symbol(void **state)
{
    (void)state;
    assert_types("f32[2,L,4,8]", "Reshape", .inputs = {"f32[2,L,32]", "i64[4] known [2, L, 4, -1]"});
    assert_types("f32[2L,32]", "Reshape", .inputs = {"f32[2,L,32]", "i64[2] [-1, 32]"});
    assert_types("f32[4,L]", "Reshape", .inputs = {"f32[2L,2]", "i64[2] [4, -1]"});
    assert_types("f32[L,L]", "Reshape", .inputs = {"f32[1,L,L]", "i64[2] known [L, -1]"});
    assert_types("f32[2L]", "Reshape", .inputs = {"f32[L,2]", "i64[1] known [2L]"});
}

static void reshape_refuses_mismatched_shapes(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "the number of elements of", "Reshape", .inputs = {"f32[2,3]", "i64[1] [5]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "but is equal only at the length 40 of the export", "Reshape",
                       .inputs = {"f32[1,L,64]", "i64[3] [40, 4, 16]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "must equal that of [40, 4, 15] at every length", "Reshape",
                       .inputs = {"f32[1,L,64]", "i64[3] [40, 4, 15]"});
    assert_shape_fault(MDOT_MALFORMED, "the number of elements of", "Reshape",
                       .inputs = {"f32[2,3]", "i64[2] [4, -1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "at every length", "Reshape", .inputs = {"f32[L,3]", "i64[2] [2, -1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "at every length", "Reshape", .inputs = {"f32[L,3]", "i64[2] [32, 3]"});
    assert_shape_fault(MDOT_MALFORMED, "second -1", "Reshape", .inputs = {"f32[2,3]", "i64[2] [-1, -1]"});
    assert_shape_fault(MDOT_MALFORMED, "dimension 2 is copied", "Reshape", .inputs = {"f32[2,3]", "i64[3] [2, 3, 0]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "depends on data", "Reshape", .inputs = {"f32[2,3]", "i64[2]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f32, where the operator takes i64", "Reshape",
                       .inputs = {"f32[2,3]", "f32[2] [3, 2]"});
    assert_eval_fault(MDOT_MALFORMED, "the number of elements of", "Reshape", .inputs = {"f32[2,3] 0..", "i64[1] [4]"});
}

static void known_content_moves_through_reshapes(void **state)
{
    (void)state;
    assert_types("i64[2,1] known [2, L]", "Reshape", .inputs = {"i64[2] known [2, L]", "i64[2] [2, 1]"});
    assert_types("i64[1] known [3L+1]", "Unsqueeze", .inputs = {"i64[] known [3L+1]", "i64[1] [0]"});
    assert_types("i64[] known [L]", "Squeeze", .inputs = {"i64[1] known [L]"});
    assert_types("i64[3,2] known [1, 4, 2, 5, 3, L]", "Transpose", .inputs = {"i64[2,3] known [1, 2, 3, 4, 5, L]"});
    assert_types("i64[2,2] known [1, L, 1, L]", "Expand", .inputs = {"i64[2] known [1, L]", "i64[2] [2, 1]"});
    assert_types("i64[4] known [7, L, 7, L]", "Tile", .inputs = {"i64[2] known [7, L]", "i64[1] [2]"});
    assert_types("f32[2]", "Tile", .inputs = {"f32[1]", "i64[1] [2]"});
}

static void flatten_cuts_at_its_axis(void **state)
{
    (void)state;
    assert_types("f32[2,12]", "Flatten", .inputs = {"f32[2,3,4]"});
    assert_types("f32[1,24]", "Flatten", "axis=0", .inputs = {"f32[2,3,4]"});
    assert_types("f32[24,1]", "Flatten", "axis=3", .inputs = {"f32[2,3,4]"});
    assert_types("f32[6,4]", "Flatten", "axis=-1", .inputs = {"f32[2,3,4]"});
    assert_types("f32[2L,4]", "Flatten", "axis=2", .inputs = {"f32[2,L,4]"});
    assert_values("f32[2,2] [0, 1, 2, 3]", "Flatten", .inputs = {"f32[2,1,2] 0.."});
    assert_shape_fault(MDOT_MALFORMED, "axis 4", "Flatten", "axis=4", .inputs = {"f32[2,3,4]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "square", "Flatten", "axis=0", .inputs = {"f32[L,L]"});
}

static void squeeze_drops_ones(void **state)
{
    (void)state;
    assert_types("f32[3,L]", "Squeeze", .inputs = {"f32[1,3,1,L]"});
    assert_types("f32[3,1]", "Squeeze", .inputs = {"f32[1,3,1]", "i64[1] [0]"});
    assert_types("f32[1,3]", "Squeeze", .inputs = {"f32[1,3,1]", "i64[1] [-1]"});
    assert_values("f32[2] [0, 1]", "Squeeze", .inputs = {"f32[1,2] 0..", "i64[1] [0]"});
    assert_shape_fault(MDOT_MALFORMED, "dimension 1 is 3 instead of 1", "Squeeze",
                       .inputs = {"f32[1,3]", "i64[1] [1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "dimension 1 is L instead of 1", "Squeeze",
                       .inputs = {"f32[1,L]", "i64[1] [1]"});
    assert_shape_fault(MDOT_MALFORMED, "axis", "Squeeze", .inputs = {"f32[1,3]", "i64[1] [2]"});
}

static void unsqueeze_inserts_ones(void **state)
{
    (void)state;
    assert_types("f32[1,L,1,4]", "Unsqueeze", .inputs = {"f32[L,4]", "i64[2] [2, 0]"});
    assert_types("f32[3,1]", "Unsqueeze", .inputs = {"f32[3]", "i64[1] [-1]"});
    assert_values("f32[2,1] [0, 1]", "Unsqueeze", .inputs = {"f32[2] 0..", "i64[1] [1]"});
    assert_shape_fault(MDOT_MALFORMED, "twice", "Unsqueeze", .inputs = {"f32[3]", "i64[2] [0, -3]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "dimensions, more than", "Unsqueeze",
                       .inputs = {"f32[1,1,1,1,1,1,1,1]", "i64[1] [0]"});
}

static void transpose_permutes_axes(void **state)
{
    (void)state;
    assert_types("f32[4,L,2]", "Transpose", .inputs = {"f32[2,L,4]"});
    assert_types("f32[L,2,4]", "Transpose", "perm=[1, 0, 2]", .inputs = {"f32[2,L,4]"});
    assert_values("f32[3,2] [0, 3, 1, 4, 2, 5]", "Transpose", .inputs = {"f32[2,3] 0.."});
    assert_values("i32[2,2,2] [0, 4, 1, 5, 2, 6, 3, 7]", "Transpose", "perm=[1, 2, 0]", .inputs = {"i32[2,2,2] 0.."});
    assert_shape_fault(MDOT_MALFORMED, "twice", "Transpose", "perm=[0, 0]", .inputs = {"f32[2,3]"});
    assert_shape_fault(MDOT_MALFORMED, "perm names 1 of 2 axes", "Transpose", "perm=[0]", .inputs = {"f32[2,3]"});
    assert_shape_fault(MDOT_MALFORMED, "axis 2", "Transpose", "perm=[0, 2]", .inputs = {"f32[2,3]"});
}

static void depth_to_space_and_space_to_depth_move_blocks(void **state)
{
    (void)state;
    assert_types("f32[1,2,4,2L]", "DepthToSpace", "blocksize=2", .inputs = {"f32[1,8,2,L]"});
    assert_types("f32[1,8,2,L]", "SpaceToDepth", "blocksize=2", .inputs = {"f32[1,2,4,2L]"});
    /* Channels 0 … 3 of one pixel become the block's four pixels. With eight channels the two modes differ. */
    assert_values("f32[1,2,2,2] [0, 2, 4, 6, 1, 3, 5, 7]", "DepthToSpace", "blocksize=2",
                  .inputs = {"f32[1,8,1,1] 0.."});
    assert_values("f32[1,2,2,2] [0, 1, 2, 3, 4, 5, 6, 7]", "DepthToSpace", "blocksize=2, mode=\"CRD\"",
                  .inputs = {"f32[1,8,1,1] 0.."});
    assert_values("f32[1,8,1,1] [0, 4, 1, 5, 2, 6, 3, 7]", "SpaceToDepth", "blocksize=2",
                  .inputs = {"f32[1,2,2,2] 0.."});
    assert_shape_fault(MDOT_MALFORMED, "blocks of 2", "DepthToSpace", "blocksize=2", .inputs = {"f32[1,6,1,1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "blocks of 2", "SpaceToDepth", "blocksize=2", .inputs = {"f32[1,1,L,2]"});
    assert_shape_fault(MDOT_MALFORMED, "blocksize is 0, but must be between 1 and", "DepthToSpace",
                       .inputs = {"f32[1,4,1,1]"});
    assert_shape_fault(MDOT_MALFORMED, "3 dimensions instead of 4", "DepthToSpace", "blocksize=2",
                       .inputs = {"f32[4,1,1]"});
}

static void expand_broadcasts_both_ways(void **state)
{
    (void)state;
    assert_types("f32[2,L,4]", "Expand", .inputs = {"f32[L,1]", "i64[3] [2, 1, 4]"});
    assert_types("f32[3,L]", "Expand", .inputs = {"f32[3,1]", "i64[1] known [L]"});
    assert_values("f32[2,3] [0, 0, 0, 1, 1, 1]", "Expand", .inputs = {"f32[2,1] 0..", "i64[2] [1, 3]"});
    assert_values("bool[2,2] [0, 1, 0, 1]", "Expand", .inputs = {"bool[2] [0, 1]", "i64[2] [2, 2]"});
    assert_shape_fault(MDOT_MALFORMED, "broadcast", "Expand", .inputs = {"f32[2]", "i64[1] [3]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "broadcast", "Expand", .inputs = {"f32[L]", "i64[1] [3]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "the shape of \"out0\" depends on data", "Expand",
                       .inputs = {"f32[2]", "i64[2]"});
}

static void tile_repeats_along_axes(void **state)
{
    (void)state;
    assert_types("f32[4,3L]", "Tile", .inputs = {"f32[2,L]", "i64[2] [2, 3]"});
    assert_types("f32[2,L]", "Tile", .inputs = {"f32[2,1]", "i64[2] known [1, L]"});
    assert_values("f32[2,4] [0, 1, 0, 1, 2, 3, 2, 3]", "Tile", .inputs = {"f32[2,2] 0..", "i64[2] [1, 2]"});
    assert_values("f32[0,2] []", "Tile", .inputs = {"f32[2,2] 0..", "i64[2] [0, 1]"});
    assert_shape_fault(MDOT_MALFORMED, "1 repeats for 2 dimensions", "Tile", .inputs = {"f32[2,3]", "i64[1] [2]"});
    assert_shape_fault(MDOT_MALFORMED, "negative", "Tile", .inputs = {"f32[2]", "i64[1] [-1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "is not a sum of a multiple of the length", "Tile",
                       .inputs = {"f32[L]", "i64[1] known [L]"});
}

static void trilu_keeps_a_triangle(void **state)
{
    (void)state;
    assert_types("f32[2,L,L]", "Trilu", .inputs = {"f32[2,L,L]", "i64[]"});
    assert_values("i64[3,3] [0, 1, 2, 0, 4, 5, 0, 0, 8]", "Trilu", .inputs = {"i64[3,3] 0.."});
    assert_values("f32[2,3] [0, 0, 0, 3, 4, 0]", "Trilu", "upper=0", .inputs = {"f32[2,3] 0.."});
    assert_values("f32[2,3] [0, 1, 0, 3, 4, 5]", "Trilu", "upper=0", .inputs = {"f32[2,3] 0..", "i64[] [1]"});
    assert_values("f32[2,2] [0, 1, 2, 3]", "Trilu", .inputs = {"f32[2,2] 0..", "i64[] [-9223372036854775808]"});
    assert_shape_fault(MDOT_MALFORMED, "not a matrix", "Trilu", .inputs = {"f32[3]"});
    assert_types("f32[2,2]", "Trilu", .inputs = {"f32[2,2]", "i64[1,1,1]"});
    assert_shape_fault(MDOT_MALFORMED, "diagonal must have one element", "Trilu", .inputs = {"f32[2,2]", "i64[2,3]"});
    assert_eval_fault(MDOT_MALFORMED, "diagonal must have one element", "Trilu",
                      .inputs = {"f32[2,2] 0..", "i64[2] [1, 2]"});
}

static void shape_changes_cost_nothing(void **state)
{
    (void)state;
    assert_cost(0, 0, 0, 0, "Reshape", .inputs = {"f32[2,L]", "i64[1] [-1]"});
}

static void data_movement_reads_no_more_than_it_writes(void **state)
{
    (void)state;
    assert_cost(0, 80, 80, 0, "Transpose", .inputs = {"f32[2,L]"});
    assert_cost(0, 4 + 8, 40, 0, "Expand", .inputs = {"f32[1]", "i64[1] known [L]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reshape_copies_zeros_and_infers_one),
        cmocka_unit_test(reshape_allowzero_takes_zeros_literally),
        cmocka_unit_test(reshape_cancels_the_symbol),
        cmocka_unit_test(reshape_refuses_mismatched_shapes),
        cmocka_unit_test(known_content_moves_through_reshapes),
        cmocka_unit_test(flatten_cuts_at_its_axis),
        cmocka_unit_test(squeeze_drops_ones),
        cmocka_unit_test(unsqueeze_inserts_ones),
        cmocka_unit_test(transpose_permutes_axes),
        cmocka_unit_test(depth_to_space_and_space_to_depth_move_blocks),
        cmocka_unit_test(expand_broadcasts_both_ways),
        cmocka_unit_test(tile_repeats_along_axes),
        cmocka_unit_test(trilu_keeps_a_triangle),
        cmocka_unit_test(shape_changes_cost_nothing),
        cmocka_unit_test(data_movement_reads_no_more_than_it_writes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
