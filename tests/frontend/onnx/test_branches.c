/* test_branches.c — frontend/onnx/functions.c and import.c: an If in a predictor. Constants or shapes select one
 * branch. Data select elements from either branch. */
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* An attribute with a one-node GraphProto that reads x. Both branches name the result "inner". */
static pb_buffer branch(const char *name, const char *op_type)
{
    pb_buffer node = {0}, graph = {0}, info = {0}, attr = {0};
    pb_text(&node, 1, "x");
    pb_text(&node, 2, "inner");
    pb_text(&node, 4, op_type);
    pb_message(&graph, 1, &node);
    pb_text(&info, 1, "inner");
    pb_message(&graph, 12, &info);
    pb_text(&attr, 1, name);
    pb_message(&attr, 6, &graph);
    pb_int(&attr, 20, 5); /* AttributeProto.GRAPH */
    return attr;
}

static onnx_builder *begin(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,4");
    onnx_output(b, "y");
    return b;
}

static void add_if(onnx_builder *b, const char *condition, const char *if_true, const char *if_false)
{
    onnx_node(b, "If", condition, "y");
    pb_buffer first = branch("then_branch", if_true), second = branch("else_branch", if_false);
    onnx_attr_raw(b, &first);
    onnx_attr_raw(b, &second);
}

static void expect_operator(onnx_builder *b, const char *op_type)
{
    imported m = expect_imported(b, NULL);
    bool found = false;
    for (const ir_node *node = m.graph->first; node != NULL; node = node->next) {
        assert_string_not_equal(node->op_type, "If");
        assert_string_not_equal(node->op_type, "Size"); /* the other branch's operator */
        found = found || strcmp(node->op_type, op_type) == 0;
    }
    assert_true(found);
    assert_string_equal(m.graph->outputs[0]->name, "y");
    release(&m);
}

static void an_initializer_condition_selects_a_branch(void **state)
{
    (void)state;
    for (int value = 0; value < 2; value++) {
        const unsigned char byte = (unsigned char)value;
        onnx_builder *b = begin();
        onnx_initializer(b, "c", MDOT_DTYPE_BOOL, "", &byte);
        add_if(b, "c", value ? "Sigmoid" : "Size", value ? "Size" : "Tanh");
        expect_operator(b, value ? "Sigmoid" : "Tanh");
    }
}

static void a_constant_condition_selects_a_branch(void **state)
{
    (void)state;
    const unsigned char yes = 1;
    onnx_builder *b = begin();
    onnx_node(b, "Constant", "", "c");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_BOOL, "1", &yes);
    add_if(b, "c", "Sigmoid", "Size");
    expect_operator(b, "Sigmoid");
}

/* x's second dimension is 4. The first dimension is the length, which decides. */
static void a_shape_condition_selects_a_branch(void **state)
{
    (void)state;
    static const int64_t one = 1, four = 4;
    onnx_builder *b = begin();
    onnx_initializer(b, "at", MDOT_DTYPE_I64, "", &one);
    onnx_initializer(b, "four", MDOT_DTYPE_I64, "", &four);
    onnx_node(b, "Shape", "x", "shape");
    onnx_node(b, "Gather", "shape,at", "columns");
    onnx_node(b, "Equal", "columns,four", "c");
    add_if(b, "c", "Sigmoid", "Size");
    expect_operator(b, "Sigmoid");
}

static void length_conditions_become_where(void **state)
{
    (void)state;
    static const int64_t zero = 0, fifty = 50;
    onnx_builder *b = begin();
    onnx_initializer(b, "at", MDOT_DTYPE_I64, "", &zero);
    onnx_initializer(b, "fifty", MDOT_DTYPE_I64, "", &fifty);
    onnx_node(b, "Shape", "x", "shape");
    onnx_node(b, "Gather", "shape,at", "length");
    onnx_node(b, "Greater", "length,fifty", "c");
    add_if(b, "c", "Sigmoid", "Tanh");
    expect_operator(b, "Where");
}

static void data_conditions_become_where(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_input(b, "flag", MDOT_DTYPE_BOOL, "1");
    add_if(b, "flag", "Sigmoid", "Tanh");
    expect_operator(b, "Where");
}

static void results_of_different_types_keep_the_if(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_input(b, "flag", MDOT_DTYPE_BOOL, "");
    add_if(b, "flag", "Sigmoid", "Shape");
    imported m = expect_imported(b, NULL);
    assert_string_equal(m.graph->last->op_type, "If");
    assert_null(m.graph->last->op);
    mdot_error err;
    assert_int_equal(ir_check_supported(m.graph, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "torch.where(condition, a, b)"));
    release(&m);
}

/* A malformed file: a condition is one element. */
static void a_condition_of_many_elements_keeps_the_if(void **state)
{
    (void)state;
    static const unsigned char many[64] = {1, 1};
    onnx_builder *b = begin();
    onnx_initializer(b, "many", MDOT_DTYPE_BOOL, "64", many);
    add_if(b, "many", "Sigmoid", "Tanh");
    imported m = expect_imported(b, NULL);
    assert_string_equal(m.graph->last->op_type, "If");
    release(&m);
}

/* One input with an empty name. The builder's name list cannot express it. */
static void an_absent_condition_keeps_the_if(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    pb_buffer node = {0}, first = branch("then_branch", "Sigmoid"), second = branch("else_branch", "Tanh");
    pb_text(&node, 1, "");
    pb_text(&node, 2, "y");
    pb_text(&node, 4, "If");
    pb_message(&node, 5, &first);
    pb_message(&node, 5, &second);
    onnx_graph_raw(b, 1, &node);
    imported m = expect_imported(b, NULL);
    assert_string_equal(m.graph->last->op_type, "If");
    assert_null(m.graph->last->op);
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_initializer_condition_selects_a_branch),
        cmocka_unit_test(a_constant_condition_selects_a_branch),
        cmocka_unit_test(a_shape_condition_selects_a_branch),
        cmocka_unit_test(length_conditions_become_where),
        cmocka_unit_test(data_conditions_become_where),
        cmocka_unit_test(results_of_different_types_keep_the_if),
        cmocka_unit_test(a_condition_of_many_elements_keeps_the_if),
        cmocka_unit_test(an_absent_condition_keeps_the_if),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
