/* test_faults.c — every allocation, read, write and process start of the commands fails once (inject.c). The command
 * reports the failure and exits with 1, or it works without the call. It never dies from a signal, and leaves neither
 * partial nor temporary files.
 *
 * If there are many calls, the distance between two failing calls grows. With MDOT_ALL_FAULTS=1 in the environment
 * each call fails once, unless there are more than MANY.
 */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/check_directory.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { MANY = 2000, LAST = 4 }; /* LLVM makes more calls than MANY; the last calls move the file to its place */

static char *folder, *model, *artefact, *check_folder, *steps, *output, *count_file;
static const char exported[] = MDOT_SOURCE_DIR "/tests/support/fixture/exports/bert-tiny.inference.onnx";

typedef struct bytes {
    char *data;
    size_t size;
} bytes;

static int set_up(void **state)
{
    (void)state;
    folder = process_make_folder();
    model = write_model(folder, "model.onnx", encoder_model(1));
    artefact = process_in_folder(folder, "model.mdot");
    output = process_in_folder(folder, "out");
    count_file = process_in_folder(folder, "count");
    check_folder = process_in_folder(folder, "check");
    write_check_directory(folder, "check", 4);
    setenv("TMPDIR", folder, 1); /* `mdot check` compiles into this folder, so that leftover files are detected */
    steps = process_in_folder(folder, "steps.csv");
    FILE *table = fopen(steps, "w");
    assert_non_null(table);
    assert_compare(
        fprintf(table, "job,gpu,batch,ms\n%s,A100,8,4\n%s,T4,8,9\n%s,V100,16,11\n", exported, exported, exported), >,
        0);
    assert_int_equal(fclose(table), 0);
    process_result r;
    const char *const compile[] = {MDOT_CLI, "compile",  model,           "-o", artefact, "-b",
                                   "8",      "--target", "cpu:x86-64-v3", NULL};
    process_run(compile, &r);
    if (r.status != 0) fail_msg("%s", r.err);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    char *paths[] = {model, artefact, check_folder, steps, output, count_file};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) free(paths[i]);
    return 0;
}

/* data is NULL if the file is absent. */
static bytes read_file(const char *path)
{
    bytes b = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) return b;
    fseek(file, 0, SEEK_END);
    b.size = (size_t)ftell(file);
    rewind(file);
    b.data = malloc(b.size + 1);
    assert_non_null(b.data);
    assert_int_equal(fread(b.data, 1, b.size, file), b.size);
    fclose(file);
    return b;
}

/* Runs the command with a failure at call number `at` of the kind. Returns the number of calls. */
static long run_with_fault(const char *const *argv, const char *kind, long at, process_result *out)
{
    char number[32];
    long calls = 0;
    snprintf(number, sizeof number, "%ld", at);
    unlink(output);
    unlink(count_file);
    setenv("MDOT_FAULT", kind, 1);
    setenv("MDOT_FAULT_AT", number, 1);
    setenv("MDOT_FAULT_COUNT", count_file, 1);
    setenv("LD_PRELOAD", MDOT_INJECT, 1);
    process_run(argv, out);
    unsetenv("LD_PRELOAD");
    unsetenv("MDOT_FAULT");
    bytes counted = read_file(count_file);
    if (counted.size == sizeof calls) memcpy(&calls, counted.data, sizeof calls);
    free(counted.data);
    unlink(count_file);
    return calls;
}

static bool same_bytes(const bytes *a, const bytes *b)
{
    if (a->data == NULL || b->data == NULL) return a->data == b->data;
    return a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
}

static void expect_clean(const char *const *argv, const char *kind, long at, const process_result *got,
                         const process_result *right, const bytes *right_output, int files)
{
    bool is_reported = strstr(got->err, "mdot") != NULL;
    /* the failure is reported in its row */
    if (strcmp(argv[1], "check") == 0) is_reported = is_reported || strstr(got->out, ", 1 failed,") != NULL;
    bool is_timed = strcmp(argv[1], "bench") == 0; /* its output differs in each run */
    bytes written = read_file(output);
    const char *wrong = NULL;
    if (got->status == 0 && !is_timed && strcmp(got->out, right->out) != 0)
        wrong = "success with another output";
    else if (got->status == 0 && !same_bytes(&written, right_output))
        wrong = "success with another file";
    else if (got->status != 0 && got->status != 1)
        wrong = "neither success nor failure";
    else if (got->status == 1 && !is_reported)
        wrong = "failure without a message";
    else if (got->status == 1 && written.data != NULL && !same_bytes(&written, right_output))
        wrong = "a file that is half-written";
    else if (process_count_files(folder) != files + (written.data != NULL))
        wrong = "something left behind";
    free(written.data);
    if (wrong != NULL)
        fail_msg("mdot %s, %s call %ld: %s (status %d)\n%s", argv[1], kind, at, wrong, got->status, got->err);
}

static long next_fault(long at, long calls)
{
    bool each = calls < MANY && getenv("MDOT_ALL_FAULTS") != NULL;
    long next = each ? at + 1 : 2 * at, last = calls - LAST;
    if (at >= last) return at + 1;
    return next < last ? next : last;
}

static void fail_each(const char *const *argv, const char *kind)
{
    static process_result right, got;
    int runs = 0, failures = 0, files = process_count_files(folder);
    long calls = run_with_fault(argv, kind, 0, &right);
    if (right.status != 0) fail_msg("mdot %s: %s", argv[1], right.err);
    assert_compare(calls, >, 0);
    bytes right_output = read_file(output);
    for (long at = 1; at <= calls; at = next_fault(at, calls), runs++) {
        run_with_fault(argv, kind, at, &got);
        expect_clean(argv, kind, at, &got, &right, &right_output, files);
        failures += got.status != 0;
    }
    print_message("mdot %s: of %ld %s calls %d failed, %d with a message\n", argv[1], calls, kind, runs, failures);
    assert_compare(failures, >, 0);
    free(right_output.data);
    unlink(output);
}

static void inspect_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "inspect", artefact, NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
}

static void extract_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "extract", exported, "--dim", "sequence=16", "-o", output, NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
    fail_each(argv, "write");
}

static void predict_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "predict", exported, "--dim", "sequence=16", "--gpu", "A100", NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
}

static void compile_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "compile", model, "-o", output, "-b", "8", "--target", "cpu:x86-64-v3", NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
    fail_each(argv, "write");
    fail_each(argv, "start");
    fail_each(argv, "llvm");
}

static void verify_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "verify", artefact, model, NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
}

static void check_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "check", check_folder, NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
    fail_each(argv, "write");
    fail_each(argv, "start");
}

static void bench_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "bench", artefact, "--seconds", "0.01", NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
}

static void calibrate_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "calibrate", steps, "-o", output, NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
    fail_each(argv, "write");
}

static void report_survives_every_fault(void **state)
{
    (void)state;
    const char *const argv[] = {MDOT_CLI, "report", exported, "--dim", "sequence=16",
                                "--gpu",  "A100",   "-o",     output,  NULL};
    fail_each(argv, "memory");
    fail_each(argv, "read");
    fail_each(argv, "write");
}

#ifdef MDOT_SANITIZED
static const bool has_own_malloc = true;
#else
static const bool has_own_malloc = false;
#endif

/* The argument is a pattern that selects commands, for example "report*". */
int main(int argc, char **argv)
{
    if (has_own_malloc) {
        print_message("skipped: a sanitizer has a malloc of its own\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inspect_survives_every_fault), cmocka_unit_test(extract_survives_every_fault),
        cmocka_unit_test(predict_survives_every_fault), cmocka_unit_test(compile_survives_every_fault),
        cmocka_unit_test(verify_survives_every_fault),  cmocka_unit_test(check_survives_every_fault),
        cmocka_unit_test(bench_survives_every_fault),   cmocka_unit_test(calibrate_survives_every_fault),
        cmocka_unit_test(report_survives_every_fault),
    };
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        return 77;
    }
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return shard_run_group_tests(tests, set_up, tear_down);
}
