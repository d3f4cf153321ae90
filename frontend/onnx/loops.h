/* loops.h — PyTorch's EmbeddingBag in an ONNX file: a Loop over bags, each the sum of some rows of a table.
 *
 * The TorchScript exporter writes, for each bag, Slice (its indices) → Gather (rows of a table around the loop) →
 * ReduceSum, ReduceMean or ReduceMax. The dynamo exporter gathers the rows of all bags before the loop, whose bags go
 * into a list: Slice → one of the three, by branches on a constant mode → SequenceInsert. What a reader of jobs makes
 * of it stands in frontend/job/embedding_bag.c.
 */
#ifndef FE_LOOPS_H
#define FE_LOOPS_H

#include "onnx.pb-c.h"

#include <stdbool.h>

typedef struct fe_embedding_bags {
    /* Names of values around the loop. How many bags there are; NULL: as many as the loop turns. The rows of all, or
     * NULL: those of the table that indices pick. */
    const char *count, *rows, *table, *indices;
    const char *op_type; /* that the loop goes by from then on: job_only_ops.def */
} fe_embedding_bags;

/* Whether the loop's body is that of an EmbeddingBag. */
bool fe_find_embedding_bags(const Onnx__GraphProto *body, fe_embedding_bags *out_bags);

#endif
