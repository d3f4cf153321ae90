/* test_bench_peak.c — the peak loops with which `mdot bench` compares kernels. Every CPU level has one, and the tile
 * loop restores the processor state. The test is independent of speed. */
#include "cli/bench/bench.h"
#include "mdot/mdot_abi.h"
#include "runtime/core/cpu.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_level_of_this_machine_has_a_peak(void **state)
{
    (void)state;
    static const struct {
        uint32_t level;
        const char *name;
    } levels[] = {
#define LEVEL(name, value, text) {value, text},
        MDOT_CPU_ISA_MAP(LEVEL)
#undef LEVEL
    };
    rt_cpu cpu;
    rt_cpu_read(&cpu);
    rt_cpu_ask_for_tiles(&cpu);
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (rt_cpu_missing(&cpu, levels[i].level) != NULL)
            print_message("%s is not tested: this machine lacks it\n", levels[i].name);
        else
            assert_compare(bench_peak_gflops(levels[i].name, 0), >, 0);
    }
    assert_compare(bench_peak_gflops("x86-64-v9", 0), ==, 0);
}

static void the_amx_loop_multiplies_and_releases_tiles(void **state)
{
    (void)state;
    if (amx_is_native()) {
        print_message("the processor's own tiles\n");
    } else {
        print_message("the emulator's tiles\n");
        amx_emulator_install();
        amx_emulator_take_multiplications();
    }
    assert_compare(bench_peak_gflops("x86-64-amx", 0), >, 0);
    if (amx_is_native()) return;
    long multiplications = amx_emulator_take_multiplications();
    assert_compare(multiplications, >, 0);
    assert_int_equal(multiplications % 6, 0); /* the loop has 6 accumulators */
    assert_false(amx_emulator_is_configured());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_of_this_machine_has_a_peak),
        cmocka_unit_test(the_amx_loop_multiplies_and_releases_tiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
