/* test_cuda_rounded_lengths.c — graphs whose tensors have rounded quotients of the length, as generated CUDA code in
 * the emulator, compared with the reference evaluation at lengths of every remainder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/cuda_host/program_fixture.h"

static const int64_t lengths[] = {17, 1, 16, 34, 15, 64, 0};

static void convolutions_and_poolings_stride_over_the_length(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,8,L]\nw = weights f32[32,8,3]\nc = Conv(x, w) {strides=[2], pads=[1, 1]}\n"
                       "r = Relu(c)\np = MaxPool(r) {kernel_shape=[3], strides=[2], pads=[1, 1], ceil_mode=1}\n"
                       "q = AveragePool(r) {kernel_shape=[3], strides=[3], pads=[1, 1]}\nreturn c, p, q\n",
                       lengths);
}

static void an_encoder_attends_over_half_the_length(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,4,L]\nu = weights f32[32,4,3]\na = Conv(x, u) {strides=[2], pads=[1, 1]}\n"
                       "t = Transpose(a) {perm=[0, 2, 1]}\nw = weights f32[32,96]\nb = weights f32[96]\n"
                       "p = mdot.Linear(t, w, b)\nsizes = constant i64[3] [32, 32, 32]\n"
                       "q, k, v = Split(p, sizes) {axis=-1}\n"
                       "h = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\nwo = weights f32[32,32]\n"
                       "o = mdot.Linear(h, wo)\ns = Add(o, t)\naxes = constant i64[1] [1]\n"
                       "m = ReduceMax(s, axes) {keepdims=0}\nreturn m, s\n",
                       lengths);
}

static void halves_of_the_length_are_joined(void **state)
{
    (void)state;
    assert_graph_right(
        "x = input f32[L,16]\nzero = constant i64[1] [0]\nend = constant i64[1] [9999]\n"
        "two = constant i64[1] [2]\na = Slice(x, zero, end, zero, two)\nc = Concat(x, a, a) {axis=0}\n"
        "w = weights f32[16,32]\ny = mdot.Linear(c, w)\ns = ReduceSum(a, zero) {keepdims=0}\nreturn y, s\n",
        lengths);
}

static void what_was_halved_is_doubled(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,4,L]\nu = weights f32[8,4,3]\na = Conv(x, u) {strides=[2], pads=[1, 1]}\n"
                       "v = weights f32[8,4,4]\nt = ConvTranspose(a, v) {strides=[2], pads=[1, 1]}\n"
                       "sh = Shape(x) {start=2, end=3}\nzero = constant i64[1] [0]\ntwo = constant i64[1] [2]\n"
                       "cut = Slice(t, zero, sh, two)\nz = Add(cut, x)\nreturn z, t\n",
                       lengths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_and_poolings_stride_over_the_length),
        cmocka_unit_test(an_encoder_attends_over_half_the_length),
        cmocka_unit_test(halves_of_the_length_are_joined),
        cmocka_unit_test(what_was_halved_is_doubled),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
