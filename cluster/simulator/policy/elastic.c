/* elastic.c — elastic jobs, whose GPUs grow and shrink between their bounds while they run (columns min_gpus and
 * max_gpus). The remaining GPUs go to the jobs with the largest marginal gains, as in Optimus (Peng et al., EuroSys
 * 2018).
 *
 * Jobs start in the order of arrival, at their least width. If too few GPUs are free, running jobs shrink as far as
 * their bounds allow; no job is preempted. The next GPUs then go to the job whose predicted remaining time decreases
 * most for each of them. A running job grows only if that saves more time than a restart costs (--restart-cost).
 *
 * Implemented from Optimus: the greedy allocation by marginal gain. `optimus` multiplies remaining times by the fit of
 * each job's losses so far (loss_curves.h); `elastic` takes estimates as they are. Left out: parameter servers (a
 * second kind of task), and decisions at fixed intervals.
 */
#include "simulator/policy/adaptive.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/loss_curves.h"
#include "simulator/policy/policies.h"

#include <math.h>

enum { FITS_LOSSES = 1 }; /* sc_policy.variant */

/* Jobs that run after this decision. */
typedef struct shares {
    sc_share *items;
    size_t count;
} shares;

typedef struct elastic {
    sc_active active;  /* its items are the shares */
    sc_loss_fit *fits; /* one per job */
} elastic;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {{offsetof(elastic, active.jobs), jobs * sizeof(uint32_t)},
                               {offsetof(elastic, active.items), jobs * sizeof(sc_share)},
                               SC_ARRAY(elastic, fits, jobs)};
    return SC_STATE(elastic, arrays, out_self, err);
}

static int now_of(const sc_view *view, uint32_t job)
{
    return view->states[job].phase == SC_RUNNING ? view->states[job].gpus : 0;
}

/* Returns the job at its least width on its type or, if it waits, on the type where that ends first; a width of 0: none
 * has so many GPUs left. */
static sc_share least_of(const sc_view *view, uint32_t job, const int *left)
{
    sc_share best = {.job = job};
    double least_s = INFINITY;
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        if (now_of(view, job) > 0 && view->states[job].type != type) continue;
        int width = sc_goodput_next_width(view, job, type, 0, left[type]);
        double left_s = width > 0 ? sc_goodput_left_s(view, job, type, width) : INFINITY;
        if (width == 0 || (best.gpus > 0 && left_s >= least_s)) continue;
        least_s = left_s;
        best = (sc_share){.job = job, .type = type, .gpus = width};
    }
    return best;
}

/* Gives every running job its least width, and then waiting jobs until one does not fit. Running jobs come first in the
 * order, because jobs start in it. */
static void give_least(const sc_active *self, const sc_view *view, int *left, shares *out)
{
    *out = (shares){.items = self->items};
    for (size_t i = 0; i < self->count; i++) {
        sc_share share = least_of(view, self->jobs[i], left);
        if (share.gpus == 0) break;
        out->items[out->count++] = share;
        left[share.type] -= share.gpus;
    }
}

/* Lets the running jobs of each type keep the same widths, if all can. */
static void keep_widths(const shares *s, const sc_view *view, int *left)
{
    int wanted[SC_MAX_TYPES] = {0};
    for (size_t i = 0; i < s->count; i++) {
        int now = now_of(view, s->items[i].job);
        if (now > 0) wanted[s->items[i].type] += now - s->items[i].gpus;
    }
    for (size_t i = 0; i < s->count; i++) {
        int now = now_of(view, s->items[i].job);
        if (now > 0 && wanted[s->items[i].type] <= left[s->items[i].type]) s->items[i].gpus = now;
    }
    for (unsigned type = 0; type < view->cluster->type_count; type++)
        if (wanted[type] <= left[type]) left[type] -= wanted[type];
}

/* Returns the seconds saved per further GPU at the job's next width, which is stored; 0: it stays. */
static double gain(const sc_view *view, const sc_share *share, sc_loss_fit *fits, const int *left, int *out_width)
{
    int now = now_of(view, share->job);
    *out_width = sc_goodput_next_width(view, share->job, share->type, share->gpus, share->gpus + left[share->type]);
    if (*out_width == 0) return 0;
    double saved_s = sc_goodput_left_s(view, share->job, share->type, share->gpus) -
                     sc_goodput_left_s(view, share->job, share->type, *out_width);
    if (fits != NULL) saved_s *= sc_loss_left_ratio(view, share->job, &fits[share->job]);
    /* Leaving the present width costs a restart; coming back to it costs nothing. */
    if (now > 0 && share->gpus == now) saved_s -= sc_restart_s(view->restart, *out_width, false);
    return saved_s / (*out_width - share->gpus);
}

static void widen(const shares *s, const sc_view *view, sc_loss_fit *fits, int *left)
{
    for (;;) {
        sc_share *best = NULL;
        double maximum = 0;
        int width, best_width = 0;
        for (size_t i = 0; i < s->count; i++) {
            if (left[s->items[i].type] == 0) continue;
            double gained = gain(view, &s->items[i], fits, left, &width);
            if (gained <= maximum) continue;
            maximum = gained;
            best = &s->items[i];
            best_width = width;
        }
        if (best == NULL) return;
        left[best->type] -= best_width - best->gpus;
        best->gpus = best_width;
    }
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    elastic *self = memory;
    shares running;
    self->active.count = sc_active_update(view, self->active.jobs, self->active.count);
    int left[SC_MAX_TYPES];
    for (unsigned type = 0; type < view->cluster->type_count; type++) left[type] = plan->free[type];
    give_least(&self->active, view, left, &running);
    keep_widths(&running, view, left);
    widen(&running, view, view->policy->variant == FITS_LOSSES ? self->fits : NULL, left);
    return sc_pack(view, plan, running.items, running.count, view->err);
}

const sc_policy sc_policy_elastic = {
    .name = "elastic",
    .summary = "first come, first served; widths between the jobs' bounds by marginal gain",
    .create = create,
    .decide = decide,
};

const sc_policy sc_policy_optimus = {
    .name = "optimus",
    .summary = "the same, with remaining work by curves fitted to each job's losses (Optimus)",
    .variant = FITS_LOSSES,
    .create = create,
    .decide = decide,
};
