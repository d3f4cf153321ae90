/* queue.c — a job order on one GPU type. */
#include "simulator/policy/allocation.h"

void sc_queue_fill(const sc_order *order, const sc_view *view, sc_plan *plan)
{
    uint32_t job = SC_NONE;
    while (plan->free[0] > 0 && (job = sc_order_next(order, job, plan->free[0])) != SC_NONE)
        sc_plan_run(plan, job, 0, view->workload->jobs[job].gpus);
}

void sc_queue_keep_running(const sc_view *view, sc_plan *plan)
{
    for (size_t i = 0; i < view->running_count; i++) {
        uint32_t job = view->running[i];
        sc_plan_run(plan, job, view->states[job].type, view->states[job].gpus);
    }
}

void sc_queue_start(sc_order *order, const sc_view *view, sc_plan *plan, bool skips)
{
    while (plan->free[0] > 0) {
        int gpus = skips ? plan->free[0] : view->cluster->gpus;
        uint32_t job = sc_order_next(order, SC_NONE, gpus);
        if (job == SC_NONE || view->workload->jobs[job].gpus > plan->free[0]) return;
        sc_plan_run(plan, job, 0, view->workload->jobs[job].gpus);
        sc_order_remove(order, job);
    }
}

mdot_status sc_queue_create(const sc_view *view, void **out_self, mdot_error *err)
{
    sc_order *order;
    mdot_status status = sc_order_create(view->workload, &order, err);
    if (status == MDOT_OK) *out_self = order;
    return status;
}

void sc_queue_destroy(void *self) { sc_order_destroy(self); }
