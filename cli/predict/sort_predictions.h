/* sort_predictions.h — values that compare answers, and their order. */
#pragma once

#include "cli/predict/predict_request.h"

double predict_samples_per_second(const mdot_configuration *c, const mdot_prediction *p);
/* 0 unless the job is a language model. */
double predict_tokens_per_second(const predict_answers *answers, size_t i);
/* Sorts configurations and predictions in the requested order. False: memory ran out. */
bool predict_sort(const predict_request *request, predict_answers *answers);
