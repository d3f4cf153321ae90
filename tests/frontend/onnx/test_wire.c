/* test_wire.c — damaged and hostile bytes are refused with a message, and are never trusted. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A model with all message types' parts: tensors, functions, every attribute kind, a subgraph. */
static pb_buffer sample_model(void)
{
    static const float weights[16] = {1, 2, 3, 4, 5};
    static const int64_t axes[] = {1, 2};
    static const float floats[] = {0.5f, 2};
    onnx_builder *b = onnx_begin(12);
    onnx_import(b, "local", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,N,4");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "4,4", weights);
    onnx_begin_function(b, "local:Twice", "a", "c", 12);
    onnx_function_attr_int(b, "axis", -1);
    onnx_node(b, "Add", "a,a", "b");
    onnx_node(b, "Softmax", "b", "c");
    onnx_attr_reference(b, "axis", "axis");
    onnx_end_function(b);
    onnx_node(b, "MatMul", "x,w", "y");
    onnx_node_name(b, "product");
    onnx_node(b, "local:Twice", "y", "z");
    onnx_node(b, "ReduceSum", "z", "s");
    onnx_attr_ints(b, "axes", 2, axes);
    onnx_node(b, "Unknown", "s", "u");
    onnx_attr_floats(b, "floats", 2, floats);
    onnx_attr_string(b, "text", "some text");
    onnx_attr_tensor(b, "table", MDOT_DTYPE_I64, "2", axes);
    pb_buffer graph = {0}, attribute = {0};
    pb_text(&graph, 2, "body");
    pb_text(&attribute, 1, "body");
    pb_int(&attribute, 20, 5);
    pb_message(&attribute, 6, &graph);
    onnx_attr_raw(b, &attribute);
    onnx_output(b, "u");
    return onnx_finish(b);
}

/* Imports an exact heap copy, so a sanitizer detects every read beyond it. */
static mdot_status import_copy(const unsigned char *bytes, size_t size, mdot_error *err)
{
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    if (size) memcpy(copy, bytes, size);
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = NULL;
    mdot_status status = fe_import_bytes(copy, size, "model.onnx", NULL, NULL, arena, &graph, err);
    assert_compare(status == MDOT_OK, ==, graph != NULL);
    ir_arena_destroy(arena);
    free(copy);
    return status;
}

static void sample_model_imports(void **state)
{
    (void)state;
    imported model = import_bytes(sample_model(), NULL, NULL);
    assert_int_equal(model.status, MDOT_OK);
    assert_int_equal(node_count(model.graph), 5);
    release(&model);
}

static void truncated_models_fail(void **state)
{
    (void)state;
    pb_buffer bytes = sample_model();
    for (size_t size = 0; size < bytes.size; size++) {
        mdot_error err = {0};
        assert_int_not_equal(import_copy(bytes.data, size, &err), MDOT_OK);
        assert_compare(err.message[0], !=, '\0');
    }
    pb_free(&bytes);
}

static void flipped_bits_never_crash(void **state)
{
    (void)state;
    pb_buffer bytes = sample_model();
    for (size_t bit = 0; bit < 8 * bytes.size; bit++) {
        mdot_error err = {0};
        bytes.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        mdot_status status = import_copy(bytes.data, bytes.size, &err);
        assert_true(status == MDOT_OK || err.message[0] != '\0');
        bytes.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    pb_free(&bytes);
}

static void empty_bytes_are_refused(void **state)
{
    (void)state;
    expect_refused_bytes((pb_buffer){0}, MDOT_MALFORMED, "empty; copy or export it again");
}

static void more_than_two_gigabytes_are_refused_unread(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = NULL;
    mdot_error err = {0};
    mdot_status status = fe_import_bytes("", (size_t)INT32_MAX + 1, "large", NULL, NULL, arena, &graph, &err);
    assert_int_equal(status, MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "external data"));
    ir_arena_destroy(arena);
}

static void model_without_graph_is_refused(void **state)
{
    (void)state;
    pb_buffer bytes = {0};
    pb_int(&bytes, 1, 8);
    expect_refused_bytes(bytes, MDOT_MALFORMED, "no graph");
}

static void second_graph_is_refused(void **state)
{
    (void)state;
    pb_buffer bytes = {0}, graph = {0};
    pb_message(&bytes, 7, &graph);
    pb_message(&bytes, 7, &graph);
    expect_refused_bytes(bytes, MDOT_MALFORMED, "ModelProto.graph occurs twice");
}

static void groups_are_refused(void **state)
{
    (void)state;
    pb_buffer bytes = {0};
    pb_raw(&bytes, "\x0b\x0c", 2); /* group 1's start and end */
    expect_refused_bytes(bytes, MDOT_MALFORMED, "group");
}

static void overlong_varint_is_refused(void **state)
{
    (void)state;
    pb_buffer bytes = {0};
    pb_raw(&bytes, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12);
    expect_refused_bytes(bytes, MDOT_MALFORMED, "more than 64 bits");
}

static void varint_beyond_64_bits_is_refused(void **state)
{
    (void)state;
    pb_buffer bytes = {0};
    pb_raw(&bytes, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11);
    expect_refused_bytes(bytes, MDOT_MALFORMED, "more than 64 bits");
}

static void field_number_zero_is_refused(void **state)
{
    (void)state;
    pb_buffer bytes = {0};
    pb_raw(&bytes, "\x00\x00", 2);
    expect_refused_bytes(bytes, MDOT_MALFORMED, "number is out of range");
}

static void length_beyond_its_message_is_refused(void **state)
{
    (void)state;
    pb_buffer bytes = {0};
    pb_raw(&bytes, "\x3a\xff\xff\xff\xff\x0f", 6); /* a four-gigabyte graph */
    expect_refused_bytes(bytes, MDOT_MALFORMED, "exceeds the message that contains it");
}

/* Bytes that are no message usually come from a truncated copy. */
static void damaged_bytes_have_a_remedy(void **state)
{
    (void)state;
    static const char remedy[] = "; the file is damaged, cut off or no ONNX model: copy or export it again";
    pb_buffer text = {0};
    pb_raw(&text, "some text\1", 10);
    expect_refused_bytes(text, MDOT_MALFORMED, remedy);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,4");
    onnx_node(b, "Relu", "x", "y");
    onnx_output(b, "y");
    pb_buffer cut = onnx_finish(b);
    cut.size -= 8;
    expect_refused_bytes(cut, MDOT_MALFORMED, remedy);
}

static void wrong_wire_type_is_refused(void **state)
{
    (void)state;
    pb_buffer bytes = {0};
    pb_int(&bytes, 7, 1);
    expect_refused_bytes(bytes, MDOT_MALFORMED, "ModelProto.graph has the wrong wire type");
}

static void packed_floats_that_end_within_an_element_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, "1");
    pb_bytes(&tensor, 4, "abc", 3);
    onnx_graph_raw(b, 5, &tensor);
    expect_refused(b, NULL, MDOT_MALFORMED, "TensorProto.float_data ends within an element", NULL);
}

static void name_with_nul_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    pb_buffer node = {0};
    pb_bytes(&node, 4, "Re\0lu", 5);
    onnx_graph_raw(b, 1, &node);
    expect_refused(b, NULL, MDOT_MALFORMED, "NodeProto.op_type contains a NUL", NULL);
}

static void unknown_fields_are_ignored(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    pb_buffer anything = {0};
    pb_text(&anything, 99, "of a later version");
    onnx_model_raw(b, 14, &anything);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_node(b, "Relu", "x", "y");
    onnx_output(b, "y");
    imported model = expect_imported(b, NULL);
    assert_int_equal(node_count(model.graph), 1);
    release(&model);
}

/* `depth` nested graphs: graph → node → attribute → graph. */
static pb_buffer nested_graphs(int depth)
{
    pb_buffer graph = {0};
    for (int i = 1; i < depth; i++) {
        pb_buffer attribute = {0}, node = {0}, outer = {0};
        pb_text(&attribute, 1, "body");
        pb_message(&attribute, 6, &graph);
        pb_text(&node, 4, "Loop");
        pb_message(&node, 5, &attribute);
        pb_message(&outer, 1, &node);
        graph = outer;
    }
    return graph;
}

static imported import_nested(int depth)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_node(b, "Loop", "x", "y");
    pb_buffer graph = nested_graphs(depth - 1), attribute = {0};
    pb_text(&attribute, 1, "body");
    pb_message(&attribute, 6, &graph);
    onnx_attr_raw(b, &attribute);
    onnx_output(b, "y");
    return import_model(b, NULL);
}

static void graphs_nest_64_deep_and_no_deeper(void **state)
{
    (void)state;
    static const int depths[] = {64, 65, 1000, 3000};
    for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
        imported model = import_nested(depths[i]);
        assert_int_equal(model.status, depths[i] <= 64 ? MDOT_OK : MDOT_UNSUPPORTED);
        if (model.status != MDOT_OK) assert_non_null(strstr(model.err.message, "nested messages"));
        release(&model);
    }
}

/* Each node has two bytes in the file. Unpacked, it takes a hundred times as much. */
static void millions_of_empty_nodes_are_refused(void **state)
{
    (void)state;
    pb_buffer model = {0}, graph = {0}, output = {0};
    pb_text(&output, 1, "y");
    pb_message(&graph, 12, &output);
    for (int i = 0; i < 2000000; i++) pb_raw(&graph, "\x0a", 2);
    pb_message(&model, 7, &graph);
    expect_refused_bytes(model, MDOT_MALFORMED, "has no operator");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_model_imports),
        cmocka_unit_test(truncated_models_fail),
        cmocka_unit_test(flipped_bits_never_crash),
        cmocka_unit_test(empty_bytes_are_refused),
        cmocka_unit_test(more_than_two_gigabytes_are_refused_unread),
        cmocka_unit_test(model_without_graph_is_refused),
        cmocka_unit_test(second_graph_is_refused),
        cmocka_unit_test(groups_are_refused),
        cmocka_unit_test(overlong_varint_is_refused),
        cmocka_unit_test(varint_beyond_64_bits_is_refused),
        cmocka_unit_test(field_number_zero_is_refused),
        cmocka_unit_test(length_beyond_its_message_is_refused),
        cmocka_unit_test(damaged_bytes_have_a_remedy),
        cmocka_unit_test(wrong_wire_type_is_refused),
        cmocka_unit_test(packed_floats_that_end_within_an_element_are_refused),
        cmocka_unit_test(name_with_nul_is_refused),
        cmocka_unit_test(unknown_fields_are_ignored),
        cmocka_unit_test(graphs_nest_64_deep_and_no_deeper),
        cmocka_unit_test(millions_of_empty_nodes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
