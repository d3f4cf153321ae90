/* shapes.h — types of all values of a job. Private to frontend/job. */
#ifndef FE_SHAPES_H
#define FE_SHAPES_H

#include "frontend/job/fe_job.h"

/* Infers the type of every value and folds constants. Unknown operators and operators whose rules fail become
 * mdot.Opaque, with a warning. Values that depend on parameters alone become constants without data. */
void fe_job_infer_types(fe_job *job);
/* Repeats the last part of fe_job_infer_types, for the nodes that passes made. */
void fe_job_fold_constants(fe_job *job);

#endif
