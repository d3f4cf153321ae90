/* explain.h — breaks a predicted step down. */
#ifndef RT_EXPLAIN_H
#define RT_EXPLAIN_H

#include "mdot/mdot_explain.h"
#include "runtime/perf/job_identity.h"

/* One prediction and its breakdown. The caller has entered the context. */
mdot_status rt_explain_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                           mdot_prediction *out_prediction, mdot_explanation_info *out_info, mdot_error *err);

/* The change of the step with the host's time, both as logarithms, 0 to 1. A step is (gpu^4 + host^4)^(1/4) of the
 * times in which the GPU and the host are busy. For a predictor that lacks them, it is the part of the step in which
 * the GPU waits for the host. */
double rt_host_share(const mdot_explanation_info *info);

/* The job that an explanation belongs to; borrowed from the explanation. */
const rt_job_identity *rt_explained_job(const mdot_explanation *explanation);

#endif
