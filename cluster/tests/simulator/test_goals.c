/* test_goals.c — policies with goals: deadlines at least cost (Cynthia, GENIE), prices and groups (Gavel), and little
 * interference (Horus), on a few jobs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "simulator/solve/linear.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"

/* Fast GPUs do two steps a second and cost four times as much as slow ones, which do one. */
static sc_result run(const sc_workload *w, int fast, int slow, const sc_policy *policy)
{
    sc_cluster c = {0};
    sc_result result;
    mdot_error err = {0};
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_add_node(&c, "a", "fast", fast, NULL), MDOT_OK);
    if (slow > 0) assert_int_equal(sc_cluster_add_node(&c, "b", "slow", slow, NULL), MDOT_OK);
    c.types[0].price = 4;
    c.types[1].price = 1;
    if (sc_simulate(w, &c, policy, &oracle, &(sc_run_options){0}, &result, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    sc_cluster_free(&c);
    return result;
}

static sc_workload make_kind(const double (*jobs)[3], size_t count)
{
    sc_workload w = workload_make(jobs, count);
    uint32_t kind;
    assert_int_equal(sc_workload_add_kind(&w, "net", &kind, NULL), MDOT_OK);
    w.kinds[kind].speed[0][0] = 2;
    w.kinds[kind].speed[1][0] = 1;
    for (size_t i = 0; i < count; i++) w.jobs[i].kind = kind;
    return w;
}

static void cynthia_takes_the_cheapest_gpus_in_time(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}, {0, 1, 1000}};
    sc_workload w = make_kind(jobs, 3);
    w.jobs[0].deadline_s = 2000;
    w.jobs[1].deadline_s = 600; /* slow GPUs need 1000 s */
    sc_result r = run(&w, 2, 2, &sc_policy_cynthia);
    assert_int_equal(r.states[0].type, 1);
    assert_int_equal(r.states[1].type, 0);
    assert_int_equal(r.states[2].type, 1);
    expect_number(r.states[1].end_s, 500);
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* The second job's latest start is 200 s, on both GPUs; then the first one takes no more than it needs. */
static void genie_starts_the_most_urgent_job(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}, {0, 1, 1000}};
    sc_workload w = workload_make(jobs, 3);
    for (size_t i = 0; i < 3; i++) {
        w.jobs[i].least_gpus = 1;
        w.jobs[i].most_gpus = 2;
        w.jobs[i].scaling = 1;
    }
    w.jobs[0].deadline_s = 3000;
    w.jobs[1].deadline_s = 700;
    w.jobs[2].deadline_s = 100; /* out of reach */
    sc_result r = run(&w, 2, 0, &sc_policy_genie);
    expect_number(r.states[1].end_s, 500);
    expect_number(r.states[0].end_s, 1500);
    expect_number(r.states[2].start_s, 500);
    expect_number(r.states[2].end_s, 1500);
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void horus_shares_if_both_gain(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    for (int i = 0; i < 2; i++) {
        sc_workload w = make_kind(jobs, 2);
        double kept = i == 0 ? .8 : .4;
        assert_int_equal(sc_workload_set_pair_speed(&w, 0, 0, 0, 0, 2 * kept, NULL), MDOT_OK);
        sc_result r = run(&w, 1, 0, &sc_policy_horus);
        expect_within(r.states[0].end_s, i == 0 ? 625 : 500, 1e-6);
        expect_within(r.states[1].start_s, i == 0 ? 0 : 500, 1e-6);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

/* On one GPU, a job alone in its group has half of the time, but a quarter among four jobs. */
static void groups_have_equal_parts(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 72000}, {0, 1, 7.2e5}, {0, 1, 7.2e5}, {0, 1, 7.2e5}};
    if (!sc_linear_is_available()) skip();
    const sc_policy *const policies[] = {&sc_policy_gavel_groups, &sc_policy_gavel};
    for (int i = 0; i < 2; i++) {
        bool is_missing = false;
        sc_workload w = make_kind(jobs, 4);
        for (size_t job = 0; job < 4; job++) w.jobs[job].group = sc_copy_text(job == 0 ? "a" : "b", &is_missing);
        sc_result r = run(&w, 1, 0, policies[i]);
        expect_within(r.states[0].end_s, i == 0 ? 72000 : 144000, 3600);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

static void cost_prefers_cheap_types(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    if (!sc_linear_is_available()) skip();
    sc_workload w = make_kind(jobs, 2);
    sc_result cost = run(&w, 2, 2, &sc_policy_gavel_cost), fair = run(&w, 2, 2, &sc_policy_gavel);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(cost.states[i].type, 1);
        assert_int_equal(fair.states[i].type, 0);
    }
    sc_result_free(&cost);
    sc_result_free(&fair);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cynthia_takes_the_cheapest_gpus_in_time),
        cmocka_unit_test(genie_starts_the_most_urgent_job),
        cmocka_unit_test(horus_shares_if_both_gain),
        cmocka_unit_test(groups_have_equal_parts),
        cmocka_unit_test(cost_prefers_cheap_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
