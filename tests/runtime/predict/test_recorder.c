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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
