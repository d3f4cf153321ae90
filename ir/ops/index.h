/* index.h — concrete tensors seen around an axis or through strides: what the evaluators of data movement share.
 *
 * Used by the operator families in ir/ops/, next to the index helpers of families.h.
 */
#ifndef IR_OPS_INDEX_H
#define IR_OPS_INDEX_H

#include "ir/graph.h"

/* Product of dims[from] … dims[to - 1]. It does not overflow where the tensor has elements; where it has none, it may
 * wrap and is never used to reach one. */
static inline int64_t ir_matmul(const int64_t *dims, int from, int to)
{
    uint64_t product = 1;
    for (int i = from; i < to; i++) product *= (uint64_t)dims[i];
    return (int64_t)product;
}

/* A tensor around one axis: element (outer, k, inner) lies at (outer * extent + k) * inner extent + inner. */
typedef struct ir_axis_view {
    int64_t outer, extent, inner;
} ir_axis_view;

ir_axis_view ir_view_axis(const ir_wide *wide, int axis);

/* An index from data: negative ones count from the end; OUT_OF_RANGE, naming the node, beyond `extent`. */
mdot_status ir_wrap_index(const ir_node *node, int64_t index, int64_t extent, int64_t *out_index, mdot_error *err);

/* Copies `count` adjacent elements; both tensors have the same kind of storage. */
void ir_copy_elements(ir_wide *target, int64_t to, const ir_wide *source, int64_t from, int64_t count);

/* target[index] = source[base + sum of index[i] * strides[i]] for every index of target. */
void ir_copy_strided(ir_wide *target, const ir_wide *source, int64_t base, const int64_t *strides);

#endif
