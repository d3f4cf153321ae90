/* test_model_rounding.c — the errors that a model's own number types and quantised steps permit. */
#include "compiler/compiler.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include <math.h>

enum { POINTS = 4001 };
static const double STEP = 0.5, SPACING = 0x1p-8;

static ir_graph *typed_graph(const char *text, ir_arena *arena)
{
    bool changed;
    mdot_error err;
    ir_graph *graph = graph_from_notation(text, 16, arena);
    if (ir_run_pass(graph, "infer", &changed, &err) != MDOT_OK) fail_msg("%s", err.message);
    return graph;
}

static void only_narrow_models_may_round(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    double quantised;
    assert_compare(co_rounding(typed_graph("x = input f32[L]\ny = Exp(x)\nreturn y\n", arena), &quantised), ==, 0);
    assert_compare(quantised, ==, 0);
    double half = co_rounding(typed_graph("x = input f16[L]\ny = Exp(x)\nreturn y\n", arena), &quantised);
    double brain = co_rounding(typed_graph("x = input bf16[L]\ny = Exp(x)\nreturn y\n", arena), &quantised);
    assert_compare(half, >, 0);
    assert_compare(half, <, 1e-2);
    assert_compare(brain, ==, 8 * half);
    ir_arena_destroy(arena);
}

/* The output's step behind an operator whose operand was quantised in steps of STEP. */
static double step_behind(const char *operator, const char * attributes)
{
    char text[512];
    double steps[1];
    ir_arena *arena = ir_arena_create(0);
    snprintf(text, sizeof text,
             "x = input f32[1,4,%d]\ns = constant f32[] [%g]\nz = constant u8[] [128]\nq = QuantizeLinear(x, s, z)\n"
             "d = DequantizeLinear(q, s, z)\ny = %s(d)%s\nreturn y\n",
             POINTS, STEP, operator, attributes);
    assert_true(co_find_steps(typed_graph(text, arena), arena, steps));
    ir_arena_destroy(arena);
    return steps[0];
}

/* The greatest slope of an elementwise operator between -8 and 8. */
static double greatest_slope(const char *operator)
{
    char text[128];
    float points[POINTS];
    double greatest = 0;
    mdot_error err = {0};
    ir_wide *result[1];
    ir_arena *arena = ir_arena_create(0);
    for (int i = 0; i < POINTS; i++) points[i] = (float)(SPACING * (i - POINTS / 2));
    const ir_tensor tensor = {.dtype = MDOT_DTYPE_F32, .rank = 1, .dims = {POINTS}, .count = POINTS, .data = points};
    const ir_wide *input = ir_wide_from_tensor(arena, &tensor);
    snprintf(text, sizeof text, "x = input f32[%d]\ny = %s(x)\nreturn y\n", POINTS, operator);
    if (ir_evaluate(typed_graph(text, arena), &input, arena, result, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int i = 1; i < POINTS; i++) greatest = fmax(greatest, fabs(result[0]->f[i] - result[0]->f[i - 1]) / SPACING);
    ir_arena_destroy(arena);
    return greatest;
}

/* A step grows by the greatest slope of each operator that the table knows, and by little more. */
static void steps_grow_by_the_slope_of_an_operator(void **state)
{
    (void)state;
    static const char *const operators[] = {"Relu",
                                            "Neg",
                                            "Abs",
                                            "LeakyRelu",
                                            "Elu",
                                            "Celu",
                                            "Tanh",
                                            "Atan",
                                            "Softsign",
                                            "Erf",
                                            "Softplus",
                                            "HardSwish",
                                            "Sigmoid",
                                            "Gelu",
                                            "Mish",
                                            "Selu",
                                            "HardSigmoid",
                                            "com.microsoft.Gelu",
                                            "com.microsoft.FastGelu",
                                            "com.microsoft.QuickGelu"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        double slope = greatest_slope(operators[i]), stated = step_behind(operators[i], "") / STEP;
        if (!(slope <= stated * (1 + 1e-6) && slope >= 0.75 * stated))
            fail_msg("%s: slope %g, but the table has %g", operators[i], slope, stated);
    }
}

static void means_and_choices_keep_a_step(void **state)
{
    (void)state;
    assert_compare(step_behind("MaxPool", " {kernel_shape=[3]}"), ==, STEP);
    assert_compare(step_behind("AveragePool", " {kernel_shape=[3]}"), ==, STEP);
    assert_compare(step_behind("Identity", ""), ==, STEP);
    assert_compare(step_behind("Exp", ""), ==, 0); /* no greatest slope */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_narrow_models_may_round),
        cmocka_unit_test(steps_grow_by_the_slope_of_an_operator),
        cmocka_unit_test(means_and_choices_keep_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
