/* shortest.c — the job with the least remaining time or service goes first, with preemption.
 *
 *   srtf   shortest remaining time.
 *   srsf   shortest remaining service, time × GPUs: Tiresias' policy for known durations (Gu et al., NSDI 2019), and
 *          that of the survey's figure 4. Tiresias' placement by skew is left out; it changes no order.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

static double remaining_s(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    return sc_estimate_remaining_s(view->estimate, job, state->remaining, state->executed_s);
}

static double remaining_gpu_s(const sc_view *view, uint32_t job)
{
    return remaining_s(view, job) * view->workload->jobs[job].gpus;
}

static mdot_status decide_srtf(void *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    sc_sorted_jobs_decide(self, view, plan, remaining_s);
    return MDOT_OK;
}

static mdot_status decide_srsf(void *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    sc_sorted_jobs_decide(self, view, plan, remaining_gpu_s);
    return MDOT_OK;
}

const sc_policy sc_policy_srtf = {
    .name = "srtf",
    .summary = "shortest remaining time first, preemptive",
    .uses_types = true,
    .create = sc_sorted_jobs_create,
    .decide = decide_srtf,
    .destroy = sc_sorted_jobs_destroy,
};

const sc_policy sc_policy_srsf = {
    .name = "srsf",
    .summary = "shortest remaining service (time x GPUs) first, preemptive (Tiresias, durations known)",
    .uses_types = true,
    .create = sc_sorted_jobs_create,
    .decide = decide_srsf,
    .destroy = sc_sorted_jobs_destroy,
};
