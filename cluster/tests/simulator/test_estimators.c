/* test_estimators.c — the duration estimates that policies receive. */
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
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"

static void sigma_follows_the_mean_error(void **state)
{
    (void)state;
    static const double known[][2] = {{.1, .12468}, {.25, .30381}, {.5, .56317}, {.75, .76891}};
    for (size_t i = 0; i < 4; i++) assert_true(fabs(sc_error_sigma(known[i][0]) - known[i][1]) < 1e-5);
    assert_true(sc_error_sigma(0) < 1e-12);
}

static void errors_have_the_stated_mean_and_median_one(void **state)
{
    (void)state;
    for (sc_error_model model = SC_ERROR_LOG_NORMAL; model <= SC_ERROR_TWO_POINT; model++) {
        enum { COUNT = 200000 };
        sc_estimator e, again, partner;
        double sum = 0, below = 0;
        bool differs = false;
        assert_int_equal(sc_estimator_make_errors(COUNT, model, 0.25, 5, &e, NULL), MDOT_OK);
        assert_int_equal(sc_estimator_make_errors(COUNT, model, 0.25, 5, &again, NULL), MDOT_OK);
        assert_int_equal(sc_estimator_make_errors(COUNT, model, 0.25, 6, &partner, NULL), MDOT_OK);
        for (uint32_t job = 0; job < COUNT; job++) {
            double factor = e.factor(e.self, NULL, job, 1);
            expect_number(factor, again.factor(again.self, NULL, job, 1));
            differs |= factor != partner.factor(partner.self, NULL, job, 1);
            sum += fabs(factor - 1);
            below += factor < 1;
        }
        assert_true(differs);
        assert_true(fabs(sum / COUNT - 0.25) < 0.005); /* the standard deviation of the mean is below .001 */
        assert_true(fabs(below / COUNT - 0.5) < 0.01);
        sc_estimator_destroy(&e);
        sc_estimator_destroy(&again);
        sc_estimator_destroy(&partner);
    }
}

static void both_error_models_match(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}};
    sc_workload w = workload_make(jobs, 1);
    sc_estimate e = {.workload = &w, .factors = (double[]){0.5}, .durations_s = (double[]){100}};
    expect_number(sc_estimate_duration_s(&e, 0), 50);
    expect_number(sc_estimate_remaining_s(&e, 0, 20, 80), 10);
    expect_number(sc_estimate_speed(&e, 0, 0, 1), 2);
    e.errors = SC_ERRORS_TOTAL;
    expect_number(sc_estimate_remaining_s(&e, 0, 80, 20), 30);
    expect_number(sc_estimate_remaining_s(&e, 0, 20, 80), 0);
    sc_workload_free(&w);
}

static void rolling_predicts_the_mean_of_similar_jobs(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}, {0, 1, 200}, {0, 2, 600}, {0, 1, 50}, {0, 1, 50}, {0, 4, 50}};
    sc_workload w = workload_make(jobs, 6);
    for (size_t i = 0; i < 4; i++) w.jobs[i].group = strdup("anna");
    w.jobs[5].group = strdup("anna");
    sc_estimator e;
    assert_int_equal(sc_estimator_make_rolling(&w, &e, NULL), MDOT_OK);
    expect_number(e.factor(e.self, &w, 3, 50), 3600.0 / 50);
    e.learn(e.self, &w, 0, 100, 0);
    e.learn(e.self, &w, 1, 200, 0);
    e.learn(e.self, &w, 2, 600, 0);
    expect_number(e.factor(e.self, &w, 3, 50), 3); /* estimate from group and width: 150 */
    expect_number(e.factor(e.self, &w, 5, 50), 6); /* estimate from the group: 300 */
    expect_number(e.factor(e.self, &w, 4, 50), 6); /* estimate from all jobs: 300 */
    e.learn(e.self, &w, 4, 50, 0);
    expect_number(e.factor(e.self, &w, 4, 50), 1);
    sc_estimator_destroy(&e);
    sc_workload_free(&w);
}

/* b is actually shorter but is predicted to be longer. */
static void every_policy_uses_estimates_of_kinds(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}, {0, 1, 100}};
    static const char *const names[] = {"a", "b"}, *const policies[] = {"srsf", "srtf", "qssf", "smd"};
    sc_workload w = workload_make(jobs, 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(sc_workload_add_kind(&w, names[i], &w.jobs[i].kind, NULL), MDOT_OK);
        w.kinds[i].speed[0][0] = i == 0 ? 1 : 2;
    }
    for (int has_estimate = 0; has_estimate < 2; has_estimate++) {
        for (uint32_t i = 0; i < 2; i++) {
            w.kinds[i].has_estimate = has_estimate;
            w.kinds[i].estimated_speed[0][0] = i == 0 ? 2 : 1;
        }
        for (size_t p = 0; p < 4; p++) {
            sc_result r = workload_run(&w, 1, policies[p], NULL, SC_ERRORS_SCALE);
            expect_number(r.states[0].end_s, (has_estimate ? 100 : 150));
            expect_number(r.states[1].end_s, (has_estimate ? 150 : 50));
            sc_result_free(&r);
        }
    }
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigma_follows_the_mean_error),
        cmocka_unit_test(errors_have_the_stated_mean_and_median_one),
        cmocka_unit_test(both_error_models_match),
        cmocka_unit_test(rolling_predicts_the_mean_of_similar_jobs),
        cmocka_unit_test(every_policy_uses_estimates_of_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
