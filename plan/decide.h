/* decide.h — decides whether a value is placed or inlined. */
#ifndef IR_PLAN_DECIDE_H
#define IR_PLAN_DECIDE_H

#include "plan/builder.h"

/* Decides the state of output `k` of a pointwise, moving or aliasing node, and emits its nest if it gets a buffer. */
mdot_status pl_decide(pl_builder *b, const ir_node *node, int k);

#endif
