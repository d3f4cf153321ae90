/* test_branches.c — frontend/onnx/functions.c: an If in a predictor, of which a constant takes one branch. */
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

/* A GraphProto of one node that reads x; both branches call their result "inner". */
static void add_branch(onnx_builder *b, const char *name, const char *op_type)
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
    onnx_attr_raw(b, &attr);
}

static onnx_builder *begin(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,4");
    onnx_output(b, "y");
    return b;
}

static void add_if(onnx_builder *b, const char *condition)
{
    onnx_node(b, "If", condition, "y");
    add_branch(b, "then_branch", "Sigmoid");
    add_branch(b, "else_branch", "Tanh");
}

static void expect_operator(onnx_builder *b, const char *op_type)
{
    imported m = expect_imported(b, NULL);
    assert_string_equal(m.graph->first->op_type, op_type);
    for (const ir_node *node = m.graph->first; node != NULL; node = node->next)
        assert_string_not_equal(node->op_type, "If");
    release(&m);
}

static void an_initializer_takes_a_branch(void **state)
{
    (void)state;
    for (int value = 0; value < 2; value++) {
        const unsigned char byte = (unsigned char)value;
        onnx_builder *b = begin();
        onnx_initializer(b, "c", MDOT_DTYPE_BOOL, "", &byte);
        add_if(b, "c");
        expect_operator(b, value ? "Sigmoid" : "Tanh");
    }
}

static void a_constant_takes_a_branch(void **state)
{
    (void)state;
    const unsigned char yes = 1;
    onnx_builder *b = begin();
    onnx_node(b, "Constant", "", "c");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_BOOL, "1", &yes);
    add_if(b, "c");
    expect_operator(b, "Sigmoid");
}

static void what_data_decides_stays_an_if(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_input(b, "flag", MDOT_DTYPE_BOOL, "");
    add_if(b, "flag");
    imported m = expect_imported(b, NULL);
    assert_string_equal(m.graph->first->op_type, "If");
    assert_null(m.graph->first->op);
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_initializer_takes_a_branch),
        cmocka_unit_test(a_constant_takes_a_branch),
        cmocka_unit_test(what_data_decides_stays_an_if),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
