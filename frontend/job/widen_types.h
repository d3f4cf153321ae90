/* widen_types.h — gives all floating-point values of a job one type. Private to frontend/job. */
#ifndef FE_WIDEN_TYPES_H
#define FE_WIDEN_TYPES_H

#include "frontend/job/fe_job.h"

/* Makes f16, bf16 and f64 values f32. Runs after types are inferred. */
void fe_job_widen_types(fe_job *job);

#endif
