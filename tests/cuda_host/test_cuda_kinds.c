/* test_cuda_kinds.c — every kernel kind as generated CUDA code in the emulator, with every access checked. The shapes
 * select every form of code, the grids are smaller and larger than the number of tiles, and the lengths lie around
 * the ends of tiles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/support/mask_spellings.h"
#include "tests/support/shard.h"

static const int64_t LENGTHS[] = {17, 1, 16, 33, 15, 64, 0};
static const int64_t FEW_LENGTHS[] = {37, 5, 64, 0};

/* Rows of the linears overlap and begin anywhere in a buffer. With matrix instructions and with plain threads. */
static void windows_of_images_and_batches_are_read_in_place(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,16,L,9]\nw = weights f32[32,16,3,3]\nb = weights f32[32]\n"
                       "c = Conv(x, w, b) {pads=[1, 1, 1, 1]}\nr = Relu(c)\nv = weights f32[8,32,3,3]\n"
                       "y = Conv(r, v) {pads=[2, 2, 2, 2], dilations=[2, 2]}\nreturn y\n",
                       FEW_LENGTHS);
    assert_graph_right("x = input f32[2,3,L,9]\nw = weights f32[16,3,3,3]\nc = Conv(x, w) {pads=[1, 1, 1, 1], "
                       "strides=[1, 2]}\nr = Relu(c)\nv = weights f32[8,16,3,3]\n"
                       "y = Conv(r, v) {pads=[1, 1, 1, 1], strides=[1, 2]}\nreturn y\n",
                       FEW_LENGTHS);
    assert_graph_right("x = input f32[3,5,L]\nw = weights f32[7,5,3]\ny = Conv(x, w) {pads=[1, 1]}\nreturn y\n",
                       FEW_LENGTHS);
}

#define PROJECTED(width, three, qkv)                                                                                   \
    "x = input f32[1,L," #width "]\n"                                                                                  \
    "w = weights f32[" #width "," #three "]\n"                                                                         \
    "b = weights f32[" #three "]\n"                                                                                    \
    "p = mdot.Linear(x, w, b)\n"                                                                                       \
    "sizes = constant i64[3] " qkv "\n"                                                                                \
    "q, k, v = Split(p, sizes) {axis=-1}\n"

static void heads_of_16_share_warps(void **state)
{
    (void)state;
    assert_graph_right("m = input f32[1,1,1,L]\n" PROJECTED(
                           32, 96, "[32, 32, 32]") "a = Attention(q, k, v, m) {q_num_heads=2, kv_num_heads=2}\n"
                                                   "wo = weights f32[32,32]\ny = mdot.Linear(a, wo)\nreturn y\n",
                       LENGTHS);
}

/* With matrix instructions and with plain threads: capped scores, and mask elements that replace the score. */
static void scores_are_capped_and_replaced(void **state)
{
    (void)state;
    assert_graph_right("m = input f32[1,1,1,L]\n" PROJECTED(
                           32, 96, "[32, 32, 32]") "a = Attention(q, k, v, m) {q_num_heads=2, kv_num_heads=2, "
                                                   "softcap=0.5, mdot.replaces=-0.25}\n"
                                                   "wo = weights f32[32,32]\ny = mdot.Linear(a, wo)\nreturn y\n",
                       FEW_LENGTHS);
    assert_graph_right(
        "m = input f32[1,1,1,L]\n" PROJECTED(16, 63, "[21, 21, 21]") "y = Attention(q, k, v, m) {q_num_heads=3, "
                                                                     "kv_num_heads=3, softcap=0.5, "
                                                                     "mdot.replaces=-0.25}\nreturn y\n",
        FEW_LENGTHS);
}

/* Rows whose keys are all masked have the weights of the sums that f32 rounds. */
static void spelled_masks_are_the_sums_in_f32(void **state)
{
    (void)state;
    static const int64_t bucket[] = {64, 0}, lengths[] = {5, 37};
    for (int i = 0; i < MASK_SPELLINGS * MASK_CASES; i++) {
        char text[MASK_TEXT_BYTES];
        if (i % 11 != i / MASK_CASES % 11) continue; /* the emulator is slow */
        write_masked_attention(i / MASK_CASES, i % MASK_CASES, text);
        program p = program_from_notation(text, bucket, CG_FP32, CUDA_HOST_CHECKED);
        for (int l = 0; l < 2; l++)
            assert_program_right(
                &p, &(program_run){.length = lengths[l], .blocks = 2, .seed = 1, .magnitude = 1, .in_f32 = true});
        program_done(&p);
    }
}

/* With matrix instructions, in slices of keys and in whole heads, and with plain threads: roots of negative numbers
 * make some queries, or some mask elements, NaN. */
static void nan_reaches_the_result(void **state)
{
    (void)state;
    assert_graph_right(
        "n = input f32[1,L,1]\n" PROJECTED(
            32, 96, "[32, 32, 32]") "r = Sqrt(n)\nqn = Add(q, r)\n"
                                    "y = Attention(qn, k, v) {q_num_heads=2, kv_num_heads=2}\nreturn y\n",
        FEW_LENGTHS);
    assert_graph_right(
        "n = input f32[1,L,1]\n" PROJECTED(16, 384, "[128, 128, 128]") "r = Sqrt(n)\nqn = Add(q, r)\n"
                                                                       "y = Attention(qn, k, v) {q_num_heads=8, "
                                                                       "kv_num_heads=8}\nreturn y\n",
        FEW_LENGTHS);
    assert_graph_right("n = input f32[1,1,L,1]\nm = input f32[1,1,1,L]\n" PROJECTED(
                           16, 63, "[21, 21, 21]") "r = Sqrt(n)\nmn = Add(m, r)\n"
                                                   "y = Attention(q, k, v, mn) {q_num_heads=3, "
                                                   "kv_num_heads=3}\nreturn y\n",
                       FEW_LENGTHS);
}

static void nan_is_the_extreme_of_positions(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[L,5]\nn = Sqrt(x)\na = ArgMax(n) {axis=1}\n"
                       "b = ArgMax(n) {axis=1, select_last_index=1}\nc = ArgMin(n) {axis=1}\n"
                       "d = ArgMin(n) {axis=1, select_last_index=1}\nreturn a, b, c, d\n",
                       FEW_LENGTHS);
}

/* Narrowed and widened again: normal, denormal and infinite values of f16. */
static void rounding_that_the_model_asks_for_is_kept(void **state)
{
    (void)state;
    assert_graph_right(
        "x = input f32[L,8]\nq = Cast(x) {to=10}\n"
        "f = Cast(q) {to=1}\nd = Sub(x, f)\ns = constant f32[] [4096]\ny = Mul(d, s)\n"
        "t = constant f32[] [9.5367431640625e-07]\nu = Mul(x, t)\nv = Cast(u) {to=10}\nw = Cast(v) {to=1}\n"
        "a = constant f32[] [1048576]\nz = Mul(x, a)\nr = Cast(z) {to=10}\no = Cast(r) {to=1}\n"
        "b = Cast(x) {to=16}\ne = Cast(b) {to=1}\nreturn y, w, o, e\n",
        FEW_LENGTHS);
}

static void heads_of_32_accept_a_mask_for_each_query(void **state)
{
    (void)state;
    assert_graph_right(
        "m = input f32[1,1,L,L]\n" PROJECTED(
            16, 192, "[64, 64, 64]") "y = Attention(q, k, v, m) {q_num_heads=2, kv_num_heads=2}\nreturn y\n",
        FEW_LENGTHS);
}

static void a_warp_takes_a_whole_head_where_there_are_eight(void **state)
{
    (void)state;
    assert_graph_right(
        PROJECTED(16, 384, "[128, 128, 128]") "y = Attention(q, k, v) {q_num_heads=8, kv_num_heads=8}\nreturn y\n",
        FEW_LENGTHS);
}

static void causal_heads_of_64_match(void **state)
{
    (void)state;
    assert_graph_right(
        PROJECTED(16, 192,
                  "[64, 64, 64]") "y = Attention(q, k, v) {q_num_heads=1, kv_num_heads=1, is_causal=1}\nreturn y\n",
        FEW_LENGTHS);
}

static void queries_share_key_heads(void **state)
{
    (void)state;
    assert_graph_right(
        PROJECTED(16, 128, "[64, 32, 32]") "y = Attention(q, k, v) {q_num_heads=4, kv_num_heads=2}\nreturn y\n",
        FEW_LENGTHS);
}

static void odd_heads_are_computed_by_threads(void **state)
{
    (void)state;
    assert_graph_right(
        "m = input f32[1,1,1,L]\n" PROJECTED(
            16, 63, "[21, 21, 21]") "y = Attention(q, k, v, m) {q_num_heads=3, kv_num_heads=3}\nreturn y\n",
        FEW_LENGTHS);
}

static void batches_of_sequences_are_distributed_by_rows(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[2,L,48]\nsizes = constant i64[3] [16, 16, 16]\n"
                       "q, k, v = Split(x, sizes) {axis=-1}\n"
                       "y = Attention(q, k, v) {q_num_heads=1, kv_num_heads=1}\nreturn y\n",
                       FEW_LENGTHS);
}

static void three_tokens_attend_within_a_unit(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,3,32]\nshape = constant i64[3] [-1, 3, 32]\nr = Reshape(x, shape)\n"
                       "w = weights f32[32,96]\np = mdot.Linear(r, w)\nsizes = constant i64[3] [32, 32, 32]\n"
                       "q, k, v = Split(p, sizes) {axis=-1}\n"
                       "a = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                       "axes = constant i64[1] [1]\nm = ReduceMean(a, axes) {keepdims=0}\n"
                       "w2 = weights f32[32,32]\ny = mdot.Linear(m, w2)\nreturn y\n",
                       LENGTHS);
}

static void linears_of_odd_sizes_match(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,5]\nw = weights f32[5,17]\nb = weights f32[17]\n"
                       "h = mdot.Linear(x, w, b)\ng = Gelu(h)\nw2 = weights f32[17,3]\ny = mdot.Linear(g, w2)\n"
                       "return y\n",
                       LENGTHS);
}

static void many_rows_per_unit_are_chunked(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,7,24]\nw = weights f32[24,32]\nh = mdot.Linear(x, w)\ns = Sigmoid(h)\n"
                       "w2 = weights f32[32,8]\ny = mdot.Linear(s, w2)\nreturn y\n",
                       FEW_LENGTHS);
}

/* Attention over several sequences is distributed by rows, so the result passes through scratch memory. */
static void rows_from_scratch_memory_are_staged(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[2,L,96]\nsizes = constant i64[3] [32, 32, 32]\n"
                       "q, k, v = Split(x, sizes) {axis=-1}\n"
                       "a = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                       "w = weights f32[32,24]\nb = weights f32[24]\ny = mdot.Linear(a, w, b)\nreturn y\n",
                       FEW_LENGTHS);
}

static void blocks_without_a_length_match(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[40,32]\nw = weights f32[32,48]\nb = weights f32[48]\nh = mdot.Linear(x, w, b)\n"
                       "g = Gelu(h)\nw2 = weights f32[48,2]\ny = mdot.Linear(g, w2)\nreturn y\n",
                       NULL);
    assert_graph_right("x = input f32[3,32]\nw = weights f32[32,300]\nb = weights f32[300]\nh = mdot.Linear(x, w, b)\n"
                       "g = Gelu(h)\nw2 = weights f32[300,1]\ny = mdot.Linear(g, w2)\nreturn y\n",
                       NULL);
}

static void norms_of_rows_match(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,40]\ng = weights f32[40]\nb = weights f32[40]\n"
                       "n = LayerNormalization(x, g, b) {axis=-1}\nm = RMSNormalization(n, g) {axis=-1}\n"
                       "s = Softmax(m) {axis=-1}\nt = LogSoftmax(m) {axis=-1}\nreturn n, s, t\n",
                       LENGTHS);
}

static void reductions_over_the_length_match(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,8]\naxes = constant i64[1] [1]\nt = Tanh(x)\n"
                       "a = ReduceSum(t, axes) {keepdims=0}\nb = ReduceMax(x, axes) {keepdims=0}\n"
                       "c = ReduceMin(x, axes) {keepdims=0}\nd = ReduceProd(x, axes) {keepdims=0}\n"
                       "e = ReduceMean(x, axes) {keepdims=0}\nf = ArgMax(x) {axis=1, keepdims=0}\n"
                       "g = ArgMin(x) {axis=1, keepdims=0, select_last_index=1}\nreturn a, b, c, d, e, f, g\n",
                       LENGTHS);
}

static void neighbouring_rows_are_read_after_a_barrier(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,16]\nw = weights f32[16,16]\nh = mdot.Linear(x, w)\n"
                       "zero = constant i64[1] [0]\none = constant i64[1] [1]\nlast = constant i64[1] [-1]\n"
                       "a = Slice(h, zero, one, one)\nb = Slice(h, zero, last, one)\ns = Concat(a, b) {axis=1}\n"
                       "y = Add(h, s)\nreturn y\n",
                       LENGTHS);
}

static void data_dependent_reads_match(void **state)
{
    (void)state;
    assert_graph_right("i = input i64[1,L]\nj = input i32[1,L]\nm = input bool[1,L]\ntable = weights f32[4,16]\n"
                       "a = Gather(table, i)\nb = Gather(table, j)\naxes = constant i64[1] [2]\n"
                       "u = Unsqueeze(m, axes)\nc = Where(u, a, b)\nk = Mul(i, i)\nn = Cast(j) {to=7}\no = Sub(k, n)\n"
                       "two = constant i64[] [2]\np = Mod(o, two)\nq = Div(o, two)\nr = Less(i, n)\ns = And(r, m)\n"
                       "t = Not(s)\nv = Max(o, n)\nz = Cast(v) {to=1}\nreturn c, p, q, t, v, z\n",
                       LENGTHS);
}

static void pointwise_functions_match(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,4]\ny = input f32[1,L,4]\na = Erf(x)\nb = Exp(y)\nc = Abs(x)\nd = Sqrt(c)\n"
                       "e = Sin(x)\nf = Cos(y)\ng = Floor(b)\nh = Ceil(b)\ni = Round(b)\nj = Sign(x)\nk = Neg(y)\n"
                       "l = Pow(c, y)\nm = Min(x, y)\nn = Max(x, k)\no = Add(a, b)\np = Mul(d, e)\nq = Div(f, b)\n"
                       "r = Log(b)\ns = Mod(x, b) {fmod=1}\nt = Gelu(x) {approximate=\"tanh\"}\nu = IsNaN(q)\n"
                       "return o, p, q, g, h, i, j, l, m, n, r, s, t, u\n",
                       FEW_LENGTHS);
}

/* Angles near 2^39 and 2^123 radians: below and above the border 2^40. Factors are powers of two, because a rounded
 * product would be another angle. */
static void sine_and_cosine_of_huge_angles_match(void **state)
{
    (void)state;
    assert_graph_right(
        "x = input f32[1,L,4]\nnear = constant f32[] [549755813888.0]\n"
        "far = constant f32[] [10633823966279326983230456482242756608.0]\na = Mul(x, near)\nb = Mul(x, far)\n"
        "c = Sin(a)\nd = Cos(a)\ne = Sin(b)\nf = Cos(b)\nreturn c, d, e, f\n",
        FEW_LENGTHS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_images_and_batches_are_read_in_place),
        cmocka_unit_test(heads_of_16_share_warps),
        cmocka_unit_test(scores_are_capped_and_replaced),
        cmocka_unit_test(spelled_masks_are_the_sums_in_f32),
        cmocka_unit_test(nan_reaches_the_result),
        cmocka_unit_test(nan_is_the_extreme_of_positions),
        cmocka_unit_test(rounding_that_the_model_asks_for_is_kept),
        cmocka_unit_test(heads_of_32_accept_a_mask_for_each_query),
        cmocka_unit_test(a_warp_takes_a_whole_head_where_there_are_eight),
        cmocka_unit_test(causal_heads_of_64_match),
        cmocka_unit_test(queries_share_key_heads),
        cmocka_unit_test(odd_heads_are_computed_by_threads),
        cmocka_unit_test(batches_of_sequences_are_distributed_by_rows),
        cmocka_unit_test(three_tokens_attend_within_a_unit),
        cmocka_unit_test(linears_of_odd_sizes_match),
        cmocka_unit_test(many_rows_per_unit_are_chunked),
        cmocka_unit_test(rows_from_scratch_memory_are_staged),
        cmocka_unit_test(blocks_without_a_length_match),
        cmocka_unit_test(norms_of_rows_match),
        cmocka_unit_test(reductions_over_the_length_match),
        cmocka_unit_test(neighbouring_rows_are_read_after_a_barrier),
        cmocka_unit_test(data_dependent_reads_match),
        cmocka_unit_test(pointwise_functions_match),
        cmocka_unit_test(sine_and_cosine_of_huge_angles_match),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return shard_run_group_tests(tests, NULL, NULL);
}
