/* settings.h — the type and the attributes of an operator. Private to frontend/job. */
#ifndef FE_SETTINGS_H
#define FE_SETTINGS_H

#include "frontend/job/fe_job.h"
#include "frontend/job/job_table.h"

/* Writes the attributes of an operator. */
void fe_operator_settings(const fe_job *job, const fe_operator *op, int64_t *setting);
/* The row whose name jobs use for the node: the canonical row of equivalent operators, and Linear for a matmul with a
 * parameter. */
const fe_row *fe_type_row(const fe_job *job, const ir_node *node);
/* The operand of a matmul that is a parameter of rank 2; NULL if there is none. */
const ir_value *fe_matmul_weight(const fe_job *job, const ir_node *node);

#endif
