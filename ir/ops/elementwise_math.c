/* elementwise_math.c — the scalar functions of elementwise operators and the tables that name them (elementwise.h).
 *
 * Formulas are those of the ONNX operator specification, opset 28. Default attribute values are floats there, and are
 * therefore written as floats here.
 */
#include "ir/ops/elementwise.h"

#include <math.h>
#include <string.h>

/* ---- Unary functions on floats --------------------------------------------------------------------------------- */

#define UNARY(name, expression)                                                                                        \
    static double name(double x, double alpha, double beta)                                                            \
    {                                                                                                                  \
        (void)alpha, (void)beta;                                                                                       \
        return expression;                                                                                             \
    }

/* Clamps to [0, 1]; NaN stays. */
static double clamp_unit(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

UNARY(absolute, fabs(x))
UNARY(negative, -x)
UNARY(sign, x > 0 ? 1 : x < 0 ? -1 : x) /* NaN gives NaN */
UNARY(reciprocal, 1 / x)
UNARY(square_root, sqrt(x))
UNARY(exponential, exp(x))
UNARY(logarithm, log(x))
UNARY(sine, sin(x))
UNARY(cosine, cos(x))
UNARY(tangent, tan(x))
UNARY(arc_sine, asin(x))
UNARY(arc_cosine, acos(x))
UNARY(arc_tangent, atan(x))
UNARY(hyperbolic_sine, sinh(x))
UNARY(hyperbolic_cosine, cosh(x))
UNARY(area_sine, asinh(x))
UNARY(area_cosine, acosh(x))
UNARY(area_tangent, atanh(x))
UNARY(hyperbolic_tangent, tanh(x))
UNARY(sigmoid, 1 / (1 + exp(-x)))
UNARY(error_function, erf(x))
UNARY(round_down, floor(x))
UNARY(round_up, ceil(x))
UNARY(round_even, nearbyint(x)) /* the default rounding mode is to nearest, ties to even */
UNARY(relu, x < 0 ? 0 : x)      /* NaN gives NaN */
UNARY(softplus, x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)))
UNARY(softsign, x / (1 + fabs(x)))
UNARY(is_nan, x != x)
UNARY(is_infinite, ((x == INFINITY && beta != 0) || (x == -INFINITY && alpha != 0)))
UNARY(hard_swish, (x * clamp_unit(x / 6 + 0.5)))
UNARY(mish, (x * tanh(softplus(x, 0, 0))))
UNARY(leaky_relu, (x < 0 ? alpha * x : x))
UNARY(elu, (x < 0 ? alpha * expm1(x) : x))
UNARY(selu, (beta * (x > 0 ? x : alpha * expm1(x))))
UNARY(celu, (x < 0 ? alpha * expm1(x / alpha) : x))
UNARY(hard_sigmoid, (clamp_unit(alpha * x + beta)))
UNARY(thresholded_relu, x > alpha ? x : 0)
UNARY(swish, (x / (1 + exp(-alpha * x))))
UNARY(shrink, (x < -alpha ? x + beta : x > alpha ? x - beta : 0))

/* x/2 (1 + erf(x/√2)); alpha and beta are ignored. */
static double gelu(double x, double alpha, double beta) { return 0.5 * x * (1 + erf(x * M_SQRT1_2)); }

/* x/2 (1 + tanh(√(2/π)(x + 0.044715 x³))); alpha and beta are ignored. */
static double gelu_tanh(double x, double alpha, double beta)
{
    return 0.5 * x * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x))); /* √(2/π) = 2/√π · 1/√2 */
}

/* ---- Unary functions on integers ------------------------------------------------------------------------------- */

/* Converts a result modulo 2^64, which is defined for unsigned types. */
static int64_t wrap(uint64_t bits) { return (int64_t)bits; }

static int64_t negate(int64_t x, bool is_unsigned) { return wrap(0 - (uint64_t)x); }

static int64_t magnitude(int64_t x, bool is_unsigned) { return !is_unsigned && x < 0 ? negate(x, false) : x; }

static int64_t sign_of(int64_t x, bool is_unsigned)
{
    if (is_unsigned) return x != 0;
    return (x > 0) - (x < 0);
}

static int64_t not_negative(int64_t x, bool is_unsigned) { return !is_unsigned && x < 0 ? 0 : x; }

static int64_t logical_not(int64_t x, bool is_unsigned) { return !x; }

static int64_t bitwise_not(int64_t x, bool is_unsigned) { return ~x; }

/* ---- Binary functions on floats -------------------------------------------------------------------------------- */

#define BINARY(name, expression)                                                                                       \
    static double name(double a, double b) { return expression; }

BINARY(add, a + b)
BINARY(subtract, a - b)
BINARY(multiply, (a * b))
BINARY(divide, a / b)
BINARY(remainder_as_c, fmod(a, b))
BINARY(parametric_relu, (a < 0 ? a * b : a))
BINARY(smaller, a != a || a < b ? a : b) /* a NaN on either side gives NaN */
BINARY(larger, a != a || a > b ? a : b)
BINARY(equal, a == b)
BINARY(less, a < b)
BINARY(less_or_equal, a <= b)
BINARY(greater, a > b)
BINARY(greater_or_equal, a >= b)

/* The remainder with the divisor's sign, like numpy.mod. */
static double remainder_as_python(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/* ---- Binary functions on integers ------------------------------------------------------------------------------ */

#define INTEGER(name, expression)                                                                                      \
    static int64_t name(int64_t a, int64_t b, bool is_unsigned)                                                        \
    {                                                                                                                  \
        (void)is_unsigned;                                                                                             \
        return expression;                                                                                             \
    }

static bool is_below(int64_t a, int64_t b, bool is_unsigned) { return is_unsigned ? (uint64_t)a < (uint64_t)b : a < b; }

/* Rounds towards zero; division by zero gives zero. */
static int64_t divide_integers(int64_t a, int64_t b, bool is_unsigned)
{
    if (b == 0) return 0;
    if (is_unsigned) return wrap((uint64_t)a / (uint64_t)b);
    return b == -1 ? negate(a, false) : a / b;
}

/* Has the dividend's sign, like C's %; a zero divisor gives zero. */
static int64_t remainder_integers(int64_t a, int64_t b, bool is_unsigned)
{
    if (b == 0) return 0;
    if (is_unsigned) return wrap((uint64_t)a % (uint64_t)b);
    return b == -1 ? 0 : a % b;
}

/* Has the divisor's sign, like Python's %. */
static int64_t modulo_integers(int64_t a, int64_t b, bool is_unsigned)
{
    int64_t rest = remainder_integers(a, b, is_unsigned);
    return !is_unsigned && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static int64_t integer_power(int64_t base, int64_t exponent)
{
    if (exponent < 0) { /* 1 / base^n, truncated */
        if (base == 1) return 1;
        return base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    }
    uint64_t result = 1, square = (uint64_t)base;
    for (uint64_t left = (uint64_t)exponent; left; left >>= 1) {
        if (left & 1) result *= square;
        square *= square;
    }
    return wrap(result);
}

/* For an unsigned exponent above INT64_MAX, parity is that of its low bit. The power of any base except 0, 1 and -1
 * exceeds 64 bits, but the result is correct modulo 2^64 in any case. */
static int64_t power_integers(int64_t a, int64_t b, bool is_unsigned)
{
    if (!is_unsigned || b >= 0) return integer_power(a, b);
    int64_t half = integer_power(a, wrap((uint64_t)b >> 1));
    uint64_t square = (uint64_t)half * (uint64_t)half;
    return wrap(b & 1 ? square * (uint64_t)a : square);
}

static int64_t shift_left(int64_t a, int64_t b, bool is_unsigned)
{
    return (uint64_t)b < 64 ? wrap((uint64_t)a << b) : 0;
}

static int64_t shift_right(int64_t a, int64_t b, bool is_unsigned)
{
    return (uint64_t)b < 64 ? wrap((uint64_t)a >> b) : 0;
}

INTEGER(add_integers, wrap((uint64_t)a + (uint64_t)b))
INTEGER(subtract_integers, wrap((uint64_t)a - (uint64_t)b))
INTEGER(multiply_integers, (wrap((uint64_t)a * (uint64_t)b)))
INTEGER(parametric_relu_integers, (!is_unsigned && a < 0 ? wrap((uint64_t)a * (uint64_t)b) : a))
INTEGER(and_bits, (a & b))
INTEGER(or_bits, a | b)
INTEGER(xor_bits, a ^ b)
INTEGER(smaller_integer, is_below(b, a, is_unsigned) ? b : a)
INTEGER(larger_integer, is_below(a, b, is_unsigned) ? b : a)
INTEGER(equal_integers, a == b)
INTEGER(less_integers, is_below(a, b, is_unsigned))
INTEGER(less_or_equal_integers, !is_below(b, a, is_unsigned))
INTEGER(greater_integers, is_below(b, a, is_unsigned))
INTEGER(greater_or_equal_integers, !is_below(a, b, is_unsigned))

/* ---- Tables ---------------------------------------------------------------------------------------------------- */

enum { F = IR_ON_FLOAT, I = IR_ON_INTEGER, B = IR_ON_BOOL };

/* Accepted types, FLOPs, function on floats, on integers, makes bool; attributes read as alpha and beta with their
 * defaults. */
#define RULE(types, cost, f, i, is_test)                                                                               \
    {                                                                                                                  \
        .accepts = (types), .flops = (cost), .on_float = (f), .on_integer = (i), .makes_bool = (is_test)               \
    }
#define RULE_WITH(types, cost, f, i, is_test, first, first_default, second, second_default)                            \
    {                                                                                                                  \
        .accepts = (types), .flops = (cost), .on_float = (f), .on_integer = (i), .makes_bool = (is_test),              \
        .alpha_name = (first), .alpha = (first_default), .beta_name = (second), .beta = (second_default)               \
    }

static const ir_unary_rule unary_rules[IR_OP_COUNT] = {
    [IR_OP_Abs] = RULE(F | I, 1, absolute, magnitude, false),
    [IR_OP_Neg] = RULE(F | I, 1, negative, negate, false),
    [IR_OP_Sign] = RULE(F | I, 1, sign, sign_of, false),
    [IR_OP_Reciprocal] = RULE(F, 1, reciprocal, NULL, false),
    [IR_OP_Sqrt] = RULE(F, 1, square_root, NULL, false),
    [IR_OP_Exp] = RULE(F, 1, exponential, NULL, false),
    [IR_OP_Log] = RULE(F, 1, logarithm, NULL, false),
    [IR_OP_Sin] = RULE(F, 1, sine, NULL, false),
    [IR_OP_Cos] = RULE(F, 1, cosine, NULL, false),
    [IR_OP_Tan] = RULE(F, 1, tangent, NULL, false),
    [IR_OP_Asin] = RULE(F, 1, arc_sine, NULL, false),
    [IR_OP_Acos] = RULE(F, 1, arc_cosine, NULL, false),
    [IR_OP_Atan] = RULE(F, 1, arc_tangent, NULL, false),
    [IR_OP_Sinh] = RULE(F, 1, hyperbolic_sine, NULL, false),
    [IR_OP_Cosh] = RULE(F, 1, hyperbolic_cosine, NULL, false),
    [IR_OP_Asinh] = RULE(F, 1, area_sine, NULL, false),
    [IR_OP_Acosh] = RULE(F, 1, area_cosine, NULL, false),
    [IR_OP_Atanh] = RULE(F, 1, area_tangent, NULL, false),
    [IR_OP_Tanh] = RULE(F, 1, hyperbolic_tangent, NULL, false),
    [IR_OP_Sigmoid] = RULE(F, 4, sigmoid, NULL, false),
    [IR_OP_Erf] = RULE(F, 1, error_function, NULL, false),
    [IR_OP_Floor] = RULE(F, 1, round_down, NULL, false),
    [IR_OP_Ceil] = RULE(F, 1, round_up, NULL, false),
    [IR_OP_Round] = RULE(F, 1, round_even, NULL, false),
    [IR_OP_Relu] = RULE(F | I, 1, relu, not_negative, false),
    [IR_OP_Softplus] = RULE(F, 3, softplus, NULL, false),
    [IR_OP_Softsign] = RULE(F, 3, softsign, NULL, false),
    [IR_OP_Not] = RULE(B, 1, NULL, logical_not, true),
    [IR_OP_IsNaN] = RULE(F, 1, is_nan, NULL, true),
    [IR_OP_BitwiseNot] = RULE(I, 1, NULL, bitwise_not, false),
    [IR_OP_HardSwish] = RULE(F, 5, hard_swish, NULL, false),
    [IR_OP_Mish] = RULE(F, 5, mish, NULL, false),
    [IR_OP_LeakyRelu] = RULE_WITH(F, 2, leaky_relu, NULL, false, "alpha", 0.01f, NULL, 0),
    [IR_OP_Elu] = RULE_WITH(F, 3, elu, NULL, false, "alpha", 1, NULL, 0),
    [IR_OP_Selu] =
        RULE_WITH(F, 4, selu, NULL, false, "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f),
    [IR_OP_Celu] = RULE_WITH(F, 4, celu, NULL, false, "alpha", 1, NULL, 0),
    [IR_OP_HardSigmoid] = RULE_WITH(F, 4, hard_sigmoid, NULL, false, "alpha", 0.2f, "beta", 0.5f),
    [IR_OP_ThresholdedRelu] = RULE_WITH(F, 1, thresholded_relu, NULL, false, "alpha", 1, NULL, 0),
    [IR_OP_Gelu] = RULE(F, 5, gelu, NULL, false),
    [IR_OP_Swish] = RULE_WITH(F, 5, swish, NULL, false, "alpha", 1, NULL, 0),
    [IR_OP_Shrink] = RULE_WITH(F | I, 2, shrink, NULL, false, "lambd", 0.5f, "bias", 0),
    [IR_OP_IsInf] = RULE_WITH(F, 1, is_infinite, NULL, true, "detect_negative", 1, "detect_positive", 1),
    [IR_OP_MSGelu] = RULE(F, 5, gelu, NULL, false),
    [IR_OP_FastGelu] = RULE(F, 9, gelu_tanh, NULL, false),
    [IR_OP_BiasGelu] = RULE(F, 6, gelu, NULL, false),
    [IR_OP_QuickGelu] = RULE_WITH(F, 5, swish, NULL, false, "alpha", 1.702f, NULL, 0),
};

static const ir_binary_rule binary_rules[IR_OP_COUNT] = {
    [IR_OP_Add] = RULE(F | I, 1, add, add_integers, false),
    [IR_OP_Mul] = RULE(F | I, 1, multiply, multiply_integers, false),
    [IR_OP_Sub] = RULE(F | I, 1, subtract, subtract_integers, false),
    [IR_OP_Div] = RULE(F | I, 1, divide, divide_integers, false),
    [IR_OP_Mod] = RULE(F | I, 1, remainder_as_python, modulo_integers, false),
    [IR_OP_Pow] = RULE(F | I, 1, pow, power_integers, false),
    [IR_OP_PRelu] = RULE(F | I, 2, parametric_relu, parametric_relu_integers, false),
    [IR_OP_BitShift] = RULE(I, 1, NULL, shift_left, false),
    [IR_OP_BitwiseAnd] = RULE(I, 1, NULL, and_bits, false),
    [IR_OP_BitwiseOr] = RULE(I, 1, NULL, or_bits, false),
    [IR_OP_BitwiseXor] = RULE(I, 1, NULL, xor_bits, false),
    [IR_OP_Min] = RULE(F | I, 1, smaller, smaller_integer, false),
    [IR_OP_Max] = RULE(F | I, 1, larger, larger_integer, false),
    [IR_OP_Sum] = RULE(F, 1, add, NULL, false),
    [IR_OP_Mean] = RULE(F, 1, add, NULL, false),
    [IR_OP_And] = RULE(B, 1, NULL, and_bits, true),
    [IR_OP_Or] = RULE(B, 1, NULL, or_bits, true),
    [IR_OP_Xor] = RULE(B, 1, NULL, xor_bits, true),
    [IR_OP_Equal] = RULE(F | I | B, 1, equal, equal_integers, true),
    [IR_OP_Less] = RULE(F | I, 1, less, less_integers, true),
    [IR_OP_LessOrEqual] = RULE(F | I, 1, less_or_equal, less_or_equal_integers, true),
    [IR_OP_Greater] = RULE(F | I, 1, greater, greater_integers, true),
    [IR_OP_GreaterOrEqual] = RULE(F | I, 1, greater_or_equal, greater_or_equal_integers, true),
};

static const ir_unary_rule gelu_tanh_rule = RULE(F, 9, gelu_tanh, NULL, false);
static const ir_binary_rule mod_as_c_rule = RULE(F | I, 1, remainder_as_c, remainder_integers, false);
static const ir_binary_rule shift_right_rule = RULE(I, 1, NULL, shift_right, false);

const ir_unary_rule *ir_unary_rule_of(const ir_node *node)
{
    ir_opcode opcode = ir_node_opcode(node);
    if (opcode == IR_OP_Gelu && strcmp(ir_node_string(node, "approximate", "none"), "tanh") == 0)
        return &gelu_tanh_rule;
    return unary_rules[opcode].accepts ? &unary_rules[opcode] : NULL;
}

const ir_binary_rule *ir_binary_default(ir_opcode opcode)
{
    return binary_rules[opcode].accepts ? &binary_rules[opcode] : NULL;
}

const ir_binary_rule *ir_binary_rule_of(const ir_node *node)
{
    ir_opcode opcode = ir_node_opcode(node);
    if (opcode == IR_OP_Mod && ir_node_int(node, "fmod", 0)) return &mod_as_c_rule;
    if (opcode == IR_OP_BitShift && strcmp(ir_node_string(node, "direction", "LEFT"), "RIGHT") == 0)
        return &shift_right_rule;
    return ir_binary_default(opcode);
}

mdot_status ir_check_accepts(const ir_node *node, unsigned accepts, mdot_dtype dtype, mdot_error *err)
{
    if (dtype == MDOT_DTYPE_STRING) return ir_fail(node, err, MDOT_UNSUPPORTED, "strings are unsupported");
    unsigned kind = ir_dtype_is_float(dtype) ? IR_ON_FLOAT : dtype == MDOT_DTYPE_BOOL ? IR_ON_BOOL : IR_ON_INTEGER;
    if (accepts & kind) return MDOT_OK;
    return ir_fail(node, err, MDOT_MALFORMED, "the operator is undefined for %s", mdot_dtype_name(dtype));
}

/* ---- Conversions (families.h) ---------------------------------------------------------------------------------- */

double ir_round_float(mdot_dtype dtype, double value)
{
    switch (dtype) {
    case MDOT_DTYPE_F16: return ir_f16_to_f32(ir_f64_to_f16(value));
    case MDOT_DTYPE_BF16: return ir_bf16_to_f32(ir_f64_to_bf16(value));
    default: return value;
    }
}

double ir_nearest_float(mdot_dtype dtype, double value)
{
    return dtype == MDOT_DTYPE_F32 ? (float)value : ir_round_float(dtype, value);
}
