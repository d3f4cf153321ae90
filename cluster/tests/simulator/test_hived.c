/* test_hived.c — HiveD: cells do not fragment, idle cells are used, and no group is worse off than alone. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/estimate/estimators.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static sc_cluster make_cluster(int nodes, int gpus)
{
    sc_cluster c = {0};
    for (int i = 0; i < nodes; i++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(sc_cluster_add_node(&c, name, "gpu", gpus, NULL), MDOT_OK);
    }
    return c;
}

static sc_result run(const sc_workload *w, const sc_policy *policy, int nodes)
{
    sc_cluster c = make_cluster(nodes, 4);
    sc_result result;
    mdot_error err = {0};
    sc_estimator oracle = sc_estimator_oracle();
    if (sc_simulate(w, &c, policy, &oracle, &(sc_run_options){0}, &result, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    sc_cluster_free(&c);
    return result;
}

static void give_groups(sc_workload *w, const char *letters)
{
    for (size_t i = 0; i < w->job_count; i++) {
        w->jobs[i].group = strndup(&letters[i % strlen(letters)], 1);
        assert_non_null(w->jobs[i].group);
    }
}

/* Small jobs of two groups arrive in turn. Quotas count GPUs, so they fill the first node together, and the wide job of
 * group a finds half of two nodes. With cells, it finds the whole node of its group. */
static void cells_do_not_fragment(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 50},    {0, 1, 1000},  {0, 1, 50},  {0, 1, 1000},
                                     {10, 1, 1000}, {10, 1, 1000}, {60, 4, 100}};
    sc_workload w = workload_make(jobs, 7);
    give_groups(&w, "ababbba");
    w.jobs[6].spread = 2;
    sc_result cells = run(&w, &sc_policy_hived, 2), quotas = run(&w, &sc_policy_yarn, 2);
    expect_number(cells.states[6].end_s, 160);
    expect_number(quotas.states[6].end_s, 260);
    sc_result_free(&cells);
    sc_result_free(&quotas);
    sc_workload_free(&w);
}

/* Eight jobs of group b fill both nodes. A job of group a takes its own node back at once. */
static void an_owner_takes_idle_cells_back(void **state)
{
    (void)state;
    double jobs[9][3] = {[8] = {100, 4, 50}};
    for (int i = 0; i < 8; i++) {
        jobs[i][1] = 1;
        jobs[i][2] = 1000;
    }
    sc_workload w = workload_make((const double(*)[3])jobs, 9);
    give_groups(&w, "bbbbbbbba");
    sc_result r = run(&w, &sc_policy_hived, 2);
    int preempted = 0;
    for (size_t i = 0; i < 8; i++) {
        preempted += (int)r.states[i].preemptions;
        expect_number(r.states[i].start_s, 0);
    }
    expect_number(preempted, 4);
    expect_number(r.states[8].end_s, 150);
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* Three groups on one cluster against each group alone on its two nodes: no job ends later. A group's jobs have equal
 * widths here, because otherwise a job that ends earlier may give its GPUs to another one than alone. */
static void no_job_is_worse_off_than_with_its_group_alone(void **state)
{
    (void)state;
    enum { GROUPS = 3, NODES = 2, JOBS = 60 };
    for (uint64_t seed = 1; seed <= 40; seed++) {
        sc_workload all = workload_random(JOBS, 4, seed);
        for (size_t i = 0; i < JOBS; i++) {
            free(all.jobs[i].group);
            all.jobs[i].gpus = 1 << i % GROUPS;
        }
        give_groups(&all, "abc");
        sc_result together = run(&all, &sc_policy_hived, GROUPS * NODES);
        for (size_t g = 0; g < GROUPS; g++) {
            double jobs[JOBS][3];
            size_t count = 0;
            for (size_t i = g; i < JOBS; i += GROUPS, count++) {
                jobs[count][0] = all.jobs[i].submit_s;
                jobs[count][1] = all.jobs[i].gpus;
                jobs[count][2] = all.jobs[i].work;
            }
            sc_workload own = workload_make((const double(*)[3])jobs, count);
            sc_result alone = run(&own, &sc_policy_hived, NODES);
            for (size_t i = 0; i < count; i++) {
                double together_s = together.states[g + i * GROUPS].end_s, alone_s = alone.states[i].end_s;
                if (together_s > alone_s + 1e-6)
                    fail_msg("seed %d, group %zu, job %zu: ends at %g, alone %g", (int)seed, g, i, together_s, alone_s);
            }
            sc_result_free(&alone);
            sc_workload_free(&own);
        }
        sc_result_free(&together);
        sc_workload_free(&all);
    }
}

static void hived_rejects_unequal_nodes_and_too_many_groups(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 50}, {0, 1, 50}};
    sc_workload w = workload_make(jobs, 2);
    sc_cluster c = make_cluster(1, 4);
    sc_result r;
    mdot_error err = {0};
    sc_estimator oracle = sc_estimator_oracle();
    give_groups(&w, "ab");
    assert_int_equal(sc_simulate(&w, &c, &sc_policy_hived, &oracle, &(sc_run_options){0}, &r, &err),
                     MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "a node for each of the 2 groups, not 1");
    assert_int_equal(sc_cluster_add_node(&c, "m", "gpu", 3, NULL), MDOT_OK);
    assert_int_equal(sc_simulate(&w, &c, &sc_policy_hived, &oracle, &(sc_run_options){0}, &r, &err),
                     MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "m has 3");
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_do_not_fragment),
        cmocka_unit_test(an_owner_takes_idle_cells_back),
        cmocka_unit_test(no_job_is_worse_off_than_with_its_group_alone),
        cmocka_unit_test(hived_rejects_unequal_nodes_and_too_many_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
