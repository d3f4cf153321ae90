/* math_lowering.h — functions that expr.h lacks, expressed in existing ones. */
#ifndef IR_PLAN_MATH_LOWERING_H
#define IR_PLAN_MATH_LOWERING_H

#include "plan/builder.h"

/* math_lowering.c: functions that expr.h lacks, expressed in existing ones */
const pl_expr *pl_log1p(ir_arena *arena, const pl_expr *x);
const pl_expr *pl_expm1(ir_arena *arena, const pl_expr *x);
const pl_expr *pl_atan(ir_arena *arena, const pl_expr *x);

#endif
