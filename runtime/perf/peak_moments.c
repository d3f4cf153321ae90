/* peak_moments.c — the moments at which memory may be largest, from the activations of an analysed job.
 *
 * Activations are largest at the end of the forward pass or soon afterwards. At that moment only the gradients of the
 * last operators exist, because PyTorch frees all gradients after the optimizer's step (zero_grad, whose set_to_none is
 * true by default since 2.0). Later moments have fewer activations and more gradients. */
#include "runtime/perf/peak_moments.h"
#include "runtime/perf/analysis.h"

enum { HALF_BYTES = 2 };

size_t rt_peak_moments(const mdot_job *job, const rt_resolved_configuration *resolved, rt_moment *out_moments)
{
    const rt_activation_case *which = &resolved->activation_case;
    const rt_activations *a = &job->analysis->activations.of[which->type][which->attention][which->recompute];
    const rt_shard *shard = &resolved->shard;
    double copies = 0;
    if (which->type == RT_ACTIVATION_AMP) {
        rt_elements half = rt_part_of(&job->analysis->sharding.half_parameters, shard);
        copies = HALF_BYTES * (half.others + half.experts);
    }
    for (size_t i = 0; i < a->moment_count; i++) {
        const rt_activation_moment *m = &a->moments[i];
        double sample = m->whole / resolved->replicated + (m->all - m->whole) / shard->tensor;
        out_moments[i] = (rt_moment){.per_sample = sample / resolved->sequence * shard->of[RT_PIPELINE_BLOCKS],
                                     .weight_copies = copies,
                                     .gradients = m->gradients};
    }
    return a->moment_count;
}
