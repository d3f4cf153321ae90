/* test_fused_patterns.c — encoders in the patterns that exporters and people use. Each pattern becomes the expected
 * kernels and computes the same values as before. Written as ONNX and read again, it is the same. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "plan/kernel_kind.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "tests/support/encoder_patterns.h"
#include "tests/support/frontend_fixture.h"
#include "tests/support/graph_notation.h"
#include "tests/support/graph_onnx.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns for example "attention linear4 norm2": the kernel kinds, and the count if it is above one. */
static const char *kernels_of(const pl_plan *plan, ir_arena *arena)
{
    static const pl_kind order[] = {PL_ATTENTION, PL_LINEAR, PL_NEST, PL_NORM, PL_SEQUENTIAL};
    const char *text = "";
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        int count = 0;
        for (int i = 0; i < plan->kernel_count; i++) count += plan->kernels[i].kind == order[k];
        if (count == 0) continue;
        text = ir_arena_printf(arena, "%s%s%s", text, *text ? " " : "", pl_kind_name(order[k]));
        if (count > 1) text = ir_arena_printf(arena, "%s%d", text, count);
    }
    return text;
}

static const encoder_form small = {.width = 16, .heads = 2, .inner = 32, .layers = 1};

static ir_graph *graph_of(const encoder_pattern *s, const encoder_form *form, ir_arena *arena)
{
    char *notation = encoder_notation(s, form);
    ir_graph *graph = graph_from_notation(notation, 32, arena);
    free(notation);
    return graph;
}

static bool check(const encoder_pattern *s)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *before = graph_of(s, &small, arena), *after = ir_graph_clone(before, arena);
    mdot_error err;
    pl_plan *plan = NULL;
    print_message("%s\n", s->name); /* names the pattern if the comparison fails */
    if (ir_run_passes(after, NULL, &err) != MDOT_OK || pl_build(after, arena, &plan, &err) != MDOT_OK)
        fail_msg("%s: %s", s->name, err.message);
    assert_same_values(before, after, 1, 2e-6);
    assert_same_values(before, after, 7, 2e-6);
    assert_plan_agrees(before, plan, 11, 2e-6);
    const char *kernels = kernels_of(plan, arena);
    bool same = strcmp(kernels, s->kernels) == 0;
    if (!same) print_error("%s: \"%s\", not \"%s\"\n", s->name, kernels, s->kernels);
    ir_arena_destroy(arena);
    return same;
}

static void every_pattern_becomes_its_kernels(void **state)
{
    (void)state;
    int wrong = 0;
    for (int i = 0; i < encoder_pattern_count; i++) wrong += !check(&encoder_patterns[i]);
    assert_int_equal(wrong, 0);
}

static void patterns_survive_an_onnx_round_trip(void **state)
{
    (void)state;
    const encoder_form two_layers = {.width = 16, .heads = 2, .inner = 32, .layers = 2};
    for (int i = 0; i < encoder_pattern_count; i++) {
        ir_arena *arena = ir_arena_create(0);
        ir_graph *graph = graph_of(&encoder_patterns[i], &two_layers, arena);
        mdot_error err;
        print_message("%s\n", encoder_patterns[i].name);
        imported model = import_bytes(graph_to_onnx(graph), NULL, NULL);
        if (model.status != MDOT_OK) fail_msg("%s", model.err.message);
        model.graph->max_length = graph->max_length;
        if (ir_infer(graph, &err) != MDOT_OK || ir_infer(model.graph, &err) != MDOT_OK) fail_msg("%s", err.message);
        assert_same_values(graph, model.graph, 5, 1e-12);
        release(&model);
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_becomes_its_kernels),
        cmocka_unit_test(patterns_survive_an_onnx_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
