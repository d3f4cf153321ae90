/* elastic.c — elastic jobs, whose GPUs grow and shrink between their bounds while they run (columns min_gpus and
 * max_gpus). The remaining GPUs go to the jobs with the largest marginal gains, as in Optimus (Peng et al., EuroSys
 * 2018).
 *
 * Jobs start in the order of arrival, at their least width. If too few GPUs are free, running jobs shrink as far as
 * their bounds allow; no job is preempted. The next GPUs then go to the job whose predicted remaining time decreases
 * most for each of them. A running job grows only if that saves more time than a restart costs (--restart-cost).
 *
 * Implemented from Optimus: the greedy allocation by marginal gain. Left out: its parameter servers, for which it has a
 * second kind of task, its fit of convergence, which an estimate replaces, and its decisions at fixed intervals.
 */
#include "simulator/policy/active.h"
#include "simulator/policy/goodput.h"
#include "simulator/policy/packing.h"
#include "simulator/policy/policies.h"

#include <stdlib.h>

typedef struct elastic {
    uint32_t *active;
    size_t count;
    sc_share *jobs; /* active jobs that run after this decision */
    size_t job_count;
} elastic;

static void destroy(void *memory)
{
    elastic *self = memory;
    if (self == NULL) return;
    free(self->active);
    free(self->jobs);
    free(self);
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    elastic *self = calloc(1, sizeof *self);
    if (self != NULL) {
        self->active = calloc(view->workload->job_count + 1, sizeof *self->active);
        self->jobs = calloc(view->workload->job_count + 1, sizeof *self->jobs);
    }
    if (self == NULL || self->active == NULL || self->jobs == NULL) {
        destroy(self);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for a policy");
    }
    *out_self = self;
    return MDOT_OK;
}

static int now_of(const sc_view *view, uint32_t job)
{
    return view->states[job].phase == SC_RUNNING ? view->states[job].gpus : 0;
}

/* Gives every running job its least width, and then waiting jobs until one does not fit. Returns the GPUs that are
 * left. Running jobs come first in the order, because jobs start in it. */
static int give_least(elastic *self, const sc_view *view)
{
    int left = view->cluster->gpus;
    self->job_count = 0;
    for (size_t i = 0; i < self->count; i++) {
        int least = sc_goodput_next_width(view, self->active[i], 0, 0, view->cluster->gpus);
        if (least == 0 || least > left) break;
        self->jobs[self->job_count++] = (sc_share){.job = self->active[i], .gpus = least};
        left -= least;
    }
    return left;
}

/* Lets running jobs keep their widths, if all of them can. Returns the GPUs that are left. */
static int keep_widths(elastic *self, const sc_view *view, int left)
{
    int wanted = 0;
    for (size_t i = 0; i < self->job_count; i++) {
        int now = now_of(view, self->jobs[i].job);
        if (now > 0) wanted += now - self->jobs[i].gpus;
    }
    if (wanted > left) return left;
    for (size_t i = 0; i < self->job_count; i++)
        if (now_of(view, self->jobs[i].job) > 0) self->jobs[i].gpus = now_of(view, self->jobs[i].job);
    return left - wanted;
}

/* Returns the seconds that a job saves for each further GPU at its next width, which is stored; 0: it stays. */
static double gain(const sc_view *view, const sc_share *share, int left, int *out_width)
{
    int now = now_of(view, share->job);
    *out_width = sc_goodput_next_width(view, share->job, 0, share->gpus, share->gpus + left);
    if (*out_width == 0) return 0;
    double saved_s =
        sc_goodput_left_s(view, share->job, 0, share->gpus) - sc_goodput_left_s(view, share->job, 0, *out_width);
    /* It leaves its present width at the cost of a restart, and comes back to it without. */
    if (now > 0 && share->gpus == now) saved_s -= sc_restart_s(view->restart, *out_width, false);
    return saved_s / (*out_width - share->gpus);
}

static void widen(elastic *self, const sc_view *view, int left)
{
    while (left > 0) {
        size_t best = self->job_count;
        double most = 0;
        int width, best_width = 0;
        for (size_t i = 0; i < self->job_count; i++) {
            double gained = gain(view, &self->jobs[i], left, &width);
            if (gained <= most) continue;
            most = gained;
            best = i;
            best_width = width;
        }
        if (best == self->job_count) return;
        left -= best_width - self->jobs[best].gpus;
        self->jobs[best].gpus = best_width;
    }
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    elastic *self = memory;
    self->count = sc_active_update(view, self->active, self->count);
    widen(self, view, keep_widths(self, view, give_least(self, view)));
    return sc_pack(view, plan, self->jobs, self->job_count, err);
}

const sc_policy sc_policy_elastic = {
    .name = "elastic",
    .summary = "first come, first served; widths between the jobs' bounds by marginal gain (Optimus)",
    .create = create,
    .decide = decide,
    .destroy = destroy,
};
