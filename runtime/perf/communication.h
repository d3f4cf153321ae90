/* communication.h — the time that a step waits for exchanges between GPUs. */
#ifndef RT_COMMUNICATION_H
#define RT_COMMUNICATION_H

#include "runtime/job/job_model.h"
#include "runtime/perf/resolved_configuration.h"

/* The exchanges overlap a backward pass of backward_ms. */
double rt_communication_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double backward_ms);

#endif
