/* calibration_fit.c — the posterior of the model of calibration_prior.c, given the anchors of each GPU.
 *
 * The terms are Gaussian, so that means and variances follow from one Cholesky factor of the anchors' covariance
 * (a Gaussian process: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1). GPU
 * models are fitted separately. Therefore a row of one GPU changes the corrections of another one that has rows only
 * through jobs in common (calibration_transfer.c). A GPU that lacks rows gets the site's offset, which is the mean of
 * the GPUs' own offsets, weighted by precision.
 *
 * Three steps adapt the prior to the rows, each a fixed number of times:
 *
 *   1. A job whose residual is far from the prediction by the other jobs gets more variance of its own. So it corrects
 *      itself and hardly moves the terms that jobs share (Student's t for effects of jobs: Lange, Little and Taylor,
 *      JASA 84, 1989). Only a part of that variance is common to steps of two kinds, for example of training and of
 *      inference. A kind without rows has only that part. A job without rows has the mean of all jobs, because it may
 *      be an outlier, too.
 *   2. The scale of the shared terms and that of the noise are chosen from a grid, by the marginal likelihood and a
 *      prior that prefers 1 and 0. If the jobs of a site have nothing in common, little is carried over. If they have
 *      more in common than the prior expects, more is: a larger scale needs more evidence.
 *   3. The variance that remains is multiplied by the residuals' variance over the modelled one, which PRIOR_ROWS
 *      pseudo-rows pull towards 1.
 */
#include "runtime/core/core.h"
#include "runtime/predict/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PRIOR_ROWS 6.0
#define LEAST_SPREAD 0.6    /* rows that agree by chance, and jobs with different noise */
#define MOST_OUTLYING 4.0   /* limit of one job's added variance in the mean of all jobs */
#define PRIOR_JOBS 4.0      /* pseudo-jobs that pull the scale of outliers towards 1 */
#define FAR 1.7             /* standard deviations beyond which a job is an outlier among others */
#define FAR_ALONE 1.0       /* the same for the only job */
#define MOST_TYPICAL 9.0    /* limit of that scale: beyond it, a job is an outlier in any company */
#define MEDIAN_SQUARE 0.455 /* median of the square of a normal variable */
#define MOST_AVERAGED 16.0  /* rows per step beyond which the mean has constant noise, because conditions drift */
#define HALF_WIDTH 1.645    /* standard deviations of a normal variable that hold 90 % */
enum { ROUNDS = 2, LEAST_ROWS_FOR_SCALES = 3 };

static const struct {
    double general, idle, log_prior;
} scales[] = {
    {1, 0, 0},    {0.25, 0, -1},   {4, 0, -1.5},   {RT_CALIBRATION_MOST_GENERAL, 0, -3},
    {1, 0.2, -1}, {0.25, 0.2, -2}, {4, 0.2, -2.5}, {RT_CALIBRATION_MOST_GENERAL, 0.2, -4},
    {1, 0.8, -2}, {0.25, 0.8, -3}, {4, 0.8, -3.5}, {RT_CALIBRATION_MOST_GENERAL, 0.8, -5},
};
enum { SCALES = sizeof scales / sizeof *scales };

static double within(double value, double minimum, double maximum) { return fmin(fmax(value, minimum), maximum); }

static double shared_variance(const rt_step *a, const rt_step *b, rt_quantity q)
{
    double smaller = fmin(a->deviation[q], b->deviation[q]);
    return smaller * smaller;
}

static bool is_same_job(const rt_step *a, const rt_step *b)
{
    return a == b || (a->job == b->job && a->job != RT_NO_JOB);
}

/* The part of a job's added variance that two steps share. It is equal for all anchors of a job. */
static double shared_own(const rt_step *a, const rt_step *b)
{
    return is_same_job(a, b) ? rt_own_correlation(a, b) : 0;
}

typedef struct fitting {
    const rt_calibration_gpu *gpu;
    rt_fit *fit;
    rt_quantity quantity;
    double *own; /* by anchor of the fit */
    double *residual, *inverse, *vector, *group;
} fitting;

static rt_anchor *anchor_of(const fitting *f, size_t i) { return &f->gpu->anchors[f->fit->anchor[i]]; }

static double covariance(const fitting *f, size_t i, size_t j)
{
    double terms[RT_TERMS];
    const rt_anchor *a = anchor_of(f, i), *b = anchor_of(f, j);
    double common = rt_common_terms(&a->step, &b->step, f->quantity, f->fit->general, terms);
    if (i == j && a->step.job == RT_NO_JOB) { /* the mean of several jobs */
        double single = terms[RT_TERM_JOB] + terms[RT_TERM_CONFIGURATION];
        common -= single * (1 - 1 / (double)a->row_count[f->quantity]);
    }
    common += shared_own(&a->step, &b->step) * f->own[i];
    double sum = common * shared_variance(&a->step, &b->step, f->quantity);
    if (i == j) {
        double rows = fmin((double)a->row_count[f->quantity], MOST_AVERAGED);
        sum += rt_noise(a->step.deviation[f->quantity], 0) / rows +
               rt_noise(a->step.deviation[f->quantity], f->fit->idle) - rt_noise(a->step.deviation[f->quantity], 0);
    }
    return sum;
}

/* Computes the factor and the weights. Returns the squared residuals in units of the covariance. */
static double factor_covariance(fitting *f)
{
    size_t n = f->fit->count;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) f->fit->factor[i * n + j] = covariance(f, i, j);
    rt_cholesky_factorise(f->fit->factor, n);
    memcpy(f->fit->weight, f->residual, n * sizeof *f->residual);
    rt_cholesky_solve(f->fit->factor, n, f->fit->weight);
    return fmax(rt_dot(f->fit->weight, f->residual, n), 0);
}

/* End of a job's run of anchors that begins at `first`; anchors are ordered by job. */
static size_t end_of_job(const fitting *f, size_t first)
{
    size_t end = first + 1;
    while (end < f->fit->count && is_same_job(&anchor_of(f, first)->step, &anchor_of(f, end)->step)) end++;
    return end;
}

/* A job's squared mean residual, predicted by other jobs, in units of the variance without the added one. The inverse
 * of the job's block in the inverse matrix is the covariance, given the other jobs. */
static double surprise_of(const fitting *f, size_t first, size_t end)
{
    size_t n = f->fit->count, size = end - first;
    double residual = 0, variance = 0, added = 0;
    for (size_t i = 0; i < size; i++) {
        f->vector[i] = 1;
        for (size_t j = 0; j <= i; j++) {
            const rt_step *a = &anchor_of(f, first + i)->step, *b = &anchor_of(f, first + j)->step;
            f->group[i * size + j] = f->inverse[(first + i) * n + first + j];
            added += (i == j ? 1 : 2) * f->own[first] * shared_own(a, b) * shared_variance(a, b, f->quantity);
        }
    }
    rt_cholesky_factorise(f->group, size);
    rt_cholesky_solve(f->group, size, f->vector);
    for (size_t i = 0; i < size; i++) {
        residual += f->vector[i] * f->fit->weight[first + i] / (double)size;
        variance += f->vector[i];
    }
    double squares = (double)size * (double)size;
    return residual * residual / fmax((variance - added) / squares, RT_LEAST_PIVOT);
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double rt_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_numbers);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void find_outliers(fitting *f, double *surprises, double *ordered)
{
    size_t n = f->fit->count, jobs = 0;
    rt_cholesky_invert(f->fit->factor, n, f->inverse);
    for (size_t first = 0; first < n; first = end_of_job(f, first))
        ordered[jobs] = surprises[jobs] = surprise_of(f, first, end_of_job(f, first)), jobs++;
    double scale = 1, limit = FAR_ALONE * FAR_ALONE;
    if (jobs > 1) {
        double typical = fmin(rt_median(ordered, jobs) / MEDIAN_SQUARE, MOST_TYPICAL);
        scale = fmax(typical, (PRIOR_JOBS + (double)jobs * typical) / (PRIOR_JOBS + (double)jobs));
        limit = FAR * FAR;
    }
    size_t job = 0;
    for (size_t first = 0, end; first < n; first = end, job++) {
        end = end_of_job(f, first);
        double share = fmin(fmax(surprises[job] / (scale * limit) - 1, 0), RT_CALIBRATION_MOST_OWN);
        for (size_t i = first; i < end; i++) f->own[i] = share;
    }
}

/* The logarithm of the marginal likelihood of Student's t, except for a constant. */
static double evidence_of(const rt_fit *fit, double squares)
{
    double sum = 0;
    for (size_t i = 0; i < fit->count; i++) sum -= log(fit->factor[i * fit->count + i]);
    return sum - (PRIOR_ROWS + (double)fit->count) / 2 * log1p(squares / PRIOR_ROWS);
}

static void choose_scales(fitting *f)
{
    size_t best = 0;
    double maximum = -INFINITY;
    for (size_t s = 0; s < SCALES; s++) {
        f->fit->general = scales[s].general;
        f->fit->idle = scales[s].idle;
        double squares = factor_covariance(f), evidence = evidence_of(f->fit, squares) + scales[s].log_prior;
        if (evidence > maximum) {
            maximum = evidence;
            best = s;
        }
    }
    f->fit->general = scales[best].general;
    f->fit->idle = scales[best].idle;
}

static void adapt(fitting *f, double *scratch)
{
    size_t n = f->fit->count, jobs = 0;
    for (size_t first = 0; first < n; first = end_of_job(f, first)) jobs++;
    f->fit->general = 1;
    f->fit->idle = 0;
    for (int round = 0; round < (jobs > 1 ? ROUNDS : 1); round++) {
        factor_covariance(f);
        find_outliers(f, scratch, scratch + n);
    }
    if (n >= LEAST_ROWS_FOR_SCALES) choose_scales(f);
    for (size_t i = 0; i < n; i++) anchor_of(f, i)->own[f->quantity] = f->own[i];
}

/* A job's mean added variance, which PRIOR_JOBS pseudo-jobs without any pull towards 0. */
static double mean_outlier(const fitting *f)
{
    double sum = 0, jobs = PRIOR_JOBS;
    for (size_t first = 0; first < f->fit->count; first = end_of_job(f, first), jobs++)
        sum += fmin(f->own[first], MOST_OUTLYING);
    return sum / jobs;
}

static mdot_status fit_quantity(rt_calibration_gpu *gpu, rt_quantity q, bool adapts, mdot_error *err)
{
    rt_fit *fit = &gpu->fit[q];
    size_t n = 0;
    for (size_t i = 0; i < gpu->anchor_count; i++) n += gpu->anchors[i].row_count[q] > 0;
    fit->count = n;
    if (adapts) fit->general = 1;
    if (n == 0) return MDOT_OK;
    fit->anchor = calloc(n, sizeof *fit->anchor);
    fit->factor = calloc(n * n, sizeof *fit->factor);
    fit->weight = calloc(n, sizeof *fit->weight);
    double *numbers = calloc(2 * n * n + 5 * n, sizeof *numbers);
    if (fit->anchor == NULL || fit->factor == NULL || fit->weight == NULL || numbers == NULL) {
        free(numbers);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    fitting f = {.gpu = gpu,
                 .fit = fit,
                 .quantity = q,
                 .own = numbers,
                 .residual = numbers + n,
                 .vector = numbers + 2 * n,
                 .inverse = numbers + 5 * n,
                 .group = numbers + 5 * n + n * n};
    for (size_t i = 0, row = 0; i < gpu->anchor_count; i++)
        if (gpu->anchors[i].row_count[q] > 0) fit->anchor[row++] = (uint32_t)i;
    fit->deviation = fit->host_share = 0;
    fit->is_new_gpu = gpu->is_new;
    for (size_t i = 0; i < n; i++) {
        const rt_anchor *a = anchor_of(&f, i);
        f.residual[i] = a->residual[q];
        f.own[i] = adapts ? 0 : a->own[q];
        fit->deviation += a->step.deviation[q] / (double)n;
        fit->host_share += a->step.host_share / (double)n;
    }
    if (adapts) adapt(&f, numbers + 3 * n);
    double freedom = PRIOR_ROWS + (double)n;
    fit->spread = fmax((PRIOR_ROWS + factor_covariance(&f)) / freedom, LEAST_SPREAD);
    fit->outliers = mean_outlier(&f);
    free(numbers);
    return MDOT_OK;
}

/* A step of no job, which has the GPU's mean deviation and host share. */
static rt_step mean_step(const rt_fit *fit, rt_quantity q)
{
    rt_step step = {
        .job = RT_NO_JOB, .gpu_count = 1, .batch = 1, .is_new_gpu = fit->is_new_gpu, .host_share = fit->host_share};
    step.deviation[q] = fit->deviation;
    return step;
}

/* Combines the GPUs' own offsets. Each is a Gaussian message about the site plus a GPU. */
static void fit_site(mdot_calibration *c, rt_quantity q)
{
    double deviation = 0, precision = 0, sum = 0;
    size_t measured = 0;
    bool are_new = true; /* all measured ones: a known GPU lacks the larger part of the site */
    for (size_t g = 0; g < c->gpu_count; g++) {
        if (c->gpus[g].fit[q].count == 0) continue;
        deviation += c->gpus[g].fit[q].deviation;
        are_new = are_new && c->gpus[g].is_new;
        measured++;
    }
    c->site[q] = (rt_site){0};
    if (measured == 0) return;
    deviation /= (double)measured;
    for (size_t g = 0; g < c->gpu_count; g++) {
        const rt_fit *fit = &c->gpus[g].fit[q];
        if (fit->count == 0) continue;
        rt_step step = mean_step(fit, q);
        rt_corrected corrected;
        double terms[RT_TERMS], believed[RT_TERMS];
        rt_common_terms(&step, &step, q, 1, terms);
        rt_calibration_correct(c, &c->gpus[g], q, &step, &corrected);
        rt_calibration_believe(c, &c->gpus[g], q, &step, believed);
        double prior = (terms[RT_TERM_SITE] + terms[RT_TERM_GPU]) * deviation * deviation;
        double known = fmin(believed[RT_TERM_GPU], 1 - 1e-9);
        if (!(known > 1e-9)) continue;
        double site = corrected.by_term[RT_TERM_SITE] + corrected.by_term[RT_TERM_GPU];
        double noise = prior * (1 - known) / known + prior * (1 - rt_site_part());
        sum += site / known / noise;
        precision += 1 / noise;
    }
    rt_step step = {.job = RT_NO_JOB, .gpu_count = 1, .batch = 1, .is_new_gpu = are_new};
    double terms[RT_TERMS];
    rt_common_terms(&step, &step, q, 1, terms);
    double prior = terms[RT_TERM_SITE] * deviation * deviation;
    c->site[q].deviation = deviation;
    double limit = log(RT_CALIBRATION_MOST_FACTOR); /* damaged files may have any rows */
    c->site[q].mean = within(sum / (precision + 1 / prior), -limit, limit);
    c->site[q].explained = within((prior - 1 / (precision + 1 / prior)) / (deviation * deviation), 0, 1);
}

mdot_status rt_calibration_fit(mdot_calibration *c, bool adapts, mdot_error *err)
{
    for (size_t g = 0; g < c->gpu_count; g++)
        for (int q = 0; q < RT_QUANTITIES; q++) BS_TRY(fit_quantity(&c->gpus[g], (rt_quantity)q, adapts, err));
    for (int q = 0; q < RT_QUANTITIES; q++) {
        fit_site(c, (rt_quantity)q);
        BS_TRY(rt_transfer_fit(c, (rt_quantity)q, err));
    }
    return MDOT_OK;
}

static void correct_by_site(const rt_site *site, double deviation, rt_corrected *out)
{
    if (!(site->deviation > 0)) return;
    double carried = fmin(deviation * deviation / (site->deviation * site->deviation), 1);
    out->mean = out->by_term[RT_TERM_SITE] = carried * site->mean;
    out->interval = fmax(sqrt(1 - carried * site->explained), RT_CALIBRATION_LEAST_INTERVAL);
}

/* Means by term, and the sum of all terms in *out_covariances. */
static void add_terms(const rt_fit *fit, const rt_calibration_gpu *gpu, rt_quantity q, const rt_step *step,
                      double *out_covariances, rt_corrected *out)
{
    for (size_t i = 0; i < fit->count; i++) {
        const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
        double terms[RT_TERMS], variance = shared_variance(&a->step, step, q);
        double sum = rt_common_terms(&a->step, step, q, fit->general, terms);
        double job_term = shared_own(&a->step, step) * a->own[q];
        terms[RT_TERM_JOB] += job_term;
        sum += job_term;
        for (int t = 0; t < RT_TERMS; t++) out->by_term[t] += variance * terms[t] * fit->weight[i];
        out_covariances[i] = variance * sum;
    }
}

/* The known part of a term's variance. A site and its GPU are one term for a measured GPU. */
static double known_part(const rt_fit *fit, const rt_calibration_gpu *gpu, rt_quantity q, const rt_step *step, int term,
                         double whole)
{
    double covariances[RT_CALIBRATION_MAX_ANCHORS], terms[RT_TERMS];
    for (size_t i = 0; i < fit->count; i++) {
        const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
        rt_common_terms(&a->step, step, q, fit->general, terms);
        double common = terms[term] + (term == RT_TERM_GPU ? terms[RT_TERM_SITE] : 0);
        if (term == RT_TERM_JOB) common += shared_own(&a->step, step) * a->own[q];
        covariances[i] = common * shared_variance(&a->step, step, q);
    }
    rt_cholesky_solve_lower(fit->factor, fit->count, covariances);
    return whole > 0 ? within(rt_dot(covariances, covariances, fit->count) / whole, 0, 1) : 0;
}

/* Finds the added variance of a step whose job has rows: all of the job's for a step like one of them, and otherwise
 * the part that is shared with the most similar row. False for a job without rows. */
static bool find_own(const rt_fit *fit, const rt_calibration_gpu *gpu, rt_quantity q, const rt_step *step,
                     double *out_own)
{
    bool is_measured = false;
    *out_own = 0;
    for (size_t i = 0; i < fit->count; i++) {
        const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
        if (!is_same_job(&a->step, step)) continue;
        *out_own = fmax(*out_own, rt_own_correlation(&a->step, step) * a->own[q]);
        is_measured = true;
    }
    return is_measured;
}

/* Adds the part of the variance `left` that rows from another GPU model explain. Returns the rest. */
static double add_carried(const mdot_calibration *calibration, const rt_calibration_gpu *gpu, rt_quantity q,
                          const rt_step *step, double left, rt_corrected *out)
{
    rt_transfer_find(calibration, gpu, q, step, &out->carried);
    double correlation = out->carried.correlation, measured = left + rt_noise(step->deviation[q], gpu->fit[q].idle);
    double shift = correlation * out->carried.standard * sqrt(gpu->fit[q].spread * measured);
    double limit = log(RT_CALIBRATION_MOST_FACTOR); /* damaged files may have any rows */
    out->carried.shift = shift = within(shift, -limit, limit);
    out->by_term[RT_TERM_JOB] += shift;
    return fmax(left - correlation * correlation * measured, 0);
}

static double squared(double x) { return x * x; }

/* Follows the rows of the job itself, if they state the step more closely than the posterior does. Rows that contradict
 * each other state it less closely. */
static void follow_rows(const rt_fit *fit, const rt_calibration_gpu *gpu, const rt_step *step, double stated,
                        rt_corrected *out)
{
    double weights = 0, sum = 0, squares = 0, least = INFINITY;
    for (size_t i = 0; i < fit->count; i++) {
        const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
        double drift = rt_drift(&a->step, step), residual = a->residual[RT_QUANTITY_TIME];
        weights += 1 / drift;
        sum += residual / drift;
        squares += residual * residual / drift;
        least = fmin(least, drift);
    }
    if (!(weights > 0)) return;
    double limit = log(RT_CALIBRATION_MOST_FACTOR), mean = within(sum / weights, -limit, limit);
    double variance = least + fmax(squares / weights - squared(sum / weights), 0);
    if (!(variance < out->interval * out->interval * stated)) return;
    out->half_width = HALF_WIDTH * sqrt(variance);
    out->by_term[RT_TERM_CONFIGURATION] += mean - out->mean;
    out->mean = mean;
    out->interval = within(sqrt(variance / stated), RT_CALIBRATION_LEAST_INTERVAL, RT_CALIBRATION_MOST_INTERVAL);
}

void rt_calibration_correct(const mdot_calibration *calibration, const rt_calibration_gpu *gpu, rt_quantity q,
                            const rt_step *step, rt_corrected *out)
{
    double covariances[RT_CALIBRATION_MAX_ANCHORS], terms[RT_TERMS];
    double stated = step->deviation[q] * step->deviation[q];
    *out = (rt_corrected){.interval = 1};
    if (gpu == NULL || gpu->fit[q].count == 0) {
        correct_by_site(&calibration->site[q], step->deviation[q], out);
        return;
    }
    const rt_fit *fit = &gpu->fit[q];
    add_terms(fit, gpu, q, step, covariances, out);
    rt_cholesky_solve_lower(fit->factor, fit->count, covariances);
    double job_term, common = rt_common_terms(step, step, q, fit->general, terms);
    bool is_measured = find_own(fit, gpu, q, step, &job_term);
    double left = fmax((common + job_term) * stated - rt_dot(covariances, covariances, fit->count), 0);
    left = add_carried(calibration, gpu, q, step, left, out);
    for (int t = 0; t < RT_TERMS; t++) out->mean += out->by_term[t];
    double limit = log(RT_CALIBRATION_MOST_FACTOR);
    out->mean = within(out->mean, -limit, limit);
    double known = within(1 - left / stated, 0, 1);
    left += known * rt_noise(step->deviation[q], fit->idle) + (is_measured ? 0 : fit->outliers * stated);
    out->interval =
        within(sqrt(fit->spread * left / stated), RT_CALIBRATION_LEAST_INTERVAL, RT_CALIBRATION_MOST_INTERVAL);
    if (q == RT_QUANTITY_TIME) follow_rows(fit, gpu, step, stated, out);
}

void rt_calibration_believe(const mdot_calibration *calibration, const rt_calibration_gpu *gpu, rt_quantity q,
                            const rt_step *step, double out_believed[RT_TERMS])
{
    for (int t = 0; t < RT_TERMS; t++) out_believed[t] = 0;
    if (gpu == NULL || gpu->fit[q].count == 0) {
        const rt_site *site = &calibration->site[q];
        double terms[RT_TERMS];
        rt_common_terms(step, step, q, 1, terms);
        if (site->deviation > 0) out_believed[RT_TERM_SITE] = within(site->explained / terms[RT_TERM_SITE], 0, 1);
        return;
    }
    const rt_fit *fit = &gpu->fit[q];
    double job_term, terms[RT_TERMS], stated = step->deviation[q] * step->deviation[q];
    rt_common_terms(step, step, q, fit->general, terms);
    find_own(fit, gpu, q, step, &job_term);
    terms[RT_TERM_GPU] += terms[RT_TERM_SITE];
    terms[RT_TERM_JOB] += job_term;
    for (int t = RT_TERM_GPU; t < RT_TERMS; t++) out_believed[t] = known_part(fit, gpu, q, step, t, terms[t] * stated);
    rt_carried carried;
    rt_transfer_find(calibration, gpu, q, step, &carried);
    double unknown = (1 - out_believed[RT_TERM_JOB]) * (1 - carried.correlation * carried.correlation);
    out_believed[RT_TERM_JOB] = 1 - unknown;
}
