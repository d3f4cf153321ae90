/* ml_trees.h — the tree ensembles of ai.onnx.ml, as mdot.Trees and standard operators. Private to frontend/onnx. */
#ifndef FE_ML_TREES_H
#define FE_ML_TREES_H

#include "frontend/onnx/forest.h"

mdot_status fe_ml_write_tree_regressor(const ml_writer *w);
mdot_status fe_ml_write_tree_classifier(const ml_writer *w);
mdot_status fe_ml_write_tree_ensemble(const ml_writer *w); /* ml_tree_ensemble.c */

/* ---- Parts that these operators share ---------------------------------------------------------------------------- */

/* Numbers of an attribute, or of the tensor in attribute NAME_as_tensor. */
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

#endif
