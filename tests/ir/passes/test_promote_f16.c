/* test_promote_f16.c — 16-bit models are computed in f32, within the rounding of the 16-bit type. Decisions are made on
 * rounded values. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "plan/planner.h"
#include "tests/support/graph_notation.h"
#include "tests/support/plan_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static ir_graph *after_passes(const ir_graph *before, ir_arena *arena)
{
    mdot_error err;
    ir_graph *after = ir_graph_clone(before, arena);
    if (ir_run_passes(after, NULL, &err) != MDOT_OK) fail_msg("%s", err.message);
    return after;
}

/* Counts the nodes that make values with a type, except casts, and the casts to this type. */
static void count_nodes(const ir_graph *graph, mdot_dtype dtype, int *out_others, int *out_casts)
{
    *out_others = *out_casts = 0;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->outputs[0] == NULL || node->outputs[0]->type.dtype != dtype) continue;
        *(node->op == &ir_ops[IR_OP_Cast] ? out_casts : out_others) += 1;
    }
}

static void whole_models_are_computed_in_f32(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        mdot_dtype dtype;
        double tolerance;
    } cases[] = {
        {"x = input f16[1,L,8]\nw = weights f16[8,8]\ng = weights f16[8]\nn = LayerNormalization(x, g)\n"
         "q = MatMul(n, w)\nkt = Transpose(q) {perm=[0, 2, 1]}\ns = MatMul(q, kt)\nf = Cast(s) {to=1}\n"
         "p0 = Softmax(f) {axis=-1}\np = Cast(p0) {to=10}\no = MatMul(p, q)\ny = Add(x, o)\nreturn y\n",
         MDOT_DTYPE_F16, 4e-3},
        {"x = input bf16[L,8]\nw = weights bf16[8,8]\nq = MatMul(x, w)\nthirds = constant i64[2] [4, 4]\n"
         "a, b = Split(q, thirds) {axis=-1}\nc = Gelu(a)\ny = Mul(c, b)\nreturn y\n",
         MDOT_DTYPE_BF16, 4e-2},
        {"x = input f16[L,8]\nkey = input bool[L,8]\none = constant f16[] [1]\nm = Cast(key) {to=10}\n"
         "off = Sub(one, m)\ny = Add(x, off)\nreturn y\n",
         MDOT_DTYPE_F16, 4e-3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int others, casts;
        ir_arena *arena = ir_arena_create(0);
        ir_graph *before = graph_from_notation(cases[i].text, 16, arena), *after = after_passes(before, arena);
        count_nodes(after, cases[i].dtype, &others, &casts);
        assert_int_equal(others, 0);
        assert_int_equal(casts, 1); /* the output cast */
        assert_same_values(before, after, 5, cases[i].tolerance);
        ir_arena_destroy(arena);
    }
}

/* In f16, 2047 + 0.6 is 2048. A comparison in f32 would decide otherwise. */
static void comparisons_use_rounded_values(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *before = graph_from_notation("x = input f16[2]\nc = constant f16[] [0.6]\ns = Add(x, c)\nf = Floor(s)\n"
                                           "i = Cast(s) {to=7}\nreturn f, i\n",
                                           16, arena);
    ir_graph *after = after_passes(before, arena);
    const int64_t dims[] = {2};
    ir_wide *x = ir_wide_create(arena, MDOT_DTYPE_F16, 1, dims);
    x->f[0] = 2047;
    x->f[1] = 3;
    assert_same_results(before, after, (const ir_wide *const[]){x}, 0);
    ir_arena_destroy(arena);
}

/* A value narrowed and widened again is rounded, also if it is moved in between: 1.0001, 70000 and 1e-8 are 1, infinity
 * and 0 in f16. */
static void narrowing_that_is_undone_rounds(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "x = input f32[4]\nq = Cast(x) {to=10}\ny = Cast(q) {to=1}\nreturn y\n",
        "x = input f32[4]\nq = Cast(x) {to=16}\nr = Identity(q)\ny = Cast(r) {to=1}\nd = Sub(x, y)\nreturn d\n",
        "x = input f32[4]\nq = Cast(x) {to=10}\ns = constant i64[2] [2, 2]\nr = Reshape(q, s)\n"
        "t = Transpose(r)\ny = Cast(t) {to=1}\nreturn y\n",
        "x = input f32[4]\nz = constant f16[] [0]\no = constant f32[] [0]\nq = CastLike(x, z)\n"
        "y = CastLike(q, o)\ne = Exp(x)\nd = Mul(e, y)\nreturn d\n",
        "x = input f32[4]\ne = Exp(x)\nq = Cast(x) {to=10}\nr = Cast(e) {to=10}\nc = Concat(r, q) {axis=0}\n"
        "y = Cast(c) {to=1}\nreturn y\n",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ir_arena *arena = ir_arena_create(0);
        mdot_error err;
        pl_plan *plan;
        ir_graph *before = graph_from_notation(cases[i], 16, arena), *after = after_passes(before, arena);
        const int64_t dims[] = {4};
        ir_wide *x = ir_wide_create(arena, MDOT_DTYPE_F32, 1, dims);
        memcpy(x->f, (const double[]){1.0001, 70000, 1e-8, -3.14159}, 4 * sizeof(double));
        assert_same_results(before, after, (const ir_wide *const[]){x}, 1e-7);
        if (pl_build(after, arena, &plan, &err) != MDOT_OK) fail_msg("%s", err.message);
        assert_plan_agrees(after, plan, 1, 1e-7);
        ir_arena_destroy(arena);
    }
}

/* 2049 is 2048 in f16. The f32 computation must have the rounded integer, too. */
static void integers_are_rounded_to_f16(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *before = graph_from_notation("n = input i64[2]\nx = Cast(n) {to=10}\nc = constant f16[] [1]\n"
                                           "s = Sub(x, c)\ny = Cast(s) {to=1}\nreturn y\n",
                                           16, arena);
    ir_graph *after = after_passes(before, arena);
    const int64_t dims[] = {2};
    ir_wide *n = ir_wide_create(arena, MDOT_DTYPE_I64, 1, dims);
    n->i[0] = 2049;
    n->i[1] = 3;
    assert_same_results(before, after, (const ir_wide *const[]){n}, 0);
    ir_arena_destroy(arena);
}

/* A pattern also matches constants rounded to a narrow type: √2 is 1.4140625 in both, 0.044715 is 0.04467… in bf16, and
 * a mask of -1e4 is -9984. */
static void patterns_match_rounded_constants(void **state)
{
    (void)state;
    static const char *const spelt[] = {
        "r = constant $[] [1.4142135]\nd = Div(x, r)\ne = Erf(d)\ns = Add(e, one)\np = Mul(x, s)\ny = Mul(p, half)\n",
        "r = constant $[] [0.70710678]\nd = Mul(x, r)\ne = Erf(d)\ns = Add(e, one)\np = Mul(x, s)\ny = Mul(p, half)\n",
        "three = constant $[] [3]\nc = constant $[] [0.044715]\nr = constant $[] [0.7978845608]\nq = Pow(x, three)\n"
        "cq = Mul(q, c)\ni = Add(x, cq)\na = Mul(i, r)\nt = Tanh(a)\n"
        "s = Add(t, one)\np = Mul(x, s)\ny = Mul(p, half)\n",
        "c = constant $[] [3]\nz = constant $[] [0]\nt = constant $[] [6]\nsixth = constant $[] [0.16666667]\n"
        "a = Add(x, c)\ni = Clip(a, z, t)\np = Mul(x, i)\ny = Mul(p, sixth)\n",
        "key = input bool[1,1,L]\nc = constant $[] [-1e4]\nj = constant i64[3] [1, -1, 8]\nq = Reshape(x, j)\n"
        "kt = Transpose(q) {perm=[0, 2, 1]}\ns = MatMul(q, kt)\nt = Where(key, s, c)\nw = Softmax(t) {axis=-1}\n"
        "zero = constant $[] [0]\nz = Where(key, w, zero)\ny = MatMul(z, q)\n",
        "key = input bool[1,1,L]\nc = constant $[] [-inf]\nj = constant i64[3] [1, -1, 8]\nq = Reshape(x, j)\n"
        "kt = Transpose(q) {perm=[0, 2, 1]}\ns = MatMul(q, kt)\nzero = constant $[] [0]\nm = Where(key, zero, c)\n"
        "t = Add(s, m)\nw = Softmax(t) {axis=-1}\nnan = IsNaN(w)\nz = Where(nan, zero, w)\ny = MatMul(z, q)\n",
    };
    static const ir_opcode wanted[] = {IR_OP_Gelu,      IR_OP_Gelu,      IR_OP_Gelu,
                                       IR_OP_HardSwish, IR_OP_Attention, IR_OP_Attention};
    static const struct {
        const char *name;
        double tolerance;
    } types[] = {{"f16", 4e-3}, {"bf16", 4e-2}};
    for (size_t i = 0; i < 2 * sizeof spelt / sizeof *spelt; i++) {
        char text[1024] = "";
        ir_arena *arena = ir_arena_create(0);
        const char *form = ir_arena_printf(arena,
                                           "x = input $[L,8]\none = constant $[] [1]\nhalf = constant $[] [0.5]\n%s"
                                           "return y\n",
                                           spelt[i / 2]);
        size_t used = 0;
        for (const char *at = form; *at != '\0'; at++)
            used += (size_t)snprintf(text + used, sizeof text - used, *at == '$' ? "%s" : "%.1s",
                                     *at == '$' ? types[i % 2].name : at);
        ir_graph *before = graph_from_notation(text, 16, arena), *after = after_passes(before, arena);
        bool found = false;
        for (const ir_node *node = after->first; node != NULL; node = node->next)
            found = found || node->op == &ir_ops[wanted[i / 2]];
        if (!found) fail_msg("not recognised: %s", text);
        assert_same_values(before, after, 5, types[i % 2].tolerance);
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_models_are_computed_in_f32), cmocka_unit_test(comparisons_use_rounded_values),
        cmocka_unit_test(narrowing_that_is_undone_rounds),  cmocka_unit_test(integers_are_rounded_to_f16),
        cmocka_unit_test(patterns_match_rounded_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
