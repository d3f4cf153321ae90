/* resolved_configuration.h — a configuration resolved against a job: everything that follows from the two and that
 * estimates need more than once.
 *
 * A prediction resolves the requested configuration once, and at most once the projected configuration with which the
 * predictor is queried. Variants of a resolved configuration reuse its shard.
 */
#pragma once

#include "runtime/job/configuration.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/sharding.h"

#define RT_BYTES_PER_MS 1e6 /* bytes/ms of 1 GB/s */

typedef struct rt_rates {
    double ms_per_flop[RT_RATE_COUNT], ms_per_byte; /* ms per FLOP and per byte */
    double half_byte_ratio; /* bytes relative to fp32 for tensors in half precision; 1 in full precision */
    double fp32_byte_ratio; /* bytes relative to fp32 for tensors that autocast keeps in fp32 */
} rt_rates;

rt_rates rt_rates_of(const rt_configuration *configuration);

typedef struct rt_widths {
    double weights;   /* weights that a GPU keeps from step to step */
    double master;    /* second, fp32 weights that the optimizer updates; 0: it updates the others */
    double compute;   /* weights as operators read them, and as ZeRO stage 3 gathers them */
    double gradients; /* gradients that a GPU keeps until the update */
    double reduced;   /* gradients as they are summed over GPUs */
    double state;     /* optimizer state tensors that are neither factored nor quantised */
} rt_widths;

/* `has_half_weights`: the program's own weights are in half precision, which autocast leaves as they are. */
rt_widths rt_widths_of(const mdot_configuration *c, bool has_half_weights);
/* Bytes of a frozen matmul weight, with scales; `unchanged` in the original type. */
double rt_frozen_width(const mdot_configuration *c, double unchanged);

/* The stages of a pipeline whose memory may be largest. Of those in the middle, it is the second, which keeps the most
 * micro-batches. */
typedef enum rt_stage { RT_STAGE_FIRST, RT_STAGE_MIDDLE, RT_STAGE_LAST, RT_STAGES } rt_stage;

typedef struct rt_resolved_configuration {
    rt_configuration configuration; /* precision and attention follow the program where they were left open */
    bool differs_from_program;      /* the requested precision or attention contradicts the program's */
    bool has_half_weights;          /* the program's weights are in half precision */
    bool recomputes_as_program; /* operators that the program checkpoints run again. Predictors know no such jobs, so
                                     * that they are queried for the job without */
    bool runs_as_program;   /* matmuls run in the types in which the program ran them; predictors do not know either */
    bool assumes_framework; /* neither the configuration nor the program states the framework */
    rt_shard shard; /* the part of the job on one GPU; in an uneven pipeline, on the GPU with the largest part */
    double steps;   /* micro-steps that a GPU computes in a step */
    double
        micro_steps; /* micro-steps of a step, one after the other: `steps`, and those that fill and empty a pipeline */
    double slowest_host;      /* the host's time of a step, relative to micro_steps of the stage on this GPU */
    double in_flight;         /* micro-batches whose activations a GPU keeps */
    double blocks[RT_STAGES]; /* fractions of the blocks in the stages of a pipeline; 1 without one */
    double sequence;          /* factor by which context parallelism shortens sequences on a GPU */
    double replicated; /* factor by which sequence parallelism divides tensors that tensor parallelism replicates */
    double fused;      /* the part of compiled code's saving by fusion (framework.h) */
    rt_rates rates, other_rates; /* in the precision; of matmuls that ran in another type than the program's */
    rt_widths widths;
    rt_activation_case activation_case; /* includes the recomputation that compiled code does by itself */
} rt_resolved_configuration;

/* Checks that the job can be trained that way: it has blocks to recompute or to distribute, and matmuls to shard. */
mdot_status rt_configuration_check(const rt_configuration *configuration, const mdot_job *job, mdot_error *err);

/* Micro-steps in which a stage of the completed configuration's pipeline waits. Fewer micro-batches than stages leave
 * an interleaved stage idle in each part. A zero-bubble schedule (ZB-H1, arXiv 2401.10241) computes weight gradients
 * meanwhile, a third of a micro-step. */
double rt_waiting_steps(const mdot_configuration *c);

/* Resolves a configuration that the job can be trained with. */
void rt_resolve(const mdot_job *job, const rt_configuration *configuration, rt_resolved_configuration *out_resolved);

/* Megatron's kernels run: it and its descendants divide models whose half-precision weights have fp32 copies, and fp32
 * main gradients are its own. */
static inline bool rt_is_megatron(const mdot_configuration *c)
{
    bool has_main = c->gradient_type == MDOT_NUMBER_FP32 && c->reduce_type != MDOT_NUMBER_HALF;
    bool is_divided = c->tensor_parallel > 1 || c->pipeline_parallel > 1;
    bool is_alike = c->zero_stage < 3 && (has_main || is_divided);
    return rt_is_mixed(c->precision) && (c->framework == MDOT_FRAMEWORK_MEGATRON || is_alike);
}

/* One stage of a pipeline, which resolved configurations combine: the operators before the blocks or behind them, the
 * stage's blocks, and the micro-batches whose activations it keeps. */
rt_resolved_configuration rt_resolve_stage(const rt_resolved_configuration *resolved, rt_stage stage);

/* Variants: the same shard, with another micro-batch; and with the kernels (precision, attention, compiled code,
 * update) of another configuration of the same GPU. */
rt_resolved_configuration rt_with_micro_batch(const rt_resolved_configuration *resolved, int64_t micro_batch);
rt_resolved_configuration rt_with_kernels_of(const rt_resolved_configuration *resolved,
                                             const rt_resolved_configuration *other);
