/* scalar.c — applies one expression operator to one value (see expr.h). */
#include "plan/expr.h"

#include "ir/ops/families.h"

#include <math.h>

static double float_unary(pl_expr_op op, double x)
{
    switch (op) {
    case PL_NEG: return -x;
    case PL_ABS: return fabs(x);
    case PL_SIGN: return isnan(x) ? x : (double)((x > 0) - (x < 0));
    case PL_SQRT: return sqrt(x);
    case PL_EXP: return exp(x);
    case PL_LOG: return log(x);
    case PL_SIN: return sin(x);
    case PL_COS: return cos(x);
    case PL_TANH: return tanh(x);
    case PL_ERF: return erf(x);
    case PL_SIGMOID: return exp(fmin(x, 0)) / (1 + exp(-fabs(x)));
    case PL_GELU: return 0.5 * x * (1 + erf(x * M_SQRT1_2));
    case PL_GELU_TANH: return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case PL_FLOOR: return floor(x);
    case PL_CEIL: return ceil(x);
    default: return rint(x); /* PL_ROUND; the default rounding mode is half to even */
    }
}

static double float_binary(pl_expr_op op, double a, double b)
{
    switch (op) {
    case PL_ADD: return a + b;
    case PL_SUB: return a - b;
    case PL_MUL: return a * b;
    case PL_DIV: return a / b;
    case PL_FLOORDIV: return floor(a / b);
    case PL_PYMOD: {
        double m = fmod(a, b);
        return m != 0 && (m < 0) != (b < 0) ? m + b : m;
    }
    case PL_FMOD: return fmod(a, b);
    case PL_POW: return pow(a, b);
    case PL_MIN: return isnan(a) || isnan(b) ? NAN : fmin(a, b);
    default: return isnan(a) || isnan(b) ? NAN : fmax(a, b); /* PL_MAX */
    }
}

static int64_t integer_unary(pl_expr_op op, mdot_dtype dtype, int64_t x)
{
    switch (op) {
    case PL_NEG: return (int64_t)(0 - (uint64_t)x);
    case PL_ABS: return x < 0 && !ir_dtype_is_unsigned(dtype) ? (int64_t)(0 - (uint64_t)x) : x;
    case PL_SIGN: return ir_dtype_is_unsigned(dtype) ? x != 0 : (x > 0) - (x < 0);
    case PL_NOT: return dtype == MDOT_DTYPE_BOOL ? !x : ~x;
    default: return x; /* rounding an integer changes nothing */
    }
}

/* Power by squaring. For a negative exponent, only a base of ±1 has an integral inverse; others give 0. */
static int64_t integer_power(int64_t base, int64_t exponent)
{
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    uint64_t result = 1, square = (uint64_t)base;
    for (; exponent; exponent >>= 1, square *= square)
        if (exponent & 1) result *= square;
    return (int64_t)result;
}

/* Quotient and remainder as in C, with x / 0 = x % 0 = 0 and INT64_MIN / -1 wrapping. */
static void divide(bool is_unsigned, int64_t a, int64_t b, int64_t *quotient, int64_t *remainder)
{
    *quotient = *remainder = 0;
    if (b == 0) return;
    if (is_unsigned) {
        *quotient = (int64_t)((uint64_t)a / (uint64_t)b);
        *remainder = (int64_t)((uint64_t)a % (uint64_t)b);
    } else if (b == -1) {
        *quotient = (int64_t)(0 - (uint64_t)a);
    } else {
        *quotient = a / b;
        *remainder = a % b;
    }
}

static bool integer_less(bool is_unsigned, int64_t a, int64_t b)
{
    return is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
}

static int64_t integer_binary(pl_expr_op op, mdot_dtype dtype, int64_t a, int64_t b)
{
    bool is_unsigned = ir_dtype_is_unsigned(dtype);
    int64_t quotient, remainder;
    divide(is_unsigned, a, b, &quotient, &remainder);
    bool rounds_down = remainder != 0 && !is_unsigned && (remainder < 0) != (b < 0);
    switch (op) {
    case PL_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case PL_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case PL_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case PL_DIV: return quotient;
    case PL_FLOORDIV: return quotient - rounds_down;
    case PL_PYMOD: return rounds_down ? remainder + b : remainder;
    case PL_FMOD: return remainder;
    case PL_POW: return integer_power(a, b);
    case PL_MIN: return integer_less(is_unsigned, a, b) ? a : b;
    case PL_MAX: return integer_less(is_unsigned, a, b) ? b : a;
    case PL_AND: return a & b;
    case PL_OR: return a | b;
    case PL_XOR: return a ^ b;
    case PL_SHL: return (uint64_t)b < 64 ? (int64_t)((uint64_t)a << b) : 0;
    default: return (uint64_t)b < 64 ? (int64_t)((uint64_t)a >> b) : 0; /* PL_SHR */
    }
}

static bool compare(pl_expr_op op, mdot_dtype source_dtype, pl_scalar a, pl_scalar b)
{
    if (ir_dtype_is_float(source_dtype)) return op == PL_EQ ? a.f == b.f : op == PL_LT ? a.f < b.f : a.f <= b.f;
    bool is_unsigned = ir_dtype_is_unsigned(source_dtype);
    if (op == PL_EQ) return a.n == b.n;
    return op == PL_LT ? integer_less(is_unsigned, a.n, b.n) : !integer_less(is_unsigned, b.n, a.n);
}

pl_scalar pl_scalar_cast(pl_scalar value, mdot_dtype source_dtype, mdot_dtype target_dtype)
{
    bool was_float = ir_dtype_is_float(source_dtype);
    if (ir_dtype_is_float(target_dtype)) {
        if (was_float) return (pl_scalar){.f = ir_round_float(target_dtype, value.f)};
        return (pl_scalar){.f = source_dtype == MDOT_DTYPE_U64 ? (double)(uint64_t)value.n : (double)value.n};
    }
    if (target_dtype == MDOT_DTYPE_BOOL) return (pl_scalar){.n = was_float ? value.f != 0 : value.n != 0};
    return (pl_scalar){.n = was_float ? ir_float_to_integer(target_dtype, value.f)
                                      : ir_wrap_integer(target_dtype, value.n)};
}

pl_scalar pl_scalar_round(pl_scalar value, mdot_dtype dtype)
{
    if (ir_dtype_is_float(dtype)) return (pl_scalar){.f = ir_nearest_float(dtype, value.f)};
    return (pl_scalar){.n = ir_wrap_integer(dtype, value.n)};
}

pl_scalar pl_scalar_apply(pl_expr_op op, mdot_dtype dtype, mdot_dtype source_dtype, const pl_scalar *arg)
{
    bool is_float = ir_dtype_is_float(source_dtype);
    switch (op) {
    case PL_CAST: return pl_scalar_cast(arg[0], source_dtype, dtype);
    case PL_ISNAN: return (pl_scalar){.n = is_float && isnan(arg[0].f)};
    case PL_ISINF: return (pl_scalar){.n = is_float && isinf(arg[0].f)};
    case PL_EQ:
    case PL_LT:
    case PL_LE: return (pl_scalar){.n = compare(op, source_dtype, arg[0], arg[1])};
    case PL_SELECT: return arg[0].n ? arg[1] : arg[2];
    default: break;
    }
    if (pl_expr_operand_count(op) == 1) {
        if (is_float) return (pl_scalar){.f = float_unary(op, arg[0].f)};
        return (pl_scalar){.n = ir_wrap_integer(dtype, integer_unary(op, dtype, arg[0].n))};
    }
    if (is_float) return (pl_scalar){.f = float_binary(op, arg[0].f, arg[1].f)};
    return (pl_scalar){.n = ir_wrap_integer(dtype, integer_binary(op, dtype, arg[0].n, arg[1].n))};
}
