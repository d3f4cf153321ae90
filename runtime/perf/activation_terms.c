/* activation_terms.c — activations of jobs with work per square of the batch, or with results independent of the batch.
 *
 * Which moment is the peak depends on the batch: a similarity matrix of all pairs of samples decides at a large one. So
 * the moments are those of the job's batch and of larger ones. At each moment, every term is measured alone. */
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/operator_traits.h"

#include <stdlib.h>

static const double large_batches[] = {512, 8192, 131072};
enum {
    LARGE_BATCHES = sizeof large_batches / sizeof *large_batches,
    MOMENTS_AT_LARGE = 2,
    OWN_MOMENTS = RT_ACTIVATION_MOMENTS_MAX - MOMENTS_AT_LARGE * LARGE_BATCHES
};

/* Weight gradients tell which operators train, at any weight. */
static void weigh_operator(mdot_job_operator *op, const double weight[RT_BATCH_TERMS])
{
    const mdot_load *square = &op->per_square[MDOT_PHASE_FORWARD];
    mdot_load *forward = &op->per_sample[MDOT_PHASE_FORWARD], *gradient = &op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT];
    double result = rt_constant_result_bytes(op), samples = weight[RT_TERM_SAMPLE], squares = weight[RT_TERM_SQUARE];
    *forward =
        (mdot_load){samples * forward->flops + squares * square->flops,
                    samples * forward->bytes_read + squares * square->bytes_read,
                    samples * forward->bytes_written + squares * square->bytes_written + weight[RT_TERM_STEP] * result};
    gradient->flops = rt_phase_flops(op, MDOT_PHASE_WEIGHT_GRADIENT);
    gradient->bytes_read += op->per_square[MDOT_PHASE_WEIGHT_GRADIENT].bytes_read;
}

bool rt_weigh_terms(const mdot_job *job, const double weight[RT_BATCH_TERMS], mdot_job *out_job)
{
    *out_job = *job;
    out_job->operators = rt_copy_operators(job);
    for (size_t i = 0; out_job->operators != NULL && i < job->info.operator_count; i++)
        weigh_operator(&out_job->operators[i], weight);
    return out_job->operators != NULL;
}

static bool measure_at(const mdot_job *job, const rt_sharding *sharding, size_t logits, double batch,
                       rt_activation_table *out)
{
    mdot_job weighed;
    const double weight[RT_BATCH_TERMS] = {1, batch, 1 / batch};
    bool is_measured = rt_weigh_terms(job, weight, &weighed) && rt_measure_activations(&weighed, sharding, logits, out);
    free(weighed.operators);
    return is_measured;
}

/* The last moment has the most gradients. */
static void add_moments(rt_activations *out, const rt_activations *large, bool is_first)
{
    if (is_first && out->moment_count > OWN_MOMENTS) {
        out->moments[OWN_MOMENTS - 1] = out->moments[out->moment_count - 1];
        out->moment_count = OWN_MOMENTS;
    }
    for (size_t i = 0; i < large->moment_count && i < MOMENTS_AT_LARGE; i++)
        out->moments[out->moment_count++] = large->moments[i];
}

bool rt_measure_activations_of_terms(const mdot_job *job, const rt_sharding *sharding, size_t logits, bool has_squares,
                                     rt_activation_table *out_table)
{
    rt_activation_table *large = calloc(1, sizeof *large);
    double own_batch = job->info.batch > 0 ? (double)job->info.batch : 1;
    bool is_measured = large != NULL && measure_at(job, sharding, logits, own_batch, out_table);
    rt_activations *each = (rt_activations *)out_table; /* a table consists of activations alone */
    for (int b = 0; b < LARGE_BATCHES && has_squares && is_measured; b++) {
        is_measured = measure_at(job, sharding, logits, large_batches[b], large);
        for (size_t i = 0; is_measured && i < sizeof *large / sizeof *each; i++)
            add_moments(&each[i], &((rt_activations *)large)[i], b == 0);
    }
    for (int term = 0; term < RT_BATCH_TERMS && is_measured; term++) {
        mdot_job weighed;
        double weight[RT_BATCH_TERMS] = {0};
        weight[term] = 1;
        is_measured = rt_weigh_terms(job, weight, &weighed) &&
                      rt_measure_activation_term(&weighed, sharding, logits, (rt_batch_term)term, out_table);
        free(weighed.operators);
    }
    free(large);
    return is_measured;
}
