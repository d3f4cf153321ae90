/* test_durability.c — a write that was acknowledged survives: writers at the same time, kills at random moments, a full
 * disk. The children of a test report through a pipe after each acknowledged row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/database.h"
#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROWS = 4096 };

/* Adds rows one by one with ms = first, first + 1 …, and writes each to the pipe after it was acknowledged. Stops at
 * `count` rows or at a failure, whose message goes to *err. For a child: it uses no assertions. */
static mdot_status add_until(const char *path, const char *digest, int first, int count, int to, mdot_error *err)
{
    mdot_store *store = NULL;
    mdot_status status = mdot_store_open(path, NULL, &store, err);
    for (int i = 0; status == MDOT_OK && i < count; i++) {
        int value = first + i;
        mdot_store_row row = {.struct_size = sizeof row, .digest = digest, .gpu = "A100", .batch = 1, .ms = value};
        row.note = "a note that makes the row a little longer than it would be otherwise, as real notes do";
        status = mdot_store_add_rows(store, &row, 1, NULL, err);
        if (status == MDOT_OK && write(to, &value, sizeof value) != sizeof value) _exit(9);
        if (status == MDOT_OK && i % 10 == 9) status = mdot_store_refresh(store, NULL, err);
    }
    if (status == MDOT_OK) mdot_store_close(store); /* a failed child ends as if it were killed */
    return status;
}

static size_t read_values(int from, int values[MOST_ROWS])
{
    size_t count = 0;
    while (count < MOST_ROWS && read(from, &values[count], sizeof *values) == (ssize_t)sizeof *values) count++;
    return count;
}

static bool mark(void *user, const mdot_store_row *r)
{
    unsigned char *found = user;
    if (r->ms < MOST_ROWS) found[(int)r->ms]++;
    return true;
}

/* Expects each value as a row, once, and an intact store. */
static void expect_rows(store_fixture *f, const int *values, size_t count)
{
    static unsigned char found[MOST_ROWS];
    memset(found, 0, sizeof found);
    store_expect_ok(mdot_store_check(f->store, &f->err), &f->err);
    store_expect_ok(mdot_store_visit_rows(f->store, NULL, mark, found, &f->err), &f->err);
    for (size_t i = 0; i < count; i++)
        if (found[values[i]] != 1)
            fail_msg("row %d was acknowledged and is there %d times", values[i], found[values[i]]);
}

static void writers_at_once_lose_nothing(void **state)
{
    store_fixture *f = *state;
    enum { WRITERS = 4, EACH = 40 };
    int ends[2];
    static int values[MOST_ROWS];
    pid_t child[WRITERS];
    assert_int_equal(pipe(ends), 0);
    for (int k = 0; k < WRITERS; k++) {
        child[k] = fork();
        assert_true(child[k] >= 0);
        if (child[k] == 0) {
            mdot_error err = {0};
            _exit(add_until(f->path, f->digest, 1 + k * EACH, EACH, ends[1], &err) == MDOT_OK ? 0 : 1);
        }
    }
    close(ends[1]);
    size_t count = read_values(ends[0], values);
    close(ends[0]);
    for (int k = 0; k < WRITERS; k++) {
        int status;
        assert_int_equal(waitpid(child[k], &status, 0), child[k]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_equal(count, WRITERS * EACH);
    expect_rows(f, values, count);
    mdot_store_refresh_report report = MDOT_INIT(mdot_store_refresh_report);
    store_expect_ok(mdot_store_refresh(f->store, &report, &f->err), &f->err);
    assert_int_equal(report.group_count, 1);
}

/* Stores that are created by several processes at the same moment are one store. */
static void creators_at_once_make_one_store(void **state)
{
    store_fixture *f = *state;
    enum { CREATORS = 4, ROUNDS = 5 };
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        snprintf(name, sizeof name, "new%d.store", round);
        char *path = process_in_folder(f->folder, name);
        pid_t child[CREATORS];
        for (int k = 0; k < CREATORS; k++) {
            child[k] = fork();
            assert_true(child[k] >= 0);
            if (child[k] == 0) {
                mdot_store *store = NULL;
                mdot_store_outcome o = {.struct_size = sizeof o, .outcome = MDOT_OUTCOME_FAILED};
                char id[16];
                snprintf(id, sizeof id, "%d", k);
                o.job_id = id;
                bool works = mdot_store_open(path, NULL, &store, NULL) == MDOT_OK &&
                             mdot_store_add_outcomes(store, &o, 1, NULL, NULL) == MDOT_OK;
                mdot_store_close(store);
                _exit(works ? 0 : 1);
            }
        }
        for (int k = 0; k < CREATORS; k++) {
            int status;
            assert_int_equal(waitpid(child[k], &status, 0), child[k]);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        mdot_store *store = NULL;
        store_expect_ok(mdot_store_open(path, NULL, &store, &f->err), &f->err);
        assert_int_equal(store_count(store).outcome_count, CREATORS);
        mdot_store_close(store);
        free(path);
    }
}

static void a_store_that_is_held_too_long_gives_a_clear_error(void **state)
{
    store_fixture *f = *state;
    mdot_store *other = NULL;
    mdot_store_options options = {.struct_size = sizeof options, .busy_ms = 20};
    store_expect_ok(mdot_store_open(f->path, &options, &other, &f->err), &f->err);
    store_expect_ok(st_begin(f->store, "hold", &f->err), &f->err);
    mdot_store_row row = store_fixture_row(f, 1);
    store_expect_failure(mdot_store_add_rows(other, &row, 1, NULL, &f->err), &f->err, MDOT_IO, "another process holds");
    assert_int_equal(store_count(other).row_count, 0); /* readers need not wait */
    store_expect_ok(st_end(f->store, MDOT_OK, "hold", &f->err), &f->err);
    store_expect_ok(mdot_store_add_rows(other, &row, 1, NULL, &f->err), &f->err);
    mdot_store_close(other);
}

static void a_killed_writer_loses_no_acknowledged_row(void **state)
{
    store_fixture *f = *state;
    enum { KILLS = 12 };
    static int values[MOST_ROWS];
    uint64_t random = (uint64_t)time(NULL);
    size_t total = 0;
    int next = 1;
    for (int k = 0; k < KILLS; k++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            mdot_error err = {0};
            _exit(add_until(f->path, f->digest, next, MOST_ROWS - next, ends[1], &err) == MDOT_OK ? 0 : 1);
        }
        close(ends[1]);
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        /* Rows are acknowledged before the kill, however slow the disk is; the pause then ends anywhere in a write. */
        size_t first = (random >> 33) % 4;
        for (size_t row = 0; row <= first; row++)
            assert_int_equal(read(ends[0], values + total++, sizeof *values), sizeof *values);
        nanosleep(&(struct timespec){.tv_nsec = (long)((random >> 40) % 20000000)}, NULL);
        kill(child, SIGKILL);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        total += read_values(ends[0], values + total);
        close(ends[0]);
        if (total > 0) next = values[total - 1] + 2; /* the one behind may be in the store, although unacknowledged */
        expect_rows(f, values, total);
    }
    assert_true(total > 0);
}

/* The limit of file sizes fails writes as a full disk does. */
static void a_full_disk_loses_no_acknowledged_row(void **state)
{
    store_fixture *f = *state;
    static int values[MOST_ROWS];
    int ends[2], messages[2];
    char message[1024] = "";
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(messages), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        mdot_error err = {0};
        struct rlimit limit = {.rlim_cur = 600000, .rlim_max = RLIM_INFINITY};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        mdot_status status = add_until(f->path, f->digest, 1, MOST_ROWS - 1, ends[1], &err);
        if (write(messages[1], err.message, strlen(err.message)) < 0) _exit(9);
        _exit(status);
    }
    close(ends[1]);
    close(messages[1]);
    size_t count = read_values(ends[0], values);
    assert_true(read(messages[0], message, sizeof message - 1) >= 0);
    close(ends[0]);
    close(messages[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), MDOT_IO);
    expect_contains(message, "earlier records are intact");
    assert_true(count > 50);
    expect_rows(f, values, count);
    /* With room again, the same store goes on. */
    store_fixture_add(f, store_fixture_row(f, 4000));
    expect_rows(f, values, count);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(writers_at_once_lose_nothing),
        CASE(creators_at_once_make_one_store),
        CASE(a_store_that_is_held_too_long_gives_a_clear_error),
        CASE(a_killed_writer_loses_no_acknowledged_row),
        CASE(a_full_disk_loses_no_acknowledged_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
