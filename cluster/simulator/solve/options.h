/* options.h — one option for each job, or none, so that the GPUs of every type suffice and the sum of costs is least:
 * the program of Sia, and of Pollux on one type.
 */
#ifndef SC_OPTIONS_H
#define SC_OPTIONS_H

#include "mdot/mdot_base.h"

typedef struct sc_option {
    size_t job;
    unsigned type;
    int gpus;
    double cost;
} sc_option;

typedef struct sc_option_problem {
    const sc_option *options; /* those of a job behind each other, jobs in order */
    size_t option_count, job_count;
    const double *none_cost; /* per job: the cost of no option */
    const int *gpus;         /* per type */
    size_t type_count;
} sc_option_problem;

/* Fills out_chosen[job] with the option's index, or SIZE_MAX, and stores the sum of costs. */

/* By dynamic programming, for one type: O(options · GPUs) steps and O(jobs · GPUs) memory. */
mdot_status sc_options_by_gpus(const sc_option_problem *problem, size_t *out_chosen, double *out_cost, mdot_error *err);

/* By an integer program, for any number of types. The statuses are those of sc_linear_solve. */
mdot_status sc_options_by_program(const sc_option_problem *problem, double limit_s, size_t *out_chosen,
                                  double *out_cost, mdot_error *err);

#endif
