/* plan_oracle.c — compares plans with the reference evaluation (see plan_oracle.h). */
#include "tests/support/plan_oracle.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "ir/ops.h"
#include "plan/planner.h"
#include "tests/support/graph_notation.h"
#include "tests/support/plan_interpreter.h"

static bool agree(double got, double want, double relative, double absolute)
{
    if (isnan(want)) return isnan(got);
    return got == want || fabs(got - want) <= absolute + relative * fabs(want);
}

static void compare(int output, const ir_wide *got, const ir_wide *want, double relative, double absolute)
{
    assert_int_equal(got->dtype, want->dtype);
    assert_int_equal(got->count, want->count);
    for (int64_t k = 0; k < want->count; k++) {
        if (want->f && !agree(got->f[k], want->f[k], relative, absolute))
            fail_msg("output %d element %" PRId64 ": %.9g, wanted %.9g", output, k, got->f[k], want->f[k]);
        if (want->i && got->i[k] != want->i[k])
            fail_msg("output %d element %" PRId64 ": %" PRId64 ", wanted %" PRId64, output, k, got->i[k], want->i[k]);
    }
}

void assert_plan_computes(const pl_plan *plan, int64_t length, const ir_wide *const *inputs,
                          const ir_wide *const *outputs, double relative, double absolute)
{
    mdot_error err = {0};
    int count = plan->graph->output_count;
    ir_arena *arena = ir_arena_create(0);
    ir_wide **got = IR_NEW_ARRAY(arena, ir_wide *, count + 1);
    assert_non_null(got);
    if (pl_verify(plan, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (pl_interpret(plan, length, inputs, arena, got, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int k = 0; k < count; k++) compare(k, got[k], outputs[k], relative, absolute);
    ir_arena_destroy(arena);
}

void assert_plan_agrees(const ir_graph *graph, const pl_plan *plan, int64_t length, double tolerance)
{
    mdot_error err = {0};
    ir_arena *arena = ir_arena_create(0);
    const ir_wide *const *inputs = (const ir_wide *const *)random_inputs(graph, length, 7, arena);
    ir_wide **wanted = IR_NEW_ARRAY(arena, ir_wide *, graph->output_count + 1);
    assert_non_null(wanted);
    if (ir_evaluate(graph, inputs, arena, wanted, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_plan_computes(plan, length, inputs, (const ir_wide *const *)wanted, tolerance, tolerance);
    ir_arena_destroy(arena);
}
