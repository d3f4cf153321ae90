/* database.c — see database.h. */
#include "store/database.h"

#include <stdio.h>
#include <string.h>

mdot_status st_fail(const mdot_store *store, int code, const char *action, mdot_error *err)
{
    const char *path = store->path, *reason = sqlite3_errmsg(store->db);
    switch (code & 0xff) {
    case SQLITE_NOMEM: return mdot_fail(err, MDOT_OUT_OF_MEMORY, "%s: cannot %s, because memory ran out", path, action);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return mdot_fail(err, MDOT_IO, "%s: cannot %s, because another process holds the store; try again", path,
                         action);
    case SQLITE_FULL:
        return mdot_fail(err, MDOT_IO,
                         "%s: cannot %s, because the disk is full; earlier records are intact. Free space and repeat",
                         path, action);
    case SQLITE_ERROR: /* the statements are right, so the file is not: for example an "unsupported file format" */
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return mdot_fail(err, MDOT_CORRUPT,
                         "%s: cannot %s, because the store is damaged (%s); `mdot-store recover %s NEW` copies all "
                         "records that can be read",
                         path, action, reason, path);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return mdot_fail(err, MDOT_IO, "%s: cannot %s, because the file or its folder is read-only", path, action);
    case SQLITE_IOERR: {
        char number[24];
        snprintf(number, sizeof number, "%d", sqlite3_system_errno(store->db));
        bool is_full = code == SQLITE_IOERR_WRITE || code == SQLITE_IOERR_SHMSIZE;
        return mdot_fail(err, MDOT_IO, "%s: cannot %s: %s (errno %s)%s", path, action, reason, number,
                         is_full ? "; earlier records are intact. Check free space, quota and the limit of file sizes"
                                 : "; earlier records are intact");
    }
    case SQLITE_CANTOPEN:
        return mdot_fail(err, MDOT_IO, "%s: cannot %s: the file or one beside it cannot be opened", path, action);
    default: return mdot_fail(err, MDOT_IO, "%s: cannot %s: %s", path, action, reason);
    }
}

mdot_status st_execute(const mdot_store *store, const char *sql, const char *action, mdot_error *err)
{
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? MDOT_OK : st_fail(store, sqlite3_extended_errcode(store->db), action, err);
}

mdot_status st_prepare(const mdot_store *store, const char *sql, sqlite3_stmt **out_statement, mdot_error *err)
{
    int code = sqlite3_prepare_v2(store->db, sql, -1, out_statement, NULL);
    return code == SQLITE_OK ? MDOT_OK : st_fail(store, sqlite3_extended_errcode(store->db), "read the tables", err);
}

mdot_status st_run(const mdot_store *store, sqlite3_stmt *statement, const char *action, int64_t *out_value,
                   mdot_error *err)
{
    int code = sqlite3_step(statement);
    mdot_status status = MDOT_OK;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        status = st_fail(store, sqlite3_extended_errcode(store->db), action, err);
    else if (out_value != NULL)
        *out_value = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_reset(statement);
    return status;
}

mdot_status st_query_number(const mdot_store *store, const char *sql, int64_t *out_value, mdot_error *err)
{
    sqlite3_stmt *statement = NULL;
    mdot_status status = st_prepare(store, sql, &statement, err);
    if (status == MDOT_OK) status = st_run(store, statement, "read", out_value, err);
    sqlite3_finalize(statement);
    return status;
}

mdot_status st_begin(const mdot_store *store, const char *action, mdot_error *err)
{
    if (store->is_read_only)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: cannot %s, because the store is open for reading only",
                         store->path, action);
    /* A deferred transaction could fail halfway, when it turns from reading to writing. */
    return st_execute(store, "BEGIN IMMEDIATE", action, err);
}

mdot_status st_begin_derived(mdot_store *store, const char *action, mdot_error *err)
{
    if (!store->is_read_only) return st_begin(store, action, err);
    if (!store->is_in_memory) {
        sqlite3 *copy = NULL;
        int code = sqlite3_open(":memory:", &copy);
        sqlite3_backup *backup = code == SQLITE_OK ? sqlite3_backup_init(copy, "main", store->db, "main") : NULL;
        if (backup != NULL) sqlite3_backup_step(backup, -1);
        code = backup != NULL ? sqlite3_backup_finish(backup) : SQLITE_NOMEM;
        if (code != SQLITE_OK) {
            mdot_status status = st_fail(store, code, action, err);
            sqlite3_close(copy);
            return status;
        }
        sqlite3_db_config(copy, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(copy, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        sqlite3_db_config(copy, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
        sqlite3_close(store->db);
        store->db = copy;
        store->is_in_memory = true;
    }
    return st_execute(store, "BEGIN IMMEDIATE", action, err);
}

mdot_status st_end(const mdot_store *store, mdot_status status, const char *action, mdot_error *err)
{
    if (status == MDOT_OK) status = st_execute(store, "COMMIT", action, err);
    /* Some failures, for example a full disk, have rolled back already. */
    if (status != MDOT_OK && !sqlite3_get_autocommit(store->db)) sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}
