/* 3x3 convolutions by Winograd's transform, compared with the evaluation: sizes at the limits of blocks, strips and
 * vectors, batches, epilogues that read their own result, and infinite and NaN elements. */
#include "plan/kernel_kind.h"
#include "tests/support/graph_code.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CONV(x, weights, before, attributes, behind)                                                                   \
    "r = input f32[" x "]\n" before "w = weights f32[" weights "]\nc = Conv(x, w) {" attributes "}\n" behind           \
    "return y\n"
#define PADDED "pads=[1, 1, 1, 1]"
#define BY_TWO PADDED ", strides=[2, 2]"

/* Is the graph's only linear one with transformed taps? */
static bool has_taps(const char *notation)
{
    ir_arena *arena = ir_arena_create(0);
    const pl_plan *plan = graph_plan(notation, 8, arena);
    int taps = 0, linears = 0;
    for (int i = 0; i < plan->kernel_count; i++) {
        pl_taps found;
        if (plan->kernels[i].kind != PL_LINEAR) continue;
        const pl_linear *k = &plan->kernels[i].linear;
        linears++;
        bool is_found = pl_taps_of(k, &found);
        pl_weight_use use = !is_found ? PL_MATRIX : found.step == 1 ? PL_TAPS : PL_TAPS_BY_TWO;
        assert_int_equal(plan->buffers[k->weight].use, use);
        taps += is_found;
    }
    ir_arena_destroy(arena);
    assert_int_equal(linears, 1);
    return taps == 1;
}

static void windows_that_move_by_one_or_two_have_transformed_taps(void **state)
{
    (void)state;
    assert_true(has_taps(CONV("L,16,8,6", "16,16,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n")));
    assert_true(has_taps(CONV("L,16,8,6", "32,16,3,3", "x = Relu(r)\n", "pads=[2, 0, 0, 2]", "y = Relu(c)\n")));
    assert_true(has_taps(CONV("L,16,8,16", "16,16,3,3", "x = Relu(r)\n", BY_TWO, "y = Relu(c)\n")));
    assert_true(has_taps(CONV("L,16,15,11", "32,16,3,3", "x = Relu(r)\n", BY_TWO, "y = Relu(c)\n")));
    assert_true(has_taps(CONV("L,512,8,8", "512,512,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n")));
    static const char *const others[] = {
        CONV("L,16,8,16", "16,16,3,3", "x = Relu(r)\n", PADDED ", strides=[1, 2]", "y = Relu(c)\n"),
        CONV("L,16,8,16", "16,16,3,3", "x = Relu(r)\n", PADDED ", strides=[2, 1]", "y = Relu(c)\n"),
        CONV("L,16,24,24", "16,16,3,3", "x = Relu(r)\n", PADDED ", strides=[3, 3]", "y = Relu(c)\n"),
        CONV("L,16,32,32", "16,16,3,3", "x = Relu(r)\n", PADDED ", strides=[4, 4]", "y = Relu(c)\n"),
        CONV("L,16,10,16", "16,16,3,3", "x = Relu(r)\n", BY_TWO, "y = Relu(c)\n"),
        CONV("L,16,12,12", "16,16,3,3", "x = Relu(r)\n", "dilations=[2, 2], " BY_TWO, "y = Relu(c)\n"),
        CONV("L,256,16,16", "144,256,3,3", "x = Relu(r)\n", BY_TWO, "y = Relu(c)\n"),
        CONV("L,16,8,6", "16,16,3,3", "x = Relu(r)\n", "pads=[2, 2, 2, 2], dilations=[2, 2]", "y = Relu(c)\n"),
        CONV("L,16,7,6", "16,16,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
        CONV("L,16,8,5", "16,16,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
        CONV("1,16,L,6", "16,16,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
        CONV("L,12,8,6", "16,12,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
        CONV("L,16,8,6", "12,16,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
        CONV("L,16,8,6", "16,16,3,1", "x = Relu(r)\n", "pads=[1, 0, 1, 0]", "y = Relu(c)\n"),
        CONV("L,16,8,6", "16,16,5,5", "x = Relu(r)\n", "pads=[2, 2, 2, 2]", "y = Relu(c)\n"),
        CONV("L,16,4,2", "16,16,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
        CONV("L,528,8,6", "16,528,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
        CONV("L,256,8,6", "80,256,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
        CONV("L,512,8,8", "528,512,3,3", "x = Relu(r)\n", PADDED, "y = Relu(c)\n"),
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(has_taps(others[i]));
}

/* Tiles with 6 and 4 squares, whole and partial blocks, strips with one and several vectors. */
static void sums_of_every_size_agree(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 3, 5, 0};
    static const char *const cases[][3] = {{"L,16,4,4", "16,16,3,3", PADDED},
                                           {"L,16,8,6", "48,16,3,3", PADDED},
                                           {"L,48,6,10", "80,48,3,3", PADDED},
                                           {"L,32,6,4", "144,32,3,3", "pads=[0, 2, 2, 0]"},
                                           {"L,144,4,4", "16,144,3,3", PADDED},
                                           {"L,128,8,8", "16,128,3,3", BY_TWO},
                                           {"L,16,8,8", "16,16,3,3", BY_TWO},
                                           {"L,48,7,16", "80,48,3,3", BY_TWO},
                                           {"L,80,12,8", "144,80,3,3", "pads=[0, 2, 2, 0], strides=[2, 2]"},
                                           {"2,32,24,26", "16,32,3,3", "pads=[2, 2, 2, 2], strides=[2, 2]"},
                                           {"2,16,12,14", "16,16,3,3", "pads=[2, 2, 2, 2]"}};
    char notation[512];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(notation, sizeof notation,
                 "x = input f32[%s]\nw0 = weights f32[%s]\nquarter = constant f32[] [0.25]\nw = Mul(w0, quarter)\n"
                 "y = Conv(x, w) {%s}\nz = input f32[L]\nu = Neg(z)\n"
                 "return y, u\n",
                 cases[i][0], cases[i][1], cases[i][2]);
        assert_code_agrees_everywhere(notation, lengths);
    }
}

/* A bias, an activation, and a residual added in place by the kernel; groups, where a row's taps are apart. */
static void epilogues_and_groups_agree(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 3, 0};
    assert_code_agrees("x = input f32[L,16,8,6]\nw = weights f32[16,16,3,3]\nb = weights f32[16]\n"
                       "c = Conv(x, w, b) {" PADDED "}\nd = Relu(c)\nv = weights f32[16,16,3,3]\n"
                       "e = Conv(d, v, b) {" PADDED "}\nf = Add(e, d)\ny = Gelu(f)\nreturn y\n",
                       lengths);
    assert_code_agrees("x = input f32[L,32,6,6]\nw = weights f32[32,16,3,3]\nb = weights f32[32]\n"
                       "c = Conv(x, w, b) {group=2, " PADDED "}\ny = Relu(c)\nreturn y\n",
                       lengths);
    assert_code_agrees("x = input f32[L,32,12,8]\nw = weights f32[32,16,3,3]\nb = weights f32[32]\n"
                       "c = Conv(x, w, b) {group=2, " BY_TWO "}\nd = Relu(c)\nv = weights f32[32,32,3,3]\n"
                       "e = Conv(d, v, b) {" PADDED "}\nf = Add(e, d)\ny = Gelu(f)\nreturn y\n",
                       lengths);
}

/* A tap of 0 times infinity is NaN. */
static void taps_of_zero_are_kept(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 0};
    assert_code_agrees("r = input f32[L,16,6,8]\np = Relu(r)\nx = Log(p)\nw0 = weights f32[16,16,3,3]\n"
                       "w1 = Relu(w0)\nw = Sqrt(w1)\ny = Conv(x, w) {" PADDED "}\nreturn y\n",
                       lengths);
    assert_code_agrees("r = input f32[L,16,12,16]\np = Relu(r)\nx = Log(p)\nw0 = weights f32[16,16,3,3]\n"
                       "w1 = Relu(w0)\nw = Sqrt(w1)\ny = Conv(x, w) {" BY_TWO "}\nreturn y\n",
                       lengths);
}

/* log(0) is -inf, roots of negative numbers are NaN, and great numbers overflow in sums over four. Only the windows
 * with such an element give another sum than a finite one. */
static void infinite_and_nan_elements_reach_their_own_windows(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 4, 0};
    static const char *const before[] = {
        "p = Relu(r)\nx = Log(p)\n", "x = Sqrt(r)\n",
        "limit = constant f32[] [0.9]\nmost = constant f32[] [3e38]\nis = Greater(r, limit)\nx = Where(is, most, r)\n"};
    char notation[512];
    for (size_t i = 0; i < 2 * (sizeof before / sizeof *before); i++) {
        snprintf(notation, sizeof notation,
                 "r = input f32[L,16,%s]\n%sw0 = weights f32[16,16,3,3]\nsmall = constant f32[] [0.01]\n"
                 "w1 = Mul(w0, w0)\nw2 = Mul(w1, small)\nw = Add(w2, small)\nc = Conv(x, w) {%s}\n"
                 "y = Identity(c)\nreturn y\n",
                 i % 2 == 0 ? "6,8" : "12,15", before[i / 2], i % 2 == 0 ? PADDED : BY_TWO);
        assert_code_agrees(notation, lengths);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_that_move_by_one_or_two_have_transformed_taps),
        cmocka_unit_test(sums_of_every_size_agree),
        cmocka_unit_test(epilogues_and_groups_agree),
        cmocka_unit_test(taps_of_zero_are_kept),
        cmocka_unit_test(infinite_and_nan_elements_reach_their_own_windows),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
