/* job_tables.h — tables of the job reader: costs and gradients by operator, and operators found in jobs only. */
#pragma once

#include "ir/ops.h"
#include "mdot/mdotjob.h"

/* ---- job_table.c: ir/ops_job.def as a table ---------------------------------------------------------------------- */

/* How to compute the gradient of an operator's inputs. */
typedef enum fe_gradient {
    FE_GRADIENT_NOTHING,    /* zero gradient: comparisons, indices */
    FE_GRADIENT_POINTWISE,  /* reads the gradient and the saved tensors, computes about as much as the forward phase */
    FE_GRADIENT_SUM,        /* passes the gradient on; sums it over the axes in which an operand was broadcast */
    FE_GRADIENT_MATMUL,     /* one matmul for the data and one for the weights, each as large as the forward one */
    FE_GRADIENT_NORM,       /* two passes over the row: the gradient's mean, and the component along the data */
    FE_GRADIENT_BATCH_NORM, /* like NORM over the batch, with statistics that the forward phase computes in training */
    FE_GRADIENT_MOVE,       /* the reverse move */
    FE_GRADIENT_CONCAT,     /* views of the gradient, copied only where another gradient is added to them */
    FE_GRADIENT_SELECTION,  /* sends the gradient to the element that the forward phase selected */
    FE_GRADIENT_ATTENTION   /* matmuls for queries, keys, values and scores: twice as many as in the forward phase */
} fe_gradient;

/* The attributes read from an operator. settings.c has one function for each entry. */
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

/* Traits for the job reader alone, above the bits of MDOT_TRAIT_…. */
enum { FE_FREE = 1 << 16, FE_FREE_FLOATS = 1 << 17, FE_NUMBERS = 1 << 18 };

typedef struct fe_row {
    ir_opcode type; /* the canonical operator, which gives the name in a job */
    mdot_operator_traits traits;
    fe_gradient gradient;
    fe_settings settings;
    bool is_free;                /* moves no data: left out of the operator sequence */
    bool is_free_between_floats; /* free if it converts between floating types */
    bool reads_numbers;          /* constants are numbers read by rules, even if they look like weights */
    int parameter_operands;      /* leading operands that may be parameters */
} fe_row;

const fe_row *fe_row_at(ir_opcode opcode);
const fe_row *fe_row_of(const ir_node *node);

/* ---- job_only_ops.c: job_only_ops.def as a table: operators of other tools --------------------------------------- */

/* Treatment of nodes without a row in ops.def. job_only_ops.def explains each role. */
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
    FE_JOB_OP_BRANCHES,
    FE_JOB_OP_STOP,
    FE_JOB_OP_VIEW,
    FE_JOB_OP_CALL
} fe_job_op_role;

typedef struct fe_job_op {
    const char *domain, *op_type, *function;
    fe_job_op_role role;
    ir_opcode op;        /* target of an alias, or the reduction of an embedding bag */
    int inputs, outputs; /* number of leading inputs and outputs in use */
} fe_job_op;

/* NULL: the node is unknown, or it has an operator of ops.def. */
const fe_job_op *fe_job_op_of(const ir_node *node);
fe_job_op_role fe_job_op_role_of(const ir_node *node);
/* Is the function a known alias? Then a call stays a call, regardless of the file's definition. */
bool fe_job_op_is_alias(const char *domain, const char *op_type);
