/* test_symbols.c — symbolic dimensions: the length dimension, the bound ones, and the option that binds each. */
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static onnx_builder *with_inputs(const char *a, const char *b)
{
    onnx_builder *builder = onnx_begin(17);
    onnx_input(builder, "a", MDOT_DTYPE_F32, a);
    if (b) onnx_input(builder, "b", MDOT_DTYPE_F32, b);
    onnx_node(builder, "Relu", "a", "y");
    onnx_output(builder, "y");
    return builder;
}

static void expect_dim(const imported *m, int input, int axis, int64_t scale, int64_t offset)
{
    ir_dim dim = m->graph->inputs[input]->type.dim[axis];
    assert_int_equal(dim.scale, scale);
    assert_int_equal(dim.offset, offset);
}

static ir_type shape_of(int rank, int64_t d0, int64_t d1)
{
    return (ir_type){.rank = rank, .dim = {ir_dim_number(d0), ir_dim_number(d1)}};
}

static void fixed_dimensions_leave_no_symbol(void **state)
{
    (void)state;
    imported m = expect_imported(with_inputs("2,3", NULL), NULL);
    assert_null(m.graph->symbol);
    expect_dim(&m, 0, 1, 0, 3);
    release(&m);
}

static void the_only_symbolic_name_is_the_length(void **state)
{
    (void)state;
    imported m = expect_imported(with_inputs("1,N,16", "N,N"), NULL);
    assert_string_equal(m.graph->symbol, "N");
    expect_dim(&m, 0, 0, 0, 1);
    expect_dim(&m, 0, 1, 1, 0);
    expect_dim(&m, 1, 0, 1, 0);
    expect_dim(&m, 1, 1, 1, 0);
    assert_int_equal(m.warning_count, 0);
    release(&m);
}

static void leading_dimension_alone_is_the_length(void **state)
{
    (void)state;
    imported m = expect_imported(with_inputs("tokens,8", NULL), NULL);
    assert_string_equal(m.graph->symbol, "tokens");
    assert_int_equal(m.warning_count, 0);
    release(&m);
}

static void batch_beside_a_length_is_one(void **state)
{
    (void)state;
    imported m = expect_imported(with_inputs("batch,N,16", "batch,N"), NULL);
    assert_string_equal(m.graph->symbol, "N");
    expect_dim(&m, 0, 0, 0, 1);
    expect_dim(&m, 1, 0, 0, 1);
    assert_int_equal(m.warning_count, 1);
    assert_non_null(strstr(m.warning, "'batch'"));
    release(&m);
}

static void binding_one_symbol_makes_the_other_the_length(void **state)
{
    (void)state;
    mdot_dim_binding bindings[] = {{"batch", 4, NULL}};
    fe_options options = {.bindings = bindings, .binding_count = 1};
    imported m = expect_imported(with_inputs("batch,N", NULL), &options);
    assert_string_equal(m.graph->symbol, "N");
    expect_dim(&m, 0, 0, 0, 4);
    assert_int_equal(m.warning_count, 0);
    release(&m);
}

static void two_names_may_share_one_length(void **state)
{
    (void)state;
    mdot_dim_binding bindings[] = {{"M", 0, "N"}};
    fe_options options = {.bindings = bindings, .binding_count = 1};
    imported m = expect_imported(with_inputs("1,N", "1,M"), &options);
    assert_string_equal(m.graph->symbol, "N");
    expect_dim(&m, 0, 1, 1, 0);
    expect_dim(&m, 1, 1, 1, 0);
    assert_int_equal(m.warning_count, 0);
    release(&m);
}

static void names_equal_to_unknown_or_circular_names_are_refused(void **state)
{
    (void)state;
    mdot_dim_binding unknown[] = {{"M", 0, "X"}}, circle[] = {{"M", 0, "N"}, {"N", 0, "M"}};
    fe_options options = {.bindings = unknown, .binding_count = 1};
    expect_refused(with_inputs("1,N", "1,M"), &options, MDOT_INVALID_ARGUMENT, "'M'", "'X'", NULL);
    unknown[0].same_as = "sequense";
    expect_refused(with_inputs("1,sequence", "1,M"), &options, MDOT_INVALID_ARGUMENT,
                   "which no input has (did you mean sequence?)", NULL);
    options = (fe_options){.bindings = circle, .binding_count = 2};
    expect_refused(with_inputs("1,N", "1,M"), &options, MDOT_INVALID_ARGUMENT, "'N'", "'M'", NULL);
}

static void an_unknown_name_gets_a_suggestion(void **state)
{
    (void)state;
    mdot_dim_binding misspelt[] = {{"sequense", 8, NULL}};
    fe_options options = {.bindings = misspelt, .binding_count = 1};
    imported m = expect_imported(with_inputs("1,sequence", NULL), &options);
    assert_int_equal(m.warning_count, 1);
    assert_non_null(strstr(m.warning, "no input has a dimension 'sequense' (did you mean sequence?)"));
    release(&m);
}

static void every_symbol_may_be_bound(void **state)
{
    (void)state;
    mdot_dim_binding bindings[] = {{"batch", 4, NULL}, {"N", 32, NULL}};
    fe_options options = {.bindings = bindings, .binding_count = 2};
    imported m = expect_imported(with_inputs("batch,N", NULL), &options);
    assert_null(m.graph->symbol);
    expect_dim(&m, 0, 1, 0, 32);
    release(&m);
}

static void unknown_binding_is_warned_of(void **state)
{
    (void)state;
    mdot_dim_binding bindings[] = {{"M", 4, NULL}};
    fe_options options = {.bindings = bindings, .binding_count = 1};
    imported m = expect_imported(with_inputs("1,N", NULL), &options);
    assert_int_equal(m.warning_count, 1);
    assert_non_null(strstr(m.warning, "'M'"));
    release(&m);
}

static void negative_binding_is_refused(void **state)
{
    (void)state;
    mdot_dim_binding bindings[] = {{"N", -1, NULL}};
    fe_options options = {.bindings = bindings, .binding_count = 1};
    expect_refused(with_inputs("1,N", NULL), &options, MDOT_INVALID_ARGUMENT, "'N'", "at least 0", NULL);
}

static void several_lengths_are_refused_with_advice(void **state)
{
    (void)state;
    expect_refused(with_inputs("batch,N,M", NULL), NULL, MDOT_INVALID_ARGUMENT, "'batch'", "'N'", "'M'", "--dim", NULL);
}

static void several_batches_are_refused(void **state)
{
    (void)state;
    expect_refused(with_inputs("p,4", "q,4"), NULL, MDOT_INVALID_ARGUMENT, "'p'", "'q'", NULL);
}

static void unnamed_dimension_is_named_after_its_input(void **state)
{
    (void)state;
    imported m = expect_imported(with_inputs("1,?", NULL), NULL);
    assert_string_equal(m.graph->symbol, "a.1");
    release(&m);
    mdot_dim_binding bindings[] = {{"a.1", 7, NULL}};
    fe_options options = {.bindings = bindings, .binding_count = 1};
    m = expect_imported(with_inputs("1,?", "1,?"), &options);
    assert_string_equal(m.graph->symbol, "b.1");
    expect_dim(&m, 0, 1, 0, 7);
    release(&m);
}

static void given_shapes_bind_names_everywhere(void **state)
{
    (void)state;
    ir_type types[] = {shape_of(2, 2, 5), {.rank = -1}};
    fe_options options = {.input_types = types, .input_type_count = 2};
    imported m = expect_imported(with_inputs("batch,N", "N,3"), &options);
    assert_null(m.graph->symbol);
    expect_dim(&m, 0, 0, 0, 2);
    expect_dim(&m, 1, 0, 0, 5);
    release(&m);
}

static void given_shape_stands_in_for_a_missing_one(void **state)
{
    (void)state;
    ir_type types[] = {shape_of(2, 2, 5)};
    fe_options options = {.input_types = types, .input_type_count = 1};
    imported m = expect_imported(with_inputs(NULL, NULL), &options);
    assert_int_equal(m.graph->inputs[0]->type.rank, 2);
    expect_dim(&m, 0, 1, 0, 5);
    release(&m);
    expect_refused(with_inputs(NULL, NULL), NULL, MDOT_UNSUPPORTED, "input 'a'", "no shape", NULL);
}

static void given_shapes_must_agree(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b, *part;
        int64_t a0, a1, b0, b1;
    } cases[] = {
        {"N,4", "N,4", "'N' is bound to both 2 and 3", 2, 4, 3, 4},
        {"N,4", "N,4", "differs from that of the file", 2, 5, 2, 4},
        {"N,4,1", "N,4", "rank", 2, 4, 2, 4},
        {"N,4", "N,4", "must be numbers of at least 0", -2, 4, 2, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ir_type types[] = {shape_of(2, cases[i].a0, cases[i].a1), shape_of(2, cases[i].b0, cases[i].b1)};
        fe_options options = {.input_types = types, .input_type_count = 2};
        expect_refused(with_inputs(cases[i].a, cases[i].b), &options, MDOT_INVALID_ARGUMENT, cases[i].part, NULL);
    }
}

static void given_shapes_must_be_as_many_as_inputs(void **state)
{
    (void)state;
    ir_type types[] = {shape_of(2, 2, 4)};
    fe_options options = {.input_types = types, .input_type_count = 1};
    expect_refused(with_inputs("2,4", "2,4"), &options, MDOT_INVALID_ARGUMENT, "1 input shapes", "2 inputs", NULL);
}

static void given_element_type_must_match_the_file(void **state)
{
    (void)state;
    ir_type types[] = {shape_of(2, 2, 4)};
    types[0].dtype = MDOT_DTYPE_I64;
    fe_options options = {.input_types = types, .input_type_count = 1};
    expect_refused(with_inputs("2,4", NULL), &options, MDOT_INVALID_ARGUMENT, "element type", NULL);
}

static void negative_dimension_is_refused(void **state)
{
    (void)state;
    expect_refused(with_inputs("2,-4", NULL), NULL, MDOT_MALFORMED, "input 'a'", "negative", NULL);
}

static void a_dimension_of_minus_one_is_open(void **state)
{
    (void)state;
    imported m = expect_imported(with_inputs("2,-1,8", NULL), NULL);
    expect_dim(&m, 0, 0, 0, 2);
    expect_dim(&m, 0, 1, 1, 0);
    expect_dim(&m, 0, 2, 0, 8);
    release(&m);
}

static void overflowing_shape_is_refused(void **state)
{
    (void)state;
    expect_refused(with_inputs("4611686018427387904,4", NULL), NULL, MDOT_MALFORMED, "input 'a'", "too large", NULL);
}

static void more_than_eight_dimensions_are_refused(void **state)
{
    (void)state;
    expect_refused(with_inputs("1,1,1,1,1,1,1,1,1", NULL), NULL, MDOT_UNSUPPORTED, "too many dimensions", NULL);
}

static void unsupported_element_type_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "a", (mdot_dtype)17, "4"); /* FLOAT8E4M3FN */
    onnx_node(b, "Relu", "a", "y");
    onnx_output(b, "y");
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "input 'a'", "element type 17", NULL);
}

static void input_of_another_kind_is_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    pb_buffer sequence = {0}, type = {0}, info = {0};
    pb_message(&type, 4, &sequence);
    pb_text(&info, 1, "list");
    pb_message(&info, 2, &type);
    onnx_graph_raw(b, 11, &info);
    onnx_output(b, "list");
    expect_refused(b, NULL, MDOT_UNSUPPORTED, "input 'list'", "must be a tensor", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixed_dimensions_leave_no_symbol),
        cmocka_unit_test(the_only_symbolic_name_is_the_length),
        cmocka_unit_test(leading_dimension_alone_is_the_length),
        cmocka_unit_test(batch_beside_a_length_is_one),
        cmocka_unit_test(binding_one_symbol_makes_the_other_the_length),
        cmocka_unit_test(two_names_may_share_one_length),
        cmocka_unit_test(names_equal_to_unknown_or_circular_names_are_refused),
        cmocka_unit_test(an_unknown_name_gets_a_suggestion),
        cmocka_unit_test(every_symbol_may_be_bound),
        cmocka_unit_test(unknown_binding_is_warned_of),
        cmocka_unit_test(negative_binding_is_refused),
        cmocka_unit_test(several_lengths_are_refused_with_advice),
        cmocka_unit_test(several_batches_are_refused),
        cmocka_unit_test(unnamed_dimension_is_named_after_its_input),
        cmocka_unit_test(given_shapes_bind_names_everywhere),
        cmocka_unit_test(given_shape_stands_in_for_a_missing_one),
        cmocka_unit_test(given_shapes_must_agree),
        cmocka_unit_test(given_shapes_must_be_as_many_as_inputs),
        cmocka_unit_test(given_element_type_must_match_the_file),
        cmocka_unit_test(negative_dimension_is_refused),
        cmocka_unit_test(a_dimension_of_minus_one_is_open),
        cmocka_unit_test(overflowing_shape_is_refused),
        cmocka_unit_test(more_than_eight_dimensions_are_refused),
        cmocka_unit_test(unsupported_element_type_is_refused),
        cmocka_unit_test(input_of_another_kind_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
