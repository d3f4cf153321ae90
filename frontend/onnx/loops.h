/* loops.h — PyTorch's EmbeddingBag in an ONNX file: a Loop over bags, each the sum of some rows of a table.
 *
 * The TorchScript exporter writes, for each bag, Slice (its indices) → Gather (rows of a table around the loop) →
 * ReduceSum, ReduceMean or ReduceMax. What a reader of jobs makes of it stands in frontend/job/bags.c.
 */
#ifndef FE_LOOPS_H
#define FE_LOOPS_H

#include "onnx.pb-c.h"

#include <stdbool.h>

typedef struct fe_bags {
    const char *table, *indices; /* names of values around the loop */
    const char *op_type;         /* that the loop goes by from then on: foreign.def */
} fe_bags;

/* Whether the loop's body is that of an EmbeddingBag. */
bool fe_find_bags(const Onnx__GraphProto *body, fe_bags *out_bags);

#endif
