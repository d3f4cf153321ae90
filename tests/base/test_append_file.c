/* test_append_file.c — several processes append lines to one file, and a failed write changes nothing. */
#include "base/file.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/process.h"

enum { PROCESSES = 8, LINES = 50, LINE_BYTES = 300, TEXT_BYTES = 1 << 18 };

static char *folder, *path;

static int set_up(void **state)
{
    (void)state;
    folder = process_make_folder();
    path = process_in_folder(folder, "lines");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    free(path);
    return 0;
}

static const char *read_back(void)
{
    static char text[TEXT_BYTES];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void append(const char *text)
{
    bs_append a;
    mdot_error err = {0};
    mdot_status status = bs_append_begin(&a, path, &err);
    if (status == MDOT_OK) status = bs_append_end(&a, text, strlen(text), &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
}

/* A process that finds the file empty writes the header first. Returns whether all lines were written. */
static bool append_lines(char letter)
{
    char line[LINE_BYTES + 16];
    for (int i = 0; i < LINES; i++) {
        bs_append a;
        if (bs_append_begin(&a, path, NULL) != MDOT_OK) return false;
        size_t at = a.size_bytes == 0 ? (size_t)snprintf(line, sizeof line, "header\n") : 0;
        memset(line + at, letter, LINE_BYTES - 1);
        line[at + LINE_BYTES - 1] = '\n';
        if (bs_append_end(&a, line, at + LINE_BYTES, NULL) != MDOT_OK) return false;
    }
    return true;
}

static void lines_of_several_processes_stay_whole(void **state)
{
    (void)state;
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] == 0) _exit(append_lines((char)('a' + i)) ? 0 : 1);
        assert_compare(children[i], >, 0);
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    const char *at = read_back();
    int counts[PROCESSES] = {0};
    assert_int_equal(strncmp(at, "header\n", 7), 0);
    for (at += 7; *at != '\0'; at += LINE_BYTES) {
        assert_compare(*at, >=, 'a');
        assert_compare(*at, <, 'a' + PROCESSES);
        assert_int_equal(strspn(at, (char[]){*at, '\0'}), LINE_BYTES - 1);
        assert_int_equal(at[LINE_BYTES - 1], '\n');
        counts[*at - 'a']++;
    }
    for (int i = 0; i < PROCESSES; i++) assert_int_equal(counts[i], LINES);
}

static void open_last_line_is_ended(void **state)
{
    (void)state;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("one", file);
    fclose(file);
    append("two\n");
    append("three\n");
    assert_string_equal(read_back(), "one\ntwo\nthree\n");
}

static void head_of_a_long_file_is_cut(void **state)
{
    (void)state;
    bs_append a;
    char *line = calloc(BS_APPEND_HEAD_BYTES + 2, 1);
    assert_non_null(line);
    memset(line, 'x', BS_APPEND_HEAD_BYTES);
    line[BS_APPEND_HEAD_BYTES] = '\n';
    append(line);
    assert_int_equal(bs_append_begin(&a, path, NULL), MDOT_OK);
    assert_int_equal(strlen(a.head), BS_APPEND_HEAD_BYTES - 1);
    assert_int_equal(a.size_bytes, BS_APPEND_HEAD_BYTES + 1);
    assert_false(a.is_line_open);
    bs_append_cancel(&a);
    free(line);
}

/* The file size limit stands for a full disk: a part of the text is written, and then none. */
static void failed_write_leaves_the_file_as_it_was(void **state)
{
    (void)state;
    append("one\n");
    bs_append a;
    struct rlimit before, low = {100, 0};
    char text[LINE_BYTES];
    memset(text, 'x', sizeof text);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low.rlim_max = before.rlim_max;
    mdot_error err = {0};
    assert_int_equal(bs_append_begin(&a, path, NULL), MDOT_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    mdot_status status = bs_append_end(&a, text, sizeof text, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, MDOT_IO);
    expect_contains(err.message, "limit of file sizes");
    assert_string_equal(read_back(), "one\n");
    append("two\n"); /* the lock is free */
    assert_string_equal(read_back(), "one\ntwo\n");
}

static void folders_pipes_and_missing_folders_are_refused(void **state)
{
    (void)state;
    bs_append a;
    mdot_error err = {0};
    assert_int_equal(bs_append_begin(&a, folder, &err), MDOT_IO);
    assert_int_equal(bs_append_begin(&a, "/nowhere/at/all", &err), MDOT_NOT_FOUND);
    expect_contains(err.message, "/nowhere/at/all");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(bs_append_begin(&a, path, &err), MDOT_IO);
    expect_contains(err.message, "not a regular file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lines_of_several_processes_stay_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(open_last_line_is_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(head_of_a_long_file_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failed_write_leaves_the_file_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(folders_pipes_and_missing_folders_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
