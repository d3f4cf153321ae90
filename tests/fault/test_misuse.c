/* test_misuse.c — wrong calls to every public function: NULL for each required argument, and indices and counts out of
 * range. Each must return a status and a message, and never crash. The export maps list the functions; a function
 * without a row here fails the test. */
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/fault/misuse.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fixture shared;
mdot_predictor *misuse_predictor;
mdot_context *misuse_context;
mdot_job *misuse_job;
mdot_error misuse_err;

static int setup(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        exit(77);
    }
    fixture_open(&shared);
    misuse_predictor = fixture_predictor(&shared);
    assert_int_equal(mdot_context_create(misuse_predictor, &misuse_context, NULL), MDOT_OK);
    misuse_job = predict_job(5, 5);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mdot_job_destroy(misuse_job);
    mdot_context_destroy(misuse_context);
    mdot_predictor_close(misuse_predictor);
    fixture_close(&shared);
    return 0;
}

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
    assert_null(mdot_implausible_name(0));
    assert_null(mdot_implausible_text(UINT32_MAX));
}

static void failing(void)
{
    const char *none = NULL;
    assert_int_equal(mdot_fail(NULL, MDOT_IO, "x"), MDOT_IO);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
    assert_int_equal(mdot_fail(&misuse_err, MDOT_IO, none), MDOT_IO);
#pragma GCC diagnostic pop
    assert_string_equal(misuse_err.message, mdot_status_text(MDOT_IO));
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
    EXPECT_REFUSAL(mdot_predictor_open(NULL, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_predictor_open("x", NULL, NULL, &misuse_err));
    INVALID(mdot_predictor_open(NULL, NULL, NULL, NULL));
    mdot_open_options unsized = {0};
    EXPECT_REFUSAL(mdot_predictor_open("x", &unsized, &none, &misuse_err));
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
    INVALID(mdot_predictor_get_info(misuse_predictor, NULL));
    INVALID(mdot_predictor_find_entry(NULL, "predict", &at));
    INVALID(mdot_predictor_find_entry(misuse_predictor, NULL, &at));
    INVALID(mdot_predictor_find_entry(misuse_predictor, "predict", NULL));
    INVALID(mdot_predictor_get_entry(NULL, 0, &entry));
    INVALID(mdot_predictor_get_entry(misuse_predictor, 0, NULL));
    INVALID(mdot_predictor_get_input(NULL, 0, 0, &tensor));
    INVALID(mdot_predictor_get_input(misuse_predictor, 0, 0, NULL));
    INVALID(mdot_predictor_get_output(NULL, 0, 0, &tensor));
    INVALID(mdot_predictor_get_output(misuse_predictor, 0, 0, NULL));
    INVALID(mdot_predictor_get_bucket(NULL, 0, 0, &bucket));
    INVALID(mdot_predictor_get_bucket(misuse_predictor, 0, 0, NULL));
    INVALID(mdot_predictor_get_kernel(NULL, 0, 0, 0, &kernel));
    INVALID(mdot_predictor_get_kernel(misuse_predictor, 0, 0, 0, NULL));
    INVALID(mdot_predictor_get_image(NULL, 0, &image));
    INVALID(mdot_predictor_get_image(misuse_predictor, 0, NULL));
    INVALID(mdot_predictor_get_image_kernel(NULL, 0, 0, 0, &image_kernel));
    INVALID(mdot_predictor_get_image_kernel(misuse_predictor, 0, 0, 0, NULL));
    INVALID(mdot_predictor_find_bucket(NULL, 0, 1, &at));
    INVALID(mdot_predictor_find_bucket(misuse_predictor, 0, 1, NULL));
    static const size_t wrong[] = {2, 1u << 31, (size_t)1 << 32, SIZE_MAX / 8, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        size_t w = wrong[i];
        BEYOND(mdot_predictor_get_entry(misuse_predictor, w, &entry));
        BEYOND(mdot_predictor_get_input(misuse_predictor, w, 0, &tensor));
        BEYOND(mdot_predictor_get_input(misuse_predictor, 1, w, &tensor));
        BEYOND(mdot_predictor_get_output(misuse_predictor, w, 0, &tensor));
        BEYOND(mdot_predictor_get_output(misuse_predictor, 1, w, &tensor));
        BEYOND(mdot_predictor_get_bucket(misuse_predictor, w, 0, &bucket));
        BEYOND(mdot_predictor_get_bucket(misuse_predictor, 1, w, &bucket));
        BEYOND(mdot_predictor_get_kernel(misuse_predictor, w, 0, 0, &kernel));
        BEYOND(mdot_predictor_get_kernel(misuse_predictor, 0, w, 0, &kernel));
        BEYOND(mdot_predictor_get_kernel(misuse_predictor, 0, 0, w, &kernel));
        BEYOND(mdot_predictor_get_image(misuse_predictor, w, &image));
        BEYOND(mdot_predictor_get_image_kernel(misuse_predictor, w, 0, 0, &image_kernel));
        BEYOND(mdot_predictor_get_image_kernel(misuse_predictor, 0, w, 0, &image_kernel));
        BEYOND(mdot_predictor_get_image_kernel(misuse_predictor, 0, 0, w, &image_kernel));
        BEYOND(mdot_predictor_find_bucket(misuse_predictor, w, 1, &at));
    }
    BEYOND(mdot_predictor_find_bucket(misuse_predictor, 0, INT64_MIN, &at));
    BEYOND(mdot_predictor_find_bucket(misuse_predictor, 0, INT64_MAX, &at));
}

static void context_functions(void)
{
    mdot_context *none;
    const char *message;
    EXPECT_REFUSAL(mdot_context_create(NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_context_create(misuse_predictor, NULL, &misuse_err));
    mdot_context_options options = MDOT_INIT(mdot_context_options), unsized = {0};
    EXPECT_REFUSAL(mdot_context_create_with(NULL, &options, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_context_create_with(misuse_predictor, &options, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_context_create_with(misuse_predictor, &unsized, &none, &misuse_err));
    options.threads = UINT32_MAX;
    EXPECT_REFUSAL(mdot_context_create_with(misuse_predictor, &options, &none, &misuse_err));
    INVALID(mdot_context_get_device_status(NULL, &message));
    INVALID(mdot_context_get_device_status(misuse_context, NULL));
}

static void run(void)
{
    const int64_t dims[1] = {3};
    const int32_t a[3] = {0};
    int32_t b[3];
    mdot_input input = {"a", MDOT_DTYPE_I32, 1, dims, a};
    mdot_output output = {"b", b, sizeof b};
    EXPECT_REFUSAL(mdot_run(NULL, 1, &input, 1, &output, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, NULL, 1, &output, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, &input, 1, NULL, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, &input, SIZE_MAX, &output, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, &input, 1, &output, SIZE_MAX, &misuse_err));
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, NULL, 0, NULL, 0, &misuse_err));
    BEYOND(mdot_run(misuse_context, SIZE_MAX, &input, 1, &output, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, &(mdot_input){0}, 1, &output, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, &input, 1, &(mdot_output){0}, 1, &misuse_err));
    input.dims = NULL;
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, &input, 1, &output, 1, &misuse_err));
    input.dims = dims;
    static const int ranks[] = {INT_MIN, -1, 2, INT_MAX};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        input.rank = ranks[i];
        EXPECT_REFUSAL(mdot_run(misuse_context, 1, &input, 1, &output, 1, &misuse_err));
    }
    input.rank = 1;
    input.data = NULL;
    EXPECT_REFUSAL(mdot_run(misuse_context, 1, &input, 1, &output, 1, &misuse_err));
    const void *const inputs[] = {a};
    void *const outputs[] = {b};
    EXPECT_REFUSAL(mdot_run_ordered(NULL, 1, 0, inputs, outputs, &misuse_err));
    EXPECT_REFUSAL(mdot_run_ordered(misuse_context, 1, 0, NULL, outputs, &misuse_err));
    EXPECT_REFUSAL(mdot_run_ordered(misuse_context, 1, 0, inputs, NULL, &misuse_err));
    BEYOND(mdot_run_ordered(misuse_context, SIZE_MAX, 0, inputs, outputs, &misuse_err));
    BEYOND(mdot_run_ordered(misuse_context, 1, INT64_MIN, inputs, outputs, &misuse_err));
    BEYOND(mdot_run_ordered(misuse_context, 0, INT64_MAX, inputs, outputs, &misuse_err));
    EXPECT_REFUSAL(mdot_run_step(NULL, 1, 0, inputs, outputs, 0, &misuse_err));
    EXPECT_REFUSAL(mdot_run_step(misuse_context, 1, 0, NULL, outputs, 0, &misuse_err));
    EXPECT_REFUSAL(mdot_run_step(misuse_context, 1, 0, inputs, NULL, 0, &misuse_err));
    BEYOND(mdot_run_step(misuse_context, SIZE_MAX, 0, inputs, outputs, 0, &misuse_err));
    BEYOND(mdot_run_step(misuse_context, 1, INT64_MIN, inputs, outputs, 0, &misuse_err));
    BEYOND(mdot_run_step(misuse_context, 1, 0, inputs, outputs, SIZE_MAX, &misuse_err));
    mdot_item item = {0, inputs, outputs};
    EXPECT_REFUSAL(mdot_run_many(NULL, 1, &item, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run_many(misuse_context, 1, NULL, 1, &misuse_err));
    BEYOND(mdot_run_many(misuse_context, SIZE_MAX, &item, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run_many(misuse_context, 1, &(mdot_item){0, NULL, outputs}, 1, &misuse_err));
    EXPECT_REFUSAL(mdot_run_many(misuse_context, 1, &(mdot_item){0, inputs, NULL}, 1, &misuse_err));
    static const int64_t lengths[] = {INT64_MIN, -1, 1, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        item.length = lengths[i];
        BEYOND(mdot_run_many(misuse_context, 1, &item, 1, &misuse_err));
    }
}

/* ---- mdotjob.h and mdotc.h --------------------------------------------------------------------------------------- */

static void job_read(void)
{
    mdot_job *none;
    mdot_operator_traits traits;
    EXPECT_REFUSAL(mdot_job_read(NULL, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_read("x", NULL, NULL, &misuse_err));
    EXPECT_REFUSAL(mdot_job_read_bytes(NULL, 1, "x", NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_read_bytes("x", 1, NULL, NULL, &none, &misuse_err));
    EXPECT_REFUSAL(mdot_job_read_bytes("x", 1, "x", NULL, NULL, &misuse_err));
    mdot_job_options o = MDOT_INIT(mdot_job_options);
    o.dim_count = 1;
    EXPECT_REFUSAL(mdot_job_read_bytes("x", 1, "x", &o, &none, &misuse_err));
    o.dims = &(mdot_dim_binding){0};
    EXPECT_REFUSAL(mdot_job_read_bytes("x", 1, "x", &o, &none, &misuse_err));
    INVALID(mdot_operator_traits_find(NULL, &traits));
    INVALID(mdot_operator_traits_find("Conv", NULL));
    EXPECT_REFUSAL(mdot_ready_jobs(NULL, NULL, &misuse_err));
}

static void compile(void)
{
    mdotc_entry entry = MDOT_INIT(mdotc_entry);
    entry.name = "predict";
    entry.model_path = "model.onnx";
    mdotc_options o = MDOT_INIT(mdotc_options);
    EXPECT_REFUSAL(mdotc_compile(NULL, 1, "x.mdot", NULL, &misuse_err));
    EXPECT_REFUSAL(mdotc_compile(&entry, 0, "x.mdot", NULL, &misuse_err));
    EXPECT_REFUSAL(mdotc_compile(&entry, 1, NULL, NULL, &misuse_err));
    assert_int_not_equal(mdotc_compile(&entry, SIZE_MAX, "x.mdot", NULL, &misuse_err), MDOT_OK);
    entry.name = NULL;
    EXPECT_REFUSAL(mdotc_compile(&entry, 1, "x.mdot", NULL, &misuse_err));
    entry.name = "predict";
    entry.model_path = NULL;
    EXPECT_REFUSAL(mdotc_compile(&entry, 1, "x.mdot", NULL, &misuse_err));
    entry.model_path = "model.onnx";
    o.bucket_count = 1;
    EXPECT_REFUSAL(mdotc_compile(&entry, 1, "x.mdot", &o, &misuse_err));
    o.bucket_count = 0;
    o.target_count = 1;
    EXPECT_REFUSAL(mdotc_compile(&entry, 1, "x.mdot", &o, &misuse_err));
    o.targets = (const char *const[]){NULL};
    EXPECT_REFUSAL(mdotc_compile(&entry, 1, "x.mdot", &o, &misuse_err));
    o.target_count = 0;
    o.dim_count = 1;
    entry.model_path = MDOT_SOURCE_DIR "/tests/support/fixture/exports/bert-tiny.inference.onnx";
    EXPECT_REFUSAL(mdotc_compile(&entry, 1, "x.mdot", &o, &misuse_err));
    o.dims = &(mdot_dim_binding){0};
    EXPECT_REFUSAL(mdotc_compile(&entry, 1, "x.mdot", &o, &misuse_err));
}

static void verify_and_check(void)
{
    bool passed;
    mdotc_check_report report = MDOT_INIT(mdotc_check_report);
    EXPECT_REFUSAL(mdotc_verify(NULL, "x", NULL, &passed, &misuse_err));
    EXPECT_REFUSAL(mdotc_verify("x", NULL, NULL, &passed, &misuse_err));
    EXPECT_REFUSAL(mdotc_verify("x", "x", NULL, NULL, &misuse_err));
    mdotc_verify_options unsized = {0};
    EXPECT_REFUSAL(mdotc_verify("x", "x", &unsized, &passed, &misuse_err));
    EXPECT_REFUSAL(mdotc_check(NULL, NULL, &report, &misuse_err));
    EXPECT_REFUSAL(mdotc_check("x", NULL, NULL, &misuse_err));
}

/* ---- All functions ----------------------------------------------------------------------------------------------- */

static const misuse_row others[] = {
    {"mdot_status_name mdot_status_text mdot_dtype_name mdot_dtype_size_bytes mdot_setting_name mdot_warning_name "
     "mdot_warning_text mdot_implausible_name mdot_implausible_text",
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
    {"mdot_job_read mdot_job_read_bytes mdot_operator_traits_find mdot_ready_jobs", job_read},
    {"mdotc_compile", compile},
    {"mdotc_verify mdotc_check", verify_and_check},
    {NULL, NULL},
};
static const misuse_row *const lists[] = {others, misuse_of_jobs};
enum { LISTS = sizeof lists / sizeof lists[0] };

static void misuse_returns_a_status(void **state)
{
    (void)state;
    for (size_t i = 0; i < LISTS; i++)
        for (const misuse_row *row = lists[i]; row->names != NULL; row++) {
            print_message("%s\n", row->names);
            row->misuse();
        }
}

static bool has_row(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < LISTS; i++)
        for (const misuse_row *row = lists[i]; row->names != NULL; row++)
            for (const char *at = row->names; (at = strstr(at, name)) != NULL; at += length)
                if ((at == row->names || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) return true;
    return false;
}

static void every_exported_function_is_covered(void **state)
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
    assert_compare(found, >, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_returns_a_status),
        cmocka_unit_test(every_exported_function_is_covered),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
