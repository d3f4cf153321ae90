/* leases.c — the integer program of leases: a 0-1 column for each job and lease. */
#include "base/status.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>

/* Returns whether the jobs that must be done by some lease t need more GPUs than exist until then, which CBC would
 * take long to prove. */
static bool is_overfull(const sc_lease_job *jobs, size_t job_count, int gpus)
{
    for (size_t i = 0; i < job_count; i++) {
        double needed = 0;
        if (jobs[i].needed > jobs[i].until) return true;
        for (size_t k = 0; k < job_count; k++)
            if (jobs[k].until <= jobs[i].until) needed += (double)jobs[k].needed * jobs[k].gpus;
        if (needed > (double)jobs[i].until * gpus) return true;
    }
    return false;
}

static sc_linear *build(const sc_lease_job *jobs, size_t job_count, int gpus, size_t *out_columns)
{
    sc_linear *linear;
    size_t final = 0;
    *out_columns = 0;
    if (sc_linear_create(&linear, NULL) != MDOT_OK) return NULL;
    for (size_t i = 0; i < job_count; i++) final = jobs[i].until > final ? jobs[i].until : final;
    for (size_t t = 0; t < final; t++) sc_linear_add_row(linear, 0, gpus); /* row t: the GPUs of lease t */
    for (size_t i = 0; i < job_count; i++) {
        size_t row = sc_linear_add_row(linear, (double)jobs[i].needed, (double)jobs[i].needed);
        for (size_t t = 0; t < jobs[i].until; t++) {
            size_t column = sc_linear_add_integer_column(linear, 0, 0, 1);
            sc_linear_add_term(linear, t, column, jobs[i].gpus);
            sc_linear_add_term(linear, row, column, 1);
            ++*out_columns;
        }
    }
    return linear;
}

mdot_status sc_leases_solve(const sc_lease_job *jobs, size_t job_count, int gpus, double limit_s,
                            unsigned char *const *runs, mdot_error *err)
{
    size_t columns, position = 0;
    double cost;
    if (is_overfull(jobs, job_count, gpus)) return mdot_fail(err, MDOT_OUT_OF_RANGE, "the leases do not suffice");
    sc_linear *linear = build(jobs, job_count, gpus, &columns);
    double *values = linear == NULL ? NULL : calloc(columns + 1, sizeof *values);
    mdot_status status = values == NULL ? BS_OUT_OF_MEMORY(err, "%zu jobs", job_count)
                                        : sc_linear_solve(linear, limit_s, values, &cost, err);
    for (size_t i = 0; status == MDOT_OK && i < job_count; i++)
        for (size_t t = 0; t < jobs[i].until; t++) runs[i][t] = values[position++] > .5;
    free(values);
    sc_linear_destroy(linear);
    return status;
}
