/* job_cache.h — known jobs and their encodings in memory, up to a number of bytes. Least recently used ones go. */
#ifndef SV_JOB_CACHE_H
#define SV_JOB_CACHE_H

#include "base/training/prediction_json.h"
#include "service/model.h"
#include "service/sha256.h"

typedef struct sv_jobs sv_jobs;

/* A known job. It stays alive until it is released. */
typedef struct sv_job {
    char digest[SV_SHA256_TEXT]; /* of its `.job` file */
    mdot_job *job;
    mdot_job_info info;
    cli_job_choices choices; /* without the predictor's version of PyTorch */
    double tokens_per_sample;
} sv_job;

typedef struct sv_jobs_count {
    size_t jobs, bytes;
    uint64_t hits, misses, evictions, encodings;
} sv_jobs_count;

/* What an answer names: predictor, calibration and job. */
cli_json_origin sv_origin(const sv_model *model, const sv_job *job);

mdot_status sv_jobs_create(size_t max_bytes, sv_jobs **out_jobs, mdot_error *err);
void sv_jobs_destroy(sv_jobs *jobs);

/* Adds the job of a `.job` file, which becomes the most recently used one, and returns it. MALFORMED for a job without
 * work, or what mdot_job_parse says; OUT_OF_RANGE for a job beyond the cache. */
mdot_status sv_jobs_add(sv_jobs *jobs, const void *bytes, size_t size_bytes, const sv_job **out_job, mdot_error *err);
/* Returns a known job; NOT_FOUND otherwise. */
mdot_status sv_jobs_find(sv_jobs *jobs, const char *digest, const sv_job **out_job, mdot_error *err);
void sv_jobs_release(sv_jobs *jobs, const sv_job *job);

/* Returns the job's encoding by the model's predictor, or by its shadow; it is made at the first call. Use it with the
 * job held, and release it. */
typedef struct sv_encoding sv_encoding;
mdot_status sv_jobs_encode(sv_jobs *jobs, const sv_job *job, const sv_model *model, bool by_shadow,
                           mdot_context *context, sv_encoding **out_encoding, mdot_error *err);
const mdot_encoding *sv_encoding_get(const sv_encoding *encoding);
void sv_encoding_release(sv_jobs *jobs, sv_encoding *encoding);

sv_jobs_count sv_jobs_get_count(sv_jobs *jobs);

#endif
