/* pollux.c — Pollux (Qiao et al., OSDI 2021): GPUs and batch sizes of all jobs by goodput, every 60 s.
 *
 * Implemented from the paper: goodput, which is throughput times statistical efficiency; the model of throughput fitted
 * to step times by placement, with gradient accumulation; the batch size of most goodput for each number of GPUs; the
 * fitness, which is the power mean (p = -1) of jobs' speed-ups over an equal part of the cluster; the penalty for
 * restarts; at most twice the GPUs that a job had before; and one distributed job per node at most, because jobs that
 * span nodes take whole ones.
 *
 * The paper's genetic search over placements is replaced by dynamic programming over numbers of GPUs, which finds the
 * optimum of the fitness for jobs on as few nodes as possible (solve/options.h). Where it puts jobs is up to packing.h.
 * Numbers of GPUs are all up to 8 within a node, powers of two, and whole nodes.
 *
 * Left out: the agents that fit the model as a job runs: the model is that of the whole table from the start, and the
 * gradient noise is known without delay. Also adaptive learning rates, which are in the measured noise, and the
 * autoscaling of the cluster. The cost of a restart is the simulator's (--restart-cost; the paper has 30 s).
 */
#include "simulator/policy/adaptive.h"
#include "simulator/policy/policies.h"

/* The authors' artefact adds this to each speed-up, so that a job without GPUs has a finite cost. */
#define FLOOR 1e-3

static double cost(const sc_offer *offer)
{
    double speedup = offer->goodput / offer->fair;
    return 1 / (speedup * (offer->is_present ? 1 : offer->kept) + FLOOR);
}

static double none_cost(bool is_running) { return 1 / FLOOR; }

static const sc_adaptive_rule rule = {.cost = cost, .none_cost = none_cost, .any_width = true};

const sc_policy sc_policy_pollux = {
    .name = "pollux",
    .summary = "GPUs and batch sizes by goodput, every 60 s, by --step-times (Pollux)",
    .one_type = true,
    .period_s = SC_ADAPTIVE_S,
    .rule = &rule,
    .create = sc_adaptive_create,
    .decide = sc_adaptive_decide,
    .destroy = sc_adaptive_destroy,
};
