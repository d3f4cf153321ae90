/* fifo.c — first come, first served, without preemption.
 *
 *   fifo   waits at the first job that does not fit.
 *   fjf    skips jobs that do not fit ("fit job first", the FIFO of Tiresias' simulator) and makes no reservations.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

static void decide(sc_order *order, const sc_view *view, sc_plan *plan, bool skips)
{
    for (size_t i = 0; i < view->arrived_count; i++) sc_order_put_last(order, view->arrived[i], 0);
    sc_queue_keep_running(view, plan);
    sc_queue_start(order, view, plan, skips);
}

static mdot_status decide_fifo(void *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    decide(self, view, plan, false);
    return MDOT_OK;
}

static mdot_status decide_fjf(void *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    decide(self, view, plan, true);
    return MDOT_OK;
}

const sc_policy sc_policy_fifo = {
    .name = "fifo",
    .summary = "first come, first served; waits at the first job that does not fit",
    .uses_types = true,
    .create = sc_queue_create,
    .decide = decide_fifo,
    .destroy = sc_queue_destroy,
};

const sc_policy sc_policy_fjf = {
    .name = "fjf",
    .summary = "first come, first served; skips jobs that do not fit",
    .uses_types = true,
    .create = sc_queue_create,
    .decide = decide_fjf,
    .destroy = sc_queue_destroy,
};
