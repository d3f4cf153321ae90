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

static bool take_row(void *user, const mdot_store_row *row)
{
    (void)user, (void)row;
    return true;
}

static bool take_drift(void *user, const mdot_store_drift *d)
{
    (void)user, (void)d;
    return true;
}

static bool take_host(void *user, const mdot_store_host *host)
{
    (void)user, (void)host;
    return true;
}

/* No reader of rows takes a changed value: lists, groups of new and of known rows, drift, hosts and tables. */
static void no_reader_takes_a_changed_value(void **state)
{
    store_fixture *f = *state;
    static char names[MOST_NAMES][40];
    enum { LIST, NEW_ROWS, KNOWN_ROWS, DRIFT, HOSTS, TABLE, READERS };
    mdot_store_row row = store_fixture_row(f, 9);
    row.host = "a";
    row.measured_at = 1790000000;
    store_fixture_add(f, row);
    fill(f);
    size_t count = read_names(f, "SELECT name FROM pragma_table_info('rows') WHERE name <> 'id'", names);
    assert_int_equal(count, 15);
    for (size_t i = 0; i < count * READERS; i++) {
        char sql[400], *text = NULL;
        size_t size;
        const char *name = names[i / READERS];
        mdot_store_close(f->store);
        f->store = NULL;
        store_expect_ok(mdot_store_open(f->path, NULL, &f->store, &f->err), &f->err);
        snprintf(sql, sizeof sql,
                 "BEGIN; UPDATE rows SET %s = CASE typeof(%s) WHEN 'text' THEN %s || 'x' ELSE %s + 1 END WHERE id = 1;"
                 "%s",
                 name, name, name, name,
                 i % READERS == NEW_ROWS     ? "DELETE FROM members; COMMIT"
                 : i % READERS == KNOWN_ROWS ? "UPDATE groups SET row_count = -1; COMMIT"
                                             : "COMMIT");
        assert_int_equal(sqlite3_exec(f->store->db, sql, NULL, NULL, NULL), SQLITE_OK);
        mdot_status status = MDOT_OK;
        switch (i % READERS) {
        case LIST: status = mdot_store_visit_rows(f->store, NULL, take_row, NULL, &f->err); break;
        case DRIFT: status = mdot_store_find_drift(f->store, "p", take_drift, NULL, &f->err); break;
        case HOSTS: status = mdot_store_find_hosts(f->store, take_host, NULL, &f->err); break;
        case TABLE: status = mdot_store_export_csv(f->store, NULL, &text, &size, &f->err); break;
        default: status = mdot_store_refresh(f->store, NULL, &f->err);
        }
        if (status != MDOT_CORRUPT || strstr(f->err.message, "the checksum of record 1 of rows differs") == NULL)
            fail_msg("%s, reader %zu: %s", name, i % READERS, mdot_status_name(status));
        snprintf(sql, sizeof sql,
                 "UPDATE rows SET %s = CASE typeof(%s) WHEN 'text' THEN substr(%s, 1, length(%s) - 1) ELSE %s - 1 END "
                 "WHERE id = 1",
                 name, name, name, name, name);
        assert_int_equal(sqlite3_exec(f->store->db, sql, NULL, NULL, NULL), SQLITE_OK);
        store_expect_ok(mdot_store_refresh(f->store, NULL, &f->err), &f->err);
    }
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
        CASE(no_reader_takes_a_changed_value),
        CASE(a_row_without_its_job_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
