/* simulation_report.h — output of a simulation: summary values, tables, files. */
#ifndef SC_SIMULATION_REPORT_H
#define SC_SIMULATION_REPORT_H

#include "simulator/core/simulator.h"

#include <stdio.h>

typedef struct sc_summary {
    size_t jobs, rejected;
    double mean_jct_s, median_jct_s, p95_jct_s; /* completion time: end minus submission; P95: nearest rank */
    double mean_wait_s;                         /* submission to the first start */
    double mean_slowdown; /* bounded: completion time over the duration on one node, both at least 10 min */
    double makespan_s;    /* last end minus first submission */
    double utilisation;   /* GPU-seconds held, over those of the cluster until the last end */
    size_t preemptions;
    size_t decisions;
    double decision_us; /* mean time of a decision */
    size_t cuts;        /* runs cut off at the limit */
    double lost_gpu_h;  /* GPU-hours of these runs */
    size_t notes;       /* decisions with a note, for example a fallback */
    size_t deadlines, deadlines_met;
    double energy_kwh, cost; /* of GPUs while jobs held them; 0 if the watts or the price of such a type is unknown */
    double used;             /* GPU-seconds that the work would have taken alone on one node, over those of the cluster
                              * until the last end, as utilisation has those held. Restarts, lost work and slow
                              * placements are not used; two jobs on one GPU may use more than one */
    /* Finish-time fairness (Themis): completion time over the time in an equal part of the cluster for each of the n
     * jobs that were active on average while the job was, duration · max(1, n · gpus / GPUs of the cluster) */
    double mean_rho, max_rho;
} sc_summary;

mdot_status sc_summarise(const sc_workload *workload, const sc_cluster *cluster, const sc_result *result,
                         sc_summary *out_summary, mdot_error *err);

/* INVALID_ARGUMENT if the output `path` is the regular file `input` under any name. Either may be NULL. */
mdot_status sc_check_output(const char *path, const char *input, mdot_error *err);

/* Creates or truncates the file at `path` for writing; the caller closes it. IO for anything other than a regular
 * file, because a named pipe would block until a reader opens it. */
mdot_status sc_open_output(const char *path, FILE **out_file, mdot_error *err);

/* Writes job_id,start_s,end_s,jct_s,preemptions in order of arrival; a rejected job's times are empty. The file appears
 * only when it is complete, and keeps a replaced file's permissions. */
mdot_status sc_write_jobs(const char *path, const sc_workload *workload, const sc_result *result, mdot_error *err);

/* Print a table's header, a line of the table, and an indented JSON object. */
void sc_print_header(FILE *stream);
void sc_print_row(FILE *stream, const char *policy, const char *estimate, const sc_summary *summary);
void sc_print_json(FILE *stream, const char *policy, const char *estimate, const sc_summary *summary);

/* Prints text as a quoted JSON string. */
void sc_print_json_string(FILE *stream, const char *text);

#endif
