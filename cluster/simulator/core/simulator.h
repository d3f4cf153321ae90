/* simulator.h — the clock: jobs arrive, run as a policy decides, and complete. It is independent of any policy.
 *
 * At equal times, completions come first, then arrivals in the trace's order, then one decision. A job has either all
 * of its GPUs, of one type, or none. On several nodes it is slower by its spread. Between decisions only the time
 * changes.
 *
 * In rounds (sc_policy.round_s), jobs arrive at the beginning of a round and do whole steps until its end. A round
 * ends when the last of its jobs does, which may be earlier.
 */
#ifndef SC_SIMULATOR_H
#define SC_SIMULATOR_H

#include "simulator/core/policy.h"

#include <stdio.h>

typedef struct sc_run_options { /* all zero: a plain run */
    sc_errors errors;
    sc_restart restart;
    /* Above 0: the limit of a job is its estimated duration times this plus limit_extra_s, and times the slowdown of
     * its nodes. A job that reaches its limit is cut off, loses its work and arrives again with twice the limit. */
    double limit_factor, limit_extra_s;
    const sc_accounts *accounts;                             /* may be NULL */
    FILE *log;                                               /* may be NULL */
    void (*progress)(void *user, size_t done, size_t total); /* called after every hundredth part of the jobs; may be
                                                              * NULL */
    void *user;
} sc_run_options;

typedef struct sc_result {
    sc_state *states; /* one per job, in the workload's order */
    size_t job_count;
    size_t decisions;
    size_t notes; /* number of decisions with a note, for example a fallback */
    double decision_s;
} sc_result;

/* Runs all jobs. INVALID_ARGUMENT for a job that fits no type of the cluster, or a policy that does not support the
 * cluster. Other errors are those of the policy. The caller frees the result. */
mdot_status sc_simulate(const sc_workload *workload, const sc_cluster *cluster, const sc_policy *policy,
                        const sc_estimator *estimator, const sc_run_options *options, sc_result *out_result,
                        mdot_error *err);
void sc_result_free(sc_result *result);

#endif
