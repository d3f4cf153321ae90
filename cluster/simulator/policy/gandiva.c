/* gandiva.c — Gandiva (Xiao et al., OSDI 2018), reduced to placement: first come, first served, on the nodes where
 * the predicted communication of a job costs least. Jobs are moved when a better place becomes free.
 *
 * Implemented: jobs differ in the cost of being spread over nodes. A job that is slower when it is spread gets one
 * node if one has enough free GPUs, the fullest of those. Other jobs get fragments, so that whole nodes stay free. A
 * job starts even if a better place is taken. A spread job migrates to one node as soon as one is free, if the
 * predicted saving exceeds the cost of a restart; the job that saves the most GPU time comes first. Left out: time
 * slicing of more jobs than there are GPUs, so that some jobs wait here; packing of several jobs on a GPU; growing
 * and shrinking, because they concern interference on shared GPUs and elastic training; profiling, which predictions
 * replace.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

typedef struct move { /* move of a running job */
    uint32_t job;
    double saved_gpu_s; /* 0: it stays */
    uint32_t node;      /* target node; SC_NONE: it stays */
} move;

typedef struct gandiva {
    sc_order *order; /* waiting jobs */
    move *moves;     /* capacity: maximum running jobs */
    int *node_free;  /* free GPUs of each node while moves are chosen */
} gandiva;

static void destroy(void *memory)
{
    gandiva *self = memory;
    if (self == NULL) return;
    sc_order_destroy(self->order);
    free(self->moves);
    free(self->node_free);
    free(self);
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    gandiva *self = calloc(1, sizeof *self);
    if (self != NULL) {
        self->moves = calloc((size_t)view->cluster->gpus, sizeof *self->moves);
        self->node_free = calloc(view->cluster->node_count, sizeof *self->node_free);
    }
    mdot_status status = MDOT_OK;
    if (self == NULL || self->moves == NULL || self->node_free == NULL)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = sc_order_create(view->workload, &self->order, err);
    if (status == MDOT_OK)
        *out_self = self;
    else
        destroy(self);
    return status;
}

/* Returns the predicted saving on one node, less the cost of a restart. */
static double saved_gpu_s(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    if (state->part_count < 2) return 0;
    double alone_s = sc_estimate_remaining_s(view->estimate, job, state->remaining, state->executed_s);
    double spread = sc_estimate_spread(view->estimate, job, state->type, state->gpus);
    double saved_s = alone_s * (spread - 1) - sc_restart_s(view->restart, state->gpus, false);
    return fmax(0, state->gpus * saved_s);
}

static int by_saving(const void *left, const void *right)
{
    const move *a = left, *b = right;
    if (a->saved_gpu_s != b->saved_gpu_s) return a->saved_gpu_s < b->saved_gpu_s ? 1 : -1;
    return (a->job > b->job) - (a->job < b->job);
}

static void count_free(gandiva *self, const sc_view *view, uint32_t job, int sign)
{
    const sc_state *state = &view->states[job];
    const sc_part *parts = &view->parts[state->first_part];
    for (size_t i = 0; i < state->part_count; i++) self->node_free[parts[i].node] += sign * parts[i].gpus;
}

static void choose_moves(gandiva *self, const sc_view *view)
{
    size_t nodes = view->cluster->node_count;
    for (size_t node = 0; node < nodes; node++) self->node_free[node] = view->cluster->nodes[node].gpus;
    for (size_t i = 0; i < view->running_count; i++) {
        uint32_t job = view->running[i];
        self->moves[i] = (move){.job = job, .saved_gpu_s = saved_gpu_s(view, job), .node = SC_NONE};
        count_free(self, view, job, -1);
    }
    qsort(self->moves, view->running_count, sizeof *self->moves, by_saving);
    for (size_t i = 0; i < view->running_count && self->moves[i].saved_gpu_s > 0; i++) {
        move *m = &self->moves[i];
        count_free(self, view, m->job, 1); /* including the GPUs that it leaves */
        m->node = sc_place_find_node(self->node_free, nodes, view->states[m->job].gpus);
        if (m->node == SC_NONE)
            count_free(self, view, m->job, -1);
        else
            self->node_free[m->node] -= view->states[m->job].gpus;
    }
}

static void keep_running(gandiva *self, const sc_view *view, sc_plan *plan)
{
    choose_moves(self, view);
    for (size_t i = 0; i < view->running_count; i++)
        if (self->moves[i].node == SC_NONE) sc_place_as_it_is(view, plan, self->moves[i].job);
    for (size_t i = 0; i < view->running_count; i++) {
        const move *m = &self->moves[i];
        if (m->node == SC_NONE) continue;
        sc_plan_run(plan, m->job, 0, view->states[m->job].gpus);
        sc_plan_take(plan, m->node, view->states[m->job].gpus);
    }
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan, mdot_error *err)
{
    (void)err;
    gandiva *self = memory;
    for (size_t i = 0; i < view->arrived_count; i++) sc_order_put_last(self->order, view->arrived[i], 0);
    keep_running(self, view, plan);
    uint32_t job;
    while ((job = sc_order_next(self->order, SC_NONE, plan->free[0])) != SC_NONE) {
        bool suffers = sc_estimate_spread(view->estimate, job, 0, view->workload->jobs[job].gpus) > 1;
        if (!suffers || !sc_place_on_one(view, plan, plan->node_free, job))
            sc_place_on_several(view, plan, plan->node_free, job);
        sc_order_remove(self->order, job);
    }
    return MDOT_OK;
}

const sc_policy sc_policy_gandiva = {
    .name = "gandiva",
    .summary = "first come, first served, on the nodes where communication costs least, with moves (Gandiva, reduced)",
    .create = create,
    .decide = decide,
    .destroy = destroy,
};
