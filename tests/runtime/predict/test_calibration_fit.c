/* test_calibration_fit.c — calibration_fit.c against its definition: the covariance is computed again, entry by entry,
 * and every answer follows from it by elimination, on random anchors. */
#include "tests/support/assertions.h"
#include "tests/support/random_site.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A job is an outlier by the part of its squared mean residual, given the other jobs, that exceeds 1.7 standard
 * deviations in the units of a typical job; a job alone by the part that exceeds one. It is looked for twice, because
 * an outlier moves what the other jobs predict. */
static void find_outliers(mdot_calibration *c, rt_quantity q)
{
    rt_calibration_gpu *gpu = &c->gpus[0];
    size_t n = gpu->fit[q].count, jobs = 0, firsts[SITE_MOST + 1];
    for (size_t first = 0; first < n; first = site_end_of_job(gpu, q, first)) firsts[jobs++] = first;
    firsts[jobs] = n;
    for (size_t i = 0; i < gpu->anchor_count; i++) gpu->anchors[i].own[q] = 0;
    for (int round = 0; round < (jobs > 1 ? 2 : 1); round++) {
        double surprise[SITE_MOST], ordered[SITE_MOST], residual[SITE_MOST], scale = 1, limit = 1;
        site_dense m = site_covariance(gpu, q, 1, 0), left;
        for (size_t k = 0; k < jobs; k++) {
            size_t first = firsts[k], size = firsts[k + 1] - first;
            double mean = 0, variance = 0;
            site_given_others(gpu, q, &m, first, firsts[k + 1], residual, &left);
            for (size_t i = 0; i < size; i++) {
                const rt_anchor *a = &gpu->anchors[gpu->fit[q].anchor[first + i]];
                mean += residual[i] / (double)size;
                for (size_t j = 0; j < size; j++) {
                    const rt_anchor *b = &gpu->anchors[gpu->fit[q].anchor[first + j]];
                    double smaller = fmin(a->step.deviation[q], b->step.deviation[q]);
                    variance +=
                        left.value[i][j] - a->own[q] * rt_own_correlation(&a->step, &b->step) * smaller * smaller;
                }
            }
            surprise[k] = ordered[k] = mean * mean / fmax(variance / (double)(size * size), RT_LEAST_PIVOT);
        }
        if (jobs > 1) {
            qsort(ordered, jobs, sizeof *ordered, ascending);
            double median = (ordered[jobs / 2] + ordered[(jobs - 1) / 2]) / 2, count = (double)jobs;
            double typical = fmin(median / 0.455, 9);
            scale = typical > 1 ? typical : (4 + count * typical) / (4 + count);
            limit = 1.7 * 1.7;
        }
        for (size_t k = 0; k < jobs; k++)
            for (size_t i = firsts[k]; i < firsts[k + 1]; i++)
                gpu->anchors[gpu->fit[q].anchor[i]].own[q] =
                    fmin(fmax(surprise[k] / (scale * limit) - 1, 0), RT_CALIBRATION_MOST_OWN);
    }
}

static void outliers_are_those_of_the_definition(void **state)
{
    (void)state;
    site_generator r = {.state = 505};
    int outliers = 0, alone = 0;
    for (int trial = 0; trial < SITE_TRIALS; trial++) {
        mdot_calibration *c = site_make(&r);
        if (trial % 8 == 0) c->gpus[0].anchor_count = 1;
        for (size_t i = 0; i < c->gpus[0].anchor_count && trial % 5 == 0; i++)
            c->gpus[0].anchors[i].residual[0] *= 1e-3;
        for (size_t i = 0; i < c->gpus[0].anchor_count; i++)
            c->gpus[0].anchors[i].own[0] = site_unit(&r); /* forgotten */
        assert_int_equal(rt_calibration_fit(c, true, NULL), MDOT_OK);
        for (int q = 0; q < RT_QUANTITIES; q++) {
            const rt_fit *fit = &c->gpus[0].fit[q];
            double own[SITE_MOST];
            for (size_t i = 0; i < fit->count; i++) own[i] = c->gpus[0].anchors[fit->anchor[i]].own[q];
            find_outliers(c, (rt_quantity)q);
            for (size_t i = 0; i < fit->count; i++) {
                site_assert_close(own[i], c->gpus[0].anchors[fit->anchor[i]].own[q], "own", trial);
                outliers += own[i] > 0;
            }
            alone += fit->count == 1;
        }
        rt_calibration_free(c);
    }
    assert_true(outliers > SITE_TRIALS / 2 && alone > 20);
}

/* The model itself draws residuals with each of the scales: the likeliest one is chosen, and each is so for some. */
static void each_scale_is_chosen_where_it_is_likeliest(void **state)
{
    (void)state;
    static const double general[] = {1, 0.25, 4, RT_CALIBRATION_MOST_GENERAL}, idle[] = {0, 0.2, 0.8};
    static const double general_prior[] = {0, -1, -1.5, -3}, idle_prior[] = {0, -1, -2};
    site_generator r = {.state = 606};
    int chosen[12] = {0};
    const rt_quantity q = RT_QUANTITY_MEMORY;
    for (int trial = 0; trial < SITE_TRIALS; trial++) {
        mdot_calibration *c = site_make_of(&r, trial % 5 == 0 ? SITE_USUAL : SITE_MOST);
        rt_calibration_gpu *gpu = &c->gpus[0];
        double lower[SITE_MOST][SITE_MOST] = {{0}}, weights[SITE_MOST], belief[12];
        uint32_t index[SITE_MOST];
        gpu->fit[q].anchor = index;
        gpu->fit[q].count = gpu->anchor_count;
        for (size_t i = 0; i < gpu->anchor_count; i++) {
            index[i] = (uint32_t)i;
            gpu->anchors[i].row_count[q] = 16;
            gpu->anchors[i].own[q] = 0;
            gpu->anchors[i].step.deviation[q] = 0.1;
        }
        site_dense m = site_covariance(gpu, q, general[trial % 4], idle[trial / 4 % 3]);
        for (size_t i = 0; i < m.n; i++) {
            double sum = 0;
            for (size_t j = 0; j <= i; j++) {
                lower[i][j] = m.value[i][j];
                for (size_t k = 0; k < j; k++) lower[i][j] -= lower[i][k] * lower[j][k];
                lower[i][j] = i == j ? sqrt(fmax(lower[i][j], 0)) : lower[i][j] / lower[j][j];
                weights[i] = i == j ? site_normal(&r) : weights[i];
                sum += lower[i][j] * weights[j];
            }
            gpu->anchors[i].residual[q] = sum;
        }
        gpu->fit[q].anchor = NULL;
        assert_int_equal(rt_calibration_fit(c, true, NULL), MDOT_OK);
        size_t best = 0, got = 12;
        for (size_t k = 0; k < 12; k++) {
            double g = general[k % 4], e = idle[k / 4];
            belief[k] = site_evidence(gpu, q, g, e, weights) + general_prior[k % 4] + idle_prior[k / 4];
            if (belief[k] > belief[best]) best = k;
            if (gpu->fit[q].general == g && gpu->fit[q].idle == e) got = k;
        }
        if (gpu->fit[q].count >= 3) {
            if (got == 12 || belief[got] < belief[best] - 1e-9)
                fail_msg("trial %d: scale %zu, not %zu", trial, got, best);
            chosen[got]++;
        }
        rt_calibration_free(c);
    }
    for (int k = 0; k < 12; k++)
        if (chosen[k] == 0) fail_msg("scale %d is never chosen", k);
}

static void a_fit_is_its_definition(void **state)
{
    (void)state;
    site_generator r = {.state = 101};
    for (int trial = 0; trial < SITE_TRIALS; trial++) {
        mdot_calibration *c = site_make(&r);
        assert_int_equal(rt_calibration_fit(c, true, NULL), MDOT_OK);
        for (int quantity = 0; quantity < RT_QUANTITIES; quantity++) {
            rt_quantity q = (rt_quantity)quantity;
            const rt_calibration_gpu *gpu = &c->gpus[0];
            const rt_fit *fit = &gpu->fit[q];
            double weights[SITE_MOST], neutral[SITE_MOST], deviation = 0, host = 0, outliers = 0;
            size_t rows = 0, n = fit->count;
            for (size_t i = 0; i < gpu->anchor_count; i++) {
                if (gpu->anchors[i].row_count[q] == 0) continue;
                assert_int_equal(fit->anchor[rows++], i);
                deviation += gpu->anchors[i].step.deviation[q];
                host += gpu->anchors[i].step.host_share;
            }
            assert_int_equal(n, rows);
            if (n == 0) continue;
            site_dense m = site_covariance(gpu, q, fit->general, fit->idle);
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j <= i; j++) {
                    double product = 0;
                    for (size_t k = 0; k <= j; k++) product += fit->factor[i * n + k] * fit->factor[j * n + k];
                    site_assert_close(product, m.value[i][j], "covariance", trial);
                }
            double chosen = site_evidence(gpu, q, fit->general, fit->idle, weights);
            for (size_t i = 0; i < n; i++) site_assert_close(fit->weight[i], weights[i], "weight", trial);
            site_assert_close(fit->deviation, deviation / (double)n, "deviation", trial);
            site_assert_close(fit->host_share, host / (double)n, "host share", trial);
            double spread = (6 + site_squares(gpu, q, weights)) / (6 + (double)n), jobs = 4;
            site_assert_close(fit->spread, fmax(spread, 0.6), "spread", trial);
            for (size_t i = 0; i < n; i++) { /* the mean over jobs, with four that are none */
                const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
                bool is_next =
                    i > 0 && a->step.job != RT_NO_JOB && gpu->anchors[fit->anchor[i - 1]].step.job == a->step.job;
                if (is_next)
                    site_assert_close(a->own[q], gpu->anchors[fit->anchor[i - 1]].own[q], "own of a job", trial);
                if (is_next) continue;
                outliers += fmin(a->own[q], 4);
                jobs++;
            }
            site_assert_close(fit->outliers, outliers / jobs, "outliers", trial);
            static const double general[][2] = {{1, 0}, {0.25, -1}, {4, -1.5}, {RT_CALIBRATION_MOST_GENERAL, -3}},
                                idle[][2] = {{0, 0}, {0.2, -1}, {0.8, -2}}; /* scales, and logarithms of priors */
            double most = -INFINITY, belief = 0;
            for (size_t k = 0; k < 12 && n >= 3; k++) {
                const double *g = general[k % 4], *e = idle[k / 4];
                double prior = g[1] + e[1], likely = site_evidence(gpu, q, g[0], e[0], neutral) + prior;
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
    site_generator r = {.state = 202};
    int followed = 0;
    for (int trial = 0; trial < 2 * SITE_TRIALS; trial++) {
        const rt_quantity q = trial % 2 == 0 ? RT_QUANTITY_MEMORY : RT_QUANTITY_TIME;
        mdot_calibration *c = site_make(&r);
        assert_int_equal(rt_calibration_fit(c, true, NULL), MDOT_OK);
        const rt_calibration_gpu *gpu = &c->gpus[0];
        const rt_fit *fit = &gpu->fit[q];
        for (int k = 0; k < 6 && fit->count > 0; k++) {
            rt_step step = site_step(&r, k == 5 ? RT_NO_JOB : (uint32_t)k);
            if (trial % 4 == 1) { /* a measured step, or one of another batch */
                step = gpu->anchors[site_below(&r, gpu->anchor_count)].step;
                step.batch *= (double)(1 + site_below(&r, 3));
            }
            step.is_new_gpu = gpu->is_new;
            double with[SITE_MOST], solved[SITE_MOST], mean = 0, explained = 0, own = -1, terms[RT_TERMS],
                                                       parts[RT_TERMS] = {0};
            for (size_t i = 0; i < fit->count; i++) {
                const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
                solved[i] = with[i] = site_shared(a, &step, q, fit->general);
                mean += with[i] * fit->weight[i];
                if (a->step.job == step.job && step.job != RT_NO_JOB)
                    own = fmax(own, rt_own_correlation(&a->step, &step) * a->own[q]);
            }
            site_dense m = site_covariance(gpu, q, fit->general, fit->idle);
            dense_solve(&m, solved);
            for (size_t i = 0; i < fit->count; i++) explained += solved[i] * with[i];
            double stated = pow(step.deviation[q], 2);
            double whole = rt_common_terms(&step, &step, q, fit->general, terms) + fmax(own, 0);
            double left = fmax(whole * stated - explained, 0), known = fmin(fmax(1 - left / stated, 0), 1);
            left += known * rt_noise(step.deviation[q], fit->idle) + (own < 0 ? fit->outliers * stated : 0);
            rt_corrected got;
            rt_calibration_correct(c, gpu, q, &step, &got);
            mean = fmin(fmax(mean, -log(64)), log(64));
            double interval = fmin(fmax(sqrt(fit->spread * left / stated), 0.05), 4), half_width = 0;
            double weight = 0, row_mean = 0, contradiction = 0, drift = INFINITY;
            for (size_t i = 0; i < fit->count; i++) { /* rows that differ in the batch alone */
                const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
                weight += 1 / rt_drift(&a->step, &step);
                row_mean += a->residual[q] / rt_drift(&a->step, &step);
                drift = fmin(drift, rt_drift(&a->step, &step));
            }
            row_mean /= weight;
            for (size_t i = 0; i < fit->count; i++) {
                const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
                contradiction += pow(a->residual[q] - row_mean, 2) / rt_drift(&a->step, &step) / weight;
            }
            if (q == RT_QUANTITY_TIME && weight > 0 && drift + contradiction < interval * interval * stated) {
                followed++;
                mean = fmin(fmax(row_mean, -log(64)), log(64)); /* of the terms, too */
                half_width = 1.645 * sqrt(drift + contradiction);
                interval = fmin(fmax(sqrt((drift + contradiction) / stated), 0.05), 4);
            }
            site_assert_close(got.mean, mean, "mean", trial);
            site_assert_close(got.interval, interval, "interval", trial);
            site_assert_close(got.half_width, half_width, "half-width", trial);
            double believed[RT_TERMS], sum = 0;
            rt_calibration_believe(c, gpu, q, &step, believed);
            terms[RT_TERM_GPU] += terms[RT_TERM_SITE];
            terms[RT_TERM_JOB] += fmax(own, 0);
            for (int t = 0; t < RT_TERMS; t++) sum += got.by_term[t];
            if (fabs(mean) < log(64)) site_assert_close(sum, mean, "sum of terms", trial);
            for (int t = RT_TERM_GPU; t < RT_TERMS; t++) {
                for (size_t i = 0; i < fit->count; i++) {
                    const rt_anchor *a = &gpu->anchors[fit->anchor[i]];
                    rt_common_terms(&a->step, &step, q, fit->general, parts);
                    parts[RT_TERM_GPU] += parts[RT_TERM_SITE];
                    if (a->step.job == step.job && step.job != RT_NO_JOB)
                        parts[RT_TERM_JOB] += rt_own_correlation(&a->step, &step) * a->own[q];
                    solved[i] = with[i] = parts[t] * pow(fmin(a->step.deviation[q], step.deviation[q]), 2);
                }
                m = site_covariance(gpu, q, fit->general, fit->idle);
                dense_solve(&m, solved);
                double variance = 0;
                for (size_t i = 0; i < fit->count; i++) variance += solved[i] * with[i];
                double part = terms[t] > 0 ? fmin(variance / (terms[t] * stated), 1) : 0;
                site_assert_close(believed[t], part, "belief", trial);
            }
            assert_true(believed[RT_TERM_SITE] == 0);
        }
        rt_calibration_free(c);
    }
    assert_true(followed > 100);
}

/* GPU models with equal rows are equal messages about the site: the inverse of the site's mean is a line in the inverse
 * of their number. A GPU without rows gets the site's offset and nothing else. */
static void equal_gpus_are_equal_messages(void **state)
{
    (void)state;
    site_generator r = {.state = 303};
    for (int trial = 0; trial < SITE_TRIALS; trial++) {
        double inverse[3], explained[3];
        uint64_t seed = r.state = r.state * 6364136223846793005u + 1442695040888963407u;
        for (int k = 0; k < 3; k++) {
            size_t count = (size_t)1 << k;
            mdot_calibration *c = NULL;
            for (size_t g = 0; g < count; g++) {
                site_generator same = {.state = seed};
                mdot_calibration *one = site_make(&same);
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
            assert_int_equal(rt_calibration_fit(c, true, NULL), MDOT_OK);
            const rt_site *site = &c->site[RT_QUANTITY_MEMORY];
            inverse[k] = 1 / site->mean;
            explained[k] = site->explained;
            rt_step step = site_step(&r, RT_NO_JOB);
            step.is_new_gpu = c->gpus[0].is_new;
            rt_corrected got;
            double believed[RT_TERMS];
            rt_calibration_correct(c, NULL, RT_QUANTITY_MEMORY, &step, &got);
            rt_calibration_believe(c, NULL, RT_QUANTITY_MEMORY, &step, believed);
            double carried = fmin(pow(step.deviation[1] / site->deviation, 2), 1);
            site_assert_close(got.mean, carried * site->mean, "mean by the site", trial);
            site_assert_close(got.interval, fmax(sqrt(1 - carried * site->explained), 0.05), "interval by the site",
                              trial);
            for (int t = 0; t < RT_TERMS; t++) assert_true(t == RT_TERM_SITE || believed[t] == 0);
            assert_true(believed[RT_TERM_SITE] > 0 && believed[RT_TERM_SITE] <= 1);
            rt_calibration_free(c);
        }
        assert_true(explained[0] < explained[1] && explained[1] < explained[2]);
        site_assert_close((inverse[0] - inverse[1]) / (inverse[1] - inverse[2]), 2, "slope", trial);
    }
}

/* A file holds rows, scales and outliers; the rest of the fit follows from them. */
static void a_restored_fit_corrects_as_before(void **state)
{
    (void)state;
    site_generator r = {.state = 404};
    size_t corrected = 0;
    for (int trial = 0; trial < SITE_TRIALS; trial++) {
        site_generator same = {.state = r.state = r.state * 6364136223846793005u + 1442695040888963407u}, again = same;
        mdot_calibration *fitted = site_make(&same), *restored = site_make(&again);
        assert_int_equal(rt_calibration_fit(fitted, true, NULL), MDOT_OK);
        for (int q = 0; q < RT_QUANTITIES; q++) {
            restored->gpus[0].fit[q].general = fitted->gpus[0].fit[q].general;
            restored->gpus[0].fit[q].idle = fitted->gpus[0].fit[q].idle;
            for (size_t i = 0; i < fitted->gpus[0].anchor_count; i++)
                restored->gpus[0].anchors[i].own[q] = fitted->gpus[0].anchors[i].own[q];
        }
        assert_int_equal(rt_calibration_fit(restored, false, NULL), MDOT_OK);
        for (int k = 0; k < 8; k++) {
            rt_step step = site_step(&r, RT_NO_JOB);
            step.is_new_gpu = fitted->gpus[0].is_new;
            rt_corrected a, b;
            rt_quantity q = (rt_quantity)(k % RT_QUANTITIES);
            rt_calibration_correct(fitted, &fitted->gpus[0], q, &step, &a);
            rt_calibration_correct(restored, &restored->gpus[0], q, &step, &b);
            site_assert_close(b.mean, a.mean, "mean", trial);
            site_assert_close(b.interval, a.interval, "interval", trial);
            corrected += a.mean != 0;
        }
        rt_calibration_free(fitted);
        rt_calibration_free(restored);
    }
    assert_true(corrected > SITE_TRIALS);
}

/* The site is the common part of all GPU models: a Gaussian variable of which each model's offset, as far as its rows
 * tell it, is a noisy observation. */
static void the_site_is_the_common_part_of_its_gpus(void **state)
{
    (void)state;
    site_generator r = {.state = 808};
    for (int trial = 0; trial < SITE_TRIALS; trial++) {
        mdot_calibration *c = site_make(&r);
        size_t count = 2 + site_below(&r, 6);
        for (c->gpu_count = 1; c->gpu_count < count; c->gpu_count++) {
            mdot_calibration *other = site_make(&r);
            rt_calibration_gpu *gpu = &c->gpus[c->gpu_count];
            *gpu = other->gpus[0];
            other->gpu_count = 0;
            rt_calibration_free(other);
            gpu->is_new = c->gpus[0].is_new;
            gpu->name[0] = (char)('a' + c->gpu_count);
            for (size_t i = 0; i < gpu->anchor_count; i++) {
                gpu->anchors[i].step.is_new_gpu = gpu->is_new;
                gpu->anchors[i].step.job = RT_NO_JOB; /* nothing is carried */
                gpu->anchors[i].step.host_share = 0;  /* so that all GPU models have one prior */
            }
        }
        for (size_t i = 0; i < c->gpus[0].anchor_count; i++) c->gpus[0].anchors[i].step.host_share = 0;
        assert_int_equal(rt_calibration_fit(c, true, NULL), MDOT_OK);
        for (int quantity = 0; quantity < RT_QUANTITIES; quantity++) {
            rt_quantity q = (rt_quantity)quantity;
            double deviation = 0, offset[SITE_MOST], with[SITE_MOST], seen[SITE_MOST], terms[RT_TERMS], mean = 0,
                   known = 0;
            site_dense m = {.n = 0};
            for (size_t g = 0; g < count; g++)
                if (c->gpus[g].fit[q].count > 0) deviation += c->gpus[g].fit[q].deviation, m.n++;
            if (m.n == 0) continue;
            deviation /= (double)m.n;
            size_t at = 0;
            double site_variance = 0;
            for (size_t g = 0; g < count; g++) {
                const rt_fit *fit = &c->gpus[g].fit[q];
                if (fit->count == 0) continue;
                rt_step step = {.job = RT_NO_JOB,
                                .gpu_count = 1,
                                .batch = 1,
                                .is_new_gpu = fit->is_new_gpu,
                                .host_share = fit->host_share};
                step.deviation[q] = fit->deviation;
                rt_corrected got;
                double believed[RT_TERMS];
                rt_calibration_correct(c, &c->gpus[g], q, &step, &got);
                rt_calibration_believe(c, &c->gpus[g], q, &step, believed);
                rt_common_terms(&step, &step, q, 1, terms);
                double whole = (terms[RT_TERM_SITE] + terms[RT_TERM_GPU]) * deviation * deviation;
                site_variance = terms[RT_TERM_SITE] * deviation * deviation;
                double part = fmin(believed[RT_TERM_GPU], 1 - 1e-9);
                assert_true(part > 1e-9);
                for (size_t k = 0; k < m.n; k++) m.value[at][k] = site_variance;
                m.value[at][at] = whole + whole * (1 - part) / part;
                with[at] = seen[at] = site_variance;
                offset[at++] = (got.by_term[RT_TERM_SITE] + got.by_term[RT_TERM_GPU]) / part;
            }
            dense_solve(&m, seen);
            for (size_t k = 0; k < at; k++) {
                mean += seen[k] * offset[k];
                known += seen[k] * with[k];
            }
            const rt_site *site = &c->site[q];
            site_assert_close(site->deviation, deviation, "deviation", trial);
            site_assert_close(site->mean, fmin(fmax(mean, -log(64)), log(64)), "site", trial);
            site_assert_close(site->explained, known / (deviation * deviation), "explained", trial);
        }
        rt_calibration_free(c);
    }
}

/* Without any row, nothing is corrected and nothing is believed. */
static void no_rows_change_nothing(void **state)
{
    (void)state;
    site_generator r = {.state = 404};
    mdot_calibration *c = calloc(1, sizeof *c);
    assert_non_null(c);
    assert_int_equal(rt_calibration_fit(c, true, NULL), MDOT_OK);
    for (int q = 0; q < RT_QUANTITIES; q++) {
        rt_step step = site_step(&r, RT_NO_JOB);
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
        cmocka_unit_test(outliers_are_those_of_the_definition),
        cmocka_unit_test(each_scale_is_chosen_where_it_is_likeliest),
        cmocka_unit_test(a_fit_is_its_definition),
        cmocka_unit_test(a_correction_is_its_definition),
        cmocka_unit_test(equal_gpus_are_equal_messages),
        cmocka_unit_test(a_restored_fit_corrects_as_before),
        cmocka_unit_test(the_site_is_the_common_part_of_its_gpus),
        cmocka_unit_test(no_rows_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
