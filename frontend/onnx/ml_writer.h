/* ml_writer.h — the parts from which operators of ai.onnx.ml are written, and the scores and labels that their models
 * share. Private to frontend/onnx.
 *
 * Functions that return a value return NULL if memory runs out, or if an input is NULL. So only the last value of an
 * expression needs a check.
 */
#ifndef FE_ML_WRITER_H
#define FE_ML_WRITER_H

#include "frontend/onnx/graph_edit.h"

typedef struct ml_writer {
    const fe_upgrader *u;
    ir_node *node; /* the node to rewrite, which becomes the last node of the result */
} ml_writer;

/* Reports the file, the node and its operator. */
mdot_status fe_ml_fail(const ml_writer *w, mdot_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A list attribute. `out_count` is 0 if it is absent or empty. MALFORMED: it has another type. */
mdot_status fe_ml_floats(const ml_writer *w, const char *name, const double **out_values, int64_t *out_count);
mdot_status fe_ml_ints(const ml_writer *w, const char *name, const int64_t **out_values, int64_t *out_count);

ir_value *fe_ml_add1(const ml_writer *w, ir_opcode op, ir_value *x);
ir_value *fe_ml_add2(const ml_writer *w, ir_opcode op, ir_value *x, ir_value *y);
ir_value *fe_ml_scalar(const ml_writer *w, const char *what, double value);
ir_value *fe_ml_vector(const ml_writer *w, const char *what, const double *values, int64_t count);
ir_value *fe_ml_cast(const ml_writer *w, ir_value *x, mdot_dtype dtype);
/* Reduces along the last axis, which stays with an extent of 1. */
ir_value *fe_ml_reduce(const ml_writer *w, ir_opcode op, ir_value *x);
ir_value *fe_ml_where(const ml_writer *w, ir_value *condition, ir_value *yes, ir_value *no);

/* Turns the node into the outputs `values`; those that the node lacks are left out. */
mdot_status fe_ml_finish(const ml_writer *w, ir_value *const *values, int count);

/* ---- Scores (ml_scores.c) ---------------------------------------------------------------------------------------- */

typedef enum ml_transform { ML_NONE, ML_SOFTMAX, ML_LOGISTIC, ML_SOFTMAX_ZERO, ML_PROBIT } ml_transform;

/* Attribute `post_transform`. UNSUPPORTED: an unknown name. */
mdot_status fe_ml_read_transform(const ml_writer *w, ml_transform *out_transform);
/* Applies the transform to scores of several classes or targets, [rows, classes]. */
ir_value *fe_ml_transform_scores(const ml_writer *w, ml_transform transform, ir_value *scores);
/* Labels of classes, which are integers. UNSUPPORTED: strings. `ints` and `strings` are the names of the attributes. */
mdot_status fe_ml_read_labels(const ml_writer *w, const char *ints, const char *strings, const int64_t **out_labels,
                              int64_t *out_count);
/* The label of the greatest score in each row; the first of equal ones. */
ir_value *fe_ml_best_label(const ml_writer *w, ir_value *scores, const int64_t *labels, int64_t count);
/* The second label where the only score of a row exceeds the limit, otherwise the first. score: [rows, 1]. */
ir_value *fe_ml_binary_label(const ml_writer *w, ir_value *score, double limit, const int64_t *labels);
/* The scores of two classes from the only score s: [first(s), second(s)] in each row. */
ir_value *fe_ml_pair(const ml_writer *w, ir_value *first, ir_value *second);

#endif
