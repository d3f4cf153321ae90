/* jobs.c — the networks of a store: digests, and `.job` files as bytes.
 *
 * A store's digest differs from the one by which a calibration recognises a job (runtime/perf/job_identity.c), because
 * they answer different questions. The store replaces one `.job` file by another if their digests are equal.
 * Therefore its digest has 128 bits and covers FLOPs and bytes, which a prediction reads. A calibration keeps only
 * digests, and a measured step must stay valid if a later version counts FLOPs differently. Therefore its digest
 * leaves them out.
 */
#include "base/file.h"
#include "base/status.h"
#include "base/struct_version.h"
#include "store/records.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Significant letters in a type. A `.job` file holds a type once for all operators with it; counting all letters would
 * multiply the work by both. */
enum { TYPE_LETTERS = 256 };

typedef struct digest_state {
    uint64_t half[2];
} digest_state;

static void mix(digest_state *d, const void *bytes, size_t size)
{
    d->half[0] = st_hash(d->half[0], bytes, size);
    d->half[1] = st_hash(d->half[1], bytes, size);
}

static void mix_real(digest_state *d, double value)
{
    if (value == 0) value = 0; /* -0 */
    mix(d, &value, sizeof value);
}

static void mix_whole(digest_state *d, uint64_t value) { mix(d, &value, sizeof value); }

static void mix_loads(digest_state *d, const mdot_load loads[MDOT_PHASE_COUNT])
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        mix_real(d, loads[phase].flops);
        mix_real(d, loads[phase].bytes_read);
        mix_real(d, loads[phase].bytes_written);
    }
}

static void mix_operator(digest_state *d, const mdot_job_operator *o)
{
    size_t letters = strnlen(o->type, TYPE_LETTERS);
    mix(d, o->type, letters < TYPE_LETTERS ? letters + 1 : letters);
    /* Zero settings are left out, so a setting added by a later version keeps the digests. */
    for (uint64_t k = 0; k < MDOT_SETTING_COUNT; k++) {
        if (o->setting[k] == 0) continue;
        mix_whole(d, k + 1);
        mix_whole(d, (uint64_t)o->setting[k]);
    }
    mix_whole(d, 0);
    mix_loads(d, o->per_sample);
    mix_loads(d, o->per_step);
    mix_real(d, o->parameters);
    mix_real(d, o->frozen_parameters);
    mix_whole(d, o->block);
    mix_whole(d, o->flags);
    mix_whole(d, o->input_count);
    mix(d, o->inputs, o->input_count * sizeof *o->inputs);
}

mdot_status mdot_store_digest(const mdot_job *job, char out_digest[MDOT_STORE_DIGEST_BYTES], mdot_error *err)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    if (job == NULL || out_digest == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a digest needs a job and a place for its text");
    mdot_status status = mdot_job_get_info(job, &info);
    digest_state d = {{UINT64_C(0x9ae16a3b2f90404f), UINT64_C(0xc949c7defebf9b25)}};
    for (size_t i = 0; status == MDOT_OK && i < info.operator_count; i++) {
        mdot_job_operator o = MDOT_INIT(mdot_job_operator);
        status = mdot_job_get_operator(job, i, &o);
        if (status == MDOT_OK) mix_operator(&d, &o);
    }
    if (status != MDOT_OK) return mdot_fail(err, status, "the job cannot be read");
    snprintf(out_digest, MDOT_STORE_DIGEST_BYTES, "%016llx%016llx", (unsigned long long)d.half[0],
             (unsigned long long)d.half[1]);
    return MDOT_OK;
}

/* The bytes of the job's file. libmdot writes it to a path, hence the temporary file beside the store. */
static mdot_status save(const mdot_store *store, const mdot_job *job, unsigned char **out_bytes, size_t *out_size,
                        mdot_error *err)
{
    char *path = NULL;
    if (asprintf(&path, "%s.job-XXXXXX", store->path) < 0) return BS_OUT_OF_MEMORY(err, "a job of %s", store->path);
    int descriptor = mkstemp(path);
    mdot_status status = MDOT_OK;
    if (descriptor < 0) {
        status = mdot_fail(err, MDOT_IO, "%s: cannot be written", path);
    } else {
        close(descriptor);
        status = mdot_job_save(job, path, err);
        if (status == MDOT_OK) status = bs_read_file(path, out_bytes, out_size, err);
        unlink(path);
    }
    free(path);
    return status;
}

mdot_status st_add_job(mdot_store *store, sqlite3_stmt *insert, const mdot_job *job, const char *name,
                       const char *digest, mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    BS_TRY(save(store, job, &bytes, &size, err));
    st_value v[ST_JOB_WIDTH] = {
        [ST_JOB_AT_digest] = st_text(digest),
        [ST_JOB_AT_name] = st_text(name),
        [ST_JOB_AT_operator_count] = st_whole((int64_t)info.operator_count),
        [ST_JOB_AT_parameters] = st_real(info.parameters),
        [ST_JOB_AT_added_at] = st_whole((int64_t)time(NULL)),
        [ST_JOB_AT_bytes] = {.bytes = bytes, .size_bytes = size},
    };
    mdot_status status = st_insert(store, &st_tables[ST_JOBS], insert, 0, v, "add a job", NULL, err);
    free(bytes);
    return status;
}

mdot_status mdot_store_add_job(mdot_store *store, const mdot_job *job, const char *name,
                               char out_digest[MDOT_STORE_DIGEST_BYTES], mdot_error *err)
{
    if (store == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the store is missing");
    char digest[MDOT_STORE_DIGEST_BYTES];
    sqlite3_stmt *insert = NULL;
    mdot_status status = mdot_store_digest(job, digest, err);
    if (status == MDOT_OK) status = st_prepare(store, st_tables[ST_JOBS].insert, &insert, err);
    if (status == MDOT_OK) {
        status = st_begin(store, "add a job", err);
        if (status == MDOT_OK) {
            status = st_add_job(store, insert, job, name, digest, err);
            status = st_end(store, status, "add a job", err);
        }
    }
    sqlite3_finalize(insert);
    if (status == MDOT_OK && out_digest != NULL) memcpy(out_digest, digest, sizeof digest);
    return status;
}

mdot_status mdot_store_get_job(mdot_store *store, const char *digest, void **out_bytes, size_t *out_size_bytes,
                               mdot_error *err)
{
    if (store == NULL || digest == NULL || out_bytes == NULL || out_size_bytes == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store, a digest or a place for the job is missing");
    sqlite3_stmt *select = NULL;
    st_value v[ST_JOB_WIDTH];
    char *sql = sqlite3_mprintf("%s WHERE digest = ?1", st_tables[ST_JOBS].select);
    if (sql == NULL) return BS_OUT_OF_MEMORY(err, "a job of %s", store->path);
    mdot_status status = st_prepare(store, sql, &select, err);
    sqlite3_free(sql);
    if (status != MDOT_OK) return status;
    st_bind_text(select, 1, digest);
    int code = sqlite3_step(select);
    if (code == SQLITE_ROW) {
        status = st_read(store, &st_tables[ST_JOBS], select, v, err);
        size_t size = v[ST_JOB_AT_bytes].size_bytes;
        void *copy = status == MDOT_OK ? malloc(size > 0 ? size : 1) : NULL;
        if (status == MDOT_OK && copy == NULL) status = BS_OUT_OF_MEMORY(err, "a job of %s", store->path);
        if (status == MDOT_OK) {
            if (size > 0) memcpy(copy, v[ST_JOB_AT_bytes].bytes, size);
            *out_bytes = copy;
            *out_size_bytes = size;
        }
    } else if (code == SQLITE_DONE) {
        status = mdot_fail(err, MDOT_NOT_FOUND, "%s: there is no job with the digest %.40s", store->path, digest);
    } else {
        status = st_fail(store, code, "read a job", err);
    }
    sqlite3_finalize(select);
    return status;
}

mdot_status mdot_store_visit_jobs(mdot_store *store, mdot_store_visit_job visit, void *user, mdot_error *err)
{
    if (store == NULL || visit == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or a visitor is missing");
    sqlite3_stmt *select = NULL;
    mdot_status status =
        st_prepare(store,
                   "SELECT j.digest, j.name, j.operator_count, j.parameters, j.added_at, length(j.bytes), count(r.id) "
                   "FROM jobs j LEFT JOIN rows r ON r.digest = j.digest GROUP BY j.id ORDER BY j.id",
                   &select, err);
    while (st_next(store, NULL, select, "read the jobs", NULL, &status, err)) {
        mdot_store_job job = {.struct_size = sizeof job,
                              .digest = st_column_text(select, 0),
                              .name = st_column_text(select, 1),
                              .operator_count = sqlite3_column_int64(select, 2),
                              .parameters = sqlite3_column_double(select, 3),
                              .added_at = sqlite3_column_int64(select, 4),
                              .size_bytes = (uint64_t)sqlite3_column_int64(select, 5),
                              .row_count = (uint64_t)sqlite3_column_int64(select, 6)};
        if (!visit(user, &job)) break;
    }
    sqlite3_finalize(select);
    return status;
}
