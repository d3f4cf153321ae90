/* simulator.c — the discrete-event loop. */
#include "simulator/core/simulator.h"
#include "base/status.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A policy for one GPU type (sc_policy.one_type) on a cluster with several has a simulation for each type, as a batch
 * scheduler has a partition. They share the jobs: an arriving job goes to the type where it is estimated to end first.
 * Otherwise there is one simulation. */
typedef struct shared {
    sc_state *states;
    double *durations_s;           /* each job's true duration on a node of the fastest type */
    double *factors, *estimated_s; /* as in sc_estimate */
    uint32_t *granted;             /* the decision that last granted GPUs to each job, counted from 1 */
    uint32_t next_arrival;
    size_t done, count;
    struct simulation *simulations[SC_MAX_TYPES];
} shared;

typedef struct simulation {
    shared *shared;
    sc_workload own_workload; /* type 0 is the only one of this simulation */
    sc_cluster own_cluster;   /* without nodes of other types */
    const sc_workload *workload;
    const sc_cluster *cluster;
    const sc_policy *policy;
    const sc_estimator *estimator;
    const sc_run_options *options;
    sc_estimate estimate;
    sc_view view; /* changing parts are in the arrays below */
    sc_plan plan;
    sc_state *states;
    sc_node *nodes;
    uint32_t *running, *arrived, *completed;
    sc_part *parts;      /* nodes of running jobs; swapped with the plan's at every decision */
    double queued_gpu_s; /* estimated, of the jobs that came here and are incomplete */
    double next_s;       /* time of the next event besides arrivals */
    bool is_due;         /* something happens now */
    void *self;          /* of the policy */
    sc_result result;
} simulation;

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
    if (s->options->progress != NULL && (s->shared->done % hundredth == 0 || s->shared->done == s->workload->job_count))
        s->options->progress(s->options->user, s->shared->done, s->workload->job_count);
}

static void leave(simulation *s, uint32_t job)
{
    s->queued_gpu_s -= s->workload->jobs[job].gpus * sc_estimate_duration_s(&s->estimate, job);
    s->shared->done++;
    report_progress(s);
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
            s->estimator->learn(s->estimator->self, s->workload, job, s->shared->durations_s[job], s->view.now_s);
        leave(s, job);
    }
}

/* Time passes in a simulation in which something happens. */
static void wake(simulation *s, double now_s)
{
    advance(s, now_s);
    complete(s);
    s->is_due = true;
}

/* Returns the simulation of the type where a job is estimated to end first: behind the work of its queue. */
static simulation *choose_type(const shared *all, uint32_t job)
{
    simulation *best = all->simulations[0];
    double best_s = INFINITY;
    for (size_t i = 0; i < all->count && all->count > 1; i++) {
        simulation *s = all->simulations[i];
        const sc_job *j = &s->workload->jobs[job];
        double duration_s = sc_estimate_base_duration_s(s->workload, j, 1);
        double end_s = s->queued_gpu_s / s->cluster->gpus + all->factors[job] * duration_s;
        if (j->gpus > s->cluster->gpus || end_s >= best_s) continue;
        best_s = end_s;
        best = s;
        all->estimated_s[job] = duration_s;
    }
    return best;
}

/* Adds new jobs behind those that were cut off. */
static void arrive(shared *all, double now_s)
{
    const sc_workload *w = all->simulations[0]->workload;
    const sc_estimator *estimator = all->simulations[0]->estimator;
    for (; all->next_arrival < w->job_count && w->jobs[all->next_arrival].submit_s <= now_s; all->next_arrival++) {
        uint32_t job = all->next_arrival;
        all->factors[job] = estimator->factor(estimator->self, w, job, all->estimated_s[job]);
        simulation *s = choose_type(all, job);
        if (!s->is_due) wake(s, now_s);
        double duration_s = sc_estimate_duration_s(&s->estimate, job);
        s->queued_gpu_s += w->jobs[job].gpus * duration_s;
        if (s->options->limit_factor > 0)
            s->states[job].limit_s = s->options->limit_factor * duration_s + s->options->limit_extra_s;
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
    double speed = sc_scaling_speed(scaling, grant->type + s->workload->first_type, &placement, batch, done);
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
        leave(s, job);
    }
    for (size_t i = 0; i < s->plan.grant_count; i++) s->shared->granted[s->plan.grants[i].job] = decision;
    for (size_t i = 0; i < s->view.running_count; i++)
        if (s->shared->granted[s->running[i]] != decision) preempt(s, s->running[i]);
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

static mdot_status decide(simulation *s)
{
    sc_plan_begin(&s->plan, s->cluster);
    double begun_s = clock_s();
    mdot_status status = s->policy->decide(s->self, &s->view, &s->plan);
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

/* Returns the time of the next event besides arrivals; INFINITY: there is none. */
static double next_event_s(const simulation *s)
{
    double next_s = s->plan.wake_s, round_end_s = 0;
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

static mdot_status run(shared *all, mdot_error *err)
{
    const simulation *first = all->simulations[0];
    const sc_workload *w = first->workload;
    bool is_idle = false;
    sc_log_begin(first->options->log);
    for (int idle = 0; all->done < w->job_count;) {
        bool in_round = first->policy->round_s > 0 && first->view.running_count > 0;
        double next_s = all->next_arrival < w->job_count && !in_round ? w->jobs[all->next_arrival].submit_s : INFINITY;
        for (size_t i = 0; i < all->count; i++) {
            all->simulations[i]->is_due = false;
            all->simulations[i]->next_s = next_event_s(all->simulations[i]);
            next_s = fmin(next_s, all->simulations[i]->next_s);
        }
        idle = is_idle && all->next_arrival == w->job_count ? idle + 1 : 0;
        if (next_s == INFINITY || idle > MOST_IDLE_DECISIONS)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "policy %s never starts %zu of the jobs, for example %s",
                             first->policy->name, w->job_count - all->done,
                             w->jobs[all->next_arrival > 0 ? all->next_arrival - 1 : 0].id);
        for (size_t i = 0; i < all->count; i++)
            if (all->simulations[i]->next_s <= next_s) wake(all->simulations[i], next_s);
        arrive(all, next_s);
        is_idle = true;
        for (size_t i = 0; i < all->count; i++) {
            simulation *s = all->simulations[i];
            if (s->is_due) BS_TRY(decide(s));
            is_idle &= s->view.running_count == 0;
            is_idle &= !s->is_due || (s->view.arrived_count == 0 && s->view.completed_count == 0);
        }
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
    if (cluster->type_count > 1 && policy->one_type && options->accounts != NULL)
        return mdot_fail(
            err, MDOT_INVALID_ARGUMENT,
            "policy %s schedules each of the %u GPU types apart, but quotas and shares hold for all types; "
            "leave out --accounts and --priority, or use one type",
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
        if (policy->round_s > 0 && sc_restart_s(&options->restart, job->gpus, false) >= policy->round_s)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                             "policy %s decides in rounds of %g s, in which job %s does no work, because its restart "
                             "takes %g s; use a policy that decides at events, for example srsf",
                             policy->name, policy->round_s, job->id, sc_restart_s(&options->restart, job->gpus, false));
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

/* Leaves one type in a simulation's cluster and workload. */
static void keep_type(simulation *s, unsigned type)
{
    sc_cluster *c = &s->own_cluster;
    size_t kept = 0;
    for (size_t i = 0; i < c->node_count; i++) {
        if (c->nodes[i].type != type) continue;
        s->nodes[kept] = c->nodes[i];
        s->nodes[kept++].type = 0;
    }
    c->types[0] = c->types[type];
    c->type_count = 1;
    c->gpus = c->types[0].gpus;
    c->nodes = s->nodes;
    c->node_count = kept;
    s->own_workload.first_type = type;
}

/* Adds a simulation of one type, or of all types. */
static mdot_status add(shared *all, const simulation *template, bool splits, mdot_error *err)
{
    const sc_cluster *cluster = template->cluster;
    size_t jobs = template->workload->job_count + 1, gpus = (size_t)cluster->gpus + 1;
    const sc_array arrays[] = {SC_ARRAY(simulation, arrived, jobs), SC_ARRAY(simulation, running, 2 * gpus),
                               SC_ARRAY(simulation, completed, 2 * gpus),
                               SC_ARRAY(simulation, nodes, cluster->node_count)};
    void *memory = NULL;
    BS_TRY(SC_STATE(simulation, arrays, &memory, err));
    simulation *s = all->simulations[all->count] = memory;
    s->own_workload = *template->workload;
    s->own_cluster = *cluster;
    if (splits) keep_type(s, (unsigned)all->count);
    s->shared = all;
    s->workload = &s->own_workload;
    s->cluster = &s->own_cluster;
    s->policy = template->policy;
    s->estimator = template->estimator;
    s->options = template->options;
    s->states = all->states;
    s->estimate = (sc_estimate){.workload = s->workload,
                                .estimator = s->estimator,
                                .errors = s->options->errors,
                                .factors = all->factors,
                                .durations_s = all->estimated_s};
    all->count++;
    s->parts = calloc(gpus, sizeof *s->parts);
    if (s->parts == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
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
    BS_TRY(sc_plan_create(s->workload, s->cluster, &s->plan, err));
    return s->policy->create != NULL ? s->policy->create(&s->view, &s->self, err) : MDOT_OK;
}

/* Adds a simulation's result to that of all, and frees it. */
static void finish(simulation *s, sc_result *result)
{
    for (unsigned type = 0; type < s->cluster->type_count; type++)
        result->held_gpu_s[s->own_workload.first_type + type] = s->result.held_gpu_s[type];
    result->joules += s->result.joules;
    result->decisions += s->result.decisions;
    result->notes += s->result.notes;
    result->decision_s += s->result.decision_s;
    if (s->self != NULL) (s->policy->destroy != NULL ? s->policy->destroy : free)(s->self);
    free(s->parts);
    sc_plan_free(&s->plan);
    free(s);
}

mdot_status sc_simulate(const sc_workload *workload, const sc_cluster *cluster, const sc_policy *policy,
                        const sc_estimator *estimator, const sc_run_options *options, sc_result *out_result,
                        mdot_error *err)
{
    BS_TRY(check(workload, cluster, policy, options, err));
    const simulation template = {
        .workload = workload, .cluster = cluster, .policy = policy, .estimator = estimator, .options = options};
    size_t jobs = workload->job_count + 1;
    bool splits = cluster->type_count > 1 && policy->one_type;
    const sc_array arrays[] = {SC_ARRAY(shared, durations_s, jobs), SC_ARRAY(shared, factors, jobs),
                               SC_ARRAY(shared, estimated_s, jobs), SC_ARRAY(shared, granted, jobs)};
    sc_result result = {.states = calloc(jobs, sizeof *result.states), .job_count = workload->job_count};
    void *memory = NULL;
    mdot_status status =
        result.states == NULL ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : SC_STATE(shared, arrays, &memory, err);
    shared *all = memory;
    for (size_t i = 0; status == MDOT_OK && i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        result.states[i] = (sc_state){
            .remaining = job->work, .start_s = INFINITY, .end_s = INFINITY, .limit_s = INFINITY, .cut_s = INFINITY};
        all->durations_s[i] = sc_workload_duration_s(workload, job, cluster->type_count);
        all->estimated_s[i] = sc_estimate_base_duration_s(workload, job, cluster->type_count);
    }
    if (status == MDOT_OK) all->states = result.states;
    for (unsigned type = 0; status == MDOT_OK && type < (splits ? cluster->type_count : 1); type++)
        status = add(all, &template, splits, err);
    if (status == MDOT_OK) status = run(all, err);
    for (size_t i = 0; all != NULL && i < all->count; i++) finish(all->simulations[i], &result);
    free(all);
    if (status == MDOT_OK)
        *out_result = result;
    else
        sc_result_free(&result);
    return status;
}

void sc_result_free(sc_result *result)
{
    free(result->states);
    *result = (sc_result){0};
}
