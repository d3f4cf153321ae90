/* gradient_flow.h — the values that receive a gradient. Private to frontend/job. */
#ifndef FE_GRADIENT_FLOW_H
#define FE_GRADIENT_FLOW_H

#include "frontend/job/fe_job.h"

/* Finds the values from which a path without StopGradient leads to an output of the graph, by value id, and marks
 * parameters that no such value depends on as frozen. If no parameter would be left, every value counts, because the
 * outputs are then no losses. */
void fe_find_gradient_flow(const fe_job *job, bool *out_reaches);
/* Does a result of the node receive a gradient? */
bool fe_receives_gradient(const ir_node *node, const bool *reaches);

#endif
