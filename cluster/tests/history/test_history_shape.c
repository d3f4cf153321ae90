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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_invert_probabilities),
        cmocka_unit_test(quantiles_are_those_of_tables),
        cmocka_unit_test(the_fit_finds_scales_and_tails),
        cmocka_unit_test(errors_beyond_the_bins_count_as_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
