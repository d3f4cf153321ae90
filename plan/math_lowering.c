/* math_lowering.c — functions that expressions lack, built from existing ones: log(1 + x), e^x - 1, arc tangent.
 *
 * Their relative error is as small as that of log, exp and division, even where the textbook form cancels.
 */
#include "plan/plan_builder.h"

#include "plan/expr.h"

#include <math.h>

static const pl_expr *number(ir_arena *arena, const pl_expr *like, double value)
{
    return like != NULL ? pl_const_f(arena, like->dtype, value) : NULL;
}

/* log(1 + x) = log(u) x / (u - 1) with u = fl(1 + x): the rounding error of u cancels in the quotient (Kahan; Higham,
 * "Accuracy and Stability of Numerical Algorithms", section 1.14.1). */
const pl_expr *pl_log1p(ir_arena *a, const pl_expr *x)
{
    const pl_expr *one = number(a, x, 1);
    const pl_expr *u = pl_binary(a, PL_ADD, x, one);
    const pl_expr *tiny = pl_binary(a, PL_EQ, u, one);
    const pl_expr *is_whole = pl_unary(a, PL_ISINF, u);
    const pl_expr *difference = pl_select(a, tiny, one, pl_binary(a, PL_SUB, u, one));
    const pl_expr *log = pl_unary(a, PL_LOG, u);
    const pl_expr *corrected = pl_binary(a, PL_MUL, log, pl_binary(a, PL_DIV, x, difference));
    return pl_select(a, tiny, x, pl_select(a, is_whole, log, corrected));
}

/* e^x - 1 = (u - 1) x / log(u) with u = fl(e^x), by the same argument. Outside [-1, 1] the plain form is exact enough,
 * because nothing cancels. */
const pl_expr *pl_expm1(ir_arena *a, const pl_expr *x)
{
    const pl_expr *one = number(a, x, 1);
    const pl_expr *u = pl_unary(a, PL_EXP, x);
    const pl_expr *plain = pl_binary(a, PL_SUB, u, one);
    const pl_expr *tiny = pl_binary(a, PL_EQ, u, one);
    const pl_expr *is_small = pl_binary(a, PL_LE, pl_unary(a, PL_ABS, x), one);
    const pl_expr *log = pl_select(a, tiny, one, pl_unary(a, PL_LOG, u));
    const pl_expr *corrected = pl_binary(a, PL_MUL, plain, pl_binary(a, PL_DIV, x, log));
    return pl_select(a, tiny, x, pl_select(a, is_small, corrected, plain));
}

/* Interpolates atan(√z) / √z at the Chebyshev nodes of [0, tan²(π/8)]; relative error 1.8e-15. */
static const double atan_coefficients[] = {
    1.0,
    -0.3333333333329467,
    0.19999999986479677,
    -0.14285713018650445,
    0.1111105687380593,
    -0.0908963078261168,
    0.07674261106926131,
    -0.06508854136539335,
    0.05030155788624033,
    -0.025345761550124305,
};

/* |x| is reduced below tan(π/8) by atan x = π/2 + atan(-1/x) and atan x = π/4 + atan((x - 1) / (x + 1)). */
const pl_expr *pl_atan(ir_arena *a, const pl_expr *x)
{
    const pl_expr *one = number(a, x, 1), *zero = number(a, x, 0);
    const pl_expr *positive = pl_unary(a, PL_ABS, x);
    const pl_expr *is_large = pl_binary(a, PL_LT, number(a, x, 1 + M_SQRT2), positive); /* tan(3π/8) */
    const pl_expr *is_middle = pl_binary(a, PL_LT, number(a, x, M_SQRT2 - 1), positive);
    /* Divisors are replaced in the branch that is not taken, so that 0 / 0 never occurs. */
    const pl_expr *inverse = pl_binary(a, PL_DIV, number(a, x, -1), pl_select(a, is_large, positive, one));
    const pl_expr *turned =
        pl_binary(a, PL_DIV, pl_binary(a, PL_SUB, positive, one), pl_binary(a, PL_ADD, positive, one));
    const pl_expr *t = pl_select(a, is_large, inverse, pl_select(a, is_middle, turned, positive));
    const pl_expr *base =
        pl_select(a, is_large, number(a, x, M_PI_2), pl_select(a, is_middle, number(a, x, M_PI_4), zero));
    const pl_expr *z = pl_binary(a, PL_MUL, t, t);
    int count = (int)(sizeof atan_coefficients / sizeof *atan_coefficients);
    const pl_expr *sum = number(a, x, atan_coefficients[count - 1]);
    for (int k = count - 2; k >= 0; k--)
        sum = pl_binary(a, PL_ADD, pl_binary(a, PL_MUL, sum, z), number(a, x, atan_coefficients[k]));
    const pl_expr *angle = pl_binary(a, PL_ADD, base, pl_binary(a, PL_MUL, t, sum));
    /* A zero keeps its sign, and NaN stays NaN. */
    const pl_expr *unsigned_angle = pl_select(a, pl_binary(a, PL_LT, zero, x), angle, x);
    return pl_select(a, pl_binary(a, PL_LT, x, zero), pl_unary(a, PL_NEG, angle), unsigned_angle);
}
