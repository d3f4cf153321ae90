/* split_einsum.h — Einsum as products of two operands. Private to frontend/job. */
#ifndef FE_SPLIT_EINSUM_H
#define FE_SPLIT_EINSUM_H

#include "ir/passes/builder.h"

/* A rule of fe_job_canonicalise. */
void fe_job_split_einsum(ir_builder *b, ir_node *node);

#endif
