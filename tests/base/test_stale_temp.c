/* test_stale_temp.c — abandoned temporary files are removed, and files that are still being written stay. */
#include "base/file.h"
#include "tests/support/assertions.h"

#include "tests/support/process.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NAME BS_TEMPORARY_PREFIX "0123456789abcdef"

static int folder = -1;
static char *folder_path;

static int set_up(void **state)
{
    (void)state;
    folder_path = process_make_folder();
    folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    close(folder);
    process_remove_folder(folder_path);
    return 0;
}

static int make_file(const char *name)
{
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_compare(file, >=, 0);
    return file;
}

static bool is_there(const char *name)
{
    struct stat info;
    return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

static void a_locked_file_is_kept(void **state)
{
    (void)state;
    int file = make_file(NAME);
    assert_true(bs_hold(file));
    bs_remove_if_stale(folder, NAME);
    assert_true(is_there(NAME));
    close(file);
    bs_remove_if_stale(folder, NAME);
    assert_false(is_there(NAME));
}

static void a_killed_process_releases_its_files(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_compare(child, >=, 0);
    if (child == 0) {
        int file = openat(folder, NAME, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (!bs_hold(file)) _exit(1);
        raise(SIGKILL);
    }
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended));
    assert_true(is_there(NAME));
    bs_remove_if_stale(folder, NAME);
    assert_false(is_there(NAME));
}

/* Between creation and locking, the file was removed as abandoned. */
static void removed_files_cannot_be_locked(void **state)
{
    (void)state;
    int file = make_file(NAME);
    bs_remove_if_stale(folder, NAME);
    assert_false(is_there(NAME));
    assert_false(bs_hold(file));
    close(file);
    file = make_file(NAME);
    int other = openat(folder, NAME, O_WRONLY | O_CLOEXEC);
    assert_true(bs_hold(other));
    assert_false(bs_hold(file));
    close(other);
    close(file);
}

static void files_with_other_names_and_types_are_kept(void **state)
{
    (void)state;
    static const char *const names[] = {BS_TEMPORARY_PREFIX "0123456789abcde", BS_TEMPORARY_PREFIX "0123456789abcdef0",
                                        BS_TEMPORARY_PREFIX "0123456789abcdeg", "xmdot-0123456789abcdef", "file"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        close(make_file(names[i]));
        bs_remove_if_stale(folder, names[i]);
        assert_true(is_there(names[i]));
    }
    assert_int_equal(symlinkat("file", folder, NAME), 0);
    bs_remove_if_stale(folder, NAME);
    assert_true(is_there(NAME));
    assert_true(is_there("file"));
    assert_int_equal(unlinkat(folder, NAME, 0), 0);
    assert_int_equal(mkdirat(folder, NAME, 0700), 0);
    bs_remove_if_stale(folder, NAME);
    assert_true(is_there(NAME));
    bs_remove_if_stale(folder, BS_TEMPORARY_PREFIX "fedcba9876543210"); /* absent */
}

/* The final name of a file differs from a temporary name, and the file is unlocked. */
static void a_file_is_unlocked_after_writing(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s/file", folder_path);
    assert_int_equal(bs_write_file(path, "x", 1, NULL), MDOT_OK);
    int file = openat(folder, "file", O_RDWR | O_CLOEXEC);
    assert_compare(file, >=, 0);
    assert_true(bs_hold(file));
    close(file);
    assert_int_equal(process_count_files(folder_path), 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_locked_file_is_kept),
        CASE(a_killed_process_releases_its_files),
        CASE(removed_files_cannot_be_locked),
        CASE(files_with_other_names_and_types_are_kept),
        CASE(a_file_is_unlocked_after_writing),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
