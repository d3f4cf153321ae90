/* test_power.c — average power and energy of a step, and the time that a power limit costs. */
#include "runtime/perf/power.h"

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
            assert_true(slowdown("V100-PCIe-32GB", watts, used) >= slowdown("V100-PCIe-32GB", watts + 5, used));
            assert_true(average("V100-PCIe-32GB", watts, used) <= average("V100-PCIe-32GB", watts + 5, used));
            assert_true(slowdown("V100-PCIe-32GB", watts, used) >= 1);
            assert_true(average("V100-PCIe-32GB", watts, used) < watts);
        }
    }
}

static void waiting_gpus_take_less_power_and_are_slowed_less(void **state)
{
    (void)state;
    assert_true(average("A100", 0, 5) < average("A100", 0, 20) && average("A100", 0, 20) < average("A100", 0, 90));
    assert_true(average("A100", 0, 0.01) < 0.2 * 400);
    assert_true(slowdown("A100", 200, 5) < 1.001 && slowdown("A100", 200, 90) > 1.1);
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
    assert_true(rt_average_watts(&c, &(rt_roofline_terms){.compute_ms = 50}, 100) == 0);
    assert_true(rt_power_slowdown(&c, &(rt_roofline_terms){.compute_ms = 50}, 100) == 1);
}

static void absent_limits_cost_no_time(void **state)
{
    (void)state;
    assert_true(slowdown("V100", 0, 90) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lower_limits_take_more_time_and_less_power),
        cmocka_unit_test(waiting_gpus_take_less_power_and_are_slowed_less),
        cmocka_unit_test(zeus_measurements_are_met_within_a_tenth),
        cmocka_unit_test(unknown_boards_have_no_power),
        cmocka_unit_test(absent_limits_cost_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
