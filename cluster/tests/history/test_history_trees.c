/* test_history_trees.c — the row that trees read, and the estimate from their answers. Linear networks stand in for
 * trees. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "history/mdot_history.h"
#include "tests/history/support/linear.h"
#include "tests/simulator/support/numbers.h"
#include "tests/support/process.h"

enum { NUMBERS = 13 };

static char *folder, path[256];

static mdot_history_trees *open_trees(const linear *network)
{
    mdot_history_trees *trees = NULL;
    mdot_error err = {0};
    linear_compile(network, path);
    if (mdot_history_trees_open(path, &trees, &err) != MDOT_OK) fail_msg("%s", err.message);
    return trees;
}

static mdot_history_estimate random_estimate(void)
{
    static const double degrees[] = {1, 2, 4, INFINITY};
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    e.median_s = exp(linear_random(0, 12));
    e.lower_scale = linear_random(.1, 1);
    e.upper_scale = linear_random(.1, 1);
    e.degrees = degrees[(int)linear_random(0, 3.99)];
    e.early_failure = linear_random(0, 1);
    e.failure_s = linear_random(1, 99);
    e.key = (mdot_history_key)linear_random(0, 11.99);
    e.weight = linear_random(0, 60);
    return e;
}

/* The documented row: seven quantiles, the share of early failures, the key, its weight, GPUs, hour and weekday. */
static void describe(const mdot_history_estimate *e, const mdot_history_job *job, double out[NUMBERS])
{
    static const double probabilities[] = {.05, .1, .25, .5, .75, .9, .95};
    for (int i = 0; i < 7; i++) out[i] = log(mdot_history_quantile_s(e, probabilities[i]));
    int64_t second = (int64_t)floor(job->submit_s), day = second / 86400 - (second % 86400 < 0);
    out[7] = e->early_failure;
    out[8] = (double)(int)e->key;
    out[9] = log(1 + e->weight);
    out[10] = job->gpus > 1 ? log(job->gpus) / log(2) : 0;
    out[11] = (job->submit_s - 86400. * (double)day) / 3600;
    out[12] = (double)((day % 7 + 7) % 7);
}

/* Answers depend on every number. The median follows the second answer, and each side's scale its distance from the
 * first and third, relative to the history's distance. All other fields stay. */
static void an_estimate_follows_the_answers_to_its_row(void **state)
{
    (void)state;
    for (int round = 0; round < 6; round++) {
        linear n = {.row = {"numbers", "log_s", NUMBERS, 3}};
        for (int i = 0; i < NUMBERS; i++)
            for (int j = 0; j < 3; j++) n.factors[i][j] = (float)(linear_random(-.1, .1) + (i == j * 3 ? .8 : 0));
        n.sums[1] = (float)linear_random(-2, 2);
        if (round == 0) n.sums[1] = -60;
        if (round == 1) n.sums[1] = 60;
        for (int j = 0; j < 3; j += 2) n.sums[j] = n.sums[1] + (float)(j - 1) * (float)linear_random(.5, 6);
        mdot_history_trees *trees = open_trees(&n);
        for (int i = 0; i < 400; i++) {
            mdot_history_estimate before = random_estimate(), after = before;
            mdot_history_job job = {
                .struct_size = sizeof job, .gpus = (int)linear_random(0, 12), .submit_s = linear_random(-3e6, 3e6)};
            double row[NUMBERS], answers[3];
            describe(&before, &job, row);
            for (int j = 0; j < 3; j++) {
                answers[j] = n.sums[j];
                for (int k = 0; k < NUMBERS; k++) answers[j] += row[k] * n.factors[k][j];
            }
            mdot_history_trees_correct(trees, &job, &after);
            double lower = before.lower_scale * (answers[1] - answers[0]) / (row[3] - row[0]);
            double upper = before.upper_scale * (answers[2] - answers[1]) / (row[6] - row[3]);
            expect_within(log(after.median_s), fmin(fmax(answers[1], log(1e-3)), log(1e12)), 2e-3);
            expect_within(after.lower_scale, fmax(lower, 1e-3), 5e-3 * (1 + fabs(lower)));
            expect_within(after.upper_scale, fmax(upper, 1e-3), 5e-3 * (1 + fabs(upper)));
            assert_true(after.lower_scale >= 1e-3 && after.upper_scale >= 1e-3);
            after.median_s = before.median_s;
            after.lower_scale = before.lower_scale;
            after.upper_scale = before.upper_scale;
            assert_memory_equal(&after, &before, sizeof after);
        }
        mdot_history_trees_close(trees);
    }
}

/* If the scale of a side is 0, no tail is rescaled. An infinite answer changes no estimate. */
static void an_estimate_stays_without_a_tail_or_an_answer(void **state)
{
    (void)state;
    linear n = {.row = {"numbers", "log_s", NUMBERS, 3}, .sums = {1, 2, 3}, .last = "Log"};
    n.factors[10][0] = n.factors[10][1] = n.factors[10][2] = -1; /* negative on more than eight GPUs */
    mdot_history_trees *trees = open_trees(&n);
    for (int i = 0; i < 300; i++) {
        mdot_history_estimate before = random_estimate(), after;
        mdot_history_job job = {.struct_size = sizeof job, .gpus = i % 2 == 0 ? 16 : 1};
        if (i % 6 == 1) before.lower_scale = 0;
        if (i % 6 == 3) before.upper_scale = 0;
        after = before;
        mdot_history_trees_correct(trees, &job, &after);
        bool stays = i % 6 != 5;
        assert_int_equal(memcmp(&after, &before, sizeof after) == 0, stays);
        if (!stays) expect_within(log(after.median_s), log(2), 1e-3);
    }
    mdot_history_trees_close(trees);
}

static void other_artefacts_are_refused(void **state)
{
    (void)state;
    static const hs_row others[] = {{"numbers", "log_s", NUMBERS - 1, 3}, {"numbers", "log_s", NUMBERS + 1, 3},
                                    {"numbers", "log_s", NUMBERS, 2},     {"numbers", "log_s", NUMBERS, 4},
                                    {"number", "log_s", NUMBERS, 3},      {"numbers", "logs", NUMBERS, 3}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        mdot_history_trees *trees = NULL;
        linear_compile(&(linear){.row = others[i]}, path);
        assert_true(mdot_history_trees_open(path, &trees, NULL) != MDOT_OK);
        assert_null(trees);
    }
    mdot_history_trees_close(NULL);
}

static int set_up(void **state)
{
    (void)state;
    folder = process_make_folder();
    snprintf(path, sizeof path, "%s/trees.mdot", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_estimate_follows_the_answers_to_its_row),
        cmocka_unit_test(an_estimate_stays_without_a_tail_or_an_answer),
        cmocka_unit_test(other_artefacts_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
