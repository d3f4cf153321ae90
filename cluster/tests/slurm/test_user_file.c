/* test_user_file.c — files that users name: regular files are read, and other files never block the reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/stat.h>

#include "slurm/request.h"
#include "tests/simulator/support/numbers.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

static char *folder;

static int set_up(void **state)
{
    (void)state;
    folder = process_make_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void refuses(const char *path, size_t maximum, mdot_status status, const char *reason)
{
    unsigned char *bytes = NULL;
    size_t count = 7;
    mdot_error err = {0};
    assert_int_equal(sl_user_file_read(path, maximum, &bytes, &count, &err), status);
    expect_contains(err.message, reason);
    expect_contains(err.message, path);
    assert_null(bytes);
    expect_number(count, 7);
}

static void a_job_is_read_unchanged(void **state)
{
    (void)state;
    unsigned char *saved, *read;
    size_t saved_count, count;
    mdot_error err = {0};
    small_job_save(5, path_of("a.job"), &saved, &saved_count);
    assert_int_equal(sl_user_file_read(path_of("a.job"), saved_count, &read, &count, &err), MDOT_OK);
    assert_int_equal(count, saved_count);
    assert_memory_equal(read, saved, count);
    refuses(path_of("a.job"), saved_count - 1, MDOT_OUT_OF_RANGE, "has more than");
    saved[saved_count / 2] ^= 1;
    small_job_write_file(path_of("b.job"), saved, saved_count);
    refuses(path_of("b.job"), saved_count, MDOT_CORRUPT, "checksum");
    small_job_write_file(path_of("c.job"), saved, saved_count / 2);
    refuses(path_of("c.job"), saved_count, MDOT_MALFORMED, "truncated");
    free(read);
    free(saved);
}

static void files_of_other_types_are_refused_at_once(void **state)
{
    (void)state;
    refuses(path_of("nowhere.job"), 1000, MDOT_NOT_FOUND, strerror(ENOENT));
    assert_int_equal(mkfifo(path_of("pipe.job"), 0600), 0);
    refuses(path_of("pipe.job"), 1000, MDOT_INVALID_ARGUMENT, "not a regular file");
    assert_int_equal(mkdir(path_of("folder.job"), 0700), 0);
    refuses(path_of("folder.job"), 1000, MDOT_INVALID_ARGUMENT, "not a regular file");
    refuses("/dev/zero", 1000, MDOT_INVALID_ARGUMENT, "not a regular file");
    small_job_write_file(path_of("network.onnx"), "\x08\x08", 2);
    refuses(path_of("network.onnx"), 1000, MDOT_MALFORMED, "`mdot extract");
    small_job_write_file(path_of("empty.job"), "", 0);
    refuses(path_of("empty.job"), 1000, MDOT_MALFORMED, "header of a job file");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_read_unchanged),
        cmocka_unit_test(files_of_other_types_are_refused_at_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
