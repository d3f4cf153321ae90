/* simulator.h — the clock: jobs arrive, run where a policy wants them, complete. It knows no policy.
 *
 * At equal times completions come first, then arrivals in the trace's order, then one decision. A job has all of its
 * GPUs or none, of one type; where they are on several nodes, it is slower by its spread. Between decisions nothing
 * changes but the time.
 *
 * In rounds (sc_policy.round_s) jobs arrive at a round's begin, do whole steps until its end, and a round ends when the
 * last of its jobs does, which may be earlier.
 */
#ifndef SC_SIMULATOR_H
#define SC_SIMULATOR_H

#include "simulator/core/policy.h"

#include <stdio.h>

typedef struct sc_run_options { /* all zero: a plain run */
    sc_errors errors;
    sc_restart restart;
    FILE *log;                                               /* NULL: none */
    void (*progress)(void *user, size_t done, size_t total); /* at every hundredth of the jobs; NULL: none */
    void *user;
} sc_run_options;

typedef struct sc_result {
    sc_state *states; /* of each job, in the workload's order */
    size_t job_count;
    size_t decisions;
    size_t notes; /* decisions that the policy had something to say about: fallbacks */
    double decision_s;
} sc_result;

/* Runs all jobs. INVALID_ARGUMENT for a job that fits no type of the cluster or a policy that has no use for the
 * cluster; what the policy returns otherwise. The caller frees the result. */
mdot_status sc_simulate(const sc_workload *workload, const sc_cluster *cluster, const sc_policy *policy,
                        const sc_estimator *estimator, const sc_run_options *options, sc_result *out_result,
                        mdot_error *err);
void sc_result_free(sc_result *result);

#endif
