/* test_validate_options.c — mdotc.h arguments that the command line would refuse. Each is refused with a reason, and no
 * file is written. */
#include "mdot/mdot.h"
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    char *folder, *model;
    char artefact[512];
    mdotc_options options;
    mdotc_entry entries[2];
    mdot_error err;
} fixture;

static const char *const v3[] = {"cpu:x86-64-v3"};

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "B,N");
    onnx_node(b, "Neg", "x", "y");
    onnx_output(b, "y");
    f->model = write_model(f->folder, "neg.onnx", onnx_finish(b));
    snprintf(f->artefact, sizeof f->artefact, "%s/neg.mdot", f->folder);
    f->options = MDOT_INIT(mdotc_options);
    f->options.targets = v3;
    f->options.target_count = 1;
    for (int i = 0; i < 2; i++) {
        f->entries[i] = MDOT_INIT(mdotc_entry);
        f->entries[i].name = i == 0 ? "predict" : "evaluate";
        f->entries[i].model_path = f->model;
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    free(f->model);
    free(f);
    return 0;
}

static mdot_status compile(fixture *f) { return mdotc_compile(f->entries, 1, f->artefact, &f->options, &f->err); }

static void expect_refused(fixture *f, mdot_status status, const char *message)
{
    if (status != MDOT_INVALID_ARGUMENT) fail_msg("status %d, not refused for \"%s\"", (int)status, message);
    assert_int_equal(f->err.status, MDOT_INVALID_ARGUMENT);
    expect_contains(f->err.message, message);
    assert_int_equal(process_count_files(f->folder), 1); /* only the model */
}

static void expect_buckets_refused(fixture *f, const int64_t *buckets, size_t count, const char *message)
{
    f->options.buckets = buckets;
    f->options.bucket_count = count;
    expect_refused(f, compile(f), message);
}

static void invalid_buckets_are_refused(void **state)
{
    fixture *f = *state;
    expect_buckets_refused(f, (int64_t[]){64, 32}, 2, "32 follows 64");
    expect_buckets_refused(f, (int64_t[]){32, 32}, 2, "32 follows 32");
    expect_buckets_refused(f, (int64_t[]){16, 64, 48}, 3, "48 follows 64");
    expect_buckets_refused(f, (int64_t[]){0}, 1, "between 1 and 1048576");
    expect_buckets_refused(f, (int64_t[]){-1, 8}, 2, "between 1 and 1048576");
    expect_buckets_refused(f, (int64_t[]){8, MDOTC_MAX_LENGTH + 1}, 2, "between 1 and 1048576");
    expect_buckets_refused(f, (int64_t[]){INT64_MAX}, 1, "between 1 and 1048576");
    expect_buckets_refused(f, NULL, 2, "buckets");
}

static void a_least_length_that_no_bucket_holds_is_refused(void **state)
{
    fixture *f = *state;
    const int64_t buckets[] = {16, 32};
    for (size_t i = 0; i < 2; i++) {
        f->options.min_length = i == 0 ? -1 : MDOTC_MAX_LENGTH + 1;
        expect_refused(f, compile(f), "minimum length");
    }
    f->options.min_length = 2000;
    expect_refused(f, compile(f), "a minimum length of 2000 requires larger buckets");
    f->options.buckets = buckets;
    f->options.bucket_count = 2;
    f->options.min_length = 17;
    expect_refused(f, compile(f), "between 1 and the first bucket, not 17");
}

static void calls_below_the_least_length_are_refused(void **state)
{
    fixture *f = *state;
    f->options.min_length = 40;
    if (compile(f) != MDOT_OK) fail_msg("%s", f->err.message);
    mdot_predictor *predictor = NULL;
    if (mdot_predictor_open(f->artefact, NULL, &predictor, &f->err) != MDOT_OK) fail_msg("%s", f->err.message);
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    mdot_bucket_info first = MDOT_INIT(mdot_bucket_info);
    size_t bucket;
    assert_int_equal(mdot_predictor_get_entry(predictor, 0, &entry), MDOT_OK);
    assert_true(entry.has_length);
    assert_int_equal(entry.min_length, 40);
    assert_int_equal(mdot_predictor_get_bucket(predictor, 0, 0, &first), MDOT_OK);
    assert_int_equal(first.max_length, 64); /* the smallest default bucket that holds it */
    assert_int_equal(mdot_predictor_find_bucket(predictor, 0, 39, &bucket), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_find_bucket(predictor, 0, 40, &bucket), MDOT_OK);
    mdot_predictor_close(predictor);
}

/* An artefact with buckets at either limit can be opened. */
static void buckets_at_the_limits_are_compiled(void **state)
{
    fixture *f = *state;
    const int64_t buckets[] = {1, 2, MDOTC_MAX_LENGTH};
    f->options.buckets = buckets;
    f->options.bucket_count = 3;
    mdot_status status = compile(f);
    if (status != MDOT_OK) fail_msg("%s", f->err.message);
    mdot_predictor *predictor = NULL;
    status = mdot_predictor_open(f->artefact, NULL, &predictor, &f->err);
    if (status != MDOT_OK) fail_msg("%s", f->err.message);
    for (size_t i = 0; i < 3; i++) {
        mdot_bucket_info info = MDOT_INIT(mdot_bucket_info);
        assert_int_equal(mdot_predictor_get_bucket(predictor, 0, i, &info), MDOT_OK);
        assert_int_equal(info.max_length, buckets[i]);
    }
    mdot_predictor_close(predictor);
}

static void names_that_are_missing_are_refused(void **state)
{
    fixture *f = *state;
    expect_refused(f, mdotc_compile(f->entries, 1, NULL, &f->options, &f->err), "no name");
    expect_refused(f, mdotc_compile(f->entries, 1, "", &f->options, &f->err), "no name");
    f->entries[0].name = NULL;
    expect_refused(f, compile(f), "entry point 0 has no name");
    f->entries[0].name = "";
    expect_refused(f, compile(f), "entry point 0 has no name");
    f->entries[0].name = "predict";
    f->entries[1].model_path = NULL;
    expect_refused(f, mdotc_compile(f->entries, 2, f->artefact, &f->options, &f->err), "\"evaluate\" has no model");
    f->entries[1] = f->entries[0];
    expect_refused(f, mdotc_compile(f->entries, 2, f->artefact, &f->options, &f->err), "two entry points");
    f->options.name = "";
    expect_refused(f, compile(f), "predictor");
}

static void targets_that_are_missing_are_refused(void **state)
{
    fixture *f = *state;
    const char *const hole[] = {"cpu", NULL};
    f->options.targets = NULL;
    expect_refused(f, compile(f), "targets");
    f->options.targets = hole;
    f->options.target_count = 2;
    expect_refused(f, compile(f), "target 1");
}

static void a_target_named_twice_counts_once(void **state)
{
    fixture *f = *state;
    const char *const twice[] = {"cpu:x86-64-v3", "cpu:x86-64-v3", "cpu:x86-64-v3"};
    f->options.targets = twice;
    f->options.target_count = 3;
    if (compile(f) != MDOT_OK) fail_msg("%s", f->err.message);
    mdot_predictor *predictor = NULL;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    assert_int_equal(mdot_predictor_open(f->artefact, NULL, &predictor, &f->err), MDOT_OK);
    mdot_predictor_get_info(predictor, &info);
    assert_int_equal(info.image_count, 1);
    mdot_predictor_close(predictor);
}

/* The compiler, the verifier and the job reader all refuse them. */
static void expect_dims_refused(fixture *f, const mdot_dim_binding *dims, size_t count, const char *message)
{
    mdotc_verify_options verify = {.struct_size = sizeof verify, .dims = dims, .dim_count = count};
    mdot_job_options job = {.struct_size = sizeof job, .dims = dims, .dim_count = count};
    mdot_job *made = NULL;
    bool passed = false;
    f->options.dims = dims;
    f->options.dim_count = count;
    expect_refused(f, compile(f), message);
    expect_refused(f, mdotc_verify("absent.mdot", f->model, &verify, &passed, &f->err), message);
    expect_refused(f, mdot_job_read(f->model, &job, &made, &f->err), message);
    assert_null(made);
}

static void empty_dimensions_are_refused(void **state)
{
    fixture *f = *state;
    expect_dims_refused(f, NULL, 1, "dimension bindings");
    expect_dims_refused(f, (mdot_dim_binding[]){{.value = 1}}, 1, "dimension 0 has no name");
    expect_dims_refused(f, (mdot_dim_binding[]){{"B", 1, NULL}, {"", 1, NULL}}, 2, "dimension 1 has no name");
    expect_dims_refused(f, (mdot_dim_binding[]){{"B", -3, NULL}}, 1, "bound to -3");
    expect_dims_refused(f, (mdot_dim_binding[]){{"B", INT64_MIN, NULL}}, 1, "bound to -9223372036854775808");
    expect_dims_refused(f, (mdot_dim_binding[]){{"B", 0, ""}}, 1, "'B'");
}

static void verify_refuses_missing_arguments_and_bad_tolerances(void **state)
{
    fixture *f = *state;
    mdotc_verify_options o = MDOT_INIT(mdotc_verify_options);
    bool passed = false;
    expect_refused(f, mdotc_verify(NULL, f->model, &o, &passed, &f->err), "requires");
    expect_refused(f, mdotc_verify(f->artefact, NULL, &o, &passed, &f->err), "requires");
    expect_refused(f, mdotc_verify(f->artefact, f->model, &o, NULL, &f->err), "requires");
    static const double tolerances[] = {-1e-4, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof tolerances / sizeof tolerances[0]; i++) {
        o.tolerance = tolerances[i];
        expect_refused(f, mdotc_verify(f->artefact, f->model, &o, &passed, &f->err), "tolerance");
    }
}

static void check_refuses_missing_arguments_and_bad_tolerances(void **state)
{
    fixture *f = *state;
    mdotc_check_options o = MDOT_INIT(mdotc_check_options);
    mdotc_check_report report = MDOT_INIT(mdotc_check_report);
    expect_refused(f, mdotc_check(NULL, &o, &report, &f->err), "requires");
    expect_refused(f, mdotc_check(f->folder, &o, NULL, &f->err), "missing");
    static const double tolerances[] = {-1e-4, NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof tolerances / sizeof tolerances[0]; i++) {
        o.relative_tolerance = tolerances[i];
        expect_refused(f, mdotc_check(f->folder, &o, &report, &f->err), "tolerance");
        o.relative_tolerance = 0;
        o.absolute_tolerance = tolerances[i];
        expect_refused(f, mdotc_check(f->folder, &o, &report, &f->err), "tolerance");
        o.absolute_tolerance = 0;
    }
}

static void the_job_reader_refuses_missing_arguments(void **state)
{
    fixture *f = *state;
    mdot_job *job = NULL;
    expect_refused(f, mdot_job_read(NULL, NULL, &job, &f->err), "requires");
    expect_refused(f, mdot_job_read(f->model, NULL, NULL, &f->err), "requires");
    expect_refused(f, mdot_job_read_bytes(NULL, 8, "x", NULL, &job, &f->err), "requires");
    expect_refused(f, mdot_job_read_bytes("x", 1, NULL, NULL, &job, &f->err), "requires");
    expect_refused(f, mdot_job_read_bytes("x", 1, "x", NULL, NULL, &f->err), "requires");
    assert_int_equal(mdot_job_read_bytes(NULL, 0, "x", NULL, &job, &f->err), MDOT_MALFORMED); /* an empty file */
    assert_null(job);
}

static void refusals_accept_a_null_error(void **state)
{
    fixture *f = *state;
    mdotc_entry none = MDOT_INIT(mdotc_entry);
    assert_int_equal(mdotc_compile(&none, 1, f->artefact, NULL, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdotc_compile(NULL, 1, f->artefact, NULL, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdotc_compile(NULL, 0, f->artefact, NULL, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_job_read(NULL, NULL, NULL, NULL), MDOT_INVALID_ARGUMENT);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(invalid_buckets_are_refused),
        CASE(a_least_length_that_no_bucket_holds_is_refused),
        CASE(calls_below_the_least_length_are_refused),
        CASE(buckets_at_the_limits_are_compiled),
        CASE(names_that_are_missing_are_refused),
        CASE(targets_that_are_missing_are_refused),
        CASE(a_target_named_twice_counts_once),
        CASE(empty_dimensions_are_refused),
        CASE(verify_refuses_missing_arguments_and_bad_tolerances),
        CASE(check_refuses_missing_arguments_and_bad_tolerances),
        CASE(the_job_reader_refuses_missing_arguments),
        CASE(refusals_accept_a_null_error),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
