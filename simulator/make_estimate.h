/* make_estimate.h — the estimate that a command line asks for. */
#ifndef SC_MAKE_ESTIMATE_H
#define SC_MAKE_ESTIMATE_H

#include "simulator/simulate_options.h"

/* What it is called in results. */
const char *sc_name_estimate(const sc_request *request);

/* A new one for each policy, since some learn; *out_errors is the model of its errors. */
mdot_status sc_make_estimator(const sc_request *request, const sc_workload *workload, sc_estimator *out_estimator,
                              sc_errors *out_errors, mdot_error *err);

/* The upper quantile of each job's time, in seconds; the caller frees the array. */
mdot_status sc_make_upper_quantiles(const sc_request *request, const sc_workload *workload, double **out_believed_s,
                                    mdot_error *err);

#endif
