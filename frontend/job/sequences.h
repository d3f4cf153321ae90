/* sequences.h — lists of tensors. Private to frontend/job. */
#ifndef FE_SEQUENCES_H
#define FE_SEQUENCES_H

#include "ir/passes/builder.h"

/* Replaces the results of a node that makes a list by the list's members, once its input is typed. */
void fe_job_split_list(ir_builder *b, ir_node *node);

#endif
