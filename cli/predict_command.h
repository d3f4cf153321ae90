/* predict_command.h — what `mdot predict` is made of: predict.c reads the command line and asks the predictor, predict_print.c prints
 * the answers, explain.c where they come from, default_predictor.c finds the predictor that mdot comes with. */
#ifndef CLI_PREDICT_COMMAND_H
#define CLI_PREDICT_COMMAND_H

#include "cli/gpu_price.h"
#include "cli/training_options.h"

enum { PREDICT_MAX_BATCHES = 64 };

/* The command line. 0, NULL and CLI_NO_CHOICE stand for what is not given. */
typedef struct predict_request {
    cli_training training; /* first: the calls of its options find it there */
    const char *job_path, *model_path, *calibration_path;
    cli_reading reading;
    cli_gpus gpus;
    int64_t batches[PREDICT_MAX_BATCHES];
    size_t batch_count;
    bool sweeps_batch;
    const char *swept_dim; /* a symbolic dimension that takes each of these values; NULL: none */
    int64_t dim_values[PREDICT_MAX_BATCHES];
    size_t dim_value_count;
    int64_t steps, epochs, dataset;
    cli_gpu_prices prices;
    int sort; /* predict_order, or CLI_NO_CHOICE */
    bool fit, explain, json, wide;
} predict_request;

/* Of a table's lines; the best first. */
typedef enum predict_order {
    PREDICT_BY_TIME,
    PREDICT_BY_THROUGHPUT,
    PREDICT_BY_COST,
    PREDICT_ORDER_COUNT
} predict_order;

/* The job with one value of the swept dimension; of a job without one there is one. */
typedef struct predict_variant {
    mdot_job *job;
    mdot_job_info info;
    int64_t value;            /* of the dimension; 0: none is swept */
    double tokens_per_sample; /* of a language model, which looks tokens up and attends to them; 0: it is none */
} predict_variant;

/* Every configuration asked for, with its answer. */
typedef struct predict_answers {
    predict_variant *variants;
    size_t variant_count;
    size_t *variant;                    /* of each prediction */
    const mdot_job *asked;              /* the first variant's, which stands for all in what is said of the job */
    mdot_job_info job;                  /* of it */
    bool attends;                       /* it has attention */
    char predictor[128], compiler[128]; /* who answered: the artefact's name, and what made it */
    mdot_configuration *configurations;
    mdot_prediction *predictions;
    mdot_explanation **explanations; /* of each prediction; NULL: not asked for */
    size_t calibrated_rows;          /* that predictions were calibrated by; 0: they were not */
    size_t count;
} predict_answers;

/* sort_predictions.c: steps of the whole training, 0 where the command line does not say; samples a second; what training costs,
 * or without its steps a million samples, NAN without a price. */
double predict_total_steps(const predict_request *request, const mdot_configuration *c);
double predict_samples_per_second(const mdot_configuration *c, const mdot_prediction *p);
/* 0 for what is no language model. */
double predict_tokens_per_second(const predict_answers *answers, size_t i);
double predict_cost(const predict_request *request, const mdot_configuration *c, const mdot_prediction *p);
/* Configurations and predictions in the order asked for. False: memory ran out. */
bool predict_sort(const predict_request *request, predict_answers *answers);

/* Predictions to stdout: a paragraph for one, a table for several, or JSON; warnings to stderr. */
mdot_status predict_print(const predict_request *request, const predict_answers *answers, mdot_error *err);

/* explain.c: what an explanation says of its prediction, times scaled to what a calibration has made of that. */
mdot_explanation_info predict_explained(const mdot_explanation *explanation, const mdot_prediction *p);
mdot_operator_time predict_explained_operator(const mdot_explanation *explanation, const mdot_prediction *p,
                                              size_t index);

/* Where the time and the memory of the only prediction go, to stdout; those of one as a field of JSON. */
mdot_status predict_explain(const predict_answers *answers, mdot_error *err);
void predict_json_explanation(const predict_answers *answers, size_t i);

/* The path of the predictor to use where the command line names none: MDOT_PREDICTOR's, or ../share/mdot/predictor.mdot
 * seen from the folder of this executable, which holds in a build tree and wherever mdot is installed. NOT_FOUND when
 * there is none. The caller frees the path. */
mdot_status predict_find_model(char **out_path, mdot_error *err);
/* Opens the predictor at `path`, or that one where it is NULL. The caller destroys both, also after a failure. */
mdot_status predict_open_model(const char *path, mdot_predictor **out_predictor, mdot_context **out_context,
                               mdot_error *err);
/* A calibration, which must have been made with the predictor of this name. The caller destroys it, also after a
 * failure. */
mdot_status predict_load_calibration(const char *path, const char *predictor, mdot_calibration **out_calibration,
                                     mdot_error *err);

#endif
