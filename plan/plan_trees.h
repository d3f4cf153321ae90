/* plan_trees.h — kernels of decision trees. */
#ifndef IR_PLAN_PLAN_TREES_H
#define IR_PLAN_PLAN_TREES_H

#include "plan/builder.h"

mdot_status pl_emit_trees(pl_builder *b, const ir_node *node);

#endif
