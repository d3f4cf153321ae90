/* job_table.h — ir/ops_job.def as a table. Private to frontend/job. */
#ifndef FE_JOB_TABLE_H
#define FE_JOB_TABLE_H

#include "ir/ops.h"
#include "mdot/mdotjob.h"

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
    int parameter_operands;      /* number of leading operands that may be parameters */
} fe_row;

const fe_row *fe_row_at(ir_opcode opcode);
const fe_row *fe_row_of(const ir_node *node);

#endif
