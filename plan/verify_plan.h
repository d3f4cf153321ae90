/* verify_plan.h — checks the rules of plan.h. For debug builds and tests. */
#ifndef IR_PLAN_VERIFY_PLAN_H
#define IR_PLAN_VERIFY_PLAN_H

#include "plan/plan.h"

/* Checks buffer numbers, dtypes, operands of kernels, the memory plan, and index bounds if they are affine. */
mdot_status pl_verify(const pl_plan *plan, mdot_error *err);

#endif
