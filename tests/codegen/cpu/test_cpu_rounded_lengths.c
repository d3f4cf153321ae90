/* test_cpu_rounded_lengths.c — graphs with rounded length quotients in tensors, from ONNX operators to code, compared
 * with the evaluation at lengths with every remainder. */
#include "tests/support/graph_code.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const int64_t lengths[] = {1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 39, 40, 0};
static const int64_t longer[] = {16, 17, 23, 24, 25, 39, 40, 0}; /* for kernels up to 16 elements */

#define CONV(shape, attributes)                                                                                        \
    "x = input f32[" shape "]\nw = weights f32[12,6,3]\nb = weights f32[12]\ny = Conv(x, w, b) {" attributes "}\n"     \
    "return y\n"

static void convolutions_stride_over_the_length(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(CONV("1,6,L", "strides=[2], pads=[1, 1]"), lengths);
    assert_code_agrees(CONV("1,6,L", "strides=[3], pads=[1, 1]"), lengths);
    assert_code_agrees(CONV("1,6,L", "strides=[4], pads=[0, 5], dilations=[2]"), lengths);
    assert_code_agrees(CONV("3,6,L", "strides=[2], pads=[2, 0]"), lengths);
    assert_code_agrees(CONV("1,6,L", "strides=[2], auto_pad=\"SAME_UPPER\""), lengths);
    assert_code_agrees(CONV("1,6,L", "strides=[2], auto_pad=\"SAME_LOWER\""), lengths);
    assert_code_agrees("x = input f32[1,6,L]\nw = weights f32[12,1,3]\ny = Conv(x, w) {group=6, pads=[1, 1], "
                       "strides=[2]}\nreturn y\n",
                       lengths);
    assert_code_agrees("x = input f32[1,6,L]\nw = weights f32[12,6,1]\ny = Conv(x, w) {strides=[2]}\nreturn y\n",
                       lengths);
    assert_code_agrees("x = input f32[2,3,L,7]\nw = weights f32[4,3,3,2]\ny = Conv(x, w) {pads=[1, 0, 1, 1], "
                       "strides=[2, 3]}\nreturn y\n",
                       lengths);
    assert_code_agrees("x = input f32[1,3,L]\nw = input f32[4,3,3]\ny = Conv(x, w) {pads=[1, 1], strides=[2]}\n"
                       "return y\n",
                       lengths);
}

static void the_even_kernel_of_same_pads_alike_at_every_length(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[1,2,L]\nw = weights f32[4,2,4]\nv = weights f32[4,4,2]\n"
                       "h = Conv(x, w) {strides=[2], auto_pad=\"SAME_UPPER\"}\n"
                       "y = Conv(h, v) {strides=[1], auto_pad=\"SAME_UPPER\"}\nreturn y, h\n",
                       lengths);
    assert_refused("x = input f32[1,2,L]\nw = weights f32[4,2,5]\ny = Conv(x, w) {strides=[4], "
                   "auto_pad=\"SAME_UPPER\"}\nreturn y\n",
                   "pad explicitly before the node");
}

#define POOL(op, attributes) "x = input f32[1,5,L]\ny = " op "(x) {" attributes "}\nreturn y\n"

static void poolings_stride_over_the_length(void **state)
{
    (void)state;
    static const int64_t pairs[] = {2, 3, 4, 5, 8, 33, 40, 0};
    assert_code_agrees(POOL("MaxPool", "kernel_shape=[2], strides=[2]"), pairs);
    assert_code_agrees(POOL("MaxPool", "kernel_shape=[3], strides=[2], pads=[1, 1]"), lengths);
    assert_code_agrees(POOL("MaxPool", "kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1"), lengths);
    assert_code_agrees(POOL("MaxPool", "kernel_shape=[2], strides=[3], pads=[0, 1], ceil_mode=1"), lengths);
    assert_code_agrees(POOL("AveragePool", "kernel_shape=[3], strides=[2], pads=[1, 1]"), lengths);
    assert_code_agrees(POOL("AveragePool", "kernel_shape=[3], strides=[2], pads=[1, 1], count_include_pad=1"), lengths);
    assert_code_agrees(POOL("AveragePool", "kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1"), lengths);
    assert_code_agrees(
        POOL("AveragePool", "kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1, count_include_pad=1"), lengths);
    assert_code_agrees(POOL("AveragePool", "kernel_shape=[4], strides=[3], pads=[2, 2], auto_pad=\"VALID\""), longer);
    assert_code_agrees("x = input f32[1,2,9,8]\na = AveragePool(x) {kernel_shape=[3, 2], strides=[2, 3], "
                       "pads=[1, 0, 1, 1], ceil_mode=1, count_include_pad=1}\nz = input f32[L]\nu = Neg(z)\n"
                       "return a, u\n",
                       lengths);
}

/* Each layer rounds the previous layer's rounded length. */
static void strides_follow_one_another(void **state)
{
    (void)state;
    assert_code_agrees_everywhere("x = input f32[1,4,L]\nu = weights f32[8,4,3]\nv = weights f32[16,8,3]\n"
                                  "a = Conv(x, u) {strides=[2], pads=[1, 1]}\nr = Relu(a)\n"
                                  "c = Conv(r, v) {strides=[2], pads=[1, 1]}\ng = Gelu(c)\n"
                                  "p = MaxPool(g) {kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1}\n"
                                  "q = AveragePool(p) {kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1}\n"
                                  "m = GlobalAveragePool(q)\nreturn q, m, c\n",
                                  lengths);
}

#define ENCODER                                                                                                        \
    "x = input f32[1,4,L]\nu = weights f32[32,4,3]\na = Conv(x, u) {strides=[2], pads=[1, 1]}\n"                       \
    "r = Gelu(a)\nt = Transpose(r) {perm=[0, 2, 1]}\n"                                                                 \
    "wq = weights f32[32,32]\nwk = weights f32[32,32]\nwv = weights f32[32,32]\n"                                      \
    "q = mdot.Linear(t, wq)\nk = mdot.Linear(t, wk)\nv = mdot.Linear(t, wv)\n"                                         \
    "h = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\ns = Add(h, t)\n"                                          \
    "g = weights f32[32]\nn = LayerNormalization(s, g)\nw1 = weights f32[32,48]\nf = mdot.Linear(n, w1)\n"             \
    "e = Gelu(f)\nw2 = weights f32[48,32]\nd = mdot.Linear(e, w2)\ny = Add(s, d)\n"

static void an_encoder_attends_over_half_the_length(void **state)
{
    (void)state;
    assert_code_agrees(ENCODER "axes = constant i64[1] [1]\np = ReduceMean(y, axes) {keepdims=0}\nreturn p, y\n",
                       lengths);
    assert_code_agrees_everywhere(ENCODER "axes = constant i64[1] [1]\np = ReduceMean(h, axes) {keepdims=0}\n"
                                          "return p, h\n",
                                  lengths);
}

static void positions_and_rows_have_rounded_counts(void **state)
{
    (void)state;
    assert_code_agrees(ENCODER "sh = Shape(y) {start=1, end=2}\nzero = constant i64[1] [0]\none = constant i64[1] [1]\n"
                               "pe = weights f32[64,32]\npl = Slice(pe, zero, sh, zero)\nz = Add(y, pl)\n"
                               "o = Softmax(z) {axis=1}\nc = constant i64[] [1]\ncs = CumSum(o, c)\n"
                               "m = Transpose(o) {perm=[0, 2, 1]}\nmm = MatMul(o, m)\nreturn o, cs, mm\n",
                       lengths);
    assert_code_agrees("x = input f32[L,6]\nr = weights f32[1,32,8]\nw = weights f32[1,32,6]\n"
                       "two = constant i64[1] [2]\nzero = constant i64[1] [0]\nend = constant i64[1] [9999]\n"
                       "s = Slice(x, zero, end, zero, two)\none = constant i64[1] [1]\nu = Unsqueeze(s, one)\n"
                       "y, h = LSTM(u, w, r) {hidden_size=8}\nreturn y, h, s\n",
                       lengths);
}

/* The number of rows before is a quotient plus a multiple of the length. */
static void parts_of_different_forms_are_joined(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,8]\nzero = constant i64[1] [0]\nend = constant i64[1] [9999]\n"
                       "two = constant i64[1] [2]\none = constant i64[1] [1]\na = Slice(x, zero, end, zero, two)\n"
                       "b = Slice(x, one, end, zero, two)\nc = Concat(a, b, x) {axis=0}\nd = Concat(x, a, a) {axis=0}\n"
                       "e = Concat(a, b) {axis=0}\nf = Add(e, x)\nback = constant i64[1] [-1]\n"
                       "least = constant i64[1] [-9999]\ng = Slice(x, back, least, zero, two)\n"
                       "w = weights f32[8,16]\ny = mdot.Linear(d, w)\nreturn y, c, f, g\n",
                       lengths);
}

/* [1, 3, L] as patches of 16 at distances of 8, as exported from torch.unfold: a Gather with computed positions. */
static void unfolding_gathers_patches(void **state)
{
    (void)state;
    assert_code_agrees(
        "least = constant i64[] [15]\n"
        "x = input f32[1,3,L]\ns = Shape(x) {start=2, end=3}\naxes = constant i64[1] [0]\n"
        "n = Squeeze(s, axes)\nlast = Sub(n, least)\nzero = constant i64[] [0]\neight = constant i64[] [8]\n"
        "m = Max(last, zero)\n"
        "from = Range(zero, m, eight)\none = constant i64[1] [1]\nf = Unsqueeze(from, one)\n"
        "taps = constant i64[1,16] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]\n"
        "at = Add(f, taps)\nu = Gather(x, at) {axis=2}\nw = weights f32[16,32]\ny = MatMul(u, w)\n"
        "return y\n",
        longer);
}

static void what_was_halved_is_doubled(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[1,4,L]\nu = weights f32[8,4,3]\na = Conv(x, u) {strides=[2], pads=[1, 1]}\n"
                       "v = weights f32[8,4,4]\nt = ConvTranspose(a, v) {strides=[2], pads=[1, 1]}\n"
                       "scales = constant f32[3] [1, 1, 2]\nr = Resize(a, _, scales) {mode=\"linear\"}\n"
                       "n = Resize(a, _, scales) {mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", "
                       "nearest_mode=\"floor\"}\nsh = Shape(x) {start=2, end=3}\nzero = constant i64[1] [0]\n"
                       "two = constant i64[1] [2]\ncut = Slice(t, zero, sh, two)\nz = Add(cut, x)\nreturn z, r, n, t\n",
                       lengths);
}

/* Resize by 1/k: the length is divided, and every position has the same fraction. */
static void resizes_divide_the_length(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "mode=\"nearest\"",
        "mode=\"nearest\", coordinate_transformation_mode=\"asymmetric\", nearest_mode=\"floor\"",
        "mode=\"nearest\", coordinate_transformation_mode=\"tf_half_pixel_for_nn\", nearest_mode=\"ceil\"",
        "mode=\"linear\"",
        "mode=\"linear\", coordinate_transformation_mode=\"pytorch_half_pixel\"",
        "mode=\"linear\", antialias=1",
        "mode=\"cubic\", cubic_coeff_a=-0.5",
        "mode=\"cubic\", antialias=1",
    };
    char text[512];
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        for (int k = 2; k <= 7; k++) {
            snprintf(text, sizeof text,
                     "x = input f32[2,L,3]\nr = constant f32[0] []\ns = constant f32[3] [1, %.9g, 1]\n"
                     "y = Resize(x, r, s) {%s}\nreturn y\n",
                     (double)(1.0F / (float)k), forms[i]);
            assert_code_agrees(text, longer);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_stride_over_the_length),
        cmocka_unit_test(the_even_kernel_of_same_pads_alike_at_every_length),
        cmocka_unit_test(poolings_stride_over_the_length),
        cmocka_unit_test(strides_follow_one_another),
        cmocka_unit_test(an_encoder_attends_over_half_the_length),
        cmocka_unit_test(positions_and_rows_have_rounded_counts),
        cmocka_unit_test(parts_of_different_forms_are_joined),
        cmocka_unit_test(unfolding_gathers_patches),
        cmocka_unit_test(what_was_halved_is_doubled),
        cmocka_unit_test(resizes_divide_the_length),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
