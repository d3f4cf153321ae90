/* test_evaluate.c — the reference evaluation on whole graphs. */
#include "ir/ops.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

typedef struct fixture {
    ir_arena *arena;
    ir_graph *graph;
    mdot_error err;
} fixture;

static fixture parse(const char *text)
{
    fixture f = {.arena = ir_arena_create(0)};
    if (ir_graph_parse(text, NULL, f.arena, &f.graph, &f.err) != MDOT_OK) fail_msg("%s", f.err.message);
    return f;
}

static ir_wide *floats(fixture *f, int64_t count, const double *values)
{
    ir_wide *wide = ir_wide_create(f->arena, MDOT_DTYPE_F32, 1, &count);
    memcpy(wide->f, values, (size_t)count * sizeof *values);
    return wide;
}

static void expect_floats(const ir_wide *got, int64_t count, const double *want)
{
    assert_int_equal(got->count, count);
    for (int64_t i = 0; i < count; i++) assert_float_equal(got->f[i], want[i], 0);
}

static void values_that_are_read_twice_live_until_the_last_reader(void **state)
{
    (void)state;
    fixture f = parse("graph \"g\" {\n"
                      "%0 \"x\" : f32[2] = input\n"
                      "%1 \"a\" : ?[*] = Neg(%0)\n"
                      "%2 \"b\" : ?[*] = Mul(%1, %1)\n"
                      "%3 \"c\" : ?[*] = Add(%1, %2)\n"
                      "%4 \"d\" : ?[*] = Neg(%3)\n"
                      "%5 \"e\" : ?[*] = Add(%4, %1)\n"
                      "return %5\n"
                      "}\n");
    ir_wide *out = NULL;
    const ir_wide *in[] = {floats(&f, 2, (const double[]){2, -3})};
    assert_int_equal(ir_evaluate(f.graph, in, f.arena, &out, &f.err), MDOT_OK);
    expect_floats(out, 2, (const double[]){-4, -9});
    ir_arena_destroy(f.arena);
}

static void outputs_may_be_inputs_constants_or_repeated(void **state)
{
    (void)state;
    fixture f = parse("graph \"g\" {\n"
                      "%0 \"x\" : f32[2] = input\n"
                      "%1 \"k\" : f32[1] = constant [7]\n"
                      "%2 \"n\" : ?[*] = Neg(%0)\n"
                      "return %0, %1, %2, %2\n"
                      "}\n");
    ir_wide *out[4] = {0};
    ir_wide *x = floats(&f, 2, (const double[]){1, 2});
    assert_int_equal(ir_evaluate(f.graph, (const ir_wide *const[]){x}, f.arena, out, &f.err), MDOT_OK);
    expect_floats(out[0], 2, (const double[]){1, 2});
    expect_floats(out[1], 1, (const double[]){7});
    expect_floats(out[2], 2, (const double[]){-1, -2});
    expect_floats(out[3], 2, (const double[]){-1, -2});
    assert_ptr_not_equal(out[0]->f, x->f);
    assert_ptr_not_equal(out[2]->f, out[3]->f);
    ir_arena_destroy(f.arena);
}

static void unused_outputs_and_nodes_are_accepted(void **state)
{
    (void)state;
    fixture f = parse("graph \"g\" {\n"
                      "%0 \"x\" : f32[4] = input\n"
                      "%1 \"a\" : ?[*], %2 \"b\" : ?[*] = Split(%0) {num_outputs=2}\n"
                      "%3 \"unused\" : ?[*] = Neg(%0)\n"
                      "%4 \"y\" : ?[*], _ = Dropout(%2)\n"
                      "return %4\n"
                      "}\n");
    ir_wide *out = NULL;
    const ir_wide *in[] = {floats(&f, 4, (const double[]){1, 2, 3, 4})};
    assert_int_equal(ir_evaluate(f.graph, in, f.arena, &out, &f.err), MDOT_OK);
    expect_floats(out, 2, (const double[]){3, 4});
    ir_arena_destroy(f.arena);
}

static void shapes_follow_the_data(void **state)
{
    (void)state;
    fixture f = parse("graph \"g\" {\n"
                      "length \"N\" <= 8\n"
                      "%0 \"x\" : f32[L] = input\n"
                      "%1 \"s\" : ?[*] = Shape(%0)\n"
                      "%2 \"n\" : ?[*] = Cast(%1) {to=1}\n"
                      "%3 \"y\" : ?[*] = Mul(%0, %2)\n"
                      "return %3\n"
                      "}\n");
    ir_wide *out = NULL;
    const ir_wide *in[] = {floats(&f, 3, (const double[]){1, 2, 3})};
    assert_int_equal(ir_evaluate(f.graph, in, f.arena, &out, &f.err), MDOT_OK);
    expect_floats(out, 3, (const double[]){3, 6, 9});
    ir_arena_destroy(f.arena);
}

/* Evaluation fails with this status and text, and the results stay as they are. */
static void expect_failure(const char *text, const ir_wide *in, mdot_status status, const char *want)
{
    fixture f = parse(text);
    ir_wide *const untouched = (ir_wide *)(uintptr_t)16;
    ir_wide *out = untouched;
    assert_int_equal(ir_evaluate(f.graph, &in, f.arena, &out, &f.err), status);
    assert_ptr_equal(out, untouched);
    if (!strstr(f.err.message, want)) fail_msg("\"%s\" does not say \"%s\"", f.err.message, want);
    ir_arena_destroy(f.arena);
}

static void faults_leave_the_results_untouched(void **state)
{
    (void)state;
    fixture f = {.arena = ir_arena_create(0)};
    const ir_wide *x = floats(&f, 2, (const double[]){1, 2});
    expect_failure("graph \"m.onnx\" { %0 \"x\" : i32[2] = input %1 \"y\" : ?[*] = Neg(%0) return %1 }", x,
                   MDOT_INVALID_ARGUMENT, "m.onnx: input \"x\" is i32, not f32");
    expect_failure("graph \"m.onnx\" { %0 \"x\" : f32[2,1] = input %1 \"y\" : ?[*] = Neg(%0) return %1 }", x,
                   MDOT_INVALID_ARGUMENT, "rank 2, not 1");
    expect_failure("graph \"m.onnx\" { %0 \"x\" : f32[2] = input %1 \"y\" : ?[*] = unknown \"Foo\"(%0) return %1 }", x,
                   MDOT_UNSUPPORTED, "m.onnx: node \"y\" (Foo): the operator is unknown to mdot");
    expect_failure("graph \"m.onnx\" { %0 \"x\" : f32[2] = input %1 \"w\" : f32[2] = constant unread"
                   " %2 \"y\" : ?[*] = Add(%0, %1) return %2 }",
                   x, MDOT_UNSUPPORTED, "the content of \"w\" was skipped");
    expect_failure("graph \"m.onnx\" { %0 \"x\" : f32[2] = input %1 \"w\" : f32[2] = constant unread return %1 }", x,
                   MDOT_UNSUPPORTED, "output \"w\" was skipped");
    expect_failure("graph \"m.onnx\" { %0 \"x\" : f32[2] = input %1 \"w\" : f32[3] = constant [1, 2, 3]"
                   " %2 \"a\" : ?[*] = Neg(%0) %3 \"y\" : ?[*] = Add(%2, %1) @\"/Add\" return %3 }",
                   x, MDOT_MALFORMED, "node \"/Add\" (Add): dimensions 2 and 3");
    expect_failure("graph \"m.onnx\" { %0 \"x\" : f32[2] = input %1 \"y\" : ?[*] = Add(%0) return %1 }", x,
                   MDOT_MALFORMED, "1 inputs");
    ir_arena_destroy(f.arena);
}

/* Intermediate values have separate arenas, so a long chain of large tensors leaves little memory allocated. */
static void intermediate_values_are_released(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = ir_graph_create(arena, "chain");
    ir_type type = {.dtype = MDOT_DTYPE_F32, .rank = 1, .dim = {ir_dim_number(1000)}};
    ir_value *value = ir_graph_add_input(graph, "x", &type);
    for (int i = 0; i < 100; i++)
        value = ir_graph_add_node(graph, NULL, &ir_ops[IR_OP_Neg], "n", &value, 1, 1)->outputs[0];
    ir_graph_add_output(graph, value);
    ir_arena *results = ir_arena_create(0);
    ir_wide *out = NULL, *x = ir_wide_create(arena, MDOT_DTYPE_F32, 1, (const int64_t[]){1000});
    x->f[999] = 5;
    assert_int_equal(ir_evaluate(graph, (const ir_wide *const[]){x}, results, &out, NULL), MDOT_OK);
    assert_float_equal(out->f[999], 5, 0);
    assert_compare(results->used_bytes, <, 3 * 1000 * sizeof(double));
    ir_arena_destroy(results);
    ir_arena_destroy(arena);
}

/* 16, 32 and 64 lie on borders between T5's buckets: log(n / 8) / log(16) * 8 is 2, 4 and 6 in f32, and slightly less
 * in double. */
static void comparisons_use_f32_values(void **state)
{
    (void)state;
    fixture f = parse("graph \"g\" {\n"
                      "%0 \"n\" : f32[3] = input\n"
                      "%1 \"eight\" : f32[] = constant [8]\n"
                      "%2 \"log16\" : f32[] = constant [2.7725887298583984375]\n"
                      "%3 \"a\" : ?[*] = Div(%0, %1)\n"
                      "%4 \"b\" : ?[*] = Log(%3)\n"
                      "%5 \"c\" : ?[*] = Div(%4, %2)\n"
                      "%6 \"d\" : ?[*] = Mul(%5, %1)\n"
                      "%7 \"shape\" : i64[2] = constant [3, 1]\n"
                      "%8 \"e\" : ?[*] = Reshape(%6, %7)\n"
                      "%9 \"f\" : ?[*] = Cast(%8) {to=7}\n"
                      "%10 \"g\" : ?[*] = Exp(%0)\n"
                      "return %9, %10\n"
                      "}\n");
    ir_wide *out[2] = {NULL};
    const ir_wide *in[] = {floats(&f, 3, (const double[]){16, 32, 64})};
    assert_int_equal(ir_evaluate(f.graph, in, f.arena, out, &f.err), MDOT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(out[0]->i[i], 2 * i + 2);
    assert_compare(out[1]->f[0], !=, (float)out[1]->f[0]); /* values without effect on decisions stay double */
    ir_arena_destroy(f.arena);
}

/* 1 + 2^-10 is exact in f16 but rounds in bf16. Only factors are rounded, so a bias stays exact. */
/* As `mdot verify` evaluates a model. Operands are checked, although no shape rule has done so. */
static void recurrences_need_no_types(void **state)
{
    (void)state;
    static const char *const cells[] = {"RNN", "GRU", "LSTM"};
    static const int gates[] = {1, 3, 4};
    for (int cell = 0; cell < 3; cell++) {
        for (int extra = 0; extra < 2; extra++) { /* one weight row too many */
            char text[512];
            ir_arena *arena = ir_arena_create(0);
            int rows = gates[cell] + extra;
            snprintf(text, sizeof text,
                     "graph \"g\" {\n%%0 \"x\" : f32[2,1,1] = input\n%%1 \"w\" : f32[1,%d,1] = input\n"
                     "%%2 \"r\" : f32[1,%d,1] = input\n%%3 \"y\" : ?[*], %%4 \"h\" : ?[*] = %s(%%0, %%1, %%2) "
                     "{hidden_size=1}\nreturn %%3, %%4\n}\n",
                     rows, gates[cell], cells[cell]);
            ir_graph *graph;
            mdot_error err = {0};
            if (ir_graph_parse(text, NULL, arena, &graph, &err) != MDOT_OK) fail_msg("%s", err.message);
            const ir_wide *in[] = {ir_wide_create(arena, MDOT_DTYPE_F32, 3, (const int64_t[]){2, 1, 1}),
                                   ir_wide_create(arena, MDOT_DTYPE_F32, 3, (const int64_t[]){1, rows, 1}),
                                   ir_wide_create(arena, MDOT_DTYPE_F32, 3, (const int64_t[]){1, gates[cell], 1})};
            ir_wide *out[2] = {NULL};
            mdot_status status = ir_evaluate(graph, in, arena, out, &err);
            assert_int_equal(status, extra ? MDOT_MALFORMED : MDOT_OK);
            if (!extra) expect_floats(out[0], 2, (const double[]){0, 0});
            ir_arena_destroy(arena);
        }
    }
}

static void factors_of_matmuls_are_rounded_on_request(void **state)
{
    (void)state;
    fixture f = parse("graph \"g\" {\n"
                      "%0 \"x\" : f32[1] = input\n"
                      "%1 \"w\" : f32[1,1] = constant [2.00390625]\n"
                      "%2 \"p\" : ?[*] = MatMul(%0, %1)\n"
                      "%3 \"y\" : ?[*] = Add(%2, %0)\n"
                      "return %3\n"
                      "}\n");
    const double x = 1 + 0x1p-10, w = 2 + 0x1p-8;
    const ir_wide *in[] = {floats(&f, 1, &x)};
    ir_wide *out = NULL;
    assert_int_equal(ir_evaluate_in(f.graph, MDOT_DTYPE_NONE, in, f.arena, &out, &f.err), MDOT_OK);
    expect_floats(out, 1, &(double){x * w + x});
    assert_int_equal(ir_evaluate_in(f.graph, MDOT_DTYPE_F32, in, f.arena, &out, &f.err), MDOT_OK);
    expect_floats(out, 1, &(double){(float)((float)(x * w) + x)});
    assert_int_equal(ir_evaluate_in(f.graph, MDOT_DTYPE_F16, in, f.arena, &out, &f.err), MDOT_OK);
    expect_floats(out, 1, &(double){x * w + x});
    assert_int_equal(ir_evaluate_in(f.graph, MDOT_DTYPE_BF16, in, f.arena, &out, &f.err), MDOT_OK);
    expect_floats(out, 1, &(double){1 * 2 + x});
    ir_arena_destroy(f.arena);
}

/* Sums may be off by some units in the last place, but an addition of two numbers is exact. */
static void noise_moves_sums_by_a_few_units(void **state)
{
    (void)state;
    fixture f = parse("graph \"g\" {\n"
                      "%0 \"x\" : f32[1] = input\n"
                      "%1 \"w\" : f32[1,1] = constant [2]\n"
                      "%2 \"p\" : ?[*] = MatMul(%0, %1)\n"
                      "%3 \"y\" : ?[*] = Add(%0, %0)\n"
                      "return %2, %3\n"
                      "}\n");
    const double x = 3;
    const ir_wide *in[] = {floats(&f, 1, &x)};
    bool moves = false;
    for (uint64_t seed = 1; seed < 9; seed++) {
        ir_wide *out[2];
        assert_int_equal(ir_evaluate_noisily(f.graph, seed, 2, in, f.arena, out, &f.err), MDOT_OK);
        assert_true(fabs(out[0]->f[0] - 6) <= 6 * 0x1p-21);
        moves = moves || out[0]->f[0] != 6;
        expect_floats(out[1], 1, &(double){6});
    }
    assert_true(moves);
    ir_arena_destroy(f.arena);
}

/* A rounded function between two integers may become either. */
static void noise_moves_functions_before_a_decision(void **state)
{
    (void)state;
    fixture f = parse("graph \"g\" {\n"
                      "%0 \"x\" : f32[1] = input\n"
                      "%1 \"c\" : f32[1] = constant [3]\n"
                      "%2 \"s\" : ?[*] = Sigmoid(%0)\n"
                      "%3 \"p\" : ?[*] = Mul(%2, %1)\n"
                      "%4 \"y\" : ?[*] = Round(%3)\n"
                      "return %4\n"
                      "}\n");
    const ir_wide *in[] = {floats(&f, 1, &(double){0})};
    int ones = 0, twos = 0;
    for (uint64_t seed = 1; seed < 33; seed++) {
        ir_wide *out[1];
        assert_int_equal(ir_evaluate_noisily(f.graph, seed, 2, in, f.arena, out, &f.err), MDOT_OK);
        ones += out[0]->f[0] == 1;
        twos += out[0]->f[0] == 2;
    }
    assert_true(ones > 0 && twos > 0 && ones + twos == 32);
    ir_arena_destroy(f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(noise_moves_functions_before_a_decision),
        cmocka_unit_test(recurrences_need_no_types),
        cmocka_unit_test(noise_moves_sums_by_a_few_units),
        cmocka_unit_test(factors_of_matmuls_are_rounded_on_request),
        cmocka_unit_test(values_that_are_read_twice_live_until_the_last_reader),
        cmocka_unit_test(outputs_may_be_inputs_constants_or_repeated),
        cmocka_unit_test(unused_outputs_and_nodes_are_accepted),
        cmocka_unit_test(shapes_follow_the_data),
        cmocka_unit_test(faults_leave_the_results_untouched),
        cmocka_unit_test(intermediate_values_are_released),
        cmocka_unit_test(comparisons_use_f32_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
