/* matching.h — AlloX' assignment (Le et al., EuroSys 2020): jobs to machines and positions, least sum of completion
 * times.
 *
 * A job that is k-th from the end on its machine delays itself and the k - 1 behind it: it costs k times its time
 * there. Machines of a type are equal, so that a type's position is one place of as many as it has machines, and the
 * assignment is a transportation problem, whose linear program has whole solutions.
 */
#ifndef SC_MATCHING_H
#define SC_MATCHING_H

#include "mdot/mdot_base.h"

typedef struct sc_match {
    size_t type;
    unsigned from_end; /* 1: the last on its machine */
} sc_match;

/* time_s[job * types + type], INFINITY where a job cannot run; machines of each type. OUT_OF_RANGE for a job that can
 * run nowhere; else sc_linear_solve's statuses. */
mdot_status sc_match_jobs(size_t jobs, size_t types, const double *time_s, const double *machines, double limit_s,
                          sc_match *out_matches, double *out_sum_s, mdot_error *err);

#endif
