/* gelu.c — GELU, the activation in every feed-forward block of the reference predictors.
 *
 * f32 uses an approximation that costs a third of erf's: gelu(x) = max(0, x) + a p(a) with a = |x| and p(a) =
 * -erfc(a/√2) / 2. The product vanishes by a = 6. If a look-up in sixteen entries is one instruction, p is sixteen
 * polynomials of degree 4, or 3 before a rounding to bf16, also for fewer lanes, so an element's result is independent
 * of its place in a row. Otherwise p is one polynomial of degree 14. The absolute error is below 1e-6. Small arguments
 * keep their sign, because the factor a is exact. NaN passes through, negative infinity gives NaN as in ONNX Runtime
 * and PyTorch, and neither form divides. */
#include "codegen/cpu/real_functions.h"

#include "codegen/cpu/emit.h"

#include <math.h>

enum { INTERVALS = 16, MAX_TERMS = 5 };
/* Interval i has the middle i * interval_width, and the first one is half as wide. a p(a) = -6e-8 at its last end, 5.6;
 * wider intervals would fit worse: 3e-7 here with five terms, and 3e-6 with four. */
static const double interval_width = 5.6 / (INTERVALS - 0.5);

/* c[k][i] is the coefficient of t^k on interval i, where t is the distance from its middle, or a itself. Interpolation
 * at the Chebyshev nodes, by Newton's divided differences. */
static void fit_intervals(double c[MAX_TERMS][INTERVALS], int terms, bool from_middle)
{
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < INTERVALS; i++) {
        double node[MAX_TERMS], difference[MAX_TERMS], expanded[MAX_TERMS] = {0};
        for (int k = 0; k < terms; k++) {
            double a = i * interval_width + cos(pi * (k + 0.5) / terms) * interval_width / 2;
            node[k] = from_middle ? a - i * interval_width : a;
            difference[k] = -erfc(a * sqrt(0.5)) / 2;
        }
        for (int order = 1; order < terms; order++)
            for (int k = terms - 1; k >= order; k--)
                difference[k] = (difference[k] - difference[k - 1]) / (node[k] - node[k - order]);
        for (int k = terms - 1; k >= 0; k--) { /* expanded = expanded * (t - node) + difference */
            for (int power = terms - 1; power > 0; power--)
                expanded[power] = expanded[power - 1] - node[k] * expanded[power];
            expanded[0] = difference[k] - node[k] * expanded[0];
        }
        for (int k = 0; k < terms; k++) c[k][i] = expanded[k];
    }
}

/* table[index mod 16], lane by lane: one vpermps. The plain form of other levels is for tests. */
static LLVMValueRef look_up(cg_emitter *e, const double table[INTERVALS], LLVMValueRef index)
{
    LLVMValueRef entry[INTERVALS];
    for (int i = 0; i < INTERVALS; i++) entry[i] = cg_const(e, e->f32, table[i]);
    LLVMValueRef entries = LLVMConstVector(entry, INTERVALS), result = LLVMGetPoison(LLVMTypeOf(entries));
    if (!e->target->use_generic_vectors)
        return cg_intrinsic(e, "llvm.x86.avx512.permvar.sf.512", NULL, (LLVMValueRef[]){entries, index}, 2);
    index = LLVMBuildAnd(e->builder, index, cg_const_int(LLVMTypeOf(index), INTERVALS - 1), "");
    for (int i = 0; i < INTERVALS; i++) {
        LLVMValueRef lane = cg_const_int(e->i32, i);
        LLVMValueRef choice = LLVMBuildExtractElement(e->builder, index, lane, "");
        LLVMValueRef value = LLVMBuildExtractElement(e->builder, entries, choice, "");
        result = LLVMBuildInsertElement(e->builder, result, value, lane, "");
    }
    return result;
}

/* The sum with 2^23 rounds to an integer, and the low bits of its f32 are the interval's number. A result that is
 * rounded to bf16 needs four terms, whose powers of a itself are exact enough. */
static LLVMValueRef tail_by_table(cg_emitter *e, LLVMValueRef a, bool is_rounded)
{
    double c[MAX_TERMS][INTERVALS];
    int terms = is_rounded ? 4 : MAX_TERMS;
    fit_intervals(c, terms, !is_rounded);
    LLVMValueRef integers = cg_like(e, a, 0x1p23), t = a;
    LLVMValueRef number = cg_fma(e, a, cg_like(e, a, 1 / interval_width), integers);
    LLVMTypeRef bits = cg_with_element(LLVMTypeOf(a), e->i32);
    LLVMValueRef index = LLVMBuildBitCast(e->builder, number, bits, "");
    if (!is_rounded) t = cg_fma(e, cg_fsub(e, number, integers), cg_like(e, a, -interval_width), a);
    LLVMValueRef p = look_up(e, c[terms - 1], index);
    for (int k = terms - 2; k >= 0; k--) p = cg_fma(e, p, t, look_up(e, c[k], index));
    return p;
}

static const double polynomial_end = 5.2;

/* A polynomial in t = 2a/5.2 - 1. Minimax fit of a p(a) (Lawson's algorithm), error 5.3e-7. */
static LLVMValueRef tail_by_polynomial(cg_emitter *e, LLVMValueRef a)
{
    static const double c[] = {-0.00466132581, 0.035316888,    -0.119350673, 0.229124616,    -0.253145946,
                               0.110295528,    0.106718969,    -0.194273019, 0.0772587531,   0.0772493304,
                               -0.0814379524,  -0.00464984436, 0.0279580806, -0.00306415208, -0.00333942863};
    const int terms = (int)(sizeof c / sizeof c[0]);
    LLVMValueRef t = cg_fma(e, a, cg_like(e, a, 2 / polynomial_end), cg_like(e, a, -1));
    LLVMValueRef p = cg_like(e, a, c[terms - 1]);
    for (int k = terms - 2; k >= 0; k--) p = cg_fma(e, p, t, cg_like(e, a, c[k]));
    return p;
}

static LLVMValueRef gelu(cg_emitter *e, LLVMValueRef x, bool is_rounded)
{
    if (cg_element(LLVMTypeOf(x)) == e->f64) {
        LLVMValueRef half = cg_fmul(e, x, cg_like(e, x, 0.5));
        return cg_fma(e, half, cg_erf(e, cg_fmul(e, x, cg_like(e, x, 0.70710678118654752))), half);
    }
    int lanes = cg_lanes(x);
    bool by_table = e->target->permute16 && lanes <= INTERVALS;
    if (by_table) x = cg_resize(e, x, INTERVALS, 0);
    /* at most index 15, however products round */
    double end = by_table ? (INTERVALS - 0.5) * interval_width * (1 - 1e-6) : polynomial_end;
    LLVMValueRef a = cg_fmin(e, cg_fabs(e, x), cg_like(e, x, end));
    /* max(0, x), with the sign of 0. Negative infinity times 0 is NaN. A minimum rather than the product would lose the
     * sign of -0 on AArch64, because LLVM 19 selects fminnm for it. */
    LLVMValueRef zero = cg_like(e, x, 0), is_negative = LLVMBuildFCmp(e->builder, LLVMRealOLT, x, zero, "");
    LLVMValueRef positive = cg_select(e, is_negative, cg_fmul(e, x, zero), x);
    LLVMValueRef result = cg_fma(e, a, by_table ? tail_by_table(e, a, is_rounded) : tail_by_polynomial(e, a), positive);
    return cg_resize(e, result, lanes, 0);
}

LLVMValueRef cg_gelu(cg_emitter *e, LLVMValueRef x) { return gelu(e, x, false); }

LLVMValueRef cg_gelu_to_bf16(cg_emitter *e, LLVMValueRef x) { return gelu(e, x, true); }

/* x/2 (1 + tanh u) = x sigmoid(2u), u = √(2/π) (x + 0.044715 x³): one exponential and one division. */
LLVMValueRef cg_gelu_tanh(cg_emitter *e, LLVMValueRef x)
{
    const double twice_root = 2 * 0.79788456080286541;
    LLVMValueRef square = cg_fmul(e, x, x);
    LLVMValueRef factor = cg_fma(e, square, cg_like(e, x, 0.044715 * twice_root), cg_like(e, x, twice_root));
    return cg_fmul(e, x, cg_sigmoid(e, cg_fmul(e, x, factor)));
}
