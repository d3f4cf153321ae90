/* time_shares.c — Gavel's programs as linear programs. All except the sum are one program: the largest t for which
 * each job's throughput is at least t times its need. They differ in the need. */
#include "simulator/solve/time_shares.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double sc_shares_throughput(const sc_shares *p, const double *shares, size_t job)
{
    double sum = 0;
    for (size_t type = 0; type < p->types; type++)
        sum += shares[job * p->types + type] * p->speed[job * p->types + type];
    return sum;
}

void sc_shares_isolated(const sc_shares *p, double *out_shares)
{
    for (size_t job = 0; job < p->jobs; job++) {
        double *shares = &out_shares[job * p->types], sum = 0;
        for (size_t type = 0; type < p->types; type++)
            sum += shares[type] = p->gpus[type] / ((double)p->jobs * p->scale[job]);
        for (size_t type = 0; type < p->types && sum > 1; type++) shares[type] /= sum;
    }
}

/* Adds a column for each share, in order, and the rows that limit their sums. */
static mdot_status begin(const sc_shares *p, const double *costs, sc_linear **out_linear, mdot_error *err)
{
    sc_linear *linear;
    mdot_status status = sc_linear_create(&linear, err);
    if (status != MDOT_OK) return status;
    for (size_t i = 0; i < p->jobs * p->types; i++)
        sc_linear_add_column(linear, costs != NULL ? costs[i] : 0, 0, p->speed[i] > 0 ? 1 : 0);
    for (size_t job = 0; job < p->jobs; job++) {
        size_t row = sc_linear_add_row(linear, -INFINITY, 1);
        for (size_t type = 0; type < p->types; type++) sc_linear_add_term(linear, row, job * p->types + type, 1);
    }
    for (size_t type = 0; type < p->types; type++) {
        size_t row = sc_linear_add_row(linear, -INFINITY, p->gpus[type]);
        for (size_t job = 0; job < p->jobs; job++)
            sc_linear_add_term(linear, row, job * p->types + type, p->scale[job]);
    }
    *out_linear = linear;
    return MDOT_OK;
}

/* Finds the largest t with throughput(i) >= t · need[i] for all jobs. */
static mdot_status solve_for_needs(const sc_shares *p, const double *needs, double *out_shares, double *out_value,
                                   mdot_error *err)
{
    size_t count = p->jobs * p->types;
    sc_linear *linear = NULL;
    double cost, *values = calloc(count + 1, sizeof *values);
    mdot_status status = values == NULL ? mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %zu shares", count)
                                        : begin(p, NULL, &linear, err);
    if (status == MDOT_OK) {
        size_t t = sc_linear_add_column(linear, -1, 0, INFINITY);
        for (size_t job = 0; job < p->jobs; job++) {
            size_t row = sc_linear_add_row(linear, 0, INFINITY);
            /* divided by the need, which may have any magnitude, because a solver's tolerances are made for terms
             * near 1 */
            for (size_t type = 0; type < p->types; type++)
                sc_linear_add_term(linear, row, job * p->types + type, p->speed[job * p->types + type] / needs[job]);
            sc_linear_add_term(linear, row, t, -1);
        }
        status = sc_linear_solve(linear, p->limit_s, values, &cost, err);
    }
    if (status == MDOT_OK) {
        memcpy(out_shares, values, count * sizeof *values);
        *out_value = values[count];
    }
    sc_linear_destroy(linear);
    free(values);
    return status;
}

static double *make_needs(const sc_shares *p, mdot_status *out_status, mdot_error *err)
{
    double *needs = calloc(p->jobs + 1, sizeof *needs);
    *out_status = needs != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %zu jobs", p->jobs);
    return needs;
}

mdot_status sc_shares_max_min(const sc_shares *p, double *out_shares, double *out_value, mdot_error *err)
{
    mdot_status status;
    double *needs = make_needs(p, &status, err), gpus = 0;
    for (size_t type = 0; type < p->types; type++) gpus += p->gpus[type];
    for (size_t job = 0; status == MDOT_OK && job < p->jobs; job++) {
        double mean = 0; /* its speed on the mean GPU */
        for (size_t type = 0; type < p->types; type++) mean += p->speed[job * p->types + type] * p->gpus[type] / gpus;
        needs[job] = p->weight[job] * mean / p->scale[job];
    }
    if (status == MDOT_OK) status = solve_for_needs(p, needs, out_shares, out_value, err);
    free(needs);
    return status;
}

mdot_status sc_shares_makespan(const sc_shares *p, double *out_shares, double *out_value, mdot_error *err)
{
    mdot_status status;
    double rate, *needs = make_needs(p, &status, err);
    for (size_t job = 0; status == MDOT_OK && job < p->jobs; job++) needs[job] = p->remaining[job];
    if (status == MDOT_OK) status = solve_for_needs(p, needs, out_shares, &rate, err);
    if (status == MDOT_OK) *out_value = 1 / rate;
    free(needs);
    return status;
}

/* ---- Finish-time fairness ---------------------------------------------------------------------------------------- */

/* A ratio rho is feasible if throughput(i) >= remaining / (rho · alone - since_start), where the denominator must be
 * above 0. This is linear for a given rho, so the least rho is found by bisection. If a program reaches more than it
 * needs, the excess also bounds how far rho may shrink. */
typedef struct fairness {
    const sc_shares *p;
    double *alone_s; /* time of each job from its start, at its isolated share */
    double *needs;
} fairness;

/* Returns the largest ratio under these shares. */
static double ratio_of(const fairness *f, const double *shares)
{
    double largest = 0;
    for (size_t job = 0; job < f->p->jobs; job++) {
        double throughput = sc_shares_throughput(f->p, shares, job);
        double end_s = f->p->since_start_s[job] + (throughput > 0 ? f->p->remaining[job] / throughput : INFINITY);
        largest = fmax(largest, end_s / f->alone_s[job]);
    }
    return largest;
}

static mdot_status try_ratio(fairness *f, double ratio, double *shares, double *out_margin, mdot_error *err)
{
    for (size_t job = 0; job < f->p->jobs; job++)
        f->needs[job] = f->p->remaining[job] / (ratio * f->alone_s[job] - f->p->since_start_s[job]);
    return solve_for_needs(f->p, f->needs, shares, out_margin, err);
}

static mdot_status bisect(fairness *f, double *shares, double *out_value, mdot_error *err)
{
    size_t bytes = f->p->jobs * f->p->types * sizeof *shares;
    double *tried = malloc(bytes), low = 0, high;
    if (tried == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for shares");
    sc_shares_isolated(f->p, shares);
    high = ratio_of(f, shares);
    for (size_t job = 0; job < f->p->jobs; job++) low = fmax(low, f->p->since_start_s[job] / f->alone_s[job]);
    mdot_status status = MDOT_OK;
    while (status == MDOT_OK && high - low > 1e-7 * high) {
        double ratio = (low + high) / 2, margin;
        status = try_ratio(f, ratio, tried, &margin, err);
        if (status != MDOT_OK) break;
        if (margin >= 1) {
            memcpy(shares, tried, bytes);
            high = fmin(ratio, ratio_of(f, shares));
        } else {
            low = ratio;
        }
    }
    if (status == MDOT_OK) *out_value = high;
    free(tried);
    return status;
}

mdot_status sc_shares_finish_time(const sc_shares *p, double *out_shares, double *out_value, mdot_error *err)
{
    fairness f = {.p = p, .alone_s = calloc(p->jobs + 1, sizeof(double)), .needs = calloc(p->jobs + 1, sizeof(double))};
    mdot_status status = MDOT_OK;
    if (f.alone_s == NULL || f.needs == NULL)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %zu jobs", p->jobs);
    if (status == MDOT_OK) {
        sc_shares_isolated(p, out_shares);
        for (size_t job = 0; job < p->jobs; job++)
            f.alone_s[job] = (p->isolated_s != NULL ? p->isolated_s[job] : 0) +
                             p->remaining[job] / sc_shares_throughput(p, out_shares, job);
        status = bisect(&f, out_shares, out_value, err);
    }
    free(f.alone_s);
    free(f.needs);
    return status;
}
