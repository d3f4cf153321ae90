/* test_csv.c — tables of comma-separated values: every writer's fields read back, and faults are named with the
 * line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/csv.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

static mdot_error err;

static mdot_status begin(const char *text, const char *header, bs_csv *out_csv)
{
    err = (mdot_error){0};
    return bs_csv_begin("t.csv", text, strlen(text), header, out_csv, &err);
}

static void open_table(const char *text, bs_csv *out_csv)
{
    if (begin(text, NULL, out_csv) != MDOT_OK) fail_msg("%s", err.message);
}

static void expect_row(bs_csv *csv, size_t line, const char *const *fields)
{
    bool is_row;
    if (bs_csv_next(csv, &is_row, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(is_row);
    assert_int_equal(csv->line, line);
    for (int i = 0; i < csv->field_count; i++) assert_string_equal(csv->field[i], fields[i]);
}

#define ROW(...)                                                                                                       \
    (const char *const[]) { __VA_ARGS__ }

static void expect_end(bs_csv *csv)
{
    bool is_row;
    assert_int_equal(bs_csv_next(csv, &is_row, &err), MDOT_OK);
    assert_false(is_row);
    bs_csv_close(csv);
}

static void fields_lose_quotes_and_outer_blanks(void **state)
{
    (void)state;
    bs_csv csv;
    open_table("a,b,c\n"
               " x , \"y, \"\"z\"\"\" ,\"  kept \"\n"
               ",say \"hi\",a  b\n",
               &csv);
    assert_int_equal(csv.header_count, 3);
    assert_string_equal(csv.header[2], "c");
    expect_row(&csv, 2, ROW("x", "y, \"z\"", "  kept "));
    expect_row(&csv, 3, ROW("", "say \"hi\"", "a  b"));
    expect_end(&csv);
}

static void marks_comments_empty_lines_and_line_ends_are_ignored(void **state)
{
    (void)state;
    bs_csv csv;
    open_table("\xef\xbb\xbf# source\r\n\r\na,b\r\n1,2\r\n#3,4\r\n \t\n5,6", &csv);
    assert_string_equal(csv.header[0], "a");
    assert_string_equal(csv.header[1], "b");
    assert_int_equal(csv.line_count, 7);
    expect_row(&csv, 4, ROW("1", "2"));
    expect_row(&csv, 7, ROW("5", "6"));
    expect_end(&csv);
}

static void tables_of_sacct_quote_nothing(void **state)
{
    (void)state;
    bs_csv csv;
    open_table("# site\nJobID|State|JobName\n#1| \"DONE|a|b, c \"\n", &csv);
    assert_int_equal(csv.header_count, 3);
    expect_row(&csv, 3, ROW("#1", " \"DONE", "a|b, c \""));
    expect_end(&csv);
}

/* Fields hold letters, quotes, blanks and the other separators. */
static void each_separator_has_the_same_fields(void **state)
{
    (void)state;
    static const char separators[] = {',', ';', '\t'}, letters[] = "ab1 .\";,\t|#";
    unsigned seed = 1;
    for (int round = 0; round < 300; round++) {
        char cells[6][3][8], text[3][512];
        for (int i = 0; i < 18; i++) {
            size_t length = (seed = seed * 1103515245 + 12345) >> 16 & 7;
            for (size_t j = 0; j < length; j++)
                cells[i / 3][i % 3][j] = letters[((seed = seed * 1103515245 + 12345) >> 16) % (sizeof letters - 1)];
            cells[i / 3][i % 3][length] = '\0';
        }
        for (int k = 0; k < 3; k++) {
            char *out = text[k];
            out += sprintf(out, "x%cy%cz\n", separators[k], separators[k]);
            for (int i = 0; i < 18; i++) {
                *out++ = '"';
                for (const char *c = cells[i / 3][i % 3]; *c != '\0'; *out++ = *c++)
                    if (*c == '"') *out++ = '"';
                *out++ = '"', *out++ = i % 3 == 2 ? '\n' : separators[k];
            }
            *out = '\0';
            bs_csv csv;
            open_table(text[k], &csv);
            for (size_t row = 0; row < 6; row++)
                expect_row(&csv, row + 2, ROW(cells[row][0], cells[row][1], cells[row][2]));
            expect_end(&csv);
        }
    }
}

static void a_given_header_serves_a_table_without_one(void **state)
{
    (void)state;
    bs_csv csv;
    assert_int_equal(begin("1,2\n", "a,b", &csv), MDOT_OK);
    assert_string_equal(csv.header[1], "b");
    expect_row(&csv, 1, ROW("1", "2"));
    expect_end(&csv);
    assert_int_equal(begin("a,c\n1,2\n", "a,b", &csv), MDOT_OK);
    assert_string_equal(csv.header[1], "c");
    expect_row(&csv, 2, ROW("1", "2"));
    expect_end(&csv);
}

static void a_table_may_be_a_file(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "t.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_compare(fputs("a\n1\n", file), >=, 0);
    assert_int_equal(fclose(file), 0);
    bs_csv csv;
    assert_int_equal(bs_csv_open(path, 4, NULL, &csv, &err), MDOT_OK);
    expect_row(&csv, 2, ROW("1"));
    expect_end(&csv);
    assert_int_equal(bs_csv_open(path, 3, NULL, &csv, &err), MDOT_MALFORMED);
    process_remove_folder(folder);
    assert_int_equal(bs_csv_open(path, 4, NULL, &csv, &err), MDOT_NOT_FOUND);
    free(path);
}

/* Reads the whole table; returns the first fault's status. */
static mdot_status read_all(const char *text, size_t size_bytes)
{
    bs_csv csv;
    bool is_row = true;
    err = (mdot_error){0};
    mdot_status status = bs_csv_begin("t.csv", text, size_bytes, NULL, &csv, &err);
    if (status != MDOT_OK) return status;
    while (status == MDOT_OK && is_row) status = bs_csv_next(&csv, &is_row, &err);
    bs_csv_close(&csv);
    return status;
}

static void faults_name_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t.csv: the table is empty"},
        {"\n# nothing\n", "t.csv: the table is empty"},
        {"\n{\"step\": 1, \"loss\": 2}\n",
         "t.csv:2: JSON in place of a table; write its rows as CSV, for example with pandas' to_csv"},
        {"[\n  {", "t.csv:1: JSON in place of a table; write its rows as CSV, for example with pandas' to_csv"},
        {"a,\"b\n1,2\n", "t.csv:1: a quote is not closed"},
        {"a,b\n1,\"2\n", "t.csv:2: a quote is not closed"},
        {"a,b\n1,2\n\n\"1\"x,2\n", "t.csv:4: characters follow a closing quote"},
        {"a,b\n1\n", "t.csv:2: there are 1 fields, but 2 columns"},
        {"a,b\n1,2,3\n", "t.csv:2: there are 3 fields, but 2 columns"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(read_all(cases[i].text, strlen(cases[i].text)), MDOT_MALFORMED);
        assert_string_equal(err.message, cases[i].message);
    }
    static const char zero[] = "a\n1\n\0";
    assert_int_equal(read_all(zero, sizeof zero - 1), MDOT_MALFORMED);
    assert_string_equal(err.message, "t.csv:3: a zero byte; the table must be text");
}

static void the_number_of_fields_is_limited(void **state)
{
    (void)state;
    char text[2 * BS_CSV_MAX_FIELDS + 2] = "";
    for (int i = 0; i < BS_CSV_MAX_FIELDS - 1; i++) text[i] = ',';
    assert_int_equal(read_all(text, strlen(text)), MDOT_OK);
    text[BS_CSV_MAX_FIELDS - 1] = ',';
    assert_int_equal(read_all(text, strlen(text)), MDOT_MALFORMED);
    assert_string_equal(err.message, "t.csv:1: more than 96 fields");
}

static void columns_are_found_by_name(void **state)
{
    (void)state;
    bs_csv csv;
    int column = 7;
    open_table("a,b,,\n", &csv);
    assert_int_equal(bs_csv_find(&csv, "b"), 1);
    assert_int_equal(bs_csv_find(&csv, "c"), BS_CSV_ABSENT);
    assert_int_equal(bs_csv_need(&csv, "a", &column, &err), MDOT_OK);
    assert_int_equal(column, 0);
    assert_int_equal(bs_csv_need(&csv, "c", &column, &err), MDOT_MALFORMED);
    assert_string_equal(err.message, "t.csv:1: there is no column c; the first, up to a \",\", is \"a\"");
    bs_csv_close(&csv);
    open_table("a,b,a\n", &csv);
    assert_int_equal(bs_csv_need(&csv, "b", &column, &err), MDOT_MALFORMED);
    assert_string_equal(err.message, "t.csv:1: there are two columns a");
    bs_csv_close(&csv);
}

static void numbers_are_read_within_a_range(void **state)
{
    (void)state;
    static const char *const refused[] = {"", "x", "1x", "inf", "nan", "1 2", "_"};
    bs_csv csv;
    bool is_row;
    double value = 0;
    int whole = 0;
    open_table("n\n1_000\n2.5\n", &csv);
    assert_int_equal(bs_csv_next(&csv, &is_row, &err), MDOT_OK);
    assert_int_equal(bs_csv_integer(&csv, 0, 1000, 1000, &whole, &err), MDOT_OK);
    assert_int_equal(whole, 1000);
    assert_int_equal(bs_csv_number(&csv, 0, 1001, 2000, &value, &err), MDOT_MALFORMED);
    assert_string_equal(err.message, "t.csv:2: n is 1_000, less than 1001");
    assert_int_equal(bs_csv_number(&csv, 0, 0, 999, &value, &err), MDOT_MALFORMED);
    assert_string_equal(err.message, "t.csv:2: n is 1_000, more than 999");
    assert_int_equal(bs_csv_next(&csv, &is_row, &err), MDOT_OK);
    assert_int_equal(bs_csv_number(&csv, 0, 0, 999, &value, &err), MDOT_OK);
    assert_float_equal(value, 2.5, 0);
    assert_int_equal(bs_csv_integer(&csv, 0, 0, 999, &whole, &err), MDOT_MALFORMED);
    assert_string_equal(err.message, "t.csv:3: n is not an integer: \"2.5\"");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char text[8];
        strcpy(text, refused[i]);
        csv.field[0] = text;
        assert_int_equal(bs_csv_number(&csv, 0, -1e9, 1e9, &value, &err), MDOT_MALFORMED);
        expect_contains(err.message, "n is not a number");
    }
    bs_csv_close(&csv);
}

static void expect_written(const char *text, const char *expected)
{
    char written[64] = "";
    FILE *stream = fmemopen(written, sizeof written, "w");
    assert_non_null(stream);
    bs_csv_write_text(stream, text);
    assert_int_equal(fclose(stream), 0);
    assert_string_equal(written, expected);
}

static void fields_are_quoted_where_the_reader_would_change_them(void **state)
{
    (void)state;
    static const char *const cells[][2] = {
        {"", ""},           {"plain", "plain"},       {"a b", "a b"},
        {"a#", "a#"},       {"a,b", "\"a,b\""},       {"say \"x\"", "\"say \"\"x\"\"\""},
        {"\"", "\"\"\"\""}, {" blank", "\" blank\""}, {"blank ", "\"blank \""},
        {"#", "\"#\""}};
    enum { COUNT = sizeof cells / sizeof *cells };
    char text[256] = "a,b,c,d,e,f,g,h,i,j\n";
    const char *fields[COUNT];
    size_t length = strlen(text);
    FILE *stream = fmemopen(text + length, sizeof text - length, "w");
    assert_non_null(stream);
    for (size_t i = 0; i < COUNT; i++) {
        expect_written(cells[i][0], cells[i][1]);
        if (i > 0) fputc(',', stream);
        bs_csv_write_text(stream, fields[i] = cells[i][0]);
    }
    assert_int_equal(fclose(stream), 0);
    bs_csv csv;
    open_table(text, &csv);
    expect_row(&csv, 2, fields);
    expect_end(&csv);
}

static void a_field_stays_on_one_line(void **state)
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
        cmocka_unit_test(fields_lose_quotes_and_outer_blanks),
        cmocka_unit_test(marks_comments_empty_lines_and_line_ends_are_ignored),
        cmocka_unit_test(tables_of_sacct_quote_nothing),
        cmocka_unit_test(each_separator_has_the_same_fields),
        cmocka_unit_test(a_given_header_serves_a_table_without_one),
        cmocka_unit_test(a_table_may_be_a_file),
        cmocka_unit_test(faults_name_their_line),
        cmocka_unit_test(the_number_of_fields_is_limited),
        cmocka_unit_test(columns_are_found_by_name),
        cmocka_unit_test(numbers_are_read_within_a_range),
        cmocka_unit_test(fields_are_quoted_where_the_reader_would_change_them),
        cmocka_unit_test(a_field_stays_on_one_line),
        cmocka_unit_test(only_the_given_bytes_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
