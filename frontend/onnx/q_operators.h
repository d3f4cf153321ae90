/* q_operators.h — operators on bytes with scales. Private to frontend/onnx. */
#ifndef FE_Q_OPERATORS_H
#define FE_Q_OPERATORS_H

#include "frontend/onnx/upgrade.h"

/* If `node`, the last of the graph, is an unknown operator on bytes with scales, rewrites it as
 * dequantisation, an operator on floats and quantisation. Otherwise it stays. MALFORMED, OUT_OF_MEMORY. */
mdot_status fe_write_q_operator(fe_upgrader *u, ir_node *node);

#endif
