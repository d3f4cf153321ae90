/* print_plan.h — prints plans as text. */
#ifndef IR_PLAN_PRINT_PLAN_H
#define IR_PLAN_PRINT_PLAN_H

#include "plan/plan.h"

/* Prints the plan as text, one line per buffer and one block per kernel; for --dump plan and golden tests. */
char *pl_print(const pl_plan *plan, ir_arena *arena);

#endif
