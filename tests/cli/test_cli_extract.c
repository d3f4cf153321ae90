/* test_cli_extract.c — `mdot extract` from the user's view: table, JSON, `.job` files, wrong command lines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/assertions.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"

enum { OK = 0, FAILED = 1, USAGE = 2 };

typedef struct fixture {
    char *folder, *model, *job;
    process_result result;
} fixture;

#define RUN(f, ...) process_run((const char *const[]){MDOT_CLI, "extract", __VA_ARGS__, NULL}, &(f)->result)

/* A linear layer of 64 → 10, followed by an unknown operator. */
static pb_buffer model(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "com.example", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,T,64");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "64,10", NULL);
    onnx_node(b, "MatMul", "x,w", "p");
    onnx_node(b, "com.example:Fancy", "p", "y");
    onnx_output(b, "y");
    return onnx_finish(b);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    f->model = write_model(f->folder, "net.onnx", model());
    if (asprintf(&f->job, "%s/net.job", f->folder) < 0) return -1;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    free(f->model);
    free(f->job);
    free(f);
    return 0;
}

static void a_table_has_a_line_for_each_operator(void **state)
{
    fixture *f = *state;
    RUN(f, f->model, "--dim", "T=5");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "Linear");
    expect_contains(f->result.out, "channels_in=64 channels_out=10");
    expect_contains(f->result.out, "2 operators, 1 unknown (?); batch of 1 sample\n");
    expect_contains(f->result.out, "    1?com.example:Fancy ");
    expect_contains(f->result.err, "warning");
    expect_contains(f->result.err, "com.example:Fancy");
}

static void flops_and_bytes_grow_with_the_batch(void **state)
{
    fixture *f = *state;
    RUN(f, f->model, "-q", "--json", "--dim", "T=5");
    assert_int_equal(f->result.status, OK);
    assert_string_equal(f->result.err, "");
    expect_contains(f->result.out, "\"forward\": {\"flops\": 6400, \"bytes_read\": 3840, \"bytes_written\": 200}");
    RUN(f, f->model, "-q", "--json", "--dim", "T=5", "--batch", "3", "--optimizer", "adam");
    /* The weights, 2560 bytes, are read once. */
    expect_contains(f->result.out, "\"forward\": {\"flops\": 19200, \"bytes_read\": 6400, \"bytes_written\": 600}");
    expect_contains(f->result.out, "\"batch\": 3, \"file_batch\": 1, \"optimizer\": \"adam\", \"parameters\": 640");
    expect_contains(f->result.out, "\"optimizer\": {\"flops\": 8320, \"bytes_read\": 10240, \"bytes_written\": 7680}");
}

static void a_job_file_prints_the_same_as_its_model(void **state)
{
    fixture *f = *state;
    char *printed;
    RUN(f, f->model, "-q", "--json", "--dim", "T=5", "-o", f->job);
    assert_int_equal(f->result.status, OK);
    printed = strdup(f->result.out);
    assert_non_null(printed);
    RUN(f, f->job, "--json");
    assert_int_equal(f->result.status, OK);
    assert_string_equal(f->result.out, printed);
    free(printed);
}

/* Two equal layers after a Tanh. Every name in the model begins with "secret". */
static pb_buffer layered_model(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "secretinput", MDOT_DTYPE_F32, "N,16");
    onnx_initializer(b, "secret.layer.0.dense.weight", MDOT_DTYPE_F32, "16,16", NULL);
    onnx_initializer(b, "secret.layer.1.dense.weight", MDOT_DTYPE_F32, "16,16", NULL);
    onnx_node(b, "Tanh", "secretinput", "secreth");
    onnx_node(b, "MatMul", "secreth,secret.layer.0.dense.weight", "secretp");
    onnx_node(b, "Sigmoid", "secretp", "secretq");
    onnx_node(b, "MatMul", "secretq,secret.layer.1.dense.weight", "secretr");
    onnx_node(b, "Sigmoid", "secretr", "secrety");
    onnx_output(b, "secrety");
    return onnx_finish(b);
}

static bool file_holds(const char *path, const char *text)
{
    static char bytes[1 << 16];
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t size = fread(bytes, 1, sizeof bytes, stream);
    assert_compare(size, >, 0);
    assert_compare(size, <, sizeof bytes);
    fclose(stream);
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

static void job_files_hold_names_only_on_request(void **state)
{
    fixture *f = *state;
    char *path = write_model(f->folder, "layered.onnx", layered_model());
    RUN(f, path, "-q", "--json", "-o", f->job);
    assert_int_equal(f->result.status, OK);
    assert_null(strstr(f->result.out, "secret"));
    assert_null(strstr(f->result.out, "\"module\""));
    assert_false(file_holds(f->job, "secret"));
    RUN(f, path, "-q", "--json", "--keep-names", "-o", f->job);
    assert_int_equal(f->result.status, OK);
    assert_true(file_holds(f->job, "secret.layer.1.dense"));
    RUN(f, f->job, "--json");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "\"block\": 2, \"equal_blocks\": 2, \"module\": \"secret.layer.1.dense\"}");
    free(path);
}

static void blocks_are_shown_with_and_without_names(void **state)
{
    fixture *f = *state;
    char *path = write_model(f->folder, "layered.onnx", layered_model());
    RUN(f, path, "-q", "--json");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "\"inputs\": [], \"block\": 0, \"equal_blocks\": 0}");
    expect_contains(f->result.out, "\"inputs\": [3], \"block\": 2, \"equal_blocks\": 2}");
    RUN(f, path, "-q");
    expect_contains(f->result.out, " depth block  configuration\n");
    expect_contains(f->result.out, "     3     2  channels_in=16");
    free(path);
}

static void failures_give_the_reason(void **state)
{
    fixture *f = *state;
    RUN(f, f->model);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "mdot extract: ");
    expect_contains(f->result.err, "'T'");
    RUN(f, "/nonexistent.onnx");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "/nonexistent.onnx");
    FILE *stream = fopen(f->job, "wb");
    assert_non_null(stream);
    fputs("MDOTJOB", stream);
    fclose(stream);
    RUN(f, f->job);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "header of a job file");
    RUN(f, f->model, "-q", "--dim", "T=5", "-o", "/nonexistent/net.job");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "/nonexistent/net.job");
}

static void wrong_command_lines_are_refused(void **state)
{
    fixture *f = *state;
    process_run((const char *const[]){MDOT_CLI, "extract", NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "no job given");
    RUN(f, f->model, f->model);
    assert_int_equal(f->result.status, USAGE);
    RUN(f, f->model, "--batch", "0");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, f->model, "--dim", "T");
    assert_int_equal(f->result.status, USAGE);
    RUN(f, f->model, "--optimizer", "lamb");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "adam, adamw");
    RUN(f, "--help");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "Usage: mdot extract");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_table_has_a_line_for_each_operator, set_up, tear_down),
        cmocka_unit_test_setup_teardown(flops_and_bytes_grow_with_the_batch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_file_prints_the_same_as_its_model, set_up, tear_down),
        cmocka_unit_test_setup_teardown(job_files_hold_names_only_on_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(blocks_are_shown_with_and_without_names, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_give_the_reason, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_command_lines_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
