/* estimators.h — sources of estimated durations. Each function makes an sc_estimator (core/estimate.h), whose
 * memory sc_estimator_destroy frees. Those that do not learn take every job's factor from an array that is made in
 * advance, so that policies are compared under the same errors. */
#ifndef SC_ESTIMATORS_H
#define SC_ESTIMATORS_H

#include "simulator/core/estimate.h"

/* True durations. */
sc_estimator sc_estimator_oracle(void);

/* The given factors; takes ownership of the array. */
mdot_status sc_estimator_make_fixed(double *factors, sc_estimator *out_estimator, mdot_error *err);

/* Log-normal errors with median one: the mean of |factor - 1| is `mean_error`, 0 to 2. Equal seeds give equal
 * factors. */
mdot_status sc_estimator_make_errors(size_t job_count, double mean_error, uint64_t seed, sc_estimator *out_estimator,
                                     mdot_error *err);

/* Mean duration of completed jobs of the same group and width; otherwise of the same group; otherwise of all;
 * otherwise 1 h. */
mdot_status sc_estimator_make_rolling(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

/* Mean duration of the last two jobs of the same user that completed (Tsafrir, Etsion and Feitelson, 2007); otherwise
 * of the last two of all; otherwise 1 h. */
mdot_status sc_estimator_make_last_two(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

/* The durations of a history (mdot_history.h) that starts empty and learns from completed jobs. It has the residual
 * error model. A job without a user has its group instead. */
mdot_status sc_estimator_make_history(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

/* Corrects `base` by the ratio of true to estimated durations of completed jobs that are alike, and takes ownership of
 * it, also on failure. `digests` are of the jobs' operators, or NULL: then jobs are alike by their kind or else by user
 * and name. The error model is that of `base`. The digests must outlive the estimator. */
mdot_status sc_estimator_make_learning(const sc_workload *workload, sc_estimator *base, const uint64_t *digests,
                                       sc_estimator *out_estimator, mdot_error *err);

/* The time limit that each job requests (sc_job.limit_s). INVALID_ARGUMENT if a job requests none. */
mdot_status sc_estimator_make_limits(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

/* Mean time that completed jobs ran on after having run as long as the job has (survival.c). It has the residual error
 * model. */
mdot_status sc_estimator_make_survival(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

void sc_estimator_destroy(sc_estimator *estimator);

/* Returns σ of factors exp(σ z), z standard normal, with this mean of |factor - 1|. */
double sc_error_sigma(double mean_error);

#endif
