/* test_cli.c — the `mdot` command from the user's view: a predictor is compiled, inspected, verified and measured;
 * wrong command lines; failures that leave nothing behind. */
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

#include "tests/support/assertions.h"
#include "tests/support/check_directory.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"

enum { OK = 0, FAILED = 1, USAGE = 2 };

typedef struct fixture {
    char *folder, *model, *artefact;
    process_result result;
} fixture;

#define RUN(f, ...) process_run((const char *const[]){MDOT_CLI, __VA_ARGS__, NULL}, &(f)->result)

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    f->model = write_model(f->folder, "encoder.onnx", encoder_model(2));
    if (asprintf(&f->artefact, "%s/encoder.mdot", f->folder) < 0) return -1;
    *state = f;
    return 0;
}

static int set_up_compiled(void **state)
{
    if (set_up(state) != 0) return -1;
    fixture *f = *state;
    RUN(f, "compile", f->model, "-o", f->artefact, "--buckets", "16,40");
    return f->result.status;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    free(f->model);
    free(f->artefact);
    free(f);
    return 0;
}

static bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* ---- Successes --------------------------------------------------------------------------------------------------- */

static void compile_is_silent_without_a_terminal(void **state)
{
    fixture *f = *state;
    RUN(f, "compile", f->model, "-o", f->artefact, "--buckets", "16");
    assert_int_equal(f->result.status, OK);
    assert_string_equal(f->result.out, "");
    assert_string_equal(f->result.err, "");
    assert_int_equal(process_count_files(f->folder), 2);
}

static void compiled_code_verifies_at_every_bucket_and_level(void **state)
{
    fixture *f = *state;
    RUN(f, "verify", f->artefact, f->model);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "x86-64-v3");
    expect_contains(f->result.out, "16");
    expect_contains(f->result.out, "40");
    assert_null(strstr(f->result.out, "FAIL"));
}

static void verify_names_swapped_arguments(void **state)
{
    fixture *f = *state;
    RUN(f, "verify", f->model, f->artefact);
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "the arguments are swapped: the artefact comes first");
}

static void verify_fails_against_another_model(void **state)
{
    fixture *f = *state;
    char *other = write_model(f->folder, "other.onnx", encoder_model(1));
    RUN(f, "verify", f->artefact, other);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.out, "FAIL");
    free(other);
}

/* A model with y = -x. z is the logarithm of x, NaN for about half the inputs, or the logarithm of -|x|, NaN for
 * all. */
static char *write_lost_model(const fixture *f, bool wholly)
{
    static const float minus_one[] = {-1};
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,N");
    onnx_initializer(b, "minus_one", MDOT_DTYPE_F32, "1", minus_one);
    onnx_node(b, "Neg", "x", "y");
    onnx_node(b, "Abs", "x", "size");
    onnx_node(b, "Mul", "size,minus_one", "below");
    onnx_node(b, "Log", wholly ? "below" : "x", "z");
    onnx_output(b, "y");
    onnx_output(b, "z");
    return write_model(f->folder, wholly ? "wholly.onnx" : "partly.onnx", onnx_finish(b));
}

static void verify_reports_differences_hidden_by_nan(void **state)
{
    fixture *f = *state;
    char *partly = write_lost_model(f, false), *wholly = write_lost_model(f, true);
    RUN(f, "compile", partly, "-o", f->artefact, "--buckets", "64");
    RUN(f, "verify", f->artefact, partly);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.err, "output \"z\", bucket 64: ");
    assert_null(strstr(f->result.err, "output \"y\""));
    RUN(f, "compile", wholly, "-o", f->artefact, "--buckets", "64");
    RUN(f, "verify", f->artefact, wholly);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.out, "FAIL");
    expect_contains(f->result.err, "no finite value to verify");
    RUN(f, "verify", f->artefact, partly, "--json"); /* NaN against numbers: JSON has no infinity */
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.out, "\"worst_error\": null");
    free(partly);
    free(wholly);
}

static void inspect_shows_entries_buckets_and_kernels(void **state)
{
    fixture *f = *state;
    RUN(f, "inspect", f->artefact);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "predict");
    expect_contains(f->result.out, "latency");
    expect_contains(f->result.out, "attention");
    RUN(f, "inspect", f->artefact, "--json");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "\"entries\"");
}

static void control_characters_in_names_are_escaped(void **state)
{
    fixture *f = *state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "in\033[2J", MDOT_DTYPE_F32, "2,2");
    onnx_node(b, "com.example:Foo\033[2J", "in\033[2J", "y");
    onnx_output(b, "y");
    char *unknown = write_model(f->folder, "unknown.onnx", onnx_finish(b));
    b = onnx_begin(17);
    onnx_input(b, "in\033[2J", MDOT_DTYPE_F32, "2,2");
    onnx_node(b, "Relu", "in\033[2J", "y");
    onnx_output(b, "y");
    char *known = write_model(f->folder, "known.onnx", onnx_finish(b));
    RUN(f, "compile", known, "-o", f->artefact, "-t", "cpu:x86-64-v3");
    assert_int_equal(f->result.status, OK);
    RUN(f, "inspect", f->artefact);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "in?[2J");
    assert_null(strchr(f->result.out, '\033'));
    RUN(f, "extract", unknown);
    assert_null(strchr(f->result.out, '\033'));
    assert_null(strchr(f->result.err, '\033'));
    RUN(f, "compile", unknown, "-o", f->artefact);
    assert_null(strchr(f->result.err, '\033'));
    free(known);
    free(unknown);
}

static void bench_reports_percentiles(void **state)
{
    fixture *f = *state;
    RUN(f, "bench", f->artefact, "--bucket", "16", "--seconds", "0.05", "--json");
    assert_int_equal(f->result.status, OK);
    static const char *const fields[] = {"p50_us", "p90_us", "p99_us", "p999_us", "first_call_us", "open_us"};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) expect_contains(f->result.out, fields[i]);
}

static void the_example_runs_an_artefact(void **state)
{
    fixture *f = *state;
    process_run((const char *const[]){MDOT_EXAMPLE, f->artefact, "11", NULL}, &f->result);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "latency: 4 bytes");
    process_run((const char *const[]){MDOT_EXAMPLE, f->artefact, "41", NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "MDOT_OUT_OF_RANGE");
}

static void two_entry_points_share_an_artefact(void **state)
{
    fixture *f = *state;
    char *small = write_model(f->folder, "small.onnx", encoder_model(1)), *first = NULL, *second = NULL;
    assert_compare(asprintf(&first, "encode=%s", f->model), >, 0);
    assert_compare(asprintf(&second, "evaluate=%s", small), >, 0);
    RUN(f, "compile", "--entry", first, "--entry", second, "-o", f->artefact, "-b", "16", "-t", "cpu:x86-64-v3");
    assert_int_equal(f->result.status, OK);
    RUN(f, "verify", f->artefact, small, "--entry", "evaluate");
    assert_int_equal(f->result.status, OK);
    RUN(f, "verify", f->artefact, f->model, "--entry", "encoed");
    assert_int_equal(f->result.status, 1);
    expect_contains(f->result.err, "unknown entry point \"encoed\" (did you mean encode?); the artefact has ");
    RUN(f, "bench", f->artefact, "--entry", "predict");
    expect_contains(f->result.err, "there is no entry predict; `mdot inspect` lists all entries");
    RUN(f, "verify", f->artefact, f->model, "--entry", "encode");
    assert_int_equal(f->result.status, OK);
    free(first);
    free(second);
    free(small);
}

static void every_pass_and_plan_can_be_dumped(void **state)
{
    fixture *f = *state;
    static const char *const what[] = {"import", "infer", "recognise_attention", "simplify_3", "plan", "llvm",
                                       "asm",    "cuda"};
    for (size_t i = 0; i < sizeof what / sizeof what[0]; i++) {
        RUN(f, "compile", f->model, "-o", f->artefact, "-b", "16", "-t", "cpu:x86-64-v3", "--dump", what[i]);
        assert_int_equal(f->result.status, OK);
        assert_compare(strlen(f->result.out), >, 100);
    }
}

static void help_and_version_go_to_stdout(void **state)
{
    fixture *f = *state;
    static const char *const commands[] = {"compile", "inspect", "bench", "verify", "check"};
    RUN(f, "--help");
    assert_int_equal(f->result.status, OK);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        expect_contains(f->result.out, commands[i]);
        process_result *own = calloc(1, sizeof *own);
        assert_non_null(own);
        process_run((const char *const[]){MDOT_CLI, commands[i], "--help", NULL}, own);
        assert_int_equal(own->status, OK);
        expect_contains(own->out, "Usage: mdot ");
        assert_string_equal(own->err, "");
        free(own);
    }
    RUN(f, "--version");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "mdot 0.");
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static void wrong_command_lines_exit_with_2(void **state)
{
    fixture *f = *state;
    static const char *const lines[][6] = {
        {"frobnicate"},
        {"compile"},
        {"compile", "m.onnx"},
        {"compile", "m.onnx", "-o", "m.mdot", "--frob"},
        {"compile", "m.onnx", "-o"},
        {"compile", "m.onnx", "-o", "m.mdot", "--buckets=64,32"},
        {"compile", "m.onnx", "-o", "m.mdot", "--buckets=0"},
        {"compile", "m.onnx", "-o", "m.mdot", "--buckets=,"},
        {"compile", "m.onnx", "-o", "m.mdot", "--dim=N"},
        {"compile", "m.onnx", "-o", "m.mdot", "--entry=x"},
        {"verify", "one.mdot"},
        {"verify", "a", "b", "--tolerance=-1"},
        {"check"},
        {"inspect"},
        {"bench"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *argv[8] = {MDOT_CLI};
        for (int k = 0; k < 6; k++) argv[k + 1] = lines[i][k];
        process_run(argv, &f->result);
        if (f->result.status != USAGE) fail_msg("line %zu: exit status %d", i, f->result.status);
        assert_string_equal(f->result.out, "");
        expect_contains(f->result.err, "help");
    }
}

static void commands_of_other_programs_name_them(void **state)
{
    fixture *f = *state;
    static const char *const commands[][2] = {
        {"store", "mdot-store"},
        {"export", "python3 -m mdot export"},
        {"record-trace", "python3 -m mdot record-trace"},
        {"explain-trace", "python3 -m mdot explain-trace"},
        {"record-overhead", "python3 -m mdot record-overhead"},
    };
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        RUN(f, commands[i][0], "resnet50");
        assert_int_equal(f->result.status, USAGE);
        expect_contains(f->result.err, commands[i][1]);
    }
}

static void unknown_targets_and_dumps_list_the_known_ones(void **state)
{
    fixture *f = *state;
    RUN(f, "compile", f->model, "-o", f->artefact, "--target", "cpu:x86-64-v9");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "cpu:x86-64-v3");
    RUN(f, "compile", f->model, "-o", f->artefact, "--target", "cpu", "--target", "sm_80,sm_1");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "\"sm_1\"");
    expect_contains(f->result.err, "sm_90a");
    RUN(f, "compile", f->model, "-o", f->artefact, "--kernel-precision", "int8");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "bf16, fp32");
    RUN(f, "compile", f->model, "-o", f->artefact, "--dump", "ptxas");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "requires a cuda target, for example sm_90a");
    RUN(f, "compile", f->model, "-o", f->artefact, "--dump", "frob");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "plan");
}

static void unsupported_operators_are_listed_at_once_with_their_nodes(void **state)
{
    fixture *f = *state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,2");
    onnx_node(b, "Frobnicate", "x", "y");
    onnx_node_name(b, "first_bad");
    onnx_node(b, "com.example:Twist", "y", "z");
    onnx_node_name(b, "second_bad");
    onnx_output(b, "z");
    char *model = write_model(f->folder, "unsupported.onnx", onnx_finish(b));
    char *output = NULL;
    assert_compare(asprintf(&output, "%s/none.mdot", f->folder), >, 0);
    int before = process_count_files(f->folder);
    RUN(f, "compile", model, "-o", output);
    assert_int_equal(f->result.status, FAILED);
    static const char *const parts[] = {"unsupported.onnx", "Frobnicate", "first_bad",
                                        "com.example",      "Twist",      "second_bad"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) expect_contains(f->result.err, parts[i]);
    assert_false(exists(output));
    assert_int_equal(process_count_files(f->folder), before);
    free(output);
    free(model);
}

static void a_failed_compilation_leaves_an_old_artefact_alone(void **state)
{
    fixture *f = *state;
    struct stat before, after;
    assert_int_equal(stat(f->artefact, &before), 0);
    RUN(f, "compile", "/nonexistent.onnx", "-o", f->artefact);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "/nonexistent.onnx");
    assert_int_equal(stat(f->artefact, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(before.st_mtime, after.st_mtime);
}

static void an_output_that_is_the_model_or_irregular_is_refused(void **state)
{
    fixture *f = *state;
    char *fifo = NULL, *link = NULL;
    assert_compare(asprintf(&fifo, "%s/fifo", f->folder), >, 0);
    assert_compare(asprintf(&link, "%s/link", f->folder), >, 0);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(symlink(f->model, link), 0);
    struct stat before, after;
    assert_int_equal(stat(f->model, &before), 0);

    RUN(f, "compile", f->model, "-o", f->model);
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "replace its own input");
    RUN(f, "compile", f->model, "-o", link);
    assert_int_equal(f->result.status, USAGE);
    assert_int_equal(stat(f->model, &after), 0);
    assert_compare(before.st_ino, ==, after.st_ino);
    assert_compare(before.st_size, ==, after.st_size);

    RUN(f, "compile", f->model, "-o", fifo);
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "not a regular file");
    assert_int_equal(lstat(fifo, &after), 0);
    assert_true(S_ISFIFO(after.st_mode));
    free(fifo);
    free(link);
}

static void an_output_in_a_missing_folder_is_a_clear_error(void **state)
{
    fixture *f = *state;
    RUN(f, "compile", f->model, "-o", "/nonexistent/folder/m.mdot", "-b", "16");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "/nonexistent/folder");
}

static void inspecting_another_file_type_fails(void **state)
{
    fixture *f = *state;
    RUN(f, "inspect", f->model);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "encoder.onnx");
    RUN(f, "bench", "/nonexistent.mdot");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "/nonexistent.mdot");
}

static void a_forced_level_that_does_not_exist_is_refused(void **state)
{
    fixture *f = *state;
    RUN(f, "bench", f->artefact, "--level", "x86-64-v9");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "x86-64-v9");
}

static void check_of_a_folder_without_tests_fails(void **state)
{
    fixture *f = *state;
    RUN(f, "check", f->folder);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "no ONNX test directory");
    expect_contains(f->result.out, "0 passed, 0 failed, 0 unsupported");
}

/* ---- Check ------------------------------------------------------------------------------------------------------ */

static void check_distinguishes_right_from_wrong(void **state)
{
    fixture *f = *state;
    write_check_directory(f->folder, "right", 4);
    RUN(f, "check", f->folder);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "1 passed, 0 failed, 0 unsupported\n");
    write_check_directory(f->folder, "wrong", 4.5f);
    RUN(f, "check", f->folder);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.out, "element 1");
    expect_contains(f->result.out, "1 passed, 1 failed, 0 unsupported\n");
    RUN(f, "check", f->folder, "--json");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.out, "\"passed\": 1, \"failed\": 1, \"unsupported\": 0");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define COMPILED_CASE(name) cmocka_unit_test_setup_teardown(name, set_up_compiled, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(compile_is_silent_without_a_terminal),
        COMPILED_CASE(compiled_code_verifies_at_every_bucket_and_level),
        COMPILED_CASE(verify_names_swapped_arguments),
        COMPILED_CASE(verify_fails_against_another_model),
        CASE(verify_reports_differences_hidden_by_nan),
        COMPILED_CASE(inspect_shows_entries_buckets_and_kernels),
        CASE(control_characters_in_names_are_escaped),
        COMPILED_CASE(bench_reports_percentiles),
        COMPILED_CASE(the_example_runs_an_artefact),
        CASE(two_entry_points_share_an_artefact),
        CASE(every_pass_and_plan_can_be_dumped),
        CASE(help_and_version_go_to_stdout),
        CASE(wrong_command_lines_exit_with_2),
        CASE(commands_of_other_programs_name_them),
        CASE(unknown_targets_and_dumps_list_the_known_ones),
        CASE(unsupported_operators_are_listed_at_once_with_their_nodes),
        COMPILED_CASE(a_failed_compilation_leaves_an_old_artefact_alone),
        CASE(an_output_that_is_the_model_or_irregular_is_refused),
        CASE(an_output_in_a_missing_folder_is_a_clear_error),
        CASE(inspecting_another_file_type_fails),
        COMPILED_CASE(a_forced_level_that_does_not_exist_is_refused),
        CASE(check_of_a_folder_without_tests_fails),
        CASE(check_distinguishes_right_from_wrong),
    };
#undef CASE
#undef COMPILED_CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
