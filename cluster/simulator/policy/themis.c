/* themis.c — Themis (Mahajan et al., NSDI 2020), reduced: a round's GPUs go to the worst-treated jobs.
 *
 * Implemented: finish-time fairness, a job's total time over the time in an equal part of the cluster, and rounds
 * (leases) with the largest ratio first. Themis does not know that GPU types differ, so a job whose lease is renewed
 * stays on its type; Gavel's authors compare with such a Themis. Left out: the auction (bids for GPU sets, with hidden
 * payments for honesty); the filter that opens it to a fraction of jobs; placement. gavel-ftf solves the same measure
 * as a program. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>

typedef struct unfair {
    uint32_t job;
    double ratio;
} unfair;

typedef struct themis {
    uint32_t *active;
    unfair *order;
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
    const sc_state *state = &view->states[job];
    double left_s = sc_estimate_remaining_s(view->estimate, job, state->remaining, state->executed_s);
    double taken_s = view->now_s - view->workload->jobs[job].submit_s + left_s;
    double alone_s = fmax(sc_estimate_duration_s(view->estimate, job), 1);
    return taken_s / (alone_s * contention);
}

static bool goes_before(const unfair *a, const unfair *b)
{
    return a->ratio != b->ratio ? a->ratio > b->ratio : a->job < b->job;
}

/* Moves entry `at` of a heap down to its place. A heap finds a round's few jobs without sorting a long queue. */
static void sift_down(unfair *heap, size_t count, size_t position)
{
    for (size_t child; (child = 2 * position + 1) < count; position = child) {
        if (child + 1 < count && goes_before(&heap[child + 1], &heap[child])) child++;
        if (!goes_before(&heap[child], &heap[position])) return;
        unfair moved = heap[position];
        heap[position] = heap[child];
        heap[child] = moved;
    }
}

/* Grants GPUs on the job's type while that has enough, otherwise on the fastest type. */
static void run(const sc_view *view, sc_plan *plan, uint32_t job)
{
    const sc_state *state = &view->states[job];
    if (state->phase == SC_RUNNING && plan->free[state->type] >= state->gpus)
        sc_plan_run(plan, job, state->type, state->gpus);
    else
        sc_plan_run_fastest(view, plan, job);
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    themis *self = memory;
    size_t kept = 0;
    double requested_gpus = 0;
    for (size_t i = 0; i < self->count; i++)
        if (view->states[self->active[i]].phase != SC_DONE) self->active[kept++] = self->active[i];
    for (size_t i = 0; i < view->arrived_count; i++) self->active[kept++] = view->arrived[i];
    self->count = kept;
    for (size_t i = 0; i < self->count; i++) requested_gpus += view->workload->jobs[self->active[i]].gpus;
    double contention = fmax(1, requested_gpus / view->cluster->gpus);
    int narrowest = INT_MAX;
    for (size_t i = 0; i < self->count; i++) {
        int gpus = view->workload->jobs[self->active[i]].gpus;
        if (gpus < narrowest) narrowest = gpus;
        self->order[i] = (unfair){self->active[i], ratio_of(view, self->active[i], contention)};
    }
    for (size_t i = self->count / 2; i > 0; i--) sift_down(self->order, self->count, i - 1);
    for (size_t left = self->count; left > 0 && sc_plan_most_free(view, plan) >= narrowest;) {
        run(view, plan, self->order[0].job);
        self->order[0] = self->order[--left];
        sift_down(self->order, left, 0);
    }
    return MDOT_OK;
}

const sc_policy sc_policy_themis = {
    .name = "themis",
    .summary = "greedy by finish-time fairness, in rounds (Themis, reduced)",
    .round_s = 360,
    .uses_types = true,
    .create = create,
    .decide = decide,
    .destroy = free,
};
