/* report.h — parts of `mdot report`: report.c runs the predictor, report_html.c writes the page, report_svg.c its drawings,
 * report_text.c names. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/training_options.h"

enum { PAGE_MAX_GPUS = 16, PAGE_MAX_BATCHES = 24 };

/* One job on one GPU. */
typedef struct page_card {
    const mdot_gpu *gpu;
    mdot_configuration configuration;
    mdot_prediction prediction;             /* at the page's batch */
    mdot_explanation *explanation;          /* before calibration, because predict_explained scales it */
    mdot_prediction at[PAGE_MAX_BATCHES];   /* at each of the batches; step_ms is 0 if the step does not fit */
    mdot_prediction with[CLI_MAX_VERSIONS]; /* at the page's batch, with each requested version of PyTorch */
} page_card;

typedef struct page_job {
    const char *path;
    mdot_job *job;
    mdot_job_info info;
    bool attends;
    page_card cards[PAGE_MAX_GPUS];
    size_t card_count;
    int64_t batches[PAGE_MAX_BATCHES];
    size_t batch_count;
    size_t calibrated_rows; /* rows of the calibration that corrected the predictions; 0: uncalibrated */
} page_job;

/* Write a document: its beginning, the part of each job, its end. If there are several versions of PyTorch, one table
 * compares all of them, and the rest of the page describes the first. */
void page_begin(FILE *out);
bool page_write_job(FILE *out, const page_job *job, const cli_training *training); /* false: memory ran out */
void page_end(FILE *out, const char *predictor);

/* Writes text with HTML's special characters escaped; unprintable characters become '?'. */
void page_text(FILE *out, const char *text);

/* ---- report_svg.c: drawings, an <svg> each ------------------------------------------------------------------------- */

/* Draws step time against batch, with one line per GPU model and two logarithmic axes. */
void page_draw_batches(FILE *out, const page_job *job);

/* Draws one bar per row. A bar consists of parts, which are named once below the bars. */
enum { PAGE_MAX_PARTS = 8 };
typedef struct page_bars {
    const char *title; /* text for screen readers */
    const char *unit;
    const char *parts[PAGE_MAX_PARTS];
    size_t part_count, row_count;
    const char *const *names;
    const double (*values)[PAGE_MAX_PARTS];
    const double *limits; /* a mark for each row; NULL: omitted */
} page_bars;
void page_draw_bars(FILE *out, const page_bars *bars);

#endif
