/* smd.c — SMD (Yu et al., INFOCOM 2021), reduced to a knapsack in which a job's communication counts. The next jobs are
 * chosen by utility per GPU time; a job's GPU time depends on the nodes.
 *
 * Implemented: predicted times include communication. The job choice is a knapsack with several dimensions (here the
 * nodes), packed again at every event. A job is packed in one of two forms: on one node, or on several nodes, with more
 * GPU-seconds by the predicted spread factor. Utility is one for each job, and forms are packed greedily by utility
 * over predicted GPU-seconds. Therefore a job is spread only if all jobs that would use the GPUs better are already
 * packed. Left out: the decomposition (programs with sums of ratios) that determines each job's workers and parameter
 * servers, because jobs state widths here; utilities that differ; the knapsack's linear relaxation and its bound;
 * resources other than GPUs. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <stdlib.h>

typedef struct smd {
    /* All jobs, sorted by the GPU-seconds that they need on one node, and on several nodes. */
    sc_sorted_jobs *one_node, *several_nodes;
    size_t *packed; /* decision that last packed each job, counted from 1 */
    size_t decision;
    int *idle; /* GPUs per node, idle before and still unpacked */
} smd;

static void destroy(void *memory)
{
    smd *self = memory;
    free(self->one_node);
    free(self->several_nodes);
    free(self);
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    void *one_node = NULL, *several_nodes = NULL;
    const sc_array arrays[] = {SC_ARRAY(smd, packed, view->workload->job_count + 1),
                               SC_ARRAY(smd, idle, view->cluster->node_count)};
    mdot_status status = sc_sorted_jobs_create(view, &one_node, err);
    if (status == MDOT_OK) status = sc_sorted_jobs_create(view, &several_nodes, err);
    if (status == MDOT_OK) status = SC_STATE(smd, arrays, out_self, err);
    if (status == MDOT_OK) {
        ((smd *)*out_self)->one_node = one_node;
        ((smd *)*out_self)->several_nodes = several_nodes;
    } else {
        free(one_node);
        free(several_nodes);
    }
    return status;
}

static double spread_of(const sc_view *view, uint32_t job)
{
    return sc_estimate_spread(view->estimate, job, 0, view->workload->jobs[job].gpus);
}

static double several_nodes_gpu_s(const sc_view *view, uint32_t job)
{
    return sc_view_left_gpu_s(view, job) * spread_of(view, job);
}

static void count_idle(smd *self, const sc_view *view)
{
    for (size_t node = 0; node < view->cluster->node_count; node++) self->idle[node] = view->cluster->nodes[node].gpus;
    for (size_t i = 0; i < view->running_count; i++) {
        const sc_state *state = &view->states[view->running[i]];
        const sc_part *parts = &view->parts[state->first_part];
        for (size_t part = 0; part < state->part_count; part++) self->idle[parts[part].node] -= parts[part].gpus;
    }
}

/* The GPUs within a node that a job gets are undetermined. Therefore a node's idle GPUs are at most those that the
 * plan has left free: others are taken as idle GPUs, taken from a job that ran, or kept by a job that stays. */
static void discount_taken(smd *self, const sc_view *view, const sc_plan *plan)
{
    for (size_t node = 0; node < view->cluster->node_count; node++)
        if (self->idle[node] > plan->node_free[node]) self->idle[node] = plan->node_free[node];
}

/* Returns the first job behind `after` that is unpacked and takes at most so many GPUs. */
static uint32_t next_of(const smd *self, const sc_sorted_jobs *list, uint32_t after, int gpus)
{
    const sc_order *order = sc_sorted_jobs_incomplete(list);
    uint32_t job = after;
    do job = sc_order_next(order, job, gpus);
    while (job != SC_NONE && self->packed[job] == self->decision);
    return job;
}

/* A running job stays unless an exclusive node saves more than the restart costs. */
static bool would_stay(const sc_view *view, uint32_t job, bool on_one_node)
{
    const sc_state *state = &view->states[job];
    if (state->phase != SC_RUNNING) return false;
    double saved_s = sc_view_left_s(view, job) * (spread_of(view, job) - 1);
    return !on_one_node || state->part_count == 1 || saved_s <= sc_restart_s(view->restart, state->gpus, false);
}

/* Packs a job on idle GPUs first, then on GPUs held by jobs packed later. */
static void pack(smd *self, const sc_view *view, sc_plan *plan, uint32_t job, bool on_one_node)
{
    self->packed[job] = self->decision;
    if (would_stay(view, job, on_one_node) && sc_place_as_it_is(view, plan, job)) return;
    int gpus = view->workload->jobs[job].gpus;
    bool (*place)(const sc_view *, sc_plan *, const int *, uint32_t, int) =
        on_one_node ? sc_place_on_one : sc_place_on_several;
    discount_taken(self, view, plan);
    bool is_idle = place(view, plan, self->idle, job, gpus);
    if (!is_idle) place(view, plan, plan->node_free, job, gpus);
    const sc_grant *grant = &plan->grants[plan->grant_count - 1];
    for (size_t i = 0; i < grant->part_count && is_idle; i++) {
        const sc_part *part = &plan->parts[grant->first_part + i];
        self->idle[part->node] -= part->gpus;
    }
}

static int most_free(const sc_view *view, const sc_plan *plan)
{
    int maximum = 0;
    for (size_t node = 0; node < view->cluster->node_count; node++)
        if (plan->node_free[node] > maximum) maximum = plan->node_free[node];
    return maximum;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    smd *self = memory;
    uint32_t one_node = SC_NONE, several_nodes = SC_NONE; /* positions in both lists */
    self->decision++;
    sc_sorted_jobs_sort(self->one_node, view, sc_view_left_gpu_s);
    sc_sorted_jobs_sort(self->several_nodes, view, several_nodes_gpu_s);
    count_idle(self, view);
    while (plan->free[0] > 0) {
        uint32_t a = next_of(self, self->one_node, one_node, most_free(view, plan));
        uint32_t b = next_of(self, self->several_nodes, several_nodes, plan->free[0]);
        if (a == SC_NONE && b == SC_NONE) break;
        /* at equal cost a job is spread, so that whole nodes stay free */
        bool on_one_node =
            a != SC_NONE && (b == SC_NONE || sc_order_key(sc_sorted_jobs_incomplete(self->one_node), a) <
                                                 sc_order_key(sc_sorted_jobs_incomplete(self->several_nodes), b));
        pack(self, view, plan, on_one_node ? a : b, on_one_node);
        *(on_one_node ? &one_node : &several_nodes) = on_one_node ? a : b;
    }
    return MDOT_OK;
}

const sc_policy sc_policy_smd = {
    .name = "smd",
    .summary = "a knapsack of jobs on one node or on several, by GPU time with communication (SMD, reduced)",
    .one_type = true,
    .create = create,
    .decide = decide,
    .destroy = destroy,
};
