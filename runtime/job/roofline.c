/* roofline.c — what a pass takes at least of one GPU, by the rates of its figures: for each operator and phase the
 * larger of the times of its arithmetic and of its traffic. Nothing is fitted. Only ratios of it are used, for what
 * a predictor has no input for (modelled.c).
 *
 * Arithmetic. Products run on tensor cores at the rate of the precision, everything else and convolutions of one
 * channel a group outside them. PyTorch's default lets convolutions alone compute in TF32. bf16 has fp16's rate
 * from compute capability 8.0 on, and the fp32 rate before.
 *
 * Traffic. Tensors once, as loads count them, in bytes of the precision: under autocast half of fp32's, but for
 * what is kept in fp32, which is widened and narrowed again, twice fp32's; products also read their fp32 parameters
 * and write a copy, once a pass. Attention that is written out writes its scores and reads them again, four times
 * forward and six times backward (product, scale and mask, softmax, product; and their gradients); fused, it
 * computes them again in the backward pass, one product of five more. Compiled, what is no product hands its result
 * on without memory where one such operator alone reads it.
 *
 * Recomputation adds the forward pass of what is computed again. The optimizer's load is mdot_optimizer_load's,
 * divided over data-parallel workers by ZeRO.
 */
#include "runtime/job/setup.h"

#include <math.h>

#define FLOPS_PER_MS 1e9 /* of a TFLOPS */
#define BYTES_PER_MS 1e6 /* of a GB/s */
#define FIRST_BF16_CAPABILITY 8.0
#define SCORE_PASSES_FORWARD 4
#define SCORE_PASSES_BACKWARD 6
#define FLASH_BACKWARD_FLOPS 1.25 /* five products for four */

typedef struct rates {
    double vector, product, convolution; /* FLOPs a ms */
    double bytes;                        /* a ms */
    double half;                         /* bytes for one of fp32, of what takes half; 1: nothing does */
    double kept;                         /* the same of what autocast keeps in fp32 */
} rates;

static rates rates_of(const rt_setup *setup)
{
    const mdot_gpu *gpu = &setup->gpu;
    bool is_ampere = gpu->compute_capability >= FIRST_BF16_CAPABILITY;
    double product = gpu->fp32_tflops, convolution = product;
    switch (setup->c.precision) {
    case MDOT_PRECISION_FP32:
        break;
    case MDOT_PRECISION_TF32:
        product = convolution = gpu->tf32_tflops;
        break;
    case MDOT_PRECISION_PYTORCH:
        convolution = is_ampere ? gpu->tf32_tflops : gpu->fp32_tflops;
        break;
    case MDOT_PRECISION_AMP:
        product = convolution = gpu->fp16_tflops;
        break;
    case MDOT_PRECISION_AMP_BF16:
    case MDOT_PRECISION_BF16:
        product = convolution = is_ampere ? gpu->fp16_tflops : gpu->fp32_tflops;
        break;
    }
    bool half = rt_is_half(setup->c.precision), autocast = half && setup->c.precision != MDOT_PRECISION_BF16;
    return (rates){gpu->fp32_tflops * FLOPS_PER_MS, product * FLOPS_PER_MS, convolution * FLOPS_PER_MS,
                   gpu->memory_gbps * BYTES_PER_MS, half ? 0.5 : 1,         autocast ? 2 : half ? 0.5 : 1};
}

static double rate_of(const rates *r, const mdot_job_operator *op)
{
    if (!rt_is_product(op)) return r->vector;
    if (op->setting[MDOT_SETTING_KERNEL_W] == 0) return r->product;
    int64_t groups = op->setting[MDOT_SETTING_GROUPS];
    bool is_depthwise = groups > 1 && groups == op->setting[MDOT_SETTING_CHANNELS_IN];
    return is_depthwise ? r->vector : r->convolution;
}

static rt_effort phase_effort(const rates *r, const mdot_job_operator *op, mdot_phase phase, const rt_setup *setup,
                              double fused_bytes)
{
    const mdot_load *sample = &op->per_sample[phase], *step = &op->per_step[phase];
    const mdot_configuration *c = &setup->c;
    double batch = (double)setup->micro_batch, flops = batch * sample->flops + step->flops;
    double bytes = batch * (sample->bytes_read + sample->bytes_written) + step->bytes_read + step->bytes_written;
    double scores = rt_score_bytes(op);
    if (phase != MDOT_PHASE_WEIGHT_GRADIENT) {
        double passes = phase == MDOT_PHASE_FORWARD ? SCORE_PASSES_FORWARD : SCORE_PASSES_BACKWARD;
        if (c->attention == MDOT_ATTENTION_EAGER) bytes += passes * batch * scores;
        if (c->compiled != 0) bytes = fmax(bytes - batch * fused_bytes, 0);
    }
    if (scores > 0 && c->attention == MDOT_ATTENTION_FLASH && phase == MDOT_PHASE_DATA_GRADIENT)
        flops *= FLASH_BACKWARD_FLOPS;
    bytes *= op->facts.autocast == MDOT_AUTOCAST_FULL ? r->kept : r->half;
    if (phase == MDOT_PHASE_FORWARD && rt_is_product(op) && r->kept > 1)
        bytes += 1.5 * sizeof(float) * (op->parameters + op->frozen_parameters);
    return (rt_effort){flops / rate_of(r, op), bytes / r->bytes};
}

static bool is_recomputed(const mdot_job_operator *op, mdot_recompute recompute)
{
    if (recompute == MDOT_RECOMPUTE_BLOCKS) return op->block > 0;
    return recompute == MDOT_RECOMPUTE_SELECTIVE && op->known && !rt_is_product(op);
}

/* By phase, of the forward one again where it is recomputed: `out_again` is 1 or 0. */
static void operator_effort(const mdot_job *job, size_t index, const rt_setup *setup, const rt_share *share,
                            rt_effort out[MDOT_PHASE_COUNT], double *out_again)
{
    rates r = rates_of(setup);
    mdot_job_operator room;
    const mdot_job_operator *op = rt_divided(job, index, share, &room);
    double part = job->division.role[index] == RT_ROLE_DIVIDED ? 1 / share->tensor : 1;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        out[phase] = phase_effort(&r, op, (mdot_phase)phase, setup, part * job->fused_bytes[index]);
    *out_again = is_recomputed(op, setup->c.recompute) ? 1 : 0;
}

void rt_operator_roofline(const mdot_job *job, size_t index, const rt_setup *setup, const rt_share *share,
                          double out_ms[MDOT_PHASE_COUNT])
{
    rt_effort effort[MDOT_PHASE_COUNT];
    double again;
    operator_effort(job, index, setup, share, effort, &again);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        out_ms[phase] = fmax(effort[phase].compute_ms, effort[phase].memory_ms);
    out_ms[MDOT_PHASE_DATA_GRADIENT] += again * out_ms[MDOT_PHASE_FORWARD];
}

double rt_optimizer_ms(const rt_setup *setup, double parameters)
{
    mdot_load load = mdot_optimizer_load(setup->c.optimizer, parameters);
    double bytes = load.bytes_read + load.bytes_written;
    if (setup->c.precision == MDOT_PRECISION_BF16) bytes /= 2;
    if (setup->c.zero_stage >= 1) bytes /= setup->c.data_parallel;
    return bytes / (setup->gpu.memory_gbps * BYTES_PER_MS);
}

rt_roofline rt_roofline_of(const mdot_job *job, const rt_setup *setup, const rt_share *share)
{
    rt_roofline sum = {.optimizer_ms = rt_optimizer_ms(setup, rt_parameters(job, share))};
    for (size_t i = 0; i < job->divided_classes.count; i++) {
        const rt_class *class = &job->divided_classes.items[i];
        double ms[MDOT_PHASE_COUNT], count = class->count * share->of[job->division.place[class->first]];
        rt_operator_roofline(job, class->first, setup, share, ms);
        sum.forward_ms += count * ms[MDOT_PHASE_FORWARD];
        sum.backward_ms += count * (ms[MDOT_PHASE_DATA_GRADIENT] + ms[MDOT_PHASE_WEIGHT_GRADIENT]);
    }
    return sum;
}

rt_effort rt_least_effort(const mdot_job *job, const rt_setup *setup)
{
    rt_share share = rt_setup_share(setup, job);
    rt_effort sum = {0};
    for (size_t i = 0; i < job->divided_classes.count; i++) {
        const rt_class *class = &job->divided_classes.items[i];
        rt_effort effort[MDOT_PHASE_COUNT];
        double again, count = class->count * share.of[job->division.place[class->first]];
        operator_effort(job, class->first, setup, &share, effort, &again);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            double times = count * (phase == MDOT_PHASE_FORWARD ? 1 + again : 1);
            sum.compute_ms += times * effort[phase].compute_ms;
            sum.memory_ms += times * effort[phase].memory_ms;
        }
    }
    double passes = (double)setup->c.accumulate * setup->c.micro_batches;
    double update_ms = rt_optimizer_ms(setup, rt_parameters(job, &share));
    return (rt_effort){passes * sum.compute_ms, passes * sum.memory_ms + update_ms};
}
