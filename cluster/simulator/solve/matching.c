/* matching.c — the transportation problem behind matching.h. */
#include "base/status.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>

typedef struct place {
    size_t job, type;
    unsigned from_end;
} place;

/* Builds the program and returns the column count, one per place. */
static size_t build(size_t jobs, size_t types, const double *time_s, const double *delay_s, const double *machines,
                    sc_linear *linear, place *places)
{
    size_t count = 0;
    for (size_t job = 0; job < jobs; job++) sc_linear_add_row(linear, 1, 1);
    for (size_t type = 0; type < types; type++) {
        for (unsigned k = 1; k <= (machines[type] > 0 ? jobs : 0); k++) {
            size_t row = sc_linear_add_row(linear, -INFINITY, machines[type]);
            for (size_t job = 0; job < jobs; job++) {
                double each_s = time_s[job * types + type];
                if (!isfinite(each_s)) continue;
                size_t column = sc_linear_add_column(linear, k * each_s + delay_s[type], 0, INFINITY);
                sc_linear_add_term(linear, job, column, 1);
                sc_linear_add_term(linear, row, column, 1);
                places[count++] = (place){job, type, k};
            }
        }
    }
    return count;
}

mdot_status sc_match_jobs(size_t jobs, size_t types, const double *time_s, const double *delay_s,
                          const double *machines, double limit_s, sc_match *out_matches, double *out_sum_s,
                          mdot_error *err)
{
    size_t maximum = jobs * jobs * types, count = 0;
    sc_linear *linear = NULL;
    place *places = calloc(maximum + 1, sizeof *places);
    double *values = calloc(maximum + 1, sizeof *values);
    mdot_status status = places == NULL || values == NULL ? BS_OUT_OF_MEMORY(err, "%zu jobs to match", jobs)
                                                          : sc_linear_create(&linear, err);
    if (status == MDOT_OK) count = build(jobs, types, time_s, delay_s, machines, linear, places);
    if (status == MDOT_OK) status = sc_linear_solve(linear, limit_s, values, out_sum_s, err);
    for (size_t i = 0; status == MDOT_OK && i < count; i++)
        if (values[i] > .5) out_matches[places[i].job] = (sc_match){places[i].type, places[i].from_end};
    sc_linear_destroy(linear);
    free(places);
    free(values);
    return status;
}
