/* outcomes.c — executions of jobs in the database (records.h). */
#include "base/struct_version.h"
#include "store/records.h"

static const bs_struct_version outcome_type = BS_SIZED(mdot_store_outcome, reserved);
static const bs_struct_version import_type = BS_SIZED(mdot_store_import, malformed_count);

const char *mdot_outcome_name(mdot_outcome outcome)
{
    switch (outcome) {
    case MDOT_OUTCOME_UNFINISHED: return "unfinished";
    case MDOT_OUTCOME_COMPLETED: return "completed";
    case MDOT_OUTCOME_FAILED: return "failed";
    case MDOT_OUTCOME_CANCELLED: return "cancelled";
    case MDOT_OUTCOME_TIMED_OUT: return "timed-out";
    }
    return NULL;
}

mdot_status st_add_outcome(const mdot_store *store, sqlite3_stmt *insert, const mdot_store_outcome *o,
                           mdot_store_import *counts, mdot_error *err)
{
    st_value v[ST_OUTCOME_WIDTH] = {
        [ST_OUTCOME_AT_cluster] = st_text(o->cluster),
        [ST_OUTCOME_AT_job_id] = st_text(o->job_id),
        [ST_OUTCOME_AT_submitted_at] = st_whole(o->submitted_at),
        [ST_OUTCOME_AT_name] = st_text(o->name),
        [ST_OUTCOME_AT_user] = st_text(o->user),
        [ST_OUTCOME_AT_account] = st_text(o->account),
        [ST_OUTCOME_AT_partition] = st_text(o->partition),
        [ST_OUTCOME_AT_state] = st_text(o->state),
        [ST_OUTCOME_AT_digest] = st_text(o->digest),
        [ST_OUTCOME_AT_gpu] = st_text(o->gpu),
        [ST_OUTCOME_AT_gpu_count] = st_whole(o->gpu_count),
        [ST_OUTCOME_AT_node_count] = st_whole(o->node_count),
        [ST_OUTCOME_AT_started_at] = st_whole(o->started_at),
        [ST_OUTCOME_AT_ended_at] = st_whole(o->ended_at),
        [ST_OUTCOME_AT_elapsed_s] = st_whole(o->elapsed_s),
        [ST_OUTCOME_AT_limit_s] = st_whole(o->limit_s),
        [ST_OUTCOME_AT_exit_code] = st_whole(o->exit_code),
        [ST_OUTCOME_AT_outcome] = st_whole(o->outcome),
    };
    /* Inserting a new record changes the connection's last id; updating an old one does not. */
    bool is_changed = false;
    sqlite3_set_last_insert_rowid(store->db, 0);
    BS_TRY(st_insert(store, &st_tables[ST_OUTCOMES], insert, 0, v, "add outcomes", &is_changed, err));
    bool is_new = sqlite3_last_insert_rowid(store->db) != 0;
    counts->added_count += is_new;
    counts->updated_count += is_changed && !is_new;
    counts->known_count += !is_changed && !is_new;
    return MDOT_OK;
}

static mdot_status add_all(mdot_store *store, const mdot_store_outcome *outcomes, size_t count, sqlite3_stmt *insert,
                           mdot_store_import *counts, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_store_outcome o;
        status = bs_read_element(&outcome_type, outcomes, i, &o, err);
        if (status == MDOT_OK &&
            (o.job_id == NULL || *o.job_id == '\0' || mdot_outcome_name(o.outcome) == NULL || o.reserved != 0))
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: outcome %zu to be added lacks a job_id or an outcome",
                               store->path, i);
        if (status == MDOT_OK) status = st_add_outcome(store, insert, &o, counts, err);
    }
    return status;
}

mdot_status mdot_store_add_outcomes(mdot_store *store, const mdot_store_outcome *outcomes, size_t count,
                                    mdot_store_import *out_import, mdot_error *err)
{
    if (store == NULL || (outcomes == NULL && count > 0))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or its outcomes are missing");
    mdot_store_import counts = {.struct_size = sizeof counts};
    mdot_status status = out_import != NULL ? bs_check_struct(&import_type, out_import, err) : MDOT_OK;
    if (status == MDOT_OK) status = st_begin(store, "add outcomes", err);
    if (status != MDOT_OK) return status;
    sqlite3_stmt *insert = NULL;
    status = st_prepare(store, st_tables[ST_OUTCOMES].insert, &insert, err);
    if (status == MDOT_OK) status = add_all(store, outcomes, count, insert, &counts, err);
    sqlite3_finalize(insert);
    status = st_end(store, status, "add outcomes", err);
    if (status == MDOT_OK && out_import != NULL)
        bs_write_struct(&import_type, &counts, out_import, bs_struct_bytes(out_import));
    return status;
}

static mdot_store_outcome outcome_of(sqlite3_stmt *select, const st_value *v)
{
    return (mdot_store_outcome){.struct_size = sizeof(mdot_store_outcome),
                                .id = sqlite3_column_int64(select, 0),
                                .cluster = v[ST_OUTCOME_AT_cluster].bytes,
                                .job_id = v[ST_OUTCOME_AT_job_id].bytes,
                                .submitted_at = v[ST_OUTCOME_AT_submitted_at].whole,
                                .name = v[ST_OUTCOME_AT_name].bytes,
                                .user = v[ST_OUTCOME_AT_user].bytes,
                                .account = v[ST_OUTCOME_AT_account].bytes,
                                .partition = v[ST_OUTCOME_AT_partition].bytes,
                                .state = v[ST_OUTCOME_AT_state].bytes,
                                .digest = v[ST_OUTCOME_AT_digest].bytes,
                                .gpu = v[ST_OUTCOME_AT_gpu].bytes,
                                .gpu_count = v[ST_OUTCOME_AT_gpu_count].whole,
                                .node_count = v[ST_OUTCOME_AT_node_count].whole,
                                .started_at = v[ST_OUTCOME_AT_started_at].whole,
                                .ended_at = v[ST_OUTCOME_AT_ended_at].whole,
                                .elapsed_s = v[ST_OUTCOME_AT_elapsed_s].whole,
                                .limit_s = v[ST_OUTCOME_AT_limit_s].whole,
                                .exit_code = v[ST_OUTCOME_AT_exit_code].whole,
                                .outcome = (mdot_outcome)v[ST_OUTCOME_AT_outcome].whole};
}

mdot_status mdot_store_visit_outcomes(mdot_store *store, mdot_store_visit_outcome visit, void *user, mdot_error *err)
{
    if (store == NULL || visit == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or a visitor is missing");
    sqlite3_stmt *select = NULL;
    mdot_status status = st_prepare(store, st_tables[ST_OUTCOMES].select, &select, err);
    st_value v[ST_OUTCOME_WIDTH];
    while (st_next(store, &st_tables[ST_OUTCOMES], select, "read the outcomes", v, &status, err)) {
        mdot_store_outcome outcome = outcome_of(select, v);
        if (!visit(user, &outcome)) break;
    }
    sqlite3_finalize(select);
    return status;
}
