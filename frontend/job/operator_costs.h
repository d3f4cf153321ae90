/* operator_costs.h — FLOPs and bytes of an operator. Private to frontend/job. */
#ifndef FE_OPERATOR_COSTS_H
#define FE_OPERATOR_COSTS_H

#include "frontend/job/fe_job.h"

/* Computes per_sample and per_step of all phases. */
void fe_operator_costs(const fe_job *job, const fe_operator *source, mdot_job_operator *op);
/* Does a gradient of the node's result reach one of its inputs? */
bool fe_has_gradient(const ir_node *node);

#endif
