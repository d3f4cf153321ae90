/* job.h — an imported training job → its operator sequence. Private to frontend/.
 *
 *   strip (forward graph) → infer (every value typed) → recognise (passes of ir/) → tokens → mdot_job_create
 *
 * Every dimension of a job's graph is a number (fe_options.job), so that costs are taken at any length, 1 by custom.
 */
#ifndef FE_JOB_H
#define FE_JOB_H

#include "ir/ops.h"
#include "ir/passes/builder.h"
#include "mdot/mdotjob.h"

typedef struct fe_learnt fe_learnt;

typedef struct fe_job {
    ir_graph *graph;
    fe_learnt *learnt;               /* which constants training learns */
    const mdot_job_options *options; /* never NULL */
    int64_t batch;                   /* samples that the graph's dimensions stand for */
    bool has_optimizer;
    mdot_optimizer optimizer;
    const int *gradient_count; /* by value id: how many operators hand the value a gradient; for loads */
    mdot_error *err;
} fe_job;

void fe_job_warn(const fe_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
mdot_status fe_job_out_of_memory(const fe_job *job);

/* training.c: takes out what computes gradients and updates parameters, and puts forward operators that only
 * training graphs have into the form of others. Parameters that are inputs become constants without data. */
mdot_status fe_job_strip(fe_job *job);

/* noise.c: random masks are gone, and the data goes on without them. Before anything is typed. */
mdot_status fe_job_drop_noise(fe_job *job);

/* sequences.c: the members of a list that a node makes stand for what reads them, once its input is typed. */
void fe_job_split_list(ir_builder *b, ir_node *node);

/* shapes.c: types every value and folds constants. Unknown operators, and those whose rules fail, become
 * mdot.Opaque with a warning. What follows from parameters alone becomes a constant without data. */
mdot_status fe_job_infer(fe_job *job);
/* The last part of that again, for what passes made. */
mdot_status fe_job_freeze(fe_job *job);

/* forms.c: one form for what is written in several. */
mdot_status fe_job_unify(fe_job *job);

/* ---- Parameters: learnt.c ----------------------------------------------------------------------------------- */

/* Marks what the file holds of them. */
mdot_status fe_learnt_create(fe_job *job);
/* The constant with this id was computed from the node's inputs; false: memory is out. */
bool fe_learnt_derive(fe_learnt *learnt, const ir_node *node, int id);
/* A constant that training learns: floating, of more than one element. The value may be NULL. */
bool fe_is_parameter(const fe_job *job, const ir_value *value);
/* The same of an operand: neither statistics that a BatchNormalization tracks nor the scales of a Resize are. */
bool fe_learns(const fe_job *job, const ir_node *node, int input);
/* Parameters behind a constant that are not counted yet; `counted` has a place for each value id. */
double fe_parameter_count(const fe_job *job, const ir_value *value, bool *counted);

/* ---- Tokens ----------------------------------------------------------------------------------------------------- */

/* One operator of the sequence: a node and what was merged into it. */
typedef struct fe_token {
    const ir_node *node;
    const ir_value *result; /* of the last merged node */
    const ir_value *bias;   /* learnt vector added to the result; NULL: none */
    bool normalised;        /* a BatchNormalization follows */
    bool needs_data_gradient, needs_gradient;
    const char *type;
} fe_token;

/* tokens.c: the graph's operators as a job. */
mdot_status fe_job_tokens(fe_job *job, mdot_job **out_job);

/* settings.c */
void fe_token_settings(const fe_job *job, const fe_token *token, int64_t *setting);
/* The type's name: ONNX's, where several spell one thing the canonical one. */
const char *fe_token_type(const fe_job *job, const ir_node *node);

/* loads.c: per_sample and per_step of all phases. */
void fe_token_loads(const fe_job *job, const fe_token *token, mdot_job_operator *op);
/* Whether a gradient of the node's result becomes one of its inputs. */
bool fe_has_gradient(const ir_node *node);
/* Whether the node reads the same value in an input before this one. */
bool fe_occurs_before(const ir_node *node, int index);

/* The first output that is there: of an LSTM it may be the second. NULL: none. */
static inline const ir_value *fe_first_output(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i]) return node->outputs[i];
    }
    return NULL;
}
/* The operand of a matrix product that is a parameter of rank 2; NULL: none. */
const ir_value *fe_product_weight(const fe_job *job, const ir_node *node);

#endif
