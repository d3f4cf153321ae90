/* recorded_memory.c — the memory that was recorded with a job's program (mdot_program.h), for one configuration. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"

#include <math.h>

enum { WEIGHT_BYTES = 4, HALF_BYTES = 2 };

/* The record with the same tensor types and recomputation; otherwise with the same types; otherwise with the same
 * recomputation; otherwise the first. Compiled code prefers its own record, which is selective in place of nothing, and
 * in which a program's own checkpoints recompute, too. */
static size_t nearest_record(const rt_program *p, const rt_activation_case *wanted, const mdot_configuration *c)
{
    size_t nearest = 0;
    int best = 0;
    static const mdot_recompute own[] = {MDOT_RECOMPUTE_SELECTIVE, MDOT_RECOMPUTE_BLOCKS, MDOT_RECOMPUTE_NOTHING};
    for (size_t i = 0; i < p->program.recorded_count; i++) {
        const mdot_recorded_memory *r = &p->records[i];
        int score = 8 * (rt_activation_type_of(r->precision) == wanted->type) +
                    (r->compiled && c->compiled != 0 && r->recompute == own[c->recompute]
                         ? 4
                         : 2 * (r->recompute == wanted->recompute) + !r->compiled);
        if (score <= best) continue;
        best = score;
        nearest = i;
    }
    return nearest;
}

/* Analytic bytes per sample of the requested case on a single GPU. They are whole where the recorded ones are, so that
 * a recorded case has the ratio 1. */
static double analytic_bytes(const mdot_job *job, const rt_resolved_configuration *resolved,
                             const mdot_recorded_memory *record)
{
    rt_activation_case activation_case = resolved->activation_case;
    if (record->compiled) activation_case.recompute = record->recompute;
    activation_case.loss = MDOT_LOSS_WHOLE; /* kept_logits accounts for it */
    return rint(rt_activations_of(&job->analysis->activations, &activation_case)->all);
}

/* The part of the tensors besides the logits that one GPU of tensor and context parallelism has, where a single GPU has
 * `recorded` bytes per sample. The analysis knows the tensors that stay whole, and lacks the masks of dropout, which
 * stay whole, too. They add at most a quarter: one byte for each branch, beside the operand and the result of a
 * normalisation. */
#define LARGEST_EXCESS 1.25

static const rt_activations *without_logits(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    rt_activation_case activation_case = resolved->activation_case;
    if (job->analysis->totals.logits > 0) activation_case.loss = MDOT_LOSS_FUSED;
    return rt_activations_of(&job->analysis->activations, &activation_case);
}

static double analytic_on_gpu(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const rt_activations *a = without_logits(job, resolved);
    return (a->whole / resolved->replicated + (a->all - a->whole) / resolved->shard.tensor) / resolved->sequence;
}

static double sharded_part(const mdot_job *job, const rt_resolved_configuration *resolved, double recorded)
{
    const rt_activations *a = without_logits(job, resolved);
    if (!(a->all > 0) || !(recorded > 0)) return 1 / (resolved->shard.tensor * resolved->sequence);
    double excess = fmin(recorded - a->all, (LARGEST_EXCESS - 1) * a->whole);
    double whole = fmin(excess > 0 ? a->whole + excess : a->whole * recorded / a->all, recorded);
    double on_gpu = whole / resolved->replicated + (recorded - whole) / resolved->shard.tensor;
    return on_gpu / recorded / resolved->sequence;
}

/* The part that fused kernels keep of `on_gpu`, the recorded bytes per sample on one GPU besides the logits. At least
 * as much stays as the analysis expects, because the program may have run fused kernels itself. */
static double fused_part(const mdot_job *job, const rt_resolved_configuration *resolved, double on_gpu)
{
    bool is_autocast = resolved->activation_case.type == RT_ACTIVATION_AMP;
    double inner = rt_inner_bytes(job, resolved, true);
    if (inner == 0 || !(on_gpu > 0)) return 1;
    double expected = analytic_on_gpu(job, resolved) - rt_inner_bytes(job, resolved, is_autocast);
    return fmax(on_gpu - inner, fmin(on_gpu, expected)) / on_gpu;
}

/* The largest moment besides the logits, in bytes per sample. */
static double largest_of(const mdot_recorded_memory *r)
{
    double largest = 0;
    for (size_t i = 0; i < r->moment_count; i++)
        largest = fmax(largest, r->moments[i].per_sample - r->moments[i].logits);
    return largest;
}

/* The part of the tensors as large as the logits that exists at once. With a whole loss these are the logits and their
 * gradient in the type of computation, and up to three fp32 tensors of the loss. Sharded logits have a fourth one,
 * because PyTorch composes the loss (torch/distributed/tensor/parallel/loss.py): the logarithms, the gradient of the
 * picked ones, the exponentials, and the sum of the latter two exist at once. Megatron's loss converts the logits to
 * fp32 and then works in place.
 *
 * A chunked loss has all logits at its end, and keeps the fp32 logarithms of each chunk for the backward pass, beside
 * the fp32 copy of the last chunk. A compiled one keeps the logits alone. Its backward pass then replaces them by their
 * gradient, one chunk after the other, because autograd runs the losses of all chunks before the first matmul. In bf16,
 * MemTracker counts 6.5 bytes for each logit, and 2.25 beside the temporaries that compiled kernels lack.
 *
 * A loss that is fused with the matmul makes logits in parts, each as large as the matmul's operand. */
static double kept_logits(const mdot_job *job, const rt_resolved_configuration *resolved, double recorded)
{
    enum { FULL_TENSORS = 3 };
    const rt_activation_case *activation_case = &resolved->activation_case;
    size_t matmul = job->analysis->totals.logits;
    if (matmul == 0) return recorded;
    bool is_fp32 = activation_case->type == RT_ACTIVATION_FP32;
    double width = is_fp32 ? WEIGHT_BYTES : HALF_BYTES, copy = is_fp32 ? 0 : WEIGHT_BYTES;
    bool is_sharded = job->analysis->sharding.role[matmul - 1] == RT_ROLE_COLUMNS;
    double parts = resolved->sequence * (is_sharded ? resolved->shard.tensor : 1);
    double elements = job->operators[matmul - 1].per_sample[MDOT_PHASE_FORWARD].bytes_written / WEIGHT_BYTES;
    if (activation_case->loss == MDOT_LOSS_WHOLE && rt_is_megatron(&resolved->configuration.c))
        return fmin((width + copy) * elements, recorded) / parts;
    double composed = is_sharded && resolved->shard.tensor > 1 ? (FULL_TENSORS + 1.0) / FULL_TENSORS : 1;
    if (activation_case->loss == MDOT_LOSS_WHOLE) return composed * recorded / parts;
    double part = rt_loss_part(job, matmul, activation_case->loss);
    if (activation_case->loss == MDOT_LOSS_FUSED) return part * recorded / parts;
    double whole = 2 * width + (FULL_TENSORS - 1) * WEIGHT_BYTES + copy;
    if (resolved->configuration.c.compiled != 0) return fmin((width + width * part) * elements, recorded) / parts;
    return (width + WEIGHT_BYTES + copy * part) / whole * recorded / parts;
}

static double element_bytes(mdot_precision precision)
{
    return precision == MDOT_PRECISION_BF16 ? HALF_BYTES : WEIGHT_BYTES;
}

/* The bytes at a moment that are independent of the batch. Autograd holds the gradient of a head that is tied to a
 * table up to the gradient of the table. Stages have one of both, and Megatron adds gradients to its main ones at
 * once. */
static double step_bytes(const mdot_job *job, const rt_resolved_configuration *resolved, mdot_precision precision,
                         double recorded, double sharded)
{
    const rt_parts *tied = &job->analysis->sharding.tied;
    const rt_shard *shard = &resolved->shard, whole = {.tensor = 1, .experts = 1, .of = {1, 1, 1}};
    double elements = rt_sum_elements(rt_part_of(tied, &whole)), table = element_bytes(precision) * elements;
    double held = table > 0 ? table * floor(recorded / table) : 0, others = recorded - held;
    bool is_separate = shard->of[RT_PIPELINE_BEFORE] == 0 || shard->of[RT_PIPELINE_AFTER] == 0;
    if (is_separate || rt_is_megatron(&resolved->configuration.c)) held = 0;
    if (held > 0) held *= rt_sum_elements(rt_part_of(tied, shard)) / elements;
    return held + shard->of[RT_PIPELINE_BLOCKS] * sharded * others;
}

size_t rt_recorded_moments(const mdot_job *job, const rt_resolved_configuration *resolved,
                           mdot_peak_moment out_moments[MDOT_PEAK_MOMENTS_MAX])
{
    const rt_program *p = job->program;
    if (p == NULL || p->program.recorded_count == 0) return 0;
    const rt_activation_case *activation_case = &resolved->activation_case;
    const mdot_configuration *c = &resolved->configuration.c;
    size_t record = nearest_record(p, activation_case, c);
    if (!(p->analytic_bytes[record] > 0)) return 0;
    const mdot_recorded_memory *r = &p->records[record];
    double scale = analytic_bytes(job, resolved, r) / p->analytic_bytes[record];
    double largest = scale * largest_of(r), sharded = sharded_part(job, resolved, largest);
    sharded *= fused_part(job, resolved, sharded * largest);
    double blocks = resolved->shard.of[RT_PIPELINE_BLOCKS];
    rt_activation_type type = rt_activation_type_of(r->precision);
    const rt_parts *half = &job->analysis->sharding.half_parameters;
    rt_shard whole = {.tensor = 1, .experts = 1, .of = {1, 1, 1}};
    double copied = HALF_BYTES * rt_sum_elements(rt_part_of(half, &resolved->shard)),
           all_copied = HALF_BYTES * rt_sum_elements(rt_part_of(half, &whole));
    /* The stage with the head has the logits of one micro-batch, however many it keeps. */
    double with_logits = resolved->shard.of[RT_PIPELINE_AFTER] / resolved->in_flight;
    for (size_t i = 0; i < r->moment_count; i++) {
        const mdot_peak_moment *m = &r->moments[i];
        double copies = 0;
        if (activation_case->type == RT_ACTIVATION_AMP && !resolved->has_half_weights) copies = copied;
        if (activation_case->type == RT_ACTIVATION_AMP && type == RT_ACTIVATION_AMP && all_copied > 0)
            copies = m->weight_copies * copied / all_copied;
        double logits = with_logits * kept_logits(job, resolved, m->logits);
        double others = sharded * (m->per_sample - m->logits);
        out_moments[i] =
            (mdot_peak_moment){.per_sample = scale * (blocks * others + logits),
                               .per_step = scale * step_bytes(job, resolved, r->precision, m->per_step, sharded),
                               .per_square = scale * sharded * blocks * m->per_square,
                               .weight_copies = copies,
                               .gradients = m->gradients,
                               .logits = scale * logits};
    }
    return r->moment_count;
}

double rt_weight_bytes(const mdot_job *job, double width, double frozen_width, double elements)
{
    const mdot_job_program *p = job->program != NULL ? &job->program->program : NULL;
    double parameters = job->info.parameters + job->info.frozen_parameters;
    if (p == NULL || p->trained_bytes + p->frozen_bytes + p->buffer_bytes == 0) return width * elements;
    if (parameters == 0) return p->buffer_bytes;
    double program_width = element_bytes(p->precision),
           floating = fmin(program_width * job->info.frozen_parameters, p->frozen_bytes);
    double converted = (width * p->trained_bytes + frozen_width * floating) / program_width;
    return (converted + p->frozen_bytes - floating) * elements / parameters + p->buffer_bytes;
}
