/* test_analytic_correction_parts.c — the correction of a step's parts, called directly: what an option does to each
 * part, which half-widths an unknown host and published steps give, and what a predictor is asked instead. */
#include "runtime/job/gpus.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/analytic_correction.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 4, OF_A_BLOCK = 4, COUNT = BLOCKS * OF_A_BLOCK };

/* Blocks of matmul, Relu, attention and matmul. */
static mdot_job *make_job(void)
{
    static const char *const types[OF_A_BLOCK] = {"Linear", "Relu", "Attention", "Linear"};
    mdot_job_operator operators[COUNT];
    uint32_t inputs[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        mdot_job_operator *op = &operators[i];
        bool is_matmul = i % OF_A_BLOCK % 3 == 0;
        *op = (mdot_job_operator){
            .struct_size = sizeof *op, .known = true, .block = i / OF_A_BLOCK + 1, .type = types[i % OF_A_BLOCK]};
        for (int phase = 0; phase < (is_matmul ? 3 : 2); phase++)
            op->per_sample[phase] = (mdot_load){is_matmul ? 1e10 : 1e8, 1e6, 1e6};
        op->setting[MDOT_SETTING_INPUTS] = 1;
        op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = is_matmul ? 64 : 0;
        op->parameters = is_matmul ? 1e6 : 0;
        op->setting[MDOT_SETTING_HEADS] = i % OF_A_BLOCK == 2 ? 4 : 0;
        op->setting[MDOT_SETTING_HEAD_SIZE] = i % OF_A_BLOCK == 2 ? 16 : 0;
        inputs[i] = i - 1;
        op->inputs = &inputs[i];
        op->input_count = i > 0;
    }
    return predict_make_job(operators, COUNT);
}

/* A language model in half precision with the host's time. */
#define ON(GPU, PRECISION)                                                                                             \
    .struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = (GPU), .precision = MDOT_PRECISION_##PRECISION,      \
    .attention = MDOT_ATTENTION_EAGER
#define BASE ON("A100", MIXED_BF16)
static const rt_step_parts base_parts = {
    .pass_ms = {[RT_PASS_FORWARD] = {[RT_WORK_LINEAR] = 10, [RT_WORK_ATTENTION] = 3, [RT_WORK_OTHER] = 2},
                [RT_PASS_BACKWARD] = {[RT_WORK_LINEAR] = 20, [RT_WORK_ATTENTION] = 6, [RT_WORK_OTHER] = 4}},
    .host_ms = 5,
    .optimizer_ms = 2,
    .is_learned = true};

typedef struct asked {
    rt_resolved_configuration requested, queried;
} asked;

/* A predictor that reads `reads`. */
static asked resolve(const mdot_job *job, mdot_configuration c, rt_configuration_set reads)
{
    asked a;
    rt_gpu_names names = {0};
    rt_configuration requested, queried;
    mdot_error err = {0};
    if (rt_configuration_read(&c, 0, &names, &requested, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (rt_configuration_check(&requested, job, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolve(job, &requested, &a.requested);
    rt_project_configuration(&a.requested.configuration, job, reads, &queried);
    rt_resolve(job, &queried, &a.queried);
    return a;
}

static rt_correction correct(const mdot_job *job, mdot_configuration c, const rt_step_parts *parts)
{
    asked a = resolve(job, c, 0);
    return rt_correct(&a.requested, &a.queried, job, parts);
}

static const rt_configuration_set everything = ~(rt_configuration_set)0;

/* Each part of a pass is multiplied by the ratio of its own rooflines at a micro-batch of 32. */
static void each_part_follows_its_rooflines(void **state)
{
    static const mdot_configuration cases[] = {{BASE, .tensor_parallel = 2},
                                               {BASE, .tensor_parallel = 4},
                                               {BASE, .recompute = MDOT_RECOMPUTE_BLOCKS},
                                               {BASE, .recompute = MDOT_RECOMPUTE_SELECTIVE}};
    mdot_job *job = make_job();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        asked a = resolve(job, cases[i], 0);
        rt_correction corrected = rt_correct(&a.requested, &a.queried, job, &base_parts);
        rt_resolved_configuration now = rt_with_micro_batch(&a.requested, 32),
                                  then = rt_with_micro_batch(&a.queried, 32);
        then.shard = a.requested.shard;
        rt_roofline after = rt_roofline_of(job, &now), before = rt_roofline_of(job, &then);
        double throttled = rt_throttled_matmuls(&a.queried.configuration);
        for (int pass = 0; pass < RT_PASS_COUNT; pass++)
            for (int work = 0; work < RT_WORK_COUNT; work++) {
                double given = base_parts.pass_ms[pass][work] * (work == RT_WORK_LINEAR ? throttled : 1);
                double ratio =
                    before.pass_ms[pass][work] > 0 ? after.pass_ms[pass][work] / before.pass_ms[pass][work] : 1;
                double made = corrected.parts.pass_ms[pass][work];
                if (!(fabs(made - given * ratio) <= 1e-9 * made))
                    fail_msg("case %zu, pass %d, work %d: %g instead of %g", i, pass, work, made, given * ratio);
            }
        assert_compare(corrected.parts.host_ms, >=, base_parts.host_ms);
    }
    mdot_job_destroy(job);
    (void)state;
}

/* GPU and host change places, and the share with them; their sum is 1. */
static void the_hosts_share_is_symmetric(void **state)
{
    for (double host = .125; host < 100; host *= 2)
        for (double steps = 1; steps <= 8; steps *= 2) {
            rt_step_parts parts = {.pass_ms = {{[RT_WORK_OTHER] = 3}, {[RT_WORK_LINEAR] = 4}}, .host_ms = host},
                          turned = {.pass_ms = {{[RT_WORK_OTHER] = host}}, .host_ms = 7};
            double share = rt_host_share(&parts, steps), other = rt_host_share(&turned, steps);
            assert_true(share > 0 && share < 1 && fabs(share + other - 1) < 1e-12);
            assert_true((host > 7) == (share > .5));
            parts.optimizer_ms = 7 * (host / 7 * steps) * 1e6; /* the update is the GPU's, too */
            assert_true(rt_host_share(&parts, steps) < 1e-6);
        }
    const rt_step_parts waits = {.pass_ms = {{[RT_WORK_OTHER] = 3}}, .wait_ms = 1};
    assert_true(fabs(rt_host_share(&waits, 2) - .25) < 1e-12);
    assert_true(rt_host_share(&(rt_step_parts){.pass_ms = {{[RT_WORK_OTHER] = 3}}}, 2) == 0);
    (void)state;
}

/* The half-width per share of the host. */
static double host_log(const mdot_job *job, mdot_configuration c, const rt_step_parts *parts)
{
    rt_correction corrected = correct(job, c, parts);
    return corrected.host_log / rt_host_share(&corrected.parts, resolve(job, c, 0).requested.micro_steps);
}

/* Without a division by the predictor, rooflines divide the step, and the parts add up to it. */
static void rooflines_divide_a_step(void **state)
{
    mdot_job *job = make_job();
    for (int micro = 1; micro <= 8; micro *= 2)
        for (double step_ms = 1e-3; step_ms < 1e6; step_ms *= 10) {
            const mdot_configuration c = {BASE, .accumulate = (uint32_t)micro};
            rt_resolved_configuration resolved = resolve(job, c, everything).requested;
            rt_step_parts parts = rt_divide_step(job, &resolved, step_ms);
            assert_true(fabs(rt_overlapped_ms(&parts, resolved.micro_steps) / step_ms - 1) < 1e-9);
            assert_true(parts.wait_ms >= 0 && parts.optimizer_ms > 0 && parts.host_ms == 0 && !parts.is_learned);
            rt_roofline r = rt_roofline_of(job, &resolved);
            double scale = parts.optimizer_ms / r.optimizer_ms;
            for (int pass = 0; pass < RT_PASS_COUNT; pass++)
                for (int work = 0; work < RT_WORK_COUNT; work++)
                    assert_true(fabs(parts.pass_ms[pass][work] - scale * r.pass_ms[pass][work]) <= 1e-9 * step_ms);
            assert_true(scale <= 2.5 + 1e-9); /* a real step reaches no more than .4 of the roofline's rates */
        }
    mdot_job_destroy(job);
    (void)state;
}

/* A host that nobody measured widens the interval in proportion to its share, most if several GPUs train a network with
 * attention and nothing tells the framework. */
static void an_unknown_host_widens_the_interval(void **state)
{
    mdot_job *job = make_job();
    const mdot_configuration lone = {BASE}, measured = {BASE, .host_launch_us = 8},
                             megatron = {BASE, .framework = MDOT_FRAMEWORK_MEGATRON}, several = {BASE, .gpu_count = 4},
                             torch = {BASE, .gpu_count = 4, .framework = MDOT_FRAMEWORK_PYTORCH};
    rt_step_parts slow = base_parts, none = base_parts;
    slow.host_ms *= 8;
    none.host_ms = 0;
    double least = host_log(job, lone, &base_parts), more = host_log(job, megatron, &base_parts),
           most = host_log(job, several, &base_parts);
    assert_true(0 < least && least < most && 0 < more && more < most);
    assert_true(fabs(host_log(job, torch, &base_parts) - least) < 1e-9);
    assert_true(fabs(host_log(job, lone, &slow) - least) < 1e-9);
    assert_true(correct(job, measured, &base_parts).host_log == 0);
    assert_true(correct(job, lone, &none).host_log == 0);
    mdot_job_destroy(job);
    (void)state;
}

/* Published steps bound the interval of language models in training on their GPUs, and of no others. */
static void published_steps_are_known_for_their_kind(void **state)
{
    mdot_job *job = make_job();
    static const mdot_configuration unknown[] = {{ON("T4", MIXED_BF16)},
                                                 {ON("V100", MIXED_FP16)},
                                                 {BASE, .mode = MDOT_MODE_INFERENCE},
                                                 {BASE, .offload = MDOT_OFFLOAD_OPTIMIZER}};
    static const mdot_configuration wider[] = {
        {BASE}, {ON("H100", MIXED_BF16)}, {ON("H100", FP8)}, {ON("H100", FP8), .tensor_parallel = 2}};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        mdot_configuration c = unknown[i];
        if (correct(job, c, &base_parts).known_log != 0) fail_msg("case %zu is known", i);
    }
    double before = 0;
    for (size_t i = 0; i < sizeof wider / sizeof *wider; i++) {
        double now = correct(job, wider[i], &base_parts).known_log;
        if (!(now > before)) fail_msg("case %zu: %g after %g", i, now, before);
        before = now;
    }
    rt_step_parts others = base_parts, guessed = base_parts;
    others.pass_ms[RT_PASS_FORWARD][RT_WORK_OTHER] = 60; /* more than the matmuls and attention */
    guessed.is_learned = false;
    assert_true(correct(job, wider[0], &others).known_log == 0);
    assert_true(correct(job, wider[0], &guessed).known_log == 0);
    mdot_configuration nodes = {BASE, .gpu_count = 16};
    for (nodes.node_count = 1, before = 0; nodes.node_count <= 16; nodes.node_count *= 2) {
        double now = correct(job, nodes, &base_parts).known_log;
        assert_true(now > before);
        before = now;
    }
    mdot_job_destroy(job);
    (void)state;
}

/* A lower power limit never shortens the GPU's parts, slows all of them by one factor, and leaves the host's. */
static void a_power_limit_slows_the_gpus_parts_alone(void **state)
{
    mdot_job *job = make_job();
    mdot_configuration c = {BASE};
    rt_correction free_running = correct(job, c, &base_parts);
    double before = free_running.step_ms, interval = free_running.interval_factor;
    for (c.power_limit = 400; c.power_limit >= 100; c.power_limit /= 2) {
        rt_correction limited = correct(job, c, &base_parts);
        double slowdown = limited.parts.optimizer_ms / free_running.parts.optimizer_ms;
        assert_true(limited.step_ms >= before && limited.interval_factor >= interval && slowdown >= 1);
        assert_true(limited.parts.host_ms == free_running.parts.host_ms);
        for (int pass = 0; pass < RT_PASS_COUNT; pass++)
            for (int work = 0; work < RT_WORK_COUNT; work++)
                assert_true(fabs(limited.parts.pass_ms[pass][work] -
                                 slowdown * free_running.parts.pass_ms[pass][work]) <= 1e-9);
        assert_true(limited.is_analytic || slowdown == 1);
        before = limited.step_ms;
        interval = limited.interval_factor;
    }
    assert_true(before > 1.2 * free_running.step_ms); /* 100 watts of an A100's 400 */
    mdot_job_destroy(job);
    (void)state;
}

/* An option that the predictor does not read is replaced by the nearest that it reads; one that it reads stays. */
static void a_predictor_is_asked_for_what_it_reads(void **state)
{
    mdot_job *job = make_job();
    const mdot_configuration c = {BASE,
                                  .optimizer = MDOT_OPTIMIZER_ADAMW,
                                  .compiled = 1,
                                  .recompute = MDOT_RECOMPUTE_BLOCKS,
                                  .accumulate = 4,
                                  .torch = 204,
                                  .tensor_parallel = 2,
                                  .gpu_count = 2};
    mdot_configuration none = resolve(job, c, 0).queried.configuration.c,
                       all = resolve(job, c, everything).queried.configuration.c;
    assert_int_equal(none.precision, MDOT_PRECISION_FP32);
    assert_int_equal(none.optimizer, MDOT_OPTIMIZER_SGD);
    assert_int_equal(none.attention, MDOT_ATTENTION_EAGER);
    assert_int_equal(none.compiled, 0);
    assert_int_equal(none.recompute, MDOT_RECOMPUTE_NOTHING);
    assert_int_equal(none.accumulate, 1);
    assert_int_equal(none.torch, 0);
    assert_int_equal(none.gpu_count, 1);
    assert_int_equal(none.tensor_parallel, 1);
    assert_int_equal(all.precision, MDOT_PRECISION_BF16);
    assert_int_equal(all.optimizer, MDOT_OPTIMIZER_ADAMW);
    assert_int_equal(all.compiled, 1);
    assert_int_equal(all.recompute, MDOT_RECOMPUTE_BLOCKS);
    assert_int_equal(all.accumulate, 4);
    assert_int_equal(all.torch, 204);
    assert_int_equal(all.gpu_count, 2);
    assert_int_equal(all.tensor_parallel, 2);
    static const struct {
        mdot_optimizer from, to;
    } optimizers[] = {
        {MDOT_OPTIMIZER_ADAM8BIT, MDOT_OPTIMIZER_ADAM},   {MDOT_OPTIMIZER_ADAMW8BIT, MDOT_OPTIMIZER_ADAMW},
        {MDOT_OPTIMIZER_ADAFACTOR, MDOT_OPTIMIZER_ADAMW}, {MDOT_OPTIMIZER_LION, MDOT_OPTIMIZER_SGD},
        {MDOT_OPTIMIZER_MUON, MDOT_OPTIMIZER_ADAMW},      {MDOT_OPTIMIZER_SGD_PLAIN, MDOT_OPTIMIZER_SGD}};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
        mdot_configuration one = {BASE, .optimizer = optimizers[i].from};
        assert_int_equal(resolve(job, one, everything).queried.configuration.c.optimizer, optimizers[i].to);
    }
    const mdot_configuration fp16 = {ON("A100", MIXED_FP16)}, adam = {BASE, .optimizer = MDOT_OPTIMIZER_ADAM};
    assert_int_equal(resolve(job, fp16, everything).queried.configuration.c.precision, MDOT_PRECISION_AMP);
    assert_int_equal(resolve(job, adam, 0).queried.configuration.c.optimizer, MDOT_OPTIMIZER_SGD);
    for (int rings = 1; rings <= 8; rings *= 2) { /* the predictor knows whole sequences */
        mdot_configuration ring = {BASE, .gpu_count = 2 * rings, .context_parallel = (uint32_t)rings};
        assert_int_equal(resolve(job, ring, everything).queried.configuration.c.gpu_count, 2);
    }
    const mdot_configuration inference = {BASE, .mode = MDOT_MODE_INFERENCE};
    assert_int_equal(resolve(job, inference, 0).queried.configuration.c.mode, MDOT_MODE_TRAIN);
    assert_int_equal(resolve(job, inference, everything).queried.configuration.c.mode, MDOT_MODE_INFERENCE);
    const rt_configuration_set no_adamw = everything & ~RT_CONFIGURATION_BIT(RT_CONFIGURATION_IS_ADAMW);
    assert_int_equal(resolve(job, c, no_adamw).queried.configuration.c.optimizer, MDOT_OPTIMIZER_ADAM);
    mdot_job_destroy(job);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_follows_its_rooflines),
        cmocka_unit_test(the_hosts_share_is_symmetric),
        cmocka_unit_test(rooflines_divide_a_step),
        cmocka_unit_test(an_unknown_host_widens_the_interval),
        cmocka_unit_test(published_steps_are_known_for_their_kind),
        cmocka_unit_test(a_power_limit_slows_the_gpus_parts_alone),
        cmocka_unit_test(a_predictor_is_asked_for_what_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
