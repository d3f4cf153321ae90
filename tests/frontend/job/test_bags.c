/* test_bags.c — frontend/onnx/loops.c and frontend/job/bags.c: EmbeddingBag, which PyTorch writes as a Loop. */
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void body_node(pb_buffer *graph, const char *op_type, const char *const *inputs, const char *output)
{
    pb_buffer node = {0};
    for (; *inputs != NULL; inputs++) pb_text(&node, 1, *inputs);
    pb_text(&node, 2, output);
    pb_text(&node, 4, op_type);
    pb_message(graph, 1, &node);
}

static void body_value(pb_buffer *graph, int field, const char *name)
{
    pb_buffer info = {0};
    pb_text(&info, 1, name);
    pb_message(graph, field, &info);
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* One bag, as PyTorch 2.15's TorchScript exporter writes it: its bounds by the loop's number, its rows, their sum. */
static pb_buffer one_bag(const char *reduction, const char *table)
{
    pb_buffer graph = {0};
    body_node(&graph, "Gather", NAMES("starts", "number"), "start");
    body_node(&graph, "Gather", NAMES("ends", "number"), "end");
    body_node(&graph, "Unsqueeze", NAMES("start", "zero"), "start1");
    body_node(&graph, "Unsqueeze", NAMES("end", "zero"), "end1");
    body_node(&graph, "Slice", NAMES("places", "start1", "end1", "zero"), "mine");
    body_node(&graph, "Gather", NAMES(table, "mine"), "rows");
    body_node(&graph, reduction, NAMES("rows", "zero"), "bag");
    body_node(&graph, "Cast", NAMES("yes"), "again");
    body_value(&graph, 11, "number");
    body_value(&graph, 11, "go_on");
    body_value(&graph, 12, "again");
    body_value(&graph, 12, "bag");
    return graph;
}

static onnx_builder *with_bags(pb_buffer body, int64_t bags)
{
    static const int64_t zero = 0;
    static const bool yes = true;
    onnx_builder *b = onnx_begin(18);
    onnx_input(b, "places", MDOT_DTYPE_I64, "24");
    onnx_input(b, "starts", MDOT_DTYPE_I64, "8");
    onnx_input(b, "ends", MDOT_DTYPE_I64, "8");
    onnx_initializer(b, "bags", MDOT_DTYPE_I64, "", &bags);
    onnx_initializer(b, "yes", MDOT_DTYPE_BOOL, "", &yes);
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "1", &zero);
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "1000,16", NULL);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,4", NULL);
    onnx_node(b, "Loop", "bags,yes", "sums");
    pb_buffer attribute = {0};
    pb_text(&attribute, 1, "body");
    pb_message(&attribute, 6, &body);
    pb_int(&attribute, 20, 5); /* AttributeProto.GRAPH */
    onnx_attr_raw(b, &attribute);
    onnx_node(b, "Gemm", "sums,w", "y");
    onnx_output(b, "y");
    return b;
}

static void a_loop_over_bags_is_a_gather_and_a_reduction(void **state)
{
    (void)state;
    static const char *const reductions[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
    for (int i = 0; i < 3; i++) {
        job_reading r = job_expect(with_bags(one_bag(reductions[i], "table"), 8));
        char types[64];
        snprintf(types, sizeof types, "Gather %s Linear", reductions[i]);
        job_expect_types(&r, types);
        assert_true(job_operator(&r, 0).parameters == 1000 * 16);
        assert_int_equal(job_operator(&r, 1).setting[MDOT_SETTING_EXTENT], 3);
        assert_true(job_info(&r).parameters == 1000 * 16 + 16 * 4);
        assert_int_equal(job_info(&r).unknown_count, 0);
        job_end(&r);
    }
}

/* What picks from something that the loop makes, bags that cannot be equal, another body. */
static void other_loops_stay_what_they_are(void **state)
{
    (void)state;
    const struct {
        pb_buffer body;
        int64_t bags;
    } others[] = {{one_bag("ReduceSum", "start1"), 8},
                  {one_bag("ReduceSum", "number"), 8},
                  {one_bag("ReduceL2", "table"), 8},
                  {one_bag("ReduceSum", "table"), 7},
                  {one_bag("ReduceSum", "table"), 0}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        job_reading r = job_expect(with_bags(others[i].body, others[i].bags));
        assert_true(job_info(&r).unknown_count >= 1);
        assert_int_equal(strncmp(job_operator(&r, 0).type, "Loop", 4), 0);
        job_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_over_bags_is_a_gather_and_a_reduction),
        cmocka_unit_test(other_loops_stay_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
