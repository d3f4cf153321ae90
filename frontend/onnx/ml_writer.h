/* ml_writer.h — the parts from which operators of ai.onnx.ml are written, and the scores and labels that their models
 * share. Private to frontend/onnx.
 *
 * Functions that return a value return NULL if memory runs out, or if an input is NULL. So only the last value of an
 * expression needs a check.
 */
#pragma once

#include "frontend/onnx/graph_edit.h"

typedef struct ml_writer {
    fe_upgrader *u;
    ir_node *node; /* the node to rewrite, which becomes the result's last node */
} ml_writer;

/* Reports the file, the node and its operator. */
mdot_status fe_ml_fail(const ml_writer *w, mdot_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A list attribute. `out_count` is 0 if it is absent or empty. MALFORMED: it has another type. */
mdot_status fe_ml_floats(const ml_writer *w, const char *name, const double **out_values, int64_t *out_count);
mdot_status fe_ml_ints(const ml_writer *w, const char *name, const int64_t **out_values, int64_t *out_count);

static inline ir_value *fe_ml_add1(const ml_writer *w, ir_opcode op, ir_value *x)
{
    return fe_add(w->u, w->node, op, &x, 1, IR_NO_ATTRS);
}
static inline ir_value *fe_ml_add2(const ml_writer *w, ir_opcode op, ir_value *x, ir_value *y)
{
    return fe_add(w->u, w->node, op, IR_VALUES(x, y), IR_NO_ATTRS);
}
ir_value *fe_ml_scalar(const ml_writer *w, const char *what, double value);
ir_value *fe_ml_vector(const ml_writer *w, const char *what, const double *values, int64_t count);
ir_value *fe_ml_cast(const ml_writer *w, ir_value *x, mdot_dtype dtype);
/* Reduces along the last axis, and keeps it with extent 1. */
ir_value *fe_ml_reduce(const ml_writer *w, ir_opcode op, ir_value *x);
ir_value *fe_ml_where(const ml_writer *w, ir_value *condition, ir_value *yes, ir_value *no);

/* 0, 1, … along dimension `axis` of x, as a vector (composites.c). */
ir_value *fe_positions(const ml_writer *w, ir_value *x, int64_t axis);

/* Turns the node into the outputs `values`; those that the node lacks are left out. */
mdot_status fe_ml_finish(const ml_writer *w, ir_value *const *values, int count);

/* ---- Scores (ml_scores.c) ---------------------------------------------------------------------------------------- */

typedef enum ml_transform { ML_NONE, ML_SOFTMAX, ML_LOGISTIC, ML_SOFTMAX_ZERO, ML_PROBIT } ml_transform;

/* Attribute `post_transform`. UNSUPPORTED: an unknown name. */
mdot_status fe_ml_read_transform(const ml_writer *w, ml_transform *out_transform);
/* Applies the transform to scores of several classes or targets, [rows, classes]. */
ir_value *fe_ml_transform_scores(const ml_writer *w, ml_transform transform, ir_value *scores);
/* Class labels, which are integers. UNSUPPORTED: strings. `ints` and `strings` are attribute names. */
mdot_status fe_ml_read_labels(const ml_writer *w, const char *ints, const char *strings, const int64_t **out_labels,
                              int64_t *out_count);
/* Each row's label by the greatest score; the first of equal ones. */
ir_value *fe_ml_best_label(const ml_writer *w, ir_value *scores, const int64_t *labels, int64_t count);
/* The second label where the only score of a row exceeds the limit, otherwise the first. score: [rows, 1]. */
ir_value *fe_ml_binary_label(const ml_writer *w, ir_value *score, double limit, const int64_t *labels);
/* The scores of two classes from the only score s: [first(s), second(s)] in each row. */
ir_value *fe_ml_pair(const ml_writer *w, ir_value *first, ir_value *second);

/* ---- forest.c: decision trees as a file gives them, and their form in mdot.Trees (ir/ops/mdot_ops.h). */

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
    int64_t yes, no;      /* next nodes for a true and a false comparison */
    int64_t first, count; /* a leaf's weights */
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

/* ---- The writers of ml_operators.c's table ---------------------------------------------------------------------- */

typedef mdot_status fe_ml_write_fn(const ml_writer *w);
/* ml_trees.c and ml_tree_ensemble.c: the tree ensembles of ai.onnx.ml, as mdot.Trees and standard operators. */
fe_ml_write_fn fe_ml_write_tree_regressor, fe_ml_write_tree_classifier, fe_ml_write_tree_ensemble;
/* ml_preprocessing.c: encoders, imputation, feature vectors and support vectors. */
fe_ml_write_fn fe_ml_write_one_hot_encoder, fe_ml_write_label_encoder, fe_ml_write_imputer,
    fe_ml_write_feature_vectorizer, fe_ml_write_svm_regressor, fe_ml_write_svm_classifier;
/* composites.c: operators of other domains that consist of standard ones. */
fe_ml_write_fn fe_ml_write_hardmax, fe_ml_write_reverse_sequence, fe_ml_write_fused_conv;

/* ---- Parts that these operators share ---------------------------------------------------------------------------- */

/* Numbers from an attribute, or from the tensor in NAME_as_tensor. */
typedef struct ml_reals {
    const char *name;
    double *at;
    int64_t count;
    bool is_double;
} ml_reals;

/* A tensor of floats in attribute `name`, as doubles. Absent: count 0. MALFORMED: it has another type. */
mdot_status fe_ml_read_tensor(const ml_writer *w, const char *name, ml_reals *list);
mdot_status fe_ml_check_target_count(const ml_writer *w, int64_t count);
mdot_status fe_ml_check_tree_transform(const ml_writer *w, const forest *f, ml_transform transform);
/* Aggregates the trees and adds the base values, in the forest's type. Results are of type `result`. */
mdot_status fe_ml_write_tree_sums(const ml_writer *w, forest *f, bool averages, const ml_reals *base, mdot_dtype result,
                                  ir_value **out_sums);
