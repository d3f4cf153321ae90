/* sorted_jobs.c — a sorted list of all jobs, in which running jobs move. */
#include "simulator/policy/sorted_jobs.h"

#include <stdlib.h>

struct sc_sorted_jobs {
    sc_order *order;
    uint32_t *jobs; /* capacity: the number of jobs that can run */
    double *keys;
};

mdot_status sc_sorted_jobs_create(const sc_view *view, void **out_self, mdot_error *err)
{
    sc_sorted_jobs *self = calloc(1, sizeof *self);
    size_t gpus = (size_t)view->cluster->gpus;
    if (self != NULL) {
        self->jobs = calloc(gpus, sizeof *self->jobs);
        self->keys = calloc(gpus, sizeof *self->keys);
    }
    mdot_status status = MDOT_OK;
    if (self == NULL || self->jobs == NULL || self->keys == NULL)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for a policy");
    if (status == MDOT_OK) status = sc_order_create(view->workload, &self->order, err);
    if (status == MDOT_OK)
        *out_self = self;
    else
        sc_sorted_jobs_destroy(self);
    return status;
}

void sc_sorted_jobs_destroy(void *memory)
{
    sc_sorted_jobs *self = memory;
    if (self == NULL) return;
    sc_order_destroy(self->order);
    free(self->jobs);
    free(self->keys);
    free(self);
}

/* Gives running jobs their new keys: either those whose keys grow, or the others. */
static void settle(sc_sorted_jobs *self, const sc_view *view, sc_key_fn *key, bool grows)
{
    size_t count = 0;
    for (size_t i = 0; i < view->running_count; i++) {
        uint32_t job = view->running[i];
        double next = key(view, job);
        if ((next > sc_order_key(self->order, job)) != grows) continue;
        self->jobs[count] = job;
        self->keys[count++] = next;
    }
    sc_order_settle(self->order, self->jobs, self->keys, count);
}

void sc_sorted_jobs_sort(sc_sorted_jobs *self, const sc_view *view, sc_key_fn *key)
{
    for (size_t i = 0; i < view->completed_count; i++) sc_order_remove(self->order, view->completed[i]);
    settle(self, view, key, false);
    settle(self, view, key, true);
    for (size_t i = 0; i < view->arrived_count; i++)
        sc_order_put_last(self->order, view->arrived[i], key(view, view->arrived[i]));
}

void sc_sorted_jobs_decide(sc_sorted_jobs *self, const sc_view *view, sc_plan *plan, sc_key_fn *key)
{
    sc_sorted_jobs_sort(self, view, key);
    sc_queue_fill(self->order, view, plan);
}

const sc_order *sc_sorted_jobs_incomplete(const sc_sorted_jobs *self)
{
    return self->order;
}
