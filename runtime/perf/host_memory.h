/* host_memory.h — the time that a step waits for host memory, if parts of the training's state are there. */
#ifndef RT_HOST_MEMORY_H
#define RT_HOST_MEMORY_H

#include "runtime/job/job_model.h"
#include "runtime/perf/resolved_configuration.h"

/* Transfers overlap passes of forward_ms and backward_ms, over the whole step. Returns 0 without offloading. */
double rt_host_memory_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double forward_ms,
                         double backward_ms);

#endif
