/* queue.c — a job order over GPU types. */
#include "simulator/policy/allocation.h"

#include <math.h>

unsigned sc_fastest_free(const sc_view *view, const sc_plan *plan, uint32_t job)
{
    const sc_state *state = &view->states[job];
    int gpus = view->workload->jobs[job].gpus;
    unsigned best = view->cluster->type_count;
    if (best == 1) return plan->free[0] < gpus;
    double least_s = INFINITY;
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        double speed = gpus <= plan->free[type] ? sc_estimate_speed(view->estimate, job, type, gpus) : 0;
        bool stays = state->phase == SC_RUNNING && state->type == type;
        if (speed == 0) continue;
        double span_s = sc_view_planned_work(view, job) / speed;
        if (!stays && isfinite(state->start_s)) span_s += sc_restart_s(view->restart, gpus, false);
        if (span_s > least_s || (span_s == least_s && !stays)) continue;
        least_s = span_s;
        best = type;
    }
    return best;
}

int sc_plan_most_free(const sc_view *view, const sc_plan *plan)
{
    int maximum = 0;
    for (unsigned type = 0; type < view->cluster->type_count; type++)
        if (plan->free[type] > maximum) maximum = plan->free[type];
    return maximum;
}

bool sc_plan_run_fastest(const sc_view *view, sc_plan *plan, uint32_t job)
{
    unsigned type = sc_fastest_free(view, plan, job);
    if (type == view->cluster->type_count) return false;
    sc_plan_run(plan, job, type, view->workload->jobs[job].gpus);
    return true;
}

void sc_queue_fill(const sc_order *order, const sc_view *view, sc_plan *plan)
{
    uint32_t job = SC_NONE;
    for (int free; (free = sc_plan_most_free(view, plan)) > 0 && (job = sc_order_next(order, job, free)) != SC_NONE;)
        sc_plan_run_fastest(view, plan, job);
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
    uint32_t job = SC_NONE;
    for (int free; (free = sc_plan_most_free(view, plan)) > 0;) {
        job = sc_order_next(order, job, skips ? free : view->cluster->gpus);
        if (job == SC_NONE) return;
        if (sc_plan_run_fastest(view, plan, job))
            sc_order_remove(order, job);
        else if (!skips)
            return;
    }
}

mdot_status sc_queue_create(const sc_view *view, void **out_self, mdot_error *err)
{
    sc_order *order;
    mdot_status status = sc_order_create(view->workload, &order, err);
    if (status == MDOT_OK) *out_self = order;
    return status;
}
