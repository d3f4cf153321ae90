/* freeze.h — makes jobs in which training leaves some parameters unchanged. */
#ifndef RT_FREEZE_H
#define RT_FREEZE_H

#include "runtime/core/core.h"

/* mdot_job_freeze with these components, which must outlive the new job. */
mdot_status rt_job_freeze(const rt_components *components, const mdot_job *job, const mdot_job_freezing *freezing,
                          mdot_job **out_job, mdot_error *err);

#endif
