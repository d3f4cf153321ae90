/* peak_moments.h — the moments of a step at which the memory of a GPU may be largest. */
#ifndef RT_PEAK_MOMENTS_H
#define RT_PEAK_MOMENTS_H

#include "runtime/job/job_model.h"
#include "runtime/perf/resolved_configuration.h"

enum { RT_MAX_MOMENTS = 16 };

/* Memory at one moment of a forward and backward pass, on one GPU of the shard (tensor parallelism, and the part of a
 * pipeline's blocks, are included). peak_memory.c adds weights, optimizer state and gradients, and multiplies by the
 * number of samples and of micro-batches in flight. */
typedef struct rt_moment {
    double per_sample;    /* bytes of activations and temporary tensors per sample */
    double per_step;      /* bytes of temporary tensors whose size is independent of the batch */
    double weight_copies; /* bytes of half-precision copies of weights that autocast keeps */
    double gradients;     /* fraction of all trained parameters whose gradients are allocated, 0 to 1 */
} rt_moment;

/* Fills at most RT_MAX_MOMENTS moments that can be the peak, and returns their number, at least 1. The first one has
 * the largest activations. The fractions of gradients are those of a single pass that begins without gradients
 * (zero_grad(set_to_none=True)). */
size_t rt_peak_moments(const mdot_job *job, const rt_resolved_configuration *resolved, rt_moment *out_moments);

/* Bytes per sample that move to host memory in a forward pass, and back in the backward pass; 0 unless activations are
 * offloaded. */
double rt_offloaded_bytes(const mdot_job *job, const rt_resolved_configuration *resolved);

#endif
