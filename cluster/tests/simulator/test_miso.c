/* test_miso.c — slices of GPUs: the choice of a division against brute force over positions, hand-made cases, and
 * MISO's measurements, if ../shared has them. */
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

#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "simulator/solve/linear.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static void expect_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) fail_msg("%.12g, expected %.12g", got, want);
}

/* Whether the slices can be put at positions of an A100: a slice takes memory slices (of 8) and may begin only at some
 * of them, by NVIDIA's MIG User Guide. */
static bool fits_positions(const int *sizes, size_t count, unsigned memory, int compute)
{
    static const struct {
        int size, memory, starts[8];
    } profiles[] = {
        {1, 1, {0, 1, 2, 3, 4, 5, 6, -1}}, {2, 2, {0, 2, 4, -1}}, {3, 4, {0, 4, -1}}, {4, 4, {0, -1}}, {7, 8, {0, -1}}};
    if (count == 0) return true;
    for (size_t i = 0; i < 5; i++) {
        if (profiles[i].size != sizes[0]) continue;
        for (const int *start = profiles[i].starts; *start >= 0; start++) {
            unsigned taken = ((1u << profiles[i].memory) - 1) << *start;
            if (memory & taken || compute < sizes[0]) continue;
            if (fits_positions(sizes + 1, count - 1, memory | taken, compute - sizes[0])) return true;
        }
    }
    return false;
}

/* Does the chosen division hold jobs that run on one size each? */
static bool is_held(const int *sizes, size_t count)
{
    double values[SC_SLICES][SC_SLICE_SIZES] = {0};
    int chosen[SC_SLICES];
    for (size_t job = 0; job < count; job++)
        for (size_t i = 0; i < SC_SLICE_SIZES; i++) values[job][i] = sizes[job] == sc_slice_sizes[i];
    return sc_partition_choose(count, values, chosen) > 0;
}

/* All lists of up to 7 sizes. */
static void valid_divisions_are_those_that_have_positions(void **state)
{
    (void)state;
    size_t valid = 0;
    for (size_t count = 1; count <= SC_SLICES; count++) {
        size_t lists = 1;
        for (size_t i = 0; i < count; i++) lists *= SC_SLICE_SIZES;
        for (size_t list = 0; list < lists; list++) {
            int sizes[SC_SLICES];
            size_t rest = list;
            for (size_t i = 0; i < count; i++, rest /= SC_SLICE_SIZES) sizes[i] = sc_slice_sizes[rest % SC_SLICE_SIZES];
            bool fits = fits_positions(sizes, count, 0, 7);
            if (is_held(sizes, count) != fits)
                fail_msg("%zu slices beginning with %d, %d: %d by positions", count, sizes[0], sizes[1], fits);
            valid += fits;
        }
    }
    assert_true(valid > 100);
}

static double brute_force(size_t jobs, const double (*values)[SC_SLICE_SIZES], size_t job, int *sizes)
{
    if (job == jobs) return fits_positions(sizes, jobs, 0, 7) ? 0 : -INFINITY;
    double best = -INFINITY;
    for (size_t i = 0; i < SC_SLICE_SIZES; i++) {
        if (values[job][i] <= 0) continue;
        sizes[job] = sc_slice_sizes[i];
        best = fmax(best, values[job][i] + brute_force(jobs, values, job + 1, sizes));
    }
    return best;
}

static void the_best_division_is_chosen(void **state)
{
    (void)state;
    uint64_t random = 9;
    for (int round = 0; round < 300; round++) {
        double values[SC_SLICES][SC_SLICE_SIZES], sum = 0;
        int tried[SC_SLICES], sizes[SC_SLICES];
        size_t jobs = 1 + sc_random_next(&random) % 6;
        for (size_t job = 0; job < jobs; job++)
            for (size_t i = 0; i < SC_SLICE_SIZES; i++)
                values[job][i] = sc_random_next(&random) % 4 == 0 ? 0 : sc_random_unit(&random);
        double best = brute_force(jobs, values, 0, tried), got = sc_partition_choose(jobs, values, sizes);
        if (best == -INFINITY) {
            expect_number(got, -INFINITY);
            continue;
        }
        expect_near(got, best);
        assert_true(fits_positions(sizes, jobs, 0, 7));
        for (size_t job = 0; job < jobs; job++)
            for (size_t i = 0; i < SC_SLICE_SIZES; i++) sum += sizes[job] == sc_slice_sizes[i] ? values[job][i] : 0;
        expect_near(sum, best);
    }
}

static sc_cluster make_gpus(int count)
{
    sc_cluster c = {0};
    char name[24];
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(sc_cluster_add_node(&c, name, "mig", 7, NULL), MDOT_OK);
    }
    return c;
}

/* Gives all jobs one kind, with these speeds on slices of 1, 2, 3, 4 and 7. */
static void slice(sc_workload *w, const double *speeds)
{
    uint32_t kind;
    assert_int_equal(sc_workload_add_kind(w, "any", &kind, NULL), MDOT_OK);
    for (size_t i = 0; i < SC_SLICE_SIZES; i++) w->kinds[kind].speed[0][sc_speed_index(sc_slice_sizes[i])] = speeds[i];
    for (size_t i = 0; i < w->job_count; i++) {
        w->jobs[i].kind = kind;
        w->jobs[i].gpus = 7;
    }
}

static sc_result run(const sc_workload *w, const sc_cluster *c, const char *name, FILE *log)
{
    sc_result r = {0};
    sc_estimator oracle = sc_estimator_oracle();
    const sc_policy *policy;
    mdot_error err = {0};
    assert_int_equal(sc_policy_find(name, &policy, NULL), MDOT_OK);
    if (sc_simulate(w, c, policy, &oracle, &(sc_run_options){.log = log}, &r, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return r;
}

static void jobs_share_a_gpu_in_slices(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 7, 100}, {0, 7, 100}};
    sc_workload w = workload_make(jobs, 2);
    sc_cluster c = make_gpus(1);
    slice(&w, (const double[]){.2, .4, .6, .7, 1});
    /* 4 and 3 sevenths: 0.7 and 0.6 of the speed. When the first ends, the other one gets the whole GPU. */
    sc_result r = run(&w, &c, "miso", NULL);
    double first_s = 100 / .7;
    expect_near(fmin(r.states[0].end_s, r.states[1].end_s), first_s);
    expect_near(fmax(r.states[0].end_s, r.states[1].end_s), first_s + 100 - .6 * first_s);
    sc_result_free(&r);
    sc_cluster_free(&c);
    sc_workload_free(&w);
    /* Slices that are no gain: one job after the other. */
    w = workload_make(jobs, 2);
    c = make_gpus(1);
    slice(&w, (const double[]){0, 0, 0, .4, 1});
    r = run(&w, &c, "miso", NULL);
    expect_near(r.states[0].end_s, 100);
    expect_near(r.states[1].end_s, 200);
    sc_result_free(&r);
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

/* Follows the log: the slices of a GPU are a valid division at every time. */
static void follow(FILE *log, const sc_cluster *c, size_t jobs)
{
    char line[256];
    int *size = calloc(jobs, sizeof *size);
    int *node = calloc(jobs, sizeof *node);
    double last_s = 0;
    assert_non_null(size);
    assert_non_null(node);
    rewind(log);
    assert_non_null(fgets(line, sizeof line, log));
    while (fgets(line, sizeof line, log) != NULL) {
        double time_s;
        char decision[16], type[16] = "", nodes[32] = "";
        int job, gpus = 0;
        if (sscanf(line, "%lf,%15[^,],%d,%15[^,],%d,,%31s", &time_s, decision, &job, type, &gpus, nodes) < 3) continue;
        for (size_t n = 0; time_s > last_s && n < c->node_count; n++) {
            int sizes[SC_SLICES];
            size_t count = 0;
            for (size_t i = 0; i < jobs; i++)
                if (size[i] > 0 && node[i] == (int)n) sizes[count++] = size[i];
            assert_true(count <= SC_SLICES);
            assert_true(fits_positions(sizes, count, 0, 7));
        }
        last_s = time_s;
        bool runs = strcmp(decision, "start") == 0 || strcmp(decision, "move") == 0;
        if (strcmp(decision, "arrive") == 0) continue;
        size[job] = runs ? gpus : 0;
        if (runs) node[job] = atoi(nodes + 1);
    }
    free(size);
    free(node);
}

static void slices_are_valid_at_every_time(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        uint64_t random = seed;
        sc_workload w = workload_random(80, 1, seed);
        sc_cluster c = make_gpus(3);
        FILE *log = tmpfile();
        assert_non_null(log);
        for (size_t i = 0; i < w.job_count; i++) {
            char name[24];
            double speed = 0;
            snprintf(name, sizeof name, "%zu", i);
            assert_int_equal(sc_workload_add_kind(&w, name, &w.jobs[i].kind, NULL), MDOT_OK);
            w.jobs[i].gpus = 7;
            size_t minimum = sc_random_next(&random) % SC_SLICE_SIZES; /* by its memory */
            for (size_t k = 0; k < SC_SLICE_SIZES; k++) {
                speed += sc_random_unit(&random);
                if (k >= minimum) w.kinds[w.jobs[i].kind].speed[0][sc_speed_index(sc_slice_sizes[k])] = speed;
            }
        }
        sc_result r = run(&w, &c, "miso", log);
        follow(log, &c, w.job_count);
        for (size_t i = 0; i < w.job_count; i++) assert_int_equal(r.states[i].preemptions, 0);
        fclose(log);
        sc_result_free(&r);
        sc_cluster_free(&c);
        sc_workload_free(&w);
    }
}

static void nodes_must_have_seven_slices(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}};
    sc_workload w = workload_make(jobs, 1);
    sc_cluster c;
    sc_result r;
    sc_estimator oracle = sc_estimator_oracle();
    mdot_error err = {0};
    slice(&w, (const double[]){1, 1, 1, 1, 1});
    w.jobs[0].gpus = 1;
    assert_int_equal(sc_cluster_make_pool(4, &c, NULL), MDOT_OK);
    assert_int_equal(sc_simulate(&w, &c, &sc_policy_miso, &oracle, &(sc_run_options){0}, &r, &err),
                     MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "7 GPUs");
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

/* MISO's measurements: sharing finishes the same jobs earlier than one job per GPU does. */
static void measured_slices_pay(void **state)
{
    (void)state;
    static const char path[] = MDOT_SHARED_DATA "/measured-2026/miso_mig.csv";
    if (access(path, R_OK) != 0) {
        print_message("skipped: %s is absent\n", path);
        skip();
    }
    static const char *const kinds[] = {"resnet (batch size 64)",      "mobilenet (batch size 64)",
                                        "gnn (batch size 64)",         "embedding (batch size 128)",
                                        "transformer (batch size 16)", "bert (batch size 2)"};
    sc_workload w = workload_random(60, 1, 4);
    sc_cluster c = make_gpus(4);
    mdot_error err = {0};
    for (size_t i = 0; i < w.job_count; i++) {
        assert_int_equal(sc_workload_add_kind(&w, kinds[i % 6], &w.jobs[i].kind, NULL), MDOT_OK);
        w.jobs[i].gpus = 7;
    }
    if (sc_read_throughputs(path, &c, &w, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (size_t i = 0; i < w.job_count; i++) w.jobs[i].work *= w.kinds[w.jobs[i].kind].speed[0][sc_speed_index(7)];
    sc_result whole = run(&w, &c, "fifo", NULL), sliced = run(&w, &c, "miso", NULL);
    double whole_s = 0, sliced_s = 0;
    for (size_t i = 0; i < w.job_count; i++) {
        whole_s += whole.states[i].end_s - w.jobs[i].submit_s;
        sliced_s += sliced.states[i].end_s - w.jobs[i].submit_s;
    }
    print_message("mean completion time %.0f s on whole GPUs, %.0f s in slices\n", whole_s / 60, sliced_s / 60);
    assert_true(sliced_s < .8 * whole_s);
    sc_result_free(&whole);
    sc_result_free(&sliced);
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_divisions_are_those_that_have_positions),
        cmocka_unit_test(the_best_division_is_chosen),
        cmocka_unit_test(jobs_share_a_gpu_in_slices),
        cmocka_unit_test(slices_are_valid_at_every_time),
        cmocka_unit_test(nodes_must_have_seven_slices),
        cmocka_unit_test(measured_slices_pay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
