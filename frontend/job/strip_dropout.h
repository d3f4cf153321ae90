/* strip_dropout.h — removes random masks (dropout). Private to frontend/job. */
#ifndef FE_STRIP_DROPOUT_H
#define FE_STRIP_DROPOUT_H

#include "frontend/job/fe_job.h"

/* Removes random masks so that the data bypasses them. Runs before types are inferred. */
void fe_job_strip_dropout(fe_job *job);

#endif
