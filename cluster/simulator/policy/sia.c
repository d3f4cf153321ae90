/* sia.c — Sia (Jayaram Subramanya et al., SOSP 2023): GPU types, GPUs and batch sizes of all jobs by an integer program
 * over goodputs, every 60 s.
 *
 * Implemented from the paper: configurations, which are powers of two within a node and whole nodes, so that every
 * solution can be placed; goodputs of a job divided by its least one, to the power p = -0.5; the penalty for
 * restarts; the cost 1.1 of a job without GPUs (lambda), and 0.01 for each configuration that a job enters or leaves;
 * throughput on a type where a job was measured on one GPU only, by the ratio of the types on one GPU; rigid jobs
 * (fixed width) and jobs of a fixed batch size beside adaptive ones. p, the two costs and the bound of 200 are those
 * of the authors' artefact.
 *
 * Left out: profiling and fits as a job runs, so that the table's model is known from the start, also for all types;
 * hybrid-parallel jobs; scheduling windows of jobs that may not be preempted.
 */
#include "simulator/policy/adaptive.h"
#include "simulator/policy/policies.h"

#include <math.h>

static const double no_gpus_cost = 1.1, change_cost = .01, most_cost = 200;

static double cost(const sc_offer *offer)
{
    double goodput = offer->goodput / offer->least;
    if (offer->is_present) return pow(goodput, -.5);
    if (!offer->is_running) return pow(goodput, -.5) + change_cost;
    return fmin(pow(goodput * offer->kept, -.5), most_cost) + 2 * change_cost;
}

static double none_cost(bool is_running) { return no_gpus_cost + (is_running ? change_cost : 0); }

static const sc_adaptive_rule rule = {.cost = cost, .none_cost = none_cost};

const sc_policy sc_policy_sia = {
    .name = "sia",
    .summary = "GPU types, GPUs and batch sizes by an integer program over goodputs (Sia)",
    .period_s = SC_ADAPTIVE_S,
    .rule = &rule,
    .create = sc_adaptive_create,
    .decide = sc_adaptive_decide,
    .destroy = sc_adaptive_destroy,
};
