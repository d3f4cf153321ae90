/* test_commands.c — wrong names of commands and options: what the message suggests exists, and helps. */
#include "base/command/command.h"
#include "cli/cli.h"
#include "tests/support/assertions.h"
#include "tests/support/capture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Whether the text begins with the name of one of the command's options. */
static bool has_option(const cli_command *command, const char *text)
{
    const cli_option *option;
    size_t length = strcspn(text, " ?)"), found = 0;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++)
        found += strlen(option->name) == length && strncmp(option->name, text, length) == 0;
    return found == 1;
}

static bool begins_option(const cli_command *command, const char *name)
{
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++)
        if (strncmp(option->name, name, strlen(name)) == 0) return true;
    return false;
}

/* Whether the message names an option of predict or plan. */
static bool names_other_command(const char *message)
{
    static const cli_command *const commands[] = {&cli_predict, &cli_plan};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char says[64];
        snprintf(says, sizeof says, "`mdot %s` has --", commands[i]->name);
        const char *found = strstr(message, says);
        if (found != NULL) return has_option(commands[i], found + strlen(says));
    }
    return false;
}

/* A command for one layout names the command that has an option. */
static void options_of_other_commands_are_named(void **state)
{
    (void)state;
    static capture output;
    static const cli_command *const pairs[][2] = {
        {&cli_predict, &cli_plan}, {&cli_report_command, &cli_plan}, {&cli_report_command, &cli_predict}};
    size_t named = 0;
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        const cli_command *asked = pairs[n][0], *owner = pairs[n][1];
        const cli_option *option;
        for (size_t i = 0; (option = cli_option_at(owner, i)) != NULL; i++) {
            char given[64], *argv[] = {(char *)(uintptr_t)asked->name, given, NULL};
            if (option->help == NULL || begins_option(asked, option->name)) continue;
            snprintf(given, sizeof given, "--%s", option->name);
            capture_begin(&output);
            (void)asked->run(2, argv);
            capture_end(&output);
            const char *nearest = strstr(output.err, "did you mean --");
            bool is_own = nearest != NULL && has_option(asked, nearest + strlen("did you mean --"));
            if (!is_own && !names_other_command(output.err)) fail_msg("%s %s: %s", asked->name, given, output.err);
            named++;
        }
    }
    assert_compare(named, >, 30);
}

/* A suggestion for another program's name is an option that the command itself has, or that plan has. */
static void suggested_options_exist(void **state)
{
    (void)state;
    static capture output;
    static const char *const rows[][3] = {{"plan", "fsdp", "parallel fsdp"},
                                          {"predict", "fsdp", "parallel fsdp"},
                                          {"plan", "seq-len", "length"},
                                          {"report", "max-seq-length", "length"},
                                          {"plan", "batch-size", "global-batch"},
                                          {"predict", "batch-size", "batch"},
                                          {"plan", "num-nodes", "node-gpus"},
                                          {"plan", "max-steps", "samples"},
                                          {"plan", "per-device-train-batch-size", "global-batch"},
                                          {"plan", "train-samples", "samples"},
                                          {"plan", "num-train-epochs", "epochs"}};
    for (const cli_command *const *command = cli_commands; *command != NULL; command++)
        for (const bs_choice_word *word = (*command)->option_words; word != NULL && word->word != NULL; word++) {
            char wrong[64], *argv[] = {(char *)(uintptr_t)(*command)->name, wrong, NULL};
            snprintf(wrong, sizeof wrong, "--%s", word->word);
            capture_begin(&output);
            (void)(*command)->run(2, argv);
            capture_end(&output);
            const char *said = strstr(output.err, "did you mean --"), *expected = NULL;
            for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
                if (strcmp(rows[i][0], (*command)->name) == 0 && strcmp(rows[i][1], word->word) == 0)
                    expected = rows[i][2];
            if (expected != NULL && (said == NULL || strncmp(said + 15, expected, strlen(expected)) != 0))
                fail_msg("%s --%s: %s", (*command)->name, word->word, output.err);
            if (names_other_command(output.err)) continue;
            bool is_refused = strstr(output.err, "unknown option") != NULL || strstr(output.err, "ambiguous") != NULL;
            if (said == NULL && is_refused) fail_msg("%s --%s: %s", (*command)->name, word->word, output.err);
            if (said == NULL) continue; /* an option's own first letters */
            if (!has_option(*command, said + 15)) fail_msg("%s --%s: %s", (*command)->name, word->word, output.err);
        }
}

static void misspelt_commands_get_a_suggestion(void **state)
{
    (void)state;
    static capture output;
    static const char *const lines[][2] = {{"predit", "predict"}, {"Compile", "compile"}, {"extrac", "extract"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        char message[64];
        snprintf(message, sizeof message, "did you mean %s?", lines[i][1]);
        capture_begin(&output);
        const cli_command *found = cli_find_command(lines[i][0]);
        capture_end(&output);
        assert_null(found);
        expect_contains(output.err, message);
    }
    assert_ptr_equal(cli_find_command("predict"), &cli_predict);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suggested_options_exist),
        cmocka_unit_test(options_of_other_commands_are_named),
        cmocka_unit_test(misspelt_commands_get_a_suggestion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
