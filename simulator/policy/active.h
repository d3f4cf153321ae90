/* active.h — the list of active jobs, which have arrived and are incomplete, in the order of arrival. */
#ifndef SC_ACTIVE_H
#define SC_ACTIVE_H

#include "simulator/core/policy.h"

/* Drops jobs that are done or rejected from the list and appends those that arrived; a job that was cut off at its
 * limit arrives again, and moves to the end. Returns the new number of jobs. `jobs` has room for all of the workload.
 */
size_t sc_active_update(const sc_view *view, uint32_t *jobs, size_t count);

#endif
