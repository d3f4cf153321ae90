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
#pragma once

#include "ir/graph.h"

/* ---- expr_ops.c: the operators of expressions: their names and operand counts. expr.h defines their semantics. */

/* name, operands, text */
#define PL_EXPR_MAP(X)                                                                                                 \
    X(CONST, 0, "const") /* floating or integer literal */                                                             \
    X(INDEX, 0, "i")     /* loop variable number `i` of the kernel, I64 */                                             \
    X(STEP, 0, "step")   /* the step of the enclosing recurrence, I64 */                                               \
    X(LENGTH, 0, "L")    /* the run-time length, I64 */                                                                \
    X(LOAD, 1, "load")   /* element arg[0] (an offset in elements, I64) of buffer `i` */                               \
    X(ACC, 0, "acc")     /* accumulator `i` of a reduction, or the value an epilogue continues */                      \
    X(CAST, 1, "cast")   /* ONNX Cast: float to integer truncates, to bool compares with zero */                       \
    X(NEG, 1, "neg")                                                                                                   \
    X(ABS, 1, "abs")                                                                                                   \
    X(SIGN, 1, "sign")                                                                                                 \
    X(SQRT, 1, "sqrt")                                                                                                 \
    X(EXP, 1, "exp")                                                                                                   \
    X(LOG, 1, "log")                                                                                                   \
    X(SIN, 1, "sin")                                                                                                   \
    X(COS, 1, "cos")                                                                                                   \
    X(TANH, 1, "tanh")                                                                                                 \
    X(ERF, 1, "erf")                                                                                                   \
    X(SIGMOID, 1, "sigmoid")                                                                                           \
    X(GELU, 1, "gelu")           /* x/2 (1 + erf(x/√2)): one node, so backends may use a faster form */              \
    X(GELU_TANH, 1, "gelu_tanh") /* x/2 (1 + tanh(√(2/π)(x + 0.044715 x³))) */                                     \
    X(FLOOR, 1, "floor")                                                                                               \
    X(CEIL, 1, "ceil")                                                                                                 \
    X(ROUND, 1, "round") /* half to even */                                                                            \
    X(NOT, 1, "not")     /* logical for BOOL, bitwise for integers */                                                  \
    X(ISNAN, 1, "isnan")                                                                                               \
    X(ISINF, 1, "isinf") /* ±∞ */                                                                                   \
    X(ADD, 2, "add")                                                                                                   \
    X(SUB, 2, "sub")                                                                                                   \
    X(MUL, 2, "mul")                                                                                                   \
    X(DIV, 2, "div")           /* integers truncate; division by zero gives zero */                                    \
    X(FLOORDIV, 2, "floordiv") /* for integers */                                                                      \
    X(PYMOD, 2, "pymod")       /* takes the divisor's sign; integers and floats */                                     \
    X(FMOD, 2, "fmod")         /* takes the dividend's sign */                                                         \
    X(POW, 2, "pow")                                                                                                   \
    X(MIN, 2, "min")                                                                                                   \
    X(MAX, 2, "max")                                                                                                   \
    X(AND, 2, "and")                                                                                                   \
    X(OR, 2, "or")                                                                                                     \
    X(XOR, 2, "xor")                                                                                                   \
    X(SHL, 2, "shl")                                                                                                   \
    X(SHR, 2, "shr") /* logical, because ONNX shifts only unsigned types */                                            \
    X(EQ, 2, "eq")                                                                                                     \
    X(LT, 2, "lt")                                                                                                     \
    X(LE, 2, "le")                                                                                                     \
    X(SELECT, 3, "select") /* arg[0] ? arg[1] : arg[2]; both sides are evaluated, so loads in them must be in bounds */

typedef enum pl_expr_op {
#define PL_EXPR_ENUM(name, operands, text) PL_##name,
    PL_EXPR_MAP(PL_EXPR_ENUM)
#undef PL_EXPR_ENUM
        PL_EXPR_OP_COUNT
} pl_expr_op;

int pl_expr_operand_count(pl_expr_op op);
/* True for exp to gelu_tanh and pow, which a backend computes by a polynomial or a library call. */
bool pl_expr_op_is_function(pl_expr_op op);
const char *pl_expr_op_name(pl_expr_op op);

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
const pl_expr *pl_with_operands(ir_arena *arena, const pl_expr *e, const pl_expr *const arg[3]); /* likewise */

/* The stride of an index expression in one loop variable, with all others fixed. True if the expression is affine in
 * that variable with a compile-time coefficient; the stride is in elements, and 0 means independence. Backends use it
 * to vectorise. */
bool pl_expr_stride(const pl_expr *index, int loop, int64_t *out_stride);
bool pl_expr_uses_index(const pl_expr *expr, int loop);
/* Compares the trees, even if they are different objects. */
bool pl_expr_equal(const pl_expr *a, const pl_expr *b);

/* ---- scalar.c: applies one expression operator to one value: an executable form of the semantics in expr.h.
 *
 * The builders use it to fold constants, and the plan interpreter of the tests runs on it. Floating values are kept
 * in double and are not rounded to their type here; callers that simulate storage round them (pl_scalar_round).
 */

typedef union pl_scalar { /* the dtype selects the member */
    double f;
    int64_t n; /* integers and BOOL; U64 uses the same bits */
} pl_scalar;

/* The value of `op` with result type `dtype` on operands of type `from` (arg[0]'s; for SELECT, arg[1]'s). Leaves are
 * excluded. */
pl_scalar pl_scalar_apply(pl_expr_op op, mdot_dtype dtype, mdot_dtype from, const pl_scalar *arg);
/* ONNX Cast. Floats beyond an integer type's range saturate, and NaN becomes 0. */
pl_scalar pl_scalar_cast(pl_scalar value, mdot_dtype from, mdot_dtype to);
/* Rounds to the nearest value of the type. */
pl_scalar pl_scalar_round(pl_scalar value, mdot_dtype dtype);
