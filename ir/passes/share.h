/* share.h — common subexpressions: equal operators on equal inputs are computed once. */
#ifndef IR_PASSES_SHARE_H
#define IR_PASSES_SHARE_H

#include "ir/graph.h"

mdot_status ir_share_equal_nodes(ir_graph *graph, bool *out_changed, mdot_error *err);

#endif
