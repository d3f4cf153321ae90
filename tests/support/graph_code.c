#include "tests/support/graph_code.h"
#include "tests/support/assertions.h"

#include "ir/ops.h"
#include "ir/passes.h"
#include "plan/kernel_kind.h"
#include "plan/planner.h"
#include "tests/support/cg_harness.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

enum { MAX_TENSORS = 8 };

static pl_plan *plan_of(const ir_graph *graph, ir_arena *arena)
{
    ir_graph *optimised = ir_graph_clone(graph, arena);
    mdot_error err = {0};
    pl_plan *plan = NULL;
    if (ir_run_passes(optimised, NULL, &err) != MDOT_OK || ir_check_supported(optimised, &err) != MDOT_OK ||
        pl_build(optimised, arena, &plan, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return plan;
}

pl_plan *graph_plan(const char *notation, int64_t max_length, ir_arena *arena)
{
    mdot_error err = {0};
    ir_graph *graph = graph_from_notation(notation, max_length, arena);
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    return plan_of(graph, arena);
}

static double element(const ir_wide *like, const void *data, int64_t at)
{
    ir_tensor tensor = {.dtype = like->dtype, .rank = 1, .dims = {like->count}, .count = like->count, .data = data};
    return like->f != NULL ? ir_tensor_real(&tensor, at) : (double)ir_tensor_integer(&tensor, at);
}

static void compare(const ir_wide *wanted, const void *got, const char *target, int output, int64_t length,
                    double tolerance)
{
    for (int64_t i = 0; i < wanted->count; i++) {
        double want = ir_wide_get(wanted, i), have = element(wanted, got, i);
        bool is_close = !isinf(want) && fabs(have - want) <= tolerance * fmax(1, fabs(want));
        if (want != have && !is_close && !(isnan(want) && isnan(have)))
            fail_msg("%s, length %d: output %d element %d is %g, not %g", target, (int)length, output, (int)i, have,
                     want);
    }
}

static void run(const ir_graph *graph, mdot_dtype rounding, const harness_plan *code, const cg_cpu_target *target,
                int64_t length)
{
    ir_arena *arena = ir_arena_create(0);
    ir_wide **wide = random_inputs(graph, length, 5, arena), *wanted[MAX_TENSORS];
    const void *inputs[MAX_TENSORS];
    void *outputs[MAX_TENSORS];
    mdot_error err = {0};
    if (ir_evaluate_in(graph, rounding, (const ir_wide *const *)wide, arena, wanted, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < graph->input_count; i++) inputs[i] = ir_tensor_from_wide(arena, wide[i])->data;
    for (int o = 0; o < graph->output_count; o++)
        outputs[o] = ir_arena_alloc(arena, (size_t)wanted[o]->count + 1, mdot_dtype_size_bytes(wanted[o]->dtype));
    harness_call_plan(code, inputs, outputs, length);
    for (int o = 0; o < graph->output_count; o++)
        compare(wanted[o], outputs[o], target->name, o, length, target->kernel_precision == CG_FP32 ? 2e-5 : 4e-2);
    ir_arena_destroy(arena);
}

static void check(const char *notation, const int64_t *lengths, mdot_dtype rounding, bool everywhere)
{
    int targets, count = 0;
    const cg_cpu_target *const *target = harness_targets(&targets);
    ir_arena *arena = ir_arena_create(0);
    while (lengths[count] > 0) count++;
    ir_graph *graph = graph_from_notation(notation, lengths[count - 1], arena);
    graph->min_length = lengths[0];
    mdot_error err = {0};
    assert_compare(graph->input_count, <=, MAX_TENSORS);
    assert_compare(graph->output_count, <=, MAX_TENSORS);
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    pl_plan *plan = plan_of(graph, arena);
    for (int l = 0; l < count && rounding == MDOT_DTYPE_NONE; l++) assert_plan_agrees(graph, plan, lengths[l], 2e-5);
    for (int t = 0; t < targets; t++) {
        harness_plan code;
        if (target[t]->kernel_precision != CG_FP32 && !everywhere) continue;
        harness_load_plan_for(&code, plan, target[t]);
        for (int l = 0; l < count; l++) run(graph, rounding, &code, target[t], lengths[l]);
        harness_unload_plan(&code);
    }
    ir_arena_destroy(arena);
}

void assert_code_agrees(const char *notation, const int64_t *lengths)
{
    check(notation, lengths, MDOT_DTYPE_NONE, false);
}

void assert_code_agrees_everywhere(const char *notation, const int64_t *lengths)
{
    check(notation, lengths, MDOT_DTYPE_NONE, true);
}

void assert_code_agrees_in_f32(const char *notation, const int64_t *lengths)
{
    check(notation, lengths, MDOT_DTYPE_F32, false);
}

void assert_kernels(const char *notation, const char *kinds)
{
    static const pl_kind order[] = {PL_ATTENTION, PL_LINEAR, PL_NEST, PL_NORM, PL_RECURRENCE, PL_SEQUENTIAL, PL_TREES};
    ir_arena *arena = ir_arena_create(0);
    const pl_plan *plan = graph_plan(notation, 64, arena);
    char *text = ir_arena_strndup(arena, "", 0);
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        int count = 0;
        for (int i = 0; i < plan->kernel_count; i++) count += plan->kernels[i].kind == order[k];
        if (count == 0) continue;
        text = ir_arena_printf(arena, "%s%s%s", text, *text ? " " : "", pl_kind_name(order[k]));
        if (count > 1) text = ir_arena_printf(arena, "%s%d", text, count);
    }
    assert_string_equal(text, kinds);
    ir_arena_destroy(arena);
}

void assert_refused(const char *notation, const char *reason)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(notation, 64, arena);
    mdot_error err = {0};
    pl_plan *plan = NULL;
    mdot_status status = ir_run_passes(graph, NULL, &err);
    if (status == MDOT_OK) status = ir_check_supported(graph, &err);
    if (status == MDOT_OK) status = pl_build(graph, arena, &plan, &err);
    assert_int_equal(status, MDOT_UNSUPPORTED);
    if (strstr(err.message, reason) == NULL) fail_msg("\"%s\" says nothing of \"%s\"", err.message, reason);
    ir_arena_destroy(arena);
}
