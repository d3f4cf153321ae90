/* random_site.c — see random_site.h. */
#include "tests/support/random_site.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static float shares[SITE_JOBS][RT_WORK_CLASSES];

size_t site_below(site_generator *r, size_t count)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(r->state >> 33) % count;
}

double site_unit(site_generator *r) { return (double)site_below(r, 1 << 30) / (1 << 30); }

double site_normal(site_generator *r)
{
    return sqrt(-2 * log(1 - site_unit(r))) * cos(6.283185307179586 * site_unit(r));
}

rt_step site_step(site_generator *r, uint32_t job)
{
    static const uint32_t precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_TF32, MDOT_PRECISION_AMP};
    return (rt_step){.job = job,
                     .share = job == RT_NO_JOB ? NULL : shares[job],
                     .precision = precisions[site_below(r, 3)],
                     .layout = (uint32_t)site_below(r, 2),
                     .torch = 200 + (uint32_t)site_below(r, 2),
                     .gpu_count = site_below(r, 4) == 0 ? 4 : 1,
                     .mode = site_below(r, 4) == 0,
                     .others = site_below(r, 3),
                     .batch = (double)(1 << site_below(r, 8)),
                     .host_share = site_unit(r),
                     .deviation = {0.05 + site_unit(r), 0.02 + 0.2 * site_unit(r)}};
}

mdot_calibration *site_make_of(site_generator *r, size_t count)
{
    mdot_calibration *c = calloc(1, sizeof *c);
    assert_non_null(c);
    for (int j = 0; j < SITE_JOBS; j++) {
        double sum = 0, part[4];
        memset(shares[j], 0, sizeof shares[j]);
        for (int k = 0; k < 4; k++) sum += part[k] = 0.05 + site_unit(r);
        for (int k = 0; k < 4; k++) shares[j][k] = (float)(part[k] / sum);
    }
    c->gpu_count = 1;
    rt_calibration_gpu *gpu = &c->gpus[0];
    gpu->is_new = site_below(r, 2) == 0;
    gpu->anchor_count = count;
    gpu->anchors = calloc(gpu->anchor_count, sizeof *gpu->anchors);
    assert_non_null(gpu->anchors);
    size_t nameless = site_below(r, 3);
    for (size_t i = 0; i < gpu->anchor_count; i++) {
        bool is_job = i + nameless < gpu->anchor_count || gpu->anchor_count <= nameless;
        uint32_t job = is_job ? (uint32_t)(i * SITE_JOBS / gpu->anchor_count) : RT_NO_JOB;
        rt_anchor *a = &gpu->anchors[i];
        a->step = site_step(r, job);
        a->step.is_new_gpu = gpu->is_new;
        for (int q = 0; q < RT_QUANTITIES; q++) {
            a->row_count[q] = site_below(r, 5) == 0 ? 0 : 1 + site_below(r, 40);
            double far = job == 1 ? 3 : 0.5;
            a->residual[q] = a->step.deviation[q] * (0.4 + far * site_normal(r));
        }
    }
    return c;
}

mdot_calibration *site_make(site_generator *r) { return site_make_of(r, 1 + site_below(r, SITE_USUAL)); }

double dense_solve(site_dense *m, double *x)
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

double site_shared(const rt_anchor *a, const rt_step *step, rt_quantity q, double general)
{
    double terms[RT_TERMS], sum = rt_common_terms(&a->step, step, q, general, terms);
    bool is_same = &a->step == step || (a->step.job == step->job && step->job != RT_NO_JOB);
    if (is_same) sum += rt_own_correlation(&a->step, step) * a->own[q];
    return sum * pow(fmin(a->step.deviation[q], step->deviation[q]), 2);
}

site_dense site_covariance(const rt_calibration_gpu *gpu, rt_quantity q, double general, double idle)
{
    const rt_fit *fit = &gpu->fit[q];
    site_dense m = {.n = fit->count};
    for (size_t i = 0; i < m.n; i++) {
        const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
        for (size_t j = 0; j < m.n; j++) m.value[i][j] = site_shared(a, &gpu->anchors[fit->anchor[j]].step, q, general);
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

double site_squares(const rt_calibration_gpu *gpu, rt_quantity q, const double *weights)
{
    double sum = 0;
    for (size_t i = 0; i < gpu->fit[q].count; i++) sum += weights[i] * gpu->anchors[gpu->fit[q].anchor[i]].residual[q];
    return sum;
}

double site_evidence(const rt_calibration_gpu *gpu, rt_quantity q, double general, double idle, double *weights)
{
    site_dense m = site_covariance(gpu, q, general, idle);
    for (size_t i = 0; i < m.n; i++) weights[i] = gpu->anchors[gpu->fit[q].anchor[i]].residual[q];
    double logarithm = dense_solve(&m, weights);
    return -logarithm / 2 - (6 + (double)m.n) / 2 * log1p(site_squares(gpu, q, weights) / 6);
}

void site_assert_close(double got, double wanted, const char *what, int trial)
{
    if (!(fabs(got - wanted) <= 1e-7 * (1 + fabs(wanted))))
        fail_msg("trial %d: %s %.12g, not %.12g", trial, what, got, wanted);
}

void site_given_others(const rt_calibration_gpu *gpu, rt_quantity q, const site_dense *m, size_t first, size_t end,
                       double *out_residual, site_dense *out)
{
    const rt_fit *fit = &gpu->fit[q];
    size_t n = fit->count, size = end - first;
    out->n = size;
    for (size_t j = 0; j <= size; j++) { /* of a column of the covariance; at last, of the residuals */
        site_dense rest = {.n = n - size};
        double column[SITE_MOST];
        for (size_t a = 0, row = 0; a < n; a++) {
            if (a >= first && a < end) continue;
            for (size_t b = 0, at = 0; b < n; b++)
                if (b < first || b >= end) rest.value[row][at++] = m->value[a][b];
            column[row++] = j < size ? m->value[a][first + j] : gpu->anchors[fit->anchor[a]].residual[q];
        }
        dense_solve(&rest, column);
        for (size_t i = 0; i < size; i++) {
            double known = 0;
            for (size_t a = 0, row = 0; a < n; a++)
                if (a < first || a >= end) known += m->value[first + i][a] * column[row++];
            if (j < size)
                out->value[i][j] = m->value[first + i][first + j] - known;
            else
                out_residual[i] = gpu->anchors[fit->anchor[first + i]].residual[q] - known;
        }
    }
}

size_t site_end_of_job(const rt_calibration_gpu *gpu, rt_quantity q, size_t first)
{
    const rt_fit *fit = &gpu->fit[q];
    uint32_t job = gpu->anchors[fit->anchor[first]].step.job;
    size_t end = first + 1;
    while (end < fit->count && job != RT_NO_JOB && gpu->anchors[fit->anchor[end]].step.job == job) end++;
    return end;
}
