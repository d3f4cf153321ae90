/* hypersched.c — HyperSched (Liaw et al., SoCC 2019): GPUs to the trainings whose loss still falls, up to a deadline.
 *
 * Implemented: rungs at 60 s times powers of two of executed time; at each decision, the job whose loss is expected to
 * fall most for its GPU time until its next rung, or until its deadline if that comes first; so a training that has
 * flattened is paused for one that has not, and one whose deadline is over goes last. Losses are those of
 * loss_curves.h. The next rung's fall is the last one's, times the ratio of the last one's to the one's before, because
 * a trial's past is all that is known. Left out: trials that are stopped for good, because every job of a trace has to
 * end; and further GPUs for the best trial. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/loss_curves.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

#define FIRST_RUNG_S 60.

/* Returns the next rung, at least a second ahead, so that rounding never makes a decision that changes nothing. */
static double rung_s(double executed_s)
{
    double rung = FIRST_RUNG_S;
    while (rung < executed_s + 1) rung *= 2;
    return rung;
}

/* Returns the expected fall of a job's loss for each GPU-second. After the deadline it is -1. */
static double value_of(const sc_view *view, uint32_t job)
{
    const sc_job *j = &view->workload->jobs[job];
    const sc_state *state = &view->states[job];
    double work = j->work * sc_workload_planned(j), part = 1 - sc_view_planned_work(view, job) / work;
    double rung = rung_s(state->executed_s), span_s = rung - state->executed_s;
    if (view->now_s >= j->deadline_s) return -1;
    span_s = fmin(span_s, j->deadline_s - view->now_s);
    if (part <= 0) return 1 / (FIRST_RUNG_S * j->gpus); /* nothing is known: it may fall by all */
    double now = sc_loss_at(job, part), half = sc_loss_at(job, part / 2), quarter = sc_loss_at(job, part / 4);
    double fall = (now < half && half < quarter) ? (half - now) * (half - now) / (quarter - half) : 0;
    double expected = fall * span_s / state->executed_s; /* a rung doubles the executed time */
    return expected / (span_s * j->gpus);
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *self = memory;
    sc_ranked *trials = self->items;
    self->count = sc_active_update(view, self->jobs, self->count);
    for (size_t i = 0; i < self->count; i++) trials[i] = (sc_ranked){self->jobs[i], -value_of(view, self->jobs[i])};
    qsort(trials, self->count, sizeof *trials, sc_by_rank);
    for (size_t i = 0; i < self->count && sc_plan_most_free(view, plan) > 0; i++) {
        const sc_state *state = &view->states[trials[i].job];
        if (!sc_plan_run_fastest(view, plan, trials[i].job)) continue;
        plan->wake_s = fmin(plan->wake_s, view->now_s + rung_s(state->executed_s) - state->executed_s);
    }
    if (plan->grant_count == self->count) plan->wake_s = INFINITY; /* no job waits */
    return MDOT_OK;
}

const sc_policy sc_policy_hypersched = {
    .name = "hypersched",
    .summary = "the largest fall of the loss until the next rung or deadline first (HyperSched)",
    .create = sc_ranked_create,
    .decide = decide,
};
