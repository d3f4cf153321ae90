/* gelu.c — GELU, the activation in every feed-forward block of the reference predictors.
 *
 * f32 uses an approximation that costs a third of erf's: gelu(x) = max(0, x) + a p(a) with a = |x| and p(a) =
 * -erfc(a/√2) / 2. The product vanishes by a = 6. If a look-up in sixteen entries is one instruction, p is sixteen
 * polynomials of degree 4, also for fewer lanes, so an element's result is independent of its place in a row. Otherwise
 * p is one polynomial of degree 14. The absolute error is below 1e-6. Small arguments keep their sign, because the
 * factor a is exact. NaN passes through, negative infinity gives NaN as in ONNX Runtime and PyTorch, and neither form
 * divides. */
#include "codegen/cpu/real_functions.h"

#include "codegen/cpu/emit.h"

#include <math.h>

static LLVMValueRef constant(cg_emitter *e, LLVMValueRef shape, double value)
{
    return cg_const(e, LLVMTypeOf(shape), value);
}

enum { INTERVALS = 16, TERMS = 5 };
static const double interval_width = 0.35; /* a p(a) = -6e-8 at 16 · 0.35; wider intervals would fit worse: 3e-7 here */

/* c[k][i] is the coefficient of t^k on interval i, where t is the distance from its middle. Interpolation at the
 * Chebyshev nodes, by Newton's divided differences. */
static void fit_intervals(double c[TERMS][INTERVALS])
{
    const double pi = 3.14159265358979323846;
    for (int i = 0; i < INTERVALS; i++) {
        double node[TERMS], difference[TERMS], expanded[TERMS] = {0};
        for (int k = 0; k < TERMS; k++) {
            node[k] = cos(pi * (k + 0.5) / TERMS) * interval_width / 2;
            double a = (i + 0.5) * interval_width + node[k];
            difference[k] = -erfc(a * sqrt(0.5)) / 2;
        }
        for (int order = 1; order < TERMS; order++)
            for (int k = TERMS - 1; k >= order; k--)
                difference[k] = (difference[k] - difference[k - 1]) / (node[k] - node[k - order]);
        for (int k = TERMS - 1; k >= 0; k--) { /* expanded = expanded * (t - node) + difference */
            for (int power = TERMS - 1; power > 0; power--)
                expanded[power] = expanded[power - 1] - node[k] * expanded[power];
            expanded[0] = difference[k] - node[k] * expanded[0];
        }
        for (int k = 0; k < TERMS; k++) c[k][i] = expanded[k];
    }
}

/* table[index], lane by lane. LLVM turns the sixteen pairs into one vpermps. Beside matrix tiles the code has so many
 * copies that the pairs would take LLVM seconds, so the instruction is named there. */
static LLVMValueRef look_up(cg_emitter *e, const double table[INTERVALS], LLVMValueRef index)
{
    LLVMValueRef entry[INTERVALS];
    for (int i = 0; i < INTERVALS; i++) entry[i] = cg_const(e, e->f32, table[i]);
    LLVMValueRef entries = LLVMConstVector(entry, INTERVALS), result = LLVMGetPoison(LLVMTypeOf(entries));
    if (e->target->matmul == CG_MATMUL_AMX && !e->target->use_generic_vectors)
        return cg_intrinsic(e, "llvm.x86.avx512.permvar.sf.512", NULL, (LLVMValueRef[]){entries, index}, 2);
    for (int i = 0; i < INTERVALS; i++) {
        LLVMValueRef lane = cg_const_int(e->i32, i);
        LLVMValueRef choice = LLVMBuildExtractElement(e->builder, index, lane, "");
        LLVMValueRef value = LLVMBuildExtractElement(e->builder, entries, choice, "");
        result = LLVMBuildInsertElement(e->builder, result, value, lane, "");
    }
    return result;
}

static LLVMValueRef tail_by_table(cg_emitter *e, LLVMValueRef a)
{
    double c[TERMS][INTERVALS];
    fit_intervals(c);
    LLVMTypeRef integer = cg_with_element(LLVMTypeOf(a), e->i32);
    LLVMValueRef index = LLVMBuildFPToSI(e->builder, cg_fmul(e, a, constant(e, a, 1 / interval_width)), integer, "");
    LLVMValueRef start = LLVMBuildSIToFP(e->builder, index, LLVMTypeOf(a), "");
    LLVMValueRef middle = cg_fma(e, start, constant(e, a, interval_width), constant(e, a, interval_width / 2));
    LLVMValueRef t = cg_fsub(e, a, middle), p = look_up(e, c[TERMS - 1], index);
    for (int k = TERMS - 2; k >= 0; k--) p = cg_fma(e, p, t, look_up(e, c[k], index));
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
    LLVMValueRef t = cg_fma(e, a, constant(e, a, 2 / polynomial_end), constant(e, a, -1));
    LLVMValueRef p = constant(e, a, c[terms - 1]);
    for (int k = terms - 2; k >= 0; k--) p = cg_fma(e, p, t, constant(e, a, c[k]));
    return p;
}

LLVMValueRef cg_gelu(cg_emitter *e, LLVMValueRef x)
{
    if (cg_element(LLVMTypeOf(x)) == e->f64) {
        LLVMValueRef half = cg_fmul(e, x, constant(e, x, 0.5));
        return cg_fma(e, half, cg_erf(e, cg_fmul(e, x, constant(e, x, 0.70710678118654752))), half);
    }
    int lanes = cg_lanes(x);
    bool by_table = e->target->permute16 && lanes <= INTERVALS;
    if (by_table) x = cg_resize(e, x, INTERVALS, 0);
    /* at most index 15, however products round */
    double end = by_table ? INTERVALS * interval_width * (1 - 1e-6) : polynomial_end;
    LLVMValueRef a = cg_fmin(e, cg_fabs(e, x), constant(e, x, end));
    /* max(0, x), with the sign of 0. Negative infinity times 0 is NaN. A minimum rather than the product would lose the
     * sign of -0 on AArch64, because LLVM 19 selects fminnm for it. */
    LLVMValueRef zero = constant(e, x, 0), is_negative = LLVMBuildFCmp(e->builder, LLVMRealOLT, x, zero, "");
    LLVMValueRef positive = cg_select(e, is_negative, cg_fmul(e, x, zero), x);
    LLVMValueRef result = cg_fma(e, a, by_table ? tail_by_table(e, a) : tail_by_polynomial(e, a), positive);
    return cg_resize(e, result, lanes, 0);
}

/* x/2 (1 + tanh u) = x sigmoid(2u), u = √(2/π) (x + 0.044715 x³): one exponential and one division. */
LLVMValueRef cg_gelu_tanh(cg_emitter *e, LLVMValueRef x)
{
    const double twice_root = 2 * 0.79788456080286541;
    LLVMValueRef square = cg_fmul(e, x, x);
    LLVMValueRef factor = cg_fma(e, square, constant(e, x, 0.044715 * twice_root), constant(e, x, twice_root));
    return cg_fmul(e, x, cg_sigmoid(e, cg_fmul(e, x, factor)));
}
