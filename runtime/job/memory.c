/* memory.c — how much memory one training step needs on one GPU at its peak, as PyTorch runs it.
 *
 *   weights          4 bytes a parameter, 2 in bf16 throughout; under autocast half-precision copies of those that
 *                    products read live through the step
 *                    (frozen ones, too, which have nothing of what follows)
 *   gradients        of the weights' type, kept from pass to pass and from step to step, so that accumulating takes
 *                    nothing more; a second copy in the buckets that several workers exchange them in
 *                    (DistributedDataParallel, gradient_as_bucket_view=False)
 *   optimizer state  of the weights' type: one tensor for SGD, which has momentum here (mdot_optimizer_load), two for
 *                    Adam and AdamW
 *   activations      of a pass at its peak: activations.c. What is compiled keeps what selective recomputation does:
 *                    fused kernels compute again what is no product (torch.compile's min-cut partitioner)
 *   or, if larger    the square roots that the update of Adam and AdamW over lists of tensors holds at once
 *                    (torch/optim/adam.py, _multi_tensor_adam)
 *
 * Several GPUs. ZeRO divides the optimizer's state, from stage 2 on gradients, from stage 3 on weights over the
 * data-parallel workers; at stage 3 the largest block's weights are there as a whole, too. Tensor parallelism
 * divides the parameters and activations of what division.c divides. A stage of a pipeline has its blocks'
 * parameters and those of the heavier end, and keeps the activations of as many micro-batches as there are stages
 * behind it: those of the first stage, of all stages or of all micro-batches.
 */
#include "runtime/job/setup.h"

enum { WEIGHT_BYTES = 4, HALF_BYTES = 2 };

static double min(double a, double b)
{
    return a < b ? a : b;
}

/* Of one GPU, from what there is at each place and what of it is divided. */
static double part_of(const double all[RT_PLACE_COUNT], const double divided[RT_PLACE_COUNT], const rt_share *share)
{
    double sum = 0;
    for (int place = 0; place < RT_PLACE_COUNT; place++)
        sum += share->of[place] * (all[place] - divided[place] * (1 - 1 / share->tensor));
    return sum;
}

double rt_parameters(const mdot_job *job, const rt_share *share)
{
    return part_of(job->division.parameters, job->division.divided_parameters, share);
}

double rt_weights(const mdot_job *job, const rt_share *share)
{
    return rt_parameters(job, share) + part_of(job->division.frozen, job->division.divided_frozen, share);
}

rt_activation_case rt_activation_case_of(const rt_setup *setup)
{
    const mdot_configuration *c = &setup->c;
    rt_activation_type type = c->precision == MDOT_PRECISION_BF16 ? RT_ACTIVATION_BF16
                              : rt_is_half(c->precision)          ? RT_ACTIVATION_AMP
                                                                  : RT_ACTIVATION_FP32;
    mdot_recompute recompute = c->recompute;
    if (recompute == MDOT_RECOMPUTE_NOTHING && c->compiled != 0) recompute = MDOT_RECOMPUTE_SELECTIVE;
    return (rt_activation_case){type, c->attention, recompute};
}

static double activation_bytes(const mdot_job *job, const rt_setup *setup, const rt_share *share)
{
    const mdot_configuration *c = &setup->c;
    rt_activation_case which = rt_activation_case_of(setup);
    const rt_activations *a = &job->activations[which.type][which.attention][which.recompute];
    double sample = a->whole + (a->all - a->whole) / share->tensor;
    double in_flight = min(c->pipeline_parallel, (double)c->micro_batches * c->accumulate);
    return (double)setup->micro_batch * sample * in_flight * share->of[RT_PLACE_BLOCKS];
}

rt_memory rt_measure_memory(const mdot_job *job, const rt_setup *setup)
{
    const mdot_configuration *c = &setup->c;
    rt_share share = rt_setup_share(setup, job);
    double parameters = rt_parameters(job, &share), workers = c->data_parallel;
    double bytes = c->precision == MDOT_PRECISION_BF16 ? HALF_BYTES : WEIGHT_BYTES, all = bytes * parameters;
    bool adam = c->optimizer != MDOT_OPTIMIZER_SGD;
    double weights = bytes * rt_weights(job, &share);
    rt_memory m = {.weights = weights, .gradients = all, .optimizer = (adam ? 2 : 1) * all};
    if (workers > 1 && c->zero_stage == 0) m.gradients += all;
    if (c->zero_stage >= 1) m.optimizer /= workers;
    if (c->zero_stage >= 2) m.gradients /= workers;
    if (c->zero_stage >= 3) {
        double block = bytes * job->division.largest_block_parameters / share.tensor;
        m.weights = min(weights, weights / workers + (job->info.block_count > 0 ? block : weights));
    }
    double update = adam ? all : 0;
    if (c->zero_stage >= 1) update /= workers;
    m.pass_activations = activation_bytes(job, setup, &share);
    if (rt_is_half(c->precision) && c->precision != MDOT_PRECISION_BF16)
        m.half_weights =
            HALF_BYTES * part_of(job->division.half_parameters, job->division.divided_half_parameters, &share);
    double passing = m.pass_activations + m.half_weights;
    m.activations = passing > update ? passing : update;
    return m;
}

uint64_t rt_sum_memory(const rt_memory *m)
{
    double peak = m->weights + m->gradients + m->optimizer + m->activations;
    return peak < 0x1p64 ? (uint64_t)peak : UINT64_MAX;
}

uint64_t rt_peak_memory_bytes(const mdot_job *job, const rt_setup *setup)
{
    rt_memory m = rt_measure_memory(job, setup);
    return rt_sum_memory(&m);
}

/* What a training job cannot have: a sixteenth, which error correction takes where it is kept in GDDR memory, and
 * fragmentation elsewhere; and half a gibibyte for the CUDA context, the libraries' code and their workspaces. */
bool rt_fits(uint64_t peak_memory_bytes, double memory_gib)
{
    double usable_gib = memory_gib * 15 / 16 - 0.5;
    return (double)peak_memory_bytes <= usable_gib * 0x1p30;
}
