/* test_check.c — mdot_store_check names each damage: stale indices, changed values, and rows without their job. */
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

#include <unistd.h>

enum { ROWS = 20, MOST_NAMES = 80 };

/* Records in all tables. */
static void fill(store_fixture *f)
{
    for (int i = 0; i < ROWS; i++) store_fixture_add(f, store_fixture_row(f, 5 + i % 3));
    mdot_store_outcome o = {.struct_size = sizeof o, .job_id = "7"};
    mdot_store_prediction p = {.struct_size = sizeof p, .group = 1, .ms = 10, .lower_ms = 5, .upper_ms = 20};
    store_expect_ok(mdot_store_add_outcomes(f->store, &o, 1, NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    store_expect_ok(mdot_store_set_predictions(f->store, "p", &p, 1, &f->err), &f->err);
    store_expect_ok(mdot_store_check(f->store, &f->err), &f->err);
}

/* Runs SQL on a copy of the store as another program does, and expects this answer of a check. NULL: none. */
static void damage(store_fixture *f, const char *sql, const char *part)
{
    char *path = process_in_folder(f->folder, "copy.store"), copying[1200], *message = NULL;
    sqlite3 *db = NULL;
    mdot_store *store = NULL;
    unlink(path);
    snprintf(copying, sizeof copying, "VACUUM INTO '%s'", path);
    assert_int_equal(sqlite3_exec(f->store->db, copying, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) fail_msg("%s: %s", sql, message);
    sqlite3_close(db);
    store_expect_ok(mdot_store_open(path, NULL, &store, &f->err), &f->err);
    mdot_status status = mdot_store_check(store, &f->err);
    if (part == NULL)
        store_expect_ok(status, &f->err);
    else if (status != MDOT_CORRUPT || strstr(f->err.message, part) == NULL)
        fail_msg("%s: %s: \"%s\"", sql, mdot_status_name(status), status != MDOT_OK ? f->err.message : "");
    mdot_store_close(store);
    free(path);
}

/* Reads the first column of a query. */
static size_t read_names(store_fixture *f, const char *sql, char names[MOST_NAMES][40])
{
    sqlite3_stmt *query = NULL;
    size_t count = 0;
    store_expect_ok(st_prepare(f->store, sql, &query, &f->err), &f->err);
    for (; sqlite3_step(query) == SQLITE_ROW && count < MOST_NAMES; count++)
        snprintf(names[count], sizeof *names, "%s", st_column_text(query, 0));
    sqlite3_finalize(query);
    return count;
}

/* Each index is replaced by that of another table, so that records are absent from it. */
static void a_stale_index_is_named(void **state)
{
    store_fixture *f = *state;
    static char names[MOST_NAMES][40], sql[8000];
    fill(f);
    size_t count = read_names(f, "SELECT name FROM sqlite_master WHERE type = 'index'", names);
    assert_int_equal(count, 6);
    for (size_t i = 0; i < count; i++) {
        snprintf(sql, sizeof sql,
                 "UPDATE groups SET row_count = -1;" /* a partial index has records only then */
                 "PRAGMA writable_schema = ON;"
                 "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE type = 'index' AND "
                 "tbl_name <> (SELECT tbl_name FROM sqlite_master WHERE name = '%s') LIMIT 1) WHERE name = '%s'",
                 names[i], names[i]);
        damage(f, sql, "the store is damaged (");
    }
}

/* Any value of any record, changed to another one of its type. */
static void a_changed_value_of_any_column_is_noticed(void **state)
{
    store_fixture *f = *state;
    static const char *const tables[] = {"rows", "jobs", "outcomes"};
    static char names[MOST_NAMES][40];
    size_t total = 0;
    fill(f);
    for (size_t t = 0; t < 3; t++) {
        char sql[800], part[80];
        snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%s') WHERE name <> 'id'", tables[t]);
        size_t count = read_names(f, sql, names);
        total += count;
        for (size_t i = 0; i < count; i++) {
            snprintf(sql, sizeof sql,
                     "UPDATE %s SET %.39s = CASE typeof(%.39s) WHEN 'text' THEN %.39s || 'x' WHEN 'blob' THEN x'00' "
                     "ELSE %.39s + 1 "
                     "END WHERE id = 1",
                     tables[t], names[i], names[i], names[i], names[i]);
            snprintf(part, sizeof part, "the checksum of record 1 of %s differs", tables[t]);
            damage(f, sql, part);
        }
    }
    assert_int_equal(total, 15 + 7 + 19);
}

static void a_row_without_its_job_is_named(void **state)
{
    store_fixture *f = *state;
    fill(f);
    damage(f, "DELETE FROM jobs WHERE id = 1", "the job of row 1 is missing; import a table with that job");
    damage(f, "DELETE FROM jobs WHERE id = 1; DELETE FROM rows WHERE id < 5", "the job of row 5 is missing");
    store_expect_missing(mdot_store_check(NULL, &f->err), &f->err);
    damage(f, "DELETE FROM jobs WHERE id = 2", NULL); /* no row has the second job */
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_stale_index_is_named),
        CASE(a_changed_value_of_any_column_is_noticed),
        CASE(a_row_without_its_job_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
