/* row_model.h — a compiled artefact that answers one row of numbers: trees of durations, or a learned policy. */
#ifndef HS_ROW_MODEL_H
#define HS_ROW_MODEL_H

#include "mdot/mdot_base.h"

typedef struct hs_row {
    const char *input, *output; /* names of f32 [1, numbers] and f32 [1, answers] */
    int numbers, answers;
} hs_row;

typedef struct hs_row_model hs_row_model;

/* Opens an artefact on the CPU and asks a row of zeros. `row` must outlive the model. The caller closes the model; NULL
 * is allowed there. One thread may use it at a time.
 *
 * @errors those of mdot_predictor_open, and of hs_row_model_ask */
mdot_status hs_row_model_open(const char *path, const hs_row *row, hs_row_model **out_model, mdot_error *err);
void hs_row_model_close(hs_row_model *model);

/* Allocates nothing.
 *
 * @errors MALFORMED for an answer that is not finite, and those of mdot_run for another artefact */
mdot_status hs_row_model_ask(const hs_row_model *model, const float *numbers, float *out_answers, mdot_error *err);

#endif
