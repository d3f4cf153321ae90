/* las.c — least attained service first, continuous: independent of durations.
 *
 * Keys are attained GPU-seconds. While jobs wait, it decides again a quantum after the last event, so that jobs of
 * equal service take turns. A quantum is 60 s, and longer with a cost of restarts (sc_lease_s).
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

static double attained_gpu_s(const sc_view *view, uint32_t job) { return view->states[job].attained_gpu_s; }

static mdot_status decide(void *self, const sc_view *view, sc_plan *plan)
{
    sc_sorted_jobs_decide(self, view, plan);
    if (sc_order_count(sc_sorted_jobs_incomplete(self)) > plan->grant_count)
        plan->wake_s = view->now_s + sc_lease_s(view);
    return MDOT_OK;
}

const sc_policy sc_policy_las = {
    .name = "las",
    .summary = "least attained service first, in quanta of 60 s",
    .period_s = 60,
    .key = attained_gpu_s,
    .create = sc_sorted_jobs_create,
    .decide = decide,
};
