/* reduce_nests.h — reductions as nests. */
#ifndef IR_PLAN_REDUCE_NESTS_H
#define IR_PLAN_REDUCE_NESTS_H

#include "plan/builder.h"

mdot_status pl_emit_reduction(pl_builder *b, const ir_node *node);

#endif
