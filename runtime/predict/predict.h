/* predict.h — predictions of jobs. */
#ifndef RT_PREDICT_H
#define RT_PREDICT_H

#include "runtime/predict/predictor_tensors.h"

/* Adds a configuration to a block that has space. Returns its index there. */
size_t rt_add_configuration(const rt_job_schema *schema, const rt_configuration *queried, rt_job_block *block);
/* Sets the cached features as inputs of the block's run. */
void rt_bind_cached_features(const rt_job_schema *schema, const rt_cached_features *features, rt_job_block *block);

/* One prediction, with both configurations and the predictor's raw answer. The caller has entered the context
 * (handle_validation.h). */
typedef struct rt_answer {
    mdot_prediction prediction;
    rt_resolved_configuration requested, queried;
    double queried_ms;
} rt_answer;
mdot_status rt_answer_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                          rt_answer *out_answer, mdot_error *err);

#endif
