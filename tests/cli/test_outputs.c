/* test_outputs.c — the files that -o may name, for every subcommand that writes a file. Refused are input files under
 * any name, and everything except regular files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"

enum { OK = 0, FAILED = 1, USAGE = 2, WEIGHTS = 64 * 10 };

/* A folder with net.onnx, whose weights are in weights.bin, and links to both. */
typedef struct fixture {
    char *folder, *model;
    char weights[512], output[512], hard[512], soft[512], soft_weights[512];
    process_result result;
} fixture;

#define RUN(f, ...) process_run((const char *const[]){MDOT_CLI, __VA_ARGS__, NULL}, &(f)->result)

static void put_entry(pb_buffer *tensor, const char *key, const char *value)
{
    pb_buffer entry = {0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(tensor, 13, &entry);
}

static pb_buffer model(void)
{
    onnx_builder *b = onnx_begin(17);
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, "64,10");
    put_entry(&tensor, "location", "weights.bin");
    pb_int(&tensor, 14, 1);
    onnx_graph_raw(b, 5, &tensor);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,64");
    onnx_node(b, "MatMul", "x,w", "y");
    onnx_output(b, "y");
    return onnx_finish(b);
}

static int set_up(void **state)
{
    static float weights[WEIGHTS];
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    f->model = write_model(f->folder, "net.onnx", model());
    struct {
        char *path;
        const char *name;
    } names[] = {{f->weights, "weights.bin"},
                 {f->output, "out"},
                 {f->hard, "hard"},
                 {f->soft, "soft"},
                 {f->soft_weights, "softw"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        snprintf(names[i].path, sizeof f->weights, "%s/%s", f->folder, names[i].name);
    assert_int_equal(bs_write_file(f->weights, weights, sizeof weights, NULL), MDOT_OK);
    assert_int_equal(link(f->model, f->hard), 0);
    assert_int_equal(symlink("net.onnx", f->soft), 0);
    assert_int_equal(symlink("weights.bin", f->soft_weights), 0);
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

/* Both writers refuse `output`, and every file stays as it was. */
static void expect_refused(fixture *f, const char *output, const char *message)
{
    struct stat model[2], weights[2];
    int files = process_count_files(f->folder);
    static const struct {
        const char *name;
        int status;
    } commands[] = {{"compile", USAGE}, {"extract", FAILED}};
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        assert_int_equal(stat(f->model, &model[0]), 0);
        assert_int_equal(stat(f->weights, &weights[0]), 0);
        RUN(f, commands[i].name, f->model, "-o", output, "-q");
        if (f->result.status != commands[i].status)
            fail_msg("mdot %s -o %s: exit status %d: %s", commands[i].name, output, f->result.status, f->result.err);
        expect_contains(f->result.err, message);
        assert_string_equal(f->result.out, "");
        assert_int_equal(stat(f->model, &model[1]), 0);
        assert_int_equal(stat(f->weights, &weights[1]), 0);
        assert_true(model[0].st_ino == model[1].st_ino && model[0].st_size == model[1].st_size);
        assert_true(weights[0].st_ino == weights[1].st_ino && weights[0].st_size == weights[1].st_size);
        assert_int_equal(process_count_files(f->folder), files);
    }
}

static void the_model_is_not_replaced_under_any_name(void **state)
{
    fixture *f = *state;
    const char *const names[] = {f->model, f->hard, f->soft};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) expect_refused(f, names[i], "replace its own input");
}

static void external_data_is_not_replaced_under_any_name(void **state)
{
    fixture *f = *state;
    const char *const names[] = {f->weights, f->soft_weights};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        expect_refused(f, names[i], "replace its own input");
        expect_contains(f->result.err, "weights.bin");
    }
}

static void irregular_files_are_not_replaced(void **state)
{
    fixture *f = *state;
    struct stat info;
    assert_int_equal(mkfifo(f->output, 0600), 0);
    expect_refused(f, f->output, "not a regular file");
    assert_int_equal(lstat(f->output, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    static const char *const names[] = {"/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) expect_refused(f, names[i], "not a regular file");
}

static void a_directory_is_not_replaced(void **state)
{
    fixture *f = *state;
    assert_int_equal(mkdir(f->output, 0700), 0);
    RUN(f, "extract", f->model, "-o", f->output);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "a directory");
    RUN(f, "compile", f->model, "-o", f->output);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "a directory");
}

static void a_job_does_not_replace_itself(void **state)
{
    fixture *f = *state;
    char job[600], again[600];
    snprintf(job, sizeof job, "%s/net.job", f->folder);
    snprintf(again, sizeof again, "%s/again.job", f->folder);
    RUN(f, "extract", f->model, "-o", job);
    assert_int_equal(f->result.status, OK);
    RUN(f, "extract", job, "-o", job);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "replace its own input");
    RUN(f, "extract", job, "-o", again);
    assert_int_equal(f->result.status, OK);
}

static void existing_files_are_replaced(void **state)
{
    fixture *f = *state;
    assert_int_equal(bs_write_file(f->output, "x", 1, NULL), MDOT_OK);
    RUN(f, "extract", f->model, "-o", f->output);
    assert_int_equal(f->result.status, OK);
    RUN(f, "extract", f->output);
    assert_int_equal(f->result.status, FAILED); /* the file is a job, but its suffix is that of another type */
    RUN(f, "compile", f->model, "-o", f->output, "-b", "16", "-t", "cpu:x86-64-v3");
    assert_int_equal(f->result.status, OK);
    RUN(f, "inspect", f->output);
    assert_int_equal(f->result.status, OK);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(the_model_is_not_replaced_under_any_name),
        CASE(external_data_is_not_replaced_under_any_name),
        CASE(irregular_files_are_not_replaced),
        CASE(a_directory_is_not_replaced),
        CASE(a_job_does_not_replace_itself),
        CASE(existing_files_are_replaced),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
