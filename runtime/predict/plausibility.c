/* plausibility.c — plausibility of a prediction: the utilisation of the GPU's peak that the predicted step time
 * implies.
 *
 * A step is implausibly short if it needs more of the peak than programs reach. It is implausibly long if it needs
 * almost nothing of the peak, unless kernel launches take the time. roofline.c computes the needs of a step. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/predict.h"

/* Utilisation limits, which MDOT_IMPLAUSIBLE_MAP states. cuBLAS matmuls reach 70 to 80 % of the peak, copies about 90
 * %; whole steps stay below. */
static const double most_utilisation = 0.85, least_utilisation = 0.01;
/* Time to launch the kernels of one operator's forward, backward and optimizer pass: about ten, 10 us each on a slow
 * host. */
static const double launch_ms = 0.1;

static double unknown_share(const mdot_job *job, uint32_t type_count)
{
    const rt_analysis *a = job->analysis;
    double unknown = a->totals.cost_without_type_id;
    for (size_t i = 0; a->totals.highest_type_id >= type_count && i < a->groups.count; i++) {
        const rt_operator_group *group = &a->groups.items[i];
        if (job->operators[group->first].traits.number >= type_count)
            unknown += a->op_costs.cost[group->first] * group->count;
    }
    return a->totals.cost > 0 ? unknown / a->totals.cost : 0;
}

/* `needed_utilisation`: the utilisation of the GPU's peak FLOPS, less the work that a causal mask may skip. */
static uint32_t broken_bound(const mdot_job *job, const mdot_prediction *p, double needed_utilisation)
{
    if (needed_utilisation > most_utilisation && needed_utilisation >= p->memory_share)
        return MDOT_IMPLAUSIBLE_TOO_FAST_FOR_COMPUTE;
    if (p->memory_share > most_utilisation) return MDOT_IMPLAUSIBLE_TOO_FAST_FOR_MEMORY;
    if (p->compute_share >= least_utilisation || p->memory_share >= least_utilisation) return 0;
    return p->gpu_ms > launch_ms * (double)job->info.operator_count ? MDOT_IMPLAUSIBLE_TOO_SLOW : 0;
}

void rt_fill_plausibility(const mdot_job *job, const rt_roofline_terms *terms, const rt_configuration *configuration,
                          uint32_t type_count, mdot_prediction *p)
{
    const rt_job_totals *totals = &job->analysis->totals;
    p->parameters = job->info.parameters;
    bool is_inference = configuration->c.mode == MDOT_MODE_INFERENCE;
    p->flops_per_sample = is_inference ? totals->forward_flops_per_sample : totals->flops_per_sample;
    p->flops_per_sample += (double)configuration->micro_batch *
                           (is_inference ? totals->forward_flops_per_square : totals->flops_per_square);
    p->compute_share = terms->compute_ms / p->gpu_ms;
    p->memory_share = terms->memory_ms / p->gpu_ms;
    p->unknown_share = unknown_share(job, type_count);
    p->implausible = broken_bound(job, p, (terms->compute_ms - terms->masked_ms) / p->gpu_ms);
    p->compute_share *= p->gpu_ms / p->step_ms;
    p->memory_share *= p->gpu_ms / p->step_ms;
    if (p->implausible != 0) p->warnings |= MDOT_WARN_IMPLAUSIBLE;
    if (job->info.parameters == 0) p->warnings |= MDOT_WARN_NO_PARAMETERS;
    if ((job->info.notes & MDOT_JOB_FOLDED) != 0) p->warnings |= MDOT_WARN_FOLDED;
    if ((job->info.notes & MDOT_JOB_MAYBE_FOLDED) != 0) p->warnings |= MDOT_WARN_MAYBE_FOLDED;
}
