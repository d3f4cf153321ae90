/* predict_print.h — the answers as text or JSON. */
#pragma once

#include "cli/predict/predict_request.h"

/* Prints predictions to stdout: a paragraph for one, a table for several, or JSON. Warnings go to stderr. */
mdot_status predict_print(const predict_request *request, const predict_answers *answers, mdot_error *err);
