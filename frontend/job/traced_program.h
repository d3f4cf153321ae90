/* traced_program.h — notes in a file's metadata from a tracer of PyTorch programs (fe_is_traced names them). */
#ifndef FE_TRACED_PROGRAM_H
#define FE_TRACED_PROGRAM_H

#include "frontend/job/fe_job.h"
#include "frontend/onnx/names.h"

/* Is the graph a traced program (mdot.program = "1")? A composition in it stays one, because the program runs each of
 * its operators as a kernel. */
bool fe_is_traced(const ir_graph *graph);
/* Initializers without a gradient (mdot.frozen, one per line); NULL if there are none or memory ran out. */
const fe_names *fe_frozen_names(const ir_graph *graph);
/* Does the program run the module's forward pass again in the backward pass (mdot.recomputed, one path per line)? The
 * module may be NULL. */
bool fe_is_recomputed(const ir_graph *graph, const char *module);
/* Adds the program's facts to job->result: the kernels of attention (mdot.attention), and whether it has a loss. */
void fe_job_add_program(fe_job *job);

/* Is the node a StopGradient? It passes the operand on without a gradient. */
bool fe_stops_gradient(const ir_node *node);
/* A StopGradient's attribute. All passes treat the node as opaque. */
#define FE_STOPS_GRADIENT "stops_gradient"

#endif
