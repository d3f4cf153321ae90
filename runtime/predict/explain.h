/* explain.h — breaks a predicted step down. */
#ifndef RT_EXPLAIN_H
#define RT_EXPLAIN_H

#include "mdot/mdot.h"
#include "runtime/perf/job_identity.h"

/* One prediction and its breakdown. The caller has entered the context. */
mdot_status rt_explain_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                           mdot_prediction *out_prediction, mdot_explanation_info *out_info, mdot_error *err);

/* The job that an explanation belongs to; borrowed from the explanation. */
const rt_job_identity *rt_explained_job(const mdot_explanation *explanation);

#endif
