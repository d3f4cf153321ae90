/* place.c — best fit on one node, or fragments of several. */
#include "simulator/policy/allocation.h"

uint32_t sc_place_find_node(const int *available, size_t node_count, int gpus)
{
    uint32_t best = SC_NONE;
    for (uint32_t node = 0; node < node_count; node++)
        if (available[node] >= gpus && (best == SC_NONE || available[node] < available[best])) best = node;
    return best;
}

bool sc_place_as_it_is(const sc_view *view, sc_plan *plan, uint32_t job)
{
    const sc_state *state = &view->states[job];
    const sc_part *parts = &view->parts[state->first_part];
    if (state->phase != SC_RUNNING || state->gpus > plan->free[0]) return false;
    for (size_t i = 0; i < state->part_count; i++)
        if (parts[i].gpus > plan->node_free[parts[i].node]) return false;
    sc_plan_run(plan, job, 0, state->gpus);
    for (size_t i = 0; i < state->part_count; i++) sc_plan_take(plan, parts[i].node, parts[i].gpus);
    return true;
}

bool sc_place_on_one(const sc_view *view, sc_plan *plan, const int *available, uint32_t job, int gpus)
{
    uint32_t node = sc_place_find_node(available, view->cluster->node_count, gpus);
    if (node == SC_NONE) return false;
    sc_plan_run(plan, job, 0, gpus);
    sc_plan_take(plan, node, gpus);
    return true;
}

/* Returns the node with the fewest free GPUs, at least one, that comes behind a node with `least` GPUs and number
 * `last`. */
static uint32_t find_next(const int *available, size_t node_count, int minimum, uint32_t final)
{
    uint32_t best = SC_NONE;
    for (uint32_t node = 0; node < node_count; node++) {
        bool is_behind = available[node] > minimum || (available[node] == minimum && node > final);
        if (available[node] > 0 && is_behind && (best == SC_NONE || available[node] < available[best])) best = node;
    }
    return best;
}

bool sc_place_on_several(const sc_view *view, sc_plan *plan, const int *available, uint32_t job, int gpus)
{
    size_t nodes = view->cluster->node_count;
    int missing = gpus, there = 0, minimum = 0;
    for (size_t node = 0; node < nodes && there < missing; node++) there += available[node];
    if (there < missing) return false;
    sc_plan_run(plan, job, 0, missing);
    for (uint32_t node = 0; missing > 0;) {
        node = find_next(available, nodes, minimum, node);
        minimum = available[node]; /* read before GPUs are taken, because `available` may be the plan's own array */
        int taken = minimum < missing ? minimum : missing;
        sc_plan_take(plan, node, taken);
        missing -= taken;
    }
    return true;
}
