/* test_file.c — reading without blocking, and files that are either complete or absent. */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

typedef struct fixture {
    char *folder;
    char path[512], other[512];
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    snprintf(f->path, sizeof f->path, "%s/file", f->folder);
    snprintf(f->other, sizeof f->other, "%s/other", f->folder);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    free(f);
    return 0;
}

static void expect_content(const char *path, const char *content)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_int_equal(bs_read_file(path, &bytes, &size, NULL), MDOT_OK);
    assert_int_equal(size, strlen(content));
    assert_string_equal((char *)bytes, content);
    free(bytes);
}

static void write_text(const char *path, const char *content)
{
    assert_int_equal(bs_write_file(path, content, strlen(content), NULL), MDOT_OK);
}

static void make_sparse(const char *path, off_t bytes)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_compare(descriptor, >=, 0);
    assert_int_equal(ftruncate(descriptor, bytes), 0);
    close(descriptor);
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

static void oversized_file_is_refused_unread(void **state)
{
    fixture *f = *state;
    unsigned char *bytes = NULL;
    size_t size = 7;
    mdot_error err = {0};
    make_sparse(f->path, (off_t)1 << 40); /* more than the memory of any machine */
    assert_int_equal(bs_read_file_within(f->path, 1 << 16, &bytes, &size, &err), MDOT_MALFORMED);
    expect_contains(err.message, f->path);
    expect_contains(err.message, "1099511627776 bytes; the maximum is 65536");
    assert_null(bytes);
    assert_int_equal(size, 7);
    make_sparse(f->path, 1001);
    assert_int_equal(bs_read_file_within(f->path, 1000, &bytes, &size, &err), MDOT_MALFORMED);
    make_sparse(f->path, 1000);
    assert_int_equal(bs_read_file_within(f->path, 1000, &bytes, &size, &err), MDOT_OK);
    assert_int_equal(size, 1000);
    free(bytes);
}

static void irregular_file_is_refused_without_waiting(void **state)
{
    fixture *f = *state;
    unsigned char *bytes = NULL;
    size_t size = 7;
    mdot_error err = {0};
    assert_int_equal(mkfifo(f->path, 0600), 0);
    alarm(60); /* a reader that waits for the pipe's writer hangs */
    assert_int_equal(bs_read_file(f->path, &bytes, &size, &err), MDOT_IO);
    alarm(0);
    expect_contains(err.message, "not a regular file");
    assert_int_equal(bs_read_file(f->folder, &bytes, &size, &err), MDOT_IO);
    expect_contains(err.message, "a directory");
    assert_int_equal(bs_read_file("/dev/null", &bytes, &size, &err), MDOT_IO);
    assert_int_equal(bs_read_file(f->other, &bytes, &size, &err), MDOT_NOT_FOUND);
    expect_contains(err.message, f->other);
    assert_int_equal(bs_read_file(NULL, &bytes, &size, &err), MDOT_INVALID_ARGUMENT);
    assert_null(bytes);
    assert_int_equal(size, 7);
}

static void an_empty_file_is_read(void **state)
{
    fixture *f = *state;
    write_text(f->path, "");
    expect_content(f->path, "");
}

/* ---- Writing ---------------------------------------------------------------------------------------------------- */

static void a_file_is_replaced_without_leftovers(void **state)
{
    fixture *f = *state;
    write_text(f->path, "first, and longer than what follows");
    write_text(f->path, "second");
    expect_content(f->path, "second");
    assert_int_equal(process_count_files(f->folder), 1);
}

static void a_bare_name_is_written_in_the_working_folder(void **state)
{
    fixture *f = *state;
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(f->folder), 0);
    write_text("bare", "x");
    assert_int_equal(chdir(before), 0);
    free(before);
    char path[600];
    snprintf(path, sizeof path, "%s/bare", f->folder);
    expect_content(path, "x");
}

static void permissions_follow_the_umask(void **state)
{
    fixture *f = *state;
    static const mode_t masks[] = {0, 022, 027, 077};
    mode_t before = umask(0);
    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        struct stat info;
        umask(masks[i]);
        unlink(f->path);
        write_text(f->path, "x");
        assert_int_equal(stat(f->path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0666 & ~masks[i]);
    }
    umask(before);
}

static void replaced_file_keeps_its_permissions(void **state)
{
    fixture *f = *state;
    static const mode_t modes[] = {0600, 0640, 0444, 0755};
    struct stat info;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(bs_write_file(f->path, "x", 1, NULL), MDOT_OK);
        assert_int_equal(chmod(f->path, modes[i]), 0);
        assert_int_equal(bs_write_file(f->path, "y", 1, NULL), MDOT_OK);
        assert_int_equal(stat(f->path, &info), 0);
        assert_int_equal(info.st_mode & 0777, modes[i]);
        assert_int_equal(bs_write_file(f->other, "z", 1, NULL), MDOT_OK);
        assert_int_equal(bs_replace_file(f->other, f->path, NULL), MDOT_OK);
        assert_int_equal(stat(f->path, &info), 0);
        assert_int_equal(info.st_mode & 0777, modes[i]);
    }
}

/* Creates files while another thread saves. The mode of every file must respect the umask. */
static void *create_files(void *user)
{
    const fixture *f = user;
    for (int i = 0; i < 2000; i++) {
        int descriptor = open(f->other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        struct stat info;
        if (descriptor < 0 || fstat(descriptor, &info) != 0 || (info.st_mode & 0777) != 0600) return user;
        close(descriptor);
        unlink(f->other);
    }
    return NULL;
}

static void writing_keeps_the_umask_of_other_threads(void **state)
{
    fixture *f = *state;
    mode_t before = umask(077);
    pthread_t thread;
    void *failed = f;
    assert_int_equal(pthread_create(&thread, NULL, create_files, f), 0);
    for (int i = 0; i < 200; i++) write_text(f->path, "x");
    pthread_join(thread, &failed);
    assert_int_equal(umask(before), 077);
    assert_null(failed);
}

static void a_failed_write_changes_nothing(void **state)
{
    fixture *f = *state;
    write_text(f->path, "as it was");
    struct rlimit before, little;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = (struct rlimit){4096, before.rlim_max};
    char *bytes = calloc(1, 100000);
    mdot_error err = {0};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    mdot_status status = bs_write_file(f->path, bytes, 100000, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    free(bytes);
    assert_int_equal(status, MDOT_IO);
    expect_contains(err.message, f->path);
    expect_content(f->path, "as it was");
    assert_int_equal(process_count_files(f->folder), 1);
}

static void a_missing_folder_is_named(void **state)
{
    (void)state;
    mdot_error err = {0};
    assert_int_equal(bs_write_file("/nonexistent/folder/x", "x", 1, &err), MDOT_NOT_FOUND);
    expect_contains(err.message, "/nonexistent/folder/x");
}

static void a_link_is_replaced_and_its_target_stays(void **state)
{
    fixture *f = *state;
    write_text(f->other, "target");
    assert_int_equal(symlink(f->other, f->path), 0);
    write_text(f->path, "new");
    expect_content(f->other, "target");
    expect_content(f->path, "new");
}

static void a_file_made_elsewhere_is_moved_into_place(void **state)
{
    fixture *f = *state;
    write_text(f->path, "old");
    write_text(f->other, "new");
    assert_int_equal(bs_replace_file(f->other, f->path, NULL), MDOT_OK);
    expect_content(f->path, "new");
    assert_int_equal(process_count_files(f->folder), 1);
    write_text(f->other, "newer");
    assert_int_equal(bs_replace_file(f->other, f->folder, NULL), MDOT_IO);
    expect_content(f->other, "newer");
}

/* ---- Allowed outputs --------------------------------------------------------------------------------------------- */

static void directories_devices_and_pipes_are_refused_as_outputs(void **state)
{
    fixture *f = *state;
    char in_folder[600], link[600];
    mdot_error err = {0};
    assert_int_equal(mkfifo(f->other, 0600), 0);
    snprintf(in_folder, sizeof in_folder, "%s/", f->folder);
    snprintf(link, sizeof link, "%s/link", f->folder);
    assert_int_equal(symlink("/dev/full", link), 0);
    const struct {
        const char *path;
        mdot_status status;
    } cases[] = {
        {f->folder, MDOT_IO},
        {in_folder, MDOT_IO},
        {"/nonexistent/", MDOT_IO},
        {"/", MDOT_IO},
        {"", MDOT_INVALID_ARGUMENT},
        {NULL, MDOT_INVALID_ARGUMENT},
        {f->other, MDOT_INVALID_ARGUMENT},
        {"/dev/null", MDOT_INVALID_ARGUMENT},
        {"/dev/stdout", MDOT_INVALID_ARGUMENT},
        {"/dev/fd/1", MDOT_INVALID_ARGUMENT},
        {"/proc/self/fd/1", MDOT_INVALID_ARGUMENT},
        {"/dev/../dev/absent", MDOT_INVALID_ARGUMENT},
        {link, MDOT_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mdot_status status = bs_write_file(cases[i].path, "x", 1, &err);
        if (status != cases[i].status) fail_msg("case %zu: status %d: %s", i, (int)status, err.message);
    }
    struct stat info;
    assert_int_equal(lstat(f->other, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(process_count_files(f->folder), 2);
}

static void an_output_that_is_an_input_is_refused_under_any_name(void **state)
{
    fixture *f = *state;
    char hard[600], soft[600], roundabout[1200];
    mdot_error err = {0};
    snprintf(hard, sizeof hard, "%s/hard", f->folder);
    snprintf(soft, sizeof soft, "%s/soft", f->folder);
    snprintf(roundabout, sizeof roundabout, "%s/../%s/./file", f->folder, strrchr(f->folder, '/') + 1);
    write_text(f->path, "model");
    assert_int_equal(link(f->path, hard), 0);
    assert_int_equal(symlink("file", soft), 0);
    const char *const same[] = {f->path, hard, soft, roundabout};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        assert_int_equal(bs_check_replaces(same[i], f->path, &err), MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, same[i]);
        assert_int_equal(bs_check_replaces(f->path, same[i], &err), MDOT_INVALID_ARGUMENT);
    }
    write_text(f->other, "model");
    assert_int_equal(bs_check_replaces(f->other, f->path, &err), MDOT_OK);
    assert_int_equal(bs_check_replaces("/nonexistent/x", f->path, &err), MDOT_OK);
    assert_int_equal(bs_check_replaces(f->other, "/nonexistent/x", &err), MDOT_OK);
    assert_int_equal(bs_check_replaces(f->folder, f->path, &err), MDOT_IO);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(oversized_file_is_refused_unread),
        CASE(irregular_file_is_refused_without_waiting),
        CASE(an_empty_file_is_read),
        CASE(a_file_is_replaced_without_leftovers),
        CASE(a_bare_name_is_written_in_the_working_folder),
        CASE(permissions_follow_the_umask),
        CASE(replaced_file_keeps_its_permissions),
        CASE(writing_keeps_the_umask_of_other_threads),
        CASE(a_failed_write_changes_nothing),
        CASE(a_missing_folder_is_named),
        CASE(a_link_is_replaced_and_its_target_stays),
        CASE(a_file_made_elsewhere_is_moved_into_place),
        CASE(directories_devices_and_pipes_are_refused_as_outputs),
        CASE(an_output_that_is_an_input_is_refused_under_any_name),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
