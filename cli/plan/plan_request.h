/* plan_request.h — the command line of `mdot plan`, and the answers to print. */
#pragma once

#include "base/training/job_argument.h"
#include "base/training/measurements_csv.h"
#include "base/training/training_options.h"
#include "cli/gpu/gpu_argument.h"

/* The command line. 0, NULL and CLI_NO_CHOICE mean that an option is absent. */
typedef struct plan_request {
    cli_training training; /* must be first, where option calls expect it */
    cli_lists lists;       /* of training options */
    const char *job_path, *model_path;
    cli_reading reading;
    cli_gpus gpus;
    uint32_t sizes[MDOT_PLAN_SIZES_MAX];
    size_t size_count;
    int64_t node_gpus, global_batch, top, threads;
    bool counts_tokens; /* global_batch is in tokens */
    int64_t tokens, samples, epochs, dataset, evaluate_every, evaluation_samples;
    mdot_training_run run; /* samples and price are filled in later */
    double confidence, checkpoint_hours, restart_hours, startup_hours, interruption_hours;
    measured_options measured;
    cli_gpu_prices prices;
    bool json;
    const char *output; /* of a page; may be NULL */
    int emit;           /* index in plan_emit_names */
} plan_request;

/* A layout with the time and cost of the whole training. */
typedef struct plan_row {
    mdot_plan_layout layout;
    mdot_training_cost cost;
    double money;               /* cost, or GPU-hours without prices */
    bool is_front, is_eligible; /* eligible: meets deadline and budget with the requested probability */
} plan_row;

typedef struct plan_answers {
    mdot_job *job;
    mdot_job_info info;
    double tokens_per_sample; /* 0: the job has no tokens */
    mdot_plan *plan;
    mdot_plan_info search;
    plan_row *rows; /* by cost; for JSON, by GPU model, size and time */
    size_t count;
    measured_steps measured;     /* of --measured */
    size_t calibrated_rows;      /* 0: uncalibrated */
    const plan_row *recommended; /* NULL: no layout fits */
    bool has_prices;             /* each GPU model has a price */
} plan_answers;

/* A text of one table cell. */
typedef struct cell {
    char text[192];
} cell;

/* Names a layout, as "16 H100 dp=8,tp=2". */
const char *plan_name_row(const plan_row *row, cell *out);
/* Writes the table of the layouts as rows of HTML. */
void plan_write_rows(FILE *out, const plan_request *request, const plan_answers *answers);
/* Writes a page with the front of time against cost, the table, and the memory by kind. */
void plan_write_report(FILE *out, const plan_request *request, const plan_answers *answers);
/* Prints the answers as text or JSON. */
void plan_print(const plan_request *request, const plan_answers *answers);

/* Prints the command that predicts a layout, as a line for a shell. */
void plan_print_command(const plan_request *request, const plan_answers *answers, const plan_row *row);
/* The degrees as --parallel takes them, for example "dp=8,tp=4,zero=1"; empty for the defaults. */
const char *plan_degrees(const mdot_configuration *configuration, cell *out);

/* Programs for plan_emit, terminated by NULL. */
extern const char *const plan_emit_names[];
/* Prints launch settings of the recommended layout for r->emit. INVALID_ARGUMENT if there is no layout, or if the
 * program has no such parallelism. */
mdot_status plan_emit(const plan_request *request, const plan_answers *answers, mdot_error *err);
