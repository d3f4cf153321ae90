/* simulate_options.h — mdot-simulate's command line, and the estimate that it requests. */
#ifndef SC_SIMULATE_OPTIONS_H
#define SC_SIMULATE_OPTIONS_H

#include "simulator/core/simulator.h"
#include "simulator/input/input.h"

enum { SC_MAX_POLICIES = 64 };

typedef struct sc_request {
    const char *trace_path, *cluster_path, *factors_path, *jobs_path, *log_path, *throughputs_path, *idle_path,
        *sweep_path, *predictor_path, *predictions_path, *accounts_path, *pairs_path, *steps_path, *noise_path,
        *interference_path, *learned_path;
    const sc_policy *policies[SC_MAX_POLICIES];
    size_t policy_count;
    const char *estimate; /* "oracle", "error:E", "history", "rolling", "last-two", "survival", "limit", "trees:FILE" */
    const char *predicted_by; /* column of --predictions */
    double known_share;       /* share of jobs with known steps, under --predictions */
    bool learns;              /* --learn */
    int errors;               /* SC_ERRORS_SCALE, SC_ERRORS_TOTAL, or CLI_NO_CHOICE: those of the estimate */
    int outcomes;             /* CLI_NO_CHOICE: the trace's */
    int64_t slices;           /* of a GPU; 0: GPUs are whole */
    int64_t gpus;             /* 0: --cluster */
    double power_w;           /* 0: unspecified */
    sc_window window;
    double low, high; /* range of deadlines, in durations; 0: the trace's own */
    sc_restart restart;
    double most_limit_s;  /* maximum of requested time limits; 0: request none */
    bool wants_maximum;   /* every job requests the maximum */
    double limit_factor;  /* limits over estimates; 0: jobs are not cut off */
    double limit_extra_s; /* added to limits */
    sc_priority priority;
    bool has_priority;
    double upper; /* upper quantile over prediction, for --idle; 0: from the model of --estimate error:M, else 1 */
    int64_t seed;
    bool json;
    bool lists; /* --list */
} sc_request;

/* Runs a checked request and prints its results (mdot_simulate.c). */
mdot_status sc_run_request(const sc_request *request, mdot_error *err);

/* ---- Make estimate ----------------------------------------------------------------------------------------------- */

/* Returns the name in results. */
const char *sc_name_estimate(const sc_request *request);

/* Makes a new estimator for each policy, because some estimators learn; *out_errors is the error model. */
mdot_status sc_make_estimator(const sc_request *request, const sc_workload *workload, sc_estimator *out_estimator,
                              sc_errors *out_errors, mdot_error *err);

/* Computes the upper quantile of each job's time, in seconds; the caller frees the array. */
mdot_status sc_make_upper_quantiles(const sc_request *request, const sc_workload *workload, double **out_predicted_s,
                                    mdot_error *err);

#endif
