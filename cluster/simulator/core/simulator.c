/* simulator.c — the discrete-event loop. */
#include "simulator/core/simulator.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct simulation {
    const sc_workload *workload;
    const sc_cluster *cluster;
    const sc_policy *policy;
    const sc_estimator *estimator;
    const sc_run_options *options;
    sc_estimate estimate;
    sc_view view; /* changing parts are in the arrays below */
    sc_plan plan;
    sc_state *states;
    double *durations_s; /* each job's true duration on a node of the fastest type */
    uint32_t *running, *arrived, *completed;
    sc_part *parts;    /* nodes of running jobs; swapped with the plan's at every decision */
    uint32_t *granted; /* decision that last granted GPUs to each job, counted from 1 */
    uint32_t next_arrival;
    size_t done;
    sc_result result;
} simulation;

sc_level sc_level_of(const sc_cluster *cluster, const sc_part *parts, size_t part_count)
{
    if (part_count < 2) return SC_LEVEL_NODE;
    sc_level level = SC_LEVEL_DOMAIN;
    const sc_node *first = &cluster->nodes[parts[0].node];
    for (size_t i = 1; i < part_count; i++) {
        const sc_node *node = &cluster->nodes[parts[i].node];
        if (node->rack != first->rack) return SC_LEVEL_CLUSTER;
        if (node->domain != first->domain) level = SC_LEVEL_RACK;
    }
    return level;
}

double sc_loader_cpus(const sc_job *job, int gpus) { return job->loader_cpus * gpus / job->gpus; }

bool sc_view_is_running(const sc_view *view, uint32_t job) { return view->states[job].phase == SC_RUNNING; }

double sc_view_planned_work(const sc_view *view, uint32_t job)
{
    const sc_job *j = &view->workload->jobs[job];
    return view->states[job].remaining + j->work * (sc_workload_planned(j) - 1);
}

double sc_view_left_s(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    return sc_estimate_remaining_s(view->estimate, job, state->remaining, state->executed_s);
}

double sc_view_left_gpu_s(const sc_view *view, uint32_t job)
{
    return sc_view_left_s(view, job) * view->workload->jobs[job].gpus;
}

double sc_restart_s(const sc_restart *restart, int gpus, bool is_first)
{
    if (is_first && !restart->first) return 0;
    return restart->base_s + restart->per_doubling_s * (log2(gpus) + 1);
}

/* ---- Time passes ------------------------------------------------------------------------------------------------ */

/* Returns the work that a running job does in `span_s` seconds from view.now_s on. In rounds, jobs do whole steps if
 * a round has at least one. */
static double work_in(const simulation *s, const sc_state *state, double span_s)
{
    double busy_s = state->busy_s - s->view.now_s;
    busy_s = busy_s <= 0 ? 0 : busy_s < span_s ? busy_s : span_s;
    double work = (span_s - busy_s) * state->speed;
    bool has_whole_steps = s->policy->round_s > 0 && state->speed * s->policy->round_s >= 1;
    return has_whole_steps ? floor(work * (1 + 1e-12)) : work;
}

static void advance(simulation *s, double to_s)
{
    for (size_t i = 0; i < s->view.running_count; i++) {
        sc_state *state = &s->states[s->running[i]];
        bool ends = state->due_s <= to_s;
        double span_s = (ends ? state->due_s : to_s) - s->view.now_s;
        double rest = ends ? 0 : state->remaining - work_in(s, state, span_s);
        state->remaining = rest > 0 ? rest : 0;
        state->executed_s += span_s;
        double busy_s = fmin(fmax(0, state->busy_s - s->view.now_s), span_s);
        double held_gpu_s = span_s * state->gpus * (state->partner == SC_NONE ? 1 : .5);
        state->attained_gpu_s += held_gpu_s;
        s->result.held_gpu_s[state->type] += held_gpu_s;
        s->result.joules += held_gpu_s * sc_cluster_watts(&s->cluster->types[state->type], state->clock);
        state->used_gpu_s += (span_s - busy_s) * state->gpus * state->efficiency;
    }
    s->view.now_s = to_s;
}

static void report_progress(simulation *s)
{
    size_t hundredth = s->workload->job_count / 100 + 1;
    if (s->options->progress != NULL && (s->done % hundredth == 0 || s->done == s->workload->job_count))
        s->options->progress(s->options->user, s->done, s->workload->job_count);
}

/* A job at the limit loses the work done and waits again, with twice the limit. */
static void cut_off(simulation *s, uint32_t job)
{
    sc_state *state = &s->states[job];
    sc_log_job(s->options->log, &s->view, SC_DECISION_CUT, job);
    state->phase = SC_WAITING;
    state->part_count = 0;
    state->cuts++;
    state->lost_gpu_s += state->limit_s * state->gpus;
    state->limit_s *= 2;
    state->remaining = s->workload->jobs[job].work;
    state->used_gpu_s = 0;
    s->arrived[s->view.arrived_count++] = job;
}

static void complete(simulation *s)
{
    size_t kept = 0;
    s->view.completed_count = s->view.arrived_count = 0;
    for (size_t i = 0; i < s->view.running_count; i++) {
        uint32_t job = s->running[i];
        if (s->states[job].due_s <= s->view.now_s)
            s->completed[s->view.completed_count++] = job;
        else if (s->states[job].cut_s <= s->view.now_s)
            cut_off(s, job);
        else
            s->running[kept++] = job;
    }
    s->view.running_count = kept;
    qsort(s->completed, s->view.completed_count, sizeof *s->completed, sc_by_number);
    qsort(s->arrived, s->view.arrived_count, sizeof *s->arrived, sc_by_number);
    for (size_t i = 0; i < s->view.completed_count; i++) {
        uint32_t job = s->completed[i];
        sc_log_job(s->options->log, &s->view, SC_DECISION_COMPLETE, job);
        s->states[job].phase = SC_DONE;
        s->states[job].part_count = 0;
        s->states[job].end_s = s->states[job].due_s;
        if (s->estimator->learn != NULL)
            s->estimator->learn(s->estimator->self, s->workload, job, s->durations_s[job], s->view.now_s);
        s->done++;
        report_progress(s);
    }
}

/* Adds new jobs behind those that were cut off. */
static void arrive(simulation *s)
{
    while (s->next_arrival < s->workload->job_count && s->workload->jobs[s->next_arrival].submit_s <= s->view.now_s) {
        uint32_t job = s->next_arrival++;
        s->estimate.factors[job] =
            s->estimator->factor(s->estimator->self, s->workload, job, s->estimate.durations_s[job]);
        if (s->options->limit_factor > 0)
            s->states[job].limit_s =
                s->options->limit_factor * sc_estimate_duration_s(&s->estimate, job) + s->options->limit_extra_s;
        s->states[job].phase = SC_WAITING;
        s->arrived[s->view.arrived_count++] = job;
        sc_log_job(s->options->log, &s->view, SC_DECISION_ARRIVE, job);
    }
}

/* ---- Decisions -------------------------------------------------------------------------------------------------- */

static void preempt(simulation *s, uint32_t job)
{
    sc_log_job(s->options->log, &s->view, SC_DECISION_PREEMPT, job);
    s->states[job].phase = SC_WAITING;
    s->states[job].part_count = 0;
    s->states[job].preemptions++;
}

/* Returns whether the job keeps its GPUs; the old nodes are in `parts`. */
static bool stays(const simulation *s, const sc_state *state, const sc_part *parts, const sc_grant *grant)
{
    if (state->phase != SC_RUNNING || state->type != grant->type || state->gpus != grant->gpus ||
        state->part_count != grant->part_count)
        return false;
    for (size_t i = 0; i < grant->part_count; i++) {
        const sc_part *was = &parts[state->first_part + i], *is = &s->parts[grant->first_part + i];
        if (was->node != is->node || was->gpus != is->gpus) return false;
    }
    return true;
}

static double slowdown_of(const simulation *s, const sc_grant *grant)
{
    const sc_job *job = &s->workload->jobs[grant->job];
    sc_level level = sc_level_of(s->cluster, &s->parts[grant->first_part], grant->part_count);
    double slowdown = level > SC_LEVEL_DOMAIN ? sc_workload_spread(s->workload, job, grant->type, grant->gpus) : 1;
    return level > SC_LEVEL_RACK ? slowdown * sc_workload_rack_spread(job) : slowdown;
}

/* Returns the job's table of speeds by placement, or NULL. Speeds of pairs do not depend on it. */
static const sc_scaling *scaling_of(const simulation *s, const sc_grant *grant)
{
    const sc_job *job = &s->workload->jobs[grant->job];
    return job->kind == SC_NONE || grant->partner != SC_NONE ? NULL : s->workload->kinds[job->kind].scaling;
}

/* GPUs in a domain are as fast as GPUs in a node. */
static double scaled_speed_of(const simulation *s, const sc_scaling *scaling, const sc_grant *grant)
{
    const sc_job *job = &s->workload->jobs[grant->job];
    const sc_part *parts = &s->parts[grant->first_part];
    sc_level level = sc_level_of(s->cluster, parts, grant->part_count);
    sc_placement placement = {.nodes = (int)grant->part_count, .gpus = grant->gpus};
    if (level <= SC_LEVEL_DOMAIN)
        placement.nodes = 1;
    else
        for (size_t i = 0; i < grant->part_count; i++) sc_placement_add(&placement, parts[i].gpus);
    double batch = grant->batch > 0 ? grant->batch : job->batch;
    double done = job->work - s->states[grant->job].remaining;
    double speed = sc_scaling_speed(scaling, grant->type, &placement, batch, done);
    assert(speed > 0);
    return level > SC_LEVEL_RACK ? speed / sc_workload_rack_spread(job) : speed;
}

/* Turns of the job's tasks on these GPUs; 0: the GPUs are a width of their own. */
static int turns_of(const simulation *s, const sc_grant *grant)
{
    int tasks = s->workload->jobs[grant->job].gpus;
    return s->policy->folds && grant->gpus < tasks ? (tasks + grant->gpus - 1) / grant->gpus : 0;
}

static double speed_of(const simulation *s, const sc_grant *grant)
{
    const sc_scaling *scaling = scaling_of(s, grant);
    if (scaling != NULL) return scaled_speed_of(s, scaling, grant);
    const sc_job *job = &s->workload->jobs[grant->job];
    int turns = turns_of(s, grant);
    double speed = turns > 0 ? sc_workload_speed(s->workload, job, grant->type, job->gpus) / turns
                   : grant->partner == SC_NONE
                       ? sc_workload_speed(s->workload, job, grant->type, grant->gpus)
                       : sc_workload_pair_speed(s->workload, job->kind, s->workload->jobs[grant->partner].kind,
                                                grant->type, grant->gpus);
    assert(speed > 0);
    return speed / slowdown_of(s, grant);
}

/* A step takes the longer one of the GPUs' time and the loader's, which falls with its CPUs. */
static double loader_slowdown_of(const simulation *s, const sc_grant *grant)
{
    double part = s->cluster->cpus * grant->gpus / s->cluster->gpus, cpus = grant->cpus > 0 ? grant->cpus : part;
    return cpus > 0 ? fmax(1, sc_loader_cpus(&s->workload->jobs[grant->job], grant->gpus) / cpus) : 1;
}

static void set_speed(const simulation *s, sc_state *state, const sc_grant *grant)
{
    const sc_job *job = &s->workload->jobs[grant->job];
    int width = turns_of(s, grant) > 0 ? job->gpus : grant->gpus;
    state->speed =
        speed_of(s, grant) / fmax(sc_workload_clock_slowdown(job, grant->clock), loader_slowdown_of(s, grant));
    state->clock = grant->clock;
    state->cpus = grant->cpus;
    state->efficiency = scaling_of(s, grant) != NULL ? 1
                                                     : state->speed * width / grant->gpus /
                                                           sc_workload_speed(s->workload, job, grant->type, width);
}

/* `before`: nodes of jobs that ran before. */
static void begin(simulation *s, const sc_part *before, const sc_grant *grant)
{
    sc_state *state = &s->states[grant->job];
    bool ran = state->phase == SC_RUNNING, is_first = state->start_s == INFINITY;
    bool is_same = stays(s, state, before, grant);
    double now_s = s->view.now_s, old_batch = state->batch, old_clock = state->clock;
    state->batch = grant->batch;
    state->first_part = grant->first_part;
    state->part_count = grant->part_count;
    if (!is_same) {
        state->phase = SC_RUNNING;
        state->type = grant->type;
        state->gpus = grant->gpus;
        set_speed(s, state, grant);
        state->busy_s = now_s + sc_restart_s(&s->options->restart, grant->gpus, is_first);
        if (!ran) state->cut_s = state->busy_s + state->limit_s * slowdown_of(s, grant);
        if (is_first) state->start_s = now_s;
        sc_log_job(s->options->log, &s->view,
                   ran        ? SC_DECISION_MOVE
                   : is_first ? SC_DECISION_START
                              : SC_DECISION_RESUME,
                   grant->job);
    }
    /* The efficiency of a batch changes as the job goes on. */
    bool has_new_speed = state->partner != grant->partner || state->clock != grant->clock ||
                         state->cpus != grant->cpus || scaling_of(s, grant) != NULL;
    if (is_same && has_new_speed) set_speed(s, state, grant);
    if (is_same && grant->batch != old_batch) sc_log_job(s->options->log, &s->view, SC_DECISION_BATCH, grant->job);
    if (is_same && grant->clock != old_clock) sc_log_job(s->options->log, &s->view, SC_DECISION_CLOCK, grant->job);
    state->partner = grant->partner;
    /* With whole steps, the rest may end later than it would outside of rounds. */
    if (!is_same || has_new_speed || s->policy->round_s > 0)
        state->due_s = fmax(now_s, state->busy_s) + state->remaining / state->speed;
}

static void carry_out(simulation *s)
{
    uint32_t decision = (uint32_t)s->result.decisions;
    for (size_t i = 0; i < s->plan.rejected_count; i++) {
        uint32_t job = s->plan.rejected[i];
        s->states[job].phase = SC_REJECTED;
        sc_log_job(s->options->log, &s->view, SC_DECISION_REJECT, job);
        s->done++;
        report_progress(s);
    }
    for (size_t i = 0; i < s->plan.grant_count; i++) s->granted[s->plan.grants[i].job] = decision;
    for (size_t i = 0; i < s->view.running_count; i++)
        if (s->granted[s->running[i]] != decision) preempt(s, s->running[i]);
    sc_part *before = s->parts;
    s->view.parts = s->parts = s->plan.parts;
    s->plan.parts = before;
    for (size_t i = 0; i < s->plan.grant_count; i++) {
        begin(s, before, &s->plan.grants[i]);
        s->running[i] = s->plan.grants[i].job;
    }
    s->view.running_count = s->plan.grant_count;
    if (s->plan.note != NULL) {
        s->result.notes++;
        sc_log_note(s->options->log, s->view.now_s, s->plan.note);
    }
}

static double clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mdot_status decide(simulation *s, void *self)
{
    sc_plan_begin(&s->plan, s->cluster);
    double begun_s = clock_s();
    mdot_status status = s->policy->decide(self, &s->view, &s->plan);
    s->result.decision_s += clock_s() - begun_s;
    s->result.decisions++;
    if (status != MDOT_OK) return status;
    sc_plan_finish(&s->plan, &s->view);
    carry_out(s);
    return MDOT_OK;
}

/* ---- The clock -------------------------------------------------------------------------------------------------- */

/* Returns the end of a job's activity in this round: completion, or the end of the last whole step. */
static double end_in_round_s(const simulation *s, const sc_state *state)
{
    double round_end_s = s->view.now_s + s->policy->round_s;
    if (state->due_s <= round_end_s) return state->due_s;
    return fmin(round_end_s, fmax(s->view.now_s, state->busy_s) + work_in(s, state, s->policy->round_s) / state->speed);
}

/* Returns the time of the next event; INFINITY: there is none. */
static double next_event_s(const simulation *s)
{
    double arrival_s =
        s->next_arrival < s->workload->job_count ? s->workload->jobs[s->next_arrival].submit_s : INFINITY;
    double next_s = fmin(arrival_s, s->plan.wake_s), round_end_s = 0;
    for (size_t i = 0; i < s->view.running_count; i++) {
        const sc_state *state = &s->states[s->running[i]];
        if (state->due_s < next_s) next_s = state->due_s;
        if (state->cut_s < next_s) next_s = state->cut_s;
        if (s->policy->round_s > 0) round_end_s = fmax(round_end_s, end_in_round_s(s, state));
    }
    return s->policy->round_s > 0 && s->view.running_count > 0 ? round_end_s : next_s;
}

/* Decisions in a row after which no job runs: at one in 60 s these are two months. */
enum { MOST_IDLE_DECISIONS = 100000 };

static mdot_status run(simulation *s, void *self, mdot_error *err)
{
    for (int idle = 0; s->done < s->workload->job_count;) {
        double next_s = next_event_s(s);
        bool waits = s->view.running_count == 0 && s->view.arrived_count == 0 && s->view.completed_count == 0;
        idle = waits && s->next_arrival == s->workload->job_count ? idle + 1 : 0;
        if (next_s == INFINITY || idle > MOST_IDLE_DECISIONS)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "policy %s never starts %zu of the jobs, for example %s",
                             s->policy->name, s->workload->job_count - s->done,
                             s->workload->jobs[s->next_arrival > 0 ? s->next_arrival - 1 : 0].id);
        advance(s, next_s);
        complete(s);
        arrive(s);
        mdot_status status = decide(s, self);
        if (status != MDOT_OK) return status;
    }
    return MDOT_OK;
}

/* ---- Begin and end ---------------------------------------------------------------------------------------------- */

/* A job with more decisions, for example of 1e12 s, would keep the simulation going for years. At one in 60 s these are
 * two years of one job. */
enum { MOST_DECISIONS = 1000000 };

static mdot_status check(const sc_workload *workload, const sc_cluster *cluster, const sc_policy *policy,
                         const sc_run_options *options, mdot_error *err)
{
    if (options->limit_factor > 0 && (policy->round_s > 0 || policy->plans_slots))
        return mdot_fail(
            err, MDOT_INVALID_ARGUMENT,
            "policy %s decides in rounds or slots, which do not know time limits; use one that decides at events, "
            "for example easy",
            policy->name);
    if (cluster->type_count > 1 && policy->one_type)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "policy %s supports one GPU type, but the cluster has %u",
                         policy->name, cluster->type_count);
    for (size_t i = 0; i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        if (policy->needs_kinds && job->kind == SC_NONE)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "policy %s requires throughputs: job %s has no job_type",
                             policy->name, job->id);
        bool runs = false;
        for (unsigned type = 0; type < cluster->type_count; type++)
            runs |= job->gpus <= cluster->types[type].gpus && sc_workload_speed(workload, job, type, job->gpus) > 0;
        if (!runs)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                             "job %s of %d GPUs has no throughput on any GPU type of the cluster", job->id, job->gpus);
        double duration_s = sc_workload_duration_s(workload, job, cluster->type_count);
        double period_s = policy->round_s > 0 ? policy->round_s : policy->period_s;
        if (period_s > 0 && duration_s > MOST_DECISIONS * period_s)
            return mdot_fail(
                err, MDOT_OUT_OF_RANGE,
                "job %s takes %.3g s, in which policy %s decides more than %d times; shorten it or use a policy that "
                "decides at events, for example srsf",
                job->id, duration_s, policy->name, MOST_DECISIONS);
    }
    return MDOT_OK;
}

static mdot_status prepare(simulation *s, mdot_error *err)
{
    size_t jobs = s->workload->job_count + 1, gpus = (size_t)s->cluster->gpus + 1;
    s->states = calloc(jobs, sizeof *s->states);
    s->estimate.factors = calloc(jobs, sizeof *s->estimate.factors);
    s->estimate.durations_s = calloc(jobs, sizeof *s->estimate.durations_s);
    s->durations_s = calloc(jobs, sizeof *s->durations_s);
    s->granted = calloc(jobs, sizeof *s->granted);
    s->arrived = calloc(jobs, sizeof *s->arrived);
    s->running = calloc(2 * gpus, sizeof *s->running);
    s->completed = calloc(2 * gpus, sizeof *s->completed);
    s->parts = calloc(gpus, sizeof *s->parts);
    if (s->states == NULL || s->estimate.factors == NULL || s->estimate.durations_s == NULL || s->durations_s == NULL ||
        s->granted == NULL || s->arrived == NULL || s->running == NULL || s->completed == NULL || s->parts == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = sc_plan_create(s->workload, s->cluster, &s->plan, err);
    if (status != MDOT_OK) return status;
    for (size_t i = 0; i < s->workload->job_count; i++) {
        const sc_job *job = &s->workload->jobs[i];
        s->states[i] = (sc_state){
            .remaining = job->work, .start_s = INFINITY, .end_s = INFINITY, .limit_s = INFINITY, .cut_s = INFINITY};
        s->durations_s[i] = sc_workload_duration_s(s->workload, job, s->cluster->type_count);
        s->estimate.durations_s[i] = sc_estimate_base_duration_s(s->workload, job, s->cluster->type_count);
    }
    s->estimate.workload = s->workload;
    s->estimate.estimator = s->estimator;
    s->estimate.errors = s->options->errors;
    s->view = (sc_view){.workload = s->workload,
                        .cluster = s->cluster,
                        .estimate = &s->estimate,
                        .restart = &s->options->restart,
                        .accounts = s->options->accounts,
                        .learned = s->options->learned,
                        .policy = s->policy,
                        .err = err,
                        .states = s->states,
                        .arrived = s->arrived,
                        .completed = s->completed,
                        .running = s->running,
                        .parts = s->parts};
    return MDOT_OK;
}

static void release(simulation *s)
{
    free(s->estimate.factors);
    free(s->estimate.durations_s);
    free(s->durations_s);
    free(s->granted);
    free(s->arrived);
    free(s->running);
    free(s->completed);
    free(s->parts);
    sc_plan_free(&s->plan);
}

mdot_status sc_simulate(const sc_workload *workload, const sc_cluster *cluster, const sc_policy *policy,
                        const sc_estimator *estimator, const sc_run_options *options, sc_result *out_result,
                        mdot_error *err)
{
    simulation s = {
        .workload = workload, .cluster = cluster, .policy = policy, .estimator = estimator, .options = options};
    void *self = NULL;
    mdot_status status = check(workload, cluster, policy, options, err);
    if (status == MDOT_OK) status = prepare(&s, err);
    if (status == MDOT_OK && policy->create != NULL) status = policy->create(&s.view, &self, err);
    if (status == MDOT_OK) {
        sc_log_begin(options->log);
        status = run(&s, self, err);
    }
    if (self != NULL && policy->destroy != NULL) policy->destroy(self);
    if (policy->destroy == NULL) free(self);
    release(&s);
    s.result.states = s.states;
    s.result.job_count = workload->job_count;
    if (status == MDOT_OK)
        *out_result = s.result;
    else
        sc_result_free(&s.result);
    return status;
}

void sc_result_free(sc_result *result)
{
    free(result->states);
    *result = (sc_result){0};
}
