/* test_recover.c — damaged stores give a clear error, and recovery copies every record that is still there: behind a
 * destroyed header, beside a destroyed page, and from a write-ahead log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/records.h"
#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 600, PAGE = 4096, ROWS_OF_A_PAGE = 40 };

/* The ids of all rows with what they identify. */
static uint64_t hash_ids(mdot_store *store)
{
    sqlite3_stmt *select = NULL;
    mdot_error err = {0};
    uint64_t hash = 1;
    store_expect_ok(st_prepare(store, "SELECT id, uid FROM rows ORDER BY id", &select, &err), &err);
    while (sqlite3_step(select) == SQLITE_ROW)
        for (int i = 0; i < 2; i++) hash = st_hash(hash, &(int64_t){sqlite3_column_int64(select, i)}, sizeof(int64_t));
    sqlite3_finalize(select);
    return hash;
}

static uint64_t filled_ids, recovered_ids;

/* Fills the store, closes it, and returns the page count. */
static long fill(store_fixture *f)
{
    static mdot_store_row rows[ROWS];
    for (int i = 0; i < ROWS; i++) {
        rows[i] = store_fixture_row(f, 1 + i);
        rows[i].note = i % 2 == 0 ? "even" : "odd";
        rows[i].measured_at = 1790000000 + i;
    }
    store_expect_ok(mdot_store_add_rows(f->store, rows, ROWS, NULL, &f->err), &f->err);
    mdot_store_outcome o = {
        .struct_size = sizeof o, .job_id = "1", .outcome = MDOT_OUTCOME_UNFINISHED, .state = "RUNNING"};
    store_expect_ok(mdot_store_add_outcomes(f->store, &o, 1, NULL, &f->err), &f->err);
    o.outcome = MDOT_OUTCOME_COMPLETED;
    o.state = "COMPLETED";
    store_expect_ok(mdot_store_add_outcomes(f->store, &o, 1, NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    filled_ids = hash_ids(f->store);
    mdot_store_close(f->store);
    f->store = NULL;
    FILE *file = fopen(f->path, "rb");
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long pages = ftell(file) / PAGE;
    fclose(file);
    return pages;
}

static void overwrite(const char *path, long at, size_t size, int byte)
{
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    for (size_t i = 0; i < size; i++) fputc(byte, file);
    fclose(file);
}

static void copy_file(const char *from, const char *to)
{
    static char bytes[1 << 22];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    size_t size = fread(bytes, 1, sizeof bytes, in);
    assert_true(size < sizeof bytes);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(in);
    fclose(out);
}

/* Recovers into a new store, checks it, and returns the report. */
static mdot_store_recovery recover(store_fixture *f, const char *path)
{
    mdot_store_recovery r = MDOT_INIT(mdot_store_recovery);
    mdot_store *store = NULL;
    char *copy = process_in_folder(f->folder, "recovered.store");
    unlink(copy);
    store_expect_ok(mdot_store_recover(path, copy, &r, &f->err), &f->err);
    store_expect_ok(mdot_store_open(copy, NULL, &store, &f->err), &f->err);
    mdot_status status = mdot_store_check(store, &f->err);
    if (status != MDOT_OK) { /* the page of the jobs was destroyed */
        store_expect_failure(status, &f->err, MDOT_CORRUPT, "is missing; import a table with that job");
        assert_true(r.job_count < 2);
    }
    assert_int_equal(store_count(store).row_count, r.row_count);
    recovered_ids = hash_ids(store);
    mdot_store_close(store);
    unlink(copy);
    free(copy);
    return r;
}

static void an_intact_store_is_copied_whole(void **state)
{
    store_fixture *f = *state;
    fill(f);
    mdot_store_recovery r = recover(f, f->path);
    assert_int_equal(r.row_count, ROWS);
    assert_int_equal(recovered_ids, filled_ids);
    assert_int_equal(r.job_count, 2);
    assert_int_equal(r.outcome_count, 1);
    assert_int_equal(r.scanned_count, 0);
    assert_int_equal(r.damaged_count, 0);
}

static void a_destroyed_header_loses_nothing(void **state)
{
    store_fixture *f = *state;
    fill(f);
    overwrite(f->path, 0, 100, 0xff);
    mdot_store *store = NULL;
    store_expect_failure(mdot_store_open(f->path, NULL, &store, &f->err), &f->err, MDOT_CORRUPT, "mdot-store recover");
    mdot_store_recovery r = recover(f, f->path);
    assert_int_equal(r.row_count, ROWS);
    assert_int_equal(recovered_ids, filled_ids);
    assert_int_equal(r.job_count, 2);
    assert_int_equal(r.outcome_count, 1);
    assert_int_equal(r.scanned_count, ROWS + 3);
}

/* Any page may be destroyed: the records of the other pages come back, and no other damage spreads. */
static void a_destroyed_page_costs_its_own_records_only(void **state)
{
    store_fixture *f = *state;
    long pages = fill(f);
    char *damaged = process_in_folder(f->folder, "damaged.store");
    assert_true(pages > 20);
    bool found_damage = false;
    for (long page = 0; page < pages; page += pages / 16) {
        copy_file(f->path, damaged);
        overwrite(damaged, page * PAGE, PAGE, page % 2 == 0 ? 0 : 0xa5);
        mdot_store *store = NULL;
        mdot_status status = mdot_store_open(damaged, NULL, &store, &f->err);
        if (status == MDOT_OK) status = mdot_store_check(store, &f->err);
        mdot_store_close(store);
        found_damage |= status == MDOT_CORRUPT;
        if (status != MDOT_OK) store_expect_failure(status, &f->err, MDOT_CORRUPT, "mdot-store recover");
        mdot_store_recovery r = recover(f, damaged);
        if (r.row_count < ROWS - ROWS_OF_A_PAGE) fail_msg("page %ld: %d rows", page, (int)r.row_count);
    }
    assert_true(found_damage);
    free(damaged);
}

/* SQLite notices no damage within a value; the checksum does. */
static void a_changed_value_is_noticed_and_left_out(void **state)
{
    store_fixture *f = *state;
    fill(f);
    static unsigned char bytes[1 << 22];
    FILE *file = fopen(f->path, "r+b");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    unsigned char *at = memmem(bytes, size, "even", 4);
    assert_non_null(at);
    assert_int_equal(fseek(file, (long)(at - bytes), SEEK_SET), 0);
    fputc('E', file);
    fclose(file);
    mdot_store *store = NULL;
    store_expect_ok(mdot_store_open(f->path, NULL, &store, &f->err), &f->err);
    store_expect_failure(mdot_store_check(store, &f->err), &f->err, MDOT_CORRUPT, "checksum");
    mdot_store_close(store);
    mdot_store_recovery r = recover(f, f->path);
    assert_int_equal(r.damaged_count, 1);
    assert_int_equal(r.row_count, ROWS - 1);
}

/* A killed writer leaves the newest rows in the log; the database is then destroyed. */
static void rows_of_the_log_survive_a_destroyed_database(void **state)
{
    store_fixture *f = *state;
    fill(f);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        mdot_store *store = NULL;
        mdot_store_row row = store_fixture_row(f, 7777);
        if (mdot_store_open(f->path, NULL, &store, NULL) != MDOT_OK) _exit(1);
        for (int i = 0; i < 5; i++)
            if (mdot_store_add_rows(store, &row, 1, NULL, NULL) != MDOT_OK) _exit(1);
        raise(SIGKILL);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    overwrite(f->path, 0, PAGE, 0);
    mdot_store_recovery r = recover(f, f->path);
    assert_int_equal(r.row_count, ROWS + 5);
    assert_int_equal(r.job_count, 2);
}

static void a_cut_file_keeps_its_first_pages(void **state)
{
    store_fixture *f = *state;
    long pages = fill(f);
    assert_int_equal(truncate(f->path, pages / 2 * PAGE + 100), 0);
    mdot_store_recovery r = recover(f, f->path);
    assert_true(r.row_count > 0);
    assert_true(r.row_count < ROWS);
}

static void a_large_job_comes_back_from_its_overflow_pages(void **state)
{
    store_fixture *f = *state;
    fill(f);
    overwrite(f->path, 0, 100, 0);
    mdot_store *store = NULL;
    mdot_job *job = NULL;
    void *bytes = NULL;
    size_t size = 0;
    char *copy = process_in_folder(f->folder, "copy.store");
    store_expect_ok(mdot_store_recover(f->path, copy, NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_open(copy, NULL, &store, &f->err), &f->err);
    store_expect_ok(mdot_store_get_job(store, f->other_digest, &bytes, &size, &f->err), &f->err);
    store_expect_ok(mdot_job_parse(bytes, size, &job, &f->err), &f->err);
    mdot_job_destroy(job);
    mdot_store_free(bytes);
    mdot_store_close(store);
    store_expect_failure(mdot_store_recover(f->path, copy, NULL, &f->err), &f->err, MDOT_INVALID_ARGUMENT, copy);
    store_expect_failure(mdot_store_recover(f->path, NULL, NULL, &f->err), &f->err, MDOT_INVALID_ARGUMENT,
                         "the new path: ");
    char *absent = process_in_folder(f->folder, "absent.store"), *never = process_in_folder(f->folder, "never.store");
    assert_int_equal(mdot_store_recover(absent, never, NULL, &f->err), MDOT_NOT_FOUND);
    assert_int_not_equal(access(never, F_OK), 0);
    free(absent);
    free(never);
    free(copy);
}

/* Random bytes of every kind contain no record, and end the search. */
static bool take_none(void *user, const st_table *table, int64_t id, const st_value *values)
{
    (void)table, (void)id, (void)values;
    *(int *)user += 1;
    return true;
}

static void noise_contains_no_records(void **state)
{
    store_fixture *f = *state;
    char *path = process_in_folder(f->folder, "noise");
    FILE *file = fopen(path, "wb");
    uint64_t random = 7;
    for (int i = 0; i < 300000; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        fputc((int)(random >> 56) & (i % 3 == 0 ? 0x1f : 0xff), file);
    }
    fclose(file);
    int found = 0;
    store_expect_ok(st_scan_pages(path, take_none, &found, &f->err), &f->err);
    assert_int_equal(found, 0);
    free(path);
}

/* Whichever word of the header is destroyed, and by whatever, the records can be found: those of the file's version and
 * kind, too. */
static void any_word_of_the_header_may_be_destroyed(void **state)
{
    static const int bytes[] = {0xff, 0x00, 0x55};
    for (int trial = 0; trial < 75; trial++) {
        int at = trial / 3 * 4;
        if (trial > 0) assert_int_equal(store_fixture_set_up(state), 0);
        store_fixture *f = *state;
        for (int i = 0; i < 5; i++) store_fixture_add(f, store_fixture_row(f, 1 + i));
        mdot_store_close(f->store);
        f->store = NULL;
        overwrite(f->path, at, 4, bytes[trial % 3]);
        mdot_store_recovery r = recover(f, f->path);
        if (r.row_count != 5)
            fail_msg("header byte %d of %x: %zu rows", at, (unsigned)bytes[trial % 3], (size_t)r.row_count);
        if (trial < 74) assert_int_equal(store_fixture_tear_down(state), 0);
    }
}

/* A database of another program, or of a later version with other tables, has no records: the reason is that of opening
 * it, and no new store is left behind. */
static void databases_without_records_are_refused(void **state)
{
    store_fixture *f = *state;
    static const char *const settings[] = {"application_id = 7", "user_version = 99"};
    for (int i = 0; i < 2; i++) {
        char sql[160], *path = process_in_folder(f->folder, "other.db"), *copy = process_in_folder(f->folder, "new");
        sqlite3 *db = NULL;
        mdot_error err = {0};
        unlink(path);
        assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
        snprintf(sql, sizeof sql,
                 "PRAGMA application_id = %d; PRAGMA %s; CREATE TABLE rows (a, b); INSERT INTO rows VALUES (1, 2)",
                 ST_APPLICATION_ID, settings[i]);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        assert_int_equal(mdot_store_recover(path, copy, NULL, &err), i == 0 ? MDOT_MALFORMED : MDOT_INCOMPATIBLE);
        assert_non_null(strstr(err.message, i == 0 ? "another program" : "use a newer mdot"));
        assert_int_not_equal(access(copy, F_OK), 0);
        free(path);
        free(copy);
    }
}

/* The list of tables is destroyed. Rows of all sizes come back from pages of all sizes. */
static void pages_of_any_size_are_searched(void **state)
{
    for (int bits = 9; bits <= 16; bits++) {
        if (bits > 9) assert_int_equal(store_fixture_set_up(state), 0);
        store_fixture *f = *state;
        static char note[4000];
        for (int i = 0; i < 60; i++) {
            mdot_store_row row = store_fixture_row(f, 1 + i / 3.0); /* whole numbers, and others */
            size_t length = (size_t)(i * i) % sizeof note;
            memset(note, 'a' + i % 26, length);
            note[length] = '\0';
            row.note = note;
            row.measured_at = i == 0 ? 0 : (int64_t)1 << i % 40;
            store_fixture_add(f, row);
        }
        mdot_store_close(f->store);
        f->store = NULL;
        sqlite3 *db = NULL;
        char sql[64];
        snprintf(sql, sizeof sql, "PRAGMA journal_mode=DELETE; PRAGMA page_size=%d; VACUUM;", 1 << bits);
        assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
        overwrite(f->path, 100, 8, 0xff); /* the list of tables */
        mdot_store_recovery r = recover(f, f->path);
        assert_int_equal(r.row_count, 60);
        assert_int_equal(r.job_count, 2);
        assert_int_equal(r.scanned_count, 62);
        if (bits < 16) assert_int_equal(store_fixture_tear_down(state), 0);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_intact_store_is_copied_whole),
        CASE(a_destroyed_header_loses_nothing),
        CASE(a_destroyed_page_costs_its_own_records_only),
        CASE(a_changed_value_is_noticed_and_left_out),
        CASE(rows_of_the_log_survive_a_destroyed_database),
        CASE(a_cut_file_keeps_its_first_pages),
        CASE(a_large_job_comes_back_from_its_overflow_pages),
        CASE(noise_contains_no_records),
        CASE(any_word_of_the_header_may_be_destroyed),
        CASE(databases_without_records_are_refused),
        CASE(pages_of_any_size_are_searched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
