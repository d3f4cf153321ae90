/* peak_memory.h — the peak memory of a training step on one GPU. */
#ifndef RT_PEAK_MEMORY_H
#define RT_PEAK_MEMORY_H

#include "runtime/job/job_model.h"
#include "runtime/perf/resolved_configuration.h"

/* Bytes at the moment of a step at which their sum is largest. */
typedef struct rt_memory {
    double weights, gradients, optimizer, activations; /* activations include all temporary tensors */
    double pass_activations, half_weights; /* the parts of activations; both 0 if the peak is in the optimizer's
                                            * update */
    double logits; /* the part of pass_activations that is as large as the logits of a loss, if it was recorded */
    double pass;   /* the largest sum in a pass, which may be less than that in the update */
    double flat;   /* contiguous tensors of all gradients in the update on the GPU */
} rt_memory;

rt_memory rt_measure_memory(const mdot_job *job, const rt_resolved_configuration *resolved);
/* The peak, at most UINT64_MAX. */
uint64_t rt_sum_memory(const rt_memory *memory);

#endif
