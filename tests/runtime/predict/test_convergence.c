/* test_convergence.c — steps to a target loss: exact and noisy curves, outliers, and targets out of reach. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdot.h"
#include "tests/support/assertions.h"

enum { MOST = 2000 };

typedef struct curve {
    size_t count;
    double steps[MOST], losses[MOST];
} curve;

/* Losses floor + 8 (step + 5)^-exponent, with noise of uniform numbers. */
static curve make(size_t count, double each, double floor, double exponent, double noise, uint64_t seed)
{
    curve c = {.count = count};
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        double uniform = (double)(seed >> 40) / (double)(1 << 24) - .5;
        c.steps[i] = each * (double)(i + 1);
        c.losses[i] = floor + 8 * pow(c.steps[i] + 5, -exponent) + noise * uniform;
    }
    return c;
}

static mdot_convergence ask(const curve *c, double target)
{
    mdot_convergence answer = MDOT_INIT(mdot_convergence);
    mdot_error err = {0};
    if (mdot_steps_to_loss(c->steps, c->losses, c->count, target, &answer, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    assert_true(answer.lower_steps <= answer.steps && answer.steps <= answer.upper_steps);
    assert_true(answer.reach_probability >= 0 && answer.reach_probability <= 1 && answer.asymptote >= 0);
    return answer;
}

static void exact_curves_are_continued(void **state)
{
    (void)state;
    static const double exponents[] = {.25, .35, .5, .7, 1}, floors[] = {0, .5, 2};
    static const size_t counts[] = {10, 40, 64, 200, 1999};
    for (size_t i = 0; i < 5; i++)
        for (size_t j = 0; j < 3; j++)
            for (size_t k = 0; k < 5; k++) {
                curve c = make(counts[k], 20, floors[j], exponents[i], 0, 1);
                double truth = 3 * c.steps[c.count - 1];
                mdot_convergence answer = ask(&c, floors[j] + 8 * pow(truth + 5, -exponents[i]));
                if (fabs(log(answer.steps / truth)) > .15)
                    fail_msg("exponent %g, floor %g, %zu points: %g steps, not %g", exponents[i], floors[j], c.count,
                             answer.steps, truth);
            }
}

static void intervals_of_noisy_curves_contain_the_truth(void **state)
{
    (void)state;
    int inside = 0, all = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        size_t count = seed % 2 ? 60 : 600;
        double truth = 20 * (double)count, exponent = seed % 3 ? .5 : .7, rest = 8 * pow(truth + 5, -exponent);
        curve c = make(count, 10, .5, exponent, rest, seed);
        mdot_convergence answer = ask(&c, .5 + rest);
        inside += answer.lower_steps <= truth && truth <= answer.upper_steps;
        all++;
    }
    if (inside < .8 * all) fail_msg("%d of %d intervals contain the truth", inside, all);
}

/* Each point but the first and the last, in turn, is ten times as high, or 0. */
static void one_outlier_hardly_changes_the_answer(void **state)
{
    (void)state;
    static const size_t counts[] = {15, 40, 100, 300};
    for (size_t k = 0; k < 4; k++) {
        curve c = make(counts[k], 20, .5, .5, 0, 1);
        double truth = 2 * c.steps[c.count - 1], target = .5 + 8 * pow(truth + 5, -.5);
        for (size_t i = 1; i + 1 < c.count; i++) {
            for (int high = 0; high < 2; high++) {
                double kept = c.losses[i];
                c.losses[i] = high ? 10 * kept : 0;
                mdot_convergence answer = ask(&c, target);
                if (fabs(log(answer.steps / truth)) > .5)
                    fail_msg("%zu points, point %zu is %g: %g steps, not %g", c.count, i + 1, c.losses[i], answer.steps,
                             truth);
                c.losses[i] = kept;
            }
        }
    }
}

static void answers_scale_with_steps_and_losses(void **state)
{
    (void)state;
    curve c = make(120, 10, .5, .5, .1, 7);
    mdot_convergence first = ask(&c, .7);
    for (size_t i = 0; i < c.count; i++) c.steps[i] *= 1024, c.losses[i] *= 8;
    mdot_convergence scaled = ask(&c, 8 * .7);
    assert_true(fabs(scaled.steps / first.steps / 1024 - 1) < 1e-9);
    assert_true(fabs(scaled.asymptote - 8 * first.asymptote) < 1e-9);
}

static void a_target_below_the_asymptote_is_never_reached(void **state)
{
    (void)state;
    curve c = make(200, 10, 2, .7, .01, 3);
    mdot_convergence low = ask(&c, 1), near = ask(&c, 2.05);
    assert_true(isinf(low.steps) && isinf(low.upper_steps) && low.reach_probability < .1);
    assert_true(fabs(low.asymptote - 2) < .05);
    assert_true(isfinite(near.steps) && near.reach_probability > low.reach_probability);
}

static void a_reached_target_is_answered_by_its_step(void **state)
{
    (void)state;
    for (size_t count = 20; count <= 1000; count *= 5) {
        curve c = make(count, 10, .5, .5, 0, 1);
        size_t middle = count / 2;
        mdot_convergence answer = ask(&c, c.losses[middle]);
        assert_true(answer.lower_steps == answer.upper_steps && answer.reach_probability == 1);
        assert_true(fabs(answer.steps / c.steps[middle] - 1) < .12);
    }
}

/* From above the first loss to below the last, lower targets take more steps. Passed ones lie near their own points. */
static void lower_targets_take_more_steps(void **state)
{
    (void)state;
    static const size_t counts[] = {10, 30, 40, 64, 100, 199, 600, 1999};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        curve c = make(counts[k], 10, .5, .5, 0, 1);
        double before = 0, span = 10 * (1 + (double)counts[k] / 10);
        for (size_t i = 0; i < c.count; i += 1 + c.count / 40) {
            mdot_convergence answer = ask(&c, c.losses[i]);
            if (fabs(answer.steps - c.steps[i]) > span || answer.steps < before)
                fail_msg("%zu points: point %zu at step %g, answer %g", c.count, i + 1, c.steps[i], answer.steps);
            before = answer.steps;
        }
        assert_true(ask(&c, 2 * c.losses[0]).steps <= c.steps[c.count / 30]);
        assert_true(ask(&c, .55).steps >= before);
    }
}

static void refuse(const curve *c, double target, const char *reason)
{
    mdot_convergence answer = MDOT_INIT(mdot_convergence), before = answer;
    mdot_error err = {0};
    assert_int_equal(mdot_steps_to_loss(c->steps, c->losses, c->count, target, &answer, &err), MDOT_INVALID_ARGUMENT);
    if (strstr(err.message, reason) == NULL) fail_msg("\"%s\" lacks \"%s\"", err.message, reason);
    assert_memory_equal(&answer, &before, sizeof answer);
}

/* An accuracy is above its target when it has reached it, unlike a loss. */
static void rising_curves_are_refused_at_every_target(void **state)
{
    (void)state;
    static const double targets[] = {1e-3, .2, .5, .8, .95, 2};
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
            curve c = make(seed % 2 ? 12 : 200, 10, 0, .5, .02, seed);
            for (size_t k = 0; k < c.count; k++) c.losses[k] = fmax(.9 - c.losses[k] * .3, 0);
            refuse(&c, targets[i], "the losses do not decrease; record more, or give a falling one, as 1 - accuracy");
        }
}

static void other_curves_are_refused(void **state)
{
    (void)state;
    curve c = make(9, 10, .5, .5, 0, 1);
    refuse(&c, .1, "9 points, but a fit needs at least 10");
    static const double bad[] = {NAN, INFINITY, -1}, targets[] = {NAN, INFINITY, -INFINITY, 0, -1};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "target loss is %g; it must be a finite number above 0", targets[i]);
        c = make(40, 10, .5, .5, 0, 1);
        refuse(&c, targets[i], expected);
    }
    for (size_t i = 0; i < 3; i++) {
        c = make(40, 10, .5, .5, 0, 1);
        c.losses[20] = bad[i];
        refuse(&c, .6, "point 21");
        c.losses[20] = c.losses[21];
        c.steps[11] = bad[i];
        refuse(&c, .6, "point 12");
    }
    c = make(40, 10, .5, .5, 0, 1);
    c.steps[5] = c.steps[4];
    refuse(&c, .6, "point 6");
    for (int rises = 0; rises < 2; rises++) {
        for (size_t i = 0; i < c.count; i++) c.steps[i] = (double)i, c.losses[i] = .3 + rises * .01 * (double)i;
        refuse(&c, .1, "do not decrease");
    }
    mdot_error err = {0};
    mdot_convergence answer = MDOT_INIT(mdot_convergence);
    assert_int_equal(mdot_steps_to_loss(NULL, c.losses, 40, 1, &answer, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_steps_to_loss(c.steps, NULL, 40, 1, &answer, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_steps_to_loss(c.steps, c.losses, 40, 1, NULL, &err), MDOT_INVALID_ARGUMENT);
    answer.struct_size = 0;
    assert_int_equal(mdot_steps_to_loss(c.steps, c.losses, 40, 1, &answer, &err), MDOT_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_curves_are_continued),
        cmocka_unit_test(intervals_of_noisy_curves_contain_the_truth),
        cmocka_unit_test(one_outlier_hardly_changes_the_answer),
        cmocka_unit_test(answers_scale_with_steps_and_losses),
        cmocka_unit_test(a_target_below_the_asymptote_is_never_reached),
        cmocka_unit_test(a_reached_target_is_answered_by_its_step),
        cmocka_unit_test(lower_targets_take_more_steps),
        cmocka_unit_test(rising_curves_are_refused_at_every_target),
        cmocka_unit_test(other_curves_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
