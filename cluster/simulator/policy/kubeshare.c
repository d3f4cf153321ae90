/* kubeshare.c — fractions of GPUs (KubeShare; Yeh et al., HPDC 2020), with --slices: a GPU is a node of slices.
 *
 * Implemented: first come, first served, skipping jobs that do not fit, without preemption; a fraction goes to the used
 * GPU that it fills best, so that whole GPUs stay free, and never to two; a job of whole GPUs takes free ones, and the
 * fraction above them as others do. Jobs on one GPU do not slow each other down, as under its time slices by quota
 * (GaiaGPU, cGPU). Left out: memory, affinity labels, and growth of a job into an idle quota (TGS). */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <stdlib.h>

/* Grants whole nodes, and a fraction on one more. Returns false if there are too few. */
static bool start(const sc_view *view, sc_plan *plan, uint32_t job)
{
    int slices = view->cluster->types[0].widest_node, gpus = view->workload->jobs[job].gpus, whole = gpus / slices;
    uint32_t nodes = (uint32_t)view->cluster->node_count, part = SC_NONE;
    int missing = whole, rest = gpus % slices;
    for (uint32_t i = 0; i < nodes; i++) missing -= plan->node_free[i] == slices;
    if (missing > 0) return false;
    if (rest > 0) part = sc_place_find_node(plan->node_free, nodes, rest);
    if (rest > 0 && (part == SC_NONE || (missing == 0 && plan->node_free[part] == slices))) return false;
    sc_plan_run(plan, job, 0, gpus);
    if (rest > 0) sc_plan_take(plan, part, rest);
    for (uint32_t i = 0; i < nodes && whole > 0; i++) {
        if (plan->node_free[i] != slices) continue;
        sc_plan_take(plan, i, slices);
        whole--;
    }
    return true;
}

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_active_create(view, 1, out_self, err);
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_active *self = memory;
    self->count = sc_active_update(view, self->jobs, self->count);
    for (size_t i = 0; i < view->running_count; i++) sc_place_as_it_is(view, plan, view->running[i]);
    for (size_t i = 0; i < self->count && plan->free[0] > 0; i++)
        if (!sc_view_is_running(view, self->jobs[i])) start(view, plan, self->jobs[i]);
    return MDOT_OK;
}

const sc_policy sc_policy_kubeshare = {
    .name = "kubeshare",
    .summary = "first come, first served, with fractions of GPUs under --slices (KubeShare)",
    .one_type = true,
    .keeps_fractions = true,
    .create = create,
    .decide = decide,
};
