/* report.h — parts of `mdot report`: cmd_report.c runs the predictor, report_html.c writes the page, report_svg.c its
 * drawings, report_text.c names. */
#pragma once

#include "base/text.h"
#include "base/training/training_options.h"
#include "cli/gpu/gpu_argument.h"

enum { REPORT_MAX_ROWS = 48, REPORT_MAX_BATCHES = 24 };

/* One prediction. */
typedef struct report_result {
    char name[96]; /* the GPU, and the values that differ between rows */
    mdot_configuration configuration;
    mdot_prediction prediction;             /* at the page's batch */
    mdot_explanation *explanation;          /* before calibration, because predict_explained scales it */
    mdot_prediction at[REPORT_MAX_BATCHES]; /* at each of the batches; step_ms is 0 if the step does not fit */
} report_result;

typedef struct report_job {
    const char *path;
    const struct predict_answers *answers;
    const cli_total *total;
    report_result results[REPORT_MAX_ROWS];
    size_t result_count;
    int64_t batches[REPORT_MAX_BATCHES];
    size_t batch_count;
} report_job;

extern const char cli_report_head[]; /* report_head.html */

/* Write a document: the head, one part for each job, the end. */
void report_begin(FILE *out);
bool report_write_job(FILE *out, const report_job *job, const cli_training *training); /* false: memory ran out */
void report_end(FILE *out, const char *predictor);                                     /* NULL: not named */

/* Closes a page in memory, and writes it to `path`; NULL: only frees it. */
mdot_status report_save(bs_memstream *page, const char *path, mdot_error *err);

/* Writes text with HTML's special characters escaped; unprintable characters become '?'. */
void report_text(FILE *out, const char *text);

/* Formats a number from 0 on with three significant digits: "0.00", "0.0123", "1.23", "107", "1,070". Returns `out`. */
enum { REPORT_NUMBER_BYTES = 40 };
const char *report_number(double value, char out[REPORT_NUMBER_BYTES]);

/* ---- report_svg.c: drawings, an <svg> for large, wide and narrow pages each ------------------------------------ */

/* Draws step time against batch, with one line per GPU model and two logarithmic axes. */
void report_draw_batches(FILE *out, const report_job *job);

/* Draws one bar per row. A bar consists of parts, named once below the bars. */
enum { REPORT_MAX_PARTS = 8 };
typedef struct report_bars {
    const char *title; /* text for screen readers */
    const char *unit;
    const char *parts[REPORT_MAX_PARTS];
    size_t part_count, row_count;
    const char *const *names;
    const double (*values)[REPORT_MAX_PARTS];
    const double *limits; /* a mark for each row; NULL: omitted */
} report_bars;
void report_draw_bars(FILE *out, const report_bars *bars);

/* ---- type_times.c: operator times, summed by type ---------------------------------------------------------------- */

/* Parts use the colours of the report's charts: the optimizer is the fourth, waiting the fifth. */
enum { CLI_FORWARD_PART, CLI_BACKWARD_PART, CLI_OPTIMIZER_PART = 3, CLI_WAITING_PART, CLI_TYPE_PARTS };

typedef struct cli_type_time {
    const char *type; /* borrowed from the job */
    double ms[CLI_TYPE_PARTS];
} cli_type_time;

/* Replaces rows with equal type by one sum and sorts the sums, longest first. Returns the number of sums. Takes n log n
 * time, because a job may have as many types as operators. */
size_t cli_sum_by_type(cli_type_time *rows, size_t count);
