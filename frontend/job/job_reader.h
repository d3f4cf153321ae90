/* job_reader.h — an imported training job → its operator sequence. Private to frontend/.
 *
 *   strip (forward graph) → infer (every value typed) → recognise (passes of ir/) → tokens → mdot_job_create
 *
 * Every dimension of a job's graph is a number (fe_options.job), so that costs are taken at any length, 1 by custom.
 */
#ifndef FE_JOB_READER_H
#define FE_JOB_READER_H

#include "ir/ops.h"
#include "ir/passes/builder.h"
#include "mdot/mdotjob.h"

typedef struct fe_parameters fe_parameters;

typedef struct fe_job {
    ir_graph *graph;
    fe_parameters *learnt;           /* which constants training learns */
    const mdot_job_options *options; /* never NULL */
    int64_t batch;                   /* samples that the graph's dimensions stand for */
    bool has_optimizer;
    mdot_optimizer optimizer;
    uint32_t notes;            /* MDOT_JOB_… */
    const int *gradient_count; /* by value id: how many operators hand the value a gradient; for loads */
    mdot_error *err;
} fe_job;

/* ---- Operators: job_table.c ----------------------------------------------------------------------------------------
 */

/* How the gradient of an operator's inputs is computed. */
typedef enum fe_gradient {
    FE_GRADIENT_NOTHING,    /* comparisons, indices: no gradient passes */
    FE_GRADIENT_POINTWISE,  /* reads the gradient and what was saved, computes about what the forward phase did */
    FE_GRADIENT_SUM,        /* hands the gradient on; where an operand was broadcast, sums it */
    FE_GRADIENT_MATMUL,     /* one product for the data, one for the weights, each as large as the forward one */
    FE_GRADIENT_NORM,       /* two passes over the row: the mean of the gradient, and its part along the data */
    FE_GRADIENT_BATCH_NORM, /* the same over the batch, with statistics that the forward phase computes in training */
    FE_GRADIENT_MOVE,       /* the move backwards */
    FE_GRADIENT_CONCAT,     /* views of the gradient: copied where no other gradient is added to them */
    FE_GRADIENT_SELECTION,  /* the gradient goes to where the forward phase took its element from */
    FE_GRADIENT_ATTENTION   /* products for queries, keys, values and scores: twice the forward ones */
} fe_gradient;

/* How an operator's configuration is read: which settings it has. settings.c has a function for each. */
typedef enum fe_settings {
    FE_SETTINGS_NOTHING,     /* inputs alone, which all have */
    FE_SETTINGS_CONVOLUTION, /* window, channels, sizes, groups, normalised, bias */
    FE_SETTINGS_POOL,        /* window, channels, sizes */
    FE_SETTINGS_GLOBAL_POOL, /* channels, sizes */
    FE_SETTINGS_CHANNELS,    /* channels, sizes, and groups or extent where it has them */
    FE_SETTINGS_MATMUL,      /* channels, sizes, bias; groups where both factors are data */
    FE_SETTINGS_ATTENTION,   /* heads, head_size, queries, keys */
    FE_SETTINGS_FIRST_AXIS,  /* axis and extent of its data, the first axis where it says nothing */
    FE_SETTINGS_LAST_AXIS,   /* the same, the last */
    FE_SETTINGS_RESULT_AXIS, /* the same of its result, the first */
    FE_SETTINGS_REDUCTION,   /* extent: elements reduced into one */
    FE_SETTINGS_RECURRENT,   /* channels, sizes, steps, directions, bias */
    FE_SETTINGS_COUNT
} fe_settings;

/* Traits that only the reader of jobs asks for, behind MDOT_TRAIT_…. */
enum { FE_FREE = 1 << 16, FE_FREE_FLOATS = 1 << 17, FE_NUMBERS = 1 << 18 };

typedef struct fe_row {
    ir_opcode type; /* the operator whose name it goes by */
    mdot_operator_traits traits;
    fe_gradient gradient;
    fe_settings settings;
    bool is_free;                /* moves no data: no operator of a sequence */
    bool is_free_between_floats; /* the same of a conversion between floating types */
    bool reads_numbers;          /* its constants are numbers that rules read, also where they look like weights */
    int learnt;                  /* its first so many operands may be parameters */
} fe_row;

const fe_row *fe_row_at(ir_opcode opcode);
const fe_row *fe_row_of(const ir_node *node);

/* ---- Operators of other tools: job_only_ops.c ----------------------------------------------------------------------- */

/* What is done with a node that has no row in ops.def; job_only_ops.def says what each means. */
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
    ir_opcode op;        /* of an alias, or of a reduction of bags */
    int inputs, outputs; /* of those, the first so many are kept */
} fe_job_op;

/* NULL: nothing is known of the node, or it has an operator of ops.def. */
const fe_job_op *fe_job_op_of(const ir_node *node);
fe_job_op_role fe_job_op_role_of(const ir_node *node);
/* A call of this is understood, whatever the file says that the function does. */
bool fe_job_op_is_alias(const char *domain, const char *op_type);

/* ---- Messages: job_report.c -----------------------------------------------------------------------------------------
 */

void fe_job_warn(const fe_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
mdot_status fe_job_out_of_memory(const fe_job *job);

/* ---- The graph, in the order of the pipeline ------------------------------------------------------------------------
 */

/* strip_backward.c: takes out what computes gradients and updates parameters, and puts forward operators that only
 * training graphs have into the form of others. Parameters that are inputs become constants without data. */
mdot_status fe_job_strip(fe_job *job);

/* parameter_inputs.c: parameters among the graph's inputs become constants without data, with a warning. */
mdot_status fe_job_take_inputs(fe_job *job);
/* The same of one input; false: memory is out. The graph's list of inputs is the caller's to mend. */
bool fe_become_parameter(const ir_graph *graph, ir_value *value);

/* strip_dropout.c: random masks are gone, and the data goes on without them. Before anything is typed. */
mdot_status fe_job_strip_dropout(fe_job *job);

/* sequences.c: the members of a list that a node makes stand for what reads them, once its input is typed. */
void fe_job_split_list(ir_builder *b, ir_node *node);

/* embedding_bag.c: the same for sums of embeddings, which a file spells as a loop. */
void fe_job_reduce_embedding_bags(ir_builder *b, ir_node *node);

/* shapes.c: types every value and folds constants. Unknown operators, and those whose rules fail, become
 * mdot.Opaque with a warning. What follows from parameters alone becomes a constant without data. */
mdot_status fe_job_infer(fe_job *job);
/* The last part of that again, for what passes made. */
mdot_status fe_job_fold_constants(fe_job *job);

/* unfold_batchnorm.c: marks nodes into which an exporter folded a BatchNormalization, before anything is folded here; and puts it
 * behind them again, once they are typed, with a warning. */
mdot_status fe_job_find_folded(fe_job *job);
mdot_status fe_job_unfold(fe_job *job);

/* canonicalise.c: one form for what is written in several. */
mdot_status fe_job_canonicalise(fe_job *job);

/* ---- Parameters: parameters.c ----------------------------------------------------------------------------------- */

/* Whether a model keeps something by this name that it does not learn. */
bool fe_is_buffer(const char *name);
/* Marks what the file holds of them. */
mdot_status fe_parameters_create(fe_job *job);
/* The constant with this id was computed from the node's inputs; false: memory is out. */
bool fe_parameters_derive(fe_parameters *learnt, const ir_node *node, int id);
/* Neither stored nor computed, but learnt: what training has and the file has not. False: memory is out. */
bool fe_parameters_add(fe_parameters *learnt, const ir_value *value);
/* A constant that training learns: floating, of more than one element. The value may be NULL. */
bool fe_is_parameter(const fe_job *job, const ir_value *value);
/* The same of an operand: neither statistics that a BatchNormalization tracks nor the scales of a Resize are. */
bool fe_learns(const fe_job *job, const ir_node *node, int input);
/* Parameters behind a constant that are not counted yet; `counted` has a place for each value id. */
double fe_parameter_count(const fe_job *job, const ir_value *value, bool *counted);

/* ---- Tokens ----------------------------------------------------------------------------------------------------- */

/* One operator of the sequence: a node and what was merged into it. */
typedef struct fe_operator {
    const ir_node *node;
    const ir_value *result; /* of the last merged node */
    const ir_value *bias;   /* learnt vector added to the result; NULL: none */
    bool normalised;        /* a BatchNormalization follows */
    bool needs_data_gradient, needs_gradient;
} fe_operator;

/* extract_operators.c: the graph's operators as a job. */
mdot_status fe_job_extract_operators(fe_job *job, mdot_job **out_job);

/* folded_norm_warnings.c: warns and notes what looks wrong with the whole. */
void fe_job_warn_folded_norms(fe_job *job, const fe_operator *tokens, int count);

/* settings.c */
void fe_operator_settings(const fe_job *job, const fe_operator *token, int64_t *setting);
/* The row of the operator by whose name jobs know the node: of several that spell one thing the canonical one, and
 * Linear for a product with a parameter. */
const fe_row *fe_type_row(const fe_job *job, const ir_node *node);

/* modules.c: the module that an operator stands in, in the graph's arena; NULL where its names say none. By its
 * parameters or else its node, by its parameters alone, and by its node alone. */
mdot_status fe_operator_module(const fe_job *job, const fe_operator *token, const char **out_module);
mdot_status fe_operator_parameter_module(const fe_job *job, const fe_operator *token, const char **out_module);
mdot_status fe_operator_scope(const fe_job *job, const fe_operator *token, const char **out_module);

/* Operators of a sequence, from `first` to before `end`. */
typedef struct fe_stretch {
    uint32_t first, end;
    uint64_t hash; /* of whoever compares stretches */
} fe_stretch;

/* repeats.c: stretches of the same kinds that follow each other, as many as fit into each run of them; their `hash` is
 * their run's number, and those of a run stand together. What covers most comes first, then what has the shortest
 * period. `out` has room for `count`. */
mdot_status fe_find_repeats(const fe_job *job, const mdot_job_operator *operators, const uint32_t *kind, uint32_t count,
                            fe_stretch *out, uint32_t *out_count);

/* layers.c: the block of each operator, by its token's names or what repeats. */
mdot_status fe_job_find_layers(const fe_job *job, const fe_operator *tokens, mdot_job_operator *operators, int count);

/* operator_costs.c: per_sample and per_step of all phases. */
void fe_operator_costs(const fe_job *job, const fe_operator *token, mdot_job_operator *op);
/* Whether a gradient of the node's result becomes one of its inputs. */
bool fe_has_gradient(const ir_node *node);

/* The first output that is there: of an LSTM it may be the second. NULL: none. */
static inline const ir_value *fe_first_output(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != NULL) return node->outputs[i];
    }
    return NULL;
}
/* The operand of a matrix product that is a parameter of rank 2; NULL: none. */
const ir_value *fe_matmul_weight(const fe_job *job, const ir_node *node);

#endif
