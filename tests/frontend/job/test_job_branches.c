/* test_job_branches.c — frontend/job/: an If in a job. Only the taken branch counts. */
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add_value_info(pb_buffer *graph, int field, const char *name)
{
    pb_buffer info = {0};
    pb_text(&info, 1, name);
    pb_message(graph, field, &info);
}

static void add_branch_node(pb_buffer *graph, const char *op_type, const char *input, const char *output)
{
    pb_buffer node = {0};
    pb_text(&node, 1, input);
    pb_text(&node, 2, output);
    pb_text(&node, 4, op_type);
    pb_message(graph, 1, &node);
}

/* A one-node GraphProto that reads a value from the outer graph. Both branches name the result "inner". */
static pb_buffer branch_of(const char *input, const char *op_type, bool with_weight)
{
    pb_buffer graph = {0};
    add_branch_node(&graph, op_type, input, "inner");
    if (with_weight) {
        pb_buffer tensor = onnx_tensor("unused", MDOT_DTYPE_F32, "2", NULL);
        pb_message(&graph, 5, &tensor);
    }
    add_value_info(&graph, 12, "inner");
    return graph;
}

static pb_buffer branch(const char *op_type, bool with_weight) { return branch_of("x", op_type, with_weight); }

static void branch_attr(onnx_builder *b, const char *name, pb_buffer graph)
{
    pb_buffer attr = {0};
    pb_text(&attr, 1, name);
    pb_message(&attr, 6, &graph);
    pb_int(&attr, 20, 5); /* AttributeProto.GRAPH */
    onnx_attr_raw(b, &attr);
}

static onnx_builder *with_if(const char *condition, bool with_weight)
{
    onnx_builder *b = onnx_begin(17);
    const int64_t four = 4;
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_input(b, "flag", MDOT_DTYPE_BOOL, "");
    onnx_initializer(b, "four", MDOT_DTYPE_I64, "", &four);
    onnx_node(b, "Shape", "x", "shape");
    onnx_node(b, "Size", "shape", "rank");
    onnx_node(b, "Equal", "rank,four", "batched");
    onnx_node(b, "Not", "batched", "single");
    onnx_node(b, "If", condition, "y");
    branch_attr(b, "then_branch", branch("Sigmoid", with_weight));
    branch_attr(b, "else_branch", branch("Tanh", with_weight));
    onnx_node(b, "Relu", "y", "z");
    onnx_output(b, "z");
    return b;
}

static void constant_condition_selects_its_branch(void **state)
{
    (void)state;
    job_reading first = job_expect(with_if("batched", false)), second = job_expect(with_if("single", false));
    job_expect_types(&first, "Sigmoid Relu");
    job_expect_types(&second, "Tanh Relu");
    assert_string_equal(first.warnings, "");
    job_end(&first);
    job_end(&second);
}

static void data_dependent_condition_selects_the_first_branch(void **state)
{
    (void)state;
    job_reading r = job_expect(with_if("flag", false));
    job_expect_types(&r, "Sigmoid Relu");
    assert_non_null(strstr(r.warnings, "depends on data"));
    job_end(&r);
}

static void branches_with_own_weights_stay_opaque(void **state)
{
    (void)state;
    job_reading r = job_expect(with_if("flag", true));
    job_expect_types(&r, "If Relu");
    assert_int_equal(job_info(&r).unknown_count, 1);
    job_end(&r);
}

/* Values with readers only in branches: an input, an initializer, or a result behind the If in the file. With `nested`,
 * the readers are in a branch's branch. */
static onnx_builder *with_if_alone(const char *read, bool nested)
{
    onnx_builder *b = onnx_begin(17);
    pb_buffer first = {0}, attr = {0}, node = {0};
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_input(b, "flag", MDOT_DTYPE_BOOL, "");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,3,8,8", NULL);
    onnx_node(b, "If", "flag", "y");
    if (nested) {
        pb_text(&node, 1, "flag");
        pb_text(&node, 2, "inner");
        pb_text(&node, 4, "If");
        for (int i = 0; i < 2; i++) {
            pb_buffer inner = branch_of(read, "Sigmoid", false);
            attr = (pb_buffer){0};
            pb_text(&attr, 1, i == 0 ? "then_branch" : "else_branch");
            pb_message(&attr, 6, &inner);
            pb_int(&attr, 20, 5); /* AttributeProto.GRAPH */
            pb_message(&node, 5, &attr);
        }
        pb_message(&first, 1, &node);
        add_value_info(&first, 12, "inner");
    } else {
        first = branch_of(read, "Sigmoid", false);
    }
    branch_attr(b, "then_branch", first);
    branch_attr(b, "else_branch", branch_of(read, "Tanh", false));
    onnx_node(b, "Neg", "x", "later");
    onnx_node(b, "Add", "y,later", "z");
    onnx_output(b, "z");
    return b;
}

static void branch_may_be_the_first_reader_of_a_value(void **state)
{
    (void)state;
    static const char *const values[] = {"x", "w", "later"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        for (int nested = 0; nested < 2; nested++) {
            job_reading r = job_expect(with_if_alone(values[i], nested != 0));
            bool constant = strcmp(values[i], "w") == 0; /* then the branch is constant, too */
            assert_int_equal(job_info(&r).unknown_count, 0);
            assert_int_equal(job_info(&r).operator_count, constant ? 2 : 3);
            job_end(&r);
        }
    }
}

static void undefined_value_in_a_branch_is_refused(void **state)
{
    (void)state;
    job_reading r = job_read_model(with_if_alone("nowhere", false), NULL, 0);
    assert_int_equal(r.status, MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "'nowhere', is undefined"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(constant_condition_selects_its_branch),
        cmocka_unit_test(data_dependent_condition_selects_the_first_branch),
        cmocka_unit_test(branches_with_own_weights_stay_opaque),
        cmocka_unit_test(branch_may_be_the_first_reader_of_a_value),
        cmocka_unit_test(undefined_value_in_a_branch_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
