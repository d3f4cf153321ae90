/* test_verify_inputs.c — mdotc_verify on given tensors and jobs, for models that accept only certain numbers, and the
 * error bound for 16-bit code. */
#include "mdot/mdotc.h"
#include "tests/support/assertions.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/mdot_verify_XXXXXX", model[64], artefact[64];

static void write_bytes(const char *path, pb_buffer bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    assert_int_equal(fclose(file), 0);
    pb_free(&bytes);
}

static void write_input(int number, mdot_dtype dtype, const char *shape, const void *data)
{
    char path[96];
    snprintf(path, sizeof path, "%s/input_%d.pb", folder, number);
    if (shape != NULL)
        write_bytes(path, onnx_tensor("x", dtype, shape, data));
    else
        unlink(path);
}

/* y = log x, with a bucket of 8. */
static int set_up(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(model, sizeof model, "%s/model.onnx", folder);
    snprintf(artefact, sizeof artefact, "%s/model.mdot", folder);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,2");
    onnx_node(b, "Log", "x", "y");
    onnx_output(b, "y");
    write_bytes(model, onnx_finish(b));
    const mdotc_entry entry = {.struct_size = sizeof entry, .name = "predict", .model_path = model};
    const int64_t bucket = 8;
    const mdotc_options options = {.struct_size = sizeof options, .buckets = &bucket, .bucket_count = 1};
    mdot_error err;
    if (mdotc_compile(&entry, 1, artefact, &options, &err) != MDOT_OK) fail_msg("%s", err.message);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    write_input(0, MDOT_DTYPE_F32, NULL, NULL);
    unlink(model);
    unlink(artefact);
    return rmdir(folder);
}

static int64_t length_seen;
static double bound_seen;

static void keep_row(void *user, const mdotc_verify_row *row)
{
    (void)user;
    length_seen = row->worst_length;
    bound_seen = row->bound;
}

static mdot_status verify(bool *out_passed, mdot_error *err)
{
    const mdotc_verify_options options = {.struct_size = sizeof options, .row = keep_row, .inputs = folder};
    length_seen = -1;
    return mdotc_verify(artefact, model, &options, out_passed, err);
}

static void given_tensors_are_verified_at_their_length(void **state)
{
    (void)state;
    bool passed = false;
    mdot_error err;
    write_input(0, MDOT_DTYPE_F32, "3,2", (const float[]){1, 2, 3, 4, 5, 6});
    if (verify(&passed, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(passed);
    assert_int_equal(length_seen, 3);
}

/* Random inputs cannot show whether NaN everywhere is right; inputs that the caller chose can. */
static void an_output_of_nan_passes_on_given_inputs(void **state)
{
    (void)state;
    bool passed = false;
    mdot_error err;
    write_input(0, MDOT_DTYPE_F32, "3,2", (const float[]){-1, -2, -3, -4, -5, -6});
    if (verify(&passed, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(passed);
}

static void tensors_of_other_names_are_refused(void **state)
{
    (void)state;
    bool passed = false;
    mdot_error err;
    write_input(0, MDOT_DTYPE_F32, "9,2", NULL);
    assert_int_equal(verify(&passed, &err), MDOT_OUT_OF_RANGE);
    assert_non_null(strstr(err.message, "the length 9 exceeds every bucket"));
    write_input(0, MDOT_DTYPE_F32, "3,3", NULL);
    assert_int_equal(verify(&passed, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "input_0.pb does not match input \"x\""));
    write_input(0, MDOT_DTYPE_F64, "3,2", NULL);
    assert_int_equal(verify(&passed, &err), MDOT_INVALID_ARGUMENT);
    write_input(0, MDOT_DTYPE_F32, NULL, NULL);
    assert_int_equal(verify(&passed, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "has 0 files"));
}

static void compile(onnx_builder *b, const char *kernel_precision)
{
    write_bytes(model, onnx_finish(b));
    const mdotc_entry entry = {.struct_size = sizeof entry, .name = "predict", .model_path = model};
    const int64_t bucket = 8;
    const mdotc_options options = {
        .struct_size = sizeof options, .buckets = &bucket, .bucket_count = 1, .kernel_precision = kernel_precision};
    mdot_error err;
    if (mdotc_compile(&entry, 1, artefact, &options, &err) != MDOT_OK) fail_msg("%s", err.message);
}

static mdot_status verify_jobs(const char *inputs, const mdot_configuration *configurations, bool *out_passed,
                               mdot_error *err)
{
    mdot_job *few = predict_job(3, 3), *more = predict_job(6, 6);
    const mdot_job *jobs[] = {few, more};
    const mdotc_verify_options options = {.struct_size = sizeof options,
                                          .row = keep_row,
                                          .inputs = inputs,
                                          .jobs = jobs,
                                          .configurations = configurations,
                                          .job_count = 2};
    length_seen = -1;
    mdot_status status = mdotc_verify(artefact, model, &options, out_passed, err);
    mdot_job_destroy(few);
    mdot_job_destroy(more);
    return status;
}

static void jobs_serve_as_verification_inputs(void **state)
{
    (void)state;
    const mdot_configuration two[] = {predict_configuration(8, "A100"), predict_configuration(1, "T4")};
    bool passed = false;
    mdot_error err;
    compile(predict_bandwidth_model(), NULL);
    if (verify_jobs(NULL, two, &passed, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(passed);
    assert_true(length_seen == 3 || length_seen == 6);
}

static void jobs_that_cannot_be_read_are_refused(void **state)
{
    (void)state;
    mdot_configuration two[] = {predict_configuration(8, "A100"), predict_configuration(0, "T4")};
    bool passed = false;
    mdot_error err;
    compile(predict_bandwidth_model(), NULL);
    assert_int_equal(verify_jobs(NULL, two, &passed, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "pair 1"));
    two[1].batch = 1;
    assert_int_equal(verify_jobs(folder, two, &passed, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(verify_jobs(NULL, NULL, &passed, &err), MDOT_INVALID_ARGUMENT);
    two[0].struct_size = 0;
    assert_int_equal(verify_jobs(NULL, two, &passed, &err), MDOT_INVALID_ARGUMENT);
}

enum { WIDTH = 16, DEPTH = 6 };

/* A chain of matmuls. `scale` multiplies the first weights. */
static onnx_builder *chain(float scale)
{
    float weight[WIDTH * WIDTH];
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,16");
    uint32_t random = 1;
    for (int d = 0; d < DEPTH; d++) {
        char name[8], inputs[16], output[8];
        for (int i = 0; i < WIDTH * WIDTH; i++) {
            random = random * UINT32_C(1664525) + UINT32_C(1013904223); /* constants from Numerical Recipes */
            weight[i] = (d == 0 ? scale : 1) * ((float)(random >> 8) / (float)(1 << 24) - 0.5f);
        }
        snprintf(name, sizeof name, "w%d", d);
        onnx_initializer(b, name, MDOT_DTYPE_F32, "16,16", weight);
        snprintf(inputs, sizeof inputs, d == 0 ? "x,w0" : "h%d,w%d", d - 1, d);
        snprintf(output, sizeof output, d + 1 < DEPTH ? "h%d" : "y", d);
        onnx_node(b, "MatMul", inputs, output);
    }
    onnx_output(b, "y");
    return b;
}

static void the_tolerance_of_16_bit_code_follows_rounding_error(void **state)
{
    (void)state;
    const mdotc_verify_options options = {.struct_size = sizeof options, .row = keep_row};
    bool passed = false;
    mdot_error err;
    compile(chain(1), "cpu=bf16");
    if (mdotc_verify(artefact, model, &options, &passed, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(passed);
    assert_compare(bound_seen, >, 0x1p-8);
    assert_compare(bound_seen, <, 0.1);
    write_bytes(model, onnx_finish(chain(1.2f)));
    if (mdotc_verify(artefact, model, &options, &passed, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_false(passed);
}

/* Small results have the error of the terms that cancel: x (1 + erf) for negative x, logarithms of sums near 1. */
static void right_code_of_formulas_that_cancel_passes(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs;
    } cases[] = {{"Gelu", "a"},       {"com.microsoft:Gelu", "a"}, {"com.microsoft:BiasGelu", "xs,bias"},
                 {"LogSoftmax", "a"}, {"ReduceLogSumExp", "a"},    {"ReduceLogSum", "e"}};
    static const float steps[] = {-12, -1.2f, -0.6f, -0.1f, 12}, scales[] = {1e-4f, 0.05f, 1};
    for (size_t i = 0; i < sizeof cases / sizeof *cases * 5 * 3; i++) {
        float bias[8];
        for (int k = 0; k < 8; k++) bias[k] = steps[i / 3 % 5] * (float)k;
        onnx_builder *b = onnx_begin(20);
        onnx_import(b, "com.microsoft", 1);
        onnx_input(b, "x", MDOT_DTYPE_F32, "N,8");
        onnx_initializer(b, "bias", MDOT_DTYPE_F32, "8", bias);
        onnx_initializer(b, "scale", MDOT_DTYPE_F32, "", &scales[i % 3]);
        onnx_node(b, "Mul", "x,scale", "xs");
        onnx_node(b, "Add", "xs,bias", "a");
        onnx_node(b, "Exp", "a", "e");
        onnx_node(b, cases[i / 15].op, cases[i / 15].inputs, "y");
        onnx_output(b, "y");
        compile(b, NULL);
        const mdotc_verify_options options = {.struct_size = sizeof options, .row = keep_row};
        bool passed = false;
        mdot_error err;
        if (mdotc_verify(artefact, model, &options, &passed, &err) != MDOT_OK) fail_msg("%s", err.message);
        if (!passed) fail_msg("%s with %g, %g fails", cases[i / 15].op, (double)bias[1], (double)scales[i % 3]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_tensors_are_verified_at_their_length),
        cmocka_unit_test(an_output_of_nan_passes_on_given_inputs),
        cmocka_unit_test(tensors_of_other_names_are_refused),
        cmocka_unit_test(jobs_serve_as_verification_inputs),
        cmocka_unit_test(jobs_that_cannot_be_read_are_refused),
        cmocka_unit_test(the_tolerance_of_16_bit_code_follows_rounding_error),
        cmocka_unit_test(right_code_of_formulas_that_cancel_passes),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
