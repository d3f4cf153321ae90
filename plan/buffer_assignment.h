/* buffer_assignment.h — assigns offsets in the scratch memory. */
#ifndef IR_PLAN_BUFFER_ASSIGNMENT_H
#define IR_PLAN_BUFFER_ASSIGNMENT_H

#include "plan/plan.h"

/* Assigns scratch offsets so that buffers that are live at the same time do not overlap. */
bool pl_assign_memory(pl_plan *plan);

#endif
