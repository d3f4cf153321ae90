/* job_only_ops.c — job_only_ops.def as a table: how the job reader treats operators that ir/ops.def lacks. */
#include "frontend/job/job_tables.h"

#include <limits.h>
#include <string.h>

enum { ALL = INT_MAX };

static const fe_job_op rows[] = {
#define JOB_ONLY_OP(in_domain, name, callee, op_role, target, kept_inputs, kept_outputs)                               \
    {.domain = in_domain,                                                                                              \
     .op_type = name,                                                                                                  \
     .function = callee,                                                                                               \
     .role = FE_JOB_OP_##op_role,                                                                                      \
     .op = IR_OP_##target,                                                                                             \
     .inputs = kept_inputs,                                                                                            \
     .outputs = kept_outputs},
#include "frontend/job/job_only_ops.def"
};

/* A * in the pattern matches any characters. */
static bool matches(const char *pattern, const char *text)
{
    for (; *pattern != '*'; pattern++, text++) {
        if (*pattern != *text) return false;
        if (!*text) return true;
    }
    do {
        if (matches(pattern + 1, text)) return true;
    } while (*text++);
    return false;
}

static bool matches_domain(const fe_job_op *row, const char *domain, size_t length)
{
    if (strcmp(row->domain, "*") == 0) return length > 0;
    return strlen(row->domain) == length && memcmp(row->domain, domain, length) == 0;
}

const fe_job_op *fe_job_op_of(const ir_node *node)
{
    if (node->op != NULL) return NULL;
    const char *colon = strchr(node->op_type, ':');
    const char *name = colon != NULL ? colon + 1 : node->op_type;
    size_t domain_length = colon != NULL ? (size_t)(colon - node->op_type) : 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const fe_job_op *row = &rows[i];
        if (!matches(row->op_type, name) || !matches_domain(row, node->op_type, domain_length)) continue;
        if (row->function == NULL || matches(row->function, ir_node_string(node, "operator", ""))) return row;
    }
    return NULL;
}

fe_job_op_role fe_job_op_role_of(const ir_node *node)
{
    const fe_job_op *row = fe_job_op_of(node);
    return row != NULL ? row->role : FE_JOB_OP_NONE;
}

bool fe_job_op_is_alias(const char *domain, const char *op_type)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].role != FE_JOB_OP_ALIAS || strcmp(rows[i].domain, domain) != 0) continue;
        if (strcmp(rows[i].op_type, op_type) == 0) return true;
    }
    return false;
}
