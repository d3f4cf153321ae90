/* active.c — keeps the list of active jobs. */
#include "simulator/policy/allocation.h"

#include <stdlib.h>

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Jobs that were cut off come before new ones, both by number. The whole list is sorted, because new jobs have higher
 * numbers than earlier arrivals. */
static bool arrives(const sc_view *view, uint32_t job)
{
    return view->arrived_count > 0 &&
           bsearch(&job, view->arrived, view->arrived_count, sizeof *view->arrived, by_number) != NULL;
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

void sc_active_destroy(void *memory)
{
    sc_active *self = memory;
    if (self == NULL) return;
    free(self->jobs);
    free(self->items);
    free(self);
}

mdot_status sc_active_create(const sc_view *view, size_t item_bytes, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    sc_active *self = calloc(1, sizeof *self);
    if (self != NULL) *self = (sc_active){.jobs = calloc(jobs, sizeof *self->jobs), .items = calloc(jobs, item_bytes)};
    if (self == NULL || self->jobs == NULL || self->items == NULL) {
        sc_active_destroy(self);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    *out_self = self;
    return MDOT_OK;
}
