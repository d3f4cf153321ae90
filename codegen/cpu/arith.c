/* arith.c — the semantics of each operator of an expression for each element type, and conversions between the
 * types.
 *
 * Every operation is defined for all operands: float → integer saturates (LLVM's plain conversion would be poison),
 * integers wrap, division by zero gives zero and INT_MIN / -1 wraps, shifts by the width or more give zero.
 */
#include "codegen/cpu/cpu_values.h"

#include "codegen/cpu/emit.h"
#include "codegen/cpu/real_functions.h"
#include "plan/expr.h"

#include <assert.h>
#include <math.h>

LLVMTypeRef cg_value_type(cg_emitter *e, mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F16:
    case MDOT_DTYPE_BF16:
    case MDOT_DTYPE_F32: return e->f32;
    case MDOT_DTYPE_F64: return e->f64;
    case MDOT_DTYPE_BOOL: return e->i1;
    case MDOT_DTYPE_U8:
    case MDOT_DTYPE_I8: return e->i8;
    case MDOT_DTYPE_U16:
    case MDOT_DTYPE_I16: return e->i16;
    case MDOT_DTYPE_U32:
    case MDOT_DTYPE_I32: return e->i32;
    default: assert(dtype == MDOT_DTYPE_U64 || dtype == MDOT_DTYPE_I64); return e->i64;
    }
}

LLVMTypeRef cg_storage_type(cg_emitter *e, mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F16: return e->f16;
    case MDOT_DTYPE_BF16: return e->i16;
    case MDOT_DTYPE_BOOL: return e->i8;
    default: return cg_value_type(e, dtype);
    }
}

static LLVMValueRef integer(LLVMValueRef like, int64_t value) { return cg_const_int(LLVMTypeOf(like), value); }

static LLVMValueRef icmp(cg_emitter *e, LLVMIntPredicate predicate, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildICmp(e->builder, predicate, a, b, "");
}

static LLVMValueRef fcmp(cg_emitter *e, LLVMRealPredicate predicate, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildFCmp(e->builder, predicate, a, b, "");
}

static LLVMTypeRef like_type(LLVMValueRef value, LLVMTypeRef element)
{
    return cg_with_element(LLVMTypeOf(value), element);
}

/* f64 → f32, rounded to odd: the last bit records that lower bits were lost, so a second rounding to half or bfloat16
 * is correct. */
static LLVMValueRef narrow_to_odd(cg_emitter *e, LLVMValueRef wide)
{
    LLVMTypeRef f32 = like_type(wide, e->f32), i32 = like_type(wide, e->i32);
    LLVMValueRef narrow = LLVMBuildFPTrunc(e->builder, wide, f32, "");
    LLVMValueRef back = LLVMBuildFPExt(e->builder, narrow, LLVMTypeOf(wide), "");
    LLVMValueRef magnitude = cg_fabs(e, back), exact = cg_fabs(e, wide);
    LLVMValueRef is_larger = fcmp(e, LLVMRealOGT, magnitude, exact);
    LLVMValueRef inexact = fcmp(e, LLVMRealONE, back, wide);
    LLVMValueRef bits = LLVMBuildBitCast(e->builder, narrow, i32, "");
    bits = LLVMBuildSub(e->builder, bits, LLVMBuildZExt(e->builder, is_larger, i32, ""), "");
    bits = LLVMBuildOr(e->builder, bits, LLVMBuildZExt(e->builder, inexact, i32, ""), "");
    return LLVMBuildBitCast(e->builder, bits, f32, "");
}

/* f32 → bfloat16, rounding half to even. A NaN keeps its sign and becomes quiet. */
static LLVMValueRef to_bfloat(cg_emitter *e, LLVMValueRef value)
{
    LLVMTypeRef i32 = like_type(value, e->i32);
    LLVMValueRef bits = LLVMBuildBitCast(e->builder, value, i32, ""), sixteen = cg_const_int(i32, 16);
    LLVMValueRef high = LLVMBuildLShr(e->builder, bits, sixteen, "");
    LLVMValueRef odd = LLVMBuildAnd(e->builder, high, cg_const_int(i32, 1), "");
    LLVMValueRef bias = LLVMBuildAdd(e->builder, odd, cg_const_int(i32, 0x7fff), "");
    LLVMValueRef rounded = LLVMBuildLShr(e->builder, LLVMBuildAdd(e->builder, bits, bias, ""), sixteen, "");
    LLVMValueRef quiet = LLVMBuildOr(e->builder, high, cg_const_int(i32, 0x40), "");
    LLVMValueRef result = cg_select(e, fcmp(e, LLVMRealUNO, value, value), quiet, rounded);
    return LLVMBuildTrunc(e->builder, result, cg_with_element(i32, e->i16), "");
}

static LLVMValueRef from_bfloat(cg_emitter *e, LLVMValueRef stored)
{
    LLVMTypeRef i32 = like_type(stored, e->i32);
    LLVMValueRef bits = LLVMBuildShl(e->builder, LLVMBuildZExt(e->builder, stored, i32, ""), cg_const_int(i32, 16), "");
    return LLVMBuildBitCast(e->builder, bits, cg_with_element(i32, e->f32), "");
}

LLVMValueRef cg_from_storage(cg_emitter *e, LLVMValueRef stored, mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F16: return LLVMBuildFPExt(e->builder, stored, like_type(stored, e->f32), "");
    case MDOT_DTYPE_BF16: return from_bfloat(e, stored);
    case MDOT_DTYPE_BOOL: return icmp(e, LLVMIntNE, stored, integer(stored, 0));
    default: return stored;
    }
}

LLVMValueRef cg_to_storage(cg_emitter *e, LLVMValueRef value, mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F16: return LLVMBuildFPTrunc(e->builder, value, like_type(value, e->f16), "");
    case MDOT_DTYPE_BF16: return to_bfloat(e, value);
    case MDOT_DTYPE_BOOL: return LLVMBuildZExt(e->builder, value, like_type(value, e->i8), "");
    default: return value;
    }
}

static LLVMValueRef float_to_float(cg_emitter *e, LLVMValueRef value, mdot_dtype source_dtype, mdot_dtype target_dtype)
{
    bool was_wide = source_dtype == MDOT_DTYPE_F64;
    if (target_dtype == MDOT_DTYPE_F64)
        return was_wide ? value : LLVMBuildFPExt(e->builder, value, like_type(value, e->f64), "");
    if (target_dtype == MDOT_DTYPE_F32)
        return was_wide ? LLVMBuildFPTrunc(e->builder, value, like_type(value, e->f32), "") : value;
    if (was_wide) value = narrow_to_odd(e, value);
    return cg_from_storage(e, cg_to_storage(e, value, target_dtype), target_dtype);
}

static LLVMValueRef integer_to_integer(cg_emitter *e, LLVMValueRef value, mdot_dtype source_dtype,
                                       mdot_dtype target_dtype)
{
    if (target_dtype == MDOT_DTYPE_BOOL) return icmp(e, LLVMIntNE, value, integer(value, 0));
    LLVMTypeRef type = like_type(value, cg_value_type(e, target_dtype));
    unsigned width = LLVMGetIntTypeWidth(cg_element(type)), had = LLVMGetIntTypeWidth(cg_element(LLVMTypeOf(value)));
    if (width == had) return value;
    if (width < had) return LLVMBuildTrunc(e->builder, value, type, "");
    return ir_dtype_is_unsigned(source_dtype) ? LLVMBuildZExt(e->builder, value, type, "")
                                              : LLVMBuildSExt(e->builder, value, type, "");
}

/* Saturates; a NaN becomes 0. */
static LLVMValueRef float_to_integer(cg_emitter *e, LLVMValueRef value, mdot_dtype target_dtype)
{
    if (target_dtype == MDOT_DTYPE_BOOL) return fcmp(e, LLVMRealUNE, value, cg_like(e, value, 0));
    LLVMTypeRef types[] = {like_type(value, cg_value_type(e, target_dtype)), LLVMTypeOf(value)};
    const char *name = ir_dtype_is_unsigned(target_dtype) ? "llvm.fptoui.sat" : "llvm.fptosi.sat";
    return cg_intrinsic_overloaded(e, name, types, 2, &value, 1);
}

static LLVMValueRef integer_to_float(cg_emitter *e, LLVMValueRef value, mdot_dtype source_dtype,
                                     mdot_dtype target_dtype)
{
    bool direct = target_dtype == MDOT_DTYPE_F32 || target_dtype == MDOT_DTYPE_F64;
    LLVMTypeRef type = like_type(value, target_dtype == MDOT_DTYPE_F32 ? e->f32 : e->f64);
    LLVMValueRef number = ir_dtype_is_unsigned(source_dtype) ? LLVMBuildUIToFP(e->builder, value, type, "")
                                                             : LLVMBuildSIToFP(e->builder, value, type, "");
    return direct ? number : float_to_float(e, number, MDOT_DTYPE_F64, target_dtype);
}

LLVMValueRef cg_convert(cg_emitter *e, LLVMValueRef value, mdot_dtype source_dtype, mdot_dtype target_dtype)
{
    if (source_dtype == target_dtype) return value;
    bool from_float = ir_dtype_is_float(source_dtype), to_float = ir_dtype_is_float(target_dtype);
    if (from_float && to_float) return float_to_float(e, value, source_dtype, target_dtype);
    if (from_float) return float_to_integer(e, value, target_dtype);
    if (to_float) return integer_to_float(e, value, source_dtype, target_dtype);
    return integer_to_integer(e, value, source_dtype, target_dtype);
}

typedef enum quotient { QUOTIENT, REMAINDER, FLOORED_QUOTIENT, FLOORED_REMAINDER } quotient;

static LLVMValueRef unsigned_quotient(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, quotient what)
{
    LLVMValueRef zero = integer(b, 0), none = icmp(e, LLVMIntEQ, b, zero), safe = cg_select(e, none, integer(b, 1), b);
    bool wants_remainder = what == REMAINDER || what == FLOORED_REMAINDER;
    LLVMValueRef result =
        wants_remainder ? LLVMBuildURem(e->builder, a, safe, "") : LLVMBuildUDiv(e->builder, a, safe, "");
    return cg_select(e, none, zero, result);
}

/* The processor traps on a zero divisor and on INT_MIN / -1. The code divides by 1 instead and corrects the
 * quotient. */
static LLVMValueRef signed_quotient(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, quotient what)
{
    LLVMValueRef zero = integer(b, 0), one = integer(b, 1);
    LLVMValueRef none = icmp(e, LLVMIntEQ, b, zero), negate = icmp(e, LLVMIntEQ, b, integer(b, -1));
    LLVMValueRef safe = cg_select(e, LLVMBuildOr(e->builder, none, negate, ""), one, b);
    LLVMValueRef q = LLVMBuildSDiv(e->builder, a, safe, "");
    LLVMValueRef r = LLVMBuildSub(e->builder, a, LLVMBuildMul(e->builder, q, safe, ""), "");
    q = cg_select(e, negate, LLVMBuildNeg(e->builder, a, ""), q);
    if (what == FLOORED_QUOTIENT || what == FLOORED_REMAINDER) {
        LLVMValueRef opposite = icmp(e, LLVMIntSLT, LLVMBuildXor(e->builder, r, b, ""), zero);
        LLVMValueRef adjust = LLVMBuildAnd(e->builder, icmp(e, LLVMIntNE, r, zero), opposite, "");
        q = cg_select(e, adjust, LLVMBuildSub(e->builder, q, one, ""), q);
        r = cg_select(e, adjust, LLVMBuildAdd(e->builder, r, b, ""), r);
    }
    return cg_select(e, none, zero, what == QUOTIENT || what == FLOORED_QUOTIENT ? q : r);
}

enum { REMAINDER_BITS = 51 }; /* quotient bits removed by one step */

/* The exponent of |x| in f64, as i64. 0 counts as less than any other number, NaN and infinity as more. */
static LLVMValueRef exponent_of(cg_emitter *e, LLVMValueRef x)
{
    LLVMTypeRef type = like_type(x, e->i64);
    LLVMValueRef is_small = fcmp(e, LLVMRealOLT, x, cg_like(e, x, 0x1p-1022));
    LLVMValueRef scaled = cg_select(e, is_small, cg_fmul(e, x, cg_like(e, x, 0x1p54)), x);
    LLVMValueRef bits =
        LLVMBuildLShr(e->builder, LLVMBuildBitCast(e->builder, scaled, type, ""), cg_const_int(type, 52), "");
    LLVMValueRef biased = LLVMBuildAnd(e->builder, bits, cg_const_int(type, 0x7ff), "");
    LLVMValueRef bias = cg_select(e, is_small, cg_const_int(type, 1023 + 54), cg_const_int(type, 1023));
    return LLVMBuildSub(e->builder, biased, bias, "");
}

/* y · 2^n for 0 ≤ n < 2046, in two factors, because 2^n may be infinite. */
static LLVMValueRef scaled_up(cg_emitter *e, LLVMValueRef y, LLVMValueRef n)
{
    LLVMTypeRef type = LLVMTypeOf(n);
    LLVMValueRef half = LLVMBuildLShr(e->builder, n, cg_const_int(type, 1), "");
    LLVMValueRef parts[] = {half, LLVMBuildSub(e->builder, n, half, "")};
    for (int i = 0; i < 2; i++) {
        LLVMValueRef bits = LLVMBuildAdd(e->builder, parts[i], cg_const_int(type, 1023), "");
        bits = LLVMBuildShl(e->builder, bits, cg_const_int(type, 52), "");
        y = cg_fmul(e, y, LLVMBuildBitCast(e->builder, bits, LLVMTypeOf(y), ""));
    }
    return y;
}

static LLVMValueRef larger(cg_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    return cg_select(e, icmp(e, LLVMIntSGT, a, b), a, b);
}

/* C's fmod, exactly. Each step subtracts a multiple of y · 2^n, where n leaves a quotient below 2^52, until n is 0. The
 * rounded quotient is off by at most one, which the remainder's sign shows. The lanes with the largest quotient
 * determine the step count, which is one for all quotients below 2^51. f32 computes in f64. LLVM's frem would call the
 * C library. */
static LLVMValueRef float_remainder(cg_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a), wide = cg_with_element(type, e->f64);
    if (cg_element(type) != e->f64) {
        LLVMValueRef wide_a = LLVMBuildFPExt(e->builder, a, wide, "");
        LLVMValueRef wide_b = LLVMBuildFPExt(e->builder, b, wide, "");
        LLVMValueRef r = float_remainder(e, wide_a, wide_b);
        return LLVMBuildFPTrunc(e->builder, r, type, "");
    }
    LLVMValueRef x = cg_fabs(e, a), y = cg_fabs(e, b), exponent = exponent_of(e, y);
    LLVMTypeRef integers = LLVMTypeOf(exponent);
    LLVMValueRef bits = cg_const_int(integers, REMAINDER_BITS), none = cg_const_int(integers, 0);
    LLVMValueRef excess = LLVMBuildSub(e->builder, LLVMBuildSub(e->builder, exponent_of(e, x), exponent, ""), bits, "");
    excess = larger(e, excess, none);
    if (LLVMGetTypeKind(integers) == LLVMVectorTypeKind) excess = cg_reduce(e, excess, larger);
    LLVMValueRef steps = LLVMBuildAdd(e->builder, excess, cg_int(e, 2 * REMAINDER_BITS - 1), "");
    steps = LLVMBuildUDiv(e->builder, steps, cg_int(e, REMAINDER_BITS), "");
    cg_loop loop;
    cg_loop_begin(e, &loop, cg_int(e, 0), steps, 1, 1, &x, false);
    LLVMValueRef r = loop.carried[0];
    LLVMValueRef n = LLVMBuildSub(e->builder, LLVMBuildSub(e->builder, exponent_of(e, r), exponent, ""), bits, "");
    LLVMValueRef divisor = scaled_up(e, y, larger(e, n, none));
    LLVMValueRef whole = cg_floor(e, cg_fdiv(e, r, divisor));
    r = cg_fma(e, LLVMBuildFNeg(e->builder, whole, ""), divisor, r);
    LLVMValueRef is_negative = fcmp(e, LLVMRealOLT, r, cg_like(e, r, 0));
    r = cg_select(e, is_negative, cg_fadd(e, r, divisor), r);
    cg_loop_end(e, &loop, &r);
    r = cg_select(e, fcmp(e, LLVMRealOLT, x, y), x, loop.out[0]); /* includes an infinite divisor */
    return cg_intrinsic(e, "llvm.copysign", wide, (LLVMValueRef[]){r, a}, 2);
}

static LLVMValueRef float_floored_remainder(cg_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef r = float_remainder(e, a, b), zero = cg_like(e, a, 0);
    LLVMValueRef negative = fcmp(e, LLVMRealOLT, r, zero), wants_negative = fcmp(e, LLVMRealOLT, b, zero);
    LLVMValueRef opposite = LLVMBuildXor(e->builder, negative, wants_negative, "");
    LLVMValueRef adjust = LLVMBuildAnd(e->builder, fcmp(e, LLVMRealONE, r, zero), opposite, "");
    return cg_select(e, adjust, cg_fadd(e, r, b), r);
}

static LLVMValueRef divide(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, mdot_dtype dtype, quotient what)
{
    if (!ir_dtype_is_float(dtype))
        return ir_dtype_is_unsigned(dtype) ? unsigned_quotient(e, a, b, what) : signed_quotient(e, a, b, what);
    switch (what) {
    case REMAINDER: return float_remainder(e, a, b);
    case FLOORED_REMAINDER: return float_floored_remainder(e, a, b);
    case FLOORED_QUOTIENT: return cg_floor(e, cg_fdiv(e, a, b));
    default: return cg_fdiv(e, a, b);
    }
}

/* Repeated squaring, wrapping. A negative exponent truncates 1 / x^-y: the result is 0 except for x = 1 and x = -1. */
static LLVMValueRef integer_power(cg_emitter *e, LLVMValueRef x, LLVMValueRef y, mdot_dtype y_dtype)
{
    LLVMValueRef zero = integer(x, 0), one = integer(x, 1);
    LLVMTypeRef exponent_type = LLVMTypeOf(y);
    int iterations = (int)LLVMGetIntTypeWidth(cg_element(exponent_type));
    cg_loop loop;
    cg_loop_begin(e, &loop, cg_int(e, 0), cg_int(e, iterations), 1, 3, (LLVMValueRef[]){one, x, y}, false);
    LLVMValueRef result = loop.carried[0], square = loop.carried[1], rest = loop.carried[2];
    LLVMValueRef bit = LLVMBuildTrunc(e->builder, rest, cg_with_element(exponent_type, e->i1), "");
    result = cg_select(e, bit, LLVMBuildMul(e->builder, result, square, ""), result);
    square = LLVMBuildMul(e->builder, square, square, "");
    rest = LLVMBuildLShr(e->builder, rest, cg_const_int(exponent_type, 1), "");
    cg_loop_end(e, &loop, (LLVMValueRef[]){result, square, rest});
    if (ir_dtype_is_unsigned(y_dtype)) return loop.out[0];
    /* A negative exponent has the bits of 2^w + y, which is correct for ±1, because 2^w is even. */
    LLVMValueRef minus_one = integer(x, -1);
    LLVMValueRef is_one = icmp(e, LLVMIntEQ, x, one), is_minus_one = icmp(e, LLVMIntEQ, x, minus_one);
    LLVMValueRef unit = LLVMBuildOr(e->builder, is_one, is_minus_one, "");
    LLVMValueRef negative = icmp(e, LLVMIntSLT, y, cg_const_int(exponent_type, 0));
    LLVMValueRef fraction = LLVMBuildAnd(e->builder, negative, LLVMBuildNot(e->builder, unit, ""), "");
    return cg_select(e, fraction, zero, loop.out[0]);
}

static LLVMValueRef power(cg_emitter *e, const pl_expr *expr, const LLVMValueRef *args)
{
    mdot_dtype x_dtype = expr->arg[0]->dtype, y_dtype = expr->arg[1]->dtype;
    if (!ir_dtype_is_float(x_dtype)) {
        if (!ir_dtype_is_float(y_dtype)) return integer_power(e, args[0], args[1], y_dtype);
        LLVMValueRef x = cg_convert(e, args[0], x_dtype, MDOT_DTYPE_F64);
        LLVMValueRef y = cg_convert(e, args[1], y_dtype, MDOT_DTYPE_F64);
        return cg_convert(e, cg_pow(e, x, y), MDOT_DTYPE_F64, expr->dtype);
    }
    const pl_expr *exponent = expr->arg[1];
    if (exponent->op == PL_CONST) {
        double y = ir_dtype_is_float(y_dtype) ? exponent->f : (double)exponent->n;
        LLVMValueRef square = cg_fmul(e, args[0], args[0]);
        if (y == 2) return square;
        if (y == 3) return cg_fmul(e, square, args[0]);
    }
    /* An integer or wider exponent must keep the parity. f64 represents every exponent with a meaningful parity. */
    if (y_dtype == x_dtype) return cg_pow(e, args[0], args[1]);
    LLVMValueRef x = cg_convert(e, args[0], x_dtype, MDOT_DTYPE_F64);
    LLVMValueRef y = cg_convert(e, args[1], y_dtype, MDOT_DTYPE_F64);
    return cg_convert(e, cg_pow(e, x, y), MDOT_DTYPE_F64, x_dtype == MDOT_DTYPE_F64 ? x_dtype : MDOT_DTYPE_F32);
}

LLVMValueRef cg_extreme(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, mdot_dtype dtype, bool max)
{
    if (!ir_dtype_is_float(dtype)) {
        bool is_unsigned = ir_dtype_is_unsigned(dtype);
        LLVMIntPredicate greater = is_unsigned ? LLVMIntUGT : LLVMIntSGT, less = is_unsigned ? LLVMIntULT : LLVMIntSLT;
        return cg_select(e, icmp(e, max ? greater : less, a, b), a, b);
    }
    /* The instruction returns b if either operand is NaN. A constant b would hide a's NaN, so constants go first. */
    if (LLVMIsConstant(b)) {
        LLVMValueRef swap = a;
        a = b;
        b = swap;
    }
    LLVMValueRef result = max ? cg_fmax(e, a, b) : cg_fmin(e, a, b);
    return LLVMIsConstant(a) ? result : cg_select(e, fcmp(e, LLVMRealUNO, a, a), a, result);
}

static LLVMValueRef compare(cg_emitter *e, const pl_expr *expr, const LLVMValueRef *args)
{
    static const struct {
        LLVMRealPredicate real;
        LLVMIntPredicate with_sign, without_sign;
    } predicates[PL_EXPR_OP_COUNT] = {
        [PL_EQ] = {LLVMRealOEQ, LLVMIntEQ, LLVMIntEQ},
        [PL_LT] = {LLVMRealOLT, LLVMIntSLT, LLVMIntULT},
        [PL_LE] = {LLVMRealOLE, LLVMIntSLE, LLVMIntULE},
    };
    mdot_dtype dtype = expr->arg[0]->dtype;
    if (ir_dtype_is_float(dtype)) return fcmp(e, predicates[expr->op].real, args[0], args[1]);
    bool is_unsigned = ir_dtype_is_unsigned(dtype);
    return icmp(e, is_unsigned ? predicates[expr->op].without_sign : predicates[expr->op].with_sign, args[0], args[1]);
}

static LLVMValueRef shift(cg_emitter *e, const pl_expr *expr, const LLVMValueRef *args)
{
    LLVMOpcode opcode = expr->op == PL_SHL ? LLVMShl : LLVMLShr;
    LLVMTypeRef type = LLVMTypeOf(args[0]);
    LLVMValueRef amount = cg_convert(e, args[1], expr->arg[1]->dtype, expr->dtype);
    LLVMValueRef fits = icmp(e, LLVMIntULT, amount, cg_const_int(type, LLVMGetIntTypeWidth(cg_element(type))));
    LLVMValueRef safe = cg_select(e, fits, amount, cg_const_int(type, 0));
    return cg_select(e, fits, LLVMBuildBinOp(e->builder, opcode, args[0], safe, ""), cg_const_int(type, 0));
}

/* 1, 0 or -1; a NaN and a signed zero are returned unchanged. */
static LLVMValueRef sign(cg_emitter *e, LLVMValueRef x, mdot_dtype dtype)
{
    LLVMValueRef zero = cg_like(e, x, 0), one = cg_like(e, x, 1), minus_one = cg_like(e, x, -1);
    if (ir_dtype_is_float(dtype)) {
        LLVMValueRef below = cg_select(e, fcmp(e, LLVMRealOLT, x, zero), minus_one, x);
        return cg_select(e, fcmp(e, LLVMRealOGT, x, zero), one, below);
    }
    if (ir_dtype_is_unsigned(dtype)) return cg_select(e, icmp(e, LLVMIntNE, x, zero), one, zero);
    LLVMValueRef below = cg_select(e, icmp(e, LLVMIntSLT, x, zero), minus_one, zero);
    return cg_select(e, icmp(e, LLVMIntSGT, x, zero), one, below);
}

static LLVMValueRef absolute(cg_emitter *e, LLVMValueRef x, mdot_dtype dtype)
{
    if (ir_dtype_is_float(dtype)) return cg_fabs(e, x);
    if (ir_dtype_is_unsigned(dtype)) return x;
    LLVMValueRef is_negative = icmp(e, LLVMIntSLT, x, integer(x, 0));
    return cg_select(e, is_negative, LLVMBuildNeg(e->builder, x, ""), x);
}

static LLVMValueRef negate(cg_emitter *e, LLVMValueRef x, mdot_dtype dtype)
{
    return ir_dtype_is_float(dtype) ? LLVMBuildFNeg(e->builder, x, "") : LLVMBuildNeg(e->builder, x, "");
}

static LLVMValueRef is_infinite(cg_emitter *e, LLVMValueRef x)
{
    return fcmp(e, LLVMRealOEQ, cg_fabs(e, x), cg_like(e, x, INFINITY));
}

static LLVMValueRef ceil_of(cg_emitter *e, LLVMValueRef x)
{
    return cg_intrinsic(e, "llvm.ceil", LLVMTypeOf(x), &x, 1);
}

/* Functions of one floating operand. Integers pass through the rounding functions unchanged. */
static cg_unary_fn *const float_functions[PL_EXPR_OP_COUNT] = {
    [PL_SQRT] = cg_sqrt,   [PL_EXP] = cg_exp,
    [PL_LOG] = cg_log,     [PL_SIN] = cg_sin,
    [PL_COS] = cg_cos,     [PL_TANH] = cg_tanh,
    [PL_ERF] = cg_erf,     [PL_SIGMOID] = cg_sigmoid,
    [PL_GELU] = cg_gelu,   [PL_GELU_TANH] = cg_gelu_tanh,
    [PL_FLOOR] = cg_floor, [PL_CEIL] = ceil_of,
    [PL_ROUND] = cg_rint,
};

/* Operators that are one instruction: for floats (0: unsupported) and for integers. */
static const struct {
    LLVMOpcode real, whole;
} instructions[PL_EXPR_OP_COUNT] = {
    [PL_ADD] = {LLVMFAdd, LLVMAdd}, [PL_SUB] = {LLVMFSub, LLVMSub}, [PL_MUL] = {LLVMFMul, LLVMMul},
    [PL_AND] = {0, LLVMAnd},        [PL_OR] = {0, LLVMOr},          [PL_XOR] = {0, LLVMXor},
};

LLVMValueRef cg_operator(cg_emitter *e, const pl_expr *expr, const LLVMValueRef *args)
{
    mdot_dtype dtype = expr->arg[0]->dtype;
    bool real = ir_dtype_is_float(dtype);
    if (instructions[expr->op].whole) {
        LLVMOpcode opcode = real ? instructions[expr->op].real : instructions[expr->op].whole;
        return LLVMBuildBinOp(e->builder, opcode, args[0], args[1], "");
    }
    if (float_functions[expr->op] != NULL) return real ? float_functions[expr->op](e, args[0]) : args[0];
    switch (expr->op) {
    case PL_CAST: return cg_convert(e, args[0], dtype, expr->dtype);
    case PL_NEG: return negate(e, args[0], dtype);
    case PL_ABS: return absolute(e, args[0], dtype);
    case PL_SIGN: return sign(e, args[0], dtype);
    case PL_NOT: return LLVMBuildNot(e->builder, args[0], "");
    case PL_ISNAN: return real ? fcmp(e, LLVMRealUNO, args[0], args[0]) : cg_const_int(like_type(args[0], e->i1), 0);
    case PL_ISINF: return real ? is_infinite(e, args[0]) : cg_const_int(like_type(args[0], e->i1), 0);
    case PL_DIV: return divide(e, args[0], args[1], dtype, QUOTIENT);
    case PL_FLOORDIV: return divide(e, args[0], args[1], dtype, FLOORED_QUOTIENT);
    case PL_PYMOD: return divide(e, args[0], args[1], dtype, FLOORED_REMAINDER);
    case PL_FMOD: return divide(e, args[0], args[1], dtype, REMAINDER);
    case PL_POW: return power(e, expr, args);
    case PL_MIN: return cg_extreme(e, args[0], args[1], dtype, false);
    case PL_MAX: return cg_extreme(e, args[0], args[1], dtype, true);
    case PL_SHL:
    case PL_SHR: return shift(e, expr, args);
    case PL_SELECT: return cg_select(e, args[0], args[1], args[2]);
    default: assert(expr->op == PL_EQ || expr->op == PL_LT || expr->op == PL_LE); return compare(e, expr, args);
    }
}
