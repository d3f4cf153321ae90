/* test_precision.c — which kernels round and which buffers have 16 bits, and how the interpreter and the verifier
 * handle them. Golden plans are in tests/golden/plan/precision.txt. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops.h"
#include "plan/kernel_kind.h"
#include "plan/planner.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_interpreter.h"

enum { MAX_LENGTH = 16 };

static pl_plan *plan(const char *notation, ir_arena *arena)
{
    mdot_error err = {0};
    pl_plan *result;
    ir_graph *graph = graph_from_notation(notation, MAX_LENGTH, arena);
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (pl_build(graph, arena, &result, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (pl_verify(result, &err) != MDOT_OK) fail_msg("%s", err.message);
    return result;
}

static pl_kernel *kernel_of(pl_plan *p, pl_kind kind)
{
    for (int k = 0; k < p->kernel_count; k++)
        if (p->kernels[k].kind == kind) return &p->kernels[k];
    fail_msg("no such kernel");
    return NULL;
}

static pl_buffer *buffer_called(pl_plan *p, const char *name)
{
    for (int b = 0; b < p->buffer_count; b++)
        if (strcmp(p->buffers[b].name, name) == 0) return &p->buffers[b];
    fail_msg("no buffer %s", name);
    return NULL;
}

static bool linear_is_matrix(const char *rows)
{
    char text[256];
    ir_arena *arena = ir_arena_create(0);
    snprintf(text, sizeof text, "x = input f32[%s,4]\nw = weights f32[4,4]\ny = mdot.Linear(x, w)\nreturn y\n", rows);
    pl_plan *p = plan(text, arena);
    bool result = pl_is_matrix(p, kernel_of(p, PL_LINEAR));
    assert_int_equal(result, pl_is_half(buffer_called(p, "w")));
    ir_arena_destroy(arena);
    return result;
}

/* A rounded state would be carried from step to step. */
static void kernels_of_a_step_do_not_round(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan(
        "x = input f32[3,L,80]\nr = weights f32[20,80]\ny = mdot.Recurrence(x, r) {cell=\"LSTM\"}\nreturn y\n", arena);
    const pl_recurrence *steps = &kernel_of(p, PL_RECURRENCE)->recurrence;
    for (int k = 0; k < steps->kernel_count; k++) assert_false(pl_is_matrix(p, &steps->kernels[k]));
    ir_arena_destroy(arena);
}

static void linears_use_matrix_kernels_from_eight_rows_on(void **state)
{
    (void)state;
    assert_false(linear_is_matrix("1"));
    assert_false(linear_is_matrix("7"));
    assert_true(linear_is_matrix("8"));
    assert_true(linear_is_matrix("L"));
    assert_true(linear_is_matrix("3,L"));
}

/* Attention with so many channels in the heads of q and k, and of v. Linears produce the operands, so buffers hold
 * them. */
static bool attention_is_matrix(const char *batch, const char *rows, int heads, int dim, int value_dim)
{
    char text[1024];
    ir_arena *arena = ir_arena_create(0);
    snprintf(text, sizeof text,
             "x = input f32[%s,%s,8]\nwq = weights f32[8,%d]\nwk = weights f32[8,%d]\nwv = weights f32[8,%d]\n"
             "q = mdot.Linear(x, wq)\nk = mdot.Linear(x, wk)\nv = mdot.Linear(x, wv)\n"
             "y = Attention(q, k, v) {q_num_heads=%d, kv_num_heads=%d}\nreturn y\n",
             batch, rows, heads * dim, heads * dim, heads * value_dim, heads, heads);
    pl_plan *p = plan(text, arena);
    bool result = pl_is_matrix(p, kernel_of(p, PL_ATTENTION));
    assert_int_equal(result, pl_is_half(buffer_called(p, "q")));
    assert_int_equal(result, pl_is_half(buffer_called(p, "v")));
    ir_arena_destroy(arena);
    return result;
}

static void attention_over_the_length_uses_a_matrix_kernel(void **state)
{
    (void)state;
    assert_true(attention_is_matrix("1", "L", 2, 16, 16));
    assert_true(attention_is_matrix("1", "L", 2, 128, 128));
    assert_true(attention_is_matrix("1", "L", 1, 48, 32));
    assert_false(attention_is_matrix("1", "L", 2, 8, 16));
    assert_false(attention_is_matrix("1", "L", 2, 16, 8));
    assert_false(attention_is_matrix("1", "L", 2, 144, 128));
    assert_false(attention_is_matrix("1", "L", 2, 128, 144));
    assert_false(attention_is_matrix("1", "L", 1, 16, 48)); /* 48 = six channels per lane (unsupported) */
    assert_false(attention_is_matrix("2", "L", 2, 16, 16));
    assert_false(attention_is_matrix("L", "3", 2, 16, 16));
    assert_false(attention_is_matrix("1", "12", 2, 16, 16));
}

static void attention_to_caller_tensors_uses_no_matrix_kernel(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("q = input f32[1,L,32]\nk = input f32[1,L,32]\nv = input f32[1,L,32]\n"
                      "y = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\nreturn y\n",
                      arena);
    assert_false(pl_is_matrix(p, kernel_of(p, PL_ATTENTION)));
    ir_arena_destroy(arena);
}

static void attention_at_odd_addresses_uses_no_matrix_kernel(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[1,L,8]\nw = weights f32[8,96]\nqkv = mdot.Linear(x, w)\n"
                      "s = constant i64[3] [32, 32, 32]\nq, k, v = Split(qkv, s) {axis=-1}\n"
                      "y = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\nreturn y\n",
                      arena);
    pl_kernel *kernel = kernel_of(p, PL_ATTENTION);
    pl_heads *const heads[] = {&kernel->attention.q, &kernel->attention.k, &kernel->attention.v};
    assert_true(pl_is_matrix(p, kernel));
    for (int h = 0; h < 3; h++) {
        ir_dim *const distances[] = {&heads[h]->offset, &heads[h]->head_stride, &heads[h]->row_stride};
        for (int d = 0; d < 3; d++) {
            distances[d]->offset++;
            assert_false(pl_is_matrix(p, kernel));
            distances[d]->offset--;
        }
    }
    kernel->attention.out.offset.offset++; /* exceeds the row */
    assert_false(pl_is_matrix(p, kernel));
    kernel->attention.out.offset.offset--;
    kernel->attention.out.row_stride.offset *= 2; /* leaves gaps between rows */
    assert_false(pl_is_matrix(p, kernel));
    ir_arena_destroy(arena);
}

static void results_of_sequential_kernels_stay_in_32_bits(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan("x = input f32[L,32]\naxis = constant i64[] [1]\nc = CumSum(x, axis)\nw = weights f32[32,32]\n"
                      "y = mdot.Linear(c, w)\nreturn y\n",
                      arena);
    assert_int_equal(buffer_called(p, "c")->reads, PL_READ_WHOLE | PL_READ_HALF);
    buffer_called(p, "c")->reads = PL_READ_HALF;
    assert_int_equal(pl_verify(p, NULL), MDOT_MALFORMED);
    ir_arena_destroy(arena);
}

static const char layer[] = "x = input f32[1,L,32]\n"
                            "g = weights f32[32]\n"
                            "n1 = LayerNormalization(x, g) {axis=-1}\n"
                            "wqkv = weights f32[32,96]\n"
                            "bqkv = weights f32[96]\n"
                            "qkv = mdot.Linear(n1, wqkv, bqkv)\n"
                            "sizes = constant i64[3] [32, 32, 32]\n"
                            "q, k, v = Split(qkv, sizes) {axis=-1}\n"
                            "a = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                            "wo = weights f32[32,32]\n"
                            "o = mdot.Linear(a, wo)\n"
                            "h = Add(n1, o)\n"
                            "w1 = weights f32[32,16]\n"
                            "f1 = mdot.Linear(h, w1)\n"
                            "r = Relu(f1)\n"
                            "w2 = weights f32[16,32]\n"
                            "f2 = mdot.Linear(r, w2)\n"
                            "y = Add(h, f2)\n"
                            "return y\n";

static void a_buffer_with_wrong_usage_flags_is_refused(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan(layer, arena);
    for (int b = 0; b < p->buffer_count; b++) {
        unsigned noted = p->buffers[b].reads;
        for (unsigned bit = PL_READ_WHOLE; bit <= PL_READ_HALF; bit++) {
            mdot_error err = {0};
            if (!(noted & bit)) continue;
            p->buffers[b].reads = noted & ~bit;
            if (pl_verify(p, &err) != MDOT_MALFORMED) fail_msg("b%d without %u is accepted", b, bit);
            if (!strstr(err.message, bit == PL_READ_WHOLE ? "read in full precision" : "factor"))
                fail_msg("says: %s", err.message);
        }
        p->buffers[b].reads = noted;
    }
    assert_int_equal(pl_verify(p, NULL), MDOT_OK);
    ir_arena_destroy(arena);
}

static const ir_wide *interpret(const pl_plan *p, mdot_dtype half, const ir_wide *const *inputs, ir_arena *arena)
{
    mdot_error err = {0};
    ir_wide **out = IR_NEW_ARRAY(arena, ir_wide *, p->graph->output_count);
    assert_non_null(out);
    if (pl_interpret_in(p, half, 9, inputs, arena, out, &err) != MDOT_OK) fail_msg("%s", err.message);
    return out[0];
}

static double worst(const ir_wide *a, const ir_wide *b)
{
    double most = 0;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) most = fmax(most, fabs(a->f[i] - b->f[i]));
    return most;
}

static void the_error_of_16_bit_types_follows_their_precision(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan(layer, arena);
    const ir_wide *const *inputs = (const ir_wide *const *)random_inputs(p->graph, 9, 3, arena);
    const ir_wide *whole = interpret(p, MDOT_DTYPE_F32, inputs, arena);
    double largest = 0;
    for (int64_t i = 0; i < whole->count; i++) largest = fmax(largest, fabs(whole->f[i]));
    double bf16 = worst(interpret(p, MDOT_DTYPE_BF16, inputs, arena), whole) / largest;
    double f16 = worst(interpret(p, MDOT_DTYPE_F16, inputs, arena), whole) / largest;
    if (bf16 < 1e-3 || bf16 > 3e-2) fail_msg("bf16: %g", bf16);
    /* f16 has three more bits: an eighth of the error */
    if (f16 < 1e-4 || f16 > bf16 / 4) fail_msg("f16: %g, bf16: %g", f16, bf16);
    ir_arena_destroy(arena);
}

/* The reader rounds a factor, so the buffer's element type leaves the result unchanged. */
static void storing_a_factor_in_16_bits_keeps_the_result(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan(layer, arena);
    const ir_wide *const *inputs = (const ir_wide *const *)random_inputs(p->graph, 9, 3, arena);
    const ir_wide *kept = interpret(p, MDOT_DTYPE_BF16, inputs, arena);
    assert_true(pl_is_half(buffer_called(p, "a")));
    for (int b = 0; b < p->buffer_count; b++) p->buffers[b].reads |= PL_READ_WHOLE;
    assert_compare(worst(interpret(p, MDOT_DTYPE_BF16, inputs, arena), kept), ==, 0);
    ir_arena_destroy(arena);
}

/* In contrast, a sum stored in half precision would change the result. */
static void a_residual_is_never_rounded(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    pl_plan *p = plan(layer, arena);
    const ir_wide *const *inputs = (const ir_wide *const *)random_inputs(p->graph, 9, 3, arena);
    const ir_wide *right = interpret(p, MDOT_DTYPE_BF16, inputs, arena);
    pl_buffer *residual = buffer_called(p, "h");
    assert_int_equal(residual->reads, PL_READ_WHOLE | PL_READ_HALF);
    residual->reads = PL_READ_HALF;
    assert_compare(worst(interpret(p, MDOT_DTYPE_BF16, inputs, arena), right), >, 1e-4);
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linears_use_matrix_kernels_from_eight_rows_on),
        cmocka_unit_test(kernels_of_a_step_do_not_round),
        cmocka_unit_test(attention_over_the_length_uses_a_matrix_kernel),
        cmocka_unit_test(attention_to_caller_tensors_uses_no_matrix_kernel),
        cmocka_unit_test(attention_at_odd_addresses_uses_no_matrix_kernel),
        cmocka_unit_test(results_of_sequential_kernels_stay_in_32_bits),
        cmocka_unit_test(a_buffer_with_wrong_usage_flags_is_refused),
        cmocka_unit_test(the_error_of_16_bit_types_follows_their_precision),
        cmocka_unit_test(storing_a_factor_in_16_bits_keeps_the_result),
        cmocka_unit_test(a_residual_is_never_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
