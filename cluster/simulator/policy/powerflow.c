/* powerflow.c — PowerFlow (Gu et al., arXiv 2304.06381, 2023): GPUs and GPU clocks to the jobs that save the most time
 * for the energy.
 *
 * Implemented: the greedy allocation (section 5), by a job's predicted relative time saving over the relative energy
 * increase; elastic widths; clocks in tenths of the highest one; several GPU types. Left out: an energy budget over
 * time, replaced by a power limit; packing and placement on nodes. Power comes from the cluster file, the same for all
 * jobs; if the file omits it, the policy refuses to run. Types without idle_watts keep the highest clock.
 *
 * Every waiting job first gets the least width, least predicted service first, so few jobs wait. It begins at the
 * lowest clock, on the type where energy times time is least. A step is the next width or the next clock of a job.
 * Steps end with the free GPUs and with --power. Without --power, types with idle_watts take only steps that save
 * relatively more time than they add energy, because higher clocks would always save some time.
 *
 * The policy decides at arrivals and completions; a job that grows, shrinks or moves has the cost of a restart. */
#include "simulator/policy/adaptive.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

#define LEAST_CLOCK .5
#define CLOCK_STEP .1

typedef struct job_width {
    uint32_t job;
    unsigned type;
    int width;
    double clock;
    double service; /* GPU-seconds at the least width */
} job_width;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    for (unsigned type = 0; type < view->cluster->type_count; type++)
        if (view->cluster->types[type].watts == 0)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                             "policy powerflow requires the power of GPUs: --cluster with watts");
    return sc_active_create(view, sizeof(job_width), out_self, err);
}

static double watts_of(const sc_view *view, const job_width *s)
{
    return s->width * sc_cluster_watts(&view->cluster->types[s->type], s->clock);
}

static double left_s(const sc_view *view, const job_width *s)
{
    return sc_goodput_left_s(view, s->job, s->type, s->width) *
           sc_workload_clock_slowdown(&view->workload->jobs[s->job], s->clock);
}

/* Returns the relative time saved by a step over the relative energy added. */
static double gain(const sc_view *view, const job_width *from, const job_width *to)
{
    double now_s = left_s(view, from), then_s = left_s(view, to);
    double saved = 1 - then_s / now_s;
    double more = watts_of(view, to) * then_s / (watts_of(view, from) * now_s) - 1;
    if (saved <= 0) return 0;
    return more > 0 ? saved / more : INFINITY;
}

static int by_service(const void *left, const void *right)
{
    const job_width *a = left, *b = right;
    if (a->service != b->service) return a->service < b->service ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

/* Returns the job at its least width and clock on the type of least energy times time that has the GPUs and the power;
 * a width of 0 if there is none. A restart counts if the job moves. */
static job_width least_of(const sc_view *view, uint32_t job, const int *free_gpus, double power_w)
{
    job_width best = {.job = job};
    double least = INFINITY;
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        bool has_clocks = view->cluster->types[type].idle_watts > 0;
        job_width s = {.job = job, .type = type, .clock = has_clocks ? LEAST_CLOCK : 1};
        const sc_state *state = &view->states[job];
        s.width = sc_goodput_next_width(view, job, type, 0, free_gpus[type]);
        if (s.width == 0 || watts_of(view, &s) > power_w) continue;
        bool moves = state->phase == SC_RUNNING && state->type != type;
        double time_s = left_s(view, &s) + (moves ? sc_restart_s(view->restart, s.width, false) : 0);
        double product = time_s * time_s * watts_of(view, &s);
        if (best.width > 0 && product >= least) continue;
        least = product;
        best = s;
    }
    return best;
}

static void give_least(const sc_active *self, const sc_view *view, int *free_gpus, double *power_w)
{
    job_width *jobs = self->items;
    for (size_t i = 0; i < self->count; i++) {
        int all[SC_MAX_TYPES];
        for (unsigned type = 0; type < view->cluster->type_count; type++) all[type] = view->cluster->types[type].gpus;
        jobs[i] = least_of(view, self->jobs[i], all, INFINITY);
        jobs[i].service = jobs[i].width == 0 ? INFINITY : jobs[i].width * left_s(view, &jobs[i]);
    }
    qsort(jobs, self->count, sizeof *jobs, by_service);
    for (size_t i = 0; i < self->count; i++) {
        jobs[i] = least_of(view, jobs[i].job, free_gpus, *power_w);
        if (jobs[i].width == 0) continue;
        free_gpus[jobs[i].type] -= jobs[i].width;
        *power_w -= watts_of(view, &jobs[i]);
    }
}

/* Finds the better of a job's two next steps within GPUs and power. Returns its gain; 0: there is none. */
static double next_step(const sc_view *view, const job_width *from, const int *free_gpus, double power_w,
                        job_width *out_to)
{
    double best = view->cluster->power_w == 0 && view->cluster->types[from->type].idle_watts > 0 ? 1 : 0, found = 0;
    for (int step = 0; step < 2; step++) {
        job_width to = *from;
        if (step == 0)
            to.width =
                sc_goodput_next_width(view, from->job, from->type, from->width, from->width + free_gpus[from->type]);
        else
            to.clock = fmin(1, from->clock + CLOCK_STEP);
        if (to.width == 0 || (step == 1 && from->clock >= 1)) continue;
        double gained = gain(view, from, &to);
        if (gained <= best || watts_of(view, &to) - watts_of(view, from) > power_w) continue;
        found = best = gained;
        *out_to = to;
    }
    return found;
}

static void widen(job_width *jobs, size_t count, const sc_view *view, int *free_gpus, double power_w)
{
    for (;;) {
        job_width *best = NULL, to = {0}, best_to = {0};
        double maximum = 0;
        for (size_t i = 0; i < count; i++) {
            double gained = jobs[i].width == 0 ? 0 : next_step(view, &jobs[i], free_gpus, power_w, &to);
            if (gained <= maximum) continue;
            maximum = gained;
            best = &jobs[i];
            best_to = to;
        }
        if (best == NULL) return;
        free_gpus[best->type] -= best_to.width - best->width;
        power_w -= watts_of(view, &best_to) - watts_of(view, best);
        *best = best_to;
    }
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *self = memory;
    const job_width *jobs = self->items;
    int free_gpus[SC_MAX_TYPES];
    double power_w = view->cluster->power_w > 0 ? view->cluster->power_w * (1 + 1e-12) : INFINITY;
    for (unsigned type = 0; type < view->cluster->type_count; type++) free_gpus[type] = plan->free[type];
    self->count = sc_active_update(view, self->jobs, self->count);
    give_least(self, view, free_gpus, &power_w);
    widen(self->items, self->count, view, free_gpus, power_w);
    for (size_t i = 0; i < self->count; i++) {
        if (jobs[i].width == 0) continue;
        sc_plan_run(plan, jobs[i].job, jobs[i].type, jobs[i].width);
        if (jobs[i].clock < 1) sc_plan_set_clock(plan, jobs[i].clock);
    }
    return MDOT_OK;
}

const sc_policy sc_policy_powerflow = {
    .name = "powerflow",
    .summary = "GPUs and clocks to the jobs with the largest time saving per energy, within a power limit (PowerFlow)",
    .create = create,
    .decide = decide,
};
