/* recorded_memory.h — the memory that was recorded with a job's program (mdot_program.h), for one configuration. */
#ifndef RT_RECORDED_MEMORY_H
#define RT_RECORDED_MEMORY_H

#include "runtime/job/job_model.h"
#include "runtime/perf/resolved_configuration.h"

/* Fills the moments of a pass on one GPU, at most MDOT_PEAK_MOMENTS_MAX, and returns their number; 0 if the job lacks a
 * record. A case that was not recorded scales the nearest one by the ratio of the analytic estimates. */
size_t rt_recorded_moments(const mdot_job *job, const rt_resolved_configuration *resolved,
                           mdot_peak_moment out_moments[MDOT_PEAK_MOMENTS_MAX]);

/* Bytes of weights and buffers on one GPU that has `elements` weights of `width` bytes. The program's sizes count if
 * the job has them: floating weights are converted to that width, and buffers and quantised weights keep theirs. */
double rt_weight_bytes(const mdot_job *job, double width, double elements);

#endif
