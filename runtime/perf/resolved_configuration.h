/* resolved_configuration.h — a resolved configuration: checked, with its GPU found and every default filled in. Private to
 * runtime/job. */
#ifndef RT_RESOLVED_CONFIGURATION_H
#define RT_RESOLVED_CONFIGURATION_H

#include "runtime/job/job_model.h"

typedef struct rt_resolved_configuration {
    mdot_configuration c; /* counts and degrees are at least 1 and the degrees multiply to gpu_count; rates are above
                           * 0 */
    mdot_gpu gpu;         /* a copy, because c.gpu_spec points at the caller's memory */
    int64_t micro_batch;  /* samples per pass */
    bool plain_workers;   /* apart from the number of GPUs, the configuration leaves their cooperation at its
                           * defaults */
} rt_resolved_configuration;

/* Names looked up in one call, because many pairs use few GPUs. Starts as zero. */
enum { RT_GPU_SLOTS = 64 };
typedef struct rt_gpu_names {
    struct {
        const char *name; /* the caller's pointer, constant during the call */
        const mdot_gpu *gpu;
    } slots[RT_GPU_SLOTS];
} rt_gpu_names;

/* Resolves configuration i of the caller's array. */
mdot_status rt_configuration_read(const mdot_configuration *first, size_t i, rt_gpu_names *names,
                                  rt_resolved_configuration *out_setup, mdot_error *err);
/* Fills in defaults of a configuration whose numbers are valid, and refuses contradictions. */
mdot_status rt_configuration_resolve(rt_resolved_configuration *setup, mdot_error *err);
/* Checks that the job can be trained that way: it has blocks to recompute or to distribute, and matmuls to shard. */
mdot_status rt_configuration_check(const rt_resolved_configuration *setup, const mdot_job *job, mdot_error *err);
/* Number of micro-batch passes of a step, one after the other. */
double rt_micro_steps(const rt_resolved_configuration *setup);
/* The part of the job on one GPU. If a pipeline distributes it unevenly, this is the GPU with the largest part. */
rt_shard rt_resolved_shard(const rt_resolved_configuration *setup, const mdot_job *job);

static inline bool rt_is_half(mdot_precision precision)
{
    return precision == MDOT_PRECISION_AMP || precision == MDOT_PRECISION_AMP_BF16 || precision == MDOT_PRECISION_BF16;
}

/* peak_memory.c: parameters of one GPU, and the peak memory of a step there, at most UINT64_MAX. */
typedef struct rt_memory {
    double weights, gradients, optimizer, activations; /* bytes; activations include all temporary tensors */
    double pass_activations, half_weights; /* parts of activations, unless the optimizer's update takes more than
                                            * both */
} rt_memory;
rt_activation_case rt_activation_case_of(const rt_resolved_configuration *setup);
typedef struct rt_elements {
    double others, experts; /* elements of experts, which only data-parallel workers have copies of */
} rt_elements;
double rt_parameters(const mdot_job *job, const rt_shard *share); /* trained parameters */
rt_elements rt_parameters_by_kind(const mdot_job *job, const rt_shard *share);
rt_elements rt_weights_by_kind(const mdot_job *job, const rt_shard *share);
double rt_weights(const mdot_job *job, const rt_shard *share); /* trained and frozen parameters */
rt_memory rt_measure_memory(const mdot_job *job, const rt_resolved_configuration *setup);
uint64_t rt_sum_memory(const rt_memory *memory);
uint64_t rt_peak_memory_bytes(const mdot_job *job, const rt_resolved_configuration *setup);
/* Do that many bytes fit into the memory that a training job can use on a GPU? */
bool rt_fits(uint64_t peak_memory_bytes, double memory_gib);

/* roofline.c: the larger of the times of computation and memory traffic, summed over the operators of one GPU's
 * shard. Kernels reach only part of either rate, so that only ratios of rooflines are meaningful. */
typedef struct rt_roofline {
    double forward_ms, backward_ms; /* pass of one micro-batch; recomputation belongs to the backward pass */
    double optimizer_ms;
} rt_roofline;
/* The roofline of one operator by phase, of an update of `parameters` parameters, and of all operators. */
void rt_operator_roofline(const mdot_job *job, size_t index, const rt_resolved_configuration *setup,
                          const rt_shard *share, double out_ms[MDOT_PHASE_COUNT]);
double rt_optimizer_ms(const rt_resolved_configuration *setup, double parameters);
rt_roofline rt_roofline_of(const mdot_job *job, const rt_resolved_configuration *setup, const rt_shard *share);
/* The times of computation and traffic of a whole step, separately. */
rt_roofline_terms rt_step_roofline_terms(const mdot_job *job, const rt_resolved_configuration *setup);

/* communication.c: time that a step waits for exchanges between GPUs, which overlap a backward pass of backward_ms. */
double rt_communication_ms(const mdot_job *job, const rt_resolved_configuration *setup, double backward_ms);

#endif
