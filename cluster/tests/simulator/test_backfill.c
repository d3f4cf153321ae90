/* test_backfill.c — backfill against a second, direct implementation, time limits, and Slurm's priorities and
 * quotas. */
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
#include "simulator/policy/backfill.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

enum { MOST = 256 };

static sc_result run(const sc_workload *w, int gpus, const sc_policy *policy, const double *factors,
                     const sc_run_options *options)
{
    mdot_error err = {0};
    sc_cluster cluster;
    sc_result result = {0};
    sc_estimator estimator = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(gpus, &cluster, &err), MDOT_OK);
    if (factors != NULL) {
        double *copy = calloc(w->job_count, sizeof *copy);
        assert_non_null(copy);
        memcpy(copy, factors, w->job_count * sizeof *copy);
        assert_int_equal(sc_estimator_make_fixed(copy, &estimator, &err), MDOT_OK);
    }
    if (sc_simulate(w, &cluster, policy, &estimator, options, &result, &err) != MDOT_OK) fail_msg("%s", err.message);
    sc_estimator_destroy(&estimator);
    sc_cluster_free(&cluster);
    return result;
}

static void expect_times(const sc_result *r, const double *starts_s, const double *ends_s)
{
    for (size_t i = 0; i < r->job_count; i++)
        if (r->states[i].start_s != starts_s[i] || r->states[i].end_s != ends_s[i])
            fail_msg("job %zu: %g to %g, expected %g to %g", i, r->states[i].start_s, r->states[i].end_s, starts_s[i],
                     ends_s[i]);
}

/* ---- Against direct implementations ------------------------------------------------------------------------------ */

/* EASY, job by job at each event: the planned end of a running job is its start plus factor times duration, or now plus
 * the factor times the rest; both are equal at the start. */
static void naive_easy(const sc_workload *w, int gpus, const double *factors, double *starts, double *ends)
{
    size_t count = w->job_count, done = 0;
    bool started[MOST] = {false}, ended[MOST] = {false};
    double now = 0;
    while (done < count) {
        double successor = INFINITY;
        for (size_t i = 0; i < count; i++) {
            if (!started[i] && w->jobs[i].submit_s > now) successor = fmin(successor, w->jobs[i].submit_s);
            if (started[i] && !ended[i]) successor = fmin(successor, ends[i]);
        }
        bool is_first = now == 0 && done == 0 && w->jobs[0].submit_s == 0 && !started[0];
        now = is_first ? 0 : successor;
        int left = gpus;
        for (size_t i = 0; i < count; i++) {
            if (started[i] && !ended[i] && ends[i] <= now) {
                ended[i] = true;
                done++;
            }
            if (started[i] && !ended[i]) left -= w->jobs[i].gpus;
        }
        bool is_blocked = false;
        double shadow = 0;
        int spare = 0;
        for (size_t i = 0; i < count; i++) {
            if (started[i] || w->jobs[i].submit_s > now) continue;
            int wide = w->jobs[i].gpus;
            bool in_time = now + factors[i] * w->jobs[i].work <= shadow;
            if (is_blocked && (wide > left || (!in_time && wide > spare))) continue;
            if (!is_blocked && wide > left) {
                /* free GPUs grow with planned ends, in order of time */
                bool counted[MOST] = {false};
                int there = left;
                is_blocked = true;
                shadow = now;
                while (there < wide) {
                    size_t first = MOST;
                    double position = INFINITY;
                    for (size_t j = 0; j < count; j++) {
                        if (!started[j] || ended[j] || counted[j]) continue;
                        double planned = now + factors[j] * (ends[j] - now);
                        if (planned < position) {
                            position = planned;
                            first = j;
                        }
                    }
                    counted[first] = true;
                    there += w->jobs[first].gpus;
                    shadow = position;
                }
                spare = there - wide;
                continue;
            }
            if (is_blocked && !in_time) spare -= wide;
            started[i] = true;
            starts[i] = now;
            ends[i] = now + w->jobs[i].work;
            left -= wide;
        }
    }
}

static void easy_equals_a_direct_implementation(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        uint64_t random = seed;
        sc_workload w = workload_random(120, 6, seed);
        double factors[MOST], starts[MOST], ends[MOST];
        for (size_t i = 0; i < w.job_count; i++) {
            w.jobs[i].work += .5 + (double)i / 1024; /* distinct, so the order of equal ends is irrelevant */
            factors[i] = seed % 2 == 0 ? 1 : exp2((double)(sc_random_next(&random) % 5) - 2);
        }
        naive_easy(&w, 8, factors, starts, ends);
        sc_result easy = run(&w, 8, &sc_policy_easy, factors, &(sc_run_options){0});
        for (size_t i = 0; i < w.job_count; i++)
            if (fabs(easy.states[i].start_s - starts[i]) > 1e-6)
                fail_msg("seed %d, job %zu starts at %g, expected %g", (int)seed, i, easy.states[i].start_s, starts[i]);
        sc_result_free(&easy);
        sc_workload_free(&w);
    }
}

/* With exact times, a job keeps the plan made at arrival. */
static void conservative_backfill_delays_no_earlier_job(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        sc_workload w = workload_random(120, 6, seed);
        sc_result r = run(&w, 8, &sc_policy_conservative, NULL, &(sc_run_options){0});
        for (size_t i = 0; i < w.job_count; i++) {
            const sc_job *job = &w.jobs[i];
            /* the time before arrival does not count for this job */
            sc_profile later = {0};
            assert_int_equal(sc_profile_begin(&later, job->submit_s, 8, NULL), MDOT_OK);
            for (size_t j = 0; j < i; j++)
                if (r.states[j].end_s > job->submit_s)
                    assert_int_equal(sc_profile_add(&later, fmax(r.states[j].start_s, job->submit_s), r.states[j].end_s,
                                                    -w.jobs[j].gpus, NULL),
                                     MDOT_OK);
            double start_s = sc_profile_find(&later, job->gpus, job->work);
            if (start_s != r.states[i].start_s)
                fail_msg("seed %d, job %zu starts at %g, expected %g", (int)seed, i, r.states[i].start_s, start_s);
            sc_profile_free(&later);
        }
        sc_result_free(&r);
        sc_workload_free(&w);
    }
}

static void easy_may_delay_a_job_that_conservative_protects(void **state)
{
    (void)state;
    /* Job 1 waits for 4 GPUs until 100, and job 2 for 3 GPUs behind it. Job 3 of 1 GPU ends before job 1 must start,
     * so both let it go first. Job 4 of 1 GPU fits beside job 1 of 3 GPUs for any time, but delays job 2. */
    static const double jobs[][3] = {{0, 3, 100}, {1, 3, 50}, {2, 4, 50}, {3, 1, 90}, {4, 1, 400}};
    sc_workload w = workload_make(jobs, 5);
    sc_result r = run(&w, 4, &sc_policy_easy, NULL, &(sc_run_options){0});
    expect_times(&r, (const double[]){0, 100, 493, 3, 93}, (const double[]){100, 150, 543, 93, 493});
    sc_result_free(&r);
    r = run(&w, 4, &sc_policy_conservative, NULL, &(sc_run_options){0});
    expect_times(&r, (const double[]){0, 100, 150, 3, 200}, (const double[]){100, 150, 200, 93, 600});
    sc_result_free(&r);
    sc_workload_free(&w);
}

/* ---- Limits ------------------------------------------------------------------------------------------------------ */

static void a_job_at_its_limit_starts_again_with_twice_the_limit(void **state)
{
    (void)state;
    /* Predicted are 30 of 100 s: runs of 30 and 60 s are lost, the third has 120 s. The second job waits for it. */
    static const double jobs[][3] = {{0, 2, 100}, {1, 2, 10}};
    const double factors[] = {.3, 1};
    sc_workload w = workload_make(jobs, 2);
    sc_result r = run(&w, 2, &sc_policy_easy, factors, &(sc_run_options){.limit_factor = 1});
    expect_times(&r, (const double[]){0, 30}, (const double[]){200, 40});
    assert_int_equal(r.states[0].cuts, 2);
    expect_number(r.states[0].lost_gpu_s, 180);
    assert_int_equal(r.states[1].cuts, 0);
    sc_result_free(&r);
    /* An addition of 70 s makes the limit 100 s, and a job ending exactly at the limit is complete. */
    r = run(&w, 2, &sc_policy_fifo, factors, &(sc_run_options){.limit_factor = 1, .limit_extra_s = 70});
    expect_times(&r, (const double[]){0, 100}, (const double[]){100, 110});
    sc_result_free(&r);
    sc_workload_free(&w);
}

static void policies_in_rounds_refuse_limits(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}};
    sc_workload w = workload_make(jobs, 1);
    sc_cluster cluster;
    sc_result result;
    mdot_error err = {0};
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(2, &cluster, &err), MDOT_OK);
    assert_int_equal(
        sc_simulate(&w, &cluster, &sc_policy_themis, &oracle, &(sc_run_options){.limit_factor = 1}, &result, &err),
        MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "time limits");
    sc_cluster_free(&cluster);
    sc_workload_free(&w);
}

static void drawn_limits_are_round_and_suffice(void **state)
{
    (void)state;
    uint64_t random = 1;
    size_t at_most = 0, count = 20000;
    double used = 0;
    for (size_t i = 0; i < count; i++) {
        double duration_s = 3600 * (.01 + sc_random_unit(&random));
        double limit_s = sc_draw_limit_s(duration_s, 86400, &random);
        assert_true(limit_s >= duration_s);
        assert_true(limit_s <= 86400);
        expect_number(fmod(limit_s, 300), 0);
        at_most += limit_s == 86400;
        used += duration_s / limit_s / (double)count;
    }
    /* The used part would be uniform, with mean one half, without rounding up. */
    assert_true(used > .3);
    assert_true(used < .5);
    assert_true(at_most > count / 200);
    expect_number(sc_draw_limit_s(100000, 86400, &random), 100000);
}

static void requested_limits_are_an_estimate(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 100}, {0, 1, 200}};
    mdot_error err = {0};
    sc_workload w = workload_make(jobs, 2);
    sc_estimator estimator;
    assert_int_equal(sc_estimator_make_limits(&w, &estimator, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "--user-limits");
    w.jobs[0].limit_s = 300;
    assert_int_equal(sc_estimator_make_limits(&w, &estimator, &err), MDOT_OK);
    expect_number(estimator.factor(estimator.self, &w, 1, 200), 1.5); /* without a limit: the longest one */
    sc_estimator_destroy(&estimator);
    w.jobs[1].limit_s = 200;
    assert_int_equal(sc_estimator_make_limits(&w, &estimator, &err), MDOT_OK);
    expect_number(estimator.factor(estimator.self, &w, 0, 100), 3);
    expect_number(estimator.factor(estimator.self, &w, 1, 200), 1);
    sc_estimator_destroy(&estimator);
    sc_workload_free(&w);
}

/* ---- Priorities and quotas --------------------------------------------------------------------------------------- */

static uint32_t add(sc_accounts *a, const char *name, const char *parent, double shares)
{
    mdot_error err = {0};
    sc_account account = {.name = (char *)(uintptr_t)name, .shares = shares};
    if (sc_accounts_add(a, parent, account, &err) != MDOT_OK) fail_msg("%s", err.message);
    return sc_accounts_find(a, name);
}

static void fair_tree_ranks_accounts_before_users(void **state)
{
    (void)state;
    sc_accounts a;
    sc_fair_tree *tree;
    assert_int_equal(sc_accounts_create(&a, NULL), MDOT_OK);
    add(&a, "physics", "root", 3);
    add(&a, "biology", "root", 1);
    uint32_t ann = add(&a, "ann", "physics", 1), bob = add(&a, "bob", "physics", 1);
    uint32_t cat = add(&a, "cat", "biology", 1), dan = add(&a, "dan", "biology", 1);
    assert_int_equal(sc_fair_tree_create(&a, &tree, NULL), MDOT_OK);
    /* Without usage all are tied. */
    expect_number(sc_fair_tree_factor(tree, ann), 1);
    expect_number(sc_fair_tree_factor(tree, dan), 1);
    /* Physics has 3/4 of the shares and 2/3 of the usage, biology 1/4 and 1/3: all of physics come first, although dan
     * has used nothing. */
    sc_fair_tree_use(tree, ann, 100);
    sc_fair_tree_use(tree, bob, 300);
    sc_fair_tree_use(tree, cat, 200);
    sc_fair_tree_rank(tree);
    expect_number(sc_fair_tree_factor(tree, ann), 1);
    expect_number(sc_fair_tree_factor(tree, bob), .75);
    expect_number(sc_fair_tree_factor(tree, dan), .5);
    expect_number(sc_fair_tree_factor(tree, cat), .25);
    /* Decay keeps parts, and new usage outweighs old usage: now biology has used more. */
    sc_fair_tree_decay(tree, 2 * a.priority.half_life_s);
    sc_fair_tree_use(tree, bob, 1000);
    sc_fair_tree_rank(tree);
    expect_number(sc_fair_tree_factor(tree, dan), 1);
    expect_number(sc_fair_tree_factor(tree, cat), .75);
    expect_number(sc_fair_tree_factor(tree, ann), .5);
    expect_number(sc_fair_tree_factor(tree, bob), .25);
    free(tree);
    sc_accounts_free(&a);
}

static void members_of_tied_accounts_are_ranked_together(void **state)
{
    (void)state;
    sc_accounts a;
    sc_fair_tree *tree;
    assert_int_equal(sc_accounts_create(&a, NULL), MDOT_OK);
    add(&a, "x", "root", 1);
    add(&a, "y", "root", 1);
    uint32_t x1 = add(&a, "x1", "x", 1), x2 = add(&a, "x2", "x", 1), y1 = add(&a, "y1", "y", 1),
             y2 = add(&a, "y2", "y", 1);
    assert_int_equal(sc_fair_tree_create(&a, &tree, NULL), MDOT_OK);
    sc_fair_tree_use(tree, x1, 10);
    sc_fair_tree_use(tree, x2, 90);
    sc_fair_tree_use(tree, y1, 40);
    sc_fair_tree_use(tree, y2, 60);
    sc_fair_tree_rank(tree);
    expect_number(sc_fair_tree_factor(tree, x1), 1);
    expect_number(sc_fair_tree_factor(tree, y1), .75);
    expect_number(sc_fair_tree_factor(tree, y2), .5);
    expect_number(sc_fair_tree_factor(tree, x2), .25);
    free(tree);
    sc_accounts_free(&a);
}

/* Gives the jobs groups, "a" or "b", and assigns them to a tree that has both. */
static sc_accounts assign(sc_workload *w, const char *groups)
{
    sc_accounts a;
    mdot_error err = {0};
    assert_int_equal(sc_accounts_create(&a, NULL), MDOT_OK);
    add(&a, "a", "root", 1);
    add(&a, "b", "root", 1);
    for (size_t i = 0; i < w->job_count; i++) {
        free(w->jobs[i].group);
        w->jobs[i].group = strndup(&groups[i], 1);
    }
    if (sc_accounts_assign(&a, w, &err) != MDOT_OK) fail_msg("%s", err.message);
    return a;
}

static void fair_share_alternates_users(void **state)
{
    (void)state;
    /* Four jobs of a precede one of b, which goes second, because a has used the GPU by then. */
    static const double jobs[][3] = {{0, 1, 600}, {1, 1, 600}, {2, 1, 600}, {3, 1, 600}, {4, 1, 600}};
    sc_workload w = workload_make(jobs, 5);
    sc_accounts a = assign(&w, "aaaab");
    sc_result r = run(&w, 1, &sc_policy_easy, NULL, &(sc_run_options){.accounts = &a});
    expect_times(&r, (const double[]){0, 1200, 1800, 2400, 600}, (const double[]){600, 1800, 2400, 3000, 1200});
    sc_result_free(&r);
    /* With age alone it is first come, first served. */
    a.priority.fairshare_weight = 0;
    r = run(&w, 1, &sc_policy_easy, NULL, &(sc_run_options){.accounts = &a});
    expect_times(&r, (const double[]){0, 600, 1200, 1800, 2400}, (const double[]){600, 1200, 1800, 2400, 3000});
    sc_result_free(&r);
    sc_accounts_free(&a);
    sc_workload_free(&w);
}

static void short_jobs_go_first_by_length_weight(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 600}, {1, 1, 5000}, {2, 1, 900}};
    sc_workload w = workload_make(jobs, 3);
    sc_accounts a = assign(&w, "aaa");
    a.priority.length_weight = 1e6;
    sc_result r = run(&w, 1, &sc_policy_easy, NULL, &(sc_run_options){.accounts = &a});
    expect_times(&r, (const double[]){0, 1500, 600}, (const double[]){600, 6500, 1500});
    sc_result_free(&r);
    sc_accounts_free(&a);
    sc_workload_free(&w);
}

static void quotas_hold_and_block_no_other_user(void **state)
{
    (void)state;
    for (int conservative = 0; conservative < 2; conservative++) {
        const sc_policy *policy = conservative ? &sc_policy_conservative : &sc_policy_easy;
        static const double jobs[][3] = {{0, 2, 100}, {1, 1, 100}, {2, 1, 50}};
        sc_workload w = workload_make(jobs, 3);
        sc_accounts a = assign(&w, "aab");
        a.priority.fairshare_weight = 0;
        a.items[sc_accounts_find(&a, "a")].most_gpus = 2;
        sc_result r = run(&w, 4, policy, NULL, &(sc_run_options){.accounts = &a});
        expect_times(&r, (const double[]){0, 100, 2}, (const double[]){100, 200, 52});
        sc_result_free(&r);
        /* GPU-seconds that running jobs may still use: 200 at 0 s. The second job needs 100, which are free at 50 s; no
         * event comes before 52 s. */
        a.items[sc_accounts_find(&a, "a")].most_gpus = 0;
        a.items[0].most_gpu_s = 200;
        w.jobs[2].work = 50;
        r = run(&w, 4, policy, NULL, &(sc_run_options){.accounts = &a});
        assert_true(r.states[1].start_s == 100 || r.states[1].start_s == 52);
        for (size_t i = 0; i < 3; i++) assert_true(isfinite(r.states[i].end_s));
        sc_result_free(&r);
        sc_accounts_free(&a);
        sc_workload_free(&w);
    }
}

static void accounts_are_read_or_refused_with_their_line(void **state)
{
    (void)state;
    char *folder = process_make_folder();
    mdot_error err = {0};
    sc_accounts a;
    char *good = workload_write_file(folder, "good.csv",
                                     "account,parent,shares,gpus,gpu_minutes\nlab,,3,8,\nann,lab,1,,600\nbob,,1,,\n");
    assert_int_equal(sc_read_accounts(good, &a, &err), MDOT_OK);
    assert_int_equal(a.count, 4);
    assert_int_equal(a.items[1].most_gpus, 8);
    expect_number(a.items[2].most_gpu_s, 36000);
    expect_number(a.items[2].parent, 1);
    expect_number(a.items[3].parent, 0);
    /* An unknown group becomes a user; a group with members cannot be a user. */
    static const double jobs[][3] = {{0, 1, 100}, {0, 1, 100}};
    sc_workload w = workload_make(jobs, 2);
    w.jobs[0].group = strdup("new");
    assert_int_equal(sc_accounts_assign(&a, &w, &err), MDOT_OK);
    assert_string_equal(a.items[a.users[0]].name, "new");
    assert_string_equal(a.items[a.users[1]].name, "nobody");
    sc_accounts_free(&a);
    assert_int_equal(sc_read_accounts(good, &a, &err), MDOT_OK);
    w.jobs[1].group = strdup("lab");
    assert_int_equal(sc_accounts_assign(&a, &w, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "lab");
    sc_accounts_free(&a);
    sc_workload_free(&w);
    static const char *const bad[][2] = {{"account,parent,shares\nann,lab,1\n", "parent \"lab\""},
                                         {"account,parent,shares\nann,,1\nann,,1\n", "two accounts"},
                                         {"account,parent,shares\nann,,0\n", "shares"},
                                         {"account,parent\nann,\n", "shares"},
                                         {"account,parent,shares,gpus\nann,,1,0\n", "gpus"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *path = workload_write_file(folder, "bad.csv", bad[i][0]);
        assert_int_not_equal(sc_read_accounts(path, &a, &err), MDOT_OK);
        expect_contains(err.message, bad[i][1]);
        free(path);
    }
    free(good);
    process_remove_folder(folder);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static void the_experiment_writes_its_files(void **state)
{
    (void)state;
    static process_result result;
    char *folder = process_make_folder(), *trace_text = NULL, *argument = NULL;
    size_t size;
    FILE *text = open_memstream(&trace_text, &size);
    fputs("job_id,submit_s,gpus,duration_s\n", text);
    uint64_t random = 3;
    for (int i = 0; i < 300; i++)
        fprintf(text, "%d,%d,%d,%d\n", i, 40 * i, 1 + (int)(sc_random_next(&random) % 4),
                10 + (int)(sc_random_next(&random) % 4000));
    fclose(text);
    char *trace = workload_write_file(folder, "trace.csv", trace_text), *prefix = process_in_folder(folder, "out");
    char *table = workload_write_file(folder, "p.csv", "network,step_ms,mdot\na,100,110\nb,100,80\n");
    assert_true(asprintf(&argument, "T=%s", trace) > 0);
    const char *line[] = {MDOT_BACKFILL, argument, "--predictions", table, "--out",   prefix, "--gpus", "8",
                          "--windows",   "2",      "--jobs",        "100", "--loads", "0.9",  NULL};
    process_run(line, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    char *json = process_in_folder(folder, "out.json");
    process_run((const char *const[]){MDOT_DRAW, json, NULL}, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    free(json);
    static const char *const parts[][2] = {
        {"out.md", "| EASY | mdot, binding |"}, {"out.json", "\"limits\": \"exact\""}, {"out.svg", "</svg>"}};
    for (size_t i = 0; i < 3; i++) {
        static char content[200000];
        char *path = process_in_folder(folder, parts[i][0]);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        content[fread(content, 1, sizeof content - 1, file)] = '\0';
        fclose(file);
        expect_contains(content, parts[i][1]);
        free(path);
    }
    const char *wrong[] = {MDOT_BACKFILL, argument,      "--predictions", table, "--out",
                           prefix,        "--predictor", "none",          NULL};
    process_run(wrong, &result);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "\"none\"");
    free(trace);
    free(table);
    free(prefix);
    free(argument);
    free(trace_text);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(easy_equals_a_direct_implementation),
        cmocka_unit_test(conservative_backfill_delays_no_earlier_job),
        cmocka_unit_test(easy_may_delay_a_job_that_conservative_protects),
        cmocka_unit_test(a_job_at_its_limit_starts_again_with_twice_the_limit),
        cmocka_unit_test(policies_in_rounds_refuse_limits),
        cmocka_unit_test(drawn_limits_are_round_and_suffice),
        cmocka_unit_test(requested_limits_are_an_estimate),
        cmocka_unit_test(fair_tree_ranks_accounts_before_users),
        cmocka_unit_test(members_of_tied_accounts_are_ranked_together),
        cmocka_unit_test(fair_share_alternates_users),
        cmocka_unit_test(short_jobs_go_first_by_length_weight),
        cmocka_unit_test(quotas_hold_and_block_no_other_user),
        cmocka_unit_test(accounts_are_read_or_refused_with_their_line),
        cmocka_unit_test(the_experiment_writes_its_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
