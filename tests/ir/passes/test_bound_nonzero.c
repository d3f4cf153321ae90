/* test_bound_nonzero.c — NonZero becomes the indices of all elements, and results keep their values. The reference
 * evaluates the graph before the pass, with as many elements as the mask has. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "tests/support/graph_code.h"
#include "tests/support/graph_notation.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The mask (2 slots of L tokens) is as in transformers' experts; i are indices [2, count]. */
#define MASK "x = input f32[L,4]\nm = input bool[2,L]\ni = NonZero(m)\n"
#define TOKENS "one = constant i64[] [1]\nt = Gather(i, one) {axis=0}\n"
#define ROWS "x = input f32[L,4]\nm = input bool[L]\ni = NonZero(m)\nix = Transpose(i) {perm=[1, 0]}\n"
#define PICKED "r = GatherND(x, ix)\n"

static mdot_status bound(ir_graph *graph, mdot_error *err)
{
    bool changed = false;
    return ir_run_pass(graph, "bound_nonzero", &changed, err);
}

static void expect_same(const char *text)
{
    for (int64_t length = 1; length <= 9; length += 4) {
        ir_arena *arena = ir_arena_create(0);
        mdot_error err;
        ir_graph *before = graph_from_notation(text, 16, arena), *after = ir_graph_clone(before, arena);
        if (bound(after, &err) != MDOT_OK) fail_msg("%s\n%s", text, err.message);
        for (const ir_node *node = after->first; node != NULL; node = node->next)
            assert_false(node->op == &ir_ops[IR_OP_NonZero]);
        for (uint64_t seed = 1; seed < 4; seed++)
            assert_same_results(before, after, (const ir_wide *const *)random_inputs(before, length, seed, arena),
                                1e-6);
        bool changed;
        if (ir_run_pass(after, "infer", &changed, &err) != MDOT_OK) fail_msg("%s\n%s", text, err.message);
        ir_arena_destroy(arena);
    }
}

static void experts_add_to_their_tokens(void **state)
{
    (void)state;
    expect_same(MASK TOKENS "w = weights f32[4,4]\nwb = weights f32[4]\nr = Gather(x, t) {axis=0}\n"
                            "e = Gemm(r, w, wb)\ng = Sigmoid(e)\ns = Mul(e, g)\nax = constant i64[1] [-1]\n"
                            "u = Unsqueeze(t, ax)\ny = ScatterND(x, u, s) {reduction=\"add\"}\nreturn y\n");
    /* TorchScript writes index_add with the indices repeated along the features, by shapes that contain the count. */
    expect_same(MASK TOKENS "w = weights f32[4,4]\nr = Gather(x, t) {axis=0}\ne = MatMul(r, w)\nsh = Shape(e)\n"
                            "ax = constant i64[1] [1]\nu = Unsqueeze(t, ax)\nuu = Expand(u, sh)\n"
                            "y = ScatterElements(x, uu, e) {axis=0, reduction=\"add\"}\nreturn y\n");
    /* Both coordinates, and a Reshape with -1. */
    expect_same("x = input f32[L,4]\nr = input f32[L,2]\nm = input bool[2,L]\ni = NonZero(m)\n"
                "j = Transpose(i) {perm=[1, 0]}\nones = constant i64[2] [1, 1]\ns, t = Split(j, ones) {axis=1}\n"
                "st = Concat(t, s) {axis=1}\ng = GatherND(r, st)\nax = constant i64[1] [1]\ngg = Unsqueeze(g, ax)\n"
                "p = GatherND(x, t)\nshape = constant i64[2] [-1, 4]\nq = Reshape(p, shape)\nv = Mul(q, gg)\n"
                "y = ScatterND(x, t, v) {reduction=\"add\"}\nreturn y\n");
}

static void scatters_reduce_and_overwrite(void **state)
{
    (void)state;
    static const char *const reductions[] = {"none", "add", "mul", "max", "min"};
    char text[1024];
    for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++) {
        snprintf(text, sizeof text, ROWS PICKED "e = Exp(r)\ny = ScatterND(x, ix, e) {reduction=\"%s\"}\nreturn y\n",
                 reductions[k]);
        expect_same(text);
    }
    /* A number in every selected place: the update shape is the count. */
    expect_same(ROWS PICKED "sh = Shape(r)\nc = ConstantOfShape(sh)\ny = ScatterND(x, ix, c)\nreturn y\n");
    expect_same("x = input f32[2,L]\nm = input f32[2,L]\ni = NonZero(m)\nix = Transpose(i) {perm=[1, 0]}\n"
                "r = GatherND(x, ix)\ne = Exp(r)\ny = ScatterND(x, ix, e)\nreturn y\n");
}

/* TorchScript writes index_add as an overwriting scatter into zeros. Each token is selected in one of two slots: the
 * other slot has the same index. */
static void computed_indices_overwrite(void **state)
{
    (void)state;
    expect_same("x = input f32[L,4]\nm = input bool[1,L]\nnot = Not(m)\nmm = Concat(not, m) {axis=0}\n"
                "i = NonZero(mm)\n" TOKENS "r = Gather(x, t) {axis=0}\ne = Exp(r)\nax = constant i64[1] [1]\n"
                "u = Unsqueeze(t, ax)\ny = ScatterND(x, u, e)\nsh = Shape(e)\nuu = Expand(u, sh)\n"
                "z = ScatterElements(x, uu, e) {axis=0}\nreturn y, z\n");
    /* Tokens selected in no slot keep their numbers. */
    expect_same("x = input f32[L,4]\nm = input bool[1,L]\nno = constant bool[1,1] [0]\nn = And(m, no)\n"
                "mm = Concat(m, n) {axis=0}\ni = NonZero(mm)\n" TOKENS "r = Gather(x, t) {axis=0}\ne = Exp(r)\n"
                "ax = constant i64[1] [1]\nu = Unsqueeze(t, ax)\ny = ScatterND(x, u, e)\nreturn y\n");
    /* Booleans, and extremes of integers. */
    expect_same("x = input bool[L]\nm = input bool[1,L]\ni = NonZero(m)\n" TOKENS
                "r = Gather(x, t) {axis=0}\nn = Not(r)\nax = constant i64[1] [1]\nu = Unsqueeze(t, ax)\n"
                "y = ScatterND(x, u, n)\nreturn y\n");
    expect_same(ROWS PICKED "k = Cast(r) {to=7}\nz = Cast(x) {to=7}\ny = ScatterND(z, ix, k) {reduction=\"max\"}\n"
                            "return y\n");
}

/* x[mask] = y, as TorchScript writes it: the mask is expanded to the rows' elements. */
static void masked_rows_are_assigned(void **state)
{
    (void)state;
    static const char *const widths[] = {"4", "3"};
    char text[1024];
    for (int k = 0; k < 2; k++) {
        snprintf(text, sizeof text,
                 ROWS PICKED "e = Exp(r)\nax = constant i64[1] [1]\nu = Unsqueeze(m, ax)\nsh = Shape(x)\n"
                             "mm = Expand(u, sh)\nj = NonZero(mm)\njx = Transpose(j) {perm=[1, 0]}\n"
                             "flat = constant i64[1] [-1]\nv = Reshape(e, flat)\njs = Shape(jx)\n"
                             "zero = constant i64[1] [0]\none = constant i64[1] [1]\nn = Slice(js, zero, one)\n"
                             "c = Slice(v, zero, n, zero)\nz = Mul(x, x)\ny = ScatterND(z, jx, c)\nreturn y\n");
        char *dims = strstr(text, "L,4");
        dims[2] = widths[k][0];
        expect_same(text);
    }
}

static void sums_ignore_other_elements(void **state)
{
    (void)state;
    static const char *const names[] = {"ReduceSum",  "ReduceMean", "ReduceMax", "ReduceMin",
                                        "ReduceProd", "ReduceL1",   "ReduceL2",  "ReduceSumSquare"};
    char text[1024];
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        for (int keeps = 0; keeps < 2; keeps++) {
            snprintf(text, sizeof text,
                     ROWS PICKED "zero = constant i64[1] [0]\ny = %s(r, zero) {keepdims=%d}\nz = %s(r)\n"
                                 "last = constant i64[1] [-1]\nn = %s(r, last) {keepdims=%d}\nt = ReduceSum(n)\n"
                                 "return y, z, t\n",
                     names[k], keeps, names[k], names[k], keeps);
            expect_same(text);
        }
    }
}

static void rows_pass_through_norms_products_and_reshapes(void **state)
{
    (void)state;
    expect_same(ROWS PICKED
                "g = weights f32[4]\nn = LayerNormalization(r, g) {axis=-1}\np = Softmax(n) {axis=-1}\n"
                "sh = constant i64[3] [-1, 2, 2]\nh = Reshape(p, sh)\nw = weights f32[2,3]\nq = MatMul(h, w)\n"
                "tr = Transpose(q) {perm=[1, 0, 2]}\nzero = constant i64[1] [1]\ny = ReduceSum(tr, zero)\nreturn y\n");
    /* The second NonZero on the same mask selects the same elements. */
    expect_same(ROWS PICKED "i2 = NonZero(m)\nw = Cast(i2) {to=1}\nv = Transpose(w) {perm=[1, 0]}\nu = Mul(r, v)\n"
                            "y = ScatterND(x, ix, u)\nreturn y\n");
}

/* Elements outside the mask may be NaN or infinite after the selection's operators. */
static void elements_outside_of_the_mask_may_be_nan(void **state)
{
    (void)state;
    const int64_t dims[] = {3, 4}, rows[] = {3};
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    ir_graph *before = graph_from_notation(ROWS PICKED "e = Log(r)\ny = ScatterND(x, ix, e) {reduction=\"add\"}\n"
                                                       "zero = constant i64[1] [0]\nz = ReduceMean(e, zero)\n"
                                                       "return y, z\n",
                                           16, arena);
    ir_graph *after = ir_graph_clone(before, arena);
    assert_int_equal(bound(after, &err), MDOT_OK);
    ir_wide *x = ir_wide_create(arena, MDOT_DTYPE_F32, 2, dims), *m = ir_wide_create(arena, MDOT_DTYPE_BOOL, 1, rows);
    for (int i = 0; i < 12; i++) x->f[i] = i / 4 == 1 ? -1 : i + 1;
    m->i[0] = m->i[2] = 1;
    assert_same_results(before, after, (const ir_wide *const[]){x, m}, 1e-9);
    m->i[0] = m->i[2] = 0; /* no element at all: the mean is NaN */
    assert_same_results(before, after, (const ir_wide *const[]){x, m}, 1e-9);
    ir_arena_destroy(arena);
}

/* Through all passes, the plan and the code for every level. */
static void experts_become_kernels(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 2, 9, 16, 40, 0};
    assert_code_agrees(MASK TOKENS
                       "w = weights f32[4,16]\nv = weights f32[16,4]\nr = Gather(x, t) {axis=0}\ne = MatMul(r, w)\n"
                       "g = Gelu(e)\nd = MatMul(g, v)\nax = constant i64[1] [-1]\nu = Unsqueeze(t, ax)\n"
                       "y = ScatterND(x, u, d) {reduction=\"add\"}\nzero = constant i64[1] [0]\n"
                       "z = ReduceMax(d, zero)\nreturn y, z\n",
                       lengths);
    assert_code_agrees(ROWS PICKED "e = Exp(r)\ny = ScatterND(x, ix, e)\nreturn y\n", lengths);
}

static void indices_of_constants_are_folded(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    ir_graph *graph = graph_from_notation("x = input f32[4]\nm = constant f32[4] [0, 2, 0, -1]\ni = NonZero(m)\n"
                                          "y = Gather(x, i)\nreturn y\n",
                                          16, arena);
    assert_int_equal(bound(graph, &err), MDOT_OK);
    const ir_type *type = &graph->outputs[0]->type;
    assert_int_equal(type->rank, 2);
    assert_true(ir_dim_is(type->dim[0], 1));
    assert_true(ir_dim_is(type->dim[1], 2));
    ir_arena_destroy(arena);
}

static void expect_refused(const char *text, const char *reason)
{
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    ir_graph *graph = graph_from_notation(text, 16, arena);
    assert_int_equal(bound(graph, &err), MDOT_UNSUPPORTED);
    if (strstr(err.message, reason) == NULL) fail_msg("%s\nlacks \"%s\"", err.message, reason);
    ir_arena_destroy(arena);
}

static void other_uses_are_refused(void **state)
{
    (void)state;
    expect_refused(MASK "return i\n", "the shape of output \"i\" is the number of elements");
    expect_refused(ROWS PICKED "flat = constant i64[1] [-1]\nv = Reshape(r, flat)\ny = ReduceSum(v)\nreturn y\n",
                   "it merges with another axis");
    expect_refused(ROWS PICKED "return r\n", "the shape of output \"r\"");
    expect_refused(ROWS PICKED "zero = constant i64[] [0]\ny = Gather(r, zero) {axis=0}\nreturn y\n",
                   "it picks single elements");
    expect_refused(ROWS PICKED "y = Softmax(r) {axis=0}\nz = ReduceSum(y)\nreturn z\n", "it combines elements");
    expect_refused(ROWS PICKED "s = Shape(r)\nf = Cast(s) {to=1}\nsum = ReduceSum(r)\ny = Div(sum, f)\nreturn y\n",
                   "it computes with the number of elements");
    expect_refused(ROWS PICKED "y = Add(r, x)\nz = ReduceSum(y)\nreturn z\n", "it combines other data");
    expect_refused(ROWS PICKED "t = Transpose(r) {perm=[1, 0]}\ng = MatMul(t, r)\nreturn g\n", "it combines elements");
    expect_refused(ROWS PICKED "w = input bool[L]\nk = NonZero(w)\nkx = Transpose(k) {perm=[1, 0]}\n"
                               "q = GatherND(x, kx)\ny = Add(r, q)\nz = ReduceSum(y)\nreturn z\n",
                   "another selection");
    expect_refused("m = input bool[L,L]\ni = NonZero(m)\ns = ReduceSum(i)\nreturn s\n", "bind one of the dimensions");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(experts_add_to_their_tokens),
        cmocka_unit_test(scatters_reduce_and_overwrite),
        cmocka_unit_test(computed_indices_overwrite),
        cmocka_unit_test(masked_rows_are_assigned),
        cmocka_unit_test(sums_ignore_other_elements),
        cmocka_unit_test(rows_pass_through_norms_products_and_reshapes),
        cmocka_unit_test(elements_outside_of_the_mask_may_be_nan),
        cmocka_unit_test(experts_become_kernels),
        cmocka_unit_test(indices_of_constants_are_folded),
        cmocka_unit_test(other_uses_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
