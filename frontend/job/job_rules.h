/* job_rules.h — rules that rewrite one node, for the stages. */
#pragma once

#include "ir/passes/graph_builder.h"

/* embedding_bag.c: replaces a loop that sums embeddings by a Gather and a reduction. */
void fe_job_reduce_embedding_bags(ir_builder *b, ir_node *node);

/* sequences.c: replaces a list-making node's results by the list's members, once the input is typed. */
void fe_job_split_list(ir_builder *b, ir_node *node);

/* split_einsum.c: a rule of fe_job_canonicalise. */
void fe_job_split_einsum(ir_builder *b, ir_node *node);
