/* calibrate.c — corrects a predictor's answers with a site's measurements.
 *
 * The logarithm of measured over predicted is taken to be
 *
 *   site + GPU + GPU in this precision + several GPUs + Σ slope of a part * (share of the step - mean share)
 *        + noise of the row
 *
 * where each term is drawn around zero. Its variance is a fixed part of the variance that the predictor's own
 * intervals state. Most of it belongs to a GPU in one precision (half precision or full precision). Measurements
 * there are therefore trusted soonest, and hardly carry over to other GPUs and precisions. The term for several GPUs
 * is widest, because a predictor may know their links but not how the site's software uses them. So zero rows change
 * nothing, and few rows change little. Variances are fitted together with the terms. The prior variances count as
 * PRIOR_ROWS rows (an empirical Bayes estimate of a mixed model by expectation and maximisation: Laird and Ware,
 * Biometrics 38, 1982). Slopes are fitted from LEAST_ROWS_FOR_PARTS rows on. Rows far from the fit of the other rows
 * count less (Huber's weights).
 *
 * A correction is reduced by HELD_BACK standard deviations of its uncertainty. If a predictor is right within its
 * interval, few rows carry over to other steps, and the prediction stays as it is. The resulting interval covers the
 * noise that is left, the uncertainty of the terms and the part that is held back.
 */
#include "base/printable.h"
#include "base/struct_version.h"
#include "runtime/core/core.h"
#include "runtime/job/configuration.h"
#include "runtime/job/gpus.h"
#include "runtime/predict/calibration.h"
#include "runtime/predict/explain.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define PRIOR_ROWS 4.0
#define STRENGTH_ROWS 5.0     /* pseudo-rows that contradict the terms; part of every fit */
#define HUBER 2.0             /* standard deviations beyond which a row counts less */
#define QUANTILE_95 1.6448536 /* 95 % quantile of the normal distribution */
#define SITE_PART 0.02        /* part of the stated variance that is assigned to the site */
#define GPU_PART 0.03         /* part that is assigned to a GPU */
#define CELL_PART 0.25        /* part that is assigned to a GPU in one precision; the rest is noise */
#define SEVERAL_PART 1.0      /* part of the stated variance, added for steps of several GPUs */
#define SLOPE_PRIOR 0.1       /* variance of a slope, in units of the stated variance */
#define HELD_BACK 0.5         /* with this and STRENGTH_ROWS, none of 162 halves of published steps gets worse */
enum {
    LEAST_ROWS_FOR_PARTS = 8,
    ROUNDS = 40,
    SITE = 0,
    SEVERAL,
    FIRST_GPU,
    MAX_TERMS = FIRST_GPU + (1 + RT_PRECISION_CLASSES) * RT_CALIBRATION_MAX_GPUS + RT_CALIBRATION_PARTS
};

static const bs_struct_version prediction_type = BS_SIZED(mdot_prediction, warnings);
static const bs_struct_version info_type = BS_SIZED(mdot_calibration_info, interval);
static const bs_struct_version gpu_type = BS_SIZED(mdot_calibration_gpu, half_interval);

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

typedef struct row {
    size_t gpu; /* index in the calibration's GPUs */
    rt_precision_class precision_class;
    bool is_several;  /* more than one GPU */
    double residual;  /* logarithm of measured over predicted */
    double deviation; /* standard deviation of the logarithm, from the predictor's interval */
    double share[RT_CALIBRATION_PARTS];
    double weight;
} row;

static mdot_status find_gpu_name(const mdot_configuration *c, const char **out_name, mdot_error *err)
{
    const mdot_gpu *gpu = c->gpu_spec;
    mdot_status status = gpu == NULL ? rt_gpu_find(c->gpu, &gpu, err) : bs_check_struct(&rt_gpu_type, c->gpu_spec, err);
    if (status == MDOT_OK) status = rt_gpu_check_name(gpu->name, err);
    if (status == MDOT_OK) *out_name = gpu->name;
    return status;
}

/* Names are cut to RT_CALIBRATION_NAME_BYTES - 1 bytes, at a character boundary. */
static size_t name_length(const char *name)
{
    return bs_cut_length(name, RT_CALIBRATION_NAME_BYTES - 1);
}

static const rt_calibration_gpu *find_gpu(const mdot_calibration *calibration, const char *name)
{
    size_t length = name != NULL ? name_length(name) : 0;
    for (size_t i = 0; length > 0 && i < calibration->gpu_count; i++) {
        const char *known = calibration->gpus[i].name;
        if (strncmp(known, name, length) == 0 && known[length] == '\0') return &calibration->gpus[i];
    }
    return NULL;
}

static rt_precision_class precision_class_of(const mdot_configuration *c)
{
    return rt_is_half(c->precision) ? RT_PRECISION_HALF : RT_PRECISION_FULL;
}

static bool is_of_several(const mdot_configuration *c)
{
    return c->gpu_count > 1;
}

static mdot_status add_gpu(mdot_calibration *calibration, const char *name, size_t *out_index, mdot_error *err)
{
    if (name == NULL || name[0] == '\0')
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "a calibration needs a name for each GPU: set gpu, or name in gpu_spec");
    const rt_calibration_gpu *known = find_gpu(calibration, name);
    *out_index = known != NULL ? (size_t)(known - calibration->gpus) : calibration->gpu_count;
    if (known == NULL) {
        if (calibration->gpu_count == RT_CALIBRATION_MAX_GPUS)
            return mdot_fail(err, MDOT_OUT_OF_RANGE, "a calibration holds at most %d GPUs", RT_CALIBRATION_MAX_GPUS);
        memcpy(calibration->gpus[calibration->gpu_count++].name, name, name_length(name));
    }
    return MDOT_OK;
}

/* A calibration file holds the name as one line of printable text that must be non-empty. */
static void copy_predictor_name(mdot_calibration *calibration, const char *name)
{
    memcpy(calibration->predictor, name, bs_cut_length(name, sizeof calibration->predictor - 1));
    bs_make_printable(calibration->predictor);
    if (calibration->predictor[0] == '\0') calibration->predictor[0] = '?';
}

static void find_shares(const mdot_explanation_info *e, double out[RT_CALIBRATION_PARTS])
{
    const double ms[RT_CALIBRATION_PARTS] = {
        [RT_CALIBRATION_FORWARD] = e->forward_ms,
        [RT_CALIBRATION_BACKWARD] = e->data_gradient_ms + e->weight_gradient_ms,
        [RT_CALIBRATION_OPTIMIZER] = e->optimizer_ms,
        [RT_CALIBRATION_HOST] = e->host_ms,
        [RT_CALIBRATION_COMMUNICATION] = e->communication_ms,
    };
    for (int part = 0; part < RT_CALIBRATION_PARTS; part++) out[part] = ms[part] / e->step_ms;
}

static bool is_time(double ms)
{
    return ms > 0 && isfinite(ms);
}

static mdot_status read_row(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                            double measured_ms, mdot_calibration *calibration, row *out, mdot_error *err)
{
    if (!is_time(measured_ms))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the measured time of %g ms must be a positive number",
                         measured_ms);
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    const char *name = NULL;
    mdot_status status = job != NULL ? rt_handle_check(job, RT_JOB, "mdot_calibrate", err) : MDOT_OK;
    if (status == MDOT_OK) status = rt_explain_one(context, job, configuration, &p, &info, err);
    if (status == MDOT_OK) status = find_gpu_name(configuration, &name, err);
    if (status == MDOT_OK) status = add_gpu(calibration, name, &out->gpu, err);
    if (status != MDOT_OK) return status;
    out->precision_class = precision_class_of(configuration);
    out->is_several = is_of_several(configuration);
    calibration->gpus[out->gpu].in[out->precision_class].row_count++;
    calibration->several.row_count += out->is_several;
    out->residual = log(measured_ms / p.step_ms);
    out->deviation = log(p.upper_ms / p.lower_ms) / (2 * QUANTILE_95);
    find_shares(&info, out->share);
    out->weight = 1;
    return MDOT_OK;
}

/* ---- Fitting ----------------------------------------------------------------------------------------------------- */

typedef struct fit {
    mdot_calibration *calibration;
    row *rows;
    size_t count;
    size_t term_count; /* the site, several GPUs, each GPU, each GPU in each precision, each part */
    bool has_parts;
    double stated;                                         /* mean variance that the predictor's intervals state */
    double of_noise, of_site, of_several, of_gpu, of_cell; /* variances of the noise and of the terms */
    double *precision, *covariance;                        /* matrices [terms, terms] */
    double term[MAX_TERMS], right[MAX_TERMS];
} fit;

static size_t term_of_cell(const fit *f, size_t gpu, int precision_class)
{
    return FIRST_GPU + f->calibration->gpu_count + RT_PRECISION_CLASSES * gpu + (size_t)precision_class;
}

static size_t term_of_part(const fit *f, int part)
{
    return term_of_cell(f, f->calibration->gpu_count, 0) + (size_t)part;
}

/* The terms that apply to a row: their indices and factors. Returns their number. */
enum { ROW_TERMS = 4 + RT_CALIBRATION_PARTS };
static int read_terms(const fit *f, const row *r, size_t index[ROW_TERMS], double factor[ROW_TERMS])
{
    int count = 0;
    index[count] = SITE;
    factor[count++] = 1;
    index[count] = FIRST_GPU + r->gpu;
    factor[count++] = 1;
    index[count] = term_of_cell(f, r->gpu, r->precision_class);
    factor[count++] = 1;
    if (r->is_several) {
        index[count] = SEVERAL;
        factor[count++] = 1;
    }
    for (int part = 0; f->has_parts && part < RT_CALIBRATION_PARTS; part++) {
        index[count] = term_of_part(f, part);
        factor[count++] = r->share[part] - f->calibration->mean_share[part];
    }
    return count;
}

/* The inverse of a positive definite matrix. The Cholesky factor replaces the matrix. */
static void invert(double *a, size_t n, double *out)
{
    for (size_t j = 0; j < n; j++) {
        for (size_t i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (size_t k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
    }
    for (size_t column = 0; column < n; column++) {
        for (size_t i = 0; i < n; i++) {
            double sum = i == column ? 1 : 0;
            for (size_t k = 0; k < i; k++) sum -= a[i * n + k] * out[k * n + column];
            out[i * n + column] = sum / a[i * n + i];
        }
        for (size_t i = n; i-- > 0;) {
            double sum = out[i * n + column];
            for (size_t k = i + 1; k < n; k++) sum -= a[k * n + i] * out[k * n + column];
            out[i * n + column] = sum / a[i * n + i];
        }
    }
}

static double prior_variance(const fit *f, size_t term)
{
    if (term == SITE) return f->of_site;
    if (term == SEVERAL) return f->of_several;
    if (term < term_of_cell(f, 0, 0)) return f->of_gpu;
    return term < term_of_part(f, 0) ? f->of_cell : SLOPE_PRIOR * f->stated;
}

static void solve(fit *f)
{
    size_t n = f->term_count;
    memset(f->precision, 0, n * n * sizeof *f->precision);
    memset(f->right, 0, sizeof f->right);
    for (size_t i = 0; i < n; i++) f->precision[i * n + i] = 1 / prior_variance(f, i);
    for (size_t i = 0; i < f->count; i++) {
        size_t index[ROW_TERMS];
        double factor[ROW_TERMS], weight = f->rows[i].weight / f->of_noise;
        int count = read_terms(f, &f->rows[i], index, factor);
        for (int a = 0; a < count; a++) {
            f->right[index[a]] += weight * factor[a] * f->rows[i].residual;
            for (int b = 0; b < count; b++) f->precision[index[a] * n + index[b]] += weight * factor[a] * factor[b];
        }
    }
    invert(f->precision, n, f->covariance);
    for (size_t i = 0; i < n; i++) {
        f->term[i] = 0;
        for (size_t k = 0; k < n; k++) f->term[i] += f->covariance[i * n + k] * f->right[k];
    }
}

/* The part of a sum of terms that is applied, and the variance of the uncertain and held-back part. */
typedef struct term_sum {
    double log_factor, variance;
} term_sum;

static term_sum sum_terms(const fit *f, const size_t *at, int count)
{
    double sum = 0, variance = 0;
    for (int a = 0; a < count; a++) {
        sum += f->term[at[a]];
        for (int b = 0; b < count; b++) variance += f->covariance[at[a] * f->term_count + at[b]];
    }
    double held = fmin(HELD_BACK * sqrt(variance), fabs(sum));
    return (term_sum){copysign(fabs(sum) - held, sum), variance + held * held};
}

static term_sum sum_cell(const fit *f, size_t gpu, int precision_class)
{
    return sum_terms(f, (const size_t[]){SITE, FIRST_GPU + gpu, term_of_cell(f, gpu, precision_class)}, 3);
}

/* The mean square of `count` terms from `first` on. PRIOR_ROWS pseudo-terms with a variance of `prior` are included. */
static double mean_square(const fit *f, size_t first, size_t count, double prior)
{
    double sum = PRIOR_ROWS * prior;
    for (size_t i = first; i < first + count; i++)
        sum += f->term[i] * f->term[i] + f->covariance[i * f->term_count + i];
    return sum / (PRIOR_ROWS + (double)count);
}

/* Re-estimates the variances from the current terms, and the row weights from the variances. */
static void update_variances(fit *f)
{
    double squares = 0, noise_part = 1 - SITE_PART - GPU_PART - CELL_PART;
    size_t n = f->term_count, gpus = f->calibration->gpu_count;
    for (size_t i = 0; i < f->count; i++) {
        size_t index[ROW_TERMS];
        double factor[ROW_TERMS], rest = f->rows[i].residual, unknown = 0;
        int count = read_terms(f, &f->rows[i], index, factor);
        for (int a = 0; a < count; a++) {
            rest -= factor[a] * f->term[index[a]];
            for (int b = 0; b < count; b++) unknown += factor[a] * factor[b] * f->covariance[index[a] * n + index[b]];
        }
        double limit = HUBER * sqrt(f->of_noise);
        f->rows[i].weight = fabs(rest) > limit ? limit / fabs(rest) : 1;
        squares += pow(f->rows[i].weight * rest, 2) + unknown; /* Huber's Proposal 2 */
    }
    f->of_noise = (PRIOR_ROWS * noise_part * f->stated + squares) / (PRIOR_ROWS + (double)f->count);
    f->of_several = mean_square(f, SEVERAL, 1, SEVERAL_PART * f->stated);
    f->of_gpu = mean_square(f, FIRST_GPU, gpus, GPU_PART * f->stated);
    f->of_cell = mean_square(f, term_of_cell(f, 0, 0), RT_PRECISION_CLASSES * gpus, CELL_PART * f->stated);
}

static double within(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

/* How strongly the terms are trusted, from 0 to 1. This is the least-squares fit of the rows' residuals to their
 * leave-one-out predictions (stacking: Wolpert, Neural Networks 5, 1992). A row's own leverage is known, so that each
 * leave-one-out prediction follows from the one fit. A single row, or rows that contradict each other, give 0. */
static double strength_of(const fit *f)
{
    double agreement = 0, squares = 0;
    for (size_t i = 0; i < f->count; i++) {
        size_t index[ROW_TERMS];
        double factor[ROW_TERMS], fitted = 0, unknown = 0;
        int count = read_terms(f, &f->rows[i], index, factor);
        for (int a = 0; a < count; a++) {
            fitted += factor[a] * f->term[index[a]];
            for (int b = 0; b < count; b++)
                unknown += factor[a] * factor[b] * f->covariance[index[a] * f->term_count + index[b]];
        }
        double own = f->rows[i].weight * unknown / f->of_noise;
        double by_others = (fitted - own * f->rows[i].residual) / (1 - own);
        agreement += f->rows[i].weight * by_others * f->rows[i].residual;
        squares += f->rows[i].weight * by_others * by_others;
    }
    return within(agreement / (squares + STRENGTH_ROWS * f->of_noise), 0, 1);
}

static void write_calibrated(rt_calibrated *out, double log_factor, double variance, double stated)
{
    out->factor = within(exp(log_factor), 1 / RT_CALIBRATION_MOST_FACTOR, RT_CALIBRATION_MOST_FACTOR);
    out->interval = within(sqrt(variance / stated), RT_CALIBRATION_LEAST_INTERVAL, RT_CALIBRATION_MOST_INTERVAL);
}

/* Mean variance that the intervals state for a GPU in one precision. A cell that has zero rows uses the mean of all
 * rows. */
static double stated_of(const fit *f, size_t gpu, int precision_class)
{
    size_t rows = f->calibration->gpus[gpu].in[precision_class].row_count;
    double sum = 0;
    for (size_t i = 0; i < f->count; i++) {
        const row *r = &f->rows[i];
        if (r->gpu == gpu && (int)r->precision_class == precision_class) sum += r->deviation * r->deviation;
    }
    return rows > 0 ? sum / (double)rows : f->stated;
}

static void write_calibration(const fit *f)
{
    mdot_calibration *c = f->calibration;
    for (size_t g = 0; g < c->gpu_count; g++) {
        for (int precision_class = 0; precision_class < RT_PRECISION_CLASSES; precision_class++) {
            term_sum cell = sum_cell(f, g, precision_class);
            write_calibrated(&c->gpus[g].in[precision_class], cell.log_factor, f->of_noise + cell.variance,
                             stated_of(f, g, precision_class));
        }
    }
    const size_t site = SITE, several = SEVERAL;
    term_sum site_sum = sum_terms(f, &site, 1), several_sum = sum_terms(f, &several, 1);
    write_calibrated(&c->others, site_sum.log_factor, f->of_noise + site_sum.variance + f->of_gpu + f->of_cell,
                     f->stated);
    /* This applies on top of a GPU's correction and makes its interval wider. */
    write_calibrated(&c->several, several_sum.log_factor, f->of_noise + several_sum.variance, f->of_noise);
    for (int part = 0; f->has_parts && part < RT_CALIBRATION_PARTS; part++)
        c->slope[part] = within(f->term[term_of_part(f, part)], -RT_CALIBRATION_MOST_SLOPE, RT_CALIBRATION_MOST_SLOPE);
}

static mdot_status fit_rows(row *rows, size_t count, mdot_calibration *calibration, mdot_error *err)
{
    fit f = {.calibration = calibration, .rows = rows, .count = count, .has_parts = count >= LEAST_ROWS_FOR_PARTS};
    calibration->row_count = count;
    calibration->others.factor = calibration->others.interval = 1;
    calibration->several.factor = calibration->several.interval = 1;
    if (count == 0) return MDOT_OK;
    for (size_t i = 0; i < count; i++) {
        f.stated += rows[i].deviation * rows[i].deviation / (double)count;
        for (int part = 0; part < RT_CALIBRATION_PARTS; part++)
            calibration->mean_share[part] += rows[i].share[part] / (double)count;
    }
    if (!(f.stated > 0))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "the predictor's intervals are empty for every row, so the rows lack weights");
    f.of_noise = (1 - SITE_PART - GPU_PART - CELL_PART) * f.stated;
    f.of_site = SITE_PART * f.stated;
    f.of_several = SEVERAL_PART * f.stated;
    f.of_gpu = GPU_PART * f.stated;
    f.of_cell = CELL_PART * f.stated;
    f.term_count = term_of_part(&f, f.has_parts ? RT_CALIBRATION_PARTS : 0);
    f.precision = calloc(2 * f.term_count * f.term_count, sizeof *f.precision);
    if (f.precision == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for a calibration");
    f.covariance = f.precision + f.term_count * f.term_count;
    for (int round = 0; round < ROUNDS; round++) {
        solve(&f);
        update_variances(&f);
    }
    solve(&f);
    double strength = strength_of(&f);
    for (size_t i = 0; i < f.term_count; i++) f.term[i] *= strength;
    write_calibration(&f);
    free(f.precision);
    return MDOT_OK;
}

static mdot_status calibrate(mdot_context *context, const mdot_job *const *jobs,
                             const mdot_configuration *configurations, const double *measured_ms, size_t count,
                             mdot_calibration **out_calibration, mdot_error *err)
{
    const mdot_abi_table *table = rt_predictor_artefact(rt_context_predictor(context))->table;
    mdot_calibration *calibration = calloc(1, sizeof *calibration);
    row *rows = count < SIZE_MAX / sizeof *rows ? calloc(count + 1, sizeof *rows) : NULL;
    mdot_status status = MDOT_OK;
    if (calibration == NULL || rows == NULL)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for %zu measured steps", count);
    else
        copy_predictor_name(calibration, rt_string(table, table->name_at));
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_error reason = {0};
        const mdot_configuration *c = bs_struct_at(configurations, i);
        status = read_row(context, jobs[i], c, measured_ms[i], calibration, &rows[i], &reason);
        if (status != MDOT_OK) mdot_fail(err, status, "row %zu: %s", i, reason.message);
    }
    if (status == MDOT_OK) status = fit_rows(rows, count, calibration, err);
    free(rows);
    if (status != MDOT_OK) {
        free(calibration);
        return status;
    }
    rt_handle_register(calibration, RT_CALIBRATION);
    *out_calibration = calibration;
    return MDOT_OK;
}

mdot_status mdot_calibrate(mdot_context *context, const mdot_job *const *jobs, const mdot_configuration *configurations,
                           const double *measured_ms, size_t count, mdot_calibration **out_calibration, mdot_error *err)
{
    if (context == NULL || out_calibration == NULL ||
        (count > 0 && (jobs == NULL || configurations == NULL || measured_ms == NULL)))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "mdot_calibrate: context, jobs, configurations, measured_ms or out_calibration is NULL");
    if (count > RT_CALIBRATION_MAX_ROWS)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "%zu measured steps are too many; the limit is %d", count,
                         RT_CALIBRATION_MAX_ROWS);
    mdot_status status = rt_handle_enter(context, __func__, err);
    if (status != MDOT_OK) return status;
    status = calibrate(context, jobs, configurations, measured_ms, count, out_calibration, err);
    rt_handle_leave(context);
    return status;
}

/* ---- Applying ---------------------------------------------------------------------------------------------------- */

mdot_status mdot_calibration_apply(const mdot_calibration *calibration, const mdot_configuration *configuration,
                                   const mdot_explanation *explanation, mdot_prediction *prediction, mdot_error *err)
{
    if (calibration == NULL || configuration == NULL || prediction == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "mdot_calibration_apply: calibration, configuration or prediction is NULL");
    mdot_prediction p;
    const char *name = NULL;
    mdot_status status = rt_handle_check(calibration, RT_CALIBRATION, __func__, err);
    if (status == MDOT_OK && explanation != NULL) status = rt_handle_check(explanation, RT_EXPLANATION, __func__, err);
    if (status == MDOT_OK) status = bs_read_struct(&prediction_type, prediction, &p, err);
    if (status == MDOT_OK) status = bs_check_struct(&rt_configuration_type, configuration, err);
    if (status == MDOT_OK) status = find_gpu_name(configuration, &name, err);
    if (status != MDOT_OK) return status;
    if (!is_time(p.step_ms) || !is_time(p.lower_ms) || !is_time(p.upper_ms))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "a prediction of %g ms, %g to %g, is invalid: calibrate only predictions that succeeded",
                         p.step_ms, p.lower_ms, p.upper_ms);
    const rt_calibration_gpu *gpu = find_gpu(calibration, name);
    const rt_calibrated *known = gpu != NULL ? &gpu->in[precision_class_of(configuration)] : &calibration->others;
    bool is_several = is_of_several(configuration);
    double log_factor = log(known->factor) + (is_several ? log(calibration->several.factor) : 0);
    double interval = known->interval * (is_several ? calibration->several.interval : 1);
    if (explanation != NULL) {
        mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
        double share[RT_CALIBRATION_PARTS];
        mdot_explanation_get_info(explanation, &info);
        find_shares(&info, share);
        for (int part = 0; part < RT_CALIBRATION_PARTS; part++)
            log_factor += calibration->slope[part] * (share[part] - calibration->mean_share[part]);
    }
    double factor = within(exp(log_factor), 1 / RT_CALIBRATION_MOST_FACTOR, RT_CALIBRATION_MOST_FACTOR);
    double step_ms = p.step_ms * factor;
    p.lower_ms = step_ms * pow(p.lower_ms / p.step_ms, interval);
    p.upper_ms = step_ms * pow(p.upper_ms / p.step_ms, interval);
    p.step_ms = step_ms;
    p.compute_share /= factor;
    p.memory_share /= factor;
    bs_write_struct(&prediction_type, &p, prediction, prediction->struct_size);
    return MDOT_OK;
}

void mdot_calibration_destroy(mdot_calibration *calibration)
{
    if (calibration == NULL || !rt_handle_unregister(calibration, RT_CALIBRATION, __func__)) return;
    if (!rt_validates_handles()) free(calibration);
}

mdot_status mdot_calibration_get_info(const mdot_calibration *calibration, mdot_calibration_info *out_info)
{
    if (calibration == NULL || !rt_handle_is_live(calibration, RT_CALIBRATION, __func__)) return MDOT_INVALID_ARGUMENT;
    const mdot_calibration_info info = {.struct_size = sizeof info,
                                        .predictor = calibration->predictor,
                                        .row_count = calibration->row_count,
                                        .gpu_count = calibration->gpu_count,
                                        .factor = calibration->others.factor,
                                        .interval = calibration->others.interval,
                                        .several_row_count = calibration->several.row_count,
                                        .several_factor = calibration->several.factor,
                                        .several_interval = calibration->several.interval};
    return bs_fill_struct(&info_type, &info, out_info, NULL);
}

mdot_status mdot_calibration_get_gpu(const mdot_calibration *calibration, size_t index, mdot_calibration_gpu *out_gpu)
{
    if (calibration == NULL || !rt_handle_is_live(calibration, RT_CALIBRATION, __func__)) return MDOT_INVALID_ARGUMENT;
    if (index >= calibration->gpu_count) return MDOT_OUT_OF_RANGE;
    const rt_calibration_gpu *gpu = &calibration->gpus[index];
    const rt_calibrated *full = &gpu->in[RT_PRECISION_FULL], *half = &gpu->in[RT_PRECISION_HALF];
    const mdot_calibration_gpu known = {.struct_size = sizeof known,
                                        .name = gpu->name,
                                        .row_count = full->row_count,
                                        .factor = full->factor,
                                        .interval = full->interval,
                                        .half_row_count = half->row_count,
                                        .half_factor = half->factor,
                                        .half_interval = half->interval};
    return bs_fill_struct(&gpu_type, &known, out_gpu, NULL);
}
