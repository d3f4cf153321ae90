/* queue.h — helpers for policies of a homogeneous pool: an order of jobs, processed from its front. */
#ifndef SC_QUEUE_H
#define SC_QUEUE_H

#include "simulator/core/job_order.h"
#include "simulator/core/policy.h"

/* Grants GPUs to each job that fits, from the front, at the jobs' own widths. */
void sc_queue_fill(const sc_order *order, const sc_view *view, sc_plan *plan);

/* Grants all running jobs the GPUs that they have. */
void sc_queue_keep_running(const sc_view *view, sc_plan *plan);

/* Starts jobs from the front and removes them from the order. It stops at the first job that does not fit, or skips
 * such jobs if `skips` is set. */
void sc_queue_start(sc_order *order, const sc_view *view, sc_plan *plan, bool skips);

/* Create and destroy for a policy whose only state is an order. */
mdot_status sc_queue_create(const sc_view *view, void **out_self, mdot_error *err);
void sc_queue_destroy(void *self);

#endif
