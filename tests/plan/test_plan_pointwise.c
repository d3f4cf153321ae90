/* test_plan_pointwise.c — every pointwise operator in every supported element type, planned and compared with the
 * reference evaluation. Attributes and special values are tested by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops.h"
#include "plan/planner.h"
#include "tests/support/assertions.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/plan_oracle.h"

static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32, MDOT_DTYPE_F64, MDOT_DTYPE_F16, MDOT_DTYPE_BF16, MDOT_DTYPE_I8,
                                    MDOT_DTYPE_I16, MDOT_DTYPE_I32, MDOT_DTYPE_I64, MDOT_DTYPE_U8,   MDOT_DTYPE_U16,
                                    MDOT_DTYPE_U32, MDOT_DTYPE_U64, MDOT_DTYPE_BOOL};
enum { DTYPES = (int)(sizeof dtypes / sizeof *dtypes) };

static ir_graph *create_graph(ir_arena *arena)
{
    ir_graph *graph = ir_graph_create(arena, "pointwise");
    graph->symbol = "L";
    graph->max_length = 8;
    return graph;
}

/* Makes one node with `count` inputs (shape [3,L], the last one broadcasts). Returns NULL if these types are
 * unsupported. */
static ir_node *make_node(ir_graph *graph, const ir_op *op, const mdot_dtype *types, int count)
{
    ir_value *inputs[4];
    for (int k = 0; k < count; k++) {
        ir_type type = {types[k], 2, {ir_dim_number(k && k == count - 1 ? 1 : 3), ir_dim_affine(1, 0)}};
        char name[16];
        snprintf(name, sizeof name, "x%d", k);
        inputs[k] = ir_graph_add_input(graph, name, &type);
    }
    return ir_graph_add_node(graph, NULL, op, op->name, inputs, count, 1);
}

static bool plan_and_check(ir_graph *graph, ir_node *node, double tolerance)
{
    mdot_error err = {0};
    pl_plan *plan;
    if (ir_infer_node(graph, node, &err) != MDOT_OK) return false;
    ir_graph_add_output(graph, node->outputs[0]);
    if (pl_build(graph, graph->arena, &plan, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int64_t length = 1; length <= 8; length += 3) assert_plan_agrees(graph, plan, length, tolerance);
    return true;
}

/* The plan and the reference round f16 and bf16 at different points between a formula's operators. */
static double tolerance_of(mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F16: return 2e-2;
    case MDOT_DTYPE_BF16: return 1e-1;
    default: return 1e-6; /* formula constants are f32 */
    }
}

static void every_operator_matches_in_every_type(void **state)
{
    (void)state;
    int checked = 0;
    for (int o = 0; o < IR_OP_COUNT; o++) {
        const ir_op *op = &ir_ops[o];
        bool by_hand = o == IR_OP_Cast || o == IR_OP_CastLike || o == IR_OP_Clip;
        if (op->lowering != IR_LOWER_POINTWISE || by_hand) continue;
        int operators_before = checked;
        for (int t = 0; t < DTYPES; t++) {
            int count = op->max_inputs < 3 ? op->max_inputs : 3;
            mdot_dtype types[] = {o == IR_OP_Where ? MDOT_DTYPE_BOOL : dtypes[t], dtypes[t], dtypes[t]};
            ir_arena *arena = ir_arena_create(0);
            ir_graph *graph = create_graph(arena);
            ir_node *node = make_node(graph, op, types, count);
            if (o == IR_OP_BitShift) ir_node_set(graph, node, IR_STRING("direction", t % 2 ? "LEFT" : "RIGHT"));
            if (o == IR_OP_Mod && ir_dtype_is_float(dtypes[t])) ir_node_set(graph, node, IR_INT("fmod", 1));
            checked += plan_and_check(graph, node, tolerance_of(dtypes[t]));
            ir_arena_destroy(arena);
        }
        if (checked == operators_before) fail_msg("%s is defined for no type", op->name);
    }
    assert_compare(checked, >, 200);
}

static void casts_match_between_all_types(void **state)
{
    (void)state;
    for (int from = 0; from < DTYPES; from++) {
        for (int to = 0; to < DTYPES; to++) {
            ir_arena *arena = ir_arena_create(0);
            ir_graph *graph = create_graph(arena);
            ir_node *node = make_node(graph, &ir_ops[IR_OP_Cast], &dtypes[from], 1);
            ir_node_set(graph, node, IR_INT("to", dtypes[to]));
            assert_true(plan_and_check(graph, node, 1e-9));
            ir_arena_destroy(arena);
        }
    }
}

static void powers_of_mixed_types_match(void **state)
{
    (void)state;
    static const mdot_dtype pairs[][2] = {{MDOT_DTYPE_F32, MDOT_DTYPE_I64},
                                          {MDOT_DTYPE_I32, MDOT_DTYPE_F32},
                                          {MDOT_DTYPE_I64, MDOT_DTYPE_I32},
                                          {MDOT_DTYPE_F64, MDOT_DTYPE_I32}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        ir_arena *arena = ir_arena_create(0);
        ir_graph *graph = create_graph(arena);
        assert_true(plan_and_check(graph, make_node(graph, &ir_ops[IR_OP_Pow], pairs[k], 2), 1e-9));
        ir_arena_destroy(arena);
    }
}

/* Returns the plan's result for one number. */
static double apply(ir_opcode opcode, double x, void (*attributes)(ir_graph *graph, ir_node *node))
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = ir_graph_create(arena, "one");
    ir_type type = {.dtype = MDOT_DTYPE_F64, .rank = 0};
    ir_value *input = ir_graph_add_input(graph, "x", &type);
    ir_node *node = ir_graph_add_node(graph, NULL, &ir_ops[opcode], "op", &input, 1, 1);
    mdot_error err = {0};
    pl_plan *plan;
    if (attributes) attributes(graph, node);
    ir_graph_add_output(graph, node->outputs[0]);
    if (ir_infer(graph, &err) || pl_build(graph, arena, &plan, &err)) fail_msg("%s", err.message);
    ir_wide *in = ir_wide_create(arena, MDOT_DTYPE_F64, 0, NULL), *out;
    in->f[0] = x;
    if (pl_interpret(plan, 0, (const ir_wide *[]){in}, arena, &out, &err)) fail_msg("%s", err.message);
    double result = out->f ? out->f[0] : (double)out->i[0];
    ir_arena_destroy(arena);
    return result;
}

static void composed_functions_are_accurate(void **state)
{
    (void)state;
    static const struct {
        ir_opcode opcode;
        double (*function)(double);
        double low, high;
    } rows[] = {{IR_OP_Asin, asin, -1, 1},     {IR_OP_Acos, acos, -1, 1},           {IR_OP_Atan, atan, -1e6, 1e6},
                {IR_OP_Atan, atan, -3, 3},     {IR_OP_Sinh, sinh, -20, 20},         {IR_OP_Sinh, sinh, -1e-9, 1e-9},
                {IR_OP_Cosh, cosh, -20, 20},   {IR_OP_Tan, tan, -1.5, 1.5},         {IR_OP_Asinh, asinh, -1e-9, 1e-9},
                {IR_OP_Asinh, asinh, -10, 10}, {IR_OP_Asinh, asinh, -1e300, 1e300}, {IR_OP_Acosh, acosh, 1, 1.001},
                {IR_OP_Acosh, acosh, 1, 1e6},  {IR_OP_Atanh, atanh, -1, 1},         {IR_OP_Atanh, atanh, -1e-9, 1e-9}};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (int k = 0; k <= 100; k++) {
            double x = rows[r].low + (rows[r].high - rows[r].low) * k / 100, want = rows[r].function(x);
            double got = apply(rows[r].opcode, x, NULL);
            if (!(got == want || fabs(got - want) <= 1e-12 * fabs(want)))
                fail_msg("%s(%.17g) is %.17g, wanted %.17g", ir_ops[rows[r].opcode].name, x, got, want);
        }
    }
}

static void functions_reach_their_limits(void **state)
{
    (void)state;
    assert_compare(apply(IR_OP_Softplus, 1000, NULL), ==, 1000);
    assert_compare(apply(IR_OP_Softplus, -1000, NULL), ==, 0);
    assert_compare(apply(IR_OP_Softplus, INFINITY, NULL), ==, INFINITY);
    assert_compare(apply(IR_OP_Elu, -1000, NULL), ==, -1);
    assert_compare(apply(IR_OP_Elu, 1000, NULL), ==, 1000);
    assert_compare(apply(IR_OP_Atan, INFINITY, NULL), ==, M_PI_2);
    assert_compare(apply(IR_OP_Sinh, -INFINITY, NULL), ==, -INFINITY);
    assert_compare(apply(IR_OP_Asinh, INFINITY, NULL), ==, INFINITY);
    assert_compare(apply(IR_OP_Atanh, 1, NULL), ==, INFINITY);
    assert_true(isnan(apply(IR_OP_Acosh, 0.5, NULL)));
    assert_true(isnan(apply(IR_OP_Asin, 2, NULL)));
    assert_true(isnan(apply(IR_OP_Relu, NAN, NULL)));
    assert_compare(apply(IR_OP_Round, 2.5, NULL), ==, 2);
    assert_compare(apply(IR_OP_Round, -1.5, NULL), ==, -2);
    assert_compare(apply(IR_OP_Swish, -INFINITY, NULL), !=, apply(IR_OP_Swish, 0, NULL)); /* -∞ · 0 is NaN */
}

static void only_positive(ir_graph *graph, ir_node *node) { ir_node_set(graph, node, IR_INT("detect_negative", 0)); }
static void only_negative(ir_graph *graph, ir_node *node) { ir_node_set(graph, node, IR_INT("detect_positive", 0)); }

static void infinities_are_distinguished(void **state)
{
    (void)state;
    assert_compare(apply(IR_OP_IsInf, INFINITY, NULL), ==, 1);
    assert_compare(apply(IR_OP_IsInf, -INFINITY, NULL), ==, 1);
    assert_compare(apply(IR_OP_IsInf, INFINITY, only_positive), ==, 1);
    assert_compare(apply(IR_OP_IsInf, -INFINITY, only_positive), ==, 0);
    assert_compare(apply(IR_OP_IsInf, INFINITY, only_negative), ==, 0);
    assert_compare(apply(IR_OP_IsInf, -INFINITY, only_negative), ==, 1);
    assert_compare(apply(IR_OP_IsNaN, NAN, NULL), ==, 1);
    assert_compare(apply(IR_OP_IsNaN, INFINITY, NULL), ==, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_matches_in_every_type), cmocka_unit_test(casts_match_between_all_types),
        cmocka_unit_test(powers_of_mixed_types_match),          cmocka_unit_test(composed_functions_are_accurate),
        cmocka_unit_test(functions_reach_their_limits),         cmocka_unit_test(infinities_are_distinguished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
