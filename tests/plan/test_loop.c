/* test_loop.c — loops from the graph to code: ir/loop_nodes.c, the evaluation, plan/loop.c and the CPU kernels. The
 * graph after all passes, the plan and the code are compared with the graph's evaluation, and the evaluation with the
 * same computation without a loop. */
#include "tests/support/graph_code.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"

#include "ir/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static const int64_t lengths[] = {1, 2, 7, 33, 0};

#define STEPS "shape = Shape(x) {start=0, end=1}\nn = Squeeze(shape)\n"

/* h' = tanh(x[t] W + h U), with all step states as a stack. */
#define CELL                                                                                                           \
    "x = input f32[L,2,5]\nh0 = input f32[2,20]\nw = weights f32[5,20]\nu = weights f32[20,20]\n" STEPS                \
    "i, h = mdot.LoopBegin(h0)\nxt = Gather(x, i)\na = MatMul(xt, w)\nr = MatMul(h, u)\ns = Add(a, r)\nt = Tanh(s)\n"

static void assert_equal_graphs(const char *a, const char *b)
{
    for (int k = 0; lengths[k] > 0; k++) {
        ir_arena *arena = ir_arena_create(0);
        ir_graph *first = graph_from_notation(a, 64, arena), *second = graph_from_notation(b, 64, arena);
        mdot_error err = {0};
        if (ir_infer(first, &err) != MDOT_OK || ir_infer(second, &err) != MDOT_OK) fail_msg("%s", err.message);
        assert_same_values(first, second, lengths[k], 1e-9);
        ir_arena_destroy(arena);
    }
}

static void a_loop_equals_the_recurrent_operator(void **state)
{
    (void)state;
    assert_equal_graphs(
        CELL "last, all = mdot.LoopEnd(i, n, t, t) {states=1}\nreturn all, last\n",
        "x = input f32[L,2,5]\nh0 = input f32[2,20]\nw = weights f32[5,20]\nu = weights f32[20,20]\n"
        "wt = Transpose(w)\nut = Transpose(u)\nfirst = constant i64[1] [0]\nsecond = constant i64[1] [1]\n"
        "w3 = Unsqueeze(wt, first)\nu3 = Unsqueeze(ut, first)\nh3 = Unsqueeze(h0, first)\n"
        "y, h = RNN(x, w3, u3, _, _, h3) {hidden_size=20}\n"
        "all = Squeeze(y, second)\nlast = Squeeze(h, first)\nreturn all, last\n");
}

static void a_cell_runs_over_the_length(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(CELL "last, all = mdot.LoopEnd(i, n, t, t) {states=1}\nreturn all, last\n", lengths);
    assert_code_agrees(CELL "last, all = mdot.LoopEnd(i, n, t, t) {states=1}\nz = Relu(all)\nreturn z\n", lengths);
    assert_code_agrees(CELL "last = mdot.LoopEnd(i, n, t) {states=1}\nreturn last\n", lengths);
}

static void stacks_may_be_reversed_and_along_any_axis(void **state)
{
    (void)state;
    assert_equal_graphs(CELL
                        "last, result = mdot.LoopEnd(i, n, t, t) {states=1, axes=[1], reverse=[1]}\nreturn result\n",
                        CELL "last, all = mdot.LoopEnd(i, n, t, t) {states=1}\n"
                             "from = constant i64[1] [-1]\nto = constant i64[1] [-9223372036854775807]\n"
                             "axis = constant i64[1] [0]\nback = Slice(all, from, to, axis, from)\n"
                             "result = Transpose(back) {perm=[1, 0, 2]}\nreturn result\n");
    assert_code_agrees(CELL "last, all, other = mdot.LoopEnd(i, n, t, t, s) {states=1, axes=[-1, 1], reverse=[1, 0]}\n"
                            "return all, other\n",
                       lengths);
}

/* The sum of outer products, read by each step as it is behind the step: linear attention. */
#define LINEAR_ATTENTION                                                                                               \
    "q = input f32[L,24]\nk = input f32[L,24]\nx = input f32[L,20]\ns0 = weights f32[24,20]\n" STEPS                   \
    "i, s = mdot.LoopBegin(s0)\nqt = Gather(q, i)\nkt = Gather(k, i)\nvt = Gather(x, i)\n"                             \
    "last = constant i64[1] [1]\nkc = Unsqueeze(kt, last)\nkv = Mul(kc, vt)\nd = constant f32[] [0.9]\n"               \
    "kept = Mul(s, d)\nnew = Add(kept, kv)\no = MatMul(qt, new)\n"

static void a_matrix_may_be_the_state(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(LINEAR_ATTENTION "f, y = mdot.LoopEnd(i, n, new, o) {states=1}\nreturn y, f\n",
                                  lengths);
    /* the new state takes the place of the old one: one nest for it, one for the output */
    assert_kernels(LINEAR_ATTENTION "f, y = mdot.LoopEnd(i, n, new, o) {states=1}\nreturn y\n", "nest recurrence");
}

static void states_may_change_places(void **state)
{
    (void)state;
    static const char *const pairs[] = {"b, a", "b, sum", "sum, a", "rev, a", "sum, sum", "a, b", "c, a", "half, rev"};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        char text[1024];
        snprintf(
            text, sizeof text,
            "x = input f32[L,7]\na0 = input f32[7]\nb0 = input f32[7]\n" STEPS
            "i, a, b = mdot.LoopBegin(a0, b0)\nxt = Gather(x, i)\nsum0 = Add(a, b)\nsum = Add(sum0, xt)\n"
            "from = constant i64[1] [-1]\nto = constant i64[1] [-9223372036854775807]\naxis = constant i64[1] [0]\n"
            "rev = Slice(b, from, to, axis, from)\nc = constant f32[7] [1, 2, 3, 4, 5, 6, 7]\nh = constant f32[] "
            "[0.5]\nhalf = Mul(a, h)\n"
            "fa, fb, ya, yb = mdot.LoopEnd(i, n, %s, a, b) {states=2}\nreturn fa, fb, ya, yb\n",
            pairs[k]);
        assert_code_agrees(text, lengths);
    }
}

static void unread_states_cost_nothing(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,7]\na0 = input f32[7]\nb0 = input f32[7]\n" STEPS
                       "i, a, b = mdot.LoopBegin(a0, b0)\nxt = Gather(x, i)\nsum = Add(a, xt)\n"
                       "fa, fb = mdot.LoopEnd(i, n, sum, sum) {states=2}\nreturn fa\n",
                       lengths);
}

static void a_loop_may_have_no_steps(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,7]\na0 = input f32[7]\nshape = Shape(x) {start=0, end=1}\nm = Squeeze(shape)\n"
                       "one = constant i64[] [1]\nn = Sub(m, one)\n"
                       "i, a = mdot.LoopBegin(a0)\nxt = Gather(x, i)\nsum = Add(a, xt)\n"
                       "fa, y = mdot.LoopEnd(i, n, sum, sum) {states=1}\nreturn fa, y\n",
                       lengths);
    assert_code_agrees("a0 = input f32[L,7]\nn = constant i64[] [-3]\ni, a = mdot.LoopBegin(a0)\nb = Tanh(a)\n"
                       "fa, y = mdot.LoopEnd(i, n, b, b) {states=1}\nreturn fa, y\n",
                       lengths);
}

static void states_may_be_integers_and_bools(void **state)
{
    (void)state;
    assert_code_agrees("x = input i64[L,3]\nc0 = constant i64[3] [0, 1, 2]\np0 = constant bool[] [0]\n" STEPS
                       "i, c, p = mdot.LoopBegin(c0, p0)\nxt = Gather(x, i)\nsum = Add(c, xt)\nq = Not(p)\n"
                       "odd = Where(p, sum, c)\nfc, fp, y = mdot.LoopEnd(i, n, odd, q, sum) {states=2}\n"
                       "return fc, fp, y\n",
                       lengths);
}

/* A constant step count over a state with the length: layers with common weights. */
#define LAYER                                                                                                          \
    "x = input f32[L,16]\nn = constant i64[] [3]\nw = weights f32[16,16]\ng = weights f32[16]\n"                       \
    "i, h = mdot.LoopBegin(x)\nm = MatMul(h, w)\ns = Add(m, h)\n"

static void kernels_of_every_kind_may_repeat(void **state)
{
    (void)state;
    assert_code_agrees_everywhere(LAYER "y = mdot.LoopEnd(i, n, s) {states=1}\nreturn y\n", lengths);
    assert_code_agrees_everywhere(
        LAYER "z = LayerNormalization(s, g)\ny = mdot.LoopEnd(i, n, z) {states=1}\nreturn y\n", lengths);
    assert_code_agrees_everywhere(LAYER "z = Softmax(s)\ny = mdot.LoopEnd(i, n, z) {states=1}\nreturn y\n", lengths);
    assert_code_agrees(LAYER "axis = constant i64[] [0]\nz = CumSum(s, axis)\nhalf = constant f32[] [0.01]\nq = Mul(z, "
                             "half)\ny = mdot.LoopEnd(i, n, q) {states=1}\nreturn y\n",
                       lengths);
    assert_code_agrees_everywhere("x = input f32[1,L,32]\nn = constant i64[] [2]\ni, h = mdot.LoopBegin(x)\n"
                                  "a = Attention(h, h, h) {q_num_heads=2, kv_num_heads=2}\nz = Add(a, h)\n"
                                  "y = mdot.LoopEnd(i, n, z) {states=1}\nreturn y\n",
                                  lengths);
}

static void loops_may_depend_on_each_other(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,6]\nz = constant f32[6] [0, 0, 0, 0, 0, 0]\n" STEPS
                       "i, a = mdot.LoopBegin(z)\nj, b = mdot.LoopBegin(z)\n"
                       "xt = Gather(x, i)\nu = Add(a, xt)\nt = Tanh(u)\nfa, all = mdot.LoopEnd(i, n, t, t) {states=1}\n"
                       "yt = Gather(all, j)\nv = Sub(b, yt)\nfb, y = mdot.LoopEnd(j, n, v, v) {states=1}\n"
                       "return y, fa\n",
                       lengths);
}

static void values_outside_of_a_loop_are_computed_once(void **state)
{
    (void)state;
    /* the exponential is read in every step, and therefore stored */
    assert_kernels(
        "x = input f32[L,64]\nz = input f32[64]\n" STEPS "e = Exp(z)\ni, a = mdot.LoopBegin(z)\n"
        "xt = Gather(x, i)\np = Mul(xt, e)\nu = Add(a, p)\nfa = mdot.LoopEnd(i, n, u) {states=1}\nreturn fa\n",
        "nest2 recurrence");
    /* a matmul outside does not continue in the loop */
    assert_code_agrees("x = input f32[L,8]\nw = weights f32[8,8]\nb = input f32[1,8]\n" STEPS "m = MatMul(b, w)\n"
                       "i, a = mdot.LoopBegin(b)\nu = Add(m, a)\nfa = mdot.LoopEnd(i, n, u) {states=1}\nreturn fa\n",
                       lengths);
}

static void a_loop_within_a_loop_is_refused(void **state)
{
    (void)state;
    assert_refused(
        "x = input f32[L,8]\nn = constant i64[] [3]\ni, a = mdot.LoopBegin(x)\nj, b = mdot.LoopBegin(a)\n"
        "t = Tanh(b)\nc = mdot.LoopEnd(j, n, t) {states=1}\ny = mdot.LoopEnd(i, n, c) {states=1}\nreturn y\n",
        "a loop within a loop is unsupported");
}

static void expect_type_error(const char *body, const char *reason)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(body, 64, arena);
    mdot_error err = {0};
    assert_int_not_equal(ir_infer(graph, &err), MDOT_OK);
    if (strstr(err.message, reason) == NULL) fail_msg("%s", err.message);
    ir_arena_destroy(arena);
}

static void types_of_states_and_steps_are_checked(void **state)
{
    (void)state;
    expect_type_error(
        "x = input f32[L,8]\nn = constant i64[] [3]\ni, a = mdot.LoopBegin(x)\nb = Concat(a, a) {axis=0}\n"
        "y = mdot.LoopEnd(i, n, b) {states=1}\nreturn y\n",
        "is f32[L, 8] before the loop and f32[2L, 8] behind a step");
    expect_type_error("x = input f32[L,8]\nn = input i64[]\ni, a = mdot.LoopBegin(x)\nb = Tanh(a)\n"
                      "y = mdot.LoopEnd(i, n, b) {states=1}\nreturn y\n",
                      "the number of steps depends on data");
    expect_type_error("x = input f32[L,8]\nn = constant i64[] [3]\ni, a = mdot.LoopBegin(x)\n"
                      "y = mdot.LoopEnd(n, n, a) {states=1}\nreturn y\n",
                      "must be the index of a LoopBegin");
    expect_type_error("x = input f32[L,8]\nn = constant i64[] [3]\ni, a = mdot.LoopBegin(x)\n"
                      "y, z = mdot.LoopEnd(i, n, a, a) {states=1, axes=[4]}\nreturn z\n",
                      "the axis of stack 0 is out of range");
    expect_type_error("x = input f32[L,8]\nn = constant i64[] [3]\ni, a = mdot.LoopBegin(x)\n"
                      "y = mdot.LoopEnd(i, n, a) {states=2}\nreturn y\n",
                      "its number of states differs");
}

static void values_of_a_body_stay_inside(void **state)
{
    (void)state;
    static const char *const bodies[] = {"z = Relu(b)\nreturn y, z\n", "return y, b\n", "z = Relu(i)\nreturn y, z\n"};
    for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
        ir_arena *arena = ir_arena_create(0);
        const char *text = ir_arena_printf(arena,
                                           "x = input f32[L,8]\nn = constant i64[] [3]\ni, a = mdot.LoopBegin(x)\n"
                                           "b = Tanh(a)\ny = mdot.LoopEnd(i, n, b) {states=1}\n%s",
                                           bodies[k]);
        ir_graph *graph = graph_from_notation(text, 64, arena);
        mdot_error err = {0};
        assert_int_equal(ir_graph_verify(graph, &err), MDOT_MALFORMED);
        assert_non_null(strstr(err.message, "a value of a loop's body is"));
        ir_arena_destroy(arena);
    }
}

/* The difference from repeated products is 0, also where f64 has no digit for it. */
static void integer_powers_are_exact(void **state)
{
    (void)state;
    static const char *const types[] = {"i64", "i32"}, *const bases[] = {"999", "30"};
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "x = input %s[L]\nb = constant %s[] [%s]\nn = constant i64[] [6]\nx1 = Add(x, b)\nx2 = Mul(x1, x1)\n"
                 "x3 = Mul(x2, x1)\nx6 = Mul(x3, x3)\np = Pow(x1, n)\nd = Sub(p, x6)\nm = input i64[L]\nz = Sub(m, m)\n"
                 "r = Add(z, n)\np2 = Pow(x1, r)\ne = Sub(p2, x6)\nreturn d, e\n",
                 types[k], types[k], bases[k]);
        assert_code_agrees(text, lengths);
    }
}

/* The addend's roots are NaN for some columns. */
static void a_product_with_beta_zero_does_not_read_the_addend(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[L,4]\nn = input f32[8]\nc = Sqrt(n)\nw = weights f32[4,8]\nv = input f32[4,8]\n"
                       "y = Gemm(x, w, c) {beta=0.0}\nz = Gemm(x, v, c) {beta=0.0}\n"
                       "u = com.microsoft.FusedGemm(x, w, c) {beta=0.0, activation=\"Relu\"}\nreturn y, z, u\n",
                       lengths);
}

/* Norms over the pairs of positions, whose number is not affine in the length. */
static void groups_of_channels_are_normed_over_pairs(void **state)
{
    (void)state;
    assert_code_agrees("x = input f32[1,4,L,L]\ns = weights f32[4]\nb = weights f32[4]\n"
                       "y = InstanceNormalization(x, s, b)\nz = GroupNormalization(x, s, b) {num_groups=2}\n"
                       "return y, z\n",
                       lengths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_powers_are_exact),
        cmocka_unit_test(a_product_with_beta_zero_does_not_read_the_addend),
        cmocka_unit_test(groups_of_channels_are_normed_over_pairs),
        cmocka_unit_test(a_loop_equals_the_recurrent_operator),
        cmocka_unit_test(a_cell_runs_over_the_length),
        cmocka_unit_test(stacks_may_be_reversed_and_along_any_axis),
        cmocka_unit_test(a_matrix_may_be_the_state),
        cmocka_unit_test(states_may_change_places),
        cmocka_unit_test(unread_states_cost_nothing),
        cmocka_unit_test(a_loop_may_have_no_steps),
        cmocka_unit_test(states_may_be_integers_and_bools),
        cmocka_unit_test(kernels_of_every_kind_may_repeat),
        cmocka_unit_test(loops_may_depend_on_each_other),
        cmocka_unit_test(values_outside_of_a_loop_are_computed_once),
        cmocka_unit_test(a_loop_within_a_loop_is_refused),
        cmocka_unit_test(types_of_states_and_steps_are_checked),
        cmocka_unit_test(values_of_a_body_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
