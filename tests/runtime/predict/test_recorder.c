/* test_recorder.c — the step time from many times: warm-up and stalls are excluded, and the window median holds against
 * a disturbed window. */
#include "mdot/mdot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/assertions.h"
#include "tests/support/process.h"

static mdot_recorder *recorder_of(uint32_t warmup_steps, uint32_t window_steps)
{
    mdot_recorder_options options = {sizeof options, warmup_steps, window_steps};
    mdot_recorder *recorder = NULL;
    mdot_error err = {0};
    if (mdot_recorder_create(&options, &recorder, &err) != MDOT_OK) fail_msg("%s", err.message);
    return recorder;
}

static void add_steps(mdot_recorder *recorder, int count, double ms)
{
    for (int i = 0; i < count; i++) mdot_recorder_step(recorder, ms);
}

static mdot_recorded finish(mdot_recorder *recorder)
{
    mdot_recorded recorded = MDOT_INIT(mdot_recorded);
    mdot_error err = {0};
    if (mdot_recorder_finish(recorder, &recorded, &err) != MDOT_OK) fail_msg("%s", err.message);
    return recorded;
}

static void warmup_is_excluded(void **state)
{
    (void)state;
    mdot_recorder *r = recorder_of(0, 0);
    add_steps(r, 10, 900);
    add_steps(r, 40, 20);
    mdot_recorded recorded = finish(r);
    assert_within(recorded.step_ms, 20, 1e-9);
    assert_int_equal(recorded.window_count, 4);
    assert_int_equal(recorded.step_count, 40);
    assert_int_equal(recorded.stalled_count, 0);
    assert_within(recorded.spread, 0, 1e-12);
    mdot_recorder_destroy(r);
}

static void stalled_steps_are_excluded_and_counted(void **state)
{
    (void)state;
    mdot_recorder *r = recorder_of(1, 10);
    add_steps(r, 1, 500);
    for (int epoch = 0; epoch < 6; epoch++) {
        add_steps(r, 1, 300); /* waits for data */
        add_steps(r, 9, 20);
    }
    mdot_recorded recorded = finish(r);
    assert_within(recorded.step_ms, 20, 1e-9);
    assert_int_equal(recorded.stalled_count, 6);
    assert_int_equal(recorded.window_count, 5);
    mdot_recorder_destroy(r);
}

/* Every fifth step waits for the device and is twice as long: the window mean is the throughput. */
static void regular_pauses_are_part_of_a_step(void **state)
{
    (void)state;
    mdot_recorder *r = recorder_of(1, 10);
    add_steps(r, 1, 500);
    for (int i = 0; i < 60; i++) add_steps(r, 1, i % 5 == 4 ? 40 : 20);
    assert_within(finish(r).step_ms, 24, 1e-9);
    mdot_recorder_destroy(r);
}

static void median_of_windows_ignores_a_disturbed_window(void **state)
{
    (void)state;
    mdot_recorder *r = recorder_of(1, 10);
    add_steps(r, 1, 500);
    add_steps(r, 20, 20);
    add_steps(r, 10, 50);
    add_steps(r, 20, 20);
    mdot_recorded recorded = finish(r);
    assert_within(recorded.step_ms, 20, 1e-9);
    add_steps(r, 20, 50); /* recording continues: windows 20 20 50 20 20 50 50 */
    recorded = finish(r);
    assert_within(recorded.step_ms, 20, 1e-9);
    assert_within(recorded.spread, 1.5, 1e-9);
    mdot_recorder_destroy(r);
}

static void last_steps_of_a_long_training_count(void **state)
{
    (void)state;
    mdot_recorder *r = recorder_of(0, 0);
    add_steps(r, 5000, 20);
    add_steps(r, 5000, 30);
    mdot_recorded recorded = finish(r);
    assert_within(recorded.step_ms, 30, 1e-9);
    assert_int_equal(recorded.window_count, 409);
    mdot_recorder_destroy(r);
}

static void too_few_steps_are_refused_with_their_number(void **state)
{
    (void)state;
    mdot_recorder *r = recorder_of(0, 0);
    mdot_recorded recorded = MDOT_INIT(mdot_recorded);
    mdot_error err = {0};
    assert_int_equal(mdot_recorder_finish(r, &recorded, &err), MDOT_OUT_OF_RANGE);
    add_steps(r, 39, 20);
    assert_int_equal(mdot_recorder_finish(r, &recorded, &err), MDOT_OUT_OF_RANGE);
    expect_contains(err.message, "39 steps");
    expect_contains(err.message, "3 windows of 10");
    add_steps(r, 1, 20);
    assert_int_equal(mdot_recorder_finish(r, &recorded, &err), MDOT_OK);
    mdot_recorder_destroy(r);
}

static void times_that_are_no_times_are_ignored(void **state)
{
    (void)state;
    mdot_recorder *r = recorder_of(1, 1);
    mdot_recorded recorded = MDOT_INIT(mdot_recorded);
    add_steps(r, 2, 20);
    add_steps(r, 5, 0);
    add_steps(r, 5, -3);
    add_steps(r, 5, NAN);
    add_steps(r, 5, INFINITY);
    assert_int_equal(mdot_recorder_finish(r, &recorded, NULL), MDOT_OUT_OF_RANGE);
    add_steps(r, 2, 20);
    assert_int_equal(finish(r).window_count, 3);
    mdot_recorder_destroy(r);
}

static void options_beyond_their_range_are_refused(void **state)
{
    (void)state;
    mdot_recorder *r = NULL;
    mdot_error err = {0};
    mdot_recorder_options options = {sizeof options, (1 << 16) + 1, 0};
    assert_int_equal(mdot_recorder_create(&options, &r, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "warmup_steps");
    options = (mdot_recorder_options){sizeof options, 0, 1025};
    assert_int_equal(mdot_recorder_create(&options, &r, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "window_steps");
    assert_null(r);
    mdot_recorder_destroy(recorder_of(1 << 16, 1024)); /* the most are accepted */
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile_of(double *values, size_t count, double fraction)
{
    qsort(values, count, sizeof *values, compare);
    double at = fraction * (double)(count - 1), floor_at = floor(at);
    double next = at > floor_at ? values[(size_t)floor_at + 1] : values[(size_t)floor_at];
    return values[(size_t)floor_at] * (1 - (at - floor_at)) + next * (at - floor_at);
}

/* Random steps, stalls and numbers that are no times, in any options: the answer is that of the header's definition. */
static void any_steps_give_the_definition_s_answer(void **state)
{
    (void)state;
    enum { MOST = 9000, LAST = 4096, WINDOWS = 3 };
    static double valid[MOST], kept[LAST], sorted[LAST], windows[LAST];
    static const double wrong[] = {0, -1, NAN, INFINITY};
    static const uint32_t warmups[] = {0, 1, 10, 300}, sizes[] = {0, 1, 7, 1024};
    uint64_t random = 7;
    int refused = 0;
    for (int trial = 0; trial < 160; trial++) {
        uint32_t warmup = warmups[trial % 4], size = sizes[trial / 4 % 4];
        size_t count = (size_t)(trial % 10 == 9 ? 8000 : trial % 3 == 0 ? 40 : 600) + (size_t)trial, all = 0, last = 0;
        mdot_recorder *recorder = recorder_of(warmup, size);
        for (size_t i = 0; i < count; i++) {
            random = random * 6364136223846793005 + 1442695040888963407;
            double ms = 1 + (double)(random >> 40) / (1 << 24);
            if ((random >> 33) % 16 == 0) ms *= 4; /* perhaps stalled */
            bool is_wrong = (random >> 37) % 8 == 0;
            mdot_recorder_step(recorder, is_wrong ? wrong[(random >> 35) % 4] : ms);
            if (!is_wrong) valid[all++] = ms;
        }
        size_t first = warmup != 0 ? warmup : 10, window = size != 0 ? size : 10, filled = 0, in_window = 0,
               stalled = 0;
        size_t begin = all > first ? all - first < LAST ? first : all - LAST : all;
        for (size_t i = begin; i < all; i++) kept[last] = sorted[last] = valid[i], last++;
        double median = last > 0 ? quantile_of(sorted, last, .5) : 0, sum = 0;
        for (size_t i = 0; i < last; i++) {
            if (kept[i] > 3 * median) {
                stalled++;
                continue;
            }
            sum += kept[i];
            if (++in_window == window) windows[filled++] = sum / (double)window, sum = 0, in_window = 0;
        }
        mdot_recorded got = MDOT_INIT(mdot_recorded);
        mdot_error err = {0};
        mdot_status status = mdot_recorder_finish(recorder, &got, &err);
        mdot_recorder_destroy(recorder);
        assert_int_equal(status, filled < WINDOWS ? MDOT_OUT_OF_RANGE : MDOT_OK);
        refused += filled < WINDOWS;
        if (filled < WINDOWS) continue;
        double step = quantile_of(windows, filled, .5);
        assert_within(got.step_ms, step, 1e-12);
        assert_within(got.spread, (quantile_of(windows, filled, .75) - quantile_of(windows, filled, .25)) / step,
                      1e-12);
        assert_int_equal(got.window_count, filled);
        assert_int_equal(got.step_count, filled * window);
        assert_int_equal(got.stalled_count, stalled);
    }
    assert_in_range(refused, 20, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warmup_is_excluded),
        cmocka_unit_test(stalled_steps_are_excluded_and_counted),
        cmocka_unit_test(regular_pauses_are_part_of_a_step),
        cmocka_unit_test(median_of_windows_ignores_a_disturbed_window),
        cmocka_unit_test(last_steps_of_a_long_training_count),
        cmocka_unit_test(too_few_steps_are_refused_with_their_number),
        cmocka_unit_test(times_that_are_no_times_are_ignored),
        cmocka_unit_test(options_beyond_their_range_are_refused),
        cmocka_unit_test(any_steps_give_the_definition_s_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
