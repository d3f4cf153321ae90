/* test_verify_inputs.c — mdotc_verify on given tensors, for models that cannot read any number. */
#include "mdot/mdotc.h"
#include "tests/support/onnx_builder.h"

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

/* y = log x, a bucket of 8. */
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

static void keep_row(void *user, const mdotc_verify_row *row)
{
    (void)user;
    length_seen = row->worst_length;
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

static void tensors_that_are_no_inputs_are_refused(void **state)
{
    (void)state;
    bool passed = false;
    mdot_error err;
    write_input(0, MDOT_DTYPE_F32, "9,2", NULL);
    assert_int_equal(verify(&passed, &err), MDOT_OUT_OF_RANGE);
    assert_non_null(strstr(err.message, "no bucket holds a length of 9"));
    write_input(0, MDOT_DTYPE_F32, "3,3", NULL);
    assert_int_equal(verify(&passed, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "input_0.pb is no \"x\""));
    write_input(0, MDOT_DTYPE_F64, "3,2", NULL);
    assert_int_equal(verify(&passed, &err), MDOT_INVALID_ARGUMENT);
    write_input(0, MDOT_DTYPE_F32, NULL, NULL);
    assert_int_equal(verify(&passed, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "0 files"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(given_tensors_are_verified_at_their_length),
        cmocka_unit_test(tensors_that_are_no_inputs_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
