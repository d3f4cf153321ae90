/* topological_order.h — definitions and order of the nodes of a flat graph. Private to frontend/onnx. */
#ifndef FE_TOPOLOGICAL_ORDER_H
#define FE_TOPOLOGICAL_ORDER_H

#include "frontend/onnx/flat.h"

/* Defines values: first the graph's initializers and inputs, then the outputs of every node. MALFORMED if a value has
 * a second definition. */
mdot_status fe_define_values(const fe_context *context, const Onnx__GraphProto *graph, fe_flat *flat);
/* Sets `order`; a topological order in the file is kept. MALFORMED for undefined inputs and for cycles. */
mdot_status fe_order_nodes(const fe_context *context, fe_flat *flat);

#endif
