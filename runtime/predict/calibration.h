/* calibration.h — correction of a predictor's answers by a site's measurements, shared by the files that fit, store and
 * apply it.
 *
 *   calibration_rows.c    measured steps → anchors
 *   calibration_prior.c   common part of two steps
 *   calibration_fit.c     a GPU's anchors → fitted model; step → correction
 *   calibration_transfer.c  jobs in common → evidence from one GPU model about another
 *   calibrate.c           public calls
 *   calibration_text.c    a calibration as text, and back */
#pragma once

#include "mdot/mdot_calibrate.h"
#include "runtime/job/configuration.h"
#include "runtime/perf/analysis_parts.h"

#include <stddef.h>

enum {
    RT_CALIBRATION_NAME_BYTES = 64,
    RT_CALIBRATION_MAX_GPUS = 64,
    RT_CALIBRATION_MAX_ROWS = 1 << 24,
    RT_CALIBRATION_MAX_ANCHORS = 512, /* of a GPU */
    RT_CALIBRATION_MAX_JOBS = RT_CALIBRATION_MAX_GPUS * RT_CALIBRATION_MAX_ANCHORS
};

/* Kernels of full and half precision have separate efficiencies, so measurements of one hardly inform the other. */
typedef enum rt_precision_class { RT_PRECISION_FULL, RT_PRECISION_HALF, RT_PRECISION_CLASSES } rt_precision_class;

/* The two quantities that are measured. */
typedef enum rt_quantity { RT_QUANTITY_TIME, RT_QUANTITY_MEMORY, RT_QUANTITIES } rt_quantity;

/* Index of a job in a calibration; other calibrations find the digest at other indices. */
enum { RT_NO_JOB = UINT32_MAX };

/* A step, as far as a calibration distinguishes steps of one GPU model. */
typedef struct rt_step {
    uint32_t job;       /* index in the calibration's jobs; RT_NO_JOB: any other job */
    const float *share; /* rt_job_identity.share; NULL if the job is unknown */
    uint32_t precision; /* mdot_precision */
    uint32_t layout, torch;
    uint32_t gpu_count;
    uint32_t mode;   /* mdot_mode */
    uint64_t others; /* hash of all other options, and of the mode */
    double batch;
    bool is_new_gpu;                 /* the predictor's training data lack steps on the GPU model */
    double host_share;               /* fraction of the step that waits for the host, 0 to 1 */
    double deviation[RT_QUANTITIES]; /* standard deviation of the logarithm that the predictor states */
} rt_step;

/* Equal steps that were measured, as one. */
typedef struct rt_anchor {
    rt_step step;
    size_t row_count[RT_QUANTITIES];
    double residual[RT_QUANTITIES]; /* mean logarithm of measured over predicted */
    double own[RT_QUANTITIES];      /* added variance of the anchor's job, in units of the stated one: an outlier's */
} rt_anchor;

/* Terms of the model, in the order of mdot_calibration_factors. */
typedef enum rt_term {
    RT_TERM_SITE,
    RT_TERM_GPU,
    RT_TERM_HOST,
    RT_TERM_KERNELS,
    RT_TERM_PRECISION,
    RT_TERM_SEVERAL,
    RT_TERM_JOB,
    RT_TERM_CONFIGURATION,
    RT_TERMS
} rt_term;

/* One quantity's model on one GPU. Arrays are indexed by the anchors with rows for this quantity. */
typedef struct rt_fit {
    size_t count;
    uint32_t *anchor;     /* their indices */
    double *factor;       /* Cholesky factor of the covariance, lower triangle, [count, count] */
    double *weight;       /* inverse of the covariance times the residuals */
    double *standard;     /* standardised residuals (calibration_transfer.c); NULL without jobs in common */
    double general, idle; /* scales of shared terms and of noise */
    double spread;        /* variance of the residuals over the modelled one */
    double outliers;      /* mean added variance per job, also assumed for jobs without rows */
    double deviation;     /* mean stated one */
    double host_share;    /* mean */
    bool is_new_gpu;
} rt_fit;

typedef struct rt_calibration_gpu {
    char name[RT_CALIBRATION_NAME_BYTES];
    size_t row_count[RT_PRECISION_CLASSES]; /* of measured times */
    size_t several_row_count;
    bool is_new; /* the predictor's training data lack steps on it; equal in all of its anchors */
    size_t anchor_count;
    rt_anchor *anchors;
    rt_fit fit[RT_QUANTITIES];
} rt_calibration_gpu;

/* Common terms of measured GPUs, for GPUs without rows. */
typedef struct rt_site {
    double mean;      /* of the logarithm of measured over predicted */
    double explained; /* part of a step's variance that is known */
    double deviation; /* mean stated one of the anchors; 0: no GPU was measured */
} rt_site;

/* Evidence from one GPU model's rows about jobs on another one, by precision class. */
typedef struct rt_agreement {
    double correlation[RT_PRECISION_CLASSES]; /* of the residuals of a job; 0: nothing is carried */
    double mean[RT_PRECISION_CLASSES];        /* of the standardised residuals of the common jobs */
} rt_agreement;

struct mdot_calibration {
    char predictor[2 * RT_CALIBRATION_NAME_BYTES];
    size_t row_count, memory_row_count;
    size_t job_count;
    rt_job_identity *jobs; /* ascending digests */
    size_t gpu_count;
    rt_calibration_gpu gpus[RT_CALIBRATION_MAX_GPUS];
    rt_site site[RT_QUANTITIES];
    rt_agreement *agreement[RT_QUANTITIES]; /* [from, to] of the GPUs; NULL without jobs in common */
};

/* Limits. */
#define RT_CALIBRATION_MOST_FACTOR 64.0
#define RT_CALIBRATION_LEAST_INTERVAL 0.05
#define RT_CALIBRATION_MOST_INTERVAL 4.0
#define RT_CALIBRATION_LEAST_DEVIATION 0.005
#define RT_CALIBRATION_MOST_DEVIATION 4.0
#define RT_CALIBRATION_MOST_OWN 1e4
#define RT_CALIBRATION_MOST_GENERAL 16.0
#define RT_CALIBRATION_MOST_RESIDUAL 6.0 /* a factor of 400 */

static inline rt_precision_class rt_precision_class_of(uint32_t precision)
{
    return rt_is_half((mdot_precision)precision) ? RT_PRECISION_HALF : RT_PRECISION_FULL;
}

/* Covariance between two steps on one GPU by term, in units of the stated variance; `general` multiplies the shared
 * terms. Returns the sum. */
double rt_common_terms(const rt_step *a, const rt_step *b, rt_quantity quantity, double general,
                       double out_terms[RT_TERMS]);
/* Correlation between the added variances of two steps of an outlying job. Steps on one GPU and on several GPUs share a
 * part, because communication may cause the residual. Steps in two layouts or two PyTorch versions share a part,
 * because kernels may cause it. Training and inference share a part, because a training step has a backward pass
 * besides. */
double rt_own_correlation(const rt_step *a, const rt_step *b);
/* Correlation between a job's effects in two configurations, on any GPU model. */
double rt_job_correlation(const rt_step *a, const rt_step *b);
/* Variance of the difference between two steps of one job that differ in the batch alone; INFINITY for others. */
double rt_drift(const rt_step *a, const rt_step *b);
/* Variance of one measured quantity, from this stated deviation. */
double rt_noise(double deviation, double idle);
/* The site's part of the variance that site and GPU share. */
double rt_site_part(void);

/* Fits all GPUs, whose anchors are set. `adapts` false: with the scales and `own` of an earlier fit. OUT_OF_MEMORY. */
mdot_status rt_calibration_fit(mdot_calibration *calibration, bool adapts, mdot_error *err);
/* Sorts at least one value, and returns the median. */
double rt_median(double *values, size_t count);

/* A job's residual on another GPU model. */
typedef struct rt_carried {
    const rt_calibration_gpu *from; /* NULL: nothing is carried */
    double correlation;             /* with the residual of the step */
    double standard;                /* in standard deviations */
    double shift;                   /* its part of the step's correction */
} rt_carried;
/* The correction of one step. `mean` is added to the logarithm of the prediction. */
typedef struct rt_corrected {
    double mean;
    double interval;          /* multiplies the logarithms of the interval's bounds over the median */
    double by_term[RT_TERMS]; /* parts of the mean; for a measured GPU, site and GPU are one term */
    double half_width;        /* of the logarithm, on either side, by the job's own row; 0: see `interval` */
    rt_carried carried;       /* included in the job's term */
} rt_corrected;
/* `gpu` may be NULL: a GPU that lacks a row. Allocates nothing. */
void rt_calibration_correct(const mdot_calibration *calibration, const rt_calibration_gpu *gpu, rt_quantity quantity,
                            const rt_step *step, rt_corrected *out_corrected);
/* The known part of each term's variance, 0 to 1. */
void rt_calibration_believe(const mdot_calibration *calibration, const rt_calibration_gpu *gpu, rt_quantity quantity,
                            const rt_step *step, double out_believed[RT_TERMS]);

/* Finds the correlations of all GPU models, which are fitted. OUT_OF_MEMORY. */
mdot_status rt_transfer_fit(mdot_calibration *calibration, rt_quantity quantity, mdot_error *err);

/* The most informative residual about a step on `gpu`. Allocates nothing. */
void rt_transfer_find(const mdot_calibration *calibration, const rt_calibration_gpu *gpu, rt_quantity quantity,
                      const rt_step *step, rt_carried *out_carried);

/* Reads a configuration and finds the GPU's name, which lives as long as the configuration. */
mdot_status rt_calibration_step(const mdot_configuration *configuration, rt_step *out_step, const char **out_gpu,
                                mdot_error *err);
/* Sets the stated deviations, and whether the GPU model is new to the predictor. A quantity whose bounds do not ascend
 * from above 0 gets the least deviation. */
void rt_state_deviations(const mdot_prediction *prediction, rt_step *step);
/* Index of the job; RT_NO_JOB if the calibration lacks it. */
uint32_t rt_calibration_find_job(const mdot_calibration *calibration, uint64_t digest);
const rt_calibration_gpu *rt_calibration_find_gpu(const mdot_calibration *calibration, const char *name);
/* Reads measured steps into the calibration's GPUs, jobs and anchors. `function` is the name of the public function,
 * for messages. */
mdot_status rt_calibration_read_rows(mdot_context *context, const mdot_measurement *rows, size_t count,
                                     const char *function, mdot_calibration *calibration, mdot_error *err);
void rt_calibration_free(mdot_calibration *calibration);

/* ---- Cholesky ---------------------------------------------------------------------------------------------------- */

double rt_dot(const double *a, const double *b, size_t n);
/* Replaces the lower triangle of a positive definite matrix by the factor. A lower bound on pivots keeps factors valid
 * despite rounding. */
void rt_cholesky_factorise(double *a, size_t n);
/* Solves L x = b in place. */
void rt_cholesky_solve_lower(const double *factor, size_t n, double *x);
/* Solves L Lᵀ x = b in place. */
void rt_cholesky_solve(const double *factor, size_t n, double *x);
/* Writes the inverse of L Lᵀ, both triangles. */
void rt_cholesky_invert(const double *factor, size_t n, double *out_inverse);

/* The least pivot. */
#define RT_LEAST_PIVOT 1e-12
