/* test_topology.c — racks and domains: the file, the choice of nodes, and the cost of crossing them. */
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
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

/* Two racks. In the first, two nodes form a domain, and a third one is alone; in the second, two nodes are alone. */
static const char text[] = "node,type,gpus,domain,rack\na,gpu,4,nvl,r1\nb,gpu,4,nvl,r1\nc,gpu,4,,r1\nd,gpu,4,,r2\n"
                           "e,gpu,4,,r2\n";

static sc_cluster read_cluster(const char *content)
{
    char *folder = process_make_folder(), *path = workload_write_file(folder, "c.csv", content);
    mdot_error err = {0};
    sc_cluster c;
    if (sc_read_cluster(path, &c, &err) != MDOT_OK) fail_msg("%s", err.message);
    free(path);
    process_remove_folder(folder);
    return c;
}

static sc_result run(const sc_workload *w, const sc_cluster *c, const sc_policy *policy)
{
    mdot_error err = {0};
    sc_result r;
    sc_estimator oracle = sc_estimator_oracle();
    if (sc_simulate(w, c, policy, &oracle, &(sc_run_options){0}, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    return r;
}

static void a_cluster_file_has_domains_and_racks(void **state)
{
    (void)state;
    sc_cluster c = read_cluster(text);
    assert_int_equal(c.domain_count, 4);
    assert_int_equal(c.rack_count, 2);
    assert_int_equal(c.nodes[0].domain, c.nodes[1].domain);
    assert_int_not_equal(c.nodes[1].domain, c.nodes[2].domain);
    assert_int_equal(c.nodes[2].rack, c.nodes[0].rack);
    assert_int_not_equal(c.nodes[3].rack, c.nodes[0].rack);
    sc_cluster_free(&c);
    c = read_cluster("node,type,gpus\na,gpu,4\nb,gpu,4\n");
    assert_int_equal(c.domain_count, 2);
    sc_cluster_free(&c);
}

static void a_domain_in_two_racks_is_refused(void **state)
{
    (void)state;
    char *folder = process_make_folder();
    char *path = workload_write_file(folder, "c.csv", "node,type,gpus,domain,rack\na,gpu,4,x,r1\nb,gpu,4,x,r2\n");
    mdot_error err = {0};
    sc_cluster c;
    assert_int_not_equal(sc_read_cluster(path, &c, &err), MDOT_OK);
    expect_contains(err.message, "two racks");
    free(path);
    process_remove_folder(folder);
}

static void levels_cost_their_spread(void **state)
{
    (void)state;
    static const struct {
        int gpus;
        double end_s;
    } cases[] = {{4, 100}, {8, 100}, {12, 200}, {16, 600}};
    sc_cluster c = read_cluster(text);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double job[][3] = {{0, cases[i].gpus, 100}};
        sc_workload w = workload_make(job, 1);
        w.jobs[0].spread = 2;
        w.jobs[0].rack_spread = 3;
        sc_result r = run(&w, &c, &sc_policy_easy);
        if (r.states[0].end_s != cases[i].end_s) fail_msg("%d GPUs end at %g", cases[i].gpus, r.states[0].end_s);
        sc_result_free(&r);
        sc_workload_free(&w);
    }
    sc_cluster_free(&c);
}

/* easy, with the nodes of the simulator: the first free ones. */
static mdot_status decide_without_nodes(void *self, const sc_view *view, sc_plan *plan)
{
    mdot_status status = sc_policy_easy.decide(self, view, plan);
    for (size_t i = 0; i < plan->grant_count; i++) plan->grants[i].part_count = 0;
    plan->part_count = 0;
    for (size_t node = 0; node < view->cluster->node_count; node++)
        plan->node_free[node] = view->cluster->nodes[node].gpus;
    return status;
}

static sc_policy first_free;

static void jobs_get_the_smallest_part_that_holds_them(void **state)
{
    (void)state;
    /* Two GPUs are taken from node a by best fit among equals. The job of 8 then avoids the domain, where 6 are free,
     * for the second rack, where nodes d and e are free. First free nodes would cross three nodes of two domains. */
    static const double jobs[][3] = {{0, 2, 1000}, {1, 8, 100}, {2, 6, 100}};
    sc_cluster c = read_cluster(text);
    sc_workload w = workload_make(jobs, 3);
    for (size_t i = 0; i < 3; i++) {
        w.jobs[i].spread = 2;
        w.jobs[i].rack_spread = 3;
    }
    sc_result r = run(&w, &c, &sc_policy_easy);
    expect_number(r.states[1].end_s, 201); /* two nodes of one rack */
    expect_number(r.states[2].end_s, 102); /* the rest of the domain */
    sc_result_free(&r);
    r = run(&w, &c, &first_free);
    assert_true(r.states[2].end_s > 102);
    sc_result_free(&r);
    sc_workload_free(&w);
    sc_cluster_free(&c);
}

/* In random runs every job must end, no GPU be held twice (assertions in the simulator), and the choice of nodes must
 * cost no more than first free nodes do on average. */
static void choosing_nodes_pays_on_random_workloads(void **state)
{
    (void)state;
    sc_cluster c = read_cluster(text);
    double chosen_s = 0, first_s = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        sc_workload w = workload_random(150, 8, seed);
        for (size_t i = 0; i < w.job_count; i++) w.jobs[i].spread = 1.5;
        sc_result easy = run(&w, &c, &sc_policy_easy), first = run(&w, &c, &first_free);
        for (size_t i = 0; i < w.job_count; i++) {
            assert_true(isfinite(easy.states[i].end_s));
            chosen_s += easy.states[i].end_s - w.jobs[i].submit_s;
            first_s += first.states[i].end_s - w.jobs[i].submit_s;
        }
        sc_result_free(&easy);
        sc_result_free(&first);
        sc_workload_free(&w);
    }
    if (chosen_s >= first_s) fail_msg("%g s with chosen nodes, %g s with first free nodes", chosen_s, first_s);
    sc_cluster_free(&c);
}

int main(void)
{
    first_free = sc_policy_easy;
    first_free.decide = decide_without_nodes;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_file_has_domains_and_racks),
        cmocka_unit_test(a_domain_in_two_racks_is_refused),
        cmocka_unit_test(levels_cost_their_spread),
        cmocka_unit_test(jobs_get_the_smallest_part_that_holds_them),
        cmocka_unit_test(choosing_nodes_pays_on_random_workloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
