/* test_import.c — nodes and values: names, order, single assignment, attributes, and models that break these rules. */
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

static void values_keep_their_names(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Relu", "x", "h");
    onnx_node_name(b, "first");
    onnx_node(b, "Neg", "h", "y");
    imported m = expect_imported(b, NULL);
    assert_string_equal(m.graph->name, "model.onnx");
    assert_string_equal(m.graph->inputs[0]->name, "x");
    assert_string_equal(m.graph->outputs[0]->name, "y");
    assert_string_equal(node_at(m.graph, 0)->name, "first");
    assert_string_equal(node_at(m.graph, 0)->outputs[0]->name, "h");
    assert_string_equal(node_at(m.graph, 1)->name, "Neg→y");
    assert_int_equal(ir_graph_verify(m.graph, &m.err), MDOT_OK);
    release(&m);
}

static void nodes_leave_types_to_inference(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(12);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,4");
    onnx_output(b, "y");
    onnx_node(b, "Relu", "x", "h");
    onnx_node(b, "Softmax", "h", "y"); /* the upgrade needs the rank of h */
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_at(m.graph, 0)->outputs[0]->type.rank, -1);
    assert_int_equal(node_at(m.graph, 0)->outputs[0]->type.dtype, MDOT_DTYPE_NONE);
    release(&m);
}

static void absent_optional_input_is_null(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_initializer(b, "high", MDOT_DTYPE_F32, "", NULL);
    onnx_node(b, "Clip", "x,,high", "y");
    imported m = expect_imported(b, NULL);
    const ir_node *clip = node_of(m.graph, IR_OP_Clip);
    assert_int_equal(clip->input_count, 3);
    assert_null(clip->inputs[1]);
    assert_string_equal(clip->inputs[2]->name, "high");
    release(&m);
}

static void absent_optional_output_is_null(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, "4", NULL);
    onnx_node(b, "LayerNormalization", "x,scale", "y,,inverse");
    imported m = expect_imported(b, NULL);
    const ir_node *norm = node_of(m.graph, IR_OP_LayerNormalization);
    assert_int_equal(norm->output_count, 3);
    assert_null(norm->outputs[1]);
    assert_string_equal(norm->outputs[2]->name, "inverse");
    assert_int_equal(ir_graph_verify(m.graph, &m.err), MDOT_OK);
    release(&m);
}

static void absent_inputs_at_the_end_are_cut_off(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Clip", "x,,", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_of(m.graph, IR_OP_Clip)->input_count, 1);
    release(&m);
}

static void initializer_listed_as_input_is_a_constant(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_input(b, "w", MDOT_DTYPE_F32, "4");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "4", NULL);
    onnx_node(b, "Add", "x,w", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(m.graph->input_count, 1);
    assert_non_null(node_of(m.graph, IR_OP_Add)->inputs[1]->constant);
    release(&m);
}

static void constant_nodes_become_constants(void **state)
{
    (void)state;
    static const int64_t ints[] = {3, -4};
    onnx_builder *b = begin_model();
    onnx_node(b, "Constant", "", "c");
    onnx_attr_ints(b, "value_ints", 2, ints);
    onnx_node(b, "Constant", "", "s");
    onnx_attr_float(b, "value_float", 2.5f);
    onnx_node(b, "Mul", "x,s", "h");
    onnx_node(b, "Reshape", "h,c", "y");
    imported m = expect_imported(b, NULL);
    double value;
    assert_int_equal(node_count(m.graph), 2);
    expect_ints(node_of(m.graph, IR_OP_Reshape)->inputs[1], 2, ints);
    assert_true(ir_value_scalar(node_of(m.graph, IR_OP_Mul)->inputs[1], &value));
    assert_compare(value, ==, 2.5);
    assert_int_equal(node_of(m.graph, IR_OP_Mul)->inputs[1]->type.rank, 0);
    release(&m);
}

static void constant_lists_and_strings_keep_their_type(void **state)
{
    (void)state;
    static const float floats[] = {0.5f, 1.5f};
    onnx_builder *b = begin_model();
    onnx_node(b, "Constant", "", "floats");
    onnx_attr_floats(b, "value_floats", 2, floats);
    onnx_node(b, "Constant", "", "text");
    onnx_attr_string(b, "value_string", "relu");
    onnx_node(b, "Constant", "", "texts");
    pb_buffer strings = {0};
    pb_text(&strings, 1, "value_strings");
    pb_int(&strings, 20, 8);
    pb_text(&strings, 9, "a");
    pb_text(&strings, 9, "b");
    onnx_attr_raw(b, &strings);
    onnx_node(b, "Any", "floats,text,texts", "y");
    imported m = expect_imported(b, NULL);
    const ir_node *node = node_at(m.graph, 0);
    assert_memory_equal(node->inputs[0]->constant->data, floats, sizeof floats);
    assert_int_equal(node->inputs[0]->type.dtype, MDOT_DTYPE_F32);
    assert_int_equal(node->inputs[1]->type.dtype, MDOT_DTYPE_STRING);
    assert_int_equal(node->inputs[1]->type.rank, 0);
    assert_int_equal(node->inputs[2]->constant->count, 2);
    release(&m);
}

static void constant_may_be_an_output(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Constant", "", "y");
    onnx_attr_int(b, "value_int", 7);
    imported m = expect_imported(b, NULL);
    assert_string_equal(m.graph->outputs[0]->name, "y");
    assert_non_null(m.graph->outputs[0]->constant);
    release(&m);
}

static void unknown_operators_are_kept(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_import(b, "com.microsoft", 1);
    onnx_node(b, "com.microsoft:FooBar", "x", "h");
    onnx_node(b, "If", "h", "y");
    imported m = expect_imported(b, NULL);
    assert_null(node_at(m.graph, 0)->op);
    assert_string_equal(node_at(m.graph, 0)->op_type, "com.microsoft:FooBar");
    assert_null(node_at(m.graph, 1)->op);
    assert_string_equal(node_at(m.graph, 1)->op_type, "If");
    release(&m);
}

static void ai_onnx_names_the_default_domain(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(0);
    onnx_import(b, "ai.onnx", 17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_output(b, "y");
    onnx_node(b, "ai.onnx:Relu", "x", "y");
    imported m = expect_imported(b, NULL);
    assert_ptr_equal(node_at(m.graph, 0)->op, &ir_ops[IR_OP_Relu]);
    release(&m);
}

static void every_kind_of_attribute_is_read(void **state)
{
    (void)state;
    static const int64_t ints[] = {1, INT64_MIN};
    static const float floats[] = {0.25f};
    onnx_builder *b = begin_model();
    onnx_node(b, "Any", "x", "y");
    onnx_attr_int(b, "i", -3);
    onnx_attr_float(b, "f", 0.5f);
    onnx_attr_string(b, "s", "text");
    onnx_attr_ints(b, "ints", 2, ints);
    onnx_attr_floats(b, "floats", 1, floats);
    onnx_attr_tensor(b, "t", MDOT_DTYPE_I64, "2", ints);
    imported m = expect_imported(b, NULL);
    const ir_node *node = node_at(m.graph, 0);
    assert_int_equal(ir_node_int(node, "i", 0), -3);
    assert_compare(ir_node_float(node, "f", 0), ==, 0.5);
    assert_string_equal(ir_node_string(node, "s", ""), "text");
    assert_int_equal(ir_node_attr(node, "ints")->count, 2);
    assert_compare(ir_node_attr(node, "ints")->ints[1], ==, INT64_MIN);
    assert_compare(ir_node_attr(node, "floats")->floats[0], ==, 0.25);
    assert_int_equal(ir_node_attr(node, "t")->tensor->dims[0], 2);
    release(&m);
}

/* IR versions 1 and 2 lack AttributeProto.type. */
static void attribute_without_type_is_read_by_its_field(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Any", "x", "y");
    pb_buffer attribute = {0};
    pb_text(&attribute, 1, "alpha");
    pb_float(&attribute, 2, 2);
    onnx_attr_raw(b, &attribute);
    imported m = expect_imported(b, NULL);
    assert_compare(ir_node_float(node_at(m.graph, 0), "alpha", 0), ==, 2);
    release(&m);
}

static void nodes_in_the_wrong_order_are_sorted(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Exp", "c", "y");
    onnx_node(b, "Neg", "a", "c");
    onnx_node(b, "Relu", "x", "a");
    imported m = expect_imported(b, NULL);
    assert_ptr_equal(node_at(m.graph, 0)->op, &ir_ops[IR_OP_Relu]);
    assert_ptr_equal(node_at(m.graph, 1)->op, &ir_ops[IR_OP_Neg]);
    assert_ptr_equal(node_at(m.graph, 2)->op, &ir_ops[IR_OP_Exp]);
    assert_int_equal(ir_graph_verify(m.graph, &m.err), MDOT_OK);
    release(&m);
}

static void sorted_nodes_keep_their_order(void **state)
{
    (void)state;
    static const ir_opcode ops[] = {IR_OP_Relu, IR_OP_Neg, IR_OP_Abs, IR_OP_Add};
    onnx_builder *b = begin_model();
    onnx_node(b, "Relu", "x", "r");
    onnx_node(b, "Neg", "x", "n");
    onnx_node(b, "Abs", "r", "a");
    onnx_node(b, "Add", "n,a", "y");
    imported m = expect_imported(b, NULL);
    for (int i = 0; i < 4; i++) assert_ptr_equal(node_at(m.graph, i)->op, &ir_ops[ops[i]]);
    release(&m);
}

static void input_may_be_an_output(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_output(b, "x");
    imported m = expect_imported(b, NULL);
    assert_ptr_equal(m.graph->outputs[0], m.graph->inputs[0]);
    release(&m);
}

/* A chain as long as large networks are. Each node is found by name once. */
static void twenty_thousand_nodes_import(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "v0", MDOT_DTYPE_F32, "4");
    for (int i = 0; i < 20000; i++) {
        char from[16], to[16];
        snprintf(from, sizeof from, "v%d", i);
        snprintf(to, sizeof to, "v%d", i + 1);
        onnx_node(b, "Relu", from, to);
    }
    onnx_output(b, "v20000");
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_count(m.graph), 20000);
    release(&m);
}

/* The sorting walk must not recurse once per node. */
static void long_chain_in_reverse_order_is_sorted(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "v0", MDOT_DTYPE_F32, "4");
    for (int i = 100000; i-- > 0;) {
        char from[16], to[16];
        snprintf(from, sizeof from, "v%d", i);
        snprintf(to, sizeof to, "v%d", i + 1);
        onnx_node(b, "Neg", from, to);
    }
    onnx_output(b, "v100000");
    imported m = expect_imported(b, NULL);
    assert_string_equal(node_at(m.graph, 0)->outputs[0]->name, "v1");
    release(&m);
}

/* opset_import exists since the third IR version. */
static void model_from_before_opsets_is_of_the_first(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(0);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4,4");
    onnx_output(b, "y");
    onnx_node(b, "Concat", "x,x", "y"); /* the axis was optional then */
    pb_buffer bytes = onnx_finish(b);
    pb_int(&bytes, 1, 2); /* a repeated field's last value counts */
    imported m = import_bytes(bytes, NULL, NULL);
    assert_int_equal(m.status, MDOT_OK);
    assert_int_equal(ir_node_int(node_of(m.graph, IR_OP_Concat), "axis", 0), 1);
    release(&m);
}

static void later_opset_is_tried_with_one_warning(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(99);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_output(b, "y");
    onnx_node(b, "Relu", "x", "h");
    onnx_node(b, "Neg", "h", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(m.warning_count, 1);
    assert_non_null(strstr(m.warning, "opset 99"));
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_keep_their_names),
        cmocka_unit_test(nodes_leave_types_to_inference),
        cmocka_unit_test(absent_optional_input_is_null),
        cmocka_unit_test(absent_optional_output_is_null),
        cmocka_unit_test(absent_inputs_at_the_end_are_cut_off),
        cmocka_unit_test(initializer_listed_as_input_is_a_constant),
        cmocka_unit_test(constant_nodes_become_constants),
        cmocka_unit_test(constant_lists_and_strings_keep_their_type),
        cmocka_unit_test(constant_may_be_an_output),
        cmocka_unit_test(unknown_operators_are_kept),
        cmocka_unit_test(ai_onnx_names_the_default_domain),
        cmocka_unit_test(every_kind_of_attribute_is_read),
        cmocka_unit_test(attribute_without_type_is_read_by_its_field),
        cmocka_unit_test(nodes_in_the_wrong_order_are_sorted),
        cmocka_unit_test(sorted_nodes_keep_their_order),
        cmocka_unit_test(input_may_be_an_output),
        cmocka_unit_test(twenty_thousand_nodes_import),
        cmocka_unit_test(long_chain_in_reverse_order_is_sorted),
        cmocka_unit_test(model_from_before_opsets_is_of_the_first),
        cmocka_unit_test(later_opset_is_tried_with_one_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
