/* resolved_configuration.h — a configuration as the runtime works with it: checked, its GPU found, every default filled in. Private to
 * runtime/job.
 */
#ifndef RT_RESOLVED_CONFIGURATION_H
#define RT_RESOLVED_CONFIGURATION_H

#include "runtime/job/job_model.h"

typedef struct rt_resolved_configuration {
    mdot_configuration c; /* counts and degrees are at least 1, their product is gpu_count; rates are above 0 */
    mdot_gpu gpu;         /* what c.gpu_spec points at is the caller's */
    int64_t micro_batch;  /* samples that pass at once */
    bool plain_workers;   /* nothing is said of how GPUs work together but their number */
} rt_resolved_configuration;

/* Names that one call has looked up: many pairs are of few GPUs. Starts as zero. */
enum { RT_GPU_SLOTS = 64 };
typedef struct rt_gpu_names {
    struct {
        const char *name; /* the caller's pointer, which does not change during the call */
        const mdot_gpu *gpu;
    } slots[RT_GPU_SLOTS];
} rt_gpu_names;

/* Configuration i of the caller's array. */
mdot_status rt_configuration_read(const mdot_configuration *first, size_t i, rt_gpu_names *names,
                                  rt_resolved_configuration *out_setup, mdot_error *err);
/* Fills defaults in a configuration whose numbers are right, and refuses what contradicts itself. */
mdot_status rt_configuration_resolve(rt_resolved_configuration *setup, mdot_error *err);
/* Whether the job can be trained like that: it has blocks to recompute or to deal out, and products to divide. */
mdot_status rt_configuration_check(const rt_resolved_configuration *setup, const mdot_job *job, mdot_error *err);
/* Passes of a micro-batch that a step takes, one after the other. */
double rt_micro_steps(const rt_resolved_configuration *setup);
/* What one GPU does of the job; where a pipeline does not deal out evenly, the one that does most. */
rt_shard rt_resolved_shard(const rt_resolved_configuration *setup, const mdot_job *job);

static inline bool rt_is_half(mdot_precision precision)
{
    return precision == MDOT_PRECISION_AMP || precision == MDOT_PRECISION_AMP_BF16 || precision == MDOT_PRECISION_BF16;
}

/* peak_memory.c: parameters of one GPU, and what a step takes there at its peak; at most UINT64_MAX. */
typedef struct rt_memory {
    double weights, gradients, optimizer, activations; /* bytes; activations with what else passes */
    double pass_activations, half_weights; /* of these, unless the optimizer's update takes more than both */
} rt_memory;
rt_activation_case rt_activation_case_of(const rt_resolved_configuration *setup);
typedef struct rt_elements {
    double others, experts; /* which only data-parallel workers have copies of */
} rt_elements;
double rt_parameters(const mdot_job *job, const rt_shard *share); /* that learn */
rt_elements rt_parameters_by_kind(const mdot_job *job, const rt_shard *share);
rt_elements rt_weights_by_kind(const mdot_job *job, const rt_shard *share);
double rt_weights(const mdot_job *job, const rt_shard *share); /* and those that are frozen */
rt_memory rt_measure_memory(const mdot_job *job, const rt_resolved_configuration *setup);
uint64_t rt_sum_memory(const rt_memory *memory);
uint64_t rt_peak_memory_bytes(const mdot_job *job, const rt_resolved_configuration *setup);
/* Whether that many bytes fit what a training job can have of a GPU's memory. */
bool rt_fits(uint64_t peak_memory_bytes, double memory_gib);

/* roofline.c: the larger of the times that a GPU needs for arithmetic and for traffic, summed over the operators of one
 * GPU's share. It leaves out what kernels do not reach of either, so that only ratios of it mean something. */
typedef struct rt_roofline {
    double forward_ms, backward_ms; /* of a pass of a micro-batch, what is recomputed in the backward one */
    double optimizer_ms;
} rt_roofline;
/* Of one operator, by phase; of an update of so many parameters; of all. */
void rt_operator_roofline(const mdot_job *job, size_t index, const rt_resolved_configuration *setup,
                          const rt_shard *share, double out_ms[MDOT_PHASE_COUNT]);
double rt_optimizer_ms(const rt_resolved_configuration *setup, double parameters);
rt_roofline rt_roofline_of(const mdot_job *job, const rt_resolved_configuration *setup, const rt_shard *share);
/* The two times apart, of a whole step. */
rt_roofline_terms rt_step_roofline_terms(const mdot_job *job, const rt_resolved_configuration *setup);

/* communication.c: what GPUs exchange in a step, and how long that takes beside a backward pass of so many ms. */
double rt_communication_ms(const mdot_job *job, const rt_resolved_configuration *setup, double backward_ms);

#endif
