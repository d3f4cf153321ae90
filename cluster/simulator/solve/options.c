/* options.c — dynamic programming over GPUs, the integer program with a 0-1 column for each option, and prices of GPUs,
 * with which large problems are solved nearly. */
#include "base/status.h"
#include "simulator/core/arrays.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>

mdot_status sc_options_by_gpus(const sc_option_problem *problem, size_t *out_chosen, double *out_cost, mdot_error *err)
{
    size_t width = (size_t)problem->gpus[0] + 1, jobs = problem->job_count, position = 0;
    /* least[g]: the least cost of the jobs so far on at most g GPUs; taken[job][g]: the option, counted from 1 */
    double *minimum = calloc(width, sizeof *minimum);
    size_t *taken = jobs < SIZE_MAX / width / sizeof *taken ? calloc(jobs * width + 1, sizeof *taken) : NULL;
    if (minimum == NULL || taken == NULL) {
        free(minimum);
        free(taken);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    for (size_t job = 0; job < jobs; job++) {
        size_t end = position;
        while (end < problem->option_count && problem->options[end].job == job) end++;
        for (size_t gpus = width; gpus-- > 0;) { /* downwards, because least[] below must still exclude this job */
            double best = minimum[gpus] + problem->none_cost[job];
            for (size_t i = position; i < end; i++) {
                const sc_option *o = &problem->options[i];
                double cost = (size_t)o->gpus <= gpus ? minimum[gpus - (size_t)o->gpus] + o->cost : INFINITY;
                if (cost >= best) continue;
                best = cost;
                taken[job * width + gpus] = i + 1;
            }
            minimum[gpus] = best;
        }
        position = end;
    }
    *out_cost = minimum[width - 1];
    for (size_t job = jobs, gpus = width - 1; job-- > 0;) {
        size_t option = taken[job * width + gpus];
        out_chosen[job] = option - 1; /* SIZE_MAX for 0 */
        if (option > 0) gpus -= (size_t)problem->options[option - 1].gpus;
    }
    free(minimum);
    free(taken);
    return MDOT_OK;
}

mdot_status sc_options_by_program(const sc_option_problem *problem, double limit_s, size_t *out_chosen,
                                  double *out_cost, mdot_error *err)
{
    sc_linear *linear = NULL;
    double *values = calloc(problem->option_count + 1, sizeof *values), fixed = 0;
    mdot_status status = values == NULL ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : sc_linear_create(&linear, err);
    for (size_t type = 0; status == MDOT_OK && type < problem->type_count; type++)
        sc_linear_add_row(linear, 0, problem->gpus[type]);
    for (size_t job = 0; status == MDOT_OK && job < problem->job_count; job++) {
        sc_linear_add_row(linear, 0, 1);
        fixed += problem->none_cost[job];
        out_chosen[job] = SIZE_MAX;
    }
    for (size_t i = 0; status == MDOT_OK && i < problem->option_count; i++) {
        const sc_option *o = &problem->options[i];
        size_t column = sc_linear_add_integer_column(linear, o->cost - problem->none_cost[o->job], 0, 1);
        sc_linear_add_term(linear, o->type, column, o->gpus);
        sc_linear_add_term(linear, problem->type_count + o->job, column, 1);
    }
    if (status == MDOT_OK) status = sc_linear_solve(linear, limit_s, values, out_cost, err);
    for (size_t i = 0; status == MDOT_OK && i < problem->option_count; i++)
        if (values[i] > .5) out_chosen[problem->options[i].job] = i;
    if (status == MDOT_OK) *out_cost += fixed;
    sc_linear_destroy(linear);
    free(values);
    return status;
}

/* ---- Prices ------------------------------------------------------------------------------------------------------ */

enum { SWEEPS = 4, HALVINGS = 24 };

typedef struct market {
    const sc_option_problem *problem;
    size_t *first;   /* of each job's options; first[jobs] is the end */
    double *outside; /* each job's least price outside of a type */
    double *price;   /* of a GPU of each type */
    int *left;       /* GPUs of each type */
} market;

/* Sells a type's GPUs at a price. Returns how many the jobs want that have nothing cheaper outside. */
static int64_t demand_at(const market *m, unsigned type, double price)
{
    int64_t demand = 0;
    for (size_t job = 0; job < m->problem->job_count; job++) {
        double best = m->outside[job];
        int gpus = 0;
        for (size_t i = m->first[job]; i < m->first[job + 1]; i++) {
            const sc_option *o = &m->problem->options[i];
            double cost = o->cost + price * o->gpus;
            if (o->type != type || cost >= best) continue;
            best = cost;
            gpus = o->gpus;
        }
        demand += gpus;
    }
    return demand;
}

/* Finds the least price at which a type's GPUs suffice while the other types keep theirs. */
static void settle_price(market *m, unsigned type)
{
    double low = 0, high = 1e-9;
    for (size_t job = 0; job < m->problem->job_count; job++) {
        m->outside[job] = m->problem->none_cost[job];
        for (size_t i = m->first[job]; i < m->first[job + 1]; i++) {
            const sc_option *o = &m->problem->options[i];
            if (o->type != type) m->outside[job] = fmin(m->outside[job], o->cost + m->price[o->type] * o->gpus);
        }
    }
    m->price[type] = 0;
    if (demand_at(m, type, 0) <= m->problem->gpus[type]) return;
    while (demand_at(m, type, high) > m->problem->gpus[type]) high *= 8;
    int64_t demand = 0;
    for (int i = 0; i < HALVINGS && demand != m->problem->gpus[type]; i++) {
        double middle = (low + high) / 2;
        demand = demand_at(m, type, middle);
        *(demand > m->problem->gpus[type] ? &low : &high) = middle;
    }
    m->price[type] = high;
}

static double cost_of(const sc_option_problem *problem, const size_t *chosen, size_t job)
{
    return chosen[job] == SIZE_MAX ? problem->none_cost[job] : problem->options[chosen[job]].cost;
}

/* Gives each job its best option at the prices while GPUs are left, then each GPU that is left to a job that gains. */
static void sell(market *m, size_t *out_chosen)
{
    const sc_option_problem *p = m->problem;
    for (size_t type = 0; type < p->type_count; type++) m->left[type] = p->gpus[type];
    for (int pass = 0; pass < 2; pass++)
        for (size_t job = 0; job < p->job_count; job++) {
            size_t before = pass > 0 ? out_chosen[job] : SIZE_MAX, *chosen = &out_chosen[job];
            const sc_option *was = before == SIZE_MAX ? NULL : &p->options[before];
            *chosen = before;
            if (was != NULL) m->left[was->type] += was->gpus;
            double best =
                cost_of(p, out_chosen, job) + (was != NULL && pass == 0 ? m->price[was->type] * was->gpus : 0);
            for (size_t i = m->first[job]; i < m->first[job + 1]; i++) {
                const sc_option *o = &p->options[i];
                double cost = o->cost + (pass == 0 ? m->price[o->type] * o->gpus : 0);
                if (o->gpus > m->left[o->type] || cost >= best) continue;
                best = cost;
                *chosen = i;
            }
            if (*chosen != SIZE_MAX) m->left[p->options[*chosen].type] -= p->options[*chosen].gpus;
        }
}

mdot_status sc_options_by_prices(const sc_option_problem *problem, size_t *out_chosen, double *out_cost,
                                 mdot_error *err)
{
    size_t jobs = problem->job_count;
    const sc_array arrays[] = {SC_ARRAY(market, first, jobs + 1), SC_ARRAY(market, outside, jobs),
                               SC_ARRAY(market, price, problem->type_count),
                               SC_ARRAY(market, left, problem->type_count)};
    void *memory;
    BS_TRY(SC_STATE(market, arrays, &memory, err));
    market *m = memory;
    m->problem = problem;
    for (size_t i = 0; i < problem->option_count; i++) m->first[problem->options[i].job + 1] = i + 1;
    for (size_t job = 0; job < jobs; job++)
        if (m->first[job + 1] == 0) m->first[job + 1] = m->first[job];
    for (int sweep = 0; sweep < (problem->type_count > 1 ? SWEEPS : 1); sweep++)
        for (unsigned type = 0; type < problem->type_count; type++) settle_price(m, type);
    sell(m, out_chosen);
    *out_cost = 0;
    for (size_t job = 0; job < jobs; job++) *out_cost += cost_of(problem, out_chosen, job);
    free(m);
    return MDOT_OK;
}
