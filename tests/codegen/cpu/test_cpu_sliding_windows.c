/* test_cpu_sliding_windows.c — convolutions and poolings from ONNX operators to code, compared with the evaluation: the
 * resulting kernels, and the values at every length. */
#include "tests/support/graph_code.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t lengths[] = {1, 2, 9, 40, 0};

/* An image with the channels last, before and behind. */
#define ROWS(x, weights, attributes)                                                                                   \
    "r = input f32[" x "]\nx = Transpose(r) {perm=[0, 3, 1, 2]}\nw = weights f32[" weights "]\n"                       \
    "c = Conv(x, w) {" attributes "}\ny = Transpose(c) {perm=[0, 2, 3, 1]}\nreturn y\n"

/* x [B, 6, L], and weights with the given filters, channels and taps. */
#define CONV(batch, weights, attributes)                                                                               \
    "x = input f32[" batch ",6,L]\nw = weights f32" weights "\nb = weights f32[12]\n"                                  \
    "y = Conv(x, w, b) {" attributes "}\nreturn y\n"
/* The same between transposes, as exporters write it. */
#define BETWEEN(weights, attributes)                                                                                   \
    "r = input f32[1,L,6]\nx = Transpose(r) {perm=[0, 2, 1]}\nw = weights f32" weights "\nb = weights f32[12]\n"       \
    "c = Conv(x, w, b) {" attributes "}\na = Relu(c)\ny = Transpose(a) {perm=[0, 2, 1]}\nreturn y\n"

#define IMAGES(x, weights, attributes)                                                                                 \
    "x = input f32[" x "]\nw = weights f32[" weights "]\ny = Conv(x, w) {" attributes "}\nreturn y\n"

static void a_pointwise_convolution_becomes_a_linear(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(CONV("1", "[12,6,1]", "pads=[0, 0]"), lengths);
    assert_kernels(BETWEEN("[12,6,1]", "kernel_shape=[1]"), "linear");
}

static void contiguous_windows_are_read_in_place(void **state)
{
    (void)state;
    assert_code_agrees(CONV("1", "[12,6,3]", "pads=[1, 1]"), lengths);
    assert_code_agrees(CONV("1", "[12,6,5]", "auto_pad=\"SAME_LOWER\""), lengths);
    assert_code_agrees_everywhere(BETWEEN("[12,6,3]", "pads=[2, 0]"), lengths); /* causal */
    assert_kernels(BETWEEN("[12,6,3]", "pads=[1, 1]"), "linear nest2");
}

/* One linear each, between the padding and the channels' return. The padding is a copy of the inside, with a nest for
 * the two borders of each axis if they are equal, and otherwise one nest. */
static void windows_of_images_batches_and_dilations_are_read_in_place(void **state)
{
    (void)state;
    assert_kernels(BETWEEN("[12,6,3]", "pads=[4, 0], dilations=[2]"), "linear nest");
    assert_kernels(BETWEEN("[12,6,3]", "pads=[1, 1]"), "linear nest2");
    assert_kernels(ROWS("1,L,16,6", "12,6,3,3", "pads=[1, 1, 1, 1]"), "linear nest3");
    assert_kernels(ROWS("1,L,16,6", "12,6,2,3", "pads=[2, 1, 2, 1], dilations=[3, 1]"), "linear nest3");
    assert_kernels(ROWS("1,16,L,6", "12,6,2,2", "pads=[2, 1, 0, 1], dilations=[2, 2]"), "linear nest");
    assert_kernels(ROWS("L,12,16,6", "12,6,1,5", "pads=[0, 2, 0, 2]"), "linear nest2");
    assert_kernels(ROWS("1,L,17,6", "12,6,3,3", "pads=[1, 1, 1, 1], strides=[1, 2]"), "linear nest3");
    assert_kernels(ROWS("1,L,3,4", "256,4,3,3", "pads=[1, 1, 1, 1]"), "linear nest3");
    /* overlapping windows are not gathered from planes, but others are */
    assert_kernels(ROWS("1,9,L,6", "12,6,3,1", "pads=[0, 0, 0, 0]"), "linear");
    assert_kernels(ROWS("1,9,L,6", "12,6,1,1", "strides=[2, 1]"), "linear");
    /* groups, few filters, and convolutions without transposes around them are reductions in place */
    assert_kernels(IMAGES("1,6,L,16", "12,6,3,3", "pads=[1, 1, 1, 1]"), "nest4");
    assert_kernels(IMAGES("1,40,L,16", "40,40,5,5", "pads=[2, 2, 2, 2]"), "nest4");
    assert_kernels(IMAGES("1,40,L,16", "40,40,3,3", "pads=[1, 1, 1, 1]"), "linear nest4");
    assert_kernels(IMAGES("1,40,L,16", "6,40,3,3", "pads=[1, 1, 1, 1]"), "nest4");
    assert_kernels(IMAGES("1,12,L,8", "12,6,3,3", "group=2, pads=[1, 1, 1, 1]"), "nest4");
    assert_kernels(IMAGES("1,40,16,16", "40,40,1,1", "pads=[0, 0, 0, 0]"), "nest");
    /* with strides or rows that leave vectors half empty, only short sums are */
    assert_kernels(IMAGES("1,40,L,32", "40,40,3,3", "pads=[1, 1, 1, 1], strides=[2, 2]"), "linear nest4");
    assert_kernels(IMAGES("1,6,L,32", "40,6,3,3", "pads=[1, 1, 1, 1], strides=[2, 2]"), "nest5");
    assert_kernels(IMAGES("1,40,L,20", "40,40,5,5", "pads=[2, 2, 2, 2]"), "linear nest4");
    assert_kernels(IMAGES("1,2,L,20", "40,2,5,5", "pads=[2, 2, 2, 2]"), "nest4");
    assert_kernels(IMAGES("1,3,L,64", "40,3,7,7", "pads=[3, 3, 3, 3], strides=[2, 2]"), "nest5");
    assert_kernels(IMAGES("1,40,L,64", "40,40,1,1", "strides=[2, 2]"), "nest");
    /* by channel, a copy with the channels last does not pay for one convolution */
    assert_kernels(IMAGES("1,40,L,16", "40,1,3,3", "pads=[1, 1, 1, 1], group=40"), "nest4");
    assert_kernels(ROWS("1,L,16,40", "40,1,3,3", "pads=[1, 1, 1, 1], group=40"), "nest4");
    /* in full precision and with rounded factors */
    assert_code_agrees_everywhere(IMAGES("1,6,L,16", "12,6,3,3", "pads=[1, 1, 1, 1]"), lengths);
    assert_code_agrees_everywhere(CONV("3", "[12,6,3]", "pads=[1, 1]"), lengths);
}

/* Runs with 32, 33, 36, 48 and 144 adjacent elements are parts of the sum over k. A tile goes through all runs of
 * narrow strips with its sums. Odd runs of 16-bit elements are copied first, and so are short ones of wide strips.
 * Padding makes 16-bit elements where factors are rounded. */
static void runs_of_every_length_are_summed(void **state)
{
    (void)state;
    static const int64_t few[] = {1, 18, 0};
    static const char *const cases[][3] = {
        {"1,11,L,9", "12,11,3,3", "pads=[1, 1, 1, 1]"},
        {"2,12,L,5", "70,12,3,3", "pads=[1, 1, 1, 1], strides=[1, 2]"},
        {"1,43,7,L", "4,43,1,3", "pads=[0, 1, 0, 1]"},
        {"1,48,L,9", "7,48,3,3", "pads=[2, 1, 2, 1], dilations=[2, 1]"},
        {"2,2,L,9", "2,2,5,5", "pads=[2, 2, 2, 2]"},
        {"L,32,6,5", "33,32,2,2", "pads=[2, 2, 2, 2], dilations=[2, 2]"},
        {"1,24,L,6", "5,24,3,2", "pads=[1, 1, 1, 1]"},
        {"1,32,L,6", "9,32,3,1", "pads=[1, 0, 1, 0], strides=[1, 3]"},
    };
    char notation[512];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        snprintf(notation, sizeof notation,
                 "x = input f32[%s]\nw = weights f32[%s]\nc = Conv(x, w) {%s}\ny = Relu(c)\nreturn y\n", cases[c][0],
                 cases[c][1], cases[c][2]);
        assert_code_agrees_everywhere(notation, few);
    }
}

/* Every combination: one or several images, the symbolic dimension, padding before and after, and dilation. */
static void windows_of_every_geometry_are_found(void **state)
{
    (void)state;
    static const int64_t few[] = {1, 3, 18, 0};
    static const char *const shapes[] = {"1,5,L,20", "1,5,20,L", "2,5,20,L", "L,5,20,21"};
    static const char *const attributes[] = {"pads=[1, 1, 1, 1]",
                                             "pads=[0, 0, 2, 2]",
                                             "pads=[2, 2, 0, 0]",
                                             "pads=[1, 0, 1, 2]",
                                             "pads=[2, 2, 2, 2], dilations=[2, 2]",
                                             "pads=[2, 1, 1, 0], dilations=[2, 1]"};
    char notation[512];
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        for (size_t a = 0; a < sizeof attributes / sizeof *attributes; a++) {
            snprintf(notation, sizeof notation,
                     "x = input f32[%s]\nw = weights f32[7,5,3,3]\nb = weights f32[7]\ny = Conv(x, w, b) {%s}\n"
                     "r = Relu(y)\nreturn r\n",
                     shapes[s], attributes[a]);
            bool may_be_empty = strstr(attributes[a], "pads=[1, 0, 1, 2]") != NULL ||
                                strstr(attributes[a], "pads=[2, 1, 1, 0]") != NULL;
            assert_code_agrees(notation, may_be_empty ? few + 1 : few);
        }
    }
    assert_code_agrees(CONV("3", "[12,6,5]", "pads=[8, 0], dilations=[2]"), lengths);
    assert_code_agrees(CONV("L", "[12,6,1]", "pads=[0, 0]"), lengths);
}

static void strides_and_wide_padding_are_read_in_place(void **state)
{
    (void)state;
    static const int64_t even[] = {2, 8, 34, 0};
    assert_code_agrees(CONV("1", "[12,6,3]", "pads=[5, 5], dilations=[2]"), lengths);
    assert_code_agrees(CONV("3", "[12,6,3]", "pads=[0, 3]"), lengths);
    assert_code_agrees("x = input f32[1,6,40]\nw = weights f32[12,6,3]\ny = Conv(x, w) {strides=[3], pads=[1, 0]}\n"
                       "z = input f32[L]\nu = Neg(z)\nreturn y, u\n",
                       even);
}

static void groups_are_convolved_separately(void **state)
{
    (void)state;
    assert_code_agrees(CONV("1", "[12,1,3]", "group=6, pads=[1, 1]"), lengths);
    assert_code_agrees(CONV("2", "[12,2,3]", "group=3, pads=[1, 1]"), lengths);
    assert_code_agrees(BETWEEN("[12,1,7]", "group=6, pads=[3, 3]"), lengths);
    assert_kernels("r = input f32[1,L,6]\nx = Transpose(r) {perm=[0, 2, 1]}\nw = weights f32[6,1,7]\n"
                   "c = Conv(x, w) {group=6, pads=[3, 3]}\na = Relu(c)\ny = Transpose(a) {perm=[0, 2, 1]}\nreturn y\n",
                   "nest3");
}

/* Taps of rows side by side are unrolled: every step between windows, with few and many taps, and several filters. */
static void overlapping_windows_of_a_channel_are_summed(void **state)
{
    (void)state;
    static const int64_t few[] = {1, 3, 0};
    static const char *const cases[][3] = {
        {"L,3,12,16", "3,1,3,3", "pads=[1, 1, 1, 1], group=3"},
        {"L,3,12,35", "6,1,5,3", "pads=[2, 1, 2, 1], group=3"},
        {"L,2,24,64", "2,1,7,7", "pads=[3, 3, 3, 3], group=2, strides=[2, 2]"},
        {"L,2,24,33", "2,1,4,2", "pads=[1, 0, 2, 1], group=2, strides=[3, 1]"},
        {"L,2,24,32", "2,1,17,1", "pads=[8, 0, 8, 0], group=2"},
        {"L,2,24,32", "2,1,3,3", "pads=[2, 2, 2, 2], group=2, dilations=[2, 2]"},
        {"1,4,L,20", "4,1,3,5", "pads=[1, 2, 1, 2], group=4"},
        {"1,4,20,L", "4,1,5,3", "pads=[2, 1, 2, 1], group=4"},
    };
    char notation[512];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        snprintf(notation, sizeof notation, "x = input f32[%s]\nw = weights f32[%s]\ny = Conv(x, w) {%s}\nreturn y\n",
                 cases[c][0], cases[c][1], cases[c][2]);
        assert_code_agrees_everywhere(notation, few);
    }
}

/* Before 16 filters, windows that move by two read rows that are copied for each tap. */
static void rows_are_copied_for_taps_of_windows_that_move_by_two(void **state)
{
    (void)state;
    static const int64_t few[] = {3, 18, 0};
    static const char *const shapes[] = {"2,3,L,41", "1,2,9,L"};
    static const char *const attributes[] = {
        "3,3]\ny = Conv(x, w) {pads=[1, 1, 1, 1], strides=[2, 2]",
        "3,3]\ny = Conv(x, w) {pads=[0, 0, 1, 1], strides=[1, 2]",
        "2,5]\ny = Conv(x, w) {pads=[0, 2, 0, 2], strides=[2, 2]",
        "3,2]\ny = Conv(x, w) {pads=[2, 2, 1, 0], strides=[3, 2], dilations=[1, 2]"};
    char notation[512];
    for (size_t c = 0; c < sizeof shapes / sizeof *shapes * (sizeof attributes / sizeof *attributes); c++) {
        const char *shape = shapes[c % 2];
        snprintf(notation, sizeof notation, "x = input f32[%s]\nw = weights f32[18,%c,%s}\nr = Relu(y)\nreturn r\n",
                 shape, shape[2], attributes[c / 2]);
        assert_code_agrees_everywhere(notation, few);
    }
}

static void images_have_windows_in_two_dimensions(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[2,3,L,7]\nw = weights f32[4,3,3,2]\nb = weights f32[4]\n"
                       "y = Conv(x, w, b) {pads=[1, 0, 1, 1], strides=[1, 2], dilations=[1, 2]}\nreturn y\n",
                       lengths);
    assert_code_agrees("x = input f32[1,4,L,7]\nw = weights f32[8,1,3,3]\n"
                       "y = Conv(x, w) {pads=[1, 1, 1, 1], group=4}\nreturn y\n",
                       lengths);
}

static void weights_may_be_inputs(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[1,3,L]\nw = input f32[4,3,3]\ny = Conv(x, w) {pads=[1, 1]}\nreturn y\n", lengths);
    assert_code_agrees("x = input f64[1,3,L]\nw = input f64[3,1,3]\ny = Conv(x, w) {pads=[1, 1], group=3}\nreturn y\n",
                       lengths);
}

static void poolings_take_the_greatest_or_the_mean(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[1,5,L]\na = MaxPool(x) {kernel_shape=[3], pads=[1, 1]}\n"
                       "b = AveragePool(x) {kernel_shape=[5], pads=[2, 2]}\n"
                       "c = AveragePool(x) {kernel_shape=[3], pads=[0, 2], count_include_pad=1}\n"
                       "d = GlobalMaxPool(x)\ne = GlobalAveragePool(x)\nreturn a, b, c, d, e\n",
                       lengths);
    assert_code_agrees("x = input f32[1,2,9,8]\na = MaxPool(x) {kernel_shape=[2, 3], strides=[2, 2], ceil_mode=1}\n"
                       "b = AveragePool(x) {kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 0], ceil_mode=1}\n"
                       "z = input f32[L]\nu = Neg(z)\nreturn a, b, u\n",
                       lengths);
}

/* A negative number's root is NaN. */
static void the_greatest_of_a_window_with_nan_is_nan(void **state)
{
    (void)state;
    assert_code_agrees("r = input f32[1,5,L]\nx = Sqrt(r)\na = MaxPool(x) {kernel_shape=[3], pads=[1, 1]}\n"
                       "d = GlobalMaxPool(x)\nreturn a, d\n",
                       lengths);
}

#define TRANSPOSED(x, weights, attributes)                                                                             \
    "r = input f32" x "\ne = Relu(r)\nx = Log(e)\nw = weights f32" weights "\n"                                        \
    "y = ConvTranspose(x, w) {" attributes "}\nz = input f32[L]\nu = Neg(z)\nreturn y, u\n"

/* log(0) is minus infinity: the product with a missing tap would be NaN. */
static void transposed_convolutions_of_infinities_have_only_taps_of_the_node(void **state)
{
    (void)state;
    assert_code_agrees(TRANSPOSED("[1,3,L]", "[3,4,4]", "strides=[2], pads=[1, 1]"), lengths);
    assert_code_agrees(TRANSPOSED("[1,3,L]", "[3,4,3]", "strides=[2], output_padding=[1]"), lengths);
    assert_code_agrees(TRANSPOSED("[1,3,L]", "[3,2,2]", "strides=[3], output_padding=[2]"), lengths);
    assert_code_agrees(TRANSPOSED("[1,3,L]", "[3,4,5]", "strides=[4], dilations=[2]"), lengths);
    assert_code_agrees(TRANSPOSED("[1,3,L]", "[3,4,3]", "strides=[2], dilations=[3]"), lengths);
    assert_code_agrees(TRANSPOSED("[2,4,L,5]", "[4,2,3,3]", "strides=[2, 2], group=2, pads=[1, 1, 1, 1]"), lengths);
    assert_code_agrees(TRANSPOSED("[1,2,L,5]", "[2,3,3,4]", "strides=[2, 3], dilations=[1, 2]"), lengths);
}

static void positions_of_maxima_are_refused(void **state)
{
    (void)state;
    assert_refused("x = input f32[1,5,L]\na, i = MaxPool(x) {kernel_shape=[3], pads=[1, 1]}\nreturn i\n", "MaxPool");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pointwise_convolution_becomes_a_linear),
        cmocka_unit_test(contiguous_windows_are_read_in_place),
        cmocka_unit_test(windows_of_images_batches_and_dilations_are_read_in_place),
        cmocka_unit_test(windows_of_every_geometry_are_found),
        cmocka_unit_test(runs_of_every_length_are_summed),
        cmocka_unit_test(strides_and_wide_padding_are_read_in_place),
        cmocka_unit_test(groups_are_convolved_separately),
        cmocka_unit_test(overlapping_windows_of_a_channel_are_summed),
        cmocka_unit_test(rows_are_copied_for_taps_of_windows_that_move_by_two),
        cmocka_unit_test(images_have_windows_in_two_dimensions),
        cmocka_unit_test(weights_may_be_inputs),
        cmocka_unit_test(poolings_take_the_greatest_or_the_mean),
        cmocka_unit_test(the_greatest_of_a_window_with_nan_is_nan),
        cmocka_unit_test(transposed_convolutions_of_infinities_have_only_taps_of_the_node),
        cmocka_unit_test(positions_of_maxima_are_refused),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
