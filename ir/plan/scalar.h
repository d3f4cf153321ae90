/* scalar.h — what one expression operator does to one value: the meaning that expr.h describes, executable.
 *
 * The builders fold constants with it and the plan interpreter runs on it. Floating values are kept in double and not
 * rounded to their type here: the caller that models storage rounds (pl_scalar_round).
 */
#ifndef IR_PLAN_SCALAR_H
#define IR_PLAN_SCALAR_H

#include "ir/plan/expr.h"

typedef union pl_scalar { /* which member counts follows from the dtype */
    double f;
    int64_t n; /* integers and BOOL; U64 in the same bits */
} pl_scalar;

/* The value of `op` with result type `dtype` on operands of type `from` (of arg[0]; SELECT's: of arg[1]). Not for
 * leaves. */
pl_scalar pl_scalar_apply(pl_expr_op op, mdot_dtype dtype, mdot_dtype from, const pl_scalar *arg);
/* ONNX Cast; floats beyond an integer type's range saturate, NaN becomes 0. */
pl_scalar pl_scalar_cast(pl_scalar value, mdot_dtype from, mdot_dtype to);
/* To the nearest value that the type can hold. */
pl_scalar pl_scalar_round(pl_scalar value, mdot_dtype dtype);

#endif
