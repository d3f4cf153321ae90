/* infer_graph.h — types every value of a graph, as the first pass does. */
#pragma once

#include "ir/ops.h"

static inline mdot_status ir_infer(ir_graph *graph, mdot_error *err)
{
    for (ir_node *node = graph->first; node != NULL; node = node->next) {
        mdot_status status = ir_infer_node(graph, node, err);
        if (status != MDOT_OK) return status;
    }
    return MDOT_OK;
}
