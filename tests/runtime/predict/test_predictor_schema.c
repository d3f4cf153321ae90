/* test_predictor_schema.c — declarations in job-predicting artefacts: inputs from earlier versions with fewer columns
 * and types, and refusals that name the input. */
#include "mdot/mdotjob.h"
#include "runtime/predict/predictor_schema.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        exit(77);
    }
    return 0;
}

static int64_t type_number(const char *type)
{
    mdot_operator_traits traits;
    assert_int_equal(mdot_operator_traits_find(type, &traits), MDOT_OK);
    return traits.number;
}

/* ---- Artefacts for other runtime versions ------------------------------------------------------------------------ */

static void older_predictors_get_only_known_types_and_settings(void **state)
{
    (void)state;
    predict_fixture old = {0};
    predict_open(&old, predict_settings_model_of(type_number("Conv"), MDOT_SETTING_KERNEL_H + 1));
    mdot_job *job = predict_job(6, 6);
    mdot_configuration c = predict_configuration(1, "A100");
    mdot_prediction p = predict_one(&old, job, &c);
    predict_assert_close(p.lower_ms, 1e-3 * (1 + 2 * (double)(type_number("Relu") + type_number("Add"))));
    predict_assert_close(p.step_ms, 1e-3 * (1 + 2 * 3));
    predict_assert_close(p.upper_ms, 1e-3);
    assert_int_equal(predict_warnings(p), MDOT_WARN_UNKNOWN_OPERATOR);
    mdot_job_destroy(job);
    predict_close(&old);
    predict_open(&old, predict_settings_model_of(type_number("Conv") + 1, MDOT_SETTING_COUNT));
    job = predict_job(6, 6);
    p = predict_one(&old, job, &c);
    predict_assert_close(p.lower_ms,
                         1e-3 * (1 + 2 * (double)(type_number("Conv") + type_number("Relu") + type_number("Add"))));
    assert_int_equal(predict_warnings(p), 0);
    mdot_job_destroy(job);
    predict_close(&old);
}

/* A model whose times are the columns first … first + 2 of an input with `columns` columns. */
static onnx_builder *numbers_model(const char *input, int64_t columns, int64_t first)
{
    static const float one = 1;
    const int64_t end = first + 3;
    char shape[32], inputs[64];
    snprintf(shape, sizeof shape, "%lld", (long long)columns);
    snprintf(inputs, sizeof inputs, "%s,from,to", input);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, input, MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "from", MDOT_DTYPE_I64, "1", &first);
    onnx_initializer(b, "to", MDOT_DTYPE_I64, "1", &end);
    onnx_initializer(b, "one", MDOT_DTYPE_F32, "1", &one);
    onnx_node(b, "Slice", inputs, "part");
    onnx_node(b, "Add", "part,one", "step_ms");
    onnx_output(b, "step_ms");
    return b;
}

static void older_predictors_get_the_leading_columns(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(5, "A100");
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    predict_fixture f = {0};
    predict_open(&f, numbers_model("gpu", 3, 0));
    mdot_prediction p = predict_one(&f, job, &c);
    predict_assert_close(p.lower_ms, 1 + gpu.compute_capability);
    predict_assert_close(p.upper_ms, 1 + gpu.boost_mhz);
    predict_close(&f);
    predict_open(&f, numbers_model("configuration", 4, 0));
    p = predict_one(&f, job, &c);
    predict_assert_close(p.lower_ms, 1 + 5);
    predict_close(&f);
    mdot_job_destroy(job);
}

/* Adds the metadata `key`: `value`. */
static onnx_builder *with_note(onnx_builder *b, const char *key, const char *value)
{
    onnx_metadata(b, key, value);
    return b;
}

static void expect_times(onnx_builder *b, double lower, double middle, double upper)
{
    mdot_job *job = predict_job(3, 3);
    mdot_configuration configurations[2] = {predict_configuration(7, "A100"), predict_configuration(7, "A100")};
    mdot_prediction p[2] = {MDOT_INIT(mdot_prediction), MDOT_INIT(mdot_prediction)};
    mdot_error err = {0};
    predict_fixture f = {0};
    predict_open(&f, b);
    for (int turn = 0; turn < 2; turn++) {
        if (mdot_sweep(f.context, job, configurations, 2, p, &err) != MDOT_OK) fail_msg("%s", err.message);
        for (int i = 0; i < 2; i++) {
            predict_assert_close(p[i].lower_ms, lower);
            predict_assert_close(p[i].step_ms, middle);
            predict_assert_close(p[i].upper_ms, upper);
            assert_int_equal(predict_warnings(p[i]), 0);
        }
    }
    mdot_job_destroy(job);
    predict_close(&f);
}

/* The runtime has 13 columns for a GPU and RT_CONFIGURATION_NUMBERS for a configuration. */
static void later_predictors_give_defaults_for_unknown_columns(void **state)
{
    (void)state;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    expect_times(with_note(numbers_model("gpu", 15, 12), "mdot.defaults.gpu", "0.5, 2e1"), 1 + gpu.fp8_tflops, 1.5, 21);
    expect_times(with_note(numbers_model("configuration", RT_CONFIGURATION_NUMBERS + 2, RT_CONFIGURATION_NUMBERS - 1),
                           "mdot.defaults.configuration", "3,4"),
                 1 + 50, 4, 5); /* the last known column is host_launch_us: PyTorch beside an A100 */
}

/* A predictor may declare defaults for more columns than this runtime lacks, because still older runtimes may need
 * them. For known columns the real values are used. */
static void defaults_of_known_columns_are_ignored(void **state)
{
    (void)state;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    expect_times(with_note(numbers_model("gpu", 11, 6), "mdot.defaults.gpu", "7,7,7,7"), 1 + gpu.fp32_tflops,
                 1 + gpu.tf32_tflops, 1 + gpu.fp16_tflops);
    expect_times(with_note(numbers_model("gpu", 14, 11), "mdot.defaults.gpu", "6,7,8"), 1 + gpu.watts,
                 1 + gpu.fp8_tflops, 9);
}

/* With names, an input may have any columns in any order. A later version's column has the default declared by the
 * predictor. */
static void columns_are_selected_by_name(void **state)
{
    (void)state;
    static const char key[] = "mdot.reads.configuration", defaults[] = "mdot.defaults.configuration";
    expect_times(with_note(numbers_model("configuration", 3, 0), key, "data_parallel, batch, is_fp32"), 1 + 1, 1 + 7,
                 1 + 1);
    onnx_builder *b = with_note(numbers_model("configuration", 4, 1), defaults, "6,8");
    expect_times(with_note(b, key, "is_amp, batch, altitude, is_fp32"), 1 + 7, 1 + 6, 1 + 8);
}

/* A later version's table, with more columns. */
typedef struct later_table {
    mdot_abi_table head;
    mdot_abi_entry entry;
    mdot_abi_tensor input, output;
    mdot_abi_bucket bucket;
    char text[128];
} later_table;

static void names_of_later_columns_are_refused(void **state)
{
    (void)state;
    enum { PREDICT = 1, INPUT = 16, OUTPUT = 32, NAMES = 48 };
    static later_table t;
    t = (later_table){.head = {.entries_at = offsetof(later_table, entry), .entry_count = 1},
                      .entry = {.name_at = offsetof(later_table, text) + PREDICT,
                                .inputs_at = offsetof(later_table, input),
                                .input_count = 1,
                                .outputs_at = offsetof(later_table, output),
                                .output_count = 1,
                                .buckets_at = offsetof(later_table, bucket),
                                .bucket_count = 1},
                      .input = {.name_at = offsetof(later_table, text) + INPUT,
                                .dtype = MDOT_DTYPE_F32,
                                .rank = 1,
                                .dim = {{.offset = 3}},
                                .columns_at = offsetof(later_table, text) + NAMES},
                      .output = {.name_at = offsetof(later_table, text) + OUTPUT,
                                 .dtype = MDOT_DTYPE_F32,
                                 .rank = 1,
                                 .dim = {{.offset = 3}}}};
    strcpy(t.text + PREDICT, "predict");
    strcpy(t.text + INPUT, "configuration");
    strcpy(t.text + OUTPUT, "step_ms");
    static const char *const names[] = {"batch,altitude,torch", "batch,torch,batch", "altitude,batch,torch"};
    static const char *const part[] = {"\"altitude\" of input configuration of entry predict is repeated, or mdot",
                                       "\"batch\" of input configuration", "\"altitude\" of input configuration"};
    rt_job_schema schema;
    mdot_error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        strcpy(t.text + NAMES, names[i]);
        assert_int_equal(rt_job_schema_read(&t.head, RT_JOB_PREDICT, &schema, &err), MDOT_INCOMPATIBLE);
        if (strstr(err.message, part[i]) == NULL) fail_msg("\"%s\" does not say \"%s\"", err.message, part[i]);
    }
    strcpy(t.text + NAMES, "torch,zero_stage,batch");
    assert_int_equal(rt_job_schema_read(&t.head, RT_JOB_PREDICT, &schema, &err), MDOT_OK);
    assert_int_equal(schema.reads, RT_CONFIGURATION_BIT(RT_CONFIGURATION_TORCH) |
                                       RT_CONFIGURATION_BIT(RT_CONFIGURATION_ZERO_STAGE) |
                                       RT_CONFIGURATION_BIT(RT_CONFIGURATION_BATCH));
}

/* 1 + the sums over all rows of input columns first … first + 2. */
static onnx_builder *sums_model(const char *input, int64_t columns, int64_t first)
{
    enum { MOST = 32 };
    float picks[MOST * 3] = {0};
    static const float one = 1;
    const int64_t rows = 0;
    char shape[32], pick_shape[32], inputs[64];
    assert_compare(columns, <=, MOST);
    snprintf(shape, sizeof shape, "L,%lld", (long long)columns);
    snprintf(pick_shape, sizeof pick_shape, "%lld,3", (long long)columns);
    snprintf(inputs, sizeof inputs, "%s,picks", input);
    for (int i = 0; i < 3; i++) picks[(first + i) * 3 + i] = 1;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, input, MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "picks", MDOT_DTYPE_F32, pick_shape, picks);
    onnx_initializer(b, "rows", MDOT_DTYPE_I64, "1", &rows);
    onnx_initializer(b, "one", MDOT_DTYPE_F32, "1", &one);
    onnx_node(b, "MatMul", inputs, "picked");
    onnx_node(b, "ReduceSum", "picked,rows", "sums");
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "Add", "sums,one", "step_ms");
    onnx_output(b, "step_ms");
    return b;
}

/* The job's three operators, Conv, Relu and Add, are three feature rows. The Conv's window is 3 high, and each
 * operator has one input. */
static void later_predictors_name_the_columns_of_rows(void **state)
{
    (void)state;
    onnx_builder *b = sums_model("operator_setting", MDOT_SETTING_COUNT + 2, MDOT_SETTING_COUNT - 1);
    expect_times(with_note(b, "mdot.defaults.operator_setting", "-0.25,1e3"), 1 + 3, 1 - 0.75, 3001);
    b = sums_model("operator_position", 6, 3);
    expect_times(with_note(b, "mdot.defaults.operator_position", "5"), 1 + 2, 1 + 2, 16);
}

/* The model computes sqrt(negative number). A NaN counts as outside the training range. */
static void a_nan_counts_as_outside_of_the_training_range(void **state)
{
    (void)state;
    const int64_t zero = 0, one = 1;
    onnx_builder *b = numbers_model("configuration", 8, 0);
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "1", &zero);
    onnx_initializer(b, "first", MDOT_DTYPE_I64, "1", &one);
    onnx_node(b, "Slice", "configuration,zero,first", "batch");
    onnx_node(b, "Neg", "batch", "negative");
    onnx_node(b, "Sqrt", "negative", "outside_training");
    onnx_output(b, "outside_training");
    predict_fixture f = {0};
    predict_open(&f, b);
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(5, "A100");
    assert_int_equal(predict_warnings(predict_one(&f, job, &c)), MDOT_WARN_OUTSIDE_TRAINING);
    mdot_job_destroy(job);
    predict_close(&f);
}

/* ---- Artefacts that do not predict jobs -------------------------------------------------------------------------- */

static void expect_incompatible(onnx_builder *b, const char *part)
{
    predict_fixture f = {0};
    predict_open(&f, b);
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(1, "T4");
    mdot_prediction p = {.struct_size = sizeof p, .step_ms = -7};
    mdot_error err = {0};
    assert_int_equal(mdot_predict(f.context, job, &c, &p, &err), MDOT_INCOMPATIBLE);
    if (strstr(err.message, part) == NULL) fail_msg("\"%s\" does not say \"%s\"", err.message, part);
    assert_compare(p.step_ms, ==, -7);
    mdot_job_destroy(job);
    predict_close(&f);
}

static void expect_refused_input(const char *name, mdot_dtype dtype, const char *shape, const char *part)
{
    onnx_builder *b = predict_bandwidth_model();
    onnx_input(b, name, dtype, shape);
    onnx_node(b, "Identity", name, "unused");
    expect_incompatible(b, part);
}

static void unknown_inputs_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused_input("operator_colour", MDOT_DTYPE_F32, "L", "input operator_colour of entry predict");
    expect_refused_input("operator_setting", MDOT_DTYPE_F32, "L,26",
                         "input operator_setting of entry predict has 26 columns, of which mdot " MDOT_VERSION_STRING
                         " knows the first 25: the predictor was made for a later version");
    expect_incompatible(
        with_note(numbers_model("gpu", 15, 8), "mdot.defaults.gpu", "1"),
        "input gpu of entry predict has 15 columns, of which mdot " MDOT_VERSION_STRING
        " knows the first 13: the predictor was made for a later version and gives defaults for only 1");
    expect_incompatible(numbers_model("gpu", 14, 0), "input gpu of entry predict has 14 columns");
    char part[64];
    snprintf(part, sizeof part, "input configuration of entry predict has %d columns", RT_CONFIGURATION_NUMBERS + 1);
    expect_incompatible(numbers_model("configuration", RT_CONFIGURATION_NUMBERS + 1, 0), part);
    expect_refused_input("operator_setting", MDOT_DTYPE_F32, "L",
                         "operator_setting of entry predict must be f32 [L, 25]");
    expect_refused_input("operator_setting", MDOT_DTYPE_F32, "L,L", "operator_setting");
    expect_refused_input("operator_type", MDOT_DTYPE_I32, "L", "operator_type of entry predict must be i64 [L]");
    expect_refused_input("operator_type", MDOT_DTYPE_I64, "L,1", "operator_type");
    expect_refused_input("operator_position", MDOT_DTYPE_F32, "3,5", "operator_position");
}

static void wrong_outputs_are_refused_by_name(void **state)
{
    (void)state;
    onnx_builder *b = predict_bandwidth_model();
    onnx_output(b, "all_bytes");
    expect_incompatible(b, "output all_bytes of entry predict");
    b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "8");
    onnx_node(b, "Abs", "configuration", "step_ms");
    onnx_output(b, "step_ms");
    expect_incompatible(b, "output step_ms of entry predict must be f32 [3]");
    b = onnx_begin(17);
    const int64_t zero = 0, one = 1;
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "8");
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "1", &zero);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "1", &one);
    onnx_node(b, "Slice", "configuration,zero,one", "outside_training");
    onnx_output(b, "outside_training");
    expect_incompatible(b, "lacks output step_ms");
    static const float base[3] = {1, 1, 1};
    b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "9");
    onnx_initializer(b, "base", MDOT_DTYPE_F32, "3", base);
    onnx_node(b, "Identity", "base", "step_ms");
    onnx_output(b, "step_ms");
    onnx_node(b, "Neg", "configuration", "outside_training");
    onnx_output(b, "outside_training");
    expect_incompatible(b, "output outside_training of entry predict must be f32 [8]");
    b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "9");
    onnx_initializer(b, "base", MDOT_DTYPE_F32, "3", base);
    onnx_node(b, "Identity", "base", "step_ms");
    onnx_output(b, "step_ms");
    onnx_node(b, "Neg", "configuration", "part_ms");
    onnx_output(b, "part_ms");
    expect_incompatible(b, "output part_ms of entry predict must be f32 [10]");
}

static void a_set_of_numbers_holds_64(void **state)
{
    (void)state;
    assert_compare(rt_first_numbers(0), ==, 0);
    assert_compare(rt_first_numbers(26), ==, 0x3ffffff);
    assert_compare(rt_first_numbers(63), ==, UINT64_MAX >> 1);
    assert_compare(rt_first_numbers(64), ==, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_of_numbers_holds_64),
        cmocka_unit_test(a_nan_counts_as_outside_of_the_training_range),
        cmocka_unit_test(older_predictors_get_only_known_types_and_settings),
        cmocka_unit_test(older_predictors_get_the_leading_columns),
        cmocka_unit_test(later_predictors_give_defaults_for_unknown_columns),
        cmocka_unit_test(defaults_of_known_columns_are_ignored),
        cmocka_unit_test(later_predictors_name_the_columns_of_rows),
        cmocka_unit_test(columns_are_selected_by_name),
        cmocka_unit_test(names_of_later_columns_are_refused),
        cmocka_unit_test(unknown_inputs_are_refused_by_name),
        cmocka_unit_test(wrong_outputs_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
