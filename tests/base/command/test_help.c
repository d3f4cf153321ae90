/* test_help.c — compares the help texts of all subcommands with tests/golden/cli. MDOT_UPDATE_GOLDEN=1 rewrites the
 * files. */
#include "base/file.h"
#include "cli/cli.h"
#include "mdot/mdot_abi.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static process_result result, again;

#define RUN(into, ...) process_run((const char *const[]){MDOT_CLI, __VA_ARGS__, NULL}, (into))

/* Compares `text` with FOLDER/NAME.SUFFIX of the tree. */
static void expect_file(const char *folder, const char *name, const char *suffix, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s/%s.%s", MDOT_SOURCE_DIR, folder, name, suffix);
    if (getenv("MDOT_UPDATE_GOLDEN") != NULL) assert_int_equal(bs_write_file(path, text, strlen(text), NULL), MDOT_OK);
    unsigned char *golden = NULL;
    size_t size = 0;
    assert_int_equal(bs_read_file(path, &golden, &size, NULL), MDOT_OK);
    assert_string_equal(text, (char *)golden);
    free(golden);
}

static void expect_golden(const char *name, const char *text) { expect_file("tests/golden/cli", name, "txt", text); }

static void expect_80_columns(const char *text)
{
    for (int width = 0; *text != '\0'; text++) {
        width = *text == '\n' ? 0 : width + (((unsigned char)*text & 0xC0) != 0x80);
        if (width > 80) fail_msg("wider than 80 columns: %.100s", text - 80);
    }
}

static void every_command_has_help(void **state)
{
    (void)state;
    for (const cli_command *const *command = cli_commands; *command != NULL; command++) {
        const char *name = (*command)->name;
        RUN(&result, name, "--help");
        assert_int_equal(result.status, CLI_OK);
        assert_string_equal(result.err, "");
        expect_80_columns(result.out);
        expect_golden(name, result.out);
        RUN(&again, "help", name);
        assert_int_equal(again.status, CLI_OK);
        assert_string_equal(again.out, result.out);
    }
}

static void every_command_has_a_page_in_the_manual(void **state)
{
    (void)state;
    RUN(&result, "help", "--markdown");
    assert_int_equal(result.status, CLI_OK);
    expect_file("docs/reference/commands", "mdot", "md", result.out);
    for (const cli_command *const *command = cli_commands; *command != NULL; command++) {
        RUN(&result, "help", "--markdown", (*command)->name);
        assert_int_equal(result.status, CLI_OK);
        expect_contains(result.out, "## Exit status");
        expect_file("docs/reference/commands", (*command)->name, "md", result.out);
    }
}

static void mdot_has_help(void **state)
{
    (void)state;
    RUN(&result, "--help");
    assert_int_equal(result.status, CLI_OK);
    expect_80_columns(result.out);
    expect_golden("mdot", result.out);
    RUN(&again, "help");
    assert_string_equal(again.out, result.out);
    RUN(&again, "-h");
    assert_string_equal(again.out, result.out);
    process_run((const char *const[]){MDOT_CLI, NULL}, &again);
    assert_int_equal(again.status, CLI_USAGE);
    assert_string_equal(again.err, result.out);
}

static void help_of_an_unknown_command_is_refused(void **state)
{
    (void)state;
    RUN(&result, "help", "predcit");
    assert_int_equal(result.status, CLI_USAGE);
    expect_contains(result.err, "did you mean predict?");
    RUN(&result, "help", "predict", "compile");
    assert_int_equal(result.status, CLI_USAGE);
    RUN(&result, "help", "--completion", "fish");
    assert_int_equal(result.status, CLI_USAGE);
    expect_contains(result.err, "bash or zsh");
}

/* Writes an option as man pages do: bold, with each hyphen as a minus. */
static void write_option(char *page, const char *name)
{
    page += sprintf(page, "\\fB");
    for (; *name != '\0'; name++) {
        if (*name == '-') *page++ = '\\';
        *page++ = *name;
    }
    strcpy(page, "\\fR");
}

static void print_man_page(const char *command, process_result *into)
{
    char line[1024];
    snprintf(line, sizeof line, "'%s' help --markdown %s | awk -f '%s/cmake/man.awk'", MDOT_CLI, command,
             MDOT_SOURCE_DIR);
    process_run((const char *const[]){"/bin/sh", "-c", line, NULL}, into);
    assert_int_equal(into->status, CLI_OK);
    expect_contains(into->out, ".SH SYNOPSIS");
}

/* All options of the help texts are also in the completion, and in the man page or in that of `mdot predict`. */
static void man_pages_and_completion_cover_every_option(void **state)
{
    (void)state;
    static process_result shells[2];
    static const char *const names[] = {"bash", "zsh"};
    print_man_page("predict", &again);
    for (int i = 0; i < 2; i++) {
        RUN(&shells[i], "help", "--completion", names[i]);
        assert_int_equal(shells[i].status, CLI_OK);
    }
    for (const cli_command *const *command = cli_commands; *command != NULL; command++) {
        const cli_option *option;
        print_man_page((*command)->name, &result);
        bool has_link = strstr(result.out, "These options are those of") != NULL;
        for (size_t i = 0; (option = cli_option_at(*command, i)) != NULL; i++) {
            char name[64], page[160];
            snprintf(name, sizeof name, "--%s", option->name);
            write_option(page, name);
            if (option->help == NULL) {
                assert_null(strstr(result.out, page));
                continue;
            }
            expect_contains(has_link && strstr(result.out, page) == NULL ? again.out : result.out, page);
            for (int k = 0; k < 2; k++) expect_contains(shells[k].out, name);
        }
    }
}

/* The command includes only public headers, therefore it lists the names of the levels itself. */
static void every_cpu_level_is_documented(void **state)
{
    (void)state;
    static const char *const levels[] = {
#define LEVEL(name, value, text) text,
        MDOT_CPU_ISA_MAP(LEVEL)
#undef LEVEL
    };
    const char *const *names = cli_isa_names();
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++, names++) {
        if (*names == NULL) fail_msg("%s is missing", levels[i]);
        assert_string_equal(*names, levels[i]);
    }
    assert_null(*names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command_has_help),
        cmocka_unit_test(every_command_has_a_page_in_the_manual),
        cmocka_unit_test(mdot_has_help),
        cmocka_unit_test(help_of_an_unknown_command_is_refused),
        cmocka_unit_test(man_pages_and_completion_cover_every_option),
        cmocka_unit_test(every_cpu_level_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
