/* sequence.h — sequential kernels. */
#ifndef IR_PLAN_SEQUENCE_H
#define IR_PLAN_SEQUENCE_H

#include "plan/builder.h"

mdot_status pl_emit_sequential(pl_builder *b, const ir_node *node);

#endif
