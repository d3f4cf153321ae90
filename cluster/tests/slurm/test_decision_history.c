/* test_decision_history.c — decisions about jobs with unknown step counts, from the site's history. */
#include "tests/simulator/support/numbers.h"
#include "tests/slurm/support/decision_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

static const mdot_history_estimate known_duration = {.struct_size = sizeof known_duration,
                                                     .median_s = 3000,
                                                     .lower_scale = .2,
                                                     .upper_scale = .3,
                                                     .degrees = INFINITY,
                                                     .early_failure = .125,
                                                     .key = MDOT_HISTORY_KEY_USER_NAME,
                                                     .weight = 7.2};

static void unknown_steps_are_answered_by_the_history(void **state)
{
    (void)state;
    sl_submission s = ON(.partitions = "a100", .per_job = "gres/gpu:1", .history = &known_duration);
    sl_decision d = decides(&site, "batch=8", &s);
    expect_contains(d.comment, " history_s=3000 history_interval_s=2159..4914 history_jobs=8 early_failure=0.12");
    expect_number(d.total_s, 0);
    expect_number(d.limit_minutes, 0);
    assert_false(d.has_priority);
    d = decides(&site, "batch=8,steps=1000", &s);
    assert_null(strstr(d.comment, "history"));
}

static void a_limit_by_history_is_on_request_and_needs_jobs_of_the_name(void **state)
{
    (void)state;
    sl_site limiting = site;
    limiting.limits_by_history = true;
    mdot_history_estimate e = known_duration;
    sl_submission s = ON(.partitions = "a100", .per_job = "gres/gpu:1", .history = &e);
    /* the 95 % quantile, times 1.5, plus 300 s */
    assert_int_equal(decides(&limiting, "batch=8", &s).limit_minutes, ceil((4914 * 1.5 + 300) / 60));
    assert_false(decides(&limiting, "batch=8", &s).has_priority);
    s.own_minutes = 5;
    assert_int_equal(decides(&limiting, "batch=8", &s).limit_minutes, 0);
    s.own_minutes = 0;
    e.weight = 5; /* the fewest jobs */
    assert_true(decides(&limiting, "batch=8", &s).limit_minutes > 0);
    e.weight = 4;
    assert_int_equal(decides(&limiting, "batch=8", &s).limit_minutes, 0);
    e = known_duration;
    e.key = MDOT_HISTORY_KEY_USER;
    assert_int_equal(decides(&limiting, "batch=8", &s).limit_minutes, 0);
    s.history = NULL;
    assert_int_equal(decides(&limiting, "batch=8", &s).limit_minutes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_steps_are_answered_by_the_history),
        cmocka_unit_test(a_limit_by_history_is_on_request_and_needs_jobs_of_the_name),
    };
    return cmocka_run_group_tests(tests, decision_set_up, decision_tear_down);
}
