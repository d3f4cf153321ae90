/* index.h — concrete tensors viewed around an axis or through strides: helpers that the evaluators of data movement
 * share.
 *
 * The operator families in ir/ops/ use it besides the index helpers of families.h.
 */
#ifndef IR_OPS_INDEX_H
#define IR_OPS_INDEX_H

#include "ir/graph.h"

/* Product of dims[from] … dims[to - 1]. It is exact if the tensor has elements. For an empty tensor it may wrap, but
 * is then unused. */
static inline int64_t ir_product(const int64_t *dims, int from, int to)
{
    uint64_t product = 1;
    for (int i = from; i < to; i++) product *= (uint64_t)dims[i];
    return (int64_t)product;
}

/* A tensor around one axis: element (outer, k, inner) is at (outer * extent + k) * inner extent + inner. */
typedef struct ir_axis_view {
    int64_t outer, extent, inner;
} ir_axis_view;

ir_axis_view ir_view_axis(const ir_wide *wide, int axis);

/* Normalises an index from data: negative values count from the end. OUT_OF_RANGE, naming the node, beyond `extent`. */
mdot_status ir_wrap_index(const ir_node *node, int64_t index, int64_t extent, int64_t *out_index, mdot_error *err);

/* Copies `count` adjacent elements; both tensors have the same type of storage. */
void ir_copy_elements(ir_wide *target, int64_t to, const ir_wide *source, int64_t from, int64_t count);

/* target[index] = source[base + sum of index[i] * strides[i]] for every index of target. */
void ir_copy_strided(ir_wide *target, const ir_wide *source, int64_t base, const int64_t *strides);

#endif
