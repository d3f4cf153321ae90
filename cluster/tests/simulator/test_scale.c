/* test_scale.c — the work of simulations grows nearly linearly with long queues and many GPUs. It is counted in basic
 * blocks, as in tests/growth, so that the counts are the same on every machine under any load. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "simulator/core/simulator.h"
#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "simulator/solve/linear.h"
#include "simulator/solve/time_fractions.h"

/* n log n, and a little for tables whose size is a power of two; quadratic work would grow 16 times. */
static const double most = 6;

/* Jobs within `span_s` seconds, with durations over three orders of magnitude. */
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

static uint64_t blocks;
static size_t columns;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) { blocks++; }

size_t __real_sc_linear_add_column(sc_linear *linear, double cost, double lower, double upper);
size_t __wrap_sc_linear_add_column(sc_linear *linear, double cost, double lower, double upper);
size_t __wrap_sc_linear_add_column(sc_linear *linear, double cost, double lower, double upper)
{
    columns++;
    return __real_sc_linear_add_column(linear, cost, lower, upper);
}

static double simulate(const char *name, const sc_workload *w, int nodes, int gpus)
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
    blocks = 0;
    if (sc_simulate(w, &c, policy, &oracle, &(sc_run_options){0}, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < r.job_count; i++) assert_true(isfinite(r.states[i].end_s));
    sc_result_free(&r);
    sc_cluster_free(&c);
    return (double)blocks;
}

enum { SMALL = 1000, TIMES = 4 };

/* All jobs come within an hour, so the queue grows with the job count. */
static void long_queues_are_nearly_linear(void **state)
{
    (void)state;
    static const char *const policies[] = {"fifo", "srsf", "hare", "easy", "smd"};
    sc_workload few = make(SMALL, 3600), many = make(TIMES * SMALL, 3600);
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        double growth = simulate(policies[i], &many, 8, 8) / simulate(policies[i], &few, 8, 8);
        print_message("%s: %.1f times the work for %d times the jobs\n", policies[i], growth, TIMES);
        assert_true(growth < most);
    }
    sc_workload_free(&few);
    sc_workload_free(&many);
}

/* As many jobs on more GPUs, with faster arrivals for the same load. */
static void many_gpus_cost_one_pass_per_event(void **state)
{
    (void)state;
    static const char *const policies[] = {"fifo", "srsf", "las"};
    sc_workload slow = make(SMALL, 60000), fast = make(SMALL, 60000. / TIMES);
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        double growth = simulate(policies[i], &fast, TIMES * 250, 8) / simulate(policies[i], &slow, 250, 8);
        print_message("%s: %.1f times the work for %d times the GPUs\n", policies[i], growth, TIMES);
        assert_true(growth < most);
    }
    sc_workload_free(&slow);
    sc_workload_free(&fast);
}

/* 20,000 jobs of ten kinds are ten groups. */
static void equal_jobs_are_one_column_of_a_program(void **state)
{
    (void)state;
    if (!sc_linear_is_available()) skip();
    enum { JOBS = 20000, TYPES = 3 };
    double *speed = calloc(JOBS * TYPES, sizeof *speed), *ones = calloc(JOBS, sizeof *ones);
    double *fractions = calloc(JOBS * TYPES, sizeof *fractions), value, throughput_0 = 0;
    assert_non_null(speed);
    assert_non_null(ones);
    assert_non_null(fractions);
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
    columns = 0;
    assert_int_equal(sc_time_fractions_max_min(&p, fractions, &value, NULL), MDOT_OK);
    assert_in_range(columns, 1, 10 * TYPES + 1); /* and the least throughput */
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
