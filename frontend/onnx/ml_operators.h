/* ml_operators.h — rewrites operators of ai.onnx.ml, which scikit-learn, LightGBM and XGBoost export. Private to
 * frontend/. */
#ifndef FE_ML_OPERATORS_H
#define FE_ML_OPERATORS_H

#include "frontend/onnx/graph_edit.h"

/* Rewrites `node`, the last of the graph, whose op is NULL, if it is a known operator of ai.onnx.ml. Trees become
 * mdot.Trees; all others become standard operators. Nodes may be added around it. MALFORMED and UNSUPPORTED name the
 * node, the reason and the remedy. Other nodes stay as they are. */
mdot_status fe_write_ml_operator(const fe_upgrader *u, ir_node *node);

#endif
