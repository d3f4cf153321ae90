/* test_plan_build.c — graphs refused by planning, kernel names, odd shapes, and allocation failures at every point. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops.h"
#include "plan/planner.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_interpreter.h"
#include "tests/support/plan_oracle.h"

enum { MAX_LENGTH = 16 };

static const char encoder[] = "x = input f32[1,L,8]\n"
                              "m = input bool[1,L]\n"
                              "i = input i64[1,L]\n"
                              "table = weights f32[5,8]\n"
                              "e = Gather(table, i)\n"
                              "g = weights f32[8]\n"
                              "n = LayerNormalization(x, g) {axis=-1}\n"
                              "w = weights f32[8,24]\n"
                              "p = mdot.Linear(n, w)\n"
                              "sizes = constant i64[3] [8, 8, 8]\n"
                              "q, k, v = Split(p, sizes) {axis=-1}\n"
                              "a = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                              "wo = weights f32[8,8]\n"
                              "o = mdot.Linear(a, wo)\n"
                              "s = Add(o, e)\n"
                              "t = Concat(s, x) {axis=0}\n"
                              "f = Cast(m) {to=1}\n"
                              "axes = constant i64[1] [1]\n"
                              "r = ReduceLogSumExp(t, axes) {keepdims=0}\n"
                              "c = ReduceSum(f, axes)\n"
                              "d = Div(r, c)\n"
                              "axis = constant i64[] [1]\n"
                              "y = CumSum(d, axis)\n"
                              "return y, s\n";

static ir_graph *infer(const char *notation, ir_arena *arena)
{
    mdot_error err = {0};
    ir_graph *graph = graph_from_notation(notation, MAX_LENGTH, arena);
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    return graph;
}

static pl_plan *plan(const char *notation, ir_arena *arena)
{
    mdot_error err = {0};
    pl_plan *result;
    ir_graph *graph = infer(notation, arena);
    if (pl_build(graph, arena, &result, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int64_t length = 1; length <= MAX_LENGTH; length += 5) assert_plan_agrees(graph, result, length, 1e-6);
    return result;
}

static void assert_refused(const char *notation, const char *node, const char *reason)
{
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    pl_plan *untouched = NULL;
    ir_graph *graph = infer(notation, arena);
    assert_int_equal(pl_build(graph, arena, &untouched, &err), MDOT_UNSUPPORTED);
    assert_null(untouched);
    if (!strstr(err.message, node) || !strstr(err.message, reason)) fail_msg("says: %s", err.message);
    ir_arena_destroy(arena);
}

/* Dimensions that stay adjacent in a transpose are one loop, because a short inner loop would give short vectors. */
static void adjacent_dimensions_of_transposes_are_one_loop(void **state)
{
    (void)state;
    for (int code = 0; code < 256; code++) {
        int p[] = {code / 64, code / 16 % 4, code / 4 % 4, code % 4}, loops = 1;
        if ((1 << p[0] | 1 << p[1] | 1 << p[2] | 1 << p[3]) != 15) continue;
        for (int i = 1; i < 4; i++) loops += p[i] != p[i - 1] + 1;
        char notation[256];
        snprintf(notation, sizeof notation,
                 "x = input f32[L,3,4,5]\nt = Transpose(x) {perm=[%d, %d, %d, %d]}\ny = Neg(t)\nreturn y\n", p[0], p[1],
                 p[2], p[3]);
        ir_arena *arena = ir_arena_create(0);
        const pl_plan *made = plan(notation, arena);
        assert_int_equal(made->kernel_count, 1);
        if (made->kernels[0].nest.loop_count != loops)
            fail_msg("%d loops instead of %d: %s", made->kernels[0].nest.loop_count, loops, notation);
        ir_arena_destroy(arena);
    }
}

static void operators_without_a_kernel_are_refused_by_name(void **state)
{
    (void)state;
    assert_refused("x = input f32[2,3]\nw = weights f32[3,4]\nlate = Gemm(x, w)\nreturn late\n", "late", "no kernel");
}

static void further_results_of_a_norm_are_refused(void **state)
{
    (void)state;
    assert_refused("x = input f32[2,4]\ng = weights f32[4]\ny, mean = LayerNormalization(x, g)\nreturn y, mean\n", "y",
                   "only its first output");
}

static void attention_beyond_its_kernel_is_refused(void **state)
{
    (void)state;
    assert_refused("q = input f32[1,2,8]\nk = input f32[1,L,8]\n"
                   "y = Attention(q, k, k) {q_num_heads=2, kv_num_heads=2, is_causal=1}\nreturn y\n",
                   "y", "causal");
    assert_refused("q = input f32[1,L,8]\n"
                   "y = Attention(q, q, q) {q_num_heads=2, kv_num_heads=2, left_window_size=2}\nreturn y\n",
                   "y", "window");
    assert_refused("q = input f32[1,L,8]\nm = input bool[L,L]\n"
                   "y = Attention(q, q, q, m) {q_num_heads=2, kv_num_heads=2}\nreturn y\n",
                   "y", "mask");
    assert_refused("q = input f64[1,L,8]\ny = Attention(q, q, q) {q_num_heads=2, kv_num_heads=2}\nreturn y\n", "y",
                   "f32");
}

static int kernels_of_kind(const pl_plan *p, pl_kind kind)
{
    int count = 0;
    for (int k = 0; k < p->kernel_count; k++) count += p->kernels[k].kind == kind;
    return count;
}

/* Relative position biases as in T5 and ALiBi, and a mask with several samples over queries and keys. */
static void masks_are_copied_once_for_all_layers(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[3,L,8]\nm = input f32[3,2,L,L]\n"
                      "y = Attention(x, x, x, m) {q_num_heads=2, kv_num_heads=2}\n"
                      "z = Attention(y, y, y, m) {q_num_heads=2, kv_num_heads=2}\nreturn z\n",
                      arena);
    assert_int_equal(kernels_of_kind(p, PL_ATTENTION), 2);
    assert_int_equal(kernels_of_kind(p, PL_NEST), 1);
    ir_arena_destroy(arena);
}

static void masks_that_are_also_outputs_are_unchanged(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    plan("x = input f32[1,L,8]\nb = input f32[2,L,L]\nm = Neg(b)\n"
         "y = Attention(x, x, x, m) {q_num_heads=2, kv_num_heads=2}\nreturn y, m\n",
         arena);
    ir_arena_destroy(arena);
}

static void names_are_identifiers_and_unique(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = ir_graph_create(arena, "names");
    static const char *const names[] = {"/layers.0/f1/Exp", "/layers.0/f1/Exp", "plain", "Exp→/odd name", "/a/b/"};
    static const char *const expected[] = {"nest.layers_0_f1", "nest.layers_0_f1_2", "nest.plain", "nest.Exp___",
                                           "nest.a_b"};
    ir_type type = {.dtype = MDOT_DTYPE_F32, .rank = 1, .dim = {{.offset = 4}}};
    ir_value *x = ir_graph_add_input(graph, "x", &type);
    for (int k = 0; k < 5; k++) {
        ir_node *node = ir_graph_add_node(graph, NULL, &ir_ops[IR_OP_Exp], names[k], &x, 1, 1);
        ir_graph_add_output(graph, node->outputs[0]);
    }
    mdot_error err = {0};
    pl_plan *result;
    assert_int_equal(ir_infer(graph, &err), MDOT_OK);
    assert_int_equal(pl_build(graph, arena, &result, &err), MDOT_OK);
    assert_int_equal(result->kernel_count, 5);
    for (int k = 0; k < 5; k++) assert_string_equal(result->kernels[k].name, expected[k]);
    ir_arena_destroy(arena);
}

static void cost_is_counted_at_full_length(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[L,4]\nw = weights f32[4,6]\ny = mdot.Linear(x, w)\nreturn y\n", arena);
    assert_compare(p->flops, ==, 2.0 * MAX_LENGTH * 4 * 6);
    assert_compare(p->kernels[0].flops, ==, p->flops);
    ir_arena_destroy(arena);
}

/* As a copy, as a view, behind attention and among reduction axes. */
static void axes_may_count_from_the_end(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "x = input f32[2,L,8]\nr = Relu(x)\ny = Transpose(r) {perm=[0, -1, 1]}\nreturn y\n",
        "x = input f32[2,L,8]\nr = Relu(x)\ny = Transpose(r) {perm=[-3, -1, -2]}\nz = Exp(y)\nreturn z\n",
        "x = input f32[2,L,8]\nw = weights f32[8,4]\nt = Transpose(x) {perm=[-2, 0, 2]}\n"
        "y = mdot.Linear(t, w)\nreturn y\n",
        "q = input f32[1,2,L,4]\nk = input f32[1,2,L,4]\nv = input f32[1,2,L,4]\n"
        "a = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\ny = Transpose(a) {perm=[0, -2, 1, -1]}\nreturn y\n",
    };
    ir_arena *arena = ir_arena_create(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) plan(cases[i], arena);
    ir_arena_destroy(arena);
}

static void scalars_need_no_loops(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[]\ny = Exp(x)\nreturn y\n", arena);
    assert_int_equal(p->max_length, MAX_LENGTH);
    assert_int_equal(p->kernels[0].nest.loop_count, 0);
    ir_arena_destroy(arena);
}

static void kernels_without_elements_are_dropped(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[0,4]\ny = Exp(x)\nw = weights f32[4,3]\nz = mdot.Linear(y, w)\nreturn z\n", arena);
    assert_int_equal(p->kernel_count, 0);
    p = plan("x = input f32[2,0]\naxes = constant i64[1] [1]\ny = ReduceSum(x, axes)\nreturn y\n", arena);
    assert_int_equal(p->kernel_count, 1); /* sums over empty rows are zeros */
    ir_arena_destroy(arena);
}

static void constants_are_stored_once_per_use(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[L,8]\nw = weights f32[8,8]\na = mdot.Linear(x, w)\nb = mdot.Linear(a, w)\n"
                      "c = input f32[8,8]\nd = Add(w, c)\nreturn b, d\n",
                      arena);
    int matrices = 0, elements = 0;
    for (int k = 0; k < p->buffer_count; k++) {
        if (p->buffers[k].kind != PL_WEIGHT) continue;
        if (p->buffers[k].use == PL_MATRIX)
            matrices++;
        else
            elements++;
    }
    assert_int_equal(matrices, 1);
    assert_int_equal(elements, 1);
    ir_arena_destroy(arena);
}

/* ---- Bounds ------------------------------------------------------------------------------------------------------ */

/* Returns the kernel count for `before`, which defines v0, followed by a chain of `count` operators. */
static int kernels_of_row(const char *before, int count)
{
    char text[8192];
    ir_arena *arena = ir_arena_create(0);
    size_t length = (size_t)snprintf(text, sizeof text, "%s", before);
    for (int k = 1; k <= count; k++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length, "v%d = %s(v%d)\n", k, k % 2 ? "Abs" : "Neg", k - 1);
    snprintf(text + length, sizeof text - length, "return v%d\n", count);
    int kernels = plan(text, arena)->kernel_count;
    ir_arena_destroy(arena);
    return kernels;
}

/* PL_MAX_DEPTH links after a root, or so many inlined values in an expression: the recursion stays shallow. */
static void fusion_stops_at_the_depth_limit(void **state)
{
    (void)state;
    const char before[] = "x = input f32[L,4]\nw = weights f32[4,4]\nv0 = mdot.Linear(x, w)\n";
    assert_int_equal(kernels_of_row(before, 64), 1);
    assert_int_equal(kernels_of_row(before, 65), 2);
}

static void expressions_stop_at_the_depth_limit(void **state)
{
    (void)state;
    const char before[] = "v0 = input f32[L,4]\n";
    assert_int_equal(kernels_of_row(before, 65), 1); /* the last result is stored rather than inlined */
    assert_int_equal(kernels_of_row(before, 66), 2);
}

/* Each allocation fails in turn. The failure is reported, and the output stays as it is. */
static void exhausted_memory_is_reported(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = infer(encoder, arena);
    mdot_status status = MDOT_OUT_OF_MEMORY;
    int failures = 0;
    for (size_t limit = 64; status == MDOT_OUT_OF_MEMORY; limit += 192) {
        ir_arena *tight = ir_arena_create(limit);
        mdot_error err = {0};
        pl_plan *result = NULL;
        assert_non_null(tight);
        status = pl_build(graph, tight, &result, &err);
        if (status == MDOT_OUT_OF_MEMORY) {
            assert_null(result);
            assert_int_equal(err.status, MDOT_OUT_OF_MEMORY);
            failures++;
        }
        ir_arena_destroy(tight);
    }
    assert_int_equal(status, MDOT_OK);
    assert_compare(failures, >, 50);
    ir_arena_destroy(arena);
}

/* ---- Verification ------------------------------------------------------------------------------------------------ */

static pl_kernel *kernel_of(pl_plan *p, pl_kind kind)
{
    for (int k = 0; k < p->kernel_count; k++)
        if (p->kernels[k].kind == kind) return &p->kernels[k];
    fail_msg("no such kernel");
    return NULL;
}

static void assert_rejects(const pl_plan *p, const char *reason)
{
    mdot_error err = {0};
    if (pl_verify(p, &err) != MDOT_MALFORMED) fail_msg("accepts what should fail with: %s", reason);
    if (!strstr(err.message, reason)) fail_msg("says: %s", err.message);
}

static void the_verifier_rejects_invalid_plans(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan(encoder, arena);
    pl_linear *linear = &kernel_of(p, PL_LINEAR)->linear;
    pl_nest *nest = &kernel_of(p, PL_NEST)->nest;
    pl_norm *norm = &kernel_of(p, PL_NORM)->norm;
    pl_attention *attention = &kernel_of(p, PL_ATTENTION)->attention;
    const pl_linear good_linear = *linear;
    const pl_nest good_nest = *nest;

    linear->a.buffer = p->buffer_count;
    assert_rejects(p, "the buffer does not exist");
    *linear = good_linear;
    linear->out.row_stride.offset++;
    assert_rejects(p, "exceeds its buffer");
    *linear = good_linear;
    linear->weight = norm->gamma;
    assert_rejects(p, "");
    *linear = good_linear;
    linear->epilogue = pl_index(arena, 2);
    assert_rejects(p, "undefined loop");
    *linear = good_linear;

    nest->store[0].index = pl_binary(arena, PL_ADD, nest->store[0].index, pl_const_i(arena, MDOT_DTYPE_I64, 1000));
    assert_rejects(p, "is outside of its buffer");
    *nest = good_nest;
    nest->store[0].value = pl_const_i(arena, MDOT_DTYPE_U8, 1);
    assert_rejects(p, "differs from that of its buffer");
    *nest = good_nest;
    nest->store[0].buffer = 0;
    assert_rejects(p, "read-only buffer");
    *nest = good_nest;
    nest->reducer = nest->reducer == PL_REDUCE_NONE ? PL_REDUCE_SUM : PL_REDUCE_NONE;
    assert_rejects(p, "do not match");
    *nest = good_nest;

    norm->input = pl_acc(arena, 0, MDOT_DTYPE_F32);
    assert_rejects(p, "undefined accumulator");
    norm->input = pl_const_f(arena, MDOT_DTYPE_F32, 0);
    attention->kv_heads = 3;
    assert_rejects(p, "heads");
    attention->kv_heads = 2;

    assert_int_equal(pl_verify(p, NULL), MDOT_OK);
    for (int k = 0; k < p->buffer_count; k++) p->buffers[k].offset_bytes = 0;
    assert_rejects(p, "overlap");
    ir_arena_destroy(arena);
}

static void the_verifier_rejects_windows_outside_of_their_array(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[L,9,6]\nw = mdot.Windows(x) {axis=1, size=2, dilation=3}\nshape = constant i64[2] "
                      "[-1, 12]\nf = weights f32[12,4]\nr = Reshape(w, shape)\ny = mdot.Linear(r, f)\nreturn y\n",
                      arena);
    pl_linear *linear = &kernel_of(p, PL_LINEAR)->linear;
    const pl_linear good = *linear;
    pl_windows windows = *linear->windows;
    linear->windows = &windows;
    assert_int_equal(pl_verify(p, NULL), MDOT_OK);

    linear->a.offset.offset = 1;
    assert_rejects(p, "a window exceeds its buffer");
    linear->a.offset.offset = -1;
    assert_rejects(p, "a window exceeds its buffer");
    linear->a = good.a;
    windows.columns.stride[0].offset++;
    assert_rejects(p, "a window exceeds its buffer");
    windows = *good.windows;
    windows.rows.stride[1].offset = -6;
    assert_rejects(p, "a window exceeds its buffer");
    windows = *good.windows;
    windows.rows.extent[0].offset--;
    assert_rejects(p, "other rows or columns");
    windows = *good.windows;
    windows.columns.extent[0].offset--;
    assert_rejects(p, "other rows or columns");
    windows = *good.windows;
    windows.columns.stride[1].offset = 2;
    assert_rejects(p, "");
    windows = *good.windows;
    linear->a.buffer = p->buffer_count;
    assert_rejects(p, "the buffer does not exist");
    ir_arena_destroy(arena);
}

static void the_interpreter_names_out_of_bounds_accesses(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[L,4]\ny = Exp(x)\nreturn y\n", arena);
    ir_wide *const *inputs = random_inputs(p->graph, 3, 1, arena), *out;
    pl_store *store = &kernel_of(p, PL_NEST)->nest.store[0];
    store->index = pl_binary(arena, PL_ADD, store->index, pl_const_i(arena, MDOT_DTYPE_I64, 1));
    mdot_error err = {0};
    assert_int_equal(pl_interpret(p, 3, (const ir_wide *const *)inputs, arena, &out, &err), MDOT_OUT_OF_RANGE);
    assert_non_null(strstr(err.message, "nest.y"));
    assert_non_null(strstr(err.message, "[12]"));
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adjacent_dimensions_of_transposes_are_one_loop),
        cmocka_unit_test(operators_without_a_kernel_are_refused_by_name),
        cmocka_unit_test(further_results_of_a_norm_are_refused),
        cmocka_unit_test(attention_beyond_its_kernel_is_refused),
        cmocka_unit_test(masks_are_copied_once_for_all_layers),
        cmocka_unit_test(masks_that_are_also_outputs_are_unchanged),
        cmocka_unit_test(names_are_identifiers_and_unique),
        cmocka_unit_test(cost_is_counted_at_full_length),
        cmocka_unit_test(axes_may_count_from_the_end),
        cmocka_unit_test(scalars_need_no_loops),
        cmocka_unit_test(kernels_without_elements_are_dropped),
        cmocka_unit_test(constants_are_stored_once_per_use),
        cmocka_unit_test(fusion_stops_at_the_depth_limit),
        cmocka_unit_test(expressions_stop_at_the_depth_limit),
        cmocka_unit_test(exhausted_memory_is_reported),
        cmocka_unit_test(the_verifier_rejects_invalid_plans),
        cmocka_unit_test(the_verifier_rejects_windows_outside_of_their_array),
        cmocka_unit_test(the_interpreter_names_out_of_bounds_accesses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
