/* make_estimate.h — makes the estimate that a command line requests. */
#ifndef SC_MAKE_ESTIMATE_H
#define SC_MAKE_ESTIMATE_H

#include "simulator/simulate_options.h"

/* Returns its name in results. */
const char *sc_name_estimate(const sc_request *request);

/* Makes a new estimator for each policy, because some estimators learn; *out_errors is its error model. */
mdot_status sc_make_estimator(const sc_request *request, const sc_workload *workload, sc_estimator *out_estimator,
                              sc_errors *out_errors, mdot_error *err);

/* Computes the upper quantile of each job's time, in seconds; the caller frees the array. */
mdot_status sc_make_upper_quantiles(const sc_request *request, const sc_workload *workload, double **out_predicted_s,
                                    mdot_error *err);

#endif
