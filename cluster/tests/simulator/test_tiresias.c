/* test_tiresias.c — Tiresias on a few jobs: levels, promotion, the Gittins index, and placement by skew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"

/* Both jobs reach the last level at 14,400 s, and the first one runs on. The second one's last run took 3,950 s. Eight
 * times later it is promoted, and has GPUs until it ends. */
static void a_job_that_waits_long_is_promoted(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 200000}, {3000, 1, 14000}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = workload_run(&w, 1, "tiresias", NULL, SC_ERRORS_SCALE);
    expect_number(r.states[1].start_s, 3250);
    expect_number(r.states[1].end_s, 14400 + 8 * 3950 + (14000 - 7200));
    expect_number(r.states[0].end_s, 214000);
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Nine of ten jobs took 100 s, one 3,000 s. A job that has run for 500 s is expected to run long, so a new one goes
 * first. A job that has run for 50 s is expected to end within 50 s, so it goes on. */
static void the_gittins_index_orders_jobs(void **state)
{
    (void)state;
    double jobs[14][3] = {[9] = {0, 1, 3000}, {5000, 1, 2000}, {5500, 1, 100}, {8000, 1, 150}, {8050, 1, 100}};
    for (int i = 0; i < 9; i++) {
        jobs[i][1] = 1;
        jobs[i][2] = 100;
    }
    sc_workload w = workload_make((const double(*)[3])jobs, 14);
    sc_result r = workload_run(&w, 1, "tiresias", NULL, SC_ERRORS_SCALE);
    expect_number(r.states[9].end_s, 3900);
    expect_number(r.states[10].end_s, 7100);
    expect_number(r.states[11].end_s, 5600);
    expect_number(r.states[12].end_s, 8150);
    expect_number(r.states[13].end_s, 8250);
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* One GPU of three is left on each node. A job that slows down on both waits for one node, another one starts. */
static void a_skewed_job_waits_for_one_node(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 2, 100}, {0, 2, 200}, {0, 2, 300}};
    for (int skewed = 0; skewed < 2; skewed++) {
        sc_workload w = workload_make(jobs, 3);
        sc_cluster c = {0};
        sc_result r;
        sc_estimator oracle = sc_estimator_oracle();
        w.jobs[2].spread = skewed ? 2 : 1;
        assert_int_equal(sc_cluster_add_node(&c, "a", "gpu", 3, NULL), MDOT_OK);
        assert_int_equal(sc_cluster_add_node(&c, "b", "gpu", 3, NULL), MDOT_OK);
        assert_int_equal(sc_simulate(&w, &c, &sc_policy_tiresias, &oracle, &(sc_run_options){0}, &r, NULL), MDOT_OK);
        expect_number(r.states[2].end_s, skewed ? 400 : 300);
        sc_result_free(&r);
        sc_cluster_free(&c);
        sc_workload_free(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_waits_long_is_promoted),
        cmocka_unit_test(the_gittins_index_orders_jobs),
        cmocka_unit_test(a_skewed_job_waits_for_one_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
