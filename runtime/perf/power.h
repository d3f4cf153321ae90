/* power.h — the power of a GPU during a step, and the time that a power limit costs. */
#ifndef RT_POWER_H
#define RT_POWER_H

#include "runtime/job/configuration.h"
#include "runtime/perf/roofline.h"

/* Factor of at least 1 by which a step gets longer because of the configuration's power limit; 1 without a limit.
 * `step_ms` is the time at the GPU's own limit. */
double rt_power_slowdown(const rt_configuration *configuration, const rt_roofline_terms *terms, double step_ms);

/* Average power of one GPU over a step of `step_ms`, in watts; 0 if the GPU's own power limit is unknown. */
double rt_average_watts(const rt_configuration *configuration, const rt_roofline_terms *terms, double step_ms);

#endif
