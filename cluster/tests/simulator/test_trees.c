/* test_trees.c — a history's durations, corrected by trees: durations.onnx gives jobs on four or more GPUs e times
 * the history's median, with a spread of their own (lab/tests/test_durations.py draws such jobs). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

enum { JOBS = 200 };

static char *compile(const char *folder)
{
    char *path = NULL;
    process_result result;
    assert_true(asprintf(&path, "%s/durations.mdot", folder) > 0);
    process_run((const char *const[]){MDOT_CLI, "compile", MDOT_CLUSTER_DIR "/tests/simulator/data/durations.onnx",
                                      "-o", path, "-q", NULL},
                &result);
    if (result.status != 0) fail_msg("%s", result.err);
    return path;
}

/* Jobs that take about 1,000 s, on 1 and 8 GPUs in turn. */
static sc_workload similar_jobs(void)
{
    double jobs[JOBS][3];
    for (int i = 0; i < JOBS; i++) {
        jobs[i][0] = 4000. * i;
        jobs[i][1] = i % 2 == 0 ? 1 : 8;
        jobs[i][2] = 900 + i % 7 * 40;
    }
    return workload_make((const double(*)[3])jobs, JOBS);
}

static void trees_correct_the_history(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *path = compile(folder);
    sc_workload w = similar_jobs();
    sc_estimator plain, corrected;
    mdot_error err = {0};
    assert_int_equal(sc_estimator_make_history(&w, &plain, NULL), MDOT_OK);
    if (sc_estimator_make_trees(&w, path, &corrected, &err) != MDOT_OK) fail_msg("%s", err.message);
    double sums[2] = {0};
    for (uint32_t i = 0; i < JOBS; i++) {
        double work_s = w.jobs[i].work, before = plain.factor(plain.self, &w, i, work_s);
        double after = corrected.factor(corrected.self, &w, i, work_s);
        double rest_s = corrected.remaining_s(corrected.self, &w, i, 100);
        assert_true(after > 0 && isfinite(after));
        assert_true(rest_s > 0 && isfinite(rest_s));
        if (i >= JOBS / 2) sums[i % 2] += log(after / before) / (JOBS / 4.0);
        plain.learn(plain.self, &w, i, work_s, w.jobs[i].submit_s + work_s);
        corrected.learn(corrected.self, &w, i, work_s, w.jobs[i].submit_s + work_s);
    }
    expect_within(sums[1] - sums[0], 1, 0.1);
    corrected.renew(corrected.self, &w, JOBS - 1);
    assert_true(corrected.remaining_s(corrected.self, &w, JOBS - 1, 0) >
                plain.remaining_s(plain.self, &w, JOBS - 1, 0));
    sc_estimator_destroy(&plain);
    sc_estimator_destroy(&corrected);
    sc_workload_free(&w);
    free(path);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_correct_the_history),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
