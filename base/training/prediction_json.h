/* prediction_json.h — predictions as JSON, in the form of `mdot predict --json` (docs/predict.schema.json). Programs
 * that answer in this form share these functions, so that equal predictions are equal bytes. */
#ifndef CLI_PREDICTION_JSON_H
#define CLI_PREDICTION_JSON_H

#include "base/training/training_options.h"

/* The origin of a document's predictions. */
typedef struct cli_json_origin {
    const char *predictor, *compiler; /* the artefact's name, and the compiler that made it */
    size_t calibrated_rows;           /* calibration rows behind the predictions; 0: uncalibrated */
    const char *calibration;          /* identity of the calibration; NULL: left out */
    const char *job;                  /* the job's name */
    const mdot_job_info *info;        /* of the job */
    double flops_per_sample;
} cli_json_origin;

/* Prints the head of a document of that schema, up to the job's name. */
void cli_json_origin_begin(FILE *stream, const char *schema, const cli_json_origin *origin);
/* Prints a document up to "predictions": [. */
void cli_json_begin(FILE *stream, const cli_json_origin *origin);
/* Print a prediction's object: configuration, time and throughput, with an open end; then memory, energy and warnings,
 * without the closing brace. `choices` are the job's, with the predictor's version of PyTorch. */
void cli_json_step(FILE *stream, const mdot_configuration *c, const mdot_prediction *p, const cli_job_choices *choices,
                   double tokens_per_sample);
void cli_json_memory(FILE *stream, const mdot_configuration *c, const mdot_prediction *p);
/* Prints a layout with the price of a whole training, as `mdot plan --json` does, without the closing brace. */
void cli_json_layout(FILE *stream, const mdot_plan_layout *layout, const mdot_training_cost *cost, bool has_prices);

#endif
