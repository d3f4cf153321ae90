/* test_embedding_bag.c — frontend/onnx/loops.c and frontend/job/embedding_bag.c: EmbeddingBag, exported by PyTorch as a
 * Loop. */
#include "tests/support/assertions.h"
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

/* One bag from PyTorch 2.15's TorchScript exporter: the bounds come from the iteration number, then the rows are
 * gathered and summed. */
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

/* The number of bags is a tensor with `dims`. */
static onnx_builder *with_bag_counts(pb_buffer body, const char *dims, const int64_t *bags)
{
    static const int64_t zero = 0;
    static const bool yes = true;
    onnx_builder *b = onnx_begin(18);
    onnx_input(b, "places", MDOT_DTYPE_I64, "24");
    onnx_input(b, "starts", MDOT_DTYPE_I64, "8");
    onnx_input(b, "ends", MDOT_DTYPE_I64, "8");
    onnx_initializer(b, "bags", MDOT_DTYPE_I64, dims, bags);
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

static onnx_builder *with_bags(pb_buffer body, int64_t bags) { return with_bag_counts(body, "", &bags); }

/* A malformed file: a Loop has one count. */
static void many_counts_of_bags_keep_the_loop(void **state)
{
    (void)state;
    static const int64_t counts[64] = {8};
    job_reading r = job_expect(with_bag_counts(one_bag("ReduceSum", "table"), "64", counts));
    assert_compare(job_info(&r).unknown_count, >, 0);
    job_end(&r);
}

static void bag_loop_becomes_gather_and_reduction(void **state)
{
    (void)state;
    static const char *const reductions[] = {"ReduceSum", "ReduceMean", "ReduceMax"};
    for (int i = 0; i < 3; i++) {
        job_reading r = job_expect(with_bags(one_bag(reductions[i], "table"), 8));
        char types[64];
        snprintf(types, sizeof types, "Gather %s Linear", reductions[i]);
        job_expect_types(&r, types);
        assert_compare(job_operator(&r, 0).parameters, ==, 1000 * 16);
        assert_int_equal(job_operator(&r, 1).setting[MDOT_SETTING_EXTENT], 3);
        assert_compare(job_info(&r).parameters, ==, 1000 * 16 + 16 * 4);
        assert_int_equal(job_info(&r).unknown_count, 0);
        job_end(&r);
    }
}

static void body_number(pb_buffer *graph, const char *name, int64_t value)
{
    pb_buffer node = {0}, attribute = {0};
    pb_text(&node, 2, name);
    pb_text(&node, 4, "Constant");
    pb_text(&attribute, 1, "value_int");
    pb_int(&attribute, 3, value);
    pb_int(&attribute, 20, 2); /* AttributeProto.INT */
    pb_message(&node, 5, &attribute);
    pb_message(graph, 1, &node);
}

static void body_branches(pb_buffer *graph, const char *condition, pb_buffer *yes, pb_buffer *no, const char *output)
{
    pb_buffer node = {0};
    pb_buffer *branches[] = {yes, no};
    pb_text(&node, 1, condition);
    pb_text(&node, 2, output);
    pb_text(&node, 4, "If");
    for (int i = 0; i < 2; i++) {
        pb_buffer attribute = {0};
        pb_text(&attribute, 1, i == 0 ? "then_branch" : "else_branch");
        pb_message(&attribute, 6, branches[i]);
        pb_int(&attribute, 20, 5); /* AttributeProto.GRAPH */
        pb_message(&node, 5, &attribute);
    }
    pb_message(graph, 1, &node);
}

static pb_buffer reduced(const char *reduction, const char *rows, const char *output)
{
    pb_buffer graph = {0};
    body_node(&graph, "Slice", NAMES(rows, "start", "end"), "mine");
    body_node(&graph, reduction, NAMES("mine", "zero"), output);
    body_value(&graph, 12, output);
    return graph;
}

/* One bag as onnxscript writes it. An empty bag gives zeros. Other bags are reduced by the mode: 0 sum, 1 mean, 2
 * maximum. */
static pb_buffer one_listed_bag(int mode, const char *rows)
{
    pb_buffer graph = {0}, empty = {0}, some = {0}, other = {0};
    pb_buffer sum = reduced("ReduceSum", rows, "s"), mean = reduced("ReduceMean", rows, "m");
    pb_buffer most = reduced("ReduceMax", rows, "x");
    body_number(&other, "mode_again", mode);
    body_number(&other, "number1", 1);
    body_node(&other, "Equal", NAMES("mode_again", "number1"), "is_mean");
    body_branches(&other, "is_mean", &mean, &most, "o");
    body_value(&other, 12, "o");
    body_number(&some, "mode", mode);
    body_number(&some, "number0", 0);
    body_node(&some, "Equal", NAMES("mode", "number0"), "is_sum");
    body_branches(&some, "is_sum", &sum, &other, "r");
    body_value(&some, 12, "r");
    body_node(&empty, "Expand", NAMES("zero", "zero"), "e");
    body_value(&empty, 12, "e");
    body_node(&graph, "Slice", NAMES("starts", "number", "next"), "start");
    body_node(&graph, "Slice", NAMES("starts", "next", "behind"), "end");
    body_node(&graph, "Equal", NAMES("start", "end"), "is_empty");
    body_branches(&graph, "is_empty", &empty, &some, "bag");
    body_node(&graph, "SequenceInsert", NAMES("list", "bag"), "longer");
    body_node(&graph, "Add", NAMES("number", "one"), "next");
    body_node(&graph, "Less", NAMES("next", "bags"), "is_less");
    body_node(&graph, "Identity", NAMES("is_less"), "again");
    static const char *const inputs[] = {"turn", "go_on", "number", "list"};
    static const char *const outputs[] = {"again", "next", "longer"};
    for (int i = 0; i < 4; i++) body_value(&graph, 11, inputs[i]);
    for (int i = 0; i < 3; i++) body_value(&graph, 12, outputs[i]);
    return graph;
}

static onnx_builder *with_listed_bags(pb_buffer body, int64_t bags, float weight)
{
    static const int64_t zero = 0, one = 1, shape[] = {24, 1};
    static const bool yes = true;
    onnx_builder *b = onnx_begin(18);
    onnx_input(b, "places", MDOT_DTYPE_I64, "24");
    onnx_input(b, "starts", MDOT_DTYPE_I64, "8");
    onnx_initializer(b, "bags", MDOT_DTYPE_I64, "", &bags);
    onnx_initializer(b, "yes", MDOT_DTYPE_BOOL, "", &yes);
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "1", &zero);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "1", &one);
    onnx_initializer(b, "shape", MDOT_DTYPE_I64, "2", shape);
    onnx_initializer(b, "weight", MDOT_DTYPE_F32, "1", &weight);
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "1000,16", NULL);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,4", NULL);
    onnx_node(b, "Gather", "table,places", "picked");
    onnx_node(b, "Expand", "weight,shape", "weights");
    onnx_node(b, "Mul", "picked,weights", "weighted");
    onnx_node(b, "Cast", "weighted", "rows");
    onnx_attr_int(b, "to", MDOT_DTYPE_F32);
    onnx_node(b, "SequenceEmpty", "", "none");
    onnx_node(b, "Loop", ",yes,zero,none", "last,list_of_bags");
    pb_buffer attribute = {0};
    pb_text(&attribute, 1, "body");
    pb_message(&attribute, 6, &body);
    pb_int(&attribute, 20, 5); /* AttributeProto.GRAPH */
    onnx_attr_raw(b, &attribute);
    onnx_node(b, "ConcatFromSequence", "list_of_bags", "sums");
    onnx_attr_int(b, "axis", 0);
    onnx_node(b, "Gemm", "sums,w", "y");
    onnx_output(b, "y");
    return b;
}

static void bag_list_becomes_gather_and_reduction(void **state)
{
    (void)state;
    static const char *const types[] = {"Gather ReduceSum Linear", "Gather ReduceMean Linear",
                                        "Gather ReduceMax Linear"};
    for (int mode = 0; mode < 3; mode++) {
        job_reading r = job_expect(with_listed_bags(one_listed_bag(mode, "rows"), 8, 1));
        job_expect_types(&r, types[mode]);
        assert_int_equal(job_operator(&r, 1).setting[MDOT_SETTING_EXTENT], 3);
        assert_compare(job_info(&r).parameters, ==, 1000 * 16 + 16 * 4);
        assert_int_equal(job_info(&r).unknown_count, 0);
        job_end(&r);
    }
    job_reading weighted = job_expect(with_listed_bags(one_listed_bag(0, "rows"), 8, 2));
    job_expect_types(&weighted, "Gather Mul ReduceSum Linear");
    job_end(&weighted);
}

static void other_lists_stay_opaque(void **state)
{
    (void)state;
    const struct {
        pb_buffer body;
        int64_t bags;
    } others[] = {{one_listed_bag(0, "longer"), 8}, {one_listed_bag(0, "rows"), 7}, {one_listed_bag(0, "rows"), 0}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        job_reading r = job_expect(with_listed_bags(others[i].body, others[i].bags, 1));
        assert_compare(job_info(&r).unknown_count, >=, 1);
        job_end(&r);
    }
    /* A list concatenation with an unnamed result. */
    onnx_builder *b = with_listed_bags(one_listed_bag(0, "rows"), 8, 1);
    onnx_node(b, "ConcatFromSequence", "list_of_bags", "");
    job_reading r = job_expect(b);
    job_expect_types(&r, "Gather ReduceSum Linear");
    job_end(&r);
}

/* Loops that gather from a value made in the loop, bags with unequal sizes, and other bodies. */
static void other_loops_stay_opaque(void **state)
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
        assert_compare(job_info(&r).unknown_count, >=, 1);
        assert_int_equal(strncmp(job_operator(&r, 0).type, "Loop", 4), 0);
        job_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bag_loop_becomes_gather_and_reduction),
        cmocka_unit_test(many_counts_of_bags_keep_the_loop),
        cmocka_unit_test(other_loops_stay_opaque),
        cmocka_unit_test(bag_list_becomes_gather_and_reduction),
        cmocka_unit_test(other_lists_stay_opaque),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
