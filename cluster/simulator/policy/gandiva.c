/* gandiva.c — Gandiva (Xiao et al., OSDI 2018): jobs take turns on GPUs, share them, move between nodes, and grow where
 * GPUs are idle.
 *
 * Time slicing: while jobs wait, jobs that have waited longest begin a turn at the end of each slice (sc_lease_s) on
 * the GPUs of those whose turn has lasted longest. Packing, with --pairs: a job that finds no GPUs shares those of the
 * job beside which both keep most of their speeds, if that is more than one job's. Growing: GPUs that no job waits for
 * go to jobs with bounds (min_gpus, max_gpus), until others need them. Placement and migration: a job that is slower
 * when it is spread gets one node if one has enough free GPUs, the fullest of those; other jobs get fragments, so that
 * whole nodes stay free. A spread job migrates to one node if the predicted saving exceeds the cost of a restart; the
 * job that saves the most GPU time comes first. Services (column online) neither take turns nor share GPUs, because
 * nothing bounds their latency. Left out: profiling, which predictions replace; undoing a pair that
 * turns out slow, because pair speeds are known. */
#include "simulator/policy/adaptive.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/policy/rounds.h"

#include <math.h>
#include <stdlib.h>

typedef struct turn {
    uint32_t job, guest; /* guest: the job that shares its GPUs, or SC_NONE */
    int gpus;
    double since_s; /* it waits, or its turn lasts, since then */
    bool runs, is_granted, is_guest;
} turn;

typedef struct move { /* move of a running job */
    const turn *turn;
    double saved_gpu_s; /* 0: it stays */
    uint32_t node;      /* target node; SC_NONE: it stays */
} move;

typedef struct gandiva {
    uint32_t *active;
    double *since_s; /* time since which each job has waited or had its turn */
    turn *turns;
    size_t count;
    move *moves;    /* capacity: maximum running jobs */
    int *node_free; /* free GPUs of each node while moves are chosen */
    double slice_end_s;
} gandiva;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1, gpus = (size_t)view->cluster->gpus;
    const sc_array arrays[] = {SC_ARRAY(gandiva, active, jobs), SC_ARRAY(gandiva, since_s, jobs),
                               SC_ARRAY(gandiva, turns, jobs), SC_ARRAY(gandiva, moves, gpus),
                               SC_ARRAY(gandiva, node_free, view->cluster->node_count)};
    return SC_STATE(gandiva, arrays, out_self, err);
}

/* ---- Turns ------------------------------------------------------------------------------------------------------- */

/* Within a slice, running jobs come first; at its end, waiting ones. Among waiting jobs the longest wait comes first,
 * among running ones the latest turn. */
static int by_turn(const void *left, const void *right)
{
    const turn *a = left, *b = right;
    if (a->runs != b->runs) return a->runs ? 1 : -1;
    if (a->since_s != b->since_s) return (a->since_s < b->since_s) == a->runs ? 1 : -1;
    return (a->job > b->job) - (a->job < b->job);
}

static void list_turns(gandiva *self, const sc_view *view)
{
    self->count = sc_active_update(view, self->active, self->count);
    for (size_t i = 0; i < view->arrived_count; i++) self->since_s[view->arrived[i]] = view->now_s;
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i];
        self->turns[i] = (turn){.job = job,
                                .guest = SC_NONE,
                                .gpus = view->workload->jobs[job].gpus,
                                .since_s = self->since_s[job],
                                .runs = sc_view_is_running(view, job)};
    }
    qsort(self->turns, self->count, sizeof *self->turns, by_turn);
}

static turn *find_turn(gandiva *self, uint32_t job)
{
    turn *t = self->turns;
    while (t->job != job) t++;
    return t;
}

/* Keeps pairs of running jobs together, as one turn. */
static void keep_pairs(gandiva *self, const sc_view *view)
{
    for (size_t i = 0; i < self->count; i++) {
        turn *t = &self->turns[i];
        uint32_t partner = view->states[t->job].partner;
        if (!t->runs || t->is_guest || partner == SC_NONE || !sc_view_is_running(view, partner)) continue;
        t->guest = partner;
        find_turn(self, partner)->is_guest = true;
    }
}

/* Chooses the jobs that run. Returns the GPUs that are left. */
static int choose(gandiva *self, const sc_view *view, bool is_slice_end)
{
    int left = view->cluster->gpus;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < self->count; i++) {
            turn *t = &self->turns[i];
            bool is_first = t->runs != is_slice_end || view->workload->jobs[t->job].is_online;
            if (t->is_granted || t->is_guest || is_first != (pass == 0) || t->gpus > left) continue;
            t->is_granted = true;
            left -= t->gpus;
        }
    for (size_t i = 0; i < self->count; i++) {
        turn *t = &self->turns[i];
        if (t->is_granted || t->guest == SC_NONE) continue;
        find_turn(self, t->guest)->is_guest = false; /* both wait */
        t->guest = SC_NONE;
    }
    return left;
}

/* Lets jobs without GPUs share those of others. Returns how many still wait. */
static size_t pack(gandiva *self, const sc_view *view)
{
    size_t waiting = 0;
    for (size_t i = 0; i < self->count; i++) {
        turn *t = &self->turns[i], *best = NULL;
        double most = 1;
        if (t->is_granted || t->is_guest) continue;
        for (size_t k = 0; k < self->count && view->workload->pair_speeds != NULL; k++) {
            turn *host = &self->turns[k];
            bool serves = view->workload->jobs[t->job].is_online || view->workload->jobs[host->job].is_online;
            if (!host->is_granted || host->guest != SC_NONE || serves) continue;
            double kept = sc_couples_kept(view, t->job, host->job, 0),
                   left = sc_couples_kept(view, host->job, t->job, 0);
            if (kept == 0 || left == 0 || kept + left <= most) continue;
            most = kept + left;
            best = host;
        }
        if (best != NULL) best->guest = t->job;
        t->is_guest = best != NULL;
        waiting += best == NULL;
    }
    return waiting;
}

/* Gives GPUs that no job waits for to jobs with bounds: first the widths that they have, and then wider ones that save
 * more than a restart. */
static void grow(gandiva *self, const sc_view *view, int left)
{
    for (bool grows = true, keeps = true; grows; keeps = false) {
        grows = keeps;
        for (size_t i = 0; i < self->count; i++) {
            turn *t = &self->turns[i];
            const sc_state *state = &view->states[t->job];
            if (!t->is_granted || t->guest != SC_NONE || view->workload->jobs[t->job].least_gpus == 0) continue;
            int wider =
                keeps ? (t->runs ? state->gpus : 0) : sc_goodput_next_width(view, t->job, 0, t->gpus, t->gpus + left);
            if (wider <= t->gpus || wider - t->gpus > left) continue;
            double saved_s = sc_goodput_left_s(view, t->job, 0, t->gpus) - sc_goodput_left_s(view, t->job, 0, wider);
            if (!keeps && t->runs && saved_s <= sc_restart_s(view->restart, wider, false)) continue;
            left -= wider - t->gpus;
            t->gpus = wider;
            grows = true;
        }
    }
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------- */

static bool stays(const sc_view *view, const turn *t)
{
    return t->is_granted && t->runs && view->states[t->job].gpus == t->gpus;
}

/* Returns the predicted saving on one node, less the cost of a restart. */
static double saved_gpu_s(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    if (state->part_count < 2) return 0;
    double alone_s = sc_view_left_s(view, job);
    double spread = sc_estimate_spread(view->estimate, job, state->type, state->gpus);
    double saved_s = alone_s * (spread - 1) - sc_restart_s(view->restart, state->gpus, false);
    return fmax(0, state->gpus * saved_s);
}

static int by_saving(const void *left, const void *right)
{
    const move *a = left, *b = right;
    if (a->saved_gpu_s != b->saved_gpu_s) return a->saved_gpu_s < b->saved_gpu_s ? 1 : -1;
    return (a->turn->job > b->turn->job) - (a->turn->job < b->turn->job);
}

static void count_free(gandiva *self, const sc_view *view, uint32_t job, int sign)
{
    const sc_state *state = &view->states[job];
    const sc_part *parts = &view->parts[state->first_part];
    for (size_t i = 0; i < state->part_count; i++) self->node_free[parts[i].node] += sign * parts[i].gpus;
}

/* Chooses moves among the jobs that stay. Returns their number. */
static size_t choose_moves(gandiva *self, const sc_view *view)
{
    size_t nodes = view->cluster->node_count, count = 0;
    for (size_t node = 0; node < nodes; node++) self->node_free[node] = view->cluster->nodes[node].gpus;
    for (size_t i = 0; i < self->count; i++) {
        turn *t = &self->turns[i];
        if (!stays(view, t)) continue;
        self->moves[count++] = (move){.turn = t, .saved_gpu_s = saved_gpu_s(view, t->job), .node = SC_NONE};
        count_free(self, view, t->job, -1);
    }
    qsort(self->moves, count, sizeof *self->moves, by_saving);
    for (size_t i = 0; i < count && self->moves[i].saved_gpu_s > 0; i++) {
        move *m = &self->moves[i];
        count_free(self, view, m->turn->job, 1); /* including the GPUs that it leaves */
        m->node = sc_place_find_node(self->node_free, nodes, m->turn->gpus);
        if (m->node == SC_NONE)
            count_free(self, view, m->turn->job, -1);
        else
            self->node_free[m->node] -= m->turn->gpus;
    }
    return count;
}

static void share(sc_plan *plan, const turn *t)
{
    if (t->guest != SC_NONE) sc_plan_share(plan, t->guest);
}

static void place(gandiva *self, const sc_view *view, sc_plan *plan)
{
    size_t count = choose_moves(self, view);
    for (size_t i = 0; i < count; i++) {
        if (self->moves[i].node != SC_NONE) continue;
        sc_place_as_it_is(view, plan, self->moves[i].turn->job);
        share(plan, self->moves[i].turn);
    }
    for (size_t i = 0; i < count; i++) {
        const move *m = &self->moves[i];
        if (m->node == SC_NONE) continue;
        sc_plan_run(plan, m->turn->job, 0, m->turn->gpus);
        sc_plan_take(plan, m->node, m->turn->gpus);
        share(plan, m->turn);
    }
    for (size_t i = 0; i < self->count; i++) {
        const turn *t = &self->turns[i];
        if (!t->is_granted || stays(view, t)) continue;
        bool suffers = sc_estimate_spread(view->estimate, t->job, 0, t->gpus) > 1;
        if (!suffers || !sc_place_on_one(view, plan, plan->node_free, t->job, t->gpus))
            sc_place_on_several(view, plan, plan->node_free, t->job, t->gpus);
        share(plan, t);
    }
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    gandiva *self = memory;
    bool is_slice_end = view->now_s >= self->slice_end_s;
    if (is_slice_end) self->slice_end_s = view->now_s + sc_lease_s(view);
    list_turns(self, view);
    keep_pairs(self, view);
    int left = choose(self, view, is_slice_end);
    bool waits = pack(self, view) > 0;
    if (!waits) grow(self, view, left);
    place(self, view, plan);
    for (size_t i = 0; i < self->count; i++) {
        const turn *t = &self->turns[i];
        if (t->runs != (t->is_granted || t->is_guest)) self->since_s[t->job] = view->now_s;
    }
    if (waits) plan->wake_s = self->slice_end_s;
    return MDOT_OK;
}

const sc_policy sc_policy_gandiva = {
    .name = "gandiva",
    .summary = "turns of time, pairs by --pairs, moves to better nodes, growth on idle GPUs (Gandiva)",
    .one_type = true,
    .period_s = 60,
    .create = create,
    .decide = decide,
};
