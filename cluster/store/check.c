/* check.c — mdot_store_check: pages and indices by SQLite, values by their seals, and references between tables. */
#include "store/records.h"

#include <string.h>

static mdot_status check_pages(mdot_store *store, mdot_error *err)
{
    sqlite3_stmt *check = NULL;
    mdot_status status = st_prepare(store, "PRAGMA integrity_check(1)", &check, err);
    if (status != MDOT_OK) return status;
    int code = sqlite3_step(check);
    if (code != SQLITE_ROW)
        status = st_fail(store, code, "check the pages", err);
    else if (strcmp(st_column_text(check, 0), "ok") != 0)
        status =
            mdot_fail(err, MDOT_CORRUPT,
                      "%s: the store is damaged (%s); `mdot-store recover %s NEW` copies all records that can be read",
                      store->path, st_column_text(check, 0), store->path);
    sqlite3_finalize(check);
    return status;
}

static mdot_status check_seals(mdot_store *store, const st_table *table, mdot_error *err)
{
    sqlite3_stmt *select = NULL;
    mdot_status status = st_prepare(store, table->select, &select, err);
    st_value values[ST_MAX_WIDTH];
    while (st_next(store, table, select, "check the records", values, &status, err)) {
    }
    sqlite3_finalize(select);
    return status;
}

mdot_status mdot_store_check(mdot_store *store, mdot_error *err)
{
    if (store == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the store is missing");
    int64_t orphan = 0;
    mdot_status status = check_pages(store, err);
    for (int i = 0; status == MDOT_OK && i < ST_TABLES; i++) status = check_seals(store, &st_tables[i], err);
    if (status == MDOT_OK)
        status = st_query_number(store, "SELECT id FROM rows WHERE digest NOT IN (SELECT digest FROM jobs) LIMIT 1",
                                 &orphan, err);
    if (status == MDOT_OK && orphan != 0)
        status = mdot_fail(err, MDOT_CORRUPT,
                           "%s: the job of row %lld is missing; import a table with that job to restore it",
                           store->path, (long long)orphan);
    return status;
}
