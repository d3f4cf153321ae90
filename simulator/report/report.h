/* report.h — what came out of a simulation: figures, tables, files. */
#ifndef SC_REPORT_H
#define SC_REPORT_H

#include "simulator/core/simulator.h"

#include <stdio.h>

typedef struct sc_summary {
    size_t jobs, rejected;
    double mean_jct_s, median_jct_s, p95_jct_s; /* completion time: end less submission; P95: nearest rank */
    double makespan_s;                          /* last end less first submission */
    double utilisation;                         /* GPU-seconds held over those of the cluster until the last end */
    size_t preemptions;
    size_t decisions;
    double decision_us; /* of a decision, mean */
    size_t notes;       /* decisions with a note: fallbacks */
    size_t deadlines, deadlines_met;
    double energy_kwh; /* of GPUs while jobs held them; 0 where the cluster has several types or does not say watts */
} sc_summary;

mdot_status sc_summarise(const sc_workload *workload, const sc_cluster *cluster, const sc_result *result,
                         sc_summary *out_summary, mdot_error *err);

/* Empties the file at `path`, or makes it, for writing; the caller closes it. IO for what is no regular file: a named
 * pipe would keep the caller waiting until somebody reads it. */
mdot_status sc_open_output(const char *path, FILE **out_file, mdot_error *err);

/* job_id,start_s,end_s,jct_s,preemptions in order of arrival; of a rejected job the times are empty. The file appears
 * whole or not at all. */
mdot_status sc_write_jobs(const char *path, const sc_workload *workload, const sc_result *result, mdot_error *err);

/* A line of a table under sc_print_header's; an object of JSON, indented. */
void sc_print_header(FILE *stream);
void sc_print_row(FILE *stream, const char *policy, const char *estimate, const sc_summary *summary);
void sc_print_json(FILE *stream, const char *policy, const char *estimate, const sc_summary *summary);

/* Text as a JSON string, with its quotes. */
void sc_print_json_string(FILE *stream, const char *text);

#endif
