/* test_ops_training.c — ir/ops/recurrent.c and loss.c: operators whose cost counts in jobs.
 * tests/codegen/cpu/test_cpu_recurrence.c tests recurrent values. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void recurrent_operators_give_all_and_last_states(void **state)
{
    (void)state;
    assert_types("f32[L,1,2,8]; f32[1,2,8]; f32[1,2,8]", "LSTM", "hidden_size=8",
                 .inputs = {"f32[L,2,4]", "f32[1,32,4]", "f32[1,32,8]", "f32[1,64]"}, .output_count = 3);
    assert_types("f32[2,L,2,8]; f32[2,2,8]", "GRU", "hidden_size=8, layout=1, direction=\"bidirectional\"",
                 .inputs = {"f32[2,L,4]", "f32[2,24,4]", "f32[2,24,8]"}, .output_count = 2);
    assert_types("f32[1,2,8]", "RNN", "hidden_size=8", .inputs = {"f32[L,2,4]", "f32[1,8,4]", "f32[1,8,8]"},
                 .output_count = 2, .only = "_x");
}

static void recurrent_weights_must_agree(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "do not match", "LSTM", "hidden_size=8",
                       .inputs = {"f32[L,2,4]", "f32[1,24,4]", "f32[1,32,8]"});
    assert_shape_fault(MDOT_MALFORMED, "do not match", "LSTM", "hidden_size=8, direction=\"bidirectional\"",
                       .inputs = {"f32[L,2,4]", "f32[1,32,4]", "f32[1,32,8]"});
    assert_shape_fault(MDOT_MALFORMED, "do not match", "LSTM", "hidden_size=9",
                       .inputs = {"f32[L,2,4]", "f32[1,32,4]", "f32[1,32,8]"});
}

static void recurrent_costs_count_each_weight_in_each_step(void **state)
{
    (void)state;
    /* L is 10: 20 positions, 4 * 8 * (4 + 8) weights, 32 gate elements of ten FLOPs */
    assert_cost(20 * (2 * 32 * 12 + 10 * 32), 4 * (80 + 32 * 12), 4 * 10 * 2 * 8, 0, "LSTM", "hidden_size=8",
                .inputs = {"f32[L,2,4]", "f32[1,32,4]", "f32[1,32,8]"});
}

static void losses_reduce_by_default(void **state)
{
    (void)state;
    assert_types("f32[]; f32[8,10]", "SoftmaxCrossEntropyLoss", .inputs = {"f32[8,10]", "i64[8]"}, .output_count = 2);
    assert_types("f32[8,3]", "SoftmaxCrossEntropyLoss", "reduction=\"none\"", .inputs = {"f32[8,10,3]", "i64[8,3]"});
    assert_types("f32[]", "NegativeLogLikelihoodLoss", .inputs = {"f32[8,10]", "i64[8]", "f32[10]"});
    assert_shape_fault(MDOT_MALFORMED, "dimension 0 of the labels", "SoftmaxCrossEntropyLoss",
                       .inputs = {"f32[8,10]", "i64[7]"});
    assert_shape_fault(MDOT_MALFORMED, "is of type f32, where the operator takes i32, i64", "SoftmaxCrossEntropyLoss",
                       .inputs = {"f32[8,10]", "f32[8]"});
    assert_cost(5 * 80 + 8, 4 * 80 + 8 * 8, 4, 0, "SoftmaxCrossEntropyLoss", .inputs = {"f32[8,10]", "i64[8]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrent_operators_give_all_and_last_states),
        cmocka_unit_test(recurrent_weights_must_agree),
        cmocka_unit_test(recurrent_costs_count_each_weight_in_each_step),
        cmocka_unit_test(losses_reduce_by_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
