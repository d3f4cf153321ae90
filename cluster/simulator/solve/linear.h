/* linear.h — linear programs: minimise a sum over columns, with bounds on rows and columns. COIN-OR's CLP solves
 * them, and CBC solves those with integer columns.
 *
 * solve/ holds the mathematics of schedulers, independent of jobs and clusters: linear.h (programs), time_fractions.h
 * (Gavel's programs over a matrix of throughputs), matching.h (AlloX'), leases.h (Chronus').
 */
#ifndef SC_LINEAR_H
#define SC_LINEAR_H

#include "mdot/mdot_base.h"

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
 * 2026. It is counted, in iterations and nodes of the search, so that a simulation has the same result everywhere.
 * OUT_OF_RANGE: the program is infeasible or unbounded. DEVICE: no answer within the limit. UNSUPPORTED: this build
 * lacks a solver. */
mdot_status sc_linear_solve(sc_linear *linear, double limit_s, double *out_values, double *out_cost, mdot_error *err);

#endif
