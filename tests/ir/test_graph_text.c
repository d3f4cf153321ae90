/* test_graph_text.c — graphs are printed, and parsed back to the same graph. */
#include "ir/ops.h"
#include "tests/support/decimal_point.h"
#include "tests/support/graph_parser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* All graph contents, in printed form. */
static const char everything[] =
    "graph \"models/odd \\\"name\\\".onnx\" {\n"
    "  length \"sequence\" <= 512\n"
    "  %0 \"x\" : f32[1,L,128] = input\n"
    "  %3 \"ids\" : i64[2L+1,-L+600] = input\n"
    "  %7 \"scale\" : f32[] = constant [0.1]\n"
    "  %8 \"out/Mul\" : f32[1,L,128] = Mul(%0, %7)\n"
    "  %9 \"shape\" : i64[3] known [1, L, 2L+1] = Shape(%8) @\"/Shape_1\" {end=-1, start=0}\n"
    "  %10 \"limits\" : f64[4] = constant [nan, inf, -inf, -0.0]\n"
    "  %12 \"odd\" : ?[*], _, %13 \"tab\\x09\\\\\" : u8[*] = unknown \"my.domain.Op\"(%10, _, %3)"
    " @\"odd node\" {\"a b\"=1, f=1.5, single=0.1f, double=0.1, huge=1e+300, s=\"quote \\\"\","
    " i=[-1, 2], fs=[1.0, 0.3f, nan], ss=[\"a\", \"\"], none=ints[], no_floats=floats[],"
    " no_strings=strings[], t=tensor i32[2,2] [1, 2, 3, 4], body=graph}\n"
    "  %14 \"g\" : f32[1,L,128] = com.microsoft.Gelu(%8) as \"com.microsoft.BiasGelu\"\n"
    "  %15 \"big\" : u64[2] = constant [18446744073709551615, 0]\n"
    "  %16 \"none\" : f16[0,3] = constant []\n"
    "  %17 \"halves\" : f16[3] = constant [0.099975586, 65504.0, -2.0]\n"
    "  %18 \"flags\" : bool[2] = constant [1, 0]\n"
    "  %19 \"unread\" : f32[1000] = constant unread\n"
    "  %20 \"use\" : ?[*] = unknown \"Sink\"(%15, %16, %17, %18, %19)\n"
    "  = unknown \"Nothing\"() @\"nothing\"\n"
    "  %21 \"w\" : f32[1] = constant [2.0]\n"
    "  return %14, %14, %21\n"
    "}\n";

static ir_graph *parse(const char *text, const ir_graph *constants_from, ir_arena *arena)
{
    ir_graph *graph = NULL;
    mdot_error err;
    if (ir_graph_parse(text, constants_from, arena, &graph, &err) != MDOT_OK)
        fail_msg("%s\nin:\n%s", err.message, text);
    return graph;
}

static void every_field_round_trips(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = parse(everything, NULL, arena);
    assert_string_equal(ir_graph_print(graph, arena), everything);
    ir_arena_destroy(arena);
}

static void numbers_use_a_decimal_point_in_every_locale(void **state)
{
    (void)state;
    decimal_point_begin("<U002C>");
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = NULL;
    mdot_error err = {0};
    mdot_status status = ir_graph_parse(everything, NULL, arena, &graph, &err);
    const char *printed = status == MDOT_OK ? ir_graph_print(graph, arena) : err.message;
    decimal_point_end();
    assert_string_equal(printed, everything);
    ir_arena_destroy(arena);
}

/* C1 controls, direction marks and invalid UTF-8 are printed as bytes and read back. Letters stay as they are. */
static void unprintable_names_are_shown_as_bytes(void **state)
{
    (void)state;
    static const char text[] = "graph \"m.onnx\" {\n"
                               "  %0 \"a\\xc2\\x9b2J \\xe2\\x80\\xae \\xff gr\xC3\xB6\xC3\x9F"
                               "e\" : f32[1] = input\n"
                               "  return %0\n"
                               "}\n";
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = parse(text, NULL, arena);
    assert_string_equal(graph->inputs[0]->name, "a\xC2\x9B"
                                                "2J \xE2\x80\xAE \xFF gr\xC3\xB6\xC3\x9F"
                                                "e");
    assert_string_equal(ir_graph_print(graph, arena), text);
    ir_arena_destroy(arena);
}

static void the_parsed_graph_matches_the_text(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = parse(everything, NULL, arena);
    assert_string_equal(graph->name, "models/odd \"name\".onnx");
    assert_string_equal(graph->symbol, "sequence");
    assert_int_equal(graph->max_length, 512);
    assert_int_equal(graph->value_count, 22);
    assert_int_equal(graph->input_count, 2);
    assert_int_equal(graph->outputs[0]->use_count, 2);
    const ir_node *mul = graph->first, *shape = mul->next, *odd = shape->next;
    assert_ptr_equal(mul->op, &ir_ops[IR_OP_Mul]);
    assert_string_equal(mul->name, "out/Mul");
    assert_int_equal(mul->outputs[0]->id, 8);
    assert_string_equal(shape->name, "/Shape_1");
    assert_int_equal(shape->outputs[0]->known->count, 3);
    assert_true(ir_dim_equal(shape->outputs[0]->known->element[2], ir_dim_affine(2, 1)));
    assert_null(odd->op);
    assert_null(odd->outputs[1]);
    assert_null(odd->inputs[1]);
    assert_string_equal(odd->outputs[2]->name, "tab\t\\");
    assert_float_equal(ir_node_float(odd, "single", 0), 0.1f, 0);
    assert_float_equal(ir_node_float(odd, "double", 0), 0.1, 0);
    assert_int_equal(ir_node_attr(odd, "none")->kind, IR_ATTR_INTS);
    assert_int_equal(ir_node_attr(odd, "t")->tensor->count, 4);
    ir_arena_destroy(arena);
}

/* A constant with `count` floats from `first` on. */
static ir_tensor *floats(ir_arena *arena, int64_t count, float first)
{
    float *data = IR_NEW_ARRAY(arena, float, count);
    ir_tensor *tensor = IR_NEW(arena, ir_tensor);
    data[0] = first;
    *tensor = (ir_tensor){.dtype = MDOT_DTYPE_F32, .rank = 1, .dims = {count}, .count = count, .data = data};
    return tensor;
}

static void large_constants_are_found_by_their_hash(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = ir_graph_create(arena, "g");
    ir_value *inputs[3];
    for (int i = 0; i < 3; i++) inputs[i] = ir_graph_add_constant(graph, "w", floats(arena, 17, (float)i));
    ir_node *sum = ir_graph_add_node(graph, NULL, &ir_ops[IR_OP_Sum], "sum", inputs, 3, 1);
    ir_graph_add_output(graph, sum->outputs[0]);
    const char *text = ir_graph_print(graph, arena);
    assert_non_null(strstr(text, "f32[17] = constant #"));

    ir_graph *with = parse(text, graph, arena);
    assert_string_equal(ir_graph_print(with, arena), text);
    for (int i = 0; i < 3; i++) assert_ptr_equal(with->first->inputs[i]->constant->data, inputs[i]->constant->data);

    ir_graph *without = parse(text, NULL, arena);
    assert_null(without->first->inputs[0]->constant->data);
    assert_int_equal(without->first->inputs[0]->constant->count, 17);
    ir_arena_destroy(arena);
}

static void spaces_and_line_breaks_are_ignored(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph =
        parse("graph\"g\"{%0\"x\":f32[2 , L]=input\n\n%1 \"y\":f32[2,L]=Neg ( %0 )return %1}", NULL, arena);
    assert_string_equal(ir_graph_print(graph, arena), "graph \"g\" {\n"
                                                      "  %0 \"x\" : f32[2,L] = input\n"
                                                      "  %1 \"y\" : f32[2,L] = Neg(%0)\n"
                                                      "  return %1\n"
                                                      "}\n");
    ir_arena_destroy(arena);
}

/* Parses a graph with this body, which has a fault. The message must contain `want`. */
static void expect_fault(const char *body, const char *want)
{
    char text[2048];
    mdot_error err = {.status = MDOT_OK};
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = NULL;
    snprintf(text, sizeof text, "graph \"g\" {\n%s", body);
    assert_int_equal(ir_graph_parse(text, NULL, arena, &graph, &err), MDOT_MALFORMED);
    assert_null(graph);
    if (!strstr(err.message, want)) fail_msg("\"%s\" does not say \"%s\"", err.message, want);
    ir_arena_destroy(arena);
}

static void faults_name_the_line_and_the_expected_token(void **state)
{
    (void)state;
    expect_fault("%0 \"x\" : f32[2] = input\n%0 \"y\" : f32[2] = input\nreturn %0\n}",
                 "line 3: a value is defined twice");
    expect_fault("%0 \"x\" : f32[2] = Neg(%1)\nreturn %0\n}", "line 2: a value is used before it is defined");
    expect_fault("%0 \"x\" : f32[2] = Neg(%0)\nreturn %0\n}", "used before it is defined");
    expect_fault("%0 \"x\" : f32[2] = Frobnicate()\nreturn %0\n}", "unknown operator");
    expect_fault("%0 \"x\" : f33[2] = input\nreturn %0\n}", "element type");
    expect_fault("%0 \"x\" : f32[1,1,1,1,1,1,1,1,1] = input\nreturn %0\n}", "more dimensions");
    expect_fault("%0 \"x\" : f32[2] = constant [1]\nreturn %0\n}", "line 2: expected `,`");
    expect_fault("%0 \"x\" : f32[2] = constant [1, 2, 3]\nreturn %0\n}", "expected `]`");
    expect_fault("%0 \"x\" : f32[L] = constant [1]\nreturn %0\n}", "must be numbers");
    expect_fault("%0 \"x\" : f32[*] = constant [1]\nreturn %0\n}", "needs a shape");
    expect_fault("%0 \"x\" : f32[999999999999] = constant [1]\nreturn %0\n}", "fewer elements");
    expect_fault("%0 \"x\" : string[1] = constant [1]\nreturn %0\n}", "only a type with elements may have content");
    expect_fault("%99999999 \"x\" : f32[] = input\nreturn\n}", "out of range");
    expect_fault("%0 \"x : f32[] = input\nreturn\n}", "expected `\"`");
    expect_fault("%0 \"\\xzz\" : f32[] = input\nreturn\n}", "hexadecimal");
    expect_fault("%0 \"\\x00\" : f32[] = input\nreturn\n}", "hexadecimal");
    expect_fault("%0 \"x\" : f32[] = input\nreturn %0\n} more", "unexpected text after");
    expect_fault("%0 \"x\" : f32[] = Neg(", "expected");
    expect_fault("%0 \"x\" : f32[99999999999999999999] = input return }", "64-bit");
    expect_fault("", "expected");
}

/* Any prefix of a valid text is a fault, and the parser stays within the prefix. */
static void every_truncated_text_is_refused(void **state)
{
    (void)state;
    size_t length = strlen(everything);
    for (size_t end = 0; end + 1 < length; end++) {
        ir_arena *arena = ir_arena_create(0);
        ir_graph *graph = NULL;
        char *prefix = test_malloc(end + 1); /* exact size, so a checker detects an overrun */
        memcpy(prefix, everything, end);
        prefix[end] = '\0';
        if (ir_graph_parse(prefix, NULL, arena, &graph, NULL) == MDOT_OK) fail_msg("accepted:\n%s", prefix);
        test_free(prefix);
        ir_arena_destroy(arena);
    }
}

static void exhausted_memory_is_reported(void **state)
{
    (void)state;
    bool parsed = false;
    for (size_t limit = 16; !parsed; limit += 200) {
        ir_arena *arena = ir_arena_create(limit);
        ir_graph *graph = NULL;
        mdot_status status = ir_graph_parse(everything, NULL, arena, &graph, NULL);
        parsed = status == MDOT_OK;
        assert_true(parsed || (status == MDOT_OUT_OF_MEMORY && !graph));
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_round_trips),
        cmocka_unit_test(numbers_use_a_decimal_point_in_every_locale),
        cmocka_unit_test(unprintable_names_are_shown_as_bytes),
        cmocka_unit_test(the_parsed_graph_matches_the_text),
        cmocka_unit_test(large_constants_are_found_by_their_hash),
        cmocka_unit_test(spaces_and_line_breaks_are_ignored),
        cmocka_unit_test(faults_name_the_line_and_the_expected_token),
        cmocka_unit_test(every_truncated_text_is_refused),
        cmocka_unit_test(exhausted_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
