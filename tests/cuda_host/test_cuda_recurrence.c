/* test_cuda_recurrence.c — LSTM, GRU, RNN and loops as generated CUDA code in the emulator, with every access checked.
 * Each synchronisation in a recurrence is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/shard.h"

static const int64_t LENGTHS[] = {17, 1, 64, 0};
static const int64_t FEW_LENGTHS[] = {9, 2, 0};

/* X [S, B, 5], hidden 20: a warp has part of the columns. */
#define LSTM(steps, batch)                                                                                             \
    "x = input f32[" steps "," batch ",5]\nw = weights f32[1,80,5]\nr = weights f32[1,80,20]\n"                        \
    "b = weights f32[1,160]\n"
#define GRU(steps, batch)                                                                                              \
    "x = input f32[" steps "," batch ",5]\nw = weights f32[1,60,5]\nr = weights f32[1,60,20]\n"                        \
    "b = weights f32[1,120]\n"

static void an_lstm_runs_over_the_length(void **state)
{
    (void)state;
    assert_graph_right(LSTM("L", "1") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nreturn y, h, c\n", LENGTHS);
    assert_graph_right(LSTM("L", "1") "y, h, c = LSTM(x, w, r) {hidden_size=20, direction=\"reverse\"}\n"
                                      "z = Tanh(y)\nreturn z\n",
                       FEW_LENGTHS);
}

/* As a predictor: the last state through a linear, and both directions. */
static void a_head_reads_the_last_states(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[L,1,6]\nw = weights f32[2,64,6]\nr = weights f32[2,64,16]\n"
                       "b = weights f32[2,128]\n"
                       "y, h, c = LSTM(x, w, r, b) {hidden_size=16, direction=\"bidirectional\"}\n"
                       "shape = constant i64[2] [1, 32]\nz = Reshape(h, shape)\nv = weights f32[32,1]\n"
                       "o = mdot.Linear(z, v)\nreturn o\n",
                       LENGTHS);
    assert_graph_right("x = input f32[L,1,6]\nw = weights f32[1,32,6]\nr = weights f32[1,32,32]\n"
                       "y, h = RNN(x, w, r) {hidden_size=32}\nshape = constant i64[2] [-1, 32]\n"
                       "z = Reshape(y, shape)\nv = weights f32[32,16]\no = mdot.Linear(z, v)\nreturn o\n",
                       FEW_LENGTHS);
}

static void a_gru_resets_before_or_after_its_matmul(void **state)
{
    (void)state;
    assert_graph_right(GRU("L", "1") "y, h = GRU(x, w, r, b) {hidden_size=20, linear_before_reset=1}\nreturn y, h\n",
                       FEW_LENGTHS);
    assert_graph_right(GRU("L", "3") "y, h = GRU(x, w, r, b) {hidden_size=20}\nreturn y, h\n", FEW_LENGTHS);
}

/* Batches of 8 items and more, or of symbolic length, take their matmuls row by row. */
static void batches_of_any_size_match(void **state)
{
    (void)state;
    assert_graph_right(LSTM("L", "16") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nreturn y, h, c\n", FEW_LENGTHS);
    assert_graph_right(LSTM("3", "L") "y, h, c = LSTM(x, w, r, b) {hidden_size=20}\nreturn y, h, c\n", LENGTHS);
    assert_graph_right(LSTM("6", "L") "n = input i32[L]\n"
                                      "y, h, c = LSTM(x, w, r, b, n) {hidden_size=20}\nreturn y, h, c\n",
                       FEW_LENGTHS);
    assert_graph_right(GRU("4", "2") "y, h = GRU(x, w, r, b) {hidden_size=20}\nreturn y, h\n", NULL);
}

static void gates_and_operands_match(void **state)
{
    (void)state;
    assert_graph_right(LSTM("L", "1") "p = weights f32[1,60]\n"
                                      "y, h, c = LSTM(x, w, r, b, _, _, _, p) {hidden_size=20, clip=0.25}\n"
                                      "return y, c\n",
                       FEW_LENGTHS);
    assert_graph_right(LSTM("L", "1") "y, h, c = LSTM(x, w, r, b) {hidden_size=20, input_forget=1, "
                                      "activations=[\"HardSigmoid\", \"ScaledTanh\", \"Softsign\"], "
                                      "activation_alpha=[0.3, 0.9], activation_beta=[0.4, 0.8]}\nreturn y, c\n",
                       FEW_LENGTHS);
    assert_graph_right("x = input f32[L,2,5]\nw = input f32[1,60,5]\nr = input f32[1,60,20]\nb = input f32[1,120]\n"
                       "h0 = input f32[1,2,20]\ny, h = GRU(x, w, r, b, _, h0) {hidden_size=20}\nreturn y, h\n",
                       FEW_LENGTHS);
}

#define STEPS "shape = Shape(x) {start=0, end=1}\nn = Squeeze(shape)\n"

static void loops_run_kernels_of_every_kind(void **state)
{
    (void)state;
    assert_graph_right(
        "x = input f32[L,2,5]\nh0 = input f32[2,20]\nw = weights f32[5,20]\nu = weights f32[20,20]\n" STEPS
        "g = weights f32[20]\ni, h = mdot.LoopBegin(h0)\nxt = Gather(x, i)\na = MatMul(xt, w)\n"
        "r = MatMul(h, u)\ns = Add(a, r)\nl = LayerNormalization(s, g) {axis=-1}\nt = Tanh(l)\n"
        "last, all = mdot.LoopEnd(i, n, t, t) {states=1}\nreturn all, last\n",
        FEW_LENGTHS);
    assert_graph_right("q = input f32[L,24]\nk = input f32[L,24]\nx = input f32[L,20]\ns0 = weights f32[24,20]\n" STEPS
                       "i, s = mdot.LoopBegin(s0)\nqt = Gather(q, i)\nkt = Gather(k, i)\nvt = Gather(x, i)\n"
                       "last = constant i64[1] [1]\nkc = Unsqueeze(kt, last)\nkv = Mul(kc, vt)\n"
                       "d = constant f32[] [0.9]\nkept = Mul(s, d)\nnew = Add(kept, kv)\no = MatMul(qt, new)\n"
                       "f, y = mdot.LoopEnd(i, n, new, o) {states=1}\nreturn y, f\n",
                       FEW_LENGTHS);
    assert_graph_right("x = input f32[L,8]\ns0 = input f32[8]\nj = input i64[3]\nu = input f32[3]\n" STEPS
                       "axis = constant i64[] [0]\nk = constant i64[1] [2]\ni, s = mdot.LoopBegin(s0)\n"
                       "xt = Gather(x, i)\nc = CumSum(xt, axis)\nm = ScatterElements(c, j, u) {reduction=\"add\"}\n"
                       "v, p = TopK(m, k)\na = Add(m, s)\nt = Tanh(a)\n"
                       "f, y, z = mdot.LoopEnd(i, n, t, t, v) {states=1}\nreturn f, y, z\n",
                       FEW_LENGTHS);
    assert_graph_right("x = input f32[L,1,6,16]\ns0 = input f32[1,6,16]\nw = weights f32[16,48]\n" STEPS
                       "sizes = constant i64[3] [16, 16, 16]\ni, s = mdot.LoopBegin(s0)\nxt = Gather(x, i)\n"
                       "a = Add(xt, s)\np = mdot.Linear(a, w)\nq, k, v = Split(p, sizes) {axis=-1}\n"
                       "o = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                       "f, y = mdot.LoopEnd(i, n, o, o) {states=1}\nreturn f, y\n",
                       FEW_LENGTHS);
}

/* A state as long as the input: linear, norm and attention over all rows in block 0. */
static void states_may_have_the_length(void **state)
{
    (void)state;
    assert_graph_right("x = input f32[1,L,16]\nw = weights f32[16,48]\nwo = weights f32[16,16]\ng = weights f32[16]\n"
                       "n = constant i64[] [3]\nsizes = constant i64[3] [16, 16, 16]\ni, s = mdot.LoopBegin(x)\n"
                       "l = LayerNormalization(s, g) {axis=-1}\np = mdot.Linear(l, w)\n"
                       "q, k, v = Split(p, sizes) {axis=-1}\no = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                       "r = mdot.Linear(o, wo)\na = Add(r, s)\nf = mdot.LoopEnd(i, n, a) {states=1}\nreturn f\n",
                       LENGTHS);
}

/* Three tiles over two blocks. */
static bool run(void *user, cuda_host_launch *launch, cuda_host_report *report)
{
    char message[512];
    program_run how = {.length = 40, .blocks = 2, .seed = launch->seed, .magnitude = 1};
    how.skip = launch->skip;
    how.skip_line = launch->skip_line;
    bool right = program_try(user, &how, report, message, sizeof message);
    if (!right && !launch->skip) print_message("%s\n", message);
    return right;
}

static void assert_all_needed(const char *graph, int least)
{
    enum { SEEDS = 2 };
    static const int64_t bucket[] = {64, 0};
    static const cuda_argument none[] = {{NULL, NULL}};
    program p = program_from_notation(graph, bucket, CG_FP32, CUDA_HOST_CHECKED);
    int deleted = assert_deletions_show(p.code.source, run, &p, SEEDS, none);
    assert_compare(deleted, >=, least);
    program_done(&p);
}

static void every_synchronisation_of_a_recurrence_is_needed(void **state)
{
    (void)state;
    assert_all_needed("x = input f32[L,2,6]\nw = weights f32[1,128,6]\nr = weights f32[1,128,32]\n"
                      "y, h, c = LSTM(x, w, r) {hidden_size=32}\nreturn y\n",
                      3);
    /* Eight items, so that the threads in a matmul and in the following nest take different elements. */
    assert_all_needed("x = input f32[L,8,6]\nw = weights f32[1,96,6]\nr = weights f32[1,96,32]\n"
                      "y, h = GRU(x, w, r) {hidden_size=32}\nreturn y\n",
                      4);
}

static void every_synchronisation_of_a_scatter_is_needed(void **state)
{
    (void)state;
    assert_all_needed("x = input f32[1,L,8]\ni = input i64[1,L,5]\nu = input f32[1,L,5]\nk = constant i64[1] [2]\n"
                      "a = ScatterElements(x, i, u) {axis=2, reduction=\"add\"}\nv, p = TopK(a, k)\nreturn v, a\n",
                      2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_lstm_runs_over_the_length),
        cmocka_unit_test(a_head_reads_the_last_states),
        cmocka_unit_test(a_gru_resets_before_or_after_its_matmul),
        cmocka_unit_test(batches_of_any_size_match),
        cmocka_unit_test(gates_and_operands_match),
        cmocka_unit_test(loops_run_kernels_of_every_kind),
        cmocka_unit_test(states_may_have_the_length),
        cmocka_unit_test(every_synchronisation_of_a_recurrence_is_needed),
        cmocka_unit_test(every_synchronisation_of_a_scatter_is_needed),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return shard_run_group_tests(tests, NULL, NULL);
}
