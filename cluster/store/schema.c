/* schema.c — the store's tables and versions (database.h, docs/reference/formats/store.md). */
#include "store/database.h"

#include <stdio.h>
#include <string.h>

/* `members`, `groups` and `predictions` are computed from `rows`, and may be deleted at any time. */
static const char version_1[] =
    "CREATE TABLE jobs (id INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
    " operator_count INTEGER NOT NULL, parameters REAL NOT NULL, added_at INTEGER NOT NULL, bytes BLOB NOT NULL,"
    " seal INTEGER NOT NULL);"
    "CREATE TABLE rows (id INTEGER PRIMARY KEY, uid INTEGER NOT NULL UNIQUE, digest TEXT NOT NULL, job TEXT NOT NULL,"
    " gpu TEXT NOT NULL, gpu_name TEXT NOT NULL, batch INTEGER NOT NULL, ms REAL NOT NULL, memory_gib REAL NOT NULL,"
    " settings TEXT NOT NULL, software TEXT NOT NULL, host TEXT NOT NULL, predictor TEXT NOT NULL, note TEXT NOT NULL,"
    " measured_at INTEGER NOT NULL, seal INTEGER NOT NULL);"
    "CREATE TABLE outcomes (id INTEGER PRIMARY KEY, cluster TEXT NOT NULL, job_id TEXT NOT NULL,"
    " submitted_at INTEGER NOT NULL, name TEXT NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL,"
    " partition TEXT NOT NULL, state TEXT NOT NULL, digest TEXT NOT NULL, gpu TEXT NOT NULL,"
    " gpu_count INTEGER NOT NULL, node_count INTEGER NOT NULL, started_at INTEGER NOT NULL, ended_at INTEGER NOT NULL,"
    " elapsed_s INTEGER NOT NULL, limit_s INTEGER NOT NULL, exit_code INTEGER NOT NULL, outcome INTEGER NOT NULL,"
    " seal INTEGER NOT NULL, UNIQUE (cluster, job_id, submitted_at));"
    "CREATE TABLE groups (id INTEGER PRIMARY KEY, digest TEXT NOT NULL, gpu_name TEXT NOT NULL,"
    " batch INTEGER NOT NULL, settings TEXT NOT NULL, software TEXT NOT NULL, row_count INTEGER NOT NULL,"
    " outlier_count INTEGER NOT NULL, mean REAL NOT NULL, spread REAL NOT NULL,"
    " memory_gib REAL NOT NULL, first_at INTEGER NOT NULL, last_at INTEGER NOT NULL,"
    " UNIQUE (digest, gpu_name, batch, settings, software));"
    "CREATE INDEX changed_groups ON groups (id) WHERE row_count < 0;"
    "CREATE TABLE members (row INTEGER PRIMARY KEY, group_id INTEGER NOT NULL, weight REAL NOT NULL);"
    "CREATE INDEX members_of_group ON members (group_id);"
    "CREATE TABLE predictions (predictor TEXT NOT NULL, group_id INTEGER NOT NULL, ms REAL NOT NULL,"
    " lower_ms REAL NOT NULL, upper_ms REAL NOT NULL, PRIMARY KEY (predictor, group_id)) WITHOUT ROWID;";

static const char *const steps[] = {version_1};
const st_steps st_schema = {.sql = steps, .count = sizeof steps / sizeof *steps};

mdot_status st_schema_version(const mdot_store *store, const st_steps *known, int *out_version, mdot_error *err)
{
    int64_t version = 0, application = 0, tables = 0;
    /* The tables come first, because another process may create the store between two queries. */
    mdot_status status = st_query_number(store, "SELECT count(*) FROM sqlite_master", &tables, err);
    if (status == MDOT_OK) status = st_query_number(store, "PRAGMA application_id", &application, err);
    if (status == MDOT_OK) status = st_query_number(store, "PRAGMA user_version", &version, err);
    if (status != MDOT_OK) return status;
    if (tables > 0 && application != ST_APPLICATION_ID)
        return mdot_fail(err, MDOT_MALFORMED, "%s: a database of another program; choose another file", store->path);
    if (version > known->count)
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "%s: the store has version %lld of its tables, and this mdot knows up to %d; use a newer mdot",
                         store->path, (long long)version, known->count);
    *out_version = (int)version;
    return MDOT_OK;
}

mdot_status st_migrate(const mdot_store *store, const st_steps *known, int *out_from, mdot_error *err)
{
    static const char action[] = "change the version of its tables";
    int version = 0;
    mdot_status status = st_begin(store, action, err);
    if (status != MDOT_OK) return status;
    /* Read inside the transaction, because another process may migrate, too. */
    status = st_schema_version(store, known, &version, err);
    for (int i = version; status == MDOT_OK && i < known->count; i++)
        status = st_execute(store, known->sql[i], action, err);
    if (status == MDOT_OK) {
        char text[96];
        snprintf(text, sizeof text, "PRAGMA application_id = %d; PRAGMA user_version = %d", ST_APPLICATION_ID,
                 known->count);
        status = st_execute(store, text, action, err);
    }
    status = st_end(store, status, action, err);
    if (status == MDOT_OK) *out_from = version;
    return status;
}

static const char objects[] = "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master "
                              "WHERE name NOT LIKE 'sqlite\\_stat%' ESCAPE '\\' ORDER BY type, name";

/* Compares two lists of tables and indices; the first difference in the store becomes the message. */
static mdot_status compare_objects(const mdot_store *store, sqlite3_stmt *here, sqlite3_stmt *wanted, mdot_error *err)
{
    for (;;) {
        int code = sqlite3_step(here), wanted_code = sqlite3_step(wanted);
        if (code == SQLITE_DONE && wanted_code == SQLITE_DONE) return MDOT_OK;
        if (code != SQLITE_DONE && code != SQLITE_ROW) return st_fail(store, code, "read the tables", err);
        bool is_equal = code == SQLITE_ROW && wanted_code == SQLITE_ROW;
        for (int i = 0; is_equal && i < 4; i++)
            is_equal = strcmp(st_column_text(here, i), st_column_text(wanted, i)) == 0;
        if (is_equal) continue;
        int order = code == SQLITE_DONE ? 1 : wanted_code == SQLITE_DONE ? -1 : 0;
        for (int i = 0; order == 0 && i < 2; i++) order = strcmp(st_column_text(here, i), st_column_text(wanted, i));
        sqlite3_stmt *named = order > 0 ? wanted : here; /* the first that one of them lacks */
        return mdot_fail(
            err, MDOT_CORRUPT,
            "%s: the %.20s \"%.60s\" differs from those of mdot's stores; `mdot-store recover %s NEW` copies "
            "the records",
            store->path, st_column_text(named, 0), st_column_text(named, 1), store->path);
    }
}

mdot_status st_check_schema(const mdot_store *store, const st_steps *known, int version, mdot_error *err)
{
    mdot_store model = {.path = store->path};
    sqlite3_stmt *here = NULL, *wanted = NULL;
    mdot_status status = MDOT_OK;
    int code = sqlite3_open(":memory:", &model.db);
    if (code != SQLITE_OK) status = st_fail(store, SQLITE_NOMEM, "check the tables", err);
    for (int i = 0; status == MDOT_OK && i < version; i++)
        status = st_execute(&model, known->sql[i], "check the tables", err);
    if (status == MDOT_OK) status = st_prepare(&model, objects, &wanted, err);
    if (status == MDOT_OK) status = st_prepare(store, objects, &here, err);
    if (status == MDOT_OK) status = compare_objects(store, here, wanted, err);
    sqlite3_finalize(here);
    sqlite3_finalize(wanted);
    sqlite3_close(model.db);
    return status;
}
