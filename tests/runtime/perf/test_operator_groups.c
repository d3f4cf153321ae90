/* test_operator_groups.c — the data that mdot_job_create derives for predictions: type ids, groups of equal operators,
 * costs. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/sharding.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void a_job_with_an_unknown_type_is_detected(void **state)
{
    (void)state;
    mdot_job_operator operators[] = {{.struct_size = sizeof(mdot_job_operator), .type = "Conv", .known = true},
                                     {.struct_size = sizeof(mdot_job_operator), .type = "Relu", .known = true}};
    operators[0].traits.number = 7;
    operators[1].traits.number = RT_JOB_MAX_TYPE;
    mdot_job *job = predict_make_job(operators, 2);
    assert_false(job->analysis->totals.lacks_type_id);
    mdot_job_destroy(job);
    operators[1] = (mdot_job_operator){.struct_size = sizeof(mdot_job_operator), .type = "conv", .known = true};
    job = predict_make_job(operators, 2);
    assert_true(job->analysis->totals.lacks_type_id);
    mdot_job_destroy(job);
    operators[1] = (mdot_job_operator){.struct_size = sizeof(mdot_job_operator), .type = "Relu"};
    job = predict_make_job(operators, 2);
    assert_true(job->analysis->totals.lacks_type_id);
    mdot_job_destroy(job);
}

/* If any operator feature differs, two operators are in different groups. */
static void operators_with_different_features_are_in_different_groups(void **state)
{
    (void)state;
    enum { SETTINGS = MDOT_SETTING_COUNT, COSTS = MDOT_PHASE_COUNT * 6, COUNT = 1 + SETTINGS + COSTS + 2 };
    mdot_job_operator operators[2 * COUNT];
    for (int i = 0; i < COUNT; i++) operators[i] = predict_operator(3);
    for (int i = 0; i < SETTINGS; i++) operators[1 + i].setting[i] += 1;
    for (int i = 0; i < COSTS; i++) {
        mdot_job_operator *op = &operators[1 + SETTINGS + i];
        mdot_load *l = &(i < COSTS / 2 ? op->per_sample : op->per_step)[i / 3 % MDOT_PHASE_COUNT];
        *(i % 3 == 0 ? &l->flops : i % 3 == 1 ? &l->bytes_read : &l->bytes_written) += 1;
    }
    operators[COUNT - 2].parameters += 1;
    operators[COUNT - 1].type = "ConvTranspose";
    memcpy(operators + COUNT, operators, COUNT * sizeof *operators);
    mdot_job *job = predict_make_job(operators, 2 * COUNT);
    assert_int_equal(job->analysis->groups.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(job->analysis->groups.items[i].first, i);
        assert_int_equal(job->analysis->groups.items[i].count, 2);
    }
    mdot_job_destroy(job);
}

static void groups_ignore_operator_positions(void **state)
{
    (void)state;
    mdot_job *job = predict_job(4096, 1);
    assert_int_equal(job->analysis->groups.count, 1);
    assert_int_equal(job->analysis->groups.items[0].count, 4096);
    mdot_job_destroy(job);
}

static void counts_of_groups_add_up_to_all_operators(void **state)
{
    (void)state;
    for (size_t period = 1; period <= 20000; period = 3 * period + 1) {
        mdot_job *job = predict_job(20000, period);
        size_t sum = 0;
        for (size_t i = 0; i < job->analysis->groups.count; i++) sum += job->analysis->groups.items[i].count;
        assert_int_equal(job->analysis->groups.count, period);
        assert_int_equal(sum, 20000);
        mdot_job_destroy(job);
    }
}

/* Groups of sharded operators differ in role, position, experts and fused bytes, and an operator in a block, no matter
 * in which one, is in another group than one outside. */
static void operators_that_shard_differently_are_in_different_groups(void **state)
{
    (void)state;
    enum { COUNT = 6 };
    mdot_job_operator operators[2 * COUNT];
    uint8_t roles[2 * COUNT] = {0}, positions[2 * COUNT] = {0}, experts[2 * COUNT] = {0};
    rt_fusing fused[2 * COUNT] = {0};
    for (int i = 0; i < 2 * COUNT; i++) {
        operators[i] = predict_operator(3);
        roles[i] = i % COUNT == 1 ? RT_ROLE_ROWS : RT_ROLE_COLUMNS;
        positions[i] = i % COUNT == 2 ? RT_PIPELINE_AFTER : RT_PIPELINE_BLOCKS;
        experts[i] = i % COUNT == 3;
        fused[i].saved = i % COUNT == 4 ? 8 : 4;
        operators[i].block = i == 5 ? 1 : i == 11 ? 2 : 0;
    }
    mdot_job *job = predict_make_job(operators, 2 * COUNT);
    const rt_sharding sharding = {.role = roles, .position = positions, .experts = {.is_expert = experts}};
    rt_operator_groups groups = {.count = 7}, unsharded = {.count = 7}; /* outputs need no value before */
    assert_true(rt_group_operators(job, &sharding, fused, &groups));
    assert_int_equal(groups.count, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        assert_int_equal(groups.items[i].first, i);
        assert_int_equal(groups.items[i].count, 2);
        assert_compare(groups.of[i], ==, i);
        assert_compare(groups.of[i + COUNT], ==, i);
    }
    rt_free_operator_groups(&groups);
    assert_true(rt_group_operators(job, NULL, NULL, &unsharded));
    assert_int_equal(unsharded.count, 1);
    rt_free_operator_groups(&unsharded);
    mdot_job_destroy(job);
}

/* Operator flags are features, too. */
static void flags_separate_groups(void **state)
{
    (void)state;
    mdot_job_operator operators[3] = {predict_operator(0), predict_operator(0), predict_operator(0)};
    operators[1].flags = MDOT_OPERATOR_RECOMPUTED;
    mdot_job *job = predict_make_job(operators, 3);
    assert_int_equal(job->analysis->groups.count, 2);
    assert_int_equal(job->analysis->groups.items[0].count, 2);
    mdot_job_destroy(job);
}

static void cost_grows_with_work(void **state)
{
    (void)state;
    mdot_job_operator operators[4];
    for (int i = 0; i < 4; i++) operators[i] = predict_operator(0);
    operators[1].per_sample[MDOT_PHASE_FORWARD].flops += 1e6;
    operators[2].per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written += 1e3;
    operators[3] = (mdot_job_operator){.struct_size = sizeof(mdot_job_operator), .type = "Relu", .known = true};
    mdot_job *job = predict_make_job(operators, 4);
    assert_compare(job->analysis->op_costs.cost[1], >, job->analysis->op_costs.cost[0]);
    assert_compare(job->analysis->op_costs.cost[2], >, job->analysis->op_costs.cost[0]);
    assert_compare(job->analysis->op_costs.cost[3], ==, 0);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_with_an_unknown_type_is_detected),
        cmocka_unit_test(operators_with_different_features_are_in_different_groups),
        cmocka_unit_test(groups_ignore_operator_positions),
        cmocka_unit_test(counts_of_groups_add_up_to_all_operators),
        cmocka_unit_test(cost_grows_with_work),
        cmocka_unit_test(operators_that_shard_differently_are_in_different_groups),
        cmocka_unit_test(flags_separate_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
