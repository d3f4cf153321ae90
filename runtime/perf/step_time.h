/* step_time.h — the times of a step: roofline, optimizer update, exchanges between GPUs, host memory, power limit. */
#pragma once

#include "runtime/job/configuration.h"
#include "runtime/perf/resolved_configuration.h"

/* A lower bound of the step time on one GPU: the larger of computation and memory traffic time, summed over the
 * operators in the GPU's shard. Kernels reach only part of either rate, so that only ratios of rooflines are
 * meaningful. */

typedef enum rt_pass { RT_PASS_FORWARD, RT_PASS_BACKWARD, RT_PASS_COUNT } rt_pass;

typedef struct rt_roofline {
    double forward_ms, backward_ms;               /* of one micro-batch; recomputation belongs to the backward pass */
    double pass_ms[RT_PASS_COUNT][RT_WORK_COUNT]; /* the same two, divided by work, without: */
    double prepared_ms[RT_PASS_COUNT];            /* casts and dequantisation of operands, as they take in practice, and
                                                   * what a loss in parts moves again in each step */
    double casts;                                 /* operands that kernels cast to FP8 */
    double cdna_ms[RT_PASS_COUNT];                /* convolutions on AMD's GPUs by measured kernels; 0 on others */
    double optimizer_ms;
} rt_roofline;

/* A step's computation time at the GPU's peak, and the time of its memory traffic. */
typedef struct rt_roofline_terms {
    double compute_ms, memory_ms;
    double
        masked_ms; /* upper bound for the part of compute_ms on scores that fused attention skips under a causal mask */
} rt_roofline_terms;

/* The roofline of one operator by phase, and of all operators. */
void rt_operator_roofline(const mdot_job *job, size_t index, const rt_resolved_configuration *resolved,
                          double out_ms[MDOT_PHASE_COUNT]);
rt_roofline rt_roofline_of(const mdot_job *job, const rt_resolved_configuration *resolved);
/* Time of operators outside matmuls in fused kernels, for one micro-batch: of one operator by phase, and of all by
 * pass. */
void rt_fused_operator_ms(const mdot_job *job, size_t index, const rt_resolved_configuration *resolved,
                          double out_ms[MDOT_PHASE_COUNT]);
void rt_fused_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double out_ms[RT_PASS_COUNT]);
/* The times of computation and traffic of a whole step, separately. */
rt_roofline_terms rt_step_roofline_terms(const mdot_job *job, const rt_resolved_configuration *resolved);

typedef struct rt_optimizer_memory {
    double state;   /* bytes of moments and of fp32 weights beside half-precision ones */
    double moments; /* bytes of `state` without the fp32 weights; paged optimizers keep them in managed memory */
    double update;  /* temporary bytes of the update */
    double flat;    /* bytes of `update` in contiguous tensors of all gradients */
} rt_optimizer_memory;

/* The part of sharded elements that a GPU keeps if ZeRO shards them over workers. Experts are divided over the workers
 * that hold the same ones. */
double rt_zero_part(const mdot_configuration *c, rt_elements elements);

/* The parameters that a GPU of the shard updates. */
double rt_updated_parameters(const mdot_configuration *c, const mdot_job *job, const rt_shard *shard);

/* Does the host update parameters, or the GPU? */
bool rt_updates_on_host(const mdot_configuration *c);

/* The update's traffic relative to a fused kernel's. */
double rt_list_traffic(const mdot_configuration *c);

/* State and update of the parameters that a GPU updates, wherever they are (mdot_offload). */
rt_optimizer_memory rt_optimizer_memory_of(const mdot_job *job, const rt_resolved_configuration *resolved);

/* Elements in the rows that a step looks up, in tables with sparse gradients, and the time of their update. */
double rt_picked_elements(const mdot_job *job, const rt_resolved_configuration *resolved);
double rt_sparse_update_ms(const mdot_job *job, const rt_resolved_configuration *resolved);
/* Time of the update's memory traffic and matmuls on a GPU of the shard, without tables with sparse gradients. */
double rt_optimizer_ms(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_shard *shard);
/* Muon's matmuls alone, in bf16 whatever the weights' type is: FLOPs of the update, and its time on the GPU. */
double rt_orthogonalisation_flops(const mdot_job *job, const rt_resolved_configuration *resolved,
                                  const rt_shard *shard);
double rt_orthogonalisation_ms(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_shard *shard);
/* Time that the host takes to launch the kernels of the update, beyond update_ms. */
double rt_launch_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double update_ms);

/* The exchanges overlap a backward pass of backward_ms. */
double rt_communication_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double backward_ms);

/* Transfers overlap passes of forward_ms and backward_ms, over the whole step. Returns 0 without offloading
 * and parameter servers, whose update it includes. */
double rt_host_memory_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double forward_ms,
                         double backward_ms);

/* Factor of at least 1 by which a step gets longer because of the configuration's power limit; 1 without a limit.
 * `busy_ms` is the GPU's time at its own limit, without waiting for the host. */
double rt_power_slowdown(const rt_configuration *configuration, const rt_roofline_terms *terms, double busy_ms);

/* Most by which power lengthens the learned time of matmuls in half precision, on GPUs whose power limits tensor cores
 * more than an H100's, and the part of the peak rate that is left; the first is at least 1. */
double rt_throttled_matmuls(const rt_configuration *configuration, double *out_rate);

/* Average power of one GPU over a step of `step_ms`, in watts; 0 if the GPU's own power limit is unknown. */
double rt_average_watts(const rt_configuration *configuration, const rt_roofline_terms *terms, double step_ms);
