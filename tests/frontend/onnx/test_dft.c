/* test_dft.c — DFT becomes matmuls: values against known ones and against the inverse, over fixed dimensions and over
 * the length. */
#include "tests/support/frontend_fixture.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static onnx_builder *begin(int opset, const char *shape)
{
    onnx_builder *b = onnx_begin(opset);
    onnx_input(b, "x", MDOT_DTYPE_F32, shape);
    onnx_output(b, "y");
    return b;
}

/* Adds a DFT along the axis (an input in opset 20). */
static void transform(onnx_builder *b, int opset, const char *from, const char *to, int64_t axis, int inverse)
{
    char inputs[64] = "";
    strcat(inputs, from);
    if (opset >= 20) {
        onnx_initializer(b, inverse ? "axis_back" : "axis", MDOT_DTYPE_I64, "", &axis);
        strcat(inputs, inverse ? ",,axis_back" : ",,axis");
    }
    onnx_node(b, "DFT", inputs, to);
    if (opset < 20) onnx_attr_int(b, "axis", axis);
    onnx_attr_int(b, "inverse", inverse);
}

static void expect_same(onnx_builder *given, onnx_builder *wanted, double tolerance)
{
    mdot_error err;
    imported a = expect_imported(given, NULL), b = expect_imported(wanted, NULL);
    a.graph->max_length = b.graph->max_length = 40;
    if (ir_infer(a.graph, &err) != MDOT_OK || ir_infer(b.graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    static const int64_t lengths[] = {1, 7, 32, 33};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        assert_same_values(a.graph, b.graph, lengths[i], tolerance);
    release(&a);
    release(&b);
}

/* Four elements, with every power of e^(-πi / 2). Each frequency's real and imaginary parts are adjacent. */
static void four_elements_have_known_frequencies(void **state)
{
    (void)state;
    static const float powers[] = {1, 0, 1,  0,  1,  0, 1,  0, /* j = 0 */
                                   1, 0, 0,  -1, -1, 0, 0,  1, /* j = 1 */
                                   1, 0, -1, 0,  1,  0, -1, 0, 1, 0, 0, 1, -1, 0, 0, -1};
    static const int64_t parts[] = {-1, 4, 2}, two = 2;
    for (int opset = 17; opset <= 20; opset += 3) {
        onnx_builder *given = begin(opset, "N,4,1"), *wanted = begin(opset, "N,4,1");
        transform(given, opset, "x", "y", 1, 0);
        onnx_initializer(wanted, "powers", MDOT_DTYPE_F32, "4,8", powers);
        onnx_initializer(wanted, "parts", MDOT_DTYPE_I64, "3", parts);
        onnx_initializer(wanted, "two", MDOT_DTYPE_I64, "1", &two);
        onnx_node(wanted, "Squeeze", "x,two", "rows");
        onnx_node(wanted, "MatMul", "rows,powers", "pairs");
        onnx_node(wanted, "Reshape", "pairs,parts", "y");
        expect_same(given, wanted, 1e-6);
    }
}

static void the_inverse_restores_the_input(void **state)
{
    (void)state;
    for (int64_t axis = 0; axis < 2; axis++) {
        for (int opset = 17; opset <= 20; opset += 3) {
            onnx_builder *given = begin(opset, "N,5,2"), *wanted = begin(opset, "N,5,2");
            transform(given, opset, "x", "f", axis, 0);
            transform(given, opset, "f", "y", axis, 1);
            onnx_node(wanted, "Identity", "x", "y");
            expect_same(given, wanted, 2e-5);
        }
    }
}

static void expect_given_up(const char *shape, const char *inputs, const char *attribute, int64_t value,
                            const char *reason)
{
    static const int64_t six = 6;
    onnx_builder *b = begin(17, shape);
    onnx_input(b, "n", MDOT_DTYPE_I64, "");
    onnx_initializer(b, "six", MDOT_DTYPE_I64, "", &six);
    onnx_node(b, "DFT", inputs, "y");
    onnx_attr_int(b, attribute, value);
    imported m = expect_imported(b, NULL);
    assert_null(m.graph->last->op);
    if (strstr(m.graph->last->op_type, reason) == NULL) fail_msg("%s: lacks \"%s\"", m.graph->last->op_type, reason);
    release(&m);
}

static void other_forms_are_refused_with_the_reason(void **state)
{
    (void)state;
    expect_given_up("N,4,1", "x", "axis", 2, "the axis is outside");
    expect_given_up("N,4,3", "x", "axis", 1, "1 for real and 2 for complex");
    expect_given_up("N,4,1", "x,n", "axis", 1, "dft_length depends on data");
    expect_given_up("N,4,1", "x,six", "axis", 0, "--dim");
    expect_given_up("4,N,1", "x", "onesided", 1, "take both sides");
    expect_given_up("N,20000,1", "x", "axis", 1, "at most 16384");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_elements_have_known_frequencies),
        cmocka_unit_test(the_inverse_restores_the_input),
        cmocka_unit_test(other_forms_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
