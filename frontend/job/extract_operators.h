/* extract_operators.h — the last stage of the job reader. Private to frontend/job. */
#ifndef FE_EXTRACT_OPERATORS_H
#define FE_EXTRACT_OPERATORS_H

#include "frontend/job/fe_job.h"

/* Converts the graph's operators into job->result. */
void fe_job_extract_operators(fe_job *job);

#endif
