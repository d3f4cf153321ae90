/* sorted_jobs.h — shared code of preemptive policies that sort all jobs by a key at every event; only the key
 * differs. */
#ifndef SC_SORTED_JOBS_H
#define SC_SORTED_JOBS_H

#include "simulator/policy/queue.h"

/* Returns the current key of a job. It changes only while the job runs, and within a policy always in one direction. */
typedef double sc_key_fn(const sc_view *view, uint32_t job);

typedef struct sc_sorted_jobs sc_sorted_jobs;

mdot_status sc_sorted_jobs_create(const sc_view *view, void **out_self, mdot_error *err);
void sc_sorted_jobs_destroy(void *self);

/* Sorts the list stably, starting from the last decision's order. New jobs are at its end; completed jobs are
 * removed. */
void sc_sorted_jobs_sort(sc_sorted_jobs *self, const sc_view *view, sc_key_fn *key);
/* Sorts the list, then grants GPUs to each job that fits. */
void sc_sorted_jobs_decide(sc_sorted_jobs *self, const sc_view *view, sc_plan *plan, sc_key_fn *key);

/* Jobs that are incomplete. */
const sc_order *sc_sorted_jobs_incomplete(const sc_sorted_jobs *self);

#endif
