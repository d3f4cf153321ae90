/* job_cache.c — see job_cache.h. One mutex guards everything but the encoding of a job, which takes the time of a
 * prediction or two and runs outside it. */
#include "service/job_cache.h"

#include "base/training/job_argument.h"

#include <json-c/linkhash.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct sv_encoding {
    size_t references;
    uint64_t generation; /* of the model */
    mdot_encoding *encoding;
};

enum { BY_PREDICTOR, BY_SHADOW, ENCODING_KINDS, FIRST_PLACES = 64 };
/* Memory of a job and its encodings, for each byte of the `.job` file and for each operator; above what mallinfo2
 * measures (tests/service/test_job_cache.c). */
enum { BYTES_OF_A_JOB = 32768, BYTES_PER_FILE_BYTE = 16, BYTES_PER_OPERATOR = 4096 };

typedef struct entry {
    sv_job job; /* must be first */
    size_t references, bytes;
    bool is_listed; /* in the table; an evicted one lives until it is released */
    sv_encoding *encoding[ENCODING_KINDS];
} entry;

struct sv_jobs {
    pthread_mutex_t mutex;
    size_t max_bytes;
    struct lh_table *entries; /* by digest; the least recently used one first */
    sv_jobs_count count;
};

cli_json_origin sv_origin(const sv_model *model, const sv_job *job)
{
    const mdot_predictor_info *info = sv_predictor_info(model->predictor);
    return (cli_json_origin){.predictor = info->name,
                             .compiler = info->compiler,
                             .calibrated_rows = model->calibrated_rows,
                             .calibration = model->calibration != NULL ? model->calibration_digest : NULL,
                             .job = job->digest,
                             .info = &job->info};
}

mdot_status sv_jobs_create(size_t max_bytes, sv_jobs **out, mdot_error *err)
{
    sv_jobs *jobs = calloc(1, sizeof *jobs);
    if (jobs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    pthread_mutex_init(&jobs->mutex, NULL);
    jobs->max_bytes = max_bytes;
    jobs->entries = lh_kchar_table_new(FIRST_PLACES, NULL);
    if (jobs->entries == NULL) {
        sv_jobs_destroy(jobs);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    *out = jobs;
    return MDOT_OK;
}

static void drop_encoding(sv_encoding *e)
{
    if (e == NULL || --e->references > 0) return;
    mdot_encoding_destroy(e->encoding);
    free(e);
}

static void drop(entry *e)
{
    if (e->is_listed || e->references > 0) return;
    for (int i = 0; i < ENCODING_KINDS; i++) drop_encoding(e->encoding[i]);
    mdot_job_destroy(e->job.job);
    free(e);
}

static void evict(sv_jobs *jobs, struct lh_entry *place)
{
    entry *e = (entry *)lh_entry_v(place);
    lh_table_delete_entry(jobs->entries, place);
    e->is_listed = false;
    jobs->count.jobs--;
    jobs->count.bytes -= e->bytes;
    drop(e);
}

void sv_jobs_destroy(sv_jobs *jobs)
{
    if (jobs == NULL) return;
    while (jobs->entries != NULL && jobs->entries->head != NULL) evict(jobs, jobs->entries->head);
    if (jobs->entries != NULL) lh_table_free(jobs->entries);
    pthread_mutex_destroy(&jobs->mutex);
    free(jobs);
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

static mdot_status make_entry(const void *bytes, size_t size, const char *digest, entry **out, mdot_error *err)
{
    entry *e = calloc(1, sizeof *e);
    if (e == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    memcpy(e->job.digest, digest, SV_SHA256_TEXT);
    e->job.info = MDOT_INIT(mdot_job_info);
    mdot_status status = mdot_job_parse(bytes, size, &e->job.job, err);
    if (status == MDOT_OK) status = mdot_job_get_info(e->job.job, &e->job.info);
    if (status == MDOT_OK && !cli_has_work(e->job.job, &e->job.info))
        status = mdot_fail(err, MDOT_MALFORMED, "the job is empty, because every tensor has zero elements");
    if (status != MDOT_OK) {
        drop(e);
        return status;
    }
    e->job.choices = cli_choices_of(e->job.job);
    e->job.tokens_per_sample = cli_tokens_per_sample(e->job.job, &e->job.info);
    e->bytes = BYTES_OF_A_JOB + BYTES_PER_FILE_BYTE * size + BYTES_PER_OPERATOR * e->job.info.operator_count;
    *out = e;
    return MDOT_OK;
}

/* Returns the entry as the most recently used one, held; NULL if it is unknown. */
static entry *find(sv_jobs *jobs, const char *digest)
{
    struct lh_entry *place = lh_table_lookup_entry(jobs->entries, digest);
    if (place == NULL) return NULL;
    entry *e = (entry *)lh_entry_v(place);
    lh_table_delete_entry(jobs->entries, place);
    lh_table_insert(jobs->entries, e->job.digest, e); /* at the end; there is space, and it takes none of the heap */
    e->references++;
    return e;
}

mdot_status sv_jobs_find(sv_jobs *jobs, const char *digest, const sv_job **out, mdot_error *err)
{
    pthread_mutex_lock(&jobs->mutex);
    entry *e = find(jobs, digest);
    *(e != NULL ? &jobs->count.hits : &jobs->count.misses) += 1;
    pthread_mutex_unlock(&jobs->mutex);
    if (e == NULL) return mdot_fail(err, MDOT_NOT_FOUND, "the job %.64s is unknown: send it to POST /v1/jobs", digest);
    *out = &e->job;
    return MDOT_OK;
}

mdot_status sv_jobs_add(sv_jobs *jobs, const void *bytes, size_t size, const sv_job **out, mdot_error *err)
{
    char digest[SV_SHA256_TEXT];
    sv_sha256(bytes, size, digest);
    pthread_mutex_lock(&jobs->mutex);
    entry *known = find(jobs, digest), *made = NULL;
    pthread_mutex_unlock(&jobs->mutex);
    if (known != NULL) return *out = &known->job, MDOT_OK;
    BS_TRY(make_entry(bytes, size, digest, &made, err));
    if (made->bytes > jobs->max_bytes) {
        drop(made);
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "the job takes more memory than all jobs may: %zu MiB (--job-cache)",
                         jobs->max_bytes >> 20);
    }
    pthread_mutex_lock(&jobs->mutex);
    known = find(jobs, digest); /* another thread may have added it meanwhile */
    if (known == NULL) {
        while (jobs->entries->head != NULL && jobs->count.bytes + made->bytes > jobs->max_bytes) {
            jobs->count.evictions++;
            evict(jobs, jobs->entries->head);
        }
        made->references = 1;
        made->is_listed = lh_table_insert(jobs->entries, made->job.digest, made) == 0;
        jobs->count.jobs += made->is_listed;
        jobs->count.bytes += made->is_listed ? made->bytes : 0;
    } else {
        drop(made);
    }
    pthread_mutex_unlock(&jobs->mutex);
    *out = known != NULL ? &known->job : &made->job;
    return MDOT_OK;
}

void sv_jobs_release(sv_jobs *jobs, const sv_job *job)
{
    entry *e = (entry *)job;
    if (job == NULL) return;
    pthread_mutex_lock(&jobs->mutex);
    e->references--;
    drop(e);
    pthread_mutex_unlock(&jobs->mutex);
}

/* ---- Encodings --------------------------------------------------------------------------------------------------- */

const mdot_encoding *sv_encoding_get(const sv_encoding *encoding) { return encoding->encoding; }

mdot_status sv_jobs_encode(sv_jobs *jobs, const sv_job *job, const sv_model *model, bool by_shadow,
                           mdot_context *context, sv_encoding **out, mdot_error *err)
{
    entry *e = (entry *)job;
    sv_encoding **place = &e->encoding[by_shadow ? BY_SHADOW : BY_PREDICTOR];
    pthread_mutex_lock(&jobs->mutex);
    sv_encoding *known = *place;
    if (known != NULL && known->generation == model->generation)
        known->references++;
    else
        known = NULL;
    pthread_mutex_unlock(&jobs->mutex);
    if (known != NULL) return *out = known, MDOT_OK;
    sv_encoding *made = calloc(1, sizeof *made);
    if (made == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = mdot_encoding_create(context, job->job, &made->encoding, err);
    if (status != MDOT_OK) {
        free(made);
        return status;
    }
    made->generation = model->generation;
    made->references = 1;
    pthread_mutex_lock(&jobs->mutex);
    jobs->count.encodings++;
    bool is_newer = *place == NULL || (*place)->generation < made->generation;
    if (is_newer) { /* a request that began before a reload keeps its own */
        drop_encoding(*place);
        made->references++;
        *place = made;
    }
    pthread_mutex_unlock(&jobs->mutex);
    *out = made;
    return MDOT_OK;
}

void sv_encoding_release(sv_jobs *jobs, sv_encoding *encoding)
{
    if (encoding == NULL) return;
    pthread_mutex_lock(&jobs->mutex);
    drop_encoding(encoding);
    pthread_mutex_unlock(&jobs->mutex);
}

sv_jobs_count sv_jobs_get_count(sv_jobs *jobs)
{
    pthread_mutex_lock(&jobs->mutex);
    sv_jobs_count count = jobs->count;
    pthread_mutex_unlock(&jobs->mutex);
    return count;
}
