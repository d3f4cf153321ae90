/* schedule_plan.c — a policy's grants, and the simulator's own node choice. */
#include "simulator/core/simulator.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

mdot_status sc_plan_create(const sc_workload *workload, const sc_cluster *cluster, sc_plan *out_plan, mdot_error *err)
{
    size_t gpus = (size_t)cluster->gpus + 1;
    sc_plan plan = {.grants = calloc(2 * gpus, sizeof *plan.grants),
                    .parts = calloc(gpus, sizeof *plan.parts),
                    .node_free = calloc(cluster->node_count + 1, sizeof *plan.node_free),
                    .rejected = calloc(workload->job_count + 1, sizeof *plan.rejected),
                    .wake_s = INFINITY};
    if (plan.grants == NULL || plan.parts == NULL || plan.node_free == NULL || plan.rejected == NULL) {
        sc_plan_free(&plan);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    *out_plan = plan;
    return MDOT_OK;
}

void sc_plan_free(sc_plan *plan)
{
    free(plan->grants);
    free(plan->parts);
    free(plan->node_free);
    free(plan->rejected);
    *plan = (sc_plan){0};
}

void sc_plan_begin(sc_plan *plan, const sc_cluster *cluster)
{
    plan->grant_count = plan->part_count = plan->rejected_count = 0;
    plan->wake_s = INFINITY;
    plan->note = NULL;
    for (unsigned type = 0; type < cluster->type_count; type++) plan->free[type] = cluster->types[type].gpus;
    for (size_t node = 0; node < cluster->node_count; node++) plan->node_free[node] = cluster->nodes[node].gpus;
}

void sc_plan_run(sc_plan *plan, uint32_t job, unsigned type, int gpus)
{
    assert(gpus > 0 && gpus <= plan->free[type]);
    plan->free[type] -= gpus;
    plan->grants[plan->grant_count++] = (sc_grant){.job = job, .type = type, .gpus = gpus, .partner = SC_NONE};
}

void sc_plan_share(sc_plan *plan, uint32_t job)
{
    sc_grant *host = &plan->grants[plan->grant_count - 1];
    assert(host->partner == SC_NONE);
    host->partner = job;
    plan->grants[plan->grant_count++] =
        (sc_grant){.job = job, .type = host->type, .gpus = host->gpus, .partner = host->job, .shares = true};
}

static void take(sc_plan *plan, sc_grant *grant, uint32_t node, int gpus)
{
    assert(gpus > 0 && gpus <= plan->node_free[node]);
    plan->node_free[node] -= gpus;
    if (grant->part_count++ == 0) grant->first_part = plan->part_count;
    plan->parts[plan->part_count++] = (sc_part){.node = node, .gpus = gpus};
}

void sc_plan_take(sc_plan *plan, uint32_t node, int gpus)
{
    take(plan, &plan->grants[plan->grant_count - 1], node, gpus);
}

void sc_plan_set_batch(sc_plan *plan, double batch) { plan->grants[plan->grant_count - 1].batch = batch; }

void sc_plan_set_clock(sc_plan *plan, double clock) { plan->grants[plan->grant_count - 1].clock = clock; }

void sc_plan_reject(sc_plan *plan, uint32_t job) { plan->rejected[plan->rejected_count++] = job; }

static void sort_parts(sc_part *parts, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        sc_part part = parts[i];
        size_t j = i;
        for (; j > 0 && parts[j - 1].node > part.node; j--) parts[j] = parts[j - 1];
        parts[j] = part;
    }
}

static void take_again(sc_plan *plan, sc_grant *grant, const sc_view *view)
{
    const sc_state *state = &view->states[grant->job];
    const sc_part *parts = &view->parts[state->first_part];
    if (state->phase != SC_RUNNING || state->type != grant->type || state->gpus != grant->gpus) return;
    for (size_t i = 0; i < state->part_count; i++)
        if (parts[i].gpus > plan->node_free[parts[i].node]) return;
    for (size_t i = 0; i < state->part_count; i++) take(plan, grant, parts[i].node, parts[i].gpus);
}

static void take_first_free(sc_plan *plan, sc_grant *grant, const sc_cluster *cluster)
{
    int missing = grant->gpus;
    for (uint32_t node = 0; missing > 0; node++) {
        assert(node < cluster->node_count);
        int gpus = plan->node_free[node] < missing ? plan->node_free[node] : missing;
        if (cluster->nodes[node].type != grant->type || gpus == 0) continue;
        take(plan, grant, node, gpus);
        missing -= gpus;
    }
}

void sc_plan_finish(sc_plan *plan, const sc_view *view)
{
    for (size_t i = 0; i < plan->grant_count; i++) {
        sc_grant *grant = &plan->grants[i];
        if (grant->shares) continue;
        if (grant->part_count == 0)
            take_again(plan, grant, view);
        else
            sort_parts(&plan->parts[grant->first_part], grant->part_count);
    }
    for (size_t i = 0; i < plan->grant_count; i++)
        if (!plan->grants[i].shares && plan->grants[i].part_count == 0)
            take_first_free(plan, &plan->grants[i], view->cluster);
    for (size_t i = 1; i < plan->grant_count; i++) {
        if (!plan->grants[i].shares) continue;
        plan->grants[i].first_part = plan->grants[i - 1].first_part;
        plan->grants[i].part_count = plan->grants[i - 1].part_count;
    }
}
