/* synergy.c — Synergy (Mohan et al., OSDI 2022): CPUs by each job's sensitivity instead of by its GPUs.
 *
 * Implemented: jobs that the order admits by GPUs alone, here least remaining service first; a job whose loader needs
 * few CPUs (column loader_cpus) leaves the rest of its proportional part; other jobs take that in the order, up to the
 * CPUs at which their loader keeps up; and no job has less than the smaller one of both, so that none is slower than
 * with a proportional part (Synergy-TUNE). Left out: memory, the profiler that measures sensitivities, and the CPUs of
 * single nodes: the sum holds for the cluster. Without loader_cpus, or cpus in the cluster file, it equals srsf. */
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <math.h>

static mdot_status decide(void *self, const sc_view *view, sc_plan *plan)
{
    double total = view->cluster->cpus, part = total / view->cluster->gpus, left = total;
    sc_sorted_jobs_decide(self, view, plan);
    if (total == 0) return MDOT_OK;
    for (size_t i = 0; i < plan->grant_count; i++) {
        sc_grant *g = &plan->grants[i];
        double needed = sc_loader_cpus(&view->workload->jobs[g->job], g->gpus);
        g->cpus = fmin(needed, part * g->gpus);
        left -= g->cpus;
    }
    for (size_t i = 0; i < plan->grant_count; i++) {
        sc_grant *g = &plan->grants[i];
        double more = fmin(left, sc_loader_cpus(&view->workload->jobs[g->job], g->gpus) - g->cpus);
        if (more <= 1e-9 * total) continue;
        g->cpus += more;
        left -= more;
    }
    return MDOT_OK;
}

const sc_policy sc_policy_synergy = {
    .name = "synergy",
    .summary = "least remaining service first, with CPUs by the loaders' needs (Synergy)",
    .key = sc_view_left_gpu_s,
    .create = sc_sorted_jobs_create,
    .decide = decide,
};
