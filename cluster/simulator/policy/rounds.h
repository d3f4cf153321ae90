/* rounds.h — policies in rounds of 360 s: Gavel's mechanism, and pairs of jobs for space sharing. */
#ifndef SC_ROUNDS_H
#define SC_ROUNDS_H

#include "simulator/core/policy.h"
#include "simulator/solve/time_fractions.h"

/* Gavel's mechanism (Narayanan et al., OSDI 2020, section 5): time fractions become rounds of 360 s.
 *
 * A policy computes the time fraction of each job on each type. In a round, a job's priority on a type is this fraction
 * over the part of the type's time that it has received since fractions were computed. Types are filled in the
 * cluster's order, with the highest priority first; jobs without a fraction fill the remaining GPUs. Equal priorities
 * are ordered by the time that a job is owed, then by its fraction. Fractions are computed again after arrivals and
 * completions, at most every 1920 s; a job that arrives in between waits. If fractions do not depend on types, these
 * are filled in random order.
 *
 * With space sharing, a pair of jobs is treated as a job (section 3.1). The policy considers pairs that keep, together,
 * more than one job's speed: the best 2,000 at most. If one job ends, the other runs at the pair's speed until the
 * round ends.
 *
 * Left out from the paper: consolidation of a job's GPUs, and costs of preemption, which the published simulation
 * omits, too. */

#define SC_ROUND_S 360. /* the paper's value */

/* sc_policy.variant: with space sharing, and pair fractions behind those of jobs; with equal weights of groups, which
 * their jobs share; or without jobs on types on which they have no fraction. */
enum { SC_ROUNDS_SHARE = 1, SC_ROUNDS_GROUPS, SC_ROUNDS_SPARSE };

/* Create and decide for a policy with sc_policy.allocate. If that exceeds its time, every job gets an equal part of
 * every type, and the log records it. INVALID_ARGUMENT for space sharing if the workload has no pair speeds. */
mdot_status sc_rounds_create(const sc_view *view, void **out_self, mdot_error *err);
mdot_status sc_rounds_decide(void *self, const sc_view *view, sc_plan *plan);

/* ---- Couples ----------------------------------------------------------------------------------------------------- */

/* Pairs of active jobs for sharing GPUs. */

typedef struct sc_couple {
    uint32_t a, b;     /* jobs, a < b */
    size_t at_a, at_b; /* positions in the list that the pair was made from */
    double gain;       /* maximum over the types: sum of both jobs' remaining speed fractions */
    double speed_a[SC_MAX_TYPES], speed_b[SC_MAX_TYPES];
    double fraction[SC_MAX_TYPES], received_s[SC_MAX_TYPES];
} sc_couple;

/* INVALID_ARGUMENT if the workload lacks the speeds of pairs (--pairs). */
mdot_status sc_couples_check(const sc_view *view, mdot_error *err);

/* Returns the part of its speed that a job keeps on a type beside the other one; 0: they cannot share GPUs, for example
 * because memory does not suffice or widths differ. */
double sc_couples_kept(const sc_view *view, uint32_t job, uint32_t other, unsigned type);

/* Finds pairs of jobs of equal width that keep, together, more than one job's speed on a type: the best `most` by gain,
 * sorted by jobs. Returns their number. `couples` has room for 2 · most. */
size_t sc_couples_find(const sc_view *view, const uint32_t *jobs, size_t job_count, size_t most, sc_couple *couples);

/* Returns the couple of two jobs, or NULL. */
sc_couple *sc_couples_get(sc_couple *couples, size_t count, uint32_t job, uint32_t other);

#endif
