/* cmd_check.c — `mdot check`: run ONNX test directories through compiled code. */
#include "cli/cli.h"
#include "mdot/mdotc.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct tally {
    mdotc_check_options options;
    bool json, quiet;
    size_t passed, failed, unsupported, rows;
    bool broken; /* a path was unreadable */
} tally;

static const char *const result_names[] = {"pass", "fail", "unsupported"};

static void print_result(tally *t, const char *directory, const mdotc_check_report *report)
{
    if (t->json) {
        cli_json_member(stdout, t->rows == 0 ? "\n    {" : ",\n    {", "directory", directory);
        printf(", \"result\": \"%s\", \"data_sets\": %zu, \"worst_error\": %.3e", result_names[report->result],
               report->data_sets, report->worst_error);
        cli_json_member(stdout, ", ", "detail", report->detail);
        printf("}");
    } else if (report->result != MDOTC_CHECK_PASS) {
        printf("%-11s ", result_names[report->result]);
        cli_print_text(stdout, directory);
        printf("  ");
        cli_print_text(stdout, report->detail);
        printf("\n");
    } else if (!t->quiet) {
        printf("%-11s ", "pass");
        cli_print_text(stdout, directory);
        printf("  (%zu data set%s, largest error %.1e%s", report->data_sets, report->data_sets == 1 ? "" : "s",
               report->worst_error, report->detail[0] != '\0' ? ", " : "");
        cli_print_text(stdout, report->detail);
        printf(")\n");
    }
    t->rows++;
}

static void check_directory(tally *t, const char *directory)
{
    mdot_error err = {0};
    mdotc_check_report report = MDOT_INIT(mdotc_check_report);
    if (mdotc_check(directory, &t->options, &report, &err) != MDOT_OK) {
        report.result = MDOTC_CHECK_FAIL;
        snprintf(report.detail, sizeof report.detail, "%s", err.message);
    }
    t->passed += report.result == MDOTC_CHECK_PASS;
    t->failed += report.result == MDOTC_CHECK_FAIL;
    t->unsupported += report.result == MDOTC_CHECK_UNSUPPORTED;
    print_result(t, directory, &report);
}

static bool is_file(const char *folder, const char *name)
{
    char path[4096];
    struct stat info;
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && stat(path, &info) == 0 &&
           S_ISREG(info.st_mode);
}

static void fail_path(tally *t, const char *path, const char *reason)
{
    cli_message("check", "%s: %s", path, reason);
    t->broken = true;
}

/* Checks a test directory; searches any other folder in alphabetical order. Links below PATH are skipped. */
static void walk(tally *t, const char *path, bool is_operand)
{
    if (is_file(path, "model.onnx")) {
        check_directory(t, path);
        return;
    }
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        if (is_operand || errno != ENOTDIR) fail_path(t, path, strerror(errno));
        return;
    }
    size_t before = t->rows;
    for (int i = 0; i < count; i++) {
        char below[4096];
        struct stat info;
        if (entries[i]->d_name[0] != '.' &&
            snprintf(below, sizeof below, "%s/%s", path, entries[i]->d_name) < (int)sizeof below &&
            lstat(below, &info) == 0 && S_ISDIR(info.st_mode))
            walk(t, below, false);
        free(entries[i]);
    }
    free(entries);
    if (is_operand && t->rows == before)
        fail_path(t, path, "found no ONNX test directory (model.onnx with test_data_set_*) at or below this path");
}

static int run(int argc, char **argv)
{
    tally t = {.options = MDOT_INIT(mdotc_check_options)};
    cli_operands operands;
    int status;
    if (!cli_read_line(&cli_check, argc, argv, &t, &operands, &status)) return status;
    if (operands.count == 0) return cli_usage_error("check", "no path given");
    if (t.json) printf("{\"results\": [");
    for (int i = 0; i < operands.count; i++) walk(&t, operands.item[i], true);
    if (t.json)
        printf("\n  ],\n \"passed\": %zu, \"failed\": %zu, \"unsupported\": %zu}\n", t.passed, t.failed, t.unsupported);
    else
        printf("%zu passed, %zu failed, %zu unsupported\n", t.passed, t.failed, t.unsupported);
    return t.failed == 0 && !t.broken ? CLI_OK : CLI_FAILED;
}

static const cli_option options[] = {
    CLI_TEXT_ROW("level", "NAME", tally, options.level,
                 "run the code of this ISA level: x86-64-v3, x86-64-v4 or aarch64-neon (default: the highest that this "
                 "CPU supports)",
                 .names = cli_isa_names),
    CLI_VALUE_ROW(CLI_REAL, "rtol", "X", tally, options.relative_tolerance, "relative tolerance (default 1e-4)"),
    CLI_VALUE_ROW(CLI_REAL, "atol", "X", tally, options.absolute_tolerance, "absolute tolerance (default 1e-6)"),
    CLI_QUIET_OPTION(tally, quiet, "print only failures and the summary"),
    CLI_JSON_OPTION(tally, json, "print the results as JSON"),
};
const cli_command cli_check = {
    .name = "check",
    .summary = "compile and run ONNX test directories",
    .synopsis = "PATH… [OPTION]…",
    .description = "Compiles the model of every ONNX test directory at or below each PATH (model.onnx with "
                   "test_data_set_*/input_k.pb and output_k.pb), runs it on the inputs and compares the outputs. Each "
                   "directory gets one line: pass, fail with the largest error, or unsupported with the operators.",
    CLI_OPTIONS(options),
    .exit_status = "0 success, 1 a test failed or a directory was unreadable, 2 usage error",
    .files = "*",
    .run = run,
};
