/* kind_nest.h — the rule for dividing loop nests among calls. */
#ifndef IR_PLAN_KIND_NEST_H
#define IR_PLAN_KIND_NEST_H

#include "plan/plan.h"

/* The loop that is divided among calls: the outermost output loop that is worth it; -1 if there is none. */
int pl_nest_split_loop(const pl_nest *k);

#endif
