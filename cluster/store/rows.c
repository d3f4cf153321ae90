/* rows.c — measured steps in the database (records.h). */
#include "base/status.h"
#include "base/struct_version.h"
#include "store/records.h"
#include "store/settings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static const bs_struct_version row_type = BS_SIZED(mdot_store_row, weight);
static const bs_struct_version filter_type = BS_SIZED(mdot_store_filter, below_weight);

const char *st_gpu_name(const char *gpu, char *buffer, size_t size)
{
    mdot_gpu found = MDOT_INIT(mdot_gpu);
    bool is_known = mdot_gpu_find(gpu, &found, NULL) == MDOT_OK;
    snprintf(buffer, size, "%s", is_known ? found.name : gpu);
    return buffer;
}

/* An identity that no other process chooses. */
static uint64_t new_uid(void)
{
    uint64_t uid = 0;
    while (uid == 0) {
        if (getrandom(&uid, sizeof uid, GRND_NONBLOCK) == (ssize_t)sizeof uid) continue;
        struct timespec now; /* early after boot, before the system has random numbers */
        clock_gettime(CLOCK_MONOTONIC, &now);
        uid = st_hash(st_hash(1, &now, sizeof now), &uid, sizeof uid);
    }
    return uid;
}

static bool is_one_line(const char *text) { return text == NULL || strpbrk(text, "\r\n") == NULL; }

static const char *fault_of(const mdot_store_row *r)
{
    if (r->digest == NULL || *r->digest == '\0') return "the digest of its job is missing";
    if (r->gpu == NULL || *r->gpu == '\0') return "the GPU is missing";
    if (r->batch < 1 || r->batch > 1 << 24) return "the batch is from 1 to 2^24";
    if (!(r->ms > 0) || !isfinite(r->ms)) return "ms is a time above 0";
    if (!(r->memory_gib >= 0) || !isfinite(r->memory_gib)) return "the memory (gib) is 0 GiB or more";
    if (!is_one_line(r->job) || !is_one_line(r->gpu) || !is_one_line(r->software) || !is_one_line(r->host) ||
        !is_one_line(r->predictor) || !is_one_line(r->note))
        return "a text has more than one line";
    return NULL;
}

static mdot_status refuse_row(const mdot_store *store, const char *fault, const char *name, size_t line,
                              mdot_error *err)
{
    if (name != NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s:%zu: %s", name, line, fault);
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: row %zu to be added: %s", store->path, line, fault);
}

mdot_status st_add_row(const mdot_store *store, sqlite3_stmt *insert, const mdot_store_row *r, const char *name,
                       size_t line, bool *out_added, mdot_error *err)
{
    char gpu_name[256];
    const char *fault = fault_of(r);
    if (fault != NULL) return refuse_row(store, fault, name, line, err);
    char *settings = st_sort_settings(r->settings, &fault);
    if (fault != NULL) return refuse_row(store, fault, name, line, err);
    if (settings == NULL) return BS_OUT_OF_MEMORY(err, "rows of %s", store->path);
    st_value v[ST_ROW_WIDTH] = {
        [ST_AT_uid] = st_whole((int64_t)(r->uid != 0 ? r->uid : new_uid())),
        [ST_AT_digest] = st_text(r->digest),
        [ST_AT_job] = st_text(r->job),
        [ST_AT_gpu] = st_text(r->gpu),
        [ST_AT_gpu_name] = st_text(st_gpu_name(r->gpu, gpu_name, sizeof gpu_name)),
        [ST_AT_batch] = st_whole(r->batch),
        [ST_AT_ms] = st_real(r->ms),
        [ST_AT_memory_gib] = st_real(r->memory_gib),
        [ST_AT_settings] = st_text(settings),
        [ST_AT_software] = st_text(r->software),
        [ST_AT_host] = st_text(r->host),
        [ST_AT_predictor] = st_text(r->predictor),
        [ST_AT_note] = st_text(r->note),
        [ST_AT_measured_at] = st_whole(r->measured_at),
    };
    mdot_status status = st_insert(store, &st_tables[ST_ROWS], insert, 0, v, "add rows", out_added, err);
    free(settings);
    return status;
}

static mdot_status add_all(mdot_store *store, const mdot_store_row *rows, size_t count, sqlite3_stmt *insert,
                           sqlite3_stmt *find, size_t *out_added, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    size_t added = 0;
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_store_row row;
        bool is_new = false;
        int64_t known = 0;
        status = bs_read_element(&row_type, rows, i, &row, err);
        if (status != MDOT_OK) break;
        if (row.digest == NULL || *row.digest == '\0')
            status = refuse_row(store, "the digest of its job is missing", NULL, i, err);
        if (status != MDOT_OK) break;
        st_bind_text(find, 1, row.digest);
        status = st_run(store, find, "add rows", &known, err);
        if (status == MDOT_OK && known == 0)
            status =
                mdot_fail(err, MDOT_NOT_FOUND, "%s: row %zu to be added: the store has no job with the digest %.40s",
                          store->path, i, row.digest);
        if (status == MDOT_OK) status = st_add_row(store, insert, &row, NULL, i, &is_new, err);
        added += is_new;
    }
    if (status == MDOT_OK) *out_added = added;
    return status;
}

mdot_status mdot_store_add_rows(mdot_store *store, const mdot_store_row *rows, size_t count, size_t *out_added,
                                mdot_error *err)
{
    if (store == NULL || (rows == NULL && count > 0))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or its rows are missing");
    sqlite3_stmt *insert = NULL, *find = NULL;
    size_t added = 0;
    BS_TRY(st_begin(store, "add rows", err));
    mdot_status status = st_prepare(store, st_tables[ST_ROWS].insert, &insert, err);
    if (status == MDOT_OK) status = st_prepare(store, "SELECT 1 FROM jobs WHERE digest = ?1", &find, err);
    if (status == MDOT_OK) status = add_all(store, rows, count, insert, find, &added, err);
    sqlite3_finalize(insert);
    sqlite3_finalize(find);
    status = st_end(store, status, "add rows", err);
    if (status == MDOT_OK && out_added != NULL) *out_added = added;
    return status;
}

mdot_status st_read_filter(const mdot_store_filter *filter, mdot_store_filter *out, mdot_error *err)
{
    *out = (mdot_store_filter){.struct_size = sizeof *out};
    return filter != NULL ? bs_read_struct(&filter_type, filter, out, err) : MDOT_OK;
}

static const char select_rows[] =
    "SELECT r.id, r.uid, r.digest, r.job, r.gpu, r.gpu_name, r.batch, r.ms, r.memory_gib, r.settings, r.software, "
    "r.host, r.predictor, r.note, r.measured_at, r.seal, coalesce(m.weight, 0), coalesce(j.name, '') FROM rows r LEFT "
    "JOIN members m ON m.row = r.id LEFT JOIN jobs j ON j.digest = r.digest WHERE r.id > ?1 AND (?2 IS NULL OR "
    "r.gpu_name = ?2) AND (?3 IS NULL OR substr(r.digest, 1, length(?3)) = ?3) AND (?4 IS NULL OR r.software = ?4) AND "
    "r.measured_at >= ?5 AND (?6 = 0 OR (m.weight IS NOT NULL AND m.weight < ?6)) ORDER BY r.id";

static mdot_store_row row_of(sqlite3_stmt *select, const st_value *v)
{
    return (mdot_store_row){.struct_size = sizeof(mdot_store_row),
                            .id = sqlite3_column_int64(select, 0),
                            .uid = (uint64_t)v[ST_AT_uid].whole,
                            .digest = v[ST_AT_digest].bytes,
                            .job = v[ST_AT_job].bytes,
                            .name = st_column_text(select, ST_ROW_WIDTH + 3),
                            .gpu = v[ST_AT_gpu].bytes,
                            .gpu_name = v[ST_AT_gpu_name].bytes,
                            .batch = v[ST_AT_batch].whole,
                            .ms = v[ST_AT_ms].real,
                            .memory_gib = v[ST_AT_memory_gib].real,
                            .settings = v[ST_AT_settings].bytes,
                            .software = v[ST_AT_software].bytes,
                            .host = v[ST_AT_host].bytes,
                            .predictor = v[ST_AT_predictor].bytes,
                            .note = v[ST_AT_note].bytes,
                            .measured_at = v[ST_AT_measured_at].whole,
                            .weight = sqlite3_column_double(select, ST_ROW_WIDTH + 2)};
}

mdot_status mdot_store_visit_rows(mdot_store *store, const mdot_store_filter *filter, mdot_store_visit_row visit,
                                  void *user, mdot_error *err)
{
    if (store == NULL || visit == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or a visitor is missing");
    mdot_store_filter f;
    sqlite3_stmt *select = NULL;
    char gpu_name[256];
    mdot_status status = st_read_filter(filter, &f, err);
    if (status == MDOT_OK) status = st_prepare(store, select_rows, &select, err);
    if (status != MDOT_OK) return status;
    sqlite3_bind_int64(select, 1, f.after_id);
    if (f.gpu != NULL) st_bind_text(select, 2, st_gpu_name(f.gpu, gpu_name, sizeof gpu_name));
    if (f.digest != NULL) st_bind_text(select, 3, f.digest);
    if (f.software != NULL) st_bind_text(select, 4, f.software);
    sqlite3_bind_int64(select, 5, f.since != 0 ? f.since : INT64_MIN);
    sqlite3_bind_double(select, 6, f.below_weight);
    st_value v[ST_ROW_WIDTH];
    while (st_next(store, &st_tables[ST_ROWS], select, "read the rows", v, &status, err)) {
        mdot_store_row row = row_of(select, v);
        if (!visit(user, &row)) break;
    }
    sqlite3_finalize(select);
    return status;
}
