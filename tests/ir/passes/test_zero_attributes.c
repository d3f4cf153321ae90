/* test_zero_attributes.c — 0 differs from an absent attribute. Operators with an attribute equal to 0 go through all
 * passes and the planner. They still compute the reference evaluation's values, which differ from the default's. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops.h"
#include "ir/passes.h"
#include "plan/planner.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_oracle.h"

enum { MAX_LENGTH = 16, LENGTH = 5 };

/* before: the graph up to the node that defines y; node: this node without attributes; others: its other attributes;
 * zero: the attribute equal to 0. */
typedef struct zero_case {
    const char *before, *node, *others, *zero;
} zero_case;

#define ROWS "x = input f32[L,8]\n"
#define QKV "q = input f32[1,L,32]\nk = input f32[1,L,32]\nv = input f32[1,L,32]\n"
#define HEADS "q = input f32[1,2,L,16]\nk = input f32[1,2,L,16]\nv = input f32[1,2,L,16]\n"
#define IMAGE "x = input f32[2,4,L]\ng = weights f32[4]\nb = weights f32[4]\n"
#define NORM ROWS "g = weights f32[8]\nb = weights f32[8]\n"
#define GEMM ROWS "w = weights f32[8,6]\nc = weights f32[6]\n"

static const zero_case cases[] = {
    {QKV, "Attention(q, k, v)", "q_num_heads=2, kv_num_heads=2, ", "scale=0.0"},
    {HEADS, "Attention(q, k, v)", "", "scale=0.0"},
    {QKV, "Attention(q, k, v)", "q_num_heads=2, kv_num_heads=2, is_causal=1, ", "scale=0.0"},
    {QKV, "Attention(q, k, v)", "q_num_heads=2, kv_num_heads=2, softcap=0.5, ", "scale=0.0"},
    {HEADS, "Attention(q, k, v)", "", "left_window_size=0"},
    {HEADS, "Attention(q, k, v)", "", "right_window_size=0"},
    {QKV, "Attention(q, k, v)", "q_num_heads=2, kv_num_heads=2, left_window_size=2, ", "right_window_size=0"},
    {QKV, "Attention(q, k, v)", "q_num_heads=2, kv_num_heads=2, is_causal=1, right_window_size=3, ",
     "left_window_size=0"},
    {GEMM, "Gemm(x, w, c)", "", "alpha=0.0"},
    {GEMM, "Gemm(x, w, c)", "", "beta=0.0"},
    {GEMM "t = Identity(x)\n", "com.microsoft.FusedGemm(t, w, c)", "activation=\"Relu\", ", "alpha=0.0"},
    {GEMM "t = Identity(x)\n", "com.microsoft.FusedGemm(t, w, c)", "activation=\"Relu\", ", "beta=0.0"},
    {GEMM, "com.microsoft.FusedGemm(x, w, c)", "activation=\"LeakyRelu\", ", "activation_alpha=0.0"},
    {GEMM, "com.microsoft.FusedMatMul(x, w)", "", "alpha=0.0"},
    {ROWS "z = input f32[8,L]\n", "com.microsoft.FusedMatMul(x, z)", "", "alpha=0.0"},
    {ROWS, "LeakyRelu(x)", "", "alpha=0.0"},
    {ROWS, "Elu(x)", "", "alpha=0.0"},
    {ROWS, "Selu(x)", "", "alpha=0.0"},
    {ROWS, "Selu(x)", "", "gamma=0.0"},
    {ROWS, "HardSigmoid(x)", "", "alpha=0.0"},
    {ROWS, "HardSigmoid(x)", "", "beta=0.0"},
    {ROWS, "ThresholdedRelu(x)", "", "alpha=0.0"},
    {ROWS, "Shrink(x)", "", "lambd=0.0"},
    {ROWS, "Swish(x)", "", "alpha=0.0"},
    {ROWS, "com.microsoft.QuickGelu(x)", "", "alpha=0.0"},
    {NORM "h = Mul(x, x)\ns = Mul(h, h)\nt = Mul(s, s)\n", "LayerNormalization(t, g, b)", "axis=-1, ", "epsilon=0.0"},
    {NORM "h = Mul(x, x)\ns = Mul(h, h)\nt = Mul(s, s)\n", "RMSNormalization(t, g)", "axis=-1, ", "epsilon=0.0"},
    {NORM, "com.microsoft.SkipLayerNormalization(x, x, g, b)", "", "epsilon=0.0"},
    {IMAGE "t = Mul(x, x)\n", "InstanceNormalization(t, g, b)", "", "epsilon=0.0"},
    {IMAGE "t = Mul(x, x)\n", "GroupNormalization(t, g, b)", "num_groups=2, ", "epsilon=0.0"},
    {ROWS, "Softmax(x)", "", "axis=0"},
    {ROWS, "LogSoftmax(x)", "", "axis=0"},
    {ROWS, "LpNormalization(x)", "", "axis=0"},
    {ROWS, "ArgMax(x)", "", "keepdims=0"},
    {ROWS, "Flatten(x)", "", "axis=0"},
    {ROWS, "Trilu(x)", "", "upper=0"},
    {ROWS, "IsInf(x)", "", "detect_negative=0"},
};

static ir_graph *graph_of(const zero_case *c, bool with_zero, ir_arena *arena)
{
    char text[1024];
    mdot_error err = {0};
    snprintf(text, sizeof text, "%sy = %s {%s%s}\nreturn y\n", c->before, c->node, c->others,
             with_zero ? c->zero : "_=1");
    ir_graph *graph = graph_from_notation(text, MAX_LENGTH, arena);
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s %s: %s", c->node, c->zero, err.message);
    return graph;
}

static const ir_wide *value_of(const ir_graph *graph, ir_arena *arena)
{
    mdot_error err = {0};
    ir_wide *out;
    const ir_wide *const *inputs = (const ir_wide *const *)random_inputs(graph, LENGTH, 11, arena);
    if (ir_evaluate(graph, inputs, arena, &out, &err) != MDOT_OK) fail_msg("%s", err.message);
    return out;
}

static bool differ(const ir_wide *a, const ir_wide *b)
{
    if (a->rank != b->rank || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) != 0) return true;
    for (int64_t i = 0; i < a->count; i++)
        if (ir_wide_get(a, i) != ir_wide_get(b, i)) return true;
    return false;
}

static void check(const zero_case *c)
{
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    pl_plan *plan;
    ir_graph *graph = graph_of(c, true, arena), *passed = ir_graph_clone(graph, arena);
    bool can_differ = strncmp(c->node, "IsInf", 5) != 0 && strncmp(c->node, "com.microsoft.Skip", 18) != 0;
    if (can_differ && !differ(value_of(graph, arena), value_of(graph_of(c, false, arena), arena)))
        fail_msg("%s: %s computes what the default does", c->node, c->zero);
    if (ir_run_passes(passed, NULL, &err) != MDOT_OK || pl_build(passed, arena, &plan, &err) != MDOT_OK)
        fail_msg("%s %s: %s", c->node, c->zero, err.message);
    assert_plan_agrees(graph, plan, LENGTH, 2e-5);
    ir_arena_destroy(arena);
}

static void zero_attributes_are_kept(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s %s\n", cases[i].node, cases[i].zero);
        check(&cases[i]);
    }
}

/* In ONNX's reference only a positive number caps scores. */
static void a_negative_softcap_is_ignored(void **state)
{
    (void)state;
    const zero_case negative = {HEADS, "Attention(q, k, v)", "", "softcap=-0.5"};
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    pl_plan *plan;
    ir_graph *graph = graph_of(&negative, true, arena), *passed = ir_graph_clone(graph, arena);
    assert_false(differ(value_of(graph, arena), value_of(graph_of(&negative, false, arena), arena)));
    if (ir_run_passes(passed, NULL, &err) != MDOT_OK || pl_build(passed, arena, &plan, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    assert_plan_agrees(graph, plan, LENGTH, 2e-5);
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_attributes_are_kept),
        cmocka_unit_test(a_negative_softcap_is_ignored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
