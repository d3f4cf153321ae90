/* test_early_ends.c — jobs that fail or are cancelled: their estimates follow the plan, they end before it, and
 * survival estimates learn from the ends. */
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
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static sc_result run(const sc_workload *w, const sc_policy *policy, sc_errors errors)
{
    mdot_error err = {0};
    sc_cluster c;
    sc_result r;
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(1, &c, NULL), MDOT_OK);
    if (sc_simulate(w, &c, policy, &oracle, &(sc_run_options){.errors = errors}, &r, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    sc_cluster_free(&c);
    return r;
}

static void a_job_that_fails_is_ordered_by_its_plan(void **state)
{
    (void)state;
    /* The first job ends after 100 of 1000 planned seconds, the second after 500 of 500. */
    static const double jobs[][3] = {{0, 1, 100}, {0, 1, 500}};
    sc_workload w = workload_make(jobs, 2);
    for (int errors = SC_ERRORS_SCALE; errors <= SC_ERRORS_TOTAL; errors++) {
        w.jobs[0].planned = 0;
        sc_result r = run(&w, &sc_policy_srsf, (sc_errors)errors);
        expect_number(r.states[0].end_s, 100);
        expect_number(r.states[1].end_s, 600);
        sc_result_free(&r);
        w.jobs[0].planned = 10;
        r = run(&w, &sc_policy_srsf, (sc_errors)errors);
        expect_number(r.states[0].end_s, 600);
        expect_number(r.states[1].end_s, 500);
        sc_result_free(&r);
    }
    sc_workload_free(&w);
}

static void estimates_follow_the_plan_while_it_runs(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}};
    sc_workload w = workload_make(jobs, 1);
    double factor = 1.5, duration_s;
    w.jobs[0].planned = 4;
    duration_s = sc_estimate_base_duration_s(&w, &w.jobs[0], 1);
    expect_number(duration_s, 400);
    sc_estimate e = {.workload = &w, .factors = &factor, .durations_s = &duration_s};
    expect_number(sc_estimate_duration_s(&e, 0), 600);
    expect_number(sc_estimate_remaining_s(&e, 0, 100, 0), 600);
    expect_number(sc_estimate_remaining_s(&e, 0, 20, 80), 480); /* 320 of the plan are left */
    e.errors = SC_ERRORS_TOTAL;
    expect_number(sc_estimate_remaining_s(&e, 0, 20, 80), 520);
    sc_workload_free(&w);
}

static void outcomes_have_the_published_frequency(void **state)
{
    (void)state;
    sc_workload w = workload_random(20000, 4, 1), again = workload_random(20000, 4, 1);
    size_t early = 0, halves = 0;
    w.jobs[0].planned = again.jobs[0].planned = 7; /* known from the trace */
    sc_workload_draw_outcomes(&w, 5);
    sc_workload_draw_outcomes(&again, 5);
    expect_number(w.jobs[0].planned, 7);
    for (size_t i = 1; i < w.job_count; i++) {
        expect_number(w.jobs[i].planned, again.jobs[i].planned);
        assert_true((w.jobs[i].planned > 0) == (w.jobs[i].outcome != MDOT_ENDED_COMPLETED));
        if (w.jobs[i].planned == 0) continue;
        assert_true(w.jobs[i].planned >= 1);
        assert_true(w.jobs[i].planned <= 100);
        early++;
        halves += w.jobs[i].planned > 2;
    }
    assert_true(fabs((double)early / 20000 - .307) < .01);
    assert_true(fabs((double)halves / (double)early - .5) < .03);
    sc_workload_free(&w);
    sc_workload_free(&again);
}

static void survival_estimates_grow_with_age_under_heavy_tails(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}, {0, 2, 100}};
    sc_workload w = workload_make(jobs, 2);
    sc_estimator s;
    assert_int_equal(sc_estimator_make_survival(&w, &s, NULL), MDOT_OK);
    expect_number(s.remaining_s(s.self, &w, 0, 0), 3600); /* nothing is known */
    expect_number(s.remaining_s(s.self, &w, 0, 9000), 9000);
    /* 90 jobs of 10 s and 10 of 10,000 s, of one GPU each. */
    for (int i = 0; i < 100; i++) s.learn(s.self, &w, 0, i % 10 == 0 ? 10000 : 10, 0);
    assert_true(fabs(s.remaining_s(s.self, &w, 0, 0) - 1009) < 1e-9);
    assert_true(fabs(s.factor(s.self, &w, 0, 100) - 10.09) < 1e-9);
    /* Only ten jobs of this width, and of all widths, outlived 100 s; they ran for 9,900 s more. */
    assert_true(fabs(s.remaining_s(s.self, &w, 0, 100) - 9900) < 1e-9);
    assert_true(fabs(s.remaining_s(s.self, &w, 1, 0) - 1009) < 1e-9);
    /* Jobs of two GPUs are short. Once 30 are known, they have a separate estimate. */
    for (int i = 0; i < 29; i++) s.learn(s.self, &w, 1, 50, 0);
    assert_true(s.remaining_s(s.self, &w, 1, 0) > 100);
    s.learn(s.self, &w, 1, 50, 0);
    assert_true(fabs(s.remaining_s(s.self, &w, 1, 0) - 50) < 1e-9);
    sc_estimator_destroy(&s);
    sc_workload_free(&w);
}

static void the_command_reads_and_draws_outcomes(void **state)
{
    (void)state;
    static process_result result;
    char *folder = process_make_folder();
    char *trace = workload_write_file(folder, "t.csv",
                                      "job_id,submit_s,gpus,duration_s,planned_part\na,0,1,100,0.1\nb,0,1,500,\n");
    const char *line[] = {MDOT_SIMULATE, trace, "--gpus", "1", "--policy", "srsf", "--json", NULL};
    process_run(line, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    expect_contains(result.out, "\"mean_jct_s\": 550,");
    const char *survival[] = {MDOT_SIMULATE, trace,      "--gpus",     "1",      "--policy", "srsf",
                              "--estimate",  "survival", "--outcomes", "philly", NULL};
    process_run(survival, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    expect_contains(result.out, "survival");
    const char *wrong[] = {MDOT_SIMULATE, trace, "--gpus", "1", "--policy", "srsf", "--outcomes", "mars", NULL};
    process_run(wrong, &result);
    assert_int_equal(result.status, 2);
    expect_contains(result.err, "mars");
    free(trace);
    trace = workload_write_file(folder, "bad.csv", "job_id,submit_s,gpus,duration_s,planned_part\na,0,1,100,1.5\n");
    const char *bad[] = {MDOT_SIMULATE, trace, "--gpus", "1", "--policy", "srsf", NULL};
    process_run(bad, &result);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "planned_part");
    free(trace);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_fails_is_ordered_by_its_plan),
        cmocka_unit_test(estimates_follow_the_plan_while_it_runs),
        cmocka_unit_test(outcomes_have_the_published_frequency),
        cmocka_unit_test(survival_estimates_grow_with_age_under_heavy_tails),
        cmocka_unit_test(the_command_reads_and_draws_outcomes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
