/* cognn.c — CoGNN (Sun et al., SC 2022), reduced to groups of two: jobs of a queue run in groups on the same GPUs, by
 * the speeds of pairs (--pairs).
 *
 * Implemented from the paper, of which this project has only the abstract: tasks wait in a queue; a scheduler forms
 * groups whose memory fits, which run one after the other. The queue's first job looks for a partner among the next 64
 * jobs with the same width: the one with the largest sum of speeds, if the sum exceeds the speed of one job alone. A
 * group ends with the last job: when one ends, the other runs alone on the GPUs.
 *
 * mps is the baseline: the next job whose memory fits becomes the partner, whatever the interference.
 *
 * Left out: the memory estimate by operator (the table has 0 steps per second if a pair does not fit); groups of more
 * than two jobs, because such speeds are unmeasured; and other queue orders. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/policy/rounds.h"

#include <stdlib.h>

enum { LOOKED_AT = 64, TAKES_NEXT = 1 }; /* TAKES_NEXT: sc_policy.variant */

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    mdot_status status = sc_couples_check(view, err);
    return status == MDOT_OK ? sc_active_create(view, sizeof(bool), out_self, err) : status;
}

/* Grants a group of one or, with a partner, two jobs. `is_granted` is per job, in this decision. */
static void grant(bool *is_granted, const sc_view *view, sc_plan *plan, uint32_t job, unsigned type, uint32_t partner)
{
    sc_plan_run(plan, job, type, view->workload->jobs[job].gpus);
    is_granted[job] = true;
    if (partner == SC_NONE) return;
    sc_plan_share(plan, partner);
    is_granted[partner] = true;
}

/* Returns the best partner for the waiting job at `position`, or SC_NONE. `takes_next`: the first one that fits. */
static uint32_t find_partner(const sc_active *self, const sc_view *view, size_t position, unsigned type,
                             bool takes_next)
{
    const bool *is_granted = self->items;
    uint32_t job = self->jobs[position], best = SC_NONE;
    double maximum = takes_next ? 0 : 1;
    int looked_at = 0;
    for (size_t i = position + 1; i < self->count && looked_at < LOOKED_AT; i++) {
        uint32_t partner = self->jobs[i];
        if (is_granted[partner] || view->workload->jobs[partner].gpus != view->workload->jobs[job].gpus) continue;
        looked_at++;
        double kept = sc_couples_kept(view, job, partner, type), others = sc_couples_kept(view, partner, job, type);
        if (kept == 0 || others == 0 || kept + others <= maximum) continue;
        maximum = kept + others;
        best = partner;
        if (takes_next) break;
    }
    return best;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *self = memory;
    bool *is_granted = self->items;
    self->count = sc_active_update(view, self->jobs, self->count);
    for (size_t i = 0; i < self->count; i++) is_granted[self->jobs[i]] = false;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->jobs[i], partner = view->states[job].partner;
        if (!sc_view_is_running(view, job) || is_granted[job]) continue;
        grant(is_granted, view, plan, job, view->states[job].type,
              partner != SC_NONE && sc_view_is_running(view, partner) ? partner : SC_NONE);
    }
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->jobs[i];
        if (is_granted[job]) continue;
        unsigned type = sc_fastest_free(view, plan, job);
        if (type == view->cluster->type_count) break;
        grant(is_granted, view, plan, job, type,
              find_partner(self, view, i, type, view->policy->variant == TAKES_NEXT));
    }
    return MDOT_OK;
}

const sc_policy sc_policy_mps = {
    .name = "mps",
    .summary = "a queue in groups of two that share GPUs, whichever fit, by --pairs (MPS)",
    .variant = TAKES_NEXT,
    .create = create,
    .decide = decide,
};

const sc_policy sc_policy_cognn = {
    .name = "cognn",
    .summary = "a queue in groups of two that share GPUs, by --pairs (CoGNN, reduced)",
    .create = create,
    .decide = decide,
};
