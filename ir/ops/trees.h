/* trees.h — the constants of mdot.Trees: ensembles of decision trees in one form, whatever comparisons the model makes.
 *
 * Inputs: x [rows, features] of type T (f32 or f64), nodes I32 [count, words], trees I32 [count, 3], values T [count].
 * A node is a record:
 *
 *   f32, 4 words: threshold, feature, child, value
 *   f64, 6 words: threshold (low word, high word), feature, child, value, 0
 *
 * The threshold is the bit pattern of a T. A step from a node goes to node `child` if x'[feature] <= threshold, and
 * otherwise, also for NaN, to node `child + 1`. x'[2f] is x[f], and x'[2f + 1] is -x[f]. So one comparison expresses
 * all of ONNX's, with either direction for NaN: for example, x > t is -x <= the next number below -t. A leaf has a NaN
 * as its threshold and child + 1 is the leaf itself, so that further steps stay there. Therefore a tree is walked by a
 * fixed number of steps, its depth, without a test for leaves.
 *
 * A tree is {root, depth, target}. Its leaf's `value` is the position in `values` of the number that it contributes to
 * the target. If the target is -1, the leaf contributes to all targets, by as many consecutive values.
 *
 * Attributes: targets (default 1), and aggregate, which is SUM (default), MIN or MAX. Output: T [rows, targets]; a
 * target without trees is 0 for SUM and otherwise the neutral infinity.
 */
#ifndef IR_OPS_TREES_H
#define IR_OPS_TREES_H

#include "ir/ops/operands.h"

enum { IR_TREE_WORDS = 3, IR_TREE_ROOT = 0, IR_TREE_DEPTH, IR_TREE_TARGET };

typedef enum ir_aggregate { IR_AGGREGATE_SUM, IR_AGGREGATE_MIN, IR_AGGREGATE_MAX } ir_aggregate;

typedef struct ir_trees {
    mdot_dtype dtype; /* F32 or F64 */
    ir_dim rows;
    int64_t features, targets;
    ir_aggregate aggregate;
    int words; /* per node */
    int64_t node_count, tree_count, value_count;
    ir_operands from;
} ir_trees;

typedef struct ir_tree_node {
    double threshold;
    int64_t feature, child, value;
} ir_tree_node;

/* Reads and checks the operands of a node, so that every position in them is in range. MALFORMED names the fault. */
mdot_status ir_read_trees(const ir_operands *from, ir_trees *out);
/* For positions that a checked ensemble contains. */
ir_tree_node ir_trees_node(const ir_trees *trees, int64_t index);
int64_t ir_trees_tree(const ir_trees *trees, int64_t tree, int word); /* IR_TREE_… */

static inline int ir_tree_node_words(mdot_dtype dtype)
{
    return dtype == MDOT_DTYPE_F64 ? 6 : 4;
}

#endif
