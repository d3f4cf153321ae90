/* experiment.h — measures the cost of estimation errors over many trace windows. */
#ifndef SC_EXPERIMENT_H
#define SC_EXPERIMENT_H

#include "simulator/core/simulator.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"

#include <stdio.h>

/* mdot-figure4 is the survey's figure 4: shortest remaining service first with mispredicted durations, compared with
 * policies that use no estimates. mdot-cold-start has estimates that learn while a window runs. An arm is a policy with
 * an estimate. Each arm runs on each window, at the trace's own load and at given loads; random arms run once per seed.
 * All results are relative to shortest remaining service first with true durations in the same window.
 *
 *   arms.c      the lists of arms           run_experiment.c     windows times arms
 *   bands.c     means and confidence        arm_estimator.c      the estimator of an arm
 *   experiment_table.c   output, which ../draw.py draws */

enum { EX_MAX_TRACES = 8, EX_MAX_ARMS = 48, EX_NO_COLUMN = -1, EX_LOADS = 2, EX_PARTS = 10 };

/* Networks with measured step times, and predictions of them: network, further information about the network,
 * step_ms, and one column per predictor. */
typedef struct ex_predictions {
    size_t network_count, predictor_count;
    char **names;    /* names of the predictors */
    double *factors; /* predicted over measured: [predictor * network_count + network] */
} ex_predictions;

mdot_status ex_predictions_read(const char *path, ex_predictions *out_predictions, mdot_error *err);
void ex_predictions_free(ex_predictions *predictions);

typedef enum ex_kind {
    EX_BLIND,     /* a policy that uses no estimates */
    EX_EXACT,     /* true durations */
    EX_SCALE,     /* random errors of step times */
    EX_TOTAL,     /* random errors of total durations, never corrected */
    EX_PREDICTED, /* a predictor's own errors */
    EX_LEARNED,   /* the same, corrected by completed jobs */
    EX_HISTORY,   /* durations of a history */
    EX_MIXED,     /* EX_LEARNED for jobs with known steps, EX_HISTORY for the others */
    EX_ROLLING,   /* mean durations of completed jobs with the same group and width */
    EX_LAST_TWO   /* mean durations of the user's last two completed jobs */
} ex_kind;

typedef struct ex_arm {
    char label[48];
    const sc_policy *policy;
    ex_kind kind;
    double error; /* mean |predicted over true - 1|; for a predictor, over the column; below 0: unknown */
    int column;   /* column of the predictions, or EX_NO_COLUMN */
} ex_arm;

typedef struct ex_setup {
    const char *trace_paths[EX_MAX_TRACES], *trace_names[EX_MAX_TRACES];
    size_t trace_count;
    int gpus;
    size_t windows, jobs; /* windows per trace, jobs per window */
    size_t seeds;
    double loads[EX_LOADS];     /* 0: the trace's own load */
    sc_error_model error_model; /* of EX_SCALE and EX_TOTAL */
    double known_share;         /* share of jobs with known steps in EX_MIXED */
    ex_predictions predictions;
    ex_arm arms[EX_MAX_ARMS]; /* the first is the exact arm, the reference of all others */
    size_t arm_count;
} ex_setup;

/* Fills the arms: those of the survey, and one for each predictor. */
mdot_status ex_list_arms(ex_setup *setup, mdot_error *err);
/* Fills the arms with estimates that learn. INVALID_ARGUMENT unless the predictions have a column mdot. */
mdot_status ex_list_learning_arms(ex_setup *setup, mdot_error *err);

/* Makes an arm's estimator for one window; *out_errors is the error model. The caller owns `digests`, one per job,
 * which must outlive the estimator. */
mdot_status ex_make_estimator(const ex_setup *setup, const ex_arm *arm, const sc_workload *workload, uint64_t seed,
                              uint64_t *digests, sc_estimator *out_estimator, sc_errors *out_errors, mdot_error *err);
/* Does the arm depend on the seed? */
bool ex_is_random(const ex_arm *arm);

/* One window under one arm: mean completion time over the seeds, and its ratio to the exact arm in the same window. */
typedef struct ex_cell {
    double mean_jct_s, ratio;
    double parts_jct_s[EX_PARTS]; /* the same for jobs in each tenth of the window, by submission */
} ex_cell;

typedef struct ex_results {
    ex_cell *cells;       /* index: ex_cell_at */
    double *window_loads; /* [trace][window]: the traces' own loads */
} ex_results;

ex_cell *ex_cell_at(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t window,
                    size_t arm);

/* Runs the whole experiment. `progress` may be NULL. */
mdot_status ex_run(const ex_setup *setup, void (*progress)(void *user, size_t done, size_t total), void *user,
                   ex_results *out_results, mdot_error *err);
void ex_results_free(ex_results *results);

/* ---- Output ------------------------------------------------------------------------------------------------------ */

/* A mean with its 95 % confidence interval, by Student's t over windows. With a single window, the interval is the
 * mean. */
typedef struct ex_band {
    double mean, low, high;
    size_t count;
} ex_band;

ex_band ex_band_of(const double *values, size_t count);
/* Bands over the windows of one trace, or of all traces (trace = trace_count): ratios, with a geometric mean, or
 * completion times in hours. */
ex_band ex_ratio_band(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t arm);
/* Mean logarithm of this ratio in one tenth of the window, over a trace's windows. */
ex_band ex_part_band(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t arm,
                     size_t part);
ex_band ex_hours_band(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t arm);

void ex_print_table(FILE *stream, const ex_setup *setup, const ex_results *results); /* Markdown */
void ex_print_json(FILE *stream, const ex_setup *setup, const ex_results *results);

/* ---- Experiment command ------------------------------------------------------------------------------------------ */

/* Runs the experiment with the arms of list_arms, and writes PREFIX.md and PREFIX.json. Returns the exit status: 0
 * success, 1 failure, 2 usage error. */
int ex_command_run(const char *usage, mdot_status (*list_arms)(ex_setup *setup, mdot_error *err), int argc,
                   char **argv);

#endif
