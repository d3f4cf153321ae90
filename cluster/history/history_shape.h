/* history_shape.h — the form of the errors of estimates: a histogram of past errors, and the two-sided Student's t
 * distribution that fits it. */
#ifndef HS_SHAPE_H
#define HS_SHAPE_H

#include "history/mdot_history.h"

enum { HS_BINS = 128 };

/* Weights of relative errors. Bins are equally wide in asinh(8 z). */
typedef struct hs_errors {
    double bins[HS_BINS];
} hs_errors;

/* The distribution that fits the errors. */
typedef struct hs_shape {
    double center, lower, upper; /* median, and scales of both sides */
    double degrees;
} hs_shape;

/* Starts with errors of 30 assumed jobs, which have two degrees of freedom. */
void hs_errors_begin(hs_errors *errors);
/* Adds a relative error; earlier ones lose 0.1 % of their weight. */
void hs_errors_add(hs_errors *errors, double z);
hs_shape hs_shape_fit(const hs_errors *errors);

/* Student's t distribution and its inverse, for 1, 2, 4 and infinitely many degrees of freedom, whose forms are
 * closed. */
double hs_t_probability(double degrees, double t);
double hs_t_quantile(double degrees, double probability);

#endif
