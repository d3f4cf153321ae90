/* sacct.c — Slurm's accounting, as `sacct -P` prints it, becomes outcomes. docs/reference/formats/store.md lists the
 * fields. */
#include "accounting/accounting.h"
#include "base/status.h"
#include "base/struct_version.h"
#include "store/records.h"

#include <stdlib.h>
#include <string.h>

static const bs_struct_version accounting_type = BS_SIZED(mdot_store_accounting, user);
static const bs_struct_version import_type = BS_SIZED(mdot_store_import, malformed_count);

/* Adds a table's jobs, and reports malformed lines. */
static mdot_status add_jobs(const mdot_store *store, sqlite3_stmt *insert, const mdot_store_accounting *options,
                            ac_table *table, mdot_store_import *counts, mdot_error *err)
{
    for (;;) {
        mdot_store_outcome job;
        mdot_status status = MDOT_OK;
        switch (ac_table_next(table, &job)) {
        case AC_END: return MDOT_OK;
        case AC_STEP: counts->step_count++; break;
        case AC_FAULT:
            counts->malformed_count++;
            if (options->malformed != NULL) options->malformed(options->user, table->line, table->reason);
            break;
        case AC_JOB:
            if (*job.cluster == '\0') job.cluster = options->cluster;
            status = st_add_outcome(store, insert, &job, counts, err);
        }
        if (status != MDOT_OK) return status;
    }
}

static mdot_status add_text(mdot_store *store, const mdot_store_accounting *options, char *text, size_t size_bytes,
                            mdot_store_import *counts, mdot_error *err)
{
    ac_table table;
    sqlite3_stmt *insert = NULL;
    mdot_status status = ac_table_open(options->name, text, size_bytes, &table, err);
    if (status == MDOT_OK) status = st_begin(store, "add outcomes", err);
    if (status != MDOT_OK) return status;
    status = st_prepare(store, st_tables[ST_OUTCOMES].insert, &insert, err);
    if (status == MDOT_OK) status = add_jobs(store, insert, options, &table, counts, err);
    sqlite3_finalize(insert);
    return st_end(store, status, "add outcomes", err);
}

mdot_status mdot_store_import_sacct(mdot_store *store, const char *text, size_t size_bytes,
                                    const mdot_store_accounting *options, mdot_store_import *out_import,
                                    mdot_error *err)
{
    if (store == NULL || (text == NULL && size_bytes > 0))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or its accounting is missing");
    mdot_store_accounting accounting = {0};
    mdot_store_import counts = {.struct_size = sizeof counts};
    mdot_status status = options != NULL ? bs_read_struct(&accounting_type, options, &accounting, err) : MDOT_OK;
    if (status == MDOT_OK && out_import != NULL) status = bs_check_struct(&import_type, out_import, err);
    if (status != MDOT_OK) return status;
    if (accounting.name == NULL) accounting.name = "sacct";
    char *copy = malloc(size_bytes + 1); /* lines are split in place */
    if (copy == NULL) return BS_OUT_OF_MEMORY(err, "%s", accounting.name);
    if (size_bytes > 0) memcpy(copy, text, size_bytes);
    copy[size_bytes] = '\0';
    status = add_text(store, &accounting, copy, size_bytes, &counts, err);
    free(copy);
    if (status == MDOT_OK && out_import != NULL)
        bs_write_struct(&import_type, &counts, out_import, bs_struct_bytes(out_import));
    return status;
}
