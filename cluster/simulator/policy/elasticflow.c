/* elasticflow.c — ElasticFlow (Gu et al., ASPLOS 2023): jobs with deadlines. A job is admitted if all admitted jobs
 * still meet their deadlines. Jobs are as wide as they need to be, and wider if GPUs are left.
 *
 * Implemented from the paper: slots of 60 s; widths are powers of two. A job's minimum satisfactory share is the
 * least width with which, slot by slot within the free GPUs, it ends before its deadline. Jobs are filled in by
 * deadline. Remaining GPUs go, doubling by doubling, to the job whose GPU time grows least or shrinks most. Every
 * plan includes the cost of restarts. Jobs without a deadline get the remaining GPUs.
 *
 * Left out: placement in a topology by buddy allocation, a batch size that changes with the width, and the profiler,
 * which an estimate replaces. If filling by deadline fails to find a plan for all admitted jobs, the existing plans
 * stay. Therefore exact estimates meet every deadline, for any cost of restarts. A job whose plan ran out, because its
 * estimate was too short, runs on the remaining GPUs like a job without a deadline.
 */
#include "base/status.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/policy/reservation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double slot_s = SC_SLOT_S;

typedef struct offer { /* a job's next width in this slot; wider: 0 for none */
    int wider;
    double gain; /* GPU time saved until the job's end */
} offer;

typedef struct elastic {
    sc_reservation *plans; /* guaranteed GPUs per job, from the planning slot on */
    double made_s;         /* start of the first slot in all plans */
    uint32_t *active;      /* admitted and incomplete */
    uint32_t *pending;     /* arrived since the beginning of the last slot */
    uint32_t *order;       /* scratch for sorting */
    sc_reservation *fresh; /* scratch for new plans, in the order of active */
    size_t active_count, pending_count;
    sc_free_slots free_slots;
    int *width;    /* width of each active job in this slot */
    offer *offers; /* of each active job */
} elastic;

static void destroy(void *memory)
{
    elastic *self = memory;
    for (size_t i = 0; i < self->active_count; i++) sc_reservation_free(&self->plans[self->active[i]]);
    sc_free_slots_destroy(&self->free_slots);
    free(self);
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(elastic, plans, jobs),   SC_ARRAY(elastic, active, jobs),
                               SC_ARRAY(elastic, pending, jobs), SC_ARRAY(elastic, order, jobs),
                               SC_ARRAY(elastic, fresh, jobs),   SC_ARRAY(elastic, width, jobs),
                               SC_ARRAY(elastic, offers, jobs)};
    return SC_STATE(elastic, arrays, out_self, err);
}

static bool has_deadline(const sc_view *view, uint32_t job) { return isfinite(view->workload->jobs[job].deadline_s); }

/* Inserts a job into `order`, by its deadline. */
static void sort_in(const sc_view *view, uint32_t *order, size_t count, uint32_t job)
{
    size_t i = count;
    double deadline_s = view->workload->jobs[job].deadline_s;
    for (; i > 0 && view->workload->jobs[order[i - 1]].deadline_s > deadline_s; i--) order[i] = order[i - 1];
    order[i] = job;
}

/* Makes plans for all admitted jobs and `added` (SC_NONE: none), by deadline. If one of them would be late, *out_fits
 * is false and the state stays as it was. */
static mdot_status fill_anew(elastic *self, const sc_view *view, uint32_t added, bool *out_fits, mdot_error *err)
{
    size_t count = 0, made = 0;
    mdot_status status = MDOT_OK;
    for (size_t i = 0; i < self->active_count; i++)
        if (has_deadline(view, self->active[i])) sort_in(view, self->order, count++, self->active[i]);
    if (added != SC_NONE) sort_in(view, self->order, count++, added);
    sc_free_slots_reset(&self->free_slots, view->cluster->gpus);
    *out_fits = true;
    while (made < count && *out_fits && status == MDOT_OK) {
        status = sc_reservation_make(view, self->order[made], &self->free_slots, &self->fresh[made], out_fits, err);
        if (status == MDOT_OK && *out_fits) made++;
    }
    if (status == MDOT_OK && *out_fits) {
        for (size_t i = 0; i < count; i++) {
            sc_reservation_free(&self->plans[self->order[i]]);
            self->plans[self->order[i]] = self->fresh[i];
        }
    } else {
        for (size_t i = 0; i < made; i++) sc_reservation_free(&self->fresh[i]);
    }
    return status;
}

/* Makes a plan for `added` in the GPUs that the existing plans leave free. */
static mdot_status fit_in(elastic *self, const sc_view *view, uint32_t added, bool *out_fits, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    sc_free_slots_reset(&self->free_slots, view->cluster->gpus);
    for (size_t i = 0; status == MDOT_OK && i < self->active_count; i++)
        status = sc_free_slots_reserve(&self->free_slots, &self->plans[self->active[i]], err);
    if (status == MDOT_OK)
        status = sc_reservation_make(view, added, &self->free_slots, &self->plans[added], out_fits, err);
    return status;
}

static mdot_status admit(elastic *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < self->pending_count; i++) {
        uint32_t job = self->pending[i];
        bool fits = true;
        if (has_deadline(view, job)) {
            status = fill_anew(self, view, job, &fits, err);
            if (status == MDOT_OK && !fits) status = fit_in(self, view, job, &fits, err);
        }
        if (status == MDOT_OK && fits)
            self->active[self->active_count++] = job;
        else if (status == MDOT_OK)
            sc_plan_reject(plan, job);
    }
    self->pending_count = 0;
    return status;
}

/* Computes how doubling a job's width in this slot changes its GPU time until its end. wider is 0 if the job must keep
 * its width: its speed at the new width is unknown, or it would end later. */
static offer offer_wider(const elastic *self, const sc_view *view, size_t i)
{
    uint32_t job = self->active[i];
    int width = self->width[i], wider = sc_reservation_next_width(view, job, width);
    if (wider == 0) return (offer){0};
    sc_outcome now = sc_reservation_outcome(view, job, &self->plans[job], width);
    sc_outcome then = sc_reservation_outcome(view, job, &self->plans[job], wider);
    if (then.end_s > now.end_s) return (offer){0};
    return (offer){wider, now.end_s == INFINITY ? INFINITY : now.gpu_s - then.gpu_s};
}

static void hand_out_rest(elastic *self, const sc_view *view, int left)
{
    for (size_t i = 0; left > 0 && i < self->active_count; i++) self->offers[i] = offer_wider(self, view, i);
    while (left > 0) {
        size_t best = self->active_count;
        for (size_t i = 0; i < self->active_count; i++) {
            const offer *o = &self->offers[i];
            if (o->wider == 0 || o->wider - self->width[i] > left) continue;
            if (best < self->active_count && o->gain <= self->offers[best].gain) continue;
            best = i;
        }
        if (best == self->active_count) return;
        left -= self->offers[best].wider - self->width[best];
        self->width[best] = self->offers[best].wider;
        self->offers[best] = offer_wider(self, view, best);
    }
}

static void drop_completed(elastic *self, const sc_view *view)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->active_count; i++) {
        uint32_t job = self->active[i];
        if (view->states[job].phase == SC_DONE)
            sc_reservation_free(&self->plans[job]);
        else
            self->active[kept++] = job;
    }
    self->active_count = kept;
}

static mdot_status begin_slot(elastic *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    int left = view->cluster->gpus;
    for (size_t i = 0; i < self->active_count; i++)
        sc_reservation_shift(&self->plans[self->active[i]], (size_t)((view->now_s - self->made_s) / slot_s + .5));
    self->made_s = view->now_s;
    BS_TRY(admit(self, view, plan, err));
    for (size_t i = 0; i < self->active_count; i++) {
        self->width[i] = sc_reservation_width(&self->plans[self->active[i]]);
        left -= self->width[i];
    }
    hand_out_rest(self, view, left);
    for (size_t i = 0; i < self->active_count; i++)
        if (self->width[i] > 0) sc_plan_run(plan, self->active[i], 0, self->width[i]);
    return MDOT_OK;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    elastic *self = memory;
    drop_completed(self, view);
    for (size_t i = 0; i < view->arrived_count; i++) self->pending[self->pending_count++] = view->arrived[i];
    double begun_s = floor(view->now_s / slot_s) * slot_s;
    mdot_status status = MDOT_OK;
    if (begun_s == view->now_s) {
        status = begin_slot(self, view, plan, view->err);
    } else {
        for (size_t i = 0; i < view->running_count; i++)
            sc_plan_run(plan, view->running[i], 0, view->states[view->running[i]].gpus);
    }
    if (self->active_count + self->pending_count > 0) plan->wake_s = begun_s + slot_s;
    return status;
}

const sc_policy sc_policy_elasticflow = {
    .name = "elasticflow",
    .summary = "deadlines, admission, elastic widths in slots of 60 s (ElasticFlow)",
    .one_type = true,
    .period_s = SC_SLOT_S,
    .plans_slots = true,
    .create = create,
    .decide = decide,
    .destroy = destroy,
};
