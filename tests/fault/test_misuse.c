/* test_misuse.c — every public function with what it must not be called with: NULL for each thing that it needs,
 * indices and counts beyond what there is. What must hold: a status and a message, never a crash.
 *
 * The export maps say which functions there are; one without a row here fails.
 */
#include "mdot/mdot.h"
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/predict_fixture.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static fixture shared;
static mdot_predictor *predictor;
static mdot_context *context;
static mdot_job *job;
static mdot_error err;

static int setup(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        exit(77);
    }
    fixture_open(&shared);
    predictor = fixture_predictor(&shared);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    job = predict_job(5, 5);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mdot_job_destroy(job);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    fixture_close(&shared);
    return 0;
}

#define INVALID(call) assert_int_equal(call, MDOT_INVALID_ARGUMENT)
/* The same of a function that has a message to give, which must say something. */
#define TELLS(call)                                                                                                    \
    do {                                                                                                               \
        err = (mdot_error){0};                                                                                         \
        assert_int_equal(call, MDOT_INVALID_ARGUMENT);                                                                 \
        assert_int_equal(err.status, MDOT_INVALID_ARGUMENT);                                                           \
        assert_true(err.message[0] != '\0');                                                                           \
    } while (0)
#define BEYOND(call) assert_int_equal(call, MDOT_OUT_OF_RANGE)

/* ---- mdot_base.h ------------------------------------------------------------------------------------------------- */

static void names_of_no_values(void)
{
    assert_non_null(mdot_status_name((mdot_status)-1));
    assert_non_null(mdot_status_name((mdot_status)INT_MAX));
    assert_non_null(mdot_status_text((mdot_status)-1));
    assert_non_null(mdot_status_text((mdot_status)INT_MAX));
    assert_string_equal(mdot_dtype_name((mdot_dtype)-1), "?");
    assert_int_equal(mdot_dtype_size_bytes((mdot_dtype)INT_MAX), 0);
    assert_string_equal(mdot_setting_name((mdot_setting)-1), "?");
    assert_string_equal(mdot_setting_name((mdot_setting)INT_MAX), "?");
    assert_null(mdot_warning_name(0));
    assert_null(mdot_warning_name(UINT32_MAX));
    assert_null(mdot_warning_text(1u << 31));
}

static void failing(void)
{
    const char *none = NULL;
    assert_int_equal(mdot_fail(NULL, MDOT_IO, "x"), MDOT_IO);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
    assert_int_equal(mdot_fail(&err, MDOT_IO, none), MDOT_IO);
#pragma GCC diagnostic pop
    assert_string_equal(err.message, mdot_status_text(MDOT_IO));
}

static void versions(void)
{
    assert_string_equal(mdot_version(), mdotjob_version());
    assert_string_equal(mdot_version(), mdotc_version());
    assert_int_equal(mdot_version_number(), mdotjob_version_number());
    assert_int_equal(mdot_version_number(), mdotc_version_number());
}

/* ---- Predictors and contexts ------------------------------------------------------------------------------------- */

static void predictor_open(void)
{
    mdot_predictor *none;
    TELLS(mdot_predictor_open(NULL, NULL, &none, &err));
    TELLS(mdot_predictor_open("x", NULL, NULL, &err));
    INVALID(mdot_predictor_open(NULL, NULL, NULL, NULL));
    mdot_open_options unsized = {0};
    TELLS(mdot_predictor_open("x", &unsized, &none, &err));
}

static void ends_of_nothing(void)
{
    mdot_predictor_close(NULL);
    mdot_context_destroy(NULL);
    mdot_job_destroy(NULL);
}

static void predictor_accessors(void)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    mdot_tensor_info tensor = MDOT_INIT(mdot_tensor_info);
    mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
    mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
    mdot_image_info image = MDOT_INIT(mdot_image_info);
    mdot_image_kernel_info image_kernel = MDOT_INIT(mdot_image_kernel_info);
    size_t at;
    INVALID(mdot_predictor_get_info(NULL, &info));
    INVALID(mdot_predictor_get_info(predictor, NULL));
    INVALID(mdot_predictor_find_entry(NULL, "predict", &at));
    INVALID(mdot_predictor_find_entry(predictor, NULL, &at));
    INVALID(mdot_predictor_find_entry(predictor, "predict", NULL));
    INVALID(mdot_predictor_get_entry(NULL, 0, &entry));
    INVALID(mdot_predictor_get_entry(predictor, 0, NULL));
    INVALID(mdot_predictor_get_input(NULL, 0, 0, &tensor));
    INVALID(mdot_predictor_get_input(predictor, 0, 0, NULL));
    INVALID(mdot_predictor_get_output(NULL, 0, 0, &tensor));
    INVALID(mdot_predictor_get_output(predictor, 0, 0, NULL));
    INVALID(mdot_predictor_get_bucket(NULL, 0, 0, &bucket));
    INVALID(mdot_predictor_get_bucket(predictor, 0, 0, NULL));
    INVALID(mdot_predictor_get_kernel(NULL, 0, 0, 0, &kernel));
    INVALID(mdot_predictor_get_kernel(predictor, 0, 0, 0, NULL));
    INVALID(mdot_predictor_get_image(NULL, 0, &image));
    INVALID(mdot_predictor_get_image(predictor, 0, NULL));
    INVALID(mdot_predictor_get_image_kernel(NULL, 0, 0, 0, &image_kernel));
    INVALID(mdot_predictor_get_image_kernel(predictor, 0, 0, 0, NULL));
    INVALID(mdot_predictor_find_bucket(NULL, 0, 1, &at));
    INVALID(mdot_predictor_find_bucket(predictor, 0, 1, NULL));
    static const size_t wrong[] = {2, 1u << 31, (size_t)1 << 32, SIZE_MAX / 8, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        size_t w = wrong[i];
        BEYOND(mdot_predictor_get_entry(predictor, w, &entry));
        BEYOND(mdot_predictor_get_input(predictor, w, 0, &tensor));
        BEYOND(mdot_predictor_get_input(predictor, 1, w, &tensor));
        BEYOND(mdot_predictor_get_output(predictor, w, 0, &tensor));
        BEYOND(mdot_predictor_get_output(predictor, 1, w, &tensor));
        BEYOND(mdot_predictor_get_bucket(predictor, w, 0, &bucket));
        BEYOND(mdot_predictor_get_bucket(predictor, 1, w, &bucket));
        BEYOND(mdot_predictor_get_kernel(predictor, w, 0, 0, &kernel));
        BEYOND(mdot_predictor_get_kernel(predictor, 0, w, 0, &kernel));
        BEYOND(mdot_predictor_get_kernel(predictor, 0, 0, w, &kernel));
        BEYOND(mdot_predictor_get_image(predictor, w, &image));
        BEYOND(mdot_predictor_get_image_kernel(predictor, w, 0, 0, &image_kernel));
        BEYOND(mdot_predictor_get_image_kernel(predictor, 0, w, 0, &image_kernel));
        BEYOND(mdot_predictor_get_image_kernel(predictor, 0, 0, w, &image_kernel));
        BEYOND(mdot_predictor_find_bucket(predictor, w, 1, &at));
    }
    BEYOND(mdot_predictor_find_bucket(predictor, 0, INT64_MIN, &at));
    BEYOND(mdot_predictor_find_bucket(predictor, 0, INT64_MAX, &at));
}

static void context_functions(void)
{
    mdot_context *none;
    const char *message;
    TELLS(mdot_context_create(NULL, &none, &err));
    TELLS(mdot_context_create(predictor, NULL, &err));
    mdot_context_options options = MDOT_INIT(mdot_context_options), unsized = {0};
    TELLS(mdot_context_create_with(NULL, &options, &none, &err));
    TELLS(mdot_context_create_with(predictor, &options, NULL, &err));
    TELLS(mdot_context_create_with(predictor, &unsized, &none, &err));
    options.threads = UINT32_MAX;
    TELLS(mdot_context_create_with(predictor, &options, &none, &err));
    INVALID(mdot_context_get_device_status(NULL, &message));
    INVALID(mdot_context_get_device_status(context, NULL));
}

static void run(void)
{
    const int64_t dims[1] = {3};
    const int32_t a[3] = {0};
    int32_t b[3];
    mdot_input input = {"a", MDOT_DTYPE_I32, 1, dims, a};
    mdot_output output = {"b", b, sizeof b};
    TELLS(mdot_run(NULL, 1, &input, 1, &output, 1, &err));
    TELLS(mdot_run(context, 1, NULL, 1, &output, 1, &err));
    TELLS(mdot_run(context, 1, &input, 1, NULL, 1, &err));
    TELLS(mdot_run(context, 1, &input, SIZE_MAX, &output, 1, &err));
    TELLS(mdot_run(context, 1, &input, 1, &output, SIZE_MAX, &err));
    TELLS(mdot_run(context, 1, NULL, 0, NULL, 0, &err));
    BEYOND(mdot_run(context, SIZE_MAX, &input, 1, &output, 1, &err));
    TELLS(mdot_run(context, 1, &(mdot_input){0}, 1, &output, 1, &err));
    TELLS(mdot_run(context, 1, &input, 1, &(mdot_output){0}, 1, &err));
    input.dims = NULL;
    TELLS(mdot_run(context, 1, &input, 1, &output, 1, &err));
    input.dims = dims;
    static const int ranks[] = {INT_MIN, -1, 2, INT_MAX};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        input.rank = ranks[i];
        TELLS(mdot_run(context, 1, &input, 1, &output, 1, &err));
    }
    input.rank = 1;
    input.data = NULL;
    TELLS(mdot_run(context, 1, &input, 1, &output, 1, &err));
    const void *const inputs[] = {a};
    void *const outputs[] = {b};
    TELLS(mdot_run_ordered(NULL, 1, 0, inputs, outputs, &err));
    TELLS(mdot_run_ordered(context, 1, 0, NULL, outputs, &err));
    TELLS(mdot_run_ordered(context, 1, 0, inputs, NULL, &err));
    BEYOND(mdot_run_ordered(context, SIZE_MAX, 0, inputs, outputs, &err));
    BEYOND(mdot_run_ordered(context, 1, INT64_MIN, inputs, outputs, &err));
    BEYOND(mdot_run_ordered(context, 0, INT64_MAX, inputs, outputs, &err));
    TELLS(mdot_run_step(NULL, 1, 0, inputs, outputs, 0, &err));
    TELLS(mdot_run_step(context, 1, 0, NULL, outputs, 0, &err));
    TELLS(mdot_run_step(context, 1, 0, inputs, NULL, 0, &err));
    BEYOND(mdot_run_step(context, SIZE_MAX, 0, inputs, outputs, 0, &err));
    BEYOND(mdot_run_step(context, 1, INT64_MIN, inputs, outputs, 0, &err));
    BEYOND(mdot_run_step(context, 1, 0, inputs, outputs, SIZE_MAX, &err));
    mdot_item item = {0, inputs, outputs};
    TELLS(mdot_run_many(NULL, 1, &item, 1, &err));
    TELLS(mdot_run_many(context, 1, NULL, 1, &err));
    BEYOND(mdot_run_many(context, SIZE_MAX, &item, 1, &err));
    TELLS(mdot_run_many(context, 1, &(mdot_item){0, NULL, outputs}, 1, &err));
    TELLS(mdot_run_many(context, 1, &(mdot_item){0, inputs, NULL}, 1, &err));
    static const int64_t lengths[] = {INT64_MIN, -1, 1, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        item.length = lengths[i];
        BEYOND(mdot_run_many(context, 1, &item, 1, &err));
    }
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

static void job_create(void)
{
    mdot_job *none;
    mdot_job_operator op = predict_operator(0);
    mdot_job_description d = MDOT_INIT(mdot_job_description);
    d.operators = &op;
    d.operator_count = 1;
    d.batch = 1;
    TELLS(mdot_job_create(NULL, &none, &err));
    TELLS(mdot_job_create(&d, NULL, &err));
    d.operators = NULL;
    TELLS(mdot_job_create(&d, &none, &err));
    d.operators = &op;
    static const size_t counts[] = {SIZE_MAX, SIZE_MAX / sizeof(mdot_job_operator) + 2, (size_t)1 << 32};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        d.operator_count = counts[i];
        assert_int_not_equal(mdot_job_create(&d, &none, &err), MDOT_OK);
    }
    d.operator_count = 1;
    op.type = NULL;
    TELLS(mdot_job_create(&d, &none, &err));
    op = predict_operator(0);
    op.input_count = 1;
    op.inputs = NULL;
    TELLS(mdot_job_create(&d, &none, &err));
    op.input_count = SIZE_MAX;
    op.inputs = (const uint32_t[]){0};
    TELLS(mdot_job_create(&d, &none, &err));
}

static void job_files(void)
{
    mdot_job *none;
    TELLS(mdot_job_load(NULL, &none, &err));
    TELLS(mdot_job_load("x", NULL, &err));
    TELLS(mdot_job_parse(NULL, 100, &none, &err));
    TELLS(mdot_job_parse(NULL, 0, &none, &err));
    TELLS(mdot_job_parse("x", 1, NULL, &err));
    TELLS(mdot_job_save(NULL, "x", &err));
    TELLS(mdot_job_save(job, NULL, &err));
}

static void job_accessors(void)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    INVALID(mdot_job_get_info(NULL, &info));
    INVALID(mdot_job_get_info(job, NULL));
    INVALID(mdot_job_get_operator(NULL, 0, &op));
    INVALID(mdot_job_get_operator(job, 0, NULL));
    BEYOND(mdot_job_get_operator(job, 5, &op));
    BEYOND(mdot_job_get_operator(job, SIZE_MAX, &op));
    assert_true(mdot_optimizer_load((mdot_optimizer)-1, 1).flops == 0);
    assert_true(mdot_optimizer_load((mdot_optimizer)INT_MAX, NAN).flops == 0);
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
    TELLS(mdot_job_freeze(NULL, &f, &none, &err));
    TELLS(mdot_job_freeze(named, NULL, &none, &err));
    TELLS(mdot_job_freeze(named, &f, NULL, &err));
    f.frozen = NULL;
    TELLS(mdot_job_freeze(named, &f, &none, &err));
    f.frozen = (const char *const[]){NULL};
    TELLS(mdot_job_freeze(named, &f, &none, &err));
    mdot_job_destroy(named);
}

static void gpus(void)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_non_null(mdot_gpu_names());
    TELLS(mdot_gpu_find(NULL, &gpu, &err));
    TELLS(mdot_gpu_find(mdot_gpu_names()[0], NULL, &err));
}

/* ---- Predictions ------------------------------------------------------------------------------------------------- */

static void predict(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    const mdot_job *jobs[] = {job, NULL};
    TELLS(mdot_predict(NULL, job, &c, &p, &err));
    TELLS(mdot_predict(f.context, NULL, &c, &p, &err));
    TELLS(mdot_predict(f.context, job, NULL, &p, &err));
    TELLS(mdot_predict(f.context, job, &c, NULL, &err));
    TELLS(mdot_predict_many(NULL, jobs, &c, 1, &p, &err));
    TELLS(mdot_predict_many(f.context, NULL, &c, 1, &p, &err));
    TELLS(mdot_predict_many(f.context, jobs, NULL, 1, &p, &err));
    TELLS(mdot_predict_many(f.context, jobs, &c, 1, NULL, &err));
    TELLS(mdot_predict_many(f.context, jobs + 1, &c, 1, &p, &err));
    assert_int_equal(mdot_predict_many(f.context, NULL, NULL, 0, NULL, &err), MDOT_OK);
    TELLS(mdot_sweep(NULL, job, &c, 1, &p, &err));
    TELLS(mdot_sweep(f.context, NULL, &c, 1, &p, &err));
    TELLS(mdot_sweep(f.context, job, NULL, 1, &p, &err));
    TELLS(mdot_sweep(f.context, job, &c, 1, NULL, &err));
    static const int gpu_counts[] = {INT_MIN, -1};
    for (size_t i = 0; i < sizeof gpu_counts / sizeof gpu_counts[0]; i++) {
        c.gpu_count = gpu_counts[i];
        TELLS(mdot_predict(f.context, job, &c, &p, &err));
    }
    c.gpu_count = INT_MAX; /* an answer or a status; under the sanitizers nothing overflows */
    (void)mdot_predict(f.context, job, &c, &p, &err);
    c.gpu_count = 8;
    c.data_parallel = c.tensor_parallel = UINT32_MAX; /* whose product is 1 modulo 2^32 */
    TELLS(mdot_predict(f.context, job, &c, &p, &err));
    predict_close(&f);
}

static void encode(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = MDOT_INIT(mdot_prediction), unsized = {0};
    mdot_encoding *e = NULL, *none = NULL;
    TELLS(mdot_encoding_create(NULL, job, &none, &err));
    TELLS(mdot_encoding_create(f.context, NULL, &none, &err));
    TELLS(mdot_encoding_create(f.context, job, NULL, &err));
    assert_null(none);
    assert_int_equal(mdot_encoding_create(f.context, job, &e, &err), MDOT_OK);
    TELLS(mdot_price(NULL, e, &c, 1, &p, &err));
    TELLS(mdot_price(f.context, NULL, &c, 1, &p, &err));
    TELLS(mdot_price(f.context, e, NULL, 1, &p, &err));
    TELLS(mdot_price(f.context, e, &c, 1, NULL, &err));
    TELLS(mdot_price(f.context, e, &c, 1, &unsized, &err));
    assert_int_equal(mdot_price(f.context, e, NULL, 0, NULL, &err), MDOT_OK);
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
    TELLS(mdot_job_inputs_create(NULL, 0, job, &c, &inputs, &err));
    TELLS(mdot_job_inputs_create(f.context, 0, NULL, &c, &inputs, &err));
    TELLS(mdot_job_inputs_create(f.context, 0, job, NULL, &inputs, &err));
    TELLS(mdot_job_inputs_create(f.context, 0, job, &unsized, &inputs, &err));
    TELLS(mdot_job_inputs_create(f.context, 0, job, &c, NULL, &err));
    assert_int_equal(mdot_job_inputs_create(f.context, 1, job, &c, &inputs, &err), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_job_inputs_create(context, 0, job, &c, &inputs, &err), MDOT_INCOMPATIBLE);
    assert_null(inputs);
    assert_int_equal(mdot_job_inputs_create(f.context, 0, job, &c, &inputs, &err), MDOT_OK);
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
    const mdot_job *jobs[1] = {job};
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = predict_one(&f, job, &c);
    const double ms = 2 * p.step_ms, none_ms = -1;
    mdot_calibration *made = NULL, *none = NULL;
    TELLS(mdot_calibrate(NULL, jobs, &c, &ms, 1, &none, &err));
    TELLS(mdot_calibrate(f.context, NULL, &c, &ms, 1, &none, &err));
    TELLS(mdot_calibrate(f.context, jobs, NULL, &ms, 1, &none, &err));
    TELLS(mdot_calibrate(f.context, jobs, &c, NULL, 1, &none, &err));
    TELLS(mdot_calibrate(f.context, jobs, &c, &ms, 1, NULL, &err));
    TELLS(mdot_calibrate(f.context, jobs, &c, &none_ms, 1, &none, &err));
    assert_int_equal(mdot_calibrate(f.context, jobs, &c, &ms, SIZE_MAX, &none, &err), MDOT_OUT_OF_MEMORY);
    TELLS(mdot_calibration_load(NULL, &none, &err));
    TELLS(mdot_calibration_load("x", NULL, &err));
    TELLS(mdot_calibration_parse(NULL, 100, &none, &err));
    TELLS(mdot_calibration_parse("x", 1, NULL, &err));
    assert_null(none);
    assert_int_equal(mdot_calibrate(f.context, jobs, &c, &ms, 1, &made, &err), MDOT_OK);
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_calibration_gpu gpu = MDOT_INIT(mdot_calibration_gpu);
    TELLS(mdot_calibration_apply(NULL, &c, NULL, &p, &err));
    TELLS(mdot_calibration_apply(made, NULL, NULL, &p, &err));
    TELLS(mdot_calibration_apply(made, &c, NULL, NULL, &err));
    TELLS(mdot_calibration_save(NULL, "x", &err));
    TELLS(mdot_calibration_save(made, NULL, &err));
    INVALID(mdot_calibration_get_info(NULL, &info));
    INVALID(mdot_calibration_get_info(made, NULL));
    INVALID(mdot_calibration_get_gpu(NULL, 0, &gpu));
    INVALID(mdot_calibration_get_gpu(made, 0, NULL));
    BEYOND(mdot_calibration_get_gpu(made, SIZE_MAX, &gpu));
    mdot_calibration_destroy(made);
    mdot_calibration_destroy(NULL);
    predict_close(&f);
}

static void explain(void)
{
    predict_fixture f;
    predict_open(&f, predict_bandwidth_model());
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_explanation *e = NULL, *none = NULL;
    TELLS(mdot_explain(NULL, job, &c, &none, &err));
    TELLS(mdot_explain(f.context, NULL, &c, &none, &err));
    TELLS(mdot_explain(f.context, job, NULL, &none, &err));
    TELLS(mdot_explain(f.context, job, &c, NULL, &err));
    assert_null(none);
    assert_int_equal(mdot_explain(f.context, job, &c, &e, &err), MDOT_OK);
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info), unsized_info = {0};
    mdot_operator_share share = MDOT_INIT(mdot_operator_share), unsized_share = {0};
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

/* ---- mdotjob.h and mdotc.h --------------------------------------------------------------------------------------- */

static void job_read(void)
{
    mdot_job *none;
    mdot_operator_facts facts;
    TELLS(mdot_job_read(NULL, NULL, &none, &err));
    TELLS(mdot_job_read("x", NULL, NULL, &err));
    TELLS(mdot_job_read_bytes(NULL, 1, "x", NULL, &none, &err));
    TELLS(mdot_job_read_bytes("x", 1, NULL, NULL, &none, &err));
    TELLS(mdot_job_read_bytes("x", 1, "x", NULL, NULL, &err));
    mdot_job_options o = MDOT_INIT(mdot_job_options);
    o.dim_count = 1;
    TELLS(mdot_job_read_bytes("x", 1, "x", &o, &none, &err));
    o.dims = &(mdot_dim_binding){0};
    TELLS(mdot_job_read_bytes("x", 1, "x", &o, &none, &err));
    INVALID(mdot_operator_facts_find(NULL, &facts));
    INVALID(mdot_operator_facts_find("Conv", NULL));
}

static void compile(void)
{
    mdotc_entry entry = MDOT_INIT(mdotc_entry);
    entry.name = "predict";
    entry.model_path = "model.onnx";
    mdotc_options o = MDOT_INIT(mdotc_options);
    TELLS(mdotc_compile(NULL, 1, "x.mdot", NULL, &err));
    TELLS(mdotc_compile(&entry, 0, "x.mdot", NULL, &err));
    TELLS(mdotc_compile(&entry, 1, NULL, NULL, &err));
    assert_int_not_equal(mdotc_compile(&entry, SIZE_MAX, "x.mdot", NULL, &err), MDOT_OK);
    entry.name = NULL;
    TELLS(mdotc_compile(&entry, 1, "x.mdot", NULL, &err));
    entry.name = "predict";
    entry.model_path = NULL;
    TELLS(mdotc_compile(&entry, 1, "x.mdot", NULL, &err));
    entry.model_path = "model.onnx";
    o.bucket_count = 1;
    TELLS(mdotc_compile(&entry, 1, "x.mdot", &o, &err));
    o.bucket_count = 0;
    o.target_count = 1;
    TELLS(mdotc_compile(&entry, 1, "x.mdot", &o, &err));
    o.targets = (const char *const[]){NULL};
    TELLS(mdotc_compile(&entry, 1, "x.mdot", &o, &err));
    o.target_count = 0;
    o.dim_count = 1;
    entry.model_path = MDOT_SOURCE_DIR "/tests/support/fixture/exports/bert-tiny.inference.onnx";
    TELLS(mdotc_compile(&entry, 1, "x.mdot", &o, &err));
    o.dims = &(mdot_dim_binding){0};
    TELLS(mdotc_compile(&entry, 1, "x.mdot", &o, &err));
}

static void verify_and_check(void)
{
    bool passed;
    mdotc_check_report report = MDOT_INIT(mdotc_check_report);
    TELLS(mdotc_verify(NULL, "x", NULL, &passed, &err));
    TELLS(mdotc_verify("x", NULL, NULL, &passed, &err));
    TELLS(mdotc_verify("x", "x", NULL, NULL, &err));
    mdotc_verify_options unsized = {0};
    TELLS(mdotc_verify("x", "x", &unsized, &passed, &err));
    TELLS(mdotc_check(NULL, NULL, &report, &err));
    TELLS(mdotc_check("x", NULL, NULL, &err));
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

typedef struct row {
    const char *names; /* separated by blanks */
    void (*misuse)(void);
} row;

static const row rows[] = {
    {"mdot_status_name mdot_status_text mdot_dtype_name mdot_dtype_size_bytes mdot_setting_name mdot_warning_name "
     "mdot_warning_text",
     names_of_no_values},
    {"mdot_fail", failing},
    {"mdot_version mdot_version_number mdotjob_version mdotjob_version_number mdotc_version mdotc_version_number",
     versions},
    {"mdot_predictor_open", predictor_open},
    {"mdot_predictor_close mdot_context_destroy mdot_job_destroy", ends_of_nothing},
    {"mdot_predictor_get_info mdot_predictor_find_entry mdot_predictor_get_entry mdot_predictor_get_input "
     "mdot_predictor_get_output mdot_predictor_get_bucket mdot_predictor_get_kernel mdot_predictor_get_image "
     "mdot_predictor_get_image_kernel mdot_predictor_find_bucket",
     predictor_accessors},
    {"mdot_context_create mdot_context_create_with mdot_context_get_device_status", context_functions},
    {"mdot_run mdot_run_ordered mdot_run_step mdot_run_many", run},
    {"mdot_job_create", job_create},
    {"mdot_job_load mdot_job_parse mdot_job_save", job_files},
    {"mdot_job_get_info mdot_job_get_operator mdot_optimizer_load", job_accessors},
    {"mdot_job_freeze", job_freeze},
    {"mdot_gpu_names mdot_gpu_find", gpus},
    {"mdot_predict mdot_predict_many mdot_sweep", predict},
    {"mdot_calibrate mdot_calibration_apply mdot_calibration_destroy mdot_calibration_get_gpu "
     "mdot_calibration_get_info mdot_calibration_load mdot_calibration_parse mdot_calibration_save",
     calibrate},
    {"mdot_encoding_create mdot_encoding_destroy mdot_price", encode},
    {"mdot_job_inputs_create mdot_job_inputs_destroy mdot_job_inputs_get", job_inputs},
    {"mdot_explain mdot_explanation_destroy mdot_explanation_get_info mdot_explanation_get_operator", explain},
    {"mdot_job_read mdot_job_read_bytes mdot_operator_facts_find", job_read},
    {"mdotc_compile", compile},
    {"mdotc_verify mdotc_check", verify_and_check},
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static void misuse_is_a_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        print_message("%s\n", rows[i].names);
        rows[i].misuse();
    }
}

static bool has_row(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < ROW_COUNT; i++)
        for (const char *at = rows[i].names; (at = strstr(at, name)) != NULL; at += length)
            if ((at == rows[i].names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
    return false;
}

static void every_exported_function_is_misused(void **state)
{
    (void)state;
    static const char *const maps[] = {"runtime/libmdot.map", "frontend/libmdotjob.map", "compiler/libmdotc.map"};
    int found = 0;
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        char path[1024], line[256], name[128];
        snprintf(path, sizeof path, "%s/%s", MDOT_SOURCE_DIR, maps[i]);
        FILE *file = fopen(path, "r");
        if (file == NULL) fail_msg("%s is not there", path);
        while (fgets(line, sizeof line, file) != NULL) {
            if (sscanf(line, " %127[a-z0-9_];", name) != 1 || strncmp(name, "mdot", 4) != 0) continue;
            found++;
            if (!has_row(name)) fail_msg("%s of %s has no row", name, maps[i]);
        }
        fclose(file);
    }
    assert_true(found > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_is_a_status),
        cmocka_unit_test(every_exported_function_is_misused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
