/* predict.h — predictions of jobs. */
#pragma once

#include "mdot/mdot_explain.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/predict/analytic_correction.h"
#include "runtime/predict/predictor_tensors.h"

#include <math.h>

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
    rt_step_parts parts;
    bool has_parts; /* the predictor divided its answer; otherwise rooflines did */
} rt_answer;
mdot_status rt_answer_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                          rt_answer *out_answer, mdot_error *err);

/* A configuration that the caller resolved against a job and measured. */
typedef struct rt_measured_configuration {
    rt_resolved_configuration resolved;
    rt_stage_memory memory;
} rt_measured_configuration;
/* mdot_sweep of such configurations. The context keeps the job's encoding for further calls with the same job: pass
 * true as `is_first` for each job again. */
mdot_status rt_sweep_measured(mdot_context *context, const mdot_job *job, bool is_first,
                              const rt_measured_configuration *measured, size_t count, mdot_prediction *out_predictions,
                              mdot_error *err);

/* The job that an explanation belongs to; borrowed from the explanation. */
const rt_job_identity *rt_explained_job(const mdot_explanation *explanation);

struct rt_roofline_terms; /* step_time.h */

/* Completes a prediction whose step no data loaders bound. */
static inline void rt_complete_prediction(mdot_prediction *p)
{
    if (p->loader_ms > 0) return;
    p->gpu_ms = p->step_ms;
    p->gpu_lower_ms = p->lower_ms;
    p->gpu_upper_ms = p->upper_ms;
}

/* Sets step_ms and its interval: those of the GPU or the data loaders' time, whichever is longer. */
static inline void rt_wait_for_data(mdot_prediction *p)
{
    p->step_ms = fmax(p->gpu_ms, p->loader_ms);
    p->lower_ms = fmax(p->gpu_lower_ms, p->loader_ms);
    p->upper_ms = fmax(p->gpu_upper_ms, p->loader_ms);
}

/* Fills the prediction's plausibility fields from step_ms, and sets warnings (MDOT_WARN_IMPLAUSIBLE and others).
 * Type ids from type_count on are unknown to the predictor. */
void rt_fill_plausibility(const mdot_job *job, const struct rt_roofline_terms *terms,
                          const rt_configuration *configuration, uint32_t type_count, mdot_prediction *prediction);
