/* active.c — keeps the list of active jobs. */
#include "simulator/policy/active.h"

#include <stdlib.h>

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Jobs that were cut off come before new ones, and both are in the order of their numbers. Therefore all of them are,
 * because new jobs have higher numbers than any that arrived before. */
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
