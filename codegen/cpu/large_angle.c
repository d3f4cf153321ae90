/* large_angle.c — see real_functions.h.
 *
 * The method is that of Payne and Hanek ("Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983).
 * x = m · 2^e with an integer m of 53 bits. Only x · 2/π modulo 4 matters, and m times a bit of 2/π of weight 4 or more
 * is a multiple of 4 there. Therefore the product takes 192 bits of 2/π from the first whose weight is 2 after the
 * shift by e. The error of the 128 bits that remain is below 2^-124 of a quadrant, and no double is closer than 2^-62
 * to a multiple of π/2.
 */
#include "codegen/cpu/real_functions.h"

#include <math.h>

enum { WORDS = 19, WINDOW = 3, ZEROS = 16, FRACTION_BITS = 52, EXPONENT_BIAS = 1023 };

/* ZEROS zero bits, and then 2/π's bits, the highest first. The window for 2^e begins at bit e + ZEROS - 2. The largest
 * double's begins at bit 985 and ends in word 18. */
static const uint64_t two_over_pi[WORDS] = {
    0x0000a2f9836e4e44, 0x1529fc2757d1f534, 0xddc0db6295993c43, 0x9041fe5163abdebb, 0xc561b7246e3a424d,
    0xd2e006492eea09d1, 0x921cfe1deb1cb129, 0xa73ee88235f52ebb, 0x4484e99c7026b45f, 0x7e413991d6398353,
    0x39f49c845f8bbdf9, 0x283b1ff897ffde05, 0x980fef2f118b5a0a, 0x6d1f6d367ecf27cb, 0x09b74f463f669e5f,
    0xea2d7527bac7ebe5, 0xf17b3d0739f78a52, 0x92ea6bfb5fb11f8d, 0x5d0856033046fc7b,
};

static LLVMValueRef table(cg_emitter *e)
{
    static const char name[] = "two_over_pi";
    LLVMValueRef known = LLVMGetNamedGlobal(e->module, name);
    if (known != NULL) return known;
    LLVMValueRef words[WORDS];
    for (int i = 0; i < WORDS; i++) words[i] = LLVMConstInt(e->i64, two_over_pi[i], false);
    LLVMValueRef content = LLVMConstArray(e->i64, words, WORDS);
    LLVMValueRef global = LLVMAddGlobal(e->module, LLVMTypeOf(content), name);
    LLVMSetInitializer(global, content);
    LLVMSetGlobalConstant(global, true);
    LLVMSetLinkage(global, LLVMPrivateLinkage);
    LLVMSetAlignment(global, sizeof(uint64_t));
    return global;
}

static LLVMValueRef and_bits(cg_emitter *e, LLVMValueRef x, uint64_t mask)
{
    return LLVMBuildAnd(e->builder, x, LLVMConstInt(LLVMTypeOf(x), mask, false), "");
}

static LLVMValueRef shifted_right(cg_emitter *e, LLVMValueRef x, int count)
{
    return LLVMBuildLShr(e->builder, x, cg_const_int(LLVMTypeOf(x), count), "");
}

static LLVMValueRef shifted_left(cg_emitter *e, LLVMValueRef x, int count)
{
    return LLVMBuildShl(e->builder, x, cg_const_int(LLVMTypeOf(x), count), "");
}

/* 64 bits of the table from bit `position` + 64 k on */
static LLVMValueRef window_word(cg_emitter *e, LLVMValueRef position, int k)
{
    LLVMValueRef first = cg_iadd(e, shifted_right(e, position, 6), cg_int(e, k));
    LLVMValueRef address = cg_at(e, e->i64, table(e), first), next_value = cg_at(e, e->i64, address, cg_int(e, 1));
    LLVMValueRef words[3] = {cg_load(e, e->i64, address, 8), cg_load(e, e->i64, next_value, 8),
                             and_bits(e, position, 63)};
    return cg_intrinsic(e, "llvm.fshl", e->i64, words, 3);
}

/* x · 2/π modulo 4 in units of 2^-126, for |x| >= 2^40; some number for other x. */
static LLVMValueRef quarter_turns(cg_emitter *e, LLVMValueRef bits, LLVMTypeRef i128)
{
    LLVMValueRef exponent = and_bits(e, shifted_right(e, bits, FRACTION_BITS), 2 * EXPONENT_BIAS + 1);
    LLVMValueRef position = cg_isub(e, exponent, cg_int(e, EXPONENT_BIAS + FRACTION_BITS + 2 - ZEROS));
    position = cg_imin(e, cg_imax(e, position, cg_int(e, 0)), cg_int(e, EXPONENT_BIAS - FRACTION_BITS - 2 + ZEROS));
    LLVMValueRef mantissa = and_bits(e, bits, (UINT64_C(1) << FRACTION_BITS) - 1);
    mantissa = LLVMBuildOr(e->builder, mantissa, cg_int(e, INT64_C(1) << FRACTION_BITS), "");
    LLVMValueRef wide = LLVMBuildZExt(e->builder, mantissa, i128, ""), part[WINDOW];
    for (int k = 0; k < WINDOW; k++) {
        LLVMValueRef word = LLVMBuildZExt(e->builder, window_word(e, position, k), i128, "");
        part[k] = LLVMBuildMul(e->builder, wide, word, "");
    }
    LLVMValueRef low = LLVMBuildAdd(e->builder, part[1], shifted_right(e, part[2], 64), "");
    return LLVMBuildAdd(e->builder, shifted_left(e, part[0], 64), low, "");
}

/* turns · 2^-128 as f64, for a signed i128 that is not 0 */
static LLVMValueRef fraction(cg_emitter *e, LLVMValueRef turns, LLVMTypeRef i128)
{
    LLVMValueRef zero = cg_const_int(i128, 0), negative = LLVMBuildICmp(e->builder, LLVMIntSLT, turns, zero, "");
    LLVMValueRef magnitude = cg_select(e, negative, LLVMBuildNeg(e->builder, turns, ""), turns);
    LLVMValueRef arguments[2] = {magnitude, LLVMConstInt(e->i1, 0, false)};
    LLVMValueRef zeros = cg_intrinsic(e, "llvm.ctlz", i128, arguments, 2);
    LLVMValueRef normal = LLVMBuildShl(e->builder, magnitude, zeros, "");
    LLVMValueRef top = LLVMBuildTrunc(e->builder, shifted_right(e, normal, 65), e->i64, ""); /* 63 bits */
    LLVMValueRef number = LLVMBuildSIToFP(e->builder, top, e->f64, "");
    LLVMValueRef exponent = cg_isub(e, cg_int(e, EXPONENT_BIAS - 63), LLVMBuildTrunc(e->builder, zeros, e->i64, ""));
    LLVMValueRef scale = LLVMBuildBitCast(e->builder, shifted_left(e, exponent, FRACTION_BITS), e->f64, "");
    number = cg_fmul(e, number, scale);
    return cg_select(e, negative, LLVMBuildFNeg(e->builder, number, ""), number);
}

static cg_angle reduce(cg_emitter *e, LLVMValueRef x)
{
    LLVMTypeRef i128 = LLVMIntTypeInContext(e->context, 128);
    LLVMValueRef bits = LLVMBuildBitCast(e->builder, x, e->i64, "");
    LLVMValueRef turns = quarter_turns(e, bits, i128);
    LLVMValueRef half = shifted_left(e, LLVMConstInt(i128, 1, false), 125);
    LLVMValueRef nearest = shifted_right(e, LLVMBuildAdd(e->builder, turns, half, ""), 126);
    LLVMValueRef quadrant = LLVMBuildTrunc(e->builder, nearest, e->i64, "");
    LLVMValueRef rest =
        cg_fmul(e, fraction(e, shifted_left(e, turns, 2), i128), cg_const(e, e->f64, 1.5707963267948966));
    LLVMValueRef below = LLVMBuildFCmp(e->builder, LLVMRealOLT, x, cg_const(e, e->f64, 0), "");
    quadrant = cg_select(e, below, and_bits(e, cg_isub(e, cg_int(e, 4), quadrant), 3), quadrant);
    rest = cg_select(e, below, LLVMBuildFNeg(e->builder, rest, ""), rest);
    return (cg_angle){.quadrant = LLVMBuildSIToFP(e->builder, quadrant, e->f64, ""), .rest = rest};
}

/* The same for each vector lane, in a loop, because these lanes are rare and the code is long. */
static cg_angle reduce_lanes(cg_emitter *e, LLVMValueRef x)
{
    int lanes = cg_lanes(x);
    if (lanes == 1) return reduce(e, x);
    LLVMValueRef init[2] = {LLVMGetUndef(LLVMTypeOf(x)), LLVMGetUndef(LLVMTypeOf(x))};
    cg_loop loop;
    cg_loop_begin(e, &loop, cg_int(e, 0), cg_int(e, lanes), 1, 2, init, false);
    cg_angle lane = reduce(e, LLVMBuildExtractElement(e->builder, x, loop.index, ""));
    LLVMValueRef next_value[2] = {
        LLVMBuildInsertElement(e->builder, loop.carried[0], lane.quadrant, loop.index, ""),
        LLVMBuildInsertElement(e->builder, loop.carried[1], lane.rest, loop.index, ""),
    };
    cg_loop_end(e, &loop, next_value);
    return (cg_angle){.quadrant = loop.out[0], .rest = loop.out[1]};
}

static LLVMValueRef merged(cg_emitter *e, LLVMValueRef usual, LLVMBasicBlockRef before, LLVMValueRef large,
                           LLVMBasicBlockRef reduced)
{
    LLVMValueRef phi = LLVMBuildPhi(e->builder, LLVMTypeOf(usual), "");
    LLVMAddIncoming(phi, &usual, &before, 1);
    LLVMAddIncoming(phi, &large, &reduced, 1);
    return phi;
}

void cg_reduce_large_angles(cg_emitter *e, LLVMValueRef x, cg_angle *angle)
{
    LLVMTypeRef type = LLVMTypeOf(x), mask = LLVMIntTypeInContext(e->context, (unsigned)cg_lanes(x));
    LLVMValueRef magnitude = cg_fabs(e, x);
    LLVMValueRef is_far = LLVMBuildFCmp(e->builder, LLVMRealOGE, magnitude, cg_const(e, type, 0x1p40), "");
    LLVMValueRef is_finite = LLVMBuildFCmp(e->builder, LLVMRealOLT, magnitude, cg_const(e, type, INFINITY), "");
    LLVMValueRef is_large = LLVMBuildAnd(e->builder, is_far, is_finite, "");
    LLVMValueRef lanes = LLVMBuildBitCast(e->builder, is_large, mask, "");
    LLVMValueRef some = LLVMBuildICmp(e->builder, LLVMIntNE, lanes, cg_const_int(mask, 0), "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->builder);
    cg_if block;
    cg_if_begin(e, &block, some);
    cg_angle large = reduce_lanes(e, x);
    large.quadrant = cg_select(e, is_large, large.quadrant, angle->quadrant);
    large.rest = cg_select(e, is_large, large.rest, angle->rest);
    LLVMBasicBlockRef reduced = LLVMGetInsertBlock(e->builder);
    cg_if_end(e, &block);
    angle->quadrant = merged(e, angle->quadrant, before, large.quadrant, reduced);
    angle->rest = merged(e, angle->rest, before, large.rest, reduced);
}
