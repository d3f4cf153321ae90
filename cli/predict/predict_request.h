/* predict_request.h — the command line of `mdot predict`, its answers, and how they are explained, sorted and
 * printed. */
#pragma once

#include "base/training/job_argument.h"
#include "base/training/measurements_csv.h"
#include "base/training/training_options.h"
#include "cli/gpu/gpu_argument.h"

enum { PREDICT_MAX_BATCHES = 64, PREDICT_MAX_ROWS = 1000000 };

/* The command line. 0, NULL and CLI_NO_CHOICE mean that an option is absent. */
typedef struct predict_request {
    cli_training training;                       /* must be first, where option calls expect it */
    const char *command, *job_path, *model_path; /* command: in messages */
    cli_reading reading;
    cli_gpus gpus;
    cli_lists lists; /* of training options */
    int64_t batches[PREDICT_MAX_BATCHES];
    size_t batch_count;
    bool sweeps_batch;
    const char *swept_dim; /* a symbolic dimension with these values in turn; may be NULL */
    int64_t dim_values[PREDICT_MAX_BATCHES];
    size_t dim_value_count;
    measured_options measured;
    cli_total total;
    int64_t output_tokens;                   /* of a request to a language model */
    int sort;                                /* predict_order, or CLI_NO_CHOICE */
    bool fit, fits_dim, explain, json, wide; /* fits_dim: find the largest value of swept_dim */
    const char *beside_path;                 /* a second job on the same GPU; NULL: none */
    int64_t beside_batch;                    /* 0: the file's */
} predict_request;

/* Order of a table's lines, best first. */
typedef enum predict_order {
    PREDICT_BY_TIME,
    PREDICT_BY_THROUGHPUT,
    PREDICT_BY_COST,
    PREDICT_ORDER_COUNT
} predict_order;

/* The job with one value of the swept dimension; one variant if there is no swept dimension. */
typedef struct predict_variant {
    mdot_job *job;
    mdot_job_info info;
    int64_t value;            /* value of the dimension; 0: no sweep */
    double tokens_per_sample; /* for a language model, which looks tokens up and attends to them; 0 for other models */
} predict_variant;

/* A batch of requests to a language model. The first output token takes the predicted forward pass. */
typedef struct predict_serving {
    double token_ms;    /* each further output token, in the mean */
    double total_ms;    /* all output tokens */
    double cache_bytes; /* keys and values at the end */
    bool fits;          /* with the cache */
} predict_serving;

/* Every requested configuration with its answer. */
typedef struct predict_answers {
    predict_variant *variants;
    size_t variant_count;
    size_t *variant;           /* variant of each prediction */
    size_t *combination;       /* of the options' lists, for each prediction */
    size_t left_out;           /* combinations that the job or the options refuse */
    mdot_error reason;         /* of the first one */
    const mdot_job *first_job; /* the first variant's job; its description stands for all variants */
    mdot_job_info job;         /* info of the first variant's job */
    cli_job_choices choices;
    char predictor[128], compiler[128]; /* the artefact's name, and the compiler that made it */
    mdot_configuration *configurations;
    mdot_prediction *predictions;
    mdot_explanation **explanations;   /* one per prediction; NULL: not requested */
    mdot_calibration_factors *factors; /* one per prediction; NULL: uncalibrated, or without --explain */
    measured_steps measured;           /* of --measured */
    mdot_calibration *calibration;     /* corrects the predictions; owns names in `factors`; NULL: made, if requested */
    size_t calibrated_rows;            /* calibration rows behind the predictions; 0: uncalibrated */
    predict_serving *servings;         /* one per prediction; NULL: not requested */
    size_t count;
    mdot_beside beside[2]; /* of the only prediction and its partner, with --beside */
    int64_t beside_batch;
} predict_answers;

/* Calls of options, which expect a predict_request, and the names of predict_order. */
bool predict_parse_sweep(const char *command, char *text, void *request);
bool predict_parse_fit(const char *command, char *text, void *request);
bool predict_parse_batch(const char *command, char *text, void *request);
extern const char *const predict_order_names[];

/* Returns CLI_OK, or the status of a usage error. */
int predict_check(const predict_request *request);
/* Whether the request has several values of anything. */
bool predict_has_several(const predict_request *request);
/* Reads the job, once for each value of the swept dimension. */
mdot_status predict_read(const predict_request *request, predict_answers *answers, mdot_error *err);
/* Predicts every configuration of the request, for jobs that predict_read has read, in the order of --sort. Impossible
 * combinations of lists are left out. */
mdot_status predict_answer(predict_request *request, predict_answers *answers, mdot_error *err);
/* Free the results of predict_answer and of predict_read, also after a failure. */
void predict_free_rows(predict_answers *answers);
void predict_free_jobs(predict_answers *answers);

/* Explains a prediction with times scaled to the calibrated prediction. */
mdot_explanation_info predict_explained(const mdot_explanation *explanation, const mdot_prediction *p);
mdot_operator_time predict_explained_operator(const mdot_explanation *explanation, const mdot_prediction *p,
                                              size_t index);

/* Print time and memory parts of the only prediction to stdout; print those of prediction i as a JSON field. */
mdot_status predict_explain(const predict_answers *answers, mdot_error *err);
void predict_json_explanation(const predict_answers *answers, size_t i);

/* predict_correction.c: prints the effects in the correction of the only prediction; prints those of prediction i as a
 * JSON field. */
void predict_correction(const predict_answers *answers);
void predict_json_correction(const predict_answers *answers, size_t i);

/* ---- predict_beside.c: two jobs on one GPU ---------------------------------------------------------------------- */

/* Predicts both jobs' steps beside each other, for the only prediction. `context` is the predictor's. */
mdot_status predict_beside(const predict_request *r, mdot_context *context, predict_answers *answers, mdot_error *err);
/* Print them to stdout, as lines and as a JSON field. */
void predict_print_beside(const predict_request *r, const predict_answers *answers);
void predict_json_beside(const predict_request *r, const predict_answers *answers);

/* ---- sort_predictions.c: values that compare answers, and their order -------------------------------------------- */

double predict_samples_per_second(const mdot_configuration *c, const mdot_prediction *p);
/* 0 unless the job is a language model. */
double predict_tokens_per_second(const predict_answers *answers, size_t i);
/* Sorts configurations and predictions in the requested order. False: memory ran out. */
bool predict_sort(const predict_request *request, predict_answers *answers);

/* Estimates the requests of --output-tokens into `servings`. INVALID_ARGUMENT for a job without attention or a symbolic
 * length, and for training. */
mdot_status predict_serve(const predict_request *request, predict_answers *answers, mdot_error *err);
/* Print the estimates as lines; print that of prediction i as a JSON field. */
void predict_print_servings(const predict_request *request, const predict_answers *answers);
void predict_json_serving(const predict_answers *answers, size_t i);

/* Prints predictions to stdout: a paragraph for one, a table for several, or JSON. Warnings go to stderr. */
mdot_status predict_print(const predict_request *request, const predict_answers *answers, mdot_error *err);
/* Decimals of a number with three significant digits, or of a whole number: predictions are less precise. */
static inline int predict_decimals(double value)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    for (double least = 0.01; value > 0 && value < least / 2 && decimals < 9; least /= 10) decimals++;
    return decimals;
}
