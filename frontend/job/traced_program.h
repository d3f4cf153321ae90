/* traced_program.h — notes in a file's metadata from a tracer of PyTorch programs (fe_is_traced names them). */
#pragma once

#include "frontend/job/fe_job.h"
#include "frontend/onnx/names.h"

/* Is the graph a traced program (mdot.program = "1")? A composition in it stays one, because the program runs each of
 * its operators as a kernel. */
bool fe_is_traced(const ir_graph *graph);
/* Does torch.compile compile the program (mdot.compiled = "1")? */
bool fe_is_compiled(const ir_graph *graph);
/* The names in a note, one per line, for example mdot.frozen: initializers without a gradient. NULL if there are none
 * or memory ran out. */
const fe_names *fe_noted_names(const ir_graph *graph, const char *key);
/* Does the program run the module's forward pass again in the backward pass (mdot.recomputed, one path per line)? The
 * module may be NULL. */
bool fe_is_recomputed(const ir_graph *graph, const char *module);
/* Nodes with notes about single calls: mdot.kept (a checkpoint policy keeps the result), mdot.repeated,
 * mdot.offloaded, mdot.ran_full, mdot.ran_half, mdot.once_more and mdot.twice_more (mdot_job.h, MDOT_OPERATOR_…). */
enum { FE_NOTED_FLAGS = 7 };
void fe_read_noted_nodes(const ir_graph *graph, const fe_names **out_nodes);
uint32_t fe_noted_flags(const fe_names *const *nodes, const ir_node *node);
bool fe_is_kept(const fe_names *const *nodes, const ir_node *node);
/* Adds the program's facts to job->result: the kernels of attention (mdot.attention), and whether it has a loss. */
void fe_job_add_program(fe_job *job);

/* Must the node run in every forward pass of the traced program, although its operands are constants? True for all
 * except views and copies in another floating-point type. */
bool fe_is_parameter_work(const fe_job *job, const ir_node *node);
/* Finds the values that depend on parameters alone, by value id. They cost the same at each batch. */
void fe_find_parameter_work(const fe_job *job, bool *out_once);

/* Is the node a StopGradient? It passes the operand on without a gradient. */
bool fe_stops_gradient(const ir_node *node);
/* A StopGradient's attribute. All passes treat the node as opaque. */
#define FE_STOPS_GRADIENT "stops_gradient"
/* Is the node a view of its operand in another shape? */
bool fe_is_view(const ir_node *node);
#define FE_VIEW "view"
/* A view's attribute: the value requires a gradient, for example an input with requires_grad. */
#define FE_STARTS_GRADIENT "starts_gradient"

/* Attributes of a call outside of ops.def: the operator (ir_opcode) whose gradient and traits it has, and the FLOPs of
 * the forward phase. Any product may have the backward phase's FLOPs, if they differ from the operator's. */
#define FE_PRICED_AS "priced_as"
#define FE_FLOPS "flops"
#define FE_BACKWARD_FLOPS "backward_flops"
/* The part of a node's work that exists, because the trace rounded the extents up: any node's attribute. */
#define FE_SHARE "share"
