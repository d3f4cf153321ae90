/* shockwave.c — Shockwave (Zheng et al., NSDI 2023): fairness and efficiency over a window of future rounds.
 *
 * Implemented: rounds of 120 s; a window of 20 rounds, planned anew in each of them; the largest weighted Nash product
 * of the progress that jobs will have at its end, where a job's weight is the fifth power of its finish-time fairness,
 * so far unfairly treated jobs first; and a term for the makespan, by which long jobs weigh more. Between whole rounds
 * the optimum is relaxed: a price of GPU rounds is found by bisection, at which the jobs' best numbers of rounds fill
 * the window. The jobs with the most rounds run now. Left out: the Bayesian forecast of batch sizes, because estimates
 * replace it, and the integer program. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

#define ROUND_S 120.
#define WINDOW 20.
#define FAIRNESS_POWER 5.
#define MAKESPAN_WEIGHT 1.

typedef struct planned {
    uint32_t job;
    double weight, done, left; /* done and left: rounds at full speed */
    double rounds;             /* in this window */
} planned;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_active_create(view, sizeof(planned), out_self, err);
}

/* Fills weights and rounds. */
static void describe(const sc_active *self, const sc_view *view)
{
    planned *jobs = self->items;
    double requested_gpus = 0, most_left = 1;
    for (size_t i = 0; i < self->count; i++) requested_gpus += view->workload->jobs[self->jobs[i]].gpus;
    double contention = fmax(1, requested_gpus / view->cluster->gpus);
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->jobs[i];
        double left_s = sc_view_left_s(view, job);
        double alone_s = fmax(sc_estimate_duration_s(view->estimate, job), 1);
        double ratio = (view->now_s - view->workload->jobs[job].submit_s + left_s) / (alone_s * contention);
        jobs[i] = (planned){.job = job,
                            .weight = pow(fmin(fmax(ratio, 1e-3), 1e3), FAIRNESS_POWER),
                            .done = fmax(0, alone_s - left_s) / ROUND_S,
                            .left = fmax(left_s / ROUND_S, 1e-3)};
        most_left = fmax(most_left, jobs[i].left);
    }
    for (size_t i = 0; i < self->count; i++) jobs[i].weight *= 1 + MAKESPAN_WEIGHT * jobs[i].left / most_left;
}

/* Chooses each job's rounds at a price: the largest weight * log(done + rounds) - price * gpus * rounds. Returns all
 * jobs' GPU rounds. */
static double plan_at(const sc_active *self, const sc_view *view, double price)
{
    planned *jobs = self->items;
    double sum = 0;
    for (size_t i = 0; i < self->count; i++) {
        int gpus = view->workload->jobs[jobs[i].job].gpus;
        double most = fmin(WINDOW, jobs[i].left);
        jobs[i].rounds = fmin(most, fmax(0, jobs[i].weight / (price * gpus) - jobs[i].done));
        sum += jobs[i].rounds * gpus;
    }
    return sum;
}

static int by_rounds(const void *left, const void *right)
{
    const planned *a = left, *b = right;
    double x = a->rounds / fmin(WINDOW, a->left), y = b->rounds / fmin(WINDOW, b->left);
    if (x != y) return x > y ? -1 : 1;
    if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *self = memory;
    planned *jobs = self->items;
    double low = log(1e-30), high = log(1e30);
    self->count = sc_active_update(view, self->jobs, self->count);
    describe(self, view);
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        *(plan_at(self, view, exp(middle)) > WINDOW * view->cluster->gpus ? &low : &high) = middle;
    }
    plan_at(self, view, exp(high));
    qsort(jobs, self->count, sizeof *jobs, by_rounds);
    for (size_t i = 0; i < self->count && sc_plan_most_free(view, plan) > 0; i++)
        sc_plan_run_fastest(view, plan, jobs[i].job);
    return MDOT_OK;
}

const sc_policy sc_policy_shockwave = {
    .name = "shockwave",
    .summary = "Nash product of progress, weighted by fairness, over 20 future rounds (Shockwave)",
    .round_s = ROUND_S,
    .create = create,
    .decide = decide,
};
