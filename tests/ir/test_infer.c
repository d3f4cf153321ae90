/* test_infer.c — inference over whole graphs, the operator table, and operations on dimensions. */
#include "ir/ops/families.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_parser.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static ir_graph *parse(const char *text, ir_arena *arena)
{
    ir_graph *graph = NULL;
    mdot_error err;
    if (ir_graph_parse(text, NULL, arena, &graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    return graph;
}

/* ---- Graphs ---------------------------------------------------------------------------------------------------- */

/* Flattening of heads as PyTorch exports it: the shape is computed and then used by a Reshape. */
static const char chain[] = "graph \"model.onnx\" {\n"
                            "length \"N\" <= 128\n"
                            "%0 \"x\" : f32[1,4,L,32] = input\n"
                            "%1 \"s\" : ?[*] = Shape(%0)\n"
                            "%2 \"two\" : i64[] = constant [2]\n"
                            "%3 \"n\" : ?[*] = Gather(%1, %2) {axis=0}\n"
                            "%4 \"zero\" : i64[1] = constant [0]\n"
                            "%5 \"n1\" : ?[*] = Unsqueeze(%3, %4)\n"
                            "%6 \"one\" : i64[1] = constant [1]\n"
                            "%7 \"minus\" : i64[1] = constant [-1]\n"
                            "%8 \"target\" : ?[*] = Concat(%6, %5, %7) {axis=0}\n"
                            "%9 \"t\" : ?[*] = Transpose(%0) {perm=[0, 2, 1, 3]}\n"
                            "%10 \"y\" : ?[*] = Reshape(%9, %8)\n"
                            "return %10\n"
                            "}\n";

static void shape_computations_are_propagated_to_their_use(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = parse(chain, arena);
    mdot_error err;
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    ir_type want = {.dtype = MDOT_DTYPE_F32, .rank = 3, .dim = {{.offset = 1}, {.scale = 1}, {.offset = 128}}};
    assert_true(ir_type_equal(&graph->outputs[0]->type, &want));
    assert_int_equal(ir_graph_verify(graph, &err), MDOT_OK);
    ir_arena_destroy(arena);
}

static void inferring_again_discards_old_content(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = parse("graph \"g\" {\n"
                            "length \"N\" <= 64\n"
                            "%0 \"a\" : i64[1] known [L] = input\n"
                            "%1 \"b\" : i64[1] = constant [64]\n"
                            "%2 \"m\" : ?[*] = Min(%0, %1)\n"
                            "return %2\n"
                            "}\n",
                            arena);
    assert_int_equal(ir_infer(graph, NULL), MDOT_OK);
    assert_non_null(graph->outputs[0]->known);
    graph->max_length = 128; /* now the minimum depends on the length */
    assert_int_equal(ir_infer(graph, NULL), MDOT_OK);
    assert_null(graph->outputs[0]->known);
    ir_arena_destroy(arena);
}

static void faults_name_the_file_and_the_node(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    ir_graph *graph = parse("graph \"dir/model.onnx\" {\n"
                            "%0 \"a\" : f32[2] = input\n"
                            "%1 \"b\" : f32[3] = input\n"
                            "%2 \"c\" : ?[*] = Add(%0, %1) @\"/layer/Add\"\n"
                            "return %2\n"
                            "}\n",
                            arena);
    assert_int_equal(ir_infer(graph, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "dir/model.onnx: node \"/layer/Add\" (Add): "));
    assert_int_equal(ir_infer(graph, NULL), MDOT_MALFORMED); /* the error is optional */
    ir_arena_destroy(arena);
}

static void exhausted_memory_is_reported(void **state)
{
    (void)state;
    mdot_status status = MDOT_OUT_OF_MEMORY;
    for (size_t limit = 1000; status == MDOT_OUT_OF_MEMORY; limit += 64) {
        ir_arena *arena = ir_arena_create(limit);
        ir_graph *graph = NULL;
        status = ir_graph_parse(chain, NULL, arena, &graph, NULL);
        if (status == MDOT_OK) status = ir_infer(graph, NULL);
        ir_arena_destroy(arena);
    }
    assert_int_equal(status, MDOT_OK);
}

static void inputs_without_a_type_are_refused(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    ir_graph *graph = parse("graph \"g\" { %0 \"a\" : f32[*] = input %1 \"b\" : ?[*] = Neg(%0) return %1 }", arena);
    assert_int_equal(ir_infer(graph, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "\"a\", has no type"));
    ir_arena_destroy(arena);
}

static void dimensions_are_negative_at_no_length(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    ir_graph *graph =
        parse("graph \"g\" { length \"N\" <= 8 %0 \"x\" : f32[] = input %1 \"s\" : i64[1] known [L-3] = input"
              " %2 \"y\" : ?[*] = Expand(%0, %1) return %2 }",
              arena);
    assert_int_equal(ir_infer(graph, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "N-3, which is negative for some lengths"));
    graph->inputs[1]->known = &(const ir_known){1, (const ir_dim[]){{.offset = -3}}};
    assert_int_equal(ir_infer(graph, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "-3, which is negative"));
    ir_arena_destroy(arena);
}

static void unsupported_operators_are_reported_together(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    ir_graph *graph = parse("graph \"m.onnx\" {\n"
                            "%0 \"x\" : f32[2] = input\n"
                            "%1 \"a\" : ?[*] = unknown \"Foo\"(%0)\n"
                            "%2 \"b\" : ?[*] = Neg(%1)\n"
                            "%3 \"c\" : ?[*] = unknown \"x.Bar\"(%2)\n"
                            "%4 \"d\" : ?[*] = unknown \"Foo\"(%3)\n"
                            "return %4\n"
                            "}\n",
                            arena);
    assert_int_equal(ir_check_supported(graph, &err), MDOT_UNSUPPORTED);
    assert_string_equal(err.message,
                        "m.onnx: unsupported operators: Foo at \"a\", \"d\"; x.Bar at \"c\"; write them with operators "
                        "of docs/reference/operators.md, for example in a function of the model");
    assert_int_equal(ir_infer(graph, &err), MDOT_UNSUPPORTED);
    ir_graph *fine = parse("graph \"g\" { %0 \"x\" : f32[2] = input %1 \"y\" : ?[*] = Neg(%0) return %1 }", arena);
    assert_int_equal(ir_check_supported(fine, &err), MDOT_OK);
    ir_arena_destroy(arena);
}

/* Operators that move values accept any type. An artefact, however, cannot store strings. */
static void strings_are_refused_wherever_they_are(void **state)
{
    (void)state;
    static const struct {
        const char *text, *named;
    } graphs[] = {
        {"graph \"m.onnx\" { %0 \"x\" : string[2] = input %1 \"y\" : string[2] = Identity(%0) return %1 }", "\"x\""},
        {"graph \"m.onnx\" { %0 \"x\" : f32[2] = input %1 \"s\" : string[L] = input %2 \"y\" : f32[2] = Neg(%0) return "
         "%2 }",
         "\"s\""},
    };
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        ir_arena *arena = ir_arena_create(0);
        mdot_error err = {0};
        assert_int_equal(ir_check_supported(parse(graphs[i].text, arena), &err), MDOT_UNSUPPORTED);
        assert_non_null(strstr(err.message, graphs[i].named));
        assert_non_null(strstr(err.message, "strings"));
        ir_arena_destroy(arena);
    }
}

/* An optional result left out by the model has no value. Inference must skip it, because it has no type. */
static void results_may_be_omitted(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    ir_graph *graph = parse("graph \"m.onnx\" { %0 \"x\" : f32[2] = input\n"
                            "%1 \"y\" : f32[2], _ = Dropout(%0)\n"
                            "return %1 }",
                            arena);
    assert_int_equal(ir_check_supported(graph, &err), MDOT_OK);
    ir_arena_destroy(arena);
}

static void unsupported_operators_get_an_alternative(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    ir_graph *graph = parse("graph \"m.onnx\" {\n"
                            "%0 \"x\" : f32[2] = input\n"
                            "%1 \"a\" : ?[*] = unknown \"Compress\"(%0)\n"
                            "%2 \"b\" : ?[*] = unknown \"Foo\"(%1)\n"
                            "return %2\n"
                            "}\n",
                            arena);
    assert_int_equal(ir_check_supported(graph, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "Compress at \"a\" (the number of elements depends on data: "));
    assert_non_null(strstr(err.message, "torch.where"));
    assert_non_null(strstr(err.message, "; Foo at \"b\""));
    ir_arena_destroy(arena);
}

static void expect_unsupported(const char *op_type, const char *text)
{
    char notation[256];
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    snprintf(notation, sizeof notation,
             "graph \"m\" { %%0 \"x\" : f32[2] = input %%1 \"a\" : ?[*] = unknown \"%s\"(%%0) return %%1 }", op_type);
    assert_int_equal(ir_check_supported(parse(notation, arena), &err), MDOT_UNSUPPORTED);
    assert_string_equal(err.message, text);
    ir_arena_destroy(arena);
}

static void unsupported_operators_have_a_remedy(void **state)
{
    (void)state;
    expect_unsupported("Matmul", "m: unsupported operators: Matmul (did you mean MatMul?) at \"a\"");
    expect_unsupported("LayerNormalisation", "m: unsupported operators: LayerNormalisation (did you mean "
                                             "LayerNormalization?) at \"a\"");
    expect_unsupported("RandomNormalLike",
                       "m: unsupported operators: RandomNormalLike at \"a\" (random numbers: export "
                       "the model for inference, or make the numbers an input)");
    expect_unsupported(
        "SequenceConstruct",
        "m: unsupported operators: SequenceConstruct at \"a\" (sequences of tensors: use Split and Concat)");
    expect_unsupported("com.microsoft:Tokenizer", "m: unsupported operators: com.microsoft:Tokenizer at \"a\" (text: "
                                                  "encode it as numbers in front of the model)");
    expect_unsupported("GlobalLpPool", "m: unsupported operators: GlobalLpPool at \"a\" (write ReduceL1 or ReduceL2 "
                                       "over the axes from the third on)");
    expect_unsupported("Det", "m: unsupported operators: Det at \"a\"; write them with operators of "
                              "docs/reference/operators.md, for example in a function of the model");
    expect_unsupported("MaxUnpool", "m: unsupported operators: MaxUnpool at \"a\"; write them with operators of "
                                    "docs/reference/operators.md, for example in a function of the model");
}

/* Each unsupported operator is reported, for names of any length. */
static void unsupported_operators_with_long_names_are_reported(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    char name[3000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ir_graph *graph = ir_graph_create(arena, "m.onnx");
    ir_node *node = ir_graph_add_node(graph, NULL, NULL, name, NULL, 0, 1);
    node->op_type = name;
    assert_int_equal(ir_check_supported(graph, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "m.onnx: unsupported operators: xxx"));
    assert_non_null(strstr(err.message, "x at \"xxx"));
    ir_arena_destroy(arena);
}

static void a_long_message_is_cut(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err;
    ir_graph *graph = ir_graph_create(arena, "m.onnx");
    for (int i = 0; i < 200; i++) ir_graph_add_node(graph, NULL, NULL, "a rather long name", NULL, 0, 1);
    assert_int_equal(ir_check_supported(graph, &err), MDOT_UNSUPPORTED);
    assert_compare(strlen(err.message), <, sizeof err.message);
    ir_arena_destroy(arena);
}

/* ---- Table ----------------------------------------------------------------------------------------------------- */

static void every_operator_is_found_by_its_name(void **state)
{
    (void)state;
    for (int i = 0; i < IR_OP_COUNT; i++) assert_ptr_equal(ir_op_find(ir_ops[i].domain, ir_ops[i].name), &ir_ops[i]);
    assert_ptr_equal(ir_op_find("ai.onnx", "Add"), &ir_ops[IR_OP_Add]);
    assert_ptr_equal(ir_op_find("com.microsoft", "Gelu"), &ir_ops[IR_OP_MSGelu]);
    assert_null(ir_op_find("com.microsoft", "Add"));
    assert_null(ir_op_find("", "add"));
    assert_null(ir_op_find("", ""));
}

static void operator_table_rows_are_consistent(void **state)
{
    (void)state;
    for (int i = 0; i < IR_OP_COUNT; i++) {
        const ir_op *op = &ir_ops[i];
        assert_compare(op->min_inputs, <=, op->max_inputs);
        assert_compare(op->min_outputs, <=, op->max_outputs);
        assert_compare(op->min_outputs, >=, 0);
        assert_compare(op->max_outputs, >=, 1);
        assert_non_null(op->shape);
        assert_in_range(op->lowering, 0, IR_LOWER_COUNT - 1);
    }
}

/* ---- Dimensions ------------------------------------------------------------------------------------------------ */

static const ir_dim L = {.scale = 1};

static ir_dim number(int64_t n) { return ir_dim_number(n); }

static void expect_dim(bool known, ir_dim got, int64_t scale, int64_t offset)
{
    assert_true(known);
    assert_int_equal(got.scale, scale);
    assert_int_equal(got.offset, offset);
}

static void dims_are_compared_over_the_range(void **state)
{
    (void)state;
    const ir_graph graph = {.max_length = 512};
    bool truth = false;
    assert_true(ir_dim_always_le(&graph, L, number(512)));
    assert_false(ir_dim_always_le(&graph, L, number(511)));
    assert_true(ir_dim_always_lt(&graph, number(0), L));
    assert_false(ir_dim_always_lt(&graph, number(1), L));
    assert_true(ir_dim_decide_equal(&graph, L, number(0), &truth));
    assert_false(truth);
    assert_false(ir_dim_decide_equal(&graph, L, number(5), &truth));
    assert_true(ir_dim_decide_equal(&graph, L, L, &truth));
    assert_true(truth);
    assert_true(ir_dim_decide_less(&graph, L, number(513), &truth));
    assert_true(truth);
    assert_true(ir_dim_decide_less(&graph, L, number(1), &truth));
    assert_false(truth);
    /* 2L and L + 1 are equal at length 1. 2L < L + 1 is therefore always false, although the opposite comparison is
     * undecided. */
    assert_true(ir_dim_decide_less(&graph, ir_dim_affine(2, 0), ir_dim_affine(1, 1), &truth));
    assert_false(truth);
}

static void bounds_saturate(void **state)
{
    (void)state;
    const ir_graph unbound = {.max_length = INT64_MAX};
    int64_t least, most;
    ir_dim_bounds(&unbound, ir_dim_affine(-(INT64_C(1) << 30), 3), &least, &most);
    assert_int_equal(least, INT64_MIN);
    assert_int_equal(most, 3 - (INT64_C(1) << 30));
}

static void dims_add_multiply_and_divide(void **state)
{
    (void)state;
    const ir_graph graph = {.max_length = 64};
    ir_dim d = {.scale = 7, .offset = 7};
    expect_dim(ir_dim_add(L, number(3), &d), d, 1, 3);
    expect_dim(ir_dim_sub(ir_dim_affine(3, 1), L, &d), d, 2, 1);
    expect_dim(ir_dim_mul(number(4), ir_dim_affine(1, 2), &d), d, 4, 8);
    expect_dim(ir_dim_div_exact(ir_dim_affine(4, 8), number(4), &d), d, 1, 2);
    expect_dim(ir_dim_div_exact(ir_dim_affine(4, 8), ir_dim_affine(1, 2), &d), d, 0, 4);
    expect_dim(ir_dim_div_floor(&graph, ir_dim_affine(4, 7), 4, &d), d, 1, 1);
    expect_dim(ir_dim_div_floor(&graph, ir_dim_affine(4, -1), 4, &d), d, 1, -1);
    expect_dim(ir_dim_div_floor(&graph, L, 65, &d), d, 0, 0);
    expect_dim(ir_dim_div_ceil(&graph, ir_dim_affine(2, 1), 2, &d), d, 1, 1);
    expect_dim(ir_dim_div_ceil(&graph, L, 64, &d), d, 0, 1);
    expect_dim(ir_dim_mod_floor(&graph, ir_dim_affine(4, 7), 4, &d), d, 0, 3);
    expect_dim(ir_dim_mod_floor(&graph, L, 65, &d), d, 1, 0);
    expect_dim(ir_dim_min(&graph, L, number(64), &d), d, 1, 0);
    expect_dim(ir_dim_max(&graph, L, number(64), &d), d, 0, 64);
}

static void dims_without_a_form_are_refused(void **state)
{
    (void)state;
    const ir_graph graph = {.max_length = 64};
    ir_dim d = {.scale = 7, .offset = 7};
    assert_false(ir_dim_mul(L, L, &d));
    assert_false(ir_dim_div_exact(L, number(2), &d));
    assert_false(ir_dim_div_exact(L, number(0), &d));
    assert_false(ir_dim_div_exact(ir_dim_affine(2, 1), L, &d));
    assert_false(ir_dim_min(&graph, L, number(63), &d));
    assert_false(ir_dim_add(number(INT64_MAX), number(1), &d));
    assert_false(ir_dim_mul(number(INT64_MAX), number(2), &d));
    assert_false(ir_dim_div_exact(number(INT64_MIN), number(-1), &d));
    expect_dim(true, d, 7, 7); /* unchanged */
}

static void products_cancel_equal_factors(void **state)
{
    (void)state;
    ir_dim d;
    const ir_dim heads[] = {number(1), L, number(4), number(32)};
    const ir_dim flat[] = {number(1), L};
    expect_dim(ir_dim_quotient(heads, 4, flat, 2, &d), d, 0, 128);
    expect_dim(ir_dim_quotient(heads, 4, (const ir_dim[]){number(128)}, 1, &d), d, 1, 0);
    expect_dim(ir_dim_quotient((const ir_dim[]){{.scale = 2, .offset = 4}, number(3)}, 2,
                               (const ir_dim[]){{.scale = 1, .offset = 2}}, 1, &d),
               d, 0, 6);
    expect_dim(ir_dim_quotient((const ir_dim[]){L, L}, 2, flat, 2, &d), d, 1, 0);
    expect_dim(ir_dim_quotient(NULL, 0, NULL, 0, &d), d, 0, 1);
    expect_dim(ir_dim_quotient((const ir_dim[]){number(0), L}, 2, flat, 2, &d), d, 0, 0);
    assert_false(ir_dim_quotient((const ir_dim[]){L, L}, 2, NULL, 0, &d));
    assert_false(ir_dim_quotient(flat, 2, (const ir_dim[]){number(2)}, 1, &d));
    assert_false(ir_dim_quotient(flat, 2, (const ir_dim[]){{.scale = 1, .offset = 1}}, 1, &d));
    assert_false(ir_dim_quotient(flat, 2, (const ir_dim[]){number(0)}, 1, &d));
    assert_true(ir_dim_products_equal((const ir_dim[]){{.scale = 2, .offset = 2}, number(3)}, 2,
                                      (const ir_dim[]){number(6), {.scale = 1, .offset = 1}}, 2));
    assert_false(ir_dim_products_equal((const ir_dim[]){L, L}, 2, flat, 2));
}

static void dims_are_printed(void **state)
{
    (void)state;
    char text[IR_DIM_TEXT_BYTES];
    assert_string_equal(ir_dim_text(number(-3), NULL, text, sizeof text), "-3");
    assert_string_equal(ir_dim_text(L, NULL, text, sizeof text), "L");
    assert_string_equal(ir_dim_text(ir_dim_affine(-1, 4), NULL, text, sizeof text), "-L+4");
    assert_string_equal(ir_dim_text(ir_dim_affine(2, -1), "seq", text, sizeof text), "2seq-1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_computations_are_propagated_to_their_use),
        cmocka_unit_test(inferring_again_discards_old_content),
        cmocka_unit_test(faults_name_the_file_and_the_node),
        cmocka_unit_test(exhausted_memory_is_reported),
        cmocka_unit_test(inputs_without_a_type_are_refused),
        cmocka_unit_test(dimensions_are_negative_at_no_length),
        cmocka_unit_test(unsupported_operators_are_reported_together),
        cmocka_unit_test(unsupported_operators_have_a_remedy),
        cmocka_unit_test(strings_are_refused_wherever_they_are),
        cmocka_unit_test(results_may_be_omitted),
        cmocka_unit_test(unsupported_operators_get_an_alternative),
        cmocka_unit_test(unsupported_operators_with_long_names_are_reported),
        cmocka_unit_test(a_long_message_is_cut),
        cmocka_unit_test(every_operator_is_found_by_its_name),
        cmocka_unit_test(operator_table_rows_are_consistent),
        cmocka_unit_test(dims_are_compared_over_the_range),
        cmocka_unit_test(bounds_saturate),
        cmocka_unit_test(dims_add_multiply_and_divide),
        cmocka_unit_test(dims_without_a_form_are_refused),
        cmocka_unit_test(products_cancel_equal_factors),
        cmocka_unit_test(dims_are_printed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
