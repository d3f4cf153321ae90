/* cholesky.h — Cholesky factors of symmetric matrices. A factor is a lower triangle, row by row in [n, n]. */
#ifndef RT_CHOLESKY_H
#define RT_CHOLESKY_H

#include <stddef.h>

double rt_dot(const double *a, const double *b, size_t n);
/* Replaces the lower triangle of a positive definite matrix by its factor. Pivots have a lower bound, so that rounding
 * never makes a factor invalid. */
void rt_cholesky_factorise(double *a, size_t n);
/* Solves L x = b in place. */
void rt_cholesky_solve_lower(const double *factor, size_t n, double *x);
/* Solves L Lᵀ x = b in place. */
void rt_cholesky_solve(const double *factor, size_t n, double *x);
/* Writes the inverse of L Lᵀ, both triangles. */
void rt_cholesky_invert(const double *factor, size_t n, double *out_inverse);

/* The least pivot. */
#define RT_LEAST_PIVOT 1e-12

#endif
