/* test_job_schema.c — what artefacts that predict jobs may declare: inputs of earlier versions with fewer numbers and
 * types, and what is refused by name. */
#include "mdot/mdotjob.h"
#include "tests/support/artefact_fixture.h"
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
    mdot_operator_facts facts;
    assert_int_equal(mdot_operator_facts_find(type, &facts), MDOT_OK);
    return facts.number;
}

/* ---- Artefacts made for other versions --------------------------------------------------------------------------- */

static void older_predictors_read_what_they_know(void **state)
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
    assert_int_equal(p.warnings, MDOT_WARN_UNKNOWN_OPERATOR);
    mdot_job_destroy(job);
    predict_close(&old);
    predict_open(&old, predict_settings_model_of(type_number("Conv") + 1, MDOT_SETTING_COUNT));
    job = predict_job(6, 6);
    p = predict_one(&old, job, &c);
    predict_assert_close(p.lower_ms,
                         1e-3 * (1 + 2 * (double)(type_number("Conv") + type_number("Relu") + type_number("Add"))));
    assert_int_equal(p.warnings, 0);
    mdot_job_destroy(job);
    predict_close(&old);
}

/* The first three numbers of an input of so many, as a time. */
static onnx_builder *prefix_model(const char *input, const char *shape)
{
    const int64_t from = 0, to = 3;
    static const float one = 1;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, input, MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "from", MDOT_DTYPE_I64, "1", &from);
    onnx_initializer(b, "to", MDOT_DTYPE_I64, "1", &to);
    onnx_initializer(b, "one", MDOT_DTYPE_F32, "1", &one);
    char inputs[64];
    snprintf(inputs, sizeof inputs, "%s,from,to", input);
    onnx_node(b, "Slice", inputs, "part");
    onnx_node(b, "Add", "part,one", "step_ms");
    onnx_output(b, "step_ms");
    return b;
}

static void older_predictors_read_the_first_numbers(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(5, "A100");
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    predict_fixture f = {0};
    predict_open(&f, prefix_model("gpu", "3"));
    mdot_prediction p = predict_one(&f, job, &c);
    predict_assert_close(p.lower_ms, 1 + gpu.compute_capability);
    predict_assert_close(p.upper_ms, 1 + gpu.boost_mhz);
    predict_close(&f);
    predict_open(&f, prefix_model("configuration", "4"));
    p = predict_one(&f, job, &c);
    predict_assert_close(p.lower_ms, 1 + 5);
    predict_close(&f);
    mdot_job_destroy(job);
}

/* sqrt of a negative number: what is no number is no promise that training reaches so far. */
static void an_outside_that_is_no_number_is_outside(void **state)
{
    (void)state;
    const int64_t zero = 0, one = 1;
    onnx_builder *b = prefix_model("configuration", "8");
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
    assert_int_equal(predict_one(&f, job, &c).warnings, MDOT_WARN_OUTSIDE_TRAINING);
    mdot_job_destroy(job);
    predict_close(&f);
}

/* ---- Artefacts that predict no jobs ------------------------------------------------------------------------------ */

static void expect_incompatible(onnx_builder *b, const char *says)
{
    predict_fixture f = {0};
    predict_open(&f, b);
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(1, "T4");
    mdot_prediction p = {.struct_size = sizeof p, .step_ms = -7};
    mdot_error err = {0};
    assert_int_equal(mdot_predict(f.context, job, &c, &p, &err), MDOT_INCOMPATIBLE);
    if (strstr(err.message, says) == NULL) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
    assert_true(p.step_ms == -7);
    mdot_job_destroy(job);
    predict_close(&f);
}

static void expect_refused_input(const char *name, mdot_dtype dtype, const char *shape, const char *says)
{
    onnx_builder *b = predict_bandwidth_model();
    onnx_input(b, name, dtype, shape);
    onnx_node(b, "Identity", name, "unused");
    expect_incompatible(b, says);
}

static void unknown_inputs_are_refused_by_name(void **state)
{
    (void)state;
    expect_refused_input("operator_colour", MDOT_DTYPE_F32, "L", "input operator_colour of entry predict");
    expect_refused_input("operator_setting", MDOT_DTYPE_F32, "L,26",
                         "input operator_setting of entry predict has 26 columns, of which mdot " MDOT_VERSION_STRING
                         " knows the first 25: the predictor was made for a later version");
    expect_incompatible(prefix_model("gpu", "10"), "input gpu of entry predict has 10 columns");
    expect_incompatible(prefix_model("configuration", "9"), "input configuration of entry predict has 9 columns");
    expect_refused_input("operator_setting", MDOT_DTYPE_F32, "L",
                         "operator_setting of entry predict is not f32 [L, 25]");
    expect_refused_input("operator_setting", MDOT_DTYPE_F32, "L,L", "operator_setting");
    expect_refused_input("operator_type", MDOT_DTYPE_I32, "L", "operator_type of entry predict is not i64 [L]");
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
    expect_incompatible(b, "output step_ms of entry predict is not f32 [3]");
    b = onnx_begin(17);
    const int64_t zero = 0, one = 1;
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "8");
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "1", &zero);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "1", &one);
    onnx_node(b, "Slice", "configuration,zero,one", "outside_training");
    onnx_output(b, "outside_training");
    expect_incompatible(b, "no output step_ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outside_that_is_no_number_is_outside),
        cmocka_unit_test(older_predictors_read_what_they_know),
        cmocka_unit_test(older_predictors_read_the_first_numbers),
        cmocka_unit_test(unknown_inputs_are_refused_by_name),
        cmocka_unit_test(wrong_outputs_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
