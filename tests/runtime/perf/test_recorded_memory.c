/* test_recorded_memory.c — runtime/perf/recorded_memory.c, and configurations that follow a job's program. */
#include "mdot/mdotjob.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/sharding.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { UNIT = 4096 };

static mdot_job_operator make(const char *type, double units, double parameters)
{
    mdot_job_operator op = {.struct_size = sizeof op, .type = type, .known = true, .parameters = parameters};
    op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e9, UNIT, units * UNIT};
    op.per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){1e9, UNIT, UNIT};
    op.setting[MDOT_SETTING_INPUTS] = 1;
    return op;
}

/* A matmul of 600 parameters, an attention and a Relu with 400 frozen parameters. Operator `recomputed` is flagged. */
static mdot_job *network(int recomputed)
{
    static const uint32_t before[2] = {0, 1};
    mdot_job_operator operators[3] = {make("Linear", 8, 600), make("Attention", 8, 0), make("Relu", 8, 0)};
    operators[1].setting[MDOT_SETTING_HEAD_SIZE] = 16;
    operators[1].setting[MDOT_SETTING_HEADS] = 1;
    operators[2].frozen_parameters = 400;
    for (int i = 1; i < 3; i++) {
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
    }
    if (recomputed >= 0) operators[recomputed].flags = MDOT_OPERATOR_RECOMPUTED;
    return predict_make_job(operators, 3);
}

static const mdot_peak_moment moments[] = {{.per_sample = 1000, .per_step = 10, .gradients = .5},
                                           {.per_sample = 400, .gradients = 1}};
static const mdot_recorded_memory record = {.precision = MDOT_PRECISION_FP32, .moment_count = 2, .moments = moments};

/* The caller destroys the job. */
static mdot_job *with_program(mdot_precision precision, mdot_attention attention)
{
    mdot_job *plain = network(-1), *job = NULL;
    const mdot_job_program p = {.struct_size = sizeof p,
                                .precision = precision,
                                .attention = attention,
                                .trained_bytes = 1300,
                                .frozen_bytes = 900,
                                .buffer_bytes = 50,
                                .recorded_count = 1,
                                .recorded = &record};
    mdot_error err = {0};
    if (mdot_job_with_program(plain, &p, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(plain);
    return job;
}

static rt_resolved_configuration resolve(const mdot_job *job, mdot_configuration c)
{
    rt_configuration configuration = {.c = c};
    configuration.gpu.pcie_gbps = 31.5;
    configuration.gpu.fp32_tflops = configuration.gpu.tf32_tflops = configuration.gpu.fp16_tflops = 10;
    configuration.gpu.memory_gbps = 1000;
    configuration.c.batch = 4;
    mdot_error err = {0};
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

static void choices_left_open_follow_the_program(void **state)
{
    mdot_job *job = with_program(MDOT_PRECISION_BF16, MDOT_ATTENTION_EAGER), *plain = network(-1);
    rt_resolved_configuration r = resolve(job, (mdot_configuration){.precision = MDOT_PRECISION_PYTORCH});
    assert_int_equal(r.configuration.c.precision, MDOT_PRECISION_BF16);
    assert_int_equal(r.configuration.c.attention, MDOT_ATTENTION_EAGER);
    assert_int_equal(r.activation_case.type, RT_ACTIVATION_BF16);
    assert_int_equal(r.activation_case.attention, MDOT_ATTENTION_EAGER);
    assert_false(r.differs_from_program);
    r = resolve(plain, (mdot_configuration){.precision = MDOT_PRECISION_PYTORCH});
    assert_int_equal(r.configuration.c.precision, MDOT_PRECISION_PYTORCH);
    assert_int_equal(r.configuration.c.attention, MDOT_ATTENTION_FLASH);
    mdot_job_destroy(plain);
    mdot_job_destroy(job);
}

static void contradicting_options_win_and_are_noted(void **state)
{
    static const struct {
        mdot_precision programs, precision;
        mdot_attention attention;
        bool differs;
    } cases[] = {{MDOT_PRECISION_BF16, MDOT_PRECISION_FP32, MDOT_ATTENTION_PROGRAM, true},
                 {MDOT_PRECISION_BF16, MDOT_PRECISION_BF16, MDOT_ATTENTION_PROGRAM, false},
                 {MDOT_PRECISION_BF16, MDOT_PRECISION_PYTORCH, MDOT_ATTENTION_FLASH, true},
                 {MDOT_PRECISION_BF16, MDOT_PRECISION_PYTORCH, MDOT_ATTENTION_EAGER, false},
                 {MDOT_PRECISION_BF16, MDOT_PRECISION_AMP_BF16, MDOT_ATTENTION_PROGRAM, false},
                 {MDOT_PRECISION_PYTORCH, MDOT_PRECISION_AMP, MDOT_ATTENTION_PROGRAM, false},
                 {MDOT_PRECISION_PYTORCH, MDOT_PRECISION_BF16, MDOT_ATTENTION_PROGRAM, true},
                 {MDOT_PRECISION_AMP_BF16, MDOT_PRECISION_AMP, MDOT_ATTENTION_PROGRAM, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job *job = with_program(cases[i].programs, MDOT_ATTENTION_EAGER);
        rt_resolved_configuration r =
            resolve(job, (mdot_configuration){.precision = cases[i].precision, .attention = cases[i].attention});
        if (r.differs_from_program != cases[i].differs) fail_msg("case %zu", i);
        if (cases[i].attention != MDOT_ATTENTION_PROGRAM)
            assert_int_equal(r.configuration.c.attention, cases[i].attention);
        if (cases[i].precision != MDOT_PRECISION_PYTORCH)
            assert_int_equal(r.configuration.c.precision, cases[i].precision);
        mdot_job_destroy(job);
    }
}

/* The same types count more than the same recomputation, and of equally near records the first one counts. */
static void the_nearest_of_several_records_is_used(void **state)
{
    static const mdot_peak_moment moment[] = {
        {.per_sample = 1000, .gradients = .125}, {.per_sample = 1000, .gradients = .25},
        {.per_sample = 1000, .gradients = .375}, {.per_sample = 1000, .gradients = .5},
        {.per_sample = 1000, .gradients = .625}, {.per_sample = 1000, .gradients = .75},
        {.per_sample = 1000, .gradients = .875}};
    static const mdot_recorded_memory fp32 = {.precision = MDOT_PRECISION_FP32,
                                              .moment_count = 1,
                                              .moments = &moment[0]},
                                      fp32_blocks = {.precision = MDOT_PRECISION_FP32,
                                                     .recompute = MDOT_RECOMPUTE_BLOCKS,
                                                     .moment_count = 1,
                                                     .moments = &moment[1]},
                                      amp = {.precision = MDOT_PRECISION_AMP, .moment_count = 1, .moments = &moment[2]},
                                      bf16 = {.precision = MDOT_PRECISION_BF16,
                                              .recompute = MDOT_RECOMPUTE_BLOCKS,
                                              .moment_count = 1,
                                              .moments = &moment[3]},
                                      selective = {.precision = MDOT_PRECISION_FP32,
                                                   .recompute = MDOT_RECOMPUTE_SELECTIVE,
                                                   .moment_count = 1,
                                                   .moments = &moment[4]},
                                      compiled = {.precision = MDOT_PRECISION_FP32,
                                                  .recompute = MDOT_RECOMPUTE_SELECTIVE,
                                                  .compiled = true,
                                                  .moment_count = 1,
                                                  .moments = &moment[5]},
                                      repeated = {.precision = MDOT_PRECISION_FP32,
                                                  .recompute = MDOT_RECOMPUTE_BLOCKS,
                                                  .compiled = true,
                                                  .moment_count = 1,
                                                  .moments = &moment[6]};
    const struct {
        mdot_recorded_memory records[3];
        mdot_precision precision;
        mdot_recompute recompute;
        double gradients; /* from the record; no scale changes it */
        uint32_t is_compiled;
        bool has_checkpoints; /* of the program */
    } cases[] = {{{fp32, fp32_blocks, amp}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, .125, 0, false},
                 {{amp, fp32_blocks, fp32}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, .125, 0, false},
                 {{amp, fp32_blocks, fp32}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_BLOCKS, .25, 0, false},
                 {{fp32_blocks, amp, bf16}, MDOT_PRECISION_AMP, MDOT_RECOMPUTE_BLOCKS, .375, 0, false},
                 {{amp, bf16, fp32}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_BLOCKS, .125, 0, false},
                 {{fp32, amp, fp32_blocks}, MDOT_PRECISION_BF16, MDOT_RECOMPUTE_NOTHING, .125, 0, false},
                 {{bf16, fp32_blocks, fp32}, MDOT_PRECISION_AMP, MDOT_RECOMPUTE_NOTHING, .125, 0, false},
                 {{fp32, selective, compiled}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, .75, 1, false},
                 {{fp32, compiled, amp}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, .75, 1, true},
                 {{fp32, compiled, amp}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, .125, 0, true},
                 {{compiled, selective, fp32}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_SELECTIVE, .625, 1, false},
                 {{compiled, selective, fp32}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_SELECTIVE, .625, 0, false},
                 {{compiled, selective, fp32}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, .125, 0, false},
                 {{fp32, fp32_blocks, selective}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, .625, 1, false},
                 {{compiled, fp32_blocks, fp32}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_BLOCKS, .25, 1, false},
                 {{compiled, fp32_blocks, repeated}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_BLOCKS, .875, 1, false},
                 {{compiled, repeated, fp32_blocks}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_BLOCKS, .25, 0, false},
                 {{repeated, selective, compiled}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_SELECTIVE, .625, 1, false},
                 {{repeated, selective, compiled}, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, .75, 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job *plain = network(cases[i].has_checkpoints ? 1 : -1), *job = NULL;
        const mdot_job_program p = {.struct_size = sizeof p,
                                    .precision = MDOT_PRECISION_PYTORCH,
                                    .attention = MDOT_ATTENTION_EAGER,
                                    .trained_bytes = 1300,
                                    .frozen_bytes = 900,
                                    .buffer_bytes = 50,
                                    .recorded_count = 3,
                                    .recorded = cases[i].records};
        mdot_error err = {0};
        if (mdot_job_with_program(plain, &p, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
        rt_resolved_configuration r = resolve(job, (mdot_configuration){.precision = cases[i].precision,
                                                                        .recompute = cases[i].recompute,
                                                                        .compiled = cases[i].is_compiled});
        mdot_peak_moment out[MDOT_PEAK_MOMENTS_MAX] = {0};
        assert_int_equal(rt_recorded_moments(job, &r, out), 1);
        if (out[0].gradients != cases[i].gradients) fail_msg("case %zu: %g", i, out[0].gradients);
        bool is_recorded = cases[i].gradients == .75 || (cases[i].gradients == .125 && cases[i].has_checkpoints);
        if (is_recorded) assert_float_equal(out[0].per_sample, moment[cases[i].is_compiled ? 5 : 0].per_sample, 1e-9);
        mdot_job_destroy(plain);
        mdot_job_destroy(job);
    }
}

static void recorded_case_is_used_as_it_is(void **state)
{
    mdot_job *job = with_program(MDOT_PRECISION_PYTORCH, MDOT_ATTENTION_EAGER), *plain = network(-1);
    mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
    rt_resolved_configuration r = resolve(job, (mdot_configuration){.precision = MDOT_PRECISION_PYTORCH});
    assert_int_equal(rt_recorded_moments(job, &r, got), 2);
    for (int i = 0; i < 2; i++) {
        assert_compare(got[i].per_sample, ==, moments[i].per_sample);
        assert_compare(got[i].per_step, ==, moments[i].per_step);
        assert_compare(got[i].gradients, ==, moments[i].gradients);
        assert_compare(got[i].weight_copies, ==, 0);
    }
    assert_int_equal(rt_recorded_moments(plain, &r, got), 0);
    mdot_job_destroy(plain);
    mdot_job_destroy(job);
}

/* Whatever the difference, in either direction; a small one leaves the interval as it is. */
static void a_recorded_peak_lies_within_the_interval(void **state)
{
    static const double ratios[] = {0.2, 0.9, 0.999, 1, 1.001, 1.07, 1.5, 8};
    mdot_job *plain = with_program(MDOT_PRECISION_PYTORCH, MDOT_ATTENTION_EAGER);
    rt_resolved_configuration r = resolve(plain, (mdot_configuration){.precision = MDOT_PRECISION_PYTORCH});
    rt_memory memory = rt_measure_memory(plain, &r);
    double peak = (double)rt_sum_memory(&memory), fixed = memory.weights + memory.optimizer;
    rt_memory_interval before = rt_memory_within(plain, &memory);
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        mdot_job_program p = MDOT_INIT(mdot_job_program);
        mdot_job *job = NULL;
        assert_int_equal(mdot_job_get_program(plain, &p), MDOT_OK);
        p.check = (mdot_job_check){.predicted_peak = 1e6, .recorded_peak = 1e6 * ratios[i]};
        assert_int_equal(mdot_job_with_program(plain, &p, &job, NULL), MDOT_OK);
        rt_memory_interval within = rt_memory_within(job, &memory);
        assert_true((double)within.lower_bytes <= fmax(peak * ratios[i], fixed));
        assert_true((double)within.upper_bytes + 1 >= peak * ratios[i]);
        if (fabs(ratios[i] - 1) < 0.01) assert_memory_equal(&within, &before, sizeof within);
        mdot_job_destroy(job);
    }
    mdot_job_destroy(plain);
}

/* On one GPU, the weight copies are the recorded ones, wherever the matmuls stand. */
static void copies_of_weights_are_those_of_the_record(void **state)
{
    static const uint32_t before[2] = {0, 1};
    static const mdot_peak_moment moment = {.per_sample = 1000, .weight_copies = 900};
    const mdot_recorded_memory recorded = {.precision = MDOT_PRECISION_AMP, .moment_count = 1, .moments = &moment};
    mdot_job_operator operators[3] = {make("Linear", 8, 100), make("Linear", 8, 200), make("Linear", 8, 300)};
    operators[1].block = 1; /* the others stand before and behind the blocks */
    for (int i = 0; i < 3; i++) {
        operators[i].traits.autocast = MDOT_AUTOCAST_HALF;
        operators[i].inputs = i > 0 ? &before[i - 1] : NULL;
        operators[i].input_count = i > 0;
    }
    mdot_job *plain = predict_make_job(operators, 3), *job = NULL;
    const mdot_job_program p = {
        .struct_size = sizeof p, .precision = MDOT_PRECISION_AMP, .recorded_count = 1, .recorded = &recorded};
    mdot_error err = {0};
    if (mdot_job_with_program(plain, &p, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
    rt_resolved_configuration r = resolve(job, (mdot_configuration){.precision = MDOT_PRECISION_AMP});
    assert_int_equal(rt_recorded_moments(job, &r, got), 1);
    assert_compare(got[0].weight_copies, ==, 900);
    mdot_job_destroy(plain);
    mdot_job_destroy(job);
}

static void other_cases_scale_with_the_analytic_estimates(void **state)
{
    mdot_job *job = with_program(MDOT_PRECISION_PYTORCH, MDOT_ATTENTION_EAGER);
    const rt_activation_table *table = &job->analysis->activations;
    double base = table->of[RT_ACTIVATION_FP32][MDOT_ATTENTION_EAGER][MDOT_RECOMPUTE_NOTHING].all;
    static const mdot_configuration cases[] = {{.precision = MDOT_PRECISION_BF16},
                                               {.precision = MDOT_PRECISION_AMP},
                                               {.attention = MDOT_ATTENTION_FLASH},
                                               {.compiled = 1, .attention = MDOT_ATTENTION_FLASH}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
        rt_resolved_configuration r = resolve(job, cases[i]);
        const rt_activation_case *which = &r.activation_case;
        double scale = table->of[which->type][which->attention][which->recompute].all / base;
        if (fabs(scale - 1) < 1e-3) fail_msg("case %zu: the estimates are equal", i);
        assert_int_equal(rt_recorded_moments(job, &r, got), 2);
        assert_within(got[0].per_sample, 1000 * scale, 1);
        assert_within(got[0].per_step, 10 * scale, 1);
        assert_compare(got[0].gradients, ==, .5);
    }
    mdot_job_destroy(job);
}

/* Tensor parallelism divides sharded operators' tensors, sequence parallelism the others, and context parallelism all.
 * Masks of dropout, which a record has and the analysis lacks, belong to the others. */
static void records_are_divided_over_gpus(void **state)
{
    static const uint32_t before[2] = {0, 1};
    static const double masks[] = {0, UNIT / 8.0, UNIT / 2.0, 3 * UNIT / 4.0};
    mdot_job_operator operators[3] = {make("LayerNormalization", 1, 32), make("Linear", 4, 256),
                                      make("Linear", 1, 256)};
    operators[0].setting[MDOT_SETTING_AXIS] = 1;
    for (int i = 1; i < 3; i++) {
        operators[i].setting[MDOT_SETTING_CHANNELS_IN] = operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = 16;
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
    }
    mdot_job *plain = predict_make_job(operators, 3), *job = NULL;
    const mdot_job_program p = {
        .struct_size = sizeof p, .precision = MDOT_PRECISION_PYTORCH, .recorded_count = 1, .recorded = &record};
    assert_int_equal(mdot_job_with_program(plain, &p, &job, NULL), MDOT_OK);
    static const struct {
        double tensor, replicated, sequence;
    } cases[] = {{1, 1, 1}, {2, 1, 1}, {4, 1, 1}, {2, 2, 1}, {1, 1, 4}, {2, 1, 4}, {4, 4, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_resolved_configuration r = resolve(job, (mdot_configuration){.precision = MDOT_PRECISION_PYTORCH});
        const rt_activations *a = rt_activations_of(&job->analysis->activations, &r.activation_case);
        assert_compare(a->all, ==, 11 * UNIT);
        assert_compare(a->whole, ==, 3 * UNIT); /* test_activation_memory.c follows the tensors */
        r.shard.tensor = cases[i].tensor;
        r.replicated = cases[i].replicated;
        r.sequence = cases[i].sequence;
        mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
        assert_int_equal(rt_recorded_moments(job, &r, got), 2);
        double want = 1000 / 11.0 * (3 / cases[i].replicated + 8 / cases[i].tensor) / cases[i].sequence;
        if (fabs(got[0].per_sample - want) > 1e-9) fail_msg("case %zu: %g, not %g", i, got[0].per_sample, want);
        for (size_t k = 0; k < sizeof masks / sizeof *masks; k++) {
            const mdot_peak_moment largest = {.per_sample = 11 * UNIT + masks[k]};
            const mdot_recorded_memory with_masks = {
                .precision = MDOT_PRECISION_FP32, .moment_count = 1, .moments = &largest};
            mdot_job_program masked = p;
            mdot_job *dropping = NULL;
            masked.recorded = &with_masks;
            assert_int_equal(mdot_job_with_program(plain, &masked, &dropping, NULL), MDOT_OK);
            assert_int_equal(rt_recorded_moments(dropping, &r, got), 1);
            want = ((3 * UNIT + masks[k]) / cases[i].replicated + 8 * UNIT / cases[i].tensor) / cases[i].sequence;
            assert_within(got[0].per_sample, want, 1e-9);
            mdot_job_destroy(dropping);
        }
    }
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

/* Compilers leave the checkpoints of a program as they are. */
static void compiled_program_keeps_its_checkpoints(void **state)
{
    for (int checkpointed = -1; checkpointed <= 1; checkpointed += 2) {
        mdot_job *job = network(checkpointed);
        rt_resolved_configuration r = resolve(job, (mdot_configuration){.compiled = 1});
        mdot_recompute by_compiler = checkpointed >= 0 ? MDOT_RECOMPUTE_NOTHING : MDOT_RECOMPUTE_SELECTIVE;
        assert_int_equal(r.activation_case.recompute, by_compiler);
        mdot_job_destroy(job);
    }
}

/* Of 1000 bytes per sample, 800 are as large as the logits, which only the stage with the head has. Two stages divide
 * the others, and the stage keeps two micro-batches, but the logits of one. */
static void one_stage_has_the_logits(void **state)
{
    static const mdot_peak_moment moment = {.per_sample = 1000, .logits = 800};
    const mdot_recorded_memory recorded = {.precision = MDOT_PRECISION_FP32, .moment_count = 1, .moments = &moment};
    const mdot_job_program p = {
        .struct_size = sizeof p, .precision = MDOT_PRECISION_PYTORCH, .recorded_count = 1, .recorded = &recorded};
    mdot_job *plain = network(-1), *job = NULL;
    mdot_error err = {0};
    if (mdot_job_with_program(plain, &p, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration r = resolve(job, (mdot_configuration){.precision = MDOT_PRECISION_PYTORCH});
    r.shard = (rt_shard){1, 1, {1, .5, 0}, 0};
    mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
    assert_int_equal(rt_recorded_moments(job, &r, got), 1);
    assert_compare(got[0].per_sample, ==, 100);
    assert_compare(got[0].logits, ==, 0);
    r.shard = (rt_shard){1, 1, {0, .5, 1}, 0};
    r.in_flight = 2;
    assert_int_equal(rt_recorded_moments(job, &r, got), 1);
    assert_compare(got[0].per_sample, ==, 100 + 800 / 2);
    assert_compare(got[0].logits, ==, 400);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

static void weights_have_the_programs_sizes(void **state)
{
    mdot_job *plain = network(-1), *half = with_program(MDOT_PRECISION_BF16, MDOT_ATTENTION_EAGER);
    assert_compare(rt_weight_bytes(plain, 4, 4, 1000), ==, 4000);
    assert_compare(rt_weight_bytes(half, 2, 2, 1000), ==, 1300 + 900 + 50);
    assert_compare(rt_weight_bytes(half, 2, 2, 500), ==, 650 + 450 + 50); /* a shard */
    /* Of the frozen 900 bytes, 800 are 400 floats, and the others are packed. */
    assert_compare(rt_weight_bytes(half, 4, 4, 1000), ==, 2 * (1300 + 800) + 100 + 50);
    assert_compare(rt_weight_bytes(half, 4, 2, 1000), ==, 2 * 1300 + 800 + 100 + 50);
    mdot_job_destroy(half);
    mdot_job_destroy(plain);
}

static double peak_with_buffers(double buffer_bytes, mdot_configuration c)
{
    mdot_job *source = with_program(MDOT_PRECISION_BF16, MDOT_ATTENTION_EAGER), *job = NULL;
    mdot_job_program p = MDOT_INIT(mdot_job_program);
    assert_int_equal(mdot_job_get_program(source, &p), MDOT_OK);
    p.buffer_bytes = buffer_bytes;
    assert_int_equal(mdot_job_with_program(source, &p, &job, NULL), MDOT_OK);
    rt_resolved_configuration r = resolve(job, c);
    rt_memory m = rt_measure_memory(job, &r);
    mdot_job_destroy(job);
    mdot_job_destroy(source);
    return m.weights + m.gradients + m.optimizer + m.activations;
}

static void every_worker_has_all_buffers(void **state)
{
    const mdot_configuration c = {.gpu_count = 4, .data_parallel = 4, .zero_stage = 3};
    assert_compare(peak_with_buffers(1e9 + 50, c), ==, peak_with_buffers(50, c) + 1e9);
}

static void checkpointed_operators_run_forward_again(void **state)
{
    mdot_job *plain = network(-1), *job = network(0);
    rt_resolved_configuration r = resolve(job, (mdot_configuration){0});
    rt_roofline before = rt_roofline_of(plain, &r), after = rt_roofline_of(job, &r);
    double ms[MDOT_PHASE_COUNT];
    rt_operator_roofline(plain, 0, &r, ms);
    assert_compare(after.forward_ms, ==, before.forward_ms);
    assert_compare(after.optimizer_ms, ==, before.optimizer_ms);
    assert_compare(fabs(after.backward_ms - before.backward_ms - ms[MDOT_PHASE_FORWARD]), <, 1e-9);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

/* A record may have gradients in a job without parameters, for example for parameters beside the graph. The GPU's share
 * is then 0 instead of 0 / 0. */
static void records_of_jobs_without_parameters_have_activations(void **state)
{
    const mdot_job_operator relu = make("Relu", 8, 0);
    mdot_job *plain = predict_make_job(&relu, 1), *job = NULL;
    const mdot_job_program p = {
        .struct_size = sizeof p, .precision = MDOT_PRECISION_PYTORCH, .recorded_count = 1, .recorded = &record};
    mdot_error err = {0};
    if (mdot_job_with_program(plain, &p, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration r = resolve(job, (mdot_configuration){.gpu_count = 2, .zero_stage = 3});
    rt_memory m = rt_measure_memory(job, &r);
    assert_compare(m.weights, ==, 0);
    assert_compare(m.gradients, ==, 0);
    assert_compare(m.activations, ==, 4 * 1000 + 10);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

/* Autocast copies the matmul's 600 weights. A record of fp32 lacks the copies, and so does one of autocast without
 * matmuls; other types need none. */
static void autocast_adds_copies_that_a_record_lacks(void **state)
{
    mdot_job *job = with_program(MDOT_PRECISION_PYTORCH, MDOT_ATTENTION_EAGER);
    static const mdot_precision precisions[] = {MDOT_PRECISION_AMP, MDOT_PRECISION_BF16, MDOT_PRECISION_FP32};
    for (size_t i = 0; i < 3; i++) {
        mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
        rt_resolved_configuration r = resolve(job, (mdot_configuration){.precision = precisions[i]});
        assert_int_equal(rt_recorded_moments(job, &r, got), 2);
        assert_compare(got[0].weight_copies, ==, i == 0 ? 2 * 600 : 0);
        assert_compare(got[1].weight_copies, ==, got[0].weight_copies);
        r.shard.of[RT_PIPELINE_BLOCKS] = 0.5; /* a job without blocks stands for one block */
        assert_int_equal(rt_recorded_moments(job, &r, got), 2);
        assert_compare(got[0].weight_copies, ==, i == 0 ? 600 : 0);
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(choices_left_open_follow_the_program),
        cmocka_unit_test(contradicting_options_win_and_are_noted),
        cmocka_unit_test(the_nearest_of_several_records_is_used),
        cmocka_unit_test(recorded_case_is_used_as_it_is),
        cmocka_unit_test(a_recorded_peak_lies_within_the_interval),
        cmocka_unit_test(copies_of_weights_are_those_of_the_record),
        cmocka_unit_test(other_cases_scale_with_the_analytic_estimates),
        cmocka_unit_test(records_are_divided_over_gpus),
        cmocka_unit_test(compiled_program_keeps_its_checkpoints),
        cmocka_unit_test(one_stage_has_the_logits),
        cmocka_unit_test(weights_have_the_programs_sizes),
        cmocka_unit_test(every_worker_has_all_buffers),
        cmocka_unit_test(checkpointed_operators_run_forward_again),
        cmocka_unit_test(records_of_jobs_without_parameters_have_activations),
        cmocka_unit_test(autocast_adds_copies_that_a_record_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
