/* test_history_shape.c — Student's t distribution, and fits to errors. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "history/history_learning.h"
#include "tests/simulator/support/numbers.h"

static const double degrees[] = {1, 2, 4, INFINITY};

static void quantiles_invert_probabilities(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        double before = -INFINITY;
        for (double p = .001; p < 1; p += .013) {
            double t = hs_t_quantile(degrees[i], p);
            assert_true(t > before);
            assert_true(fabs(hs_t_probability(degrees[i], t) - p) < 1e-9);
            before = t;
        }
    }
}

/* From tables of the distribution. */
static void quantiles_are_those_of_tables(void **state)
{
    (void)state;
    static const double known[][3] = {{1, .95, 6.314}, {2, .95, 2.920}, {4, .95, 2.132},        {4, .975, 2.776},
                                      {2, .9, 1.886},  {1, .75, 1.000}, {INFINITY, .975, 1.960}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(fabs(hs_t_quantile(known[i][0], known[i][1]) - known[i][2]) < 5e-4);
}

static void the_fit_finds_scales_and_tails(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        hs_errors errors;
        hs_errors_begin(&errors);
        for (int j = 0; j < 12000; j++) {
            double p = fmod(.5 + j * .6180339887498949, 1); /* evenly spread probabilities */
            hs_errors_add(&errors, .5 + (p < .5 ? .4 : 1.2) * hs_t_quantile(degrees[i], p));
        }
        hs_shape shape = hs_shape_fit(&errors);
        expect_number(shape.degrees, degrees[i]);
        assert_true(fabs(shape.center - .5) < .1);
        assert_true(fabs(log(shape.lower / .4)) < .15);
        assert_true(fabs(log(shape.upper / 1.2)) < .15);
    }
}

static void errors_beyond_the_bins_count_as_the_last(void **state)
{
    (void)state;
    static const double far[] = {1e300, -1e300, INFINITY, -INFINITY};
    hs_errors errors;
    hs_errors_begin(&errors);
    for (int i = 0; i < 400; i++) hs_errors_add(&errors, far[i % 4]);
    hs_shape shape = hs_shape_fit(&errors);
    assert_true(isfinite(shape.center));
    assert_true(isfinite(shape.lower));
    assert_true(isfinite(shape.upper));
}

static double unit(void)
{
    static uint64_t seed = 1;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return ((double)(seed >> 11) + .5) / 9007199254740992.0;
}

/* The distributions are symmetric, and heavier tails have more beyond any distance from the median. */
static void probabilities_are_symmetric_and_ordered_by_tails(void **state)
{
    (void)state;
    for (double t = .01; t < 40; t *= 1.1) {
        double before = 0;
        for (size_t i = 0; i < 4; i++) {
            double p = hs_t_probability(degrees[i], t);
            assert_true(fabs(p + hs_t_probability(degrees[i], -t) - 1) < 1e-12);
            assert_true(p > before || p == 1);
            before = p;
        }
    }
    for (size_t i = 0; i < 4; i++) {
        expect_number(hs_t_quantile(degrees[i], .5), 0);
        for (double p = .5; p < .9995; p += .0007)
            assert_true(fabs(hs_t_quantile(degrees[i], p) + hs_t_quantile(degrees[i], 1 - p)) < 1e-6);
    }
}

/* Bins are equally wide in asinh(8 z), eight to each unit, and the first and last ones have no outer end. */
static void an_error_counts_in_the_bin_around_it(void **state)
{
    (void)state;
    hs_errors errors;
    hs_errors_begin(&errors);
    double below = 0;
    for (int bin = 0; bin < HS_BINS; bin++) { /* thirty jobs with two degrees of freedom */
        double end = sinh((bin + 1 - HS_BINS / 2) / 8.) / 8;
        below += errors.bins[bin];
        assert_true(fabs(below - 30 * (bin + 1 < HS_BINS ? hs_t_probability(2, end) : 1)) < 1e-9);
    }
    for (int i = 0; i < 3000; i++) {
        hs_errors before = errors;
        int bin = i % HS_BINS;
        double inside = i % 5 == 0 ? 1e-6 : i % 5 == 1 ? 1 - 1e-6 : unit();
        double outside = bin == 0 ? -unit() * 99 : bin == HS_BINS - 1 ? unit() * 99 : 0;
        hs_errors_add(&errors, sinh((bin + inside + outside - HS_BINS / 2) / 8) / 8);
        for (int k = 0; k < HS_BINS; k++) expect_within(errors.bins[k], before.bins[k] * .999 + (k == bin), 1e-12);
    }
}

/* Bins with the exact shares of a distribution give this distribution. */
static void the_fit_recovers_any_distribution(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++) {
        hs_shape wanted = {.6 * unit() - .3, exp(2 * unit() - 1), exp(2 * unit() - 1), degrees[i % 4]};
        hs_errors errors, mirrored;
        double below = 0, total = exp(9 * unit() - 3);
        for (int bin = 0; bin < HS_BINS; bin++) {
            double z = sinh((bin + 1 - HS_BINS / 2) / 8.) / 8 - wanted.center;
            double p =
                bin + 1 < HS_BINS ? hs_t_probability(wanted.degrees, z / (z < 0 ? wanted.lower : wanted.upper)) : 1;
            errors.bins[bin] = mirrored.bins[HS_BINS - 1 - bin] = total * (p - below);
            below = p;
        }
        hs_shape shape = hs_shape_fit(&errors), mirror = hs_shape_fit(&mirrored);
        expect_number(shape.degrees, wanted.degrees);
        assert_true(fabs(shape.center - wanted.center) < .03 * (wanted.lower + wanted.upper));
        assert_true(fabs(log(shape.lower / wanted.lower)) < .06);
        assert_true(fabs(log(shape.upper / wanted.upper)) < .06);
        expect_number(mirror.degrees, wanted.degrees);
        assert_true(fabs(shape.center + mirror.center) < 1e-6);
        assert_true(fabs(log(shape.lower / mirror.upper)) < 1e-6);
        assert_true(fabs(log(shape.upper / mirror.lower)) < 1e-6);
    }
}

/* The probability that a job takes at most `duration_s`. */
static double share_until(const mdot_history_estimate *e, double duration_s)
{
    double distance = log(duration_s / e->median_s);
    return hs_t_probability(e->degrees, distance / (distance < 0 ? e->lower_scale : e->upper_scale));
}

/* Of the jobs that are still executing, a share p ends within the quantile p of the remaining time. */
static void quantiles_hold_their_share_of_jobs(void **state)
{
    (void)state;
    for (int i = 0; i < 4000; i++) {
        mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
        e.median_s = exp(12 * unit() - 2);
        e.lower_scale = exp(3 * unit() - 2.5);
        e.upper_scale = exp(3 * unit() - 2.5);
        e.degrees = degrees[i % 4];
        double p = .002 + .996 * unit(), whole_s = mdot_history_quantile_s(&e, p);
        bool is_cut = whole_s < 1.01e-3 || whole_s > .99e12;
        if (!is_cut) expect_within(share_until(&e, whole_s), p, 1e-6);
        expect_number(mdot_history_quantile_s(&e, 1.5), mdot_history_quantile_s(&e, .999));
        expect_number(mdot_history_quantile_s(&e, -1), mdot_history_quantile_s(&e, .001));
        expect_number(mdot_history_remaining_s(&e, -unit(), p), whole_s);
        expect_number(mdot_history_remaining_s(&e, 0, p), whole_s);
        double executed_s = mdot_history_quantile_s(&e, unit()), passed = share_until(&e, executed_s);
        double rest_s = mdot_history_remaining_s(&e, executed_s, p), end_s = executed_s + rest_s;
        assert_true(rest_s >= 1e-3);
        if (passed < .9979 && passed + p * (1 - passed) < .999 && rest_s > .01 && executed_s > .01 && end_s < .99e12)
            expect_within((share_until(&e, end_s) - passed) / (1 - passed), p, 1e-3);
        /* Beyond the table, the quantile is a share of the elapsed time, and it continues the table's. */
        double last_s = mdot_history_quantile_s(&e, .998), far_s = mdot_history_quantile_s(&e, .999);
        if (far_s > .99e12 || far_s - last_s < .1 || last_s < .01) continue;
        for (double more = 1.001; more < 1e3; more *= 3)
            assert_true(fabs(mdot_history_remaining_s(&e, more * last_s, p) / (more * (far_s - last_s)) - 1) < 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_invert_probabilities),
        cmocka_unit_test(quantiles_are_those_of_tables),
        cmocka_unit_test(the_fit_finds_scales_and_tails),
        cmocka_unit_test(errors_beyond_the_bins_count_as_the_last),
        cmocka_unit_test(probabilities_are_symmetric_and_ordered_by_tails),
        cmocka_unit_test(an_error_counts_in_the_bin_around_it),
        cmocka_unit_test(the_fit_recovers_any_distribution),
        cmocka_unit_test(quantiles_hold_their_share_of_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
