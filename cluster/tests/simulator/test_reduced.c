/* test_reduced.c — Themis, Hare, Hydra, AlloX, Gandiva and PowerFlow on a few jobs: order, gaps, types, turns,
 * widths. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static void expect_starts(const sc_result *result, const double *starts_s, const double *ends_s)
{
    for (size_t i = 0; i < result->job_count; i++)
        if (result->states[i].start_s != starts_s[i] || result->states[i].end_s != ends_s[i])
            fail_msg("job %zu: %g to %g, expected %g to %g", i, result->states[i].start_s, result->states[i].end_s,
                     starts_s[i], ends_s[i]);
}

static void hare_serves_short_jobs_first(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 10000}, {0, 1, 10}, {100, 1, 50}};
    sc_workload w = workload_make(jobs, 3);
    sc_result r = workload_run(&w, 1, "hare", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){10, 0, 100}, (const double[]){10060, 10, 150});
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void hare_lets_tasks_take_turns_in_gaps(void **state)
{
    (void)state;
    /* The short job leaves one of two GPUs. The wide one's two tasks take turns there until 100 s, for 50 of 200 s. */
    static const double jobs[][3] = {{0, 1, 100}, {0, 2, 200}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = workload_run(&w, 2, "hare", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){100, 250});
    sc_result_free(&r);
    /* Three tasks on two GPUs take two turns. */
    w.jobs[0].gpus = 2;
    w.jobs[1].gpus = 3;
    r = workload_run(&w, 4, "hare", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){100, 250});
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void themis_serves_the_least_fairly_treated_job(void **state)
{
    (void)state;
    /* One GPU, ten rounds. The short job has waited one round of its 360 s, so it is twice as late as it should be,
     * the long one only by a tenth. After that they stop taking turns. */
    static const double jobs[][3] = {{0, 1, 3600}, {0, 1, 360}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = workload_run(&w, 1, "themis", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 360}, (const double[]){3960, 720});
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Two types with one GPU each: fast runs 2 steps a second, slow 1. */
static sc_result run_on_types(const sc_policy *policy, sc_workload *w)
{
    sc_cluster c = {0};
    sc_result result;
    sc_estimator oracle = sc_estimator_oracle();
    uint32_t kind;
    mdot_error err = {0};
    assert_int_equal(sc_cluster_add_node(&c, "b", "slow", 1, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_add_node(&c, "a", "fast", 1, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(w, "any", &kind, NULL), MDOT_OK);
    w->kinds[kind].speed[0][0] = 1;
    w->kinds[kind].speed[1][0] = 2;
    c.types[0].watts = c.types[1].watts = 300;                                           /* for powerflow */
    assert_int_equal(sc_workload_set_pair_speed(w, kind, kind, 0, 0, 0, NULL), MDOT_OK); /* for horus */
    for (size_t i = 0; i < w->job_count; i++) w->jobs[i].kind = kind;
    if (sc_simulate(w, &c, policy, &oracle, &(sc_run_options){0}, &result, &err) != MDOT_OK)
        fail_msg("%s: %s", policy->name, err.message);
    sc_cluster_free(&c);
    return result;
}

static void a_lone_job_takes_the_fastest_type(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}};
    for (size_t i = 0; sc_policies[i] != NULL; i++) {
        const char *name = sc_policies[i]->name;
        /* Shares of a lone job are its whole time on any type here; muxflow requires pairs, miso slices, and mlfs a
         * network. */
        static const char *const others[] = {"isolated", "muxflow", "miso", "mlfs"};
        bool is_other = strncmp(name, "gavel", 5) == 0;
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) is_other |= strcmp(name, others[k]) == 0;
        if (is_other) continue;
        sc_workload w = workload_make(jobs, 1);
        sc_result r = run_on_types(sc_policies[i], &w);
        if (r.states[0].end_s > 50 + 1e-9) fail_msg("%s: the job ends at %g", name, r.states[0].end_s);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

/* The second job gets the slow GPU, because the first one holds the fast GPU. At 360 s its lease is renewed there,
 * although the first job has ended. A policy that knows speeds would move it. */
static void themis_renews_leases_on_the_same_type(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 600}, {0, 1, 1000}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = run_on_types(&sc_policy_themis, &w);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){300, 1000});
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Ten equal jobs of any width on eight GPUs. An auction is open to two of them. Alone, each would be twice as fast, so
 * each winner of four keeps a half. The next two win two each and keep one; the next ones need their last GPU. */
static void themis_lets_winners_pay(void **state)
{
    (void)state;
    enum { JOBS = 10 };
    double jobs[JOBS][3];
    for (int i = 0; i < JOBS; i++) memcpy(jobs[i], (const double[3]){0, 4, 36000}, sizeof jobs[i]);
    sc_workload w = workload_make((const double(*)[3])jobs, JOBS);
    for (int i = 0; i < JOBS; i++) {
        w.jobs[i].least_gpus = 1;
        w.jobs[i].most_gpus = 8;
        w.jobs[i].scaling = 1;
    }
    sc_cluster c;
    sc_result r;
    char *log = NULL;
    size_t size;
    FILE *stream = open_memstream(&log, &size);
    sc_estimator oracle = sc_estimator_oracle();
    assert_non_null(stream);
    assert_int_equal(sc_cluster_make_pool(8, &c, NULL), MDOT_OK);
    assert_int_equal(sc_simulate(&w, &c, &sc_policy_themis, &oracle, &(sc_run_options){.log = stream}, &r, NULL),
                     MDOT_OK);
    fclose(stream);
    expect_contains(log, "0,start,0,gpu,2,,pool:2,\n0,start,1,gpu,2,,pool:2,\n0,start,2,gpu,1,,pool:1,\n"
                         "0,start,3,gpu,1,,pool:1,\n0,start,4,gpu,1,,pool:1,\n0,start,5,gpu,1,,pool:1,\n");
    free(log);
    sc_result_free(&r);
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

static void hydra_serves_the_least_cost(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 100}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = workload_run(&w, 1, "hydra", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){100, 0}, (const double[]){1100, 100}); /* shortest first */
    sc_result_free(&r);
    w.jobs[0].deadline_s = 500; /* out of reach */
    w.jobs[1].deadline_s = 600;
    r = workload_run(&w, 1, "hydra", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){100, 0}, (const double[]){1100, 100});
    sc_result_free(&r);
    w.jobs[0].deadline_s = 1000; /* 100 s of waiting cost less than a missed deadline */
    w.jobs[1].deadline_s = INFINITY;
    w.jobs[1].work = 900;
    r = workload_run(&w, 1, "hydra", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 1000}, (const double[]){1000, 1900});
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* With one GPU of each type and all jobs present, jobs on each run shortest first. Tries all divisions. */
static double least_sum_s(const double (*jobs)[3], size_t count)
{
    double least = INFINITY;
    for (unsigned fast = 0; fast < 1u << count; fast++) {
        double sum = 0;
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < count; k++) {
                bool is_fast = (fast >> i & 1) != 0,
                     is_before = jobs[k][2] < jobs[i][2] || (jobs[k][2] == jobs[i][2] && k <= i);
                if ((fast >> k & 1) == (fast >> i & 1) && is_before) sum += jobs[k][2] / (is_fast ? 2 : 1);
            }
        least = fmin(least, sum);
    }
    return least;
}

static void allox_finds_the_least_sum(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 60; round++) {
        double jobs[7][3], sum_s = 0;
        size_t count = 1 + sc_random_next(&seed) % 7;
        for (size_t i = 0; i < count; i++) {
            jobs[i][0] = 0;
            jobs[i][1] = 1;
            jobs[i][2] = 100 + (double)(sc_random_next(&seed) % 100000);
        }
        sc_workload w = workload_make((const double(*)[3])jobs, count);
        sc_result r = run_on_types(&sc_policy_allox, &w);
        for (size_t i = 0; i < count; i++) {
            sum_s += r.states[i].end_s;
            assert_int_equal(r.states[i].preemptions, 0);
        }
        double least_s = least_sum_s((const double(*)[3])jobs, count);
        if (fabs(sum_s / least_s - 1) > 1e-9) fail_msg("round %d: %g, at least %g", round, sum_s, least_s);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

static void gandiva_lets_jobs_take_turns(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100000}, {10, 1, 60}, {20, 2, 60}};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = workload_run(&w, 1, "gandiva", NULL, SC_ERRORS_SCALE);
    assert_true(r.states[1].end_s <= 10 + 3 * 60);
    assert_int_equal(r.states[0].preemptions, 1);
    sc_result_free(&r);
    sc_workload_free(&w);
    w = workload_make(jobs, 3); /* a wide job gets its turn, too */
    r = workload_run(&w, 2, "gandiva", NULL, SC_ERRORS_SCALE);
    assert_true(r.states[2].end_s <= 20 + 4 * 60);
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void gandiva_packs_jobs_that_keep_their_speed(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    for (int kept = 4; kept <= 8; kept += 4) { /* tenths of the speed alone */
        sc_workload w = workload_make(jobs, 2);
        uint32_t kind;
        assert_int_equal(sc_workload_add_kind(&w, "k", &kind, NULL), MDOT_OK);
        w.kinds[kind].speed[0][0] = 1;
        w.jobs[0].kind = w.jobs[1].kind = kind;
        assert_int_equal(sc_workload_set_pair_speed(&w, kind, kind, 0, 0, .1 * kept, NULL), MDOT_OK);
        sc_result r = workload_run(&w, 1, "gandiva", NULL, SC_ERRORS_SCALE);
        double last_s = fmax(r.states[0].end_s, r.states[1].end_s);
        if (fabs(last_s - (kept > 5 ? 1250 : 2000)) > 1e-6) fail_msg("kept %d: ends at %g", kept, last_s);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

static void gandiva_grows_jobs_on_idle_gpus(void **state)
{
    (void)state;
    /* Alone, the elastic job has four GPUs. At 100 s it gives two to the other, and takes them back at 200 s. */
    static const double jobs[][3] = {{0, 1, 1000}, {100, 2, 100}};
    sc_workload w = workload_make(jobs, 2);
    w.jobs[0].least_gpus = 1;
    w.jobs[0].most_gpus = 4;
    w.jobs[0].scaling = 1;
    sc_result r = workload_run(&w, 4, "gandiva", NULL, SC_ERRORS_SCALE);
    expect_starts(&r, (const double[]){0, 100}, (const double[]){300, 200});
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Four GPUs of 100 W. The first job's speed doubles with its GPUs, the second's hardly grows. */
static mdot_status run_powerflow(double watts, double power_w, sc_result *out_result, mdot_error *err)
{
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    static const double speeds[][3] = {{1, 2, 4}, {1, 1.2, 1.3}};
    sc_workload w = workload_make(jobs, 2);
    sc_cluster c;
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(4, &c, NULL), MDOT_OK);
    c.types[0].watts = watts;
    c.power_w = power_w;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(sc_workload_add_kind(&w, i == 0 ? "scales" : "does not", &w.jobs[i].kind, NULL), MDOT_OK);
        memcpy(w.kinds[w.jobs[i].kind].speed[0], speeds[i], sizeof speeds[i]);
    }
    mdot_status status = sc_simulate(&w, &c, &sc_policy_powerflow, &oracle, &(sc_run_options){0}, out_result, err);
    sc_cluster_free(&c);
    sc_workload_free(&w);
    return status;
}

static void powerflow_widens_the_job_of_least_added_energy(void **state)
{
    (void)state;
    sc_result r;
    mdot_error err = {0};
    /* All GPUs: two each, then all for the second: speed 1.3 with 4 GPUs, 1.2 with 2. */
    assert_int_equal(run_powerflow(100, 0, &r, NULL), MDOT_OK);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){500, 500 + 400 / 1.3});
    sc_result_free(&r);
    /* Three GPUs: two for the job that scales, then two for the other. */
    assert_int_equal(run_powerflow(100, 399, &r, NULL), MDOT_OK);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){500, 500 + 500 / 1.2});
    sc_result_free(&r);
    assert_int_equal(run_powerflow(100, 200, &r, NULL), MDOT_OK);
    expect_starts(&r, (const double[]){0, 0}, (const double[]){1000, 1000});
    sc_result_free(&r);
    /* One GPU: one job after the other. Zero GPUs: the jobs would never starts. */
    assert_int_equal(run_powerflow(100, 199, &r, NULL), MDOT_OK);
    expect_starts(&r, (const double[]){0, 1000}, (const double[]){1000, 2000});
    sc_result_free(&r);
    assert_int_equal(run_powerflow(100, 99, &r, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "never starts");
    assert_int_equal(run_powerflow(0, 0, &r, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "watts");
}

/* 300 W, of which 60 do not follow the clock: the step from .7 to .8 saves 12.5 % of the time for 12.4 % more energy,
 * the next one 11 % for 14 %. At .8 the GPU takes 60 + 240 * .512 W. */
static void powerflow_chooses_the_clock(void **state)
{
    (void)state;
    static const struct {
        double power_w, share, end_s, joules;
    } cases[] = {{0, 1, 1250, 1250 * 182.88},
                 {182, 1, 1000 / .7, 1000 / .7 * 142.32},
                 {300, 1, 1000, 300000},
                 {0, .5, 1000 * (.5 + .5 / .6), 1000 * (.5 + .5 / .6) * 111.84}};
    static const double jobs[][3] = {{0, 1, 1000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sc_workload w = workload_make(jobs, 1);
        sc_cluster c;
        sc_result r;
        sc_estimator oracle = sc_estimator_oracle();
        w.jobs[0].clock_share = cases[i].share;
        assert_int_equal(sc_cluster_make_pool(1, &c, NULL), MDOT_OK);
        c.types[0].watts = 300;
        c.types[0].idle_watts = 60;
        c.power_w = cases[i].power_w;
        assert_int_equal(sc_simulate(&w, &c, &sc_policy_powerflow, &oracle, &(sc_run_options){0}, &r, NULL), MDOT_OK);
        if (fabs(r.states[0].end_s - cases[i].end_s) > 1e-6 || fabs(r.joules / cases[i].joules - 1) > 1e-9)
            fail_msg("case %zu: ends at %g s after %g J", i, r.states[0].end_s, r.joules);
        sc_result_free(&r);
        sc_cluster_free(&c);
        sc_workload_free(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hare_serves_short_jobs_first),
        cmocka_unit_test(hare_lets_tasks_take_turns_in_gaps),
        cmocka_unit_test(themis_serves_the_least_fairly_treated_job),
        cmocka_unit_test(a_lone_job_takes_the_fastest_type),
        cmocka_unit_test(themis_renews_leases_on_the_same_type),
        cmocka_unit_test(themis_lets_winners_pay),
        cmocka_unit_test(hydra_serves_the_least_cost),
        cmocka_unit_test(allox_finds_the_least_sum),
        cmocka_unit_test(gandiva_lets_jobs_take_turns),
        cmocka_unit_test(gandiva_packs_jobs_that_keep_their_speed),
        cmocka_unit_test(gandiva_grows_jobs_on_idle_gpus),
        cmocka_unit_test(powerflow_widens_the_job_of_least_added_energy),
        cmocka_unit_test(powerflow_chooses_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
