/* layers.h — the block of each operator. Private to frontend/job. */
#ifndef FE_LAYERS_H
#define FE_LAYERS_H

#include "frontend/job/fe_job.h"

/* Sets the block of each operator, from the names of its source or from repetition. `sources` and `operators` have
 * `count` elements. */
void fe_job_find_layers(const fe_job *job, const fe_operator *sources, mdot_job_operator *operators, int count);

#endif
