/* capacity.c — queues that share a cluster, without preemption: the schedulers that clusters had before those for deep
 * learning. A queue has the jobs of a `group` (or user), first come, first served; its first job waits until it fits.
 *
 *   yarn   YARN's capacity scheduler: the queue with the least GPUs starts its first job. Queues have equal guaranteed
 *          parts and use what others leave. Left out: hierarchies of queues, their limits, reservations.
 *   drf    dominant resource fairness (Ghodsi et al., NSDI 2011): the queue of the least dominant share, the largest of
 *          its parts of GPUs, CPUs and memory (columns cpus and memory_gb of trace and cluster). Left out: weights. */
#include "base/status.h"
#include "simulator/policy/allocation.h"
#include "simulator/policy/policies.h"

#include <stdlib.h>
#include <string.h>

enum { RESOURCES = 3 };

typedef struct queue {
    double held[RESOURCES]; /* GPUs, CPUs, memory */
    bool is_blocked;        /* its first job does not fit */
} queue;

typedef struct capacity {
    uint32_t *active, *queue_of; /* queue_of: of each job */
    queue *queues;
    size_t count, queue_count;
} capacity;

static mdot_status create(const sc_view *view, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(capacity, active, jobs), SC_ARRAY(capacity, queue_of, jobs),
                               SC_ARRAY(capacity, queues, jobs)};
    BS_TRY(SC_STATE(capacity, arrays, out_self, err));
    capacity *self = *out_self;
    self->queue_count = sc_number_groups(view->workload, self->queue_of, self->active);
    return MDOT_OK;
}

static void needs_of(const sc_job *job, double *out_needs)
{
    out_needs[0] = job->gpus;
    out_needs[1] = job->cpus;
    out_needs[2] = job->memory_gb;
}

static bool fits(const capacity *self, const sc_view *view, const sc_job *job, const double *totals)
{
    double needs[RESOURCES];
    needs_of(job, needs);
    for (int r = 1; r < RESOURCES; r++) {
        for (size_t q = 0; q < self->queue_count; q++) needs[r] += self->queues[q].held[r];
        if (totals[r] > 0 && needs[r] > totals[r] * (1 + 1e-12)) return false;
    }
    return true;
}

static double share_of(const queue *q, const double *totals, int resources)
{
    double share = 0;
    for (int r = 0; r < resources; r++)
        if (totals[r] > 0 && q->held[r] / totals[r] > share) share = q->held[r] / totals[r];
    return share;
}

static mdot_status decide(void *memory, const sc_view *view, sc_plan *plan)
{
    capacity *self = memory;
    int resources = view->policy->variant;
    double totals[RESOURCES] = {view->cluster->gpus, view->cluster->cpus, view->cluster->memory_gb}, needs[RESOURCES];
    self->count = sc_active_update(view, self->active, self->count);
    memset(self->queues, 0, self->queue_count * sizeof *self->queues);
    sc_queue_keep_running(view, plan);
    for (size_t granted = 0;;) {
        for (; granted < plan->grant_count; granted++) {
            needs_of(&view->workload->jobs[plan->grants[granted].job], needs);
            for (int r = 0; r < RESOURCES; r++)
                self->queues[self->queue_of[plan->grants[granted].job]].held[r] += needs[r];
        }
        uint32_t best = SC_NONE;
        for (size_t i = self->count; i-- > 0;) { /* the first job of the queue with the least share */
            uint32_t job = self->active[i];
            const queue *q = &self->queues[self->queue_of[job]];
            bool is_granted = sc_view_is_running(view, job);
            for (size_t k = view->running_count; k < plan->grant_count; k++) is_granted |= plan->grants[k].job == job;
            if (is_granted || q->is_blocked) continue;
            bool is_same = best != SC_NONE && self->queue_of[best] == self->queue_of[job];
            if (best == SC_NONE || is_same ||
                share_of(q, totals, resources) <= share_of(&self->queues[self->queue_of[best]], totals, resources))
                best = job;
        }
        if (best == SC_NONE) return MDOT_OK;
        bool starts = (resources == 1 || fits(self, view, &view->workload->jobs[best], totals)) &&
                      sc_plan_run_fastest(view, plan, best);
        if (!starts) self->queues[self->queue_of[best]].is_blocked = true;
    }
}

const sc_policy sc_policy_yarn = {
    .name = "yarn",
    .summary = "queues by group, the one with the least GPUs first, no preemption (YARN's capacity scheduler)",
    .variant = 1, /* resources that count */
    .create = create,
    .decide = decide,
};

const sc_policy sc_policy_drf = {
    .name = "drf",
    .summary = "queues by group, the least dominant share of GPUs, CPUs and memory first (DRF)",
    .variant = RESOURCES,
    .create = create,
    .decide = decide,
};
