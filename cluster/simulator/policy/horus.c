/* horus.c — Horus (Yeung et al., IEEE TPDS 2022): jobs share GPUs where little interference is predicted.
 *
 * Implemented: first come, first served, skipping jobs that do not fit, without preemption; a job goes to idle GPUs, on
 * the type where it ends first, or else to those of the running job beside which both keep the largest sum of speeds
 * (--pairs, or --interference), if that is more than one job's. Left out: the predictor of utilisation, which speeds of
 * pairs replace; more than two jobs on a GPU. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/policy/rounds.h"

typedef struct place {
    uint32_t guest; /* SC_NONE: none */
    unsigned type;
    bool is_host, is_guest;
} place;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    mdot_status status = sc_couples_check(view, err);
    return status == MDOT_OK ? sc_active_create(view, sizeof(place), out_self, err) : status;
}

/* Returns the job beside which a waiting one loses least, or SC_NONE. */
static uint32_t find_host(const sc_active *self, const sc_view *view, uint32_t job)
{
    const place *places = self->items;
    uint32_t best = SC_NONE;
    double most = 1;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t host = self->jobs[i];
        if (!places[host].is_host || places[host].guest != SC_NONE) continue;
        double kept = sc_couples_kept(view, job, host, places[host].type);
        double left = sc_couples_kept(view, host, job, places[host].type);
        if (kept == 0 || left == 0 || kept + left <= most) continue;
        most = kept + left;
        best = host;
    }
    return best;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *self = memory;
    place *places = self->items;
    self->count = sc_active_update(view, self->jobs, self->count);
    for (size_t i = 0; i < self->count; i++) places[self->jobs[i]] = (place){.guest = SC_NONE};
    sc_plan room = *plan; /* counts the GPUs that are left */
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->jobs[i], partner = view->states[job].partner;
        if (!sc_view_is_running(view, job) || places[job].is_guest) continue;
        places[job].is_host = true;
        places[job].type = view->states[job].type;
        room.free[places[job].type] -= view->workload->jobs[job].gpus;
        if (partner == SC_NONE || !sc_view_is_running(view, partner)) continue;
        places[job].guest = partner;
        places[partner].is_guest = true;
    }
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->jobs[i], host;
        if (sc_view_is_running(view, job)) continue;
        unsigned type = sc_fastest_free(view, &room, job);
        places[job].is_host = type < view->cluster->type_count;
        places[job].type = type;
        if (places[job].is_host)
            room.free[type] -= view->workload->jobs[job].gpus;
        else if ((host = find_host(self, view, job)) != SC_NONE)
            places[host].guest = job;
    }
    for (size_t i = 0; i < self->count; i++) {
        const place *p = &places[self->jobs[i]];
        if (!p->is_host) continue;
        sc_plan_run(plan, self->jobs[i], p->type, view->workload->jobs[self->jobs[i]].gpus);
        if (p->guest != SC_NONE) sc_plan_share(plan, p->guest);
    }
    return MDOT_OK;
}

const sc_policy sc_policy_horus = {
    .name = "horus",
    .summary = "first come, first served; shares GPUs where the least interference is predicted (Horus)",
    .create = create,
    .decide = decide,
};
