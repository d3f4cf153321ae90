/* folded_norm_warnings.h — warnings about a whole sequence. Private to frontend/job. */
#ifndef FE_FOLDED_NORM_WARNINGS_H
#define FE_FOLDED_NORM_WARNINGS_H

#include "frontend/job/fe_job.h"

/* Warns about a sequence that looks wrong as a whole, and sets the notes. */
void fe_job_warn_folded_norms(fe_job *job, const fe_operator *operators, int count);

#endif
