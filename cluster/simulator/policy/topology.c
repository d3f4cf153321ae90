/* topology.c — best fit in a tree of nodes, domains and racks. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/backfill.h"

#include <assert.h>
#include <string.h>

static void count_free(sc_topology *topology, const sc_cluster *cluster, const sc_plan *plan)
{
    memset(topology->domain_free, 0, cluster->domain_count * sizeof(int));
    memset(topology->rack_free, 0, cluster->rack_count * sizeof(int));
    for (size_t i = 0; i < cluster->node_count; i++) {
        topology->domain_free[cluster->nodes[i].domain] += plan->node_free[i];
        topology->rack_free[cluster->nodes[i].rack] += plan->node_free[i];
    }
}

/* Returns whether a part with `gpus` free GPUs is a better choice for `missing` GPUs than one with `best`: the fewest
 * that suffice, else the most. */
static bool is_better(int gpus, int best, int missing)
{
    if (gpus == 0) return false;
    if (best >= missing) return gpus >= missing && gpus < best;
    return gpus > best;
}

/* Takes up to `missing` GPUs of a domain, from as few nodes as possible; returns how many. */
static int take_of_domain(sc_topology *topology, const sc_cluster *cluster, sc_plan *plan, uint32_t domain, int missing)
{
    int taken = 0;
    while (taken < missing && topology->domain_free[domain] > 0) {
        uint32_t best = SC_NONE;
        for (uint32_t i = 0; i < cluster->node_count; i++)
            if (cluster->nodes[i].domain == domain &&
                is_better(plan->node_free[i], best == SC_NONE ? 0 : plan->node_free[best], missing - taken))
                best = i;
        int gpus = plan->node_free[best] < missing - taken ? plan->node_free[best] : missing - taken;
        sc_plan_take(plan, best, gpus);
        topology->domain_free[domain] -= gpus;
        topology->rack_free[cluster->nodes[best].rack] -= gpus;
        taken += gpus;
    }
    return taken;
}

static int take_of_rack(sc_topology *topology, const sc_cluster *cluster, sc_plan *plan, uint32_t rack, int missing)
{
    int taken = 0;
    while (taken < missing && topology->rack_free[rack] > 0) {
        uint32_t best = SC_NONE;
        for (uint32_t i = 0; i < cluster->node_count; i++) {
            uint32_t domain = cluster->nodes[i].domain;
            if (cluster->nodes[i].rack == rack &&
                is_better(topology->domain_free[domain], best == SC_NONE ? 0 : topology->domain_free[best],
                          missing - taken))
                best = domain;
        }
        taken += take_of_domain(topology, cluster, plan, best, missing - taken);
    }
    return taken;
}

void sc_topology_run(sc_topology *topology, const sc_view *view, sc_plan *plan, uint32_t job)
{
    const sc_cluster *cluster = view->cluster;
    if (sc_place_on_one(view, plan, plan->node_free, job, view->workload->jobs[job].gpus)) return;
    int missing = view->workload->jobs[job].gpus;
    sc_plan_run(plan, job, 0, missing);
    count_free(topology, cluster, plan);
    uint32_t domain = SC_NONE;
    for (uint32_t i = 0; i < cluster->domain_count; i++)
        if (topology->domain_free[i] >= missing &&
            (domain == SC_NONE || topology->domain_free[i] < topology->domain_free[domain]))
            domain = i;
    if (domain != SC_NONE) missing -= take_of_domain(topology, cluster, plan, domain, missing);
    while (missing > 0) {
        uint32_t best = SC_NONE;
        for (uint32_t i = 0; i < cluster->rack_count; i++)
            if (is_better(topology->rack_free[i], best == SC_NONE ? 0 : topology->rack_free[best], missing)) best = i;
        assert(best != SC_NONE);
        missing -= take_of_rack(topology, cluster, plan, best, missing);
    }
}
