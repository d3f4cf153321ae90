/* rounds.h — Gavel's mechanism (Narayanan et al., OSDI 2020, section 5): fractions of time become rounds of 360 s.
 *
 * A policy computes the fraction of its time that each job should have on each type. In a round, a job's priority on a
 * type is its fraction over the part of that type's time that it has received since fractions were computed. Types are
 * filled in the cluster's order, jobs of highest priority first; jobs that have no fraction fill the remaining GPUs.
 * Equal priorities are ordered by the time that a job is owed, then by its fraction. Fractions are computed again after
 * arrivals and completions, at most every 1920 s; a job that arrives in between waits. If fractions do not depend on
 * types, these are filled in random order.
 *
 * With space sharing, a pair of jobs is treated as a job (section 3.1). At most 2,000 pairs are considered, of those in
 * which the two keep more than one job's speed together, the best ones. If one of the two ends, the other one runs at
 * the speed of the pair until the round ends.
 *
 * Left out from the paper: consolidation of a job's GPUs, and costs of preemption, which
 * the published simulation omits, too.
 */
#ifndef SC_ROUNDS_H
#define SC_ROUNDS_H

#include "simulator/core/policy.h"
#include "simulator/solve/time_fractions.h"

#define SC_ROUND_S 360. /* the paper's value */

/* Input for computing fractions; jobs[i] is job i of the problem. */
typedef struct sc_round_problem {
    sc_time_fractions fractions;
    const uint32_t *jobs;
    const double *previous; /* previous fractions; 0 for new jobs */
    const sc_view *view;
} sc_round_problem;

/* Fills fractions[i * types + type]. */
typedef mdot_status sc_allocate_fn(const sc_round_problem *problem, double *out_fractions, mdot_error *err);

/* Create, decide and destroy for a policy. Its own create passes `allocate` and whether that depends on types. If
 * `allocate` exceeds its time, every job gets an equal part of every type, and the log records it. */
mdot_status sc_rounds_create(const sc_view *view, sc_allocate_fn *allocate, bool looks_at_types, void **out_self,
                             mdot_error *err);
/* The same with space sharing: the problem has pairs of jobs that may share GPUs, and fractions behind those of the
 * jobs are theirs. INVALID_ARGUMENT if the workload has no speeds of pairs. */
mdot_status sc_rounds_create_sharing(const sc_view *view, sc_allocate_fn *allocate, void **out_self, mdot_error *err);
mdot_status sc_rounds_decide(void *self, const sc_view *view, sc_plan *plan, mdot_error *err);
void sc_rounds_destroy(void *self);

#endif
