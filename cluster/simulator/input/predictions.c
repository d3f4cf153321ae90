/* predictions.c — reads measured step times of networks and a predictor's times for them. */
#include "base/csv.h"
#include "base/status.h"
#include "simulator/input/input.h"

#include <stdlib.h>

static mdot_status read_rows(bs_csv *csv, int label, int column, double **ratios, size_t *count, mdot_error *err)
{
    for (bool is_row = true;;) {
        double step_ms, predicted_ms;
        mdot_status status = bs_csv_next(csv, &is_row, err);
        if (status != MDOT_OK || !is_row) return status;
        status = bs_csv_number(csv, label, 1e-6, 1e9, &step_ms, err);
        if (status == MDOT_OK) status = bs_csv_number(csv, column, 1e-6, 1e9, &predicted_ms, err);
        if (status != MDOT_OK) return status;
        double *grown = realloc(*ratios, (*count + 1) * sizeof *grown);
        if (grown == NULL) return BS_OUT_OF_MEMORY(err, "%s", csv->path);
        *ratios = grown;
        grown[(*count)++] = predicted_ms / step_ms;
    }
}

mdot_status sc_read_predictions(const char *path, const char *predictor, double **out_ratios, size_t *out_count,
                                mdot_error *err)
{
    bs_csv csv;
    double *ratios = NULL;
    size_t count = 0;
    int label, column;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = bs_csv_need(&csv, "step_ms", &label, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, predictor, &column, err);
    if (status == MDOT_OK) status = read_rows(&csv, label, column, &ratios, &count, err);
    bs_csv_close(&csv);
    if (status == MDOT_OK && count == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no networks", path);
    if (status != MDOT_OK) {
        free(ratios);
        return status;
    }
    *out_ratios = ratios;
    *out_count = count;
    return MDOT_OK;
}
