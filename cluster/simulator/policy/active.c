/* active.c — keeps the list of active jobs. */
#include "simulator/policy/allocation.h"

#include <stdlib.h>
#include <string.h>

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

mdot_status sc_state_create(size_t bytes, const sc_array *arrays, size_t count, void **out_self, mdot_error *err)
{
    enum { ALIGNMENT = 16 };
    size_t total = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, used = total;
    for (size_t i = 0; i < count; i++) total += (arrays[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *self = calloc(1, total);
    if (self == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < count; i++) {
        void *array = self + used;
        memcpy(self + arrays[i].at, &array, sizeof array);
        used += (arrays[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    *out_self = self;
    return MDOT_OK;
}

mdot_status sc_active_create(const sc_view *view, size_t item_bytes, void **out_self, mdot_error *err)
{
    size_t jobs = view->workload->job_count + 1;
    const sc_array arrays[] = {SC_ARRAY(sc_active, jobs, jobs), {offsetof(sc_active, items), jobs * item_bytes}};
    return SC_STATE(sc_active, arrays, out_self, err);
}
