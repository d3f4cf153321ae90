/* test_ops_trees.c — mdot.Trees: shape, values, cost and faulty constants. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Nodes {threshold, feature, child, value}. 0x7FC00000 is a NaN, and 0x3F000000 is 0.5. Node 1 compares x[1] with 0.5
 * and has the leaves 2 and 3; node 4 is a separate leaf. */
#define NAN_BITS "2143289344"
#define HALF_BITS "1056964608"
#define NODES                                                                                                          \
    "i32[5,4] [" NAN_BITS ", 0, 0, 0, " HALF_BITS ", 2, 2, 0, " NAN_BITS ", 0, 1, 1, " NAN_BITS ", 0, 2, 0, " NAN_BITS \
    ", 0, 3, 1]"
#define ROWS "f32[3,2] [0, 0.25, 9, 0.5, -9, 0.75]"

static void rows_take_the_values_of_their_leaves(void **state)
{
    (void)state;
    assert_types("f32[L,1]", "mdot.Trees", .inputs = {"f32[L,2]", NODES, "i32[1,3] [1, 1, 0]", "f32[2] [10, 20]"});
    assert_values("f32[3,1] [20, 20, 10]", "mdot.Trees",
                  .inputs = {ROWS, NODES, "i32[1,3] [1, 1, 0]", "f32[2] [10, 20]"});
    /* further steps stay in the leaf */
    assert_values("f32[3,1] [20, 20, 10]", "mdot.Trees",
                  .inputs = {ROWS, NODES, "i32[1,3] [1, 4, 0]", "f32[2] [10, 20]"});
}

static void trees_are_aggregated_per_target(void **state)
{
    (void)state;
    assert_values("f32[3,1] [40, 40, 30]", "mdot.Trees",
                  .inputs = {ROWS, NODES, "i32[2,3] [1, 1, 0, 4, 0, 0]", "f32[2] [10, 20]"});
    assert_values("f32[3,1] [20, 20, 10]", "mdot.Trees", "aggregate=\"MIN\"",
                  .inputs = {ROWS, NODES, "i32[2,3] [1, 1, 0, 4, 0, 0]", "f32[2] [10, 20]"});
    assert_values("f32[3,2] [0, 20, 0, 20, 0, 10]", "mdot.Trees", "targets=2",
                  .inputs = {ROWS, NODES, "i32[1,3] [1, 1, 1]", "f32[2] [10, 20]"});
    assert_values("f32[3,2] [20, 30, 20, 30, 10, 20]", "mdot.Trees", "targets=2",
                  .inputs = {ROWS, NODES, "i32[1,3] [1, 1, -1]", "f32[3] [10, 20, 30]"});
}

/* Two operations for each row: the step and the sum. */
static void the_cost_counts_comparisons_and_sums(void **state)
{
    (void)state;
    assert_cost(20, 80 + 80 + 12 + 8, 40, 0, "mdot.Trees",
                .inputs = {"f32[L,2]", NODES, "i32[1,3] [1, 1, 0]", "f32[2] [10, 20]"});
}

#define FAULT(text, ...) assert_shape_fault(MDOT_MALFORMED, text, "mdot.Trees", __VA_ARGS__)

static void positions_out_of_range_are_refused(void **state)
{
    (void)state;
    FAULT("tree 0 is out of range", NULL, .inputs = {"f32[L,2]", NODES, "i32[1,3] [5, 1, 0]", "f32[2] [10, 20]"});
    FAULT("tree 0 is out of range", NULL, .inputs = {"f32[L,2]", NODES, "i32[1,3] [1, -1, 0]", "f32[2] [10, 20]"});
    FAULT("tree 0 is out of range", NULL, .inputs = {"f32[L,2]", NODES, "i32[1,3] [1, 1, 1]", "f32[2] [10, 20]"});
    FAULT("reads feature 1", NULL, .inputs = {"f32[L,1]", NODES, "i32[1,3] [1, 1, 0]", "f32[2] [10, 20]"});
    FAULT("value 1", NULL, .inputs = {"f32[L,2]", NODES, "i32[1,3] [1, 1, 0]", "f32[1] [10]"});
    FAULT("value 1", "targets=2", .inputs = {"f32[L,2]", NODES, "i32[1,3] [1, 1, -1]", "f32[2] [10, 20]"});
    FAULT("child 1", NULL,
          .inputs = {"f32[L,2]", "i32[2,4] [0, 0, 1, 0, 0, 0, 0, 0]", "i32[1,3] [1, 1, 0]", "f32[1] [1]"});
    FAULT("4 and 3 words", NULL, .inputs = {"f32[L,2]", "i32[1,3] [0, 0, 0]", "i32[1,3] [1, 1, 0]", "f32[1] [1]"});
    FAULT("number of targets", "targets=0", .inputs = {"f32[L,2]", NODES, "i32[1,3] [1, 1, 0]", "f32[2] [10, 20]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "\"MEAN\"", "mdot.Trees", "aggregate=\"MEAN\"",
                       .inputs = {"f32[L,2]", NODES, "i32[1,3] [1, 1, 0]", "f32[2] [10, 20]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "must be constants", "mdot.Trees",
                       .inputs = {"f32[L,2]", "i32[5,4]", "i32[1,3] [1, 1, 0]", "f32[2] [10, 20]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_take_the_values_of_their_leaves),
        cmocka_unit_test(trees_are_aggregated_per_target),
        cmocka_unit_test(the_cost_counts_comparisons_and_sums),
        cmocka_unit_test(positions_out_of_range_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
