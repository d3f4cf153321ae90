/* schedule_plan.h — a policy's answer, from an empty plan to one in which every GPU has a node. */
#ifndef SC_SCHEDULE_PLAN_H
#define SC_SCHEDULE_PLAN_H

#include "simulator/core/policy.h"

mdot_status sc_plan_create(const sc_workload *workload, const sc_cluster *cluster, sc_plan *out_plan, mdot_error *err);
void sc_plan_free(sc_plan *plan);

/* Starts an empty plan, in which every GPU is free. */
void sc_plan_begin(sc_plan *plan, const sc_cluster *cluster);

/* Chooses nodes for grants that lack them, and sorts the nodes of each job. */
void sc_plan_finish(sc_plan *plan, const sc_view *view);

#endif
