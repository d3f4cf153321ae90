/* random_site.h — random anchors for tests of calibrations, and their covariance by its definition, entry by entry. */
#pragma once

#include "runtime/predict/calibration.h"

enum { SITE_MOST = 48, SITE_USUAL = 14, SITE_JOBS = 5, SITE_TRIALS = 400 };

typedef struct site_dense {
    size_t n;
    double value[SITE_MOST][SITE_MOST];
} site_dense;

/* MMIX' generator (Knuth). */
typedef struct site_generator {
    uint64_t state;
} site_generator;

size_t site_below(site_generator *r, size_t count);
double site_unit(site_generator *r);
double site_normal(site_generator *r);
rt_step site_step(site_generator *r, uint32_t job);
/* Jobs ascend, and steps of no job come last, as calibration_rows.c orders them. Some jobs are far off. */
mdot_calibration *site_make_of(site_generator *r, size_t count);
mdot_calibration *site_make(site_generator *r);
/* Elimination with pivots; destroys the matrix. Returns the logarithm of the determinant. */
double dense_solve(site_dense *m, double *x);
/* The part that two different steps share: the prior's, and an outlier's own, of the smaller stated variance. */
double site_shared(const rt_anchor *a, const rt_step *step, rt_quantity q, double general);
site_dense site_covariance(const rt_calibration_gpu *gpu, rt_quantity q, double general, double idle);
double site_squares(const rt_calibration_gpu *gpu, rt_quantity q, const double *weights);
/* The logarithm of the marginal likelihood, without a constant: a Student's t with six pseudo-rows. */
double site_evidence(const rt_calibration_gpu *gpu, rt_quantity q, double general, double idle, double *weights);
void site_assert_close(double got, double wanted, const char *what, int trial);
/* The residuals and their covariance of anchors [first, end) given all others: a Schur complement. */
void site_given_others(const rt_calibration_gpu *gpu, rt_quantity q, const site_dense *m, size_t first, size_t end,
                       double *out_residual, site_dense *out);
size_t site_end_of_job(const rt_calibration_gpu *gpu, rt_quantity q, size_t first);
