/* view.c — facts about jobs that follow from a policy's view. */
#include "simulator/core/policy.h"

#include <math.h>

sc_level sc_level_of(const sc_cluster *cluster, const sc_part *parts, size_t part_count)
{
    if (part_count < 2) return SC_LEVEL_NODE;
    sc_level level = SC_LEVEL_DOMAIN;
    const sc_node *first = &cluster->nodes[parts[0].node];
    for (size_t i = 1; i < part_count; i++) {
        const sc_node *node = &cluster->nodes[parts[i].node];
        if (node->rack != first->rack) return SC_LEVEL_CLUSTER;
        if (node->domain != first->domain) level = SC_LEVEL_RACK;
    }
    return level;
}

double sc_loader_cpus(const sc_job *job, int gpus) { return job->loader_cpus * gpus / job->gpus; }

bool sc_view_is_running(const sc_view *view, uint32_t job) { return view->states[job].phase == SC_RUNNING; }

double sc_view_planned_work(const sc_view *view, uint32_t job)
{
    const sc_job *j = &view->workload->jobs[job];
    return view->states[job].remaining + j->work * (sc_workload_planned(j) - 1);
}

double sc_view_left_s(const sc_view *view, uint32_t job)
{
    const sc_state *state = &view->states[job];
    return sc_estimate_remaining_s(view->estimate, job, state->remaining, state->executed_s);
}

double sc_view_left_gpu_s(const sc_view *view, uint32_t job)
{
    return sc_view_left_s(view, job) * view->workload->jobs[job].gpus;
}

double sc_restart_s(const sc_restart *restart, int gpus, bool is_first)
{
    if (is_first && !restart->first) return 0;
    return restart->base_s + restart->per_doubling_s * (log2(gpus) + 1);
}
