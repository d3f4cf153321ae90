/* edf.c — earliest deadline first, preemptive, for comparison with elasticflow.c. The rules are this project's own:
 * jobs keep their requested widths. They are not the baselines that ElasticFlow's paper (Gu et al., ASPLOS 2023)
 * measures under the names EDF and EDF with admission control, so their numbers cannot be compared with the paper's.
 *
 *   edf         by deadline, skipping jobs that do not fit; jobs without a deadline come last
 *   edf-admit   the same for admitted jobs. A job is admitted if a simulation by the same rule shows that it and every
 *               admitted job meet their deadlines; others are rejected. The simulation ignores restarts.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

static mdot_status decide_edf(void *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    for (size_t i = 0; i < view->completed_count; i++) sc_order_remove(self, view->completed[i]);
    for (size_t i = 0; i < view->arrived_count; i++)
        sc_order_put_last(self, view->arrived[i], view->workload->jobs[view->arrived[i]].deadline_s);
    sc_queue_fill(self, view, plan);
    return MDOT_OK;
}

typedef struct ahead {
    uint32_t *jobs;  /* by deadline */
    double *left_s;  /* remaining time of each job */
    double *begun_s; /* INFINITY: the job is not running */
    size_t count;
} ahead;

static void free_ahead(ahead *a)
{
    free(a->jobs);
    free(a->left_s);
    free(a->begun_s);
}

/* Returns whether every job with a deadline meets it from now on, assuming no arrivals. */
static bool all_meet(const sc_view *view, ahead *a)
{
    double now_s = view->now_s;
    while (a->count > 0) {
        int left = view->cluster->gpus;
        double next_s = INFINITY;
        for (size_t i = 0; i < a->count; i++) {
            int gpus = view->workload->jobs[a->jobs[i]].gpus;
            a->begun_s[i] = gpus <= left ? now_s : INFINITY;
            if (gpus > left) continue;
            left -= gpus;
            next_s = fmin(next_s, a->left_s[i]);
        }
        now_s += next_s;
        size_t kept = 0;
        for (size_t i = 0; i < a->count; i++) {
            double left_s = isfinite(a->begun_s[i]) ? a->left_s[i] - next_s : a->left_s[i];
            if (isfinite(a->begun_s[i]) && left_s <= 1e-9) {
                if (now_s > view->workload->jobs[a->jobs[i]].deadline_s) return false;
                continue;
            }
            /* the deadline is already out of reach */
            if (now_s + left_s > view->workload->jobs[a->jobs[i]].deadline_s) return false;
            a->jobs[kept] = a->jobs[i];
            a->left_s[kept++] = left_s;
        }
        a->count = kept;
    }
    return true;
}

static bool is_admissible(const sc_order *order, const sc_view *view, ahead *a)
{
    uint32_t job = SC_NONE;
    a->count = 0;
    while ((job = sc_order_next(order, job, view->cluster->gpus)) != SC_NONE) {
        if (!isfinite(view->workload->jobs[job].deadline_s)) break; /* jobs without a deadline yield to all others */
        const sc_state *state = &view->states[job];
        a->jobs[a->count] = job;
        a->left_s[a->count++] = sc_estimate_remaining_s(view->estimate, job, state->remaining, state->executed_s);
    }
    return all_meet(view, a);
}

static mdot_status decide_admit(void *self, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    for (size_t i = 0; i < view->completed_count; i++) sc_order_remove(self, view->completed[i]);
    size_t maximum = sc_order_count(self) + view->arrived_count + 1;
    ahead a = {.jobs = calloc(maximum, sizeof *a.jobs),
               .left_s = calloc(maximum, sizeof *a.left_s),
               .begun_s = calloc(maximum, sizeof *a.begun_s)};
    mdot_status status = MDOT_OK;
    if (a.jobs == NULL || a.left_s == NULL || a.begun_s == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < view->arrived_count; i++) {
        uint32_t job = view->arrived[i];
        sc_order_put_last(self, job, view->workload->jobs[job].deadline_s);
        if (is_admissible(self, view, &a)) continue;
        sc_order_remove(self, job);
        sc_plan_reject(plan, job);
    }
    free_ahead(&a);
    if (status == MDOT_OK) sc_queue_fill(self, view, plan);
    return status;
}

const sc_policy sc_policy_edf = {
    .name = "edf",
    .summary = "earliest deadline first, preemptive",
    .create = sc_queue_create,
    .decide = decide_edf,
    .destroy = sc_queue_destroy,
};

const sc_policy sc_policy_edf_admit = {
    .name = "edf-admit",
    .summary = "earliest deadline first; admits a job only if all admitted jobs meet their deadlines",
    .create = sc_queue_create,
    .decide = decide_admit,
    .destroy = sc_queue_destroy,
};
