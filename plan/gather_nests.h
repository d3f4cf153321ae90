/* gather_nests.h — definitions of operators that gather elements. */
#ifndef IR_PLAN_GATHER_NESTS_H
#define IR_PLAN_GATHER_NESTS_H

#include "plan/builder.h"

extern const pl_define_fn pl_gathers[IR_OP_COUNT];

#endif
