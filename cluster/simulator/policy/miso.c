/* miso.c — MISO (Li et al., SoCC 2022): jobs of one GPU share it in slices (MIG), whose sizes follow the jobs.
 *
 * A node of the cluster is a GPU, and its 7 GPUs are the slices. Speeds on slices come from --throughputs, for example
 * in the form of MISO's measurements; the type of the nodes is mig.
 *
 * Implemented from the paper: the division of a GPU with the largest sum of speeds relative to the whole GPU, over all
 * valid divisions (solve/partitions.h), chosen anew when a job comes or leaves; jobs wait in the order of arrival. A
 * slice with too little memory for a job has speed 0 for it. A job whose slice changes has the cost of a restart.
 *
 * A new job goes to the GPU whose sum grows most, and waits if none does; the paper takes the GPU with the fewest jobs,
 * which usually is the same. Left out: the phase in which jobs share the GPU without slices (MPS) while their speeds on
 * slices are predicted from it, which the table replaces; and jobs that stop while another one's slice changes.
 */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"
#include "simulator/solve/linear.h"

#include <math.h>
#include <stdlib.h>

typedef struct gpu {
    uint32_t jobs[SC_SLICES];
    int sizes[SC_SLICES];
    size_t count;
    double sum; /* of relative speeds */
} gpu;

typedef struct miso {
    uint32_t *active;
    size_t count;
    bool *is_placed; /* per job */
    gpu *gpus;       /* one per node */
} miso;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    const sc_cluster *c = view->cluster;
    for (size_t node = 0; node < c->node_count; node++)
        if (c->nodes[node].gpus != SC_SLICES)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                             "policy miso requires nodes of 7 GPUs, which are the slices of one; node %s has %d",
                             c->nodes[node].name, c->nodes[node].gpus);
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(miso, active, jobs), SC_ARRAY(miso, is_placed, jobs),
                               SC_ARRAY(miso, gpus, c->node_count)};
    return SC_STATE(miso, arrays, out_self, err);
}

/* Divides the GPU among the jobs; the sum is -INFINITY if they do not fit. */
static void divide(const sc_view *view, gpu *g)
{
    double values[SC_SLICES][SC_SLICE_SIZES];
    for (size_t i = 0; i < g->count; i++) {
        double maximum = 0;
        for (size_t size = 0; size < SC_SLICE_SIZES; size++) {
            values[i][size] = sc_estimate_speed(view->estimate, g->jobs[i], 0, sc_slice_sizes[size]);
            maximum = fmax(maximum, values[i][size]);
        }
        for (size_t size = 0; size < SC_SLICE_SIZES && maximum > 0; size++) values[i][size] /= maximum;
    }
    g->sum = sc_partition_choose(g->count, values, g->sizes);
}

/* Drops ended and cut-off jobs, and divides the GPUs anew. */
static void drop_absent(miso *self, const sc_view *view)
{
    for (size_t node = 0; node < view->cluster->node_count; node++) {
        gpu *g = &self->gpus[node];
        size_t kept = 0, before = g->count;
        for (size_t i = 0; i < before; i++) {
            bool stays = view->states[g->jobs[i]].phase == SC_RUNNING;
            if (!stays) self->is_placed[g->jobs[i]] = false;
            g->sizes[kept] = g->sizes[i];
            if (stays) g->jobs[kept++] = g->jobs[i];
        }
        g->count = kept;
        if (kept < before) divide(view, g);
    }
}

/* Puts a waiting job on the GPU whose sum grows most. False: no GPU gains from it. */
static bool place(miso *self, const sc_view *view, uint32_t job)
{
    size_t best = view->cluster->node_count;
    double maximum = 0;
    gpu then = {0};
    bool has_tried_empty = false; /* empty GPUs are equal */
    for (size_t node = 0; node < view->cluster->node_count; node++) {
        gpu tried = self->gpus[node];
        if (tried.count == SC_SLICES || (tried.count == 0 && has_tried_empty)) continue;
        has_tried_empty |= tried.count == 0;
        tried.jobs[tried.count++] = job;
        divide(view, &tried);
        if (tried.sum - self->gpus[node].sum <= maximum) continue;
        maximum = tried.sum - self->gpus[node].sum;
        best = node;
        then = tried;
    }
    if (best == view->cluster->node_count) return false;
    self->gpus[best] = then;
    self->is_placed[job] = true;
    return true;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    miso *self = memory;
    self->count = sc_active_update(view, self->active, self->count);
    drop_absent(self, view);
    for (size_t i = 0; i < self->count; i++)
        if (!self->is_placed[self->active[i]] && !place(self, view, self->active[i])) break;
    for (uint32_t node = 0; node < view->cluster->node_count; node++) {
        const gpu *g = &self->gpus[node];
        for (size_t i = 0; i < g->count; i++) {
            sc_plan_run(plan, g->jobs[i], 0, g->sizes[i]);
            sc_plan_take(plan, node, g->sizes[i]);
        }
    }
    return MDOT_OK;
}

const sc_policy sc_policy_miso = {
    .name = "miso",
    .summary = "jobs share a GPU in MIG slices of the best sizes, by --throughputs (MISO)",
    .one_type = true,
    .needs_kinds = true,
    .create = create,
    .decide = decide,
};
