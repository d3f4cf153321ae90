/* linear.h — linear programs: minimise a sum over columns, rows and columns within bounds. COIN-OR's CLP solves them,
 * and CBC those in which columns are whole numbers.
 *
 * solve/ is what schedulers ask of mathematics and knows neither jobs nor clusters: linear.h (programs),
 * time_shares.h (Gavel's, over a matrix of throughputs), matching.h (AlloX'), leases.h (Chronus').
 */
#ifndef SC_LINEAR_H
#define SC_LINEAR_H

#include "mdot/mdot_base.h"

typedef struct sc_linear sc_linear;

/* Whether this build has a solver. */
bool sc_linear_is_available(void);
/* And one for programs with whole columns. */
bool sc_linear_solves_whole(void);

mdot_status sc_linear_create(sc_linear **out_linear, mdot_error *err);
void sc_linear_destroy(sc_linear *linear);

/* Numbers are given from 0 on. Memory that runs out shows when it is solved. Bounds may be infinite. */
size_t sc_linear_add_column(sc_linear *linear, double cost, double lower, double upper);
size_t sc_linear_add_whole_column(sc_linear *linear, double cost, double lower, double upper);
size_t sc_linear_add_row(sc_linear *linear, double lower, double upper);
void sc_linear_add_term(sc_linear *linear, size_t row, size_t column, double value);

/* The columns' values at the least cost: one for each. OUT_OF_RANGE: nothing satisfies all rows, or the cost has no
 * least; DEVICE: no answer within the time; UNSUPPORTED: built without a solver. */
mdot_status sc_linear_solve(sc_linear *linear, double limit_s, double *out_values, double *out_cost, mdot_error *err);

#endif
