/* test_synergy.c — Synergy and Shockwave on a few jobs. */
#include <math.h>
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

static sc_result run(const sc_workload *w, const sc_policy *policy, int gpus, double cpus)
{
    sc_cluster c;
    sc_result result;
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(gpus, &c, NULL), MDOT_OK);
    c.cpus = cpus;
    assert_int_equal(sc_simulate(w, &c, policy, &oracle, &(sc_run_options){0}, &result, NULL), MDOT_OK);
    sc_cluster_free(&c);
    return result;
}

/* Two GPUs and 8 CPUs: proportional parts are 4. A loader that needs 7 makes its job slower by 7 / 4, unless the other
 * job, which needs 1, leaves the rest. If both need 7, both get 4. */
static void cpus_follow_the_loaders(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    for (int i = 0; i < 4; i++) {
        sc_workload w = workload_make(jobs, 2);
        bool both = i >= 2, is_synergy = i % 2 == 1;
        w.jobs[0].loader_cpus = 7;
        w.jobs[1].loader_cpus = both ? 7 : 1;
        sc_result r = run(&w, is_synergy ? &sc_policy_synergy : &sc_policy_srsf, 2, 8);
        expect_number(r.states[0].end_s, is_synergy && !both ? 1000 : 1750);
        expect_number(r.states[1].end_s, both ? 1750 : 1000);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

/* With GPUs for all random jobs, none ends later than with a proportional part of the CPUs. */
static void no_job_is_slower_than_with_a_proportional_part(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sc_workload w = workload_random(20, 4, seed);
        double saved_s = 0;
        for (size_t i = 0; i < w.job_count; i++) w.jobs[i].loader_cpus = w.jobs[i].gpus * 12 * sc_random_unit(&random);
        sc_result synergy = run(&w, &sc_policy_synergy, 80, 320), srsf = run(&w, &sc_policy_srsf, 80, 320);
        for (size_t i = 0; i < w.job_count; i++) {
            saved_s += srsf.states[i].end_s - synergy.states[i].end_s;
            if (synergy.states[i].end_s > srsf.states[i].end_s * (1 + 1e-9))
                fail_msg("seed %d, job %zu: %g, not %g", (int)seed, i, synergy.states[i].end_s, srsf.states[i].end_s);
        }
        assert_true(saved_s > 0);
        sc_result_free(&synergy);
        sc_result_free(&srsf);
        sc_workload_free(&w);
    }
}

/* One GPU. The short job's progress counts more in a window of 20 rounds, so it ends first, and the long one goes on
 * alone. */
static void shockwave_serves_progress_and_fairness(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 12000}, {1200, 1, 600}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = workload_run(&w, 1, "shockwave", NULL, SC_ERRORS_SCALE);
    expect_number(r.states[1].start_s, 1200);
    expect_number(r.states[1].end_s, 1800);
    expect_number(r.states[0].end_s, 12600);
    sc_result_free(&r);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cpus_follow_the_loaders),
        cmocka_unit_test(no_job_is_slower_than_with_a_proportional_part),
        cmocka_unit_test(shockwave_serves_progress_and_fairness),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
