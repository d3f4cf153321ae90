/* test_cli_control_bytes.c — control bytes in arguments and in every kind of text file. No message or result passes
 * them on to the terminal, where they could move the cursor, change the title or hide text. */
#include <ctype.h>
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

#include "base/text.h"
#include "mdot/mdot.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_command.h"

/* An escape sequence, a bell, a carriage return, DEL, C1 as a byte and as UTF-8, and a change of the direction. */
#define HOSTILE                                                                                                        \
    "\x1b[31mE\a\r\x7f\x9b"                                                                                            \
    "1m\xC2\x9b\xE2\x80\xAE"

static void expect_printable(const char *text)
{
    for (const char *at = text; *at != '\0';) {
        int length = *at == '\n' ? 1 : bs_printable_length(at);
        if (length == 0) fail_msg("byte 0x%02x in: %.200s", (unsigned char)*at, text);
        at += length;
    }
}

/* `end` is NULL-terminated arguments after the command's name. */
static void run(predict_command *f, const char *const *arguments)
{
    const char *argv[16] = {MDOT_CLI};
    for (size_t i = 0; arguments[i] != NULL; i++) argv[i + 1] = arguments[i];
    process_run(argv, &f->result);
    assert_int_not_equal(f->result.status, -1);
    expect_printable(f->result.out);
    expect_printable(f->result.err);
}
#define EXPECT_CLEAN(f, ...) run(f, (const char *const[]){__VA_ARGS__, NULL})

static char *write_text(const predict_command *f, const char *name, const char *text)
{
    char *path = process_in_folder(f->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_compare(fputs(text, file), >=, 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void names_of_commands_and_files_are_printed_without_control_bytes(void **state)
{
    predict_command *f = *state;
    static const char *const commands[] = {"compile", "inspect", "verify", "bench",     "check", "extract",
                                           "predict", "report",  "gpus",   "calibrate", "help"};
    EXPECT_CLEAN(f, HOSTILE);
    EXPECT_CLEAN(f, "--" HOSTILE);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        EXPECT_CLEAN(f, commands[i], "/tmp/" HOSTILE);
        EXPECT_CLEAN(f, commands[i], "/tmp/" HOSTILE ".onnx", "-o", "/tmp/" HOSTILE "/x");
        EXPECT_CLEAN(f, commands[i], "--" HOSTILE);
        EXPECT_CLEAN(f, commands[i], "-\x1b");
    }
    char *folder = process_in_folder(f->folder, HOSTILE);
    char *model = process_in_folder(folder, "model.onnx");
    assert_int_equal(mkdir(folder, 0700), 0);
    FILE *file = fopen(model, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
    EXPECT_CLEAN(f, "check", f->folder);
    expect_contains(f->result.out, "found no test_data_set");
    process_remove_folder(folder);
    free(model);
}

/* Every option that `mdot COMMAND --help` lists gets a hostile value. */
static void values_of_options_are_printed_without_control_bytes(void **state)
{
    predict_command *f = *state;
    static const char *const commands[] = {"compile", "inspect", "verify", "bench", "check",
                                           "extract", "predict", "report", "gpus",  "calibrate"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        EXPECT_CLEAN(f, commands[i], "--help");
        char *help = strdup(f->result.out);
        assert_non_null(help);
        for (char *at = help; (at = strstr(at, " --")) != NULL;) {
            char option[64], given[256];
            size_t length = 0;
            at++;
            while (length + 1 < sizeof option && (isalnum((unsigned char)at[length]) || at[length] == '-')) length++;
            snprintf(option, sizeof option, "%.*s", (int)length, at);
            snprintf(given, sizeof given, "%s=1" HOSTILE "=1," HOSTILE, option);
            EXPECT_CLEAN(f, commands[i], resnet, "--gpu", "T4", given);
            count++;
        }
        free(help);
    }
    assert_compare(count, >, 60);
}

static void gpu_files_are_repeated_without_control_bytes(void **state)
{
    predict_command *f = *state;
    static const char *const texts[] = {HOSTILE "\n",
                                        HOSTILE "=1\n",
                                        "tflops=" HOSTILE "\n",
                                        "like=" HOSTILE "\n",
                                        "name=" HOSTILE "\ntflops=1\n",
                                        "tflops=1\n" HOSTILE "=\n",
                                        "tflops=1\ntflops=1" HOSTILE "\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char *path = write_text(f, "gpu.txt", texts[i]);
        EXPECT_CLEAN(f, "predict", resnet, "--gpu-spec", path);
        assert_int_equal(f->result.status, USAGE);
        free(path);
        path = write_text(f, "prices.csv", texts[i]);
        EXPECT_CLEAN(f, "predict", resnet, "--gpu", "T4", "--price", path);
        free(path);
    }
}

static void measurements_and_calibrations_are_repeated_without_control_bytes(void **state)
{
    predict_command *f = *state;
    static const char *const columns[] = {"job", "gpu", "batch", "ms", "note", "precision", "parallel", HOSTILE};
    enum { COLUMNS = sizeof columns / sizeof *columns };
    char *calibration = process_in_folder(f->folder, "site.cal");
    for (int hostile = 0; hostile < COLUMNS; hostile++) {
        char text[2048] = "job,gpu,batch,ms,";
        const char *const cells[] = {resnet, "T4", "32", "100", "", "fp32", "", ""};
        size_t used = strlen(text);
        used += (size_t)snprintf(text + used, sizeof text - used, "note,precision,parallel%s%s\n",
                                 hostile == COLUMNS - 1 ? "," : "", hostile == COLUMNS - 1 ? columns[hostile] : "");
        for (int c = 0; c < COLUMNS - (hostile < COLUMNS - 1); c++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", c == 0 ? "" : ",",
                                     c == hostile ? HOSTILE : cells[c]);
        snprintf(text + used, sizeof text - used, "\n");
        char *path = write_text(f, "steps.csv", text);
        EXPECT_CLEAN(f, "calibrate", path, "-o", calibration);
        free(path);
    }
    char *saved = write_text(f, "bad.cal", "mdot-calibration 1\n" HOSTILE " 1 2 3\n");
    EXPECT_CLEAN(f, "predict", resnet, "--gpu", "T4", "--calibration", saved);
    assert_int_equal(f->result.status, FAILED);
    free(saved);
    free(calibration);
}

static void names_of_a_job_are_printed_without_control_bytes(void **state)
{
    predict_command *f = *state;
    mdot_job_operator operator= MDOT_INIT(mdot_job_operator);
    mdot_job_description description = MDOT_INIT(mdot_job_description);
    operator.type = "T" HOSTILE;
    operator.per_sample[0].flops = 1e9;
    description.operators = &operator;
    description.operator_count = 1;
    description.batch = 1;
    mdot_job *job = NULL;
    mdot_error err = {0};
    char *path = process_in_folder(f->folder, "hostile.job");
    if (mdot_job_create(&description, &job, &err) == MDOT_OK) {
        assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
        EXPECT_CLEAN(f, "predict", path, "--gpu", "T4");
        EXPECT_CLEAN(f, "predict", path, "--gpu", "T4", "--explain");
        EXPECT_CLEAN(f, "extract", path);
        mdot_job_destroy(job);
    }
    expect_printable(err.message);
    free(path);
}

/* Some options name files to write, which must appear in the test's folder. */
static int enter_folder(void **state)
{
    if (predict_command_set_up(state) != 0) return -1;
    const predict_command *f = *state;
    return chdir(f->folder);
}

static int leave_folder(void **state) { return chdir("/") == 0 ? predict_command_tear_down(state) : -1; }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_commands_and_files_are_printed_without_control_bytes),
        cmocka_unit_test(values_of_options_are_printed_without_control_bytes),
        cmocka_unit_test(gpu_files_are_repeated_without_control_bytes),
        cmocka_unit_test(measurements_and_calibrations_are_repeated_without_control_bytes),
        cmocka_unit_test(names_of_a_job_are_printed_without_control_bytes),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
