/* options.c — dynamic programming over GPUs, and the integer program with a 0-1 column for each option. */
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
