/* optimizer_update.h — the state of an optimizer on one GPU, and the memory and time of its update. */
#ifndef RT_OPTIMIZER_UPDATE_H
#define RT_OPTIMIZER_UPDATE_H

#include "runtime/job/job_model.h"
#include "runtime/perf/resolved_configuration.h"

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

/* State and update of the parameters that a GPU updates, wherever they are (mdot_offload). */
rt_optimizer_memory rt_optimizer_memory_of(const mdot_job *job, const rt_resolved_configuration *resolved);

/* Time of the update's memory traffic and matmuls on a GPU of the shard. */
double rt_optimizer_ms(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_shard *shard);
/* Time that the host takes to launch the kernels of the update, beyond update_ms. */
double rt_launch_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double update_ms);

#endif
