/* test_ops_einsum.c — ir/ops/einsum.c. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void einsum_shape_follows_its_labels(void **state)
{
    (void)state;
    assert_types("f32[2,4,L,L]", "Einsum", "equation=\"bhid,bhjd->bhij\"", .inputs = {"f32[2,4,L,8]", "f32[2,4,L,8]"});
    assert_types("f32[L,3]", "Einsum", "equation=\"...ij->...ji\"", .inputs = {"f32[3,L]"});
    assert_types("f32[7,L,3]", "Einsum", "equation=\"...ij,kj->...ik\"", .inputs = {"f32[7,L,5]", "f32[3,5]"});
    assert_types("f32[2,L,5]", "Einsum", "equation=\"...i,...i->...i\"", .inputs = {"f32[L,5]", "f32[2,1,5]"});
    assert_types("f32[L]", "Einsum", "equation=\"ii->i\"", .inputs = {"f32[L,L]"});
}

static void einsum_sums_products(void **state)
{
    (void)state;
    assert_values("f32[2,2] [2, 3, 6, 11]", "Einsum", "equation=\"ij,jk->ik\"",
                  .inputs = {"f32[2,2] 0..", "f32[2,2] 0.."});
    assert_values("f32[] [6]", "Einsum", "equation=\"ij->\"", .inputs = {"f32[2,2] 0.."});
    assert_values("f32[] [3]", "Einsum", "equation=\"ii\"", .inputs = {"f32[2,2] 0.."});
    assert_values("f32[2] [0, 3]", "Einsum", "equation=\"ii -> i\"", .inputs = {"f32[2,2] 0.."});
    assert_values("f32[2,2] [0, 2, 1, 3]", "Einsum", "equation=\"ij->ji\"", .inputs = {"f32[2,2] 0.."});
    assert_values("i64[1] [24]", "Einsum", "equation=\"i,i,i->i\"",
                  .inputs = {"i64[1] [2]", "i64[1] [3]", "i64[1] [4]"});
    assert_values("f32[2] [0, 14]", "Einsum", "equation=\"...j,j->...\"",
                  .inputs = {"f32[2,2] [0, 0, 2, 3]", "f32[2] [1, 4]"});
    assert_values("f32[2,2] [0, 1, 0, 2]", "Einsum", "equation=\"i,j->ij\"", .inputs = {"f32[2] [1, 2]", "f32[2] 0.."});
}

static void einsum_without_an_arrow_keeps_single_labels_in_order(void **state)
{
    (void)state;
    assert_values("f32[2,2] [2, 3, 6, 11]", "Einsum", "equation=\"ij,jk\"", .inputs = {"f32[2,2] 0..", "f32[2,2] 0.."});
    assert_types("f32[3,2]", "Einsum", "equation=\"ba\"", .inputs = {"f32[2,3]"});
    assert_types("f32[2,3]", "Einsum", "equation=\"Ba\"", .inputs = {"f32[2,3]"}); /* capital letters sort first */
    assert_types("f32[5,3,2]", "Einsum", "equation=\"...ba\"", .inputs = {"f32[5,2,3]"});
}

static void einsum_refuses_malformed_equations(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "does not match input 0", "Einsum", "equation=\"ijk->i\"",
                       .inputs = {"f32[2,2]"});
    assert_shape_fault(MDOT_MALFORMED, "does not match input 0", "Einsum", "equation=\"i->i\"", .inputs = {"f32[2,2]"});
    assert_shape_fault(MDOT_MALFORMED, "does not match input 0", "Einsum", "equation=\"i,j->i\"", .inputs = {"f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "does not match input 0", "Einsum", "equation=\"i->i\"",
                       .inputs = {"f32[2]", "f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "no valid output", "Einsum", "equation=\"i->j\"", .inputs = {"f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "no valid output", "Einsum", "equation=\"i->ii\"", .inputs = {"f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "no valid output", "Einsum", "equation=\"i-\"", .inputs = {"f32[2]"});
    assert_shape_fault(MDOT_MALFORMED, "does not match", "Einsum", "equation=\"i1->i\"", .inputs = {"f32[2,2]"});
    assert_shape_fault(MDOT_MALFORMED, "two extents", "Einsum", "equation=\"i,i->i\"", .inputs = {"f32[2]", "f32[3]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "two extents", "Einsum", "equation=\"i,i->i\"",
                       .inputs = {"f32[L]", "f32[3]"});
}

static void einsum_costs_its_loops(void **state)
{
    (void)state;
    assert_cost(2 * 10 * 3 * 10, 2 * 30 * 4, 100 * 4, 0, "Einsum", "equation=\"ij,jk->ik\"",
                .inputs = {"f32[L,3]", "f32[3,L]"});
    assert_cost(0, 40, 40, 0, "Einsum", "equation=\"i->i\"", .inputs = {"f32[L]"});
    assert_cost(10, 40, 4, 0, "Einsum", "equation=\"i->\"", .inputs = {"f32[L]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(einsum_shape_follows_its_labels),
        cmocka_unit_test(einsum_sums_products),
        cmocka_unit_test(einsum_without_an_arrow_keeps_single_labels_in_order),
        cmocka_unit_test(einsum_refuses_malformed_equations),
        cmocka_unit_test(einsum_costs_its_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
