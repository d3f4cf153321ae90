/* unfold_batchnorm.h — restores folded BatchNormalizations. Private to frontend/job. */
#ifndef FE_UNFOLD_BATCHNORM_H
#define FE_UNFOLD_BATCHNORM_H

#include "frontend/job/fe_job.h"

/* Marks nodes into which an exporter folded a BatchNormalization. Runs before any constant is folded. */
void fe_job_mark_folded_norms(fe_job *job);
/* Inserts the BatchNormalization behind marked nodes again, and warns. Runs once types are known. */
void fe_job_unfold_norms(fe_job *job);

#endif
