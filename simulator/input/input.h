/* input.h — what a simulation is about, from files: traces, clusters, factors of misprediction, and what of a trace is
 * simulated. Formats stand in README.md. Faults name file and line.
 */
#ifndef SC_INPUT_H
#define SC_INPUT_H

#include "simulator/core/cluster.h"

/* A trace in any of the forms that are known by their header: mdot's own (trace.c) or one of PAI's (pai.c). */
mdot_status sc_read_trace(const char *path, sc_workload *out_workload, mdot_error *err);

/* PAI's pai_task_table.csv, with or without its header, or its simulator's table of jobs; *out_is_pai is false, and the
 * workload untouched, where the file is neither. */
mdot_status sc_read_pai(const char *path, bool *out_is_pai, sc_workload *out_workload, mdot_error *err);

/* node,type,gpus: a line a node. */
mdot_status sc_read_cluster(const char *path, sc_cluster *out_cluster, mdot_error *err);

/* job_id,factor: predicted over true duration, for every job of the workload; others are passed over. The caller frees
 * the array, which has a factor for each job. */
mdot_status sc_read_factors(const char *path, const sc_workload *workload, double **out_factors, mdot_error *err);

/* Speeds of the workload's kinds on the cluster's types (throughputs.c has both forms). */
mdot_status sc_read_throughputs(const char *path, const sc_cluster *cluster, sc_workload *workload, mdot_error *err);

/* ---- Making a workload ------------------------------------------------------------------------------------------- */

/* Appends a job, which takes over id and group, also where it fails. */
mdot_status sc_workload_add(sc_workload *workload, sc_job job, mdot_error *err);
/* The kind of this name, made where there is none. */
mdot_status sc_workload_add_kind(sc_workload *workload, const char *name, uint32_t *out_kind, mdot_error *err);
/* Brings the jobs into order of arrival; MALFORMED for an id that is there twice. */
mdot_status sc_workload_finish(sc_workload *workload, const char *path, mdot_error *err);

/* ---- What of it is simulated ------------------------------------------------------------------------------------- */

typedef struct sc_window {
    size_t from, count; /* of the jobs that fit the cluster; count 0: all */
    double load;        /* submit times are stretched until it is this; 0: as they are */
} sc_window;

/* Drops jobs wider than the cluster, then all outside the window; submit times count from the first that is left.
 * OUT_OF_RANGE for a window beyond the trace. */
mdot_status sc_workload_select(sc_workload *workload, const sc_cluster *cluster, const sc_window *window,
                               mdot_error *err);

/* Gives every job a deadline: its submission and from `low` to `high` times its duration, as ElasticFlow's evaluation
 * has it, since traces have none. */
void sc_workload_give_deadlines(sc_workload *workload, const sc_cluster *cluster, double low, double high,
                                uint64_t seed);

/* GPU-seconds asked for in a second between first and last submission, over the cluster's GPUs; INFINITY where all come
 * at once. */
double sc_workload_load(const sc_workload *workload, const sc_cluster *cluster);

#endif
