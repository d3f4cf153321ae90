/* test_csv_cell.c — cells of CSV that every reader of this project reads back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/csv_cell.h"

static void expect_written(const char *text, const char *expected)
{
    char written[64] = "";
    FILE *stream = fmemopen(written, sizeof written, "w");
    assert_non_null(stream);
    bs_csv_write_text(stream, text);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(written, expected);
}

static void cells_are_quoted_where_a_reader_would_change_them(void **state)
{
    (void)state;
    static const char *const cells[][2] = {
        {"", ""},           {"plain", "plain"},       {"a b", "a b"},
        {"a#", "a#"},       {"a,b", "\"a,b\""},       {"say \"x\"", "\"say \"\"x\"\"\""},
        {"\"", "\"\"\"\""}, {" blank", "\" blank\""}, {"blank ", "\"blank \""},
        {"#", "\"#\""}};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) expect_written(cells[i][0], cells[i][1]);
}

static void a_cell_stays_on_one_line(void **state)
{
    (void)state;
    expect_written("two\nlines", "two lines");
    expect_written("a\r\033[2J", "a  [2J");
    expect_written("tab\t", "\"tab \"");
    expect_written("\nfirst", "\" first\"");
    expect_written("\303\244", "\303\244"); /* bytes above 127 are text */
}

static void only_the_given_bytes_are_written(void **state)
{
    (void)state;
    char written[16] = "";
    FILE *stream = fmemopen(written, sizeof written, "w");
    assert_non_null(stream);
    bs_csv_write(stream, "gpu=\"x\"", 3);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(written, "gpu");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_quoted_where_a_reader_would_change_them),
        cmocka_unit_test(a_cell_stays_on_one_line),
        cmocka_unit_test(only_the_given_bytes_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
