/* backfill_experiment.h — how much does a better time limit gain under backfill?
 *
 * Each policy runs with each source of limits on each trace window at each load. Results are relative to users'
 * requested limits, under the same policy in the same window. */
#ifndef SC_BACKFILL_EXPERIMENT_H
#define SC_BACKFILL_EXPERIMENT_H

#include "simulator/experiment/experiment.h"
#include "simulator/report/simulation_report.h"

enum { BF_POLICIES = 4, BF_SOURCES = 5, BF_MAX_LOADS = 4 };

typedef enum bf_source {
    BF_REQUESTED, /* as users request them: the trace's, or drawn (input/limits.c) */
    BF_MAXIMUM,   /* the partition's maximum for all jobs */
    BF_LIMIT,     /* as cluster/slurm sets them: 1.1 times the 95 % quantile, plus 600 s; jobs are cut off there */
    BF_PLANNED,   /* plans by predictions; jobs are cut off only at the requested limit, which no job reaches */
    BF_EXACT      /* true durations */
} bf_source;

typedef struct bf_setup {
    const char *trace_paths[EX_MAX_TRACES], *trace_names[EX_MAX_TRACES];
    size_t trace_count;
    int gpus;
    size_t windows, jobs;
    double loads[BF_MAX_LOADS];
    size_t load_count;
    double most_limit_s; /* the partition's maximum */
    uint64_t seed;
    ex_predictions predictions;
    int column;   /* of the predictions */
    double upper; /* 95 % quantile of true over predicted step times */
    size_t workers;
} bf_setup;

typedef struct bf_cell {
    sc_summary summary;
    double load; /* of the unmodified window */
} bf_cell;

/* Returns the cell of one simulation in the results. */
const bf_cell *bf_at(const bf_setup *setup, const bf_cell *cells, size_t load, size_t trace, size_t window,
                     size_t policy, size_t source);
size_t bf_count(const bf_setup *setup);

extern const char *const bf_policy_names[BF_POLICIES], *const bf_source_names[BF_SOURCES];

/* Runs all simulations. The caller frees the cells with ex_parallel_free(cells, bf_count(setup), sizeof(bf_cell)). */
mdot_status bf_run(const bf_setup *setup, void (*progress)(size_t done, size_t total), bf_cell **out_cells,
                   mdot_error *err);

/* ---- Output ------------------------------------------------------------------------------------------------------ */

typedef enum bf_measure { BF_WAIT, BF_JCT, BF_SLOWDOWN } bf_measure;

/* Returns the band of a measure over all windows, relative to requested limits under the same policy, at one load;
 * trace = trace_count: all traces. */
ex_band bf_ratio(const bf_setup *setup, const bf_cell *cells, bf_measure measure, size_t load, size_t trace,
                 size_t policy, size_t source);

void bf_print_table(FILE *stream, const bf_setup *setup, const bf_cell *cells); /* Markdown */
void bf_print_json(FILE *stream, const bf_setup *setup, const bf_cell *cells);

#endif
