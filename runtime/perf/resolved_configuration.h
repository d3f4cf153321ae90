/* resolved_configuration.h — a configuration resolved against a job: everything that follows from the two and that
 * estimates need more than once.
 *
 * A prediction resolves the requested configuration once, and at most once the projected configuration with which the
 * predictor is queried. Variants of a resolved configuration reuse its shard.
 */
#ifndef RT_RESOLVED_CONFIGURATION_H
#define RT_RESOLVED_CONFIGURATION_H

#include "runtime/job/configuration.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/gpu_rates.h"
#include "runtime/perf/sharding.h"
#include "runtime/perf/widths.h"

typedef struct rt_resolved_configuration {
    rt_configuration configuration;
    rt_shard shard; /* the part of the job on one GPU; in an uneven pipeline, on the GPU with the largest part */
    double steps;   /* micro-steps that a GPU computes in a step */
    double
        micro_steps; /* micro-steps of a step, one after the other: `steps`, and those that fill and empty a pipeline */
    double in_flight;  /* micro-batches whose activations a GPU keeps */
    double sequence;   /* context parallelism: the factor by which a GPU's part of each sequence is shorter */
    double replicated; /* the factor by which sequence parallelism divides tensors that tensor parallelism replicates */
    rt_rates rates;
    rt_widths widths;
    rt_activation_case activation_case; /* includes the recomputation that compiled code does by itself */
} rt_resolved_configuration;

/* Checks that the job can be trained that way: it has blocks to recompute or to distribute, and matmuls to shard. */
mdot_status rt_configuration_check(const rt_configuration *configuration, const mdot_job *job, mdot_error *err);

/* Resolves a configuration that the job can be trained with. */
void rt_resolve(const mdot_job *job, const rt_configuration *configuration, rt_resolved_configuration *out_resolved);

/* Variants: the same shard, with another micro-batch; and with the kernels (precision, attention, compiled code,
 * update) of another configuration of the same GPU. */
rt_resolved_configuration rt_with_micro_batch(const rt_resolved_configuration *resolved, int64_t micro_batch);
rt_resolved_configuration rt_with_kernels_of(const rt_resolved_configuration *resolved,
                                             const rt_resolved_configuration *other);

#endif
