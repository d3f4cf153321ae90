/* sorted_jobs.c — a sorted list of all jobs; only running jobs move. */
#include "simulator/policy/allocation.h"

struct sc_sorted_jobs {
    sc_order order;
    uint32_t *jobs; /* capacity: maximum running jobs */
    double *keys;
    uint32_t cursor, arrived; /* position among the jobs that have arrived */
};

mdot_status sc_sorted_jobs_create(const sc_view *view, void **out_self, mdot_error *err)
{
    const sc_array arrays[] = {{offsetof(sc_sorted_jobs, order.nodes), sc_order_bytes(view->workload)},
                               SC_ARRAY(sc_sorted_jobs, jobs, view->cluster->gpus),
                               SC_ARRAY(sc_sorted_jobs, keys, view->cluster->gpus)};
    mdot_status status = SC_STATE(sc_sorted_jobs, arrays, out_self, err);
    if (status == MDOT_OK) sc_order_begin(&((sc_sorted_jobs *)*out_self)->order, view->workload);
    return status;
}

/* Gives running jobs new keys: either only growing keys, or only the others. */
static void settle(sc_sorted_jobs *self, const sc_view *view, sc_key_fn *key, bool grows)
{
    size_t count = 0;
    for (size_t i = 0; i < view->running_count; i++) {
        uint32_t job = view->running[i];
        double successor = key(view, job);
        if ((successor > sc_order_key(&self->order, job)) != grows) continue;
        self->jobs[count] = job;
        self->keys[count++] = successor;
    }
    sc_order_settle(&self->order, self->jobs, self->keys, count);
}

/* Estimates some of the waiting and running jobs again, in turn, because an estimator may have learned since they
 * arrived. Running jobs move at the next decision. */
static void renew_some(sc_sorted_jobs *self, const sc_view *view, sc_key_fn *key)
{
    enum { LOOKED_AT = 12 };
    for (int i = 0; i < LOOKED_AT && self->arrived > 0; i++) {
        uint32_t job = self->cursor = (self->cursor + 1) % self->arrived;
        sc_phase phase = view->states[job].phase;
        if (phase != SC_WAITING && phase != SC_RUNNING) continue;
        if (!sc_estimate_renew(view->estimate, job)) return;
        double successor = key(view, job);
        if (phase == SC_WAITING && successor != sc_order_key(&self->order, job))
            sc_order_put_last(&self->order, job, successor);
    }
}

void sc_sorted_jobs_sort(sc_sorted_jobs *self, const sc_view *view, sc_key_fn *key)
{
    for (size_t i = 0; i < view->completed_count; i++) sc_order_remove(&self->order, view->completed[i]);
    settle(self, view, key, false);
    settle(self, view, key, true);
    renew_some(self, view, key);
    for (size_t i = 0; i < view->arrived_count; i++) {
        sc_order_put_last(&self->order, view->arrived[i], key(view, view->arrived[i]));
        /* Jobs are numbered in order of arrival. A job cut off arrives again. */
        if (view->arrived[i] >= self->arrived) self->arrived = view->arrived[i] + 1;
    }
}

mdot_status sc_sorted_jobs_decide(void *memory, const sc_view *view, sc_plan *plan)
{
    sc_sorted_jobs *self = memory;
    sc_sorted_jobs_sort(self, view, view->policy->key);
    sc_queue_fill(&self->order, view, plan);
    return MDOT_OK;
}

const sc_order *sc_sorted_jobs_incomplete(const sc_sorted_jobs *self) { return &self->order; }
