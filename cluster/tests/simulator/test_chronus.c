/* test_chronus.c — leases: several orders find guarantees that filling by deadline misses, guarantees are kept, and
 * more deadlines are met than by EDF. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "simulator/solve/linear.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"

#define LEASE_S 1200.

static void integer_columns_have_integer_values(void **state)
{
    (void)state;
    sc_linear *l;
    double values[2], cost;
    mdot_error err = {0};
    assert_int_equal(sc_linear_create(&l, NULL), MDOT_OK);
    /* Maximise 5 x + 4 y with 6 x + 4 y <= 24, x + 2 y <= 6: 21 at (3, 1.5), in whole numbers 20 at (4, 0). */
    size_t x = sc_linear_add_integer_column(l, -5, 0, 10), y = sc_linear_add_integer_column(l, -4, 0, 10);
    size_t first = sc_linear_add_row(l, -INFINITY, 24), second = sc_linear_add_row(l, -INFINITY, 6);
    sc_linear_add_term(l, first, x, 6);
    sc_linear_add_term(l, first, y, 4);
    sc_linear_add_term(l, second, x, 1);
    sc_linear_add_term(l, second, y, 2);
    if (sc_linear_solves_integers()) {
        assert_int_equal(sc_linear_solve(l, 10, values, &cost, &err), MDOT_OK);
        expect_number(values[0], 4);
        expect_number(values[1], 0);
        expect_number(cost, -20);
        size_t third = sc_linear_add_row(l, 21, INFINITY); /* 5 x + 4 y >= 21 */
        sc_linear_add_term(l, third, x, 5);
        sc_linear_add_term(l, third, y, 4);
        assert_int_equal(sc_linear_solve(l, 10, values, &cost, &err), MDOT_OUT_OF_RANGE);
    } else {
        assert_int_equal(sc_linear_solve(l, 10, values, &cost, &err), MDOT_UNSUPPORTED);
    }
    sc_linear_destroy(l);
}

static bool is_met(const sc_workload *w, const sc_result *r, size_t job)
{
    return r->states[job].end_s <= w->jobs[job].deadline_s + 1e-6;
}

/* Restarts of a minute make leases of 20 minutes. */
static sc_result run_with_restarts(const sc_workload *w, int gpus, double restart_s, bool at_first_start)
{
    sc_run_options options = {.restart = {.base_s = restart_s, .first = at_first_start}};
    sc_cluster pool;
    sc_estimator oracle = sc_estimator_oracle();
    sc_result r;
    mdot_error err = {0};
    assert_int_equal(sc_cluster_make_pool(gpus, &pool, NULL), MDOT_OK);
    if (sc_simulate(w, &pool, &sc_policy_chronus, &oracle, &options, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    sc_cluster_free(&pool);
    return r;
}

/* Two leases of 4 GPUs. By deadline and arrival, the jobs for 1 and 2 GPUs take the first lease and the job for 3 the
 * second, so another job for 2 does not fit. With 1 and 3 in one lease, it fits. */
static void more_is_guaranteed_than_by_filling_by_deadline(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, LEASE_S}, {0, 2, LEASE_S}, {0, 3, LEASE_S}, {0, 2, LEASE_S}};
    sc_workload w = workload_make(jobs, 4);
    for (size_t i = 0; i < 4; i++) w.jobs[i].deadline_s = 2 * LEASE_S;
    sc_result r = workload_run(&w, 4, "chronus", NULL, SC_ERRORS_SCALE);
    for (size_t i = 0; i < 4; i++)
        if (!is_met(&w, &r, i)) fail_msg("job %zu ends at %g", i, r.states[i].end_s);
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Jobs for which leases exist, because the deadlines are derived from leases. */
static sc_workload make_feasible(uint64_t seed, double restart_s)
{
    enum { GPUS = 4, LEASES = 5, JOBS = 8 };
    double jobs[JOBS][3], deadlines_s[JOBS];
    int left[LEASES] = {GPUS, GPUS, GPUS, GPUS, GPUS};
    size_t count = 0;
    for (int attempt = 0; attempt < JOBS; attempt++) {
        int gpus = 1 + (int)(sc_random_next(&seed) % 3);
        size_t needed = 0, final = 0;
        for (size_t t = 0; t < LEASES; t++) {
            if (left[t] < gpus || sc_random_next(&seed) % 2 == 0) continue;
            left[t] -= gpus;
            final = t;
            needed++;
        }
        if (needed == 0) continue;
        double tail_s = (double)(sc_random_next(&seed) % 1000);
        jobs[count][0] = 0;
        jobs[count][1] = gpus;
        jobs[count][2] = (double)needed * (LEASE_S - restart_s) - tail_s;
        deadlines_s[count++] = (double)(final + 1) * LEASE_S - tail_s;
    }
    sc_workload w = workload_make((const double(*)[3])jobs, count);
    for (size_t i = 0; i < count; i++) w.jobs[i].deadline_s = deadlines_s[i];
    return w;
}

/* All deadlines of these sets can be met; four orders find nearly all of them. */
static void feasible_deadlines_are_met(void **state)
{
    (void)state;
    size_t met = 0, jobs = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        double restart_s = seed % 2 == 0 ? 0 : 60;
        sc_workload w = make_feasible(seed, restart_s);
        sc_result r = run_with_restarts(&w, 4, restart_s, true);
        jobs += w.job_count;
        for (size_t i = 0; i < w.job_count; i++) met += is_met(&w, &r, i);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
    print_message("%zu of %zu deadlines\n", met, jobs);
    assert_true(met >= jobs * 95 / 100);
}

static void earlier_guarantees_keep_their_leases(void **state)
{
    (void)state;
    /* One GPU. The first job needs all leases until its deadline, and a second guarantee would take some of them. */
    static const double jobs[][3] = {{0, 1, 3 * LEASE_S}, {10, 1, 100}, {20, 1, 100}};
    sc_workload w = workload_make(jobs, 3);
    w.jobs[0].deadline_s = 3 * LEASE_S;
    w.jobs[1].deadline_s = 2000;
    sc_result r = workload_run(&w, 1, "chronus", NULL, SC_ERRORS_SCALE);
    expect_number(r.states[0].end_s, 3 * LEASE_S);
    expect_number(r.states[0].preemptions, 0);
    assert_true(r.states[1].start_s >= 3 * LEASE_S);
    assert_true(r.states[2].start_s >= 3 * LEASE_S);
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void leases_change_hands_when_they_end(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 5000}, {1, 1, 3000}, {2, 1, 100}};
    sc_workload w = workload_make(jobs, 3);
    sc_result r = run_with_restarts(&w, 1, 60, false);
    /* The first job holds the lease. When the lease ends, the shortest job starts. */
    expect_number(r.states[0].start_s, 0);
    expect_number(r.states[0].preemptions, 1);
    expect_number(r.states[2].start_s, LEASE_S);
    expect_number(r.states[1].start_s, LEASE_S + 100);
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void jobs_without_a_deadline_use_the_slack_of_guarantees(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1200}, {0, 1, 600}};
    sc_workload w = workload_make(jobs, 2);
    for (int slack_s = 0; slack_s <= 600; slack_s += 599 + (slack_s > 0)) {
        w.jobs[0].deadline_s = 1200 + slack_s;
        sc_result r = workload_run(&w, 1, "chronus", NULL, SC_ERRORS_SCALE);
        assert_true(is_met(&w, &r, 0));
        assert_true((r.states[1].start_s == 0) == (slack_s >= 60)); /* a lease of 60 s at least */
        sc_result_free(&r);
        if (slack_s == 600) break;
    }
    sc_workload_free(&w);
}

static void hopeless_jobs_come_last(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 2000}};
    sc_workload w = workload_make(jobs, 2);
    w.jobs[0].deadline_s = 500;
    w.jobs[1].deadline_s = 2500;
    sc_result r = workload_run(&w, 1, "chronus", NULL, SC_ERRORS_SCALE);
    assert_true(is_met(&w, &r, 1));
    expect_number(r.states[0].end_s, 3000);
    sc_result_free(&r);
    sc_workload_free(&w);
}

static size_t count_met(const sc_workload *w, const char *policy)
{
    sc_result r = workload_run(w, 8, policy, NULL, SC_ERRORS_SCALE);
    size_t met = 0;
    for (size_t i = 0; i < w->job_count; i++) met += r.states[i].phase == SC_DONE && is_met(w, &r, i);
    sc_result_free(&r);
    return met;
}

static void more_deadlines_are_met_than_by_edf(void **state)
{
    (void)state;
    size_t chronus = 0, edf = 0;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        sc_workload w = workload_random(24, 4, seed);
        sc_cluster pool;
        assert_int_equal(sc_cluster_make_pool(8, &pool, NULL), MDOT_OK);
        for (size_t i = 0; i < w.job_count; i++) {
            w.jobs[i].work *= 4;
        }
        sc_workload_give_deadlines(&w, &pool, 2, 6, seed);
        chronus += count_met(&w, "chronus");
        edf += count_met(&w, "edf");
        sc_cluster_free(&pool);
        sc_workload_free(&w);
    }
    if (chronus <= edf) fail_msg("%zu deadlines met, by EDF %zu", chronus, edf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_columns_have_integer_values),
        cmocka_unit_test(more_is_guaranteed_than_by_filling_by_deadline),
        cmocka_unit_test(feasible_deadlines_are_met),
        cmocka_unit_test(earlier_guarantees_keep_their_leases),
        cmocka_unit_test(leases_change_hands_when_they_end),
        cmocka_unit_test(jobs_without_a_deadline_use_the_slack_of_guarantees),
        cmocka_unit_test(hopeless_jobs_come_last),
        cmocka_unit_test(more_deadlines_are_met_than_by_edf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
