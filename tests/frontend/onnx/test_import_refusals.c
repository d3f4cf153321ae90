/* test_import_refusals.c — models that break ONNX's rules. Each is refused with file, node and reason. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* x: f32[4] → y, before any node is added. */
static onnx_builder *begin_model(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_output(b, "y");
    return b;
}

static void missing_opset_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(0);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_output(b, "y");
    onnx_node(b, "Relu", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "model.onnx", "Relu", "no opset", NULL);
}

static void graph_without_outputs_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_node(b, "Relu", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "no outputs", NULL);
}

static void undefined_output_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Relu", "x", "z");
    expect_refused(b, NULL, MDOT_MALFORMED, "output 'y'", "is undefined", NULL);
}

static void repeated_output_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_output(b, "y");
    onnx_node(b, "Relu", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "output 'y'", "twice", NULL);
}

static void undefined_input_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Add", "x,ghost", "y");
    onnx_node_name(b, "sum");
    expect_refused(b, NULL, MDOT_MALFORMED, "node 'sum' (Add)", "'ghost'", "is undefined", NULL);
}

static void second_definition_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Relu", "x", "y");
    onnx_node_name(b, "one");
    onnx_node(b, "Neg", "x", "y");
    onnx_node_name(b, "two");
    expect_refused(b, NULL, MDOT_MALFORMED, "'y'", "twice", "one", "two", NULL);
}

static void redefined_input_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Relu", "x", "x");
    expect_refused(b, NULL, MDOT_MALFORMED, "'x'", "a graph input", NULL);
}

static void second_initializer_of_a_name_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "4", NULL);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "4", NULL);
    onnx_node(b, "Add", "x,w", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "'w'", "twice", NULL);
}

static void second_input_of_a_name_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_node(b, "Relu", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "'x'", "twice", NULL);
}

static void cycle_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Add", "x,b", "a");
    onnx_node_name(b, "ring");
    onnx_node(b, "Neg", "a", "b");
    onnx_node(b, "Relu", "b", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "node 'ring'", "cycle", NULL);
}

static void node_that_reads_itself_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Add", "x,y", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "cycle", NULL);
}

static void wrong_arity_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *op, *inputs, *outputs, *part;
    } cases[] = {
        {"Add", "x", "y", "lacks an input"},
        {"Add", ",x", "y", "lacks an input"},
        {"Concat", "x,,x", "y", "lacks an input"},
        {"Max", "x,,x", "y", "lacks an input"},
        {"Relu", "x,x", "y", "more inputs"},
        {"Attention", "x,x,x,,,,,x", "y", "more inputs"}, /* a mask that only passes add */
        {"Relu", "x", "y,z", "more outputs"},
        {"TopK", "x,x", ",y", "lacks a required output"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = begin_model();
        onnx_node(b, cases[i].op, cases[i].inputs, cases[i].outputs);
        expect_refused(b, NULL, MDOT_MALFORMED, cases[i].op, cases[i].part, NULL);
    }
}

static void internal_operators_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"LoopBegin", "LoopEnd", "LoopSteps", "Linear", "Opaque"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        onnx_builder *b = begin_model();
        char op_type[32];
        snprintf(op_type, sizeof op_type, "mdot:%s", names[i]);
        onnx_node(b, op_type, "x", "y");
        onnx_import(b, "mdot", 1);
        expect_refused(b, NULL, MDOT_UNSUPPORTED, "model.onnx", op_type, "only mdot itself may make", NULL);
    }
}

static void node_without_operator_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "no operator", NULL);
}

static void repeated_attribute_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Softmax", "x", "y");
    onnx_attr_int(b, "axis", 0);
    onnx_attr_int(b, "axis", 1);
    expect_refused(b, NULL, MDOT_MALFORMED, "Softmax", "twice", "axis", NULL);
}

static void attribute_of_unknown_type_is_refused(void **state)
{
    (void)state;
    static const int types[] = {15, -1, 1 << 20};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        onnx_builder *b = begin_model();
        onnx_node(b, "Relu", "x", "y");
        pb_buffer attribute = {0};
        pb_text(&attribute, 1, "odd");
        pb_int(&attribute, 20, types[i]);
        onnx_attr_raw(b, &attribute);
        expect_refused(b, NULL, MDOT_MALFORMED, "attribute 'odd'", NULL);
    }
}

static void constant_without_one_value_is_refused(void **state)
{
    (void)state;
    onnx_builder *none = begin_model();
    onnx_node(none, "Constant", "", "y");
    expect_refused(none, NULL, MDOT_MALFORMED, "exactly one value", NULL);
    onnx_builder *two = begin_model();
    onnx_node(two, "Constant", "", "y");
    onnx_attr_int(two, "value_int", 1);
    onnx_attr_float(two, "value_float", 1);
    expect_refused(two, NULL, MDOT_MALFORMED, "exactly one value", NULL);
}

static void sparse_constant_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Constant", "", "y");
    pb_buffer attribute = {0}, sparse = {0};
    pb_text(&attribute, 1, "sparse_value");
    pb_int(&attribute, 20, 11);
    pb_message(&attribute, 22, &sparse);
    onnx_attr_raw(b, &attribute);
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "Constant", "sparse", NULL);
}

static void excessive_nodes_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Any", "x", "y");
    for (int i = 0; i < 1025; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d", i);
        onnx_attr_int(b, name, i);
    }
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "Any", "1025 attributes", NULL);
    b = begin_model();
    pb_buffer node = {0};
    for (int i = 0; i < 65537; i++) pb_text(&node, 1, "x");
    pb_text(&node, 4, "Concat");
    onnx_graph_raw(b, 1, &node);
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "65537 inputs", NULL);
}

static void sparse_and_quantized_models_are_refused(void **state)
{
    (void)state;
    static const struct {
        int field;
        const char *part;
    } cases[] = {{15, "sparse"}, {14, "quantized"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = begin_model();
        pb_buffer empty = {0};
        onnx_graph_raw(b, cases[i].field, &empty);
        onnx_node(b, "Relu", "x", "y");
        expect_refused(b, NULL, MDOT_UNSUPPORTED, cases[i].part, NULL);
    }
}

static void out_of_memory_is_reported(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "4", NULL);
    onnx_node(b, "Add", "x,w", "h");
    onnx_node(b, "Clip", "h", "y");
    pb_buffer bytes = onnx_finish(b);
    mdot_status status = MDOT_OUT_OF_MEMORY;
    size_t limit = 16;
    for (; status == MDOT_OUT_OF_MEMORY; limit += 16) {
        ir_arena *arena = ir_arena_create(limit);
        ir_graph *graph = NULL;
        mdot_error err = {0};
        status = fe_import_bytes(bytes.data, bytes.size, "m", NULL, NULL, arena, &graph, &err);
        assert_compare(status == MDOT_OK, ==, graph != NULL);
        ir_arena_destroy(arena);
    }
    assert_int_equal(status, MDOT_OK);
    assert_compare(limit, >, 256);
    pb_free(&bytes);
}

/* From this point on, the arena's limit depends on the file's size, and the message names the limit. */
static void the_bound_on_memory_is_named(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Relu", "x", "y");
    pb_buffer bytes = onnx_finish(b);
    for (int job = 0; job < 2; job++) {
        const fe_options options = {.job = job == 1};
        ir_arena *arena = ir_arena_create(0);
        ir_graph *graph = NULL;
        mdot_error err = {0};
        mdot_status status = fe_import_bytes(bytes.data, bytes.size, "m", NULL, &options, arena, &graph, &err);
        if (status != MDOT_OK) fail_msg("%s", err.message);
        assert_compare(ir_arena_limit_bytes(arena), >, 512 * bytes.size);
        assert_compare(ir_arena_limit_bytes(arena), <, (size_t)2 << 30);
        assert_int_equal(fe_explain_memory(arena, "m", MDOT_OUT_OF_MEMORY, &err), MDOT_OUT_OF_MEMORY);
        assert_string_equal(err.message, "");
        assert_null(ir_arena_alloc(arena, ir_arena_limit_bytes(arena), 1));
        assert_int_equal(fe_explain_memory(arena, "m", MDOT_UNSUPPORTED, &err), MDOT_UNSUPPORTED);
        assert_string_equal(err.message, "");
        assert_int_equal(fe_explain_memory(arena, "m", MDOT_OUT_OF_MEMORY, &err), MDOT_OUT_OF_MEMORY);
        assert_non_null(strstr(err.message, "m: reading takes more memory than is allowed for a file of this size: "));
        ir_arena_destroy(arena);
    }
    pb_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_opset_is_refused),
        cmocka_unit_test(graph_without_outputs_is_refused),
        cmocka_unit_test(undefined_output_is_refused),
        cmocka_unit_test(repeated_output_is_refused),
        cmocka_unit_test(undefined_input_is_refused),
        cmocka_unit_test(second_definition_is_refused),
        cmocka_unit_test(redefined_input_is_refused),
        cmocka_unit_test(second_initializer_of_a_name_is_refused),
        cmocka_unit_test(second_input_of_a_name_is_refused),
        cmocka_unit_test(cycle_is_refused),
        cmocka_unit_test(node_that_reads_itself_is_refused),
        cmocka_unit_test(wrong_arity_is_refused),
        cmocka_unit_test(internal_operators_are_refused),
        cmocka_unit_test(node_without_operator_is_refused),
        cmocka_unit_test(repeated_attribute_is_refused),
        cmocka_unit_test(attribute_of_unknown_type_is_refused),
        cmocka_unit_test(constant_without_one_value_is_refused),
        cmocka_unit_test(sparse_constant_is_refused),
        cmocka_unit_test(excessive_nodes_are_refused),
        cmocka_unit_test(sparse_and_quantized_models_are_refused),
        cmocka_unit_test(out_of_memory_is_reported),
        cmocka_unit_test(the_bound_on_memory_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
