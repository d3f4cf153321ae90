/* test_framework.c — the host time of a launch, and fusion, by framework and GPU model. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/framework.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FRAMEWORKS = MDOT_FRAMEWORK_MEGATRON + 1 };

static rt_configuration read(const char *gpu, mdot_framework framework, mdot_mode mode)
{
    const mdot_configuration c = {
        .struct_size = sizeof c, .batch = 1, .gpu = gpu, .framework = framework, .mode = mode};
    rt_gpu_names names = {0};
    rt_configuration configuration;
    mdot_error err = {0};
    if (rt_configuration_read(&c, 0, &names, &configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    return configuration;
}

static double launch_us(const char *gpu, mdot_framework framework)
{
    rt_configuration configuration = read(gpu, framework, MDOT_MODE_TRAIN);
    return rt_framework_launch_us(&configuration);
}

static void hosts_of_newer_gpus_launch_faster(void **state)
{
    (void)state;
    static const char *const by_year[] = {"V100", "A100", "H100", "B200"};
    for (int f = 0; f < FRAMEWORKS; f++)
        for (size_t i = 1; i < sizeof by_year / sizeof *by_year; i++)
            assert_compare(launch_us(by_year[i], (mdot_framework)f), <=, launch_us(by_year[i - 1], (mdot_framework)f));
    assert_compare(launch_us("H100", MDOT_FRAMEWORK_PYTORCH), <, launch_us("A100", MDOT_FRAMEWORK_PYTORCH));
    assert_compare(launch_us("MI300X", MDOT_FRAMEWORK_PYTORCH), ==, launch_us("A100", MDOT_FRAMEWORK_PYTORCH));
}

static void megatron_launches_slowest(void **state)
{
    (void)state;
    for (int f = 0; f < MDOT_FRAMEWORK_MEGATRON; f++)
        assert_compare(launch_us("A100", (mdot_framework)f), <, launch_us("A100", MDOT_FRAMEWORK_MEGATRON));
    assert_compare(launch_us("A100", MDOT_FRAMEWORK_PROGRAM), ==, launch_us("A100", MDOT_FRAMEWORK_PYTORCH));
}

/* FlashAttention 2 skips masked scores: from PyTorch 2.2 on, in half precision, on GPUs without asynchronous units. */
static void causal_attention_is_faster_on_ampere_and_ada(void **state)
{
    (void)state;
    static const char *const gpus[] = {"V100", "T4", "A100", "RTX-3090", "RTX-4090", "L4", "H100", "B200", "MI300X"};
    static const uint32_t versions[] = {0, 113, 200, 201, 202, 209};
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++)
        for (int precision = 0; precision <= MDOT_PRECISION_FP8_BLOCKWISE; precision++)
            for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
                for (int eager = 0; eager < 2; eager++) {
                    rt_configuration c = read(gpus[g], MDOT_FRAMEWORK_PYTORCH, MDOT_MODE_TRAIN);
                    c.c.precision = (mdot_precision)precision;
                    c.c.torch = versions[v];
                    c.c.attention = eager != 0 ? MDOT_ATTENTION_EAGER : MDOT_ATTENTION_FLASH;
                    bool is_faster = g >= 2 && g <= 5 && rt_is_half(c.c.precision) && eager == 0 &&
                                     (versions[v] == 0 || versions[v] >= 202);
                    for (int forward = 0; forward < 2; forward++) {
                        double whole = rt_framework_attention(&c, forward != 0, 1);
                        assert_true(is_faster == (whole < 1));
                        assert_within(rt_framework_attention(&c, forward != 0, 0), 1, 1e-12);
                        assert_within(rt_framework_attention(&c, forward != 0, .5), (1 + whole) / 2, 1e-12);
                    }
                }
}

static void evaluation_launches_faster(void **state)
{
    (void)state;
    rt_configuration inference = read("A100", MDOT_FRAMEWORK_PYTORCH, MDOT_MODE_INFERENCE);
    assert_float_equal(rt_framework_launch_us(&inference), 37.5, 1e-9);
}

/* Compiled code fuses the most, whatever launches it. */
static void frameworks_fuse_a_part_of_what_a_compiler_fuses(void **state)
{
    (void)state;
    for (int f = 0; f < FRAMEWORKS; f++) {
        mdot_configuration c = {.framework = (mdot_framework)f};
        double eager = rt_framework_fused(&c);
        c.compiled = 1;
        assert_compare(eager, >=, 0);
        assert_compare(eager, <=, 1);
        assert_compare(rt_framework_fused(&c), ==, 1);
    }
    assert_compare(rt_framework_fused(&(mdot_configuration){.framework = MDOT_FRAMEWORK_HF_TRAINER}), ==, 0);
    assert_compare(rt_framework_fused(&(mdot_configuration){.framework = MDOT_FRAMEWORK_LIGER}), >, 0);
}

/* The host has constant parts for a step, blocks with experts, virtual stages and rings. */
static void megatron_has_host_time_beyond_launches(void **state)
{
    (void)state;
    rt_configuration c = read("A100", MDOT_FRAMEWORK_MEGATRON, MDOT_MODE_TRAIN);
    double plain = rt_framework_pass_ms(&c, 0, 12);
    assert_compare(rt_framework_step_ms(&c), >, 0);
    assert_float_equal(plain, 0, 0);
    assert_float_equal(rt_framework_pass_ms(&c, 8, 12), 2 * rt_framework_pass_ms(&c, 4, 12), 1e-9);
    c.c.context_parallel = 2;
    assert_compare(rt_framework_pass_ms(&c, 0, 12), >, plain);
    c.c.context_parallel = 1;
    c.c.virtual_stages = 3;
    assert_compare(rt_framework_pass_ms(&c, 0, 12), >, plain);
    double step_ms = rt_framework_step_ms(&c);
    c.c.host_launch_us = 2 * rt_framework_launch_us(&c);
    assert_float_equal(rt_framework_step_ms(&c), 2 * step_ms, 1e-9);
    c.c.mode = MDOT_MODE_INFERENCE;
    assert_float_equal(rt_framework_step_ms(&c), 0, 0);
    c = read("A100", MDOT_FRAMEWORK_TRANSFORMER_ENGINE, MDOT_MODE_TRAIN);
    assert_float_equal(rt_framework_step_ms(&c) + rt_framework_pass_ms(&c, 4, 12), 0, 0);
}

/* Each cast is a launch, unless a compiler or an engine fuses it with the kernel before. */
static void casts_are_launched(void **state)
{
    (void)state;
    for (int f = 0; f < FRAMEWORKS; f++) {
        rt_configuration c = read("H100", (mdot_framework)f, MDOT_MODE_TRAIN);
        double launch_us = rt_framework_is_engine(&c.c) ? 0 : rt_framework_launch_us(&c);
        for (int casts = 0; casts < 3; casts++)
            assert_float_equal(1e3 * rt_framework_casts_ms(&c, casts), casts * launch_us, 1e-9);
        c.c.compiled = 1;
        assert_float_equal(rt_framework_casts_ms(&c, 7), 0, 0);
    }
}

/* Times of a loss behind a head of `classes`. */
static void loss_ms(int64_t classes, rt_configuration configuration, double out_ms[MDOT_PHASE_COUNT])
{
    network n = {0};
    network_add_matmul(&n, 64, classes, "");
    mdot_job_operator *loss = network_add(&n, "SoftmaxCrossEntropyLoss", 0, "0");
    loss->per_sample[MDOT_PHASE_FORWARD].bytes_read = 4 * (double)classes;
    loss->per_sample[MDOT_PHASE_FORWARD].bytes_written = 0;
    mdot_job *job = predict_make_job(n.operators, n.count);
    rt_resolved_configuration r;
    assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
    rt_resolve(job, &configuration, &r);
    rt_fused_operator_ms(job, 1, &r, out_ms);
    mdot_job_destroy(job);
}

/* Transformer Engine's frameworks compute a whole loss in 52 bytes for a logit at .8 of the bandwidth, in any precision
 * and at any batch and size. Other losses and compiled ones do not depend on the framework. */
static void megatrons_loss_has_a_kernel_for_each_term(void **state)
{
    (void)state;
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP, MDOT_PRECISION_MIXED_BF16};
    for (int kind = 0; kind < 3 * 3 * 2 * 3; kind++) {
        rt_configuration c = read("A100", MDOT_FRAMEWORK_MEGATRON, MDOT_MODE_TRAIN), other = c;
        c.c.precision = precisions[kind % 3];
        c.c.loss = (mdot_loss)(kind / 3 % 3);
        c.c.compiled = kind / 9 % 2;
        c.c.batch = 1 + kind;
        int64_t classes = 1000 * (1 + kind / 18 * 20);
        double ms[MDOT_PHASE_COUNT], others[MDOT_PHASE_COUNT];
        loss_ms(classes, c, ms);
        other = c;
        other.c.framework = MDOT_FRAMEWORK_LIGER;
        loss_ms(classes, other, others);
        double ms_per_logit = (double)c.c.batch * (double)classes / (0.8 * c.gpu.memory_gbps * RT_BYTES_PER_MS);
        bool is_whole = c.c.loss == MDOT_LOSS_WHOLE && c.c.compiled == 0;
        assert_within(ms[MDOT_PHASE_FORWARD], is_whole ? 38 * ms_per_logit : others[MDOT_PHASE_FORWARD], 1e-9);
        assert_within(ms[MDOT_PHASE_DATA_GRADIENT], is_whole ? 14 * ms_per_logit : others[MDOT_PHASE_DATA_GRADIENT],
                      1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(megatrons_loss_has_a_kernel_for_each_term),
        cmocka_unit_test(hosts_of_newer_gpus_launch_faster),
        cmocka_unit_test(megatron_launches_slowest),
        cmocka_unit_test(causal_attention_is_faster_on_ampere_and_ada),
        cmocka_unit_test(evaluation_launches_faster),
        cmocka_unit_test(frameworks_fuse_a_part_of_what_a_compiler_fuses),
        cmocka_unit_test(megatron_has_host_time_beyond_launches),
        cmocka_unit_test(casts_are_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
