/* test_options.c — the loop for every command line, with a table of this test and with those of all subcommands. */
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
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_ARGUMENTS = 16 };

/* ---- A table ----------------------------------------------------------------------------------------------------- */

typedef struct request {
    bool flag, quiet;
    const char *text;
    int64_t whole;
    double real;
    int choice, maybe;
    cli_dims dims;
    char called[64];
} request;

static bool call(const char *command, char *value, void *called)
{
    if (strcmp(value, "bad") == 0) {
        cli_usage_error(command, "a bad value");
        return false;
    }
    strcat(strcat(called, "+"), value);
    return true;
}

static const char *const choices[] = {"red", "green", NULL};
static const bs_choice_word colours[] = {
    {"rouge", "red", true}, {"vert", "green", true}, {"scarlet", "red", false}, {.word = NULL}};
static const cli_option options[] = {
    {.name = "flag", .letter = 'f', .help = "a flag", .kind = CLI_FLAG, .at = offsetof(request, flag)},
    {.name = "quiet", .letter = 'q', .help = "another", .kind = CLI_FLAG, .at = offsetof(request, quiet)},
    {.name = "text",
     .letter = 't',
     .value = "TEXT",
     .help = "text",
     .kind = CLI_TEXT,
     .at = offsetof(request, text),
     .excludes = "whole"},
    {.name = "whole",
     .value = "N",
     .help = "a number",
     .kind = CLI_WHOLE,
     .at = offsetof(request, whole),
     .least = 2,
     .most = 9},
    {.name = "real", .value = "X", .help = "a number", .kind = CLI_REAL, .at = offsetof(request, real), .most = 3600},
    {.name = "realm", .value = "X", .help = "a number", .kind = CLI_REAL, .at = offsetof(request, real)},
    {.name = "choice",
     .value = "C",
     .help = "a colour",
     .kind = CLI_CHOICE,
     .at = offsetof(request, choice),
     .choices = choices,
     .words = colours,
     .needs = "flag"},
    {.name = "maybe",
     .value = "C",
     .help = "a colour, or red",
     .kind = CLI_CHOICE,
     .at = offsetof(request, maybe),
     .choices = choices,
     .fallback = "red"},
    {.name = "dim",
     .letter = 'd',
     .value = "D",
     .help = "dim",
     .kind = CLI_DIM,
     .at = offsetof(request, dims),
     .repeats = true},
    {.name = "call",
     .letter = 'c',
     .value = "V",
     .help = "call",
     .kind = CLI_CALL,
     .at = offsetof(request, called),
     .call = call,
     .repeats = true},
    {.name = "hidden", .kind = CLI_FLAG, .at = offsetof(request, flag)},
};
static const cli_command table = {.name = "test",
                                  .summary = "tests",
                                  .synopsis = "[OPTION]…",
                                  .description = "Tests.",
                                  CLI_OPTIONS(options),
                                  .exit_status = "0"};

typedef struct reading {
    char text[256];
    char *argv[MAX_ARGUMENTS];
    int argc, status;
    bool read;
    request r;
    cli_operands operands;
    capture output;
} reading;

/* Parses a line of words separated by spaces. */
static reading *read_words(const char *words)
{
    static reading g;
    memset(&g, 0, sizeof g);
    snprintf(g.text, sizeof g.text, "test %s", words);
    char *rest = NULL;
    for (char *word = strtok_r(g.text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        g.argv[g.argc++] = word;
    g.status = -1;
    capture_begin(&g.output);
    g.read = cli_read_line(&table, g.argc, g.argv, &g.r, &g.operands, &g.status);
    capture_end(&g.output);
    return &g;
}

static void expect_refused(const char *words, const char *message)
{
    reading *g = read_words(words);
    if (g->read || g->status != CLI_USAGE) fail_msg("\"%s\" was not refused", words);
    expect_contains(g->output.err, message);
    expect_contains(g->output.err, "mdot test --help");
    assert_string_equal(g->output.out, "");
}

static void values_are_read_in_every_form(void **state)
{
    (void)state;
    static const char *const lines[] = {"--text one --flag", "--text=one -f", "-t one -f",
                                        "-tone -f",          "-ftone",        "-ft one"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        reading *g = read_words(lines[i]);
        assert_true(g->read);
        assert_string_equal(g->r.text, "one");
        assert_true(g->r.flag);
        assert_false(g->r.quiet);
        assert_int_equal(g->operands.count, 0);
        assert_string_equal(g->output.err, "");
    }
}

static void every_option_kind_sets_its_field(void **state)
{
    (void)state;
    reading *g = read_words("--whole 9 --real 2.5 --choice green -fq -d a=3 --dim b=c");
    assert_true(g->read);
    assert_true(g->r.flag);
    assert_true(g->r.quiet);
    assert_int_equal(g->r.whole, 9);
    assert_compare(g->r.real, ==, 2.5);
    assert_int_equal(g->r.choice, 1);
    assert_int_equal(g->r.dims.count, 2);
    assert_string_equal(g->r.dims.item[1].same_as, "c");
}

static void operands_may_stand_anywhere_and_keep_their_order(void **state)
{
    (void)state;
    reading *g = read_words("one --flag two - -t x -- --three -4");
    assert_true(g->read);
    assert_true(g->r.flag);
    static const char *const operands[] = {"one", "two", "-", "--three", "-4"};
    assert_int_equal(g->operands.count, 5);
    for (int i = 0; i < 5; i++) assert_string_equal(g->operands.item[i], operands[i]);
}

static void a_value_may_look_like_an_option(void **state)
{
    (void)state;
    assert_string_equal(read_words("--text --flag")->r.text, "--flag");
    assert_string_equal(read_words("-t --")->r.text, "--");
    assert_string_equal(read_words("--text=")->r.text, "");
}

static void an_unambiguous_prefix_is_accepted(void **state)
{
    (void)state;
    assert_true(read_words("--fl")->r.flag);
    assert_string_equal(read_words("--te=x")->r.text, "x");
    assert_true(read_words("--real=2")->read); /* an exact match, although another option begins with it */
    expect_refused("--rea=2", "ambiguous option --rea");
    expect_refused("--=2", "unknown option");
}

static void repeatable_options_accumulate(void **state)
{
    (void)state;
    assert_string_equal(read_words("-ca --call b -c c")->r.called, "+a+b+c");
    assert_true(read_words("--flag -f --flag")->read);
    expect_refused("--text a --text b", "option --text is given twice");
    expect_refused("-ta -tb", "option -t is given twice");
}

static void wrong_command_lines_are_refused(void **state)
{
    (void)state;
    expect_refused("--text", "option --text needs a value");
    expect_refused("-t", "option -t needs a value");
    expect_refused("-ft", "option -t needs a value");
    expect_refused("--flag=1", "option --flag takes no value");
    expect_refused("-x", "unknown option -x");
    expect_refused("-fx", "unknown option -x");
    expect_refused("--whole 1", "from 2 to 9");
    expect_refused("--whole 10", "from 2 to 9");
    expect_refused("--whole 2x", "from 2 to 9");
    expect_refused("--whole=", "from 2 to 9");
    expect_refused("--real 0", "above 0, up to 3600");
    expect_refused("--real 3600.1", "above 0, up to 3600");
    expect_refused("--real nan", "above 0, up to 3600");
    expect_refused("--realm -1", "a positive number");
    expect_refused("--realm inf", "a positive number");
    expect_refused("--realm 1e999", "a positive number");
    expect_refused("--choice blue -f", "known are red, green");
    expect_refused("--dim a", "NAME=NUMBER or NAME=OTHER");
    expect_refused("--call bad", "a bad value");
}

static void choices_ignore_case_and_accept_synonyms(void **state)
{
    (void)state;
    assert_int_equal(read_words("-f --choice GREEN")->r.choice, 1);
    assert_int_equal(read_words("-f --choice=Vert")->r.choice, 1);
    expect_refused("-f --choice gren", "unknown value \"gren\" (did you mean green?); known are red, green");
    expect_refused("-f --choice roug", "(did you mean red?)");
    /* similar to a choice but different from it */
    expect_refused("-f --choice Scarlet", "unknown value \"Scarlet\" (did you mean red?)");
}

/* Behind the name alone, the option takes its fallback, and the next word stays an argument unless it is a choice. */
static void a_value_is_optional_if_there_is_a_fallback(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        reading *g = read_words((const char *[]){"--maybe greens", "greens --maybe", "--maybe -- green"}[i]);
        assert_true(g->read);
        assert_int_equal(g->r.maybe, 0);
        assert_int_equal(g->operands.count, 1);
    }
    reading *g = read_words("--maybe green green");
    assert_true(g->read);
    assert_int_equal(g->r.maybe, 1);
    assert_int_equal(g->operands.count, 1);
    assert_int_equal(read_words("--maybe=green")->r.maybe, 1);
    expect_refused("--maybe=", "known are red, green");
    expect_refused("--maybe --maybe", "given twice");
}

static void conflicting_options_are_refused(void **state)
{
    (void)state;
    expect_refused("--whole 3 --text x", "--text and --whole exclude each other");
    expect_refused("--choice red", "--choice and --flag go together");
    assert_true(read_words("--choice red --flag")->read);
}

static void misspelt_options_get_a_suggestion(void **state)
{
    (void)state;
    expect_refused("--chioce red", "unknown option --chioce (did you mean --choice?)");
    expect_refused("--texts=a", "unknown option --texts (did you mean --text?)");
    expect_refused("--hepl", "did you mean --help?");
    expect_refused("--frobnicate", "unknown option --frobnicate;");
    expect_refused("--hiden", "unknown option --hiden;"); /* hidden options are left out of the suggestions */
}

static void help_ends_parsing(void **state)
{
    (void)state;
    static const char *const lines[] = {"--help", "-h", "-fh --frobnicate", "one --help --text", "--choice red -h"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        reading *g = read_words(lines[i]);
        assert_false(g->read);
        assert_int_equal(g->status, CLI_OK);
        expect_contains(g->output.out, "Usage: mdot test [OPTION]…");
        assert_null(strstr(g->output.out, "hidden"));
        assert_string_equal(g->output.err, "");
    }
}

/* ---- All subcommands -------------------------------------------------------------------------------------------- */

static void expect_command_refuses(const cli_command *command, const char *first, const char *second,
                                   const char *message)
{
    static capture output;
    char name[32], copies[2][128];
    snprintf(name, sizeof name, "%s", command->name);
    snprintf(copies[0], sizeof copies[0], "%s", first);
    snprintf(copies[1], sizeof copies[1], "%s", second != NULL ? second : "");
    char *argv[] = {name, copies[0], second != NULL ? copies[1] : NULL, NULL};
    capture_begin(&output);
    int status = command->run(second != NULL ? 3 : 2, argv);
    capture_end(&output);
    if (status != CLI_USAGE) fail_msg("mdot %s %s: exit status %d", command->name, first, status);
    expect_contains(output.err, message);
    assert_string_equal(output.out, "");
}

#define EACH_OPTION(command, option)                                                                                   \
    for (const cli_command *const *command = cli_commands; *command != NULL; command++)                                \
        for (const cli_option *option = (*command)->options; option < (*command)->options + (*command)->option_count;  \
             option++)

static void every_command_refuses_unknown_options(void **state)
{
    (void)state;
    for (const cli_command *const *command = cli_commands; *command != NULL; command++) {
        expect_command_refuses(*command, "--frobnicate", NULL, "unknown option --frobnicate;");
        expect_command_refuses(*command, "-Z", NULL, "unknown option -Z;");
        expect_command_refuses(*command, "--hlep", NULL, "did you mean --help?");
    }
}

static void every_option_is_suggested_for_its_misspellings(void **state)
{
    (void)state;
    char wrong[64], message[128];
    EACH_OPTION(command, option)
    {
        if (option->help == NULL || strlen(option->name) < 4) continue;
        snprintf(wrong, sizeof wrong, "--%s", option->name);
        wrong[4] = '_';
        snprintf(message, sizeof message, "unknown option %s (did you mean --%s?)", wrong, option->name);
        expect_command_refuses(*command, wrong, NULL, message);
    }
}

static void every_option_with_a_value_requires_it(void **state)
{
    (void)state;
    char name[64];
    EACH_OPTION(command, option)
    {
        snprintf(name, sizeof name, "--%s", option->name);
        if (option->value == NULL) {
            strcat(name, "=1");
            expect_command_refuses(*command, name, NULL, "takes no value");
            continue;
        }
        if (option->fallback != NULL) continue;
        expect_command_refuses(*command, name, NULL, "needs a value");
        if (option->letter == '\0') continue;
        snprintf(name, sizeof name, "-%c", option->letter);
        expect_command_refuses(*command, name, NULL, "needs a value");
    }
}

/* Returns a valid value. */
static const char *example_of(const cli_option *option)
{
    static const struct {
        const char *name, *value;
    } calls[] = {{"batch", "4"},     {"sweep", "batch=1,2"},     {"buckets", "16"},     {"entry", "a=b"},
                 {"link", "pcie"},   {"parallel", "tp=2"},       {"gpu", "T4"},         {"gpu-spec", "like=T4"},
                 {"price", "2"},     {"torch", "2.4"},           {"gpus", "8"},         {"global-batch", "64"},
                 {"deadline", "7d"}, {"checkpoint-every", "1h"}, {"gpu-failure", "1h"}, {"interrupted-every", "1h"},
                 {"restart", "1h"},  {"startup", "1h"},          {"grid", "350"},       {"stages", "6,6"},
                 {"length", "8"},    {"fit", "length"}};
    if (option->choices != NULL) return option->choices[0];
    if (option->names != NULL) return option->names()[0];
    if (option->kind == CLI_DIM) return "n=1";
    if (option->kind == CLI_WHOLE || option->kind == CLI_COUNT) return "1";
    if (option->kind == CLI_REAL || option->kind == CLI_RATE) return "1";
    if (option->kind == CLI_DURATION) return "1h";
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (option->kind == CLI_CALL && strcmp(option->name, calls[i].name) == 0) return calls[i].value;
    assert_compare(option->kind, ==, CLI_TEXT);
    return "x";
}

static void non_repeatable_options_are_refused_twice(void **state)
{
    (void)state;
    char given[128];
    size_t refused = 0;
    EACH_OPTION(command, option)
    {
        bool takes_keys = option->takes_list && option->kind == CLI_CALL && (*command)->lists != 0;
        if (option->value == NULL || option->repeats || takes_keys) continue;
        snprintf(given, sizeof given, "--%s=%s", option->name, example_of(option));
        expect_command_refuses(*command, given, given, "is given twice");
        refused++;
    }
    assert_compare(refused, >, 20);
}

/* Every option that reads a number, of whatever kind, refuses the same texts. */
static void numbers_have_one_grammar(void **state)
{
    (void)state;
    static const char *const forms[] = {"0x%s", "-0x%s", "%s 0", "inf", "nan", "%sx", "%s_", "1e400", "\xd9\xa3"};
    size_t checked = 0;
    EACH_OPTION(command, option)
    {
        bool is_text = option->value == NULL || (option->repeats && option->kind != CLI_DIM);
        const char *example = is_text ? "" : example_of(option), *name = "";
        if (option->kind == CLI_DIM) name = "n=", example = "1";
        if (option->choices != NULL || *example < '0' || *example > '9') continue;
        for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
            if (option->kind == CLI_DIM && strchr("in\xd9", forms[i][0]) != NULL) continue; /* names of dimensions */
            char given[128];
            int at = snprintf(given, sizeof given, "--%s=%s", option->name, name);
            snprintf(given + at, sizeof given - (size_t)at, forms[i], example);
            expect_command_refuses(*command, given, NULL, option->name);
            checked++;
        }
    }
    assert_compare(checked, >, 200);
}

/* Names and letters are unique, and options that refer to others refer to existing ones. */
static void tables_are_consistent(void **state)
{
    (void)state;
    EACH_OPTION(command, option)
    {
        const cli_option *other;
        size_t named = 0;
        for (size_t i = 0; (other = cli_option_at(*command, i)) != NULL; i++) {
            named += option->excludes != NULL && strcmp(other->name, option->excludes) == 0;
            named += option->needs != NULL && strcmp(other->name, option->needs) == 0;
            if (other == option) continue;
            assert_string_not_equal(option->name, other->name);
            assert_true(option->letter == '\0' || option->letter != other->letter);
        }
        assert_int_equal(named, (option->excludes != NULL) + (option->needs != NULL));
        assert_int_equal(option->value == NULL, option->kind == CLI_FLAG);
        assert_int_equal(option->call != NULL, option->kind == CLI_CALL);
        assert_int_equal(option->choices != NULL, option->kind == CLI_CHOICE);
    }
}

/* A table without space for its options says so, instead of ending in silence. */
static void too_many_options_are_refused_aloud(void **state)
{
    (void)state;
    static capture output;
    static cli_option many[200];
    char program[] = "many", *argv[] = {program, NULL};
    for (size_t i = 0; i < 200; i++) many[i] = (cli_option){.name = "a", .kind = CLI_FLAG};
    for (size_t count = 90; count <= 200; count++) {
        const cli_command command = {.name = "many", .options = many, .option_count = count};
        cli_operands operands;
        bool storage[8] = {false};
        int status = CLI_OK;
        capture_begin(&output);
        bool read = cli_read_line(&command, 1, argv, storage, &operands, &status);
        capture_end(&output);
        if (read) continue;
        assert_int_equal(status, CLI_USAGE);
        expect_contains(output.err, "options exceeds");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_read_in_every_form),
        cmocka_unit_test(every_option_kind_sets_its_field),
        cmocka_unit_test(operands_may_stand_anywhere_and_keep_their_order),
        cmocka_unit_test(a_value_may_look_like_an_option),
        cmocka_unit_test(an_unambiguous_prefix_is_accepted),
        cmocka_unit_test(repeatable_options_accumulate),
        cmocka_unit_test(wrong_command_lines_are_refused),
        cmocka_unit_test(choices_ignore_case_and_accept_synonyms),
        cmocka_unit_test(a_value_is_optional_if_there_is_a_fallback),
        cmocka_unit_test(conflicting_options_are_refused),
        cmocka_unit_test(misspelt_options_get_a_suggestion),
        cmocka_unit_test(help_ends_parsing),
        cmocka_unit_test(every_command_refuses_unknown_options),
        cmocka_unit_test(every_option_is_suggested_for_its_misspellings),
        cmocka_unit_test(every_option_with_a_value_requires_it),
        cmocka_unit_test(non_repeatable_options_are_refused_twice),
        cmocka_unit_test(numbers_have_one_grammar),
        cmocka_unit_test(tables_are_consistent),
        cmocka_unit_test(too_many_options_are_refused_aloud),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
