/* linear.h — the mathematics of schedulers, independent of jobs and clusters: linear and integer programs, AlloX'
 * assignment, Sia's options and slices of a GPU. time_fractions.h has Gavel's programs. */
#ifndef SC_LINEAR_H
#define SC_LINEAR_H

#include "mdot/mdot_base.h"

/* Linear programs: minimise a sum over columns, with bounds on rows and columns. COIN-OR's CLP solves them, and CBC
 * those with integer columns. */

typedef struct sc_linear sc_linear;

/* Returns whether this build has a solver. */
bool sc_linear_is_available(void);
/* Returns whether this build also has a solver for integer columns. */
bool sc_linear_solves_integers(void);

mdot_status sc_linear_create(sc_linear **out_linear, mdot_error *err);
void sc_linear_destroy(sc_linear *linear);

/* Return indices, counted from 0. If memory runs out, sc_linear_solve reports it. Bounds may be infinite. */
size_t sc_linear_add_column(sc_linear *linear, double cost, double lower, double upper);
size_t sc_linear_add_integer_column(sc_linear *linear, double cost, double lower, double upper);
size_t sc_linear_add_row(sc_linear *linear, double lower, double upper);
void sc_linear_add_term(sc_linear *linear, size_t row, size_t column, double value);

/* Computes one value per column at the least cost. `limit_s` is the work that takes so many seconds on a machine of
 * 2026, counted in iterations and search nodes, so that a simulation has the same result everywhere. OUT_OF_RANGE: the
 * program is infeasible or unbounded. DEVICE: no answer within the limit. UNSUPPORTED: this build lacks a solver. */
mdot_status sc_linear_solve(sc_linear *linear, double limit_s, double *out_values, double *out_cost, mdot_error *err);

/* ---- Matching ---------------------------------------------------------------------------------------------------- */

/* AlloX' assignment (Le et al., EuroSys 2020) of jobs to machines and positions, with the least sum of completion
 * times.
 *
 * The job k-th from the end on its machine delays itself and the k - 1 jobs behind it, so it costs k times its time
 * there. Machines of a type are equal. Therefore a position on a type is one place with one slot per machine, and the
 * assignment is a transportation problem, whose linear program has integer solutions. */

typedef struct sc_match {
    size_t type;
    unsigned from_end; /* 1: the last on its machine */
} sc_match;

/* time_s[job * types + type] is INFINITY if a job cannot run there; `machines` and `delay_s`, the mean
 * time until a machine is free, are per type. OUT_OF_RANGE for a job that
 * can run nowhere; otherwise the statuses of sc_linear_solve. */
mdot_status sc_match_jobs(size_t jobs, size_t types, const double *time_s, const double *delay_s,
                          const double *machines, double limit_s, sc_match *out_matches, double *out_sum_s,
                          mdot_error *err);

/* ---- Options ----------------------------------------------------------------------------------------------------- */

/* One option for each job, or none, so that the GPUs suffice and the sum of costs is least: Sia's program, and Pollux'
 * for one type. */

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

/* Nearly, by prices of GPUs at which each type suffices, for any number of types: O(options) for each of about 100
 * steps. The relaxed program has at most one job for each type between two options, so the cost exceeds the least one
 * by about that many jobs' costs. */
mdot_status sc_options_by_prices(const sc_option_problem *problem, size_t *out_chosen, double *out_cost,
                                 mdot_error *err);

/* ---- Partitions -------------------------------------------------------------------------------------------------- */

/* Divides a GPU into slices (NVIDIA's Multi-Instance GPU) for the jobs on it, with the largest sum of values.
 *
 * An A100 has slices of 1, 2, 3, 4 or 7 sevenths. A division is valid if it is part of a placement in NVIDIA's MIG User
 * Guide. Those have twelve different sets of sizes; the order of slices does not matter here. */

enum { SC_SLICES = 7, SC_SLICE_SIZES = 5 };

/* 1, 2, 3, 4 and 7. */
extern const int sc_slice_sizes[SC_SLICE_SIZES];

/* Gives each of at most 7 jobs a slice. values[job][i] is the value on a slice of sc_slice_sizes[i]; 0 or less: it
 * cannot run there. Returns the largest sum of values, or -INFINITY if the GPU cannot hold all jobs. */
double sc_partition_choose(size_t jobs, const double (*values)[SC_SLICE_SIZES], int *out_sizes);

#endif
