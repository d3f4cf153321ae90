/* factors.c — reads the misprediction of each job's duration: job_id,factor. */
#include "base/csv.h"
#include "simulator/input/input.h"

#include <stdlib.h>
#include <string.h>

typedef struct place {
    const char *id;
    size_t job;
} place;

static int by_id(const void *a, const void *b) { return strcmp(((const place *)a)->id, ((const place *)b)->id); }

static mdot_status read_rows(bs_csv *csv, const place *places, size_t count, double *factors, mdot_error *err)
{
    int id, factor;
    mdot_status status = bs_csv_need(csv, "job_id", &id, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "factor", &factor, err);
    bool is_row = true;
    while (status == MDOT_OK && is_row) {
        double value;
        status = bs_csv_next(csv, &is_row, err);
        if (status != MDOT_OK || !is_row) break;
        status = bs_csv_number(csv, factor, 1e-9, 1e9, &value, err);
        if (status != MDOT_OK) break;
        place wanted = {.id = csv->field[id]};
        const place *found = bsearch(&wanted, places, count, sizeof wanted, by_id);
        if (found == NULL) continue;
        if (factors[found->job] > 0)
            return bs_csv_fail(csv, err, MDOT_MALFORMED, "job %s has a factor already", found->id);
        factors[found->job] = value;
    }
    return status;
}

mdot_status sc_read_factors(const char *path, const sc_workload *workload, double **out_factors, mdot_error *err)
{
    bs_csv csv;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    size_t count = workload->job_count;
    double *factors = calloc(count + 1, sizeof *factors);
    place *places = calloc(count + 1, sizeof *places);
    if (factors == NULL || places == NULL) {
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    } else {
        for (size_t i = 0; i < count; i++) places[i] = (place){.id = workload->jobs[i].id, .job = i};
        qsort(places, count, sizeof *places, by_id);
        status = read_rows(&csv, places, count, factors, err);
    }
    for (size_t i = 0; status == MDOT_OK && i < count; i++)
        if (factors[i] == 0)
            status = mdot_fail(err, MDOT_MALFORMED, "%s: there is no factor for job %s", path, workload->jobs[i].id);
    bs_csv_close(&csv);
    free(places);
    if (status == MDOT_OK)
        *out_factors = factors;
    else
        free(factors);
    return status;
}
