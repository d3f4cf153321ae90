/* pointwise.c — a table that maps the pointwise operators of ops.def to expressions, by ONNX's definitions.
 *
 * A row gives an equivalent expression operator, a formula (pl_formula) or a function. They receive their operands as
 * expressions that are already broadcast to the output's index.
 */
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

#include <math.h>

typedef struct operands {
    pl_builder *b;
    ir_arena *arena;
    const ir_node *node;
    int count;
    const pl_expr *const *x; /* elements are NULL for absent inputs */
    mdot_dtype dtype;        /* dtype of the output */
    pl_expr_op op;           /* operator of the row, for functions that serve several rows */
} operands;

typedef const pl_expr *(*definition_fn)(const operands *o);

/* A constant of the first operand's type. */
static const pl_expr *number(const operands *o, double value) { return pl_const_f(o->arena, o->x[0]->dtype, value); }

#define DEFINITION(name, expression)                                                                                   \
    static const pl_expr *name(const operands *o) { return expression; }

DEFINITION(direct, pl_expr_operand_count(o->op) == 1 ? pl_unary(o->arena, o->op, o->x[0])
                                                     : pl_binary(o->arena, o->op, o->x[0], o->x[1]))
DEFINITION(swapped, pl_binary(o->arena, o->op, o->x[1], o->x[0]))

static const pl_expr *fold_inputs(const operands *o, pl_expr_op op)
{
    const pl_expr *result = o->x[0];
    for (int k = 1; k < o->count; k++) result = pl_binary(o->arena, op, result, o->x[k]);
    return result;
}

DEFINITION(all_inputs, fold_inputs(o, o->op))
DEFINITION(mean, pl_binary(o->arena, PL_DIV, fold_inputs(o, PL_ADD), number(o, o->count)))

/* Applies the row's operator to floats. Rounding an integer changes nothing. */
DEFINITION(of_floats, ir_dtype_is_float(o->x[0]->dtype) ? pl_unary(o->arena, o->op, o->x[0]) : o->x[0])

static const pl_expr *gelu(const operands *o)
{
    const char *approximation = ir_node_string(o->node, "approximate", "none");
    return pl_unary(o->arena, approximation[0] == 't' ? PL_GELU_TANH : PL_GELU, o->x[0]);
}

static const pl_expr *swish(const operands *o)
{
    double alpha = ir_node_float(o->node, "alpha", 1);
    const pl_symbol symbols[] = {{"x", o->x[0]}, {"alpha", number(o, alpha)}};
    return pl_formula(o->arena, alpha == 1 ? "x * sigmoid(x)" : "x * sigmoid(alpha * x)", symbols, 2);
}

static const pl_expr *shrink(const operands *o)
{
    double lambda = ir_node_float(o->node, "lambd", 0.5), bias = ir_node_float(o->node, "bias", 0);
    mdot_dtype real = ir_dtype_is_float(o->dtype) ? o->dtype : MDOT_DTYPE_F64; /* integers are valid */
    const pl_symbol symbols[] = {{"x", pl_cast(o->arena, o->x[0], real)},
                                 {"bias", pl_const_f(o->arena, real, bias)},
                                 {"lambda", pl_const_f(o->arena, real, lambda)}};
    const char *formula = "x < -lambda ? x + bias : lambda < x ? x - bias : 0";
    return pl_cast(o->arena, pl_formula(o->arena, formula, symbols, 3), o->dtype);
}

static const pl_expr *is_infinite(const operands *o)
{
    bool negative = ir_node_int(o->node, "detect_negative", 1), positive = ir_node_int(o->node, "detect_positive", 1);
    if (negative && positive) return pl_unary(o->arena, PL_ISINF, o->x[0]);
    if (!negative && !positive) return pl_const_i(o->arena, MDOT_DTYPE_BOOL, 0);
    return pl_binary(o->arena, PL_EQ, o->x[0], number(o, positive ? INFINITY : -INFINITY));
}

DEFINITION(cast, pl_cast(o->arena, o->x[0], o->dtype))

static const pl_expr *clip(const operands *o)
{
    const pl_expr *x = o->x[0];
    bool has_min = o->count > 1 && o->x[1] != NULL;
    if (has_min && ir_node_int(o->node, "nan_to_min", 0) != 0)
        x = pl_select(o->arena, pl_binary(o->arena, PL_LT, o->x[1], x), x, o->x[1]);
    else if (has_min)
        x = pl_binary(o->arena, PL_MAX, x, o->x[1]);
    if (o->count > 2 && o->x[2] != NULL) x = pl_binary(o->arena, PL_MIN, x, o->x[2]);
    return x;
}

DEFINITION(modulo, pl_binary(o->arena, ir_node_int(o->node, "fmod", 0) ? PL_FMOD : PL_PYMOD, o->x[0], o->x[1]))

static const pl_expr *shift(const operands *o)
{
    const char *direction = ir_node_string(o->node, "direction", "LEFT");
    return pl_binary(o->arena, direction[0] == 'R' ? PL_SHR : PL_SHL, o->x[0], o->x[1]);
}

DEFINITION(where, pl_select(o->arena, o->x[0], o->x[1], o->x[2]))

/* Small constant exponents, which are common in models, cost a product or a root. NULL: another exponent. */
static const char *power_formula(const pl_expr *x, double exponent)
{
    if (exponent == 1) return "x";
    if (exponent == 2) return "x * x";
    if (exponent == 3) return "x * x * x";
    if (!ir_dtype_is_float(x->dtype)) return NULL;
    if (exponent == 0.5) return "sqrt(x)";
    return exponent == -1 ? "1 / x" : NULL;
}

/* The result has the base's type. A power of integers with a whole exponent is exact, and wraps. Other exponents are
 * computed in f64, and a result that is an integer up to rounding counts as one. */
static const pl_expr *power(const operands *o)
{
    const pl_expr *x = o->x[0], *y = o->x[1];
    if (y->op == PL_CONST) {
        const char *formula = power_formula(x, ir_dtype_is_float(y->dtype) ? y->f : (double)y->n);
        if (formula != NULL) return pl_formula(o->arena, formula, &(pl_symbol){"x", x}, 1);
    }
    if (ir_dtype_is_float(x->dtype)) return pl_binary(o->arena, PL_POW, x, pl_cast(o->arena, y, x->dtype));
    const pl_symbol whole[] = {{"x", pl_cast(o->arena, x, MDOT_DTYPE_I64)},
                               {"y", pl_cast(o->arena, y, MDOT_DTYPE_I64)}};
    const pl_expr *exact = pl_cast(o->arena, pl_formula(o->arena, "pow(x, y)", whole, 2), o->dtype);
    if (!ir_dtype_is_float(y->dtype)) return exact;
    const pl_symbol real[] = {{"x", pl_cast(o->arena, x, MDOT_DTYPE_F64)}, {"y", pl_cast(o->arena, y, MDOT_DTYPE_F64)}};
    const pl_expr *rounded = pl_formula(o->arena,
                                        "power = pow(x, y); whole = round(power);"
                                        "abs(power - whole) <= abs(power) * 1e-12 ? whole : power",
                                        real, 2);
    const pl_expr *is_whole = pl_formula(o->arena, "y == round(y)", real, 2);
    return pl_select(o->arena, is_whole, exact, pl_cast(o->arena, rounded, o->dtype));
}

enum { MOST_ATTRIBUTES = 2 };

static const struct {
    definition_fn make;
    pl_expr_op op;
    const char *formula; /* of operands x and y, and the attributes */
    struct {
        const char *name;
        double fallback;
    } attributes[MOST_ATTRIBUTES];
} rows[IR_OP_COUNT] = {
    [IR_OP_Abs] = {.make = direct, .op = PL_ABS},
    [IR_OP_Neg] = {.make = direct, .op = PL_NEG},
    [IR_OP_Sign] = {.make = direct, .op = PL_SIGN},
    [IR_OP_Reciprocal] = {.formula = "1 / x"},
    [IR_OP_Sqrt] = {.make = direct, .op = PL_SQRT},
    [IR_OP_Exp] = {.make = direct, .op = PL_EXP},
    [IR_OP_Log] = {.make = direct, .op = PL_LOG},
    [IR_OP_Sin] = {.make = direct, .op = PL_SIN},
    [IR_OP_Cos] = {.make = direct, .op = PL_COS},
    [IR_OP_Tan] = {.formula = "sin(x) / cos(x)"},
    [IR_OP_Asin] = {.formula = "atan(x / sqrt((1 - x) * (1 + x)))"}, /* factored, so that nothing cancels */
    [IR_OP_Acos] = {.formula = "2 * atan(sqrt((1 - x) / (1 + x)))"},
    [IR_OP_Atan] = {.formula = "atan(x)"},
    [IR_OP_Sinh] = {.formula = "a = abs(x); m = expm1(a); odd(x, half_exponential(a, (m + m / (m + 1)) * 0.5))"},
    [IR_OP_Cosh] = {.formula = "half_exponential(abs(x), (exp(x) + exp(-x)) * 0.5)"},
    /* log1p(|x| + x² / (1 + √(1 + x²))), and log |x| + log 2 if x² may overflow. From 1e9 on, √(1 + x²) = |x| to the
     * last bit of f32 and f64. */
    [IR_OP_Asinh] = {.formula =
                         "a = abs(x); bounded = min(a, 1e9); square = bounded * bounded; root = sqrt(1 + square);"
                         "near = log1p(bounded + square / (1 + root));"
                         "odd(x, 1e9 < a ? log(a) + 0.69314718055994529 : near)"},
    /* The same with t = x - 1. The first root is NaN below 1, where the product of both radicands may be positive. */
    [IR_OP_Acosh] = {.formula = "t = x - 1; near = log1p(t + sqrt(t) * sqrt(t + 2));"
                                "1e9 < x ? log(x) + 0.69314718055994529 : near"},
    [IR_OP_Atanh] = {.formula = "0.5 * log1p(2 * x / (1 - x))"},
    [IR_OP_Tanh] = {.make = direct, .op = PL_TANH},
    [IR_OP_Sigmoid] = {.make = direct, .op = PL_SIGMOID},
    [IR_OP_Erf] = {.make = direct, .op = PL_ERF},
    [IR_OP_Floor] = {.make = of_floats, .op = PL_FLOOR},
    [IR_OP_Ceil] = {.make = of_floats, .op = PL_CEIL},
    [IR_OP_Round] = {.make = of_floats, .op = PL_ROUND},
    [IR_OP_Relu] = {.formula = "max(x, 0)"},
    [IR_OP_Softplus] = {.formula = "softplus(x)"},
    [IR_OP_Softsign] = {.formula = "x / (1 + abs(x))"},
    [IR_OP_Not] = {.make = direct, .op = PL_NOT},
    [IR_OP_IsNaN] = {.make = direct, .op = PL_ISNAN},
    [IR_OP_BitwiseNot] = {.make = direct, .op = PL_NOT},
    [IR_OP_HardSwish] = {.formula = "x * min(max(x / 6 + 0.5, 0), 1)"},
    [IR_OP_Mish] = {.formula = "x * tanh(softplus(x))"},
    [IR_OP_LeakyRelu] = {.formula = "x < 0 ? x * alpha : x", .attributes = {{"alpha", 0.01}}},
    /* The exponents are clamped, so that they do not overflow when the other branch is taken. */
    [IR_OP_Elu] = {.formula = "x < 0 ? alpha * expm1(min(x, 0)) : x", .attributes = {{"alpha", 1}}},
    [IR_OP_Selu] = {.formula =
                        "gamma * (x <= 0 ? alpha * expm1(min(x, 0)) : x)", /* Klambauer et al. 2017; ONNX Selu-6 */
                    .attributes = {{"alpha", 1.67326319217681884765625}, {"gamma", 1.05070102214813232421875}}},
    [IR_OP_Celu] = {.formula = "max(x, 0) + alpha * expm1(min(x / alpha, 0))", .attributes = {{"alpha", 1}}},
    [IR_OP_HardSigmoid] = {.formula = "min(max(x * alpha + beta, 0), 1)",
                           .attributes = {{"alpha", 0.2}, {"beta", 0.5}}},
    [IR_OP_ThresholdedRelu] = {.formula = "alpha < x ? x : 0", .attributes = {{"alpha", 1}}},
    [IR_OP_Gelu] = {.make = gelu},
    [IR_OP_Swish] = {.make = swish},
    [IR_OP_Shrink] = {.make = shrink},
    [IR_OP_IsInf] = {.make = is_infinite},
    [IR_OP_Cast] = {.make = cast},
    [IR_OP_CastLike] = {.make = cast},
    [IR_OP_Clip] = {.make = clip},
    [IR_OP_Add] = {.make = direct, .op = PL_ADD},
    [IR_OP_Mul] = {.make = direct, .op = PL_MUL},
    [IR_OP_Sub] = {.make = direct, .op = PL_SUB},
    [IR_OP_Div] = {.make = direct, .op = PL_DIV},
    [IR_OP_Mod] = {.make = modulo},
    [IR_OP_Pow] = {.make = power},
    [IR_OP_PRelu] = {.formula = "x < 0 ? x * y : x"},
    [IR_OP_BitShift] = {.make = shift},
    [IR_OP_BitwiseAnd] = {.make = direct, .op = PL_AND},
    [IR_OP_BitwiseOr] = {.make = direct, .op = PL_OR},
    [IR_OP_BitwiseXor] = {.make = direct, .op = PL_XOR},
    [IR_OP_Min] = {.make = all_inputs, .op = PL_MIN},
    [IR_OP_Max] = {.make = all_inputs, .op = PL_MAX},
    [IR_OP_Sum] = {.make = all_inputs, .op = PL_ADD},
    [IR_OP_Mean] = {.make = mean},
    [IR_OP_And] = {.make = direct, .op = PL_AND},
    [IR_OP_Or] = {.make = direct, .op = PL_OR},
    [IR_OP_Xor] = {.make = direct, .op = PL_XOR},
    [IR_OP_Equal] = {.make = direct, .op = PL_EQ},
    [IR_OP_Less] = {.make = direct, .op = PL_LT},
    [IR_OP_LessOrEqual] = {.make = direct, .op = PL_LE},
    [IR_OP_Greater] = {.make = swapped, .op = PL_LT},
    [IR_OP_GreaterOrEqual] = {.make = swapped, .op = PL_LE},
    [IR_OP_Where] = {.make = where},
};

/* The number of value operands. CastLike's second operand only gives a type. */
static int value_operands(const ir_node *node)
{
    return ir_node_opcode(node) == IR_OP_CastLike ? 1 : node->input_count;
}

static const pl_expr *make_formula(const operands *o, ir_opcode opcode)
{
    pl_symbol symbols[2 + MOST_ATTRIBUTES] = {{"x", o->x[0]}};
    int count = 1;
    if (o->count > 1) symbols[count++] = (pl_symbol){"y", o->x[1]};
    for (int i = 0; i < MOST_ATTRIBUTES && rows[opcode].attributes[i].name != NULL; i++) {
        const char *name = rows[opcode].attributes[i].name;
        double value = ir_node_float(o->node, name, rows[opcode].attributes[i].fallback);
        symbols[count++] = (pl_symbol){name, number(o, value)};
    }
    return pl_formula(o->arena, rows[opcode].formula, symbols, count);
}

static const pl_expr *make(pl_builder *b, const ir_node *node, const pl_expr *const *x)
{
    ir_opcode opcode = ir_node_opcode(node);
    mdot_dtype dtype = node->outputs[0]->type.dtype;
    operands o = {b, b->arena, node, value_operands(node), x, dtype, rows[opcode].op};
    if (rows[opcode].formula != NULL) return make_formula(&o, opcode);
    if (rows[opcode].make == NULL) return pl_reject(b, node, "has no expression");
    return rows[opcode].make(&o);
}

const pl_expr *pl_define_pointwise(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index)
{
    const pl_expr **x = IR_NEW_ARRAY(b->arena, const pl_expr *, node->input_count);
    if (x == NULL) return NULL;
    for (int k = 0; k < value_operands(node); k++) {
        if (node->inputs[k] == NULL) continue;
        x[k] = pl_operand_at(b, node->inputs[k], node->outputs[output]->type.rank, index);
        if (x[k] == NULL) return NULL;
    }
    return make(b, node, x);
}

static void count_tree(const pl_expr *e, const bool *is_counted, pl_growth *growth)
{
    enum { ENOUGH = 4096 };
    if (++growth->nodes > ENOUGH) return;
    if (e->op == PL_ACC) growth->copies += is_counted[e->i];
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) count_tree(e->arg[k], is_counted, growth);
}

pl_growth pl_pointwise_growth(pl_builder *b, const ir_node *node, const ir_value *v)
{
    pl_growth growth = {0, 0};
    const pl_expr **x = IR_NEW_ARRAY(b->arena, const pl_expr *, node->input_count);
    bool *is_v = IR_NEW_ARRAY(b->arena, bool, node->input_count);
    if (x == NULL || is_v == NULL) return growth;
    for (int k = 0; k < value_operands(node); k++) {
        is_v[k] = node->inputs[k] == v;
        if (node->inputs[k] != NULL) x[k] = pl_acc(b->arena, k, node->inputs[k]->type.dtype);
    }
    const pl_expr *formula = make(b, node, x);
    if (formula != NULL) count_tree(formula, is_v, &growth);
    return growth;
}
