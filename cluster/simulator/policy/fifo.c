/* fifo.c — first come, first served, without preemption.
 *
 *   fifo   waits at the first job that does not fit.
 *   fjf    skips jobs that do not fit ("fit job first", the FIFO of Tiresias' simulator) and makes no reservations.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

enum { WAITS, SKIPS }; /* sc_policy.variant */

static mdot_status decide(void *self, const sc_view *view, sc_plan *plan)
{
    for (size_t i = 0; i < view->arrived_count; i++) sc_order_put_last(self, view->arrived[i], 0);
    sc_queue_keep_running(view, plan);
    sc_queue_start(self, view, plan, view->policy->variant == SKIPS);
    return MDOT_OK;
}

const sc_policy sc_policy_fifo = {
    .name = "fifo",
    .summary = "first come, first served; waits at the first job that does not fit",
    .create = sc_queue_create,
    .decide = decide,
};

const sc_policy sc_policy_fjf = {
    .name = "fjf",
    .summary = "first come, first served; skips jobs that do not fit",
    .variant = SKIPS,
    .create = sc_queue_create,
    .decide = decide,
};
