/* calibration_transfer.c — carries the residual of a job from one GPU model to another.
 *
 * The residual of a job on one GPU model says little of the same job on another. Nothing is carried, unless rows of
 * several jobs on both models show that the residuals agree. On torchvision's networks in fp32, for example, the
 * correlation is 0.9 between RTX 2080 Ti and TITAN RTX, and 0.1 between A100 and TITAN Xp.
 *
 * The model adds a random effect of the job that two GPU models share. Its part of the variance is the correlation of
 * the residuals, which follows from the jobs in common in closed form (empirical Bayes), in each precision class:
 *
 *   z            residual of a step minus its prediction by the GPU model's other jobs, in standard deviations
 *   product_j    z on one model times z on the other, both minus their means over the common jobs; mean of the job's
 *                pairs of steps
 *   square_j     mean of both squares, in the same way
 *   correlation  (sum of product_j - CAUTION · root of the sum of product_j²) / (PRIOR_JOBS + sum of square_j)
 *
 * The root is the standard deviation of the sum if the residuals are independent. Therefore little is carried without
 * evidence, and the largest residual of one job counts half. A negative correlation counts as 0, because no cause is
 * known that makes the same job slower on one GPU model and faster on another. The constants were chosen on half of
 * torchvision's networks (lab/notes/calibration-accuracy.md).
 *
 * A job without rows on a GPU model is corrected there by the model that has rows of it and the largest correlation.
 * One with rows on the GPU model is corrected by these alone.
 */
#include "runtime/predict/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CAUTION 0.5    /* standard deviations by which independent residuals are reduced */
#define PRIOR_JOBS 2.0 /* pseudo-jobs without a correlation */
#define MOST_CORRELATION 0.95
enum { LEAST_COMMON_JOBS = 3 };

/* A run of one job's anchors in a fit; empty if first == end. */
typedef struct run {
    size_t first, end;
} run;

static const rt_step *step_at(const rt_calibration_gpu *gpu, const rt_fit *fit, size_t i)
{
    return &gpu->anchors[fit->anchor[i]].step;
}

/* The run of the first job that is `job` or a later one. Anchors are ordered by job, and unknown jobs are the last. */
static run find_run(const rt_calibration_gpu *gpu, const rt_fit *fit, uint32_t job)
{
    size_t first = 0, end = fit->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (step_at(gpu, fit, middle)->job < job)
            first = middle + 1;
        else
            end = middle;
    }
    if (first == fit->count || step_at(gpu, fit, first)->job == RT_NO_JOB) return (run){first, first};
    for (end = first + 1; end < fit->count && step_at(gpu, fit, end)->job == step_at(gpu, fit, first)->job;) end++;
    return (run){first, end};
}

/* The next job that both fits have, at or after *io_job. */
static bool find_common(const rt_calibration_gpu *const gpu[2], const rt_fit *const fit[2], uint32_t *io_job,
                        run out[2])
{
    for (int k = 0, agreeing = 0; agreeing < 2; k = 1 - k) {
        out[k] = find_run(gpu[k], fit[k], *io_job);
        if (out[k].first == out[k].end) return false;
        uint32_t found = step_at(gpu[k], fit[k], out[k].first)->job;
        agreeing = found == *io_job ? agreeing + 1 : 1;
        *io_job = found;
    }
    return true;
}

static size_t count_common(const rt_calibration_gpu *const gpu[2], const rt_fit *const fit[2])
{
    size_t count = 0;
    run runs[2];
    for (uint32_t job = 0; find_common(gpu, fit, &job, runs); job++) count++;
    return count;
}

/* Each anchor's residual minus the prediction by other jobs, in standard deviations. The inverse of a job's block in
 * the inverse matrix is the covariance, given the other jobs. */
static void standardise(const rt_calibration_gpu *gpu, rt_fit *fit, double *inverse)
{
    size_t n = fit->count;
    double *block = inverse + n * n, *vector = block + n * n;
    rt_cholesky_invert(fit->factor, n, inverse);
    run r = {0, 0};
    for (size_t first = 0; first < n && step_at(gpu, fit, first)->job != RT_NO_JOB; first = r.end) {
        r = find_run(gpu, fit, step_at(gpu, fit, first)->job);
        size_t size = r.end - first;
        for (size_t i = 0; i < size; i++)
            for (size_t j = 0; j <= i; j++) block[i * size + j] = inverse[(first + i) * n + first + j];
        rt_cholesky_factorise(block, size);
        for (size_t i = 0; i < size; i++) {
            for (size_t j = 0; j < size; j++) vector[j] = j == i;
            rt_cholesky_solve(block, size, vector);
            double variance = fmax(vector[i] * fit->spread, RT_LEAST_PIVOT);
            fit->standard[first + i] = rt_dot(vector, &fit->weight[first], size) / sqrt(variance);
        }
    }
}

static mdot_status add_standardised(const rt_calibration_gpu *gpu, rt_fit *fit, mdot_error *err)
{
    size_t n = fit->count;
    double *scratch = calloc(2 * n * n + n, sizeof *scratch);
    fit->standard = calloc(n, sizeof *fit->standard);
    if (scratch == NULL || fit->standard == NULL) {
        free(scratch);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    standardise(gpu, fit, scratch);
    free(scratch);
    return MDOT_OK;
}

/* Means over the common jobs in a precision class, and the number of these jobs. */
static size_t find_means(const rt_calibration_gpu *const gpu[2], const rt_fit *const fit[2], rt_precision_class class,
                         double out_mean[2])
{
    size_t jobs = 0;
    run runs[2];
    out_mean[0] = out_mean[1] = 0;
    for (uint32_t job = 0; find_common(gpu, fit, &job, runs); job++) {
        double sum[2] = {0};
        size_t count[2] = {0};
        for (int k = 0; k < 2; k++)
            for (size_t i = runs[k].first; i < runs[k].end; i++)
                if (rt_precision_class_of(step_at(gpu[k], fit[k], i)->precision) == class) {
                    sum[k] += fit[k]->standard[i];
                    count[k]++;
                }
        if (count[0] == 0 || count[1] == 0) continue;
        for (int k = 0; k < 2; k++) out_mean[k] += sum[k] / (double)count[k];
        jobs++;
    }
    for (int k = 0; k < 2 && jobs > 0; k++) out_mean[k] /= (double)jobs;
    return jobs;
}

/* A job's product and square. Each pair of steps counts by the common part of the configurations. */
static void add_job(const rt_calibration_gpu *const gpu[2], const rt_fit *const fit[2], rt_precision_class class,
                    const double mean[2], const run runs[2], double sums[3])
{
    double product = 0, square = 0, weight = 0;
    for (size_t i = runs[0].first; i < runs[0].end; i++)
        for (size_t j = runs[1].first; j < runs[1].end; j++) {
            const rt_step *a = step_at(gpu[0], fit[0], i), *b = step_at(gpu[1], fit[1], j);
            if (rt_precision_class_of(a->precision) != class || rt_precision_class_of(b->precision) != class) continue;
            double alike = rt_job_correlation(a, b), x = fit[0]->standard[i] - mean[0],
                   y = fit[1]->standard[j] - mean[1];
            product += alike * x * y;
            square += alike * alike * (x * x + y * y) / 2;
            weight += alike * alike;
        }
    if (!(weight > 0)) return;
    sums[0] += product / weight;
    sums[1] += square / weight;
    sums[2] += product / weight * (product / weight);
}

static void correlate(const rt_calibration_gpu *const gpu[2], const rt_fit *const fit[2], rt_precision_class class,
                      double *out_correlation, double out_mean[2])
{
    double sums[3] = {0};
    run runs[2];
    *out_correlation = 0;
    if (find_means(gpu, fit, class, out_mean) < LEAST_COMMON_JOBS) return;
    for (uint32_t job = 0; find_common(gpu, fit, &job, runs); job++) add_job(gpu, fit, class, out_mean, runs, sums);
    double correlation = (sums[0] - CAUTION * sqrt(sums[2])) / (PRIOR_JOBS + sums[1]);
    *out_correlation = fmin(fmax(correlation, 0), MOST_CORRELATION);
}

static rt_agreement *agreement_of(const mdot_calibration *c, rt_quantity q, size_t source, size_t target)
{
    return &c->agreement[q][source * c->gpu_count + target];
}

/* GPU models are ordered by name, so that the row order changes no bit in the sums. */
static mdot_status agree(mdot_calibration *c, rt_quantity q, size_t a, size_t b, mdot_error *err)
{
    if (strcmp(c->gpus[a].name, c->gpus[b].name) > 0) {
        size_t kept = a;
        a = b;
        b = kept;
    }
    const rt_calibration_gpu *const gpu[2] = {&c->gpus[a], &c->gpus[b]};
    rt_fit *fits[2] = {&c->gpus[a].fit[q], &c->gpus[b].fit[q]};
    const rt_fit *const fit[2] = {fits[0], fits[1]};
    if (count_common(gpu, fit) < LEAST_COMMON_JOBS) return MDOT_OK;
    if (c->agreement[q] == NULL) c->agreement[q] = calloc(c->gpu_count * c->gpu_count, sizeof *c->agreement[q]);
    if (c->agreement[q] == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int k = 0; k < 2; k++) BS_TRY(fits[k]->standard == NULL ? add_standardised(gpu[k], fits[k], err) : MDOT_OK);
    for (int class = 0; class < RT_PRECISION_CLASSES; class ++) {
        double correlation, mean[2];
        correlate(gpu, fit, (rt_precision_class) class, &correlation, mean);
        rt_agreement *to_b = agreement_of(c, q, a, b), *to_a = agreement_of(c, q, b, a);
        to_b->correlation[class] = to_a->correlation[class] = correlation;
        to_b->mean[class] = mean[0];
        to_a->mean[class] = mean[1];
    }
    return MDOT_OK;
}

mdot_status rt_transfer_fit(mdot_calibration *calibration, rt_quantity quantity, mdot_error *err)
{
    for (size_t a = 0; a < calibration->gpu_count; a++)
        for (size_t b = 0; b < a; b++) BS_TRY(agree(calibration, quantity, a, b, err));
    return MDOT_OK;
}

void rt_transfer_find(const mdot_calibration *c, const rt_calibration_gpu *gpu, rt_quantity q, const rt_step *step,
                      rt_carried *out)
{
    *out = (rt_carried){0};
    if (c->agreement[q] == NULL || step->job == RT_NO_JOB) return;
    run own = find_run(gpu, &gpu->fit[q], step->job);
    if (own.first < own.end && step_at(gpu, &gpu->fit[q], own.first)->job == step->job) return;
    rt_precision_class class = rt_precision_class_of(step->precision);
    for (size_t g = 0; g < c->gpu_count; g++) {
        const rt_calibration_gpu *source = &c->gpus[g];
        const rt_agreement *agreement = agreement_of(c, q, g, (size_t)(gpu - c->gpus));
        if (!(agreement->correlation[class] > out->correlation)) continue;
        run r = find_run(source, &source->fit[q], step->job);
        for (size_t i = r.first; i < r.end; i++) {
            const rt_step *measured = step_at(source, &source->fit[q], i);
            if (measured->job != step->job || rt_precision_class_of(measured->precision) != class) continue;
            double correlation = agreement->correlation[class] * rt_job_correlation(measured, step);
            if (!(correlation > out->correlation)) continue;
            *out = (rt_carried){.from = source,
                                .correlation = correlation,
                                .standard = source->fit[q].standard[i] - agreement->mean[class]};
        }
    }
}
