/* job_reader.h — from an imported training job to its operator sequence. Private to frontend/.
 *
 *   strip (forward graph) → infer (every value typed) → recognise (passes of ir/) → tokens → mdot_job_create
 *
 * Every dimension of a job's graph is a number (fe_options.job), so that costs can be computed. An unbound length is
 * 1 by default.
 */
#ifndef FE_JOB_READER_H
#define FE_JOB_READER_H

#include "ir/ops.h"
#include "ir/passes/builder.h"
#include "mdot/mdotjob.h"

typedef struct fe_parameters fe_parameters;

typedef struct fe_job {
    ir_graph *graph;
    fe_parameters *learnt;           /* the constants that training updates */
    const mdot_job_options *options; /* always set */
    int64_t batch;                   /* samples that the graph's dimensions represent */
    bool has_optimizer;
    mdot_optimizer optimizer;
    uint32_t notes; /* MDOT_JOB_… */
    const int *
        gradient_count; /* by value id: number of operators that send a gradient to the value; used by operator_costs.c */
    mdot_error *err;
} fe_job;

/* ---- Operators: job_table.c ----------------------------------------------------------------------------------------
 */

/* How to compute the gradient of an operator's inputs. */
typedef enum fe_gradient {
    FE_GRADIENT_NOTHING,    /* zero gradient: comparisons, indices */
    FE_GRADIENT_POINTWISE,  /* reads the gradient and the saved tensors, computes about as much as the forward phase */
    FE_GRADIENT_SUM,        /* passes the gradient on; sums it over the axes in which an operand was broadcast */
    FE_GRADIENT_MATMUL,     /* one matmul for the data and one for the weights, each as large as the forward one */
    FE_GRADIENT_NORM,       /* two passes over the row: the mean of the gradient, and its component along the data */
    FE_GRADIENT_BATCH_NORM, /* like NORM over the batch, with statistics that the forward phase computes in training */
    FE_GRADIENT_MOVE,       /* the reverse move */
    FE_GRADIENT_CONCAT,     /* views of the gradient, copied only where another gradient is added to them */
    FE_GRADIENT_SELECTION,  /* sends the gradient to the element that the forward phase selected */
    FE_GRADIENT_ATTENTION   /* matmuls for queries, keys, values and scores: twice as many as in the forward phase */
} fe_gradient;

/* The attributes that are read from an operator. settings.c has one function for each entry. */
typedef enum fe_settings {
    FE_SETTINGS_NOTHING,     /* only the inputs, which every operator has */
    FE_SETTINGS_CONVOLUTION, /* window, channels, sizes, groups, normalised, bias */
    FE_SETTINGS_POOL,        /* window, channels, sizes */
    FE_SETTINGS_GLOBAL_POOL, /* channels, sizes */
    FE_SETTINGS_CHANNELS,    /* channels, sizes, and groups or extent if the operator has them */
    FE_SETTINGS_MATMUL,      /* channels, sizes, bias; groups if both factors are data */
    FE_SETTINGS_ATTENTION,   /* heads, head_size, queries, keys */
    FE_SETTINGS_FIRST_AXIS,  /* axis and extent of the data; default: the first axis */
    FE_SETTINGS_LAST_AXIS,   /* axis and extent of the data; default: the last axis */
    FE_SETTINGS_RESULT_AXIS, /* axis and extent of the result; default: the first axis */
    FE_SETTINGS_REDUCTION,   /* extent: number of elements reduced into one */
    FE_SETTINGS_RECURRENT,   /* channels, sizes, steps, directions, bias */
    FE_SETTINGS_COUNT
} fe_settings;

/* Traits that only the job reader uses, stored above the bits of MDOT_TRAIT_…. */
enum { FE_FREE = 1 << 16, FE_FREE_FLOATS = 1 << 17, FE_NUMBERS = 1 << 18 };

typedef struct fe_row {
    ir_opcode type; /* the canonical operator, which gives the name in a job */
    mdot_operator_traits traits;
    fe_gradient gradient;
    fe_settings settings;
    bool is_free;                /* moves no data: left out of the operator sequence */
    bool is_free_between_floats; /* free if it converts between floating types */
    bool reads_numbers;          /* its constants are numbers that rules read, even if they look like weights */
    int learnt;                  /* number of leading operands that may be parameters */
} fe_row;

const fe_row *fe_row_at(ir_opcode opcode);
const fe_row *fe_row_of(const ir_node *node);

/* ---- Operators of other tools: job_only_ops.c ----------------------------------------------------------------------- */

/* The treatment of a node that has no row in ops.def. job_only_ops.def explains each role. */
typedef enum fe_job_op_role {
    FE_JOB_OP_NONE,
    FE_JOB_OP_BACKWARD,
    FE_JOB_OP_YIELD,
    FE_JOB_OP_UPDATE,
    FE_JOB_OP_SGD,
    FE_JOB_OP_ADAM,
    FE_JOB_OP_ADAMW,
    FE_JOB_OP_ALIAS,
    FE_JOB_OP_UNIFORM,
    FE_JOB_OP_MASK,
    FE_JOB_OP_SPLIT,
    FE_JOB_OP_MEMBER,
    FE_JOB_OP_EMBEDDING_BAGS,
    FE_JOB_OP_JOIN,
    FE_JOB_OP_BRANCHES
} fe_job_op_role;

typedef struct fe_job_op {
    const char *domain, *op_type, *function;
    fe_job_op_role role;
    ir_opcode op;        /* target of an alias, or the reduction of an embedding bag */
    int inputs, outputs; /* number of leading inputs and outputs that are used */
} fe_job_op;

/* NULL: the node is unknown, or it has an operator of ops.def. */
const fe_job_op *fe_job_op_of(const ir_node *node);
fe_job_op_role fe_job_op_role_of(const ir_node *node);
/* Is the function a known alias? Then a call of it stays a call, regardless of the body that the file defines. */
bool fe_job_op_is_alias(const char *domain, const char *op_type);

/* ---- Messages: job_report.c -----------------------------------------------------------------------------------------
 */

void fe_job_warn(const fe_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
mdot_status fe_job_out_of_memory(const fe_job *job);

/* ---- The graph, in the order of the pipeline ------------------------------------------------------------------------
 */

/* strip_backward.c: removes the nodes that compute gradients and update parameters, and rewrites forward operators that
 * occur only in training graphs. Parameters that are graph inputs become constants without data. */
mdot_status fe_job_strip(fe_job *job);

/* parameter_inputs.c: turns parameters among the graph's inputs into constants without data, and warns. */
mdot_status fe_job_take_inputs(fe_job *job);
/* Does this for one input. False: out of memory. The caller updates the graph's list of inputs. */
bool fe_become_parameter(const ir_graph *graph, ir_value *value);

/* strip_dropout.c: removes random masks (dropout) so that the data bypasses them. Runs before types are inferred. */
mdot_status fe_job_strip_dropout(fe_job *job);

/* sequences.c: replaces the results of a node that makes a list by the list's members, once its input is typed. */
void fe_job_split_list(ir_builder *b, ir_node *node);

/* embedding_bag.c: replaces a loop that sums embeddings by a Gather and a reduction. */
void fe_job_reduce_embedding_bags(ir_builder *b, ir_node *node);

/* shapes.c: infers the type of every value and folds constants. Unknown operators and operators whose rules fail
 * become mdot.Opaque, with a warning. Values that depend on parameters alone become constants without data. */
mdot_status fe_job_infer(fe_job *job);
/* Repeats the last part of fe_job_infer, for the nodes that passes made. */
mdot_status fe_job_fold_constants(fe_job *job);

/* unfold_batchnorm.c: fe_job_find_folded marks nodes into which an exporter folded a BatchNormalization; it runs before any
 * constant is folded here. Once types are known, fe_job_unfold inserts the BatchNormalization behind them again and
 * warns. */
mdot_status fe_job_find_folded(fe_job *job);
mdot_status fe_job_unfold(fe_job *job);

/* canonicalise.c: rewrites equivalent patterns into one canonical form. */
mdot_status fe_job_canonicalise(fe_job *job);

/* ---- Parameters: parameters.c ----------------------------------------------------------------------------------- */

/* Is this the name of a buffer, a tensor that the model keeps without training it? */
bool fe_is_buffer(const char *name);
/* Marks the parameters that the file stores. */
mdot_status fe_parameters_create(fe_job *job);
/* Records that the constant with this id was computed from the node's inputs. False: out of memory. */
bool fe_parameters_derive(fe_parameters *learnt, const ir_node *node, int id);
/* Adds a parameter that training has but the file neither stores nor computes. False: out of memory. */
bool fe_parameters_add(fe_parameters *learnt, const ir_value *value);
/* Is the value a parameter, that is, a trained floating constant of more than one element? The value may be NULL. */
bool fe_is_parameter(const fe_job *job, const ir_value *value);
/* Is the operand a parameter of this node? The running statistics of a BatchNormalization and the scales of a Resize
 * are excluded. */
bool fe_learns(const fe_job *job, const ir_node *node, int input);
/* Number of parameters behind a constant that are still uncounted. `counted` has one entry per value id. */
double fe_parameter_count(const fe_job *job, const ir_value *value, bool *counted);

/* ---- Tokens ----------------------------------------------------------------------------------------------------- */

/* One operator of the sequence: a node and the nodes merged into it. */
typedef struct fe_operator {
    const ir_node *node;
    const ir_value *result; /* result of the last merged node */
    const ir_value *bias;   /* parameter vector added to the result; NULL: absent */
    bool normalised;        /* a BatchNormalization follows */
    bool needs_data_gradient, needs_gradient;
} fe_operator;

/* extract_operators.c: converts the graph's operators into a job. */
mdot_status fe_job_extract_operators(fe_job *job, mdot_job **out_job);

/* folded_norm_warnings.c: warns about a sequence that looks wrong as a whole, and sets the notes. */
void fe_job_warn_folded_norms(fe_job *job, const fe_operator *tokens, int count);

/* settings.c: the attributes of an operator. */
void fe_operator_settings(const fe_job *job, const fe_operator *token, int64_t *setting);
/* The row whose name jobs use for the node: the canonical row of equivalent operators, and Linear for a matmul with a
 * parameter. */
const fe_row *fe_type_row(const fe_job *job, const ir_node *node);

/* modules.c: the module of an operator, in the graph's arena; NULL if its names contain none. The three functions
 * derive it from the parameters or else the node, from the parameters alone, and from the node alone. */
mdot_status fe_operator_module(const fe_job *job, const fe_operator *token, const char **out_module);
mdot_status fe_operator_parameter_module(const fe_job *job, const fe_operator *token, const char **out_module);
mdot_status fe_operator_scope(const fe_job *job, const fe_operator *token, const char **out_module);

/* Operators of a sequence, from `first` up to but excluding `end`. */
typedef struct fe_stretch {
    uint32_t first, end;
    uint64_t hash; /* for use by the code that compares stretches */
} fe_stretch;

/* repeats.c: finds consecutive stretches of equal operator kinds, as many as fit into each run. `hash` is the number
 * of the run, and the stretches of a run are adjacent in `out`. Runs that cover the most operators come first, then
 * those with the shortest period. `out` holds up to `count` entries. */
mdot_status fe_find_repeats(const fe_job *job, const mdot_job_operator *operators, const uint32_t *kind, uint32_t count,
                            fe_stretch *out, uint32_t *out_count);

/* layers.c: the block of each operator, from the names of its token or from repetition. */
mdot_status fe_job_find_layers(const fe_job *job, const fe_operator *tokens, mdot_job_operator *operators, int count);

/* operator_costs.c: computes per_sample and per_step of all phases. */
void fe_operator_costs(const fe_job *job, const fe_operator *token, mdot_job_operator *op);
/* Does a gradient of the node's result reach one of its inputs? */
bool fe_has_gradient(const ir_node *node);

/* The first output that exists; for an LSTM this may be the second one. NULL: the node has no output. */
static inline const ir_value *fe_first_output(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != NULL) return node->outputs[i];
    }
    return NULL;
}
/* The operand of a matmul that is a parameter of rank 2; NULL if there is none. */
const ir_value *fe_matmul_weight(const fe_job *job, const ir_node *node);

#endif
