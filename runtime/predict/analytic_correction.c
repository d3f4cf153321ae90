/* analytic_correction.c — analytic correction for the parts of a configuration that a predictor has no input for.
 *
 * A predictor reads some of the numbers of a configuration. The others are removed from the queried configuration,
 * and the answer is corrected for the requested one:
 *
 *   step = answer * passes * work * kernels + exchanged
 *
 * The factors are ratios of rooflines, where a step's roofline is passes * (forward + backward) + optimizer
 * (roofline.c). `exchanged` is the time that a step waits for the exchanges between GPUs (communication.c). `passes`
 * counts passes, at the requested batch. The other factors are analytic estimates at one typical batch, so that a
 * step still grows with its batch. The roofline omits the host's time, and only the predictor knows how much of a
 * small batch's time that is.
 *
 * `work` covers recomputation and work on other GPUs, which change the host's work, too. `kernels` covers other
 * kernels (fused attention, compiled code, another precision), which change only the GPU's time. It applies to at
 * most the time that the roofline takes at ATTAINABLE_EFFICIENCY of the GPU's rates. Therefore other kernels save nothing where
 * the host is the limit. A pipeline of p stages takes p - 1 more passes of a micro-batch to fill and empty.
 *
 * Uncertainty: counted passes only multiply; the rest is an analytic estimate that lacks a measurement. Therefore
 * the interval widens, each way, by a quarter of that part's change, as a logarithm. On vTrain's 1,306 steps with
 * tensor parallelism and pipelines, 90 % of the answers are .09 more off than without them, where that part changes
 * .5.
 */
#include "runtime/predict/predict.h"

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

static bool reads_all(rt_configuration_set reads, rt_configuration_set numbers)
{
    return (reads & numbers) == numbers;
}

static bool lacks(rt_configuration_set reads, int number)
{
    return (reads & RT_CONFIGURATION_BIT(number)) == 0;
}

void rt_project_configuration(const rt_resolved_configuration *asked, const mdot_job *job, rt_configuration_set reads,
                              rt_resolved_configuration *out_queried)
{
    rt_resolved_configuration told = *asked;
    mdot_configuration *c = &told.c;
    if (lacks(reads, RT_CONFIGURATION_IS_AMP_BF16) && c->precision == MDOT_PRECISION_AMP_BF16)
        c->precision = MDOT_PRECISION_AMP;
    if (lacks(reads, RT_CONFIGURATION_IS_BF16) && c->precision == MDOT_PRECISION_BF16)
        c->precision = MDOT_PRECISION_AMP;
    if (lacks(reads, RT_CONFIGURATION_IS_PYTORCH) && c->precision == MDOT_PRECISION_PYTORCH)
        c->precision = job->convolves_mostly ? MDOT_PRECISION_TF32 : MDOT_PRECISION_FP32;
    if (lacks(reads, RT_CONFIGURATION_IS_EAGER)) c->attention = MDOT_ATTENTION_EAGER;
    if (lacks(reads, RT_CONFIGURATION_IS_COMPILED)) c->compiled = 0;
    if (lacks(reads, RT_CONFIGURATION_RECOMPUTES_BLOCKS) && c->recompute == MDOT_RECOMPUTE_BLOCKS)
        c->recompute = MDOT_RECOMPUTE_NOTHING;
    if (lacks(reads, RT_CONFIGURATION_RECOMPUTES_SELECTIVELY) && c->recompute == MDOT_RECOMPUTE_SELECTIVE)
        c->recompute = MDOT_RECOMPUTE_NOTHING;
    if (lacks(reads, RT_CONFIGURATION_ACCUMULATE)) c->accumulate = 1;
    if (lacks(reads, RT_CONFIGURATION_TORCH)) c->torch = 0;
    if (!reads_all(reads, PARALLELISM_INPUTS)) {
        c->micro_batches = c->pipeline_parallel = c->tensor_parallel = c->expert_parallel = 1;
        c->zero_stage = 0;
        if (!asked->plain_workers || lacks(reads, RT_CONFIGURATION_GPU_COUNT)) c->gpu_count = 1;
        c->data_parallel = (uint32_t)c->gpu_count;
    }
    *out_queried = told;
}

static bool equal_but_precision(const mdot_configuration *a, const mdot_configuration *b)
{
    return a->compiled == b->compiled && a->recompute == b->recompute && a->accumulate == b->accumulate &&
           a->micro_batches == b->micro_batches && a->pipeline_parallel == b->pipeline_parallel &&
           a->tensor_parallel == b->tensor_parallel && a->zero_stage == b->zero_stage &&
           a->expert_parallel == b->expert_parallel && a->data_parallel == b->data_parallel;
}

static double step_of(const rt_roofline *r, double passes)
{
    return passes * (r->forward_ms + r->backward_ms) + r->optimizer_ms;
}

static rt_resolved_configuration with_kernels_of(const rt_resolved_configuration *setup,
                                                 const rt_resolved_configuration *other)
{
    rt_resolved_configuration changed = *setup;
    changed.c.attention = other->c.attention;
    changed.c.compiled = other->c.compiled;
    changed.c.precision = other->c.precision;
    return changed;
}

/* The fields that determine the time of passes, on one GPU and for one shard of a job. */
static bool equal_passes(const rt_resolved_configuration *a, const rt_resolved_configuration *b)
{
    return a->micro_batch == b->micro_batch && a->c.precision == b->c.precision && a->c.attention == b->c.attention &&
           a->c.compiled == b->c.compiled && a->c.recompute == b->c.recompute;
}

/* Like rt_roofline_of, which visits all operators, but reuses `of_other` if the passes of both configurations are
 * equal. */
static rt_roofline roofline_beside(const mdot_job *job, const rt_resolved_configuration *setup, const rt_shard *share,
                                   const rt_resolved_configuration *other, const rt_roofline *of_other)
{
    if (!equal_passes(setup, other)) return rt_roofline_of(job, setup, share);
    rt_roofline r = *of_other;
    r.optimizer_ms = rt_optimizer_ms(setup, rt_parameters(job, share));
    return r;
}

rt_correction rt_correct(const rt_resolved_configuration *asked, const rt_resolved_configuration *told,
                         const mdot_job *job, double step_ms)
{
    rt_correction none = {.step_ms = step_ms, .wider = 1};
    bool attention_differs = job->attends && asked->c.attention != told->c.attention;
    bool precision_differs = asked->c.precision != told->c.precision;
    if (equal_but_precision(&asked->c, &told->c) && !precision_differs && !attention_differs) return none;
    rt_shard share = rt_resolved_shard(asked, job);
    rt_resolved_configuration typical_asked = *asked, typical_told = *told;
    typical_asked.micro_batch = typical_told.micro_batch = TYPICAL_BATCH;
    rt_resolved_configuration typical_work = with_kernels_of(&typical_asked, told);
    rt_roofline after = rt_roofline_of(job, &typical_asked, &share);
    rt_roofline work = roofline_beside(job, &typical_work, &share, &typical_asked, &after);
    rt_roofline before = roofline_beside(job, &typical_told, &share, &typical_work, &work);
    double passes = (double)asked->c.accumulate * asked->c.micro_batches, queried_micro_steps = rt_micro_steps(told);
    double typical_ms = step_of(&after, rt_micro_steps(asked)), work_ms = step_of(&work, rt_micro_steps(asked));
    double counted = step_ms, of_gpu = 1;
    if (passes != queried_micro_steps || typical_ms != work_ms) {
        rt_roofline now = roofline_beside(job, told, &share, &typical_told, &before);
        counted *= step_of(&now, passes) / step_of(&now, queried_micro_steps);
        of_gpu = fmin(step_of(&now, queried_micro_steps) / ATTAINABLE_EFFICIENCY / step_ms, 1);
    }
    double step = counted * (work_ms / step_of(&before, passes)) * (1 + of_gpu * (typical_ms / work_ms - 1));
    bool exchanges = asked->c.gpu_count != told->c.gpu_count || told->c.tensor_parallel != asked->c.tensor_parallel;
    double exchanged = exchanges ? rt_communication_ms(job, asked, step * after.backward_ms / typical_ms) : 0;
    step += exchanged;
    if (!(step > 0 && isfinite(step)) || !(counted > 0)) return none;
    /* for most networks, PyTorch's default differs from the queried precision in only a layer or two */
    bool by_default =
        asked->c.precision == MDOT_PRECISION_PYTORCH && !attention_differs && equal_but_precision(&asked->c, &told->c);
    if (by_default && fabs(step / step_ms - 1) < NEGLIGIBLE_CHANGE)
        return (rt_correction){step, 1, false, true, exchanges, exchanged};
    return (rt_correction){step, exp(INTERVAL_WIDENING * fabs(log(step / counted))), true, true, exchanges, exchanged};
}
