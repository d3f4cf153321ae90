/* test_sharing.c — MuxFlow's matching and CoGNN's groups: against brute force, in hand-made cases, and their properties
 * on random jobs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/core/simulator.h"
#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "simulator/report/simulation_report.h"
#include "simulator/solve/linear.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

enum { MOST = 8 };

static void expect_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) fail_msg("%.12g, expected %.12g", got, want);
}

/* Gives job i the kind i at one step per second alone, and kept[i][j] beside job j. */
static void share(sc_workload *w, const double (*kept)[MOST])
{
    char name[24];
    uint32_t kind;
    for (size_t i = 0; i < w->job_count; i++) {
        snprintf(name, sizeof name, "%zu", i);
        assert_int_equal(sc_workload_add_kind(w, name, &kind, NULL), MDOT_OK);
        for (unsigned width = 0; width < SC_WIDTHS; width++) w->kinds[kind].speed[0][width] = 1;
        w->jobs[i].kind = kind;
    }
    for (uint32_t i = 0; i < w->job_count; i++)
        for (uint32_t j = 0; j < w->job_count; j++)
            for (unsigned width = 0; width < 3; width++)
                assert_int_equal(sc_workload_set_pair_speed(w, i, j, 0, width, kept[i][j], NULL), MDOT_OK);
}

static sc_result run(const sc_workload *w, int gpus, const sc_policy *policy)
{
    sc_cluster c;
    sc_result r = {0};
    sc_summary summary;
    sc_estimator oracle = sc_estimator_oracle();
    mdot_error err = {0};
    assert_int_equal(sc_cluster_make_pool(gpus, &c, NULL), MDOT_OK);
    if (sc_simulate(w, &c, policy, &oracle, &(sc_run_options){0}, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(sc_summarise(w, &c, &r, &summary, NULL), MDOT_OK);
    assert_true(summary.utilisation <= 1 + 1e-9); /* a shared GPU counts once */
    sc_cluster_free(&c);
    return r;
}

static void expect_ends(const sc_result *r, const double *ends_s)
{
    for (size_t i = 0; i < r->job_count; i++) expect_near(r->states[i].end_s, ends_s[i]);
}

/* Jobs 0 and 1 are services, 2 and 3 are offline. Job 2 is best beside 0, but so is job 3. */
static void the_matching_is_best_in_sum(void **state)
{
    (void)state;
    if (!sc_linear_solves_integers()) skip();
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}, {0, 1, 80}, {0, 1, 80}};
    static const double kept[][MOST] = {{0, 0, .9, .9}, {0, 0, .9, .9}, {.9, .8, 0, 0}, {.8, .1, 0, 0}};
    sc_workload w = workload_make(jobs, 4);
    share(&w, kept);
    w.jobs[0].is_online = w.jobs[1].is_online = true;
    sc_result r = run(&w, 2, &sc_policy_muxflow);
    expect_ends(&r, (const double[]){1010, 1010, 100, 100});
    sc_result_free(&r);
    /* Four GPUs: offline jobs keep full speed on free ones. */
    r = run(&w, 4, &sc_policy_muxflow);
    expect_ends(&r, (const double[]){1000, 1000, 80, 80});
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void services_are_protected(void **state)
{
    (void)state;
    if (!sc_linear_solves_integers()) skip();
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 100}, {50, 1, 1000}};
    double kept[3][MOST] = {{0, .79, 0}, {1, 0, 1}, {0, .9, 0}};
    sc_workload w = workload_make(jobs, 3);
    share(&w, kept);
    w.jobs[0].is_online = w.jobs[2].is_online = true;
    /* Beside service 0, the offline job would take more than a fifth of the speed. It runs alone until service 2 comes,
     * gives way, and shares with that one. */
    sc_result r = run(&w, 2, &sc_policy_muxflow);
    expect_ends(&r, (const double[]){1000, 100, 50 + 50 + 955});
    assert_int_equal(r.states[1].preemptions, 0); /* it moved */
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* The largest sum of kept parts for offline jobs from `job` on. */
static double brute_force(const sc_workload *w, const double (*kept)[MOST], size_t job, unsigned taken, int left)
{
    if (job == w->job_count) return 0;
    double best = brute_force(w, kept, job + 1, taken, left);
    if (w->jobs[job].is_online) return best;
    if (left >= w->jobs[job].gpus)
        best = fmax(best, 1 + brute_force(w, kept, job + 1, taken, left - w->jobs[job].gpus));
    for (size_t host = 0; host < w->job_count; host++) {
        bool fits = w->jobs[host].is_online && !(taken & 1u << host) && w->jobs[host].gpus == w->jobs[job].gpus &&
                    kept[host][job] >= .8 && kept[job][host] > 0;
        if (fits) best = fmax(best, kept[job][host] + brute_force(w, kept, job + 1, taken | 1u << host, left));
    }
    return best;
}

static void matchings_equal_brute_force(void **state)
{
    (void)state;
    if (!sc_linear_solves_integers()) skip();
    uint64_t random = 3;
    for (int round = 0; round < 200; round++) {
        sc_workload w = workload_random(MOST, 1, 1);
        double kept[MOST][MOST], factors[MOST], sum = 0;
        uint32_t arrived[MOST];
        sc_state states[MOST];
        sc_cluster c;
        sc_plan plan;
        void *self;
        int online_gpus = 0;
        for (uint32_t i = 0; i < MOST; i++) {
            w.jobs[i].gpus = 1 + (int)(sc_random_next(&random) % 2);
            w.jobs[i].is_online = i < 4;
            if (i < 4) online_gpus += w.jobs[i].gpus;
            for (size_t j = 0; j < MOST; j++)
                kept[i][j] = sc_random_next(&random) % 4 == 0 ? 0 : .7 + .3 * sc_random_unit(&random);
            arrived[i] = i;
            factors[i] = 1;
            states[i] = (sc_state){.phase = SC_WAITING, .remaining = w.jobs[i].work, .partner = SC_NONE};
        }
        share(&w, kept);
        int gpus = online_gpus + (int)(sc_random_next(&random) % 3);
        assert_int_equal(sc_cluster_make_pool(gpus, &c, NULL), MDOT_OK);
        sc_estimate estimate = {.workload = &w, .factors = factors};
        sc_view view = {.workload = &w,
                        .cluster = &c,
                        .estimate = &estimate,
                        .states = states,
                        .arrived = arrived,
                        .arrived_count = MOST};
        assert_int_equal(sc_plan_create(&w, &c, &plan, NULL), MDOT_OK);
        sc_plan_begin(&plan, &c);
        assert_int_equal(sc_policy_muxflow.create(&view, &self, NULL), MDOT_OK);
        assert_int_equal(sc_policy_muxflow.decide(self, &view, &plan), MDOT_OK);
        for (size_t i = 0; i < plan.grant_count; i++) {
            const sc_grant *g = &plan.grants[i];
            if (w.jobs[g->job].is_online) continue;
            assert_true(g->partner == SC_NONE || w.jobs[g->partner].is_online);
            sum += g->partner == SC_NONE ? 1 : kept[g->job][g->partner];
        }
        double best = brute_force(&w, kept, 0, 0, gpus - online_gpus);
        if (fabs(sum - best) > 1e-6) fail_msg("round %d: %g, brute force %g", round, sum, best);
        free(self);
        sc_plan_free(&plan);
        sc_cluster_free(&c);
        sc_workload_free(&w);
    }
}

static void jobs_run_in_groups_of_two(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 90}, {0, 1, 45}, {0, 1, 180}, {0, 1, 10}};
    /* Job 0 is best beside 2. Then 1 and 3 keep less than one's speed together, and run one after the other. */
    static const double kept[][MOST] = {{0, .7, .9, .5}, {.7, 0, .5, .4}, {.9, .5, 0, .5}, {.5, .5, .5, 0}};
    sc_workload w = workload_make(jobs, 4);
    share(&w, kept);
    sc_result r = run(&w, 1, &sc_policy_cognn);
    /* 2 has done 90 of 180 steps when 0 ends at 100 s, and does the others alone. */
    expect_ends(&r, (const double[]){100, 190 + 45, 190, 190 + 45 + 10});
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* 64 jobs are considered as partners. Jobs of another width are not among them, because they cannot be partners. */
static void jobs_of_another_width_are_not_considered(void **state)
{
    (void)state;
    enum { JOBS = 82, LAST = JOBS - 1 };
    double jobs[JOBS][3];
    for (size_t i = 0; i < JOBS; i++) memcpy(jobs[i], (const double[]){0, i % LAST == 0 ? 1 : 2, 90}, sizeof jobs[i]);
    sc_workload w = workload_make(jobs, JOBS);
    uint32_t kind;
    assert_int_equal(sc_workload_add_kind(&w, "any", &kind, NULL), MDOT_OK);
    w.kinds[kind].speed[0][0] = w.kinds[kind].speed[0][1] = 1;
    for (size_t i = 0; i < JOBS; i++) w.jobs[i].kind = kind;
    assert_int_equal(sc_workload_set_pair_speed(&w, kind, kind, 0, 0, .9, NULL), MDOT_OK);
    sc_result r = run(&w, 2, &sc_policy_cognn);
    expect_near(r.states[0].end_s, 100);
    expect_near(r.states[LAST].end_s, 100);
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void pairs_that_do_not_fit_or_pay_are_not_formed(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}, {0, 1, 100}, {0, 2, 100}};
    for (int i = 0; i < 2; i++) {
        const double kept[][MOST] = {{0, i == 0 ? 0 : .5, 1}, {i == 0 ? 1 : .5, 0, 1}, {1, 1, 0}};
        sc_workload w = workload_make(jobs, 3);
        share(&w, kept); /* job 2 has another width, so pair speeds with the others do not count */
        sc_result r = run(&w, 2, &sc_policy_cognn);
        expect_ends(&r, (const double[]){100, 100, 200});
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

/* Work is conserved: a job's GPU time lies between the work at full speed and at the slowest pair's speed. Services are
 * never interrupted and keep 0.8 of full speed. */
static void random_jobs_end(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        uint64_t random = seed;
        sc_workload w = workload_random(80, 4, seed);
        uint32_t kinds[MOST];
        double slowest = 1;
        for (size_t i = 0; i < MOST; i++) {
            char name[24];
            snprintf(name, sizeof name, "%zu", i);
            assert_int_equal(sc_workload_add_kind(&w, name, &kinds[i], NULL), MDOT_OK);
            for (unsigned width = 0; width < SC_WIDTHS; width++) w.kinds[kinds[i]].speed[0][width] = 1;
        }
        for (size_t i = 0; i < MOST; i++) {
            for (size_t j = 0; j < MOST; j++) {
                double speed = sc_random_next(&random) % 5 == 0 ? 0 : .3 + .7 * sc_random_unit(&random);
                if (speed > 0) slowest = fmin(slowest, speed);
                for (unsigned width = 0; width < 3; width++)
                    assert_int_equal(sc_workload_set_pair_speed(&w, kinds[i], kinds[j], 0, width, speed, NULL),
                                     MDOT_OK);
            }
        }
        for (size_t i = 0; i < w.job_count; i++) {
            w.jobs[i].gpus = 1 << sc_random_next(&random) % 3;
            w.jobs[i].kind = kinds[sc_random_next(&random) % MOST];
            w.jobs[i].is_online = sc_random_next(&random) % 3 == 0;
        }
        for (int p = 0; p < 2; p++) {
            if (p == 0 && !sc_linear_solves_integers()) continue;
            sc_result r = run(&w, 12, p == 0 ? &sc_policy_muxflow : &sc_policy_cognn);
            for (size_t i = 0; i < w.job_count; i++) {
                const sc_state *s = &r.states[i];
                double minimum = p == 0 && w.jobs[i].is_online ? .8 : slowest;
                expect_number(s->remaining, 0);
                assert_true(isfinite(s->end_s));
                assert_true(s->executed_s >= w.jobs[i].work * (1 - 1e-9));
                assert_true(s->executed_s <= w.jobs[i].work / minimum * (1 + 1e-9));
                if (p == 1 || w.jobs[i].is_online) assert_int_equal(s->preemptions, 0);
            }
            sc_result_free(&r);
        }
        sc_workload_free(&w);
    }
}

static void sharing_requires_a_table_of_pairs(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1}};
    static const sc_policy *const policies[] = {&sc_policy_muxflow, &sc_policy_cognn};
    sc_workload w = workload_make(jobs, 1);
    sc_cluster c;
    sc_estimator oracle = sc_estimator_oracle();
    sc_result r;
    assert_int_equal(sc_cluster_make_pool(1, &c, NULL), MDOT_OK);
    for (size_t i = 0; i < 2; i++) {
        mdot_error err = {0};
        assert_int_equal(sc_simulate(&w, &c, policies[i], &oracle, &(sc_run_options){0}, &r, &err),
                         MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, "--pairs");
    }
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_matching_is_best_in_sum),
        cmocka_unit_test(services_are_protected),
        cmocka_unit_test(matchings_equal_brute_force),
        cmocka_unit_test(jobs_run_in_groups_of_two),
        cmocka_unit_test(jobs_of_another_width_are_not_considered),
        cmocka_unit_test(pairs_that_do_not_fit_or_pay_are_not_formed),
        cmocka_unit_test(random_jobs_end),
        cmocka_unit_test(sharing_requires_a_table_of_pairs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
