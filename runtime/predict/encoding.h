/* encoding.h — cached features: the inputs that an evaluation reads of a job. */
#ifndef RT_ENCODING_H
#define RT_ENCODING_H

#include "runtime/predict/predictor_tensors.h"

/* Writes the rows of one GPU's shard of the job and encodes them. `out` holds the maximum number of rows. */
void rt_encode(mdot_context *context, rt_job_tensors *tensors, const mdot_job *job, const rt_shard *shard,
               rt_cached_features *out);

struct mdot_encoding {
    const mdot_predictor *predictor; /* reference counted */
    const mdot_job *job;             /* borrowed from the caller */
    rt_cached_features features;     /* the whole job on one GPU */
};

#endif
