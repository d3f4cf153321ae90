/* test_topological_order.c — frontend/onnx/topological_order.c: files whose nodes are not sorted. Cycles and repeated
 * definitions are in test_import_refusals.c. */
#include "tests/support/frontend_fixture.h"

#include "ir/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

/* x [N, 4] → y, and loop constants. */
static onnx_builder *begin(void)
{
    static const unsigned char yes = 1;
    static const int64_t zero = 0, one = 1, two = 2;
    onnx_builder *b = onnx_begin(21);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,4");
    onnx_output(b, "y");
    onnx_initializer(b, "yes", MDOT_DTYPE_BOOL, "", &yes);
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "", &zero);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "", &one);
    onnx_initializer(b, "two", MDOT_DTYPE_I64, "", &two);
    onnx_initializer(b, "h0", MDOT_DTYPE_F32, "4", NULL);
    onnx_node(b, "Shape", "x", "shape");
    onnx_node(b, "Gather", "shape,zero", "n");
    return b;
}

/* A body with the step, the condition and the state h, continuing as long as the condition holds. */
static onnx_builder *loop_body(void)
{
    onnx_builder *body = onnx_begin(21);
    onnx_input(body, "step", MDOT_DTYPE_I64, "");
    onnx_input(body, "go", MDOT_DTYPE_BOOL, "");
    onnx_input(body, "h", MDOT_DTYPE_F32, NULL);
    return body;
}

/* The graph follows all rules. Returns the loop count. */
static int count_loops(const ir_graph *graph)
{
    int count = 0;
    mdot_error err = {0};
    if (ir_graph_verify(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (const ir_node *node = graph->first; node != NULL; node = node->next) count += ir_is_loop_begin(node);
    return count;
}

/* The file's first node reads the result of a later loop. The body has a node "spare", which reads `operand`; its
 * result is unread. */
static onnx_builder *unsorted_loop(const char *operand)
{
    onnx_builder *b = begin(), *body = loop_body();
    onnx_output(body, "go");
    char inputs[16];
    snprintf(inputs, sizeof inputs, "h,%s", operand);
    onnx_node(body, "Add", "h,x", "sum");
    onnx_output(body, "sum");
    onnx_node(body, "Mul", inputs, "spare");
    onnx_node(b, "Neg", "r", "y");
    onnx_node(b, "Loop", "n,yes,x", "r");
    onnx_attr_graph(b, "body", body);
    return b;
}

/* Nodes behind a loop may not read the body, so an unread body node belongs in front of the loop's end. */
static void unread_nodes_of_a_body_stay_in_the_loop(void **state)
{
    (void)state;
    imported m = expect_imported(unsorted_loop("h"), NULL);
    assert_int_equal(count_loops(m.graph), 1);
    release(&m);
    expect_refused(unsorted_loop("r"), NULL, MDOT_MALFORMED, "cycle", NULL);
}

/* The condition of an If decides about whole loops, wherever the file computes it. */
static void a_branch_with_a_loop_counts_as_a_whole(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        onnx_builder *b = begin(), *body = loop_body(), *first = onnx_begin(21), *second = onnx_begin(21);
        onnx_output(body, "go");
        onnx_node(body, "Add", "h,late", "sum");
        onnx_output(body, "sum");
        onnx_node(first, "Loop", "n,yes,x", "r");
        onnx_attr_graph(first, "body", body);
        onnx_output(first, "r");
        onnx_node(second, "Neg", "x", "r");
        onnx_output(second, "r");
        onnx_node(b, "If", "below", "y");
        onnx_attr_graph(b, "then_branch", first);
        onnx_attr_graph(b, "else_branch", second);
        onnx_node(b, "Less", k == 0 ? "one,two" : "two,one", "below");
        onnx_node(b, "Where", "below,h0,h0", "late");
        imported m = expect_imported(b, NULL);
        assert_int_equal(count_loops(m.graph), k == 0 ? 1 : 0);
        release(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unread_nodes_of_a_body_stay_in_the_loop),
        cmocka_unit_test(a_branch_with_a_loop_counts_as_a_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
