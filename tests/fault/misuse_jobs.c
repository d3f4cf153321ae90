/* misuse_jobs.c — wrong calls of functions with jobs, for test_misuse. */
#include "tests/fault/misuse.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

static void job_create(void)
{
    mdot_job *none;
    mdot_job_operator op = predict_operator(0);
    mdot_job_description d = MDOT_INIT(mdot_job_description);
    d.operators = &op;
    d.operator_count = 1;
    d.batch = 1;
    EXPECT_REFUSAL(mdot_job_create(NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_create(&d, NULL, &misuse_err));
    d.operators = NULL;
    EXPECT_REFUSAL(mdot_job_create(&d, &none, &misuse_err));
    d.operators = &op;
    static const size_t counts[] = {SIZE_MAX, SIZE_MAX / sizeof(mdot_job_operator) + 2, (size_t)1 << 32};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        d.operator_count = counts[i];
        assert_int_not_equal(mdot_job_create(&d, &none, &misuse_err), MDOT_OK);
    }
    d.operator_count = 1;
    op.type = NULL;
    EXPECT_REFUSAL(mdot_job_create(&d, &none, &misuse_err));
    op = predict_operator(0);
    op.input_count = 1;
    op.inputs = NULL;
    EXPECT_REFUSAL(mdot_job_create(&d, &none, &misuse_err));
    op.input_count = SIZE_MAX;
    op.inputs = (const uint32_t[]){0};
    EXPECT_REFUSAL(mdot_job_create(&d, &none, &misuse_err));
}

static void job_files(void)
{
    mdot_job *none;
    EXPECT_REFUSAL(mdot_job_load(NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_load("x", NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_job_parse(NULL, 100, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_parse(NULL, 0, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_parse("x", 1, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_job_save(NULL, "x", &misuse_err));
    EXPECT_REFUSAL(mdot_job_save(misuse_job, NULL, &misuse_err));
}

static void job_accessors(void)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    INVALID(mdot_job_get_info(NULL, &info));
    INVALID(mdot_job_get_info(misuse_job, NULL));
    INVALID(mdot_job_get_operator(NULL, 0, &op));
    INVALID(mdot_job_get_operator(misuse_job, 0, NULL));
    BEYOND(mdot_job_get_operator(misuse_job, 5, &op));
    BEYOND(mdot_job_get_operator(misuse_job, SIZE_MAX, &op));
    assert_compare(mdot_optimizer_load((mdot_optimizer)-1, 1).flops, ==, 0);
    assert_compare(mdot_optimizer_load((mdot_optimizer)INT_MAX, NAN).flops, ==, 0);
}

static void job_program(void)
{
    mdot_job *none;
    mdot_job_program p = MDOT_INIT(mdot_job_program);
    mdot_peak_moment moment = {.per_sample = -1};
    mdot_recorded_memory record = {.moments = &moment, .moment_count = 1};
    p.precision = MDOT_PRECISION_PYTORCH;
    EXPECT_REFUSAL(mdot_job_with_program(NULL, &p, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_with_program(misuse_job, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_with_program(misuse_job, &p, NULL, &misuse_err));
    p.recorded_count = SIZE_MAX;
    EXPECT_REFUSAL(mdot_job_with_program(misuse_job, &p, &none, &misuse_err));
    p.recorded_count = 1;
    EXPECT_REFUSAL(mdot_job_with_program(misuse_job, &p, &none, &misuse_err));
    p.recorded = &record;
    EXPECT_REFUSAL(mdot_job_with_program(misuse_job, &p, &none, &misuse_err));
    INVALID(mdot_job_get_program(NULL, &p));
    INVALID(mdot_job_get_program(misuse_job, NULL));
}

static void job_lengths(void)
{
    mdot_job *none;
    const mdot_job *three[3] = {misuse_job, misuse_job, misuse_job}, *missing[3] = {misuse_job, NULL, misuse_job};
    const int64_t lengths[3] = {1, 2, 3}, equal[3] = {1, 1, 3}, zero[3] = {0, 2, 3};
    EXPECT_REFUSAL(mdot_job_of_lengths(NULL, lengths, "n", &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_of_lengths(missing, lengths, "n", &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_of_lengths(three, NULL, "n", &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_of_lengths(three, equal, "n", &none, &misuse_err));
    BEYOND(mdot_job_of_lengths(three, zero, "n", &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_of_lengths(three, lengths, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_of_lengths(three, lengths, "", &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_of_lengths(three, lengths, "n", NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_job_with_length(NULL, 1, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_with_length(misuse_job, 1, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_with_length(misuse_job, 1, NULL, &misuse_err));
}

static void operators_combine(void)
{
    mdot_job_operator op = predict_operator(0), other = predict_operator(0);
    EXPECT_REFUSAL(mdot_operators_combine(NULL, 1, &other, 2, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_operators_combine(&op, 1, NULL, 2, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_operators_combine(&op, 0, &other, 2, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_operators_combine(&op, 2, &other, 2, 1, &misuse_err));
    other.type = "Another";
    EXPECT_REFUSAL(mdot_operators_combine(&op, 1, &other, 2, 1, &misuse_err));
    other.type = NULL;
    EXPECT_REFUSAL(mdot_operators_combine(&op, 1, &other, 2, 1, &misuse_err));
}

static void job_freeze(void)
{
    mdot_job *none;
    mdot_job_operator op = predict_operator(0);
    op.module = "encoder";
    mdot_job *named = predict_make_job(&op, 1);
    mdot_job_freezing f = MDOT_INIT(mdot_job_freezing);
    f.frozen = (const char *const[]){"encoder"};
    f.frozen_count = 1;
    EXPECT_REFUSAL(mdot_job_freeze(NULL, &f, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_freeze(named, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_freeze(named, &f, NULL, &misuse_err));
    f.frozen = NULL;
    EXPECT_REFUSAL(mdot_job_freeze(named, &f, &none, &misuse_err));
    f.frozen = (const char *const[]){NULL};
    EXPECT_REFUSAL(mdot_job_freeze(named, &f, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_operators_freeze(NULL, &op, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_operators_freeze(&f, &op, 1, &misuse_err));
    f.frozen = (const char *const[]){"encoder"};
    EXPECT_REFUSAL(mdot_operators_freeze(&f, NULL, 1, &misuse_err));
    op.inputs = (const uint32_t[]){0};
    op.input_count = 1;
    EXPECT_REFUSAL(mdot_operators_freeze(&f, &op, 1, &misuse_err));
    op.inputs = NULL;
    EXPECT_REFUSAL(mdot_operators_freeze(&f, &op, 1, &misuse_err));
    mdot_job_destroy(named);
}

static void gpus(void)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_non_null(mdot_gpu_names());
    EXPECT_REFUSAL(mdot_gpu_find(NULL, &gpu, &misuse_err));
    EXPECT_REFUSAL(mdot_gpu_find(mdot_gpu_names()[0], NULL, &misuse_err));
}

/* ---- Predictions ------------------------------------------------------------------------------------------------- */

static void predict(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    const mdot_job *jobs[] = {misuse_job, NULL};
    EXPECT_REFUSAL(mdot_predict(NULL, misuse_job, &c, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_predict(f.context, NULL, &c, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_predict(f.context, misuse_job, NULL, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_predict(f.context, misuse_job, &c, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_many(NULL, jobs, &c, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_many(f.context, NULL, &c, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_many(f.context, jobs, NULL, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_many(f.context, jobs, &c, 1, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_many(f.context, jobs + 1, &c, 1, &p, &misuse_err));
    assert_int_equal(mdot_predict_many(f.context, NULL, NULL, 0, NULL, &misuse_err), MDOT_OK);
    EXPECT_REFUSAL(mdot_sweep(NULL, misuse_job, &c, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_sweep(f.context, NULL, &c, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_sweep(f.context, misuse_job, NULL, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_sweep(f.context, misuse_job, &c, 1, NULL, &misuse_err));
    static const int gpu_counts[] = {INT_MIN, -1};
    for (size_t i = 0; i < sizeof gpu_counts / sizeof gpu_counts[0]; i++) {
        c.gpu_count = gpu_counts[i];
        EXPECT_REFUSAL(mdot_predict(f.context, misuse_job, &c, &p, &misuse_err));
    }
    c.gpu_count = INT_MAX; /* gives an answer or a status; the sanitizers check for overflow */
    (void)mdot_predict(f.context, misuse_job, &c, &p, &misuse_err);
    c.gpu_count = 8;
    c.data_parallel = c.tensor_parallel = UINT32_MAX; /* the product is 1 modulo 2^32 */
    EXPECT_REFUSAL(mdot_predict(f.context, misuse_job, &c, &p, &misuse_err));
    predict_close(&f);
}

static void encode(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = MDOT_INIT(mdot_prediction), unsized = {0};
    mdot_encoding *e = NULL, *none = NULL;
    EXPECT_REFUSAL(mdot_encoding_create(NULL, misuse_job, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_encoding_create(f.context, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_encoding_create(f.context, misuse_job, NULL, &misuse_err));
    assert_null(none);
    assert_int_equal(mdot_encoding_create(f.context, misuse_job, &e, &misuse_err), MDOT_OK);
    EXPECT_REFUSAL(mdot_evaluate(NULL, e, &c, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_evaluate(f.context, NULL, &c, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_evaluate(f.context, e, NULL, 1, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_evaluate(f.context, e, &c, 1, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_evaluate(f.context, e, &c, 1, &unsized, &misuse_err));
    assert_int_equal(mdot_evaluate(f.context, e, NULL, 0, NULL, &misuse_err), MDOT_OK);
    mdot_encoding_destroy(e);
    mdot_encoding_destroy(NULL);
    predict_close(&f);
}

static void job_inputs(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100"), unsized = c;
    unsized.struct_size = 0;
    mdot_job_inputs *inputs = NULL;
    mdot_input input;
    EXPECT_REFUSAL(mdot_job_inputs_create(NULL, 0, misuse_job, &c, &inputs, &misuse_err));
    EXPECT_REFUSAL(mdot_job_inputs_create(f.context, 0, NULL, &c, &inputs, &misuse_err));
    EXPECT_REFUSAL(mdot_job_inputs_create(f.context, 0, misuse_job, NULL, &inputs, &misuse_err));
    EXPECT_REFUSAL(mdot_job_inputs_create(f.context, 0, misuse_job, &unsized, &inputs, &misuse_err));
    EXPECT_REFUSAL(mdot_job_inputs_create(f.context, 0, misuse_job, &c, NULL, &misuse_err));
    assert_int_equal(mdot_job_inputs_create(f.context, 1, misuse_job, &c, &inputs, &misuse_err), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_job_inputs_create(misuse_context, 0, misuse_job, &c, &inputs, &misuse_err),
                     MDOT_INCOMPATIBLE);
    assert_null(inputs);
    assert_int_equal(mdot_job_inputs_create(f.context, 0, misuse_job, &c, &inputs, &misuse_err), MDOT_OK);
    INVALID(mdot_job_inputs_get(NULL, 0, &input));
    INVALID(mdot_job_inputs_get(inputs, 0, NULL));
    assert_int_equal(mdot_job_inputs_get(inputs, 99, &input), MDOT_OUT_OF_RANGE);
    predict_close(&f);
    assert_int_equal(mdot_job_inputs_get(inputs, 0, &input), MDOT_OK);
    assert_non_null(input.name);
    mdot_job_inputs_destroy(inputs);
    mdot_job_inputs_destroy(NULL);
}

static void calibrate(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    const mdot_job *jobs[1] = {misuse_job};
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = predict_one(&f, misuse_job, &c);
    const double ms = 2 * p.step_ms, none_ms = -1;
    mdot_calibration *made = NULL, *none = NULL;
    EXPECT_REFUSAL(mdot_calibrate(NULL, jobs, &c, &ms, 1, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_calibrate(f.context, NULL, &c, &ms, 1, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_calibrate(f.context, jobs, NULL, &ms, 1, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_calibrate(f.context, jobs, &c, NULL, 1, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_calibrate(f.context, jobs, &c, &ms, 1, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_calibrate(f.context, jobs, &c, &none_ms, 1, &none, &misuse_err));
    assert_int_equal(mdot_calibrate(f.context, jobs, &c, &ms, SIZE_MAX, &none, &misuse_err), MDOT_OUT_OF_RANGE);
    const mdot_measurement row = {.struct_size = sizeof row, .job = jobs[0], .configuration = &c, .step_ms = ms};
    const mdot_measurement no_job = {.struct_size = sizeof no_job, .configuration = &c, .step_ms = ms};
    EXPECT_REFUSAL(mdot_calibrate_measured(NULL, &row, 1, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_calibrate_measured(f.context, NULL, 1, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_calibrate_measured(f.context, &row, 1, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_calibrate_measured(f.context, &no_job, 1, &none, &misuse_err));
    assert_int_equal(mdot_calibrate_measured(f.context, &row, SIZE_MAX, &none, &misuse_err), MDOT_OUT_OF_RANGE);
    EXPECT_REFUSAL(mdot_calibration_load(NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_load("x", NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_parse(NULL, 100, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_parse("x", 1, NULL, &misuse_err));
    assert_null(none);
    assert_int_equal(mdot_calibrate(f.context, jobs, &c, &ms, 1, &made, &misuse_err), MDOT_OK);
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_calibration_gpu gpu = MDOT_INIT(mdot_calibration_gpu);
    mdot_calibration_factors factors = MDOT_INIT(mdot_calibration_factors);
    EXPECT_REFUSAL(mdot_calibration_apply_to_job(NULL, jobs[0], &c, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_apply_to_job(made, NULL, &c, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_apply_to_job(made, jobs[0], NULL, &p, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_apply_to_job(made, jobs[0], &c, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_explain(NULL, &c, NULL, &p, &factors, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_explain(made, NULL, NULL, &p, &factors, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_explain(made, &c, NULL, NULL, &factors, &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_explain(made, &c, NULL, &p, NULL, &misuse_err));
    assert_string_equal(mdot_calibration_effect_name(MDOT_CALIBRATION_EFFECT_JOB), "job");
    assert_string_equal(mdot_calibration_effect_name((mdot_calibration_effect)-1), "?");
    EXPECT_REFUSAL(mdot_calibration_save(NULL, "x", &misuse_err));
    EXPECT_REFUSAL(mdot_calibration_save(made, NULL, &misuse_err));
    INVALID(mdot_calibration_get_info(NULL, &info));
    INVALID(mdot_calibration_get_info(made, NULL));
    INVALID(mdot_calibration_get_gpu(NULL, 0, &gpu));
    INVALID(mdot_calibration_get_gpu(made, 0, NULL));
    BEYOND(mdot_calibration_get_gpu(made, SIZE_MAX, &gpu));
    mdot_calibration_destroy(made);
    mdot_calibration_destroy(NULL);
    predict_close(&f);
}

static void record(void)
{
    mdot_recorder *made = NULL;
    mdot_recorded recorded = MDOT_INIT(mdot_recorded);
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_measured_row row = {.struct_size = sizeof row, .job = "x.job", .step_ms = 1};
    EXPECT_REFUSAL(mdot_recorder_create(NULL, NULL, &misuse_err));
    assert_int_equal(mdot_recorder_create(NULL, &made, &misuse_err), MDOT_OK);
    mdot_recorder_step(NULL, 1);
    mdot_recorder_step(made, NAN);
    mdot_recorder_step(made, -1);
    EXPECT_REFUSAL(mdot_recorder_finish(NULL, &recorded, &misuse_err));
    EXPECT_REFUSAL(mdot_recorder_finish(made, NULL, &misuse_err));
    BEYOND(mdot_recorder_finish(made, &recorded, &misuse_err));
    EXPECT_REFUSAL(mdot_measured_append("/nowhere/x.csv", NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_measured_append("/nowhere/x.csv", &row, &misuse_err));
    row.configuration = &c;
    EXPECT_REFUSAL(mdot_measured_append(NULL, &row, &misuse_err));
    assert_int_equal(mdot_measured_append("/nowhere/x.csv", &row, &misuse_err), MDOT_NOT_FOUND);
    mdot_recorder_destroy(made);
    mdot_recorder_destroy(NULL);
}

static void explain(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_explanation *e = NULL, *none = NULL;
    EXPECT_REFUSAL(mdot_explain(NULL, misuse_job, &c, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_explain(f.context, NULL, &c, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_explain(f.context, misuse_job, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_explain(f.context, misuse_job, &c, NULL, &misuse_err));
    assert_null(none);
    assert_int_equal(mdot_explain(f.context, misuse_job, &c, &e, &misuse_err), MDOT_OK);
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info), unsized_info = {0};
    mdot_operator_time share = MDOT_INIT(mdot_operator_time), unsized_share = {0};
    INVALID(mdot_explanation_get_info(NULL, &info));
    INVALID(mdot_explanation_get_info(e, NULL));
    INVALID(mdot_explanation_get_info(e, &unsized_info));
    INVALID(mdot_explanation_get_operator(NULL, 0, &share));
    INVALID(mdot_explanation_get_operator(e, 0, NULL));
    INVALID(mdot_explanation_get_operator(e, 0, &unsized_share));
    BEYOND(mdot_explanation_get_operator(e, 5, &share));
    BEYOND(mdot_explanation_get_operator(e, SIZE_MAX, &share));
    mdot_explanation_destroy(e);
    mdot_explanation_destroy(NULL);
    predict_close(&f);
}

static void beside(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_gpu_load load = MDOT_INIT(mdot_gpu_load), unsized_load = {0};
    mdot_beside answer = MDOT_INIT(mdot_beside), unsized_answer = {0};
    EXPECT_REFUSAL(mdot_gpu_load_of(NULL, misuse_job, &c, &load, &misuse_err));
    EXPECT_REFUSAL(mdot_gpu_load_of(f.context, NULL, &c, &load, &misuse_err));
    EXPECT_REFUSAL(mdot_gpu_load_of(f.context, misuse_job, NULL, &load, &misuse_err));
    EXPECT_REFUSAL(mdot_gpu_load_of(f.context, misuse_job, &c, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_gpu_load_of(f.context, misuse_job, &c, &unsized_load, &misuse_err));
    assert_int_equal(mdot_gpu_load_of(f.context, misuse_job, &c, &load, &misuse_err), MDOT_OK);
    EXPECT_REFUSAL(mdot_predict_beside(NULL, &load, &load, &answer, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_beside(f.context, NULL, &load, &answer, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_beside(f.context, &load, NULL, &answer, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_beside(f.context, &load, &load, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_beside(f.context, &load, &load, &unsized_answer, &misuse_err));
    EXPECT_REFUSAL(mdot_predict_beside(f.context, &unsized_load, &load, &answer, &misuse_err));
    predict_close(&f);
}

static void plan(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    const uint32_t size = 1;
    mdot_plan *made = NULL, *none = NULL;
    assert_int_equal(mdot_gpu_find("A100", &gpu, &misuse_err), MDOT_OK);
    const mdot_plan_space space = {
        .struct_size = sizeof space, .base = &c, .gpus = &gpu, .gpu_model_count = 1, .sizes = &size, .size_count = 1};
    mdot_plan_space unsized = space, baseless = space;
    unsized.struct_size = 0;
    baseless.base = NULL;
    EXPECT_REFUSAL(mdot_plan_create(NULL, 1, misuse_job, &space, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_plan_create(&f.context, 0, misuse_job, &space, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_plan_create((mdot_context *const[]){NULL}, 1, misuse_job, &space, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_plan_create(&f.context, 1, NULL, &space, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_plan_create(&f.context, 1, misuse_job, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_plan_create(&f.context, 1, misuse_job, &unsized, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_plan_create(&f.context, 1, misuse_job, &baseless, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_plan_create(&f.context, 1, misuse_job, &space, NULL, &misuse_err));
    assert_null(none);
    assert_int_equal(mdot_plan_create(&f.context, 1, misuse_job, &space, &made, &misuse_err), MDOT_OK);
    mdot_plan_info info = MDOT_INIT(mdot_plan_info), unsized_info = {0};
    mdot_plan_layout layout = MDOT_INIT(mdot_plan_layout), unsized_layout = {0};
    INVALID(mdot_plan_get_info(NULL, &info));
    INVALID(mdot_plan_get_info(made, NULL));
    INVALID(mdot_plan_get_info(made, &unsized_info));
    INVALID(mdot_plan_get_layout(NULL, 0, &layout));
    INVALID(mdot_plan_get_layout(made, 0, NULL));
    INVALID(mdot_plan_get_layout(made, 0, &unsized_layout));
    BEYOND(mdot_plan_get_layout(made, SIZE_MAX, &layout));
    assert_int_equal(mdot_plan_get_layout(made, 0, &layout), MDOT_OK);
    mdot_training_run run = {.struct_size = sizeof run, .samples = 1}, unsized_run = {0};
    mdot_training_cost cost = MDOT_INIT(mdot_training_cost), unsized_cost = {0};
    EXPECT_REFUSAL(mdot_training_cost_of(NULL, &layout, &cost, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of(&unsized_run, &layout, &cost, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of(&run, NULL, &cost, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of(&run, &layout, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of(&run, &layout, &unsized_cost, &misuse_err));
    const mdot_training_phase phase = {&layout, 1}, none_of_it = {NULL, 1}, unsized_phase = {&unsized_layout, 1};
    EXPECT_REFUSAL(mdot_training_cost_of_phases(NULL, &phase, 1, &cost, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of_phases(&run, NULL, 1, &cost, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of_phases(&run, &phase, 0, &cost, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of_phases(&run, &none_of_it, 1, &cost, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of_phases(&run, &unsized_phase, 1, &cost, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of_phases(&run, &phase, 1, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_training_cost_of_phases(&run, &phase, 1, &unsized_cost, &misuse_err));
    const double points[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    mdot_convergence convergence = MDOT_INIT(mdot_convergence), unsized_convergence = {0};
    EXPECT_REFUSAL(mdot_steps_to_loss(NULL, points, 10, 1, &convergence, &misuse_err));
    EXPECT_REFUSAL(mdot_steps_to_loss(points, NULL, 10, 1, &convergence, &misuse_err));
    EXPECT_REFUSAL(mdot_steps_to_loss(points, points, 0, 1, &convergence, &misuse_err));
    EXPECT_REFUSAL(mdot_steps_to_loss(points, points, 10, 0, &convergence, &misuse_err));
    EXPECT_REFUSAL(mdot_steps_to_loss(points, points, 10, 1, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_steps_to_loss(points, points, 10, 1, &unsized_convergence, &misuse_err));
    mdot_plan_destroy(made);
    mdot_plan_destroy(NULL);
    predict_close(&f);
}

const misuse_row misuse_of_jobs[] = {
    {"mdot_job_create", job_create},
    {"mdot_job_load mdot_job_parse mdot_job_save", job_files},
    {"mdot_job_get_info mdot_job_get_operator mdot_optimizer_load", job_accessors},
    {"mdot_job_freeze mdot_operators_freeze", job_freeze},
    {"mdot_job_of_lengths mdot_job_with_length", job_lengths},
    {"mdot_operators_combine", operators_combine},
    {"mdot_job_with_program mdot_job_get_program", job_program},
    {"mdot_gpu_names mdot_gpu_find", gpus},
    {"mdot_predict mdot_predict_many mdot_sweep", predict},
    {"mdot_calibrate mdot_calibrate_measured mdot_calibration_apply_to_job "
     "mdot_calibration_destroy mdot_calibration_effect_name mdot_calibration_explain mdot_calibration_get_gpu "
     "mdot_calibration_get_info mdot_calibration_load mdot_calibration_parse mdot_calibration_save",
     calibrate},
    {"mdot_measured_append mdot_recorder_create mdot_recorder_destroy mdot_recorder_finish mdot_recorder_step", record},
    {"mdot_encoding_create mdot_encoding_destroy mdot_evaluate", encode},
    {"mdot_plan_create mdot_plan_destroy mdot_plan_get_info mdot_plan_get_layout mdot_steps_to_loss "
     "mdot_training_cost_of mdot_training_cost_of_phases",
     plan},
    {"mdot_job_inputs_create mdot_job_inputs_destroy mdot_job_inputs_get", job_inputs},
    {"mdot_explain mdot_explanation_destroy mdot_explanation_get_info mdot_explanation_get_operator", explain},
    {"mdot_gpu_load_of mdot_predict_beside", beside},
    {NULL, NULL},
};
