/* plausibility.c — plausibility of a prediction: the utilisation of the GPU's peak that a step of the predicted time
 * implies.
 *
 * A step that needs more of the peak than programs reach is implausibly short. A step that needs almost none of it
 * is implausibly long, unless launching its kernels takes that time. roofline.c computes the needs of a step.
 */
#include "runtime/job/job_model.h"

/* Utilisation of the peak. cuBLAS matmuls reach 70 to 80 % of it, copies about 90 %; whole steps stay below. */
static const double most_share = 0.85, least_share = 0.01;
/* Time to launch the kernels of one operator's forward, backward and optimizer pass: about ten, 10 us each on a slow
 * host. */
static const double launch_ms = 0.1;

void rt_job_add_up(mdot_job *job)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) job->flops_per_sample += op->per_sample[phase].flops;
        job->cost += job->costs[i];
        if (op->traits.number == 0) job->unnumbered_cost += job->costs[i];
    }
}

static double unknown_share(const mdot_job *job, uint32_t type_count)
{
    double unknown = job->unnumbered_cost;
    for (size_t i = 0; job->highest_number >= type_count && i < job->classes.count; i++) {
        const rt_operator_group *class = &job->classes.items[i];
        if (job->operators[class->first].traits.number >= type_count)
            unknown += job->costs[class->first] * class->count;
    }
    return job->cost > 0 ? unknown / job->cost : 0;
}

/* `needed_share`: the utilisation of the GPU's peak FLOPS, less the work that a causal mask may skip. A job does not
 * record whether a mask is causal. */
static bool is_implausible(const mdot_job *job, const mdot_prediction *p, double needed_share)
{
    if (needed_share > most_share || p->memory_share > most_share) return true;
    if (p->compute_share >= least_share || p->memory_share >= least_share) return false;
    return p->step_ms > launch_ms * (double)job->info.operator_count;
}

void rt_check_plausibility(const mdot_job *job, const rt_roofline_terms *effort, uint32_t type_count,
                           mdot_prediction *p)
{
    p->parameters = job->info.parameters;
    p->flops_per_sample = job->flops_per_sample;
    p->compute_share = effort->compute_ms / p->step_ms;
    p->memory_share = effort->memory_ms / p->step_ms;
    p->unknown_share = unknown_share(job, type_count);
    if (is_implausible(job, p, (effort->compute_ms - effort->masked_ms) / p->step_ms))
        p->warnings |= MDOT_WARN_IMPLAUSIBLE;
    if (job->info.parameters == 0) p->warnings |= MDOT_WARN_NO_PARAMETERS;
    if ((job->info.notes & MDOT_JOB_FOLDED) != 0) p->warnings |= MDOT_WARN_FOLDED;
    if ((job->info.notes & MDOT_JOB_MAYBE_FOLDED) != 0) p->warnings |= MDOT_WARN_MAYBE_FOLDED;
}

/* ---- Warnings --------------------------------------------------------------------------------------------------- */

const char *mdot_warning_name(uint32_t warning)
{
    switch (warning) {
#define NAME(id, bit, name, text)                                                                                      \
    case MDOT_WARN_##id:                                                                                               \
        return name;
        MDOT_WARNING_MAP(NAME)
#undef NAME
    default:
        return NULL;
    }
}

const char *mdot_warning_text(uint32_t warning)
{
    switch (warning) {
#define TEXT(id, bit, name, text)                                                                                      \
    case MDOT_WARN_##id:                                                                                               \
        return text;
        MDOT_WARNING_MAP(TEXT)
#undef TEXT
    default:
        return NULL;
    }
}
