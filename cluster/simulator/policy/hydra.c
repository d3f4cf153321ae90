/* hydra.c — Hydra (Yang et al., IEEE Transactions on Computers 2023), reduced to a choice of types. By deadline, each
 * job starts on the slowest type on which it is predicted to be in time, so that fast GPUs remain for jobs that need
 * them.
 *
 * Implemented: deadlines over GPU types with predicted times for each type. Left out: the cost, which adds completion
 * times and a penalty for tardiness; the branch and bound over orders and types that minimises it (the greedy rule
 * replaces it); sampling of first steps (an estimate replaces it). A job that would be late everywhere, or without a
 * deadline, goes to the fastest free type. No preemption. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>

/* Returns the type on which a job should start; type_count: it waits. */
static unsigned choose(const sc_view *view, const sc_plan *plan, uint32_t job)
{
    const sc_job *j = &view->workload->jobs[job];
    unsigned none = view->cluster->type_count, slowest = none, fastest = none;
    double slow = 0, fast = 0;
    for (unsigned type = 0; type < none; type++) {
        double speed = j->gpus <= plan->free[type] ? sc_estimate_speed(view->estimate, job, type, j->gpus) : 0;
        if (speed == 0) continue;
        if (fastest == none || speed > fast) {
            fastest = type;
            fast = speed;
        }
        bool is_met = view->now_s + sc_view_planned_work(view, job) / speed <= j->deadline_s;
        if (is_met && isfinite(j->deadline_s) && (slowest == none || speed < slow)) {
            slowest = type;
            slow = speed;
        }
    }
    return slowest != none ? slowest : fastest;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    sc_order *order = memory;
    for (size_t i = 0; i < view->arrived_count; i++)
        sc_order_put_last(order, view->arrived[i], view->workload->jobs[view->arrived[i]].deadline_s);
    sc_queue_keep_running(view, plan);
    size_t running = plan->grant_count;
    for (uint32_t job = SC_NONE; (job = sc_order_next(order, job, view->cluster->gpus)) != SC_NONE;) {
        unsigned type = choose(view, plan, job);
        if (type < view->cluster->type_count) sc_plan_run(plan, job, type, view->workload->jobs[job].gpus);
    }
    for (size_t i = running; i < plan->grant_count; i++) sc_order_remove(order, plan->grants[i].job);
    return MDOT_OK;
}

const sc_policy sc_policy_hydra = {
    .name = "hydra",
    .summary = "by deadline, each on the slowest GPU type that meets it (Hydra, reduced)",
    .uses_types = true,
    .create = sc_queue_create,
    .decide = decide,
    .destroy = sc_queue_destroy,
};
