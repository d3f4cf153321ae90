/* test_outputs.c — the files that -o may name, for every subcommand with an output file. Refused are input files under
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
#include "tests/support/assertions.h"
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

/* Both writers refuse `output`, and every file stays as it was. `extract` returns `extract_status`. */
static void expect_refused(fixture *f, const char *output, int extract_status, const char *message)
{
    struct stat model[2], weights[2];
    int files = process_count_files(f->folder);
    const struct {
        const char *name;
        int status;
    } commands[] = {{"compile", USAGE}, {"extract", extract_status}};
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
        assert_compare(model[0].st_ino, ==, model[1].st_ino);
        assert_compare(model[0].st_size, ==, model[1].st_size);
        assert_compare(weights[0].st_ino, ==, weights[1].st_ino);
        assert_compare(weights[0].st_size, ==, weights[1].st_size);
        assert_int_equal(process_count_files(f->folder), files);
    }
}

static void the_model_is_not_replaced_under_any_name(void **state)
{
    fixture *f = *state;
    const char *const names[] = {f->model, f->hard, f->soft};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect_refused(f, names[i], USAGE, "replace its own input");
}

static void external_data_is_not_replaced_under_any_name(void **state)
{
    fixture *f = *state;
    const char *const names[] = {f->weights, f->soft_weights};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        expect_refused(f, names[i], FAILED, "replace its own input");
        expect_contains(f->result.err, "weights.bin");
    }
}

static void irregular_files_are_not_replaced(void **state)
{
    fixture *f = *state;
    struct stat info;
    assert_int_equal(mkfifo(f->output, 0600), 0);
    expect_refused(f, f->output, FAILED, "not a regular file");
    assert_int_equal(lstat(f->output, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    static const char *const names[] = {"/dev/null", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        expect_refused(f, names[i], FAILED, "not a regular file");
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
    assert_int_equal(f->result.status, USAGE);
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
    assert_int_equal(f->result.status, FAILED); /* a job file with another type's suffix */
    RUN(f, "compile", f->model, "-o", f->output, "-b", "16", "-t", "cpu:x86-64-v3");
    assert_int_equal(f->result.status, OK);
    RUN(f, "inspect", f->output);
    assert_int_equal(f->result.status, OK);
}

static char *write_text(const fixture *f, const char *name, const char *text)
{
    char *path = process_in_folder(f->folder, name);
    assert_int_equal(bs_write_file(path, text, strlen(text), NULL), MDOT_OK);
    return path;
}

/* Runs the command with each file as the output. Each run is refused and leaves the file unchanged. */
static void expect_inputs_kept(fixture *f, const char *const *arguments, const char *const *inputs)
{
    for (size_t i = 0; inputs[i] != NULL; i++) {
        const char *argv[24] = {MDOT_CLI};
        size_t count = 1;
        struct stat before, after;
        for (; arguments[count - 1] != NULL; count++) argv[count] = arguments[count - 1];
        argv[count] = "-o";
        argv[count + 1] = inputs[i];
        assert_int_equal(stat(inputs[i], &before), 0);
        process_run(argv, &f->result);
        if (f->result.status != USAGE && f->result.status != FAILED)
            fail_msg("mdot %s -o %s: exit status %d", arguments[0], inputs[i], f->result.status);
        expect_contains(f->result.err, "would replace its own input");
        assert_int_equal(stat(inputs[i], &after), 0);
        assert_compare(before.st_ino, ==, after.st_ino);
        assert_compare(before.st_size, ==, after.st_size);
        assert_compare(before.st_mtim.tv_sec, ==, after.st_mtim.tv_sec);
        assert_compare(before.st_mtim.tv_nsec, ==, after.st_mtim.tv_nsec);
    }
}
#define STRINGS(...)                                                                                                   \
    (const char *const[]) { __VA_ARGS__, NULL }

static void inputs_of_reports_and_calibrations_are_kept(void **state)
{
    fixture *f = *state;
    char *gpu = write_text(f, "gpu.txt", "name=x\ntflops=100\n");
    char *job = process_in_folder(f->folder, "net.job"), *predictor = process_in_folder(f->folder, "p.mdot");
    char *calibration = process_in_folder(f->folder, "site.cal");
    char *steps = write_text(f, "steps.csv", "job,gpu,batch,ms\nnet.job,T4,8,10\nnet.job,T4,16,19\nnet.job,T4,32,35\n");
    RUN(f, "extract", f->model, "-o", job);
    assert_int_equal(f->result.status, OK);
    unsigned char *bytes = NULL;
    size_t size_bytes = 0;
    assert_int_equal(bs_read_file(MDOT_SHIPPED_PREDICTOR, &bytes, &size_bytes, NULL), MDOT_OK);
    assert_int_equal(bs_write_file(predictor, bytes, size_bytes, NULL), MDOT_OK);
    free(bytes);
    RUN(f, "calibrate", steps, "--model", predictor, "-o", calibration);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    expect_inputs_kept(f, STRINGS("calibrate", steps, "--model", predictor), STRINGS(steps, predictor, job));
    expect_inputs_kept(
        f, STRINGS("report", job, "--gpu", "T4", "--gpu-spec", gpu, "--model", predictor, "--calibration", calibration),
        STRINGS(job, gpu, predictor, calibration));
    assert_int_equal(setenv("MDOT_PREDICTOR", predictor, 1), 0);
    expect_inputs_kept(f, STRINGS("report", job, "--gpu", "T4"), STRINGS(predictor));
    expect_inputs_kept(f, STRINGS("calibrate", steps), STRINGS(predictor));
    assert_int_equal(unsetenv("MDOT_PREDICTOR"), 0);
    char entry[700];
    snprintf(entry, sizeof entry, "encode=%s", f->model);
    expect_inputs_kept(f, STRINGS("compile", "--entry", entry), STRINGS(f->model));
    free(gpu);
    free(job);
    free(predictor);
    free(calibration);
    free(steps);
}

static void replaced_files_keep_their_permissions(void **state)
{
    fixture *f = *state;
    static const mode_t modes[] = {0600, 0640, 0664};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct stat info;
        assert_int_equal(bs_write_file(f->output, "x", 1, NULL), MDOT_OK);
        assert_int_equal(chmod(f->output, modes[i]), 0);
        RUN(f, "extract", f->model, "-o", f->output);
        assert_int_equal(f->result.status, OK);
        assert_int_equal(stat(f->output, &info), 0);
        assert_int_equal(info.st_mode & 0777, modes[i]);
        RUN(f, "compile", f->model, "-o", f->output, "-b", "16", "-t", "cpu:x86-64-v3", "-q");
        assert_int_equal(f->result.status, OK);
        assert_int_equal(stat(f->output, &info), 0);
        assert_int_equal(info.st_mode & 0777, modes[i]);
    }
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
        CASE(inputs_of_reports_and_calibrations_are_kept),
        CASE(replaced_files_keep_their_permissions),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
