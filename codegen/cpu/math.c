/* math.c — elementary functions over scalars and vectors of f32 and f64, as polynomials, without calls outside the
 * module.
 *
 * Every function is branch-free, so all lanes cost the same. Only sine and cosine take a branch, for angles from 2^40
 * on. Polynomials are minimax fits (Remez exchange in 40 digits) for the error given beside them. NaN passes through
 * everywhere. Limits use the compare that keeps a NaN (cg_fmin(limit, x), not cg_fmin(x, limit)). Conversion from float
 * to integer is undefined for NaN and is used only where NaN is excluded.
 *
 * GELU is in gelu.c. */
#include "codegen/cpu/emit.h"
#include "codegen/cpu/real_functions.h"

#include <math.h>

const double cg_log2_e = 1.4426950408889634;

enum { MAX_TERMS = 13, ZMM_LANES = 16 };

typedef struct polynomial { /* sum of c[i] x^i */
    int terms;
    double c[MAX_TERMS];
} polynomial;

typedef struct float_format {
    int mantissa_bits, exponent_bias;
    double min_normal;
    double ln2_high, ln2_low;
    double exp_min, exp_max;  /* below and above these, exp is 0 and infinity */
    double tanh_max, erf_max; /* from half of the first, and from the second, the function rounds to 1 */
    int64_t sqrt_half_bits;   /* bits of √(1/2), the lower end of log's mantissa range */
    polynomial exp_tail;      /* (e^r - 1 - r) / r², |r| <= ln2 / 2 */
    polynomial log_tail;      /* (2 atanh(s) / s - 2) / s² in s², |s| <= 3 - 2√2 */
    polynomial erf_small;     /* erf(x) / x in x², |x| <= 1 */
    polynomial erfc_scaled;   /* e^(x²) erfc(x) in (x - 2) / (x + 2), 1 <= x <= erf_max; error weighted by e^(-x²) */
} float_format;

static const float_format f32_format = {
    .mantissa_bits = 23,
    .exponent_bias = 127,
    .min_normal = 0x1p-126,
    .ln2_high = 0.693147182464599609375,
    .ln2_low = -1.90465421e-09,
    .exp_min = -104,
    .exp_max = 89,
    .tanh_max = 20,
    .erf_max = 4,
    .sqrt_half_bits = 0x3f3504f3,
    .exp_tail = {5, {0.5, 0.166665196, 0.041666206, 0.00836887583, 0.00139504427}}, /* error 3.1e-9 of e^r */
    .log_tail = {4, {0.666666627, 0.400003344, 0.28537339, 0.235816658}},           /* error 4.8e-12 */
    .erf_small = {7,                                                                /* error 1.2e-9 */
                  {1.12837911, -0.37612626, 0.112836003, -0.0268544443, 0.00518953521, -0.000802084163, 7.8891193e-05}},
    .erfc_scaled = {6, /* error 1.2e-9 */
                    {0.255395681, -0.427185833, 0.241656303, -0.0789976045, 0.00369022228, 0.00716400798}},
};

static const float_format f64_format = {
    .mantissa_bits = 52,
    .exponent_bias = 1023,
    .min_normal = 0x1p-1022,
    .ln2_high = 0.69314718055994529,
    .ln2_low = 2.3190468138462996e-17,
    .exp_min = -746,
    .exp_max = 710,
    .tanh_max = 40,
    .erf_max = 6,
    .sqrt_half_bits = 0x3fe6a09e667f3bcd,
    .exp_tail = {11, /* error 5.4e-20 of e^r */
                 {0.5, 0.16666666666666682, 0.041666666666666727, 0.0083333333333167892, 0.0013888888888858653,
                  0.00019841269896949236, 2.4801587373380554e-05, 2.755723433609474e-06, 2.7557233638406097e-07,
                  2.5112207825942452e-08, 2.0926863470669646e-09}},
    .log_tail = {7, /* error 1.2e-18 */
                 {0.6666666666666734, 0.39999999999418812, 0.28571428741623051, 0.22222198640981605,
                  0.18183561209071566, 0.15314122227829741, 0.14795297840772118}},
    .erf_small = {12, /* error 7.1e-18 */
                  {1.1283791670955126, -0.37612638903183548, 0.11283791670945252, -0.026866170643276066,
                   0.0052239776074224442, -0.00085483259896579637, 0.00012055295319610948, -1.4924744651046069e-05,
                   1.6447517576386865e-06, -1.6209175465694306e-07, 1.3722975567005645e-08, -7.8011895389899147e-10}},
    .erfc_scaled = {13, /* error 5.3e-18 */
                    {0.25539567631050575, -0.42718584741395682, 0.24165819424246882, -0.078978581016415569,
                     0.0037328923985394226, 0.0069974617857658226, -0.00084714259052928482, -0.00098197647940828138,
                     4.3536160726447225e-05, 0.00017428847220381967, 2.762318284389052e-05, -2.6611497763729824e-05,
                     -1.2644112450467891e-05}},
};

static const float_format *format_of(cg_emitter *e, LLVMValueRef x)
{
    return cg_element(LLVMTypeOf(x)) == e->f64 ? &f64_format : &f32_format;
}

/* The integer type of the same width and lanes. */
static LLVMTypeRef bits_type(cg_emitter *e, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return cg_with_element(type, cg_element(type) == e->f64 ? e->i64 : e->i32);
}

static LLVMValueRef as_bits(cg_emitter *e, LLVMValueRef x)
{
    return LLVMBuildBitCast(e->builder, x, bits_type(e, x), "");
}

static LLVMValueRef evaluate(cg_emitter *e, const polynomial *p, LLVMValueRef x)
{
    LLVMValueRef sum = cg_like(e, x, p->c[p->terms - 1]);
    for (int i = p->terms - 2; i >= 0; i--) sum = cg_fma(e, sum, x, cg_like(e, x, p->c[i]));
    return sum;
}

static LLVMValueRef copy_sign(cg_emitter *e, LLVMValueRef magnitude, LLVMValueRef sign)
{
    return cg_intrinsic(e, "llvm.copysign", LLVMTypeOf(sign), (LLVMValueRef[]){magnitude, sign}, 2);
}

LLVMValueRef cg_floor(cg_emitter *e, LLVMValueRef x) { return cg_intrinsic(e, "llvm.floor", LLVMTypeOf(x), &x, 1); }

typedef struct reduced_exponent { /* e^x = 2^n (1 + r + r² tail(r)) */
    LLVMValueRef n;               /* integer */
    LLVMValueRef excess;          /* e^r - 1 = r + r² tail(r), without cancellation */
} reduced_exponent;

/* Requires |x| within a few hundred ln 2. Adding 1.5 · 2^mantissa rounds to an integer, which the low bits then
 * hold. n · ln2_high is exact inside the fma, and so is its difference from x, by Sterbenz's lemma. */
static reduced_exponent reduce_exponent(cg_emitter *e, LLVMValueRef x)
{
    const float_format *f = format_of(e, x);
    LLVMValueRef magic = cg_like(e, x, ldexp(1.5, f->mantissa_bits));
    LLVMValueRef shifted = cg_fma(e, x, cg_like(e, x, cg_log2_e), magic);
    LLVMValueRef n = cg_fsub(e, shifted, magic);
    LLVMValueRef r = cg_fma(e, n, cg_like(e, x, -f->ln2_high), x);
    r = cg_fma(e, n, cg_like(e, x, -f->ln2_low), r);
    LLVMValueRef tail = evaluate(e, &f->exp_tail, r);
    LLVMValueRef bits = as_bits(e, shifted), magic_bits = as_bits(e, magic);
    return (reduced_exponent){
        .n = LLVMBuildSub(e->builder, bits, magic_bits, ""),
        .excess = cg_fma(e, cg_fmul(e, r, r), tail, r),
    };
}

/* 2^n for an exponent in the normal range */
static LLVMValueRef power_of_two(cg_emitter *e, const float_format *f, LLVMValueRef n, LLVMTypeRef type)
{
    LLVMTypeRef bits = LLVMTypeOf(n);
    LLVMValueRef biased = LLVMBuildAdd(e->builder, n, cg_const_int(bits, f->exponent_bias), "");
    LLVMValueRef shifted = LLVMBuildShl(e->builder, biased, cg_const_int(bits, f->mantissa_bits), "");
    return LLVMBuildBitCast(e->builder, shifted, type, "");
}

/* The error is below 1.5 units in the last place. Denormal and infinite results are correct, because the power of
 * two is applied in two halves. */
LLVMValueRef cg_exp(cg_emitter *e, LLVMValueRef x)
{
    const float_format *f = format_of(e, x);
    LLVMTypeRef type = LLVMTypeOf(x);
    x = cg_fmax(e, cg_like(e, x, f->exp_min), cg_fmin(e, cg_like(e, x, f->exp_max), x));
    reduced_exponent reduced = reduce_exponent(e, x);
    LLVMValueRef half = LLVMBuildAShr(e->builder, reduced.n, cg_const_int(LLVMTypeOf(reduced.n), 1), "");
    LLVMValueRef rest = LLVMBuildSub(e->builder, reduced.n, half, "");
    LLVMValueRef p = cg_fadd(e, reduced.excess, cg_like(e, x, 1));
    p = cg_fmul(e, p, power_of_two(e, f, half, type));
    return cg_fmul(e, p, power_of_two(e, f, rest, type));
}

/* 2^n times 2^fraction, |fraction| <= 1/2, for softmax: relative error 2e-7, exactly 1 at 0, 2^-100 from there on. NaN
 * stays NaN: processors convert it to an integer whose low bits are zero, so nothing is added to it. The limit keeps
 * the result normal, so the integer addition into the exponent is valid. It also keeps the result far from the smallest
 * normal number, so products with ordinary values are normal, too. On some processors a denormal result costs a hundred
 * cycles, and softmax computes many such values for masked keys. Compared with a weight of 1 they are negligible. */
static LLVMValueRef power_of_two_near(cg_emitter *e, LLVMValueRef n, LLVMValueRef fraction)
{
    static const polynomial power = {6, {1, 0.693147004, 0.240222424, 0.0555073358, 0.00967151206, 0.00132647436}};
    LLVMTypeRef type = LLVMTypeOf(n), bits = bits_type(e, n);
    LLVMValueRef p = evaluate(e, &power, fraction);
    LLVMValueRef integer = LLVMBuildFreeze(e->builder, LLVMBuildFPToSI(e->builder, n, bits, ""), "");
    LLVMValueRef exponent = LLVMBuildShl(e->builder, integer, cg_const_int(bits, 23), "");
    return LLVMBuildBitCast(e->builder, LLVMBuildAdd(e->builder, as_bits(e, p), exponent, ""), type, "");
}

LLVMValueRef cg_exp2_negative(cg_emitter *e, LLVMValueRef x)
{
    x = cg_fmax(e, cg_like(e, x, -100), x);
    LLVMValueRef n = cg_rint(e, x);
    return power_of_two_near(e, n, cg_fsub(e, x, n));
}

LLVMValueRef cg_exp_negative(cg_emitter *e, LLVMValueRef x)
{
    x = cg_fmax(e, cg_like(e, x, -100 / cg_log2_e), x);
    LLVMValueRef factor = cg_like(e, x, cg_log2_e), n = cg_rint(e, cg_fmul(e, x, factor));
    return power_of_two_near(e, n, cg_fma(e, x, factor, LLVMBuildFNeg(e->builder, n, "")));
}

/* For arguments that vreduceps and vscalefps accept: x - floor(x), and p 2^floor(x). */
static bool has_scaling(const cg_emitter *e, LLVMValueRef x)
{
    return e->target->matmul == CG_MATMUL_AMX && !e->target->use_generic_vectors && cg_lanes(x) == ZMM_LANES;
}

static LLVMValueRef scaling_instruction(cg_emitter *e, const char *name, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef any = cg_const(e, LLVMTypeOf(a), 0), whole = cg_const_int(e->i16, -1),
                 rounding = cg_const_int(e->i32, 4);
    return cg_intrinsic(e, name, NULL, (LLVMValueRef[]){a, b, any, whole, rounding}, 5);
}

/* x - floor(x), rounded down as vreduceps does. It is inexact only between -1 and 0, where f + floor(x) is exact. */
static LLVMValueRef fraction_plainly(cg_emitter *e, LLVMValueRef x, LLVMValueRef floor)
{
    LLVMValueRef f = cg_fsub(e, x, floor), bits = as_bits(e, f);
    LLVMValueRef is_above = LLVMBuildFCmp(e->builder, LLVMRealOGT, cg_fadd(e, f, floor), x, "");
    LLVMValueRef below = LLVMBuildSub(e->builder, bits, cg_const_int(LLVMTypeOf(bits), 1), "");
    return LLVMBuildBitCast(e->builder, cg_select(e, is_above, below, bits), LLVMTypeOf(x), "");
}

static LLVMValueRef scale_plainly(cg_emitter *e, LLVMValueRef p, LLVMValueRef floor)
{
    LLVMTypeRef type = LLVMTypeOf(p), bits = bits_type(e, p);
    LLVMValueRef n = LLVMBuildFreeze(e->builder, LLVMBuildFPToSI(e->builder, floor, bits, ""), "");
    LLVMValueRef half = LLVMBuildAShr(e->builder, n, cg_const_int(bits, 1), "");
    LLVMValueRef rest = LLVMBuildSub(e->builder, n, half, "");
    p = cg_fmul(e, p, power_of_two(e, &f32_format, half, type));
    return cg_fmul(e, p, power_of_two(e, &f32_format, rest, type));
}

/* Four instructions: vreduceps, a quadratic with relative error 1.73e-3, and vscalefps. The quadratic includes half a
 * bf16 unit in the result's binade, so truncation to the upper half rounds half up. */
LLVMValueRef cg_exp2_before_truncation(cg_emitter *e, LLVMValueRef x)
{
    static const polynomial power = {3, {1.0017248 + 0x1p-8, 0.65763628, 0.33718943}};
    if (has_scaling(e, x)) {
        LLVMValueRef towards_floor = cg_const_int(e->i32, 9);
        LLVMValueRef fraction = scaling_instruction(e, "llvm.x86.avx512.mask.reduce.ps.512", x, towards_floor);
        return scaling_instruction(e, "llvm.x86.avx512.mask.scalef.ps.512", evaluate(e, &power, fraction), x);
    }
    x = cg_fmax(e, cg_like(e, x, -252), cg_fmin(e, cg_like(e, x, 252), x)); /* beyond: zero or infinity for any p */
    LLVMValueRef floor = cg_floor(e, x);
    return scale_plainly(e, evaluate(e, &power, fraction_plainly(e, x, floor)), floor);
}

/* (e^2|x| - 1) / (e^2|x| + 1); the excess keeps small arguments exact to the last bits. */
LLVMValueRef cg_tanh(cg_emitter *e, LLVMValueRef x)
{
    const float_format *f = format_of(e, x);
    LLVMValueRef one = cg_like(e, x, 1), magnitude = cg_fabs(e, x);
    LLVMValueRef twice = cg_fmin(e, cg_like(e, x, f->tanh_max), cg_fadd(e, magnitude, magnitude));
    reduced_exponent reduced = reduce_exponent(e, twice);
    LLVMValueRef scale = power_of_two(e, f, reduced.n, LLVMTypeOf(x));
    LLVMValueRef expm1 = cg_fma(e, reduced.excess, scale, cg_fsub(e, scale, one));
    return copy_sign(e, cg_fdiv(e, expm1, cg_fadd(e, expm1, cg_like(e, x, 2))), x);
}

/* e^x / (1 + e^x), whose denormal results are correct, unlike those of 1 / (1 + e^-x). */
LLVMValueRef cg_sigmoid(cg_emitter *e, LLVMValueRef x)
{
    LLVMValueRef power = cg_exp(e, cg_fmin(e, cg_like(e, x, 2 * format_of(e, x)->tanh_max), x));
    return cg_fdiv(e, power, cg_fadd(e, power, cg_like(e, x, 1)));
}

static LLVMValueRef compare(cg_emitter *e, LLVMRealPredicate predicate, LLVMValueRef x, double limit)
{
    return LLVMBuildFCmp(e->builder, predicate, x, cg_like(e, x, limit), "");
}

/* log x = n ln2 + log m with m in [√½, √2). With f = m - 1 and s = f / (2 + f), log m = 2 atanh(s) is computed as f
 * - (f²/2 - s (f²/2 + s² tail(s²))), whose leading term is exact. */
LLVMValueRef cg_log(cg_emitter *e, LLVMValueRef x)
{
    const float_format *format = format_of(e, x);
    LLVMTypeRef type = LLVMTypeOf(x), bits = bits_type(e, x);
    LLVMValueRef tiny = compare(e, LLVMRealOLT, x, format->min_normal);
    LLVMValueRef normal = cg_select(e, tiny, cg_fmul(e, x, cg_like(e, x, ldexp(1, format->mantissa_bits))), x);
    LLVMValueRef raw = as_bits(e, normal), shift = cg_const_int(bits, format->mantissa_bits);
    LLVMValueRef from_half = LLVMBuildSub(e->builder, raw, cg_const_int(bits, format->sqrt_half_bits), "");
    LLVMValueRef exponent = LLVMBuildAShr(e->builder, from_half, shift, "");
    LLVMValueRef mantissa = LLVMBuildSub(e->builder, raw, LLVMBuildShl(e->builder, exponent, shift, ""), "");
    LLVMValueRef n = LLVMBuildSIToFP(e->builder, exponent, type, "");
    n = cg_select(e, tiny, cg_fsub(e, n, cg_like(e, x, format->mantissa_bits)), n);

    LLVMValueRef f = cg_fsub(e, LLVMBuildBitCast(e->builder, mantissa, type, ""), cg_like(e, x, 1));
    LLVMValueRef s = cg_fdiv(e, f, cg_fadd(e, f, cg_like(e, x, 2))), z = cg_fmul(e, s, s);
    LLVMValueRef half_square = cg_fmul(e, cg_fmul(e, f, f), cg_like(e, x, 0.5));
    LLVMValueRef tail = cg_fma(e, z, evaluate(e, &format->log_tail, z), half_square);
    LLVMValueRef small = cg_fma(e, s, tail, cg_fmul(e, n, cg_like(e, x, format->ln2_low)));
    LLVMValueRef log_m = cg_fsub(e, f, cg_fsub(e, half_square, small));
    LLVMValueRef result = cg_fma(e, n, cg_like(e, x, format->ln2_high), log_m);

    result = cg_select(e, compare(e, LLVMRealOEQ, x, INFINITY), x, result);
    result = cg_select(e, compare(e, LLVMRealOEQ, x, 0), cg_like(e, x, -INFINITY), result);
    return cg_select(e, compare(e, LLVMRealULT, x, 0), cg_like(e, x, NAN), result);
}

/* sin(x + quadrants π/2) in f64. x - k π/2 with π/2 in three parts is exact to the last bit for |x| < 2^40,
 * because the rounding of x · 2/π hardly moves k there. large_angle.c reduces larger angles. */
static LLVMValueRef sine_f64(cg_emitter *e, LLVMValueRef x, int quadrants)
{
    static const double half_pi[] = {1.5707963267948966, 6.123233995736766e-17, -1.497384905065873e-33};
    static const polynomial sine = {6, /* (sin(r) / r - 1) / r² in r², 3.4e-18 */
                                    {-0.16666666666666632, 0.008333333333322427, -0.00019841269829818029,
                                     2.7557313695540988e-06, -2.505075869614305e-08, 1.5896830143235522e-10}};
    static const polynomial cosine = {6, /* (cos(r) - 1 + r²/2) / r⁴ in r², 4.7e-20 */
                                      {0.041666666666666602, -0.0013888888888874151, 2.4801587289498085e-05,
                                       -2.7557314356832982e-07, 2.0875723878301003e-09, -1.1359678990354302e-11}};
    LLVMValueRef k = cg_rint(e, cg_fmul(e, x, cg_like(e, x, 0.63661977236758138))), r = x;
    for (int i = 0; i < 3; i++) r = cg_fma(e, k, cg_like(e, x, -half_pi[i]), r);
    cg_angle angle = {.quadrant = k, .rest = r};
    cg_reduce_large_angles(e, x, &angle);
    k = angle.quadrant, r = angle.rest;
    r = cg_fmax(e, cg_like(e, x, -0.79), cg_fmin(e, cg_like(e, x, 0.79), r));
    LLVMValueRef z = cg_fmul(e, r, r);
    LLVMValueRef cube = cg_fmul(e, r, z), sin_r = cg_fma(e, cube, evaluate(e, &sine, z), r);
    LLVMValueRef minimum = cg_fma(e, z, cg_like(e, x, -0.5), cg_like(e, x, 1));
    LLVMValueRef fourth = cg_fmul(e, z, z), cos_r = cg_fma(e, fourth, evaluate(e, &cosine, z), minimum);

    LLVMValueRef iterations =
        cg_fadd(e, k, cg_like(e, x, quadrants)); /* modulo 4 in floating point, because k may exceed the integers */
    LLVMValueRef quadrant =
        cg_fma(e, cg_floor(e, cg_fmul(e, iterations, cg_like(e, x, 0.25))), cg_like(e, x, -4), iterations);
    LLVMValueRef upper = compare(e, LLVMRealOGE, quadrant, 2);
    LLVMValueRef place = cg_select(e, upper, cg_fsub(e, quadrant, cg_like(e, x, 2)), quadrant);
    LLVMValueRef value = cg_select(e, compare(e, LLVMRealOGE, place, 1), cos_r, sin_r);
    value = cg_select(e, upper, LLVMBuildFNeg(e->builder, value, ""), value);
    return quadrants == 0 ? cg_select(e, compare(e, LLVMRealOEQ, x, 0), x, value) : value; /* the sign of zero */
}

static LLVMValueRef sine(cg_emitter *e, LLVMValueRef x, int quadrants)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    if (cg_element(type) == e->f64) return sine_f64(e, x, quadrants);
    LLVMValueRef wide = LLVMBuildFPExt(e->builder, x, cg_with_element(type, e->f64), "");
    return LLVMBuildFPTrunc(e->builder, sine_f64(e, wide, quadrants), type, "");
}

LLVMValueRef cg_sin(cg_emitter *e, LLVMValueRef x) { return sine(e, x, 0); }

LLVMValueRef cg_cos(cg_emitter *e, LLVMValueRef x) { return sine(e, x, 1); }

/* Below 1, a polynomial times x; above 1, 1 - e^(-x²) times a polynomial. The relative error is below 3e-7 (f32) and
 * 1e-15 (f64). */
LLVMValueRef cg_erf(cg_emitter *e, LLVMValueRef x)
{
    const float_format *f = format_of(e, x);
    LLVMValueRef one = cg_like(e, x, 1), two = cg_like(e, x, 2), a = cg_fabs(e, x);
    LLVMValueRef small = cg_fmul(e, a, evaluate(e, &f->erf_small, cg_fmul(e, a, a)));
    LLVMValueRef limited = cg_fmin(e, cg_like(e, x, f->erf_max), a);
    LLVMValueRef less = cg_fsub(e, limited, two), more = cg_fadd(e, limited, two), t = cg_fdiv(e, less, more);
    LLVMValueRef decay = cg_exp(e, LLVMBuildFNeg(e->builder, cg_fmul(e, limited, limited), ""));
    LLVMValueRef large = cg_fsub(e, one, cg_fmul(e, decay, evaluate(e, &f->erfc_scaled, t)));
    return copy_sign(e, cg_select(e, compare(e, LLVMRealOLT, a, 1), small, large), x);
}

/* C's pow, including special cases. |x|^y = e^(y log |x|), corrected by the product's rounding error; f32 computes
 * all of it in f64. In f64 the relative error grows with |y log x| to about 1e-13 at the ends of the range. */
static LLVMValueRef power_f64(cg_emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef one = cg_like(e, x, 1), magnitude = cg_fabs(e, x), log = cg_log(e, magnitude);
    LLVMValueRef product = cg_fmul(e, y, log);
    LLVMValueRef error = cg_fma(e, y, log, LLVMBuildFNeg(e->builder, product, ""));
    LLVMValueRef power = cg_exp(e, product);
    LLVMValueRef power_fits = compare(e, LLVMRealOLT, power, INFINITY);
    LLVMValueRef product_fits = compare(e, LLVMRealOLT, cg_fabs(e, product), INFINITY);
    LLVMValueRef finite = LLVMBuildAnd(e->builder, power_fits, product_fits, "");
    power = cg_select(e, finite, cg_fma(e, power, error, power), power);
    LLVMValueRef of_one = compare(e, LLVMRealOEQ, magnitude, 1), to_zero = compare(e, LLVMRealOEQ, y, 0);
    LLVMValueRef trivial = LLVMBuildOr(e->builder, of_one, to_zero, "");
    power = cg_select(e, trivial, one, power);

    LLVMValueRef half = cg_fmul(e, y, cg_like(e, x, 0.5));
    LLVMValueRef integer = LLVMBuildFCmp(e->builder, LLVMRealOEQ, cg_floor(e, y), y, "");
    LLVMValueRef even = LLVMBuildFCmp(e->builder, LLVMRealOEQ, cg_floor(e, half), half, "");
    LLVMValueRef signed_power = cg_select(e, even, power, copy_sign(e, power, x));
    LLVMValueRef negative = compare(e, LLVMRealOLT, x, 0);
    LLVMValueRef undefined = LLVMBuildAnd(e->builder, negative, LLVMBuildNot(e->builder, integer, ""), "");
    undefined = LLVMBuildAnd(e->builder, undefined, compare(e, LLVMRealOLT, magnitude, INFINITY), "");
    power = cg_select(e, integer, signed_power, power);
    return cg_select(e, undefined, cg_like(e, x, NAN), power);
}

LLVMValueRef cg_pow(cg_emitter *e, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef type = LLVMTypeOf(x), wide = cg_with_element(type, e->f64);
    if (cg_element(type) == e->f64) return power_f64(e, x, y);
    LLVMValueRef wide_x = LLVMBuildFPExt(e->builder, x, wide, ""), wide_y = LLVMBuildFPExt(e->builder, y, wide, "");
    LLVMValueRef power = power_f64(e, wide_x, wide_y);
    return LLVMBuildFPTrunc(e->builder, power, type, "");
}
