/* test_statistics.c — robust means, p-values against published values, and the test for a change: it stays silent on
 * unchanged series as often as it promises, and dates a change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/statistics.h"

#include <math.h>

static void near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance)) fail_msg("%.12g instead of %.12g", value, wanted);
}

static void fit_ignores_a_throttled_row(void **state)
{
    (void)state;
    double values[] = {0.001, -0.001, 0.25}, weights[3], scratch[3];
    st_fit fit = st_fit_student(values, 3, weights, scratch);
    near(fit.mean, 0, 0.01);
    assert_true(weights[2] < 0.1);
    assert_true(weights[0] > 0.9);
    assert_true(fit.spread < 0.03);
}

static void fit_of_clean_rows_is_their_mean(void **state)
{
    (void)state;
    double values[] = {1.00, 1.01, 0.99, 1.002, 0.998}, weights[5], scratch[5];
    st_fit fit = st_fit_student(values, 5, weights, scratch);
    near(fit.mean, 1, 1e-4);
    for (int i = 0; i < 5; i++) assert_true(weights[i] > 0.8);
}

static void fit_of_one_row_is_that_row(void **state)
{
    (void)state;
    double value = 3.5, weight, scratch;
    st_fit fit = st_fit_student(&value, 1, &weight, &scratch);
    near(fit.mean, 3.5, 1e-12);
    near(weight, 1, 1e-12);
}

/* Two rows cannot show which of them is wrong: the mean lies between them, and both lose weight. */
static void fit_blames_neither_of_two_rows(void **state)
{
    (void)state;
    double values[] = {0, 1}, weights[2], scratch[2];
    st_fit fit = st_fit_student(values, 2, weights, scratch);
    near(fit.mean, 0.5, 1e-9);
    near(weights[0], weights[1], 1e-12);
}

/* Values of R: 2 * pnorm(-z), 2 * pt(-t, df), and 1 - K(d) of Kolmogorov's table. */
static void p_values_agree_with_tables(void **state)
{
    (void)state;
    near(st_normal_p(1.959963984540054), 0.05, 1e-12);
    near(st_normal_p(-2.5758293035489), 0.01, 1e-12);
    near(st_student_p(2.7764451051977987, 4), 0.05, 1e-9);
    near(st_student_p(12.706204736432095, 1), 0.05, 1e-9);
    near(st_student_p(-3.182446305284263, 3), 0.05, 1e-9);
    near(st_student_p(2.0452296421327034, 29), 0.05, 1e-9);
    near(st_student_p(0, 5), 1, 1e-12);
    near(st_bridge_p(1.3580986393), 0.05, 1e-6);
    near(st_bridge_p(1.6276236115), 0.01, 1e-6);
    near(st_bridge_p(0), 1, 1e-12);
}

static void holm_corrects_in_order_and_skips_absent_tests(void **state)
{
    (void)state;
    double p[] = {0.01, -1, 0.04, 0.03};
    assert_true(st_holm(p, 4));
    near(p[0], 0.03, 1e-12);
    near(p[3], 0.06, 1e-12);
    near(p[2], 0.06, 1e-12); /* at least as large as for the smaller one */
    near(p[1], -1, 0);
}

static uint64_t seed = 12345;

/* About normal: the sum of twelve uniform numbers. */
static double noise(void)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        sum += (double)(seed >> 33) / 2147483648.0;
    }
    return sum;
}

enum { ROWS = 40, GROUPS = 4 };

/* A series of four groups with a change by `shift` from row 24 on, centred per group. Returns the p-value. */
static double p_of_series(double shift, size_t *out_split)
{
    double value[ROWS], sum[GROUPS] = {0}, count[GROUPS] = {0};
    int64_t time[ROWS];
    size_t group[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        group[i] = i % GROUPS;
        time[i] = 1000 + (int64_t)i;
        value[i] = noise() + (i >= 24 ? shift : 0);
        sum[group[i]] += value[i];
        count[group[i]]++;
    }
    for (size_t i = 0; i < ROWS; i++) value[i] -= sum[group[i]] / count[group[i]];
    double largest = st_largest_sum(value, time, ROWS, out_split);
    return st_change_p(value, time, group, ROWS, GROUPS, largest);
}

static void unchanged_series_raise_few_alarms(void **state)
{
    (void)state;
    int alarms = 0;
    size_t split;
    for (int i = 0; i < 300; i++) alarms += p_of_series(0, &split) < 0.05;
    /* 15 are expected; 30 are beyond four standard deviations */
    if (alarms < 3 || alarms > 30) fail_msg("%d alarms in 300 series at p < 0.05", alarms);
}

static void a_change_is_found_and_dated(void **state)
{
    (void)state;
    int found = 0;
    for (int i = 0; i < 50; i++) {
        size_t split;
        double p = p_of_series(2, &split);
        found += p < 0.01 && split >= 22 && split <= 26;
    }
    assert_true(found >= 45);
}

/* Between equal times there is no moment of change. */
static void rows_of_one_moment_have_no_change(void **state)
{
    (void)state;
    static const double value[] = {-1, -1, 1, 1};
    static const int64_t time[] = {7, 7, 7, 7};
    size_t split;
    near(st_largest_sum(value, time, 4, &split), 0, 0);
}

/* The largest sum of a series' beginning over the root of all squares, at the first place that has it. */
static void the_largest_sum_is_that_of_all_beginnings(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (int round = 0; round < 2000; round++) {
        double value[12], squares = 0, best = 0;
        int64_t time[12];
        size_t count = 1 + (size_t)round % 12, wanted = 0, split = 77;
        for (size_t i = 0; i < count; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            value[i] = (double)(int64_t)(random >> 40) / (1 << 23) - 1;
            time[i] = (i > 0 ? time[i - 1] : 0) + (int64_t)(random >> 20) % 3;
            squares += value[i] * value[i];
        }
        for (size_t end = 1; end < count; end++) {
            double sum = 0;
            for (size_t i = 0; i < end; i++) sum += value[i];
            if (time[end - 1] == time[end] || fabs(sum) <= best) continue;
            best = fabs(sum);
            wanted = end;
        }
        near(st_largest_sum(value, time, count, &split), best / sqrt(squares), 1e-12);
        assert_int_equal(split, wanted);
    }
    assert_true(st_largest_sum((double[]){0, 0}, (int64_t[]){1, 2}, 2, &(size_t){0}) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit_ignores_a_throttled_row),
        cmocka_unit_test(fit_of_clean_rows_is_their_mean),
        cmocka_unit_test(fit_of_one_row_is_that_row),
        cmocka_unit_test(fit_blames_neither_of_two_rows),
        cmocka_unit_test(p_values_agree_with_tables),
        cmocka_unit_test(holm_corrects_in_order_and_skips_absent_tests),
        cmocka_unit_test(unchanged_series_raise_few_alarms),
        cmocka_unit_test(a_change_is_found_and_dated),
        cmocka_unit_test(rows_of_one_moment_have_no_change),
        cmocka_unit_test(the_largest_sum_is_that_of_all_beginnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
