/* analytic_correction.c — analytic correction for the parts of a configuration that a predictor has no input for.
 *
 * A predictor reads some of the numbers of a configuration. The others are removed from the queried configuration,
 * and the answer is corrected for the requested one:
 *
 *   step = answer * steps * workload * kernels + exchanged
 *
 * The factors are ratios of rooflines, where a step's roofline is steps * (forward + backward) + optimizer
 * (roofline.c). `exchanged` is the time that a step waits for the exchanges between GPUs (communication.c). `steps`
 * counts micro-steps, at the requested batch. The other factors are analytic estimates at one typical batch, so that a
 * step still grows with its batch. The roofline omits the host's time, and only the predictor knows how much of a
 * small batch's time that is.
 *
 * `workload` covers recomputation and work on other GPUs, which change the host's work, too. `kernels` covers other
 * kernels (fused attention, compiled code, another precision), which change only the GPU's time. It applies to at
 * most the time that the roofline takes at ATTAINABLE_EFFICIENCY of the GPU's rates. Therefore other kernels save
 * nothing where the host is the limit. A pipeline of p stages takes p - 1 more micro-steps to fill and empty.
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
#include "runtime/perf/step_time.h"

#include <math.h>

#define NEGLIGIBLE_CHANGE 0.01
/* Fraction of the roofline's rates that a step reaches if it does not wait for the host. The shipped predictor has
 * .41 to .59 for BERT-base. A larger value would discard part of the time that other kernels save in such a step. */
#define ATTAINABLE_EFFICIENCY 0.4
#define INTERVAL_WIDENING 0.25
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
    if (!reads_all(reads, PARALLELISM_INPUTS)) {
        c->micro_batches = c->pipeline_parallel = c->tensor_parallel = c->expert_parallel = 1;
        c->zero_stage = 0;
        if (!requested->plain_workers || lacks(reads, RT_CONFIGURATION_GPU_COUNT)) c->gpu_count = 1;
        c->data_parallel = (uint32_t)c->gpu_count;
    }
    *out_queried = queried;
}

static double step_of(const rt_roofline *r, double micro_steps)
{
    return micro_steps * (r->forward_ms + r->backward_ms) + r->optimizer_ms;
}

/* Like rt_roofline_of, which visits all operators, but reuses `of_other` if the micro-steps of both configurations are
 * equal. */
static rt_roofline roofline_beside(const mdot_job *job, const rt_resolved_configuration *resolved,
                                   const rt_resolved_configuration *neighbour, const rt_roofline *of_other)
{
    bool equal = rt_equal_micro_steps(&resolved->configuration, &neighbour->configuration) &&
                 resolved->recomputes_as_program == neighbour->recomputes_as_program;
    if (!equal) return rt_roofline_of(job, resolved);
    rt_roofline r = *of_other;
    r.optimizer_ms = rt_optimizer_ms(job, resolved, &resolved->shard);
    return r;
}

static rt_correction correct_configuration(const rt_resolved_configuration *requested,
                                           const rt_resolved_configuration *queried, const mdot_job *job,
                                           double step_ms)
{
    const mdot_configuration *rc = &requested->configuration.c, *qc = &queried->configuration.c;
    rt_correction none = {.step_ms = step_ms, .interval_factor = 1};
    bool attention_differs = job->analysis->totals.has_attention && rc->attention != qc->attention;
    bool precision_differs = rc->precision != qc->precision;
    bool recompute_differs = requested->recomputes_as_program != queried->recomputes_as_program;
    if (!rt_is_corrected(rc, qc) && !precision_differs && !attention_differs && !recompute_differs) return none;
    rt_resolved_configuration typical = rt_with_micro_batch(requested, TYPICAL_BATCH);
    rt_resolved_configuration typical_same_kernels = rt_with_kernels_of(&typical, queried);
    rt_resolved_configuration typical_queried = rt_with_micro_batch(queried, TYPICAL_BATCH);
    typical_queried.shard = requested->shard; /* because the predictor reads the operators of the requested shard */
    rt_roofline after = rt_roofline_of(job, &typical);
    rt_roofline same_kernels = roofline_beside(job, &typical_same_kernels, &typical, &after);
    rt_roofline before = roofline_beside(job, &typical_queried, &typical_same_kernels, &same_kernels);
    double steps = requested->steps;
    double typical_ms = step_of(&after, requested->micro_steps),
           same_kernels_ms = step_of(&same_kernels, requested->micro_steps);
    double counted = step_ms, gpu_fraction = 1;
    if (steps != queried->micro_steps || typical_ms != same_kernels_ms) {
        rt_resolved_configuration of_batch = rt_with_micro_batch(&typical_queried, queried->configuration.micro_batch);
        rt_roofline now = roofline_beside(job, &of_batch, &typical_queried, &before);
        double queried_ms = step_of(&now, queried->micro_steps);
        counted *= step_of(&now, steps) / queried_ms;
        gpu_fraction = fmin(queried_ms / ATTAINABLE_EFFICIENCY / step_ms, 1);
    }
    double step =
        counted * (same_kernels_ms / step_of(&before, steps)) * (1 + gpu_fraction * (typical_ms / same_kernels_ms - 1));
    bool exchanges = rc->gpu_count != qc->gpu_count || qc->tensor_parallel != rc->tensor_parallel;
    double exchanged = exchanges ? rt_communication_ms(job, requested, step * after.backward_ms / typical_ms) : 0;
    double forward_ms = step * after.forward_ms * requested->steps / typical_ms,
           backward_ms = step * after.backward_ms * requested->steps / typical_ms;
    double transferred = rt_host_memory_ms(job, requested, forward_ms, backward_ms);
    double launched = rt_launch_ms(job, requested, step * after.optimizer_ms / typical_ms);
    step += exchanged + transferred + launched;
    if (!(step > 0 && isfinite(step)) || !(counted > 0)) return none;
    /* for most networks, PyTorch's default differs from the queried precision in only a layer or two */
    bool by_default = rc->precision == MDOT_PRECISION_PYTORCH && !attention_differs && !rt_is_corrected(rc, qc);
    if (by_default && fabs(step / step_ms - 1) < NEGLIGIBLE_CHANGE)
        return (rt_correction){step, 1, false, true, exchanges, exchanged, transferred, launched};
    return (rt_correction){.step_ms = step,
                           .interval_factor = exp(INTERVAL_WIDENING * fabs(log(step / counted))),
                           .is_analytic = true,
                           .differs = true,
                           .exchanges = exchanges,
                           .exchanged_ms = exchanged,
                           .transferred_ms = transferred,
                           .launched_ms = launched};
}

rt_correction rt_correct(const rt_resolved_configuration *requested, const rt_resolved_configuration *queried,
                         const mdot_job *job, double step_ms)
{
    rt_correction corrected = correct_configuration(requested, queried, job, step_ms);
    if (requested->configuration.c.power_limit == 0) return corrected;
    rt_roofline_terms terms = rt_step_roofline_terms(job, requested);
    double slowdown = rt_power_slowdown(&requested->configuration, &terms, corrected.step_ms);
    if (slowdown <= 1 + NEGLIGIBLE_CHANGE) return corrected;
    corrected.step_ms *= slowdown;
    corrected.interval_factor *= exp(INTERVAL_WIDENING * log(slowdown));
    corrected.is_analytic = corrected.differs = true;
    return corrected;
}
