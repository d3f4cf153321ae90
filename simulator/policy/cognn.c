/* cognn.c — CoGNN (Sun et al., SC 2022), reduced to groups of two: jobs of a queue run in groups on the same GPUs, by
 * the speeds of pairs (--pairs).
 *
 * Implemented from the paper, of which this project has only the abstract: tasks wait in a queue; a scheduler forms
 * groups whose memory fits, which run one after the other. The first job of the queue forms a group with that job,
 * among the next 64 of its width, with which it keeps most speed in sum, if that is more than one of them alone has. A
 * group ends with its last job: when the first one ends, the other one has the GPUs for itself.
 *
 * Left out: the estimate of memory by operator, for which the table has 0 steps per second if a pair does not fit;
 * groups of more than two jobs, whose speeds are unmeasured; and its other orders of the queue.
 */
#include "simulator/policy/active.h"
#include "simulator/policy/couples.h"
#include "simulator/policy/policies.h"

#include <stdlib.h>

enum { LOOKED_AT = 64 };

typedef struct cognn {
    uint32_t *active;
    size_t count;
    bool *is_granted; /* per job, in this decision */
} cognn;

static void destroy(void *memory)
{
    cognn *self = memory;
    if (self == NULL) return;
    free(self->active);
    free(self->is_granted);
    free(self);
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    mdot_status status = sc_couples_check(view, err);
    if (status != MDOT_OK) return status;
    cognn *self = calloc(1, sizeof *self);
    if (self != NULL)
        *self = (cognn){.active = calloc(view->workload->job_count + 1, sizeof *self->active),
                        .is_granted = calloc(view->workload->job_count + 1, sizeof *self->is_granted)};
    if (self == NULL || self->active == NULL || self->is_granted == NULL) {
        destroy(self);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for a policy");
    }
    *out_self = self;
    return MDOT_OK;
}

static bool is_running(const sc_view *view, uint32_t job)
{
    return view->states[job].phase == SC_RUNNING;
}

/* Grants a group of one or, with a partner, two jobs. */
static void grant(cognn *self, const sc_view *view, sc_plan *plan, uint32_t job, uint32_t partner)
{
    sc_plan_run(plan, job, 0, view->workload->jobs[job].gpus);
    self->is_granted[job] = true;
    if (partner == SC_NONE) return;
    sc_plan_share(plan, partner);
    self->is_granted[partner] = true;
}

/* Returns the best partner for the waiting job at `at`, or SC_NONE. */
static uint32_t find_partner(const cognn *self, const sc_view *view, size_t at)
{
    uint32_t job = self->active[at], best = SC_NONE;
    double most = 1;
    int looked_at = 0;
    for (size_t i = at + 1; i < self->count && looked_at < LOOKED_AT; i++) {
        uint32_t other = self->active[i];
        if (self->is_granted[other] || view->workload->jobs[other].gpus != view->workload->jobs[job].gpus) continue;
        looked_at++;
        double kept = sc_couples_kept(view, job, other, 0), others = sc_couples_kept(view, other, job, 0);
        if (kept == 0 || others == 0 || kept + others <= most) continue;
        most = kept + others;
        best = other;
    }
    return best;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    cognn *self = memory;
    self->count = sc_active_update(view, self->active, self->count);
    for (size_t i = 0; i < self->count; i++) self->is_granted[self->active[i]] = false;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i], partner = view->states[job].partner;
        if (!is_running(view, job) || self->is_granted[job]) continue;
        grant(self, view, plan, job, partner != SC_NONE && is_running(view, partner) ? partner : SC_NONE);
    }
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i];
        if (self->is_granted[job]) continue;
        if (view->workload->jobs[job].gpus > plan->free[0]) break;
        grant(self, view, plan, job, find_partner(self, view, i));
    }
    return MDOT_OK;
}

const sc_policy sc_policy_cognn = {
    .name = "cognn",
    .summary = "a queue in groups of two that share GPUs, by --pairs (CoGNN, reduced)",
    .create = create,
    .decide = decide,
    .destroy = destroy,
};
