/* test_analysis_faults.c — runtime/perf: each allocation of a job's analysis fails once (tests/fault/inject.c). The
 * call then reports exhausted memory and releases everything. */
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/sharding.h"
#include "tests/fault/inject.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#ifdef MDOT_SANITIZED
int main(void)
{
    print_message("skipped: a sanitizer has a malloc of its own\n");
    return 77;
}
#else

static network n;
static mdot_job *job;

static int set_up(void **state)
{
    (void)state;
    network_add_matmul(&n, 64, 64, "");
    network_add(&n, "Relu", 0, "0");
    network_add_matmul(&n, 64, 64, "1");
    network_add(&n, "SoftmaxCrossEntropyLoss", 0, "2");
    n.operators[1].block = n.operators[2].block = 1;
    job = predict_make_job(n.operators, n.count);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mdot_job_destroy(job);
    return 0;
}

/* Makes and releases a result. Returns false if memory ran out. */
typedef bool (*scenario)(void);

static void fail_each(scenario s, long allocations)
{
    const long before = inject_get_held().memory;
    inject_arm("memory", 0);
    assert_true(s());
    assert_int_equal(inject_disarm(), allocations);
    assert_int_equal(inject_get_held().memory, before);
    for (long at = 1; at <= allocations; at++) {
        inject_arm("memory", at);
        bool is_made = s();
        inject_disarm();
        if (is_made) fail_msg("allocation %ld: the result is made without it", at);
        if (inject_get_held().memory != before) fail_msg("allocation %ld: memory is kept", at);
    }
}

static bool analyze(void)
{
    rt_analysis *analysis = rt_perf_analyzer.create(job);
    if (analysis != NULL) rt_perf_analyzer.destroy(analysis);
    return analysis != NULL;
}

static bool measure_costs(void)
{
    rt_op_costs costs = {0};
    bool is_made = rt_measure_op_costs(job, &costs);
    rt_free_op_costs(&costs);
    return is_made;
}

static bool find_sharding(void)
{
    rt_sharding sharding = {0};
    bool is_made = rt_find_sharding(job, job->analysis->op_costs.cost, &sharding);
    rt_free_sharding(&sharding);
    return is_made;
}

static bool find_experts(void)
{
    rt_experts experts = {0};
    bool is_made = rt_find_experts(job, &experts);
    free(experts.is_expert);
    return is_made;
}

static bool group(void)
{
    rt_operator_groups groups = {0};
    bool is_made = rt_group_operators(job, NULL, NULL, &groups);
    rt_free_operator_groups(&groups);
    return is_made;
}

static bool collect_inputs(void)
{
    const rt_analysis *a = job->analysis;
    rt_roofline_inputs *inputs = rt_collect_roofline_inputs(job, &a->sharding, a->op_costs.fusing, &a->sharded_groups);
    free(inputs);
    return inputs != NULL;
}

static bool sum_inputs(void)
{
    const rt_analysis *a = job->analysis;
    size_t count;
    rt_roofline_inputs *sums = rt_sum_roofline_inputs(a->roofline_inputs, a->sharded_groups.count, &count);
    free(sums);
    return sums != NULL;
}

static bool measure_activations(void)
{
    static rt_activation_table table;
    return rt_measure_activations(job, &job->analysis->sharding, job->analysis->totals.logits, &table);
}

static bool shard_activations(void)
{
    double bytes[NETWORK_MAX_OPERATORS];
    const rt_activation_case which = {.attention = MDOT_ATTENTION_FLASH};
    return rt_shard_activations(job, &job->analysis->sharding, job->analysis->totals.logits, &which, 2, bytes);
}

static void analyses_are_made_or_memory_is_released(void **state)
{
    (void)state;
    enum { COSTS = 4, EXPERTS = 2, SHARDING = 5 + EXPERTS, GROUPS = 3, INPUTS = 1, SUMS = 1, ACTIVATIONS = 3 };
    fail_each(measure_costs, COSTS);
    fail_each(find_experts, EXPERTS);
    fail_each(find_sharding, SHARDING);
    fail_each(group, GROUPS);
    fail_each(collect_inputs, INPUTS);
    fail_each(sum_inputs, SUMS);
    fail_each(measure_activations, ACTIVATIONS);
    fail_each(shard_activations, ACTIVATIONS + 1);
    fail_each(analyze, 1 + COSTS + SHARDING + 2 * GROUPS + INPUTS + SUMS + ACTIVATIONS);
}

/* A program that cannot make the analysis has no job. */
static void jobs_without_memory_for_their_analysis_are_refused(void **state)
{
    (void)state;
    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = n.operators, .operator_count = n.count, .batch = 1};
    mdot_job *made = NULL;
    inject_arm("memory", 0);
    assert_int_equal(mdot_job_create(&description, &made, NULL), MDOT_OK);
    const long calls = inject_disarm();
    mdot_job_destroy(made);
    for (long at = 1; at <= calls; at++) {
        made = NULL;
        inject_arm("memory", at);
        mdot_status status = mdot_job_create(&description, &made, NULL);
        inject_disarm();
        assert_int_equal(status, MDOT_OUT_OF_MEMORY);
        assert_null(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(analyses_are_made_or_memory_is_released),
        cmocka_unit_test(jobs_without_memory_for_their_analysis_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}

#endif
