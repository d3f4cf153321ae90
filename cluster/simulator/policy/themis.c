/* themis.c — Themis (Mahajan et al., NSDI 2020): an auction of leases among the worst-treated jobs.
 *
 * Implemented: finish-time fairness (rho), a job's total time over the time in an equal part of the cluster; rounds
 * (leases) after which all GPUs are offered again; the filter, which offers them to the worst-treated fifth of the jobs
 * first (the paper's fairness knob of .8) and the rest to the others; partial bids, rho for each width that an elastic
 * job (min_gpus, max_gpus) could get; the allocation of the largest product of 1 / rho, by the largest gain for each
 * further GPU; and hidden payments: an elastic winner keeps the part of its GPUs by which its presence lowers the
 * others' product, and the next fifth gets the rest. Jobs of a fixed width bid for all of it or nothing.
 *
 * Themis does not know that GPU types differ, so a job whose lease is renewed stays on its type; Gavel's authors
 * compare with such a Themis. Left out: placement, and apps of several jobs. gavel-ftf solves the same measure as a
 * program. */
#include "simulator/policy/adaptive.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

#define LEASE_S 360.
#define FILTER .2      /* part of the jobs that an auction is open to */
#define FIRST_GAIN 1e3 /* above the logarithm of any gain */
enum { MOST_BIDDERS = 64 };

typedef struct bidder {
    uint32_t job;
    unsigned type;
    int width; /* that it wins */
} bidder;

typedef struct themis {
    uint32_t *active;
    sc_ranked *order; /* the worst-treated job first */
    size_t count;
} themis;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(themis, active, jobs), SC_ARRAY(themis, order, jobs)};
    return SC_STATE(themis, arrays, out_self, err);
}

/* In an equal part of the cluster, a job is slower by the ratio of requested GPUs to existing GPUs. */
static double ratio_of(const sc_view *view, uint32_t job, double contention)
{
    double left_s = sc_view_left_s(view, job);
    double taken_s = view->now_s - view->workload->jobs[job].submit_s + left_s;
    double alone_s = fmax(sc_estimate_duration_s(view->estimate, job), 1);
    return taken_s / (alone_s * contention);
}

static int least_width(const sc_job *job) { return job->least_gpus > 0 ? job->least_gpus : job->gpus; }

/* Returns the type for a bid: the job's own, or the fastest one with enough free GPUs; type_count: none. */
static unsigned type_of(const sc_view *view, const sc_plan *plan, uint32_t job)
{
    const sc_state *state = &view->states[job];
    int width = least_width(&view->workload->jobs[job]);
    unsigned best = view->cluster->type_count;
    double most = 0;
    if (state->phase == SC_RUNNING && plan->free[state->type] >= width) return state->type;
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        double speed = plan->free[type] >= width ? sc_estimate_speed(view->estimate, job, type, width) : 0;
        if (speed <= most) continue;
        most = speed;
        best = type;
    }
    return best;
}

/* Returns the job's total time if it gets so many GPUs for this lease. With 0 it waits for the next lease, and has its
 * least width then. */
static double total_s(const sc_view *view, const bidder *b, int width)
{
    const sc_job *job = &view->workload->jobs[b->job];
    const sc_state *state = &view->states[b->job];
    double left_s = sc_goodput_left_s(view, b->job, b->type, width > 0 ? width : least_width(job));
    bool stays = state->phase == SC_RUNNING && state->type == b->type && state->gpus == width;
    double begun_s = width == 0 ? LEASE_S : 0;
    if (!stays) begun_s += sc_restart_s(view->restart, job->gpus, false);
    return fmax(1, view->now_s - job->submit_s + begun_s + left_s);
}

static int next_width(const sc_view *view, const bidder *b, int free_gpus)
{
    const sc_job *job = &view->workload->jobs[b->job];
    if (job->least_gpus == 0) return b->width == 0 && job->gpus <= free_gpus ? job->gpus : 0;
    return sc_goodput_next_width(view, b->job, b->type, b->width, b->width + free_gpus);
}

/* Chooses widths with nearly the largest product of 1 / rho, without bidder `absent`. Returns its logarithm without the
 * bidder `unseen`. */
static double auction(const sc_view *view, bidder *bidders, size_t count, size_t absent, size_t unseen,
                      const int *free_gpus)
{
    int left[SC_MAX_TYPES];
    double value = 0;
    for (unsigned type = 0; type < view->cluster->type_count; type++) left[type] = free_gpus[type];
    for (size_t i = 0; i < count; i++) bidders[i].width = 0;
    for (;;) {
        double most = 0;
        size_t best = count;
        int best_width = 0;
        for (size_t i = 0; i < count; i++) {
            const bidder *b = &bidders[i];
            int width = i == absent ? 0 : next_width(view, b, left[b->type]);
            if (width == 0) continue;
            double gain = log(total_s(view, b, b->width) / total_s(view, b, width)) / (width - b->width);
            if (b->width == 0) gain += FIRST_GAIN; /* 1 / rho without GPUs is 0 */
            if (gain <= most) continue;
            most = gain;
            best = i;
            best_width = width;
        }
        if (best == count) break;
        left[bidders[best].type] -= best_width - bidders[best].width;
        bidders[best].width = best_width;
    }
    for (size_t i = 0; i < count; i++)
        if (i != absent && i != unseen) value -= log(total_s(view, &bidders[i], bidders[i].width));
    return value;
}

/* Grants the winners their GPUs, less the hidden payments of elastic ones. */
static void sell(const sc_view *view, sc_plan *plan, bidder *bidders, size_t count)
{
    bidder others[MOST_BIDDERS];
    int kept[MOST_BIDDERS];
    double value;
    auction(view, bidders, count, count, count, plan->free);
    for (size_t i = 0; i < count; i++) {
        const sc_job *job = &view->workload->jobs[bidders[i].job];
        kept[i] = bidders[i].width;
        if (job->least_gpus == 0 || kept[i] <= job->least_gpus) continue;
        for (size_t k = 0; k < count; k++) others[k] = bidders[k];
        value = auction(view, others, count, count, i, plan->free) - auction(view, others, count, i, i, plan->free);
        kept[i] = (int)fmax(job->least_gpus, floor(kept[i] * exp(fmin(0, value)) + 1e-9));
        while (kept[i] < bidders[i].width &&
               sc_estimate_speed(view->estimate, bidders[i].job, bidders[i].type, kept[i]) == 0)
            kept[i]++; /* a table may lack this width */
    }
    for (size_t i = 0; i < count; i++)
        if (kept[i] > 0) sc_plan_run(plan, bidders[i].job, bidders[i].type, kept[i]);
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    themis *self = memory;
    double requested_gpus = 0;
    self->count = sc_active_update(view, self->active, self->count);
    for (size_t i = 0; i < self->count; i++) requested_gpus += view->workload->jobs[self->active[i]].gpus;
    double contention = fmax(1, requested_gpus / view->cluster->gpus);
    int narrowest = INT_MAX;
    for (size_t i = 0; i < self->count; i++) {
        int gpus = least_width(&view->workload->jobs[self->active[i]]);
        if (gpus < narrowest) narrowest = gpus;
        self->order[i] = (sc_ranked){self->active[i], -ratio_of(view, self->active[i], contention)};
    }
    qsort(self->order, self->count, sizeof *self->order, sc_by_rank);
    for (size_t next = 0; next < self->count && sc_plan_most_free(view, plan) >= narrowest;) {
        size_t offered = (size_t)fmin(MOST_BIDDERS, ceil(FILTER * (double)self->count)), count = 0;
        bidder bidders[MOST_BIDDERS];
        for (; next < self->count && offered > 0; offered--) {
            uint32_t job = self->order[next++].job;
            unsigned type = type_of(view, plan, job);
            if (type < view->cluster->type_count) bidders[count++] = (bidder){.job = job, .type = type};
        }
        sell(view, plan, bidders, count);
    }
    return MDOT_OK;
}

const sc_policy sc_policy_themis = {
    .name = "themis",
    .summary = "auctions of leases by finish-time fairness, in rounds (Themis)",
    .round_s = LEASE_S,
    .create = create,
    .decide = decide,
};
