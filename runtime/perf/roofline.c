/* roofline.c — a lower bound of the time of a pass on one GPU, from the rates in its spec values. For each operator
 * and phase it is the larger of the times of computation and memory traffic. No value is fitted. Only ratios of it
 * are used, for the parts of a configuration that a predictor has no input for (analytic_correction.c).
 *
 * Computation runs at the rates of gpu_rates.c.
 *
 * Traffic. Each tensor counts once, as in the operators' byte counts, in bytes of the precision. Under autocast this
 * is half of fp32's bytes. Tensors kept in fp32 are widened and narrowed again, which takes twice fp32's bytes.
 * Under autocast, matmuls also read their fp32 parameters and write a copy, once per pass. Decomposed attention
 * writes its scores and reads them again: four times forward and six times backward (matmul, scale and mask,
 * softmax, matmul; and their gradients). Fused attention computes them again in the backward pass: five matmuls
 * instead of four. In compiled code, an operator other than a matmul passes its result on without memory traffic if
 * one such operator is its only reader. Other frameworks save a part of that (framework.c).
 *
 * Context parallelism divides the part that grows with the samples. Sequence parallelism does so for operators in
 * blocks that tensor parallelism replicates.
 *
 * Loss. In parts, the matmul of the logits reads its weights once for each part, and adds the parts' gradients of its
 * weights to each other, which are kernels of their own. torchtune's chunked loss and Liger's fused one do so. The
 * latter reads the logits twice and writes their gradient over them, in the type of computation. Therefore the loss
 * has no backward operation. Launches of the smaller kernels are omitted, because the GPU has enough work meanwhile.
 *
 * Recomputation adds the forward pass of the recomputed operators. Quantised frozen weights are dequantised before each
 * use: they are read, and a copy is written. optimizer_update.c has the time of the optimizer.
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/cdna.h"
#include "runtime/perf/framework.h"
#include "runtime/perf/step_time.h"

#define SCORE_PASSES_FORWARD 4
#define SCORE_PASSES_BACKWARD 6
#define FLASH_BACKWARD_FLOPS 1.25 /* five matmuls instead of four */
#define ADDED_TENSORS 3           /* a sum in place reads two tensors and writes one */
#define MASKED 0.5                /* fraction of scores that a causal mask removes */

/* libm's fmax checks for NaN, in a function call. */
static double larger(double a, double b) { return a > b ? a : b; }

/* A matmul of a program that mixes types by hand runs at the rates of its own type. */
static const rt_rates *rates_of(const rt_roofline_inputs *inputs, const rt_resolved_configuration *resolved)
{
    return inputs->kind.ran_in_other_type && resolved->runs_as_program ? &resolved->other_rates : &resolved->rates;
}

static rt_roofline_terms phase_terms(const rt_roofline_inputs *inputs, mdot_phase phase,
                                     const rt_resolved_configuration *resolved)
{
    const rt_flops_and_bytes *sample = &inputs->sample[phase], *step = &inputs->step[phase];
    const mdot_configuration *c = &resolved->configuration.c;
    const rt_rates *rates = rates_of(inputs, resolved);
    double divisor = inputs->kind.is_replicated ? resolved->sequence * resolved->replicated : resolved->sequence;
    double batch = (double)resolved->configuration.micro_batch;
    if (divisor != 1) batch /= divisor; /* a division takes longer than the rest of most phases */
    double flops = batch * sample->flops + step->flops, bytes = batch * sample->bytes + step->bytes;
    if (phase != MDOT_PHASE_WEIGHT_GRADIENT) {
        double passes = phase == MDOT_PHASE_FORWARD ? SCORE_PASSES_FORWARD : SCORE_PASSES_BACKWARD;
        if (c->attention == MDOT_ATTENTION_EAGER) bytes += passes * batch * inputs->score_bytes;
        if (resolved->fused > 0) bytes = larger(bytes - resolved->fused * batch * inputs->fused_bytes, 0);
    }
    if (inputs->score_bytes > 0 && c->attention == MDOT_ATTENTION_FLASH && phase == MDOT_PHASE_DATA_GRADIENT)
        flops *= FLASH_BACKWARD_FLOPS;
    bool is_fused_loss = inputs->kind.is_loss && c->loss == MDOT_LOSS_FUSED && c->mode == MDOT_MODE_TRAIN;
    if (is_fused_loss && phase == MDOT_PHASE_FORWARD) {
        flops += batch * inputs->sample[MDOT_PHASE_DATA_GRADIENT].flops + inputs->step[MDOT_PHASE_DATA_GRADIENT].flops;
        bytes += batch * inputs->sample[MDOT_PHASE_DATA_GRADIENT].bytes + inputs->step[MDOT_PHASE_DATA_GRADIENT].bytes;
    }
    if (is_fused_loss && phase == MDOT_PHASE_DATA_GRADIENT) flops = bytes = 0;
    bytes *= inputs->kind.is_fp32 && !is_fused_loss ? rates->fp32_byte_ratio : rates->half_byte_ratio;
    if (phase == MDOT_PHASE_FORWARD && inputs->kind.uses_tensor_cores && rates->fp32_byte_ratio > 1)
        bytes += 1.5 * sizeof(float) * inputs->weights;
    double compute_ms = flops * rates->ms_per_flop[inputs->kind.rate];
    bool skips = inputs->score_bytes > 0 && c->attention == MDOT_ATTENTION_FLASH;
    return (rt_roofline_terms){compute_ms, bytes * rates->ms_per_byte, skips ? MASKED * compute_ms : 0};
}

/* Fractions of the memory bandwidth that kernels which prepare operands reach. NF4 kernels look up and scale each
 * element: the weights of Mistral 7B take 33 ms a pass on an A100, where their bytes take 9 (fms_hf_finetuning: the
 * constant part of steps with 4 to 32 samples, with and without NF4). A model loaded in fp32 takes 87 ms, because the
 * kernel then writes fp32 and another one converts. */
#define DEQUANTISATION_EFFICIENCY 0.26
#define CAST_EFFICIENCY 0.8

/* Time of the kernel that dequantises frozen weights before the phase: it reads them and writes a copy. */
static double dequantisation_ms(const rt_roofline_inputs *inputs, mdot_phase phase,
                                const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    bool reads_weights = inputs->kind.uses_tensor_cores && phase != MDOT_PHASE_WEIGHT_GRADIENT;
    if (c->frozen_weights == MDOT_FROZEN_UNCHANGED || !reads_weights) return 0;
    double bytes = rt_frozen_width(c, 0) + resolved->widths.compute;
    return bytes * inputs->frozen_weights * resolved->rates.ms_per_byte / DEQUANTISATION_EFFICIENCY;
}

/* Kernel time to cast a matmul's two operands to FP8 before the phase. */
static double cast_ms(const rt_roofline_inputs *inputs, mdot_phase phase, const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    if (!rt_is_fp8(c->precision) || inputs->kind.rate != RT_RATE_LINEAR || inputs->sample[phase].flops == 0) return 0;
    double samples = (double)resolved->configuration.micro_batch / resolved->sequence;
    double operand = samples * inputs->operand, result = samples * inputs->result;
    double elements = phase == MDOT_PHASE_FORWARD         ? operand + inputs->weights
                      : phase == MDOT_PHASE_DATA_GRADIENT ? result + inputs->weights
                                                          : operand + result;
    /* An engine keeps casts and transposes: of weights for a step, of others for the backward pass. */
    if (rt_framework_is_engine(c))
        elements = phase == MDOT_PHASE_FORWARD         ? operand + inputs->weights / resolved->steps
                   : phase == MDOT_PHASE_DATA_GRADIENT ? result
                                                       : 0;
    return rt_framework_cast_bytes(c) * elements * resolved->rates.ms_per_byte / CAST_EFFICIENCY;
}

static bool prepares_operands(const mdot_configuration *c)
{
    return c->frozen_weights != MDOT_FROZEN_UNCHANGED || rt_is_fp8(c->precision);
}

/* Kernel time to prepare a matmul's operands. */
static double preparation_ms(const rt_roofline_inputs *inputs, mdot_phase phase,
                             const rt_resolved_configuration *resolved)
{
    return dequantisation_ms(inputs, phase, resolved) + cast_ms(inputs, phase, resolved);
}

/* Number of operands in the operator's products that kernels cast to FP8 in a phase. */
static double casts_in(const rt_roofline_inputs *inputs, int phase, const rt_resolved_configuration *resolved)
{
    bool is_fp8 = rt_is_fp8(resolved->configuration.c.precision) && inputs->kind.rate == RT_RATE_LINEAR;
    return is_fp8 && inputs->sample[phase].flops > 0 ? 2 : 0;
}

/* Number of recomputations of the operator's forward pass. */
static double times_again(const rt_roofline_inputs *inputs, const rt_resolved_configuration *resolved)
{
    mdot_recompute recompute = resolved->configuration.c.recompute;
    if (recompute == MDOT_RECOMPUTE_BLOCKS) return inputs->kind.is_in_block ? 1 : 0;
    if (recompute == MDOT_RECOMPUTE_NOTHING) return resolved->recomputes_as_program ? inputs->kind.recomputations : 0;
    return inputs->kind.is_selected ? 1 : 0;
}

/* Inference has a forward pass only. */
static int phase_count(const rt_resolved_configuration *resolved)
{
    return resolved->configuration.c.mode == MDOT_MODE_INFERENCE ? MDOT_PHASE_FORWARD + 1 : MDOT_PHASE_COUNT;
}

/* `prepares` is prepares_operands's, which callers evaluate once for all operators. */
static inline void phases_ms(const rt_roofline_inputs *inputs, const rt_resolved_configuration *resolved, bool prepares,
                             double out_ms[MDOT_PHASE_COUNT])
{
    int phases = phase_count(resolved);
    for (int phase = 0; phase < phases; phase++) {
        rt_roofline_terms terms = phase_terms(inputs, (mdot_phase)phase, resolved);
        out_ms[phase] = larger(terms.compute_ms, terms.memory_ms);
    }
    for (int phase = phases; phase < MDOT_PHASE_COUNT; phase++) out_ms[phase] = 0;
    for (int phase = 0; phase < phases && prepares; phase++)
        out_ms[phase] += preparation_ms(inputs, (mdot_phase)phase, resolved);
    out_ms[MDOT_PHASE_DATA_GRADIENT] += times_again(inputs, resolved) * out_ms[MDOT_PHASE_FORWARD];
}

/* The inputs of operator `index` on one GPU. */
static rt_roofline_inputs inputs_of_operator(const mdot_job *job, size_t index, const rt_shard *shard)
{
    const rt_analysis *a = job->analysis;
    return rt_roofline_inputs_of(job, &a->sharding, a->op_costs.fusing, index, shard);
}

/* Time that the matmul of the logits takes longer in each phase because the loss is computed in parts. False if it is
 * computed at once. */
static bool parts_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double out_ms[MDOT_PHASE_COUNT])
{
    size_t logits = job->analysis->totals.logits;
    double more = 1 / rt_loss_part(job, logits, resolved->configuration.c.loss) - 1;
    if (more <= 0) return false;
    rt_roofline_inputs inputs = inputs_of_operator(job, logits - 1, &resolved->shard);
    double ms_per_byte = resolved->rates.half_byte_ratio * resolved->rates.ms_per_byte;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        out_ms[phase] = 0;
        if (phase >= phase_count(resolved) || inputs.sample[phase].flops == 0) continue;
        rt_roofline_terms terms = phase_terms(&inputs, (mdot_phase)phase, resolved);
        double again_ms = more * ms_per_byte * inputs.step[phase].bytes; /* a tied head reads the weights of a table */
        out_ms[phase] =
            larger(terms.compute_ms, terms.memory_ms + again_ms) - larger(terms.compute_ms, terms.memory_ms);
        if (phase == MDOT_PHASE_WEIGHT_GRADIENT) out_ms[phase] += ADDED_TENSORS * again_ms;
    }
    return true;
}

/* The operators are those of the job, at any batch. */
static bool is_whole(const rt_shard *shard)
{
    return shard->tensor == 1 && shard->experts == 1 && shard->square_batch == 0;
}

/* The inputs of group i on one GPU: the job's own, or in *buffer. */
static const rt_roofline_inputs *inputs_of_group(const mdot_job *job, size_t i, const rt_shard *shard,
                                                 rt_roofline_inputs *buffer)
{
    const rt_analysis *a = job->analysis;
    size_t stored = shard->experts == 1 && shard->square_batch == 0 ? 0 : RT_STORED_SHARDS;
    while (stored < RT_STORED_SHARDS && 1 << stored != shard->tensor) stored++;
    if (stored < RT_STORED_SHARDS) return &a->roofline_inputs[stored * a->sharded_groups.count + i];
    *buffer = inputs_of_operator(job, a->sharded_groups.items[i].first, shard);
    buffer->count = a->sharded_groups.items[i].count;
    return buffer;
}

/* The part of the logits' matmul in a pipeline stage. */
static double part_with_logits(const mdot_job *job, const rt_shard *shard)
{
    return shard->of[job->analysis->sharding.position[job->analysis->totals.logits - 1]];
}

void rt_operator_roofline(const mdot_job *job, size_t index, const rt_resolved_configuration *resolved,
                          double out_ms[MDOT_PHASE_COUNT])
{
    rt_roofline_inputs inputs = inputs_of_operator(job, index, &resolved->shard);
    phases_ms(&inputs, resolved, prepares_operands(&resolved->configuration.c), out_ms);
    double parts[MDOT_PHASE_COUNT];
    if (index + 1 != job->analysis->totals.logits || !parts_ms(job, resolved, parts)) return;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) out_ms[phase] += parts[phase];
}

rt_roofline rt_roofline_of(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const rt_shard *shard = &resolved->shard;
    rt_roofline sum = {.optimizer_ms = rt_optimizer_ms(job, resolved, shard)};
    const mdot_gpu *gpu = &resolved->configuration.gpu;
    bool is_cdna = rt_gpu_is_from_amd(gpu);
    bool prepares = prepares_operands(&resolved->configuration.c);
    for (size_t i = 0; i < job->analysis->sharded_groups.count; i++) {
        rt_roofline_inputs buffer;
        const rt_roofline_inputs *inputs = inputs_of_group(job, i, shard, &buffer);
        double ms[MDOT_PHASE_COUNT], count = inputs->count * shard->of[inputs->kind.position];
        phases_ms(inputs, resolved, false, ms);
        for (int phase = 0; is_cdna && inputs->work == RT_WORK_CONVOLUTION && phase < MDOT_PHASE_COUNT; phase++) {
            rt_pass pass = phase == MDOT_PHASE_FORWARD ? RT_PASS_FORWARD : RT_PASS_BACKWARD;
            double times = rt_cdna_convolution(gpu, (rt_grouping)inputs->grouping, (mdot_phase)phase);
            sum.cdna_ms[pass] += count * times * ms[phase];
        }
        if (prepares) {
            double forward_ms = count * preparation_ms(inputs, MDOT_PHASE_FORWARD, resolved);
            for (int phase = 0; phase < phase_count(resolved); phase++)
                sum.casts += count * casts_in(inputs, phase, resolved);
            sum.prepared_ms[RT_PASS_FORWARD] += forward_ms;
            for (int phase = MDOT_PHASE_DATA_GRADIENT; phase < phase_count(resolved); phase++)
                sum.prepared_ms[RT_PASS_BACKWARD] += count * preparation_ms(inputs, (mdot_phase)phase, resolved);
            sum.prepared_ms[RT_PASS_BACKWARD] += times_again(inputs, resolved) * forward_ms;
        }
        sum.pass_ms[RT_PASS_FORWARD][inputs->work] += count * ms[MDOT_PHASE_FORWARD];
        sum.pass_ms[RT_PASS_BACKWARD][inputs->work] +=
            count * (ms[MDOT_PHASE_DATA_GRADIENT] + ms[MDOT_PHASE_WEIGHT_GRADIENT]);
    }
    double parts[MDOT_PHASE_COUNT];
    if (parts_ms(job, resolved, parts)) {
        double part = part_with_logits(job, shard);
        sum.prepared_ms[RT_PASS_FORWARD] += part * parts[MDOT_PHASE_FORWARD];
        sum.prepared_ms[RT_PASS_BACKWARD] +=
            part * (parts[MDOT_PHASE_DATA_GRADIENT] + parts[MDOT_PHASE_WEIGHT_GRADIENT]);
    }
    sum.forward_ms = sum.prepared_ms[RT_PASS_FORWARD];
    sum.backward_ms = sum.prepared_ms[RT_PASS_BACKWARD];
    for (int work = 0; work < RT_WORK_COUNT; work++) {
        sum.forward_ms += sum.pass_ms[RT_PASS_FORWARD][work];
        sum.backward_ms += sum.pass_ms[RT_PASS_BACKWARD][work];
    }
    return sum;
}

/* Part of the memory bandwidth that fused kernels reach. */
#define FUSED_EFFICIENCY 0.8

/* Megatron's loss divides the vocabulary, and runs a kernel for each of its terms in fp32. The bytes for a logit are
 * cast 6, maximum 4, difference 8, exponential 8, sum 4 and quotient 8 forward, and product 8 and cast 6 backward
 * (megatron/core/tensor_parallel/cross_entropy.py). The job's loss reads 4. */
static const double loss_passes[] = {[MDOT_PHASE_FORWARD] = 38 / 4.0, [MDOT_PHASE_DATA_GRADIENT] = 14 / 4.0};

/* Time of one of `inputs` in a fused kernel, whose backward pass computes both gradients at once. */
static void fused_phases_ms(const rt_roofline_inputs *inputs, const rt_resolved_configuration *resolved,
                            double out_ms[MDOT_PHASE_COUNT])
{
    const mdot_configuration *c = &resolved->configuration.c;
    double samples = (double)resolved->configuration.micro_batch / resolved->sequence;
    double ms_per_byte = resolved->rates.half_byte_ratio * resolved->rates.ms_per_byte / FUSED_EFFICIENCY;
    double ms_per_flop = resolved->rates.ms_per_flop[inputs->kind.rate], compute_ms[MDOT_PHASE_COUNT];
    if (inputs->kind.is_replicated) samples /= resolved->replicated;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        compute_ms[phase] = ms_per_flop * (samples * inputs->sample[phase].flops + inputs->step[phase].flops);
        out_ms[phase] = ms_per_byte * inputs->step[phase].bytes; /* of tables */
    }
    out_ms[MDOT_PHASE_WEIGHT_GRADIENT] =
        larger(out_ms[MDOT_PHASE_WEIGHT_GRADIENT], compute_ms[MDOT_PHASE_WEIGHT_GRADIENT]);
    out_ms[MDOT_PHASE_FORWARD] =
        larger(out_ms[MDOT_PHASE_FORWARD] + ms_per_byte * samples * inputs->kernel_bytes[0], compute_ms[0]);
    out_ms[MDOT_PHASE_DATA_GRADIENT] =
        larger(out_ms[MDOT_PHASE_DATA_GRADIENT] + ms_per_byte * samples * inputs->kernel_bytes[1],
               compute_ms[MDOT_PHASE_DATA_GRADIENT] + compute_ms[MDOT_PHASE_WEIGHT_GRADIENT]);
    bool is_eager = inputs->kind.is_loss && rt_framework_is_engine(c) && c->compiled == 0 && c->loss == MDOT_LOSS_WHOLE;
    for (int phase = 0; is_eager && phase < MDOT_PHASE_WEIGHT_GRADIENT; phase++)
        out_ms[phase] = ms_per_byte / resolved->rates.half_byte_ratio * samples * loss_passes[phase] *
                        inputs->sample[MDOT_PHASE_FORWARD].bytes;
    out_ms[MDOT_PHASE_DATA_GRADIENT] += times_again(inputs, resolved) * out_ms[MDOT_PHASE_FORWARD];
}

void rt_fused_operator_ms(const mdot_job *job, size_t index, const rt_resolved_configuration *resolved,
                          double out_ms[MDOT_PHASE_COUNT])
{
    rt_roofline_inputs inputs = inputs_of_operator(job, index, &resolved->shard);
    fused_phases_ms(&inputs, resolved, out_ms);
}

void rt_fused_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double out_ms[RT_PASS_COUNT])
{
    out_ms[RT_PASS_FORWARD] = out_ms[RT_PASS_BACKWARD] = 0;
    for (size_t i = 0; i < job->analysis->sharded_groups.count; i++) {
        rt_roofline_inputs buffer;
        const rt_roofline_inputs *inputs = inputs_of_group(job, i, &resolved->shard, &buffer);
        if (inputs->work != RT_WORK_OTHER) continue;
        double count = inputs->count * resolved->shard.of[inputs->kind.position], ms[MDOT_PHASE_COUNT];
        fused_phases_ms(inputs, resolved, ms);
        out_ms[RT_PASS_FORWARD] += count * ms[MDOT_PHASE_FORWARD];
        out_ms[RT_PASS_BACKWARD] += count * (ms[MDOT_PHASE_DATA_GRADIENT] + ms[MDOT_PHASE_WEIGHT_GRADIENT]);
    }
}

rt_roofline_terms rt_step_roofline_terms(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const rt_analysis *a = job->analysis;
    const rt_shard *shard = &resolved->shard;
    rt_roofline_terms sum = {0};
    bool prepares = prepares_operands(&resolved->configuration.c);
    /* Fusion by a compiler, and casts of operands, are not linear in the inputs. */
    bool by_kind = is_whole(shard) && resolved->fused == 0 && !prepares;
    size_t inputs_count = by_kind ? a->roofline_sum_count : a->sharded_groups.count;
    for (size_t i = 0; i < inputs_count; i++) {
        rt_roofline_inputs buffer;
        const rt_roofline_inputs *inputs = by_kind ? &a->roofline_sums[i] : inputs_of_group(job, i, shard, &buffer);
        double count = inputs->count * shard->of[inputs->kind.position];
        for (int phase = 0; phase < phase_count(resolved); phase++) {
            rt_roofline_terms terms = phase_terms(inputs, (mdot_phase)phase, resolved);
            double times = phase == MDOT_PHASE_FORWARD ? count * (1 + times_again(inputs, resolved)) : count;
            sum.compute_ms += times * terms.compute_ms;
            sum.memory_ms += times * terms.memory_ms;
            if (prepares) sum.memory_ms += times * preparation_ms(inputs, (mdot_phase)phase, resolved);
            sum.masked_ms += times * terms.masked_ms;
        }
    }
    double parts[MDOT_PHASE_COUNT];
    if (parts_ms(job, resolved, parts))
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            sum.memory_ms += part_with_logits(job, shard) * parts[phase];
    double steps = resolved->steps, update_ms = rt_optimizer_ms(job, resolved, shard);
    return (rt_roofline_terms){steps * sum.compute_ms, steps * sum.memory_ms + update_ms, steps * sum.masked_ms};
}
