/* experiment_predictions.c — reads measured step times of networks and the predictions for them. */
#include "base/csv.h"
#include "base/status.h"
#include "simulator/experiment/experiment.h"

#include <stdlib.h>
#include <string.h>

void ex_predictions_free(ex_predictions *predictions)
{
    for (size_t i = 0; predictions->names != NULL && i < predictions->predictor_count; i++) free(predictions->names[i]);
    free(predictions->names);
    free(predictions->factors);
    *predictions = (ex_predictions){0};
}

/* Finds the columns behind the label. */
static mdot_status find_predictors(const bs_csv *csv, int label, int *columns, ex_predictions *p, mdot_error *err)
{
    p->names = calloc(BS_CSV_MAX_FIELDS, sizeof *p->names);
    if (p->names == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int i = label + 1; i < csv->header_count; i++) {
        columns[p->predictor_count] = i;
        p->names[p->predictor_count] = strdup(csv->header[i]);
        if (p->names[p->predictor_count++] == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (p->predictor_count > 0) return MDOT_OK;
    return mdot_fail(err, MDOT_MALFORMED, "%s: the table lacks a predictor column", csv->path);
}

static mdot_status read_rows(bs_csv *csv, int label, const int *columns, ex_predictions *p, mdot_error *err)
{
    double *rows = NULL; /* by network first; transposed at the end */
    mdot_status status = MDOT_OK;
    size_t width = p->predictor_count;
    for (bool is_row = true; status == MDOT_OK;) {
        double step_ms, predicted_ms;
        status = bs_csv_next(csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        double *grown = realloc(rows, (p->network_count + 1) * width * sizeof *rows);
        if (grown == NULL) {
            status = BS_OUT_OF_MEMORY(err, "%s", csv->path);
            break;
        }
        rows = grown;
        status = bs_csv_number(csv, label, 1e-6, 1e9, &step_ms, err);
        for (size_t i = 0; status == MDOT_OK && i < width; i++) {
            status = bs_csv_number(csv, columns[i], 1e-6, 1e9, &predicted_ms, err);
            if (status == MDOT_OK) rows[p->network_count * width + i] = predicted_ms / step_ms;
        }
        if (status == MDOT_OK) p->network_count++;
    }
    if (status == MDOT_OK && p->network_count == 0)
        status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no networks", csv->path);
    if (status == MDOT_OK) p->factors = calloc(p->network_count * width, sizeof *p->factors);
    if (status == MDOT_OK && p->factors == NULL) status = BS_OUT_OF_MEMORY(err, "%s", csv->path);
    for (size_t j = 0; status == MDOT_OK && j < p->network_count; j++)
        for (size_t i = 0; i < width; i++) p->factors[i * p->network_count + j] = rows[j * width + i];
    free(rows);
    return status;
}

mdot_status ex_predictions_read(const char *path, ex_predictions *out_predictions, mdot_error *err)
{
    bs_csv csv;
    ex_predictions p = {0};
    int network, label, columns[BS_CSV_MAX_FIELDS];
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = bs_csv_need(&csv, "network", &network, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "step_ms", &label, err);
    if (status == MDOT_OK) status = find_predictors(&csv, label, columns, &p, err);
    if (status == MDOT_OK) status = read_rows(&csv, label, columns, &p, err);
    bs_csv_close(&csv);
    if (status == MDOT_OK)
        *out_predictions = p;
    else
        ex_predictions_free(&p);
    return status;
}
