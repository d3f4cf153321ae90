/* time_shares.h — Gavel's programs (Narayanan et al., OSDI 2020): the share of its time that a job gets on each type
 * of GPU.
 *
 * share(i, j) is job i's share of time on type j, on scale[i] GPUs. The shares of a job sum to at most 1. The shares
 * on a type, times the jobs' GPUs, sum to at most its number of GPUs. A job's throughput is the sum of share(i, j) ·
 * speed(i, j).
 */
#ifndef SC_TIME_SHARES_H
#define SC_TIME_SHARES_H

#include "mdot/mdot_base.h"

typedef struct sc_shares {
    size_t jobs, types;
    const double *speed;         /* [job * types + type]: steps per second */
    const double *scale;         /* GPUs of each job */
    const double *weight;        /* one per job */
    const double *remaining;     /* steps of each job */
    const double *since_start_s; /* one per job */
    const double *isolated_s;    /* per job: time that its steps so far would have taken at its isolated share; NULL:
                                  * 0 */
    const double *gpus;          /* one per type */
    double limit_s;              /* time limit for a solution */
} sc_shares;

/* Gives every job an equal part of every type: n_j / (jobs · scale), reduced if a job's shares would exceed 1. */
void sc_shares_isolated(const sc_shares *p, double *out_shares);

double sc_shares_throughput(const sc_shares *p, const double *shares, size_t job);

/* Each function fills out_shares[job * types + type] and stores its objective; statuses are those of sc_linear_solve.
 *
 *   max_min      the largest least normalised throughput: throughput · scale / (weight · speed on the mean GPU)
 *   makespan     the shortest time in which all jobs end, in seconds
 *   finish_time  the least of the largest (since_start + remaining / throughput) / (isolated + remaining / isolated
 *                throughput), Themis' finish-time fairness
 */
mdot_status sc_shares_max_min(const sc_shares *p, double *out_shares, double *out_value, mdot_error *err);
mdot_status sc_shares_makespan(const sc_shares *p, double *out_shares, double *out_value, mdot_error *err);
mdot_status sc_shares_finish_time(const sc_shares *p, double *out_shares, double *out_value, mdot_error *err);

#endif
