/* test_lower_quantised.c — quantised operators from ONNX to code, compared with the evaluation, and the resulting
 * kernels. */
#include "tests/support/graph_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const int64_t lengths[] = {1, 2, 9, 40, 0};

static void values_are_quantised_and_dequantised(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,6]\ns = constant f32[] [0.0078]\nz = constant u8[] [120]\n"
                       "q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\nreturn q, y\n",
                       lengths);
    assert_code_agrees("x = input f32[L,6]\ns = constant f32[] [0.002]\n" /* exceeds the range on both sides */
                       "q = QuantizeLinear(x, s) {output_dtype=3}\ny = DequantizeLinear(q, s)\nreturn q, y\n",
                       lengths);
}

static void scales_and_zero_points_follow_their_axis(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,3,4]\ns = constant f32[3] [0.01, 0.1, 0.005]\nz = constant i8[3] [-3, 0, 100]\n"
                       "q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\nreturn q, y\n",
                       lengths);
    /* Only one is a vector, as in QLinearConv. */
    assert_code_agrees("x = input f32[L,3,4]\ns = constant f32[3] [0.01, 0.1, 0.005]\nz = constant i8[] [-3]\n"
                       "q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\nreturn q, y\n",
                       lengths);
    assert_code_agrees("x = input f32[L,3,4]\ns = constant f32[] [0.01]\nz = constant i8[3] [-3, 0, 100]\n"
                       "q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\nreturn q, y\n",
                       lengths);
    assert_code_agrees("x = input i32[L,3]\ns = constant f32[3] [0.01, 0.1, 0.005]\n"
                       "y = DequantizeLinear(x, s) {axis=-1}\nreturn y\n",
                       lengths);
}

static void ranges_are_computed_at_run_time(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,5]\nq, s, z = DynamicQuantizeLinear(x)\nreturn q, s, z\n", lengths);
    assert_code_agrees("x = input f32[L,5]\nzero = constant f32[] [0]\ny = Mul(x, zero)\n"
                       "q, s, z = DynamicQuantizeLinear(y)\nreturn q, s, z\n",
                       lengths);
}

static void byte_matmuls_accumulate_in_32_bits(void **state)
{
    (void)state;
    assert_code_agrees("a = input u8[L,6]\nb = input i8[6,4]\nza = input u8[]\nzb = input i8[4]\n"
                       "y = MatMulInteger(a, b, za, zb)\nw = MatMulInteger(a, b)\nreturn y, w\n",
                       lengths);
    assert_code_agrees("a = input u8[3,L,6]\nb = input u8[6,4]\ny = MatMulInteger(a, b)\nreturn y\n", lengths);
    assert_code_agrees("a = input i8[3,6]\nb = input i8[6,L]\nza = constant i8[3] [1, 2, -3]\n"
                       "y = MatMulInteger(a, b, za)\nreturn y\n",
                       lengths);
}

/* Factors may be vectors. A one-element zero point applies to all rows. */
static void single_zero_points_fit_any_operand(void **state)
{
    (void)state;
    static const char *const shapes[][2] = {{"[6]", "[6,L]"},   {"[6]", "[6]"},     {"[L,6]", "[6]"},
                                            {"[3,L,6]", "[6]"}, {"[6]", "[L,6,2]"}, {"[1,6]", "[6,L]"}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (int rank = 0; rank <= 1; rank++) {
            char text[256];
            snprintf(text, sizeof text,
                     "a = input u8%s\nb = input i8%s\nza = constant u8%s [7]\nzb = constant i8%s [-3]\n"
                     "y = MatMulInteger(a, b, za, zb)\nreturn y\n",
                     shapes[i][0], shapes[i][1], rank > 0 ? "[1]" : "[]", rank > 0 ? "[1]" : "[]");
            assert_code_agrees(text, lengths);
        }
}

/* A layer as written by ONNX Runtime's dynamic quantisation. */
#define LAYER                                                                                                          \
    "x = input f32[L,4]\nb = constant i8[4,3] [1, -2, 3, 100, 5, -128, 127, 8, 9, -7, 11, 12]\n"                       \
    "zb = constant i8[3] [0, 1, -1]\nsb = constant f32[3] [0.01, 0.02, 0.015]\nbias = constant f32[3] [1, 2, 3]\n"     \
    "q, s, z = DynamicQuantizeLinear(x)\nscale = Mul(s, sb)\ni = MatMulInteger(q, b, z, zb)\nf = Cast(i) {to=1}\n"     \
    "p = Mul(f, scale)\ny = Add(p, bias)\nreturn y\n"

static void a_quantised_layer_becomes_a_linear(void **state)
{
    (void)state;
    assert_code_agrees(LAYER, lengths);
    assert_kernels(LAYER, "linear nest6");
    assert_kernels("x = input f32[L,4]\nq = constant i8[4,3] [1, -2, 3, 100, 5, -128, 127, 8, 9, -7, 11, 12]\n"
                   "s = constant f32[3] [0.01, 0.02, 0.015]\nw = DequantizeLinear(q, s) {axis=1}\n"
                   "y = MatMul(x, w)\nreturn y\n",
                   "linear");
}

/* One value may be stored as a one-element vector, also for scalars. */
static void single_scales_fit_any_rank(void **state)
{
    (void)state;
    static const char *const shapes[] = {"[]", "[L]", "[L,1]", "[1,L]", "[2,3,L]"};
    static const char *const one[] = {"[]", "[1]"};
    for (size_t i = 0; i < 2 * 2 * sizeof shapes / sizeof shapes[0]; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "x = input f32%s\nw = input f32[L]\ns = constant f32%s [0.0078]\nz = constant u8%s [120]\n"
                 "q = QuantizeLinear(x, s, z)\ny = DequantizeLinear(q, s, z)\nv = Neg(w)\nreturn q, y, v\n",
                 shapes[i / 4], one[i % 2], one[i / 2 % 2]);
        assert_code_agrees(text, lengths);
    }
}

/* The reciprocal of a zero shows the sign. */
static void integers_have_no_negative_zero(void **state)
{
    (void)state;
    assert_code_agrees(
        "x = input f32[L,4]\ns = constant f32[] [4]\nz = constant i8[] [0]\nq = QuantizeLinear(x, s, z)\n"
        "d = DequantizeLinear(q, s, z)\nt = QuantizeLinear(x, s, z)\nw = DequantizeLinear(t, s)\n"
        "y = Reciprocal(d)\nv = Reciprocal(w)\nreturn d, y, v\n",
        lengths);
    static const char *const zeros[] = {"u8[1] [0]", "i8[1] [0]", "i8[4] [0, 0, 0, 0]", "i16[4] [0, 0, 0, 0]",
                                        "i8[4] [0, 3, 0, -2]"};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "x = input f32[L,4]\ns = constant f32[4] [4, 3, 2, 5]\nz = constant %s\nq = QuantizeLinear(x, s, z)\n"
                 "d = DequantizeLinear(q, s, z)\ny = Reciprocal(d)\nreturn d, y\n",
                 zeros[i]);
        assert_code_agrees(text, lengths);
    }
}

/* NaN becomes the type's least number, as in ONNX Runtime and ONNX's reference, and infinities saturate. The kernels
 * read the values from a constant behind a condition that is false at run time. */
static void values_that_are_no_numbers_are_quantised(void **state)
{
    (void)state;
    static const char *const types[] = {"u8", "i8", "u16", "i16"}, *const zeros[] = {"0", "3"};
    static const char *const scales[][3] = {{"[]", "0.5"}, {"[]", "inf"},   {"[]", "0"},
                                            {"[]", "nan"}, {"[]", "1e-30"}, {"[4]", "-0.5, inf, 0, 1e30"}};
    for (size_t i = 0; i < 4 * 2 * sizeof scales / sizeof scales[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "x = input f32[L,1,1]\nbig = constant f32[] [1e30]\nm = Less(big, x)\n"
                 "c = constant f32[4,8] [nan, inf, -inf, -0, 0, 1, 1e38, -1e38, nan, inf, -inf, -0, 0, 1, 1e38, -1e38, "
                 "nan, inf, -inf, -0, 0, 1, 1e38, -1e38, nan, inf, -inf, -0, 0, 1, 1e38, -1e38]\n"
                 "v = Where(m, x, c)\ns = constant f32%s [%s]\nz = constant %s[] [%s]\n"
                 "q = QuantizeLinear(v, s, z)\nf = Cast(q) {to=1}\nt = constant f32[] [0.25]\n"
                 "y = DequantizeLinear(q, t, z)\nd = DequantizeLinear(q, s, z)\nk = QuantizeLinear(c, s, z) {axis=0}\n"
                 "g = Cast(k) {to=1}\nw = Add(x, g)\nreturn f, y, d, w\n",
                 scales[i / 8][0], scales[i / 8][1], types[i / 2 % 4], zeros[i % 2]);
        assert_code_agrees(text, lengths);
    }
    assert_code_agrees("x = input f32[L]\nbig = constant f32[] [1e30]\nm = Less(big, x)\n"
                       "c = constant f32[] [nan]\nv = Where(m, x, c)\nq, s, z = DynamicQuantizeLinear(v)\n"
                       "return q, z\n",
                       lengths);
}

static void blocks_of_constants_are_dequantised(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,5]\nq = constant i8[5,2] [1, -2, 3, 4, -5, 6, 7, -8, 9, 10]\n"
                       "s = constant f32[3,2] [0.5, 0.25, 2, 1, -1, 3]\nz = constant i8[3,2] [1, 0, 0, -1, 2, 3]\n"
                       "w = DequantizeLinear(q, s, z) {axis=0, block_size=2}\ny = MatMul(x, w)\nreturn y\n",
                       lengths);
    assert_refused("x = input i8[L,4]\ns = weights f32[1,2]\ny = DequantizeLinear(x, s) {axis=1, block_size=2}\n"
                   "return y\n",
                   "");
}

static void blockwise_quantisation_is_refused(void **state)
{
    (void)state;
    assert_refused(
        "x = input f32[L,4]\ns = weights f32[2,4]\ny = QuantizeLinear(x, s) {axis=0, block_size=2}\nreturn y\n",
        "blocks of elements");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_quantised_and_dequantised),
        cmocka_unit_test(scales_and_zero_points_follow_their_axis),
        cmocka_unit_test(ranges_are_computed_at_run_time),
        cmocka_unit_test(byte_matmuls_accumulate_in_32_bits),
        cmocka_unit_test(single_zero_points_fit_any_operand),

        cmocka_unit_test(single_scales_fit_any_rank),
        cmocka_unit_test(a_quantised_layer_becomes_a_linear),
        cmocka_unit_test(integers_have_no_negative_zero),
        cmocka_unit_test(values_that_are_no_numbers_are_quantised),
        cmocka_unit_test(blocks_of_constants_are_dequantised),
        cmocka_unit_test(blockwise_quantisation_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
