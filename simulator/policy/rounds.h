/* rounds.h — Gavel's mechanism (Narayanan et al., OSDI 2020, section 5): shares of time become rounds of 360 s.
 *
 * A policy says which share of its time each job should have on each type. In a round, a job's priority on a type is
 * its share over the part of that type's time that it has received since shares were computed; types are filled in the
 * cluster's order, jobs of highest priority first, and who has no share fills what is left. Equal priorities go by what
 * a job is owed, then by its share. Shares are computed anew after arrivals and completions, at most every 1920 s; a
 * job that came since waits. Where shares do not look at types, these are filled in random order.
 *
 * Left out of the paper: shared GPUs (space sharing), consolidation of a job's GPUs, and costs of preemption, which the
 * published simulation does not have either.
 */
#ifndef SC_ROUNDS_H
#define SC_ROUNDS_H

#include "simulator/core/policy.h"
#include "simulator/solve/time_shares.h"

#define SC_ROUND_S 360. /* of the paper's */

/* What shares are computed from; jobs[i] is job i of the problem. */
typedef struct sc_round_problem {
    sc_shares shares;
    const uint32_t *jobs;
    const double *previous; /* shares as they were, 0 of new jobs */
    const sc_view *view;
} sc_round_problem;

/* Fills shares[i * types + type]. */
typedef mdot_status sc_allocate_fn(const sc_round_problem *problem, double *out_shares, mdot_error *err);

/* A policy's create, decide and destroy; its create hands over `allocate` and whether that looks at types. Where that
 * finds no answer in its time, every job has an equal part of every type, and the log says so. */
mdot_status sc_rounds_create(const sc_view *view, sc_allocate_fn *allocate, bool looks_at_types, void **out_self,
                             mdot_error *err);
mdot_status sc_rounds_decide(void *self, const sc_view *view, sc_plan *plan, mdot_error *err);
void sc_rounds_destroy(void *self);

#endif
