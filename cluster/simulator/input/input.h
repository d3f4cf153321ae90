/* input.h — reads a simulation's inputs from files, and selects the part of a trace to simulate. */
#ifndef SC_INPUT_H
#define SC_INPUT_H

#include "base/csv.h"
#include "base/status.h"
#include "simulator/core/cluster.h"
#include "simulator/core/scaling.h"

/* cluster/docs/simulator.md defines the formats. Messages name file and line. */

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

/* Called for each row; at[i] is the column of name i, or BS_CSV_ABSENT. */
typedef mdot_status sc_row_fn(const bs_csv *csv, const int *at, void *context, mdot_error *err);

/* Reads a table. `names` are separated by commas; the column of a name with "?" behind it may be absent. */
mdot_status sc_read_rows(const char *path, const char *names, sc_row_fn *row, void *context, mdot_error *err);
mdot_status sc_read_open_rows(bs_csv *csv, const char *names, sc_row_fn *row, void *context, mdot_error *err);

/* Returns whether the row has a text in a column that may be absent. */
bool sc_csv_has(const bs_csv *csv, int column);
/* Reads a number if there is a text; otherwise the value stays. */
mdot_status sc_csv_optional(const bs_csv *csv, int column, double minimum, double maximum, double *out_value,
                            mdot_error *err);

/* ---- Inputs ------------------------------------------------------------------------------------------------------ */

/* Reads a trace in any known form: mdot's own (trace.c), PAI's (pai.c), or Slurm's accounting (slurm_trace.c). */
mdot_status sc_read_trace(const char *path, sc_workload *out_workload, mdot_error *err);

/* Reads PAI's pai_task_table.csv, with or without a header, or the job table of PAI's simulator. For any other file
 * *out_is_pai is false and the workload stays as it is. */
mdot_status sc_read_pai(const char *path, bool *out_is_pai, sc_workload *out_workload, mdot_error *err);

/* Reads the output of `sacct -P`. For any other file *out_is_sacct is false and the workload stays as it is. */
mdot_status sc_read_sacct(const char *path, bool *out_is_sacct, sc_workload *out_workload, mdot_error *err);

/* Reads node,type,gpus[,watts][,price][,domain][,rack], one line per node. */
mdot_status sc_read_cluster(const char *path, sc_cluster *out_cluster, mdot_error *err);

/* Reads account,parent,shares[,gpus][,gpu_minutes]. The caller still assigns jobs to it. */
mdot_status sc_read_accounts(const char *path, sc_accounts *out_accounts, mdot_error *err);

/* Reads job_id,factor: predicted over true duration, for every job in the workload; other jobs are skipped. The caller
 * frees the array, which has one factor per job. */
mdot_status sc_read_factors(const char *path, const sc_workload *workload, double **out_factors, mdot_error *err);

/* Reads step_ms and the column `predictor` of a table with one network per row. The results are predicted over measured
 * step times; the caller frees the array. MALFORMED for a table without networks. */
mdot_status sc_read_predictions(const char *path, const char *predictor, double **out_ratios, size_t *out_count,
                                mdot_error *err);

/* Reads speeds of the workload's kinds on the cluster's types (throughputs.c documents both forms). */
mdot_status sc_read_throughputs(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err);

/* Reads step times by placement and batch size, and gradient noise along training, for the workload's kinds, and fits
 * the step-time model (step_times.c documents the forms). */
mdot_status sc_read_step_times(const char *steps_path, const char *noise_path, const sc_cluster *cluster,
                               sc_workload *workload, mdot_error *err);

/* Reads gradient noise alone, for kinds whose batch policies choose (sc_sweep_throughputs). */
mdot_status sc_read_noise(const char *path, sc_workload *workload, mdot_error *err);

/* Reads pair speeds for the workload's kinds (pairs.c documents the form). */
mdot_status sc_read_pairs(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err);

/* ---- Making a workload ------------------------------------------------------------------------------------------- */

/* Returns a copy, or NULL if the text is empty or NULL. *out_is_missing becomes true if memory ran out. */
char *sc_copy_text(const char *text, bool *out_is_missing);
/* Appends a job and takes ownership of the texts, also on failure. */
mdot_status sc_workload_add(sc_workload *workload, sc_job job, mdot_error *err);
/* The same for a job whose texts are in a row's columns, in the order id, group, user, name, GPU type; a column may be
 * BS_CSV_ABSENT. */
mdot_status sc_workload_add_row(sc_workload *workload, sc_job job, const bs_csv *csv, const int columns[5],
                                mdot_error *err);
/* Finds or creates the kind of this name. */
mdot_status sc_workload_add_kind(sc_workload *workload, const char *name, uint32_t *out_kind, mdot_error *err);
/* Sorts the jobs by arrival; MALFORMED for an id that occurs twice. */
mdot_status sc_workload_finish(sc_workload *workload, const char *path, mdot_error *err);

/* ---- Selecting the part to simulate ------------------------------------------------------------------------------ */

typedef struct sc_window {
    size_t from, count; /* range among the jobs that fit the cluster; count 0: all */
    size_t number, of;  /* instead of `from`: window `number`, from 0, of so many that lie evenly; of = 0: from */
    double load;        /* submit times are scaled to this load; 0: unchanged */
} sc_window;

/* Drops jobs wider than the cluster, then all jobs outside of the window. Submit times then count from the first
 * remaining job. OUT_OF_RANGE for a window beyond the trace. */
mdot_status sc_workload_select(sc_workload *workload, const sc_cluster *cluster, const sc_window *window,
                               mdot_error *err);

/* Gives every job a deadline: its submission plus `low` to `high` times its duration, as in ElasticFlow's evaluation,
 * because traces lack deadlines. */
void sc_workload_give_deadlines(sc_workload *workload, const sc_cluster *cluster, double low, double high,
                                uint64_t seed);

/* Draws the time limit that a user would request, at most `most_s` unless the job is longer (limits.c). */
double sc_draw_limit_s(double duration_s, double most_s, uint64_t *random);
/* Draws limits for all jobs that request none. Equal seeds give equal limits. */
void sc_workload_request_limits(sc_workload *workload, const sc_cluster *cluster, double most_s, uint64_t seed);
/* Lets every job request `most_s`, or its duration if that is longer. */
void sc_workload_request_maximum(sc_workload *workload, const sc_cluster *cluster, double most_s);

/* Draws early ends, and the completed part of the plan, with Philly's frequencies (early_ends.c), for jobs without a
 * known part. */
void sc_workload_draw_outcomes(sc_workload *workload, uint64_t seed);

/* Returns the requested GPU-seconds per second between first and last submission, divided by the cluster's GPUs;
 * INFINITY if all jobs come at once. */
double sc_workload_load(const sc_workload *workload, const sc_cluster *cluster);

/* ---- Fit steps --------------------------------------------------------------------------------------------------- */

/* Fits Pollux' model of step times to measured steps. */

/* Fits table->model to the rows: least squares in the logarithm of the step time. The result depends on the rows alone.
 * Terms without rows, for example for several nodes, stay at small values. At least one row. OUT_OF_MEMORY leaves
 * table->model as it is. */
mdot_status sc_fit_steps(sc_step_table *table, mdot_error *err);

/* ---- Slices ------------------------------------------------------------------------------------------------------ */

/* Makes each GPU a node of `slices` GPUs, in the domain of its node, and counts jobs' GPUs in slices, so that jobs with
 * a fraction of a GPU share one. Power and prices are those of slices. INVALID_ARGUMENT for jobs with a job_type. */
mdot_status sc_slice_gpus(int slices, sc_cluster *cluster, sc_workload *workload, mdot_error *err);

#endif
