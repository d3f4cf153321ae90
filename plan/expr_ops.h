/* expr_ops.h — the operators of expressions: their names and operand counts. expr.h defines their semantics. */
#ifndef IR_PLAN_EXPR_OPS_H
#define IR_PLAN_EXPR_OPS_H

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
    X(GELU, 1, "gelu")           /* x/2 (1 + erf(x/√2)): one node, so that backends may use a faster form */         \
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
    X(PYMOD, 2, "pymod")       /* the sign is that of the divisor; integers and floats */                              \
    X(FMOD, 2, "fmod")         /* the sign is that of the dividend */                                                  \
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
    X(SELECT, 3,                                                                                                       \
      "select") /* arg[0] ? arg[1] : arg[2]; both sides are evaluated, so that loads in them must be in bounds */

typedef enum pl_expr_op {
#define PL_EXPR_ENUM(name, operands, text) PL_##name,
    PL_EXPR_MAP(PL_EXPR_ENUM)
#undef PL_EXPR_ENUM
        PL_EXPR_OP_COUNT
} pl_expr_op;

int pl_expr_operand_count(pl_expr_op op);
const char *pl_expr_op_name(pl_expr_op op);

#endif
