/* test_update_time.c — the optimizer's update in a step: more work never shortens it, and tables with sparse gradients
 * cost the rows that the step looks up. A slower host never shortens a step. Muon's matmuls have their own rate. */
#include "runtime/job/job_model.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/analytic_correction.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MATMULS = 40, COUNT = MATMULS + 1, TABLE = 1000000, PICKED = 64 };

/* A table, sparse or frozen, before matmuls. */
static mdot_job *make_job(bool is_sparse)
{
    mdot_job_operator operators[COUNT];
    uint32_t inputs[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        mdot_job_operator *op = &operators[i];
        *op = (mdot_job_operator){.struct_size = sizeof *op, .known = true, .type = i == 0 ? "Gather" : "Linear"};
        for (int phase = 0; phase < MDOT_PHASE_COUNT && i > 0; phase++)
            op->per_sample[phase] = (mdot_load){1e8, 1e5, 1e5};
        op->parameters = i == 0 ? is_sparse * TABLE : 1e5;
        op->frozen_parameters = i == 0 ? !is_sparse * TABLE : 0;
        if (i == 0) op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, 4 * PICKED, 4 * PICKED};
        if (i == 0 && is_sparse)
            op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){2 * PICKED, 4 * PICKED, 4 * PICKED};
        op->setting[MDOT_SETTING_INPUTS] = i > 0;
        if (i > 0) op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = 300;
        op->block = i;
        inputs[i] = i - 1;
        op->inputs = &inputs[i];
        op->input_count = i > 0;
    }
    return predict_make_job(operators, COUNT);
}

static rt_correction correct_update(const mdot_job *job, mdot_configuration c, double host_ms, double update_ms)
{
    const rt_step_parts parts = {.pass_ms = {{[RT_WORK_LINEAR] = 1}, {[RT_WORK_LINEAR] = 2}},
                                 .host_ms = host_ms,
                                 .optimizer_ms = update_ms,
                                 .is_learned = true};
    rt_gpu_names names = {0};
    rt_configuration requested, queried;
    rt_resolved_configuration resolved, resolved_queried;
    mdot_error err = {0};
    c.struct_size = sizeof c;
    c.gpu = "A100";
    if (rt_configuration_read(&c, 0, &names, &requested, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolve(job, &requested, &resolved);
    rt_project_configuration(&resolved.configuration, job, 0, &queried);
    rt_resolve(job, &queried, &resolved_queried);
    return rt_correct(&resolved, &resolved_queried, job, &parts, &(rt_typical_rooflines){0});
}

static rt_correction correct(const mdot_job *job, mdot_configuration c, double host_ms)
{
    return correct_update(job, c, host_ms, 0.1);
}

static void more_work_in_the_update_never_shortens_a_step(void **state)
{
    mdot_job *job = make_job(false);
    for (int optimizer = 0; optimizer <= MDOT_OPTIMIZER_ADAMW_FUSED; optimizer++)
        for (int kernels = 0; kernels <= MDOT_OPTIMIZER_KERNELS_FOR_LOOP; kernels++)
            for (double host = 0.01; host < 1000; host *= 3)
                for (uint32_t passes = 1; passes <= 8; passes *= 2) {
                    bool has_kernels = optimizer <= MDOT_OPTIMIZER_ADAMW || optimizer == MDOT_OPTIMIZER_SGD_PLAIN;
                    if (kernels != MDOT_OPTIMIZER_KERNELS_DEFAULT && !has_kernels) continue;
                    mdot_configuration c = {.batch = 2,
                                            .optimizer = (mdot_optimizer)optimizer,
                                            .optimizer_kernels = (mdot_optimizer_kernels)kernels,
                                            .accumulate = passes,
                                            .precision = MDOT_PRECISION_AMP};
                    double least = correct(job, c, host).step_ms;
                    c.ema = 1;
                    double step = correct(job, c, host).step_ms;
                    if (step < least * (1 - 1e-12))
                        fail_msg("optimizer %d, host %g: %.9g and %.9g", optimizer, host, least, step);
                    c.ema = 0;
                    c.grad_scaler = 1;
                    assert_compare(correct(job, c, host).step_ms, >=, least * (1 - 1e-12));
                }
    mdot_job_destroy(job);
    (void)state;
}

/* Muon's matmuls run in bf16, so that weights in half precision shorten its traffic alone. */
static void muons_products_cost_the_same_in_any_type(void **state)
{
    mdot_job *job = make_job(false);
    double products[2];
    for (int i = 0; i < 2; i++) {
        mdot_configuration c = {.batch = 8, .precision = i == 0 ? MDOT_PRECISION_AMP_BF16 : MDOT_PRECISION_BF16};
        c.optimizer = MDOT_OPTIMIZER_MUON;
        products[i] = correct_update(job, c, 1, 0).parts.optimizer_ms;
    }
    assert_float_equal(products[0], products[1], 1e-9 * products[0]);
    assert_compare(products[0], >, 0);
    mdot_job_destroy(job);
    (void)state;
}

static void slower_hosts_never_shorten_a_step_under_a_power_limit(void **state)
{
    mdot_job *job = make_job(false);
    int limited = 0;
    for (int64_t batch = 8; batch <= 512; batch *= 2)
        for (double limit = 80; limit <= 400; limit *= 1.25) {
            mdot_configuration c = {.batch = batch, .precision = MDOT_PRECISION_AMP};
            double last = correct(job, c, 0.01).step_ms;
            c.power_limit = limit;
            limited += correct(job, c, 0.01).step_ms > 1.01 * last;
            for (double host = 0.01; host < 1000; host *= 1.2) {
                double step = correct(job, c, host).step_ms;
                if (step < last * (1 - 1e-12))
                    fail_msg("batch %d, %g W, host %g ms: %.9g and %.9g", (int)batch, limit, host, last, step);
                last = step;
            }
        }
    assert_compare(limited, >, 20);
    mdot_job_destroy(job);
    (void)state;
}

static void slower_hosts_never_shorten_a_step_with_exchanges(void **state)
{
    mdot_job *job = make_job(false);
    int waits = 0;
    for (int gpus = 2; gpus <= 64; gpus *= 2)
        for (double update = 0.01; update < 100; update *= 3)
            for (uint32_t zero = 0; zero <= 3; zero++)
                for (uint32_t passes = 1; passes <= 4; passes *= 4) {
                    mdot_configuration c = {.batch = 8, .precision = MDOT_PRECISION_AMP, .gpu_count = gpus};
                    c.node_count = c.data_parallel = (uint32_t)gpus;
                    c.zero_stage = zero;
                    c.accumulate = passes;
                    double last = 0;
                    for (double host = 0.01; host < 1000; host *= 1.2) {
                        rt_correction found = correct_update(job, c, host, update);
                        if (found.step_ms < last * (1 - 1e-12))
                            fail_msg("%d GPUs, update of %g ms, ZeRO %u, %u passes, host of %g ms: %.9g and %.9g", gpus,
                                     update, zero, passes, host, last, found.step_ms);
                        waits += found.exchanged_ms > 0.1 * found.step_ms;
                        last = found.step_ms;
                    }
                }
    assert_compare(waits, >, 1000);
    mdot_job_destroy(job);
    (void)state;
}

static void exchanges_hide_behind_slower_passes(void **state)
{
    mdot_job *job = make_job(false);
    int hidden = 0;
    for (int64_t batch = 8; batch <= 512; batch *= 2) {
        mdot_configuration c = {.batch = batch, .precision = MDOT_PRECISION_AMP, .gpu_count = 16};
        c.node_count = c.data_parallel = 16;
        double last = correct(job, c, 0.01).exchanged_ms;
        for (c.power_limit = 400; c.power_limit > 90; c.power_limit /= 1.25) {
            double exchanged = correct(job, c, 0.01).exchanged_ms;
            assert_compare(exchanged, <=, last * (1 + 1e-12));
            hidden += exchanged < 0.99 * last;
            last = exchanged;
        }
    }
    assert_compare(hidden, >, 5);
    mdot_job_destroy(job);
    (void)state;
}

/* Beside a frozen table, a sparse one adds this many tensors of the rows, at most of the table. */
static void sparse_updates_move_the_picked_rows(void **state)
{
    static const struct {
        mdot_optimizer optimizer;
        int tensors;
    } cases[] = {{MDOT_OPTIMIZER_SGD_PLAIN, 5}, {MDOT_OPTIMIZER_SGD, 9}, {MDOT_OPTIMIZER_ADAM, 42}};
    mdot_job *sparse = make_job(true), *frozen = make_job(false);
    mdot_gpu gpu = {.struct_size = sizeof gpu};
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t batch = 1; batch <= 1 << 16; batch *= 4)
            for (uint32_t passes = 1; passes <= 4; passes *= 2) {
                mdot_configuration c = {.batch = batch, .optimizer = cases[i].optimizer, .accumulate = passes};
                double rows = fmin((double)batch * passes * PICKED, TABLE);
                double ms = correct(sparse, c, 1).parts.optimizer_ms - correct(frozen, c, 1).parts.optimizer_ms;
                double wanted = cases[i].tensors * 4 * rows / (gpu.memory_gbps * 1e6);
                if (!(fabs(ms / wanted - 1) < 1e-6)) fail_msg("batch %d: %g instead of %g", (int)batch, ms, wanted);
                c = (mdot_configuration){.batch = batch, .mode = MDOT_MODE_INFERENCE};
                assert_float_equal(correct(sparse, c, 1).parts.optimizer_ms, correct(frozen, c, 1).parts.optimizer_ms,
                                   1e-12);
            }
    mdot_job_destroy(sparse);
    mdot_job_destroy(frozen);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_work_in_the_update_never_shortens_a_step),
        cmocka_unit_test(muons_products_cost_the_same_in_any_type),
        cmocka_unit_test(slower_hosts_never_shorten_a_step_under_a_power_limit),
        cmocka_unit_test(slower_hosts_never_shorten_a_step_with_exchanges),
        cmocka_unit_test(exchanges_hide_behind_slower_passes),
        cmocka_unit_test(sparse_updates_move_the_picked_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
