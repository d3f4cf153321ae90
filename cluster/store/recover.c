/* recover.c — mdot_store_recover: copies the records of a damaged store. */
#include "base/struct_version.h"
#include "store/database.h"
#include "store/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const bs_struct_version recovery_type = BS_SIZED(mdot_store_recovery, damaged_count);

typedef struct recovery {
    mdot_store *old, *copy; /* `old` is NULL if the damaged store cannot be opened */
    sqlite3_stmt *salvage[ST_TABLES], *has_id[ST_TABLES];
    mdot_store_recovery result;
    mdot_status status;
    mdot_error *err;
} recovery;

/* Adds a record unless the copy has it. *out_is_new: whether the copy lacked it. */
static bool insert(recovery *r, const st_table *table, int64_t id, const st_value *values, bool *out_is_new)
{
    int64_t is_taken = 0;
    sqlite3_stmt *has_id = r->has_id[table - st_tables], *salvage = r->salvage[table - st_tables];
    sqlite3_set_last_insert_rowid(r->copy->db, 0);
    sqlite3_bind_int64(has_id, 1, id);
    r->status = st_run(r->copy, has_id, "add records", &is_taken, r->err);
    if (r->status == MDOT_OK)
        r->status = st_insert(r->copy, table, salvage, is_taken != 0 ? 0 : id, values, "add records", NULL, r->err);
    /* An update of an older form leaves the last id as it is. */
    *out_is_new = sqlite3_last_insert_rowid(r->copy->db) != 0;
    return r->status == MDOT_OK;
}

/* Follows a table to the end or to the first damage. The search of the pages finds the records behind it. */
static void copy_table(recovery *r, const st_table *table)
{
    sqlite3_stmt *select = NULL;
    bool is_ready = st_prepare(r->old, table->select, &select, NULL) == MDOT_OK;
    while (is_ready && r->status == MDOT_OK && sqlite3_step(select) == SQLITE_ROW) {
        st_value values[ST_MAX_WIDTH];
        bool is_new;
        if (st_read_sealed(table, select, values))
            insert(r, table, sqlite3_column_int64(select, 0), values, &is_new);
        else
            r->result.damaged_count++;
    }
    sqlite3_finalize(select);
}

static bool take_record(void *user, const st_table *table, int64_t id, const st_value *values)
{
    recovery *r = user;
    bool is_new = false;
    if (!insert(r, table, id, values, &is_new)) return false;
    r->result.scanned_count += is_new;
    return true;
}

static mdot_status prepare(recovery *r)
{
    mdot_status status = MDOT_OK;
    for (int i = 0; status == MDOT_OK && i < ST_TABLES; i++) {
        char *sql = sqlite3_mprintf("SELECT 1 FROM %s WHERE id = ?1", st_tables[i].name);
        status = sql != NULL ? st_prepare(r->copy, sql, &r->has_id[i], r->err)
                             : st_fail(r->copy, SQLITE_NOMEM, "add records", r->err);
        sqlite3_free(sql);
        if (status == MDOT_OK) status = st_prepare(r->copy, st_tables[i].salvage, &r->salvage[i], r->err);
    }
    return status;
}

static mdot_status copy_all(recovery *r, const char *path)
{
    r->status = prepare(r);
    if (r->status == MDOT_OK) {
        for (int i = 0; r->status == MDOT_OK && r->old != NULL && i < ST_TABLES; i++) copy_table(r, &st_tables[i]);
        mdot_status scanned = r->status == MDOT_OK ? st_scan_pages(path, take_record, r, r->err) : MDOT_OK;
        if (r->status == MDOT_OK) r->status = scanned;
    }
    for (int i = 0; i < ST_TABLES; i++) {
        sqlite3_finalize(r->salvage[i]);
        sqlite3_finalize(r->has_id[i]);
    }
    return r->status;
}

static void remove_store(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char *name = NULL;
        if (asprintf(&name, "%s%s", path, ends[i]) < 0) continue;
        unlink(name);
        free(name);
    }
}

mdot_status mdot_store_recover(const char *path, const char *new_path, mdot_store_recovery *out_recovery,
                               mdot_error *err)
{
    static const mdot_store_options reading = {.struct_size = sizeof reading, .flags = MDOT_STORE_READ_ONLY};
    recovery r = {.err = err};
    mdot_error fault = {0};
    mdot_status status = out_recovery != NULL ? bs_check_struct(&recovery_type, out_recovery, err) : MDOT_OK;
    if (status == MDOT_OK && (path == NULL || new_path == NULL || access(new_path, F_OK) == 0))
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: exists; a recovered store needs a new name",
                           new_path != NULL ? new_path : "the new path");
    if (status != MDOT_OK) return status;
    mdot_status opened = mdot_store_open(path, &reading, &r.old, &fault);
    /* another version or program, or a damaged header that says so: only records can tell */
    bool is_foreign = opened == MDOT_INCOMPATIBLE || opened == MDOT_MALFORMED;
    if (opened != MDOT_OK && opened != MDOT_CORRUPT && !is_foreign) return mdot_fail(err, opened, "%s", fault.message);
    status = mdot_store_open(new_path, NULL, &r.copy, err);
    if (status == MDOT_OK) {
        status = st_begin(r.copy, "add records", err);
        if (status == MDOT_OK) status = st_end(r.copy, copy_all(&r, path), "add records", err);
        if (status == MDOT_OK && is_foreign && r.result.scanned_count == 0)
            status = mdot_fail(err, opened, "%s", fault.message);
        mdot_store_info info = MDOT_INIT(mdot_store_info);
        if (status == MDOT_OK) status = mdot_store_get_info(r.copy, &info, err);
        r.result.row_count = info.row_count;
        r.result.job_count = info.job_count;
        r.result.outcome_count = info.outcome_count;
        mdot_store_close(r.copy);
    }
    if (status != MDOT_OK) remove_store(new_path);
    mdot_store_close(r.old);
    if (status == MDOT_OK && out_recovery != NULL)
        bs_write_struct(&recovery_type, &r.result, out_recovery, bs_struct_bytes(out_recovery));
    return status;
}
