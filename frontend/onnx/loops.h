/* loops.h — recognises PyTorch's EmbeddingBag in an ONNX file: a Loop over bags, each the sum of some rows of a
 * table.
 *
 * For each bag, the TorchScript exporter writes Slice (its indices) → Gather (rows of a table outside the loop) →
 * ReduceSum, ReduceMean or ReduceMax. The dynamo exporter gathers the rows of all bags before the loop and collects
 * the bags in a list: Slice → one of the three reductions, chosen by branches on a constant mode → SequenceInsert.
 * The job reader rewrites the loop in frontend/job/embedding_bag.c.
 */
#ifndef FE_LOOPS_H
#define FE_LOOPS_H

#include "onnx.pb-c.h"

#include <stdbool.h>

typedef struct fe_embedding_bags {
    /* Names of values outside the loop. `count` is the number of bags; NULL: the loop's trip count. `rows` holds the
     * rows of all bags; NULL: `indices` select them from `table`. */
    const char *count, *rows, *table, *indices;
    const char *op_type; /* the loop's operator type from then on: job_only_ops.def */
} fe_embedding_bags;

/* Is the loop's body that of an EmbeddingBag? */
bool fe_find_embedding_bags(const Onnx__GraphProto *body, fe_embedding_bags *out_bags);

#endif
