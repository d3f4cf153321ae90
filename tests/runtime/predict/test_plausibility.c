/* test_plausibility.c — runtime/predict/plausibility.c: plausibility checks on a prediction, and the warning table. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/predict.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const rt_configuration training = {.c = {.mode = MDOT_MODE_TRAIN}, .micro_batch = 1};
static const rt_configuration inference = {.c = {.mode = MDOT_MODE_INFERENCE}, .micro_batch = 1};

/* 10 TFLOP/s in fp32, 20 and 40 in the other precisions, 1 TB/s. */
static const mdot_gpu gpu_spec = {.struct_size = sizeof(mdot_gpu),
                                  .compute_capability = 8.0,
                                  .memory_gbps = 1000,
                                  .fp32_tflops = 10,
                                  .tf32_tflops = 20,
                                  .fp16_tflops = 40,
                                  .memory_gib = 16};

/* A matmul and a sum: 3e9 and 1e9 FLOPs, 4e6 and 6e6 bytes a sample, in all phases, and a million parameters. */
static mdot_job *two_operators(uint32_t notes, double parameters)
{
    mdot_job_operator operators[2] = {{.struct_size = sizeof operators[0], .type = "Linear", .known = true},
                                      {.struct_size = sizeof operators[0], .type = "Add", .known = true}};
    operators[0].traits = (mdot_operator_traits){.number = 109, .autocast = MDOT_AUTOCAST_HALF};
    operators[1].traits.number = 50;
    operators[0].parameters = parameters;
    operators[0].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e9, 1e6, 1e6};
    operators[0].per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){2e9, 1e6, 1e6};
    operators[1].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e9, 3e6, 3e6};
    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = operators, .operator_count = 2, .notes = notes};
    mdot_job *job = NULL;
    mdot_error err;
    if (mdot_job_create(&description, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static rt_roofline_terms terms_of(const mdot_job *job, mdot_precision precision, int64_t batch)
{
    rt_configuration configuration = {.c = {.batch = batch, .precision = precision}, .gpu = gpu_spec};
    mdot_error err;
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    return rt_step_roofline_terms(job, &resolved);
}

static mdot_prediction checked(const mdot_job *job, mdot_precision precision, int64_t batch, double step_ms)
{
    rt_roofline_terms terms = terms_of(job, precision, batch);
    mdot_prediction p = {.step_ms = step_ms, .gpu_ms = step_ms};
    rt_fill_plausibility(job, &terms, &training, 140, &p);
    return p;
}

static void assert_near(double got, double want)
{
    if (fabs(got - want) > 1e-9 * fabs(want)) fail_msg("%.12g instead of %.12g", got, want);
}

static void inference_has_the_flops_of_its_forward_pass(void **state)
{
    (void)state;
    mdot_job *job = two_operators(0, 1e6);
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    double forward = 0;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
        forward += op.per_sample[MDOT_PHASE_FORWARD].flops;
    }
    rt_roofline_terms terms = terms_of(job, MDOT_PRECISION_FP32, 10);
    mdot_prediction p = {.step_ms = 20, .gpu_ms = 20};
    rt_fill_plausibility(job, &terms, &inference, 140, &p);
    assert_compare(forward, >, 0);
    assert_compare(forward, <, checked(job, MDOT_PRECISION_FP32, 10, 20).flops_per_sample);
    assert_near(p.flops_per_sample, forward);
    mdot_job_destroy(job);
}

static void utilisation_is_relative_to_the_gpus_peaks(void **state)
{
    (void)state;
    mdot_job *job = two_operators(0, 1e6);
    /* Ten samples: 30 matmul GFLOP, 10 sum GFLOP; 100 MB for operands and 32 MB for SGD's update. */
    mdot_prediction p = checked(job, MDOT_PRECISION_FP32, 10, 20);
    assert_near(p.parameters, 1e6);
    assert_near(p.flops_per_sample, 4e9);
    assert_near(p.compute_share, 4.0 / 20);
    assert_near(p.memory_share, 0.132 / 20);
    assert_near(checked(job, MDOT_PRECISION_TF32, 10, 20).compute_share, 2.5 / 20);
    p = checked(job, MDOT_PRECISION_AMP, 10, 20);
    assert_near(p.compute_share, 1.75 / 20);
    assert_near(p.memory_share, (0.05 + 0.032 + 0.006) / 20); /* half the bytes, the update, and parameters in fp16 */
    mdot_job_destroy(job);
}

static void steps_faster_than_the_gpus_peak_are_implausible(void **state)
{
    (void)state;
    mdot_job *job = two_operators(0, 1e6);
    double least_ms = 4;
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, least_ms / 0.84).warnings, 0);
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, least_ms / 0.86).warnings, MDOT_WARN_IMPLAUSIBLE);
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, least_ms / 0.011).warnings, 0);
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, least_ms / 0.009).warnings, MDOT_WARN_IMPLAUSIBLE);
    mdot_job_destroy(job);
}

static void implausible_steps_name_the_bound_that_they_break(void **state)
{
    (void)state;
    mdot_job *job = two_operators(0, 1e6);
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, 20).implausible, 0);
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, 4).implausible, MDOT_IMPLAUSIBLE_TOO_FAST_FOR_COMPUTE);
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, 4e4).implausible, MDOT_IMPLAUSIBLE_TOO_SLOW);
    mdot_job_destroy(job);
    mdot_job_operator copy = {.struct_size = sizeof copy, .type = "Relu", .known = true, .parameters = 1};
    copy.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1, 1e9, 1e9};
    const mdot_job_description d = {.struct_size = sizeof d, .operators = &copy, .operator_count = 1};
    mdot_error err;
    if (mdot_job_create(&d, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_prediction p = checked(job, MDOT_PRECISION_FP32, 10, 0.001);
    assert_int_equal(p.implausible, MDOT_IMPLAUSIBLE_TOO_FAST_FOR_MEMORY);
    assert_string_equal(mdot_implausible_name(p.implausible), "too-fast-for-memory");
    assert_non_null(strstr(mdot_implausible_text(p.implausible), "too fast"));
    assert_non_null(strstr(mdot_implausible_text(MDOT_IMPLAUSIBLE_TOO_SLOW), "too slow"));
    mdot_job_destroy(job);
}

/* The sequences are long. With a causal mask, fused attention may skip half the counted scores. */
static void skipped_scores_of_a_causal_mask_are_plausible(void **state)
{
    (void)state;
    mdot_job_operator operator= {.struct_size = sizeof operator, .type = "Attention", .known = true, .parameters = 1};
    operator.setting[MDOT_SETTING_HEADS] = 8;
    operator.setting[MDOT_SETTING_HEAD_SIZE] = 64;
    operator.setting[MDOT_SETTING_QUERIES] = operator.setting[MDOT_SETTING_KEYS] = 4096;
    operator.traits =(mdot_operator_traits){.number = 110, .autocast = MDOT_AUTOCAST_HALF};
    operator.per_sample[MDOT_PHASE_FORWARD] =(mdot_load){8. * 4096 * 4096 * (4 * 64 + 5), 1e6, 1e6};
    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = &operator, .operator_count = 1 };
    mdot_job *job = NULL;
    mdot_error err;
    if (mdot_job_create(&description, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    double least_ms = terms_of(job, MDOT_PRECISION_FP32, 10).compute_ms;
    mdot_prediction p = checked(job, MDOT_PRECISION_FP32, 10, least_ms / 1.1);
    assert_near(p.compute_share, 1.1);
    assert_int_equal(p.warnings & MDOT_WARN_IMPLAUSIBLE, 0);
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, least_ms / 1.75).warnings & MDOT_WARN_IMPLAUSIBLE,
                     MDOT_WARN_IMPLAUSIBLE);
    mdot_job_destroy(job);
}

/* Two operators whose kernels take up to 0.2 ms to launch. */
static void launch_bound_steps_are_not_too_long(void **state)
{
    (void)state;
    mdot_job *job = predict_job(2, 2);
    mdot_prediction p = checked(job, MDOT_PRECISION_FP32, 1, 0.19);
    assert_compare(p.compute_share, <, 0.01);
    assert_compare(p.memory_share, <, 0.01);
    assert_int_equal(p.warnings & MDOT_WARN_IMPLAUSIBLE, 0);
    assert_int_equal(checked(job, MDOT_PRECISION_FP32, 1, 0.21).warnings & MDOT_WARN_IMPLAUSIBLE,
                     MDOT_WARN_IMPLAUSIBLE);
    mdot_job_destroy(job);
}

static void notes_of_the_job_reader_become_warnings(void **state)
{
    (void)state;
    static const struct {
        uint32_t notes;
        double parameters;
        uint32_t warnings;
    } rows[] = {{0, 1e6, 0},
                {0, 0, MDOT_WARN_NO_PARAMETERS},
                {MDOT_JOB_FOLDED, 1e6, MDOT_WARN_FOLDED},
                {MDOT_JOB_MAYBE_FOLDED, 1e6, MDOT_WARN_MAYBE_FOLDED}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mdot_job *job = two_operators(rows[i].notes, rows[i].parameters);
        assert_int_equal(checked(job, MDOT_PRECISION_FP32, 10, 10).warnings, rows[i].warnings);
        mdot_job_destroy(job);
    }
}

static void flops_of_unknown_types_count(void **state)
{
    (void)state;
    mdot_job *job = two_operators(0, 1e6);
    rt_roofline_terms terms = terms_of(job, MDOT_PRECISION_FP32, 1);
    mdot_prediction p = {.step_ms = 1, .gpu_ms = 1};
    rt_fill_plausibility(job, &terms, &training, 140, &p);
    assert_compare(p.unknown_share, ==, 0);
    rt_fill_plausibility(job, &terms, &training, 60, &p); /* a predictor trained before the type Linear existed */
    const double *cost = job->analysis->op_costs.cost;
    assert_near(p.unknown_share, cost[0] / (cost[0] + cost[1]));
    mdot_job_destroy(job);
    mdot_job_operator operators[2] = {predict_operator(0), predict_operator(0)};
    operators[1].type = "Loop";
    operators[1].known = false;
    job = predict_make_job(operators, 2);
    rt_fill_plausibility(job, &terms, &training, 140, &p);
    assert_near(p.unknown_share, 0.5);
    mdot_job_destroy(job);
}

static void every_warning_has_a_name_and_a_text(void **state)
{
    (void)state;
    assert_string_equal(mdot_warning_name(MDOT_WARN_UNKNOWN_OPERATOR), "unknown-operators");
    assert_string_equal(mdot_warning_name(MDOT_WARN_OUTSIDE_TRAINING), "outside-training");
    assert_string_equal(mdot_warning_name(MDOT_WARN_SHORTENED), "shortened");
    assert_string_equal(mdot_warning_name(MDOT_WARN_FALLBACK), "fallback");
    assert_string_equal(mdot_warning_name(MDOT_WARN_ANALYTIC_ESTIMATE), "analytic-estimate");
    assert_string_equal(mdot_warning_name(MDOT_WARN_IMPLAUSIBLE), "implausible");
    assert_string_equal(mdot_warning_name(MDOT_WARN_NO_PARAMETERS), "no-parameters");
    assert_string_equal(mdot_warning_name(MDOT_WARN_FOLDED), "folded");
    assert_string_equal(mdot_warning_name(MDOT_WARN_MAYBE_FOLDED), "maybe-folded");
    assert_string_equal(mdot_warning_name(MDOT_WARN_BATCH_BELOW_DATA), "batch-below-data");
    assert_string_equal(mdot_warning_name(MDOT_WARN_BATCH_ABOVE_DATA), "batch-above-data");
    assert_string_equal(mdot_warning_name(MDOT_WARN_OPERATORS_BEYOND_DATA), "operators-beyond-data");
    assert_string_equal(mdot_warning_name(MDOT_WARN_GPU_NOT_MEASURED), "gpu-not-measured");
    assert_string_equal(mdot_warning_name(MDOT_WARN_PRECISION_NOT_MEASURED), "precision-not-measured");
    assert_string_equal(mdot_warning_name(MDOT_WARN_SOFTWARE_NOT_MEASURED), "software-not-measured");
    assert_string_equal(mdot_warning_name(MDOT_WARN_TYPES_NOT_MEASURED), "types-not-measured");
    assert_string_equal(mdot_warning_name(MDOT_WARN_OPTIMIZER_OR_GPUS_NOT_MEASURED), "optimizer-or-gpus-not-measured");
    assert_string_equal(mdot_warning_name(MDOT_WARN_DIFFERS_FROM_PROGRAM), "differs-from-program");
    int count = 0;
    while (count < 32 && mdot_warning_name(1u << count) != NULL) {
        assert_non_null(mdot_warning_text(1u << count));
        count++;
    }
#define ONE(id, bit, name, text) +1
    assert_int_equal(count, 0 MDOT_WARNING_MAP(ONE)); /* the bits have no gap */
#undef ONE
    for (; count < 32; count++) assert_null(mdot_warning_name(1u << count));
    assert_null(mdot_warning_text(0));
    assert_null(mdot_warning_name(3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inference_has_the_flops_of_its_forward_pass),
        cmocka_unit_test(utilisation_is_relative_to_the_gpus_peaks),
        cmocka_unit_test(steps_faster_than_the_gpus_peak_are_implausible),
        cmocka_unit_test(implausible_steps_name_the_bound_that_they_break),
        cmocka_unit_test(skipped_scores_of_a_causal_mask_are_plausible),
        cmocka_unit_test(launch_bound_steps_are_not_too_long),
        cmocka_unit_test(notes_of_the_job_reader_become_warnings),
        cmocka_unit_test(flops_of_unknown_types_count),
        cmocka_unit_test(every_warning_has_a_name_and_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
