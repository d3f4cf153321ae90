/* test_calibration_text_memory.c — memory runs out while a calibration is parsed: each refused allocation is a clean
 * failure. */
#include "mdot/mdot.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"
#include "tests/support/refused_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
    mdot_calibration *calibration = NULL;
    assert_int_equal(mdot_calibrate(f.context, jobs, c, ms, ROWS, &calibration, NULL), MDOT_OK);
    char *folder = process_make_folder(), *path = process_in_folder(folder, "site.cal");
    assert_int_equal(mdot_calibration_save(calibration, path, NULL), MDOT_OK);
    mdot_calibration_destroy(calibration);
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    mdot_status status = MDOT_OUT_OF_MEMORY;
    int limit = 0;
    for (; status != MDOT_OK && limit < MORE_THAN_ENOUGH; limit++) {
        mdot_calibration *made = NULL;
        mdot_error err = {0};
        const int held = live;
        refusals = 0;
        allocations_left = limit;
        status = mdot_calibration_parse(text, size, &made, &err);
        allocations_left = -1;
        if (status != (refusals > 0 ? MDOT_OUT_OF_MEMORY : MDOT_OK)) fail_msg("allocation %d: %s", limit, err.message);
        assert_compare(made == NULL, ==, status != MDOT_OK);
        assert_compare(err.message[0] != '\0', ==, status != MDOT_OK);
        mdot_calibration_destroy(made);
        assert_int_equal(live, held);
    }
    assert_int_equal(status, MDOT_OK);
    assert_compare(limit, >, 3);
    free(path);
    process_remove_folder(folder);
    mdot_job_destroy(job);
    predict_close(&f);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_memory_is_a_clean_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
