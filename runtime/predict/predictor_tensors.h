/* predictor_tensors.h — memory for the inputs and outputs of job predictions. */
#pragma once

#include "runtime/core/core.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/predict/analytic_correction.h"

/* The interface of runtime/predict to runtime/components.c: each context's state for predictions (core.h). */

/* The tensors that calls of an artefact's entry "predict" read and write. NULL if the artefact cannot predict jobs. */
extern const rt_extension rt_predict_extension;

/* The cached features of a job, in the schema's order. */
typedef struct rt_cached_features {
    size_t row_count;
    bool shortened; /* operators were merged because the largest bucket holds fewer rows */
    void *tensors[RT_CACHED_CAPACITY];
} rt_cached_features;

/* Configurations for one run of the entry, and the answers. Number k of configuration i is at index k * block + i. The
 * arrays hold this runtime's numbers and any others that the entry reads. */
typedef struct rt_job_block {
    float *configuration, *gpu, *step_ms, *outside, *parts;
    size_t count;
    bool has_new; /* configurations without an answer */
    int64_t batch;
    const void *inputs[RT_CACHED_CAPACITY + 2]; /* in the entry's order */
    void *outputs[3];
} rt_job_block;

typedef struct rt_job_pair {
    rt_resolved_configuration requested, queried;
    const rt_job_block *block;
    size_t at; /* index in the block's configurations */
} rt_job_pair;

/* Inputs and outputs for calls of the entries: the state of rt_predict_extension, one memory block per context. */
typedef struct rt_job_tensors {
    rt_job_schema schema;
    void *rows[RT_JOB_INPUT_COUNT]; /* tensors with rows, for the maximum number of rows; NULL if unread */
    size_t row_count;
    bool shortened;
    rt_cached_features features; /* of the current job, if the caller passes no encoding */
    /* The job and shard of the features and of the taken blocks. NULL: none, because calls may end before jobs do */
    const mdot_job *encoded;
    rt_shard shard;
    size_t taken_count;
    rt_typical_rooflines typical;
    size_t block_count;
    rt_job_block *blocks;
    rt_job_pair pairs[RT_PAIR_CAPACITY];
} rt_job_tensors;

/* For calls outside of loops. Contexts create the tensors for predictions. */
mdot_status rt_job_tensors_create(const mdot_predictor *predictor, const rt_job_schema *schema,
                                  rt_job_tensors **out_tensors, mdot_error *err);
void rt_job_tensors_destroy(const mdot_predictor *predictor, void *tensors);

/* Tensors are aligned to cache lines. */
static inline size_t rt_align(size_t bytes)
{
    enum { LINE_BYTES = 64 };
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

/* Fills the tensors that have rows with one GPU's work. */
void rt_write_operator_features(const mdot_job *job, const rt_shard *shard, rt_job_tensors *tensors);
/* The row of each operator in tensors filled by rt_write_operator_features. */
void rt_find_feature_rows(const mdot_job *job, const rt_shard *shard, const rt_job_tensors *tensors, uint32_t *out_row);

/* Writes the rows for one GPU's shard and encodes them. `out` holds the maximum number of rows. */
void rt_encode(mdot_context *context, rt_job_tensors *tensors, const mdot_job *job, const rt_shard *shard,
               rt_cached_features *out);

struct mdot_encoding {
    const mdot_predictor *predictor; /* reference counted */
    const mdot_job *job;             /* borrowed from the caller */
    rt_cached_features features;     /* the whole job on one GPU */
};
