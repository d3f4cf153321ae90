/* time_fractions.c — Gavel's programs as linear programs. All except the sum are one program: the largest t for which
 * each job's throughput is at least t times its need. They differ in the need. */
#include "simulator/solve/time_fractions.h"
#include "base/status.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double sc_time_fractions_throughput(const sc_time_fractions *p, const double *fractions, size_t job)
{
    double sum = 0;
    for (size_t type = 0; type < p->types; type++)
        sum += fractions[job * p->types + type] * p->speed[job * p->types + type];
    for (size_t i = 0; i < p->pair_count; i++) {
        const sc_pair *pair = &p->pairs[i];
        if (pair->a != job && pair->b != job) continue;
        const double *speed = pair->a == job ? pair->speed_a : pair->speed_b;
        for (size_t type = 0; type < p->types; type++) sum += fractions[(p->jobs + i) * p->types + type] * speed[type];
    }
    return sum;
}

void sc_time_fractions_isolated(const sc_time_fractions *p, double *out_fractions)
{
    for (size_t job = 0; job < p->jobs; job++) {
        double *fractions = &out_fractions[job * p->types], sum = 0;
        for (size_t type = 0; type < p->types; type++)
            sum += fractions[type] = p->gpus[type] / ((double)p->jobs * p->scale[job]);
        for (size_t type = 0; type < p->types && sum > 1; type++) fractions[type] /= sum;
    }
    for (size_t i = p->jobs * p->types; i < (p->jobs + p->pair_count) * p->types; i++) out_fractions[i] = 0;
}

/* ---- Groups of equal jobs ---------------------------------------------------------------------------------------- */

/* Jobs with equal width and proportional speeds and needs are alike to a program: if a solution exists, the fractions'
 * mean is a solution, too. One set of columns represents such a group, so the program size depends on the number of job
 * kinds. */
typedef struct groups {
    double *terms;  /* [job * types + type]: speed over need */
    size_t *sorted; /* jobs, group by group */
    size_t *first;  /* first[g] to first[g + 1]: range of group g in sorted */
    size_t count;
} groups;

typedef struct order {
    const sc_time_fractions *p;
    const double *terms;
} order;

static int by_terms(const void *left, const void *right, void *context)
{
    const order *o = context;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    if (o->p->scale[a] != o->p->scale[b]) return o->p->scale[a] < o->p->scale[b] ? -1 : 1;
    for (size_t type = 0; type < o->p->types; type++) {
        double x = o->terms[a * o->p->types + type], y = o->terms[b * o->p->types + type];
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

/* Rounds to 40 bits, because equal ratios of different numbers differ in the last bits. */
static double rounded(double value)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    return ldexp(round(ldexp(mantissa, 40)), exponent - 40);
}

static void free_groups(groups *g)
{
    free(g->terms);
    free(g->sorted);
    free(g->first);
}

static mdot_status make_groups(const sc_time_fractions *p, const double *needs, groups *out, mdot_error *err)
{
    *out = (groups){.terms = calloc(p->jobs * p->types + 1, sizeof(double)),
                    .sorted = calloc(p->jobs + 1, sizeof(size_t)),
                    .first = calloc(p->jobs + 1, sizeof(size_t))};
    if (out->terms == NULL || out->sorted == NULL || out->first == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    order o = {p, out->terms};
    for (size_t job = 0; job < p->jobs; job++) {
        out->sorted[job] = job;
        /* divided by the need, which may have any magnitude, because a solver's tolerances are made for terms near 1 */
        for (size_t i = job * p->types; i < (job + 1) * p->types; i++)
            out->terms[i] = rounded(p->speed[i] / needs[job]);
    }
    if (p->pair_count == 0) qsort_r(out->sorted, p->jobs, sizeof *out->sorted, by_terms, &o);
    for (size_t i = 0; i < p->jobs; i++)
        if (i == 0 || p->pair_count > 0 || by_terms(&out->sorted[i - 1], &out->sorted[i], &o) != 0)
            out->first[out->count++] = i;
    out->first[out->count] = p->jobs;
    return MDOT_OK; /* with pairs, every job is a separate group, in order */
}

/* A group's rows: fraction sum, and throughput. */
typedef struct rows {
    size_t sum, throughput;
} rows;

/* Adds a group's columns, the sum limit row and the throughput row. `adds_up`: columns gain by their part of the job's
 * fastest speed. */
static rows add_group(const sc_time_fractions *p, const groups *g, size_t group, size_t t, bool adds_up,
                      const size_t *type_rows, sc_linear *linear)
{
    size_t job = g->sorted[g->first[group]];
    double count = (double)(g->first[group + 1] - g->first[group]);
    size_t sum = sc_linear_add_row(linear, -INFINITY, count), throughput = sc_linear_add_row(linear, 0, INFINITY);
    double fastest = 0;
    for (size_t type = 0; type < p->types; type++) fastest = fmax(fastest, g->terms[job * p->types + type]);
    for (size_t type = 0; type < p->types; type++) {
        double term = g->terms[job * p->types + type];
        size_t column = sc_linear_add_column(linear, adds_up ? -term / fastest : 0, 0, term > 0 ? count : 0);
        sc_linear_add_term(linear, sum, column, 1);
        sc_linear_add_term(linear, type_rows[type], column, p->scale[job]);
        sc_linear_add_term(linear, throughput, column, term / count);
    }
    sc_linear_add_term(linear, throughput, t, -1);
    return (rows){sum, throughput};
}

static void add_pair(const sc_time_fractions *p, const double *needs, const sc_pair *pair, const rows *jobs,
                     const size_t *type_rows, sc_linear *linear)
{
    for (size_t type = 0; type < p->types; type++) {
        bool fits = pair->speed_a[type] > 0 && pair->speed_b[type] > 0;
        size_t column = sc_linear_add_column(linear, 0, 0, fits ? 1 : 0);
        sc_linear_add_term(linear, jobs[pair->a].sum, column, 1);
        sc_linear_add_term(linear, jobs[pair->b].sum, column, 1);
        sc_linear_add_term(linear, type_rows[type], column, p->scale[pair->a]);
        sc_linear_add_term(linear, jobs[pair->a].throughput, column, pair->speed_a[type] / needs[pair->a]);
        sc_linear_add_term(linear, jobs[pair->b].throughput, column, pair->speed_b[type] / needs[pair->b]);
    }
}

static mdot_status solve_groups(const sc_time_fractions *p, const groups *g, const double *needs, double floor,
                                double *values, mdot_error *err)
{
    sc_linear *linear;
    mdot_status status = sc_linear_create(&linear, err);
    if (status != MDOT_OK) return status;
    size_t *type_rows = calloc(p->types, sizeof *type_rows),
           t = sc_linear_add_column(linear, floor > 0 ? 0 : -1, floor, INFINITY);
    rows *group_rows = calloc(g->count + 1, sizeof *group_rows);
    double cost;
    if (type_rows == NULL || group_rows == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t type = 0; status == MDOT_OK && type < p->types; type++)
        type_rows[type] = sc_linear_add_row(linear, -INFINITY, p->gpus[type]);
    for (size_t group = 0; status == MDOT_OK && group < g->count; group++)
        group_rows[group] = add_group(p, g, group, t, floor > 0, type_rows, linear);
    for (size_t i = 0; status == MDOT_OK && i < p->pair_count; i++)
        add_pair(p, needs, &p->pairs[i], group_rows, type_rows, linear);
    if (status == MDOT_OK) status = sc_linear_solve(linear, p->limit_s, values, &cost, err);
    free(type_rows);
    free(group_rows);
    sc_linear_destroy(linear);
    return status;
}

/* Finds the largest t with throughput(i) >= t · need[i] for all jobs; with a `floor` of t, the largest sum of
 * speeds. */
static mdot_status solve_for_needs(const sc_time_fractions *p, const double *needs, double floor, double *out_fractions,
                                   double *out_value, mdot_error *err)
{
    groups g;
    double *values = NULL;
    mdot_status status = make_groups(p, needs, &g, err);
    if (status == MDOT_OK) values = calloc((g.count + p->pair_count) * p->types + 1, sizeof *values);
    if (status == MDOT_OK && values == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = solve_groups(p, &g, needs, floor, values, err);
    for (size_t group = 0; status == MDOT_OK && group < g.count; group++) {
        double count = (double)(g.first[group + 1] - g.first[group]);
        for (size_t i = g.first[group]; i < g.first[group + 1]; i++)
            for (size_t type = 0; type < p->types; type++)
                out_fractions[g.sorted[i] * p->types + type] = values[1 + group * p->types + type] / count;
    }
    if (status == MDOT_OK)
        memcpy(&out_fractions[p->jobs * p->types], &values[1 + g.count * p->types],
               p->pair_count * p->types * sizeof *values);
    if (status == MDOT_OK) *out_value = values[0];
    free(values);
    free_groups(&g);
    return status;
}

static double *make_needs(const sc_time_fractions *p, mdot_status *out_status, mdot_error *err)
{
    double *needs = calloc(p->jobs + 1, sizeof *needs);
    *out_status = needs != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    return needs;
}

mdot_status sc_time_fractions_max_min(const sc_time_fractions *p, double *out_fractions, double *out_value,
                                      mdot_error *err)
{
    mdot_status status;
    double *needs = make_needs(p, &status, err), gpus = 0;
    for (size_t type = 0; type < p->types; type++) gpus += p->gpus[type];
    for (size_t job = 0; status == MDOT_OK && job < p->jobs; job++) {
        double mean = 0; /* its speed on the mean GPU */
        for (size_t type = 0; type < p->types; type++) mean += p->speed[job * p->types + type] * p->gpus[type] / gpus;
        needs[job] = p->weight[job] * mean / p->scale[job];
    }
    if (status == MDOT_OK) status = solve_for_needs(p, needs, 0, out_fractions, out_value, err);
    free(needs);
    return status;
}

mdot_status sc_time_fractions_makespan(const sc_time_fractions *p, double *out_fractions, double *out_value,
                                       mdot_error *err)
{
    mdot_status status;
    double rate, *needs = make_needs(p, &status, err);
    for (size_t job = 0; status == MDOT_OK && job < p->jobs; job++) needs[job] = p->remaining[job];
    if (status == MDOT_OK) status = solve_for_needs(p, needs, 0, out_fractions, &rate, err);
    if (status == MDOT_OK) *out_value = 1 / rate;
    free(needs);
    return status;
}

mdot_status sc_time_fractions_sum(const sc_time_fractions *p, double *out_fractions, double *out_value, mdot_error *err)
{
    sc_linear *linear;
    BS_TRY(sc_linear_create(&linear, err));
    for (size_t type = 0; type < p->types; type++) sc_linear_add_row(linear, -INFINITY, p->gpus[type]); /* row `type` */
    for (size_t job = 0; job < p->jobs; job++) {
        const double *speed = &p->speed[job * p->types];
        double fastest = 0;
        for (size_t type = 0; type < p->types; type++) fastest = fmax(fastest, speed[type]);
        size_t row = sc_linear_add_row(linear, -INFINITY, 1);
        for (size_t type = 0; type < p->types; type++) {
            double cost = -speed[type] / fastest / (p->prices != NULL ? p->prices[type] : 1);
            size_t column = sc_linear_add_column(linear, cost, 0, speed[type] > 0 ? 1 : 0);
            sc_linear_add_term(linear, row, column, 1);
            sc_linear_add_term(linear, type, column, p->scale[job]);
        }
    }
    mdot_status status = sc_linear_solve(linear, p->limit_s, out_fractions, out_value, err);
    if (status == MDOT_OK) *out_value = -*out_value;
    sc_linear_destroy(linear);
    return status;
}

/* ---- Finish-time fairness ---------------------------------------------------------------------------------------- */

/* A ratio rho is feasible if throughput(i) >= remaining / (rho · alone - since_start), where the denominator must be
 * above 0. This is linear for a given rho, so the least rho is found by bisection. If a program reaches more than it
 * needs, the excess also bounds how far rho may shrink. */
typedef struct fairness {
    const sc_time_fractions *p;
    double *alone_s; /* each job's time since the start, at the isolated fraction */
    double *needs;
} fairness;

/* Returns the largest ratio under these fractions. */
static double ratio_of(const fairness *f, const double *fractions)
{
    double largest = 0;
    for (size_t job = 0; job < f->p->jobs; job++) {
        double throughput = sc_time_fractions_throughput(f->p, fractions, job);
        double end_s = f->p->since_start_s[job] + (throughput > 0 ? f->p->remaining[job] / throughput : INFINITY);
        largest = fmax(largest, end_s / f->alone_s[job]);
    }
    return largest;
}

static mdot_status try_ratio(fairness *f, double ratio, double floor, double *fractions, double *out_margin,
                             mdot_error *err)
{
    for (size_t job = 0; job < f->p->jobs; job++)
        f->needs[job] = f->p->remaining[job] / (ratio * f->alone_s[job] - f->p->since_start_s[job]);
    return solve_for_needs(f->p, f->needs, floor, fractions, out_margin, err);
}

static mdot_status bisect(fairness *f, double *fractions, double *out_value, mdot_error *err)
{
    size_t bytes = (f->p->jobs + f->p->pair_count) * f->p->types * sizeof *fractions;
    double *tried = malloc(bytes), low = 0, high;
    if (tried == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    sc_time_fractions_isolated(f->p, fractions);
    high = ratio_of(f, fractions);
    for (size_t job = 0; job < f->p->jobs; job++) low = fmax(low, f->p->since_start_s[job] / f->alone_s[job]);
    mdot_status status = MDOT_OK;
    while (status == MDOT_OK && high - low > 1e-7 * high) {
        double ratio = (low + high) / 2, margin;
        status = try_ratio(f, ratio, 0, tried, &margin, err);
        if (status != MDOT_OK) break;
        if (margin >= 1) {
            memcpy(fractions, tried, bytes);
            high = fmin(ratio, ratio_of(f, fractions));
        } else {
            low = ratio;
        }
    }
    /* Many answers have this ratio. Among them, the largest sum of speeds leaves no GPU idle that a job could use. */
    double margin;
    if (status == MDOT_OK) *out_value = high;
    if (status == MDOT_OK && try_ratio(f, high * (1 + 1e-6), 1, tried, &margin, NULL) == MDOT_OK)
        memcpy(fractions, tried, bytes);
    free(tried);
    return status;
}

mdot_status sc_time_fractions_finish_time(const sc_time_fractions *p, double *out_fractions, double *out_value,
                                          mdot_error *err)
{
    fairness f = {.p = p, .alone_s = calloc(p->jobs + 1, sizeof(double)), .needs = calloc(p->jobs + 1, sizeof(double))};
    mdot_status status = MDOT_OK;
    if (f.alone_s == NULL || f.needs == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) {
        sc_time_fractions_isolated(p, out_fractions);
        for (size_t job = 0; job < p->jobs; job++)
            f.alone_s[job] = (p->isolated_s != NULL ? p->isolated_s[job] : 0) +
                             p->remaining[job] / sc_time_fractions_throughput(p, out_fractions, job);
        status = bisect(&f, out_fractions, out_value, err);
    }
    free(f.alone_s);
    free(f.needs);
    return status;
}
