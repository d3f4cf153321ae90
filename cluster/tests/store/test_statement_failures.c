/* test_statement_failures.c — each step of each statement of each call fails once. No failure is forgotten: the call
 * reports it, ends its transaction, and leaves the records as they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/database.h"
#include "tests/store/support/store_operations.h"
#include "tests/support/process.h"

#include <dlfcn.h>

static long steps, fail_at; /* fail_at 0: none */

static void *of_sqlite(const char *name) { return dlsym(RTLD_NEXT, name); }

/* These take the place of SQLite's functions for the store, but not for SQLite itself. */
int sqlite3_step(sqlite3_stmt *statement)
{
    static int (*step)(sqlite3_stmt *);
    Dl_info caller;
    if (step == NULL) *(void **)&step = of_sqlite("sqlite3_step");
    bool is_own = dladdr(__builtin_return_address(0), &caller) == 0 || strstr(caller.dli_fname, "sqlite3") == NULL;
    /* An unknown mode is set again. */
    if (is_own && strcmp(sqlite3_sql(statement), "PRAGMA journal_mode") == 0) is_own = false;
    return is_own && ++steps == fail_at ? SQLITE_FULL : step(statement);
}

int sqlite3_exec(sqlite3 *db, const char *sql, int (*take)(void *, int, char **, char **), void *user, char **message)
{
    static int (*execute)(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
    if (execute == NULL) *(void **)&execute = of_sqlite("sqlite3_exec");
    bool counts = strcmp(sql, "ROLLBACK") != 0;
    return counts && ++steps == fail_at ? SQLITE_FULL : execute(db, sql, take, user, message);
}

static bool predict(void *user, const mdot_store_group *g)
{
    mdot_store_prediction *p = user;
    p[g->id - 1] =
        (mdot_store_prediction){.struct_size = sizeof *p, .group = g->id, .ms = 10, .lower_ms = 5, .upper_ms = 20};
    return true;
}

/* Some groups with predictions, and a row that the next refresh has to place. */
static void fill(store_fixture *f)
{
    enum { GROUPS = 4 };
    mdot_store_prediction predictions[GROUPS];
    mdot_error err = {0};
    for (int i = 0; i < 3 * GROUPS; i++) {
        mdot_store_row row = store_fixture_row(f, 9 + i % 7);
        row.batch = 1 + i % GROUPS;
        row.host = i % 2 == 0 ? "a" : "b";
        row.measured_at = 1790000000 + i;
        store_fixture_add(f, row);
    }
    store_expect_ok(mdot_store_refresh(f->store, NULL, &err), &err);
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, NULL, predict, predictions, &err), &err);
    store_expect_ok(mdot_store_set_predictions(f->store, "p", predictions, GROUPS, &err), &err);
    const mdot_store_outcome o = {.struct_size = sizeof o, .job_id = "7"};
    store_expect_ok(mdot_store_add_outcomes(f->store, &o, 1, NULL, &err), &err);
}

static void no_failed_step_is_forgotten(void **state)
{
    enum { ALL = 60 }; /* later steps repeat earlier ones, for more rows */
    store_fixture *f = *state;
    assert_int_equal(sqlite3_exec(f->store->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
    fill(f);
    for (size_t i = 0; i < STORE_OPERATIONS; i++) {
        const store_operation *o = &store_operations[i];
        if (o->run == store_try_recover) continue; /* which reads what it can */
        long failures = 0;
        for (long at = 1;; at += at < ALL ? 1 : 1 + at / 4) {
            static const char unplace[] = "DELETE FROM members WHERE row = (SELECT max(id) FROM rows)";
            mdot_error err = {0};
            if (o->run == store_try_refresh)
                assert_int_equal(sqlite3_exec(f->store->db, unplace, NULL, NULL, NULL), SQLITE_OK);
            const int64_t before = store_count_records(f);
            steps = 0;
            fail_at = at;
            mdot_status status = o->run(f, &err);
            fail_at = 0;
            if (steps < at) { /* the call has no such step */
                store_expect_ok(status, &err);
                break;
            }
            failures++;
            if (status == MDOT_OK) fail_msg("%s forgets the failure of step %ld", o->name, at);
            if (sqlite3_next_stmt(f->store->db, NULL) != NULL)
                fail_msg("%s, step %ld: a statement is left", o->name, at);
            if (sqlite3_get_autocommit(f->store->db) == 0) fail_msg("%s, step %ld: a transaction is left", o->name, at);
            if (store_count_records(f) != before) fail_msg("%s, step %ld: records changed", o->name, at);
        }
        if (failures == 0) fail_msg("%s has no step", o->name);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, store_fixture_set_up, store_fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(no_failed_step_is_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
