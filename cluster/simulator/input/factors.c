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

typedef struct factors {
    place *places;
    double *items; /* of each job */
    size_t count;
} factors;

static mdot_status read_factor(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    factors *f = context;
    place wanted = {.id = csv->field[at[0]]};
    double value;
    BS_TRY(bs_csv_number(csv, at[1], 1e-9, 1e9, &value, err));
    const place *found = bsearch(&wanted, f->places, f->count, sizeof wanted, by_id);
    if (found == NULL) return MDOT_OK;
    if (f->items[found->job] > 0)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "job %s has a factor already", found->id);
    f->items[found->job] = value;
    return MDOT_OK;
}

mdot_status sc_read_factors(const char *path, const sc_workload *workload, double **out_factors, mdot_error *err)
{
    size_t count = workload->job_count;
    factors f = {calloc(count + 1, sizeof *f.places), calloc(count + 1, sizeof *f.items), count};
    mdot_status status = f.places == NULL || f.items == NULL ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < count; i++) f.places[i] = (place){.id = workload->jobs[i].id, .job = i};
    if (status == MDOT_OK) qsort(f.places, count, sizeof *f.places, by_id);
    if (status == MDOT_OK) status = sc_read_rows(path, "job_id,factor", read_factor, &f, err);
    for (size_t i = 0; status == MDOT_OK && i < count; i++)
        if (f.items[i] == 0)
            status = mdot_fail(err, MDOT_MALFORMED, "%s: there is no factor for job %s", path, workload->jobs[i].id);
    free(f.places);
    if (status == MDOT_OK)
        *out_factors = f.items;
    else
        free(f.items);
    return status;
}
