/* predict_explain.h — explanations of predictions: predict_explain.c for time and memory,
 * predict_correction.c for calibration effects. */
#pragma once

#include "cli/predict/predict_request.h"

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
