/* test_simulator.c — the clock and the accounting, with policies made for this test. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/policy/policies.h"
#include "simulator/report/simulation_report.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"

static mdot_status run(const sc_workload *workload, int gpus, const sc_policy *policy, const sc_run_options *options,
                       sc_result *result, mdot_error *err)
{
    sc_cluster cluster;
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(gpus, &cluster, NULL), MDOT_OK);
    mdot_status status = sc_simulate(workload, &cluster, policy, &oracle, options, result, err);
    sc_cluster_free(&cluster);
    return status;
}

/* Gives all GPUs to the jobs in turn, 10 s each. */
static mdot_status take_turns(void *self, const sc_view *view, sc_plan *plan)
{
    (void)self;
    for (uint32_t i = 0; i < view->workload->job_count; i++) {
        uint32_t job = (uint32_t)((i + (uint64_t)(view->now_s / 10)) % view->workload->job_count);
        sc_phase phase = view->states[job].phase;
        if (phase != SC_WAITING && phase != SC_RUNNING) continue;
        sc_plan_run(plan, job, 0, view->workload->jobs[job].gpus);
        break;
    }
    plan->wake_s = view->now_s + 10;
    return MDOT_OK;
}
static const sc_policy turns = {.name = "turns", .decide = take_turns};

static void a_restart_costs_time_without_progress(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 15}, {0, 1, 15}};
    sc_workload workload = workload_make(jobs, 2);
    sc_result result;
    sc_run_options options = {.restart = {.base_s = 2, .per_doubling_s = 1}};
    /* 0 works 0-10; 1 works 10-20; 0 restores 20-23, works 23-28; 1 restores 28-30, is evaluated at 28: runs on to
     * 38. */
    assert_int_equal(run(&workload, 1, &turns, &options, &result, NULL), MDOT_OK);
    expect_number(result.states[0].end_s, 28);
    assert_int_equal(result.states[0].preemptions, 1);
    expect_number(result.states[0].executed_s, 18);
    expect_number(result.states[1].end_s, 36);
    expect_number(result.states[1].attained_gpu_s, 18);
    sc_result_free(&result);
    options.restart.first = true;
    assert_int_equal(run(&workload, 1, &turns, &options, &result, NULL), MDOT_OK);
    assert_true(result.states[0].executed_s > 18);
    sc_result_free(&result);
    sc_workload_free(&workload);
}

static mdot_status never(void *self, const sc_view *view, sc_plan *plan)
{
    (void)self, (void)view, (void)plan;
    return MDOT_OK;
}
static mdot_status refuse(void *self, const sc_view *view, sc_plan *plan)
{
    (void)self, (void)view, (void)plan;
    return mdot_fail(view->err, MDOT_UNSUPPORTED, "no");
}

static void a_policy_that_lets_jobs_wait_forever_is_named(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 15}};
    static const sc_policy lazy = {.name = "lazy", .decide = never}, failing = {.name = "failing", .decide = refuse};
    sc_workload workload = workload_make(jobs, 1);
    sc_result result;
    mdot_error err = {0};
    assert_int_equal(run(&workload, 1, &lazy, &(sc_run_options){0}, &result, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "lazy"));
    assert_int_equal(run(&workload, 1, &failing, &(sc_run_options){0}, &result, &err), MDOT_UNSUPPORTED);
    sc_workload_free(&workload);
}

static void a_job_wider_than_the_cluster_is_refused(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 15}, {0, 5, 15}};
    sc_workload workload = workload_make(jobs, 2);
    sc_result result;
    mdot_error err = {0};
    assert_int_equal(run(&workload, 4, &sc_policy_fifo, &(sc_run_options){0}, &result, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "job 1 of 5 GPUs"));
    sc_workload_free(&workload);
}

static mdot_status reject_odd(void *self, const sc_view *view, sc_plan *plan)
{
    (void)self;
    for (size_t i = 0; i < view->arrived_count; i++)
        if (view->arrived[i] % 2 == 1) sc_plan_reject(plan, view->arrived[i]);
    for (uint32_t job = 0; job < view->workload->job_count; job += 2)
        if (view->states[job].phase == SC_WAITING || view->states[job].phase == SC_RUNNING)
            sc_plan_run(plan, job, 0, view->workload->jobs[job].gpus);
    return MDOT_OK;
}

static void rejected_jobs_count_in_no_time(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 10}, {0, 1, 1000}, {0, 1, 20}};
    static const sc_policy picky = {.name = "picky", .decide = reject_odd};
    sc_workload workload = workload_make(jobs, 3);
    sc_cluster cluster;
    sc_result result;
    sc_summary summary;
    assert_int_equal(sc_cluster_make_pool(2, &cluster, NULL), MDOT_OK);
    assert_int_equal(run(&workload, 2, &picky, &(sc_run_options){0}, &result, NULL), MDOT_OK);
    assert_int_equal(result.states[1].phase, SC_REJECTED);
    assert_int_equal(sc_summarise(&workload, &cluster, &result, &summary, NULL), MDOT_OK);
    assert_int_equal(summary.rejected, 1);
    expect_number(summary.mean_jct_s, 15);
    expect_number(summary.makespan_s, 20);
    expect_number(summary.median_jct_s, 15);
    expect_number(summary.utilisation, 0.75);
    sc_result_free(&result);
    sc_cluster_free(&cluster);
    sc_workload_free(&workload);
}

static void energy_cost_use_and_fairness_are_summed_over_types(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}, {0, 1, 100}, {0, 1, 100}};
    sc_workload workload = workload_make(jobs, 3);
    sc_cluster cluster = {0};
    sc_result result;
    sc_summary summary;
    sc_estimator oracle = sc_estimator_oracle();
    const sc_policy *themis;
    assert_int_equal(sc_policy_find("themis", &themis, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_add_node(&cluster, "a", "A100", 1, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_add_node(&cluster, "b", "T4", 1, NULL), MDOT_OK);
    cluster.types[0].watts = 400;
    cluster.types[1].watts = 70;
    cluster.types[0].price = 3;
    sc_run_options options = {.restart = {.base_s = 20, .first = true}};
    assert_int_equal(sc_simulate(&workload, &cluster, themis, &oracle, &options, &result, NULL), MDOT_OK);
    assert_int_equal(sc_summarise(&workload, &cluster, &result, &summary, NULL), MDOT_OK);
    /* Two jobs run from 0 to 120, and the third one from 120 to 240. */
    double held_s[2] = {0};
    for (int i = 0; i < 3; i++) held_s[result.states[i].type] += 120;
    assert_true(fabs(summary.energy_kwh - (400 * held_s[0] + 70 * held_s[1]) / 3.6e6) < 1e-12);
    expect_number(summary.cost, 0); /* the price of a T4 is unknown */
    expect_number(summary.utilisation, 360. / 480);
    expect_number(summary.used, 300. / 480);
    /* With 3, 3 and 2 jobs on 2 GPUs on average, an equal part takes 1.5, 1.5 and 1 times as long. */
    double first_rho = 120 / 150., third_rho = 240 / 100.;
    assert_true(fabs(summary.max_rho - third_rho) < 1e-9);
    assert_true(fabs(summary.mean_rho - (2 * first_rho + third_rho) / 3) < 1e-9);
    cluster.types[1].price = .5;
    assert_int_equal(sc_summarise(&workload, &cluster, &result, &summary, NULL), MDOT_OK);
    assert_true(fabs(summary.cost - (3 * held_s[0] + .5 * held_s[1]) / 3600) < 1e-12);
    cluster.types[1].watts = 0;
    assert_int_equal(sc_summarise(&workload, &cluster, &result, &summary, NULL), MDOT_OK);
    expect_number(summary.energy_kwh, 0);
    sc_result_free(&result);
    sc_workload_free(&workload);
    sc_cluster_free(&cluster);
}

static void every_decision_is_logged(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 2, 100}, {10, 4, 20}};
    sc_workload workload = workload_make(jobs, 2);
    sc_result result;
    char *text = NULL;
    size_t size;
    sc_run_options options = {.log = open_memstream(&text, &size)};
    assert_int_equal(run(&workload, 4, &sc_policy_srtf, &options, &result, NULL), MDOT_OK);
    fclose(options.log);
    assert_string_equal(text, "time_s,decision,job_id,type,gpus,note,nodes,batch\n"
                              "0,arrive,0,,,,,\n"
                              "0,start,0,gpu,2,,pool:2,\n"
                              "10,arrive,1,,,,,\n"
                              "10,preempt,0,gpu,2,,pool:2,\n"
                              "10,start,1,gpu,4,,pool:4,\n"
                              "30,complete,1,gpu,4,,pool:4,\n"
                              "30,resume,0,gpu,2,,pool:2,\n"
                              "120,complete,0,gpu,2,,pool:2,\n");
    free(text);
    sc_result_free(&result);
    sc_workload_free(&workload);
}

static void percentiles_use_nearest_ranks(void **state)
{
    (void)state;
    double jobs[20][3];
    for (size_t i = 0; i < 20; i++) memcpy(jobs[i], (double[3]){0, 1, (double)(i + 1)}, sizeof jobs[i]);
    sc_cluster cluster;
    assert_int_equal(sc_cluster_make_pool(20, &cluster, NULL), MDOT_OK);
    for (size_t count = 19; count <= 20; count++) {
        sc_workload workload = workload_make((const double(*)[3])jobs, count);
        sc_result result = workload_run(&workload, 20, "fifo", NULL, SC_ERRORS_SCALE);
        sc_summary summary;
        assert_int_equal(sc_summarise(&workload, &cluster, &result, &summary, NULL), MDOT_OK);
        expect_number(summary.p95_jct_s, 19);
        expect_number(summary.median_jct_s, (count == 19 ? 10 : 10.5));
        sc_result_free(&result);
        sc_workload_free(&workload);
    }
    sc_cluster_free(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_restart_costs_time_without_progress),
        cmocka_unit_test(a_policy_that_lets_jobs_wait_forever_is_named),
        cmocka_unit_test(a_job_wider_than_the_cluster_is_refused),
        cmocka_unit_test(rejected_jobs_count_in_no_time),
        cmocka_unit_test(energy_cost_use_and_fairness_are_summed_over_types),
        cmocka_unit_test(every_decision_is_logged),
        cmocka_unit_test(percentiles_use_nearest_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
