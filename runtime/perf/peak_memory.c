/* peak_memory.c — the peak memory of one training step on one GPU, as PyTorch runs it: the largest sum over the moments
 * of a pass (peak_moments.c) and the optimizer's update.
 *
 *   weights          Trained and frozen parameters, in the types of widths.c; quantised ones in fewer bytes. Sizes
 *                    that the program recorded take precedence, with buffers (recorded_memory.c). A moving average
 *                    (EMA) is an fp32 copy of trained parameters
 *   gradients        For trained parameters: allocated during the backward pass, and freed after the optimizer's
 *                    step. If a step has several passes, all gradients exist in the later ones. Megatron's main
 *                    gradients (fp32 beside half-precision weights) are never freed. DistributedDataParallel keeps a
 *                    second copy in the buckets that several workers exchange (gradient_as_bucket_view=False). An
 *                    update in the backward pass frees each gradient at once, so that only the largest one counts. A
 *                    table with sparse gradients has gradients for the rows that a step looks up
 *   optimizer state  optimizer_update.c, and sparse_state for tables with sparse gradients. Pages in managed memory are
 *                    outside PyTorch's allocator, and leave the GPU when tensors need the space
 *   activations      At the moment. Compiled code saves the same tensors as selective recomputation, because fused
 *                    kernels recompute everything except matmuls (torch.compile's min-cut partitioner). Autocast's
 *                    half-precision weight copies for matmuls live through the step. Dequantisation handles one matrix
 *                    at a time
 *   or               The update's temporary tensors
 *
 * Inference has weights, and the activations that are alive at once in a forward pass.
 *
 * Several GPUs. ZeRO shards optimizer state over the data-parallel workers, from stage 2 on also gradients, from stage
 * 3 on also weights. At stage 3 (FSDP with one unit per block), some weights also exist as a whole, in the
 * computation's type: the current block, the next one, which is gathered ahead, and weights outside the blocks, which
 * FSDP's root keeps. In the backward pass, whole gradients exist for a block and for the root, and a block's gradients
 * also in the type for sums. With whole_gradients (FSDP's no_sync), all gradients stay whole from the first to the last
 * pass. Pipeline stages sum gradients over GPUs after the last micro-batch only, and keep all of them whole until then.
 * Autocast copies the gathered block's weights only. Every GPU keeps all buffers. Tensor parallelism shards parameters
 * and activations (sharding_roles.c). Expert parallelism distributes the experts; each data-parallel worker has a copy.
 * Other parameters have as many copies as the product of both degrees. A GPU keeps the same number of tokens.
 *
 * A pipeline stage has the parameters of its blocks. The first stage also has the operators before the blocks. The last
 * one has those behind the blocks, with a copy of the table to which the head is tied. A stage keeps the activations of
 * as many micro-batches as there are stages from it on, and of more in an interleaved pipeline
 * (resolved_configuration.c), but at most all micro-batches; and the results that it sent to the next stage. The peak
 * is that of the first, the last, or the largest stage between them. Only the last one has the logits. Context
 * parallelism divides activations and copies weights, like data parallelism. Sequence parallelism divides the
 * activations that tensor parallelism replicates. */
#include "runtime/perf/peak_memory.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/framework.h"
#include "runtime/perf/step_time.h"

#include <math.h>

enum { FULL_BYTES = 4, HALF_BYTES = 2, GATHERED_BLOCKS = 2, BUCKET_ELEMENTS = 500000000 };

/* The elements that DistributedDataParallel exchanges with other workers and therefore copies. */
static double exchanged_part(const mdot_configuration *c, rt_elements elements)
{
    bool others = rt_copies(c) * c->expert_parallel > 1, experts = rt_copies(c) > 1;
    return (others ? elements.others : 0) + (experts ? elements.experts : 0);
}

typedef struct parts {
    const mdot_job *job;
    const rt_resolved_configuration *resolved;
    rt_widths width;
    /* Elements in the shard: trained, all, and frozen quantised ones; and the sums. */
    rt_elements trained_by_kind, weights_by_kind, quantised_by_kind;
    double parameters, weights, quantised;
    /* ZeRO stage 3: elements that exist as a whole, in blocks and outside of them. Without it, 0. */
    double gathered_blocks, block, root;
    double gradients;     /* gradient bytes that can exist at once */
    double all_gradients; /* bytes of all gradients */
    /* Bytes at each moment: whole and accumulated gradients at ZeRO stage 3, those of a pass, and sent results. */
    double whole_gradients, accumulated_gradients, pass_gradients, sent_results;
    bool keeps_gradients;
} parts;

/* Elements outside of the blocks. In a job without blocks, all operators count as one block. */
static double root_weights(const mdot_job *job, const rt_shard *shard)
{
    rt_shard ends = *shard;
    ends.of[RT_PIPELINE_BLOCKS] = 0;
    return rt_sum_elements(rt_weights_part(&job->analysis->sharding, &ends));
}

static void gather(parts *p)
{
    const rt_sharding *sharding = &p->job->analysis->sharding;
    const rt_shard *shard = &p->resolved->shard;
    uint32_t blocks = p->job->info.block_count;
    double experts = sharding->largest_block_experts * (1 - 1 / shard->experts);
    p->block = blocks > 0 ? (sharding->largest_block_parameters - experts) / shard->tensor : p->weights;
    p->block = fmin(p->block, p->weights);
    p->root = fmin(root_weights(p->job, shard), p->weights - p->block);
    p->gathered_blocks = fmin(GATHERED_BLOCKS * p->block, p->weights - p->root);
}

/* Gradient bytes of a backward pass. Inference has none. */
static double gradient_bytes(const parts *p)
{
    const mdot_configuration *c = &p->resolved->configuration.c;
    if (c->offload == MDOT_OFFLOAD_PARAMETERS) return 0;
    return p->width.gradients * (c->zero_stage >= 2 ? rt_zero_part(c, p->trained_by_kind) : p->parameters);
}

/* Bytes of the largest gradient. From ZeRO stage 2 on, a GPU keeps a part. */
static double largest_gradient(const parts *p)
{
    const mdot_configuration *c = &p->resolved->configuration.c;
    double workers = c->zero_stage >= 2 ? rt_copies(c) : 1;
    return p->width.gradients * p->job->analysis->update_parts.largest / p->resolved->shard.tensor / workers;
}

/* Bytes of the optimizer's state of tables with sparse gradients. SGD's momentum has the rows that a step looks up, and
 * torch.optim.SparseAdam keeps two whole tables. */
static double sparse_state(const parts *p)
{
    mdot_optimizer optimizer = p->resolved->configuration.c.optimizer;
    if (optimizer == MDOT_OPTIMIZER_SGD_PLAIN) return 0;
    if (optimizer == MDOT_OPTIMIZER_SGD) return p->width.state * rt_picked_elements(p->job, p->resolved);
    return 2 * p->width.state * p->job->analysis->sharding.sparse.parameters / p->resolved->shard.tensor;
}

/* Frozen weights that the configuration quantises. */
static rt_elements quantised_by_kind(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    if (resolved->configuration.c.frozen_weights == MDOT_FROZEN_UNCHANGED) return (rt_elements){0};
    return rt_part_of(&job->analysis->update_parts.frozen_matmuls, &resolved->shard);
}

/* Weight elements that ZeRO leaves on a GPU between steps. */
static double kept_part(const mdot_configuration *c, rt_elements elements)
{
    return c->zero_stage >= 3 ? rt_zero_part(c, elements) : rt_sum_elements(elements);
}

/* Frozen weights keep the program's type where FSDP converts the trained ones to fp32. */
static double frozen_width(const parts *p)
{
    const mdot_configuration *c = &p->resolved->configuration.c;
    bool keeps_type = p->resolved->has_half_weights && rt_is_mixed(c->precision) && c->zero_stage >= 3;
    return keeps_type ? HALF_BYTES : p->width.weights;
}

/* Bytes of weights that exist on a GPU throughout the step, without gathered ones. Every worker has all buffers. */
static double kept_weights(const parts *p)
{
    const mdot_configuration *c = &p->resolved->configuration.c;
    bool on_host = c->offload == MDOT_OFFLOAD_PARAMETERS;
    double elements = on_host ? 0 : kept_part(c, p->weights_by_kind), width = p->width.weights;
    double quantised = on_host ? 0 : kept_part(c, p->quantised_by_kind), frozen = frozen_width(p);
    double bytes = rt_weight_bytes(p->job, width, frozen, elements) - quantised * (frozen - rt_frozen_width(c, frozen));
    double average = c->ema != 0 ? FULL_BYTES * kept_part(c, p->trained_by_kind) : 0;
    return fmax(bytes, 0) + average; /* the program's sizes may be smaller than the quantisation's savings */
}

/* Bytes of whole weights gathered by ZeRO stage 3, at a moment with this fraction of gradients. */
static double gathered_weights(const parts *p, double gradients)
{
    const mdot_configuration *c = &p->resolved->configuration.c;
    double elements = p->gathered_blocks + p->root;
    if (c->keep_gathered != 0) elements = fmax(elements, p->weights * (1 - gradients));
    double quantised = p->weights > 0 ? p->quantised / p->weights : 0;
    double width = p->width.compute * (1 - quantised) + rt_frozen_width(c, p->width.compute) * quantised;
    return width * elements;
}

static bool is_sharded_pipeline(const parts *p)
{
    const mdot_configuration *c = &p->resolved->configuration.c;
    return c->zero_stage >= 3 && c->pipeline_parallel > 1;
}

/* Bytes of whole gradients at ZeRO stage 3, at a moment in the backward pass. */
static double whole_gradients(const parts *p)
{
    double trained = p->weights > 0 ? p->parameters / p->weights : 0;
    if (is_sharded_pipeline(p)) return p->width.reduced * p->parameters;
    return trained * (p->width.compute * (p->block + p->root) + p->width.reduced * p->block);
}

/* Bytes of whole gradients from earlier passes, beside new ones: the current block's, and the root's, which FSDP adds
 * last. Shards replace them in the last pass. FSDP1 keeps them in the computation's type, and FSDP2 in the type of
 * sums. */
static double accumulated_gradients(const parts *p)
{
    if (p->resolved->configuration.c.whole_gradients == 0) return 0;
    double trained = p->weights > 0 ? p->parameters / p->weights : 0;
    return fmax(p->width.compute, p->width.reduced) * p->parameters + trained * p->width.compute * (p->block + p->root);
}

/* Bytes of half-precision gradients beside the fp32 gradients to which they are added, as in DeepSpeed's
 * BF16_Optimizer. Megatron adds each gradient at once. DeepSpeed's ZeRO stage 2 copies gradients into a bucket, whose
 * size is independent of the network (reduce_bucket_size is 5e8, and contiguous_gradients is true by default). */
static double pass_gradients(const parts *p)
{
    const mdot_configuration *c = &p->resolved->configuration.c;
    bool are_mixed = rt_is_mixed(c->precision) && c->zero_stage < 3;
    if (are_mixed && c->gradient_type == MDOT_NUMBER_FP32 && c->reduce_type == MDOT_NUMBER_HALF)
        return HALF_BYTES * p->parameters;
    bool has_bucket = are_mixed && c->zero_stage == 2 && !rt_is_megatron(c);
    return has_bucket ? HALF_BYTES * BUCKET_ELEMENTS : 0;
}

/* Bytes of half-precision weight copies; autocast makes `all` of them. Dequantisation copies one quantised matrix at a
 * time. */
static double weight_copies(const parts *p, double elements)
{
    const mdot_configuration *c = &p->resolved->configuration.c;
    double dequantised = p->quantised > 0 ? p->width.compute * p->job->analysis->update_parts.largest_frozen : 0;
    if (p->quantised > 0 && rt_is_half(c->precision))
        dequantised = HALF_BYTES * p->job->analysis->update_parts.largest_frozen;
    double quantised = p->resolved->has_half_weights ? 0 : HALF_BYTES * p->quantised;
    double copied = fmax(elements - quantised, 0);
    if (c->zero_stage >= 3 && p->weights > 0) copied *= p->block / p->weights;
    return copied + dequantised / p->resolved->shard.tensor;
}

/* Bytes of results that a stage sent to the next one. The pipelines of PyTorch and DeepSpeed keep them up to the
 * micro-batch's backward pass. Megatron frees them (deallocate_pipeline_outputs). */
static double sent_results(const parts *p)
{
    const rt_resolved_configuration *resolved = p->resolved;
    const mdot_configuration *c = &resolved->configuration.c;
    if (c->pipeline_parallel == 1 || resolved->shard.of[RT_PIPELINE_AFTER] > 0 || rt_is_megatron(c)) return 0;
    double width = resolved->activation_case.type == RT_ACTIVATION_FP32 ? 1 : 0.5;
    double sample = width * p->job->analysis->sharding.border_bytes / resolved->replicated / resolved->sequence;
    return (double)resolved->configuration.micro_batch * resolved->in_flight * sample;
}

/* Bytes per sample that Trainer's FSDP, with Liger's kernels or without, retains up to the end of the backward pass,
 * where the first block is recomputed as the last one was: the inputs of checkpointed blocks, and their gradients. FSDP
 * hooks an input's AccumulateGrad to free a block's frozen weights (_register_post_backward_reshard_only_hook), and a
 * reference cycle keeps node, input and gradient until FSDP removes the hooks. A tracked step of PyTorch 2.4 has two
 * inputs for each finished block. transformers 4.53 checkpoints inside of FSDP's module, and retains none. */
static double retained_inputs(const parts *p)
{
    const rt_resolved_configuration *resolved = p->resolved;
    const mdot_configuration *c = &resolved->configuration.c;
    const rt_sharding *sharding = &p->job->analysis->sharding;
    bool is_frozen = sharding->frozen.all[RT_PIPELINE_BLOCKS] > 0;
    if (!is_frozen || !rt_framework_recomputes_outside(c, resolved->recomputes_as_program)) return 0;
    double width = resolved->activation_case.type == RT_ACTIVATION_FP32 ? 1 : 0.5;
    return width * sharding->border_bytes * (p->job->info.block_count - 1) / resolved->replicated / resolved->sequence;
}

static parts parts_of(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    const rt_sharding *sharding = &job->analysis->sharding;
    parts p = {.job = job,
               .resolved = resolved,
               .width = resolved->widths,
               .trained_by_kind = rt_trained_part(sharding, &resolved->shard),
               .weights_by_kind = rt_weights_part(sharding, &resolved->shard),
               .quantised_by_kind = quantised_by_kind(job, resolved)};
    p.parameters = rt_sum_elements(p.trained_by_kind);
    p.weights = rt_sum_elements(p.weights_by_kind);
    p.quantised = rt_sum_elements(p.quantised_by_kind);
    if (c->zero_stage >= 3) gather(&p);
    p.gradients = gradient_bytes(&p);
    double picked = p.width.gradients * rt_picked_elements(job, resolved);
    p.all_gradients = p.gradients + picked;
    if (c->step_in_backward != 0) p.gradients = fmin(p.gradients, largest_gradient(&p));
    p.gradients += picked;
    bool is_main = rt_is_mixed(c->precision) && c->gradient_type == MDOT_NUMBER_FP32 && c->zero_stage < 3;
    p.keeps_gradients = resolved->steps > 1 || is_main;
    p.whole_gradients = whole_gradients(&p);
    p.accumulated_gradients = accumulated_gradients(&p);
    p.pass_gradients = pass_gradients(&p);
    p.sent_results = sent_results(&p);
    return p;
}

static double sum_of(const rt_memory *m) { return m->weights + m->gradients + m->optimizer + m->activations; }

/* Keeps the larger sum in *largest. */
static void consider(rt_memory m, rt_memory *largest)
{
    if (sum_of(&m) > sum_of(largest)) *largest = m;
}

/* Bytes of gradients at a moment with this fraction of them. An update in the backward pass leaves at most the largest
 * one. */
static double gradients_at(const parts *p, double fraction)
{
    if (p->keeps_gradients) return p->gradients;
    return fmin(fraction * p->all_gradients, p->gradients);
}

static void consider_moment(const parts *p, const rt_memory *always, const mdot_peak_moment *m, rt_memory *largest)
{
    const rt_resolved_configuration *resolved = p->resolved;
    double batch = (double)resolved->configuration.micro_batch, samples = batch * resolved->in_flight;
    rt_memory moment_memory = *always;
    moment_memory.weights += gathered_weights(p, m->gradients);
    moment_memory.gradients += gradients_at(p, m->gradients);
    if (m->gradients > 0 || is_sharded_pipeline(p)) moment_memory.gradients += p->whole_gradients;
    moment_memory.gradients = fmax(moment_memory.gradients, p->accumulated_gradients);
    moment_memory.gradients += p->pass_gradients;
    moment_memory.pass_activations = samples * m->per_sample + m->per_step + p->sent_results;
    moment_memory.pass_activations += samples * batch * m->per_square;
    moment_memory.logits = samples * m->logits;
    moment_memory.half_weights = weight_copies(p, m->weight_copies);
    moment_memory.activations = moment_memory.pass_activations + moment_memory.half_weights;
    consider(moment_memory, largest);
}

/* Considers every moment of a pass. `always` exists throughout the step. */
static void consider_passes(const parts *p, const rt_memory *always, rt_memory *largest)
{
    mdot_peak_moment moments[MDOT_PEAK_MOMENTS_MAX];
    size_t count = rt_peak_moments(p->job, p->resolved, moments);
    double retained = retained_inputs(p);
    for (size_t i = 0; i < count; i++) {
        consider_moment(p, always, &moments[i], largest);
        if (retained == 0) continue;
        moments[i].per_sample += retained - moments[i].logits;
        moments[i].logits = 0;
        moments[i].gradients = 1;
        consider_moment(p, always, &moments[i], largest);
    }
}

static rt_memory measure_part(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    parts p = parts_of(job, resolved);
    rt_optimizer_memory optimizer = rt_optimizer_memory_of(job, resolved);
    bool on_host = rt_updates_on_host(c), is_managed = c->offload == MDOT_OFFLOAD_PAGES;
    rt_memory m = {.weights = kept_weights(&p), .optimizer = on_host ? 0 : optimizer.state + sparse_state(&p)};
    if (is_managed) m.optimizer -= optimizer.moments;
    bool in_buckets = c->zero_stage == 0 && !rt_is_mixed(c->precision);
    if (in_buckets) m.gradients = p.width.gradients * exchanged_part(c, p.trained_by_kind);
    rt_memory updating = m, largest = {0};
    updating.gradients += p.gradients;
    updating.activations = on_host ? 0 : optimizer.update;
    if (c->mode == MDOT_MODE_INFERENCE) m.optimizer = 0;
    consider_passes(&p, &m, &largest);
    double pass = sum_of(&largest);
    if (c->mode == MDOT_MODE_TRAIN) consider(updating, &largest);
    largest.pass = pass;
    largest.flat = on_host || c->mode == MDOT_MODE_INFERENCE ? 0 : optimizer.flat;
    return largest;
}

static rt_memory measure_stage(const mdot_job *job, const rt_resolved_configuration *resolved, rt_stage stage)
{
    rt_resolved_configuration of_stage = rt_resolve_stage(resolved, stage);
    return measure_part(job, &of_stage);
}

rt_stage_memory rt_measure_stages(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    uint32_t stages = resolved->configuration.c.pipeline_parallel;
    if (stages == 1) {
        rt_memory whole = measure_part(job, resolved);
        return (rt_stage_memory){whole, whole, whole};
    }
    rt_stage_memory m = {.first = measure_stage(job, resolved, RT_STAGE_FIRST),
                         .last = measure_stage(job, resolved, RT_STAGE_LAST)};
    m.largest = m.first;
    consider(m.last, &m.largest);
    if (stages > 2 && resolved->blocks[RT_STAGE_MIDDLE] > resolved->blocks[RT_STAGE_FIRST])
        consider(measure_stage(job, resolved, RT_STAGE_MIDDLE), &m.largest);
    return m;
}

uint64_t rt_sum_memory(const rt_memory *m)
{
    double peak = sum_of(m);
    return peak < 0x1p64 ? (uint64_t)peak : UINT64_MAX;
}
