/* test_elasticflow.c — deadlines: admitted jobs meet them for any cost of restarts, and more jobs meet them than with
 * EDF. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "simulator/report/simulation_report.h"
#include "tests/simulator/support/workloads.h"

enum { GPUS = 16, JOBS = 150 };

/* Scalable jobs: the speed is w^.9, and one step per second on one GPU. */
static sc_workload make(uint64_t seed, double low, double high)
{
    sc_workload w = workload_random(JOBS, 1, seed);
    uint32_t kind;
    sc_cluster pool;
    assert_int_equal(sc_workload_add_kind(&w, "scales", &kind, NULL), MDOT_OK);
    for (unsigned width = 0; width < 4; width++) w.kinds[kind].speed[0][width] = pow(1 << width, .9);
    assert_int_equal(sc_cluster_make_pool(GPUS, &pool, NULL), MDOT_OK);
    for (size_t i = 0; i < w.job_count; i++) {
        w.jobs[i].kind = kind;
        w.jobs[i].gpus = 1 << sc_random_next(&seed) % 3;
        w.jobs[i].work *= 1 + (double)(sc_random_next(&seed) % 20);
    }
    sc_workload_give_deadlines(&w, &pool, low, high, seed);
    sc_cluster_free(&pool);
    return w;
}

static sc_summary run(const sc_workload *w, const sc_policy *policy, double restart_s, sc_result *out_result)
{
    sc_cluster pool;
    sc_estimator oracle = sc_estimator_oracle();
    sc_summary summary;
    mdot_error err = {0};
    sc_run_options options = {.restart = {.base_s = restart_s, .per_doubling_s = restart_s > 0 ? 2 : 0}};
    assert_int_equal(sc_cluster_make_pool(GPUS, &pool, NULL), MDOT_OK);
    if (sc_simulate(w, &pool, policy, &oracle, &options, out_result, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(sc_summarise(w, &pool, out_result, &summary, NULL), MDOT_OK);
    sc_cluster_free(&pool);
    return summary;
}

static void every_admitted_job_meets_its_deadline(void **state)
{
    (void)state;
    static const double restarts_s[] = {0, 29, 200};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        sc_workload w = make(seed, 1.2, 4);
        for (size_t i = 0; i < 3; i++) {
            sc_result result;
            sc_summary summary = run(&w, &sc_policy_elasticflow, restarts_s[i], &result);
            for (size_t job = 0; job < w.job_count; job++)
                if (result.states[job].phase == SC_DONE && result.states[job].end_s > w.jobs[job].deadline_s + 1e-6)
                    fail_msg("seed %d, restart %g s: job %zu ends at %g, after %g", (int)seed, restarts_s[i], job,
                             result.states[job].end_s, w.jobs[job].deadline_s);
            assert_int_equal(summary.deadlines_met + summary.rejected, JOBS);
            assert_true(summary.rejected > 0); /* otherwise the test would be too easy */
            sc_result_free(&result);
        }
        sc_workload_free(&w);
    }
}

static void more_deadlines_are_met_than_by_edf(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        sc_workload w = make(seed, 1.2, 4);
        sc_result result;
        size_t met[3];
        const sc_policy *const policies[] = {&sc_policy_elasticflow, &sc_policy_edf, &sc_policy_edf_admit};
        for (size_t i = 0; i < 3; i++) {
            met[i] = run(&w, policies[i], 29, &result).deadlines_met;
            sc_result_free(&result);
        }
        print_message("seed %d: elasticflow %zu, edf %zu, edf-admit %zu of %d\n", (int)seed, met[0], met[1], met[2],
                      JOBS);
        assert_true(met[0] > met[1]);
        assert_true(met[0] > met[2]);
        sc_workload_free(&w);
    }
}

static void edf_with_admission_meets_deadlines_with_free_restarts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        sc_workload w = make(seed, 1.2, 4);
        sc_result result;
        sc_summary summary = run(&w, &sc_policy_edf_admit, 0, &result);
        assert_int_equal(summary.deadlines_met + summary.rejected, JOBS);
        sc_result_free(&result);
        sc_workload_free(&w);
    }
}

static void jobs_without_deadlines_get_the_remaining_gpus(void **state)
{
    (void)state;
    sc_workload w = make(3, 1.2, 4);
    sc_result result;
    for (size_t i = 0; i < w.job_count; i += 2) w.jobs[i].deadline_s = INFINITY;
    sc_summary summary = run(&w, &sc_policy_elasticflow, 29, &result);
    for (size_t i = 0; i < w.job_count; i++) {
        if (isinf(w.jobs[i].deadline_s)) assert_int_equal(result.states[i].phase, SC_DONE);
        if (result.states[i].phase == SC_DONE) assert_true(result.states[i].end_s <= w.jobs[i].deadline_s + 1e-6);
    }
    assert_int_equal(summary.deadlines, JOBS / 2);
    sc_result_free(&result);
    sc_workload_free(&w);
}

/* A single job whose deadline requires two GPUs gets all GPUs that make it faster. A hopeless job is rejected. */
static void a_single_job_widens_while_it_gains(void **state)
{
    (void)state;
    sc_workload w = make(1, 1, 1);
    for (size_t i = 2; i < w.job_count; i++) {
        free(w.jobs[i].id);
        free(w.jobs[i].group);
    }
    w.job_count = 2;
    w.jobs[0].submit_s = w.jobs[1].submit_s = 0;
    w.jobs[0].work = w.jobs[1].work = 1000;
    w.jobs[0].gpus = w.jobs[1].gpus = 1;
    w.jobs[0].deadline_s = 600;
    w.jobs[1].deadline_s = 100; /* eight GPUs take 154 s */
    sc_result result;
    run(&w, &sc_policy_elasticflow, 0, &result);
    assert_int_equal(result.states[1].phase, SC_REJECTED);
    assert_true(fabs(result.states[0].end_s - 1000 / pow(8, .9)) < 1e-6);
    sc_result_free(&result);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_admitted_job_meets_its_deadline),
        cmocka_unit_test(more_deadlines_are_met_than_by_edf),
        cmocka_unit_test(edf_with_admission_meets_deadlines_with_free_restarts),
        cmocka_unit_test(jobs_without_deadlines_get_the_remaining_gpus),
        cmocka_unit_test(a_single_job_widens_while_it_gains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
