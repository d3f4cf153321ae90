/* recorded_memory.c — the memory that was recorded with a job's program (mdot_program.h), for one configuration. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"

#include <math.h>

enum { WEIGHT_BYTES = 4, HALF_BYTES = 2 };

/* The record with the same tensor types and recomputation; otherwise with the same types; otherwise with the same
 * recomputation; otherwise the first. */
static size_t nearest_record(const rt_program *p, const rt_activation_case *wanted)
{
    size_t nearest = 0;
    int best = 0;
    for (size_t i = 0; i < p->program.recorded_count; i++) {
        const mdot_recorded_memory *r = &p->records[i];
        int score = 2 * (rt_activation_type_of(r->precision) == wanted->type) + (r->recompute == wanted->recompute);
        if (score <= best) continue;
        best = score;
        nearest = i;
    }
    return nearest;
}

/* Analytic bytes per sample of the requested case. They are whole where the recorded ones are, so that a recorded case
 * has the ratio 1. */
static double analytic_bytes(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    rt_activation_case activation_case = resolved->activation_case;
    activation_case.loss = MDOT_LOSS_WHOLE; /* kept_logits accounts for it */
    const rt_activations *a = rt_activations_of(&job->analysis->activations, &activation_case);
    double tensor = resolved->shard.tensor;
    if (tensor == 1 && resolved->sequence == 1) return rint(a->all);
    return (a->whole / resolved->replicated + (a->all - a->whole) / tensor) / resolved->sequence;
}

/* The part of the tensors as large as the logits that exists at once. With a whole loss these are the logits and their
 * gradient in the type of computation, and up to three fp32 tensors of the loss. Sharded logits have a fourth one,
 * because PyTorch composes the loss (torch/distributed/tensor/parallel/loss.py): the logarithms, the gradient of the
 * picked ones, the exponentials, and the sum of the latter two exist at once.
 *
 * A chunked loss has all logits at its end, and keeps the fp32 logarithms of each chunk for the backward pass, beside
 * the fp32 copy of the last chunk. A compiled one keeps the logits alone. Its backward pass then replaces them by their
 * gradient, one chunk after the other, because autograd runs the losses of all chunks before the first matmul. In bf16,
 * MemTracker counts 6.5 bytes for each logit, and 2.25 beside the temporaries that compiled kernels lack.
 *
 * A loss that is fused with the matmul makes all of them in parts of the size of its operand. */
static double kept_logits(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    enum { FULL_TENSORS = 3 };
    const rt_activation_case *activation_case = &resolved->activation_case;
    size_t matmul = job->analysis->totals.logits;
    if (matmul == 0) return 1;
    bool is_sharded = resolved->shard.tensor > 1 && job->analysis->sharding.role[matmul - 1] == RT_ROLE_COLUMNS;
    if (activation_case->loss == MDOT_LOSS_WHOLE) return is_sharded ? (FULL_TENSORS + 1.0) / FULL_TENSORS : 1;
    double part = rt_loss_part(job, matmul, activation_case->loss);
    if (activation_case->loss == MDOT_LOSS_FUSED) return part;
    bool is_fp32 = activation_case->type == RT_ACTIVATION_FP32;
    double width = is_fp32 ? WEIGHT_BYTES : HALF_BYTES, copy = is_fp32 ? 0 : WEIGHT_BYTES;
    double whole = 2 * width + (FULL_TENSORS - 1) * WEIGHT_BYTES + copy;
    if (resolved->configuration.c.compiled != 0) return (width + width * part) / whole;
    return (width + WEIGHT_BYTES + copy * part) / whole;
}

size_t rt_recorded_moments(const mdot_job *job, const rt_resolved_configuration *resolved,
                           mdot_peak_moment out_moments[MDOT_PEAK_MOMENTS_MAX])
{
    const rt_program *p = job->program;
    if (p == NULL || p->program.recorded_count == 0) return 0;
    const rt_activation_case *activation_case = &resolved->activation_case;
    size_t record = nearest_record(p, activation_case);
    if (!(p->analytic_bytes[record] > 0)) return 0;
    const mdot_recorded_memory *r = &p->records[record];
    double scale = analytic_bytes(job, resolved) / p->analytic_bytes[record];
    double blocks = resolved->shard.of[RT_PIPELINE_BLOCKS];
    rt_activation_type type = rt_activation_type_of(r->precision);
    const rt_parts *half = &job->analysis->sharding.half_parameters;
    rt_shard whole = {1, 1, {1, 1, 1}};
    double copied = HALF_BYTES * rt_sum_elements(rt_part_of(half, &resolved->shard)),
           all_copied = HALF_BYTES * rt_sum_elements(rt_part_of(half, &whole));
    double logits_part = kept_logits(job, resolved);
    /* The stage with the head has the logits of one micro-batch, however many it keeps. */
    double with_logits = resolved->shard.of[RT_PIPELINE_AFTER] / resolved->in_flight;
    for (size_t i = 0; i < r->moment_count; i++) {
        const mdot_peak_moment *m = &r->moments[i];
        double copies = 0;
        if (activation_case->type == RT_ACTIVATION_AMP) copies = copied;
        if (activation_case->type == RT_ACTIVATION_AMP && type == RT_ACTIVATION_AMP && all_copied > 0)
            copies = m->weight_copies * copied / all_copied;
        double logits = with_logits * logits_part * m->logits, others = m->per_sample - m->logits;
        out_moments[i] = (mdot_peak_moment){.per_sample = scale * (blocks * others + logits),
                                            .per_step = scale * blocks * m->per_step,
                                            .weight_copies = copies,
                                            .gradients = m->gradients,
                                            .logits = scale * logits};
    }
    return r->moment_count;
}

static double element_bytes(mdot_precision precision)
{
    return precision == MDOT_PRECISION_BF16 ? HALF_BYTES : WEIGHT_BYTES;
}

double rt_weight_bytes(const mdot_job *job, double width, double elements)
{
    const mdot_job_program *p = job->program != NULL ? &job->program->program : NULL;
    double parameters = job->info.parameters + job->info.frozen_parameters;
    if (p == NULL || p->trained_bytes + p->frozen_bytes + p->buffer_bytes == 0) return width * elements;
    if (parameters == 0) return p->buffer_bytes;
    double program_width = element_bytes(p->precision),
           floating = fmin(program_width * job->info.frozen_parameters, p->frozen_bytes);
    double converted = width / program_width * (p->trained_bytes + floating), quantised = p->frozen_bytes - floating;
    return (converted + quantised) * elements / parameters + p->buffer_bytes;
}
