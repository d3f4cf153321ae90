/* test_calibration_fit.c — calibration_fit.c against its definition: the covariance is computed again, entry by entry,
 * and every answer follows from it by elimination, on random anchors. */
#include "runtime/predict/calibration.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 14, JOBS = 5, TRIALS = 400 };

typedef struct dense {
    size_t n;
    double value[MOST][MOST];
} dense;

/* MMIX' generator (Knuth). */
typedef struct generator {
    uint64_t state;
} generator;

static size_t below(generator *r, size_t count)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(r->state >> 33) % count;
}

static double unit(generator *r) { return (double)below(r, 1 << 30) / (1 << 30); }

static float shares[JOBS][RT_WORK_CLASSES];

static double random_normal(generator *r) { return sqrt(-2 * log(1 - unit(r))) * cos(6.283185307179586 * unit(r)); }

static rt_step random_step(generator *r, uint32_t job)
{
    static const uint32_t precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_TF32, MDOT_PRECISION_AMP};
    return (rt_step){.job = job,
                     .share = job == RT_NO_JOB ? NULL : shares[job],
                     .precision = precisions[below(r, 3)],
                     .layout = (uint32_t)below(r, 2),
                     .torch = 200 + (uint32_t)below(r, 2),
                     .gpu_count = below(r, 4) == 0 ? 4 : 1,
                     .mode = below(r, 4) == 0,
                     .others = below(r, 3),
                     .batch = (double)(1 << below(r, 8)),
                     .host_share = unit(r),
                     .deviation = {0.05 + unit(r), 0.02 + 0.2 * unit(r)}};
}

/* Jobs ascend, and steps of no job come last, as calibration_rows.c orders them. Some jobs are far off. */
static mdot_calibration *make_site(generator *r)
{
    mdot_calibration *c = calloc(1, sizeof *c);
    assert_non_null(c);
    for (int j = 0; j < JOBS; j++) {
        double sum = 0, part[4];
        memset(shares[j], 0, sizeof shares[j]);
        for (int k = 0; k < 4; k++) sum += part[k] = 0.05 + unit(r);
        for (int k = 0; k < 4; k++) shares[j][k] = (float)(part[k] / sum);
    }
    c->gpu_count = 1;
    rt_calibration_gpu *gpu = &c->gpus[0];
    gpu->is_new = below(r, 2) == 0;
    gpu->anchor_count = 1 + below(r, MOST);
    gpu->anchors = calloc(gpu->anchor_count, sizeof *gpu->anchors);
    assert_non_null(gpu->anchors);
    size_t nameless = below(r, 3);
    for (size_t i = 0; i < gpu->anchor_count; i++) {
        bool is_job = i + nameless < gpu->anchor_count || gpu->anchor_count <= nameless;
        uint32_t job = is_job ? (uint32_t)(i * JOBS / gpu->anchor_count) : RT_NO_JOB;
        rt_anchor *a = &gpu->anchors[i];
        a->step = random_step(r, job);
        a->step.is_new_gpu = gpu->is_new;
        for (int q = 0; q < RT_QUANTITIES; q++) {
            a->row_count[q] = below(r, 5) == 0 ? 0 : 1 + below(r, 40);
            double far = job == 1 ? 3 : 0.5;
            a->residual[q] = a->step.deviation[q] * (0.4 + far * random_normal(r));
        }
    }
    return c;
}

/* Elimination with pivots; destroys the matrix. Returns the logarithm of the determinant. */
static double solve(dense *m, double *x)
{
    double logarithm = 0;
    for (size_t k = 0; k < m->n; k++) {
        size_t pivot = k;
        for (size_t i = k; i < m->n; i++)
            if (fabs(m->value[i][k]) > fabs(m->value[pivot][k])) pivot = i;
        for (size_t j = 0; j < m->n; j++) {
            double moved = m->value[k][j];
            m->value[k][j] = m->value[pivot][j];
            m->value[pivot][j] = moved;
        }
        double moved = x[k];
        x[k] = x[pivot];
        x[pivot] = moved;
        logarithm += log(fabs(m->value[k][k]));
        for (size_t i = 0; i < m->n; i++) {
            double factor = i == k ? 0 : m->value[i][k] / m->value[k][k];
            for (size_t j = 0; j < m->n; j++) m->value[i][j] -= factor * m->value[k][j];
            x[i] -= factor * x[k];
        }
    }
    for (size_t k = 0; k < m->n; k++) x[k] /= m->value[k][k];
    return logarithm;
}

/* The part that two different steps share: the prior's, and an outlier's own, of the smaller stated variance. */
static double shared(const rt_anchor *a, const rt_step *step, rt_quantity q, double general)
{
    double terms[RT_TERMS], sum = rt_common_terms(&a->step, step, q, general, terms);
    bool is_same = &a->step == step || (a->step.job == step->job && step->job != RT_NO_JOB);
    if (is_same) sum += rt_own_correlation(&a->step, step) * a->own[q];
    return sum * pow(fmin(a->step.deviation[q], step->deviation[q]), 2);
}

static dense covariance_of(const rt_calibration_gpu *gpu, rt_quantity q, double general, double idle)
{
    const rt_fit *fit = &gpu->fit[q];
    dense m = {.n = fit->count};
    for (size_t i = 0; i < m.n; i++) {
        const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
        for (size_t j = 0; j < m.n; j++) m.value[i][j] = shared(a, &gpu->anchors[fit->anchor[j]].step, q, general);
        double rows = (double)a->row_count[q], deviation = a->step.deviation[q], terms[RT_TERMS];
        if (a->step.job == RT_NO_JOB) { /* the rows are of as many jobs: their own effects average out */
            rt_common_terms(&a->step, &a->step, q, general, terms);
            double own = terms[RT_TERM_JOB] + terms[RT_TERM_CONFIGURATION];
            m.value[i][i] += (own / rows - own) * deviation * deviation;
        }
        /* noise averages out over at most 16 rows; that of an idle predictor never does */
        m.value[i][i] += rt_noise(deviation, 0) / fmin(rows, 16) + rt_noise(deviation, idle) - rt_noise(deviation, 0);
    }
    return m;
}

static double squares_of(const rt_calibration_gpu *gpu, rt_quantity q, const double *weights)
{
    double sum = 0;
    for (size_t i = 0; i < gpu->fit[q].count; i++) sum += weights[i] * gpu->anchors[gpu->fit[q].anchor[i]].residual[q];
    return sum;
}

/* The logarithm of the marginal likelihood, without a constant: a Student's t with six pseudo-rows. */
static double evidence(const rt_calibration_gpu *gpu, rt_quantity q, double general, double idle, double *weights)
{
    dense m = covariance_of(gpu, q, general, idle);
    for (size_t i = 0; i < m.n; i++) weights[i] = gpu->anchors[gpu->fit[q].anchor[i]].residual[q];
    double logarithm = solve(&m, weights);
    return -logarithm / 2 - (6 + (double)m.n) / 2 * log1p(squares_of(gpu, q, weights) / 6);
}

static void assert_close(double got, double wanted, const char *what, int trial)
{
    if (!(fabs(got - wanted) <= 1e-7 * (1 + fabs(wanted))))
        fail_msg("trial %d: %s %.12g, not %.12g", trial, what, got, wanted);
}

static void a_fit_is_its_definition(void **state)
{
    (void)state;
    generator r = {.state = 101};
    for (int trial = 0; trial < TRIALS; trial++) {
        mdot_calibration *c = make_site(&r);
        assert_int_equal(rt_calibration_fit(c, NULL), MDOT_OK);
        for (int quantity = 0; quantity < RT_QUANTITIES; quantity++) {
            rt_quantity q = (rt_quantity)quantity;
            const rt_calibration_gpu *gpu = &c->gpus[0];
            const rt_fit *fit = &gpu->fit[q];
            double weights[MOST], neutral[MOST], deviation = 0, host = 0, outliers = 0;
            size_t rows = 0, n = fit->count;
            for (size_t i = 0; i < gpu->anchor_count; i++) {
                if (gpu->anchors[i].row_count[q] == 0) continue;
                assert_int_equal(fit->anchor[rows++], i);
                deviation += gpu->anchors[i].step.deviation[q];
                host += gpu->anchors[i].step.host_share;
            }
            assert_int_equal(n, rows);
            if (n == 0) continue;
            dense m = covariance_of(gpu, q, fit->general, fit->idle);
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j <= i; j++) {
                    double product = 0;
                    for (size_t k = 0; k <= j; k++) product += fit->factor[i * n + k] * fit->factor[j * n + k];
                    assert_close(product, m.value[i][j], "covariance", trial);
                }
            double chosen = evidence(gpu, q, fit->general, fit->idle, weights);
            for (size_t i = 0; i < n; i++) assert_close(fit->weight[i], weights[i], "weight", trial);
            assert_close(fit->deviation, deviation / (double)n, "deviation", trial);
            assert_close(fit->host_share, host / (double)n, "host share", trial);
            double spread = (6 + squares_of(gpu, q, weights)) / (6 + (double)n), jobs = 4;
            assert_close(fit->spread, fmax(spread, 0.6), "spread", trial);
            for (size_t i = 0; i < n; i++) { /* the mean over jobs, with four that are none */
                const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
                bool is_next =
                    i > 0 && a->step.job != RT_NO_JOB && gpu->anchors[fit->anchor[i - 1]].step.job == a->step.job;
                if (is_next) assert_close(a->own[q], gpu->anchors[fit->anchor[i - 1]].own[q], "own of a job", trial);
                if (is_next) continue;
                outliers += fmin(a->own[q], 4);
                jobs++;
            }
            assert_close(fit->outliers, outliers / jobs, "outliers", trial);
            static const double general[][2] = {{1, 0}, {0.25, -1}, {4, -1.5}, {RT_CALIBRATION_MOST_GENERAL, -3}},
                                idle[][2] = {{0, 0}, {0.2, -1}, {0.8, -2}}; /* scales, and logarithms of priors */
            double most = -INFINITY, belief = 0;
            for (size_t k = 0; k < 12 && n >= 3; k++) {
                const double *g = general[k % 4], *e = idle[k / 4];
                double prior = g[1] + e[1], likely = evidence(gpu, q, g[0], e[0], neutral) + prior;
                most = fmax(most, likely);
                if (g[0] == fit->general && e[0] == fit->idle) belief = chosen + prior;
            }
            if (n >= 3 && !(belief >= most - 1e-9)) fail_msg("trial %d: unlikely scales", trial);
            if (n < 3) assert_true(fit->general == 1 && fit->idle == 0);
        }
        rt_calibration_free(c);
    }
}

/* A step's correction and what is known about it are those of the Gaussian process. */
static void a_correction_is_its_definition(void **state)
{
    (void)state;
    generator r = {.state = 202};
    const rt_quantity q = RT_QUANTITY_MEMORY; /* a time also follows the rows of its job */
    for (int trial = 0; trial < TRIALS; trial++) {
        mdot_calibration *c = make_site(&r);
        assert_int_equal(rt_calibration_fit(c, NULL), MDOT_OK);
        const rt_calibration_gpu *gpu = &c->gpus[0];
        const rt_fit *fit = &gpu->fit[q];
        for (int k = 0; k < 6 && fit->count > 0; k++) {
            rt_step step = random_step(&r, k == 5 ? RT_NO_JOB : (uint32_t)k);
            step.is_new_gpu = gpu->is_new;
            double with[MOST], solved[MOST], mean = 0, explained = 0, own = -1, terms[RT_TERMS], parts[RT_TERMS] = {0};
            for (size_t i = 0; i < fit->count; i++) {
                const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
                solved[i] = with[i] = shared(a, &step, q, fit->general);
                mean += with[i] * fit->weight[i];
                if (a->step.job == step.job && step.job != RT_NO_JOB)
                    own = fmax(own, rt_own_correlation(&a->step, &step) * a->own[q]);
            }
            dense m = covariance_of(gpu, q, fit->general, fit->idle);
            solve(&m, solved);
            for (size_t i = 0; i < fit->count; i++) explained += solved[i] * with[i];
            double stated = pow(step.deviation[q], 2);
            double whole = rt_common_terms(&step, &step, q, fit->general, terms) + fmax(own, 0);
            double left = fmax(whole * stated - explained, 0), known = fmin(fmax(1 - left / stated, 0), 1);
            left += known * rt_noise(step.deviation[q], fit->idle) + (own < 0 ? fit->outliers * stated : 0);
            rt_corrected got;
            rt_calibration_correct(c, gpu, q, &step, &got);
            assert_close(got.mean, fmin(fmax(mean, -log(64)), log(64)), "mean", trial);
            assert_close(got.interval, fmin(fmax(sqrt(fit->spread * left / stated), 0.05), 4), "interval", trial);
            double believed[RT_TERMS], sum = 0;
            rt_calibration_believe(c, gpu, q, &step, believed);
            terms[RT_TERM_GPU] += terms[RT_TERM_SITE];
            terms[RT_TERM_JOB] += fmax(own, 0);
            for (int t = 0; t < RT_TERMS; t++) sum += got.by_term[t];
            assert_close(sum, mean, "sum of terms", trial);
            for (int t = RT_TERM_GPU; t < RT_TERMS; t++) {
                for (size_t i = 0; i < fit->count; i++) {
                    const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
                    rt_common_terms(&a->step, &step, q, fit->general, parts);
                    parts[RT_TERM_GPU] += parts[RT_TERM_SITE];
                    if (a->step.job == step.job && step.job != RT_NO_JOB)
                        parts[RT_TERM_JOB] += rt_own_correlation(&a->step, &step) * a->own[q];
                    solved[i] = with[i] = parts[t] * pow(fmin(a->step.deviation[q], step.deviation[q]), 2);
                }
                m = covariance_of(gpu, q, fit->general, fit->idle);
                solve(&m, solved);
                double variance = 0;
                for (size_t i = 0; i < fit->count; i++) variance += solved[i] * with[i];
                double part = terms[t] > 0 ? fmin(variance / (terms[t] * stated), 1) : 0;
                assert_close(believed[t], part, "belief", trial);
            }
            assert_true(believed[RT_TERM_SITE] == 0);
        }
        rt_calibration_free(c);
    }
}

/* GPU models with equal rows are equal messages about the site: the inverse of the site's mean is a line in the inverse
 * of their number. A GPU without rows gets the site's offset and nothing else. */
static void equal_gpus_are_equal_messages(void **state)
{
    (void)state;
    generator r = {.state = 303};
    for (int trial = 0; trial < TRIALS; trial++) {
        double inverse[3], explained[3];
        uint64_t seed = r.state = r.state * 6364136223846793005u + 1442695040888963407u;
        for (int k = 0; k < 3; k++) {
            size_t count = (size_t)1 << k;
            mdot_calibration *c = NULL;
            for (size_t g = 0; g < count; g++) {
                generator same = {.state = seed};
                mdot_calibration *one = make_site(&same);
                for (size_t i = 0; i < one->gpus[0].anchor_count; i++) one->gpus[0].anchors[i].row_count[1] = 3;
                if (c == NULL) {
                    c = one;
                } else {
                    c->gpus[g] = one->gpus[0];
                    one->gpu_count = 0;
                    rt_calibration_free(one);
                }
            }
            c->gpu_count = count;
            assert_int_equal(rt_calibration_fit(c, NULL), MDOT_OK);
            const rt_site *site = &c->site[RT_QUANTITY_MEMORY];
            inverse[k] = 1 / site->mean;
            explained[k] = site->explained;
            rt_step step = random_step(&r, RT_NO_JOB);
            step.is_new_gpu = c->gpus[0].is_new;
            rt_corrected got;
            double believed[RT_TERMS];
            rt_calibration_correct(c, NULL, RT_QUANTITY_MEMORY, &step, &got);
            rt_calibration_believe(c, NULL, RT_QUANTITY_MEMORY, &step, believed);
            double carried = fmin(pow(step.deviation[1] / site->deviation, 2), 1);
            assert_close(got.mean, carried * site->mean, "mean by the site", trial);
            assert_close(got.interval, fmax(sqrt(1 - carried * site->explained), 0.05), "interval by the site", trial);
            for (int t = 0; t < RT_TERMS; t++) assert_true(t == RT_TERM_SITE || believed[t] == 0);
            assert_true(believed[RT_TERM_SITE] > 0 && believed[RT_TERM_SITE] <= 1);
            rt_calibration_free(c);
        }
        assert_true(explained[0] < explained[1] && explained[1] < explained[2]);
        assert_close((inverse[0] - inverse[1]) / (inverse[1] - inverse[2]), 2, "slope", trial);
    }
}

/* Without any row, nothing is corrected and nothing is believed. */
static void no_rows_change_nothing(void **state)
{
    (void)state;
    generator r = {.state = 404};
    mdot_calibration *c = calloc(1, sizeof *c);
    assert_non_null(c);
    assert_int_equal(rt_calibration_fit(c, NULL), MDOT_OK);
    for (int q = 0; q < RT_QUANTITIES; q++) {
        rt_step step = random_step(&r, RT_NO_JOB);
        rt_corrected got;
        double believed[RT_TERMS];
        rt_calibration_correct(c, NULL, (rt_quantity)q, &step, &got);
        rt_calibration_believe(c, NULL, (rt_quantity)q, &step, believed);
        assert_true(got.mean == 0 && got.interval == 1);
        for (int t = 0; t < RT_TERMS; t++) assert_true(got.by_term[t] == 0 && believed[t] == 0);
    }
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fit_is_its_definition),
        cmocka_unit_test(a_correction_is_its_definition),
        cmocka_unit_test(equal_gpus_are_equal_messages),
        cmocka_unit_test(no_rows_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
