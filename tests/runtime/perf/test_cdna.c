/* test_cdna.c — convolutions on AMD's GPUs are slower than their rooflines, and grouped ones the most. */
#include "runtime/perf/cdna.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static double times_of(const char *name, rt_grouping grouping, mdot_phase phase)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find(name, &gpu, NULL), MDOT_OK);
    return rt_cdna_convolution(&gpu, grouping, phase);
}

static void every_convolution_takes_longer_than_its_roofline(void **state)
{
    (void)state;
    static const char *const gpus[] = {"MI250", "MI300X"};
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            for (int grouping = 0; grouping < RT_GROUPING_COUNT; grouping++) {
                double times = times_of(gpus[i], (rt_grouping)grouping, (mdot_phase)phase);
                assert_compare(times, >, 2);
                assert_compare(times, >=, times_of(gpus[i], RT_GROUPING_DENSE, (mdot_phase)phase));
            }
    assert_compare(times_of("MI300X", RT_GROUPING_DEPTHWISE, MDOT_PHASE_WEIGHT_GRADIENT), >,
                   10 * times_of("MI250", RT_GROUPING_DEPTHWISE, MDOT_PHASE_WEIGHT_GRADIENT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_convolution_takes_longer_than_its_roofline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
