/* test_host_memory.c — a step's waiting time for host memory: transfers hidden by passes, and updates on the host. */
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { OPERATORS = 4, PARAMETERS = 1000000, ALL = OPERATORS * PARAMETERS, LONG_MS = 1000000 };
#define PCIE_RATE (0.8 * 16e6) /* bytes per ms at 16 GB/s (the slot) */

static mdot_job *job;

static int set_up(void **state)
{
    (void)state;
    static const uint32_t before[OPERATORS - 1] = {0, 1, 2};
    mdot_job_operator operators[OPERATORS];
    for (uint32_t i = 0; i < OPERATORS; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i],
                                           .type = "Linear",
                                           .known = true,
                                           .block = i + 1,
                                           .parameters = PARAMETERS,
                                           .inputs = i > 0 ? &before[i - 1] : NULL,
                                           .input_count = i > 0};
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e6, 4e6, 4e6};
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
    }
    job = predict_make_job(operators, OPERATORS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mdot_job_destroy(job);
    return 0;
}

static double host_ms(mdot_configuration c, double pcie_gbps, double forward_ms, double backward_ms)
{
    rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = pcie_gbps}};
    rt_resolved_configuration resolved;
    mdot_error err = {0};
    configuration.c.batch = 8;
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolve(job, &configuration, &resolved);
    return rt_host_memory_ms(job, &resolved, forward_ms, backward_ms);
}

static void expect_near(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-9 * fabs(expected))) fail_msg("%.12g, not %.12g", value, expected);
}

static void nothing_waits_without_offloading(void **state)
{
    (void)state;
    assert_compare(host_ms((mdot_configuration){.optimizer = MDOT_OPTIMIZER_ADAM}, 16, 0, 0), ==, 0);
}

/* Gradients leave during the backward pass. The update and the way back of the weights are not hidden. */
static void the_backward_pass_hides_gradients(void **state)
{
    (void)state;
    const mdot_configuration c = {.optimizer = MDOT_OPTIMIZER_ADAM, .offload = MDOT_OFFLOAD_OPTIMIZER};
    double all = host_ms(c, 16, 0, 0), hidden = host_ms(c, 16, 0, LONG_MS), fast = host_ms(c, 32, 0, 0);
    double way = all - hidden; /* fp32 gradients one way; the weights that return are as large */
    {
        assert_compare(way, >, 0);
        assert_compare(hidden, >, way);
    }
    expect_near(host_ms(c, 16, 0, way / 2), all - way / 2);
    expect_near(host_ms(c, 16, LONG_MS, 0), all);
    expect_near(all - fast, way); /* half of both ways */
    expect_near(fast - host_ms(c, 32, 0, LONG_MS), way / 2);
}

/* The weights arrive for both passes of each micro-batch, and gradients leave once. */
static void weights_arrive_for_every_pass(void **state)
{
    (void)state;
    mdot_configuration c = {
        .optimizer = MDOT_OPTIMIZER_ADAM, .offload = MDOT_OFFLOAD_PARAMETERS, .zero_stage = 3, .gpu_count = 2};
    double once = host_ms(c, 16, 0, 0), hidden = host_ms(c, 16, LONG_MS, 0), update = host_ms(c, 16, LONG_MS, LONG_MS);
    double way = once - hidden;
    assert_compare(way, >, 0);
    assert_compare(update, >, 0);
    expect_near(hidden - update, 2 * way); /* the weights and gradients of this GPU's part, both in fp32 */
    c.accumulate = 4;
    expect_near(host_ms(c, 16, 0, 0) - once, 2 * 3 * way);
    expect_near(host_ms(c, 16, LONG_MS, LONG_MS), update);
    expect_near(host_ms(c, 32, 0, 0) - update, (host_ms(c, 16, 0, 0) - update) / 2);
}

/* A node's GPUs share the host, which moves 112e6 bytes per ms: 28 for each parameter with Adam, 20 with SGD. Four GPUs
 * on two nodes update a quarter each if ZeRO divides the state. Gradients leave in their type, and weights return in
 * the compute type. */
static void updates_on_the_host_take_its_memorys_time(void **state)
{
    (void)state;
    static const struct {
        mdot_configuration c;
        double parameters, gpus, update, gradients, weights; /* a GPU's parameters; bytes of each */
    } cases[] = {
        {{.optimizer = MDOT_OPTIMIZER_ADAM}, ALL, 1, 28, 4, 4},
        {{.optimizer = MDOT_OPTIMIZER_SGD}, ALL, 1, 20, 4, 4},
        {{.optimizer = MDOT_OPTIMIZER_ADAM, .gpu_count = 4, .node_count = 2, .zero_stage = 1}, ALL / 4, 2, 28, 4, 4},
        {{.optimizer = MDOT_OPTIMIZER_ADAM, .gpu_count = 4, .zero_stage = 2}, ALL / 4, 4, 28, 4, 4},
        {{.optimizer = MDOT_OPTIMIZER_ADAM,
          .gpu_count = 4,
          .zero_stage = 2,
          .precision = MDOT_PRECISION_MIXED_BF16,
          .gradient_type = MDOT_NUMBER_FP32},
         ALL / 4,
         4,
         28,
         4,
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = cases[i].c;
        c.offload = MDOT_OFFLOAD_OPTIMIZER;
        c.network_gbps = 10;
        double n = cases[i].parameters, update = n * cases[i].update / 112e6 * cases[i].gpus;
        double gradients = n * cases[i].gradients / PCIE_RATE, weights = n * cases[i].weights / PCIE_RATE;
        expect_near(host_ms(c, 16, 0, 0), gradients + update + weights);
        expect_near(host_ms(c, 16, 0, gradients / 4), 0.75 * gradients + update + weights);
        expect_near(host_ms(c, 16, LONG_MS, LONG_MS), update + weights);
    }
    /* At stage 3, both passes read the GPU's half of the fp32 weights, and the second one sends the gradients. */
    const mdot_configuration c = {.optimizer = MDOT_OPTIMIZER_ADAM,
                                  .offload = MDOT_OFFLOAD_PARAMETERS,
                                  .zero_stage = 3,
                                  .gpu_count = 2,
                                  .accumulate = 2,
                                  .precision = MDOT_PRECISION_MIXED_BF16};
    double n = ALL / 2.0, pass = 2 * 4 * n / PCIE_RATE, gradients = 4 * n / PCIE_RATE, update = 28 * n / 112e6 * 2;
    expect_near(host_ms(c, 16, 0, 0), 2 * pass + gradients + update);
    expect_near(host_ms(c, 16, pass / 2, pass), pass / 2 + gradients + update);
}

/* Activations leave in the forward pass, and return in the backward pass. */
static void activations_travel_twice(void **state)
{
    (void)state;
    mdot_configuration c = {.offload_activations = 1};
    double both = host_ms(c, 16, 0, 0);
    rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 16}};
    rt_resolved_configuration resolved;
    configuration.c.batch = 8;
    assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
    rt_resolve(job, &configuration, &resolved);
    assert_compare(both, >, 0);
    expect_near(both, 2 * 8 * rt_offloaded_bytes(job, &resolved) / PCIE_RATE);
    expect_near(host_ms(c, 16, LONG_MS, 0), both / 2);
    expect_near(host_ms(c, 16, 0, LONG_MS), both / 2);
    expect_near(host_ms(c, 16, both / 4, both / 4), both / 2);
    expect_near(host_ms(c, 32, 0, 0), both / 2);
    assert_compare(host_ms(c, 16, LONG_MS, LONG_MS), ==, 0);
    c.accumulate = 3;
    expect_near(host_ms(c, 16, 0, 0), 3 * both);
}

/* The pages of Adam's two moments leave as far as the GPU lacks space for them, and come back: all if it has none at
 * all, half if half of them fit, none if all do. */
static void pages_leave_that_do_not_fit(void **state)
{
    (void)state;
    static const double fitting[] = {0, .5, 1};
    for (int i = 0; i < 3; i++) {
        rt_configuration configuration = {
            .c = {.batch = 8, .optimizer = MDOT_OPTIMIZER_ADAM, .offload = MDOT_OFFLOAD_PAGES},
            .gpu = {.pcie_gbps = 16, .memory_gib = 1}};
        rt_resolved_configuration resolved;
        mdot_error err = {0};
        if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
        rt_resolve(job, &configuration, &resolved);
        rt_memory memory = rt_measure_memory(job, &resolved);
        rt_reserved reserved = rt_reserve_memory(job, &resolved, &memory);
        double taken = (double)rt_sum_reserved(&memory, &reserved), pages = 2.0 * 4 * OPERATORS * PARAMETERS;
        double of_gib = (double)rt_usable_memory(&resolved.configuration.gpu);
        resolved.configuration.gpu.memory_gib = 0;
        double all = rt_host_memory_ms(job, &resolved, 0, 0);
        expect_near(all, 2 * pages / PCIE_RATE); /* to the GPU and back */
        resolved.configuration.gpu.memory_gib = (taken + fitting[i] * pages) / of_gib;
        double got = rt_host_memory_ms(job, &resolved, 0, 0);
        assert_compare(all, >, 0);
        assert_compare(fabs(got - (1 - fitting[i]) * all), <=, 1e-6 * all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_waits_without_offloading),
        cmocka_unit_test(pages_leave_that_do_not_fit),
        cmocka_unit_test(the_backward_pass_hides_gradients),
        cmocka_unit_test(weights_arrive_for_every_pass),
        cmocka_unit_test(activations_travel_twice),
        cmocka_unit_test(updates_on_the_host_take_its_memorys_time),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
