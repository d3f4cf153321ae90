/* operator_sequence.h — the parts of the last stage, extract_operators.c. */
#pragma once

#include "frontend/job/fe_job.h"
#include "frontend/job/job_tables.h"
#include "frontend/job/traced_program.h"

/* settings.c: writes an operator's attributes. */
void fe_operator_settings(const fe_job *job, const fe_operator *op, int64_t *setting);
/* The row whose name jobs use for the node: the canonical row of equivalent operators, and Linear for a matmul with a
 * parameter. */
const fe_row *fe_type_row(const fe_job *job, const ir_node *node);
/* A matmul's parameter operand, of rank 2; NULL if there is none. */
const ir_value *fe_matmul_weight(const fe_job *job, const ir_node *node);

/* operator_costs.c: computes per_sample and per_step of all phases. Adds the FLOPs of matmuls, convolutions and similar
 * operators at the graph's batch to products[2]: forward and backward phase, without bias and normalisation. */
void fe_operator_costs(const fe_job *job, const fe_operator *source, mdot_job_operator *op, double *products);
static inline double fe_forward_flops(const ir_node *node)
{
    return ir_node_float(node, FE_FLOPS, ir_node_cost(node, 1).flops);
}
/* Does a gradient of the node's result reach one of the inputs? */
bool fe_has_gradient(const ir_node *node);

/* gradient_flow.c: finds the values with a path to a graph output without StopGradient, by value id, and marks
 * parameters that affect none of them as frozen. If no parameter would be left, every value counts, because the outputs
 * are then no losses. */
void fe_find_gradient_flow(const fe_job *job, bool *out_reaches);
/* Does a result of the node receive a gradient? */
bool fe_receives_gradient(const ir_node *node, const bool *reaches);

/* modules.c: an operator's module, in the graph's arena. NULL if its names contain none, or if memory runs out. The
 * three functions derive it from the parameters or else the node, from the parameters alone, and from the node
 * alone. */
const char *fe_operator_module(const fe_job *job, const fe_operator *op);
const char *fe_operator_parameter_module(const fe_job *job, const fe_operator *op);
const char *fe_operator_scope(const fe_job *job, const fe_operator *op);

/* layers.c: sets each operator's block, from source names or from repetition. `sources` and `operators` have `count`
 * elements. */
void fe_job_find_layers(const fe_job *job, const fe_operator *sources, mdot_job_operator *operators, int count);

/* repeats.c: operators of a sequence, from `first` up to but excluding `end`. */
typedef struct fe_stretch {
    uint32_t first, end;
    uint64_t hash; /* for use by the code that compares stretches */
} fe_stretch;

/* Finds consecutive stretches of equal operator kinds, as many as fit into each run. `hash` is the number of the run,
 * and the stretches of a run are adjacent in `out`. Runs that cover the most operators come first, then those with the
 * shortest period. `out` holds up to `count` entries. Returns the number of stretches; 0 if memory runs out. */
uint32_t fe_find_repeats(const fe_job *job, const mdot_job_operator *operators, const uint32_t *kind, uint32_t count,
                         fe_stretch *out);

/* folded_norm_warnings.c: warns about a sequence that looks wrong as a whole, and sets the notes. */
void fe_job_warn_folded_norms(fe_job *job, const fe_operator *operators, int count);
