/* hare.c — Hare (Chen et al., HPDC 2022), reduced to filling gaps. A job that must wait has its GPUs reserved. Other
 * jobs run before it if they are predicted to end in time, or if they leave it enough GPUs.
 *
 * Implemented: predicted times let a scheduler use the GPUs that a blocked job leaves idle, without delaying that
 * job. Left out: tasks of one job on several types of GPUs, its relaxed program over all tasks, fast switching
 * between them. The result is EASY backfilling, as in batch schedulers, with any estimate: first come, first served,
 * no preemption.
 */
#include "simulator/policy/policies.h"
#include "simulator/policy/queue.h"

#include <math.h>
#include <stdlib.h>

typedef struct ending {
    double at_s;
    int gpus;
} ending;

static int by_time(const void *left, const void *right)
{
    const ending *a = left, *b = right;
    return (a->at_s > b->at_s) - (a->at_s < b->at_s);
}

static double predicted_end_s(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    return view->now_s + sc_estimate_remaining_s(view->estimate, job, state->remaining, state->executed_s);
}

/* Predicts when so many GPUs will be free, and how many further GPUs will be free then. */
static double reserve(const sc_view *view, const sc_plan *plan, int gpus, ending *endings, int *out_spare)
{
    for (size_t i = 0; i < plan->grant_count; i++)
        endings[i] = (ending){predicted_end_s(view, plan->grants[i].job), plan->grants[i].gpus};
    qsort(endings, plan->grant_count, sizeof *endings, by_time);
    int left = plan->free[0];
    size_t i = 0;
    for (; left < gpus && i < plan->grant_count; i++) left += endings[i].gpus;
    *out_spare = left - gpus;
    return i > 0 ? endings[i - 1].at_s : view->now_s;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    sc_order *order = memory;
    for (size_t i = 0; i < view->arrived_count; i++) sc_order_put_last(order, view->arrived[i], 0);
    sc_queue_keep_running(view, plan);
    sc_queue_start(order, view, plan, false);
    uint32_t blocked = sc_order_next(order, SC_NONE, view->cluster->gpus);
    if (blocked == SC_NONE || plan->free[0] == 0) return MDOT_OK;
    ending *endings = calloc((size_t)view->cluster->gpus, sizeof *endings);
    if (endings == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for a decision");
    int spare;
    double begins_s = reserve(view, plan, view->workload->jobs[blocked].gpus, endings, &spare);
    free(endings);
    uint32_t job = blocked;
    while (plan->free[0] > 0 && (job = sc_order_next(order, job, plan->free[0])) != SC_NONE) {
        int gpus = view->workload->jobs[job].gpus;
        bool ends_before = predicted_end_s(view, job) <= begins_s;
        if (!ends_before && gpus > spare) continue;
        if (!ends_before) spare -= gpus;
        sc_plan_run(plan, job, 0, gpus);
    }
    for (size_t i = 0; i < plan->grant_count; i++) sc_order_remove(order, plan->grants[i].job);
    return MDOT_OK;
}

const sc_policy sc_policy_hare = {
    .name = "hare",
    .summary = "first come, first served, gaps filled by predicted ends (Hare, reduced)",
    .create = sc_queue_create,
    .decide = decide,
    .destroy = sc_queue_destroy,
};
