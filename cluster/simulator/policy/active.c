/* active.c — keeps the list of active jobs. */
#include "simulator/policy/allocation.h"

#include <stdlib.h>
#include <string.h>

/* Jobs that were cut off come before new ones, both by number. The whole list is sorted, because new jobs have higher
 * numbers than earlier arrivals. */
static bool arrives(const sc_view *view, uint32_t job)
{
    return view->arrived_count > 0 &&
           bsearch(&job, view->arrived, view->arrived_count, sizeof *view->arrived, sc_by_number) != NULL;
}

size_t sc_active_update(const sc_view *view, uint32_t *jobs, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        sc_phase phase = view->states[jobs[i]].phase;
        if (phase != SC_DONE && phase != SC_REJECTED && !arrives(view, jobs[i])) jobs[kept++] = jobs[i];
    }
    for (size_t i = 0; i < view->arrived_count; i++) jobs[kept++] = view->arrived[i];
    return kept;
}

mdot_status sc_active_create(const sc_view *view, size_t item_bytes, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(sc_active, jobs, jobs), {offsetof(sc_active, items), jobs * item_bytes}};
    return SC_STATE(sc_active, arrays, out_self, err);
}

mdot_status sc_ranked_create(const sc_view *view, void **out_self, mdot_error *err)
{
    return sc_active_create(view, sizeof(sc_ranked), out_self, err);
}

int sc_by_rank(const void *left, const void *right)
{
    const sc_ranked *a = left, *b = right;
    if (a->rank != b->rank) return a->rank < b->rank ? -1 : 1;
    return (a->job > b->job) - (a->job < b->job);
}

static const char *group_of(const sc_job *job)
{
    return job->group != NULL ? job->group : job->user != NULL ? job->user : "";
}

size_t sc_number_groups(const sc_workload *workload, uint32_t *out_groups, uint32_t *scratch)
{
    uint32_t count = 0; /* scratch has the first job of each group */
    for (uint32_t i = 0; i < workload->job_count; i++) {
        const sc_job *jobs = workload->jobs;
        uint32_t group = 0;
        while (group < count && strcmp(group_of(&jobs[scratch[group]]), group_of(&jobs[i])) != 0) group++;
        if (group == count) scratch[count++] = i;
        out_groups[i] = group;
    }
    return count;
}
