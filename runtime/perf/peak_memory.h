/* peak_memory.h — the peak memory of a training step on one GPU. */
#pragma once

#include "mdot/mdot_program.h"
#include "runtime/perf/resolved_configuration.h"

/* Bytes when their sum is largest in a step. */
typedef struct rt_memory {
    double weights, gradients, optimizer, activations; /* activations include all temporary tensors */
    double pass_activations, half_weights; /* the parts of activations; both 0 if the peak is in the optimizer's
                                            * update */
    double logits; /* the part of pass_activations as large as a loss's logits, if it was recorded */
    double pass;   /* the largest sum in a pass, possibly smaller than in the update */
    double flat;   /* contiguous tensors of all gradients in the update on the GPU */
} rt_memory;

/* The largest memory of all GPUs, and that of the first and the last stage; without a pipeline, all are equal. */
typedef struct rt_stage_memory {
    rt_memory largest, first, last;
} rt_stage_memory;
rt_stage_memory rt_measure_stages(const mdot_job *job, const rt_resolved_configuration *resolved);
static inline rt_memory rt_measure_memory(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    return rt_measure_stages(job, resolved).largest;
}
/* The peak, at most UINT64_MAX. */
uint64_t rt_sum_memory(const rt_memory *memory);

/* Fills at most MDOT_PEAK_MOMENTS_MAX moments that can be the peak, and returns the number, at least 1. They belong to
 * one GPU of the shard, with tensor parallelism and the stage's part of the blocks. Recorded moments
 * (recorded_memory.c) are preferred. Otherwise the first moment has the largest activations. peak_memory.c adds
 * weights, optimizer state and gradients, and multiplies by samples and by micro-batches in flight. Gradient fractions
 * assume a single pass that begins without gradients (zero_grad(set_to_none=True)). */
size_t rt_peak_moments(const mdot_job *job, const rt_resolved_configuration *resolved, mdot_peak_moment *out_moments);

/* Bytes per sample that move to host memory in a forward pass, and back in the backward pass; 0 unless activations are
 * offloaded. */
double rt_offloaded_bytes(const mdot_job *job, const rt_resolved_configuration *resolved);

/* Bytes per sample on one GPU that fused kernels of the framework do not keep, and other kernels do. A record of a
 * network in half precision has fp32 copies. */
double rt_inner_bytes(const mdot_job *job, const rt_resolved_configuration *resolved, bool has_copies);

/* Fills a pass's moments on one GPU, at most MDOT_PEAK_MOMENTS_MAX, and returns the number; 0 if the job lacks a
 * record. A case without a record scales the nearest one by the ratio of analytic estimates. */
size_t rt_recorded_moments(const mdot_job *job, const rt_resolved_configuration *resolved,
                           mdot_peak_moment out_moments[MDOT_PEAK_MOMENTS_MAX]);

/* Bytes of weights and buffers on one GPU with `elements` weights of `width` bytes, or `frozen_width` for frozen ones.
 * The program's sizes take precedence: floating weights are converted to these widths, and buffers and quantised
 * weights keep theirs. */
double rt_weight_bytes(const mdot_job *job, double width, double frozen_width, double elements);

/* Memory beyond tensors that a training process takes, usable memory of a GPU, and the interval of the tensor peak. */

/* Bytes. Beyond the tensors of rt_memory. */
typedef struct rt_reserved {
    double rounding;    /* rounded sizes and free segment parts in the caching allocator */
    double context;     /* the CUDA context and the code of kernels */
    double workspace;   /* cuBLAS and cuDNN */
    double collectives; /* buffers of NCCL, if several GPUs work together */
} rt_reserved;

rt_reserved rt_reserve_memory(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_memory *memory);
/* The tensors and everything beyond them, at most UINT64_MAX. */
uint64_t rt_sum_reserved(const rt_memory *memory, const rt_reserved *reserved);

/* Memory that the driver offers to one process, in bytes. */
uint64_t rt_usable_memory(const mdot_gpu *gpu);

/* The 90 % interval of the peak of allocated memory: memory_error.def. It includes at least the weights and the
 * optimizer's state. */
typedef struct rt_memory_interval {
    uint64_t lower_bytes, upper_bytes;
} rt_memory_interval;
rt_memory_interval rt_memory_within(const mdot_job *job, const rt_memory *memory);
