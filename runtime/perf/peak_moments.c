/* peak_moments.c — the moments at which memory may be largest, from the activations of an analysed job.
 *
 * Activations are largest at the end of the forward pass or soon afterwards. At that moment only the gradients of the
 * last operators exist, because PyTorch frees all gradients after the optimizer's step (zero_grad, whose set_to_none is
 * true by default since 2.0). Later moments have fewer activations and more gradients. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"

#include <math.h>

enum { HALF_BYTES = 2 };

/* Bytes per sample at the peak of a case, on one GPU. */
static double peak_of(const mdot_job *job, const rt_resolved_configuration *resolved,
                      const rt_activation_case *activation_case)
{
    const rt_activations *a = rt_activations_of(&job->analysis->activations, activation_case);
    double sample = a->whole / resolved->replicated + (a->all - a->whole) / resolved->shard.tensor;
    return sample / resolved->sequence;
}

/* The fraction of activations that stays on the GPU. Offloading keeps the current block's tensors. Without
 * recomputation, it also keeps those of the block on its way to the host. The peak without recomputed blocks minus the
 * peak with them is the saved tensors in all blocks but one, besides block inputs. */
static double kept_on_gpu(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    rt_activation_case activation_case = resolved->activation_case, recomputed = activation_case;
    double blocks = job->info.block_count;
    if (resolved->configuration.c.offload_activations == 0 || blocks < 2) return 1;
    recomputed.recompute = MDOT_RECOMPUTE_BLOCKS;
    double width = activation_case.type == RT_ACTIVATION_FP32 ? 1 : 0.5;
    double inputs = width * job->analysis->sharding.border_bytes / resolved->replicated / resolved->sequence;
    double peak = peak_of(job, resolved, &activation_case), with_inputs = peak_of(job, resolved, &recomputed);
    double moved = activation_case.recompute == MDOT_RECOMPUTE_BLOCKS ? 0 : (peak - with_inputs) / (blocks - 1);
    double kept = with_inputs - (blocks - 2) * inputs + fmax(moved, 0);
    double lower_bound = peak / blocks;
    return kept < lower_bound ? 1 / blocks : kept < peak ? kept / peak : 1;
}

double rt_offloaded_bytes(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    double peak = peak_of(job, resolved, &resolved->activation_case) * resolved->shard.of[RT_PIPELINE_BLOCKS];
    return peak * (1 - kept_on_gpu(job, resolved));
}

size_t rt_peak_moments(const mdot_job *job, const rt_resolved_configuration *resolved, mdot_peak_moment *out_moments)
{
    double copies = 0, kept = kept_on_gpu(job, resolved);
    bool is_inference = resolved->activation_case.is_inference; /* records are of training */
    size_t recorded = is_inference ? 0 : rt_recorded_moments(job, resolved, out_moments);
    for (size_t i = 0; i < recorded; i++) {
        out_moments[i].per_sample *= kept;
        out_moments[i].per_square *= kept;
    }
    if (recorded > 0) return recorded;
    const rt_activation_case *activation_case = &resolved->activation_case;
    const rt_activations *a = rt_activations_of(&job->analysis->activations, activation_case);
    const rt_shard *shard = &resolved->shard;
    if (activation_case->type == RT_ACTIVATION_AMP && !resolved->has_half_weights) {
        rt_elements half = rt_part_of(&job->analysis->sharding.half_parameters, shard);
        copies = HALF_BYTES * (half.others + half.experts);
    }
    double largest = peak_of(job, resolved, activation_case), inner = rt_inner_bytes(job, resolved, false);
    if (largest > 0) kept *= 1 - fmin(inner / largest, 1);
    for (size_t i = 0; i < a->moment_count; i++) {
        const rt_activation_moment *m = &a->moments[i];
        double sample = m->whole / resolved->replicated + (m->all - m->whole) / shard->tensor;
        double square = m->whole_square / resolved->replicated + (m->square - m->whole_square) / shard->tensor;
        double blocks = shard->of[RT_PIPELINE_BLOCKS];
        out_moments[i] =
            (mdot_peak_moment){.per_sample = kept * sample / resolved->sequence * blocks,
                               .per_square = kept * square / resolved->sequence * blocks,
                               .per_step = (m->whole_step + (m->step - m->whole_step) / shard->tensor) * blocks,
                               .weight_copies = copies,
                               .gradients = m->gradients};
    }
    return a->moment_count;
}
