/* test_loss_curves.c — losses of jobs, their fits, and the policies that use them: Optimus and HyperSched. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "simulator/policy/loss_curves.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"

static void losses_fall_from_1_to_the_target(void **state)
{
    (void)state;
    for (uint32_t job = 0; job < 100; job++) {
        assert_true(fabs(sc_loss_at(job, 0) - 1) < 1e-12);
        assert_true(fabs(sc_loss_at(job, 1) - .1) < 1e-12);
        for (int i = 0; i < 100; i++) assert_true(sc_loss_at(job, i / 100.) > sc_loss_at(job, (i + 1) / 100.));
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Fits at more progress are nearer to the truth: the median of |log of predicted over true work| over 60 jobs. */
static void fits_approach_the_truth(void **state)
{
    (void)state;
    enum { JOBS = 60 };
    double jobs[JOBS][3], errors[JOBS], medians[4];
    sc_state states[JOBS] = {{0}};
    for (int i = 0; i < JOBS; i++) {
        jobs[i][0] = 0;
        jobs[i][1] = 1;
        jobs[i][2] = 1000;
    }
    sc_workload w = workload_make((const double(*)[3])jobs, JOBS);
    sc_view view = {.workload = &w, .states = states};
    static const double parts[] = {.02, .2, .5, .9};
    for (int p = 0; p < 4; p++) {
        for (uint32_t i = 0; i < JOBS; i++) {
            sc_loss_fit fit = {0};
            states[i].remaining = 1000 * (1 - parts[p]);
            errors[i] = fabs(log(parts[p] + sc_loss_left_ratio(&view, i, &fit) * (1 - parts[p])));
        }
        qsort(errors, JOBS, sizeof *errors, by_size);
        medians[p] = errors[JOBS / 2];
    }
    assert_true(medians[0] < 1e-12); /* fewer than ten points: the estimate stays */
    if (!(medians[1] > medians[2] && medians[2] > medians[3] && medians[2] < .3))
        fail_msg("%g, %g, %g", medians[1], medians[2], medians[3]);
    sc_workload_free(&w);
}

/* Four GPUs and two equal jobs that scale with width get two each. */
static void optimus_widens_by_marginal_gain(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    sc_workload w = workload_make(jobs, 2);
    for (int i = 0; i < 2; i++) {
        w.jobs[i].least_gpus = 1;
        w.jobs[i].most_gpus = 4;
        w.jobs[i].scaling = 1;
    }
    sc_result r = workload_run(&w, 4, "optimus", NULL, SC_ERRORS_SCALE);
    expect_number(r.states[0].end_s, 500);
    expect_number(r.states[1].end_s, 500);
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* One GPU. The first job's loss has flattened when the second one comes, whose loss may still fall by all. */
static void hypersched_pauses_a_flat_training(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 10000}, {8000, 1, 1000}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = workload_run(&w, 1, "hypersched", NULL, SC_ERRORS_SCALE);
    expect_number(r.states[1].start_s, 8000);
    assert_true(r.states[1].end_s < r.states[0].end_s);
    assert_true(r.states[0].preemptions > 0);
    sc_result_free(&r);
    w.jobs[1].deadline_s = 8100; /* after that, it goes last */
    r = workload_run(&w, 1, "hypersched", NULL, SC_ERRORS_SCALE);
    assert_true(r.states[1].end_s > r.states[0].end_s);
    sc_result_free(&r);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_fall_from_1_to_the_target),
        cmocka_unit_test(fits_approach_the_truth),
        cmocka_unit_test(optimus_widens_by_marginal_gain),
        cmocka_unit_test(hypersched_pauses_a_flat_training),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
