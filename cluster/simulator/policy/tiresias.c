/* tiresias.c — Tiresias' policy for durations with a known distribution (Gu et al., NSDI 2019): the two-dimensional
 * Gittins index. dlas.c is the policy for unknown ones, as in the authors' simulator.
 *
 * Implemented: attained service in GPU-seconds; three levels with the limits of dlas.c; within a level the largest
 * Gittins index first, the probability that a job ends within a further service over the expected service until then,
 * by the GPU-seconds of the last 256 completed jobs (first come, first served before the tenth); promotion of a
 * preempted job that has waited for eight times its last run, to the first level and with a service of 0; and placement
 * by skew: a job that is slower on several nodes (column spread, or --throughputs) waits for one node that holds it,
 * and others take fragments. With several GPU types, each job gets the fastest free one, without a choice of nodes.
 * Left out: the profiler that measures skew. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 256, LEAST_SAMPLES = 10, PROMOTE_AFTER = 8 };
static const double limits_gpu_s[] = {3250, 7200, INFINITY};
#define LEAST_RUN_S 60.
#define LEAST_SKEW 1.05

typedef struct record {
    double promoted_gpu_s; /* attained service at the last promotion */
    double before_s;       /* time executed before the present or last run */
    double stopped_s;      /* end of the last run */
} record;

typedef struct ranked {
    uint32_t job;
    int level;
    double index;
} ranked;

typedef struct tiresias {
    uint32_t *active;
    record *records; /* one per job */
    ranked *order;
    double *samples, *sorted; /* GPU-seconds of completed jobs: a ring, and in ascending order */
    size_t count, completed;
} tiresias;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(tiresias, active, jobs), SC_ARRAY(tiresias, records, jobs),
                               SC_ARRAY(tiresias, order, jobs), SC_ARRAY(tiresias, samples, SAMPLES),
                               SC_ARRAY(tiresias, sorted, SAMPLES)};
    return SC_STATE(tiresias, arrays, out_self, err);
}

static size_t sample_count(const tiresias *self) { return self->completed < SAMPLES ? self->completed : SAMPLES; }

static void learn(tiresias *self, const sc_view *view)
{
    for (size_t i = 0; i < view->completed_count; i++)
        self->samples[self->completed++ % SAMPLES] = view->states[view->completed[i]].attained_gpu_s;
    if (view->completed_count == 0) return;
    memcpy(self->sorted, self->samples, sample_count(self) * sizeof *self->sorted);
    qsort(self->sorted, sample_count(self), sizeof *self->sorted, sc_by_value);
}

/* Returns the Gittins index at an attained service; 0 if no completed job had more. */
static double gittins(const tiresias *self, double attained_gpu_s)
{
    size_t count = sample_count(self), first = 0;
    double best = 0, sum = 0;
    if (count < LEAST_SAMPLES) return 0;
    while (first < count && self->sorted[first] <= attained_gpu_s) first++;
    for (size_t i = first; i < count; i++) {
        double further = self->sorted[i] - attained_gpu_s;
        sum += further;
        best = fmax(best, (double)(i + 1 - first) / (sum + (double)(count - i - 1) * further));
    }
    return best;
}

static double attained_of(const tiresias *self, const sc_view *view, uint32_t job)
{
    return view->states[job].attained_gpu_s - self->records[job].promoted_gpu_s;
}

static int level_of(double attained_gpu_s)
{
    int level = 0;
    while (attained_gpu_s >= limits_gpu_s[level]) level++;
    return level;
}

/* Returns when a job without GPUs is promoted; INFINITY: it has never run. */
static double promotion_s(const record *r, const sc_state *state)
{
    if (state->executed_s == 0) return INFINITY;
    return r->stopped_s + PROMOTE_AFTER * fmax(LEAST_RUN_S, state->executed_s - r->before_s);
}

static int by_rank(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    if (a->level != b->level) return a->level - b->level;
    if (a->index != b->index) return a->index > b->index ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

static void rank(tiresias *self, const sc_view *view)
{
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i];
        record *r = &self->records[job];
        bool waits = view->states[job].phase == SC_WAITING;
        if (waits && promotion_s(r, &view->states[job]) <= view->now_s)
            r->promoted_gpu_s = view->states[job].attained_gpu_s;
        double attained_gpu_s = attained_of(self, view, job);
        self->order[i] = (ranked){job, level_of(attained_gpu_s), gittins(self, attained_gpu_s)};
    }
    qsort(self->order, self->count, sizeof *self->order, by_rank);
}

static bool run(const sc_view *view, sc_plan *plan, uint32_t job)
{
    int gpus = view->workload->jobs[job].gpus;
    if (view->cluster->type_count > 1) return sc_plan_run_fastest(view, plan, job);
    if (gpus > plan->free[0]) return false;
    if (sc_place_as_it_is(view, plan, job) || sc_place_on_one(view, plan, plan->node_free, job, gpus)) return true;
    bool is_skewed = sc_estimate_spread(view->estimate, job, 0, gpus) > LEAST_SKEW;
    if (is_skewed && gpus <= view->cluster->types[0].widest_node) return false;
    return sc_place_on_several(view, plan, plan->node_free, job, gpus);
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    tiresias *self = memory;
    self->count = sc_active_update(view, self->active, self->count);
    learn(self, view);
    rank(self, view);
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->order[i].job;
        const sc_state *state = &view->states[job];
        record *r = &self->records[job];
        bool runs = run(view, plan, job), ran = state->phase == SC_RUNNING;
        double missing_gpu_s = limits_gpu_s[self->order[i].level] - attained_of(self, view, job);
        if (runs && !ran) r->before_s = state->executed_s;
        if (!runs && ran) r->stopped_s = view->now_s;
        double due_s =
            runs ? view->now_s + ceil(missing_gpu_s / plan->grants[plan->grant_count - 1].gpus) : promotion_s(r, state);
        if (due_s > view->now_s) plan->wake_s = fmin(plan->wake_s, due_s);
    }
    return MDOT_OK;
}

const sc_policy sc_policy_tiresias = {
    .name = "tiresias",
    .summary = "two-dimensional Gittins index in three levels, promotion, placement by skew (Tiresias)",
    .create = create,
    .decide = decide,
};
