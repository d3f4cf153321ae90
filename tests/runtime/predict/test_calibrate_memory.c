/* test_calibrate_memory.c — memory runs out while rows are calibrated: each refused allocation is a clean failure. */
#include "mdot/mdot.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/refused_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MORE_THAN_ENOUGH = 1000 };

static void refused_memory_is_a_clean_failure(void **state)
{
    (void)state;
#ifdef MDOT_SANITIZED
    skip();
#else
    predict_fixture f = {0};
    predict_open_explained(&f, predict_bandwidth_model(), predict_bandwidth_explained());
    mdot_job *job = predict_job(20, 20);
    enum { ROWS = 12 };
    static const char *const gpus[] = {"T4", "A100", "H100"};
    const mdot_job *jobs[ROWS];
    mdot_configuration c[ROWS];
    double ms[ROWS];
    for (int i = 0; i < ROWS; i++) {
        jobs[i] = job;
        c[i] = predict_configuration(8 << i % 4, gpus[i % 3]);
        ms[i] = (1 + 0.01 * i) * predict_one(&f, job, &c[i]).step_ms;
    }
    mdot_status status = MDOT_OUT_OF_MEMORY;
    int limit = 0;
    for (; status != MDOT_OK && limit < MORE_THAN_ENOUGH; limit++) {
        mdot_calibration *made = NULL;
        mdot_error err = {0};
        const int held = live;
        refusals = 0;
        allocations_left = limit;
        status = mdot_calibrate(f.context, jobs, c, ms, ROWS, &made, &err);
        allocations_left = -1;
        if (status != (refusals > 0 ? MDOT_OUT_OF_MEMORY : MDOT_OK)) fail_msg("allocation %d: %s", limit, err.message);
        assert_compare(made == NULL, ==, status != MDOT_OK);
        assert_compare(err.message[0] != '\0', ==, status != MDOT_OK);
        mdot_calibration_destroy(made);
        assert_int_equal(live, held);
    }
    assert_int_equal(status, MDOT_OK);
    assert_compare(limit, >, 5);
    mdot_job_destroy(job);
    predict_close(&f);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_memory_is_a_clean_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
