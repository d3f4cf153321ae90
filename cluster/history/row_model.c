#include "history/row_model.h"

#include "mdot/mdot.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_NUMBERS = 16 };

struct hs_row_model {
    const hs_row *row;
    mdot_predictor *predictor;
    mdot_context *context;
};

mdot_status hs_row_model_ask(const hs_row_model *model, const float *numbers, float *answers, mdot_error *err)
{
    const hs_row *row = model->row;
    const mdot_input in = {.name = row->input,
                           .dtype = MDOT_DTYPE_F32,
                           .rank = 2,
                           .dims = (const int64_t[]){1, row->numbers},
                           .data = numbers};
    const mdot_output out = {
        .name = row->output, .data = answers, .size_bytes = (size_t)row->answers * sizeof *answers};
    for (int i = 0; i < row->answers; i++) answers[i] = NAN; /* which stays where the artefact has fewer answers */
    mdot_status status = mdot_run(model->context, 0, &in, 1, &out, 1, err);
    for (int i = 0; status == MDOT_OK && i < row->answers; i++)
        if (!isfinite(answers[i]))
            status = mdot_fail(err, MDOT_MALFORMED, "the network's %s number %d of %d is %g; all must be finite",
                               row->output, i + 1, row->answers, (double)answers[i]);
    return status;
}

mdot_status hs_row_model_open(const char *path, const hs_row *row, hs_row_model **out_model, mdot_error *err)
{
    const mdot_open_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
    float answers[MOST_NUMBERS];
    mdot_error cause = {0};
    hs_row_model *model = calloc(1, sizeof *model);
    if (model == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    model->row = row;
    mdot_status status = mdot_predictor_open(path, &on_cpu, &model->predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(model->predictor, &model->context, err);
    if (status == MDOT_OK) {
        status = hs_row_model_ask(model, (const float[MOST_NUMBERS]){0}, answers, &cause);
        if (status != MDOT_OK)
            mdot_fail(err, status, "%s: %s; it must map %s to %s", path, cause.message, row->input, row->output);
    }
    if (status == MDOT_OK)
        *out_model = model;
    else
        hs_row_model_close(model);
    return status;
}

void hs_row_model_close(hs_row_model *model)
{
    if (model == NULL) return;
    mdot_context_destroy(model->context);
    mdot_predictor_close(model->predictor);
    free(model);
}
