/* hare.c — Hare (Chen et al., HPDC 2022): jobs of least weighted service go first, on several GPU types, and the tasks
 * of a job that finds too few GPUs run one after the other on those in the gaps.
 *
 * Implemented: the order of the paper's relaxed program over all tasks, which for jobs that are present is Smith's
 * rule, remaining service over weight; the list schedule, where each job takes the type on which it ends first, with
 * preemption at every event; and relaxed scale-fixed synchronisation: the g tasks of a step run in ceil(g / k) turns on
 * k GPUs of a type, so that a job goes on, more slowly, where all its tasks would not fit. Left out: tasks of one job
 * on several types at once; fast switching, whose cost is --restart-cost. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>

enum { EXCHANGED = 256 };

static double weighted_service(const sc_view *view, uint32_t job)
{
    const sc_job *j = &view->workload->jobs[job];
    return sc_view_left_s(view, job) * j->gpus / j->weight;
}

/* Returns the GPUs in the least number of turns that fit `free` GPUs. */
static int fold(int tasks, int free)
{
    int turns = (tasks + free - 1) / free;
    return (tasks + turns - 1) / turns;
}

/* Lets the job's tasks take turns on the type where they end first. */
static void run_in_gaps(const sc_view *view, sc_plan *plan, uint32_t job)
{
    const sc_job *j = &view->workload->jobs[job];
    double best = 0;
    unsigned chosen = 0;
    if (j->kind != SC_NONE && view->workload->kinds[j->kind].scaling != NULL) return;
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        if (plan->free[type] == 0) continue;
        int turns = (j->gpus + plan->free[type] - 1) / plan->free[type];
        double speed = sc_estimate_speed(view->estimate, job, type, j->gpus) / turns;
        if (speed <= best) continue;
        best = speed;
        chosen = type;
    }
    if (best > 0) sc_plan_run(plan, job, chosen, fold(j->gpus, plan->free[chosen]));
}

static double seconds_on(const sc_view *view, uint32_t job, unsigned type)
{
    const sc_state *state = &view->states[job];
    int gpus = view->workload->jobs[job].gpus;
    double speed = sc_estimate_speed(view->estimate, job, type, gpus);
    bool stays = state->phase == SC_RUNNING && state->type == type && state->gpus == gpus;
    double restart_s = stays || !isfinite(state->start_s) ? 0 : sc_restart_s(view->restart, gpus, false);
    return speed > 0 ? restart_s + sc_view_planned_work(view, job) / speed : INFINITY;
}

/* Exchanges the types of jobs of equal width if more of them end in a unit of time, because the first job in the order
 * may gain less from the fastest type than others. */
static void exchange_types(const sc_view *view, sc_plan *plan)
{
    for (size_t i = 0; i < plan->grant_count && i < EXCHANGED; i++) {
        for (size_t k = 0; k < i; k++) {
            sc_grant *a = &plan->grants[i], *b = &plan->grants[k];
            if (a->gpus != b->gpus || a->type == b->type) continue;
            double now = 1 / seconds_on(view, a->job, a->type) + 1 / seconds_on(view, b->job, b->type);
            double then = 1 / seconds_on(view, a->job, b->type) + 1 / seconds_on(view, b->job, a->type);
            if (then <= now * (1 + 1e-9)) continue;
            unsigned type = a->type;
            a->type = b->type;
            b->type = type;
        }
    }
}

static mdot_status decide(void *self, const sc_view *view, sc_plan *plan)
{
    uint32_t job = SC_NONE;
    sc_sorted_jobs_sort(self, view, weighted_service);
    const sc_order *order = sc_sorted_jobs_incomplete(self);
    sc_queue_fill(order, view, plan);
    exchange_types(view, plan);
    size_t whole = plan->grant_count;
    while (sc_plan_most_free(view, plan) > 0 && (job = sc_order_next(order, job, view->cluster->gpus)) != SC_NONE) {
        bool is_granted = false;
        for (size_t i = 0; i < whole; i++) is_granted |= plan->grants[i].job == job;
        if (!is_granted) run_in_gaps(view, plan, job);
    }
    return MDOT_OK;
}

const sc_policy sc_policy_hare = {
    .name = "hare",
    .summary = "least weighted service first over GPU types; tasks take turns in gaps (Hare)",
    .folds = true,
    .create = sc_sorted_jobs_create,
    .decide = decide,
};
