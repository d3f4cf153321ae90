/* scalar.h — applies one expression operator to one value: an executable form of the semantics in expr.h.
 *
 * The builders use it to fold constants, and the plan interpreter runs on it. Floating values are kept in double and
 * are not rounded to their type here; callers that simulate storage round them (pl_scalar_round).
 */
#ifndef IR_PLAN_SCALAR_H
#define IR_PLAN_SCALAR_H

#include "ir/graph.h"
#include "plan/expr_ops.h"

typedef union pl_scalar { /* the dtype selects the member */
    double f;
    int64_t n; /* integers and BOOL; U64 uses the same bits */
} pl_scalar;

/* The value of `op` with result type `dtype` on operands of type `from` (the type of arg[0]; for SELECT, of arg[1]).
 * Leaves are excluded. */
pl_scalar pl_scalar_apply(pl_expr_op op, mdot_dtype dtype, mdot_dtype from, const pl_scalar *arg);
/* ONNX Cast. Floats beyond an integer type's range saturate, and NaN becomes 0. */
pl_scalar pl_scalar_cast(pl_scalar value, mdot_dtype from, mdot_dtype to);
/* Rounds to the nearest value of the type. */
pl_scalar pl_scalar_round(pl_scalar value, mdot_dtype dtype);

#endif
