/* hydra.c — Hydra (Yang et al., IEEE Transactions on Computers 2023): waiting jobs are put into the sequence, and on
 * the GPU types, of least cost, which is the sum of completion times and a penalty for missed deadlines.
 *
 * A sequence is evaluated by a list schedule over free and busy GPUs: each job takes the type on which it costs least,
 * where busy GPUs become free when their jobs are predicted to end. Therefore a job waits for a fast GPU if that pays.
 * The penalty is the tardiness and, for a job that could still be in time, its duration. The search starts from the
 * best of three sequences (shortest first; by deadline, with hopeless jobs behind; and by both, Vepsalainen and
 * Morton's apparent tardiness cost) and moves the first jobs while that lowers the cost. The paper's branch and bound
 * proves optima of small queues instead. Jobs that may start now do so, without preemption. Left out: sampling of first
 * steps, which an estimate replaces. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 48, MOVED = 10, SEQUENCES = 3, ROUNDS = 3 };
static const double tardiness_weight = 0.1, miss_weight = 0.2, lookahead = 1;

typedef struct candidate {
    uint32_t job;
    unsigned type;   /* chosen by the last evaluation */
    double begins_s; /* by the last evaluation */
    double duration_s[SC_MAX_TYPES], fastest_s;
    double urgency;   /* apparent tardiness cost */
    bool is_hopeless; /* late, even if it began now on the fastest type */
} candidate;

typedef struct hydra {
    uint32_t *active;
    size_t count;
    candidate *waiting;
    double *free_s[SC_MAX_TYPES], *used_s[SC_MAX_TYPES]; /* when each type's GPUs become free, ascending; scratch */
    size_t gpus[SC_MAX_TYPES];
} hydra;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1, gpus = (size_t)view->cluster->gpus, first = 0;
    const sc_array arrays[] = {SC_ARRAY(hydra, active, jobs), SC_ARRAY(hydra, waiting, jobs),
                               SC_ARRAY(hydra, free_s[0], gpus), SC_ARRAY(hydra, used_s[0], gpus)};
    mdot_status status = SC_STATE(hydra, arrays, out_self, err);
    for (unsigned type = 0; status == MDOT_OK && type < view->cluster->type_count; type++) {
        hydra *self = *out_self;
        self->gpus[type] = (size_t)view->cluster->types[type].gpus;
        self->free_s[type] = self->free_s[0] + first;
        self->used_s[type] = self->used_s[0] + first;
        first += self->gpus[type];
    }
    return status;
}

/* ---- Cost of a sequence ------------------------------------------------------------------------------------------ */

static double cost_of(const sc_view *view, const candidate *c, double end_s)
{
    double late_s = end_s - view->workload->jobs[c->job].deadline_s;
    if (!(late_s > 0)) return end_s - view->now_s;
    return end_s - view->now_s + tardiness_weight * late_s + (c->is_hopeless ? 0 : miss_weight * c->fastest_s);
}

/* Replaces the first `gpus` times of an ascending array by `end_s`. */
static void occupy(double *times_s, size_t count, size_t gpus, double end_s)
{
    size_t i = gpus;
    for (; i < count && times_s[i] < end_s; i++) times_s[i - gpus] = times_s[i];
    for (size_t k = i - gpus; k < i; k++) times_s[k] = end_s;
}

/* Places all candidates in order. Returns the sum of costs. */
static double evaluate(hydra *self, const sc_view *view, candidate *sequence, size_t count, bool chooses_types)
{
    double sum = 0;
    for (unsigned type = 0; type < view->cluster->type_count; type++)
        memcpy(self->used_s[type], self->free_s[type], self->gpus[type] * sizeof(double));
    for (size_t i = 0; i < count; i++) {
        candidate *c = &sequence[i];
        size_t gpus = (size_t)view->workload->jobs[c->job].gpus;
        double least = INFINITY;
        unsigned fixed = c->type;
        for (unsigned type = 0; type < view->cluster->type_count; type++) {
            if (gpus > self->gpus[type] || !isfinite(c->duration_s[type]) || (!chooses_types && type != fixed))
                continue;
            double begins_s = self->used_s[type][gpus - 1], cost = cost_of(view, c, begins_s + c->duration_s[type]);
            if (cost >= least) continue;
            least = cost;
            c->type = type;
            c->begins_s = begins_s;
        }
        occupy(self->used_s[c->type], self->gpus[c->type], gpus, c->begins_s + c->duration_s[c->type]);
        sum += least;
    }
    return sum;
}

/* ---- Search ------------------------------------------------------------------------------------------------------ */

static int by_urgency(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->urgency != b->urgency) return a->urgency > b->urgency ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

/* Gives the candidates the keys of one of the first sequences, and sorts them. */
static void arrange(const sc_view *view, candidate *sequence, size_t count, int kind, double mean_s)
{
    for (size_t i = 0; i < count; i++) {
        candidate *c = &sequence[i];
        double deadline_s = view->workload->jobs[c->job].deadline_s;
        double slack_s = fmax(0, deadline_s - c->fastest_s - view->now_s);
        bool has_date = isfinite(deadline_s) && !c->is_hopeless;
        if (kind == 0) c->urgency = (1 + (has_date ? 9 * exp(-slack_s / (lookahead * mean_s)) : 0)) / c->fastest_s;
        if (kind == 1) c->urgency = 1 / c->fastest_s;
        if (kind == 2) c->urgency = has_date ? 1e18 - deadline_s : 1 / c->fastest_s;
    }
    qsort(sequence, count, sizeof *sequence, by_urgency);
}

static void move(candidate *sequence, size_t from, size_t to)
{
    candidate moved = sequence[from];
    for (; from > to; from--) sequence[from] = sequence[from - 1];
    for (; from < to; from++) sequence[from] = sequence[from + 1];
    sequence[to] = moved;
}

/* Moves the first jobs forwards, and all jobs to other types, while that lowers the cost. */
static void improve(hydra *self, const sc_view *view, size_t count)
{
    double least = evaluate(self, view, self->waiting, count, false), before = INFINITY;
    for (int round = 0; round < ROUNDS && least < before; round++) {
        before = least;
        for (size_t i = 0; i < count; i++)
            for (unsigned type = 0, old = self->waiting[i].type; type < view->cluster->type_count; type++) {
                if (type == old || !isfinite(self->waiting[i].duration_s[type])) continue;
                self->waiting[i].type = type;
                double cost = evaluate(self, view, self->waiting, count, false);
                if (cost < least * (1 - 1e-12)) {
                    least = cost;
                    old = type;
                }
                self->waiting[i].type = old;
            }
        for (size_t to = 0; to + 1 < count && to < MOVED; to++)
            for (size_t from = to + 1; from < count && from <= to + MOVED; from++) {
                move(self->waiting, from, to);
                double cost = evaluate(self, view, self->waiting, count, false);
                if (cost < least * (1 - 1e-12))
                    least = cost;
                else
                    move(self->waiting, to, from);
            }
    }
    evaluate(self, view, self->waiting, count, false);
}

static void search(hydra *self, const sc_view *view, size_t count)
{
    double mean_s = 0, least = INFINITY;
    int best = 0;
    for (size_t i = 0; i < count; i++) mean_s += self->waiting[i].fastest_s / (double)count;
    arrange(view, self->waiting, count, 0, mean_s);
    if (count > LOOKED_AT) count = LOOKED_AT;
    for (int kind = 0; kind < SEQUENCES; kind++) {
        arrange(view, self->waiting, count, kind, mean_s);
        double cost = evaluate(self, view, self->waiting, count, true);
        if (cost >= least) continue;
        least = cost;
        best = kind;
    }
    arrange(view, self->waiting, count, best, mean_s);
    evaluate(self, view, self->waiting, count, true);
    improve(self, view, count);
}

/* ---- Decision ---------------------------------------------------------------------------------------------------- */

/* Lists when GPUs become free. An estimate that a job has outlived becomes a minute. */
static void list_gpus(hydra *self, const sc_view *view)
{
    size_t held[SC_MAX_TYPES] = {0};
    for (size_t i = 0; i < view->running_count; i++) {
        const sc_state *state = &view->states[view->running[i]];
        double speed = sc_estimate_speed(view->estimate, view->running[i], state->type, state->gpus);
        double left_s = sc_view_planned_work(view, view->running[i]) / speed + fmax(0, state->busy_s - view->now_s);
        for (int gpu = 0; gpu < state->gpus; gpu++)
            self->free_s[state->type][held[state->type]++] = view->now_s + fmax(left_s, 60);
    }
    for (unsigned type = 0; type < view->cluster->type_count; type++) {
        while (held[type] < self->gpus[type]) self->free_s[type][held[type]++] = view->now_s;
        qsort(self->free_s[type], self->gpus[type], sizeof(double), sc_by_value);
    }
}

static size_t list_waiting(hydra *self, const sc_view *view)
{
    size_t count = 0;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i];
        if (sc_view_is_running(view, job)) continue;
        candidate *c = &self->waiting[count++];
        *c = (candidate){.job = job, .fastest_s = INFINITY};
        for (unsigned type = 0; type < view->cluster->type_count; type++) {
            double speed = sc_estimate_speed(view->estimate, job, type, view->workload->jobs[job].gpus);
            c->duration_s[type] = speed > 0 ? sc_view_planned_work(view, job) / speed : INFINITY;
            if (view->workload->jobs[job].gpus <= view->cluster->types[type].gpus)
                c->fastest_s = fmin(c->fastest_s, c->duration_s[type]);
        }
        c->is_hopeless = view->now_s + c->fastest_s > view->workload->jobs[job].deadline_s;
    }
    return count;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    hydra *self = memory;
    self->count = sc_active_update(view, self->active, self->count);
    sc_queue_keep_running(view, plan);
    size_t count = list_waiting(self, view);
    if (count == 0 || sc_plan_most_free(view, plan) == 0) return MDOT_OK;
    list_gpus(self, view);
    search(self, view, count);
    for (size_t i = 0; i < count && i < LOOKED_AT; i++) {
        const candidate *c = &self->waiting[i];
        int gpus = view->workload->jobs[c->job].gpus;
        if (c->begins_s <= view->now_s && gpus <= plan->free[c->type]) sc_plan_run(plan, c->job, c->type, gpus);
    }
    return MDOT_OK;
}

const sc_policy sc_policy_hydra = {
    .name = "hydra",
    .summary = "the sequence and types of least completion time and tardiness, no preemption (Hydra)",
    .create = create,
    .decide = decide,
};
