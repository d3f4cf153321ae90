/* canonicalise.h — canonical forms of equivalent patterns. Private to frontend/job. */
#ifndef FE_CANONICALISE_H
#define FE_CANONICALISE_H

#include "frontend/job/fe_job.h"

/* Rewrites equivalent patterns into one canonical form. */
void fe_job_canonicalise(fe_job *job);

#endif
