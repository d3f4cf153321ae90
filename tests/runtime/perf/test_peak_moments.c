/* test_peak_moments.c — the moments at which activations and gradients together may be largest. */
#include "mdot/mdotjob.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { UNIT = 4096, LAYERS = 40 };

/* A matmul chain: each has this many result units and parameter units. */
static mdot_job *chain(size_t count, const double *units, const double *parameters)
{
    static uint32_t before[LAYERS];
    mdot_job_operator operators[LAYERS];
    for (size_t i = 0; i < count; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i],
                                           .type = "Linear",
                                           .known = true,
                                           .parameters = parameters[i],
                                           .inputs = &before[i],
                                           .input_count = i > 0};
        before[i] = i > 0 ? (uint32_t)i - 1 : 0;
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, UNIT, units[i] * UNIT};
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
    }
    return predict_make_job(operators, count);
}

static size_t moments_of(const mdot_job *job, mdot_configuration c, mdot_peak_moment *out_moments)
{
    rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
    configuration.c.batch = 1;
    rt_resolved_configuration resolved;
    assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
    rt_resolve(job, &configuration, &resolved);
    return rt_peak_moments(job, &resolved, out_moments);
}

/* At the backward pass's start, results of 1 and 4 units and the samples (1) are saved, and the last result (2) has a
 * gradient. At the end, the samples and two gradients (4 and 1) are alive besides the first result's successor. */
static void moments_have_fewer_activations_and_more_gradients(void **state)
{
    (void)state;
    const double units[3] = {1, 4, 2}, parameters[3] = {100, 200, 700};
    mdot_job *job = chain(3, units, parameters);
    mdot_peak_moment m[MDOT_PEAK_MOMENTS_MAX];
    size_t count = moments_of(job, (mdot_configuration){0}, m);
    assert_in_range(count, 2, MDOT_PEAK_MOMENTS_MAX);
    assert_compare(m[0].per_sample, ==, job->analysis->activations.of[0][0][0].all);
    for (size_t i = 1; i < count; i++) {
        assert_compare(m[i].per_sample, <, m[i - 1].per_sample);
        assert_compare(m[i].gradients, >, m[i - 1].gradients);
    }
    assert_compare(m[0].gradients, ==,
                   0.7); /* the gradient of the last matmul's operand is alive besides all results */
    assert_compare(m[count - 1].gradients, ==, 1);
    mdot_job_destroy(job);
}

static void many_layers_are_cut_to_the_most_important_moments(void **state)
{
    (void)state;
    double units[LAYERS], parameters[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        units[i] = LAYERS - i; /* the backward pass frees little at first, so that every moment is on the hull */
        parameters[i] = 1000;
    }
    mdot_job *job = chain(LAYERS, units, parameters);
    mdot_peak_moment m[MDOT_PEAK_MOMENTS_MAX];
    size_t count = moments_of(job, (mdot_configuration){0}, m);
    assert_int_equal(count, RT_ACTIVATION_MOMENTS);
    assert_compare(m[0].per_sample, ==, job->analysis->activations.of[0][0][0].all);
    assert_compare(m[count - 1].gradients, >, 0.999);
    mdot_job_destroy(job);
}

/* All moments are kept while there is room for them. */
static void jobs_of_few_layers_keep_all_moments(void **state)
{
    (void)state;
    double units[LAYERS], parameters[LAYERS];
    for (size_t layers = 3; layers <= 12; layers++) {
        for (size_t i = 0; i < layers; i++) {
            units[i] = (double)(layers - i);
            parameters[i] = 1000;
        }
        mdot_job *job = chain(layers, units, parameters);
        mdot_peak_moment m[MDOT_PEAK_MOMENTS_MAX];
        size_t count = moments_of(job, (mdot_configuration){0}, m);
        /* one for each matmul but the last, whose moment has less of both than the one before it */
        size_t wanted = layers - 1 < RT_ACTIVATION_MOMENTS ? layers - 1 : RT_ACTIVATION_MOMENTS;
        if (count != wanted) fail_msg("%zu moments of %zu layers", count, layers);
        for (size_t i = 1; i < count; i++) {
            assert_compare(m[i].per_sample, <, m[i - 1].per_sample);
            assert_compare(m[i].gradients, >, m[i - 1].gradients);
        }
        mdot_job_destroy(job);
    }
}

/* Tensor parallelism divides the results of matmuls, and sequence parallelism the other tensors. */
static void tensors_of_a_moment_are_whole_or_divided(void **state)
{
    (void)state;
    static const uint32_t before[3] = {0, 1, 2};
    mdot_job_operator operators[4] = {{.type = "LayerNormalization", .parameters = 24},
                                      {.type = "Linear", .parameters = 600},
                                      {.type = "Relu"},
                                      {.type = "Linear", .parameters = 400}};
    for (int i = 0; i < 4; i++) {
        mdot_job_operator *op = &operators[i];
        op->struct_size = sizeof *op;
        op->known = true;
        op->setting[MDOT_SETTING_INPUTS] = 1;
        op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, UNIT, 8 * UNIT};
        op->inputs = i > 0 ? &before[i - 1] : NULL;
        op->input_count = i > 0;
        if (i % 2 == 1) op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = 8;
    }
    operators[0].setting[MDOT_SETTING_AXIS] = 1;
    mdot_job *job = predict_make_job(operators, 4);
    const rt_activations *a = &job->analysis->activations.of[0][0][0];
    mdot_peak_moment m[MDOT_PEAK_MOMENTS_MAX];
    assert_compare(a->moments[0].whole, >, 0);
    assert_compare(a->moments[0].whole, <, a->moments[0].all);
    moments_of(job, (mdot_configuration){.gpu_count = 4, .tensor_parallel = 4}, m);
    assert_compare(m[0].per_sample, ==, a->moments[0].whole + (a->moments[0].all - a->moments[0].whole) / 4);
    moments_of(job, (mdot_configuration){.gpu_count = 4, .tensor_parallel = 4, .sequence_parallel = 1}, m);
    assert_compare(m[0].per_sample, ==, a->moments[0].all / 4);
    mdot_job_destroy(job);
}

static void autocast_copies_the_weights_of_matmuls(void **state)
{
    (void)state;
    const double units[2] = {1, 1}, parameters[2] = {100, 200};
    mdot_job *job = chain(2, units, parameters);
    mdot_peak_moment m[MDOT_PEAK_MOMENTS_MAX];
    moments_of(job, (mdot_configuration){.precision = MDOT_PRECISION_AMP_BF16}, m);
    assert_compare(m[0].weight_copies, ==, 600);
    moments_of(job, (mdot_configuration){.precision = MDOT_PRECISION_BF16}, m);
    assert_compare(m[0].weight_copies, ==, 0);
    mdot_job_destroy(job);
}

/* Two-matmul blocks with results of `wide` and 1 unit, behind a matmul of `first` units. */
static mdot_job *blocks_of_two(uint32_t blocks, double first, double wide)
{
    mdot_job_operator operators[LAYERS];
    uint32_t before[LAYERS];
    size_t count = 1 + 2 * (size_t)blocks;
    for (size_t i = 0; i < count; i++) {
        before[i] = i > 0 ? (uint32_t)i - 1 : 0;
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i],
                                           .type = "Linear",
                                           .known = true,
                                           .parameters = 10,
                                           .block = (uint32_t)(i + 1) / 2,
                                           .inputs = &before[i],
                                           .input_count = i > 0};
        double units = i == 0 ? 1 : i == 2 ? first : i % 2 == 1 ? wide : 1;
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, UNIT, units * UNIT};
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
    }
    return predict_make_job(operators, count);
}

/* Offloading three blocks of 4 and 1 units: the peak is 21 units, and 13 with recomputed blocks (both in
 * test_activation_memory.c). One block's input of 1 unit leaves, and half of the difference stays. Half precision has
 * half of each, but fp32 samples beside their copies. A one-block job keeps all. If the first block's result has most
 * of the memory, a block's part of the peak stays. */
static void offloading_keeps_a_block_and_the_next(void **state)
{
    (void)state;
    static const struct {
        uint32_t blocks;
        double first, wide;
        mdot_precision precision;
        mdot_recompute recompute;
        double peak, offloaded; /* in units; 0: of the activations */
    } cases[] = {
        {3, 1, 4, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, 21, 21 - (13 - 1 + (21 - 13) / 2.0)},
        {3, 1, 4, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_BLOCKS, 13, 1},
        {3, 1, 4, MDOT_PRECISION_AMP, MDOT_RECOMPUTE_NOTHING, 11.5, 11.5 - (7.5 - .5 + (11.5 - 7.5) / 2)},
        {3, 1, 4, MDOT_PRECISION_BF16, MDOT_RECOMPUTE_BLOCKS, 7, .5},
        {1, 1, 4, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_NOTHING, 11, 0},
        {4, 40, 1, MDOT_PRECISION_FP32, MDOT_RECOMPUTE_BLOCKS, 0, .75},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job *job = blocks_of_two(cases[i].blocks, cases[i].first, cases[i].wide);
        rt_configuration configuration = {.gpu = {.pcie_gbps = 31.5},
                                          .c = {.batch = 1,
                                                .offload_activations = 1,
                                                .precision = cases[i].precision,
                                                .recompute = cases[i].recompute}};
        rt_resolved_configuration resolved;
        assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
        rt_resolve(job, &configuration, &resolved);
        double all = rt_activations_of(&job->analysis->activations, &resolved.activation_case)->all / UNIT;
        double got = rt_offloaded_bytes(job, &resolved) / UNIT, peak = cases[i].peak;
        double want = peak > 0 ? cases[i].offloaded : all * cases[i].offloaded;
        if (peak > 0) assert_float_equal(all, peak, 0);
        assert_float_equal(got, want, 1e-9);
        mdot_peak_moment m[MDOT_PEAK_MOMENTS_MAX];
        assert_in_range(rt_peak_moments(job, &resolved, m), 1, MDOT_PEAK_MOMENTS_MAX);
        assert_float_equal(m[0].per_sample / UNIT, all - want, 1e-9);
        mdot_job_destroy(job);
    }
}

/* Recorded training moments replace the analytic ones. Offloading keeps 16 of 21 units (see above). */
static void records_replace_moments_of_training(void **state)
{
    (void)state;
    static const mdot_peak_moment moments[] = {{.per_sample = 2100, .gradients = .5},
                                               {.per_sample = 420, .gradients = 1}};
    static const mdot_recorded_memory record = {
        .precision = MDOT_PRECISION_FP32, .moment_count = 2, .moments = moments};
    mdot_job *plain = blocks_of_two(3, 1, 4), *job = NULL;
    const mdot_job_program p = {
        .struct_size = sizeof p, .precision = MDOT_PRECISION_PYTORCH, .recorded_count = 1, .recorded = &record};
    assert_int_equal(mdot_job_with_program(plain, &p, &job, NULL), MDOT_OK);
    mdot_peak_moment m[MDOT_PEAK_MOMENTS_MAX];
    assert_int_equal(moments_of(job, (mdot_configuration){0}, m), 2);
    assert_compare(m[0].per_sample, ==, 2100);
    assert_compare(m[0].gradients, ==, .5);
    assert_compare(m[1].per_sample, ==, 420);
    assert_int_equal(moments_of(job, (mdot_configuration){.offload_activations = 1}, m), 2);
    assert_float_equal(m[0].per_sample, 1600, 1e-9);
    assert_float_equal(m[1].per_sample, 320, 1e-9);
    assert_int_equal(moments_of(job, (mdot_configuration){.mode = MDOT_MODE_INFERENCE}, m), 1);
    assert_compare(m[0].per_sample, ==, job->analysis->activations.inference[0][MDOT_ATTENTION_FLASH].all);
    mdot_job_destroy(job);
    mdot_job_destroy(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_have_fewer_activations_and_more_gradients),
        cmocka_unit_test(many_layers_are_cut_to_the_most_important_moments),
        cmocka_unit_test(jobs_of_few_layers_keep_all_moments),
        cmocka_unit_test(tensors_of_a_moment_are_whole_or_divided),
        cmocka_unit_test(autocast_copies_the_weights_of_matmuls),
        cmocka_unit_test(offloading_keeps_a_block_and_the_next),
        cmocka_unit_test(records_replace_moments_of_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
