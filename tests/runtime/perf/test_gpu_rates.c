/* test_gpu_rates.c — the rates of a GPU in each precision. */
#include "runtime/perf/resolved_configuration.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A GPU of 10 TFLOPS in fp32, 20 in TF32, 40 in fp16 and 80 in FP8. Before Ampere, bf16 and TF32 are fp32. */
static void each_precision_has_its_rates(void **state)
{
    (void)state;
    static const struct {
        mdot_precision precision;
        double matmul[2], linear[2], convolution[2]; /* TFLOPS before Ampere and from it on */
        double half, fp32;                           /* bytes relative to fp32 */
    } cases[] = {
        {MDOT_PRECISION_FP32, {10, 10}, {10, 10}, {10, 10}, 1, 1},
        {MDOT_PRECISION_TF32, {10, 20}, {10, 20}, {10, 20}, 1, 1},
        {MDOT_PRECISION_PYTORCH, {10, 10}, {10, 10}, {10, 20}, 1, 1},
        {MDOT_PRECISION_AMP, {40, 40}, {40, 40}, {40, 40}, 0.5, 2},
        {MDOT_PRECISION_MIXED_FP16, {40, 40}, {40, 40}, {40, 40}, 0.5, 0.5},
        {MDOT_PRECISION_AMP_BF16, {10, 40}, {10, 40}, {10, 40}, 0.5, 2},
        {MDOT_PRECISION_BF16, {10, 40}, {10, 40}, {10, 40}, 0.5, 0.5},
        {MDOT_PRECISION_MIXED_BF16, {10, 40}, {10, 40}, {10, 40}, 0.5, 0.5},
        {MDOT_PRECISION_FP8, {10, 40}, {80, 80}, {10, 40}, 0.5, 0.5},
        {MDOT_PRECISION_FP8_ROWWISE, {10, 40}, {80, 80}, {10, 40}, 0.5, 0.5},
        {MDOT_PRECISION_MXFP8, {10, 40}, {80, 80}, {10, 40}, 0.5, 0.5},
        {MDOT_PRECISION_FP8_BLOCKWISE, {10, 40}, {50, 50}, {10, 40}, 0.5, 0.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int has_tf32 = 0; has_tf32 < 2; has_tf32++) {
            rt_configuration configuration = {.c = {.precision = cases[i].precision}};
            configuration.gpu.compute_capability = has_tf32 ? 8.0 : 7.5;
            configuration.gpu.fp32_tflops = 10;
            configuration.gpu.tf32_tflops = 20;
            configuration.gpu.fp16_tflops = 40;
            configuration.gpu.fp8_tflops = 80;
            configuration.gpu.memory_gbps = 500;
            rt_rates r = rt_rates_of(&configuration);
            assert_compare(r.ms_per_flop[RT_RATE_VECTOR], ==, 1 / 10e9);
            assert_compare(r.ms_per_byte, ==, 1 / 500e6);
            assert_compare(r.ms_per_flop[RT_RATE_MATMUL], ==, 1 / (cases[i].matmul[has_tf32] * 1e9));
            assert_compare(r.ms_per_flop[RT_RATE_LINEAR], ==, 1 / (cases[i].linear[has_tf32] * 1e9));
            assert_compare(r.ms_per_flop[RT_RATE_CONVOLUTION], ==, 1 / (cases[i].convolution[has_tf32] * 1e9));
            assert_compare(r.half_byte_ratio, ==, cases[i].half);
            assert_compare(r.fp32_byte_ratio, ==, cases[i].fp32);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_precision_has_its_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
