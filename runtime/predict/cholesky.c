/* cholesky.c — Cholesky factors of symmetric matrices. */
#include "runtime/predict/calibration.h"

#include <math.h>
#include <string.h>

/* Adds in several sums, because one sum would wait for each addition. */
double rt_dot(const double *a, const double *b, size_t n)
{
    enum { SUMS = 8 };
    double sum[SUMS] = {0};
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int k = 0; k < SUMS; k++) sum[k] += a[i + k] * b[i + k];
    for (int k = 0; i < n; i++, k++) sum[k] += a[i] * b[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

void rt_cholesky_factorise(double *a, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++) a[i * n + j] = (a[i * n + j] - rt_dot(&a[i * n], &a[j * n], j)) / a[j * n + j];
        a[i * n + i] = sqrt(fmax(a[i * n + i] - rt_dot(&a[i * n], &a[i * n], i), RT_LEAST_PIVOT));
    }
}

void rt_cholesky_solve_lower(const double *l, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) x[i] = (x[i] - rt_dot(&l[i * n], x, i)) / l[i * n + i];
}

/* Solves Lᵀ x = b in place. */
static void solve_upper(const double *l, size_t n, double *x)
{
    for (size_t i = n; i-- > 0;) {
        x[i] /= l[i * n + i];
        for (size_t k = 0; k < i; k++) x[k] -= l[i * n + k] * x[i];
    }
}

void rt_cholesky_solve(const double *l, size_t n, double *x)
{
    rt_cholesky_solve_lower(l, n, x);
    solve_upper(l, n, x);
}

void rt_cholesky_invert(const double *l, size_t n, double *out)
{
    for (size_t c = 0; c < n; c++) {
        double *column = &out[c * n]; /* symmetric, therefore a row */
        memset(column, 0, n * sizeof *column);
        column[c] = 1;
        rt_cholesky_solve(l, n, column);
    }
}
