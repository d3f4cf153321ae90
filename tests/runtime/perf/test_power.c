/* test_power.c — average power and step energy, and the time cost of a power limit. */
#include "runtime/perf/step_time.h"
#include "runtime/predict/analytic_correction.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static rt_configuration limited(const char *gpu, double watts)
{
    rt_configuration c = {.c = {.power_limit = watts}, .gpu = {.struct_size = sizeof c.gpu}};
    assert_int_equal(mdot_gpu_find(gpu, &c.gpu, NULL), MDOT_OK);
    return c;
}

/* A step of 100 ms whose utilisation is `used` percent. */
static double slowdown(const char *gpu, double watts, double used)
{
    rt_configuration c = limited(gpu, watts);
    return rt_power_slowdown(&c, &(rt_roofline_terms){.compute_ms = used}, 100);
}

static double average(const char *gpu, double watts, double used)
{
    rt_configuration c = limited(gpu, watts);
    return rt_average_watts(&c, &(rt_roofline_terms){.compute_ms = used}, 100);
}

static void lower_limits_take_more_time_and_less_power(void **state)
{
    (void)state;
    for (double used = 5; used <= 100; used += 5) {
        for (double watts = 75; watts < 250; watts += 5) {
            assert_compare(slowdown("V100-PCIe-32GB", watts, used), >=, slowdown("V100-PCIe-32GB", watts + 5, used));
            assert_compare(average("V100-PCIe-32GB", watts, used), <=, average("V100-PCIe-32GB", watts + 5, used));
            assert_compare(slowdown("V100-PCIe-32GB", watts, used), >=, 1);
            assert_compare(average("V100-PCIe-32GB", watts, used), <, watts);
        }
    }
}

static void waiting_gpus_take_less_power_and_are_slowed_less(void **state)
{
    (void)state;
    assert_compare(average("A100", 0, 5), <, average("A100", 0, 20));
    assert_compare(average("A100", 0, 20), <, average("A100", 0, 90));
    assert_compare(average("A100", 0, 0.01), <, 0.2 * 400);
    assert_compare(slowdown("A100", 200, 5), <, 1.001);
    assert_compare(slowdown("A100", 200, 90), >, 1.1);
}

/* ResNet-50, batch 128, fp32, measured by Zeus: its utilisation, and the measured slowdown and power. */
static void zeus_measurements_are_met_within_a_tenth(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        double used, limit, slowdown, watts;
    } measured[] = {
        {"V100-PCIe-32GB", 99, 225, 368.12 / 360.03, 205.62}, {"V100-PCIe-32GB", 99, 175, 394.22 / 360.03, 165.31},
        {"V100-PCIe-32GB", 99, 125, 515.43 / 360.03, 122.72}, {"V100-PCIe-32GB", 99, 100, 681.82 / 360.03, 99.5},
        {"P100-PCIe-16GB", 80, 200, 631.58 / 627.23, 154.97}, {"P100-PCIe-16GB", 80, 125, 716.59 / 627.23, 112.64},
        {"RTX-6000", 75, 200, 530 / 501.26, 184.73},          {"RTX-6000", 75, 125, 712.66 / 501.26, 122.08},
        {"RTX-6000", 75, 100, 1161.1 / 501.26, 98.9},
    };
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        double slower = slowdown(measured[i].gpu, measured[i].limit, measured[i].used),
               watts = average(measured[i].gpu, measured[i].limit, measured[i].used);
        assert_float_equal(slower, measured[i].slowdown, 0.1 * measured[i].slowdown);
        assert_float_equal(watts, measured[i].watts, 0.1 * measured[i].watts);
    }
}

static void unknown_boards_have_no_power(void **state)
{
    (void)state;
    rt_configuration c = limited("V100", 100);
    c.gpu.watts = 0;
    assert_compare(rt_average_watts(&c, &(rt_roofline_terms){.compute_ms = 50}, 100), ==, 0);
    assert_compare(rt_power_slowdown(&c, &(rt_roofline_terms){.compute_ms = 50}, 100), ==, 1);
}

static void absent_limits_cost_no_time(void **state)
{
    (void)state;
    assert_compare(slowdown("V100", 0, 90), ==, 1);
}

/* The demand of a 200 W board without limit. GPUs older than Volta have a lower one. */
static double demand(double capability, double used)
{
    return 200 * (0.14 + (capability < 7 ? 0.54 : 0.83) * (1 - exp(-used / 0.3)));
}

/* At a clock fraction f, the power is .1 + .6 f + .3 f^13 of the demand on boards with HBM, and .23 + .42 f + .35 f^10
 * on others. A limit at that power slows down the part of the step in which the GPU is busy (all of it from a
 * utilisation of .7 on). */
static void clocks_fall_until_the_power_fits(void **state)
{
    (void)state;
    static const double capabilities[] = {6.1, 7, 8}, clocks[] = {0.3, 0.5, 0.9, 0.99}, used[] = {0.2, 0.69, 0.7, 0.95};
    for (int i = 0; i < 3 * 4 * 4; i++) {
        double capability = capabilities[i % 3], f = clocks[i / 3 % 4], u = used[i / 12];
        double with_hbm = 0.1 + 0.6 * f + 0.3 * pow(f, 13), with_gddr = 0.23 + 0.42 * f + 0.35 * pow(f, 10);
        double wanted = demand(capability, u), limit = wanted * (capability == 6.1 ? with_gddr : with_hbm);
        const rt_configuration c = {.c = {.power_limit = limit},
                                    .gpu = {.watts = 200, .compute_capability = capability}};
        const rt_roofline_terms terms = {.compute_ms = 3 * u, .memory_ms = 7 * u};
        double busy = u < 0.7 ? u / 0.7 : 1;
        assert_float_equal(rt_power_slowdown(&c, &terms, 10), 1 + busy * (1 / f - 1), 1e-9);
        double average = pow(pow(wanted, -8) + pow(limit, -8), -1 / 8.0);
        assert_float_equal(rt_average_watts(&c, &terms, 10), average, 1e-9 * average);
    }
}

/* A lower limit never makes a step shorter, and no limit stops the clock. */
static void slowdowns_grow_to_the_lowest_clock(void **state)
{
    (void)state;
    static const double capabilities[] = {6.1, 7, 8, 8.6, 8.9, 9, 10, 12};
    for (int i = 0; i < 8 * 10; i++) {
        double u = 0.1 * (i / 8 + 1), last = 1;
        const rt_roofline_terms terms = {.compute_ms = 5 * u, .memory_ms = 5 * u};
        for (double limit = 450; limit > 0; limit -= 10) {
            const rt_configuration c = {.c = {.power_limit = limit},
                                        .gpu = {.watts = 450, .compute_capability = capabilities[i % 8]}};
            double slowdown = rt_power_slowdown(&c, &terms, 10);
            assert_compare(slowdown, >=, last);
            assert_compare(slowdown, <=, 9);
            last = slowdown;
        }
    }
}

/* Without a limit, the board's limit counts. */
static void boards_limit_their_power(void **state)
{
    (void)state;
    rt_configuration c = {.gpu = {.watts = 200, .compute_capability = 8}};
    const rt_roofline_terms terms = {.compute_ms = 9};
    double average = pow(pow(demand(8, 0.9), -8) + pow(200, -8), -1 / 8.0);
    assert_float_equal(rt_average_watts(&c, &terms, 10), average, 1e-9 * average);
    c.c.power_limit = 0.5; /* limits below a watt are limits, too */
    assert_float_equal(rt_average_watts(&c, &terms, 10), 0.5, 1e-9);
    assert_float_equal(rt_power_slowdown(&c, &terms, 10), 1 / 0.12, 1e-9); /* the lowest clock */
    c.c.power_limit = 1;
    assert_float_equal(rt_power_slowdown(&c, &terms, 10), 1 / 0.12, 1e-9);
    c.gpu.watts = 1;
    c.c.power_limit = 0;
    assert_float_equal(rt_average_watts(&c, &terms, 10), average / 200, 1e-9);
    c.c.power_limit = 0.5;
    assert_compare(rt_power_slowdown(&c, &terms, 10), >, 1);
    c = (rt_configuration){0};
    assert_compare(rt_average_watts(&c, &terms, 10), ==, 0);
    assert_compare(rt_power_slowdown(&c, &terms, 10), ==, 1);
}

/* The linear time of a predictor whose kernels take `rooflines` times the roofline at the learned rate. */
static double linear_ms(const mdot_job *job, int64_t batch, double faster, double rooflines)
{
    rt_gpu_names names = {0};
    rt_configuration c;
    rt_resolved_configuration resolved;
    mdot_error err = {0};
    mdot_configuration asked = {
        .struct_size = sizeof asked, .batch = batch, .gpu = "B200", .precision = MDOT_PRECISION_BF16};
    if (rt_configuration_read(&asked, 0, &names, &c, &err) != MDOT_OK) fail_msg("%s", err.message);
    c.gpu.fp16_tflops *= faster;
    rt_resolve(job, &c, &resolved);
    double rate, factor = rt_throttled_matmuls(&c, &rate);
    rt_resolved_configuration learned = resolved;
    learned.rates.ms_per_flop[RT_RATE_LINEAR] /= rate * factor;
    rt_step_parts parts = {.is_learned = true};
    parts.pass_ms[RT_PASS_FORWARD][RT_WORK_LINEAR] =
        rooflines * rt_roofline_of(job, &learned).pass_ms[RT_PASS_FORWARD][RT_WORK_LINEAR];
    return rt_correct(&resolved, &resolved, job, &parts, &(rt_typical_rooflines){0})
        .parts.pass_ms[RT_PASS_FORWARD][RT_WORK_LINEAR];
}

static void higher_rates_never_lengthen_matmuls(void **state)
{
    int shorter = 0;
    for (double bytes = 1e4; bytes < 1e9; bytes *= 2) {
        mdot_job_operator op = {.struct_size = sizeof op, .known = true, .type = "Linear", .parameters = 1e6};
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) op.per_sample[phase] = (mdot_load){1e10, bytes, bytes};
        op.setting[MDOT_SETTING_CHANNELS_IN] = op.setting[MDOT_SETTING_CHANNELS_OUT] = 64;
        mdot_job *job = predict_make_job(&op, 1);
        for (double rooflines = 1.4; rooflines < 3; rooflines += 0.1)
            for (double faster = 0.3, last = INFINITY; faster < 4; faster *= 1.05) {
                double ms = linear_ms(job, 8, faster, rooflines);
                if (ms > last * (1 + 1e-9))
                    fail_msg("%g bytes, %g rooflines, %g times the rate: %g after %g ms", bytes, rooflines, faster, ms,
                             last);
                shorter += ms < last * (1 - 1e-3);
                last = ms;
            }
        mdot_job_destroy(job);
    }
    assert_compare(shorter, >, 100);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lower_limits_take_more_time_and_less_power),
        cmocka_unit_test(waiting_gpus_take_less_power_and_are_slowed_less),
        cmocka_unit_test(zeus_measurements_are_met_within_a_tenth),
        cmocka_unit_test(unknown_boards_have_no_power),
        cmocka_unit_test(absent_limits_cost_no_time),
        cmocka_unit_test(clocks_fall_until_the_power_fits),
        cmocka_unit_test(slowdowns_grow_to_the_lowest_clock),
        cmocka_unit_test(boards_limit_their_power),
        cmocka_unit_test(higher_rates_never_lengthen_matmuls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
