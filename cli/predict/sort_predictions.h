/* sort_predictions.h — values that compare answers, and their order. */
#ifndef CLI_SORT_PREDICTIONS_H
#define CLI_SORT_PREDICTIONS_H

#include "cli/predict/predict_request.h"

/* Steps of the whole training, 0 if the command line omits them; samples per second; cost for the
 * training, or for a million samples if the steps are unknown, NAN without a price. */
double predict_total_steps(const predict_request *request, const mdot_configuration *c);
double predict_samples_per_second(const mdot_configuration *c, const mdot_prediction *p);
/* 0 unless the job is a language model. */
double predict_tokens_per_second(const predict_answers *answers, size_t i);
double predict_cost(const predict_request *request, const mdot_configuration *c, const mdot_prediction *p);
/* Sorts configurations and predictions in the requested order. False: memory ran out. */
bool predict_sort(const predict_request *request, predict_answers *answers);

#endif
