/* expr.h — scalar expressions: the computation of a kernel for one point of its iteration space.
 *
 * Pointwise operators, index arithmetic and epilogues all become expressions, and both backends translate them.
 * Expressions are immutable trees (shared sub-trees allowed) in the plan's arena, typed by dtype. Index expressions
 * are I64.
 *
 * The semantics follow ONNX and, below it, C: integer arithmetic wraps, integer division truncates (FLOORDIV and
 * PYMOD round down), MIN and MAX return NaN if either side is NaN, comparisons and logic are BOOL. Floating f16 and
 * bf16 compute in f32 and round when stored or cast.
 */
#ifndef IR_PLAN_EXPR_H
#define IR_PLAN_EXPR_H

#include "ir/graph.h"
#include "plan/expr_ops.h"

typedef struct pl_expr pl_expr;
struct pl_expr {
    pl_expr_op op;
    mdot_dtype dtype; /* type of the value */
    int i;            /* loop, buffer or accumulator number */
    double f;         /* CONST of a floating type */
    int64_t n;        /* CONST of an integer or BOOL */
    const pl_expr *arg[3];
};

/* Builders. They fold constants and drop +0 and ×1 in index arithmetic. NULL: out of memory, or an argument is NULL. */
const pl_expr *pl_const_f(ir_arena *arena, mdot_dtype dtype, double value);
const pl_expr *pl_const_i(ir_arena *arena, mdot_dtype dtype, int64_t value);
const pl_expr *pl_index(ir_arena *arena, int loop);
const pl_expr *pl_step(ir_arena *arena);
const pl_expr *pl_dim(ir_arena *arena, ir_dim dim); /* scale * LENGTH + offset */
const pl_expr *pl_load(ir_arena *arena, int buffer, mdot_dtype dtype, const pl_expr *offset);
const pl_expr *pl_acc(ir_arena *arena, int number, mdot_dtype dtype);
const pl_expr *pl_unary(ir_arena *arena, pl_expr_op op, const pl_expr *a);
const pl_expr *pl_binary(ir_arena *arena, pl_expr_op op, const pl_expr *a, const pl_expr *b);
const pl_expr *pl_select(ir_arena *arena, const pl_expr *cond, const pl_expr *yes, const pl_expr *no);
const pl_expr *pl_cast(ir_arena *arena, const pl_expr *a, mdot_dtype dtype); /* returns `a` itself if nothing changes */

/* The stride of an index expression in one loop variable, with all others fixed. True if the expression is affine in
 * that variable with a compile-time coefficient; the stride is in elements, and 0 means independence. Backends use it
 * to vectorise. */
bool pl_expr_stride(const pl_expr *index, int loop, int64_t *out_stride);
bool pl_expr_uses_index(const pl_expr *expr, int loop);
/* Compares the trees, even if they are different objects. */
bool pl_expr_equal(const pl_expr *a, const pl_expr *b);

#endif
