/* elementwise_math.c — the scalar functions of elementwise operators and their tables (elementwise.h), from
 * elementwise.def.
 *
 * Formulas are those of the ONNX operator specification, opset 28. Default attribute values are floats there, and are
 * therefore written as floats here.
 */
#include "ir/ops/elementwise.h"

#include <math.h>
#include <string.h>

/* Clamps to [0, 1]; NaN stays. */
static double clamp_unit(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

/* x/2 (1 + tanh(√(2/π)(x + 0.044715 x³))) */
static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(M_2_SQRTPI * M_SQRT1_2 * (x + 0.044715 * x * x * x))); /* √(2/π) = 2/√π · 1/√2 */
}

/* The remainder with the divisor's sign, like numpy.mod. */
static double remainder_as_python(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

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

static int64_t shift_right(int64_t a, int64_t b, bool is_unsigned)
{
    return (uint64_t)b < 64 ? wrap((uint64_t)a >> b) : 0;
}

enum { F = IR_ON_FLOAT, I = IR_ON_INTEGER, B = IR_ON_BOOL };

#define UNARY(op, types, cost, is_test, expression, ...)                                                               \
    static double float_##op(double x, double alpha, double beta) { return expression; }
#define BINARY(op, types, cost, is_test, expression, integer)                                                          \
    static double float_##op(double a, double b) { return expression; }                                                \
    static int64_t integer_##op(int64_t a, int64_t b, bool is_unsigned) { return integer; }
#include "ir/ops/elementwise.def"

static const ir_unary_rule unary_rules[IR_OP_COUNT] = {
#define UNARY(op, types, cost, is_test, expression, ...)                                                               \
    [IR_OP_##op] = {                                                                                                   \
        .accepts = types, .flops = cost, .on_float = float_##op, .makes_bool = is_test, .on_integer = __VA_ARGS__},
#define BINARY(...)
#include "ir/ops/elementwise.def"
};

static const ir_binary_rule binary_rules[IR_OP_COUNT] = {
#define UNARY(...)
#define BINARY(op, types, cost, is_test, ...) [IR_OP_##op] = {types, cost, float_##op, integer_##op, is_test},
#include "ir/ops/elementwise.def"
};

static const ir_binary_rule mod_as_c_rule = {F | I, 1, fmod, remainder_integers, false};
static const ir_binary_rule shift_right_rule = {.accepts = I, .flops = 1, .on_integer = shift_right};

const ir_unary_rule *ir_unary_rule_of(const ir_node *node)
{
    ir_opcode opcode = ir_node_opcode(node);
    if (opcode == IR_OP_Gelu && strcmp(ir_node_string(node, "approximate", "none"), "tanh") == 0)
        return &unary_rules[IR_OP_FastGelu];
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
