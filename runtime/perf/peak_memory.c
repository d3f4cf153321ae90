/* peak_memory.c — the peak memory of one training step on one GPU, as PyTorch runs it.
 *
 *   weights          4 bytes per parameter, 2 in pure bf16. Under autocast, half-precision copies of the weights that
 *                    matmuls read live through the step. Frozen weights count, too, but have none of the following
 *                    terms
 *   gradients        of the weights' type, kept from micro-step to micro-step and from step to step, so that
 *                    accumulation needs the same memory; a second copy in the buckets that several workers exchange
 *                    (DistributedDataParallel, gradient_as_bucket_view=False)
 *   optimizer state  of the weights' type: one tensor for SGD, which has momentum here (mdot_optimizer_load), two for
 *                    Adam and AdamW
 *   activations      of a pass at its peak: activation_memory.c. Compiled code saves the tensors that selective
 *                    recomputation saves, because fused kernels recompute everything except matmuls (torch.compile's
 *                    min-cut partitioner)
 *   or, if larger    the square roots that the update of Adam and AdamW over lists of tensors holds at once
 *                    (torch/optim/adam.py, _multi_tensor_adam)
 *
 * Several GPUs. ZeRO shards the optimizer's state over the data-parallel workers, from stage 2 on also gradients,
 * from stage 3 on also weights. At stage 3 the largest block's weights also exist as a whole. Tensor parallelism
 * shards the parameters and activations of the operators that sharding.c shards. Expert parallelism distributes the
 * experts, of which there are as many copies as data-parallel workers. All other parameters have as many copies as
 * the product of both degrees. A GPU keeps the same number of tokens. A pipeline stage has the parameters of its
 * blocks and of the heavier end. It keeps the activations of as many micro-batches as there are stages after it. The
 * estimate takes the first stage: all stages or all micro-batches, whichever is smaller.
 */
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/analysis.h"

enum { WEIGHT_BYTES = 4, HALF_BYTES = 2 };

static double min(double a, double b)
{
    return a < b ? a : b;
}

/* The elements of experts and of all other operators on one GPU. */
static rt_elements part_of(const rt_parts *parts, const rt_shard *shard)
{
    double saved = 1 - 1 / shard->tensor;
    rt_elements sum = {0};
    for (int at = 0; at < RT_PIPELINE_POSITIONS; at++) {
        double experts = parts->experts[at] - parts->sharded_experts[at] * saved;
        double all = parts->all[at] - parts->sharded[at] * saved;
        sum.experts += shard->of[at] * experts / shard->experts;
        sum.others += shard->of[at] * (all - experts);
    }
    return sum;
}

static double both(rt_elements elements)
{
    return elements.experts + elements.others;
}

rt_elements rt_parameters_by_kind(const mdot_job *job, const rt_shard *shard)
{
    return part_of(&job->analysis->sharding.parameters, shard);
}

rt_elements rt_weights_by_kind(const mdot_job *job, const rt_shard *shard)
{
    const rt_sharding *sharding = &job->analysis->sharding;
    rt_elements trained = part_of(&sharding->parameters, shard), frozen = part_of(&sharding->frozen, shard);
    return (rt_elements){trained.others + frozen.others, trained.experts + frozen.experts};
}

double rt_parameters(const mdot_job *job, const rt_shard *shard)
{
    return both(rt_parameters_by_kind(job, shard));
}

/* The elements that a worker keeps under ZeRO. Experts are divided over the workers that hold the same ones. */
static double zero_part(const mdot_configuration *c, rt_elements elements)
{
    return elements.others / ((double)c->data_parallel * c->expert_parallel) + elements.experts / c->data_parallel;
}

/* The elements that DistributedDataParallel exchanges with other workers and therefore copies. */
static double exchanged_part(const mdot_configuration *c, rt_elements elements)
{
    bool others = c->data_parallel * c->expert_parallel > 1, experts = c->data_parallel > 1;
    return (others ? elements.others : 0) + (experts ? elements.experts : 0);
}

static double activation_bytes(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    const rt_activation_case *which = &resolved->activation_case;
    const rt_activations *a = &job->analysis->activations.of[which->type][which->attention][which->recompute];
    double sample = a->whole + (a->all - a->whole) / resolved->shard.tensor;
    double in_flight = min(c->pipeline_parallel, resolved->steps);
    return (double)resolved->configuration.micro_batch * sample * in_flight * resolved->shard.of[RT_PIPELINE_BLOCKS];
}

rt_memory rt_measure_memory(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    const rt_sharding *sharding = &job->analysis->sharding;
    const rt_shard *shard = &resolved->shard;
    rt_elements parameters = rt_parameters_by_kind(job, shard), weights = rt_weights_by_kind(job, shard);
    double bytes = c->precision == MDOT_PRECISION_BF16 ? HALF_BYTES : WEIGHT_BYTES;
    bool adam = c->optimizer != MDOT_OPTIMIZER_SGD;
    double optimizer_bytes = bytes * (c->zero_stage >= 1 ? zero_part(c, parameters) : both(parameters));
    rt_memory m = {.weights = bytes * both(weights), .optimizer = (adam ? 2 : 1) * optimizer_bytes};
    m.gradients = bytes * (c->zero_stage >= 2 ? zero_part(c, parameters) : both(parameters));
    if (c->zero_stage == 0) m.gradients += bytes * exchanged_part(c, parameters);
    if (c->zero_stage >= 3) {
        double block = sharding->largest_block_parameters - sharding->largest_block_experts * (1 - 1 / shard->experts);
        double gathered = job->info.block_count > 0 ? bytes * block / shard->tensor : m.weights;
        m.weights = min(m.weights, bytes * zero_part(c, weights) + gathered);
    }
    double update = adam ? optimizer_bytes : 0;
    m.pass_activations = activation_bytes(job, resolved);
    if (rt_is_half(c->precision) && c->precision != MDOT_PRECISION_BF16)
        m.half_weights = HALF_BYTES * both(part_of(&sharding->half_parameters, shard));
    double passing = m.pass_activations + m.half_weights;
    m.activations = passing > update ? passing : update;
    return m;
}

uint64_t rt_sum_memory(const rt_memory *m)
{
    double peak = m->weights + m->gradients + m->optimizer + m->activations;
    return peak < 0x1p64 ? (uint64_t)peak : UINT64_MAX;
}
