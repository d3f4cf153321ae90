/* strip_backward.h — reduces a training graph to its forward graph. Private to frontend/job. */
#ifndef FE_STRIP_BACKWARD_H
#define FE_STRIP_BACKWARD_H

#include "frontend/job/fe_job.h"

/* Removes the nodes that compute gradients and update parameters, and rewrites forward operators that occur only in
 * training graphs. Parameters that are graph inputs become constants without data. */
void fe_job_strip_backward(fe_job *job);

#endif
