/* test_every_policy.c — every policy, with wrong estimates, restarts, failures and services: it ends, serves every job,
 * and keeps the invariants of a plan at every decision. */
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
#include "simulator/policy/learned.h"
#include "simulator/policy/policies.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"

enum { JOBS = 30, KINDS = 3, SEEDS = 2, MOST_DECISIONS = 100000 };

/* Workloads and clusters at the edge of what a trace may say. */
typedef enum shape { USUAL, ONE_GPU, WIDER_THAN_NODES, AT_ONCE, INSTANT, ENDLESS, SHAPES } shape;
static const char *const shape_names[] = {"usual", "one GPU", "wide", "all at once", "tiny", "1e9 s"};

typedef enum belief { EXACT, HALVED, DOUBLED, LOG_NORMAL, HEAVY_TAILED, BELIEFS } belief;
static const char *const belief_names[] = {"exact", "halved", "doubled", "log-normal", "heavy-tailed"};

/* Under the first policies a running job keeps its GPUs; the second ones reject jobs. Their files say so. */
static const char *const never_preempts[] = {"fifo",      "fjf",     "qssf",    "easy", "conservative", "hydra",
                                             "allox",     "elastic", "cognn",   "mps",  "yarn",         "drf",
                                             "kubeshare", "horus",   "cynthia", "genie"};
static const char *const rejects[] = {"elasticflow", "edf-admit"};
/* Policies that change a job's width. */
static const char *const elastic[] = {"elastic", "elasticflow", "powerflow", "pollux",  "sia",  "miso",
                                      "gandiva", "themis",      "optimus",   "cynthia", "genie"};

#define IS_IN(list, name) is_in(list, sizeof(list) / sizeof *(list), name)
static bool is_in(const char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0) return true;
    return false;
}

/* ---- The policy under test, watched ------------------------------------------------------------------------------ */

static const sc_policy *watched;
static size_t decisions;
static hs_row_model *learned;
static char fault[256];

static void check_plan(const sc_view *view, const sc_plan *plan)
{
    int held[SC_MAX_TYPES] = {0};
    bool has[JOBS] = {false};
    for (size_t i = 0; i < plan->grant_count; i++) {
        const sc_grant *g = &plan->grants[i];
        const sc_job *job = &view->workload->jobs[g->job];
        sc_phase phase = view->states[g->job].phase;
        if (has[g->job]) snprintf(fault, sizeof fault, "job %s has two grants", job->id);
        if (phase != SC_WAITING && phase != SC_RUNNING) snprintf(fault, sizeof fault, "job %s is not present", job->id);
        if (!g->shares) held[g->type] += g->gpus;
        has[g->job] = true;
        bool is_own = IS_IN(elastic, watched->name) ? sc_job_allows(job, g->gpus) : g->gpus == job->gpus;
        is_own |= watched->folds && g->gpus < job->gpus;
        if (!is_own) snprintf(fault, sizeof fault, "job %s of %d GPUs got %d", job->id, job->gpus, g->gpus);
    }
    for (unsigned type = 0; type < view->cluster->type_count; type++)
        if (held[type] > view->cluster->types[type].gpus)
            snprintf(fault, sizeof fault, "%d GPUs of type %u", held[type], type);
    for (size_t i = 0; i < plan->grant_count && IS_IN(never_preempts, watched->name); i++) {
        const sc_state *s = &view->states[plan->grants[i].job];
        if (s->phase == SC_RUNNING && s->type != plan->grants[i].type)
            snprintf(fault, sizeof fault, "job %u changed its type", plan->grants[i].job);
    }
    for (size_t i = 0; i < view->running_count; i++)
        if (!has[view->running[i]] && IS_IN(never_preempts, watched->name))
            snprintf(fault, sizeof fault, "job %s was preempted", view->workload->jobs[view->running[i]].id);
}

static mdot_status watch(void *self, const sc_view *view, sc_plan *plan)
{
    if (++decisions > MOST_DECISIONS) return mdot_fail(view->err, MDOT_OUT_OF_RANGE, "does not end");
    mdot_status status = watched->decide(self, view, plan);
    if (status == MDOT_OK) check_plan(view, plan);
    return status;
}

/* ---- Workloads --------------------------------------------------------------------------------------------------- */

static double between(uint64_t *seed, double low, double high) { return low + (high - low) * sc_random_unit(seed); }

/* Seconds of a job's work. */
static double draw_work(shape s, uint64_t *seed)
{
    double drawn = floor(exp(between(seed, 4, 9.5)));
    return s == INSTANT ? 1e-6 * drawn : s == ENDLESS && sc_random_unit(seed) < .1 ? 1e11 : drawn;
}

static sc_workload draw(const sc_policy *policy, shape s, const sc_cluster *cluster, uint64_t *seed)
{
    bool is_mig = strcmp(policy->name, "miso") == 0, has_kinds = policy->needs_kinds || sc_random_unit(seed) < .5;
    int widest = strcmp(policy->name, "allox") == 0 || is_mig || s == ONE_GPU ? 1 : 4;
    sc_workload w = {0};
    double submit_s = 0;
    has_kinds |= strncmp(policy->name, "muxflow", 7) == 0 || strcmp(policy->name, "cognn") == 0 ||
                 strcmp(policy->name, "mps") == 0 || strcmp(policy->name, "horus") == 0;
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        char name[8];
        uint32_t added;
        snprintf(name, sizeof name, "k%u", kind);
        assert_int_equal(sc_workload_add_kind(&w, name, &added, NULL), MDOT_OK);
        for (unsigned type = 0; type < cluster->type_count; type++) {
            double speed = between(seed, 1, 8), power = between(seed, .6, 1);
            for (unsigned width = 0; width < SC_SPEEDS; width++) {
                int gpus = width < SC_WIDTHS ? 1 << width : width == SC_WIDTHS ? 3 : 7;
                w.kinds[kind].speed[type][width] = speed * pow(gpus, power);
                w.kinds[kind].spread[type][width] = 1.2;
            }
        }
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        char id[24];
        if (s != AT_ONCE) submit_s += floor(-(widest == 1 ? 100 : 500) * log(sc_random_unit(seed)));
        snprintf(id, sizeof id, "%u", i);
        sc_job job = {.id = strdup(id),
                      .submit_s = submit_s,
                      .deadline_s = INFINITY,
                      .weight = 1,
                      .work = draw_work(s, seed),
                      .gpus = 1 << (sc_random_next(seed) % 3),
                      .kind = has_kinds ? (uint32_t)(sc_random_next(seed) % KINDS) : SC_NONE};
        if (job.gpus > widest) job.gpus = widest;
        if (!is_mig && sc_random_unit(seed) < .4) {
            job.least_gpus = 1;
            job.most_gpus = 8;
            job.scaling = .8;
        }
        if (!is_mig && sc_random_unit(seed) < .2) job.planned = between(seed, 1, 5); /* it fails before its plan ends */
        job.is_online = sc_random_unit(seed) < .2;
        assert_int_equal(sc_workload_add(&w, job, NULL), MDOT_OK);
        sc_job *added = &w.jobs[i];
        double duration_s = sc_workload_duration_s(&w, added, cluster->type_count);
        if (sc_random_unit(seed) < .5) added->deadline_s = submit_s + duration_s * between(seed, 1.1, 4);
    }
    for (uint32_t a = 0; a < KINDS; a++)
        for (uint32_t b = 0; b < KINDS; b++)
            for (unsigned width = 0; width < 4; width++)
                for (unsigned type = 0; type < cluster->type_count; type++)
                    assert_int_equal(sc_workload_set_pair_speed(&w, a, b, type, width,
                                                                w.kinds[a].speed[type][width] * between(seed, .4, 1),
                                                                NULL),
                                     MDOT_OK);
    return w;
}

static sc_cluster make_cluster(const sc_policy *policy, shape s)
{
    sc_cluster c = {0};
    int gpus = strcmp(policy->name, "miso") == 0 ? 7 : s == ONE_GPU ? 1 : s == WIDER_THAN_NODES ? 2 : 4;
    for (int node = 0; node < (s == ONE_GPU ? 1 : s == WIDER_THAN_NODES ? 6 : 3); node++) {
        char name[8];
        snprintf(name, sizeof name, "n%d", node);
        assert_int_equal(sc_cluster_add_node(&c, name, node % 3 == 2 ? "slow" : "mig", gpus, NULL), MDOT_OK);
    }
    for (unsigned type = 0; type < c.type_count; type++) c.types[type].watts = 300 - 100 * type;
    return c;
}

static double draw_factor(belief b, uint64_t *seed)
{
    double normal = sc_random_normal(seed), unit = sc_random_unit(seed);
    if (b == LOG_NORMAL) return exp(normal);
    if (b == HEAVY_TAILED) return exp(fmin(fmax(tan(3.141592653589793 * (unit - .5)), -14), 14)); /* Cauchy */
    return b == HALVED ? .5 : b == DOUBLED ? 2 : 1;
}

/* ---- The laws ---------------------------------------------------------------------------------------------------- */

static void check_result(const sc_workload *w, const sc_result *result)
{
    double held_gpu_s = 0, attained_gpu_s = 0;
    for (size_t i = 0; i < SC_MAX_TYPES; i++) held_gpu_s += result->held_gpu_s[i];
    for (size_t i = 0; i < w->job_count; i++) {
        const sc_state *s = &result->states[i];
        const sc_job *job = &w->jobs[i];
        attained_gpu_s += s->attained_gpu_s;
        if (s->phase == SC_REJECTED) {
            if (!IS_IN(rejects, watched->name) || !isfinite(job->deadline_s))
                snprintf(fault, sizeof fault, "job %s was rejected", job->id);
            continue;
        }
        if (s->phase != SC_DONE) snprintf(fault, sizeof fault, "job %s was not served", job->id);
        if (!(s->start_s >= job->submit_s && s->end_s >= s->start_s && s->end_s - s->start_s >= s->executed_s - 1e-6))
            snprintf(fault, sizeof fault, "job %s: submitted %g, started %g, ended %g, executed %g", job->id,
                     job->submit_s, s->start_s, s->end_s, s->executed_s);
        /* What was used is the work: no faster than the duration on the fastest type and the widest width. */
        if (s->remaining > 1e-6 * job->work || s->used_gpu_s <= 0)
            snprintf(fault, sizeof fault, "job %s: %g of %g work remain", job->id, s->remaining, job->work);
    }
    if (fabs(held_gpu_s - attained_gpu_s) > 1e-6 * held_gpu_s) snprintf(fault, sizeof fault, "GPU-seconds differ");
    if (result->joules > 300 * held_gpu_s * (1 + 1e-9) || (held_gpu_s > 0 && result->joules <= 0))
        snprintf(fault, sizeof fault, "%g J in %g GPU-seconds", result->joules, held_gpu_s);
}

static int try(const sc_policy *policy, shape shaped, belief b, uint64_t seed, sc_errors errors, double restart_s)
{
    uint64_t random = seed * 977;
    mdot_error err = {0};
    sc_cluster cluster = make_cluster(policy, shaped);
    sc_workload w = draw(policy, shaped, &cluster, &random);
    double *factors = calloc(JOBS, sizeof *factors);
    sc_estimator estimator;
    sc_result result = {0};
    assert_non_null(factors);
    for (size_t i = 0; i < JOBS; i++) factors[i] = draw_factor(b, &random);
    assert_int_equal(sc_estimator_make_fixed(factors, &estimator, NULL), MDOT_OK);
    watched = policy;
    decisions = 0;
    fault[0] = '\0';
    sc_policy copy = *policy;
    copy.decide = watch;
    sc_run_options options = {
        .errors = errors, .learned = learned, .restart = {.base_s = restart_s, .per_doubling_s = restart_s / 4}};
    mdot_status status = sc_simulate(&w, &cluster, &copy, &estimator, &options, &result, &err);
    if (status == MDOT_OK) check_result(&w, &result);
    if (status == MDOT_UNSUPPORTED) status = MDOT_OK; /* built without a solver */
    /* A policy in rounds refuses restarts that fill them. */
    if (status == MDOT_INVALID_ARGUMENT && restart_s > 60 && strstr(err.message, "does no work") != NULL)
        status = MDOT_OK;
    /* A policy that decides every minute refuses jobs of centuries. */
    if (status == MDOT_OUT_OF_RANGE && shaped == ENDLESS && strstr(err.message, "decides more than") != NULL)
        status = MDOT_OK;
    bool failed = status != MDOT_OK || fault[0] != '\0';
    if (failed)
        print_error("%s, %s, %s estimates of the %s, seed %d, restarts of %g s: %s\n", policy->name,
                    shape_names[shaped], belief_names[b], errors == SC_ERRORS_TOTAL ? "total" : "step", (int)seed,
                    restart_s, status != MDOT_OK ? err.message : fault);
    sc_result_free(&result);
    sc_estimator_destroy(&estimator);
    sc_workload_free(&w);
    sc_cluster_free(&cluster);
    return failed;
}

static void every_policy_ends_and_serves_every_job(void **state)
{
    (void)state;
    learned = compile_learned(); /* for mlfs */
    int failed = 0, tried = 0;
    const char *text = getenv("SEED"); /* the first of other seeds */
    uint64_t first = text != NULL ? strtoull(text, NULL, 10) : 1;
    for (size_t i = 0; sc_policies[i] != NULL; i++)
        for (uint64_t seed = first; seed < first + SEEDS; seed++)
            for (int variant = 0; variant < 6; variant++) {
                static const double restarts_s[] = {0, 40, 3000};
                sc_errors errors = variant % 2 ? SC_ERRORS_TOTAL : SC_ERRORS_SCALE;
                for (belief b = 0; b < BELIEFS; b++, tried++)
                    failed += try(sc_policies[i], USUAL, b, seed, errors, restarts_s[variant / 2]);
                for (shape s = USUAL + 1; s < SHAPES; s++, tried++)
                    failed += try(sc_policies[i], s, (variant + seed) % BELIEFS, seed, errors, restarts_s[variant / 2]);
            }
    hs_row_model_close(learned);
    if (failed > 0) fail_msg("%d of %d simulations", failed, tried);
}

/* ---- Types ------------------------------------------------------------------------------------------------------- */

/* A policy for one type, on a cluster with two, schedules the jobs of each type as if the other type were absent. */
static void types_of_a_policy_for_one_type_are_apart(void **state)
{
    (void)state;
    for (size_t i = 0; sc_policies[i] != NULL; i++) {
        if (!sc_policies[i]->one_type) continue;
        for (uint64_t seed = 1; seed <= 20; seed++) {
            uint64_t random = seed * 31;
            sc_policy policy = *sc_policies[i];
            policy.needs_kinds = true;
            mdot_error err = {0};
            sc_estimator oracle = sc_estimator_oracle();
            sc_run_options options = {.restart = {.base_s = seed % 2 ? 30 : 0}};
            sc_cluster both = make_cluster(&policy, USUAL);
            sc_workload w = draw(&policy, USUAL, &both, &random);
            /* Kind 2 runs on the second type, and the others on the first. */
            for (uint32_t kind = 0; kind < KINDS; kind++)
                memset(w.kinds[kind].speed[kind < 2], 0, sizeof w.kinds[kind].speed[0]);
            sc_result whole;
            if (sc_simulate(&w, &both, &policy, &oracle, &options, &whole, &err) != MDOT_OK)
                fail_msg("%s: %s", policy.name, err.message);
            for (unsigned type = 0; type < 2; type++) {
                sc_workload own = w;
                sc_job jobs[JOBS];
                size_t numbers[JOBS];
                sc_cluster one = {0};
                sc_result result;
                own.jobs = jobs;
                own.job_count = 0;
                own.first_type = type;
                for (size_t j = 0; j < JOBS; j++) {
                    if ((w.jobs[j].kind == 2) != (type == 1)) continue;
                    numbers[own.job_count] = j;
                    jobs[own.job_count++] = w.jobs[j];
                }
                for (size_t node = 0; node < both.node_count; node++)
                    if (both.nodes[node].type == type)
                        assert_int_equal(sc_cluster_add_node(&one, "n", "gpu", both.nodes[node].gpus, NULL), MDOT_OK);
                assert_int_equal(sc_simulate(&own, &one, &policy, &oracle, &options, &result, &err), MDOT_OK);
                for (size_t j = 0; j < own.job_count; j++) {
                    const sc_state *alone = &result.states[j], *beside = &whole.states[numbers[j]];
                    bool ends = alone->phase == SC_DONE && fabs(alone->end_s - beside->end_s) <= 1e-9 * alone->end_s;
                    if (alone->phase != beside->phase || alone->start_s != beside->start_s ||
                        alone->preemptions != beside->preemptions || (alone->phase == SC_DONE && !ends))
                        fail_msg("%s, seed %d, type %u, job %s: %g to %g s alone, %g to %g s beside the other type",
                                 policy.name, (int)seed, type, jobs[j].id, alone->start_s, alone->end_s,
                                 beside->start_s, beside->end_s);
                }
                sc_result_free(&result);
                sc_cluster_free(&one);
            }
            sc_result_free(&whole);
            sc_workload_free(&w);
            sc_cluster_free(&both);
        }
    }
}

/* Two jobs on one GPU whose estimates are halved: the first plan runs out. */
static void a_job_whose_plan_ran_out_runs_on(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 1000}, {0, 1, 1000}}, factors[] = {.5, .5};
    sc_workload w = workload_make(jobs, 2);
    w.jobs[0].deadline_s = 1200;
    w.jobs[1].deadline_s = 2300;
    for (int i = 0; i < 2; i++) {
        sc_result r = workload_run(&w, 1, i == 0 ? "elasticflow" : "chronus", factors, SC_ERRORS_SCALE);
        for (int j = 0; j < 2; j++) assert_int_equal(r.states[j].phase, SC_DONE);
        sc_result_free(&r);
    }
    sc_workload_free(&w);
}

static mdot_status never(void *self, const sc_view *view, sc_plan *plan)
{
    (void)self;
    plan->wake_s = view->now_s + 60;
    return MDOT_OK;
}

/* The simulator itself stops a policy that only wakes up. */
static void a_policy_that_only_wakes_is_stopped(void **state)
{
    (void)state;
    static const double jobs[][3] = {{0, 1, 15}};
    static const sc_policy sleepy = {.name = "sleepy", .decide = never};
    sc_workload w = workload_make(jobs, 1);
    sc_cluster cluster;
    sc_result result;
    mdot_error err = {0};
    sc_estimator oracle = sc_estimator_oracle();
    assert_int_equal(sc_cluster_make_pool(1, &cluster, NULL), MDOT_OK);
    assert_int_equal(sc_simulate(&w, &cluster, &sleepy, &oracle, &(sc_run_options){0}, &result, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "policy sleepy never starts 1 of the jobs"));
    sc_workload_free(&w);
    sc_cluster_free(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_policy_ends_and_serves_every_job),
        cmocka_unit_test(types_of_a_policy_for_one_type_are_apart),
        cmocka_unit_test(a_job_whose_plan_ran_out_runs_on),
        cmocka_unit_test(a_policy_that_only_wakes_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
