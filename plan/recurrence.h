/* recurrence.h — recurrences. */
#ifndef IR_PLAN_RECURRENCE_H
#define IR_PLAN_RECURRENCE_H

#include "plan/builder.h"

mdot_status pl_emit_recurrence(pl_builder *b, const ir_node *node);

#endif
