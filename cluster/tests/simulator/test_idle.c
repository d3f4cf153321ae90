/* test_idle.c — offline jobs in idle windows: the jobs that start, the jobs that are cut off, and refused files. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/core/workload.h"
#include "simulator/idle/idle.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

static int set_up(void **state)
{
    *state = process_make_folder();
    return 0;
}

static int tear_down(void **state)
{
    process_remove_folder(*state);
    return 0;
}

/* Windows of two hours and one hour on one GPU. A job of two and a half hours exceeds both. */
static sc_idle_window two[] = {{0, 7200}, {10000, 13600}};
static const double jobs[][3] = {{0, 1, 9000}, {0, 1, 3600}, {0, 1, 3600}, {0, 1, 3000}};

static sc_idle_result fill(const sc_workload *w, const sc_idle_windows *windows, sc_idle_rule rule,
                           const double *estimated_s)
{
    sc_idle_result result;
    mdot_error err = {0};
    if (sc_fill_idle_windows(w, windows, rule, estimated_s, &result, &err) != MDOT_OK) fail_msg("%s", err.message);
    return result;
}

static void rules_start_jobs_that_are_estimated_to_fit(void **state)
{
    (void)state;
    sc_workload w = workload_make(jobs, 4);
    sc_idle_windows windows = {two, 2};
    sc_idle_result r = fill(&w, &windows, SC_IDLE_ORACLE, NULL);
    /* Jobs 1 and 2 run in the first window, job 3 in the second. */
    assert_int_equal(r.ended, 3);
    assert_int_equal(r.cut_off, 0);
    assert_true(fabs(r.idle_gpu_h - 3) < 1e-9);
    assert_true(fabs(r.used_gpu_h - 10200. / 3600) < 1e-9);
    expect_number(r.lost_gpu_h, 0);
    /* First-fit loses two hours to job 0, then job 1 fills the second window. */
    r = fill(&w, &windows, SC_IDLE_FIRST_FIT, NULL);
    assert_int_equal(r.ended, 1);
    assert_int_equal(r.cut_off, 1);
    assert_true(fabs(r.lost_gpu_h - 2) < 1e-9);
    assert_true(fabs(r.used_gpu_h - 1) < 1e-9);
    /* With estimates that are a tenth too long, 1 and 2 together exceed the first window. Therefore 3 follows 1, and
     * the second window stays empty. */
    const double longer[] = {9900, 3960, 3960, 3300};
    r = fill(&w, &windows, SC_IDLE_UPPER, longer);
    assert_int_equal(r.ended, 2);
    assert_int_equal(r.cut_off, 0);
    assert_true(fabs(r.used_gpu_h - 6600. / 3600) < 1e-9);
    sc_workload_free(&w);
}

static void a_preempted_job_waits_again(void **state)
{
    (void)state;
    /* Another GPU has been idle. It takes the job when the first GPU has lost it. */
    static sc_idle_window pair[] = {{0, 100}, {50, 400}};
    static const double one[][3] = {{0, 1, 200}};
    sc_workload w = workload_make(one, 1);
    sc_idle_windows windows = {pair, 2};
    sc_idle_result r = fill(&w, &windows, SC_IDLE_FIRST_FIT, NULL);
    assert_int_equal(r.cut_off, 1);
    assert_int_equal(r.ended, 1);
    assert_true(fabs(r.lost_gpu_h - 100. / 3600) < 1e-9);
    sc_workload_free(&w);
}

/* For every rule, time is counted once, the oracle loses none, and only arrived jobs end. */
static void every_rule_counts_time_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t random = seed;
        sc_workload w = workload_random(100, 1, seed);
        sc_idle_window items[60];
        double estimated_s[100];
        double at_s = 0;
        for (size_t i = 0; i < 60; i++) {
            at_s += (double)(sc_random_next(&random) % 200);
            items[i] = (sc_idle_window){at_s, at_s + (double)(sc_random_next(&random) % 2500)};
        }
        for (size_t i = 0; i < 100; i++) estimated_s[i] = w.jobs[i].work * (.5 + sc_random_unit(&random));
        sc_idle_windows windows = {items, 60};
        for (int rule = 0; rule < SC_IDLE_RULES; rule++) {
            sc_idle_result r = fill(&w, &windows, (sc_idle_rule)rule, estimated_s);
            assert_true(r.used_gpu_h + r.lost_gpu_h <= r.idle_gpu_h + 1e-9);
            assert_true(r.ended <= 100);
            if (rule == SC_IDLE_ORACLE) assert_true(r.cut_off == 0 && r.lost_gpu_h == 0);
        }
        sc_workload_free(&w);
    }
}

static void files_are_checked(void **state)
{
    static const char *const wrong[][2] = {
        {"gpu,from_s,to_s\n", "holds no windows"},
        {"gpu,from_s,to_s\n0,100,50\n", "w.csv:2: to_s is 50, less than 100"},
        {"gpu,from_s,to_s\n0,0,50\n1,0,50\n0,40,90\n", "w.csv:4: GPU 0 is idle twice at a time, as line 2"},
        {"gpu,from_s\n0,0\n", "no column to_s"}};
    mdot_error err = {0};
    sc_idle_windows windows;
    for (size_t i = 0; i < 4; i++) {
        char *path = workload_write_file(*state, "w.csv", wrong[i][0]);
        assert_int_equal(sc_read_idle_windows(path, &windows, &err), MDOT_MALFORMED);
        expect_contains(err.message, wrong[i][1]);
        free(path);
    }
    char *path = workload_write_file(*state, "w.csv", "gpu,from_s,to_s\nb,50,60\na,0,50\na,50,70\n");
    assert_int_equal(sc_read_idle_windows(path, &windows, &err), MDOT_OK);
    assert_int_equal(windows.count, 3);
    expect_number(windows.items[0].from_s, 0);
    expect_number(windows.items[1].to_s, 60);
    expect_number(windows.items[2].to_s, 70);
    sc_idle_windows_free(&windows);
    free(path);
    static const double wide[][3] = {{0, 2, 10}};
    sc_workload w = workload_make(wide, 1);
    sc_idle_result result;
    windows = (sc_idle_windows){two, 2};
    assert_int_equal(sc_fill_idle_windows(&w, &windows, SC_IDLE_ORACLE, NULL, &result, &err), MDOT_INVALID_ARGUMENT);
    sc_workload_free(&w);
}

static void the_command_compares_rules(void **state)
{
    process_result result;
    double used[3];
    char *trace = workload_write_file(
        *state, "t.csv", "job_id,submit_s,gpus,duration_s\na,0,1,9000\nb,0,1,3600\nc,0,1,3600\nd,0,1,3000\n");
    char *idle = workload_write_file(*state, "i.csv", "gpu,from_s,to_s\n0,0,7200\n0,10000,13600\n");
    const char *const line[] = {MDOT_SIMULATE, trace, "--idle", idle, "--upper", "1.1", "--json", NULL};
    process_run(line, &result);
    assert_int_equal(result.status, 0);
    assert_true(json_is_valid(result.out));
    assert_int_equal(json_numbers(result.out, "used_gpu_h", used, 3), 3);
    assert_true(fabs(used[0] - 6600. / 3600) < 1e-5);
    assert_true(fabs(used[1] - 1) < 1e-5);
    assert_true(fabs(used[2] - 10200. / 3600) < 1e-5);
    const char *const pair[] = {MDOT_SIMULATE, trace, "--idle", idle, "--gpus", "4", NULL};
    process_run(pair, &result);
    assert_int_equal(result.status, 2);
    free(trace);
    free(idle);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_start_jobs_that_are_estimated_to_fit),
        cmocka_unit_test(a_preempted_job_waits_again),
        cmocka_unit_test(every_rule_counts_time_once),
        cmocka_unit_test(files_are_checked),
        cmocka_unit_test(the_command_compares_rules),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
