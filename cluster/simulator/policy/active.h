/* active.h — the list of active jobs, which have arrived and are incomplete, in the order of arrival; and the state of
 * policies that hold little else. */
#ifndef SC_ACTIVE_H
#define SC_ACTIVE_H

#include "simulator/core/policy.h"

/* Drops jobs that are done or rejected from the list and appends those that arrived; a job that was cut off at its
 * limit arrives again, and moves to the end. Returns the new number of jobs. `jobs` has room for all of the workload.
 */
size_t sc_active_update(const sc_view *view, uint32_t *jobs, size_t count);

/* The state of a policy that has an item for each job of the workload besides. */
typedef struct sc_active {
    uint32_t *jobs;
    size_t count;
    void *items; /* zero at first */
} sc_active;

mdot_status sc_active_create(const sc_view *view, size_t item_bytes, void **out_self, mdot_error *err);
void sc_active_destroy(void *self); /* an sc_active, which may be NULL */

#endif
