/* queue.h — what policies of a homogeneous pool share: an order of jobs, walked from its front. */
#ifndef SC_QUEUE_H
#define SC_QUEUE_H

#include "simulator/core/job_order.h"
#include "simulator/core/policy.h"

/* Grants GPUs to each job that fits, from the front, as wide as jobs are. */
void sc_queue_fill(const sc_order *order, const sc_view *view, sc_plan *plan);

/* Grants all running jobs what they have. */
void sc_queue_keep_running(const sc_view *view, sc_plan *plan);

/* Starts jobs from the front and takes them from the order; stops at the first that does not fit, or skips those. */
void sc_queue_start(sc_order *order, const sc_view *view, sc_plan *plan, bool skips);

/* A policy's create and destroy where an order is all that it keeps. */
mdot_status sc_queue_create(const sc_view *view, void **out_self, mdot_error *err);
void sc_queue_destroy(void *self);

#endif
