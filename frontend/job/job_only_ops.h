/* job_only_ops.h — job_only_ops.def as a table: operators of other tools. Private to frontend/job. */
#ifndef FE_JOB_ONLY_OPS_H
#define FE_JOB_ONLY_OPS_H

#include "ir/ops.h"

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
    FE_JOB_OP_BRANCHES,
    FE_JOB_OP_STOP
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

#endif
