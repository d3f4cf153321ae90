/* Elementary functions against libm, at every vector width of this machine. */
#include "codegen/cpu/real_functions.h"
#include "tests/support/assertions.h"
#include "tests/support/cg_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1 << 14, WIDEST = 16 };

typedef LLVMValueRef (*unary_emitter)(cg_emitter *e, LLVMValueRef x);

typedef struct function_case {
    const char *name;
    unary_emitter emit;
    double (*reference)(double x);
    double low, high; /* range of random arguments */
    double relative_f32, relative_f64;
    double absolute_f32, absolute_f64;
    bool f32_only;
} function_case;

static double sigmoid(double x) { return exp(fmin(x, 0)) / (1 + exp(-fabs(x))); }

static double gelu(double x) { return x > 0 ? x - x / 2 * erfc(x * sqrt(0.5)) : x / 2 * erfc(-x * sqrt(0.5)); }

static double gelu_tanh(double x) { return x / (1 + exp(-2 * sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x))); }

static const function_case cases[] = {
    {"exp", cg_exp, exp, -110, 90, 3e-7, 4e-16, 0, 0, false},
    {"exp_wide", cg_exp, exp, -750, 715, 3e-7, 4e-16, 0, 0, false},
    {"exp_small", cg_exp, exp, -1, 1, 3e-7, 4e-16, 0, 0, false},
    {"exp2_negative", cg_exp2_negative, exp2, -100, 0, 3e-7, 0, 0, 0, true},
    {"exp_negative", cg_exp_negative, exp, -69, 0, 2e-6, 0, 0, 0, true},
    {"log", cg_log, log, 0, 4, 3e-7, 4e-16, 0, 0, false},
    {"log_near_one", cg_log, log, 0.999, 1.001, 3e-7, 4e-16, 0, 0, false},
    {"log_wide", cg_log, log, 0, 3e38, 3e-7, 4e-16, 0, 0, false},
    {"log_denormal", cg_log, log, 0, 1e-38, 3e-7, 4e-16, 0, 0, false},
    {"sin", cg_sin, sin, -10, 10, 2e-7, 1e-15, 0, 1e-15, false},
    {"sin_far", cg_sin, sin, -1e5, 1e5, 2e-7, 1e-15, 0, 1e-15, false},
    {"cos", cg_cos, cos, -10, 10, 2e-7, 1e-15, 0, 1e-15, false},
    {"cos_far", cg_cos, cos, -1e5, 1e5, 2e-7, 1e-15, 0, 1e-15, false},
    {"sin_huge", cg_sin, sin, -3e38, 3e38, 2e-7, 1e-15, 0, 0, false},
    {"cos_huge", cg_cos, cos, -3e38, 3e38, 2e-7, 1e-15, 0, 0, false},
    {"sin_beyond_integers", cg_sin, sin, -1e19, 1e19, 2e-7, 1e-15, 0, 0, false},
    {"cos_before_integers", cg_cos, cos, 0x1p45, 0x1p51, 2e-7, 1e-15, 0, 0, false},
    {"sin_at_the_border", cg_sin, sin, 0x1p39, 0x1p41, 2e-7, 1e-15, 0, 1e-15, false},
    {"sin_of_doubles", cg_sin, sin, -8e307, 8e307, 2e-7, 1e-15, 0, 0, false},
    {"tanh", cg_tanh, tanh, -12, 12, 5e-7, 2e-15, 0, 0, false},
    {"tanh_small", cg_tanh, tanh, -1e-3, 1e-3, 5e-7, 2e-15, 0, 0, false},
    {"erf", cg_erf, erf, -6.5, 6.5, 5e-7, 2e-15, 0, 0, false},
    {"erf_small", cg_erf, erf, -1e-3, 1e-3, 5e-7, 2e-15, 0, 0, false},
    {"sigmoid", cg_sigmoid, sigmoid, -80, 80, 5e-7, 1e-15, 0, 0, false},
    {"sigmoid_denormal", cg_sigmoid, sigmoid, -110, -80, 5e-7, 1e-15, 0, 0, false},
    {"sigmoid_wide", cg_sigmoid, sigmoid, -750, 715, 5e-7, 1e-15, 0, 0, false},
    {"gelu", cg_gelu, gelu, -8, 8, 2e-7, 1e-15, 1e-6, 1e-15, false},
    {"gelu_near_zero", cg_gelu, gelu, -0.01, 0.01, 2e-7, 1e-15, 1e-6, 1e-15, false},
    {"gelu_far", cg_gelu, gelu, -1e6, 1e6, 2e-7, 1e-15, 1e-6, 1e-15, false},
    {"gelu_to_bf16", cg_gelu_to_bf16, gelu, -8, 8, 1e-5, 1e-15, 4e-6, 1e-15, false},
    {"gelu_to_bf16_near_zero", cg_gelu_to_bf16, gelu, -0.01, 0.01, 1e-5, 1e-15, 1e-6, 1e-15, false},
    {"gelu_tanh", cg_gelu_tanh, gelu_tanh, -8, 8, 4e-6, 1e-14, 1e-7, 1e-16, false},
};
enum { CASE_COUNT = sizeof cases / sizeof cases[0] };

/* void name(in, out, n): out[i] = f(in[i]), `lanes` at a time */
static void emit_map(cg_emitter *e, const char *name, unary_emitter function, LLVMTypeRef element, int lanes)
{
    cg_loop loop;
    harness_begin_function(e, name, 2);
    cg_loop_begin(e, &loop, cg_int(e, 0), e->length, lanes, 0, NULL, true);
    LLVMValueRef x = cg_load(e, cg_vector(e, element, lanes), cg_at(e, element, cg_pointer(e, 0), loop.index), 0);
    cg_store(e, function(e, x), cg_at(e, element, cg_pointer(e, 1), loop.index), 0);
    cg_loop_end(e, &loop, NULL);
    cg_end_function(e);
}

static void emit_power(cg_emitter *e, const char *name, LLVMTypeRef element, int lanes)
{
    cg_loop loop;
    harness_begin_function(e, name, 3);
    cg_loop_begin(e, &loop, cg_int(e, 0), e->length, lanes, 0, NULL, true);
    LLVMTypeRef type = cg_vector(e, element, lanes);
    LLVMValueRef x = cg_load(e, type, cg_at(e, element, cg_pointer(e, 0), loop.index), 0);
    LLVMValueRef y = cg_load(e, type, cg_at(e, element, cg_pointer(e, 1), loop.index), 0);
    cg_store(e, cg_pow(e, x, y), cg_at(e, element, cg_pointer(e, 2), loop.index), 0);
    cg_loop_end(e, &loop, NULL);
    cg_end_function(e);
}

static void symbol_name(char *out, size_t size, const char *function, bool wide, int lanes)
{
    snprintf(out, size, "%s_%s_%d", function, wide ? "f64" : "f32", lanes);
}

static void emit_all(harness *h)
{
    char name[64];
    for (int wide = 0; wide <= 1; wide++) {
        LLVMTypeRef element = wide ? h->e.f64 : h->e.f32;
        for (int lanes = 1; lanes <= h->e.target->lanes; lanes += h->e.target->lanes - 1) {
            for (int c = 0; c < CASE_COUNT; c++) {
                if (wide && cases[c].f32_only) continue;
                symbol_name(name, sizeof name, cases[c].name, wide, lanes);
                emit_map(&h->e, name, cases[c].emit, element, lanes);
            }
            symbol_name(name, sizeof name, "pow", wide, lanes);
            emit_power(&h->e, name, element, lanes);
        }
    }
}

static mdot_cpu_isa test_levels[] = {MDOT_CPU_X86_64_V3, MDOT_CPU_X86_64_V4, MDOT_CPU_AARCH64_NEON};
enum { LEVEL_COUNT = 3 };
static harness loaded[LEVEL_COUNT];

static int load_levels(void **state)
{
    (void)state;
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (!harness_runs(test_levels[l])) continue;
        harness_begin(&loaded[l], test_levels[l]);
        emit_all(&loaded[l]);
        harness_load(&loaded[l]);
    }
    return 0;
}

static int unload_levels(void **state)
{
    (void)state;
    for (int l = 0; l < LEVEL_COUNT; l++)
        if (harness_runs(test_levels[l])) harness_end(&loaded[l]);
    return 0;
}

static double random_between(double low, double high) { return low + (high - low) * (rand() / (double)RAND_MAX); }

/* The allowed error includes the smallest denormal, because a result may be next to a denormal. */
static void hold(const char *name, double x, double got, double want, double relative, double absolute, double tiny)
{
    if (isnan(want) ? isnan(got) : got == want) return;
    double allowed = fabs(want) * relative + absolute + tiny;
    if (!(fabs(got - want) <= allowed))
        fail_msg("%s(%.17g) = %.17g, expected %.17g: relative error %.3g, absolute %.3g", name, x, got, want,
                 fabs(got - want) / fabs(want), fabs(got - want));
}

/* Calls a function with one or two arrays and a result, `count` elements each. */
static void call_map(const harness *h, const char *symbol, const void *const *in, int in_count, void *out,
                     size_t element_bytes, int count)
{
    enum { MOST = 3 };
    guarded memory[MOST];
    const guarded *buffers[MOST];
    size_t bytes = element_bytes * (size_t)count;
    for (int i = 0; i <= in_count; i++) {
        memory[i] = guard_create(bytes, GUARD_BEYOND);
        if (i < in_count && bytes > 0) memcpy(memory[i].data, in[i], bytes);
        buffers[i] = &memory[i];
    }
    harness_call(h, symbol, buffers, in_count + 1, count);
    if (bytes > 0) memcpy(out, memory[in_count].data, bytes);
    for (int i = 0; i <= in_count; i++) guard_destroy(&memory[i]);
}

static void map_f32(const harness *h, const char *symbol, const float *in, float *out, int count)
{
    call_map(h, symbol, (const void *[]){in}, 1, out, sizeof *out, count);
}

static void compare_f32(const char *symbol, const harness *h, const function_case *c, const double *x, int count)
{
    static float in[COUNT], out[COUNT];
    for (int i = 0; i < count; i++) in[i] = (float)x[i];
    map_f32(h, symbol, in, out, count);
    for (int i = 0; i < count; i++) {
        float want = (float)c->reference(in[i]);
        hold(symbol, in[i], out[i], want, c->relative_f32, c->absolute_f32, 0x1p-149);
    }
}

static void compare_f64(const char *symbol, const harness *h, const function_case *c, const double *x, int count)
{
    static double out[COUNT];
    call_map(h, symbol, (const void *[]){x}, 1, out, sizeof *out, count);
    for (int i = 0; i < count; i++)
        hold(symbol, x[i], out[i], c->reference(x[i]), c->relative_f64, c->absolute_f64, 0x1p-1074);
}

/* Every case at every level, width and type. */
static void compare_all(int (*arguments)(const function_case *c, double *x))
{
    static double x[COUNT];
    char symbol[64];
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (!harness_runs(test_levels[l])) continue;
        int widest = loaded[l].e.target->lanes;
        for (int c = 0; c < CASE_COUNT; c++) {
            int count = arguments(&cases[c], x);
            for (int lanes = 1; lanes <= widest; lanes += widest - 1) {
                symbol_name(symbol, sizeof symbol, cases[c].name, false, lanes);
                compare_f32(symbol, &loaded[l], &cases[c], x, count);
                if (cases[c].f32_only) continue;
                symbol_name(symbol, sizeof symbol, cases[c].name, true, lanes);
                compare_f64(symbol, &loaded[l], &cases[c], x, count);
            }
        }
    }
}

static int random_arguments(const function_case *c, double *x)
{
    for (int i = 0; i < COUNT; i++) x[i] = random_between(c->low, c->high);
    return COUNT;
}

static bool is_softmax_power(const function_case *c)
{
    return c->emit == cg_exp2_negative || c->emit == cg_exp_negative;
}

static int special_arguments(const function_case *c, double *x)
{
    static const double special[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-30, -1e-30, 88.72, -87.3, 5.6, -5.6, 30, -30};
    int count = 0;
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (!is_softmax_power(c) || (special[i] <= 0 && special[i] >= c->low)) x[count++] = special[i];
    while (count % WIDEST) x[count] = x[0], count++;
    return count;
}

/* Infinite arguments with a mathematical limit. Excluded are the powers for softmax, which return the
 * smallest result at -infinity, and GELU, whose forms differ there. */
static int infinite_arguments(const function_case *c, double *x)
{
    bool limits = !is_softmax_power(c) && c->emit != cg_gelu && c->emit != cg_gelu_to_bf16 && c->emit != cg_gelu_tanh;
    for (int i = 0; i < WIDEST; i++) x[i] = i % 3 == 0 ? INFINITY : i % 3 == 1 ? -INFINITY : NAN;
    return limits ? WIDEST : 0;
}

static void functions_match_libm_on_random_arguments(void **state)
{
    (void)state;
    srand(1);
    compare_all(random_arguments);
}

static void functions_match_libm_on_special_arguments(void **state)
{
    (void)state;
    compare_all(special_arguments);
}

static void functions_match_libm_on_infinities_and_nan(void **state)
{
    (void)state;
    compare_all(infinite_arguments);
}

/* As in ONNX Runtime and PyTorch: they multiply negative infinity by 0. */
static void gelu_of_negative_infinity_is_nan(void **state)
{
    (void)state;
    float in[WIDEST] = {NAN, INFINITY, -1e30f, -INFINITY, -3.4e38f, 3.4e38f, 1e-44f}, out[WIDEST];
    static const char *const forms[] = {"gelu", "gelu_tanh"};
    char symbol[64];
    for (int l = 0; l < 2 * LEVEL_COUNT; l++) {
        if (!harness_runs(test_levels[l / 2])) continue;
        symbol_name(symbol, sizeof symbol, forms[l % 2], false, loaded[l / 2].e.target->lanes);
        map_f32(&loaded[l / 2], symbol, in, out, WIDEST);
        assert_true(isnan(out[0]));
        assert_true(isinf(out[1]));
        assert_compare(out[1], >, 0);
        assert_compare(fabsf(out[2]), <, 1e-6f);
        assert_true(isnan(out[3]));
        assert_compare(fabsf(out[4]), <, 1e-6f);
        assert_compare(out[5], ==, in[5]);
        assert_compare(fabsf(out[6]), <=, in[6]);
    }
}

/* Zeros stay zeros with their sign, and tiny arguments are halved. One lane gives the same bits as a vector, because
 * the row's end is computed with fewer lanes. */
static void gelu_keeps_zero_and_the_sign_of_tiny_arguments(void **state)
{
    (void)state;
    float in[WIDEST] = {0.0f, -0.0f, 1e-6f, -1e-6f, 1e-30f, -1e-30f, 0.3f, -0.3f,
                        0.7f, -1.1f, 2.3f,  -3.9f,  5.2f,   6,       -7,   9};
    float out[WIDEST], narrow[WIDEST];
    char symbol[64];
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (!harness_runs(test_levels[l])) continue;
        int lanes = loaded[l].e.target->lanes;
        symbol_name(symbol, sizeof symbol, "gelu", false, lanes);
        map_f32(&loaded[l], symbol, in, out, WIDEST);
        assert_compare(out[0], ==, 0);
        assert_false(signbit(out[0]));
        assert_compare(out[1], ==, 0);
        assert_true(signbit(out[1]));
        for (int i = 2; i < 6; i++) assert_compare(fabsf(out[i] - in[i] / 2), <=, 1e-5f * fabsf(in[i]));
        symbol_name(symbol, sizeof symbol, "gelu", false, 1);
        map_f32(&loaded[l], symbol, in, narrow, WIDEST);
        assert_memory_equal(narrow, out, sizeof out);
    }
}

static void sine_of_negative_zero_is_negative_zero(void **state)
{
    (void)state;
    float in[WIDEST] = {-0.0f, 0.0f}, out[WIDEST];
    char symbol[64];
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (!harness_runs(test_levels[l])) continue;
        symbol_name(symbol, sizeof symbol, "sin", false, loaded[l].e.target->lanes);
        map_f32(&loaded[l], symbol, in, out, WIDEST);
        assert_compare(out[0], ==, 0);
        assert_true(signbit(out[0]));
        assert_compare(out[1], ==, 0);
        assert_false(signbit(out[1]));
    }
}

static void exp2_of_minus_infinity_is_nearly_zero(void **state)
{
    (void)state;
    float in[WIDEST] = {-INFINITY, -1e9f, -101}, out[WIDEST];
    char symbol[64];
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (!harness_runs(test_levels[l])) continue;
        symbol_name(symbol, sizeof symbol, "exp2_negative", false, loaded[l].e.target->lanes);
        map_f32(&loaded[l], symbol, in, out, WIDEST);
        for (int i = 0; i < 3; i++) assert_compare(out[i], ==, 0x1p-100f);
    }
}

/* ---- Powers of two for bf16 -------------------------------------------------------------------------------------- */

/* Targets with softmax weights in bf16: with vreduceps and vscalefps, and in plain vectors. */
static int weight_targets(cg_cpu_target targets[2])
{
    int count = 0;
    targets[count] = *cg_cpu_target_find(MDOT_CPU_X86_64_V4, CG_FP32);
    targets[count].matmul = CG_MATMUL_AMX;
    if (harness_runs(MDOT_CPU_X86_64_V4)) count++;
    targets[count] = *cg_cpu_target_find(MDOT_CPU_X86_64_V3, CG_FP32);
    targets[count].matmul = CG_MATMUL_AMX;
    targets[count].lanes = WIDEST;
    targets[count].use_generic_vectors = true;
    if (harness_runs(MDOT_CPU_X86_64_V3)) count++;
    return count;
}

static float truncated(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffff0000;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Every float in [1, 2) and [-2, -1), so every 23-bit fraction occurs; then random ones over the whole range. From -126
 * to 127.99, the largest error is 5.502e-3. It was measured for every float from 2^-30 in magnitude on, and for every
 * 257th group of 16 below. */
static void powers_of_two_are_exact_to_bf16(void **state)
{
    (void)state;
    static float in[COUNT], out[2][COUNT];
    cg_cpu_target targets[2];
    harness h[2];
    int count = weight_targets(targets);
    if (count == 0) skip();
    for (int t = 0; t < count; t++) {
        harness_begin_for(&h[t], &targets[t]);
        emit_map(&h[t].e, "power", cg_exp2_before_truncation, h[t].e.f32, WIDEST);
        harness_load(&h[t]);
    }
    enum { MANTISSAS = 1 << 23, RANDOM = 64 };
    double largest = 0;
    for (int chunk = 0; chunk < 2 * MANTISSAS / COUNT + RANDOM; chunk++) {
        for (int i = 0; i < COUNT; i++) {
            uint32_t mantissa = (uint32_t)(chunk * COUNT + i) % MANTISSAS;
            bool all = chunk < 2 * MANTISSAS / COUNT, negative = chunk >= MANTISSAS / COUNT;
            in[i] = all ? float_of((negative ? 0xbf800000 : 0x3f800000) + mantissa) : (float)random_between(-126, 127);
        }
        for (int t = 0; t < count; t++) {
            map_f32(&h[t], "power", in, out[t], COUNT);
            assert_memory_equal(out[t], out[0], sizeof out[t]);
        }
        for (int i = 0; i < COUNT; i++) {
            double want = exp2((double)in[i]), error = fabs(truncated(out[0][i]) - want) / want;
            if (error > largest) largest = error;
        }
    }
    assert_compare(largest, <, 5.6e-3);
    assert_compare(largest, >, 5e-3);
    for (int t = 0; t < count; t++) harness_end(&h[t]);
}

static void powers_of_two_for_bf16_keep_nan_and_infinity(void **state)
{
    (void)state;
    cg_cpu_target targets[2];
    int count = weight_targets(targets);
    if (count == 0) skip();
    for (int t = 0; t < count; t++) {
        harness h;
        float in[WIDEST] = {NAN,  INFINITY, -INFINITY, -1e9f, -FLT_MAX, FLT_MAX, 300,
                            -300, 0,        -0.0f,     -126,  127,      128,     -160};
        float out[WIDEST];
        harness_begin_for(&h, &targets[t]);
        emit_map(&h.e, "power", cg_exp2_before_truncation, h.e.f32, WIDEST);
        harness_load(&h);
        map_f32(&h, "power", in, out, WIDEST);
        assert_true(isnan(out[0]));
        assert_true(isnan(truncated(out[0])));
        static const float want[] = {INFINITY, 0, 0, 0, INFINITY, INFINITY, 0, 1, 1, 0x1p-126f, 0x1p127f, INFINITY, 0};
        for (int i = 0; i < 13; i++) assert_compare(truncated(out[1 + i]), ==, want[i]);
        harness_end(&h);
    }
}

/* ---- Power ------------------------------------------------------------------------------------------------------ */

static void compare_powers(const double *x, const double *y, int count)
{
    static float x32[COUNT], y32[COUNT], out32[COUNT];
    static double out64[COUNT];
    char symbol[64];
    for (int i = 0; i < count; i++) x32[i] = (float)x[i], y32[i] = (float)y[i];
    for (int l = 0; l < LEVEL_COUNT; l++) {
        if (!harness_runs(test_levels[l])) continue;
        int widest = loaded[l].e.target->lanes;
        for (int lanes = 1; lanes <= widest; lanes += widest - 1) {
            symbol_name(symbol, sizeof symbol, "pow", false, lanes);
            call_map(&loaded[l], symbol, (const void *[]){x32, y32}, 2, out32, sizeof *out32, count);
            for (int i = 0; i < count; i++)
                hold(symbol, x32[i], out32[i], (float)pow(x32[i], y32[i]), 2e-7, 0, 0x1p-149);
            symbol_name(symbol, sizeof symbol, "pow", true, lanes);
            call_map(&loaded[l], symbol, (const void *[]){x, y}, 2, out64, sizeof *out64, count);
            for (int i = 0; i < count; i++) hold(symbol, x[i], out64[i], pow(x[i], y[i]), 2e-13, 0, 0x1p-1074);
        }
    }
}

static void pow_matches_libm_on_random_arguments(void **state)
{
    (void)state;
    static double x[COUNT], y[COUNT];
    srand(2);
    for (int i = 0; i < COUNT; i++) {
        x[i] = i % 2 ? random_between(0, 20) : floor(random_between(-10, 10));
        y[i] = i % 4 < 2 ? random_between(-30, 30) : floor(random_between(-12, 12));
    }
    compare_powers(x, y, COUNT);
}

static void pow_matches_libm_on_special_arguments(void **state)
{
    (void)state;
    static const double values[] = {0.0, -0.0, 1,        -1,        2,   -2,   3,     -3,
                                    0.5, -0.5, INFINITY, -INFINITY, NAN, 1e30, 1e-30, 7};
    enum { N = sizeof values / sizeof values[0] };
    double x[N * N], y[N * N];
    for (int i = 0; i < N * N; i++) x[i] = values[i / N], y[i] = values[i % N];
    compare_powers(x, y, N * N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_match_libm_on_random_arguments),
        cmocka_unit_test(functions_match_libm_on_special_arguments),
        cmocka_unit_test(functions_match_libm_on_infinities_and_nan),
        cmocka_unit_test(gelu_of_negative_infinity_is_nan),
        cmocka_unit_test(gelu_keeps_zero_and_the_sign_of_tiny_arguments),
        cmocka_unit_test(sine_of_negative_zero_is_negative_zero),
        cmocka_unit_test(exp2_of_minus_infinity_is_nearly_zero),
        cmocka_unit_test(powers_of_two_are_exact_to_bf16),
        cmocka_unit_test(powers_of_two_for_bf16_keep_nan_and_infinity),
        cmocka_unit_test(pow_matches_libm_on_random_arguments),
        cmocka_unit_test(pow_matches_libm_on_special_arguments),
    };
    return cmocka_run_group_tests_name("cg_math", tests, load_levels, unload_levels);
}
