/* test_mlfs.c — the learned policy: the job of the highest score runs, and without a network it is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static void the_highest_score_runs(void **state)
{
    (void)state;
    sc_learned *learned = compile_learned();
    uint64_t seed = 7;
    for (int round = 0; round < 30; round++) {
        double jobs[2][3], scores[2];
        for (int i = 0; i < 2; i++) {
            jobs[i][0] = 0;
            jobs[i][1] = 1;
            jobs[i][2] = 100 + (double)(sc_random_next(&seed) % 10000);
            float long_s = (float)(log1p(jobs[i][2]) / 10); /* nothing waited, attained or done; the loss is 1 */
            scores[i] = sc_learned_score(learned,
                                         (const float[SC_FEATURES]){long_s, 0, 0, 0, long_s, 0, 1, 0, (float)log1p(2)});
        }
        sc_workload w = workload_make((const double(*)[3])jobs, 2);
        sc_cluster c;
        sc_result r;
        sc_estimator oracle = sc_estimator_oracle();
        assert_int_equal(sc_cluster_make_pool(1, &c, NULL), MDOT_OK);
        assert_int_equal(sc_simulate(&w, &c, &sc_policy_mlfs, &oracle, &(sc_run_options){.learned = learned}, &r, NULL),
                         MDOT_OK);
        assert_true(r.states[scores[1] > scores[0]].start_s == 0);
        assert_true(r.states[scores[1] <= scores[0]].start_s > 0);
        sc_result_free(&r);
        sc_cluster_free(&c);
        sc_workload_free(&w);
    }
    sc_learned_close(learned);
}

static void mlfs_rejects_a_missing_or_foreign_network(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}};
    sc_workload w = workload_make(jobs, 1);
    sc_cluster c;
    sc_result r;
    mdot_error err = {0};
    sc_learned *learned = NULL;
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(1, &c, NULL), MDOT_OK);
    assert_int_equal(sc_simulate(&w, &c, &sc_policy_mlfs, &oracle, &(sc_run_options){0}, &r, &err),
                     MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "--learned FILE");
    assert_true(sc_learned_open(MDOT_SHIPPED_PREDICTOR, &learned, &err) != MDOT_OK);
    assert_null(learned);
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_score_runs),
        cmocka_unit_test(mlfs_rejects_a_missing_or_foreign_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
