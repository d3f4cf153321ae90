/* predict.h — what `mdot predict` is made of: predict.c reads the command line and asks the predictor, report.c prints
 * the answers, shipped.c finds the predictor that mdot comes with. */
#ifndef CLI_PREDICT_H
#define CLI_PREDICT_H

#include "cli/job.h"

enum { PREDICT_MAX_GPUS = 256, PREDICT_MAX_BATCHES = 64 };

enum { PREDICT_PRECISION_COUNT = MDOT_PRECISION_AMP + 1, PREDICT_LAYOUT_COUNT = MDOT_LAYOUT_NHWC + 1 };
/* In the order of the enums, ending with NULL. */
extern const char *const predict_precision_names[PREDICT_PRECISION_COUNT + 1];
extern const char *const predict_layout_names[PREDICT_LAYOUT_COUNT + 1];

/* The command line. 0, NULL and CLI_NO_CHOICE stand for what is not given. */
typedef struct predict_request {
    const char *job_path, *model_path;
    cli_dims dims;
    const char *gpus[PREDICT_MAX_GPUS]; /* the table's names */
    size_t gpu_count;
    int64_t batches[PREDICT_MAX_BATCHES];
    size_t batch_count;
    int precision, layout, optimizer;
    int64_t workers; /* GPUs that share a step */
    int64_t steps, epochs, dataset;
    bool json, quiet;
} predict_request;

/* Every configuration asked for, with its answer. */
typedef struct predict_answers {
    mdot_job_info job;
    mdot_configuration *configurations;
    mdot_prediction *predictions;
    size_t count;
} predict_answers;

/* Predictions to stdout: a paragraph for one, a table for several, or JSON; warnings to stderr. */
void predict_print(const predict_request *request, const predict_answers *answers);

/* The path of the predictor to use where the command line names none: MDOT_PREDICTOR's, or ../share/mdot/predictor.mdot
 * seen from the folder of this executable, which holds in a build tree and wherever mdot is installed. NOT_FOUND when
 * there is none. The caller frees the path. */
mdot_status predict_find_model(char **out_path, mdot_error *err);

#endif
