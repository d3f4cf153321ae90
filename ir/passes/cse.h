/* cse.h — common subexpression elimination: equal operators on equal inputs are computed once. */
#ifndef IR_PASSES_CSE_H
#define IR_PASSES_CSE_H

#include "ir/graph.h"

mdot_status ir_eliminate_common_subexpressions(ir_graph *graph, bool *out_changed, mdot_error *err);

#endif
