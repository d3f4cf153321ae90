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

/* The share of Student's t distribution beyond |t| on both sides, from the integral by Simpson's rule. */
static double integrated_p(double t, double degrees)
{
    enum { PARTS = 4000 };
    double constant = exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2)) / sqrt(degrees * M_PI), sum = 0;
    for (int i = 0; i <= PARTS; i++) {
        double x = fabs(t) * i / PARTS, height = constant * pow(1 + x * x / degrees, -(degrees + 1) / 2);
        sum += height * (i == 0 || i == PARTS ? 1 : i % 2 == 1 ? 4 : 2);
    }
    return 1 - 2 * sum * fabs(t) / PARTS / 3;
}

static void p_values_agree_with_integrals(void **state)
{
    (void)state;
    for (double degrees = 1; degrees < 200; degrees = 1.3 * degrees + .7)
        for (double t = 0; t < 12; t = 1.2 * t + .01) {
            near(st_student_p(t, degrees), integrated_p(t, degrees), 1e-9);
            near(st_student_p(-t, degrees), st_student_p(t, degrees), 0);
        }
    for (double z = -5; z < 5; z += .1) near(st_normal_p(z), st_student_p(z, 1e9), 1e-6);
    near(st_student_p(INFINITY, 3), 0, 0);
    near(st_student_p(NAN, 3), 0, 0);
    double before = 1;
    for (double d = .0; d < 6; d += .01) { /* the distribution in its other form, which converges for small d */
        double sum = 0, p = st_bridge_p(d);
        for (int k = 1; k < 60; k++) sum += exp(-(2 * k - 1) * (2 * k - 1) * M_PI * M_PI / (8 * d * d));
        near(p, d > 0 ? 1 - sqrt(2 * M_PI) / d * sum : 1, 1e-9);
        assert_true(p >= 0 && p <= before);
        before = p;
    }
}

/* The fit satisfies its equations, and moves and stretches with the values as far as its prior allows. */
static void a_fit_satisfies_its_equations(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        double values[20], moved[20], weights[20], scratch[20], other[20], total = 0, sum = 0, squares = 0;
        size_t count = 1 + (size_t)round % 20;
        for (size_t i = 0; i < count; i++) {
            values[i] = noise() * (round % 3 == 0 ? 1 : .02) + (noise() > 1.5 ? 2 : 0);
            moved[i] = -values[i] + 5;
        }
        st_fit fit = st_fit_student(values, count, weights, scratch);
        for (size_t i = 0; i < count; i++) {
            double r = (values[i] - fit.mean) / fit.spread;
            near(weights[i], 4 / (4 + r * r), .1);
            assert_true(weights[i] > 0 && weights[i] <= 1);
            total += weights[i];
            sum += weights[i] * values[i];
            squares += weights[i] * (values[i] - fit.mean) * (values[i] - fit.mean) * 5 / 4;
        }
        near(fit.mean, sum / total, 1e-12);
        near(fit.spread, sqrt((squares + 4 * .02 * .02) / ((double)count + 4)), 1e-9);
        st_fit mirror = st_fit_student(moved, count, other, scratch);
        near(mirror.mean, 5 - fit.mean, 1e-6);
        near(mirror.spread, fit.spread, 1e-6);
    }
}

/* Values of two kinds have two solutions. The one around the median is taken, in whatever order the values come. */
static void a_fit_is_independent_of_the_order(void **state)
{
    (void)state;
    for (int round = 0; round < 500; round++) {
        double values[15], weights[15], scratch[15];
        size_t count = 2 + (size_t)round % 14, far = count / 3;
        for (size_t i = 0; i < count; i++) values[i] = (i < far ? 3 : 0) + .01 * noise();
        st_fit first = st_fit_student(values, count, weights, scratch);
        for (int turn = 0; turn < 12; turn++) {
            size_t i = (size_t)rand() % count, k = (size_t)rand() % count;
            double moved = values[i];
            values[i] = values[k];
            values[k] = moved;
            st_fit again = st_fit_student(values, count, weights, scratch);
            near(again.mean, first.mean, 1e-6);
            near(again.spread, first.spread, 1e-6);
        }
    }
}

/* A corrected value is the largest product of a value at most as large, and the number of those not smaller. */
static void holm_is_the_largest_product_of_smaller_ones(void **state)
{
    (void)state;
    for (int round = 0; round < 2000; round++) {
        double p[9], corrected[9];
        size_t count = (size_t)round % 10;
        for (size_t i = 0; i < count; i++)
            p[i] = corrected[i] = noise() < -1 ? -1 : fmin(fabs(noise()) / 5 * (i % 2), 1);
        assert_true(st_holm(corrected, count));
        for (size_t i = 0; i < count; i++) {
            double wanted = p[i] < 0 ? -1 : 0;
            for (size_t j = 0; j < count && p[i] >= 0; j++) {
                double larger = 0;
                for (size_t k = 0; k < count; k++) larger += p[k] >= p[j];
                if (p[j] >= 0 && p[j] <= p[i]) wanted = fmin(fmax(wanted, p[j] * larger), 1);
            }
            near(corrected[i], wanted, 1e-12);
        }
    }
}

/* Of five values in one group, all 120 orders are counted instead of drawn. Groups of one value have one order. */
static void change_p_is_the_share_of_orders(void **state)
{
    (void)state;
    enum { VALUES = 5 };
    for (int round = 0; round < 40; round++) {
        double value[VALUES], mean = 0, order[VALUES];
        int64_t time[VALUES];
        size_t one_group[VALUES] = {0}, own_group[VALUES], split, reached = 0, orders = 0;
        for (size_t i = 0; i < VALUES; i++) mean += (value[i] = noise()) / VALUES;
        for (size_t i = 0; i < VALUES; i++) value[i] -= mean, time[i] = (int64_t)i, own_group[i] = VALUES - 1 - i;
        double largest = st_largest_sum(value, time, VALUES, &split);
        for (int code = 0; code < 3125; code++) {
            int used = 0, rest = code;
            for (size_t i = 0; i < VALUES; i++, rest /= VALUES)
                used |= 1 << rest % VALUES, order[i] = value[rest % VALUES];
            if (used != 31) continue;
            orders++;
            reached += st_largest_sum(order, time, VALUES, &split) >= largest * (1 - 1e-12);
        }
        assert_int_equal(orders, 120);
        near(st_change_p(value, time, one_group, VALUES, 1, largest), (double)reached / 120, .08);
        near(st_change_p(value, time, own_group, VALUES, VALUES, largest), 1, 0);
        near(st_change_p(value, time, one_group, VALUES, 1, 2 * largest + 3), st_bridge_p(2 * largest + 3), 0);
    }
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
        cmocka_unit_test(p_values_agree_with_integrals),
        cmocka_unit_test(a_fit_satisfies_its_equations),
        cmocka_unit_test(a_fit_is_independent_of_the_order),
        cmocka_unit_test(holm_is_the_largest_product_of_smaller_ones),
        cmocka_unit_test(change_p_is_the_share_of_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
