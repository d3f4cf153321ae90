/* test_experiment.c — networks with predicted step times, and a small run of mdot-figure4 whose files agree with the
 * simulator. test_experiment.py has the means. */
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

static void predictions_are_ratios_to_measurements(void **state)
{
    double *ratios = NULL;
    size_t count;
    mdot_error err = {0};
    char *path = workload_write_file(*state, "p.csv", "network,gpu,step_ms,mdot,mean\na,T4,20,10,15\nb,L4,20,30,15\n");
    assert_int_equal(sc_read_predictions(path, "mdot", &ratios, &count, &err), MDOT_OK);
    assert_int_equal(count, 2);
    expect_number(ratios[0], .5);
    expect_number(ratios[1], 1.5);
    free(ratios);
    free(path);
    static const char *const wrong[][2] = {{"network,step_ms\na,1\n", "no column mdot"},
                                           {"network,step_ms,mdot\n", "holds no networks"},
                                           {"network,step_ms,mdot\na,0,1\n", "p.csv:2: step_ms is 0, less than"},
                                           {"network,mdot\na,1\n", "no column step_ms"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        path = workload_write_file(*state, "p.csv", wrong[i][0]);
        assert_int_equal(sc_read_predictions(path, "mdot", &ratios, &count, &err), MDOT_MALFORMED);
        expect_contains(err.message, wrong[i][1]);
        free(path);
    }
}

static void jobs_of_one_name_have_one_network(void **state)
{
    (void)state;
    enum { JOBS = 200, NETWORKS = 3 };
    double jobs[JOBS][3], ratios[NETWORKS] = {.5, 1, 2};
    for (int i = 0; i < JOBS; i++) memcpy(jobs[i], (double[]){i, 1, 100}, sizeof jobs[i]);
    sc_workload w = workload_make(jobs, JOBS);
    for (int i = 0; i < JOBS; i++) { /* a third of the jobs have a name */
        w.jobs[i].user = strdup(i % 2 == 0 ? "anna" : "ben");
        if (i % 3 == 0) w.jobs[i].name = strdup("train");
    }
    sc_estimator e;
    assert_int_equal(sc_estimator_make_predicted(&w, ratios, NETWORKS, 7, false, &e, NULL), MDOT_OK);
    int counts[NETWORKS] = {0};
    for (uint32_t i = 0; i < JOBS; i++) {
        double ratio = e.factor(e.self, &w, i, 100);
        if (i % 3 == 0) expect_number(ratio, e.factor(e.self, &w, i % 6, 100));
        for (int network = 0; network < NETWORKS; network++) counts[network] += ratio == ratios[network];
    }
    for (int network = 0; network < NETWORKS; network++) assert_true(counts[network] > 20);
    assert_int_equal(counts[0] + counts[1] + counts[2], JOBS);
    sc_estimator_destroy(&e);
    sc_workload_free(&w);
}

static char *write_trace(const char *folder, const char *name, uint64_t seed)
{
    char text[16384];
    size_t used = (size_t)snprintf(text, sizeof text, "job_id,submit_s,gpus,duration_s\n");
    sc_workload workload = workload_random(400, 3, seed);
    for (size_t i = 0; i < workload.job_count; i++) {
        const sc_job *job = &workload.jobs[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s,%g,%d,%g\n", job->id, job->submit_s, job->gpus,
                                 job->work);
    }
    assert_true(used < sizeof text);
    sc_workload_free(&workload);
    return workload_write_file(folder, name, text);
}

static char *read_all(const char *path)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(path, "r");
    assert_non_null(text);
    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    while ((text = strstr(text, part)) != NULL) text += strlen(part), count++;
    return count;
}

static void one_command_writes_table_json_and_drawing(void **state)
{
    char one[256], two[256], prefix[256], path[300];
    process_result result;
    free(write_trace(*state, "one.csv", 1));
    free(write_trace(*state, "two.csv", 2));
    free(workload_write_file(*state, "p.csv", "network,step_ms,good,b<d\na,20,20,15\nb,20,20,90\n"));
    snprintf(one, sizeof one, "One=%s/one.csv", (char *)*state);
    snprintf(two, sizeof two, "Two=%s/two.csv", (char *)*state);
    snprintf(prefix, sizeof prefix, "%s/f", (char *)*state);
    snprintf(path, sizeof path, "%s/p.csv", (char *)*state);
    const char *const line[] = {MDOT_FIGURE4, one,       two, "--gpus", "4",    "--windows",     "3",  "--jobs",
                                "100",        "--seeds", "1", "--out",  prefix, "--predictions", path, NULL};
    process_run(line, &result);
    if (result.status != 0) fail_msg("%s", result.err);

    snprintf(path, sizeof path, "%s.json", prefix);
    char *json = read_all(path);
    double ratios[256], lows[256], highs[256];
    assert_true(json_is_valid(json));
    /* 15 arms, for both traces and for all together, at both loads. */
    size_t count = json_numbers(json, "ratio", ratios, 256);
    assert_int_equal(count, 15 * 3 * 2);
    assert_int_equal(json_numbers(json, "ratio_low", lows, 256), count);
    assert_int_equal(json_numbers(json, "ratio_high", highs, 256), count);
    for (size_t i = 0; i < count; i++) assert_true(lows[i] <= ratios[i] && ratios[i] <= highs[i]);
    expect_number(ratios[0], 1);
    /* A predictor with zero error equals the exact policy. */
    const char *good = strstr(json, "\"arm\": \"SRSF, good\"");
    assert_non_null(good);
    expect_contains(good, "\"ratio\": 1.000000");

    /* The last window with exact durations: jobs 300 to 399. */
    char trace[256], *begin = strstr(json, "windows_mean_jct_s\": [");
    double first, second, third, alone;
    assert_non_null(begin);
    assert_int_equal(sscanf(begin, "windows_mean_jct_s\": [%lf, %lf, %lf]", &first, &second, &third), 3);
    snprintf(trace, sizeof trace, "%s/one.csv", (char *)*state);
    const char *const check[] = {MDOT_SIMULATE, trace,    "--gpus",   "4",       "--policy",
                                 "srsf",        "--json", "--window", "300:100", NULL};
    process_run(check, &result);
    assert_int_equal(json_numbers(result.out, "mean_jct_s", &alone, 1), 1);
    assert_true(fabs(third - alone) < 1e-3);
    free(json);

    snprintf(path, sizeof path, "%s.md", prefix);
    char *table = read_all(path);
    expect_contains(table, "### At load 0.9");
    expect_contains(table, "| SRSF, b<d |");
    free(table);
    snprintf(path, sizeof path, "%s.json", prefix);
    process_run((const char *const[]){MDOT_DRAW, path, NULL}, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    snprintf(path, sizeof path, "%s.svg", prefix);
    char *svg = read_all(path);
    expect_contains(svg, "One, unmodified");
    expect_contains(svg, ">LAS, continuous ");
    assert_int_equal(count_of(svg, "<circle"), 2 * 2 * 2 * 5); /* traces, loads, curves, errors with 0 */
    assert_int_equal(count_of(svg, "width=\"8\""), 2 * 2 * 2); /* predictors */
    expect_contains(svg, "</svg>");
    expect_contains(svg, "b&lt;d</text>");
    assert_null(strstr(svg, "nan"));
    free(svg);
}

static void wrong_command_lines_are_refused(void **state)
{
    (void)state;
    process_result result;
    const char *const no_trace[] = {MDOT_FIGURE4, "--out", "x", NULL};
    const char *const no_name[] = {MDOT_FIGURE4, "trace.csv", "--out", "x", NULL};
    const char *const bad_number[] = {MDOT_FIGURE4, "A=b", "--out", "x", "--seeds", "0", NULL};
    const char *const absent[] = {MDOT_FIGURE4, "A=/nowhere/b.csv", "--out", "x", NULL};
    process_run(no_trace, &result);
    assert_int_equal(result.status, 2);
    process_run(no_name, &result);
    assert_int_equal(result.status, 2);
    expect_contains(result.err, "NAME=FILE");
    process_run(bad_number, &result);
    assert_int_equal(result.status, 2);
    expect_contains(result.err, "--seeds");
    process_run(absent, &result);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "/nowhere/b.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictions_are_ratios_to_measurements),
        cmocka_unit_test(jobs_of_one_name_have_one_network),
        cmocka_unit_test(one_command_writes_table_json_and_drawing),
        cmocka_unit_test(wrong_command_lines_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
