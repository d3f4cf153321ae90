/* test_placement.c — nodes: spreading cost, node choice, and policies with node choice. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/workloads.h"

/* submit_s, gpus, duration_s and spread of a job. */
typedef double row[4];

static sc_workload make(const row *rows, size_t count)
{
    sc_workload w = {0};
    for (size_t i = 0; i < count; i++) {
        sc_workload one = workload_make((const double(*)[3])rows[i], 1);
        one.jobs[0].spread = rows[i][3];
        snprintf(one.jobs[0].id, 2, "%zu", i);
        assert_int_equal(sc_workload_add(&w, one.jobs[0], NULL), MDOT_OK);
        one.job_count = 0;
        sc_workload_free(&one);
    }
    return w;
}

/* Nodes "a", "b" … with so many GPUs each; the list ends with 0. */
static sc_cluster make_cluster(const int *gpus)
{
    sc_cluster c = {0};
    for (char name[] = "a"; *gpus > 0; gpus++, name[0]++)
        assert_int_equal(sc_cluster_add_node(&c, name, "gpu", *gpus, NULL), MDOT_OK);
    return c;
}

static sc_result run(const sc_workload *w, const int *nodes, const sc_policy *policy, double restart_s, FILE *log)
{
    mdot_error err = {0};
    sc_result r;
    sc_cluster c = make_cluster(nodes);
    sc_estimator oracle = sc_estimator_oracle();
    sc_run_options options = {.restart = {.base_s = restart_s}, .log = log};
    if (sc_simulate(w, &c, policy, &oracle, &options, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    sc_cluster_free(&c);
    return r;
}

/* Expects the end of each job, and the placements in the log: "job decision nodes" for each decision that has nodes. */
static void expect(const row *rows, size_t count, const int *nodes, const sc_policy *policy, double restart_s,
                   const double *ends_s, const char *decisions)
{
    char *text = NULL, actual[1024] = "";
    size_t size = 0, used = 0;
    FILE *log = open_memstream(&text, &size);
    sc_workload w = make(rows, count);
    sc_result r = run(&w, nodes, policy, restart_s, log);
    fclose(log);
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char decision[16], job[8], where[64] = "";
        if (sscanf(line, "%*[^,],%15[^,],%7[^,],gpu,%*d,,%63[^,\n]", decision, job, where) != 3) continue;
        if (strcmp(decision, "complete") == 0) continue;
        used += (size_t)snprintf(actual + used, sizeof actual - used, "%s%s %s %s", used > 0 ? "; " : "", job, decision,
                                 where);
    }
    assert_string_equal(actual, decisions);
    for (size_t i = 0; i < count; i++)
        if (r.states[i].end_s != ends_s[i])
            fail_msg("job %zu ends at %.15g, expected %.15g", i, r.states[i].end_s, ends_s[i]);
    free(text);
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void a_job_on_several_nodes_is_slower(void **state)
{
    (void)state;
    /* The policy leaves the choice of nodes to the simulator, which takes the first free ones. Job 1 is spread, and
     * job 2 takes the rest. */
    static const row rows[] = {{0, 1, 100, 3}, {0, 2, 100, 1.5}, {0, 1, 100, 3}};
    expect(rows, 3, (const int[]){2, 2, 0}, &sc_policy_fjf, 0, (const double[]){100, 150, 100},
           "0 start a:1; 1 start a:1 b:1; 2 start b:1");
    /* A job that is wider than a node is always spread. Without a spread factor, spreading costs nothing. */
    static const row wide[] = {{0, 3, 100, 2}, {200, 4, 100, 0}};
    expect(wide, 2, (const int[]){2, 2, 0}, &sc_policy_fifo, 0, (const double[]){200, 300},
           "0 start a:2 b:1; 1 start a:2 b:2");
}

static void a_job_that_runs_stays_on_its_nodes(void **state)
{
    (void)state;
    /* 0 and 1 leave gaps on both nodes. 2 is spread over them and stays spread when node a becomes empty. */
    static const row rows[] = {{0, 1, 10, 0}, {0, 1, 10, 0}, {0, 1, 20, 0}, {5, 2, 30, 2}};
    static const row two[] = {{0, 1, 10, 0}, {0, 1, 20, 0}, {0, 1, 10, 0}, {0, 1, 40, 0}, {5, 2, 30, 2}};
    expect(rows, 4, (const int[]){2, 2, 0}, &sc_policy_fjf, 0, (const double[]){10, 10, 20, 40},
           "0 start a:1; 1 start a:1; 2 start b:1; 3 start a:2");
    expect(two, 5, (const int[]){2, 2, 0}, &sc_policy_fjf, 0, (const double[]){10, 20, 10, 40, 70},
           "0 start a:1; 1 start a:1; 2 start b:1; 3 start b:1; 4 start a:1 b:1");
}

/* Runs job 0 on node a until 10 s, then on b. */
static mdot_status move_once(void *self, const sc_view *view, sc_plan *plan)
{
    (void)self;
    sc_phase phase = view->states[0].phase;
    if (phase != SC_WAITING && phase != SC_RUNNING) return MDOT_OK;
    sc_plan_run(plan, 0, 0, 1);
    sc_plan_take(plan, view->now_s < 10 ? 0 : 1, 1);
    if (view->now_s < 10) plan->wake_s = 10;
    return MDOT_OK;
}

static void a_move_pays_a_restart(void **state)
{
    (void)state;
    static const sc_policy policy = {.name = "move once", .decide = move_once};
    static const row rows[] = {{0, 1, 30, 0}};
    expect(rows, 1, (const int[]){1, 1, 0}, &policy, 5, (const double[]){35}, "0 start a:1; 0 move b:1");
}

static const sc_policy *checked; /* the policy that check() calls */

/* Every node has at most as many running GPUs as it has GPUs, and every running job has as many as its width. */
static mdot_status check(void *self, const sc_view *view, sc_plan *plan)
{
    int used[16] = {0};
    for (size_t i = 0; i < view->running_count; i++) {
        const sc_state *s = &view->states[view->running[i]];
        int width = 0;
        for (size_t part = 0; part < s->part_count; part++) {
            const sc_part *p = &view->parts[s->first_part + part];
            assert_true(part == 0 || p[-1].node < p->node);
            used[p->node] += p->gpus;
            width += p->gpus;
        }
        assert_int_equal(width, s->gpus);
    }
    for (size_t node = 0; node < view->cluster->node_count; node++)
        assert_true(used[node] <= view->cluster->nodes[node].gpus);
    return checked->decide(self, view, plan);
}

static void no_gpu_is_held_twice(void **state)
{
    (void)state;
    const sc_policy *const policies[] = {&sc_policy_gandiva, &sc_policy_smd,  &sc_policy_srsf,
                                         &sc_policy_fjf,     &sc_policy_dlas, &sc_policy_themis};
    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            sc_policy policy = *policies[p];
            uint64_t random = seed;
            sc_workload w = workload_random(120, 6, seed);
            for (size_t i = 0; i < w.job_count; i++) w.jobs[i].spread = 1 + (double)(sc_random_next(&random) % 3) / 2;
            checked = policies[p];
            policy.decide = check;
            sc_result r = run(&w, (const int[]){4, 2, 3, 1, 0}, &policy, 7, NULL);
            sc_result_free(&r);
            sc_workload_free(&w);
        }
    }
}

static void expect_equal(const sc_workload *w, const sc_policy *policy, const int *nodes, const sc_policy *partner,
                         const int *other_nodes)
{
    sc_result a = run(w, nodes, policy, 0, NULL), b = run(w, other_nodes, partner, 0, NULL);
    for (size_t i = 0; i < w->job_count; i++)
        if (a.states[i].start_s != b.states[i].start_s || a.states[i].end_s != b.states[i].end_s ||
            a.states[i].preemptions != b.states[i].preemptions)
            fail_msg("%s and %s differ at job %zu", policy->name, partner->name, i);
    sc_result_free(&a);
    sc_result_free(&b);
}

static void policies_ignore_nodes_without_a_spread(void **state)
{
    (void)state;
    static const int nodes[] = {4, 2, 3, 1, 0}, pool[] = {10, 0};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        sc_workload w = workload_random(120, 6, seed);
        expect_equal(&w, &sc_policy_srsf, nodes, &sc_policy_srsf, pool);
        expect_equal(&w, &sc_policy_dlas, nodes, &sc_policy_dlas, pool);
        expect_equal(&w, &sc_policy_gandiva, nodes, &sc_policy_gandiva, pool);
        expect_equal(&w, &sc_policy_smd, nodes, &sc_policy_srsf, pool);
        sc_workload_free(&w);
    }
}

static void gandiva_gives_one_node_to_sensitive_jobs(void **state)
{
    (void)state;
    /* 0 slows down if spread, so it gets the fullest node with room, c. 1 is insensitive and fills the rest of a node
     * instead of an empty one. */
    static const row rows[] = {{0, 2, 100, 2}, {1, 1, 50, 0}, {2, 2, 100, 1}, {3, 3, 100, 2}};
    expect(rows, 4, (const int[]){4, 4, 3, 0}, &sc_policy_gandiva, 0, (const double[]){100, 51, 102, 103},
           "0 start c:2; 1 start c:1; 2 start a:2; 3 start b:3");
    /* jobs never wait for a better place */
    static const row full[] = {{0, 3, 100, 2}, {0, 3, 100, 2}, {1, 2, 10, 5}};
    expect(full, 3, (const int[]){4, 4, 0}, &sc_policy_gandiva, 0, (const double[]){100, 100, 51},
           "0 start a:3; 1 start b:3; 2 start a:1 b:1");
}

static void gandiva_migrates_if_that_saves_time(void **state)
{
    (void)state;
    /* 2 is spread until 0 ends at 10 s, with 3 of 100 s done by then. */
    static const row rows[] = {{0, 3, 10, 2}, {0, 3, 500, 2}, {1, 2, 100, 3}};
    expect(rows, 3, (const int[]){4, 4, 0}, &sc_policy_gandiva, 0, (const double[]){10, 500, 107},
           "0 start a:3; 1 start b:3; 2 start a:1 b:1; 2 move a:2");
    /* The remaining 97 s take 194 s longer on two nodes. A restart of 190 s is worth it, one of 195 s is not. */
    expect(rows, 3, (const int[]){4, 4, 0}, &sc_policy_gandiva, 190, (const double[]){10, 500, 297},
           "0 start a:3; 1 start b:3; 2 start a:1 b:1; 2 move a:2");
    expect(rows, 3, (const int[]){4, 4, 0}, &sc_policy_gandiva, 195, (const double[]){10, 500, 301},
           "0 start a:3; 1 start b:3; 2 start a:1 b:1");
}

static void gandiva_moves_the_largest_saving_first(void **state)
{
    (void)state;
    /* 5 and 6 are both spread when 0 leaves the only node on which either fits. */
    static const row rows[] = {{0, 2, 10, 2},  {0, 2, 500, 2}, {0, 2, 500, 2}, {0, 2, 500, 2},
                               {0, 2, 500, 2}, {1, 2, 20, 2},  {2, 2, 400, 2}};
    expect(rows, 7, (const int[]){2, 3, 3, 3, 3, 0}, &sc_policy_gandiva, 0,
           (const double[]){10, 500, 500, 500, 500, 41, 406},
           "0 start a:2; 1 start b:2; 2 start c:2; 3 start d:2; 4 start e:2; 5 start b:1 c:1; 6 start d:1 e:1; "
           "6 move a:2");
}

/* One GPU of each node is free at 5 s. */
static const row packed[] = {{0, 2, 30, 2}, {0, 2, 60, 2}, {5, 2, 70, 2.5}, {5, 1, 200, 0}, {5, 1, 300, 0}};
static const int packed_nodes[] = {3, 3, 0};

static void smd_spreads_only_the_most_efficient_jobs(void **state)
{
    (void)state;
    /* On both nodes 2 would need 350 GPU-seconds, although 140 suffice on one node. This is more than 3 and 4 need,
     * so they go first. */
    expect(packed, 5, packed_nodes, &sc_policy_smd, 0, (const double[]){30, 60, 100, 205, 305},
           "0 start a:2; 1 start b:2; 3 start a:1; 4 start b:1; 2 start a:2");
}

static void smd_migrates_if_that_saves_time(void **state)
{
    (void)state;
    /* With a spread of 1.25 it needs 175 and goes first. At 30 s it has done 20 of 70 s, and a move saves 12.5 s. */
    row rows[5];
    memcpy(rows, packed, sizeof rows);
    rows[2][3] = 1.25;
    expect(rows, 5, packed_nodes, &sc_policy_smd, 0, (const double[]){30, 60, 80, 230, 330},
           "0 start a:2; 1 start b:2; 2 start a:1 b:1; 2 move a:2; 3 start a:1; 4 start b:1");
    expect(rows, 5, packed_nodes, &sc_policy_smd, 15, (const double[]){30, 60, 92.5, 230, 330},
           "0 start a:2; 1 start b:2; 2 start a:1 b:1; 3 start a:1; 4 start a:1");
}

/* At 7 s, job 3 has the fewest GPU-seconds. Six idle GPUs are missing, so it takes all of node a and half of b. 1
 * stays on the other half, of which one GPU was idle before. 0 moves to c, which leaves no GPU for 2. */
static void smd_allocates_idle_gpus_once(void **state)
{
    (void)state;
    static const row rows[] = {{0, 4, 20, 0}, {5, 2, 20, 0}, {6, 1, 55, 0}, {7, 6, 1, 0}};
    expect(rows, 4, (const int[]){4, 4, 4, 0}, &sc_policy_smd, 0, (const double[]){20, 25, 62, 8},
           "0 start a:4; 1 start b:2; 2 start b:1; 2 preempt b:1; 3 start a:4 b:2; 0 move c:4; 2 resume b:1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_on_several_nodes_is_slower),
        cmocka_unit_test(a_job_that_runs_stays_on_its_nodes),
        cmocka_unit_test(a_move_pays_a_restart),
        cmocka_unit_test(no_gpu_is_held_twice),
        cmocka_unit_test(policies_ignore_nodes_without_a_spread),
        cmocka_unit_test(gandiva_gives_one_node_to_sensitive_jobs),
        cmocka_unit_test(gandiva_migrates_if_that_saves_time),
        cmocka_unit_test(gandiva_moves_the_largest_saving_first),
        cmocka_unit_test(smd_spreads_only_the_most_efficient_jobs),
        cmocka_unit_test(smd_migrates_if_that_saves_time),
        cmocka_unit_test(smd_allocates_idle_gpus_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
