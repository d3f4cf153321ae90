/* database.h — SQLite as the store uses it: the open file, statements, transactions, errors as statuses, and table
 * versions. */
#ifndef ST_DATABASE_H
#define ST_DATABASE_H

#include "mdot/mdot_store.h"

#include <sqlite3.h>

struct mdot_store {
    sqlite3 *db;
    char *path;
    bool is_read_only, is_shared_disk;
    bool is_in_memory; /* `db` is a copy of the file, see st_begin_derived */
};

/* Turns the last error of the database into a status, with the store's path, `action` ("add rows") and the remedy. */
mdot_status st_fail(const mdot_store *store, int code, const char *action, mdot_error *err);

/* Runs statements without results. */
mdot_status st_execute(const mdot_store *store, const char *sql, const char *action, mdot_error *err);
/* Compiles a statement; the caller finalizes it. */
mdot_status st_prepare(const mdot_store *store, const char *sql, sqlite3_stmt **out_statement, mdot_error *err);
/* Runs a statement with at most one result row, and resets it. *out_value (may be NULL) gets the first column, or 0
 * without a row. */
mdot_status st_run(const mdot_store *store, sqlite3_stmt *statement, const char *action, int64_t *out_value,
                   mdot_error *err);
/* Runs a statement that takes no values. */
mdot_status st_query_number(const mdot_store *store, const char *sql, int64_t *out_value, mdot_error *err);

/* Begins a transaction that may write, and waits for other writers. Every st_begin needs an st_end, which commits if
 * `status` is MDOT_OK and rolls back otherwise. It returns `status`, or the failure of the commit. */
mdot_status st_begin(const mdot_store *store, const char *action, mdot_error *err);
mdot_status st_end(const mdot_store *store, mdot_status status, const char *action, mdot_error *err);

/* The same for data that can be computed again. A store that is open for reading gets a copy in memory first. */
mdot_status st_begin_derived(mdot_store *store, const char *action, mdot_error *err);

/* Binds a text that may be NULL, which counts as "". The text must stay until the statement has run. */
static inline void st_bind_text(sqlite3_stmt *statement, int index, const char *text)
{
    sqlite3_bind_text(statement, index, text != NULL ? text : "", -1, SQLITE_STATIC);
}
/* A column as text; "" for a NULL. */
static inline const char *st_column_text(sqlite3_stmt *statement, int index)
{
    const unsigned char *text = sqlite3_column_text(statement, index);
    return text != NULL ? (const char *)text : "";
}

/* ---- Versions of the tables (schema.c) --------------------------------------------------------------------------- */

/* SQL that turns version i into version i + 1. The first step makes the tables of an empty file. */
typedef struct st_steps {
    const char *const *sql;
    int count; /* the newest version */
} st_steps;
extern const st_steps st_schema;

enum { ST_APPLICATION_ID = 0x6d646f74 }; /* "mdot", in the header of the file */

/* Reads the version of the file; 0 for an empty one. MALFORMED for a database of another program, INCOMPATIBLE for a
 * version that `steps` lacks. */
mdot_status st_schema_version(const mdot_store *store, const st_steps *steps, int *out_version, mdot_error *err);
/* Compares the tables with those that `steps` make. CORRUPT for others, for triggers and for views, because they could
 * run SQL of their own. */
mdot_status st_check_schema(const mdot_store *store, const st_steps *steps, int version, mdot_error *err);
/* Brings the file to the newest version of `steps` in one transaction. *out_from gets the version before. */
mdot_status st_migrate(const mdot_store *store, const st_steps *steps, int *out_from, mdot_error *err);

/* ---- Opening (open.c) -------------------------------------------------------------------------------------------- */

/* Whether a file system type (statfs number) is shared with other machines. */
bool st_is_network(unsigned long file_system);

/* Like mdot_store_open, with the versions of `steps`. Migrates an older store only if `migrates` is set; *out_from
 * (may be NULL) gets the version before. `disk`: 0 asks the system, 1 assumes a network file system. */
mdot_status st_open(const char *path, const mdot_store_options *options, const st_steps *steps, bool migrates, int disk,
                    int *out_from, mdot_store **out_store, mdot_error *err);

#endif
