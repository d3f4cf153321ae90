/* roofline.c — a lower bound of the time of a pass on one GPU, from the rates in its spec values. For each operator
 * and phase it is the larger of the times of computation and memory traffic. No value is fitted. Only ratios of it
 * are used, for the parts of a configuration that a predictor has no input for (analytic_correction.c).
 *
 * Computation. Matmuls run on tensor cores at the rate of the precision. All other operators, and convolutions of
 * one channel per group, run outside them. PyTorch's default computes only convolutions in TF32. bf16 has fp16's
 * rate from compute capability 8.0 on, and the fp32 rate before.
 *
 * Traffic. Each tensor counts once, as in the operators' byte counts, in bytes of the precision. Under autocast this
 * is half of fp32's bytes. Tensors kept in fp32 are widened and narrowed again, which takes twice fp32's bytes.
 * Under autocast, matmuls also read their fp32 parameters and write a copy, once per pass. Decomposed attention
 * writes its scores and reads them again: four times forward and six times backward (matmul, scale and mask,
 * softmax, matmul; and their gradients). Fused attention computes them again in the backward pass: five matmuls
 * instead of four. In compiled code, an operator other than a matmul passes its result on without memory traffic if
 * one such operator is its only reader.
 *
 * Recomputation adds the forward pass of the recomputed operators. The optimizer's load is mdot_optimizer_load's,
 * divided over data-parallel workers by ZeRO.
 */
#include "runtime/perf/resolved_configuration.h"

#define FLOPS_PER_MS 1e9 /* FLOPs/ms of 1 TFLOPS */
#define BYTES_PER_MS 1e6 /* bytes/ms of 1 GB/s */
#define FIRST_BF16_CAPABILITY 8.0
#define SCORE_PASSES_FORWARD 4
#define SCORE_PASSES_BACKWARD 6
#define FLASH_BACKWARD_FLOPS 1.25 /* five matmuls instead of four */
#define MASKED 0.5                /* fraction of the scores that a causal mask removes */

typedef struct rates {
    double flop_ms[RT_RATE_COUNT], byte_ms;
    double half; /* bytes relative to fp32 for tensors in half precision; 1 in full precision */
    double kept; /* bytes relative to fp32 for tensors that autocast keeps in fp32 */
} rates;

/* libm's fmax checks for NaN, in a function call. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static rates rates_of(const rt_resolved_configuration *setup)
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
    return (rates){.flop_ms = {[RT_RATE_VECTOR] = 1 / (gpu->fp32_tflops * FLOPS_PER_MS),
                               [RT_RATE_MATMUL] = 1 / (product * FLOPS_PER_MS),
                               [RT_RATE_CONVOLUTION] = 1 / (convolution * FLOPS_PER_MS)},
                   .byte_ms = 1 / (gpu->memory_gbps * BYTES_PER_MS),
                   .half = half ? 0.5 : 1,
                   .kept = autocast ? 2
                           : half   ? 0.5
                                    : 1};
}

static rt_roofline_terms phase_terms(const rates *r, const rt_roofline_inputs *work, mdot_phase phase,
                                     const rt_resolved_configuration *setup)
{
    const rt_moved *sample = &work->sample[phase], *step = &work->step[phase];
    const mdot_configuration *c = &setup->c;
    double batch = (double)setup->micro_batch, flops = batch * sample->flops + step->flops;
    double bytes = batch * sample->bytes + step->bytes;
    if (phase != MDOT_PHASE_WEIGHT_GRADIENT) {
        double passes = phase == MDOT_PHASE_FORWARD ? SCORE_PASSES_FORWARD : SCORE_PASSES_BACKWARD;
        if (c->attention == MDOT_ATTENTION_EAGER) bytes += passes * batch * work->score_bytes;
        if (c->compiled != 0) bytes = larger(bytes - batch * work->fused_bytes, 0);
    }
    if (work->score_bytes > 0 && c->attention == MDOT_ATTENTION_FLASH && phase == MDOT_PHASE_DATA_GRADIENT)
        flops *= FLASH_BACKWARD_FLOPS;
    bytes *= work->is_kept ? r->kept : r->half;
    if (phase == MDOT_PHASE_FORWARD && work->is_product && r->kept > 1) bytes += 1.5 * sizeof(float) * work->weights;
    double compute_ms = flops * r->flop_ms[work->rate];
    bool skips = work->score_bytes > 0 && c->attention == MDOT_ATTENTION_FLASH;
    return (rt_roofline_terms){compute_ms, bytes * r->byte_ms, skips ? MASKED * compute_ms : 0};
}

/* Number of times that the operator's forward pass is recomputed. */
static double times_again(const rt_roofline_inputs *work, mdot_recompute recompute)
{
    if (recompute == MDOT_RECOMPUTE_BLOCKS) return work->is_in_block ? 1 : 0;
    return recompute == MDOT_RECOMPUTE_SELECTIVE && work->is_selected ? 1 : 0;
}

static void phases_ms(const rates *r, const rt_roofline_inputs *work, const rt_resolved_configuration *setup,
                      double out_ms[MDOT_PHASE_COUNT])
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        rt_roofline_terms effort = phase_terms(r, work, (mdot_phase)phase, setup);
        out_ms[phase] = larger(effort.compute_ms, effort.memory_ms);
    }
    out_ms[MDOT_PHASE_DATA_GRADIENT] += times_again(work, setup->c.recompute) * out_ms[MDOT_PHASE_FORWARD];
}

void rt_operator_roofline(const mdot_job *job, size_t index, const rt_resolved_configuration *setup,
                          const rt_shard *share, double out_ms[MDOT_PHASE_COUNT])
{
    rates r = rates_of(setup);
    rt_roofline_inputs work = rt_roofline_inputs_of(job, index, share);
    phases_ms(&r, &work, setup, out_ms);
}

double rt_optimizer_ms(const rt_resolved_configuration *setup, double parameters)
{
    mdot_load load = mdot_optimizer_load(setup->c.optimizer, parameters);
    double bytes = load.bytes_read + load.bytes_written;
    if (setup->c.precision == MDOT_PRECISION_BF16) bytes /= 2;
    if (setup->c.zero_stage >= 1) bytes /= setup->c.data_parallel;
    return bytes / (setup->gpu.memory_gbps * BYTES_PER_MS);
}

rt_roofline rt_roofline_of(const mdot_job *job, const rt_resolved_configuration *setup, const rt_shard *share)
{
    rt_roofline sum = {.optimizer_ms = rt_optimizer_ms(setup, rt_parameters(job, share))};
    rates r = rates_of(setup);
    for (size_t i = 0; i < job->sharded_groups.count; i++) {
        rt_roofline_inputs room;
        const rt_roofline_inputs *work = rt_get_roofline_inputs(job, i, share, &room);
        double ms[MDOT_PHASE_COUNT], count = work->count * share->of[work->place];
        phases_ms(&r, work, setup, ms);
        sum.forward_ms += count * ms[MDOT_PHASE_FORWARD];
        sum.backward_ms += count * (ms[MDOT_PHASE_DATA_GRADIENT] + ms[MDOT_PHASE_WEIGHT_GRADIENT]);
    }
    return sum;
}

rt_roofline_terms rt_step_roofline_terms(const mdot_job *job, const rt_resolved_configuration *setup)
{
    rt_shard share = rt_resolved_shard(setup, job);
    rt_roofline_terms sum = {0};
    rates r = rates_of(setup);
    for (size_t i = 0; i < job->sharded_groups.count; i++) {
        rt_roofline_inputs room;
        const rt_roofline_inputs *work = rt_get_roofline_inputs(job, i, &share, &room);
        double count = work->count * share.of[work->place];
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            rt_roofline_terms effort = phase_terms(&r, work, (mdot_phase)phase, setup);
            double times = count;
            if (phase == MDOT_PHASE_FORWARD) times += count * times_again(work, setup->c.recompute);
            sum.compute_ms += times * effort.compute_ms;
            sum.memory_ms += times * effort.memory_ms;
            sum.masked_ms += times * effort.masked_ms;
        }
    }
    double passes = (double)setup->c.accumulate * setup->c.micro_batches;
    double update_ms = rt_optimizer_ms(setup, rt_parameters(job, &share));
    return (rt_roofline_terms){passes * sum.compute_ms, passes * sum.memory_ms + update_ms, passes * sum.masked_ms};
}
