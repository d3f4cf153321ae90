/* test_optimizer_update.c — the state, the temporary memory and the time of each optimizer's update, compared with
 * values made by hand. The GPU moves 1e6 bytes and computes 1e9 FLOPs in a ms. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A normalisation of 24 parameters, and a matrix of 8 x 16 in a block. Muon's five iterations take 4 * 8 * 8 * 16 and
 * 2 * 8 * 8 * 8 FLOPs each. */
enum { VECTOR = 24, MATRIX = 8 * 16, ALL = VECTOR + MATRIX, SIDES = 8 + 16, MUON_FLOPS = 5 * (4096 + 1024) };

static mdot_job *make_job(void)
{
    static const uint32_t before = 0;
    mdot_job_operator operators[2] = {{.type = "LayerNormalization", .parameters = VECTOR},
                                      {.type = "Linear", .parameters = MATRIX, .block = 1}};
    for (int i = 0; i < 2; i++) {
        operators[i].struct_size = sizeof *operators;
        operators[i].known = true;
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){100, 4, 4};
    }
    operators[0].setting[MDOT_SETTING_AXIS] = 1;
    operators[1].setting[MDOT_SETTING_CHANNELS_IN] = 8;
    operators[1].setting[MDOT_SETTING_CHANNELS_OUT] = 16;
    operators[1].inputs = &before;
    operators[1].input_count = 1;
    return predict_make_job(operators, 2);
}

static rt_resolved_configuration resolve(const mdot_job *job, mdot_configuration c)
{
    rt_configuration configuration = {.c = c};
    configuration.c.batch = 1;
    configuration.gpu.pcie_gbps = configuration.gpu.memory_gbps = 1;
    configuration.gpu.fp32_tflops = configuration.gpu.tf32_tflops = configuration.gpu.fp16_tflops = 1;
    mdot_error err = {0};
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

/* `bytes` is the update traffic, `launches` counts a loop over two tensors (0 without a loop). */
typedef struct update_case {
    mdot_configuration c;
    double state, temporary, bytes, flops;
    int launches;
} update_case;

static void check(const mdot_job *job, const update_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rt_resolved_configuration r = resolve(job, cases[i].c);
        rt_optimizer_memory m = rt_optimizer_memory_of(job, &r);
        double ms = rt_optimizer_ms(job, &r, &r.shard), want = cases[i].bytes / 1e6 + cases[i].flops / 1e9;
        if (fabs(m.state - cases[i].state) > 1e-9 || fabs(m.update - cases[i].temporary) > 1e-9)
            fail_msg("case %zu: %g bytes of state, %g temporary", i, m.state, m.update);
        if (fabs(ms - want) > 1e-12) fail_msg("case %zu: %g ms, not %g", i, ms, want);
        double launch = 0.005 * 2 * cases[i].launches;
        assert_float_equal(rt_launch_ms(job, &r, 0), launch, 1e-12);
        assert_float_equal(rt_launch_ms(job, &r, 0.004), launch > 0.004 ? launch - 0.004 : 0, 1e-12);
        assert_compare(rt_launch_ms(job, &r, 1), ==, 0);
    }
}

/* Eight-bit states have a byte and a scale in 256. They are read and written beside the gradient and the weights. */
static const double eight_bit = 1 + 4.0 / 256;

static void each_optimizer_has_its_state_and_traffic(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    const update_case cases[] = {
        {{.optimizer = MDOT_OPTIMIZER_SGD}, 4 * ALL, 0, 8 * 4 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_SGD_PLAIN}, 0, 0, 3 * 4 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_ADAM}, 8 * ALL, 4 * ALL, 18 * 4 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_ADAMW}, 8 * ALL, 4 * ALL, 20 * 4 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_ADAM8BIT}, 2 * eight_bit * ALL, 0, (3 * 4 + 4 * eight_bit) * ALL, 0, 1},
        {{.optimizer = MDOT_OPTIMIZER_ADAMW8BIT}, 2 * eight_bit * ALL, 0, (3 * 4 + 4 * eight_bit) * ALL, 0, 1},
        {{.optimizer = MDOT_OPTIMIZER_ADAFACTOR}, 4 * (VECTOR + SIDES), 2 * 4 * MATRIX, 5 * 4 * ALL, 0, 12},
        {{.optimizer = MDOT_OPTIMIZER_LION}, 4 * ALL, 4 * MATRIX, 5 * 4 * ALL, 0, 7},
        {{.optimizer = MDOT_OPTIMIZER_MUON}, 4 * (MATRIX + 2 * VECTOR), 3 * 2 * MATRIX, 7 * 4 * ALL, MUON_FLOPS, 30},
    };
    check(job, cases, sizeof cases / sizeof *cases);
    mdot_job_destroy(job);
}

/* A loop holds one tensor's temporaries, and a fused kernel none. It moves 5 tensors instead of 8 (SGD), 7 instead of
 * 18 (Adam) or 20 (AdamW). */
static void kernels_differ_in_temporaries_and_traffic(void **state)
{
    (void)state;
    mdot_job *job = make_job();
#define LOOP .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOR_LOOP
#define FUSED .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FUSED
#define FOREACH .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOREACH
    const update_case cases[] = {
        {{.optimizer = MDOT_OPTIMIZER_SGD, LOOP}, 4 * ALL, 0, 32 * ALL, 0, 3},
        {{.optimizer = MDOT_OPTIMIZER_SGD_PLAIN, LOOP}, 0, 0, 12 * ALL, 0, 1},
        {{.optimizer = MDOT_OPTIMIZER_ADAM, LOOP}, 8 * ALL, 4 * MATRIX, 72 * ALL, 0, 8},
        {{.optimizer = MDOT_OPTIMIZER_ADAMW, LOOP}, 8 * ALL, 4 * MATRIX, 80 * ALL, 0, 9},
        {{.optimizer = MDOT_OPTIMIZER_ADAM, FOREACH}, 8 * ALL, 4 * ALL, 72 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_SGD, FUSED}, 4 * ALL, 0, 20 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_SGD_PLAIN, FUSED}, 0, 0, 12 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_ADAM, FUSED}, 8 * ALL, 0, 28 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_ADAMW, FUSED}, 8 * ALL, 0, 28 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_ADAM, .offload = MDOT_OFFLOAD_PAGES}, 8 * ALL, 0, 28 * ALL, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_ADAM, .step_in_backward = 1}, 8 * ALL, 4 * MATRIX, 72 * ALL, 0, 8},
        {{.optimizer = MDOT_OPTIMIZER_ADAM, .offload = MDOT_OFFLOAD_OPTIMIZER}, 8 * ALL, 4 * ALL, 0, 0, 0},
    };
    check(job, cases, sizeof cases / sizeof *cases);
    mdot_job_destroy(job);
}

/* A gradient scaler reads and writes the gradients, and a fused kernel writes them once more. For other kernels, the
 * host reads whether a gradient is infinite. */
static void a_scaler_unscales_the_gradients(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    static const mdot_configuration cases[] = {
        {FOREACH}, {FUSED}, {LOOP}, {FUSED, .precision = MDOT_PRECISION_MIXED_FP16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = cases[i];
        c.optimizer = MDOT_OPTIMIZER_ADAM;
        rt_resolved_configuration without = resolve(job, c);
        c.grad_scaler = 1;
        rt_resolved_configuration with = resolve(job, c);
        bool is_fused = c.optimizer_kernels == MDOT_OPTIMIZER_KERNELS_FUSED;
        double tensor = with.widths.gradients * ALL / 1e6;
        double more = rt_optimizer_ms(job, &with, &with.shard) - rt_optimizer_ms(job, &without, &without.shard);
        double waited = rt_launch_ms(job, &with, 1) - rt_launch_ms(job, &without, 1);
        if (fabs(more - (is_fused ? 3 : 2) * tensor) > 1e-12) fail_msg("case %zu: %g ms more", i, more);
        if (fabs(waited - (is_fused ? 0 : .02)) > 1e-12) fail_msg("case %zu: %g ms", i, waited);
        assert_compare(rt_optimizer_memory_of(job, &with).update, ==, rt_optimizer_memory_of(job, &without).update);
    }
    mdot_job_destroy(job);
}

/* Mixed precision has fp32 weights, converts gradients by way of a flat copy of 2 + 4 bytes, and writes half-precision
 * weights. The kernels are fused below ZeRO stage 3. Four workers divide everything. */
static void precisions_and_workers_change_the_update(void **state)
{
    (void)state;
    mdot_job *job = make_job();
#define ADAM .optimizer = MDOT_OPTIMIZER_ADAM
#define MIXED .precision = MDOT_PRECISION_MIXED_BF16
    const update_case cases[] = {
        {{ADAM, .precision = MDOT_PRECISION_BF16}, 4 * ALL, 2 * ALL, 36 * ALL, 0, 0},
        {{ADAM, .precision = MDOT_PRECISION_AMP_BF16}, 8 * ALL, 4 * ALL, 72 * ALL, 0, 0},
        {{ADAM, MIXED}, 12 * ALL, 6 * ALL, (28 + 2) * ALL, 0, 0},
        {{ADAM, MIXED, FOREACH}, 12 * ALL, 10 * ALL, 74 * ALL, 0, 0},
        {{ADAM, MIXED, .gradient_type = MDOT_NUMBER_FP32}, 12 * ALL, 0, (28 + 2) * ALL, 0, 0},
        {{ADAM, .ema = 1}, 8 * ALL, 4 * ALL, (72 + 12) * ALL, 0, 0},
        {{ADAM, .gpu_count = 4}, 8 * ALL, 4 * ALL, 72 * ALL, 0, 0},
        {{ADAM, .gpu_count = 4, .zero_stage = 1}, 2 * ALL, ALL, 18 * ALL, 0, 0},
        {{ADAM, .gpu_count = 4, .zero_stage = 3, MIXED}, 2 * ALL, ALL, 18 * ALL, 0, 0},
        {{ADAM, .gpu_count = 4, .zero_stage = 2, MIXED}, 3 * ALL, 1.5 * ALL, (28 + 2) * ALL / 4, 0, 0},
    };
    check(job, cases, sizeof cases / sizeof *cases);
    rt_resolved_configuration inference = resolve(job, (mdot_configuration){ADAM, LOOP, .mode = MDOT_MODE_INFERENCE});
    assert_compare(rt_optimizer_ms(job, &inference, &inference.shard), ==, 0);
    assert_compare(rt_launch_ms(job, &inference, 0), ==, 0);
    mdot_job_destroy(job);
}

/* Two GPUs divide the matrix, and each updates the whole normalisation. */
static void tensor_parallelism_divides_matrices(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    assert_int_equal(job->analysis->sharding.role[1], RT_ROLE_COLUMNS);
    const update_case cases[] = {
        {{.optimizer = MDOT_OPTIMIZER_ADAM, LOOP}, 8 * (VECTOR + MATRIX / 2), 4 * MATRIX / 2, 0, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_MUON}, 4 * (MATRIX / 2 + 2 * VECTOR), 3 * 2 * MATRIX / 2, 0, 0, 0},
        {{.optimizer = MDOT_OPTIMIZER_ADAFACTOR}, 4 * (VECTOR + SIDES / 2), 2 * 4 * MATRIX / 2, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_resolved_configuration r = resolve(job, cases[i].c);
        r.shard.tensor = 2;
        rt_optimizer_memory m = rt_optimizer_memory_of(job, &r);
        assert_compare(m.state, ==, cases[i].state);
        assert_compare(m.moments, ==, cases[i].state);
        assert_compare(m.update, ==, cases[i].temporary);
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_optimizer_has_its_state_and_traffic),
        cmocka_unit_test(kernels_differ_in_temporaries_and_traffic),
        cmocka_unit_test(a_scaler_unscales_the_gradients),
        cmocka_unit_test(precisions_and_workers_change_the_update),
        cmocka_unit_test(tensor_parallelism_divides_matrices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
