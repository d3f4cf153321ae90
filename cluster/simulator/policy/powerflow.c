/* powerflow.c — PowerFlow (Gu et al., arXiv 2304.06381, 2023), reduced to a job's GPU count. While the cluster may draw
 * more power, the next GPUs go to the job with the best ratio of speed-up to additional energy.
 *
 * Implemented: the greedy allocation (section 5), by a job's predicted relative time saving over the relative energy
 * increase; elastic widths, here powers of two. Left out: GPU clocks, because the power at each clock is unknown; an
 * energy budget over time, replaced by a power limit; packing and placement on nodes. Power comes from the cluster
 * file, the same for all jobs; if the file omits it, the policy refuses to run.
 *
 * Every waiting job first gets the least width, least predicted service first, so few jobs wait. A job whose speed is
 * known at only one width keeps that width. The policy decides at arrivals and completions; a job that grows or shrinks
 * has the cost of a restart. */
#include "simulator/policy/adaptive.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/policy/reservation.h"

#include <math.h>
#include <stdlib.h>

typedef struct job_width {
    uint32_t job;
    int width;
    double service; /* GPU-seconds at the least width */
} job_width;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    if (view->cluster->types[0].watts == 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "policy powerflow requires the power of GPUs: --cluster with watts");
    return sc_active_create(view, sizeof(job_width), out_self, err);
}

/* Returns the relative time saved at the next width over the relative energy added. */
static double gain(const sc_view *view, const job_width *s, int wider)
{
    double now_s = sc_goodput_left_s(view, s->job, 0, s->width), then_s = sc_goodput_left_s(view, s->job, 0, wider);
    double saved = 1 - then_s / now_s, more = wider * then_s / (s->width * now_s) - 1;
    if (saved <= 0) return 0;
    return more > 0 ? saved / more : INFINITY;
}

static int by_service(const void *left, const void *right)
{
    const job_width *a = left, *b = right;
    if (a->service != b->service) return a->service < b->service ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

/* Gives jobs the least width while GPUs are free; returns the remaining GPUs. */
static int give_least(const sc_active *self, const sc_view *view, int gpus)
{
    job_width *jobs = self->items;
    for (size_t i = 0; i < self->count; i++) {
        int minimum = sc_reservation_next_width(view, self->jobs[i], 0);
        double service = minimum == 0 ? INFINITY : minimum * sc_goodput_left_s(view, self->jobs[i], 0, minimum);
        jobs[i] = (job_width){.job = self->jobs[i], .service = service};
    }
    qsort(jobs, self->count, sizeof *jobs, by_service);
    for (size_t i = 0; i < self->count; i++) {
        int minimum = sc_reservation_next_width(view, jobs[i].job, 0);
        if (minimum == 0 || minimum > gpus) continue;
        jobs[i].width = minimum;
        gpus -= minimum;
    }
    return gpus;
}

static void widen(job_width *jobs, size_t count, const sc_view *view, int gpus)
{
    while (gpus > 0) {
        job_width *best = NULL;
        double maximum = 0;
        for (size_t i = 0; i < count; i++) {
            job_width *s = &jobs[i];
            int wider = s->width == 0 ? 0 : sc_reservation_next_width(view, s->job, s->width);
            if (wider == 0 || wider - s->width > gpus) continue;
            double gained = gain(view, s, wider);
            if (gained <= maximum) continue;
            maximum = gained;
            best = s;
        }
        if (best == NULL) return;
        int wider = sc_reservation_next_width(view, best->job, best->width);
        gpus -= wider - best->width;
        best->width = wider;
    }
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    sc_active *self = memory;
    const job_width *jobs = self->items;
    const sc_cluster *c = view->cluster;
    int gpus = c->gpus;
    if (c->power_w > 0) gpus = (int)fmin(gpus, floor(c->power_w / c->types[0].watts));
    self->count = sc_active_update(view, self->jobs, self->count);
    widen(self->items, self->count, view, give_least(self, view, gpus));
    for (size_t i = 0; i < self->count; i++)
        if (jobs[i].width > 0) sc_plan_run(plan, jobs[i].job, 0, jobs[i].width);
    return MDOT_OK;
}

const sc_policy sc_policy_powerflow = {
    .name = "powerflow",
    .summary = "GPUs to the jobs with the largest time saving per energy, within a power limit (PowerFlow, reduced)",
    .create = create,
    .decide = decide,
    .destroy = free,
};
