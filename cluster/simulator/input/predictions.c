/* predictions.c — reads measured step times of networks and a predictor's times for them. */
#include "simulator/input/input.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct ratios {
    double *items;
    size_t count;
} ratios;

static mdot_status read_network(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    ratios *r = context;
    double step_ms, predicted_ms;
    BS_TRY(bs_csv_number(csv, at[0], 1e-6, 1e9, &step_ms, err));
    BS_TRY(bs_csv_number(csv, at[1], 1e-6, 1e9, &predicted_ms, err));
    if (!sc_grow(&r->items, r->count, sizeof *r->items)) return BS_OUT_OF_MEMORY(err, "%s", csv->path);
    r->items[r->count++] = predicted_ms / step_ms;
    return MDOT_OK;
}

mdot_status sc_read_predictions(const char *path, const char *predictor, double **out_ratios, size_t *out_count,
                                mdot_error *err)
{
    ratios r = {0};
    char names[160];
    snprintf(names, sizeof names, "step_ms,%s", predictor);
    mdot_status status = sc_read_rows(path, names, read_network, &r, err);
    if (status == MDOT_OK && r.count == 0) status = mdot_fail(err, MDOT_MALFORMED, "%s: holds no networks", path);
    if (status != MDOT_OK) {
        free(r.items);
        return status;
    }
    *out_ratios = r.items;
    *out_count = r.count;
    return MDOT_OK;
}
