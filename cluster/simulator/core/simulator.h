/* simulator.h — the clock, the completed answer of a policy, and the log. */
#ifndef SC_SIMULATOR_H
#define SC_SIMULATOR_H

#include "simulator/core/policy.h"

#include <stdio.h>

/* Jobs arrive, run as a policy decides, and complete. The clock is independent of any policy.
 *
 * At equal times, completions come first, then arrivals in the trace's order, then one decision. A job has either all
 * of its GPUs, of one type, or none. On several nodes it is slower by its spread. Between decisions only the time
 * changes.
 *
 * In rounds (sc_policy.round_s), jobs arrive when a round begins and do whole steps until it ends. A round ends with
 * its last job, which may be earlier. */

typedef struct sc_run_options { /* all zero: a plain run */
    sc_errors errors;
    sc_restart restart;
    /* Above 0: a job's limit is the estimated duration times this plus limit_extra_s, times the slowdown on the nodes.
     * A job at the limit is cut off, loses the work done and arrives again with twice the limit. */
    double limit_factor, limit_extra_s;
    const sc_accounts *accounts;                             /* may be NULL */
    const struct hs_row_model *learned;                      /* the network of mlfs; may be NULL */
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
    double held_gpu_s[SC_MAX_TYPES]; /* by all jobs */
    double joules;                   /* of GPUs while jobs held them, by types with watts */
} sc_result;

/* Runs all jobs. INVALID_ARGUMENT: no GPU type of the cluster fits a job, or the policy does not support the
 * cluster. The policy has further errors. The caller frees the result. */
mdot_status sc_simulate(const sc_workload *workload, const sc_cluster *cluster, const sc_policy *policy,
                        const sc_estimator *estimator, const sc_run_options *options, sc_result *out_result,
                        mdot_error *err);
void sc_result_free(sc_result *result);

/* ---- Schedule plan ----------------------------------------------------------------------------------------------- */

/* A policy's answer, from an empty plan to one in which every GPU has a node. */

mdot_status sc_plan_create(const sc_workload *workload, const sc_cluster *cluster, sc_plan *out_plan, mdot_error *err);
void sc_plan_free(sc_plan *plan);

/* Starts an empty plan, in which every GPU is free. */
void sc_plan_begin(sc_plan *plan, const sc_cluster *cluster);

/* Chooses nodes for grants without any, and sorts each job's nodes. */
void sc_plan_finish(sc_plan *plan, const sc_view *view);

/* ---- Log --------------------------------------------------------------------------------------------------------- */

/* Writes every decision as a CSV line: time_s,decision,job_id,type,gpus,note,nodes,batch. nodes has the GPUs per node,
 * "a:4 b:2", and batch the samples of a step, if they are known. */

#define SC_DECISION_MAP(X)                                                                                             \
    X(ARRIVE, "arrive")                                                                                                \
    X(REJECT, "reject")                                                                                                \
    X(START, "start")                                                                                                  \
    X(RESUME, "resume")                                                                                                \
    X(MOVE, "move")   /* to another type or width, with no pause except the restart */                                 \
    X(BATCH, "batch") /* another batch on the same GPUs */                                                             \
    X(PREEMPT, "preempt")                                                                                              \
    X(CLOCK, "clock") /* another GPU clock on the same GPUs */                                                         \
    X(CUT, "cut")     /* off at the time limit */                                                                      \
    X(COMPLETE, "complete")                                                                                            \
    X(NOTE, "note") /* a policy's remark on the decision */

typedef enum sc_decision {
#define SC_DECISION_ENUM(name, text) SC_DECISION_##name,
    SC_DECISION_MAP(SC_DECISION_ENUM)
#undef SC_DECISION_ENUM
} sc_decision;

/* These do nothing if `log` is NULL. */
void sc_log_begin(FILE *log);
void sc_log_job(FILE *log, const sc_view *view, sc_decision decision, uint32_t job);
void sc_log_note(FILE *log, double now_s, const char *note);

#endif
