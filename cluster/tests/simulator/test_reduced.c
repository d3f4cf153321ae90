/* test_reduced.c — the implemented parts of Themis, Hare, Hydra and PowerFlow: order, filled gaps, type and width. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static void expect_starts(const sc_result *result, const double *starts_s, const double *ends_s)
{
    for (size_t i = 0; i < result->job_count; i++)
        if (result->states[i].start_s != starts_s[i] || result->states[i].end_s != ends_s[i])
            fail_msg("job %zu: %g to %g, expected %g to %g", i, result->states[i].start_s, result->states[i].end_s,
                     starts_s[i], ends_s[i]);
}

/* 3 of 4 GPUs are busy until 100, and a job for 4 is blocked until then. One 1-GPU job ends before, the other would end
 * later. */
static const double gap[][3] = {{0, 3, 100}, {10, 4, 50}, {20, 1, 90}, {20, 1, 80}};

static void hare_fills_gaps_without_delaying_jobs(void **state)
{
    (void)state;
    sc_workload w = workload_make(gap, 4);
    sc_result r = workload_run(&w, 4, "hare", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 100, 150, 20}, (const double[]){100, 150, 240, 100});
    sc_result_free(&r);
    /* If the long one is predicted to be short, it delays the blocked job. */
    const double factors[] = {1, 1, .5, 1};
    r = workload_run(&w, 4, "hare", factors, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 110, 20, 160}, (const double[]){100, 160, 110, 240});
    sc_result_free(&r);
    /* A blocked job for 3 GPUs leaves one free for the long job. */
    w.jobs[1].gpus = 3;
    r = workload_run(&w, 4, "hare", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 100, 20, 110}, (const double[]){100, 150, 110, 190});
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void hare_is_fifo_without_gaps(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        sc_workload w = workload_random(80, 1, seed);
        sc_result hare = workload_run(&w, 5, "hare", NULL, SC_ERRORS_SCALE);
        sc_result fifo = workload_run(&w, 5, "fifo", NULL, SC_ERRORS_SCALE);
        for (size_t i = 0; i < 80; i++) assert_true(hare.states[i].end_s == fifo.states[i].end_s);
        sc_result_free(&hare);
        sc_result_free(&fifo);
        sc_workload_free(&w);
    }
}

static void themis_serves_the_least_fairly_treated_job(void **state)
{
    (void)state;
    /* One GPU, ten rounds. The short job has waited one round of its 360 s, so it is twice as late as it should be,
     * the long one only by a tenth. After that they stop taking turns. */
    static const double jobs[][3] = {{0, 1, 3600}, {0, 1, 360}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = workload_run(&w, 1, "themis", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 360}, (const double[]){3960, 720});
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Two types with one GPU each: fast runs 2 steps a second, slow 1. */
static sc_result run_hydra(sc_workload *w)
{
    sc_cluster c = {0};
    sc_result result;
    sc_estimator oracle = sc_estimator_oracle();
    uint32_t kind;
    mdot_error err = {0};
    assert_int_equal(sc_cluster_add_node(&c, "a", "fast", 1, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_add_node(&c, "b", "slow", 1, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(w, "any", &kind, NULL), MDOT_OK);
    w->kinds[kind].speed[0][0] = 2;
    w->kinds[kind].speed[1][0] = 1;
    for (size_t i = 0; i < w->job_count; i++) w->jobs[i].kind = kind;
    if (sc_simulate(w, &c, &sc_policy_hydra, &oracle, &(sc_run_options){0}, &result, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    sc_cluster_free(&c);
    return result;
}

static void hydra_reserves_fast_gpus_for_jobs_that_need_them(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}, {0, 1, 100}};
    sc_workload w = workload_make(jobs, 2);
    w.jobs[0].deadline_s = 150; /* slow suffices, although the job is first in the trace and by deadline */
    w.jobs[1].deadline_s = 160;
    sc_result r = run_hydra(&w);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){100, 50});
    sc_result_free(&r);
    sc_workload_free(&w);

    w = workload_make(jobs, 2);
    w.jobs[0].deadline_s = INFINITY;
    w.jobs[1].deadline_s = 60; /* only fast suffices, so this job goes first */
    r = run_hydra(&w);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){100, 50});
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Four GPUs of 100 W. The first job's speed doubles with its GPUs, the second's hardly grows. */
static mdot_status run_powerflow(double watts, double power_w, sc_result *out_result, mdot_error *err)
{
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    static const double speeds[][3] = {{1, 2, 4}, {1, 1.2, 1.3}};
    sc_workload w = workload_make(jobs, 2);
    sc_cluster c;
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(4, &c, NULL), MDOT_OK);
    c.types[0].watts = watts;
    c.power_w = power_w;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(sc_workload_add_kind(&w, i == 0 ? "scales" : "does not", &w.jobs[i].kind, NULL), MDOT_OK);
        memcpy(w.kinds[w.jobs[i].kind].speed[0], speeds[i], sizeof speeds[i]);
    }
    mdot_status status = sc_simulate(&w, &c, &sc_policy_powerflow, &oracle, &(sc_run_options){0}, out_result, err);
    sc_cluster_free(&c);
    sc_workload_free(&w);
    return status;
}

static void powerflow_widens_the_job_of_least_added_energy(void **state)
{
    (void)state;
    sc_result r;
    mdot_error err = {0};
    /* All GPUs: two each, then all for the second: speed 1.3 with 4 GPUs, 1.2 with 2. */
    assert_int_equal(run_powerflow(100, 0, &r, NULL), MDOT_OK);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){500, 500 + 400 / 1.3});
    sc_result_free(&r);
    /* Three GPUs: two for the job that scales, then two for the other. */
    assert_int_equal(run_powerflow(100, 399, &r, NULL), MDOT_OK);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){500, 500 + 500 / 1.2});
    sc_result_free(&r);
    assert_int_equal(run_powerflow(100, 200, &r, NULL), MDOT_OK);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){1000, 1000});
    sc_result_free(&r);
    /* One GPU: one job after the other. Zero GPUs: the jobs would never starts. */
    assert_int_equal(run_powerflow(100, 199, &r, NULL), MDOT_OK);
    expect_starts(&r, (const double[]){0, 1000}, (const double[]){1000, 2000});
    sc_result_free(&r);
    assert_int_equal(run_powerflow(100, 99, &r, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "never starts");
    assert_int_equal(run_powerflow(0, 0, &r, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "watts");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hare_fills_gaps_without_delaying_jobs),
        cmocka_unit_test(hare_is_fifo_without_gaps),
        cmocka_unit_test(themis_serves_the_least_fairly_treated_job),
        cmocka_unit_test(hydra_reserves_fast_gpus_for_jobs_that_need_them),
        cmocka_unit_test(powerflow_widens_the_job_of_least_added_energy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
