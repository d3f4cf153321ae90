/* fit_steps.h — fits Pollux' model of step times to measured steps. */
#ifndef SC_FIT_STEPS_H
#define SC_FIT_STEPS_H

#include "simulator/core/scaling.h"

/* Fits table->model to the rows: the least sum of squared errors in the logarithm of the step time. The result depends
 * on the rows alone. Terms that no row shows, for example of several nodes, stay at small values. At least one row.
 * OUT_OF_MEMORY leaves table->model as it is. */
mdot_status sc_fit_steps(sc_step_table *table, mdot_error *err);

/* Root of the mean squared error in the logarithm of the step time. */
double sc_fit_error(const sc_step_table *table);

#endif
