/* plausibility.h — plausibility of a prediction. */
#ifndef RT_PLAUSIBILITY_H
#define RT_PLAUSIBILITY_H

#include "runtime/job/job_model.h"
#include "runtime/perf/roofline.h"

/* Fills the plausibility fields of the prediction from its step_ms, and sets warnings (MDOT_WARN_IMPLAUSIBLE and
 * others). The mode is that of the configuration. Type ids from type_count on are unknown to the predictor. */
void rt_check_plausibility(const mdot_job *job, const rt_roofline_terms *terms, mdot_mode mode, uint32_t type_count,
                           mdot_prediction *prediction);

#endif
