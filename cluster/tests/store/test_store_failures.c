/* test_store_failures.c — each function of the store fails at every place once: the library's own memory, SQLite's
 * memory, and a statement that is interrupted. The failure has a status and a message, releases everything, and leaves
 * the records as they were; the next call succeeds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/database.h"
#include "store/records.h"
#include "store/settings.h"
#include "store/statistics.h"
#include "tests/store/support/store_operations.h"
#include "tests/support/process.h"

#include <unistd.h>

/* ---- Statements ------------------------------------------------------------------------------------------------- */

static uint64_t statements; /* a bit for each text of SQL that ran */

/* For each connection, by sqlite3_auto_extension. */
static int note_statement(unsigned kind, void *user, void *statement, void *text)
{
    static uint64_t known[64];
    const char *sql = text;
    size_t i = 0;
    (void)kind, (void)user, (void)statement;
    if (strncmp(sql, "SELECT*", 7) == 0) return 0; /* SQLite reads its list of tables when it needs to */
    const uint64_t hash = st_hash(1, sql, strlen(sql));
    while (known[i] != 0 && known[i] != hash) i++;
    assert_true(i < 63);
    known[i] = hash;
    statements |= (uint64_t)1 << i;
    return 0;
}

static int trace(sqlite3 *db, char **message, const struct sqlite3_api_routines *api)
{
    (void)message, (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, note_statement, NULL);
}

/* A call that succeeds in spite of a failure has run each of its statements. */
static void expect_all_statements(const store_operation *o, uint64_t all, long at)
{
    if (statements != all)
        fail_msg("%s, failure %ld: statements %llx of %llx ran, without an error", o->name, at,
                 (unsigned long long)statements, (unsigned long long)all);
}

/* ---- The store -------------------------------------------------------------------------------------------------- */

static bool predict(void *user, const mdot_store_group *g)
{
    mdot_store_prediction p = {.struct_size = sizeof p, .group = g->id, .ms = 10, .lower_ms = 5, .upper_ms = 20};
    mdot_store_prediction *list = user;
    list[(size_t)g->id - 1] = p;
    return true;
}

/* A hundred groups on three hosts with two versions, so that each growing array has to grow. */
static void fill(store_fixture *f)
{
    enum { GROUPS = 100, EACH = 3 };
    static mdot_store_row rows[GROUPS * EACH];
    static mdot_store_prediction predictions[GROUPS];
    static const char *const hosts[] = {"a", "b", "c"};
    mdot_error err = {0};
    for (int i = 0; i < GROUPS * EACH; i++) {
        rows[i] = store_fixture_row(f, 9 + i % 7);
        rows[i].batch = 1 + i % (GROUPS / 2);
        rows[i].settings = i % GROUPS < GROUPS / 2 ? "precision=amp\ntorch=2.3" : "precision=amp\ntorch=2.4";
        rows[i].host = hosts[i % 3];
        rows[i].measured_at = 1790000000 + i;
    }
    store_expect_ok(mdot_store_add_rows(f->store, rows, GROUPS * EACH, NULL, &err), &err);
    store_expect_ok(mdot_store_refresh(f->store, NULL, &err), &err);
    store_expect_ok(mdot_store_visit_groups(f->store, NULL, NULL, predict, predictions, &err), &err);
    store_expect_ok(mdot_store_set_predictions(f->store, "p", predictions, GROUPS, &err), &err);
    const mdot_store_outcome o = {.struct_size = sizeof o, .job_id = "7"};
    store_expect_ok(mdot_store_add_outcomes(f->store, &o, 1, NULL, &err), &err);
    store_fixture_add(f, store_fixture_row(f, 77)); /* a row that the next refresh has to read */
}

static int set_up(void **state)
{
    int result = store_fixture_set_up(state);
    store_fixture *f = *state;
    /* The tests wait for no disk. */
    assert_int_equal(sqlite3_exec(f->store->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
    fill(f);
    return result;
}

/* Copies the store without its header, so that only the search finds records. */
static void write_damaged(store_fixture *f)
{
    static const char zeros[100];
    char path[1024], sql[1100];
    snprintf(path, sizeof path, "%s.damaged", f->path);
    snprintf(sql, sizeof sql, "VACUUM INTO '%s'", path);
    unlink(path);
    assert_int_equal(sqlite3_exec(f->store->db, sql, NULL, NULL, NULL), SQLITE_OK);
    FILE *file = fopen(path, "r+b");
    assert_int_equal(fwrite(zeros, 1, sizeof zeros, file), sizeof zeros);
    fclose(file);
}

/* Gives a refresh a row to place, and a recovery a damaged store; counts the records. */
static int64_t make_ready(const store_operation *o, store_fixture *f)
{
    if (o->run == store_try_recover) write_damaged(f);
    static const char sql[] = "DELETE FROM members WHERE row = (SELECT max(id) FROM rows)";
    if (o->run == store_try_refresh) assert_int_equal(sqlite3_exec(f->store->db, sql, NULL, NULL, NULL), SQLITE_OK);
    return store_count_records(f);
}

/* Runs an operation without a failure, and returns the answer. */
static uint64_t right_answer(const store_operation *o, store_fixture *f)
{
    mdot_error err = {0};
    if (o->run == store_try_refresh)
        store_expect_ok(store_try_refresh(f, &err), &err); /* rows of other store_operations */
    make_ready(o, f);
    store_answer = 1;
    statements = 0;
    store_expect_ok(o->run(f, &err), &err);
    return store_answer;
}

/* The answer of each call but the first, which may add what the later ones know. */
static uint64_t usual_answer(const store_operation *o, store_fixture *f)
{
    right_answer(o, f);
    return right_answer(o, f);
}

/* Expects a failure that released everything and changed nothing. */
static void expect_clean_failure(const store_operation *o, store_fixture *f, mdot_status status, mdot_status wanted,
                                 const mdot_error *err, int64_t before, long at)
{
    if (status != wanted || strstr(err->message, status == MDOT_OUT_OF_MEMORY ? "memory" : "interrupted") == NULL ||
        (o->run != store_try_add_job && strstr(err->message, f->path) == NULL)) /* libmdot writes the file of a job */
        fail_msg("%s, failure %ld: %s: \"%s\"", o->name, at, mdot_status_name(status), err->message);
    if (sqlite3_next_stmt(f->store->db, NULL) != NULL) fail_msg("%s, failure %ld: a statement is left", o->name, at);
    if (sqlite3_get_autocommit(f->store->db) == 0) fail_msg("%s, failure %ld: a transaction is left", o->name, at);
    if (store_count_records(f) != before) fail_msg("%s, failure %ld: records changed", o->name, at);
    if (process_count_files(f->folder) != 3 + (o->run == store_try_recover))
        fail_msg("%s, failure %ld: a file is left", o->name, at);
}

/* A call that opens stores itself waits for the disk. */
static long next_place(const store_operation *o, long at)
{
    return at + 1 + (o->run == store_try_import_row ? 0 : at / (o->has_own_connection ? 2 : 8));
}

/* ---- Interruptions ---------------------------------------------------------------------------------------------- */

static long steps, stop_at;

/* A BEGIN has begun when SQLite can interrupt it, and a COMMIT has committed. */
static int interrupt(void *user)
{
    sqlite3_stmt *s = NULL;
    while ((s = sqlite3_next_stmt(user, s)) != NULL)
        if (strncmp(sqlite3_sql(s), "BEGIN", 5) == 0 || strcmp(sqlite3_sql(s), "COMMIT") == 0) return 0;
    return ++steps == stop_at;
}

static void an_interrupted_statement_changes_nothing(void **state)
{
    store_fixture *f = *state;
    for (size_t i = 0; i < STORE_OPERATIONS; i++) {
        const store_operation *o = &store_operations[i];
        if (o->has_own_connection) continue;
        for (long at = 1;; at = next_place(o, at)) {
            mdot_error err = {0};
            const int64_t before = make_ready(o, f);
            steps = 0;
            stop_at = at;
            sqlite3_progress_handler(f->store->db, 1, interrupt, f->store->db);
            mdot_status status = o->run(f, &err);
            sqlite3_progress_handler(f->store->db, 0, NULL, NULL);
            if (steps < at) { /* the operation has no such place */
                store_expect_ok(status, &err);
                break;
            }
            expect_clean_failure(o, f, status, MDOT_IO, &err, before, at);
        }
    }
}

/* ---- SQLite's memory -------------------------------------------------------------------------------------------- */

static sqlite3_mem_methods plain;
static long grants, refuse_at; /* refuse_at 0: none */
static bool in_sqlite;

static void *sqlite_malloc(int size)
{
    if (++grants == refuse_at) return NULL;
    in_sqlite = true;
    void *memory = plain.xMalloc(size);
    in_sqlite = false;
    return memory;
}

static void *sqlite_realloc(void *memory, int size)
{
    if (++grants == refuse_at) return NULL;
    in_sqlite = true;
    void *larger = plain.xRealloc(memory, size);
    in_sqlite = false;
    return larger;
}

static void sqlite_free(void *memory)
{
    in_sqlite = true;
    plain.xFree(memory);
    in_sqlite = false;
}

static void sqlites_memory_runs_out_cleanly(void **state)
{
    store_fixture *f = *state;
    for (size_t i = 0; i < STORE_OPERATIONS; i++) {
        const store_operation *o = &store_operations[i];
        const uint64_t right = usual_answer(o, f), all = statements;
        int failures = 0;
        for (long at = 1;; at = next_place(o, at)) {
            mdot_error err = {0};
            const int64_t before = make_ready(o, f);
            store_answer = 1;
            statements = 0;
            grants = 0;
            refuse_at = at;
            mdot_status status = o->run(f, &err);
            refuse_at = 0;
            if (status == MDOT_OK) expect_all_statements(o, all, at);
            if (status != MDOT_OK)
                expect_clean_failure(o, f, status, MDOT_OUT_OF_MEMORY, &err, before, at), failures++;
            else if (store_answer != right) /* SQLite can do without some */
                fail_msg("%s, failure %ld: another answer", o->name, at);
            if (grants < at) {
                store_expect_ok(status, &err);
                break;
            }
        }
        assert_true(failures > 0);
    }
}

/* ---- The library's memory --------------------------------------------------------------------------------------- */

#ifndef MDOT_SANITIZED
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static long own_grants, own_refuse_at, own_blocks; /* without those of SQLite */

static bool is_refused(void)
{
    if (in_sqlite) return false;
    if (++own_grants == own_refuse_at) return true;
    own_blocks++;
    return false;
}

void *malloc(size_t bytes) { return is_refused() ? NULL : __libc_malloc(bytes); }

void *calloc(size_t count, size_t bytes) { return is_refused() ? NULL : __libc_calloc(count, bytes); }

void *realloc(void *memory, size_t bytes)
{
    if (is_refused()) return NULL;
    own_blocks -= !in_sqlite && memory != NULL;
    return __libc_realloc(memory, bytes);
}

void free(void *memory)
{
    own_blocks -= !in_sqlite && memory != NULL;
    __libc_free(memory);
}

static void the_librarys_memory_runs_out_cleanly(void **state)
{
    store_fixture *f = *state;
    for (size_t i = 0; i < STORE_OPERATIONS; i++) {
        const store_operation *o = &store_operations[i];
        const uint64_t right = usual_answer(o, f), all = statements;
        for (long at = 1;; at = o->has_own_connection ? next_place(o, at) : at + 1) {
            mdot_error err = {0};
            const int64_t before = make_ready(o, f);
            const long held = own_blocks;
            store_answer = 1;
            statements = 0;
            own_grants = 0;
            own_refuse_at = at;
            mdot_status status = o->run(f, &err);
            own_refuse_at = 0;
            const long calls = own_grants;
            if (status == MDOT_OK) expect_all_statements(o, all, at);
            if (own_blocks != held) fail_msg("%s, failure %ld: memory is lost", o->name, at);
            if (calls < at) {
                store_expect_ok(status, &err);
                break;
            }
            if (status != MDOT_OK) expect_clean_failure(o, f, status, MDOT_OUT_OF_MEMORY, &err, before, at);
            if (status == MDOT_OK && store_answer != right) /* qsort and files can do without */
                fail_msg("%s, failure %ld: another answer", o->name, at);
        }
    }
}

/* The next allocation but `skipped` is refused. */
static void refuse(long skipped)
{
    own_grants = 0;
    own_refuse_at = skipped + 1;
}

static void helpers_say_that_memory_ran_out(void **state)
{
    (void)state;
    static const double values[] = {-1, 1};
    double p[] = {.1, .2};
    const char *fault = NULL;
    const long held = own_blocks;
    for (long skipped = 0; skipped < 3; skipped++) {
        refuse(skipped);
        double change = st_change_p(values, (int64_t[]){1, 2}, (size_t[]){0, 0}, 2, 1, 1);
        own_refuse_at = 0;
        assert_true(change == 2);
    }
    for (long skipped = 0; skipped < 2; skipped++) {
        refuse(skipped);
        char *sorted = st_sort_settings("b=1\na=2", &fault);
        own_refuse_at = 0;
        assert_true(sorted == NULL && fault == NULL);
    }
    refuse(0);
    char *stripped = st_strip_reading("b=1");
    own_refuse_at = 0;
    assert_null(stripped);
    refuse(0);
    int is_corrected = st_holm(p, 2);
    own_refuse_at = 0;
    assert_false(is_corrected);
    assert_int_equal(own_blocks, held);
}
#endif

/* ---- Answers ---------------------------------------------------------------------------------------------------- */

/* Reading gives one answer, however often it is repeated; writing gives what the fixture asks for. */
static void the_calls_give_their_answers(void **state)
{
    store_fixture *f = *state;
    for (size_t i = 0; i < STORE_OPERATIONS; i++) {
        uint64_t first = right_answer(&store_operations[i], f);
        if (i < STORE_READERS && first != right_answer(&store_operations[i], f))
            fail_msg("%s", store_operations[i].name);
    }
    assert_int_equal(store_count(f->store).row_count, 301 + 2 + 300 + 1);
    assert_int_equal(store_count(f->store).outcome_count, 1 + 2 + 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, store_fixture_tear_down)

int main(void)
{
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain);
    sqlite3_mem_methods counting = plain;
    counting.xMalloc = sqlite_malloc;
    counting.xRealloc = sqlite_realloc;
    counting.xFree = sqlite_free;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &counting);
    sqlite3_auto_extension((void (*)(void))trace);
    const struct CMUnitTest tests[] = {
        CASE(the_calls_give_their_answers),         CASE(an_interrupted_statement_changes_nothing),
        CASE(sqlites_memory_runs_out_cleanly),
#ifndef MDOT_SANITIZED
        CASE(the_librarys_memory_runs_out_cleanly), cmocka_unit_test(helpers_say_that_memory_ran_out),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
