/* test_calibration_transfer.c — a job's residual is carried to another GPU model if rows for several jobs on both show
 * a correlation. The closed form gives the amount; without a correlation nothing is carried. */
#include "runtime/job/job_model.h"
#include "tests/support/assertions.h"
#include "tests/support/calibration_site.h"

#include "runtime/perf/analysis.h"
#include "runtime/predict/calibration.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { JOBS = CALIBRATION_SITE_JOBS };
static const char A100[] = "A100-SXM-40GB"; /* the full name, as in a calibration */

typedef calibration_site site;

static int open_site(void **state)
{
    site *s = *state = calibration_site_open();
    if (s == NULL) return -1;
    for (size_t i = 0; i < JOBS; i++) s->jobs[i] = predict_job(3 + i, 3 + i);
    return 0;
}

static mdot_configuration configure(const char *gpu) { return calibration_site_configure(gpu, 16); }

/* Adds a job step; the time and memory differ from the predictions by the factor exp(residual). */
static void add_row(site *s, size_t job, mdot_configuration c, double residual)
{
    calibration_site_add(s, s->jobs[job], c, exp(residual), exp(residual));
}

static mdot_calibration_factors factors_of(site *s, const mdot_calibration *calibration, size_t job,
                                           mdot_configuration c)
{
    return calibration_site_factors(s, calibration, s->jobs[job], c);
}

static double alternating(size_t job) { return job % 2 == 0 ? 0.2 : -0.2; }

/* The first `common` jobs have rows on T4 and A100 with equal residuals; the next one has a row on A100 alone. */
static void add_agreeing(site *s, size_t common)
{
    for (size_t i = 0; i < common; i++) {
        add_row(s, i, configure("T4"), alternating(i));
        add_row(s, i, configure("A100"), alternating(i));
    }
    add_row(s, common, configure("A100"), alternating(common));
}

/* Asserts bit-identical corrections for all jobs on T4, with and without the rows on A100. */
static void expect_nothing_carried(site *s)
{
    mdot_calibration *both = calibration_site_calibrate(s);
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->c[i].gpu, "T4") == 0) {
            s->rows[kept] = s->rows[i];
            s->c[kept] = s->c[i];
            s->rows[kept].configuration = &s->c[kept];
            kept++;
        }
    assert_compare(kept, <, s->count);
    s->count = kept;
    mdot_calibration *alone = calibration_site_calibrate(s);
    for (size_t i = 0; i < JOBS; i++) {
        mdot_calibration_factors a = factors_of(s, alone, i, configure("T4"));
        mdot_calibration_factors b = factors_of(s, both, i, configure("T4"));
        assert_memory_equal(&a, &b, sizeof a);
        assert_null(b.carried_gpu);
        assert_compare(b.carried_factor, ==, 1);
        assert_compare(b.carried_correlation, ==, 0);
    }
    mdot_calibration_destroy(alone);
    mdot_calibration_destroy(both);
}

static void jobs_without_a_common_one_change_nothing(void **state)
{
    site *s = *state;
    for (size_t i = 0; i < JOBS; i++) add_row(s, i, configure(i < JOBS / 2 ? "T4" : "A100"), alternating(i));
    expect_nothing_carried(s);
}

static void two_common_jobs_change_nothing(void **state)
{
    add_agreeing(*state, 2);
    expect_nothing_carried(*state);
}

static void opposite_residuals_change_nothing(void **state)
{
    site *s = *state;
    for (size_t i = 0; i < JOBS - 1; i++) {
        add_row(s, i, configure("T4"), alternating(i));
        add_row(s, i, configure("A100"), -alternating(i));
    }
    add_row(s, JOBS - 1, configure("A100"), 0.3);
    expect_nothing_carried(s);
}

/* Common jobs in full precision are no evidence for half precision. */
static void common_jobs_in_another_precision_change_nothing(void **state)
{
    site *s = *state;
    mdot_configuration half = configure("A100"), asked = configure("T4");
    half.precision = asked.precision = MDOT_PRECISION_AMP;
    add_agreeing(s, 11);
    add_row(s, 12, half, 0.2);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    assert_non_null(factors_of(s, calibration, 11, configure("T4")).carried_gpu);
    assert_null(factors_of(s, calibration, 12, configure("T4")).carried_gpu);
    assert_null(factors_of(s, calibration, 12, asked).carried_gpu);
    assert_null(factors_of(s, calibration, 11, asked).carried_gpu);
    mdot_calibration_destroy(calibration);
}

static const rt_fit *time_fit(const mdot_calibration *calibration, const char *gpu)
{
    return &rt_calibration_find_gpu(calibration, gpu)->fit[RT_QUANTITY_TIME];
}

/* The closed form, by a second program: every job has one step on each GPU model, in one configuration. The common jobs
 * are the first ones, and the anchors of a fit are ordered by job. */
static double closed_form(const mdot_calibration *calibration, const char *first, const char *second, double *out_mean)
{
    const char *const names[2] = {first, second};
    double z[2][JOBS], mean[2] = {0}, product = 0, square = 0, squares = 0;
    size_t common = 0;
    const rt_calibration_gpu *gpu[2];
    for (int k = 0; k < 2; k++) gpu[k] = rt_calibration_find_gpu(calibration, names[k]);
    for (size_t i = 0; i < gpu[0]->anchor_count; i++)
        for (size_t j = 0; j < gpu[1]->anchor_count; j++)
            if (gpu[0]->anchors[i].step.job == gpu[1]->anchors[j].step.job) {
                z[0][common] = time_fit(calibration, first)->standard[i];
                z[1][common++] = time_fit(calibration, second)->standard[j];
            }
    for (int k = 0; k < 2; k++)
        for (size_t j = 0; j < common; j++) mean[k] += z[k][j] / (double)common;
    for (size_t j = 0; j < common; j++) {
        double x = z[0][j] - mean[0], y = z[1][j] - mean[1];
        product += x * y;
        square += (x * x + y * y) / 2;
        squares += x * y * x * y;
    }
    *out_mean = mean[1];
    return fmin(fmax((product - 0.5 * sqrt(squares)) / (2 + square), 0), 0.95);
}

/* The residual on A100, as carried by the closed form, is the difference between the corrections with and without its
 * rows. The remaining variance follows from the interval without them. */
static void agreeing_jobs_carry_a_residual_as_the_closed_form_says(void **state)
{
    site *s = *state;
    enum { COMMON = 10 };
    const mdot_configuration asked = configure("T4");
    add_agreeing(s, COMMON);
    mdot_calibration *both = calibration_site_calibrate(s);
    s->count = 0;
    for (size_t i = 0; i < COMMON; i++) add_row(s, i, asked, alternating(i));
    mdot_calibration *alone = calibration_site_calibrate(s);
    mdot_calibration_factors with = factors_of(s, both, COMMON, asked), without = factors_of(s, alone, COMMON, asked);
    double mean = 0, correlation = closed_form(both, "T4", A100, &mean);
    if (!(correlation > 0.4 && correlation < 0.95)) fail_msg("%g", correlation);
    assert_string_equal(with.carried_gpu, A100);
    predict_assert_close(with.carried_correlation, correlation);

    const rt_fit *fit = time_fit(both, "T4"), *from = time_fit(both, A100);
    mdot_prediction p = predict_one(&s->f, s->jobs[COMMON], &asked);
    rt_step step = {0};
    rt_state_deviations(&p, &step);
    double stated = step.deviation[RT_QUANTITY_TIME] * step.deviation[RT_QUANTITY_TIME];
    double noise = rt_noise(step.deviation[RT_QUANTITY_TIME], fit->idle);
    double variance = without.interval * without.interval * stated / fit->spread;
    double left = (variance - noise) / (1 - noise / stated), measured = left + noise, z = NAN;
    uint32_t job = rt_calibration_find_job(both, s->jobs[COMMON]->analysis->identity.digest);
    const rt_calibration_gpu *a100 = rt_calibration_find_gpu(both, A100);
    for (size_t i = 0; i < a100->anchor_count; i++)
        if (a100->anchors[i].step.job == job) z = from->standard[i];
    double shift = correlation * (z - mean) * sqrt(fit->spread * measured);
    assert_compare(shift, >, 0.02);
    predict_assert_close(log(with.factor / without.factor), shift);
    predict_assert_close(with.carried_factor, exp(shift));
    double rest = left - correlation * correlation * measured;
    double interval = sqrt(fit->spread * (rest + (1 - rest / stated) * noise) / stated);
    predict_assert_close(with.interval, interval);
    assert_compare(with.interval, <, without.interval);
    const mdot_calibration_effect of_job = MDOT_CALIBRATION_EFFECT_JOB;
    assert_compare(with.believed[of_job], >, without.believed[of_job]);
    double unknown = (1 - without.believed[of_job]) * (1 - correlation * correlation);
    predict_assert_close(with.believed[of_job], 1 - unknown);
    mdot_calibration_destroy(alone);
    mdot_calibration_destroy(both);
}

static void memory_is_carried_like_time(void **state)
{
    site *s = *state;
    add_agreeing(s, 10);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    mdot_calibration_factors known = factors_of(s, calibration, 10, configure("T4"));
    mdot_calibration_factors unknown = factors_of(s, calibration, 12, configure("T4"));
    if (!(known.memory_factor > 1.02 * unknown.memory_factor))
        fail_msg("%g %g", known.memory_factor, unknown.memory_factor);
    assert_compare(known.memory_interval, <, unknown.memory_interval);
    mdot_calibration_destroy(calibration);
}

static void a_row_on_the_gpu_itself_ends_the_transfer(void **state)
{
    site *s = *state;
    add_agreeing(s, 10);
    add_row(s, 10, configure("T4"), -0.1);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    mdot_calibration_factors f = factors_of(s, calibration, 10, configure("T4"));
    assert_null(f.carried_gpu);
    assert_compare(f.factor, <, 1);
    mdot_calibration_destroy(calibration);
}

/* V100 agrees with T4, and A100 does not. */
static void the_gpu_of_the_largest_correlation_is_chosen(void **state)
{
    site *s = *state;
    for (size_t i = 0; i < 12; i++) {
        add_row(s, i, configure("T4"), alternating(i));
        add_row(s, i, configure("A100"), alternating(i / 2));
        add_row(s, i, configure("V100"), alternating(i));
    }
    add_row(s, 12, configure("A100"), -0.2);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    double without = factors_of(s, calibration, 12, configure("T4")).factor;
    mdot_calibration_destroy(calibration);
    add_row(s, 12, configure("V100"), 0.2);
    calibration = calibration_site_calibrate(s);
    mdot_calibration_factors f = factors_of(s, calibration, 12, configure("T4"));
    assert_string_equal(f.carried_gpu, "V100-SXM-16GB");
    assert_compare(f.factor, >, 1.02 * without);
    mdot_calibration_destroy(calibration);
}

static void a_saved_calibration_carries_the_same(void **state)
{
    site *s = *state;
    static const char path[] = "test_transfer.cal";
    mdot_calibration *loaded = NULL;
    add_agreeing(s, 10);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    assert_int_equal(mdot_calibration_save(calibration, path, NULL), MDOT_OK);
    assert_int_equal(mdot_calibration_load(path, &loaded, NULL), MDOT_OK);
    mdot_calibration_factors a = factors_of(s, calibration, 10, configure("T4"));
    mdot_calibration_factors b = factors_of(s, loaded, 10, configure("T4"));
    assert_non_null(b.carried_gpu);
    assert_string_equal(a.carried_gpu, b.carried_gpu);
    assert_within(a.factor, b.factor, 1e-6);
    assert_within(a.interval, b.interval, 1e-6);
    assert_within(a.carried_correlation, b.carried_correlation, 1e-6);
    mdot_calibration_destroy(loaded);
    mdot_calibration_destroy(calibration);
    remove(path);
}

static void the_order_of_rows_does_not_matter(void **state)
{
    site *s = *state;
    add_agreeing(s, 10);
    mdot_calibration *first = calibration_site_calibrate(s);
    for (size_t i = 0; i < s->count / 2; i++) {
        mdot_measurement front = s->rows[i];
        s->rows[i] = s->rows[s->count - 1 - i];
        s->rows[s->count - 1 - i] = front;
    }
    mdot_calibration *second = calibration_site_calibrate(s);
    mdot_calibration_factors a = factors_of(s, first, 10, configure("T4"));
    mdot_calibration_factors b = factors_of(s, second, 10, configure("T4"));
    assert_string_equal(a.carried_gpu, b.carried_gpu);
    a.carried_gpu = b.carried_gpu = NULL; /* each borrowed from a calibration */
    assert_memory_equal(&a, &b, sizeof a);
    mdot_calibration_destroy(first);
    mdot_calibration_destroy(second);
}

/* A normal variable: the sum of twelve uniform ones (generator from Numerical Recipes). */
static double draw_normal(site *s)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        s->seed = s->seed * 1664525u + 1013904223u;
        sum += (double)(s->seed >> 8) / (1 << 24);
    }
    return sum;
}

/* The mean correlation found between two GPU models, given the true one. */
static double mean_found(site *s, double true_correlation)
{
    enum { DRAWS = 40 };
    double sum = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        s->count = 0;
        for (size_t i = 0; i < JOBS - 1; i++) {
            double x = draw_normal(s), y = draw_normal(s);
            add_row(s, i, configure("T4"), 0.15 * x);
            y = true_correlation * x + sqrt(1 - true_correlation * true_correlation) * y;
            add_row(s, i, configure("A100"), 0.15 * y);
        }
        add_row(s, JOBS - 1, configure("A100"), 0.2);
        mdot_calibration *calibration = calibration_site_calibrate(s);
        sum += factors_of(s, calibration, JOBS - 1, configure("T4")).carried_correlation / DRAWS;
        mdot_calibration_destroy(calibration);
    }
    return sum;
}

static void independent_residuals_carry_next_to_nothing(void **state)
{
    double none = mean_found(*state, 0), some = mean_found(*state, 0.9);
    if (!(none < 0.08)) fail_msg("%g", none);
    if (!(some > 0.5 && some < 0.9)) fail_msg("%g", some);
}

/* Steps on A100 are far outside narrow intervals, and steps on T4 have wide ones. */
static void contradicting_rows_of_a_file_carry_a_bounded_factor(void **state)
{
    site *s = *state;
    enum { COMMON = 6 };
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    char text[16384] = "mdot-calibration 5\npredictor predictor\nrows 13 0\n";
    uint64_t digests[COMMON + 1];
    for (size_t i = 0; i <= COMMON; i++) digests[i] = s->jobs[i]->analysis->identity.digest;
    for (size_t i = 0; i <= COMMON; i++)
        for (size_t j = i + 1; j <= COMMON; j++)
            if (digests[j] < digests[i]) {
                uint64_t kept = digests[i];
                digests[i] = digests[j];
                digests[j] = kept;
            }
    size_t used = strlen(text);
    for (size_t i = 0; i <= COMMON; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "job %016llx", (unsigned long long)digests[i]);
        for (int k = 0; k < RT_WORK_CLASSES; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, " %d", k == (int)i ? RT_SHARE_UNITS : 0);
        used += (size_t)snprintf(text + used, sizeof text - used, "\n");
    }
    for (int g = 0; g < 2; g++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "gpu 6 0 0 0 %s\ntime 1 0\nmemory 1 0\n",
                                 g == 0 ? "T4" : A100);
        for (size_t i = 0; i < COMMON + (size_t)g; i++)
            used += (size_t)snprintf(text + used, sizeof text - used,
                                     "step %016llx 0 0 0 1 0 1a5cbfbae8fb1dfe 16 0 1 %s %s 0 0 0.2 0 0\n",
                                     (unsigned long long)digests[i], g == 0 ? "4" : "0.005", i % 2 == 0 ? "6" : "-6");
    }
    if (mdot_calibration_parse(text, used, &calibration, &err) != MDOT_OK) fail_msg("%s", err.message);
    const rt_calibration_gpu *t4 = rt_calibration_find_gpu(calibration, "T4");
    rt_step step = t4->anchors[0].step;
    rt_corrected corrected;
    step.job = COMMON;
    step.share = calibration->jobs[COMMON].share;
    rt_calibration_correct(calibration, t4, RT_QUANTITY_TIME, &step, &corrected);
    assert_non_null(corrected.carried.from);
    double limit = log(RT_CALIBRATION_MOST_FACTOR) + 1e-9;
    if (!(fabs(corrected.carried.shift) <= limit && fabs(corrected.mean) <= limit && corrected.interval > 0))
        fail_msg("%g %g", corrected.carried.shift, corrected.mean);
    mdot_calibration_destroy(calibration);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(jobs_without_a_common_one_change_nothing, calibration_site_forget_rows),
        cmocka_unit_test_setup(two_common_jobs_change_nothing, calibration_site_forget_rows),
        cmocka_unit_test_setup(opposite_residuals_change_nothing, calibration_site_forget_rows),
        cmocka_unit_test_setup(common_jobs_in_another_precision_change_nothing, calibration_site_forget_rows),
        cmocka_unit_test_setup(agreeing_jobs_carry_a_residual_as_the_closed_form_says, calibration_site_forget_rows),
        cmocka_unit_test_setup(memory_is_carried_like_time, calibration_site_forget_rows),
        cmocka_unit_test_setup(a_row_on_the_gpu_itself_ends_the_transfer, calibration_site_forget_rows),
        cmocka_unit_test_setup(the_gpu_of_the_largest_correlation_is_chosen, calibration_site_forget_rows),
        cmocka_unit_test_setup(a_saved_calibration_carries_the_same, calibration_site_forget_rows),
        cmocka_unit_test_setup(the_order_of_rows_does_not_matter, calibration_site_forget_rows),
        cmocka_unit_test_setup(independent_residuals_carry_next_to_nothing, calibration_site_forget_rows),
        cmocka_unit_test_setup(contradicting_rows_of_a_file_carry_a_bounded_factor, calibration_site_forget_rows),
    };
    return cmocka_run_group_tests(tests, open_site, calibration_site_close);
}
