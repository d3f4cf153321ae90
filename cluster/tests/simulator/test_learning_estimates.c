/* test_learning_estimates.c — estimates that learn from completed jobs, mdot-durations, and mdot-cold-start. */
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
#include "simulator/input/input.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

enum { JOBS = 400 };

/* Jobs alternate between two users: anna's take about 100 s, ben's about 5000 s. */
static sc_workload two_users(void)
{
    double jobs[JOBS][3];
    for (int i = 0; i < JOBS; i++) {
        jobs[i][0] = 6000. * i;
        jobs[i][1] = 1;
        jobs[i][2] = i % 2 == 0 ? 100 + i % 7 : 5000 + i % 11;
    }
    sc_workload w = workload_make((const double(*)[3])jobs, JOBS);
    for (int i = 0; i < JOBS; i++) {
        w.jobs[i].user = strdup(i % 2 == 0 ? "anna" : "ben");
        w.jobs[i].name = strdup(i % 2 == 0 ? "short_1" : "long-20240101");
    }
    return w;
}

static void history_learns_users_and_ranks_the_rest(void **state)
{
    (void)state;
    sc_workload w = two_users();
    sc_estimator e;
    assert_int_equal(sc_estimator_make_history(&w, &e, NULL), MDOT_OK);
    double cold = e.factor(e.self, &w, 0, 100);
    assert_true(cold > 5);
    for (uint32_t i = 0; i < JOBS - 2; i++) {
        e.factor(e.self, &w, i, w.jobs[i].work);
        e.learn(e.self, &w, i, w.jobs[i].work, w.jobs[i].submit_s + w.jobs[i].work);
    }
    for (uint32_t i = JOBS - 2; i < JOBS; i++) {
        double factor = e.factor(e.self, &w, i, w.jobs[i].work);
        assert_true(factor > .8);
        assert_true(factor < 1.25);
        double whole_s = e.remaining_s(e.self, &w, i, 0), half_s = e.remaining_s(e.self, &w, i, w.jobs[i].work / 2);
        assert_true(whole_s > .3 * w.jobs[i].work);
        assert_true(whole_s < 1.1 * w.jobs[i].work);
        assert_true(half_s < whole_s);
        /* a job that outlasts all others goes behind */
        assert_true(e.remaining_s(e.self, &w, i, 20 * w.jobs[i].work) > whole_s);
    }
    sc_estimator_destroy(&e);
    sc_workload_free(&w);
}

static void last_two_is_the_mean_of_two_jobs_of_the_user(void **state)
{
    (void)state;
    sc_workload w = two_users();
    sc_estimator e;
    assert_int_equal(sc_estimator_make_last_two(&w, &e, NULL), MDOT_OK);
    expect_number(e.factor(e.self, &w, 0, 100), 36); /* one hour */
    e.learn(e.self, &w, 0, 100, 0);
    expect_number(e.factor(e.self, &w, 1, 100), 1); /* of all */
    e.learn(e.self, &w, 2, 300, 0);
    expect_number(e.factor(e.self, &w, 4, 100), 2);
    e.learn(e.self, &w, 4, 500, 0);
    e.learn(e.self, &w, 1, 7000, 0);
    expect_number(e.factor(e.self, &w, 6, 100), 4);
    expect_number(e.factor(e.self, &w, 3, 7000), 1);
    sc_estimator_destroy(&e);
    sc_workload_free(&w);
}

static void learning_removes_the_error_of_a_network(void **state)
{
    (void)state;
    sc_workload w = two_users();
    uint64_t *digests = calloc(JOBS, sizeof *digests);
    double *factors = calloc(JOBS, sizeof *factors);
    for (int i = 0; i < JOBS; i++) {
        digests[i] = 1 + (uint64_t)(i % 5);
        factors[i] = .6 + .2 * (i % 5); /* .6 to 1.4 */
    }
    sc_estimator base, e;
    assert_int_equal(sc_estimator_make_fixed(factors, &base, NULL), MDOT_OK);
    assert_int_equal(sc_estimator_make_learning(&w, &base, digests, &e, NULL), MDOT_OK);
    expect_number(e.factor(e.self, &w, 0, 100), .6); /* nothing is known */
    for (uint32_t i = 0; i < JOBS - 10; i++) {
        e.factor(e.self, &w, i, w.jobs[i].work);
        e.learn(e.self, &w, i, w.jobs[i].work, w.jobs[i].submit_s + w.jobs[i].work);
    }
    for (uint32_t i = JOBS - 10; i < JOBS; i++) assert_true(fabs(e.factor(e.self, &w, i, w.jobs[i].work) - 1) < .05);
    sc_estimator_destroy(&e);
    sc_workload_free(&w);
}

/* Jobs come faster than one GPU can serve them, so that an order by duration matters. */
static char *write_trace(const char *folder, const char *name)
{
    static char text[1 << 17];
    size_t used = (size_t)snprintf(text, sizeof text, "job_id,submit_s,gpus,duration_s,user,name,outcome,limit_s\n");
    for (int i = 0; i < 1000; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%d,1,%d,%s,%s-%d,%s,3600\n", i, 2500 * i,
                                 i % 2 == 0 ? 100 + i % 7 : 5000 + i % 11, i % 2 == 0 ? "anna" : "ben",
                                 i % 3 == 0 ? "a" : "b", i, i % 10 == 9 ? "failed" : "completed");
    assert_true(used < sizeof text);
    return workload_write_file(folder, name, text);
}

static double mean_of(const char *trace, const char *estimate, const char *more)
{
    process_result result;
    double mean;
    const char *const line[] = {MDOT_SIMULATE, trace,        "--gpus", "1",  "--policy", "srsf",
                                "--json",      "--estimate", estimate, more, NULL};
    process_run(line, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    assert_int_equal(json_numbers(result.out, "mean_jct_s", &mean, 1), 1);
    return mean;
}

static void the_command_has_the_learning_estimates(void **state)
{
    (void)state;
    process_result result;
    char *folder = process_make_folder(), *trace = write_trace(folder, "trace.csv");
    double oracle = mean_of(trace, "oracle", NULL), history = mean_of(trace, "history", NULL);
    double wrong = mean_of(trace, "error:2", NULL), learned = mean_of(trace, "error:2", "--learn");
    assert_true(history < 1.05 * oracle);
    assert_true(mean_of(trace, "last-two", NULL) < 1.1 * oracle);
    assert_true(mean_of(trace, "rolling", NULL) > oracle);
    assert_true(learned != wrong); /* each job has an error, so that only the mean can be learned */
    const char *const bad[] = {MDOT_SIMULATE, trace,        "--gpus",  "1",       "--policy",
                               "srsf",        "--estimate", "history", "--learn", NULL};
    process_run(bad, &result);
    assert_int_equal(result.status, 2);
    expect_contains(result.err, "--learn corrects --estimate error:M");
    process_remove_folder(folder);
    free(trace);
}

static void durations_prints_quantiles_of_each_job(void **state)
{
    (void)state;
    static char out[1 << 19];
    char command[1024], *folder = process_make_folder(), *trace = write_trace(folder, "trace.csv");
    snprintf(command, sizeof command, "%s %s > %s/out", MDOT_DURATIONS, trace, folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s/out", folder);
    FILE *file = fopen(command, "r");
    size_t bytes = fread(out, 1, sizeof out - 1, file);
    fclose(file);
    out[bytes] = '\0';
    expect_contains(out, "job_id,user,group,name,gpu_type,gpus,submit_s,duration_s,outcome,limit_s,early_failure,");
    int lines = 0;
    for (const char *cursor = out; *cursor != '\0'; cursor++) lines += *cursor == '\n';
    assert_int_equal(lines, 1001);
    const char *final = strstr(out, "\n998,anna,,b-998,,1,2495000,");
    assert_non_null(final);
    double failure, weight, q[7];
    int key;
    assert_int_equal(sscanf(strstr(final, ",3600,"), ",3600,%lf,%d,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf\n", &failure, &key,
                            &weight, &q[0], &q[1], &q[2], &q[3], &q[4], &q[5], &q[6]),
                     10);
    assert_true(q[0] > 80);
    assert_true(q[3] > 95);
    assert_true(q[3] < 115);
    assert_true(q[6] < 130);
    assert_true(weight > 100);
    for (int i = 1; i < 7; i++) assert_true(q[i - 1] <= q[i]);
    process_result result;
    process_run((const char *const[]){MDOT_DURATIONS, "/nowhere", NULL}, &result);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "/nowhere");
    process_run((const char *const[]){MDOT_DURATIONS, NULL}, &result);
    assert_int_equal(result.status, 2);
    process_remove_folder(folder);
    free(trace);
}

static void cold_start_writes_table_json_and_curves(void **state)
{
    (void)state;
    char one[600], path[600], prefix[512];
    process_result result;
    char *folder = process_make_folder();
    free(write_trace(folder, "trace.csv"));
    free(workload_write_file(folder, "p.csv", "network,step_ms,mdot\na,20,24\nb,20,16\n"));
    free(workload_write_file(folder, "other.csv", "network,step_ms,x\na,20,24\n"));
    snprintf(one, sizeof one, "One=%s/trace.csv", folder);
    snprintf(path, sizeof path, "%s/p.csv", folder);
    snprintf(prefix, sizeof prefix, "%s/f", folder);
    const char *const line[] = {MDOT_COLD_START, one, "--gpus", "1",    "--windows",     "2",  "--jobs", "400",
                                "--seeds",       "2", "--out",  prefix, "--predictions", path, NULL};
    process_run(line, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    static char text[1 << 20];
    static const char *const suffixes[] = {"json", "md", "svg"};
    snprintf(path, sizeof path, "%s.json", prefix);
    process_run((const char *const[]){MDOT_DRAW, path, NULL}, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s.%s", prefix, suffixes[i]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        expect_contains(text, "SRSF, history");
        expect_contains(text, "SRSF, mdot for 50 %, else history");
        assert_null(strstr(text, "nan"));
        if (i > 0) continue;
        assert_true(json_is_valid(text));
        double ratios[64];
        assert_int_equal(json_numbers(text, "ratio", ratios, 64), 9 * 2 * 2);
        expect_number(ratios[0], 1);
        assert_true(ratios[3] < ratios[8]); /* history is better than none */
        expect_contains(text, "\"tenths_ratio\": [1.0000, 1.0000");
    }
    snprintf(path, sizeof path, "%s/other.csv", folder);
    process_run(line, &result);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "the column mdot");
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(history_learns_users_and_ranks_the_rest),
        cmocka_unit_test(last_two_is_the_mean_of_two_jobs_of_the_user),
        cmocka_unit_test(learning_removes_the_error_of_a_network),
        cmocka_unit_test(the_command_has_the_learning_estimates),
        cmocka_unit_test(durations_prints_quantiles_of_each_job),
        cmocka_unit_test(cold_start_writes_table_json_and_curves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
