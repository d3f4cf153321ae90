/* peak_moments.h — the moments of a step at which the memory of a GPU may be largest. */
#ifndef RT_PEAK_MOMENTS_H
#define RT_PEAK_MOMENTS_H

#include "mdot/mdot_predict.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/resolved_configuration.h"

/* Fills at most MDOT_PEAK_MOMENTS_MAX moments that can be the peak, and returns their number, at least 1. They are
 * those of one GPU of the shard: tensor parallelism and the part of a pipeline's blocks are included. Recorded moments
 * (recorded_memory.h) are preferred. Otherwise the first moment has the largest activations. peak_memory.c adds
 * weights, optimizer state and gradients, and multiplies by the numbers of samples and of micro-batches in flight. The
 * fractions of gradients are those of a single pass that begins without gradients (zero_grad(set_to_none=True)). */
size_t rt_peak_moments(const mdot_job *job, const rt_resolved_configuration *resolved, mdot_peak_moment *out_moments);

/* Bytes per sample that move to host memory in a forward pass, and back in the backward pass; 0 unless activations are
 * offloaded. */
double rt_offloaded_bytes(const mdot_job *job, const rt_resolved_configuration *resolved);

#endif
