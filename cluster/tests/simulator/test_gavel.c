/* test_gavel.c — policies for several GPU types: the GPUs that jobs get on small clusters, tables of throughputs, and
 * the published trace if ../shared exists. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "simulator/input/input.h"
#include "simulator/solve/linear.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

#define NEEDS_SOLVER                                                                                                   \
    do {                                                                                                               \
        if (!sc_linear_is_available()) {                                                                               \
            print_message("built without a solver of linear programs\n");                                              \
            skip();                                                                                                    \
        }                                                                                                              \
    } while (0)

static int set_up(void **state)
{
    char *folder = process_make_folder();
    free(workload_write_file(folder, "cluster.csv", "node,type,gpus\na,fast,1\nb,slow,1\n"));
    /* The fast GPU makes "picky" ten times as fast, and "easy" 1.5 times as fast. */
    free(workload_write_file(folder, "speeds.csv",
                             "job_type,gpus,type,steps_per_s\npicky,1,fast,10\npicky,1,slow,1\n"
                             "easy,1,fast,1.5\neasy,1,slow,1\n"));
    free(workload_write_file(folder, "trace.csv",
                             "job_id,submit_s,gpus,job_type,steps\n0,0,1,easy,3600\n1,0,1,picky,36000\n"));
    *state = folder;
    return 0;
}

static int tear_down(void **state)
{
    process_remove_folder(*state);
    return 0;
}

static void simulate(const char *folder, const char *policy, process_result *result)
{
    char trace[256], cluster[256], speeds[256];
    snprintf(trace, sizeof trace, "%s/trace.csv", folder);
    snprintf(cluster, sizeof cluster, "%s/cluster.csv", folder);
    snprintf(speeds, sizeof speeds, "%s/speeds.csv", folder);
    const char *const line[] = {MDOT_SIMULATE, trace,      "--cluster", cluster,  "--throughputs",
                                speeds,        "--policy", policy,      "--json", NULL};
    process_run(line, result);
}

static void jobs_run_where_they_gain_most(void **state)
{
    NEEDS_SOLVER;
    static const char *const policies[] = {"gavel-makespan", "allox"};
    process_result result;
    for (size_t i = 0; i < 2; i++) {
        double makespan, mean;
        simulate(*state, policies[i], &result);
        if (result.status != 0) fail_msg("%s", result.err);
        assert_int_equal(json_numbers(result.out, "makespan_s", &makespan, 1), 1);
        assert_int_equal(json_numbers(result.out, "mean_jct_s", &mean, 1), 1);
        /* Both take 3600 s on their best types. With the types exchanged, picky would take ten hours. */
        expect_number(makespan, 3600);
        expect_number(mean, 3600);
    }
}

static void time_slices_follow_the_allocation(void **state)
{
    NEEDS_SOLVER;
    process_result result;
    double makespan;
    /* The normalised throughputs are (1.5 f + s) / 1.25 for easy and (10 f + s) / 5.5 for picky. They are equal if
     * easy has half of the fast GPU's time. The jobs then take turns, and both end later than with one GPU each. */
    simulate(*state, "gavel", &result);
    if (result.status != 0) fail_msg("%s", result.err);
    assert_int_equal(json_numbers(result.out, "makespan_s", &makespan, 1), 1);
    assert_true(makespan > 3600);
    assert_true(makespan < 2 * 3600);
    simulate(*state, "isolated", &result);
    assert_int_equal(result.status, 0);
    simulate(*state, "gavel-ftf", &result);
    assert_int_equal(result.status, 0);
}

static void missing_inputs_of_policies_are_named(void **state)
{
    process_result result;
    char trace[256], cluster[256];
    snprintf(trace, sizeof trace, "%s/plain.csv", (char *)*state);
    snprintf(cluster, sizeof cluster, "%s/cluster.csv", (char *)*state);
    free(workload_write_file(*state, "plain.csv", "job_id,submit_s,gpus,duration_s\nj,0,1,10\n"));
    const char *const line[] = {MDOT_SIMULATE, trace, "--cluster", cluster, "--policy", "gavel", NULL};
    process_run(line, &result);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "job j has no job_type");
    const char *const ranked[] = {MDOT_SIMULATE, trace,        "--cluster", cluster, "--policy",
                                  "easy",        "--priority", "1,1,1",     NULL};
    process_run(ranked, &result);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "policy easy schedules each of the 2 GPU types apart");
    const char *const slow[] = {MDOT_SIMULATE,    trace, "--gpus", "1", "--policy", "isolated",
                                "--restart-cost", "400", NULL};
    process_run(slow, &result);
    assert_int_equal(result.status, 1);
}

static void tables_of_throughputs_are_read(void **state)
{
    sc_workload w = {0};
    sc_cluster c = {0};
    uint32_t picky, partner;
    mdot_error err = {0};
    assert_int_equal(sc_workload_add_kind(&w, "picky", &picky, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(&w, "other", &partner, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_add_node(&c, "a", "FAST", 8, NULL), MDOT_OK);
    char *path = workload_write_file(*state, "t.csv",
                                     "job_type,gpus,type,steps_per_s,spread\npicky,1,fast,10,\npicky,4,Fast,30,1.25\n"
                                     "picky,1,slow,1,\nunknown,1,fast,7,\n");
    assert_int_equal(sc_read_throughputs(path, &c, &w, NULL), MDOT_OK);
    free(path);
    expect_number(w.kinds[picky].speed[0][0], 10);
    expect_number(w.kinds[picky].speed[0][2], 30);
    expect_number(w.kinds[picky].spread[0][2], 1.25);
    expect_number(w.kinds[picky].spread[0][0], 0);
    expect_number(w.kinds[picky].speed[0][1], 0);
    expect_number(w.kinds[partner].speed[0][0], 0);
    /* Samples: a step of the trace is one on the job's own GPUs, whatever the table's unit. */
    static const char *const units[] = {
        "job_type,gpus,type,steps_per_s,batch\nother,1,fast,10,32\nother,4,fast,8,128\n",
        "job_type,gpus,type,samples_per_s,batch\nother,1,fast,320,32\nother,4,fast,1024,128\n"};
    for (size_t i = 0; i < 2; i++) {
        path = workload_write_file(*state, "t.csv", units[i]);
        if (sc_read_throughputs(path, &c, &w, &err) != MDOT_OK) fail_msg("%s", err.message);
        free(path);
        expect_number(w.kinds[partner].speed[0][0], 320);
        expect_number(w.kinds[partner].speed[0][2], 1024);
        sc_job narrow = {.gpus = 1, .kind = partner}, wide = {.gpus = 4, .kind = partner};
        expect_number(sc_workload_speed(&w, &narrow, 0, 1), 10);
        expect_number(sc_workload_speed(&w, &narrow, 0, 4), 32);
        expect_number(sc_workload_speed(&w, &wide, 0, 4), 8);
        expect_number(sc_workload_speed(&w, &wide, 0, 1), 2.5);
    }
    static const char *const wrong[][2] = {
        {"job_type,gpus,type,samples_per_s\nother,1,fast,10\n", "no column batch"},
        {"job_type,gpus,type,steps_per_s,batch\nother,1,fast,10,16\n", "t.csv:2: other has batch 32 and 16 on 1 GPUs"},
        {"job_type,gpus,type,steps_per_s\npicky,3,fast,10\n", "t.csv:2: gpus is 3, but must be a power of two"},
        {"job_type,gpus,type,steps_per_s\npicky,1,fast,-1\n", "t.csv:2: steps_per_s is -1"},
        {"job_type,gpus,type,steps_per_s,spread\npicky,1,fast,1,0.5\n", "t.csv:2: spread is 0.5, less than 1"},
        {"job_type,gpus,type\npicky,1,fast\n", "no column steps_per_s"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        path = workload_write_file(*state, "t.csv", wrong[i][0]);
        assert_int_equal(sc_read_throughputs(path, &c, &w, &err), MDOT_MALFORMED);
        expect_contains(err.message, wrong[i][1]);
        free(path);
    }
    path = workload_write_file(
        *state, "t.json",
        "{\"fast\": {\"('picky', 2)\": {\"null\": 5.5, \"('other', 2)\": [1, 2]}, \"('x', 1)\": {}}}");
    mdot_status status = sc_read_throughputs(path, &c, &w, &err);
    if (status != MDOT_UNSUPPORTED) {
        assert_int_equal(status, MDOT_OK);
        expect_number(w.kinds[picky].speed[0][1], 5.5);
        free(path);
        path = workload_write_file(*state, "t.json", "{\"fast\": {\"('picky', 2)\": {\"nil\": 5.5}}}");
        assert_int_equal(sc_read_throughputs(path, &c, &w, &err), MDOT_MALFORMED);
        expect_contains(err.message, "('picky', 2) has no throughput alone");
        free(path);
        path = workload_write_file(*state, "t.json", "{\"fast\": ");
        assert_int_equal(sc_read_throughputs(path, &c, &w, &err), MDOT_MALFORMED);
    }
    free(path);
    sc_workload_free(&w);
    sc_cluster_free(&c);
}

static void the_published_trace_is_reproduced(void **state)
{
    NEEDS_SOLVER;
    static const struct {
        const char *policy;
        double mean_s, makespan_s;
    } cases[] = {
        {"isolated", 13623, 170217}, {"gavel", 9945, 158338}, {"gavel-ftf", 10264, 158328}, {"allox", 10328, 158399}};
    const char *trace = MDOT_SHARED_DATA "/simulators/inputs/gavel_single150.csv";
    const char *speeds = MDOT_SHARED_DATA "/gavel/simulation_throughputs.json";
    if (access(trace, R_OK) != 0) {
        print_message("%s is absent\n", trace);
        skip();
    }
    char cluster[256];
    snprintf(cluster, sizeof cluster, "%s/published.csv", (char *)*state);
    free(workload_write_file(*state, "published.csv", "node,type,gpus\na,v100,6\nb,p100,6\nc,k80,6\n"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        process_result result;
        double mean_s, makespan_s;
        const char *const line[] = {MDOT_SIMULATE, trace,      "--cluster",     cluster,  "--throughputs",
                                    speeds,        "--policy", cases[i].policy, "--json", NULL};
        process_run(line, &result);
        if (result.status != 0 && strstr(result.err, "json-c") != NULL) {
            print_message("%s", result.err);
            skip();
        }
        assert_int_equal(result.status, 0);
        assert_int_equal(json_numbers(result.out, "mean_jct_s", &mean_s, 1), 1);
        assert_int_equal(json_numbers(result.out, "makespan_s", &makespan_s, 1), 1);
        print_message("%s: mean %.0f s (%+.1f %%), makespan %.0f s (%+.1f %%)\n", cases[i].policy, mean_s,
                      100 * (mean_s / cases[i].mean_s - 1), makespan_s, 100 * (makespan_s / cases[i].makespan_s - 1));
        /* Gavel's AlloX matches jobs to free machines only, and moves jobs; its fairness breaks no ties. */
        bool is_better = strcmp(cases[i].policy, "allox") == 0 || strcmp(cases[i].policy, "gavel-ftf") == 0;
        assert_true(mean_s / cases[i].mean_s - 1 < .05 && mean_s / cases[i].mean_s - 1 > (is_better ? -.15 : -.05));
        assert_true(fabs(makespan_s / cases[i].makespan_s - 1) < .02);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_run_where_they_gain_most),        cmocka_unit_test(time_slices_follow_the_allocation),
        cmocka_unit_test(missing_inputs_of_policies_are_named), cmocka_unit_test(tables_of_throughputs_are_read),
        cmocka_unit_test(the_published_trace_is_reproduced),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
