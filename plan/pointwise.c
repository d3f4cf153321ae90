/* pointwise.c — a table that maps the pointwise operators of ops.def to expressions, by ONNX's definitions.
 *
 * A row gives either an equivalent expression operator or a formula. Formulas receive their operands as expressions
 * that are already broadcast to the output's index.
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

typedef const pl_expr *(*formula_fn)(const operands *o);

/* ---- Notation ---------------------------------------------------------------------------------------------------- */

static const pl_expr *unary(const operands *o, pl_expr_op op, const pl_expr *x) { return pl_unary(o->arena, op, x); }

static const pl_expr *binary(const operands *o, pl_expr_op op, const pl_expr *x, const pl_expr *y)
{
    return pl_binary(o->arena, op, x, y);
}

static const pl_expr *choose(const operands *o, const pl_expr *cond, const pl_expr *yes, const pl_expr *no)
{
    return pl_select(o->arena, cond, yes, no);
}

/* A constant of the first operand's type. */
static const pl_expr *number(const operands *o, double value) { return pl_const_f(o->arena, o->x[0]->dtype, value); }

static double attribute(const operands *o, const char *name, double fallback)
{
    return ir_node_float(o->node, name, fallback);
}

static const pl_expr *add(const operands *o, const pl_expr *x, const pl_expr *y) { return binary(o, PL_ADD, x, y); }
static const pl_expr *sub(const operands *o, const pl_expr *x, const pl_expr *y) { return binary(o, PL_SUB, x, y); }
static const pl_expr *mul(const operands *o, const pl_expr *x, const pl_expr *y) { return binary(o, PL_MUL, x, y); }
static const pl_expr *quotient(const operands *o, const pl_expr *x, const pl_expr *y)
{
    return binary(o, PL_DIV, x, y);
}
static const pl_expr *less(const operands *o, const pl_expr *x, const pl_expr *y) { return binary(o, PL_LT, x, y); }

static const pl_expr *clamp(const operands *o, const pl_expr *x, double low, double high)
{
    return binary(o, PL_MIN, binary(o, PL_MAX, x, number(o, low)), number(o, high));
}

#define FORMULA(name, expression)                                                                                      \
    static const pl_expr *name(const operands *o) { return expression; }

/* ---- Rows without a formula -------------------------------------------------------------------------------------- */

FORMULA(direct, pl_expr_operand_count(o->op) == 1 ? unary(o, o->op, o->x[0]) : binary(o, o->op, o->x[0], o->x[1]))
FORMULA(swapped, binary(o, o->op, o->x[1], o->x[0]))

static const pl_expr *fold_inputs(const operands *o, pl_expr_op op)
{
    const pl_expr *result = o->x[0];
    for (int k = 1; k < o->count; k++) result = binary(o, op, result, o->x[k]);
    return result;
}

FORMULA(all_inputs, fold_inputs(o, o->op))

/* Applies the row's operator to floats. Rounding an integer changes nothing. */
FORMULA(of_floats, ir_dtype_is_float(o->x[0]->dtype) ? unary(o, o->op, o->x[0]) : o->x[0])

/* ---- Functions of one operand ------------------------------------------------------------------------------------ */

FORMULA(reciprocal, quotient(o, number(o, 1), o->x[0]))
FORMULA(tangent, quotient(o, unary(o, PL_SIN, o->x[0]), unary(o, PL_COS, o->x[0])))

/* asin x = atan(x / √(1 - x²)), with the root factored so that nothing cancels */
static const pl_expr *arc_sine(const operands *o)
{
    const pl_expr *x = o->x[0], *one = number(o, 1);
    const pl_expr *root = unary(o, PL_SQRT, mul(o, sub(o, one, x), add(o, one, x)));
    return pl_atan(o->arena, quotient(o, x, root));
}

/* acos x = 2 atan √((1 - x) / (1 + x)) */
static const pl_expr *arc_cosine(const operands *o)
{
    const pl_expr *x = o->x[0], *one = number(o, 1);
    const pl_expr *ratio = quotient(o, sub(o, one, x), add(o, one, x));
    return mul(o, number(o, 2), pl_atan(o->arena, unary(o, PL_SQRT, ratio)));
}

FORMULA(arc_tangent, pl_atan(o->arena, o->x[0]))

/* An odd function, given its value for |x|. A zero keeps its sign, and NaN stays NaN. */
static const pl_expr *odd(const operands *o, const pl_expr *x, const pl_expr *positive)
{
    const pl_expr *zero = number(o, 0), *above = choose(o, less(o, zero, x), positive, x);
    return choose(o, less(o, x, zero), unary(o, PL_NEG, positive), above);
}

/* `near` for |x| up to 40. Beyond, sinh and cosh are e^|x| / 2 to the last bit, as a product of two roots, because
 * e^|x| overflows before its half does. */
static const pl_expr *half_exponential(const operands *o, const pl_expr *positive, const pl_expr *near)
{
    const pl_expr *root = unary(o, PL_EXP, mul(o, positive, number(o, 0.5)));
    const pl_expr *far = mul(o, mul(o, root, number(o, 0.5)), root);
    return choose(o, less(o, number(o, 40), positive), far, near);
}

/* sinh |x| = (m + m / (m + 1)) / 2 with m = e^|x| - 1 */
static const pl_expr *sine_hyperbolic(const operands *o)
{
    const pl_expr *x = o->x[0], *positive = unary(o, PL_ABS, x), *m = pl_expm1(o->arena, positive);
    const pl_expr *near = mul(o, add(o, m, quotient(o, m, add(o, m, number(o, 1)))), number(o, 0.5));
    return odd(o, x, half_exponential(o, positive, near));
}

static const pl_expr *cosine_hyperbolic(const operands *o)
{
    const pl_expr *x = o->x[0];
    const pl_expr *near = mul(o, add(o, unary(o, PL_EXP, x), unary(o, PL_EXP, unary(o, PL_NEG, x))), number(o, 0.5));
    return half_exponential(o, unary(o, PL_ABS, x), near);
}

/* asinh |x| = log1p(|x| + x² / (1 + √(1 + x²))), and log |x| + log 2 if x² may overflow */
static const pl_expr *area_sine(const operands *o)
{
    const double large = 1e9; /* from here on, √(1 + x²) = |x| to the last bit of f32 and f64 */
    const pl_expr *x = o->x[0], *one = number(o, 1), *positive = unary(o, PL_ABS, x);
    const pl_expr *bounded = binary(o, PL_MIN, positive, number(o, large));
    const pl_expr *square = mul(o, bounded, bounded);
    const pl_expr *root = unary(o, PL_SQRT, add(o, one, square));
    const pl_expr *near = pl_log1p(o->arena, add(o, bounded, quotient(o, square, add(o, one, root))));
    const pl_expr *far = add(o, unary(o, PL_LOG, positive), number(o, M_LN2));
    const pl_expr *area = choose(o, less(o, number(o, large), positive), far, near);
    return odd(o, x, area);
}

/* acosh x = log1p(t + √t √(t + 2)) with t = x - 1, and log x + log 2 if the sum may overflow. The first root is NaN
 * below 1, where the product of both radicands may be positive. */
static const pl_expr *area_cosine(const operands *o)
{
    const double large = 1e9; /* from here on, √t √(t + 2) = x to the last bit of f32 and f64 */
    const pl_expr *x = o->x[0], *t = sub(o, x, number(o, 1));
    const pl_expr *root = mul(o, unary(o, PL_SQRT, t), unary(o, PL_SQRT, add(o, t, number(o, 2))));
    const pl_expr *near = pl_log1p(o->arena, add(o, t, root));
    const pl_expr *far = add(o, unary(o, PL_LOG, x), number(o, M_LN2));
    return choose(o, less(o, number(o, large), x), far, near);
}

/* atanh x = log1p(2x / (1 - x)) / 2 */
static const pl_expr *area_tangent(const operands *o)
{
    const pl_expr *x = o->x[0];
    const pl_expr *ratio = quotient(o, mul(o, number(o, 2), x), sub(o, number(o, 1), x));
    return mul(o, number(o, 0.5), pl_log1p(o->arena, ratio));
}

FORMULA(relu, binary(o, PL_MAX, o->x[0], pl_const_i(o->arena, o->x[0]->dtype, 0)))

/* log(1 + e^x) = max(x, 0) + log1p(e^-|x|) */
static const pl_expr *softplus_of(const operands *o, const pl_expr *x)
{
    const pl_expr *decay = unary(o, PL_EXP, unary(o, PL_NEG, unary(o, PL_ABS, x)));
    return add(o, binary(o, PL_MAX, x, number(o, 0)), pl_log1p(o->arena, decay));
}

FORMULA(softplus, softplus_of(o, o->x[0]))
FORMULA(softsign, quotient(o, o->x[0], add(o, number(o, 1), unary(o, PL_ABS, o->x[0]))))
FORMULA(mish, mul(o, o->x[0], unary(o, PL_TANH, softplus_of(o, o->x[0]))))

static const pl_expr *hard_swish(const operands *o)
{
    const pl_expr *line = add(o, quotient(o, o->x[0], number(o, 6)), number(o, 0.5));
    return mul(o, o->x[0], clamp(o, line, 0, 1));
}

static const pl_expr *hard_sigmoid(const operands *o)
{
    const pl_expr *scaled = mul(o, o->x[0], number(o, attribute(o, "alpha", 0.2)));
    return clamp(o, add(o, scaled, number(o, attribute(o, "beta", 0.5))), 0, 1);
}

static const pl_expr *leaky_relu(const operands *o)
{
    const pl_expr *x = o->x[0];
    return choose(o, less(o, x, number(o, 0)), mul(o, x, number(o, attribute(o, "alpha", 0.01))), x);
}

/* alpha (e^x - 1), with the exponent clamped so that it does not overflow when the other branch is taken */
static const pl_expr *exponential_part(const operands *o, const pl_expr *x, double alpha)
{
    return mul(o, number(o, alpha), pl_expm1(o->arena, binary(o, PL_MIN, x, number(o, 0))));
}

static const pl_expr *elu(const operands *o)
{
    const pl_expr *x = o->x[0];
    return choose(o, less(o, x, number(o, 0)), exponential_part(o, x, attribute(o, "alpha", 1)), x);
}

static const pl_expr *selu(const operands *o)
{
    const pl_expr *x = o->x[0]; /* defaults: ONNX Selu-6, from Klambauer et al. 2017 */
    const pl_expr *low = exponential_part(o, x, attribute(o, "alpha", 1.67326319217681884765625));
    const pl_expr *gamma = number(o, attribute(o, "gamma", 1.05070102214813232421875));
    return mul(o, gamma, choose(o, binary(o, PL_LE, x, number(o, 0)), low, x));
}

static const pl_expr *celu(const operands *o)
{
    double alpha = attribute(o, "alpha", 1);
    const pl_expr *low = exponential_part(o, quotient(o, o->x[0], number(o, alpha)), alpha);
    return add(o, binary(o, PL_MAX, o->x[0], number(o, 0)), low);
}

static const pl_expr *thresholded_relu(const operands *o)
{
    const pl_expr *above = less(o, number(o, attribute(o, "alpha", 1)), o->x[0]);
    return choose(o, above, o->x[0], number(o, 0));
}

static const pl_expr *gelu(const operands *o)
{
    const char *approximation = ir_node_string(o->node, "approximate", "none");
    return unary(o, approximation[0] == 't' ? PL_GELU_TANH : PL_GELU, o->x[0]);
}

static const pl_expr *swish(const operands *o)
{
    double alpha = attribute(o, "alpha", 1);
    const pl_expr *x = o->x[0], *scaled = alpha == 1 ? x : mul(o, number(o, alpha), x);
    return mul(o, x, unary(o, PL_SIGMOID, scaled));
}

static const pl_expr *shrink(const operands *o)
{
    double lambda = attribute(o, "lambd", 0.5), bias = attribute(o, "bias", 0);
    mdot_dtype real = ir_dtype_is_float(o->dtype) ? o->dtype : MDOT_DTYPE_F64; /* integers are valid */
    const pl_expr *x = pl_cast(o->arena, o->x[0], real);
    const pl_expr *below = less(o, x, pl_const_f(o->arena, real, -lambda));
    const pl_expr *above = less(o, pl_const_f(o->arena, real, lambda), x);
    const pl_expr *shift = pl_const_f(o->arena, real, bias);
    const pl_expr *inner = choose(o, above, sub(o, x, shift), pl_const_f(o->arena, real, 0));
    return pl_cast(o->arena, choose(o, below, add(o, x, shift), inner), o->dtype);
}

static const pl_expr *is_infinite(const operands *o)
{
    bool negative = ir_node_int(o->node, "detect_negative", 1), positive = ir_node_int(o->node, "detect_positive", 1);
    if (negative && positive) return unary(o, PL_ISINF, o->x[0]);
    if (!negative && !positive) return pl_const_i(o->arena, MDOT_DTYPE_BOOL, 0);
    return binary(o, PL_EQ, o->x[0], number(o, positive ? INFINITY : -INFINITY));
}

FORMULA(cast, pl_cast(o->arena, o->x[0], o->dtype))

/* ---- Functions of several operands ------------------------------------------------------------------------------- */

static const pl_expr *clip(const operands *o)
{
    const pl_expr *x = o->x[0];
    if (o->count > 1 && o->x[1] != NULL) x = binary(o, PL_MAX, x, o->x[1]);
    if (o->count > 2 && o->x[2] != NULL) x = binary(o, PL_MIN, x, o->x[2]);
    return x;
}

FORMULA(mean, quotient(o, fold_inputs(o, PL_ADD), number(o, o->count)))

static const pl_expr *parametric_relu(const operands *o)
{
    const pl_expr *zero = pl_const_i(o->arena, o->x[0]->dtype, 0);
    return choose(o, less(o, o->x[0], zero), mul(o, o->x[0], o->x[1]), o->x[0]);
}

FORMULA(modulo, binary(o, ir_node_int(o->node, "fmod", 0) ? PL_FMOD : PL_PYMOD, o->x[0], o->x[1]))

static const pl_expr *shift(const operands *o)
{
    const char *direction = ir_node_string(o->node, "direction", "LEFT");
    return binary(o, direction[0] == 'R' ? PL_SHR : PL_SHL, o->x[0], o->x[1]);
}

FORMULA(where, choose(o, o->x[0], o->x[1], o->x[2]))

/* Small constant exponents, which are common in models, cost a product or a root. */
static const pl_expr *power_constant(const operands *o, const pl_expr *x, double exponent)
{
    if (exponent == 1) return x;
    if (exponent == 2) return mul(o, x, x);
    if (exponent == 3) return mul(o, mul(o, x, x), x);
    if (!ir_dtype_is_float(x->dtype)) return NULL;
    if (exponent == 0.5) return unary(o, PL_SQRT, x);
    return exponent == -1 ? quotient(o, number(o, 1), x) : NULL;
}

/* The result has the base's type. A power of integers is exact, and wraps. Integers with a fractional exponent are
 * computed in f64, and a result that is an integer up to rounding counts as one. */
static const pl_expr *power(const operands *o)
{
    const pl_expr *x = o->x[0], *y = o->x[1];
    if (y->op == PL_CONST) {
        const pl_expr *simple = power_constant(o, x, ir_dtype_is_float(y->dtype) ? y->f : (double)y->n);
        if (simple != NULL) return simple;
    }
    if (ir_dtype_is_float(x->dtype)) return binary(o, PL_POW, x, pl_cast(o->arena, y, x->dtype));
    if (!ir_dtype_is_float(y->dtype)) {
        const pl_expr *result =
            binary(o, PL_POW, pl_cast(o->arena, x, MDOT_DTYPE_I64), pl_cast(o->arena, y, MDOT_DTYPE_I64));
        return pl_cast(o->arena, result, o->dtype);
    }
    x = pl_cast(o->arena, x, MDOT_DTYPE_F64);
    y = pl_cast(o->arena, y, MDOT_DTYPE_F64);
    const pl_expr *result = binary(o, PL_POW, x, y), *whole = unary(o, PL_ROUND, result);
    const pl_expr *difference = unary(o, PL_ABS, sub(o, result, whole));
    const pl_expr *slack = mul(o, unary(o, PL_ABS, result), pl_const_f(o->arena, MDOT_DTYPE_F64, 1e-12));
    return pl_cast(o->arena, choose(o, binary(o, PL_LE, difference, slack), whole, result), o->dtype);
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static const struct {
    formula_fn make;
    pl_expr_op op;
} rows[IR_OP_COUNT] = {
    [IR_OP_Abs] = {direct, PL_ABS},
    [IR_OP_Neg] = {direct, PL_NEG},
    [IR_OP_Sign] = {direct, PL_SIGN},
    [IR_OP_Reciprocal] = {.make = reciprocal},
    [IR_OP_Sqrt] = {direct, PL_SQRT},
    [IR_OP_Exp] = {direct, PL_EXP},
    [IR_OP_Log] = {direct, PL_LOG},
    [IR_OP_Sin] = {direct, PL_SIN},
    [IR_OP_Cos] = {direct, PL_COS},
    [IR_OP_Tan] = {.make = tangent},
    [IR_OP_Asin] = {.make = arc_sine},
    [IR_OP_Acos] = {.make = arc_cosine},
    [IR_OP_Atan] = {.make = arc_tangent},
    [IR_OP_Sinh] = {.make = sine_hyperbolic},
    [IR_OP_Cosh] = {.make = cosine_hyperbolic},
    [IR_OP_Asinh] = {.make = area_sine},
    [IR_OP_Acosh] = {.make = area_cosine},
    [IR_OP_Atanh] = {.make = area_tangent},
    [IR_OP_Tanh] = {direct, PL_TANH},
    [IR_OP_Sigmoid] = {direct, PL_SIGMOID},
    [IR_OP_Erf] = {direct, PL_ERF},
    [IR_OP_Floor] = {of_floats, PL_FLOOR},
    [IR_OP_Ceil] = {of_floats, PL_CEIL},
    [IR_OP_Round] = {of_floats, PL_ROUND},
    [IR_OP_Relu] = {.make = relu},
    [IR_OP_Softplus] = {.make = softplus},
    [IR_OP_Softsign] = {.make = softsign},
    [IR_OP_Not] = {direct, PL_NOT},
    [IR_OP_IsNaN] = {direct, PL_ISNAN},
    [IR_OP_BitwiseNot] = {direct, PL_NOT},
    [IR_OP_HardSwish] = {.make = hard_swish},
    [IR_OP_Mish] = {.make = mish},
    [IR_OP_LeakyRelu] = {.make = leaky_relu},
    [IR_OP_Elu] = {.make = elu},
    [IR_OP_Selu] = {.make = selu},
    [IR_OP_Celu] = {.make = celu},
    [IR_OP_HardSigmoid] = {.make = hard_sigmoid},
    [IR_OP_ThresholdedRelu] = {.make = thresholded_relu},
    [IR_OP_Gelu] = {.make = gelu},
    [IR_OP_Swish] = {.make = swish},
    [IR_OP_Shrink] = {.make = shrink},
    [IR_OP_IsInf] = {.make = is_infinite},
    [IR_OP_Cast] = {.make = cast},
    [IR_OP_CastLike] = {.make = cast},
    [IR_OP_Clip] = {.make = clip},
    [IR_OP_Add] = {direct, PL_ADD},
    [IR_OP_Mul] = {direct, PL_MUL},
    [IR_OP_Sub] = {direct, PL_SUB},
    [IR_OP_Div] = {direct, PL_DIV},
    [IR_OP_Mod] = {.make = modulo},
    [IR_OP_Pow] = {.make = power},
    [IR_OP_PRelu] = {.make = parametric_relu},
    [IR_OP_BitShift] = {.make = shift},
    [IR_OP_BitwiseAnd] = {direct, PL_AND},
    [IR_OP_BitwiseOr] = {direct, PL_OR},
    [IR_OP_BitwiseXor] = {direct, PL_XOR},
    [IR_OP_Min] = {all_inputs, PL_MIN},
    [IR_OP_Max] = {all_inputs, PL_MAX},
    [IR_OP_Sum] = {all_inputs, PL_ADD},
    [IR_OP_Mean] = {.make = mean},
    [IR_OP_And] = {direct, PL_AND},
    [IR_OP_Or] = {direct, PL_OR},
    [IR_OP_Xor] = {direct, PL_XOR},
    [IR_OP_Equal] = {direct, PL_EQ},
    [IR_OP_Less] = {direct, PL_LT},
    [IR_OP_LessOrEqual] = {direct, PL_LE},
    [IR_OP_Greater] = {swapped, PL_LT},
    [IR_OP_GreaterOrEqual] = {swapped, PL_LE},
    [IR_OP_Where] = {.make = where},
};

/* The number of value operands. CastLike's second operand only gives a type. */
static int value_operands(const ir_node *node)
{
    return ir_node_opcode(node) == IR_OP_CastLike ? 1 : node->input_count;
}

static const pl_expr *make(pl_builder *b, const ir_node *node, const pl_expr *const *x)
{
    ir_opcode opcode = ir_node_opcode(node);
    if (rows[opcode].make == NULL) return pl_reject(b, node, "has no expression");
    mdot_dtype dtype = node->outputs[0]->type.dtype;
    operands o = {b, b->arena, node, value_operands(node), x, dtype, rows[opcode].op};
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
