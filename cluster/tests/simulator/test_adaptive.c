/* test_adaptive.c — Pollux and Sia: their programs against brute force, nodes for widths, hand-made cases, and
 * properties on random jobs. */
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
#include "simulator/policy/adaptive.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/solve/linear.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static void expect_near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.12g, expected %.12g", got, want);
}

/* ---- Programs ---------------------------------------------------------------------------------------------------- */

enum { MOST_JOBS = 5, OPTIONS = 4 };

/* Tries every combination. */
static double brute_force(const sc_option_problem *p, size_t job, const int *left)
{
    if (job == p->job_count) return 0;
    double best = p->none_cost[job] + brute_force(p, job + 1, left);
    for (size_t i = 0; i < p->option_count; i++) {
        int rest[3] = {left[0], left[1], left[2]};
        if (p->options[i].job != job || (rest[p->options[i].type] -= p->options[i].gpus) < 0) continue;
        best = fmin(best, p->options[i].cost + brute_force(p, job + 1, rest));
    }
    return best;
}

static void expect_choice(const sc_option_problem *p, const size_t *chosen, double cost)
{
    double sum = 0;
    int used[3] = {0};
    for (size_t job = 0; job < p->job_count; job++) {
        if (chosen[job] == SIZE_MAX) {
            sum += p->none_cost[job];
            continue;
        }
        const sc_option *o = &p->options[chosen[job]];
        assert_int_equal(o->job, job);
        used[o->type] += o->gpus;
        sum += o->cost;
    }
    for (size_t type = 0; type < p->type_count; type++) assert_true(used[type] <= p->gpus[type]);
    expect_near(sum, cost, 1e-9);
}

static void programs_find_the_optimum_of_brute_force(void **state)
{
    (void)state;
    uint64_t random = 11;
    for (int round = 0; round < 300; round++) {
        sc_option options[MOST_JOBS * OPTIONS];
        double none_cost[MOST_JOBS], cost;
        size_t chosen[MOST_JOBS];
        int gpus[3];
        sc_option_problem p = {.options = options,
                               .job_count = 1 + sc_random_next(&random) % MOST_JOBS,
                               .none_cost = none_cost,
                               .gpus = gpus,
                               .type_count = 1 + (size_t)round % 3};
        for (size_t type = 0; type < 3; type++)
            gpus[type] = type < p.type_count ? (int)(sc_random_next(&random) % 9) : 0;
        for (size_t job = 0; job < p.job_count; job++) {
            none_cost[job] = 2 * sc_random_unit(&random);
            for (size_t i = sc_random_next(&random) % (OPTIONS + 1); i > 0; i--)
                options[p.option_count++] =
                    (sc_option){job, (unsigned)(sc_random_next(&random) % p.type_count),
                                1 + (int)(sc_random_next(&random) % 6), 2 * sc_random_unit(&random)};
        }
        double best = brute_force(&p, 0, gpus);
        if (p.type_count == 1) {
            assert_int_equal(sc_options_by_gpus(&p, chosen, &cost, NULL), MDOT_OK);
            expect_near(cost, best, 1e-9);
            expect_choice(&p, chosen, cost);
        }
        if (!sc_linear_solves_integers()) continue;
        assert_int_equal(sc_options_by_program(&p, 10, chosen, &cost, NULL), MDOT_OK);
        expect_near(cost, best, 1e-4);
        expect_choice(&p, chosen, best);
    }
}

/* The relaxed program has at most one job for each type between two options. */
static void prices_are_near_the_optimum(void **state)
{
    (void)state;
    uint64_t random = 17;
    double far = 0;
    for (int round = 0; round < 200; round++) {
        enum { JOBS = 60, MOST = 4 };
        sc_option options[JOBS * MOST];
        double none_cost[JOBS], cost, near, dearest = 0;
        size_t chosen[JOBS];
        int gpus[3];
        sc_option_problem p = {.options = options,
                               .job_count = 1 + sc_random_next(&random) % JOBS,
                               .none_cost = none_cost,
                               .gpus = gpus,
                               .type_count = 1 + (size_t)round % 3};
        for (size_t type = 0; type < 3; type++) gpus[type] = (int)(sc_random_next(&random) % 60);
        for (size_t job = 0; job < p.job_count; job++) {
            none_cost[job] = 2 * sc_random_unit(&random);
            dearest = fmax(dearest, none_cost[job]);
            for (size_t i = sc_random_next(&random) % (MOST + 1); i > 0; i--)
                options[p.option_count++] = (sc_option){job, (unsigned)(sc_random_next(&random) % p.type_count),
                                                        1 << sc_random_next(&random) % 4, 2 * sc_random_unit(&random)};
        }
        assert_int_equal(sc_options_by_prices(&p, chosen, &near, NULL), MDOT_OK);
        expect_choice(&p, chosen, near);
        if (p.type_count == 1)
            assert_int_equal(sc_options_by_gpus(&p, chosen, &cost, NULL), MDOT_OK);
        else if (!sc_linear_solves_integers())
            continue;
        else
            assert_int_equal(sc_options_by_program(&p, 10, chosen, &cost, NULL), MDOT_OK);
        if (near < cost - 1e-4 || near > cost + (double)p.type_count * dearest)
            fail_msg("round %d: %g by prices, %g by the program", round, near, cost);
        far += (near - cost) / cost / 200;
    }
    if (far > .03) fail_msg("prices cost %g more in the mean", far);
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

static sc_cluster make_nodes(int nodes, int gpus, int other_nodes)
{
    sc_cluster c = {0};
    char name[16];
    for (int i = 0; i < nodes + other_nodes; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(sc_cluster_add_node(&c, name, i < nodes ? "a" : "b", gpus, NULL), MDOT_OK);
    }
    return c;
}

/* Shares of random widths fit two types; each gets exactly the requested GPUs and type, within the nodes. Shares of
 * whole nodes and powers of two, as in Sia, always get as few nodes as possible. */
static void packing_fits_nodes(void **state)
{
    (void)state;
    uint64_t random = 5;
    sc_cluster c = make_nodes(6, 4, 3);
    for (int round = 0; round < 300; round++) {
        sc_share shares[40];
        size_t count = 0;
        int left[2] = {24, 12};
        bool is_sia = round % 2 == 0;
        for (int i = 0; i < 40; i++) {
            static const int widths[] = {1, 2, 4, 8, 12};
            unsigned type = (unsigned)(sc_random_next(&random) % 2);
            int gpus = is_sia ? widths[sc_random_next(&random) % 5] : 1 + (int)(sc_random_next(&random) % 7);
            if (gpus > left[type]) continue;
            left[type] -= gpus;
            shares[count] = (sc_share){.job = (uint32_t)count, .type = type, .gpus = gpus};
            count++;
        }
        sc_workload w = workload_random(40, 1, 1);
        sc_state *states = calloc(40, sizeof *states);
        sc_view view = {.workload = &w, .cluster = &c, .states = states};
        sc_plan plan;
        assert_int_equal(sc_plan_create(&w, &c, &plan, NULL), MDOT_OK);
        sc_plan_begin(&plan, &c);
        assert_int_equal(sc_pack(&view, &plan, shares, count, NULL), MDOT_OK);
        assert_int_equal(plan.grant_count, count);
        int used[9] = {0};
        for (size_t i = 0; i < count; i++) {
            const sc_grant *g = &plan.grants[i];
            int gpus = 0;
            for (size_t k = 0; k < g->part_count; k++) {
                const sc_part *part = &plan.parts[g->first_part + k];
                assert_int_equal(c.nodes[part->node].type, g->type);
                used[part->node] += part->gpus;
                gpus += part->gpus;
            }
            assert_int_equal(gpus, shares[i].gpus);
            if (is_sia) assert_int_equal(g->part_count, (shares[i].gpus + 3) / 4);
        }
        for (size_t node = 0; node < 9; node++) assert_true(used[node] <= 4);
        sc_plan_free(&plan);
        free(states);
        sc_workload_free(&w);
    }
    sc_cluster_free(&c);
}

/* ---- Jobs with a scaling ----------------------------------------------------------------------------------------- */

/* Gives all jobs of the workload kinds whose steps follow a model, on types 0 and 1; type 1 is `ratio` times as fast.
 * The shortest step takes 0.01 s. */
static void scale_jobs(sc_workload *w, double noise, double ratio)
{
    for (int k = 0; k < 2; k++) {
        const sc_step_model model = {.01, .001, .002 + .02 * k, .0002, .01 + .05 * k, .001, 2};
        sc_scaling *s = calloc(1, sizeof *s);
        uint32_t kind;
        assert_non_null(s);
        *s = (sc_scaling){.least_batch = 64, .most_batch = 2048, .noise_count = 2};
        s->noise = calloc(2, sizeof *s->noise);
        assert_non_null(s->noise);
        s->noise[0] = (sc_noise_row){64, 0, noise};
        s->noise[1] = (sc_noise_row){64, 1e6, noise * 100};
        for (unsigned type = 0; type < SC_MAX_TYPES; type++) s->source[type] = type < 2 ? type : SC_MAX_TYPES;
        for (unsigned type = 0; type < 2; type++) {
            sc_step_table *t = &s->tables[type];
            t->rows = calloc(16, sizeof *t->rows);
            assert_non_null(t->rows);
            for (int gpus = 1; gpus <= 4; gpus++) {
                for (double samples = 16; samples <= 256; samples *= 4) {
                    sc_step_row row = {.placement = {.nodes = 1, .gpus = gpus, .pattern = (uint64_t)gpus},
                                       .samples = samples};
                    row.step_s = sc_step_model_s(&model, 1, gpus, samples, 1) / (type == 1 ? ratio : 1);
                    t->rows[t->row_count++] = row;
                }
            }
            sc_step_table_sort(t);
            t->model = model;
            double faster = type == 1 ? ratio : 1;
            t->model.grad_s /= faster;
            t->model.grad_per_sample_s /= faster;
            t->model.local_s /= faster;
            t->model.local_per_gpu_s /= faster;
            t->model.node_s /= faster;
            t->model.node_per_gpu_s /= faster;
        }
        assert_int_equal(sc_workload_add_kind(w, k == 0 ? "scales" : "communicates", &kind, NULL), MDOT_OK);
        w->kinds[kind].scaling = s;
        for (size_t i = (size_t)k; i < w->job_count; i += 2) w->jobs[i].kind = kind;
    }
}

static sc_result run(const sc_workload *w, const sc_cluster *c, const sc_policy *policy, double restart_s, FILE *log)
{
    sc_result r = {0};
    sc_estimator oracle = sc_estimator_oracle();
    mdot_error err = {0};
    sc_run_options options = {.restart = {.base_s = restart_s}, .log = log};
    if (sc_simulate(w, c, policy, &oracle, &options, &r, &err) != MDOT_OK) fail_msg("%s", err.message);
    return r;
}

/* The batch size with most goodput is within one search step of the best one on a fine grid. */
static void the_batch_size_of_most_goodput_is_found(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}};
    sc_workload w = workload_make(jobs, 2);
    sc_cluster c = make_nodes(4, 4, 0);
    double factors[] = {1, 1};
    sc_state states[2] = {{.remaining = 1000}, {.remaining = 400}};
    sc_estimate estimate = {.workload = &w, .factors = factors};
    sc_view view = {.workload = &w, .cluster = &c, .estimate = &estimate, .states = states};
    scale_jobs(&w, 8, 1);
    for (uint32_t job = 0; job < 2; job++) {
        double final = 0;
        for (int gpus = 1; gpus <= 16; gpus *= 2) {
            double batch, best = 0, done = 1000 - states[job].remaining;
            double got = sc_goodput(&view, job, 0, gpus, true, &batch);
            const sc_scaling *s = w.kinds[w.jobs[job].kind].scaling;
            for (double b = 64; b <= 2048; b++)
                best = fmax(best, sc_scaling_gain(s, b, done) / sc_scaling_model_s(s, 0, (gpus + 3) / 4, gpus, b));
            assert_true(got <= best * (1 + 1e-12));
            assert_true(got >= .99 * best);
            assert_true(batch >= 64);
            assert_true(batch <= 2048);
            if (job == 0) assert_true(got > final); /* this kind scales */
            final = got;
        }
    }
    /* Each GPU needs a sample. */
    sc_scaling *scaling = w.kinds[w.jobs[0].kind].scaling;
    scaling->most_batch = 70;
    double fewest, speed = sc_goodput(&view, 0, 0, 72, true, &fewest);
    expect_number(speed, 0);
    scaling->most_batch = 2048;
    w.jobs[0].batch = 128; /* a fixed batch size stays */
    double batch, fixed = sc_goodput(&view, 0, 0, 4, true, &batch);
    const sc_scaling *s = w.kinds[w.jobs[0].kind].scaling;
    expect_number(batch, 0);
    expect_near(fixed, sc_scaling_gain(s, 128, 0) / sc_scaling_model_s(s, 0, 1, 4, 128), 1e-12);
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

typedef struct grant_line {
    double time_s;
    int job, gpus;
    char decision[16];
} grant_line;

/* Reads the log, and checks that nodes are never over-committed. */
static size_t read_log(FILE *log, const sc_cluster *c, grant_line *out, size_t maximum)
{
    char line[512];
    size_t count = 0, jobs = 1000;
    int *held = calloc(jobs * c->node_count, sizeof *held), *used = calloc(c->node_count, sizeof *used);
    double last_s = 0;
    assert_non_null(held);
    assert_non_null(used);
    rewind(log);
    assert_non_null(fgets(line, sizeof line, log));
    while (fgets(line, sizeof line, log) != NULL) {
        char *fields[7] = {line};
        for (int i = 1; i < 7; i++) {
            fields[i] = strchr(fields[i - 1], ',');
            assert_non_null(fields[i]);
            *fields[i]++ = '\0';
        }
        assert_true(count < maximum);
        grant_line *g = &out[count++];
        *g = (grant_line){.time_s = strtod(fields[0], NULL), .job = atoi(fields[2]), .gpus = atoi(fields[4])};
        snprintf(g->decision, sizeof g->decision, "%s", fields[1]);
        for (size_t n = 0; g->time_s > last_s && n < c->node_count; n++) assert_true(used[n] <= c->nodes[n].gpus);
        last_s = g->time_s;
        int *mine = &held[(size_t)g->job * c->node_count];
        if (strcmp(g->decision, "arrive") == 0) continue;
        for (size_t n = 0; n < c->node_count; n++) used[n] -= mine[n];
        memset(mine, 0, c->node_count * sizeof *mine);
        bool runs =
            strcmp(g->decision, "start") == 0 || strcmp(g->decision, "move") == 0 || strcmp(g->decision, "resume") == 0;
        for (char *cursor = strtok(fields[6], " \n"); runs && cursor != NULL; cursor = strtok(NULL, " \n")) {
            int gpus = atoi(strchr(cursor, ':') + 1), node = atoi(cursor + 1);
            mine[node] += gpus;
            used[node] += gpus;
        }
    }
    free(held);
    free(used);
    return count;
}

static void a_job_doubles_its_gpus_every_minute(void **state)
{
    (void)state;
    static const double jobs[][3] = {{10, 1, 40000}};
    static const sc_policy *const policies[] = {&sc_policy_pollux, &sc_policy_sia};
    for (size_t i = 0; i < 2; i++) {
        sc_workload w = workload_make(jobs, 1);
        sc_cluster c = make_nodes(4, 4, 0);
        grant_line lines[64];
        FILE *log = tmpfile();
        assert_non_null(log);
        scale_jobs(&w, 1e6, 1); /* so that every sample counts */
        sc_result r = run(&w, &c, policies[i], 0, log);
        size_t count = read_log(log, &c, lines, 64), successor = 0;
        for (size_t k = 0; k < count; k++) {
            bool keeps_gpus = strcmp(lines[k].decision, "arrive") == 0 || strcmp(lines[k].decision, "batch") == 0;
            if (lines[k].gpus == 0 || keeps_gpus || strcmp(lines[k].decision, "complete") == 0) continue;
            expect_near(lines[k].time_s, 60 * (double)(1 + successor), 1e-12);
            assert_int_equal(lines[k].gpus, 1 << successor);
            successor++;
        }
        assert_int_equal(successor, 5); /* 1 to 16 */
        fclose(log);
        sc_result_free(&r);
        sc_cluster_free(&c);
        sc_workload_free(&w);
    }
}

static void random_jobs_keep_their_bounds(void **state)
{
    (void)state;
    enum { LINES = 20000 };
    static const sc_policy *const policies[] = {&sc_policy_pollux, &sc_policy_sia, &sc_policy_elastic};
    grant_line *lines = calloc(LINES, sizeof *lines);
    assert_non_null(lines);
    for (size_t p = 0; p < 3; p++) {
        for (uint64_t seed = 1; seed <= 4; seed++) {
            uint64_t random = seed;
            sc_workload w = workload_random(40, 1, seed);
            sc_cluster c = make_nodes(4, 4, 0);
            FILE *log = tmpfile();
            assert_non_null(log);
            scale_jobs(&w, 30, 1);
            for (size_t i = 0; i < w.job_count; i++) {
                w.jobs[i].work *= 30;
                if (i % 3 == 0) continue; /* unbounded */
                w.jobs[i].least_gpus = w.jobs[i].gpus = 1 + (int)(sc_random_next(&random) % 2);
                w.jobs[i].most_gpus = w.jobs[i].gpus + (int)(sc_random_next(&random) % 8);
            }
            sc_result r = run(&w, &c, policies[p], 30, log);
            size_t count = read_log(log, &c, lines, LINES);
            int *had = calloc(w.job_count, sizeof *had);
            assert_non_null(had);
            for (size_t i = 0; i < count; i++) {
                const sc_job *j = &w.jobs[lines[i].job];
                bool runs = strcmp(lines[i].decision, "start") == 0 || strcmp(lines[i].decision, "move") == 0 ||
                            strcmp(lines[i].decision, "resume") == 0;
                if (!runs) continue;
                assert_true(sc_job_allows(j, lines[i].gpus));
                int maximum = 2 * had[lines[i].job] > j->least_gpus ? 2 * had[lines[i].job] : j->least_gpus;
                if (p < 2) assert_true(lines[i].gpus <= (maximum > 1 ? maximum : 1));
                if (lines[i].gpus > had[lines[i].job]) had[lines[i].job] = lines[i].gpus;
            }
            /* No job ends sooner than at the highest speed. */
            for (size_t i = 0; i < w.job_count; i++) {
                assert_true(r.states[i].executed_s >= w.jobs[i].work / (2048 / 64 / .01));
                expect_number(r.states[i].remaining, 0);
                assert_true(isfinite(r.states[i].end_s));
            }
            free(had);
            fclose(log);
            sc_result_free(&r);
            sc_cluster_free(&c);
            sc_workload_free(&w);
        }
    }
    free(lines);
}

/* Alone on one GPU at the reference batch, a job takes steps times step time; the speed at a batch size follows the
 * statistical efficiency along training. */
static void work_is_the_integral_of_goodput(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 30000}};
    sc_workload w = workload_make(jobs, 1);
    sc_cluster c = make_nodes(1, 1, 0);
    scale_jobs(&w, 8, 1);
    sc_result r = run(&w, &c, &sc_policy_fifo, 0, NULL);
    const sc_scaling *s = w.kinds[w.jobs[0].kind].scaling;
    sc_placement one = {.nodes = 1, .gpus = 1, .pattern = 1};
    expect_near(r.states[0].end_s, 30000 * sc_scaling_step_s(s, 0, &one, 64), 1e-9);
    sc_result_free(&r);
    /* Pollux renews the speed every 60 s. The integral of 1 / speed over progress is the time, within an interval. */
    r = run(&w, &c, &sc_policy_pollux, 0, NULL);
    double time_s = 0, states_batch = 0;
    double factors[] = {1};
    sc_state now = {.remaining = 30000};
    sc_estimate estimate = {.workload = &w, .factors = factors};
    sc_view view = {.workload = &w, .cluster = &c, .estimate = &estimate, .states = &now};
    for (double done = 0; done < 30000; done += 10) {
        now.remaining = 30000 - done;
        sc_goodput(&view, 0, 0, 1, true, &states_batch);
        time_s += 10 / sc_scaling_speed(s, 0, &one, states_batch, done);
    }
    expect_near(r.states[0].end_s, time_s, .01);
    assert_true(r.states[0].end_s < 30000 * sc_scaling_step_s(s, 0, &one, 64)); /* a larger batch pays */
    sc_result_free(&r);
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

/* Two types of one GPU each. Type b is four times as fast for both kinds, so that both jobs want it; one gets it, and
 * the other one moves there when it is alone. */
static void sia_uses_the_fast_type(void **state)
{
    (void)state;
    if (!sc_linear_solves_integers()) skip();
    static const double jobs[][3] = {{0, 1, 20000}, {0, 1, 2000}};
    sc_workload w = workload_make(jobs, 2);
    sc_cluster c = make_nodes(1, 1, 1);
    scale_jobs(&w, 0.001, 4); /* no batch but the least one pays */
    sc_result r = run(&w, &c, &sc_policy_sia, 0, NULL);
    const sc_scaling *s = w.kinds[w.jobs[0].kind].scaling;
    sc_placement one = {.nodes = 1, .gpus = 1, .pattern = 1};
    double slow_s = sc_scaling_step_s(s, 0, &one, 64);
    expect_near(sc_scaling_step_s(s, 1, &one, 64), slow_s / 4, 1e-9);
    double makespan_s = fmax(r.states[0].end_s, r.states[1].end_s);
    assert_true(makespan_s >= 20000 * slow_s / 4);
    assert_true(makespan_s <= 20000 * slow_s / 4 + 2000 * slow_s + 60);
    sc_result_free(&r);
    sc_cluster_free(&c);
    sc_workload_free(&w);
}

/* Jobs without kind and bounds run at the requested width, under both policies. */
static void rigid_jobs_run_beside(void **state)
{
    (void)state;
    static const sc_policy *const policies[] = {&sc_policy_pollux, &sc_policy_sia};
    for (size_t p = 0; p < 2; p++) {
        sc_workload w = workload_random(30, 6, 3);
        sc_cluster c = make_nodes(4, 4, 0);
        for (size_t i = 0; i < w.job_count; i++) w.jobs[i].work += 100;
        sc_result r = run(&w, &c, policies[p], 0, NULL);
        for (size_t i = 0; i < w.job_count; i++) expect_near(r.states[i].executed_s, w.jobs[i].work, 1e-9);
        sc_result_free(&r);
        sc_cluster_free(&c);
        sc_workload_free(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_find_the_optimum_of_brute_force),
        cmocka_unit_test(prices_are_near_the_optimum),
        cmocka_unit_test(packing_fits_nodes),
        cmocka_unit_test(the_batch_size_of_most_goodput_is_found),
        cmocka_unit_test(a_job_doubles_its_gpus_every_minute),
        cmocka_unit_test(random_jobs_keep_their_bounds),
        cmocka_unit_test(work_is_the_integral_of_goodput),
        cmocka_unit_test(sia_uses_the_fast_type),
        cmocka_unit_test(rigid_jobs_run_beside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
