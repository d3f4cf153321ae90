/* embedding_bag.h — loops that sum embeddings. Private to frontend/job. */
#ifndef FE_EMBEDDING_BAG_H
#define FE_EMBEDDING_BAG_H

#include "ir/passes/builder.h"

/* Replaces a loop that sums embeddings by a Gather and a reduction. */
void fe_job_reduce_embedding_bags(ir_builder *b, ir_node *node);

#endif
