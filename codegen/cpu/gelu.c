/* gelu.c — GELU, the activation in every feed-forward block of the reference predictors.
 *
 * f32 uses an approximation that costs a third of erf's: gelu(x) = max(0, x) + g(|x|) with g(a) = -a/2 erfc(a/√2), a
 * bump that is at most 0.17 deep and vanishes by a = 6. If a look-up in sixteen entries is one instruction, g is
 * sixteen polynomials of degree 4; otherwise it is one of degree 14. The absolute error is below 1e-6, NaN passes
 * through, and neither form divides.
 */
#include "codegen/cpu/gelu.h"

#include "codegen/cpu/emit.h"
#include "codegen/cpu/math.h"

#include <math.h>

static LLVMValueRef constant(cg_emitter *e, LLVMValueRef shape, double value)
{
    return cg_const(e, LLVMTypeOf(shape), value);
}

/* ---- Sixteen polynomials ---------------------------------------------------------------------------------------- */

enum { INTERVALS = 16, TERMS = 5 };
static const double interval_width = 0.35; /* g(16 · 0.35) = -6e-8; wider intervals would fit worse: 2e-7 here */

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
            difference[k] = -a / 2 * erfc(a * sqrt(0.5));
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

/* table[index], lane by lane. LLVM turns the sixteen pairs into one vpermps. */
static LLVMValueRef look_up(cg_emitter *e, const double table[INTERVALS], LLVMValueRef index)
{
    LLVMValueRef entry[INTERVALS];
    for (int i = 0; i < INTERVALS; i++) entry[i] = cg_const(e, e->f32, table[i]);
    LLVMValueRef entries = LLVMConstVector(entry, INTERVALS), result = LLVMGetPoison(LLVMTypeOf(entries));
    for (int i = 0; i < INTERVALS; i++) {
        LLVMValueRef lane = cg_const_int(e->i32, i);
        LLVMValueRef which = LLVMBuildExtractElement(e->builder, index, lane, "");
        LLVMValueRef value = LLVMBuildExtractElement(e->builder, entries, which, "");
        result = LLVMBuildInsertElement(e->builder, result, value, lane, "");
    }
    return result;
}

static LLVMValueRef bump_by_table(cg_emitter *e, LLVMValueRef a)
{
    double c[TERMS][INTERVALS];
    fit_intervals(c);
    /* at most index 15, however products round */
    a = cg_fmin(e, a, constant(e, a, INTERVALS * interval_width * (1 - 1e-6)));
    LLVMTypeRef integer = cg_with_element(LLVMTypeOf(a), e->i32);
    LLVMValueRef index = LLVMBuildFPToSI(e->builder, cg_fmul(e, a, constant(e, a, 1 / interval_width)), integer, "");
    LLVMValueRef start = LLVMBuildSIToFP(e->builder, index, LLVMTypeOf(a), "");
    LLVMValueRef middle = cg_fma(e, start, constant(e, a, interval_width), constant(e, a, interval_width / 2));
    LLVMValueRef t = cg_fsub(e, a, middle), g = look_up(e, c[TERMS - 1], index);
    for (int k = TERMS - 2; k >= 0; k--) g = cg_fma(e, g, t, look_up(e, c[k], index));
    return g;
}

/* ---- One polynomial --------------------------------------------------------------------------------------------- */

/* A polynomial in t = 2a/5.5 - 1. Minimax fit (Remez exchange), error 5.3e-7. */
static LLVMValueRef bump_by_polynomial(cg_emitter *e, LLVMValueRef a)
{
    static const double c[] = {-0.00819484051, 0.0605790801, -0.191202283, 0.308643281,  -0.1802416,
                               -0.260049343,   0.638720632,  -0.461279273, -0.192290664, 0.548724055,
                               -0.185005248,   -0.236377835, 0.154076502,  0.0397604741, -0.0358626097};
    const int terms = (int)(sizeof c / sizeof c[0]);
    a = cg_fmin(e, a, constant(e, a, 5.5));
    LLVMValueRef t = cg_fma(e, a, constant(e, a, 2 / 5.5), constant(e, a, -1)), g = constant(e, a, c[terms - 1]);
    for (int k = terms - 2; k >= 0; k--) g = cg_fma(e, g, t, constant(e, a, c[k]));
    return g;
}

LLVMValueRef cg_gelu(cg_emitter *e, LLVMValueRef x)
{
    if (cg_element(LLVMTypeOf(x)) == e->f64) {
        LLVMValueRef half = cg_fmul(e, x, constant(e, x, 0.5));
        return cg_fma(e, half, cg_erf(e, cg_fmul(e, x, constant(e, x, 0.70710678118654752))), half);
    }
    LLVMValueRef a = cg_fabs(e, x), positive = cg_fmax(e, constant(e, x, 0), x);
    bool by_table = e->target->permute16 && cg_lanes(x) == INTERVALS;
    return cg_fadd(e, positive, by_table ? bump_by_table(e, a) : bump_by_polynomial(e, a));
}

/* x/2 (1 + tanh u) = x sigmoid(2u), u = √(2/π) (x + 0.044715 x³): one exponential and one division. */
LLVMValueRef cg_gelu_tanh(cg_emitter *e, LLVMValueRef x)
{
    const double twice_root = 2 * 0.79788456080286541;
    LLVMValueRef square = cg_fmul(e, x, x);
    LLVMValueRef factor = cg_fma(e, square, constant(e, x, 0.044715 * twice_root), constant(e, x, twice_root));
    return cg_fmul(e, x, cg_sigmoid(e, cg_fmul(e, x, factor)));
}
