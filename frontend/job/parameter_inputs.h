/* parameter_inputs.h — parameters among the inputs of a graph. Private to frontend/job. */
#ifndef FE_PARAMETER_INPUTS_H
#define FE_PARAMETER_INPUTS_H

#include "frontend/job/fe_job.h"

/* Turns parameters among the graph's inputs into constants without data, and warns. */
void fe_job_find_parameter_inputs(fe_job *job);
/* Does this for one input. If memory runs out, the value becomes no constant. The caller updates the graph's list of
 * inputs. */
void fe_make_parameter(const ir_graph *graph, ir_value *value);

#endif
