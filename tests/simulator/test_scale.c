/* test_scale.c — simulations of long queues and many GPUs take seconds of CPU time. The limits are about ten times the
 * time of an unoptimised build, so that only a worse order of growth exceeds them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "simulator/core/random.h"
#include "simulator/core/simulator.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "simulator/solve/linear.h"
#include "simulator/solve/time_fractions.h"

/* Jobs that come within `span_s` seconds, of durations over three orders of magnitude. */
static sc_workload make(size_t count, double span_s)
{
    sc_workload w = {0};
    uint64_t random = 7;
    double submit_s = 0;
    for (size_t i = 0; i < count; i++) {
        char *id = NULL;
        assert_true(asprintf(&id, "%zu", i) > 0);
        submit_s += 2 * span_s / (double)count * sc_random_unit(&random);
        sc_job job = {.id = id,
                      .submit_s = floor(submit_s),
                      .deadline_s = INFINITY,
                      .weight = 1,
                      .work = floor(60 * exp(7 * sc_random_unit(&random))),
                      .gpus = 1 << sc_random_next(&random) % 4,
                      .kind = SC_NONE};
        assert_int_equal(sc_workload_add(&w, job, NULL), MDOT_OK);
    }
    return w;
}

static void expect_fast(const char *name, const sc_workload *w, int nodes, int gpus, double most_s)
{
    mdot_error err = {0};
    sc_cluster c = {0};
    sc_result r = {0};
    const sc_policy *policy;
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_policy_find(name, &policy, &err), MDOT_OK);
    for (int i = 0; i < nodes; i++) {
        char node[16];
        snprintf(node, sizeof node, "n%d", i);
        assert_int_equal(sc_cluster_add_node(&c, node, "gpu", gpus, &err), MDOT_OK);
    }
    clock_t begun = clock();
    if (sc_simulate(w, &c, policy, &oracle, &(sc_run_options){0}, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    double took_s = (double)(clock() - begun) / CLOCKS_PER_SEC;
    print_message("%s: %zu jobs on %d GPUs in %.2f s\n", name, w->job_count, nodes * gpus, took_s);
    for (size_t i = 0; i < r.job_count; i++) assert_true(isfinite(r.states[i].end_s));
    if (took_s > most_s) fail_msg("%s took %.1f s, at most %.1f s were expected", name, took_s, most_s);
    sc_result_free(&r);
    sc_cluster_free(&c);
}

static void long_queues_are_nearly_linear(void **state)
{
    (void)state;
    static const char *const policies[] = {"fifo", "srsf", "hare", "easy", "smd"};
    sc_workload w = make(20000, 3600);
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) expect_fast(policies[i], &w, 8, 8, 8);
    sc_workload_free(&w);
}

static void many_gpus_cost_one_pass_per_event(void **state)
{
    (void)state;
    static const char *const policies[] = {"fifo", "srsf", "las"};
    sc_workload w = make(10000, 60000);
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) expect_fast(policies[i], &w, 500, 8, 20);
    sc_workload_free(&w);
}

/* 20,000 jobs of ten kinds are ten groups. */
static void equal_jobs_are_one_column_of_a_program(void **state)
{
    (void)state;
    if (!sc_linear_is_available()) skip();
    enum { JOBS = 20000, TYPES = 3 };
    double *speed = calloc(JOBS * TYPES, sizeof *speed), *ones = calloc(JOBS, sizeof *ones);
    double *fractions = calloc(JOBS * TYPES, sizeof *fractions), value, throughput_0 = 0;
    assert_true(speed != NULL && ones != NULL && fractions != NULL);
    for (size_t i = 0; i < JOBS; i++) {
        ones[i] = 1;
        for (size_t type = 0; type < TYPES; type++) speed[i * TYPES + type] = 1 + (double)(i % 10 * (type + 1));
    }
    sc_time_fractions p = {.jobs = JOBS,
                           .types = TYPES,
                           .speed = speed,
                           .scale = ones,
                           .weight = ones,
                           .remaining = ones,
                           .since_start_s = ones,
                           .gpus = (const double[]){500, 600, 700},
                           .limit_s = 10};
    clock_t begun = clock();
    assert_int_equal(sc_time_fractions_max_min(&p, fractions, &value, NULL), MDOT_OK);
    assert_true((double)(clock() - begun) / CLOCKS_PER_SEC < 5);
    throughput_0 = sc_time_fractions_throughput(&p, fractions, 0);
    for (size_t i = 0; i < JOBS; i += 10)
        assert_true(fabs(sc_time_fractions_throughput(&p, fractions, i) - throughput_0) < 1e-12);
    assert_true(value > 0);
    free(speed);
    free(ones);
    free(fractions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_queues_are_nearly_linear),
        cmocka_unit_test(many_gpus_cost_one_pass_per_event),
        cmocka_unit_test(equal_jobs_are_one_column_of_a_program),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
