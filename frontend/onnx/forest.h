/* forest.h — decision trees as a file gives them, and their form in mdot.Trees (ir/ops/trees.h). Private to
 * frontend/onnx. */
#ifndef FE_FOREST_H
#define FE_FOREST_H

#include "frontend/onnx/ml_writer.h"

typedef enum forest_mode {
    FOREST_LEQ,
    FOREST_LT,
    FOREST_GTE,
    FOREST_GT,
    FOREST_EQ,
    FOREST_NEQ,
    FOREST_LEAF
} forest_mode;

typedef struct forest_node {
    forest_mode mode;
    bool missing_is_true; /* NaN leads to `yes` */
    int64_t tree;         /* its number in the file, for messages */
    int64_t id;
    int64_t feature;
    double value;         /* the threshold */
    int64_t yes, no;      /* positions of the nodes behind a comparison that is true, or false */
    int64_t first, count; /* the weights of a leaf */
} forest_node;

typedef struct forest_weight {
    int64_t node, target;
    double value;
} forest_weight;

typedef struct forest {
    mdot_dtype dtype; /* of thresholds and weights: F32 or F64 */
    int64_t node_count, weight_count, root_count, target_count;
    forest_node *nodes;
    forest_weight *weights; /* those of a leaf are consecutive */
    const int64_t *roots;   /* positions of nodes */
    const char *aggregate;  /* "SUM", "MIN" or "MAX" */
    bool lacks_targets; /* set by fe_write_forest: a row may get no value for a target. MIN and MAX are infinite then */
} forest;

/* Writes mdot.Trees on `x`, of the forest's type. MALFORMED: the nodes are not trees, a target is out of range, or a
 * threshold is NaN. */
mdot_status fe_write_forest(const ml_writer *w, forest *f, ir_value *x, ir_value **out_sums);

#endif
