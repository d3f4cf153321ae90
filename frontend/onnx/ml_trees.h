/* ml_trees.h — the tree ensembles of ai.onnx.ml, as mdot.Trees and standard operators. Private to frontend/onnx. */
#ifndef FE_ML_TREES_H
#define FE_ML_TREES_H

#include "frontend/onnx/ml_writer.h"

mdot_status fe_ml_write_tree_regressor(const ml_writer *w);
mdot_status fe_ml_write_tree_classifier(const ml_writer *w);

#endif
