/* dlas.c — discretised least attained service: Tiresias' policy for unknown durations (Gu et al., NSDI 2019). It
 * decides as Tiresias' simulator does: three levels, limits of 3250 and 7200 attained GPU-seconds, no promotion of
 * starving jobs. Left out from the paper: that promotion (off in the published runs) and placement by skew.
 *
 * Levels are lists. A job at the level's limit joins the end of the next list, one level per event. GPUs go to each job
 * that fits, the first list first. Jobs that run then move to the front of the same list, in the list's order.
 *
 * All lists are stored as one order whose key is the level. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

enum { LEVELS = 3 };
static const double limits_gpu_s[LEVELS - 1] = {3250, 7200};

typedef struct dlas {
    sc_order order;
    uint32_t *running; /* in order of arrival */
} dlas;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    const sc_array arrays[] = {{offsetof(dlas, order.nodes), sc_order_bytes(view->workload)},
                               SC_ARRAY(dlas, running, view->cluster->gpus)};
    mdot_status status = SC_STATE(dlas, arrays, out_self, err);
    if (status == MDOT_OK) sc_order_begin(&((dlas *)*out_self)->order, view->workload);
    return status;
}

static void demote(dlas *self, const sc_view *view)
{
    for (size_t i = 0; i < view->running_count; i++) self->running[i] = view->running[i];
    qsort(self->running, view->running_count, sizeof *self->running, sc_by_number);
    for (size_t i = 0; i < view->running_count; i++) {
        uint32_t job = self->running[i];
        int level = (int)sc_order_key(&self->order, job);
        if (level + 1 < LEVELS && view->states[job].attained_gpu_s >= limits_gpu_s[level])
            sc_order_put_last(&self->order, job, level + 1);
    }
}

/* Returns when the first job with GPUs reaches the level's limit, in whole seconds. */
static double next_demotion_s(const dlas *self, const sc_view *view, const sc_plan *plan)
{
    double next_s = INFINITY;
    for (size_t i = 0; i < plan->grant_count; i++) {
        uint32_t job = plan->grants[i].job;
        int level = (int)sc_order_key(&self->order, job);
        if (level + 1 == LEVELS) continue;
        double missing_gpu_s = limits_gpu_s[level] - view->states[job].attained_gpu_s;
        next_s = fmin(next_s, view->now_s + fmax(0, ceil(missing_gpu_s / plan->grants[i].gpus)));
    }
    return next_s;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    dlas *self = memory;
    for (size_t i = 0; i < view->completed_count; i++) sc_order_remove(&self->order, view->completed[i]);
    for (size_t i = 0; i < view->arrived_count; i++) sc_order_put_last(&self->order, view->arrived[i], 0);
    demote(self, view);
    sc_queue_fill(&self->order, view, plan);
    for (size_t i = plan->grant_count; i-- > 0;)
        sc_order_put_first(&self->order, plan->grants[i].job, sc_order_key(&self->order, plan->grants[i].job));
    plan->wake_s = next_demotion_s(self, view, plan);
    return MDOT_OK;
}

const sc_policy sc_policy_dlas = {
    .name = "dlas",
    .summary = "least attained service first in three levels (Tiresias, durations unknown)",
    .create = create,
    .decide = decide,
};
