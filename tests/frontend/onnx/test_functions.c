/* test_functions.c — model-local functions, inlined with their own names, opsets and attributes. */
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static onnx_builder *begin_model(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "local", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4");
    onnx_output(b, "y");
    return b;
}

static void call_becomes_the_body(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:Twice", "a,b", "out", 17);
    onnx_node(b, "Add", "a,b", "sum");
    onnx_node_name(b, "add");
    onnx_node(b, "Relu", "sum", "out");
    onnx_end_function(b);
    onnx_node(b, "local:Twice", "x,x", "y");
    onnx_node_name(b, "call");
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_count(m.graph), 2);
    assert_string_equal(node_at(m.graph, 0)->name, "call/add");
    assert_string_equal(node_at(m.graph, 0)->outputs[0]->name, "call/sum");
    assert_ptr_equal(node_at(m.graph, 0)->inputs[1], m.graph->inputs[0]);
    assert_string_equal(m.graph->outputs[0]->name, "y");
    assert_int_equal(ir_graph_verify(m.graph, &m.err), MDOT_OK);
    release(&m);
}

static void names_in_a_function_are_unique_to_each_call(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "x", "y", 17); /* the same names as in the graph, for other values */
    onnx_node(b, "Neg", "x", "h");
    onnx_node(b, "Abs", "h", "y");
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "h");
    onnx_node(b, "local:F", "h", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_count(m.graph), 4);
    assert_ptr_equal(m.graph->outputs[0]->def, node_at(m.graph, 3));
    assert_ptr_equal(node_at(m.graph, 2)->inputs[0], node_at(m.graph, 1)->outputs[0]);
    release(&m);
}

static void functions_call_functions(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:Inner", "a", "c", 17);
    onnx_node(b, "Neg", "a", "c");
    onnx_end_function(b);
    onnx_begin_function(b, "local:Outer", "a", "c", 17);
    onnx_node(b, "local:Inner", "a", "h");
    onnx_node(b, "local:Inner", "h", "c");
    onnx_end_function(b);
    onnx_node(b, "local:Outer", "x", "y");
    imported m = expect_imported(b, NULL);
    assert_int_equal(node_count(m.graph), 2);
    release(&m);
}

static void body_uses_the_functions_opset(void **state)
{
    (void)state;
    static const int64_t axes[] = {0};
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "c", 11); /* an opset with axes as an attribute */
    onnx_node(b, "Unsqueeze", "a", "c");
    onnx_attr_ints(b, "axes", 1, axes);
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "y");
    imported m = expect_imported(b, NULL);
    expect_ints(node_of(m.graph, IR_OP_Unsqueeze)->inputs[1], 1, axes);
    release(&m);
}

static onnx_builder *with_reference(void)
{
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "c", 17);
    onnx_function_attr_int(b, "along", 3);
    onnx_function_attr(b, "optional");
    onnx_node(b, "Softmax", "a", "c");
    onnx_attr_reference(b, "axis", "along");
    onnx_attr_reference(b, "other", "optional");
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "y");
    return b;
}

static void attribute_reference_takes_the_calls_value(void **state)
{
    (void)state;
    onnx_builder *b = with_reference();
    onnx_attr_int(b, "along", 1);
    imported m = expect_imported(b, NULL);
    assert_int_equal(ir_node_int(node_of(m.graph, IR_OP_Softmax), "axis", 99), 1);
    release(&m);
}

static void attribute_reference_falls_back_to_the_default(void **state)
{
    (void)state;
    imported m = expect_imported(with_reference(), NULL);
    assert_int_equal(ir_node_int(node_of(m.graph, IR_OP_Softmax), "axis", 99), 3);
    assert_null(ir_node_attr(node_of(m.graph, IR_OP_Softmax), "other"));
    release(&m);
}

static void attribute_references_pass_through_nested_calls(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:Inner", "a", "c", 17);
    onnx_function_attr(b, "k");
    onnx_node(b, "Softmax", "a", "c");
    onnx_attr_reference(b, "axis", "k");
    onnx_end_function(b);
    onnx_begin_function(b, "local:Outer", "a", "c", 17);
    onnx_function_attr(b, "j");
    onnx_node(b, "local:Inner", "a", "c");
    onnx_attr_reference(b, "k", "j");
    onnx_end_function(b);
    onnx_node(b, "local:Outer", "x", "y");
    onnx_attr_int(b, "j", -2);
    imported m = expect_imported(b, NULL);
    assert_int_equal(ir_node_int(node_of(m.graph, IR_OP_Softmax), "axis", 99), -2);
    release(&m);
}

static void absent_input_of_a_call_is_absent_in_the_body(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a,low,high", "c", 17);
    onnx_node(b, "Clip", "a,low,high", "c");
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "y");
    imported m = expect_imported(b, NULL);
    const ir_node *clip = node_of(m.graph, IR_OP_Clip);
    assert_null(ir_node_input(clip, 1));
    assert_null(ir_node_input(clip, 2));
    release(&m);
}

static void output_that_the_call_leaves_out_is_dropped(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "p,q", 17);
    onnx_node(b, "Neg", "a", "p");
    onnx_node(b, "Abs", "a", "q");
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", ",y");
    imported m = expect_imported(b, NULL);
    assert_ptr_equal(m.graph->outputs[0]->def->op, &ir_ops[IR_OP_Abs]);
    release(&m);
}

static void input_may_pass_through_to_an_output(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "a", 17);
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "y");
    imported m = expect_imported(b, NULL);
    assert_ptr_equal(m.graph->outputs[0]->def->op, &ir_ops[IR_OP_Identity]);
    assert_string_equal(m.graph->outputs[0]->name, "y");
    release(&m);
}

static void overloads_are_distinguished(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F:neg", "a", "c", 17);
    onnx_node(b, "Neg", "a", "c");
    onnx_end_function(b);
    onnx_begin_function(b, "local:F:abs", "a", "c", 17);
    onnx_node(b, "Abs", "a", "c");
    onnx_end_function(b);
    onnx_node(b, "local:F:abs", "x", "y");
    imported m = expect_imported(b, NULL);
    assert_ptr_equal(node_at(m.graph, 0)->op, &ir_ops[IR_OP_Abs]);
    release(&m);
}

static void recursion_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "c", 17);
    onnx_node(b, "local:G", "a", "c");
    onnx_end_function(b);
    onnx_begin_function(b, "local:G", "a", "c", 17);
    onnx_node(b, "local:F", "a", "c");
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "local.F", "calls itself", NULL);
}

/* A function chain. Each calls the next `calls` times. */
static onnx_builder *chain(int depth, int calls)
{
    onnx_builder *b = begin_model();
    char name[32], next[32], from[16], to[16];
    for (int i = 0; i < depth; i++) {
        snprintf(name, sizeof name, "local:F%d", i);
        snprintf(next, sizeof next, i + 1 < depth ? "local:F%d" : "Neg", i + 1);
        snprintf(to, sizeof to, "v%d", calls);
        onnx_begin_function(b, name, "v0", to, 17);
        for (int k = 0; k < calls; k++) {
            snprintf(from, sizeof from, "v%d", k);
            snprintf(to, sizeof to, "v%d", k + 1);
            onnx_node(b, next, from, to);
        }
        onnx_end_function(b);
    }
    onnx_node(b, "local:F0", "x", "y");
    return b;
}

static void deep_chain_of_calls_is_refused(void **state)
{
    (void)state;
    imported m = expect_imported(chain(64, 1), NULL);
    assert_int_equal(node_count(m.graph), 1);
    release(&m);
    expect_refused(chain(65, 1), NULL, MDOT_UNSUPPORTED, "64 nested functions", NULL);
}

static void exponential_expansion_is_refused(void **state)
{
    (void)state;
    expect_refused(chain(40, 2), NULL, MDOT_OUT_OF_MEMORY, "takes more memory", NULL); /* 2^40 nodes */
}

static void function_defined_twice_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    for (int i = 0; i < 2; i++) {
        onnx_begin_function(b, "local:F", "a", "c", 17);
        onnx_node(b, "Neg", "a", "c");
        onnx_end_function(b);
    }
    onnx_node(b, "local:F", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "local.F", "defined twice", NULL);
}

static void call_with_too_many_inputs_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "c", 17);
    onnx_node(b, "Neg", "a", "c");
    onnx_end_function(b);
    onnx_node(b, "local:F", "x,x", "y");
    onnx_node_name(b, "call");
    expect_refused(b, NULL, MDOT_MALFORMED, "node 'call'", "more inputs", NULL);
}

static void undefined_name_inside_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "c", 17);
    onnx_node(b, "Add", "a,x", "c"); /* the graph's x is invisible inside */
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "y");
    onnx_node_name(b, "call");
    expect_refused(b, NULL, MDOT_MALFORMED, "'call/x'", "is undefined", NULL);
}

static void undefined_output_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "c", 17);
    onnx_node(b, "Neg", "a", "d");
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "output 'y'", "is undefined", NULL);
}

static void reference_outside_of_a_function_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_node(b, "Softmax", "x", "y");
    onnx_attr_reference(b, "axis", "k");
    expect_refused(b, NULL, MDOT_MALFORMED, "'axis'", "function", NULL);
}

static void function_without_an_opset_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin_model();
    onnx_begin_function(b, "local:F", "a", "c", 0);
    onnx_node(b, "Neg", "a", "c");
    onnx_end_function(b);
    onnx_node(b, "local:F", "x", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "Neg", "no opset", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_becomes_the_body),
        cmocka_unit_test(names_in_a_function_are_unique_to_each_call),
        cmocka_unit_test(functions_call_functions),
        cmocka_unit_test(body_uses_the_functions_opset),
        cmocka_unit_test(attribute_reference_takes_the_calls_value),
        cmocka_unit_test(attribute_reference_falls_back_to_the_default),
        cmocka_unit_test(attribute_references_pass_through_nested_calls),
        cmocka_unit_test(absent_input_of_a_call_is_absent_in_the_body),
        cmocka_unit_test(output_that_the_call_leaves_out_is_dropped),
        cmocka_unit_test(input_may_pass_through_to_an_output),
        cmocka_unit_test(overloads_are_distinguished),
        cmocka_unit_test(recursion_is_refused),
        cmocka_unit_test(deep_chain_of_calls_is_refused),
        cmocka_unit_test(exponential_expansion_is_refused),
        cmocka_unit_test(function_defined_twice_is_refused),
        cmocka_unit_test(call_with_too_many_inputs_is_refused),
        cmocka_unit_test(undefined_name_inside_is_refused),
        cmocka_unit_test(undefined_output_is_refused),
        cmocka_unit_test(reference_outside_of_a_function_is_refused),
        cmocka_unit_test(function_without_an_opset_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
