/* fe_job.h — the data that the stages of the job reader share. Private to frontend/job.
 *
 * Every dimension of a job's graph is a number (fe_options.job), so costs can be computed. An unbound length is 1 by
 * default.
 *
 * Memory: everything lives in the graph's arena, which remembers a failed allocation. A stage allocates the arrays that
 * it indexes at the start, and returns at once if the arena has failed by then. Other failed allocations leave a name
 * or a node out, which the rest of the stage tolerates. job_read.c tests the arena once after each stage. */
#pragma once

#include "ir/graph.h"
#include "mdot/mdotjob.h"

typedef struct fe_parameters fe_parameters;

typedef struct fe_job {
    ir_graph *graph;
    fe_parameters *parameters;       /* the constants that training updates */
    const mdot_job_options *options; /* always set */
    int64_t batch;                   /* samples that the graph's dimensions represent */
    bool has_optimizer;
    mdot_optimizer optimizer;
    uint32_t notes;             /* MDOT_JOB_… */
    const int *gradient_count;  /* by value id: number of operators sending a gradient to the value */
    const bool *needs_gradient; /* by value id; set while operators are extracted */
    const bool *once;     /* by value id: computed once per forward pass, because it depends on parameters alone */
    mdot_job_check check; /* FLOPs of products, and operators without a formula */
    mdot_job_operator *operators; /* set by the last stage, in the graph's arena */
    size_t operator_count;
    mdot_job *result;   /* set by fe_job_finish */
    mdot_status status; /* set by a stage that fails for another reason than memory */
    mdot_error *err;
} fe_job;

/* One operator of the sequence: a node and the nodes merged into it. */
typedef struct fe_operator {
    const ir_node *node;
    const ir_value *result; /* result of the last merged node */
    const ir_value *bias;   /* parameter vector added to the result; NULL: absent */
    bool normalised;        /* a BatchNormalization follows */
    bool norm_frozen;       /* the BatchNormalization's scale is not trained */
    bool needs_data_gradient, needs_gradient;
} fe_operator;

/* The first output that exists; for an LSTM this may be the second one. NULL: the node has no output. */
static inline const ir_value *fe_first_output(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL) return node->outputs[i];
    return NULL;
}

/* ---- job_report.c: warnings of the job reader -------------------------------------------------------------------- */

void fe_job_warn(const fe_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
