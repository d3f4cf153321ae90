/* test_pairs.c — space sharing: Gavel's programs over pairs against a second solver's optima, the sharing of GPUs in
 * the simulator, and the table of pairs. */
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
#include "simulator/policy/policies.h"
#include "simulator/report/simulation_report.h"
#include "simulator/solve/linear.h"
#include "simulator/solve/time_fractions.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

enum { TYPES = 3, MOST_JOBS = 16, MOST_PAIRS = 128 };

static void expect_near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.12g, expected %.12g", got, want);
}

/* A hand-solved case: one GPU, two jobs; each keeps 0.8 of the full speed beside the other. */
static void a_pair_raises_the_least_throughput(void **state)
{
    (void)state;
    if (!sc_linear_is_available()) skip();
    const double ones[] = {1, 1}, kept[] = {.8};
    const sc_pair pair = {0, 1, kept, kept};
    sc_time_fractions p = {.jobs = 2,
                           .types = 1,
                           .speed = ones,
                           .scale = ones,
                           .weight = ones,
                           .remaining = ones,
                           .since_start_s = (const double[]){0, 0},
                           .gpus = ones,
                           .pairs = &pair,
                           .pair_count = 1,
                           .limit_s = 10};
    double fractions[3], value;
    assert_int_equal(sc_time_fractions_max_min(&p, fractions, &value, NULL), MDOT_OK);
    expect_near(value, .8, 1e-9);
    expect_near(fractions[2], 1, 1e-9);
    assert_int_equal(sc_time_fractions_makespan(&p, fractions, &value, NULL), MDOT_OK);
    expect_near(value, 1.25, 1e-9);
    assert_int_equal(sc_time_fractions_finish_time(&p, fractions, &value, NULL), MDOT_OK);
    expect_near(value, .5 / .8, 1e-6);
    /* A pair that keeps less than half is worse than taking turns. */
    const sc_pair bad = {0, 1, (const double[]){.45}, (const double[]){.45}};
    p.pairs = &bad;
    assert_int_equal(sc_time_fractions_max_min(&p, fractions, &value, NULL), MDOT_OK);
    expect_near(value, .5, 1e-9);
}

typedef struct instance {
    double gpus[TYPES], scale[MOST_JOBS], weight[MOST_JOBS], remaining[MOST_JOBS], since_s[MOST_JOBS];
    double speed[MOST_JOBS * TYPES], pair_speed[2 * MOST_PAIRS * TYPES], optima[3];
    sc_pair pairs[MOST_PAIRS];
    size_t jobs, pair_count;
} instance;

static double next(FILE *file)
{
    double value;
    assert_int_equal(fscanf(file, "%lf", &value), 1);
    return value;
}

static bool read_instance(FILE *file, instance *out)
{
    if (fscanf(file, " instance %zu %zu", &out->jobs, &out->pair_count) != 2) return false;
    assert_true(out->jobs <= MOST_JOBS);
    assert_true(out->pair_count <= MOST_PAIRS);
    for (size_t i = 0; i < TYPES; i++) out->gpus[i] = next(file);
    for (size_t i = 0; i < out->jobs; i++) {
        out->scale[i] = next(file);
        out->weight[i] = next(file);
        out->remaining[i] = next(file);
        out->since_s[i] = next(file);
        for (size_t type = 0; type < TYPES; type++) out->speed[i * TYPES + type] = next(file);
    }
    for (size_t i = 0; i < out->pair_count; i++) {
        double *speed = &out->pair_speed[2 * i * TYPES];
        out->pairs[i] = (sc_pair){.speed_a = speed, .speed_b = speed + TYPES};
        out->pairs[i].a = (size_t)next(file);
        out->pairs[i].b = (size_t)next(file);
        for (size_t j = 0; j < 2 * TYPES; j++) speed[j] = next(file);
    }
    assert_int_equal(fscanf(file, " optima %lf %lf %lf", &out->optima[0], &out->optima[1], &out->optima[2]), 3);
    return true;
}

/* The answer must be feasible, too. */
static void expect_feasible(const sc_time_fractions *p, const double *fractions)
{
    double used[TYPES] = {0};
    for (size_t i = 0; i < p->jobs; i++) {
        double sum = 0;
        for (size_t type = 0; type < TYPES; type++) {
            sum += fractions[i * TYPES + type];
            used[type] += fractions[i * TYPES + type] * p->scale[i];
        }
        for (size_t k = 0; k < p->pair_count; k++)
            for (size_t type = 0; type < TYPES && (p->pairs[k].a == i || p->pairs[k].b == i); type++)
                sum += fractions[(p->jobs + k) * TYPES + type];
        assert_true(sum <= 1 + 1e-6);
    }
    for (size_t k = 0; k < p->pair_count; k++)
        for (size_t type = 0; type < TYPES; type++)
            used[type] += fractions[(p->jobs + k) * TYPES + type] * p->scale[p->pairs[k].a];
    for (size_t type = 0; type < TYPES; type++) assert_true(used[type] <= p->gpus[type] + 1e-6);
}

static void programs_with_pairs_reach_the_optima_of_another_solver(void **state)
{
    (void)state;
    if (!sc_linear_is_available()) skip();
    static instance input;
    static double fractions[(MOST_JOBS + MOST_PAIRS) * TYPES];
    size_t instances = 0, better = 0;
    FILE *file = fopen(MDOT_CLUSTER_DIR "/tests/simulator/data/pairs_oneshot.txt", "r");
    assert_non_null(file);
    for (int first; (first = fgetc(file)) == '#';) assert_int_equal(fscanf(file, "%*[^\n]%*c"), 0);
    fseek(file, -1, SEEK_CUR);
    while (read_instance(file, &input)) {
        double value, alone;
        sc_time_fractions p = {.jobs = input.jobs,
                               .types = TYPES,
                               .speed = input.speed,
                               .scale = input.scale,
                               .weight = input.weight,
                               .remaining = input.remaining,
                               .since_start_s = input.since_s,
                               .gpus = input.gpus,
                               .pairs = input.pairs,
                               .pair_count = input.pair_count,
                               .limit_s = 10};
        assert_int_equal(sc_time_fractions_max_min(&p, fractions, &value, NULL), MDOT_OK);
        expect_near(value, input.optima[0], 1e-4);
        expect_feasible(&p, fractions);
        assert_int_equal(sc_time_fractions_makespan(&p, fractions, &value, NULL), MDOT_OK);
        expect_near(value, input.optima[1], 1e-4);
        expect_feasible(&p, fractions);
        assert_int_equal(sc_time_fractions_finish_time(&p, fractions, &value, NULL), MDOT_OK);
        expect_near(value, input.optima[2], 1e-4);
        expect_feasible(&p, fractions);
        p.pair_count = 0;
        assert_int_equal(sc_time_fractions_max_min(&p, fractions, &alone, NULL), MDOT_OK);
        print_message("max-min %.4f with pairs, %.4f without\n", input.optima[0], alone);
        better += input.optima[0] > 1.01 * alone;
        instances++;
    }
    fclose(file);
    assert_int_equal(instances, 6);
    assert_true(better >= 3); /* pairs matter in most instances */
}

/* One GPU and two jobs, which run at `kept` of a step per second together and one step alone. */
static sc_result run_two(double kept, const char *name)
{
    static const double jobs[][3] = {{0, 1, 7200}, {0, 1, 7200}};
    sc_workload w = workload_make(jobs, 2);
    sc_cluster c;
    sc_result r = {0};
    sc_estimator oracle = sc_estimator_oracle();
    mdot_error err = {0};
    uint32_t kind;
    const sc_policy *policy;
    assert_int_equal(sc_policy_find(name, &policy, &err), MDOT_OK);
    assert_int_equal(sc_cluster_make_pool(1, &c, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(&w, "any", &kind, NULL), MDOT_OK);
    w.kinds[kind].speed[0][0] = 1;
    w.jobs[0].kind = w.jobs[1].kind = kind;
    assert_int_equal(sc_workload_set_pair_speed(&w, kind, kind, 0, 0, kept, NULL), MDOT_OK);
    if (sc_simulate(&w, &c, policy, &oracle, &(sc_run_options){0}, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    sc_summary summary;
    assert_int_equal(sc_summarise(&w, &c, &r, &summary, NULL), MDOT_OK);
    assert_true(summary.utilisation <= 1 + 1e-9); /* a shared GPU counts once */
    sc_cluster_free(&c);
    sc_workload_free(&w);
    return r;
}

static void jobs_share_a_gpu_if_that_pays(void **state)
{
    (void)state;
    if (!sc_linear_is_available()) skip();
    static const char *const policies[] = {"gavel-pairs", "gavel-pairs-ftf", "gavel-pairs-makespan"};
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        sc_result r = run_two(.8, policies[i]);
        for (size_t job = 0; job < 2; job++) expect_near(r.states[job].end_s, 9000, .001);
        sc_result_free(&r);
        r = run_two(.45, policies[i]); /* taking turns is better */
        expect_near(fmax(r.states[0].end_s, r.states[1].end_s), 14400, .001);
        sc_result_free(&r);
    }
}

static void a_table_of_pairs_is_read_or_refused(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1}};
    char *folder = process_make_folder();
    sc_workload w = workload_make(jobs, 1);
    sc_cluster c;
    uint32_t a, b;
    mdot_error err = {0};
    assert_int_equal(sc_cluster_make_pool(1, &c, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(&w, "A", &a, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(&w, "B", &b, NULL), MDOT_OK);
    char *good = workload_write_file(folder, "good.csv",
                                     "# source\ntable,gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s\n"
                                     "simulation,GPU,A,B,2,3,4\nphysical,gpu,A,B,2,9,9\nsimulation,gpu,A,C,2,1,1\n");
    assert_int_equal(sc_read_pairs(good, &c, &w, &err), MDOT_OK);
    expect_number(sc_workload_pair_speed(&w, a, b, 0, 2), 3);
    expect_number(sc_workload_pair_speed(&w, b, a, 0, 2), 4);
    expect_number(sc_workload_pair_speed(&w, a, b, 0, 1), 0);
    static const char *const bad[][2] = {
        {"gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s\ngpu,A,B,3,1,1\n", "power of two"},
        {"gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s\ngpu,A,B,1,-1,1\n", "together_a_steps_s"},
        {"gpu,job_a,job_b,gpus,together_a_steps_s\ngpu,A,B,1,1\n", "together_b_steps_s"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *path = workload_write_file(folder, "bad.csv", bad[i][0]);
        assert_int_not_equal(sc_read_pairs(path, &c, &w, &err), MDOT_OK);
        expect_contains(err.message, bad[i][1]);
        free(path);
    }
    free(good);
    sc_cluster_free(&c);
    sc_workload_free(&w);
    process_remove_folder(folder);
}

/* An A100 in slices of 4, 2 and 1 sevenths: one-GPU types with the table's speeds. */
static void slices_of_a_gpu_are_types(void **state)
{
    (void)state;
    if (!sc_linear_is_available()) skip();
    static const double jobs[][3] = {{0, 1, 36000}, {0, 1, 3600}};
    char *folder = process_make_folder();
    char *path = workload_write_file(folder, "mig.csv",
                                     "# source\nmodel,batch,slices_of_7,step_ms_median\nbig,8,4,100\nbig,8,1,900\n"
                                     "small,2,4,200\nsmall,2,1,250\n");
    sc_workload w = workload_make(jobs, 2);
    sc_cluster c = {0};
    sc_result r;
    mdot_error err = {0};
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_add_node(&c, "a", "mig-4g", 1, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_add_node(&c, "b", "mig-1g", 1, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(&w, "big (batch size 8)", &w.jobs[0].kind, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(&w, "small (batch size 2)", &w.jobs[1].kind, NULL), MDOT_OK);
    assert_int_equal(sc_read_throughputs(path, &c, &w, &err), MDOT_OK);
    expect_number(w.kinds[w.jobs[0].kind].speed[0][0], 10);
    expect_number(w.kinds[w.jobs[1].kind].speed[1][0], 4);
    if (sc_simulate(&w, &c, &sc_policy_gavel, &oracle, &(sc_run_options){0}, &r, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    /* The large job gets most of the large slice, on which it is nine times as fast; the small one loses little on the
     * small slice. Shares are fair, so both get a part of the other slice. */
    assert_true(r.states[0].end_s >= 3600);
    assert_true(r.states[0].end_s < 1.15 * 3600);
    assert_true(r.states[1].end_s < 1800);
    sc_result_free(&r);
    sc_cluster_free(&c);
    sc_workload_free(&w);
    free(path);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_raises_the_least_throughput),
        cmocka_unit_test(programs_with_pairs_reach_the_optima_of_another_solver),
        cmocka_unit_test(jobs_share_a_gpu_if_that_pays),
        cmocka_unit_test(a_table_of_pairs_is_read_or_refused),
        cmocka_unit_test(slices_of_a_gpu_are_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
