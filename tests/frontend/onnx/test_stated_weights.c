/* test_stated_weights.c — weights are counted from the shapes in the file, and a limit on them ends the import. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct counted {
    int calls;
    double elements;
} counted;

static counted seen;

static mdot_status count(const void *weights_user, const char *file, double elements, mdot_error *err)
{
    const bool *refuse = weights_user;
    seen.calls++;
    seen.elements = elements;
    return *refuse ? mdot_fail(err, MDOT_UNSUPPORTED, "%s: %.0f weights", file, elements) : MDOT_OK;
}

/* Refuses the model after the count, because some tensor data is absent. */
static double count_of(onnx_builder *b)
{
    static const bool refuse = true;
    const fe_options options = {.check_weights = count, .weights_user = &refuse};
    seen = (counted){0};
    imported m = import_model(b, &options);
    assert_int_equal(m.status, MDOT_UNSUPPORTED);
    assert_non_null(strstr(m.err.message, " weights"));
    assert_int_equal(seen.calls, 1);
    release(&m);
    return seen.elements;
}

static onnx_builder *begin(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,8");
    return b;
}

static void floats_that_nodes_read_count(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_initializer_elsewhere(b, "w", MDOT_DTYPE_F32, "8,1000");
    onnx_initializer_elsewhere(b, "h", MDOT_DTYPE_F16, "1000");
    onnx_initializer_elsewhere(b, "unread", MDOT_DTYPE_F32, "1000000");
    onnx_initializer_elsewhere(b, "bytes", MDOT_DTYPE_I8, "1000,3");
    onnx_initializer_elsewhere(b, "empty", MDOT_DTYPE_F32, "1000,0");
    onnx_node(b, "MatMul", "x,w", "y");
    onnx_node(b, "Cast", "h", "f");
    onnx_attr_int(b, "to", MDOT_DTYPE_F32);
    onnx_node(b, "Add", "y,f", "z");
    onnx_node(b, "MatMulInteger", "bytes,bytes", "i");
    onnx_node(b, "Concat", "empty,empty,w", "e");
    onnx_output(b, "z");
    assert_compare(count_of(b), ==, 8000 + 1000);
}

/* The import refuses such shapes after the count, each with a separate message. */
static void invalid_shapes_count_nothing(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_initializer_elsewhere(b, "w", MDOT_DTYPE_F32, "-8,1000");
    onnx_initializer_elsewhere(b, "v", MDOT_DTYPE_F32,
                               "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
    onnx_initializer_elsewhere(b, "u", MDOT_DTYPE_F32, "4294967296,4294967296");
    onnx_node(b, "Concat", "w,v,u", "y");
    onnx_output(b, "y");
    assert_compare(count_of(b), ==, 0);
}

static void constants_count_like_initializers(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "Constant", "", "w");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_F32, "8,5", NULL);
    onnx_node(b, "Constant", "", "unread");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_F32, "7", NULL);
    onnx_node(b, "Constant", "", "one");
    onnx_attr_float(b, "value_float", 1);
    onnx_node(b, "MatMul", "x,w", "y");
    onnx_node(b, "Add", "y,one", "z");
    onnx_output(b, "z");
    assert_compare(count_of(b), ==, 40);
}

/* The taken branch is unknown before shapes are. */
static void branches_do_not_count(void **state)
{
    (void)state;
    onnx_builder *b = begin(), *first = onnx_begin(17), *second = onnx_begin(17);
    onnx_initializer_elsewhere(b, "w", MDOT_DTYPE_F32, "8,1000");
    onnx_node(first, "MatMul", "x,w", "a");
    onnx_output(first, "a");
    onnx_node(second, "Identity", "x", "b");
    onnx_output(second, "b");
    onnx_input(b, "c", MDOT_DTYPE_BOOL, "");
    onnx_node(b, "If", "c", "y");
    onnx_attr_graph(b, "then_branch", first);
    onnx_attr_graph(b, "else_branch", second);
    onnx_output(b, "y");
    assert_compare(count_of(b), ==, 0);
}

static void accepted_models_are_imported(void **state)
{
    (void)state;
    static const bool refuse = false;
    const fe_options options = {.check_weights = count, .weights_user = &refuse};
    onnx_builder *b = begin();
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,3", NULL);
    onnx_node(b, "MatMul", "x,w", "y");
    onnx_output(b, "y");
    seen = (counted){0};
    imported m = expect_imported(b, &options);
    assert_compare(seen.elements, ==, 24);
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_that_nodes_read_count),      cmocka_unit_test(invalid_shapes_count_nothing),
        cmocka_unit_test(constants_count_like_initializers), cmocka_unit_test(branches_do_not_count),
        cmocka_unit_test(accepted_models_are_imported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
