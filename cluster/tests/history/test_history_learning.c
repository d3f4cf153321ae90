/* test_history_learning.c — weights of old jobs, and estimates without data. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "history/history_learning.h"
#include "tests/simulator/support/numbers.h"

static void weights_halve_with_each_half_life(void **state)
{
    (void)state;
    for (int n = 0; n < 10; n++) assert_float_equal(hs_decay(60, 1000, 1000 + 60 * n), pow(0.5, n), 1e-12);
    expect_number(hs_decay(INFINITY, 0, 1e9), 1);
}

static void an_empty_history_estimates_an_hour(void **state)
{
    (void)state;
    hs_learning learning;
    hs_learning_begin(&learning);
    hs_nodes *nodes = hs_nodes_create(64);
    assert_non_null(nodes);
    hs_keys keys = {0};
    hs_forecast f = hs_forecast_of(&learning, nodes, &keys, 86400, 0, 0);
    assert_float_equal(f.log_s, log(3600), 1e-9);
    for (int i = 0; i < HS_STEPS; i++) assert_true(f.steps[i].weight == 0);
    hs_learn(&learning, &f, log(60));
    assert_float_equal(hs_forecast_of(&learning, nodes, &keys, 86400, 0, 0).log_s, log(3600), 1e-9);
    hs_nodes_destroy(nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_halve_with_each_half_life),
        cmocka_unit_test(an_empty_history_estimates_an_hour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
