/* norm_nests.h — normalisations that are no norm kernel, as nests. */
#ifndef IR_PLAN_NORM_NESTS_H
#define IR_PLAN_NORM_NESTS_H

#include "plan/builder.h"

mdot_status pl_emit_norm_nests(pl_builder *b, const ir_node *node);

#endif
