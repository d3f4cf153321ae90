/* matching.h — AlloX' assignment (Le et al., EuroSys 2020) of jobs to machines and positions, with the least sum of
 * completion times.
 *
 * A job that is k-th from the end on its machine delays itself and the k - 1 jobs behind it, so it costs k times its
 * time there. Machines of a type are equal. Therefore a position of a type is one place whose capacity is the number
 * of machines, and the assignment is a transportation problem, whose linear program has integer solutions.
 */
#ifndef SC_MATCHING_H
#define SC_MATCHING_H

#include "mdot/mdot_base.h"

typedef struct sc_match {
    size_t type;
    unsigned from_end; /* 1: the last on its machine */
} sc_match;

/* time_s[job * types + type] is INFINITY if a job cannot run there; `machines` is per type. OUT_OF_RANGE for a job
 * that can run nowhere; otherwise the statuses of sc_linear_solve. */
mdot_status sc_match_jobs(size_t jobs, size_t types, const double *time_s, const double *machines, double limit_s,
                          sc_match *out_matches, double *out_sum_s, mdot_error *err);

#endif
