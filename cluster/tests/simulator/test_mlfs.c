/* test_mlfs.c — the learned policy: the job of the highest score runs, and without a network it is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/policy/policies.h"
#include "tests/history/support/linear.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static void the_highest_score_runs(void **state)
{
    (void)state;
    hs_row_model *learned = compile_learned();
    uint64_t seed = 7;
    for (int round = 0; round < 30; round++) {
        double jobs[2][3];
        float scores[2];
        for (int i = 0; i < 2; i++) {
            jobs[i][0] = 0;
            jobs[i][1] = 1;
            jobs[i][2] = 100 + (double)(sc_random_next(&seed) % 10000);
            float long_s = (float)(log1p(jobs[i][2]) / 10); /* nothing waited, attained or done; the loss is 1 */
            const float features[SC_FEATURES] = {long_s, 0, 0, 0, long_s, 0, 1, 0, (float)log1p(2)};
            assert_int_equal(hs_row_model_ask(learned, features, &scores[i], NULL), MDOT_OK);
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
    hs_row_model_close(learned);
}

static void mlfs_rejects_a_missing_or_foreign_network(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}};
    sc_workload w = workload_make(jobs, 1);
    sc_cluster c;
    sc_result r;
    mdot_error err = {0};
    hs_row_model *learned = NULL;
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

/* The logarithm of 10 - 5 log(1 + load) is finite while few jobs ask for GPUs. Beyond, the simulation fails and names
 * the score. */
static void a_score_that_is_not_finite_fails_the_simulation(void **state)
{
    (void)state;
    double jobs[12][3];
    for (int i = 0; i < 12; i++) jobs[i][0] = 0, jobs[i][1] = 1, jobs[i][2] = 100;
    char *folder = process_make_folder(), *path = NULL;
    assert_true(asprintf(&path, "%s/n.mdot", folder) > 0);
    linear network = {.row = {"features", "score", SC_FEATURES, 1}, .sums = {10}, .last = "Log"};
    network.factors[SC_FEATURES - 1][0] = -5; /* the load */
    linear_compile(&network, path);
    hs_row_model *learned = NULL;
    assert_int_equal(sc_learned_open(path, &learned, NULL), MDOT_OK);
    sc_cluster c;
    assert_int_equal(sc_cluster_make_pool(1, &c, NULL), MDOT_OK);
    for (size_t count = 1; count <= 12; count++) {
        sc_workload w = workload_make((const double(*)[3])jobs, count);
        sc_result r;
        mdot_error err = {0};
        sc_estimator oracle = sc_estimator_oracle();
        bool is_finite = 10 - 5 * log1p((double)count) > 0;
        mdot_status status =
            sc_simulate(&w, &c, &sc_policy_mlfs, &oracle, &(sc_run_options){.learned = learned}, &r, &err);
        assert_int_equal(status, is_finite ? MDOT_OK : MDOT_MALFORMED);
        if (!is_finite) expect_contains(err.message, "score number 1 of 1 is");
        if (is_finite) sc_result_free(&r);
        sc_workload_free(&w);
    }
    sc_cluster_free(&c);
    hs_row_model_close(learned);
    free(path);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_score_runs),
        cmocka_unit_test(a_score_that_is_not_finite_fails_the_simulation),
        cmocka_unit_test(mlfs_rejects_a_missing_or_foreign_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
