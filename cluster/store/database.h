/* database.h — SQLite as the store uses it: the open file, statements, transactions, and errors as statuses. */
#ifndef ST_DATABASE_H
#define ST_DATABASE_H

#include "mdot/mdot_store.h"

#include <sqlite3.h>

struct mdot_store {
    sqlite3 *db;
    char *path;
    bool is_read_only, is_shared_disk;
};

/* Turns the last error of the database into a status, with the store's path, `action` ("add rows") and the remedy. */
mdot_status st_fail(const mdot_store *store, int code, const char *action, mdot_error *err);

/* Runs statements without results. */
mdot_status st_execute(const mdot_store *store, const char *sql, const char *action, mdot_error *err);
/* Compiles a statement; the caller finalizes it. */
mdot_status st_prepare(const mdot_store *store, const char *sql, sqlite3_stmt **out_statement, mdot_error *err);
/* Runs a statement that has no more than one row of results, and resets it. *out_value (may be NULL) gets its first
 * column, or 0 if there is no row. */
mdot_status st_run(const mdot_store *store, sqlite3_stmt *statement, const char *action, int64_t *out_value,
                   mdot_error *err);
/* Runs a statement that takes no values. */
mdot_status st_query_number(const mdot_store *store, const char *sql, int64_t *out_value, mdot_error *err);

/* Begins a transaction that may write, and waits for other writers. Every st_begin needs an st_end, which commits if
 * `status` is MDOT_OK and rolls back otherwise. It returns `status`, or the failure of the commit. */
mdot_status st_begin(const mdot_store *store, const char *action, mdot_error *err);
mdot_status st_end(const mdot_store *store, mdot_status status, const char *action, mdot_error *err);

/* Binds a text that may be NULL, which counts as "". The text must stay until the statement has run. */
static inline void st_bind_text(sqlite3_stmt *statement, int at, const char *text)
{
    sqlite3_bind_text(statement, at, text != NULL ? text : "", -1, SQLITE_STATIC);
}
/* A column as text; "" for a NULL. */
static inline const char *st_column_text(sqlite3_stmt *statement, int at)
{
    const unsigned char *text = sqlite3_column_text(statement, at);
    return text != NULL ? (const char *)text : "";
}

#endif
