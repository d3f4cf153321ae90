/* test_calibration_transfer_random.c — calibration_transfer.c against its definition, on random anchors of three GPU
 * models. */
#include "tests/support/assertions.h"
#include "tests/support/random_site.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The residuals that two GPU models share, and a job's residual on a GPU model that lacks its rows. Each is a sum over
 * the jobs in common, in one precision class. */
static void transfers_are_their_definition(void **state)
{
    (void)state;
    site_generator r = {.state = 707};
    int carried = 0;
    for (int trial = 0; trial < SITE_TRIALS; trial++) {
        const rt_quantity q = trial % 2 == 0 ? RT_QUANTITY_MEMORY : RT_QUANTITY_TIME;
        size_t count = 3 + site_below(&r, 2 * SITE_USUAL);
        uint64_t seed = r.state;
        mdot_calibration *c = site_make_of(&r, count);
        for (c->gpu_count = 1; c->gpu_count < 3; c->gpu_count++) { /* the same steps, a job fewer, and other noise */
            site_generator same = {.state = seed};
            mdot_calibration *other = site_make_of(&same, count);
            rt_calibration_gpu *gpu = &c->gpus[c->gpu_count];
            *gpu = other->gpus[0];
            other->gpu_count = 0;
            rt_calibration_free(other);
            for (size_t i = 0; i < count; i++) {
                double own = c->gpu_count == 1 ? 0.2 : 2, deviation = gpu->anchors[i].step.deviation[q];
                gpu->anchors[i].residual[q] += own * deviation * site_normal(&r);
                if (gpu->anchors[i].step.job == c->gpu_count) gpu->anchors[i].row_count[q] = 0;
            }
        }
        for (size_t g = 0; g < 3; g++) c->gpus[g].name[0] = (char)("bac"[g]);
        assert_int_equal(rt_calibration_fit(c, true, NULL), MDOT_OK);
        for (size_t g = 0; g < 3; g++) { /* each job's residuals, given the others, in standard deviations */
            const rt_calibration_gpu *gpu = &c->gpus[g];
            const rt_fit *fit = &gpu->fit[q];
            site_dense m = site_covariance(gpu, q, fit->general, fit->idle), left;
            double residual[SITE_MOST];
            for (size_t first = 0, end; first < fit->count && fit->standard != NULL; first = end) {
                end = site_end_of_job(gpu, q, first);
                if (gpu->anchors[fit->anchor[first]].step.job == RT_NO_JOB) break;
                site_given_others(gpu, q, &m, first, end, residual, &left);
                for (size_t i = first; i < end; i++)
                    site_assert_close(fit->standard[i],
                                      residual[i - first] / sqrt(left.value[i - first][i - first] * fit->spread),
                                      "standard", trial);
            }
        }
        for (size_t from = 0; from < 3; from++)
            for (size_t to = 0; to < 3; to++)
                for (int class = 0; class < RT_PRECISION_CLASSES && from != to; class ++) {
                    const size_t both[2] = {from, to};
                    double mean[2] = {0}, product = 0, square = 0, squares = 0;
                    size_t jobs = 0, all_jobs = 0;
                    for (int pass = 0; pass < 2; pass++) {
                        for (int k = 0; k < 2; k++) mean[k] /= pass == 1 && jobs > 0 ? (double)jobs : 1;
                        for (uint32_t job = 0; job < SITE_JOBS; job++) {
                            double sum[2] = {0}, counts[2] = {0}, any[2] = {0}, p = 0, s = 0, w = 0;
                            for (int k = 0; k < 2; k++)
                                for (size_t i = 0; i < c->gpus[both[k]].fit[q].count; i++) {
                                    const rt_fit *fit = &c->gpus[both[k]].fit[q];
                                    const rt_step *step = &c->gpus[both[k]].anchors[fit->anchor[i]].step;
                                    any[k] += step->job == job;
                                    if (step->job != job || (int)rt_precision_class_of(step->precision) != class ||
                                        fit->standard == NULL)
                                        continue;
                                    sum[k] += fit->standard[i];
                                    counts[k]++;
                                }
                            all_jobs += pass == 0 && any[0] > 0 && any[1] > 0;
                            if (counts[0] == 0 || counts[1] == 0) continue;
                            if (pass == 0) {
                                for (int k = 0; k < 2; k++) mean[k] += sum[k] / counts[k];
                                jobs++;
                                continue;
                            }
                            for (size_t i = 0; i < c->gpus[from].fit[q].count; i++)
                                for (size_t j = 0; j < c->gpus[to].fit[q].count; j++) {
                                    const rt_fit *one = &c->gpus[from].fit[q], *two = &c->gpus[to].fit[q];
                                    const rt_step *a = &c->gpus[from].anchors[one->anchor[i]].step;
                                    const rt_step *b = &c->gpus[to].anchors[two->anchor[j]].step;
                                    if (a->job != job || b->job != job) continue;
                                    if ((int)rt_precision_class_of(a->precision) != class ||
                                        (int)rt_precision_class_of(b->precision) != class)
                                        continue;
                                    double x = one->standard[i] - mean[0], y = two->standard[j] - mean[1];
                                    double alike = rt_job_correlation(a, b);
                                    p += alike * x * y;
                                    s += alike * alike * (x * x + y * y) / 2;
                                    w += alike * alike;
                                }
                            if (w > 0) product += p / w, square += s / w, squares += p / w * (p / w);
                        }
                    }
                    double wanted = fmin(fmax((product - 0.5 * sqrt(squares)) / (2 + square), 0), 0.95);
                    if (jobs < 3) wanted = 0;
                    const rt_agreement *got = c->agreement[q] != NULL ? &c->agreement[q][from * 3 + to] : NULL;
                    assert_true(got != NULL || all_jobs < 3);
                    site_assert_close(got != NULL ? got->correlation[class] : 0, wanted, "correlation", trial);
                    if (got != NULL && all_jobs >= 3) site_assert_close(got->mean[class], mean[0], "mean", trial);
                }
        for (uint32_t job = 0; job < SITE_JOBS; job++)
            for (size_t to = 0; to < 3; to++) { /* the most informative row of the job on another GPU model */
                rt_step step = site_step(&r, job);
                double most = 0, standard = 0;
                size_t source = 3;
                bool has_rows = false;
                for (size_t i = 0; i < c->gpus[to].fit[q].count; i++)
                    has_rows = has_rows || c->gpus[to].anchors[c->gpus[to].fit[q].anchor[i]].step.job == job;
                int class = (int)rt_precision_class_of(step.precision);
                for (size_t from = 0; from < 3 && !has_rows && c->agreement[q] != NULL; from++)
                    for (size_t i = 0; i < c->gpus[from].fit[q].count; i++) {
                        const rt_fit *fit = &c->gpus[from].fit[q];
                        const rt_step *row = &c->gpus[from].anchors[fit->anchor[i]].step;
                        const rt_agreement *known = &c->agreement[q][from * 3 + to];
                        if (row->job != job || (int)rt_precision_class_of(row->precision) != class) continue;
                        double now = known->correlation[class] * rt_job_correlation(row, &step);
                        if (!(now > most)) continue;
                        most = now;
                        source = from;
                        standard = fit->standard[i] - known->mean[class];
                    }
                rt_carried got;
                rt_transfer_find(c, &c->gpus[to], q, &step, &got);
                assert_true(got.from == (source < 3 ? &c->gpus[source] : NULL));
                site_assert_close(got.correlation, most, "carried correlation", trial);
                site_assert_close(got.standard, standard, "carried residual", trial);
                carried += source < 3;
            }
        rt_calibration_free(c);
    }
    assert_true(carried > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(transfers_are_their_definition)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
