/* settled.h — policies that sort all jobs by a key at every event and preempt: what they share but for the key. */
#ifndef SC_SETTLED_H
#define SC_SETTLED_H

#include "simulator/policy/queue.h"

/* The key of a job as it stands. It changes in running jobs only, and of one policy only in one direction. */
typedef double sc_key_fn(const sc_view *view, uint32_t job);

typedef struct sc_settled sc_settled;

mdot_status sc_settled_create(const sc_view *view, void **out_self, mdot_error *err);
void sc_settled_destroy(void *self);

/* A stable sort of the list as the last decision left it, new jobs at its end, those that completed gone. */
void sc_settled_sort(sc_settled *self, const sc_view *view, sc_key_fn *key);
/* The same; then GPUs to each job that fits. */
void sc_settled_decide(sc_settled *self, const sc_view *view, sc_plan *plan, sc_key_fn *key);

/* Jobs that have not completed. */
const sc_order *sc_settled_order(const sc_settled *self);

#endif
