/* report.h — what `mdot report` is made of: report.c asks the predictor, report_html.c writes the page, report_svg.c its
 * drawings, report_text.c names.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "cli/training_options.h"

enum { PAGE_MAX_GPUS = 16, PAGE_MAX_BATCHES = 24 };

/* One job on one GPU. */
typedef struct page_card {
    const mdot_gpu *gpu;
    mdot_configuration configuration;
    mdot_prediction prediction;             /* at the page's batch */
    mdot_explanation *explanation;          /* before a calibration: predict_explained scales it */
    mdot_prediction at[PAGE_MAX_BATCHES];   /* at each of the batches; step_ms is 0 where it does not fit */
    mdot_prediction with[CLI_MAX_VERSIONS]; /* at the page's batch, with each version of PyTorch that was asked for */
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
    size_t calibrated_rows; /* that predictions were calibrated by; 0: they were not */
} page_job;

/* A document from its first to its last line; `job` writes one job's part of it. Of several versions of PyTorch one
 * table compares all, and the rest is of the first. */
void page_begin(FILE *out);
bool page_write_job(FILE *out, const page_job *job, const cli_training *training); /* false: memory ran out */
void page_end(FILE *out, const char *predictor);

/* Text with what HTML means something by written otherwise, and nothing that cannot be printed. */
void page_text(FILE *out, const char *text);

/* ---- report_svg.c: drawings, an <svg> each ------------------------------------------------------------------------- */

/* Step time against batch, a line for each card, both axes logarithmic. */
void page_draw_batches(FILE *out, const page_job *job);

/* A bar for each row, made of parts that are named once below. */
enum { PAGE_MAX_PARTS = 8 };
typedef struct page_bars {
    const char *title; /* what a reader hears who cannot see */
    const char *unit;
    const char *parts[PAGE_MAX_PARTS];
    size_t part_count, row_count;
    const char *const *names;
    const double (*values)[PAGE_MAX_PARTS];
    const double *limits; /* a mark at each row's; NULL: none */
} page_bars;
void page_draw_bars(FILE *out, const page_bars *bars);

#endif
