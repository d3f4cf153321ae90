/* test_analytic_correction_parts.c — the correction of a step's parts, called directly: what an option does to each
 * part, which half-widths an unknown host and published steps give, and what a predictor is asked instead. */
#include "runtime/job/gpus.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/cdna.h"
#include "runtime/perf/framework.h"
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
    return rt_correct(&a.requested, &a.queried, job, parts, &(rt_typical_rooflines){0});
}

static const rt_configuration_set everything = ~(rt_configuration_set)0;

static double ratio_of(double after, double before) { return before > 0 ? after / before : 1; }

static double of_passes(const rt_step_parts *parts, int pass)
{
    double sum = 0;
    for (int work = 0; work < RT_WORK_COUNT; work++) sum += parts->pass_ms[pass][work];
    return sum;
}

static void expect_close(size_t i, const char *what, double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * (1 + fabs(wanted))))
        fail_msg("case %zu: %s is %.12g instead of %.12g", i, what, got, wanted);
}

/* Each part of a pass is multiplied by the ratio of its own rooflines at a micro-batch of 32. Fused kernels replace the
 * time of other operators, weights are prepared once for any batch, and rings lengthen attention. The step is the
 * overlap of all parts and the waits besides. */
static void each_part_follows_its_rooflines(void **state)
{
    static const mdot_configuration cases[] = {
        {BASE, .tensor_parallel = 2},
        {BASE, .tensor_parallel = 4, .link_gbps = 1},
        {BASE, .recompute = MDOT_RECOMPUTE_BLOCKS},
        {BASE, .recompute = MDOT_RECOMPUTE_SELECTIVE},
        {BASE, .framework = MDOT_FRAMEWORK_LIGER},
        {BASE, .framework = MDOT_FRAMEWORK_MEGATRON, .recompute = MDOT_RECOMPUTE_BLOCKS},
        {BASE, .gpu_count = 4, .zero_stage = 3},
        {BASE, .gpu_count = 4, .context_parallel = 4},
        {BASE, .pipeline_parallel = 2, .micro_batches = 4},
        {BASE, .accumulate = 3, .compiled = 1},
        {BASE, .offload = MDOT_OFFLOAD_OPTIMIZER},
        {BASE, .optimizer = MDOT_OPTIMIZER_LION},
        {ON("H100", MIXED_BF16), .framework = MDOT_FRAMEWORK_TRANSFORMER_ENGINE},
        {ON("H100", FP8), .framework = MDOT_FRAMEWORK_TRANSFORMER_ENGINE},
        {ON("H100", FP8)},
        {.struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "H100", .precision = MDOT_PRECISION_MIXED_BF16},
        {.struct_size = sizeof(mdot_configuration),
         .batch = 8,
         .gpu = "H100",
         .precision = MDOT_PRECISION_MIXED_BF16,
         .framework = MDOT_FRAMEWORK_MEGATRON},
    };
    enum { CASES = sizeof cases / sizeof *cases };
    const rt_configuration_set software = RT_CONFIGURATION_BIT(RT_CONFIGURATION_IS_COMPILED) |
                                          RT_CONFIGURATION_BIT(RT_CONFIGURATION_IS_AMP) |
                                          RT_CONFIGURATION_BIT(RT_CONFIGURATION_IS_BF16);
    mdot_job *job = make_job();
    for (size_t i = 0; i < 2 * CASES; i++) {
        asked a = resolve(job, cases[i % CASES], i < CASES ? 0 : software);
        rt_correction corrected = rt_correct(&a.requested, &a.queried, job, &base_parts, &(rt_typical_rooflines){0});
        if (i >= CASES && !corrected.is_analytic) continue; /* the predictor reads it */
        rt_resolved_configuration now = rt_with_micro_batch(&a.requested, 32),
                                  then = rt_with_micro_batch(&a.queried, 32);
        const mdot_configuration *c = &a.requested.configuration.c;
        bool fuses = rt_replaces_fused_kernels(&a.requested, job, &base_parts);
        assert_true(fuses == (c->framework > MDOT_FRAMEWORK_HF_TRAINER || c->compiled != 0));
        assert_true(a.queried.fused == (i >= CASES && c->compiled != 0));
        then.shard = a.requested.shard;
        if (fuses) now.fused = then.fused;
        rt_roofline after = rt_roofline_of(job, &now), before = rt_roofline_of(job, &then),
                    alone = rt_roofline_of(job, &a.requested);
        double rate, fused_ms[RT_PASS_COUNT];
        assert_true(rt_throttled_matmuls(&a.queried.configuration, &rate) == 1); /* test_power has others */
        rt_fused_ms(job, &a.requested, fused_ms);
        const rt_step_parts *parts = &corrected.parts;
        for (int pass = 0; pass < RT_PASS_COUNT; pass++)
            for (int work = 0; work < RT_WORK_COUNT; work++) {
                double wanted =
                    base_parts.pass_ms[pass][work] * ratio_of(after.pass_ms[pass][work], before.pass_ms[pass][work]);
                if (work == RT_WORK_OTHER && fuses) wanted = fused_ms[pass];
                if (work == RT_WORK_LINEAR) wanted += alone.prepared_ms[pass];
                if (work == RT_WORK_ATTENTION && c->attention == MDOT_ATTENTION_FLASH)
                    wanted *= rt_framework_attention(&a.requested.configuration, pass == 0, 0);
                if (work == RT_WORK_ATTENTION) wanted *= 1 + .4 * (1 - 1. / c->context_parallel);
                expect_close(i, "a part", parts->pass_ms[pass][work], wanted);
            }
        /* the host launches fewer kernels if they are fused, and those of recomputed blocks again */
        double blocks = a.requested.shard.of[RT_PIPELINE_BLOCKS];
        double host = base_parts.host_ms * (1 - (a.requested.fused - a.queried.fused) * job->analysis->chained_part) +
                      rt_framework_pass_ms(&a.requested.configuration, 0, blocks * BLOCKS) +
                      rt_framework_casts_ms(&a.requested.configuration, alone.casts);
        assert_true((alone.casts > 0) == rt_is_fp8(c->precision));
        rt_resolved_configuration same = rt_with_kernels_of(&now, &a.queried);
        rt_roofline again = rt_roofline_of(job, &same);
        if (c->recompute != MDOT_RECOMPUTE_NOTHING)
            host *= (again.forward_ms + again.backward_ms) / (before.forward_ms + before.backward_ms);
        expect_close(i, "the host's time", parts->host_ms, host);
        expect_close(i, "the update", parts->optimizer_ms,
                     base_parts.optimizer_ms * ratio_of(rt_optimizer_ms(job, &a.requested, &a.requested.shard),
                                                        rt_optimizer_ms(job, &a.queried, &a.requested.shard)));
        rt_step_parts passes = *parts, measured = base_parts;
        passes.optimizer_ms = 0;
        double steps = a.requested.micro_steps, forward = of_passes(parts, RT_PASS_FORWARD),
               backward = of_passes(parts, RT_PASS_BACKWARD);
        double stretch = (rt_overlapped_ms(parts, steps) - parts->optimizer_ms) / (steps * (forward + backward));
        bool exchanges = c->gpu_count > 1;
        expect_close(i, "exchanged", corrected.exchanged_ms,
                     exchanges ? rt_communication_ms(job, &a.requested, stretch * backward) : 0);
        expect_close(i, "transferred", corrected.transferred_ms,
                     rt_host_memory_ms(job, &a.requested, a.requested.steps * stretch * forward,
                                       a.requested.steps * stretch * backward));
        double added = rt_overlapped_ms(parts, steps) - rt_overlapped_ms(&passes, steps);
        expect_close(i, "launched", corrected.launched_ms, rt_launch_ms(job, &a.requested, added));
        expect_close(i, "the step", corrected.step_ms,
                     rt_overlapped_ms(parts, steps) + corrected.exchanged_ms + corrected.transferred_ms +
                         corrected.launched_ms);
        double counted = rt_overlapped_ms(&measured, a.requested.steps);
        expect_close(i, "the interval", corrected.interval_factor, exp(.25 * fabs(log(corrected.step_ms / counted))));
        assert_true(corrected.is_analytic && corrected.exchanges == exchanges);
    }
    mdot_job_destroy(job);
    (void)state;
}

/* A predictor that answers nothing is not corrected to something. */
static void an_answer_of_zero_stays(void **state)
{
    const mdot_configuration c = {BASE, .gpu_count = 4, .link_gbps = 1};
    const rt_step_parts nothing = {.is_learned = true};
    mdot_job *job = make_job();
    rt_correction corrected = correct(job, c, &nothing);
    assert_true(corrected.step_ms == 0 && corrected.interval_factor == 1 && !corrected.is_analytic);
    mdot_job_destroy(job);
    (void)state;
}

/* GPU and host overlap as a norm of the fourth power; waits are added. */
static void a_step_is_the_norm_of_gpu_and_host(void **state)
{
    for (double host = 0; host < 100; host = 2 * host + .1)
        for (double steps = 1; steps <= 8; steps *= 2) {
            rt_step_parts parts = {.pass_ms = {{[RT_WORK_OTHER] = 3}, {[RT_WORK_LINEAR] = 4}},
                                   .optimizer_ms = 2,
                                   .host_ms = host,
                                   .wait_ms = host / 2};
            double wanted = pow(pow(7 * steps + 2, 4) + pow(host * steps, 4), .25) + steps * host / 2;
            assert_true(fabs(rt_overlapped_ms(&parts, steps) / wanted - 1) < 1e-12);
        }
    assert_true(rt_overlapped_ms(&(rt_step_parts){.wait_ms = 3}, 2) == 6);
    (void)state;
}

/* Matmuls of AMD's GPUs and convolutions that its library lacks take longer than the predictor knows. */
static void gpus_by_amd_have_slower_matmuls(void **state)
{
    const mdot_configuration c = {ON("MI300X", FP32)};
    mdot_job *job = make_job();
    rt_correction corrected = correct(job, c, &base_parts);
    for (int pass = 0; pass < RT_PASS_COUNT; pass++)
        for (int work = 0; work < RT_WORK_COUNT; work++) {
            bool is_matmul = work == RT_WORK_LINEAR || work == RT_WORK_ATTENTION;
            expect_close((size_t)work, "a part", corrected.parts.pass_ms[pass][work],
                         base_parts.pass_ms[pass][work] * (is_matmul ? RT_CDNA_MATMULS : 1));
        }
    assert_true(corrected.known_log == 0);
    mdot_job_destroy(job);
    (void)state;
}

/* On Hopper, eager convolutions take 1.3 times the learned time, 1.9 times in fp32, and other operators beside them
 * 1.35 times in inference. Networks without convolutions, compiled code and other GPUs keep the learned times. */
static void hoppers_convolutions_follow_the_records(void **state)
{
    static const char *const gpus[] = {"A100", "H100", "H200", "GH200", "B200", "RTX-4090"};
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_TF32, MDOT_PRECISION_AMP};
    enum { GPUS = sizeof gpus / sizeof *gpus };
    mdot_job *job = make_job();
    for (size_t i = 0; i < GPUS * 3 * 8; i++) {
        mdot_configuration c = {ON(gpus[i % GPUS], FP32)};
        c.precision = precisions[i / GPUS % 3];
        c.mode = i / GPUS / 3 % 2 != 0 ? MDOT_MODE_INFERENCE : MDOT_MODE_TRAIN;
        c.compiled = i / GPUS / 6 % 2;
        rt_step_parts parts = base_parts;
        bool has_images = i / GPUS / 12 != 0, is_hopper = strchr(gpus[i % GPUS], 'H') != NULL;
        if (has_images) parts.pass_ms[RT_PASS_FORWARD][RT_WORK_CONVOLUTION] = 7;
        asked a = resolve(job, c, everything);
        rt_correction corrected = rt_correct(&a.queried, &a.queried, job, &parts, &(rt_typical_rooflines){0});
        bool changes = has_images && is_hopper && c.compiled == 0;
        double convolutions = !changes ? 7 : c.precision == MDOT_PRECISION_FP32 ? 1.9 * 7 : 1.3 * 7;
        const double *forward = corrected.parts.pass_ms[RT_PASS_FORWARD];
        expect_close(i, "convolutions", forward[RT_WORK_CONVOLUTION], has_images ? convolutions : 0);
        if (c.compiled == 0)
            expect_close(i, "others", forward[RT_WORK_OTHER], changes && c.mode == MDOT_MODE_INFERENCE ? 1.35 * 2 : 2);
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

/* The half-widths to faster and slower steps, per share of the host. */
static void host_logs(const mdot_job *job, mdot_configuration c, const rt_step_parts *parts, double out[2])
{
    rt_correction corrected = correct(job, c, parts);
    double share = rt_host_share(&corrected.parts, resolve(job, c, 0).requested.micro_steps);
    if (fabs(corrected.gpu_share + share - 1) > 1e-9) fail_msg("GPU %g, host %g", corrected.gpu_share, share);
    out[0] = corrected.host_log / share;
    out[1] = corrected.slow_host_log / share;
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
            /* a real step reaches .4 of the roofline's rates, and a shorter one has no wait */
            double whole_ms = resolved.micro_steps * (r.forward_ms + r.backward_ms) + r.optimizer_ms;
            assert_true(fabs(scale * whole_ms / fmin(2.5 * whole_ms, step_ms) - 1) < 1e-9);
        }
    mdot_job_operator nothing = {.struct_size = sizeof nothing, .known = true, .type = "Relu"};
    mdot_job *idle = predict_make_job(&nothing, 1);
    for (int micro = 1; micro <= 8; micro++) { /* without work, all of the step is a wait */
        const mdot_configuration c = {BASE, .accumulate = (uint32_t)micro};
        rt_resolved_configuration resolved = resolve(idle, c, everything).requested;
        rt_step_parts parts = rt_divide_step(idle, &resolved, 7);
        assert_true(fabs(parts.wait_ms * resolved.micro_steps - 7) < 1e-9);
        assert_true(parts.host_ms == 0 && parts.optimizer_ms == 0 && !parts.is_learned);
    }
    mdot_job_destroy(idle);
    mdot_job_destroy(job);
    (void)state;
}

/* A host that nobody measured widens the interval in proportion to its share, and the GPU's error counts in proportion
 * to the rest: less if a framework is stated, and most if several GPUs train a network with attention and nothing tells
 * the framework. Then the step may be slower, because the slowest framework is not assumed. */
static void an_unknown_host_widens_the_interval(void **state)
{
    mdot_job *job = make_job();
    const mdot_configuration lone = {BASE}, measured = {BASE, .host_launch_us = 8},
                             megatron = {BASE, .framework = MDOT_FRAMEWORK_MEGATRON}, several = {BASE, .gpu_count = 4},
                             torch = {BASE, .gpu_count = 4, .framework = MDOT_FRAMEWORK_PYTORCH};
    enum { LONE, SLOW, STATED, MEGATRON, SEVERAL, VARIANTS };
    rt_step_parts slow = base_parts, none = base_parts;
    double logs[VARIANTS][2];
    slow.host_ms *= 8;
    none.host_ms = 0;
    host_logs(job, lone, &base_parts, logs[LONE]);
    host_logs(job, lone, &slow, logs[SLOW]);
    host_logs(job, torch, &base_parts, logs[STATED]);
    host_logs(job, megatron, &base_parts, logs[MEGATRON]);
    host_logs(job, several, &base_parts, logs[SEVERAL]);
    for (int i = 0; i < VARIANTS; i++) {
        assert_true(0 < logs[i][0] && logs[i][0] <= logs[LONE][0] + 1e-9);
        assert_true((logs[i][1] > logs[i][0] + 1e-9) == (i == SEVERAL));
    }
    assert_true(fabs(logs[SLOW][0] - logs[LONE][0]) < 1e-9 && logs[STATED][0] < logs[LONE][0] - 1e-9);
    rt_correction known = correct(job, measured, &base_parts), idle = correct(job, lone, &none);
    assert_true(known.host_log == 0 && known.slow_host_log == 0 && known.gpu_share == 1);
    assert_true(idle.host_log == 0 && idle.slow_host_log == 0);
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

/* Independent errors: each kind of language model adds its own square, beside any others. */
static void half_widths_of_language_models_add_as_squares(void **state)
{
    enum { FULL = 1, NEW = 2, DIVIDED = 4, NODES = 8, EXPERTS = 16, QUANTISED = 32, KINDS = 64 };
    double square[KINDS];
    mdot_job *job = make_job();
    rt_analysis *analysis = job->analysis;
    for (int kind = 0; kind < KINDS; kind++) {
        mdot_configuration c = {BASE, .framework = MDOT_FRAMEWORK_MEGATRON, .gpu_count = 16};
        if ((kind & FULL) != 0) c.precision = MDOT_PRECISION_FP32;
        if ((kind & NEW) != 0) c.gpu = kind % 3 == 0 ? "H100" : "B200";
        if ((kind & DIVIDED) != 0 && kind % 5 < 3) c.tensor_parallel = 2;
        if ((kind & DIVIDED) != 0 && kind % 5 > 1) c.pipeline_parallel = 2;
        if ((kind & NODES) != 0) c.node_count = 4;
        if ((kind & QUANTISED) != 0) c.frozen_weights = MDOT_FROZEN_NF4;
        analysis->sharding.experts.common_count = (kind & EXPERTS) != 0 ? 8 : 0;
        double log_width = correct(job, c, &base_parts).known_log;
        square[kind] = log_width * log_width;
        assert_true(log_width > 0);
        c.framework = MDOT_FRAMEWORK_PYTORCH; /* whose layers of experts are unknown */
        assert_true((correct(job, c, &base_parts).known_log > 0) == ((kind & EXPERTS) == 0));
        double sum = square[0];
        for (int one = 1; one < KINDS; one *= 2)
            if ((kind & one) != 0) sum += square[one] - square[0];
        if (kind > 0 && (kind & (kind - 1)) == 0) assert_true(square[kind] > square[0]);
        assert_true(fabs(square[kind] - sum) < 1e-12);
    }
    analysis->sharding.experts.common_count = 0;
    double one_node = 0, two = 0;
    for (uint32_t nodes = 1; nodes <= 16; nodes *= 2) { /* each doubling of the nodes adds one width */
        const mdot_configuration c = {BASE, .gpu_count = 16, .node_count = nodes};
        double doublings = log2(nodes), now = pow(correct(job, c, &base_parts).known_log, 2);
        if (nodes == 1) one_node = now;
        if (nodes == 2) two = now;
        if (nodes > 1) assert_true(fabs(now - one_node - doublings * doublings * (two - one_node)) < 1e-12);
    }
    const mdot_configuration fp8 = {ON("H100", FP8)}, half = {ON("H100", MIXED_BF16)}, tf32 = {ON("A100", TF32)},
                             full = {ON("A100", FP32)};
    assert_true(correct(job, fp8, &base_parts).known_log > correct(job, half, &base_parts).known_log);
    assert_true(correct(job, tf32, &base_parts).known_log == correct(job, full, &base_parts).known_log);
    mdot_job_destroy(job);
    (void)state;
}

/* Image networks: widths by training or inference, precision and GPU. Widths of one class are equal, and grow with the
 * class; 0: nobody published such steps. */
static void half_widths_of_image_networks_have_classes(void **state)
{
    static const struct {
        const char *gpu;
        int train_full, train_half, infer_full, infer_half;
    } rows[] = {
        {"A100", 1, 1, 4, 2}, {"V100", 1, 1, 4, 2}, {"H100", 4, 3, 4, 4},     {"B200", 4, 3, 4, 4},
        {"T4", 0, 0, 0, 0},   {"A10", 0, 0, 4, 2},  {"RTX-4090", 0, 0, 4, 2}, {"RTX-5090", 0, 0, 4, 2},
    };
    mdot_job *job = make_job();
    rt_step_parts images = base_parts;
    images.pass_ms[RT_PASS_FORWARD][RT_WORK_CONVOLUTION] = 1;
    double width[5] = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 4; k++) {
            mdot_configuration c = {ON(rows[i].gpu, FP32)};
            if (k % 2 == 1) c.precision = MDOT_PRECISION_AMP;
            if (k > 1) c.mode = MDOT_MODE_INFERENCE;
            int class = k == 0   ? rows[i].train_full
                        : k == 1 ? rows[i].train_half
                        : k == 2 ? rows[i].infer_full
                                 : rows[i].infer_half;
            double now = correct(job, c, &images).known_log;
            if (width[class] == 0) width[class] = now;
            if (now != width[class])
                fail_msg("%s, case %d: %g in class %d of %g", rows[i].gpu, k, now, class, width[class]);
        }
    assert_true(width[0] == 0 && 0 < width[1] && width[1] < width[2] && width[2] < width[3] && width[3] < width[4]);
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
        expect_close(0, "the interval", limited.interval_factor, free_running.interval_factor * pow(slowdown, .25));
        expect_close(0, "waits", limited.step_ms - rt_overlapped_ms(&limited.parts, 1),
                     free_running.step_ms - rt_overlapped_ms(&free_running.parts, 1));
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
    const rt_configuration_set no_default = everything & ~RT_CONFIGURATION_BIT(RT_CONFIGURATION_IS_PYTORCH);
    const mdot_configuration by_default = {ON("A100", PYTORCH)};
    assert_int_equal(resolve(job, by_default, everything).queried.configuration.c.precision, MDOT_PRECISION_PYTORCH);
    assert_int_equal(resolve(job, by_default, no_default).queried.configuration.c.precision, MDOT_PRECISION_FP32);
    job->analysis->totals.is_convolutional = true;
    assert_int_equal(resolve(job, by_default, no_default).queried.configuration.c.precision, MDOT_PRECISION_TF32);
    job->analysis->totals.is_convolutional = false;
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
        cmocka_unit_test(an_answer_of_zero_stays),
        cmocka_unit_test(a_step_is_the_norm_of_gpu_and_host),
        cmocka_unit_test(gpus_by_amd_have_slower_matmuls),
        cmocka_unit_test(hoppers_convolutions_follow_the_records),
        cmocka_unit_test(the_hosts_share_is_symmetric),
        cmocka_unit_test(rooflines_divide_a_step),
        cmocka_unit_test(an_unknown_host_widens_the_interval),
        cmocka_unit_test(published_steps_are_known_for_their_kind),
        cmocka_unit_test(half_widths_of_language_models_add_as_squares),
        cmocka_unit_test(half_widths_of_image_networks_have_classes),
        cmocka_unit_test(a_power_limit_slows_the_gpus_parts_alone),
        cmocka_unit_test(a_predictor_is_asked_for_what_it_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
