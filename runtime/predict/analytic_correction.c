/* analytic_correction.c — analytic correction for the parts of a configuration that a predictor has no input for.
 *
 * A predictor reads some of the numbers of a configuration. The others are removed from the queried configuration,
 * and its answer is corrected for the requested one. A step is a sum of parts:
 *
 *   step = overlapped(passes * micro-steps + update, host * micro-steps) + waits
 *
 * The predictor gives the parts of one micro-step: forward and backward pass by kind of work, update, and the host's
 * launches. An option changes the parts that it names, and leaves the others as they are. Each part of a pass is
 * multiplied by a ratio of rooflines (roofline.c), the update by another one (optimizer_update.c). `waits` are for
 * exchanges between GPUs (communication.c), host memory (host_memory.c) and launches of the update. The ratios come
 * from one typical batch, so that a step still grows with its batch. Recomputation adds launches in proportion to its
 * work, and fusion saves launches; other kernels leave the host's time as it is, and therefore save nothing where the
 * host is the limit. A pipeline repeats the slowest stage, of GPU or host, and fills and empties with the others.
 *
 * Uncertainty: counted micro-steps only multiply; the rest is an analytic estimate that lacks a measurement. Therefore
 * the interval widens, each way, by a quarter of that part's change, as a logarithm. That part moves vTrain's 1,306
 * steps with tensor parallelism and pipelines by 0.5, which widens each side by 0.125. The error that nine in ten of
 * them stay below is 0.09 larger than that of steps without parallelism.
 */
#include "runtime/predict/analytic_correction.h"
#include "runtime/job/gpus.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/cdna.h"
#include "runtime/perf/framework.h"
#include "runtime/perf/step_time.h"

#include <math.h>
#include <string.h>

#define NEGLIGIBLE_CHANGE 0.01
/* Share of the roofline's rates in a real step. It applies if the predictor does not divide its answer. The rest of a
 * longer step is the host's. */
#define ATTAINABLE_EFFICIENCY 0.4
#define MATMUL_EFFICIENCY 0.7 /* of Muon's matmuls, without a label: an H100's learned ones reach .65 to .75 */
#define INTERVAL_WIDENING 0.25
/* Attention in n parts of a sequence takes longer: shorter kernels, whose results are merged. torchtitan's Llama 3 8B
 * takes 1.3 and 1.4 times the whole attention on 4 and 8 GPUs. */
#define RING_LOSS 0.4
/* Half-widths of the logarithm of a launch's cost: on a host that the user did not measure, a factor of 1.5 by the
 * eight hosts of docs/explanation/prediction.md; with a stated framework; and with Megatron, by release and server. */
#define HOST_LOG 0.4
#define STATED_LOG 0.3
#define MEGATRON_LOG 0.285
/* The same to slower steps if several GPUs train a network with attention, and nothing states the framework: a launch
 * of Megatron takes 2.3 to 2.6 times as long as PyTorch's. */
#define FRAMEWORK_LOG 0.9
/* Half-widths of the GPU's part in jobs that several publishers measured, logarithms of independent errors: any
 * language model in half precision, and in fp32 or TF32; experts in Megatron; newer GPUs than Ampere, and their hosts;
 * FP8; dequantised weights; fused kernels; divided blocks; each doubling of the nodes; image networks in training, in
 * inference, and in inference on GPUs without timm's labels or in fp32 on Hopper (lab/mdot_lab/checks/intervals.py). */
#define LANGUAGE_LOG 0.135
#define FULL_LOG 0.25
#define EXPERTS_LOG 0.15
#define NEW_GPU_LOG 0.18
#define FP8_LOG 0.17
#define QUANTISED_LOG 0.09
#define FUSED_LOG 0.08
#define DIVIDED_LOG 0.17
#define NODES_LOG 0.05
#define IMAGE_LOG 0.34
#define INFERENCE_LOG 0.36
#define FAR_IMAGE_LOG 0.7
#define MOST_MATMULS 0.3 /* part of the GPU's time in matmuls and attention from which on a job is a language model */
enum { TYPICAL_BATCH = 32 };

/* The inputs on how GPUs work together, except their number. A predictor that reads only the number is queried for
 * plain data-parallel workers. */
#define BIT(id) RT_CONFIGURATION_BIT(RT_CONFIGURATION_##id)
#define PARALLELISM_INPUTS                                                                                             \
    (BIT(LINK_GBPS) | BIT(NETWORK_GBPS) | BIT(NODE_COUNT) | BIT(DATA_PARALLEL) | BIT(TENSOR_PARALLEL) |                \
     BIT(PIPELINE_PARALLEL) | BIT(EXPERT_PARALLEL) | BIT(MICRO_BATCHES) | BIT(ZERO_STAGE))

static bool reads_all(rt_configuration_set reads, rt_configuration_set numbers) { return (reads & numbers) == numbers; }

static bool lacks(rt_configuration_set reads, int number) { return (reads & RT_CONFIGURATION_BIT(number)) == 0; }

/* Options of which no predictor reads a number. */
static void project_training(mdot_configuration *c)
{
    static const mdot_optimizer nearest[] = {
        [MDOT_OPTIMIZER_ADAMW] = MDOT_OPTIMIZER_ADAMW,     [MDOT_OPTIMIZER_ADAM] = MDOT_OPTIMIZER_ADAM,
        [MDOT_OPTIMIZER_SGD_PLAIN] = MDOT_OPTIMIZER_SGD,   [MDOT_OPTIMIZER_ADAM8BIT] = MDOT_OPTIMIZER_ADAM,
        [MDOT_OPTIMIZER_ADAMW8BIT] = MDOT_OPTIMIZER_ADAMW, [MDOT_OPTIMIZER_ADAFACTOR] = MDOT_OPTIMIZER_ADAMW,
        [MDOT_OPTIMIZER_LION] = MDOT_OPTIMIZER_SGD,        [MDOT_OPTIMIZER_MUON] = MDOT_OPTIMIZER_ADAMW,
        [MDOT_OPTIMIZER_SGD] = MDOT_OPTIMIZER_SGD};
    c->optimizer = nearest[c->optimizer];
    if (c->precision == MDOT_PRECISION_MIXED_FP16)
        c->precision = MDOT_PRECISION_AMP;
    else if (rt_is_mixed(c->precision))
        c->precision = MDOT_PRECISION_BF16;
    c->gpu_count /= (int)c->context_parallel;
    rt_set_unread_defaults(c);
    c->first_stage_blocks = c->last_stage_blocks = c->pipeline_blocks = 0; /* unlike other counts, where 0 means 1 */
}

/* The layout in which torch.compile runs the job's convolutions, if it chooses it: the predictor learned compiled
 * inference from inputs in NCHW, and eager training in half precision in either layout. */
static mdot_layout compiled_layout(const rt_configuration *requested, const mdot_job *job)
{
    enum { FIRST_CHOICE = 201 }; /* PyTorch 2.1; on AMD's GPUs it keeps the layout */
    const mdot_configuration *c = &requested->c;
    bool chooses = c->compiled != 0 && (c->torch == 0 || c->torch >= FIRST_CHOICE);
    if (rt_gpu_is_from_amd(&requested->gpu)) return c->layout;
    if (!chooses || !job->analysis->totals.compiles_in_nhwc[c->mode]) return c->layout;
    if (c->mode == MDOT_MODE_INFERENCE) return MDOT_LAYOUT_NCHW;
    return rt_is_half(c->precision) ? MDOT_LAYOUT_NHWC : c->layout;
}

void rt_project_configuration(const rt_configuration *requested, const mdot_job *job, rt_configuration_set reads,
                              rt_configuration *out_queried)
{
    rt_configuration queried = *requested;
    mdot_configuration *c = &queried.c;
    project_training(c);
    c->layout = compiled_layout(requested, job);
    if (lacks(reads, RT_CONFIGURATION_IS_AMP_BF16) && c->precision == MDOT_PRECISION_AMP_BF16)
        c->precision = MDOT_PRECISION_AMP;
    if (lacks(reads, RT_CONFIGURATION_IS_BF16) && c->precision == MDOT_PRECISION_BF16)
        c->precision = MDOT_PRECISION_AMP;
    if (lacks(reads, RT_CONFIGURATION_IS_PYTORCH) && c->precision == MDOT_PRECISION_PYTORCH)
        c->precision = job->analysis->totals.is_convolutional ? MDOT_PRECISION_TF32 : MDOT_PRECISION_FP32;
    /* TF32 is estimated analytically only beside an analytic estimate of AMP. Otherwise TF32 could be faster than the
     * AMP that the predictor learned. */
    bool lacks_amp = lacks(reads, RT_CONFIGURATION_IS_AMP);
    bool is_tf32 = c->precision == MDOT_PRECISION_TF32 && lacks(reads, RT_CONFIGURATION_IS_TF32);
    if (lacks_amp && (c->precision == MDOT_PRECISION_AMP || is_tf32)) c->precision = MDOT_PRECISION_FP32;
    if (lacks(reads, RT_CONFIGURATION_IS_ADAMW) && c->optimizer == MDOT_OPTIMIZER_ADAMW)
        c->optimizer = MDOT_OPTIMIZER_ADAM;
    if (lacks(reads, RT_CONFIGURATION_IS_ADAM) && c->optimizer == MDOT_OPTIMIZER_ADAM)
        c->optimizer = MDOT_OPTIMIZER_SGD;
    if (lacks(reads, RT_CONFIGURATION_IS_EAGER)) c->attention = MDOT_ATTENTION_EAGER;
    if (lacks(reads, RT_CONFIGURATION_IS_COMPILED)) c->compiled = 0;
    if (lacks(reads, RT_CONFIGURATION_RECOMPUTES_BLOCKS) && c->recompute == MDOT_RECOMPUTE_BLOCKS)
        c->recompute = MDOT_RECOMPUTE_NOTHING;
    if (lacks(reads, RT_CONFIGURATION_RECOMPUTES_SELECTIVELY) && c->recompute == MDOT_RECOMPUTE_SELECTIVE)
        c->recompute = MDOT_RECOMPUTE_NOTHING;
    if (lacks(reads, RT_CONFIGURATION_ACCUMULATE)) c->accumulate = 1;
    if (lacks(reads, RT_CONFIGURATION_TORCH)) c->torch = 0;
    if (lacks(reads, RT_CONFIGURATION_IS_INFERENCE)) c->mode = MDOT_MODE_TRAIN;
    if (c->host_launch_us == 0) c->host_launch_us = rt_framework_launch_us(requested);
    c->framework = MDOT_FRAMEWORK_PYTORCH;
    if (!reads_all(reads, PARALLELISM_INPUTS)) {
        c->micro_batches = c->pipeline_parallel = c->tensor_parallel = c->expert_parallel = 1;
        c->zero_stage = 0;
        if (!requested->plain_workers || lacks(reads, RT_CONFIGURATION_GPU_COUNT)) c->gpu_count = 1;
        c->data_parallel = (uint32_t)c->gpu_count;
    }
    *out_queried = queried;
}

/* The GPU's time in a pass of one micro-step. */
static double pass_ms(const rt_step_parts *parts, rt_pass pass)
{
    double sum = 0;
    for (int work = 0; work < RT_WORK_COUNT; work++) sum += parts->pass_ms[pass][work];
    return sum;
}

static double passes_ms(const rt_step_parts *parts)
{
    return pass_ms(parts, RT_PASS_FORWARD) + pass_ms(parts, RT_PASS_BACKWARD);
}

static double gpu_ms(const rt_step_parts *parts, double micro_steps)
{
    return micro_steps * passes_ms(parts) + parts->optimizer_ms;
}

double rt_overlapped_ms(const rt_step_parts *parts, double micro_steps)
{
    double gpu = gpu_ms(parts, micro_steps), host = micro_steps * parts->host_ms;
    double longer = fmax(gpu, host), ratio = longer > 0 ? fmin(gpu, host) / longer : 0, squared = ratio * ratio;
    return longer * sqrt(sqrt(1 + squared * squared)) + micro_steps * parts->wait_ms;
}

rt_step_parts rt_divide_step(const mdot_job *job, const rt_resolved_configuration *queried, double step_ms)
{
    rt_roofline r = rt_roofline_of(job, queried);
    double roofline_ms = queried->micro_steps * (r.forward_ms + r.backward_ms) + r.optimizer_ms;
    if (!(roofline_ms > 0)) return (rt_step_parts){.wait_ms = step_ms / queried->micro_steps};
    double gpu = fmin(roofline_ms / ATTAINABLE_EFFICIENCY, step_ms), scale = gpu / roofline_ms;
    rt_step_parts parts = {.optimizer_ms = scale * r.optimizer_ms, .wait_ms = (step_ms - gpu) / queried->micro_steps};
    for (int pass = 0; pass < RT_PASS_COUNT; pass++)
        for (int work = 0; work < RT_WORK_COUNT; work++) parts.pass_ms[pass][work] = scale * r.pass_ms[pass][work];
    return parts;
}

static double ratio_of(double requested, double queried) { return queried > 0 ? requested / queried : 1; }

bool rt_replaces_fused_kernels(const rt_resolved_configuration *requested, const mdot_job *job,
                               const rt_step_parts *parts)
{
    bool is_training = requested->configuration.c.mode == MDOT_MODE_TRAIN;
    return parts->is_learned && is_training && requested->fused > 0 && !job->analysis->totals.is_convolutional;
}

/* Replaces the time of kernels that the framework fuses. Eager kernels have learned times. */
static void fuse_others(const rt_resolved_configuration *requested, const mdot_job *job, rt_step_parts *parts)
{
    double fused_ms[RT_PASS_COUNT];
    rt_fused_ms(job, requested, fused_ms);
    for (int pass = 0; pass < RT_PASS_COUNT; pass++) {
        double *ms = &parts->pass_ms[pass][RT_WORK_OTHER];
        *ms += requested->fused * (fused_ms[pass] - *ms);
    }
}

static double attention_ratio(const rt_resolved_configuration *requested, const mdot_job *job, rt_pass pass)
{
    const rt_job_totals *t = &job->analysis->totals;
    double causal = t->attention_flops > 0 ? t->causal_flops / t->attention_flops : 0;
    return rt_framework_attention(&requested->configuration, pass == RT_PASS_FORWARD, causal);
}

/* Finds the passes' roofline. The key has zeros for numbers on which the roofline does not depend. */
static const rt_roofline *find_roofline(const mdot_job *job, const rt_resolved_configuration *typical,
                                        struct rt_typical_roofline *last)
{
    rt_resolved_configuration key = *typical;
    key.configuration.c.batch = key.configuration.c.accumulate = key.configuration.c.micro_batches = 0;
    key.micro_steps = key.slowest_host = key.in_flight = 0;
    if (!rt_is_fp8(key.configuration.c.precision)) key.steps = 0; /* engines cast weights once a step */
    if (memcmp(&key, &last->key, sizeof key) != 0) {
        last->key = key;
        last->roofline = rt_roofline_of(job, typical);
    }
    return &last->roofline;
}

/* Multiplies the parts by ratios of rooflines at a typical batch. */
static void convert_passes(const rt_resolved_configuration *requested, const rt_resolved_configuration *queried,
                           const mdot_job *job, rt_typical_rooflines *last, rt_step_parts *parts)
{
    bool same_work = requested->recomputes_as_program == queried->recomputes_as_program;
    bool same_types = requested->runs_as_program == queried->runs_as_program;
    bool fuses = rt_replaces_fused_kernels(requested, job, parts);
    bool same_steps = rt_equal_micro_steps(&requested->configuration, &queried->configuration) && !fuses;
    if (same_steps && same_work && same_types && attention_ratio(requested, job, RT_PASS_FORWARD) == 1) return;
    rt_resolved_configuration typical = rt_with_micro_batch(requested, TYPICAL_BATCH);
    rt_resolved_configuration typical_queried = rt_with_micro_batch(queried, TYPICAL_BATCH);
    if (fuses) typical.fused = queried->fused;
    typical_queried.shard = requested->shard; /* because the predictor reads the operators of the requested shard */
    const rt_roofline *after = find_roofline(job, &typical, &last->requested),
                      *before = find_roofline(job, &typical_queried, &last->queried);
    for (int pass = 0; pass < RT_PASS_COUNT; pass++)
        for (int work = 0; work < RT_WORK_COUNT; work++)
            parts->pass_ms[pass][work] *= ratio_of(after->pass_ms[pass][work], before->pass_ms[pass][work]);
    if (fuses) fuse_others(requested, job, parts);
    double cast_ms = 0;
    if (after->prepared_ms[RT_PASS_FORWARD] + after->prepared_ms[RT_PASS_BACKWARD] > 0) { /* whatever the batch is */
        rt_roofline now = rt_roofline_of(job, requested);
        for (int pass = 0; pass < RT_PASS_COUNT; pass++) parts->pass_ms[pass][RT_WORK_LINEAR] += now.prepared_ms[pass];
        cast_ms = rt_framework_casts_ms(&requested->configuration, requested->slowest_host * now.casts);
    }
    double rings = requested->configuration.c.context_parallel, ring_loss = 1 + RING_LOSS * (rings - 1) / rings;
    for (int pass = 0; pass < RT_PASS_COUNT; pass++)
        parts->pass_ms[pass][RT_WORK_ATTENTION] *= ring_loss * attention_ratio(requested, job, (rt_pass)pass);
    double launched = 1 - (requested->fused - queried->fused) * job->analysis->chained_part;
    double part = requested->shard.of[RT_PIPELINE_BLOCKS] * requested->slowest_host;
    double expert_blocks = part * job->analysis->sharding.experts.exchange_count / 2.0;
    double attentions = part * job->analysis->totals.attention_count;
    parts->host_ms = requested->slowest_host * launched * parts->host_ms +
                     rt_framework_pass_ms(&requested->configuration, expert_blocks, attentions) + cast_ms;
    parts->wait_ms *= launched;
    if (requested->configuration.c.recompute == queried->configuration.c.recompute && same_work) return;
    rt_resolved_configuration same_kernels = rt_with_kernels_of(&typical, queried);
    const rt_roofline *again = find_roofline(job, &same_kernels, &last->same_kernels);
    double work = fmax(ratio_of(again->forward_ms + again->backward_ms, before->forward_ms + before->backward_ms), 1);
    parts->host_ms *= work;
    parts->wait_ms *= work;
}

/* A power limit slows the GPU's kernels down, and exchanges hide behind the slower ones. Links, the host and its memory
 * keep their rates. Returns the factor. */
static double slow_down(const rt_resolved_configuration *requested, const mdot_job *job, rt_step_parts *parts)
{
    if (requested->configuration.c.power_limit == 0) return 1;
    rt_roofline_terms terms = rt_step_roofline_terms(job, requested);
    double slowdown = rt_power_slowdown(&requested->configuration, &terms, gpu_ms(parts, requested->micro_steps));
    if (!(slowdown > 1 + NEGLIGIBLE_CHANGE)) return 1;
    for (int pass = 0; pass < RT_PASS_COUNT; pass++)
        for (int work = 0; work < RT_WORK_COUNT; work++) parts->pass_ms[pass][work] *= slowdown;
    parts->optimizer_ms *= slowdown;
    return slowdown;
}

/* Waits for exchanges and transfers, which hide behind the passes, whatever the optimizer costs. */
static double find_waits(const rt_resolved_configuration *requested, const mdot_job *job, const rt_step_parts *parts,
                         bool exchanges, double *out_exchanged_ms, double *out_transferred_ms, double *out_passes_ms)
{
    rt_step_parts passes = *parts;
    passes.optimizer_ms = 0;
    *out_passes_ms = rt_overlapped_ms(&passes, requested->micro_steps);
    /* how much longer the passes take because the GPU waits for the host */
    double stretch = ratio_of(*out_passes_ms, requested->micro_steps * passes_ms(parts));
    double forward_ms = stretch * pass_ms(parts, RT_PASS_FORWARD),
           backward_ms = stretch * pass_ms(parts, RT_PASS_BACKWARD);
    *out_exchanged_ms = exchanges ? rt_communication_ms(job, requested, backward_ms) : 0;
    *out_transferred_ms =
        rt_host_memory_ms(job, requested, requested->steps * forward_ms, requested->steps * backward_ms);
    return *out_exchanged_ms + *out_transferred_ms;
}

static rt_correction correct_configuration(const rt_resolved_configuration *requested,
                                           const rt_resolved_configuration *queried, const mdot_job *job,
                                           const rt_step_parts *queried_parts, rt_typical_rooflines *last)
{
    const mdot_configuration *rc = &requested->configuration.c, *qc = &queried->configuration.c;
    double step_ms = rt_overlapped_ms(queried_parts, queried->micro_steps);
    rt_correction none = {.step_ms = step_ms, .interval_factor = 1, .parts = *queried_parts};
    bool attention_differs = job->analysis->totals.has_attention && rc->attention != qc->attention;
    bool precision_differs = rc->precision != qc->precision;
    bool recompute_differs = requested->recomputes_as_program != queried->recomputes_as_program;
    bool types_differ = requested->runs_as_program != queried->runs_as_program;
    bool differs = recompute_differs || types_differ || rt_replaces_fused_kernels(requested, job, queried_parts) ||
                   attention_ratio(requested, job, RT_PASS_FORWARD) != 1 || rt_sparse_update_ms(job, requested) > 0;
    bool is_same = !rt_is_corrected(rc, qc) && !precision_differs && !attention_differs && !differs;
    if (is_same && rc->power_limit == 0) return none;
    rt_step_parts parts = *queried_parts;
    double counted = rt_overlapped_ms(&parts, requested->steps);
    convert_passes(requested, queried, job, last, &parts);
    double products = rt_orthogonalisation_ms(job, requested, &requested->shard),
           moved = rt_optimizer_ms(job, requested, &requested->shard) - products;
    parts.optimizer_ms *= ratio_of(moved, rt_optimizer_ms(job, queried, &requested->shard));
    parts.optimizer_ms += products / MATMUL_EFFICIENCY + rt_sparse_update_ms(job, requested);
    double unlimited = rt_overlapped_ms(&parts, requested->micro_steps), slowdown = slow_down(requested, job, &parts);
    if (is_same && slowdown == 1) return none;
    double step = rt_overlapped_ms(&parts, requested->micro_steps), limited = step / unlimited;
    bool exchanges = rc->gpu_count != qc->gpu_count || qc->tensor_parallel != rc->tensor_parallel || rc->servers > 0;
    double exchanged, transferred, passes_step;
    double waited = find_waits(requested, job, &parts, exchanges, &exchanged, &transferred, &passes_step);
    double launched = rt_launch_ms(job, requested, step - passes_step);
    step += waited + launched;
    rt_step_parts fastest = parts;
    fastest.host_ms = 0;
    double least = 0, of[3];
    if (waited > 0 && parts.host_ms > 0) /* a slower host hides more than it costs beside a long update */
        least = rt_overlapped_ms(&fastest, requested->micro_steps) +
                find_waits(requested, job, &fastest, exchanges, &of[0], &of[1], &of[2]);
    double shown = fmax(least - step, 0);
    step += shown;
    if (!(step > 0 && isfinite(step)) || !(counted > 0)) return none;
    rt_correction corrected = {.step_ms = step,
                               .interval_factor =
                                   exp(INTERVAL_WIDENING * (fabs(log(step / limited / counted)) + log(slowdown))),
                               .is_analytic = true,
                               .exchanges = exchanges,
                               .exchanged_ms = exchanged,
                               .transferred_ms = transferred,
                               .launched_ms = launched,
                               .shown_ms = shown,
                               .parts = parts};
    /* for most networks, PyTorch's default differs from the queried precision in only a layer or two */
    bool by_default = rc->precision == MDOT_PRECISION_PYTORCH && !attention_differs && !rt_is_corrected(rc, qc);
    if (by_default && fabs(step / step_ms - 1) < NEGLIGIBLE_CHANGE) {
        corrected.interval_factor = 1;
        corrected.is_analytic = false;
    }
    return corrected;
}

double rt_host_share(const rt_step_parts *parts, double micro_steps)
{
    double gpu = gpu_ms(parts, micro_steps), host = micro_steps * parts->host_ms;
    if (!(host > 0)) return ratio_of(micro_steps * parts->wait_ms, gpu + micro_steps * parts->wait_ms);
    double ratio = gpu / host, squared = ratio * ratio;
    return 1 / (1 + squared * squared);
}

static bool may_be_megatron(const rt_resolved_configuration *requested, const mdot_job *job)
{
    return requested->assumes_framework && requested->configuration.c.gpu_count > 1 &&
           job->analysis->totals.has_attention;
}

static double launch_log(const rt_resolved_configuration *requested)
{
    const rt_configuration *c = &requested->configuration;
    if (c->c.framework != MDOT_FRAMEWORK_MEGATRON) return requested->assumes_framework ? HOST_LOG : STATED_LOG;
    return hypot(MEGATRON_LOG, c->gpu.compute_capability > 8 ? NEW_GPU_LOG : 0);
}

static double work_ms(const rt_step_parts *parts, rt_work work)
{
    return parts->pass_ms[RT_PASS_FORWARD][work] + parts->pass_ms[RT_PASS_BACKWARD][work];
}

static double squared(double x) { return x * x; }

static double language_log(const mdot_configuration *c, double capability, bool has_experts, bool fuses)
{
    double sum = squared(LANGUAGE_LOG) + squared(NODES_LOG * log2(c->node_count));
    if (!rt_is_half(c->precision)) sum += squared(FULL_LOG);
    if (has_experts) sum += squared(EXPERTS_LOG);
    if (fuses) sum += squared(FUSED_LOG);
    if (capability > 8) sum += squared(NEW_GPU_LOG);
    if (rt_is_fp8(c->precision)) sum += squared(FP8_LOG);
    if (c->frozen_weights != MDOT_FROZEN_UNCHANGED) sum += squared(QUANTISED_LOG);
    if (c->tensor_parallel > 1 || c->pipeline_parallel > 1) sum += squared(DIVIDED_LOG);
    return sqrt(sum);
}

static double image_log(const mdot_configuration *c, double capability)
{
    bool is_full = c->precision == MDOT_PRECISION_FP32, is_server = capability >= 9 && capability < 12;
    if (c->mode == MDOT_MODE_TRAIN && is_full && is_server) return FAR_IMAGE_LOG;
    if (c->mode == MDOT_MODE_TRAIN) return hypot(IMAGE_LOG, capability > 8 ? NEW_GPU_LOG : 0);
    return !rt_is_half(c->precision) || is_server ? FAR_IMAGE_LOG : INFERENCE_LOG;
}

/* Half-width for a kind of network on a GPU of the published steps; 0 for others. */
static double known_log(const rt_resolved_configuration *requested, const mdot_job *job, const rt_step_parts *parts)
{
    const mdot_configuration *c = &requested->configuration.c;
    double capability = requested->configuration.gpu.compute_capability;
    bool is_training = c->mode == MDOT_MODE_TRAIN, is_server = capability == 8 || capability == 9 || capability == 10;
    bool has_images = is_server || capability == 7 || (!is_training && capability > 8);
    bool has_experts = job->analysis->sharding.experts.common_count > 0;
    bool is_unknown_layer = has_experts && c->framework != MDOT_FRAMEWORK_MEGATRON;
    bool is_plain = c->offload == MDOT_OFFLOAD_NOTHING && c->servers == 0 && !is_unknown_layer && parts->is_learned;
    if (!is_plain || rt_gpu_is_from_amd(&requested->configuration.gpu)) return 0;
    if (work_ms(parts, RT_WORK_CONVOLUTION) > 0) return has_images ? image_log(c, capability) : 0;
    double matmuls = work_ms(parts, RT_WORK_LINEAR) + work_ms(parts, RT_WORK_ATTENTION);
    bool is_language = job->analysis->totals.has_attention && matmuls > MOST_MATMULS * passes_ms(parts);
    bool fuses = rt_framework_fused(c) > 0;
    return is_language && is_server && is_training ? language_log(c, capability, has_experts, fuses) : 0;
}

/* Factors on the learned times of networks with convolutions on Hopper, where PyTorch's default lets cuDNN choose
 * kernels without a trial. They are those of 184 steps on an H200 (weights/data). With each network left out, the mean
 * error falls from 22.9 to 19.8 %, and the bias from -14.5 to -1.0 %. Compiled code, whose published steps on H100 are
 * tuned by hand, keeps the learned times. */
#define HOPPER_CONVOLUTIONS 1.3
#define HOPPER_CONVOLUTIONS_IN_FP32 1.9
#define HOPPER_INFERENCE 1.35 /* of operators other than matmuls and convolutions */

static void follow_records(const rt_configuration *queried, rt_step_parts *parts)
{
    const mdot_configuration *c = &queried->c;
    bool is_hopper = queried->gpu.compute_capability == 9 && !rt_gpu_is_from_amd(&queried->gpu);
    if (!is_hopper || c->compiled != 0 || !(work_ms(parts, RT_WORK_CONVOLUTION) > 0)) return;
    double convolutions = c->precision == MDOT_PRECISION_FP32 ? HOPPER_CONVOLUTIONS_IN_FP32 : HOPPER_CONVOLUTIONS;
    double others = c->mode == MDOT_MODE_INFERENCE ? HOPPER_INFERENCE : 1;
    for (int pass = 0; pass < RT_PASS_COUNT; pass++) {
        parts->pass_ms[pass][RT_WORK_CONVOLUTION] *= convolutions;
        parts->pass_ms[pass][RT_WORK_OTHER] *= others;
    }
}

/* Power slows down computation, and not traffic: a matmul takes at least THROTTLED_PART times its FLOPs' time at the
 * rate that power leaves, and at most the factor longer. An H100's learned times contain its own throttling, and its
 * largest matmuls take 1.3 (forward) and 1.5 (backward, Llama 3 8B). Slower kernels need less power, so that a higher
 * rate never lengthens them. */
#define THROTTLED_PART 1.4

static void throttle_matmuls(const mdot_job *job, const rt_resolved_configuration *queried, rt_step_parts *parts)
{
    double rate, factor = rt_throttled_matmuls(&queried->configuration, &rate);
    if (factor == 1) return;
    rt_resolved_configuration computing = *queried;
    computing.rates.ms_per_byte = 0;
    rt_roofline flops = rt_roofline_of(job, &computing);
    for (int pass = 0; pass < RT_PASS_COUNT; pass++) {
        double *ms = &parts->pass_ms[pass][RT_WORK_LINEAR];
        *ms = fmax(*ms, fmin(factor * *ms, THROTTLED_PART / rate * flops.pass_ms[pass][RT_WORK_LINEAR]));
    }
}

rt_correction rt_correct(const rt_resolved_configuration *requested, const rt_resolved_configuration *queried,
                         const mdot_job *job, const rt_step_parts *parts, rt_typical_rooflines *last)
{
    rt_step_parts measured = *parts;
    if (rt_gpu_is_from_amd(&queried->configuration.gpu)) {
        rt_roofline r = rt_roofline_of(job, queried);
        for (int pass = 0; pass < RT_PASS_COUNT; pass++) {
            double *ms = &measured.pass_ms[pass][RT_WORK_CONVOLUTION];
            *ms = fmax(*ms, r.cdna_ms[pass]);
            measured.pass_ms[pass][RT_WORK_LINEAR] *= RT_CDNA_MATMULS;
            measured.pass_ms[pass][RT_WORK_ATTENTION] *= RT_CDNA_MATMULS;
        }
    }
    if (measured.is_learned) {
        throttle_matmuls(job, queried, &measured);
        follow_records(&queried->configuration, &measured);
    }
    rt_correction corrected = correct_configuration(requested, queried, job, &measured, last);
    corrected.known_log = known_log(requested, job, &corrected.parts);
    corrected.gpu_share = 1;
    if (requested->configuration.c.host_launch_us == 0) {
        double share = rt_host_share(&corrected.parts, requested->micro_steps), launch = launch_log(requested);
        corrected.gpu_share -= share;
        corrected.host_log = launch * share;
        corrected.slow_host_log = may_be_megatron(requested, job) ? FRAMEWORK_LOG * share : corrected.host_log;
    }
    return corrected;
}
