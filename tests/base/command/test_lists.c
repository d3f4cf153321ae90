/* test_lists.c — several values of options: each combination stores what a line with these values alone does. */
#include "base/command/command.h"
#include "cli/cli.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct request {
    int64_t first; /* so that the lists do not begin at 0 */
    cli_lists lists;
    int64_t whole;
    double real;
    int choice;
    char keys[64];
} request;

static bool call(const char *command, char *value, void *keys)
{
    if (strstr(value, "bad") != NULL) {
        cli_usage_error(command, "a bad value");
        return false;
    }
    snprintf(keys, 64, "%s", value);
    return true;
}

static const char *const colours[] = {"red", "green", "blue", NULL};
static const cli_option options[] = {
    {.name = "whole",
     .value = "N",
     .kind = CLI_WHOLE,
     .at = offsetof(request, whole),
     .least = 1,
     .most = 64,
     .takes_list = true},
    {.name = "real", .value = "X", .kind = CLI_REAL, .at = offsetof(request, real), .takes_list = true},
    {.name = "choice",
     .value = "C",
     .kind = CLI_CHOICE,
     .at = offsetof(request, choice),
     .choices = colours,
     .takes_list = true},
    {.name = "keys", .value = "K", .kind = CLI_CALL, .at = offsetof(request, keys), .call = call, .takes_list = true},
    {.name = "one", .value = "N", .kind = CLI_WHOLE, .at = offsetof(request, first), .least = 1, .most = 9},
};
static const cli_command lists = {
    .name = "test", .description = "", CLI_OPTIONS(options), .lists = offsetof(request, lists)};
static const cli_command single = {.name = "test", .description = "", CLI_OPTIONS(options)};

static bool read_line(const cli_command *command, request *out, const char *const *arguments)
{
    static char text[8][128];
    char *argv[9] = {"test"};
    int argc = 1, status;
    cli_operands operands;
    *out = (request){0};
    for (; arguments[argc - 1] != NULL; argc++) {
        snprintf(text[argc - 1], sizeof text[0], "%s", arguments[argc - 1]);
        argv[argc] = text[argc - 1];
    }
    return cli_read_line(command, argc, argv, out, &operands, &status);
}

#define READ(command, out, ...) read_line(command, out, (const char *const[]){__VA_ARGS__, NULL})

static void each_combination_is_a_line_with_single_values(void **state)
{
    (void)state;
    request several;
    assert_true(READ(&lists, &several, "--whole=1..12", "--choice=red,Blue", "--real=2.5,3",
                     "--keys=dp=4,tp=1,2,zero=3", "--keys", "pp=2"));
    static const char *const wholes[] = {"1", "2", "4", "8", "12"}, *const names[] = {"red", "Blue"},
                             *const reals[] = {"2.5", "3"},
                             *const keys[] = {"dp=4,tp=1,zero=3", "dp=4,tp=2,zero=3", "pp=2"};
    assert_int_equal(cli_combination_count(&several.lists), 5 * 2 * 2 * 3);
    for (size_t i = 0; i < 5 * 2 * 2 * 3; i++) {
        char line[4][64];
        request one;
        snprintf(line[0], 64, "--whole=%s", wholes[i / 12]);
        snprintf(line[1], 64, "--choice=%s", names[i / 6 % 2]);
        snprintf(line[2], 64, "--real=%s", reals[i / 3 % 2]);
        snprintf(line[3], 64, "--keys=%s", keys[i % 3]);
        assert_true(READ(&single, &one, line[0], line[1], line[2], line[3]));
        cli_set_combination("test", &several.lists, i, &several);
        assert_int_equal(several.whole, one.whole);
        assert_int_equal(several.choice, one.choice);
        assert_true(several.real == one.real);
        assert_string_equal(several.keys, one.keys);
        assert_string_equal(cli_value_in(&several.lists, 3, i), keys[i % 3]);
    }
}

static void the_first_value_is_stored(void **state)
{
    (void)state;
    request r;
    assert_true(READ(&lists, &r, "--whole=8,2", "--choice=blue,red"));
    assert_int_equal(r.whole, 8);
    assert_int_equal(r.choice, 2);
    assert_true(READ(&lists, &r, "--whole=8"));
    assert_int_equal(cli_combination_count(&r.lists), 1);
    assert_int_equal(r.lists.count, 0);
}

static void wrong_values_of_a_list_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"--whole=1,65",   "--whole=1,,2",      "--whole=4..2",
                                        "--whole=1,",     "--choice=red,pink", "--real=1,-2",
                                        "--keys=a=1,bad", "--keys=bad",        "--one=1,2"};
    request r;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (READ(&lists, &r, wrong[i])) fail_msg("%s is accepted", wrong[i]);
    assert_false(READ(&lists, &r, "--whole=1", "--whole=2")); /* twice */
    assert_false(READ(&single, &r, "--keys=a=1", "--keys=b=1"));
    assert_false(READ(&single, &r, "--whole=1,2"));
}

static void too_many_values_are_refused(void **state)
{
    (void)state;
    char text[128] = "--real=1";
    request r;
    for (int i = 0; i < 59; i++) strcat(text, ",1");
    assert_true(READ(&lists, &r, text));
    assert_int_equal(cli_combination_count(&r.lists), 60);
    assert_false(READ(&lists, &r, "--keys=a=1,2,3,4,5,6,7,8,9,b=1,2,3,4,5,6,7,8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_combination_is_a_line_with_single_values),
        cmocka_unit_test(the_first_value_is_stored),
        cmocka_unit_test(wrong_values_of_a_list_are_refused),
        cmocka_unit_test(too_many_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
