/* test_ops_gather.c — ir/ops/gather.c: Gather, GatherElements, GatherND, OneHot. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void gather_fetches_slices(void **state)
{
    (void)state;
    assert_types("f32[1,L,16]", "Gather", .inputs = {"f32[100,16]", "i64[1,L]"});
    assert_types("f32[2,3,L]", "Gather", "axis=-2", .inputs = {"f32[2,5,L]", "i32[3]"});
    assert_types("f32[2,L]", "Gather", "axis=1", .inputs = {"f32[2,5,L]", "i64[]"});
    assert_values("f32[2,2] [4, 5, 0, 1]", "Gather", .inputs = {"f32[3,2] 0..", "i64[2] [-1, 0]"});
    assert_values("f32[2,2] [2, 1, 5, 4]", "Gather", "axis=1", .inputs = {"f32[2,3] 0..", "i64[2] [2, 1]"});
    assert_values("i64[] [9007199254740993]", "Gather", .inputs = {"i64[1] [9007199254740993]", "i64[] [0]"});
}

static void gather_moves_known_content(void **state)
{
    (void)state;
    assert_types("i64[] known [L]", "Gather", .inputs = {"i64[3] known [1, L, 128]", "i64[] [1]"});
    assert_types("i64[2] known [128, 1]", "Gather", .inputs = {"i64[3] known [1, L, 128]", "i64[2] [-1, 0]"});
    assert_types("i64[1]", "Gather", .inputs = {"i64[3] known [1, L, 128]", "i64[1]"});
    assert_types("i64[1]", "Gather", .inputs = {"i64[L+1]", "i64[1] known [L]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "index L must be within a dimension of 64 at every length", "Gather",
                       .inputs = {"i64[64]", "i64[1] known [L]"});
    assert_shape_fault(MDOT_OUT_OF_RANGE, "index 3 is outside", "Gather",
                       .inputs = {"i64[3] known [1, L, 128]", "i64[] [3]"});
}

static void gather_refuses_bad_indices(void **state)
{
    (void)state;
    assert_eval_fault(MDOT_OUT_OF_RANGE, "index 3 is outside of a dimension of 3", "Gather",
                      .inputs = {"f32[3] 0..", "i64[1] [3]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "index -4", "Gather", .inputs = {"f32[3] 0..", "i64[1] [-4]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f32, where the operator takes i32, i64", "Gather",
                       .inputs = {"f32[3]", "f32[1]"});
    assert_shape_fault(MDOT_MALFORMED, "axis 2", "Gather", "axis=2", .inputs = {"f32[3,4]", "i64[1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "more than 8 dimensions", "Gather",
                       .inputs = {"f32[1,1,1,1,1]", "i64[1,1,1,1,1]"});
}

static void gather_elements_fetches_one_each(void **state)
{
    (void)state;
    assert_types("f32[L,2]", "GatherElements", "axis=1", .inputs = {"f32[L,9]", "i64[L,2]"});
    assert_values("f32[2,2] [1, 0, 3, 3]", "GatherElements", "axis=1",
                  .inputs = {"f32[2,2] 0..", "i64[2,2] [1, 0, -1, 1]"});
    assert_values("f32[1,2] [2, 1]", "GatherElements", .inputs = {"f32[2,2] 0..", "i64[1,2] [1, 0]"});
    assert_shape_fault(MDOT_MALFORMED, "indices have 1 dimensions, but the data 2", "GatherElements",
                       .inputs = {"f32[2,2]", "i64[2]"});
    assert_shape_fault(MDOT_MALFORMED, "the indices may outnumber the data", "GatherElements",
                       .inputs = {"f32[2,2]", "i64[1,3]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "index 2", "GatherElements", .inputs = {"f32[2] 0..", "i64[1] [2]"});
}

static void gather_nd_fetches_at_tuples(void **state)
{
    (void)state;
    assert_types("f32[L,4]", "GatherND", .inputs = {"f32[2,3,4]", "i64[L,2]"});
    assert_types("f32[L,2]", "GatherND", "batch_dims=1", .inputs = {"f32[L,3]", "i64[L,2,1]"});
    assert_values("f32[2] [1, 2]", "GatherND", .inputs = {"f32[2,2] 0..", "i64[2,2] [0, 1, -1, 0]"});
    assert_values("f32[1,2] [2, 3]", "GatherND", .inputs = {"f32[2,2] 0..", "i64[1,1] [1]"});
    assert_values("f32[2,2] [2, 3, 4, 5]", "GatherND", "batch_dims=1", .inputs = {"f32[2,2,2] 0..", "i64[2,1] [1, 0]"});
    assert_types("i64[1] known [L]", "GatherND", .inputs = {"i64[2] known [4, L]", "i64[1,1] [1]"});
}

static void gather_nd_refuses_mismatched_indices(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "index tuples of 3 for 2 dimensions", "GatherND",
                       .inputs = {"f32[2,2]", "i64[1,3]"});
    assert_shape_fault(MDOT_MALFORMED, "batch_dims 1", "GatherND", "batch_dims=1", .inputs = {"f32[2,2]", "i64[1]"});
    assert_shape_fault(MDOT_MALFORMED, "batch dimension 0", "GatherND", "batch_dims=1",
                       .inputs = {"f32[2,2]", "i64[3,1]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "index tuples depends on data", "GatherND",
                       .inputs = {"f32[2,2]", "i64[1,L]"});
    assert_eval_fault(MDOT_OUT_OF_RANGE, "index -3", "GatherND", .inputs = {"f32[2,2] 0..", "i64[1,1] [-3]"});
}

static void one_hot_marks_one_class(void **state)
{
    (void)state;
    assert_types("f32[L,5]", "OneHot", .inputs = {"i64[L]", "i64[] [5]", "f32[2]"});
    assert_types("i32[5,L]", "OneHot", "axis=0", .inputs = {"f32[L]", "f32[] [5]", "i32[2]"});
    assert_types("f32[2,L]", "OneHot", .inputs = {"i64[2]", "i64[1] known [L]", "f32[2]"});
    assert_values("f32[3,2] [0, 7, 7, 0, 0, 0]", "OneHot",
                  .inputs = {"i64[3] [-1, 0, 2]", "i64[] [2]", "f32[2] [0, 7]"});
    assert_values("i64[2,2] [1, 0, 0, 1]", "OneHot", "axis=0",
                  .inputs = {"f32[2] [0, 1]", "f32[] [2]", "i64[2] [0, 1]"});
    assert_shape_fault(MDOT_MALFORMED, "the depth must be one positive number", "OneHot",
                       .inputs = {"i64[2]", "i64[] [-1]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "a pair", "OneHot", .inputs = {"i64[2]", "i64[] [2]", "f32[3]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "depends on data", "OneHot", .inputs = {"i64[2]", "i64[]", "f32[2]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "depends on data", "OneHot", .inputs = {"i64[2]", "f32[]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "axis 3", "OneHot", "axis=3", .inputs = {"i64[2]", "i64[] [2]", "f32[2]"});
}

static void gather_costs_the_rows_it_fetches(void **state)
{
    (void)state;
    assert_cost(0, 160 + 80, 160, 400, "Gather",
                .inputs = {"f32[100,4] 0..", "i64[L]"}); /* the table is a trained parameter */
    assert_cost(0, 64 + 80, 160, 0, "Gather", .inputs = {"f32[4,4]", "i64[L]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gather_fetches_slices),       cmocka_unit_test(gather_moves_known_content),
        cmocka_unit_test(gather_refuses_bad_indices),  cmocka_unit_test(gather_elements_fetches_one_each),
        cmocka_unit_test(gather_nd_fetches_at_tuples), cmocka_unit_test(gather_nd_refuses_mismatched_indices),
        cmocka_unit_test(one_hot_marks_one_class),     cmocka_unit_test(gather_costs_the_rows_it_fetches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
