/* test_sharding_positions.c — operator positions in a pipeline (before, in and after the blocks), borders crossed by
 * results, and roles at the limits of their conditions. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/sharding.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Four blocks; the second and third are the largest. The third reads the first result, and the fourth the second: the
 * border behind the second block has both, and the third result besides. */
static void results_cross_every_border_up_to_their_reader(void **state)
{
    (void)state;
    static const double parameters[] = {50, 100, 100, 70}, bytes[] = {7, 20, 300, 4000};
    static const char *const inputs[] = {"", "0", "0,1", "1,2"};
    network n = {0};
    for (uint32_t i = 0; i < 4; i++) {
        mdot_job_operator *op = network_add(&n, "Linear", parameters[i], inputs[i]);
        op->frozen_parameters = i == 1 ? 5 : 0;
        op->per_sample[MDOT_PHASE_FORWARD].bytes_written = bytes[i];
        op->block = i + 1;
    }
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_sharding *d = &job->analysis->sharding;
    assert_compare(d->border_bytes, ==, 20 + 300);
    assert_compare(d->largest_block_parameters, ==, 105);
    assert_compare(d->largest_block_experts, ==, 0);
    mdot_job_destroy(job);
}

/* The first operator belongs to its block, too: it has most parameters, and the result crosses all borders. */
static void the_first_operator_counts_in_its_block(void **state)
{
    (void)state;
    network n = {0};
    for (uint32_t i = 0; i < 3; i++) {
        mdot_job_operator *op = network_add(&n, "Linear", i == 0 ? 500 : 100, i == 0 ? "" : i == 1 ? "0" : "0,1");
        op->per_sample[MDOT_PHASE_FORWARD].bytes_written = i == 0 ? 8000 : 10;
        op->block = i + 1;
    }
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_sharding *d = &job->analysis->sharding;
    assert_compare(d->border_bytes, ==, 8000 + 10);
    assert_compare(d->largest_block_parameters, ==, 500);
    mdot_job_destroy(job);
}

/* Costs are added up for the operators before the blocks, in them and behind them. */
static void positions_have_their_operators_costs(void **state)
{
    (void)state;
    for (int more = -1; more <= 1; more++) {
        network n = {0};
        network_add(&n, "Relu", 0, "");
        network_add(&n, "Relu", 0, "0")->block = 1;
        network_add(&n, "Relu", 0, "1")->block = 2;
        network_add(&n, "Relu", 0, "2");
        const double costs[] = {10 + more, 100, 200, 10};
        mdot_job *job = predict_make_job(n.operators, n.count);
        rt_sharding sharding = {0};
        assert_true(rt_find_sharding(job, costs, &sharding));
        assert_compare(sharding.cost[RT_PIPELINE_BEFORE], ==, 10 + more);
        assert_compare(sharding.cost[RT_PIPELINE_BLOCKS], ==, 300);
        assert_compare(sharding.cost[RT_PIPELINE_AFTER], ==, 10);
        rt_free_sharding(&sharding);
        mdot_job_destroy(job);
    }
}

/* A matmul behind the blocks is a tied head if it reads another operator's weights and lacks own ones. */
static void tied_heads_stand_behind_the_blocks(void **state)
{
    (void)state;
    static const struct {
        uint32_t block;
        double own, flops, read; /* own weights; FLOPs of the gradient; step bytes */
        int64_t in, out;
        const char *inputs;
        double tied, frozen;
    } cases[] = {
        {0, 0, 9, 8, 5, 7, "1", 35, 0}, {0, 0, 0, 8, 5, 7, "1", 0, 35},  {2, 0, 9, 8, 5, 7, "1", 0, 0},
        {0, 35, 9, 8, 5, 7, "1", 0, 0}, {0, 0, 0, 0, 5, 7, "1", 0, 0},   {0, 0, 9, 8, 0, 7, "1", 0, 0},
        {0, 0, 9, 8, 5, 0, "1", 0, 0},  {0, 0, 9, 8, 5, 7, "0,1", 0, 0}, {0, 0, 9, 8, 5, 7, "", 35, 0},
        {0, 0, 9, 0, 1, 1, "1", 1, 0},  {0, 0, 1, 0, 5, 7, "1", 35, 0},  {0, 0, 0, 1, 5, 7, "1", 0, 35},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        network_add(&n, "Gather", 35, "")->setting[MDOT_SETTING_INPUTS] = 1;
        network_add(&n, "Relu", 0, "0")->block = 1;
        mdot_job_operator *head = network_add(&n, "Linear", cases[i].own, cases[i].inputs);
        head->block = cases[i].block;
        head->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops = cases[i].flops;
        head->per_step[MDOT_PHASE_FORWARD].bytes_read = cases[i].read;
        head->setting[MDOT_SETTING_CHANNELS_IN] = cases[i].in;
        head->setting[MDOT_SETTING_CHANNELS_OUT] = cases[i].out;
        mdot_job *job = predict_make_job(n.operators, n.count);
        const rt_sharding *d = &job->analysis->sharding;
        double tied = 0, frozen = 0;
        for (int at = 0; at < RT_PIPELINE_POSITIONS; at++) {
            tied += d->tied.all[at];
            frozen += d->frozen_tied.all[at];
        }
        if (tied != cases[i].tied || frozen != cases[i].frozen) fail_msg("case %zu: %g, %g", i, tied, frozen);
        mdot_job_destroy(job);
    }
}

/* Roles depend on whether a matmul has channels, weights or their gradient, and not on how many: one is enough. A
 * matmul needs channels on both sides. `d` in the middle is an operator that works on a slice. */
static void one_channel_and_one_weight_are_enough(void **state)
{
    (void)state;
    static const struct {
        int64_t in, out, axis, extent, heads; /* of the middle operator */
        double parameters, flops, read;
        const char *roles;
    } cases[] = {
        {0, 0, 0, 0, 0, 0, 0, 0, "cdr"},   {0, 64, 0, 0, 0, 9, 0, 0, "cdr"}, {64, 0, 0, 0, 0, 9, 0, 0, "cdr"},
        {0, 0, 1, 0, 0, 0, 0, 0, "--c"},   {0, 0, 0, 1, 0, 0, 0, 0, "--c"},  {0, 0, 0, 0, 1, 0, 0, 0, "cdr"},
        {1, 1, 0, 0, 0, 1, 0, 0, "crc"},   {1, 1, 0, 0, 0, 0, 1, 0, "crc"},  {1, 1, 0, 0, 0, 0, 0, 1, "crc"},
        {64, 64, 0, 0, 0, 0, 0, 0, "cdr"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        network_add_matmul(&n, 64, 64, "");
        mdot_job_operator *op = network_add(&n, "Sigmoid", cases[i].parameters, "0");
        op->setting[MDOT_SETTING_CHANNELS_IN] = cases[i].in;
        op->setting[MDOT_SETTING_CHANNELS_OUT] = cases[i].out;
        op->setting[MDOT_SETTING_AXIS] = cases[i].axis;
        op->setting[MDOT_SETTING_EXTENT] = cases[i].extent;
        op->setting[MDOT_SETTING_HEADS] = cases[i].heads;
        op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].flops = cases[i].flops;
        op->per_step[MDOT_PHASE_FORWARD].bytes_read = cases[i].read;
        network_add_matmul(&n, 64, 64, "1");
        mdot_job *job = predict_make_job(n.operators, n.count);
        char roles[] = "...";
        for (int k = 0; k < 3; k++) roles[k] = "-dcrt"[job->analysis->sharding.role[k]];
        if (strcmp(roles, cases[i].roles) != 0) fail_msg("case %zu: %s", i, roles);
        uint64_t common = cases[i].heads == 1 || cases[i].in * cases[i].out == 1 ? 1
                          : strcmp(roles, "--c") == 0                            ? 0
                                                                                 : 64;
        assert_int_equal(job->analysis->sharding.common, common);
        mdot_job_destroy(job);
    }
}

/* A loss reads a class slice and returns a whole number, which no reader divides further. */
static void results_of_losses_are_whole(void **state)
{
    (void)state;
    network n = {0};
    network_add_matmul(&n, 64, 64, "");
    network_add(&n, "SoftmaxCrossEntropyLoss", 0, "0");
    network_add(&n, "Neg", 0, "1");
    mdot_job *job = predict_make_job(n.operators, n.count);
    static const uint8_t roles[] = {RT_ROLE_COLUMNS, RT_ROLE_SHARDED, RT_ROLE_REPLICATED};
    assert_memory_equal(job->analysis->sharding.role, roles, sizeof roles);
    mdot_job_destroy(job);
}

/* Both adapter matmuls and the base read samples. The adapter is the first operand of the sum. */
static void adapters_may_stand_before_their_base(void **state)
{
    (void)state;
    network n = {0};
    network_add_matmul(&n, 64, 4, "");
    network_add_matmul(&n, 4, 64, "0");
    network_add_matmul(&n, 64, 64, "");
    network_add(&n, "Add", 0, "1,2");
    network_add_matmul(&n, 64, 64, "3");
    mdot_job *job = predict_make_job(n.operators, n.count);
    static const uint8_t roles[] = {RT_ROLE_REPLICATED, RT_ROLE_COLUMNS, RT_ROLE_COLUMNS, RT_ROLE_SHARDED,
                                    RT_ROLE_ROWS};
    assert_memory_equal(job->analysis->sharding.role, roles, sizeof roles);
    mdot_job_destroy(job);
}

/* Trained, frozen and half-precision elements by position; a table with sparse gradients counts as frozen. */
static void elements_are_counted_by_position(void **state)
{
    (void)state;
    network n = {0};
    mdot_job_operator *table = network_add(&n, "Gather", 1000, "");
    table->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * 30;
    network_add(&n, "Linear", 200, "0")->block = 1;
    n.operators[1].frozen_parameters = 7;
    network_add(&n, "LayerNormalization", 40, "1")->block = 1;
    network_add(&n, "Linear", 3, "2");
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_sharding *d = &job->analysis->sharding;
    static const double trained[] = {0, 240, 3}, frozen[] = {1000, 7, 0}, half[] = {0, 207, 3};
    assert_memory_equal(d->parameters.all, trained, sizeof trained);
    assert_memory_equal(d->frozen.all, frozen, sizeof frozen);
    assert_memory_equal(d->half_parameters.all, half, sizeof half);
    assert_compare(d->sparse.parameters, ==, 1000);
    assert_compare(d->sparse.picked, ==, 30);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_cross_every_border_up_to_their_reader),
        cmocka_unit_test(the_first_operator_counts_in_its_block),
        cmocka_unit_test(positions_have_their_operators_costs),
        cmocka_unit_test(one_channel_and_one_weight_are_enough),
        cmocka_unit_test(results_of_losses_are_whole),
        cmocka_unit_test(adapters_may_stand_before_their_base),
        cmocka_unit_test(tied_heads_stand_behind_the_blocks),
        cmocka_unit_test(elements_are_counted_by_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
