/* time_fractions.h — Gavel's programs (Narayanan et al., OSDI 2020): each job's time fraction on each GPU type.
 *
 * fraction(i, j) is job i's time fraction on type j, on scale[i] GPUs. A job's fractions sum to at most 1. The
 * fractions on a type, times the jobs' GPUs, sum to at most its GPUs. A job's throughput is the sum over j: fraction(i,
 * j) · speed(i, j).
 *
 * Pairs have fractions as well, behind those of the jobs: out_fractions[(jobs + pair) * types + type]. They count once
 * for the GPUs, for the sum of either job, and for either job's throughput at its speed in the pair (the paper's
 * section 3.1). `sum` ignores pairs. */
#ifndef SC_TIME_FRACTIONS_H
#define SC_TIME_FRACTIONS_H

#include "mdot/mdot_base.h"

/* Two jobs of equal width for sharing GPUs, and both speeds per type; 0: they do not fit. */
typedef struct sc_pair {
    size_t a, b;
    const double *speed_a, *speed_b;
} sc_pair;

typedef struct sc_time_fractions {
    size_t jobs, types;
    const double *speed;         /* [job * types + type]: steps per second */
    const double *scale;         /* GPUs of each job */
    const double *weight;        /* one per job */
    const double *remaining;     /* steps of each job */
    const double *since_start_s; /* one per job */
    const double *isolated_s;    /* per job: time for the steps so far at the isolated fraction; NULL: 0 */
    const double *gpus;          /* one per type */
    const double *prices;        /* of a GPU and hour, one per type, for `sum`; NULL: equal */
    const sc_pair *pairs;        /* space sharing; NULL: none */
    size_t pair_count;
    double limit_s; /* of a solution, see sc_linear_solve */
} sc_time_fractions;

/* Gives every job an equal part of every type: n_j / (jobs · scale), reduced if a job's fractions would exceed 1. */
void sc_time_fractions_isolated(const sc_time_fractions *p, double *out_fractions);

double sc_time_fractions_throughput(const sc_time_fractions *p, const double *fractions, size_t job);

/* Each function fills out_fractions[job * types + type] and stores the objective; statuses are as for sc_linear_solve.
 *
 *   max_min      the largest least normalised throughput: throughput · scale / (weight · speed on the mean GPU)
 *   sum          the largest sum of throughputs over those on the job's fastest type, each over its type's price
 *   makespan     the shortest time in which all jobs end, in seconds
 *   finish_time  the least of the largest (since_start + remaining / throughput) / (isolated + remaining / isolated
 *                throughput), Themis' finish-time fairness */
mdot_status sc_time_fractions_max_min(const sc_time_fractions *p, double *out_fractions, double *out_value,
                                      mdot_error *err);
mdot_status sc_time_fractions_sum(const sc_time_fractions *p, double *out_fractions, double *out_value,
                                  mdot_error *err);
mdot_status sc_time_fractions_makespan(const sc_time_fractions *p, double *out_fractions, double *out_value,
                                       mdot_error *err);
mdot_status sc_time_fractions_finish_time(const sc_time_fractions *p, double *out_fractions, double *out_value,
                                          mdot_error *err);

#endif
