/* hived.c — HiveD (Zhao et al., OSDI 2020): each group of users owns cells of the cluster. Cells never fragment.
 *
 * A cell is a power of two of a node's GPUs, or nodes. Implemented: every group (or user) owns an equal number of whole
 * nodes; within them, buddy allocation: a job takes the smallest free cell that holds it, a larger cell is split in
 * halves, and free halves merge; a job wider than a node takes whole nodes of the group; first come, first served in a
 * group. Jobs that find no cell of their group run on cells that other groups leave idle, and are preempted when the
 * owner needs them (low priority). A job that is wider than its group's nodes only runs in this way.
 * Left out: cells above a node (racks), and the binding of virtual to physical cells, which is fixed here.
 * Needs one GPU type and equal nodes of a power of two of GPUs, at least one for each group. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <stdlib.h>
#include <string.h>

typedef struct hived {
    uint32_t *active, *group_of; /* group_of: of each job */
    uint32_t *owner;             /* of each node */
    int *first;                  /* of each running job: the GPU of a node where its cell begins */
    bool *is_owned, *is_granted; /* of each job: it runs on a cell of its group; it has GPUs in this decision */
    int *owned_gpus;             /* of each group */
    int *cells;                  /* by node and GPU: size of the busy cell that begins there; 0: none */
    size_t count, groups;
    int node_gpus;
} hived;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    const sc_cluster *c = view->cluster;
    int node_gpus = c->nodes[0].gpus;
    size_t jobs = view->workload->job_count + 1;
    for (size_t i = 0; i < c->node_count; i++)
        if (c->nodes[i].gpus != node_gpus || (node_gpus & (node_gpus - 1)) != 0)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                             "policy hived requires equal nodes of 1, 2, 4 … GPUs, but %s has %d", c->nodes[i].name,
                             c->nodes[i].gpus);
    const sc_array arrays[] = {SC_ARRAY(hived, active, jobs),         SC_ARRAY(hived, group_of, jobs),
                               SC_ARRAY(hived, first, jobs),          SC_ARRAY(hived, is_owned, jobs),
                               SC_ARRAY(hived, is_granted, jobs),     SC_ARRAY(hived, owned_gpus, jobs),
                               SC_ARRAY(hived, owner, c->node_count), SC_ARRAY(hived, cells, (size_t)c->gpus)};
    mdot_status status = SC_STATE(hived, arrays, out_self, err);
    if (status != MDOT_OK) return status;
    hived *self = *out_self;
    self->node_gpus = node_gpus;
    self->groups = sc_number_groups(view->workload, self->group_of, self->active);
    for (size_t i = 0; i < c->node_count; i++) {
        self->owner[i] = (uint32_t)(i * self->groups / c->node_count);
        self->owned_gpus[self->owner[i]] += node_gpus;
    }
    if (self->groups > c->node_count)
        status =
            mdot_fail(err, MDOT_INVALID_ARGUMENT, "policy hived requires a node for each of the %zu groups, not %zu",
                      self->groups, c->node_count);
    if (status != MDOT_OK) {
        free(self);
        *out_self = NULL;
    }
    return status;
}

static int cell_of(const hived *self, int gpus)
{
    int size = 1;
    while (size < gpus && size < self->node_gpus) size *= 2;
    return size;
}

/* Returns whether no busy cell overlaps this one. */
static bool is_free(const int *cells, int first, int size, int node_gpus)
{
    for (int i = 0; i < node_gpus; i++)
        if (cells[i] > 0 && i < first + size && i + cells[i] > first) return false;
    return true;
}

/* Finds a free cell on a group's nodes (group count: on any node), in the smallest free buddy. Returns its node, or
 * SC_NONE. */
static uint32_t find_cell(const hived *self, const sc_view *view, size_t group, int size, int *out_first)
{
    for (int buddy = size; buddy <= self->node_gpus; buddy *= 2)
        for (uint32_t node = 0; node < view->cluster->node_count; node++) {
            const int *cells = &self->cells[node * (size_t)self->node_gpus];
            if (group < self->groups && self->owner[node] != group) continue;
            for (int first = 0; first < self->node_gpus; first += buddy) {
                *out_first = first;
                if (is_free(cells, first, buddy, self->node_gpus)) return node;
            }
        }
    return SC_NONE;
}

static void take(hived *self, sc_plan *plan, uint32_t node, int first, int size, int gpus)
{
    self->cells[node * (size_t)self->node_gpus + (size_t)first] = size;
    sc_plan_take(plan, node, gpus);
}

/* Grants a job cells on a group's nodes, or on any nodes. Returns false if there are too few. */
static bool start(hived *self, const sc_view *view, sc_plan *plan, uint32_t job, size_t group)
{
    int gpus = view->workload->jobs[job].gpus, size = cell_of(self, gpus), missing = gpus, first = 0, nodes = 0;
    for (uint32_t node = 0; gpus > self->node_gpus && node < view->cluster->node_count; node++)
        if (group == self->groups || self->owner[node] == group)
            nodes += is_free(&self->cells[node * (size_t)self->node_gpus], 0, size, self->node_gpus);
    if (gpus > self->node_gpus && nodes * self->node_gpus < gpus) return false;
    if (gpus <= self->node_gpus && find_cell(self, view, group, size, &first) == SC_NONE) return false;
    for (sc_plan_run(plan, job, 0, gpus); missing > 0; missing -= size) {
        uint32_t node = find_cell(self, view, group, size, &first);
        take(self, plan, node, first, size, missing < size ? missing : size);
    }
    self->is_granted[job] = true;
    self->is_owned[job] = group < self->groups;
    self->first[job] = first;
    return true;
}

/* Lets a running job keep its cells, if all are free. */
static void keep(hived *self, const sc_view *view, sc_plan *plan, uint32_t job)
{
    const sc_state *state = &view->states[job];
    const sc_part *parts = &view->parts[state->first_part];
    int size = cell_of(self, state->gpus), first = self->first[job];
    for (size_t i = 0; i < state->part_count; i++)
        if (!is_free(&self->cells[parts[i].node * (size_t)self->node_gpus], first, size, self->node_gpus)) return;
    sc_plan_run(plan, job, 0, state->gpus);
    for (size_t i = 0; i < state->part_count; i++) take(self, plan, parts[i].node, first, size, parts[i].gpus);
    self->is_granted[job] = true;
}

/* Jobs on cells of their groups stay. Then each group's next jobs start there, first come, first served, and last come
 * jobs on idle cells. */
static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    hived *self = memory;
    self->count = sc_active_update(view, self->active, self->count);
    memset(self->cells, 0, (size_t)view->cluster->gpus * sizeof *self->cells);
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i];
        self->is_granted[job] = false;
        if (sc_view_is_running(view, job) && self->is_owned[job]) keep(self, view, plan, job);
    }
    for (size_t g = 0; g < self->groups; g++)
        for (size_t i = 0; i < self->count; i++) {
            uint32_t job = self->active[i];
            bool fits = view->workload->jobs[job].gpus <= self->owned_gpus[g];
            if (self->group_of[job] != g || self->is_granted[job] || !fits) continue;
            if (!start(self, view, plan, job, g)) break;
        }
    for (size_t i = 0; i < self->count; i++) {
        uint32_t job = self->active[i];
        if (!self->is_granted[job] && sc_view_is_running(view, job)) keep(self, view, plan, job);
    }
    for (size_t i = 0; i < self->count; i++)
        if (!self->is_granted[self->active[i]]) start(self, view, plan, self->active[i], self->groups);
    return MDOT_OK;
}

const sc_policy sc_policy_hived = {
    .name = "hived",
    .summary = "groups own nodes, divided into buddy cells; others use idle cells until the owner needs them (HiveD)",
    .one_type = true,
    .keeps_fractions = true,
    .create = create,
    .decide = decide,
};
