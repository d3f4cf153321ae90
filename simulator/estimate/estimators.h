/* estimators.h — where beliefs about durations come from. Each makes an sc_estimator (core/estimate.h), whose memory
 * sc_estimator_destroy frees; all but history take every job's factor from an array that is made in advance, so that
 * policies are compared under the same errors.
 */
#ifndef SC_ESTIMATORS_H
#define SC_ESTIMATORS_H

#include "simulator/core/estimate.h"

/* Knows the truth. */
sc_estimator sc_estimator_oracle(void);

/* Factors as given, which it takes over. */
mdot_status sc_estimator_make_fixed(double *factors, sc_estimator *out_estimator, mdot_error *err);

/* Log-normal errors of median one: the mean of |factor - 1| is `mean_error`, 0 to 2. Equal seeds give equal factors. */
mdot_status sc_estimator_make_errors(size_t job_count, double mean_error, uint64_t seed, sc_estimator *out_estimator,
                                     mdot_error *err);

/* The mean duration of completed jobs of the same group and width; of the same group; of all; 1 h where there is
 * none. */
mdot_status sc_estimator_make_history(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);

void sc_estimator_destroy(sc_estimator *estimator);

/* σ of factors exp(σ z), z standard normal, whose mean |factor - 1| is this. */
double sc_error_sigma(double mean_error);

#endif
