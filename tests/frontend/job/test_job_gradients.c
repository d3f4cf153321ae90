/* test_job_gradients.c — frontend/job/: the backward pass's additions for a value with several readers, as in automatic
 * differentiation. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ELEMENTS = 16 * 64, MAP = 4 * ELEMENTS };

/* x → Conv → Relu: "r" [N, 16, 8, 8] is the first value with a gradient from an operator without parameters. */
static onnx_builder *begin(void)
{
    onnx_builder *b = job_begin("N,16,8,8");
    job_add_conv(b, "x", "c", "16,16,3,3", 1, false);
    onnx_node(b, "Relu", "c", "r");
    return b;
}

static mdot_load data_gradient(const job_reading *r, size_t index)
{
    return job_operator(r, index).per_sample[MDOT_PHASE_DATA_GRADIENT];
}

/* With one reader, Relu reads its input and the gradient, and writes one gradient. Each further reader's gradient is
 * added to the sum. */
static void expect_additions(const job_reading *r, int additions)
{
    job_expect_load(data_gradient(r, 1), (1 + additions) * ELEMENTS, (2 + 2 * additions) * MAP, (1 + additions) * MAP);
}

static void single_reader_adds_no_gradient_sum(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "Sigmoid", "r", "y");
    job_reading r = job_expect_output(b, "y");
    expect_additions(&r, 0);
    job_end(&r);
}

static void gradients_of_all_readers_are_added(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    job_add_conv(b, "r", "inner", "16,16,3,3", 1, false);
    onnx_node(b, "Sigmoid", "r", "gate");
    onnx_node(b, "Mul", "inner,gate", "gated");
    onnx_node(b, "Add", "gated,r", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Conv Relu Conv Sigmoid Mul Add");
    expect_additions(&r, 2);
    job_end(&r);
}

static void view_gradients_count_for_their_source(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    const int64_t shape[] = {0, 16, 64};
    onnx_initializer(b, "shape", MDOT_DTYPE_I64, "3", shape);
    onnx_node(b, "Reshape", "r,shape", "rows");
    onnx_node(b, "Identity", "rows", "same");
    onnx_node(b, "Sigmoid", "rows", "s");
    onnx_node(b, "Tanh", "same", "t");
    onnx_node(b, "Add", "s,t", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Conv Relu Sigmoid Tanh Add");
    expect_additions(&r, 1);
    job_end(&r);
}

static void operator_reading_a_value_twice_sends_one_gradient(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "Mul", "r,r", "y");
    job_reading r = job_expect_output(b, "y");
    expect_additions(&r, 0);
    job_end(&r);
}

static void readers_without_a_gradient_do_not_count(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "Sigmoid", "r", "y");
    onnx_node(b, "Greater", "r,c", "positive");
    onnx_output(b, "y");
    job_reading r = job_expect_output(b, "positive");
    job_expect_types(&r, "Conv Relu Sigmoid Greater");
    expect_additions(&r, 0);
    job_end(&r);
}

/* If a normalisation is merged into a convolution, its readers become the merged operator's. */
static void merged_operator_sums_gradients_of_its_result(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,16,8,8");
    job_add_conv(b, "x", "c", "16,16,3,3", 1, false);
    onnx_initializer(b, "v", MDOT_DTYPE_F32, "16", NULL);
    onnx_node(b, "BatchNormalization", "c,v,v,v,v", "n");
    onnx_node(b, "Sigmoid", "n", "s");
    onnx_node(b, "Tanh", "n", "t");
    onnx_node(b, "Add", "s,t", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Conv Sigmoid Tanh Add");
    /* the normalisation: five FLOPs per element, two maps read and one written; then the addition */
    job_expect_load(data_gradient(&r, 0), 6 * ELEMENTS, 4 * MAP, 2 * MAP);
    job_end(&r);
}

static void split_results_have_separate_gradients(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "Split", "r", "p,q");
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "Mul", "p,q", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Conv Relu Split Mul");
    expect_additions(&r, 0);
    assert_compare(data_gradient(&r, 2).flops, ==, 0);
    job_end(&r);
}

/* The parts of a Concat's gradient are views. A part without an addition is copied. */
static void concat_copies_gradients_of_single_readers(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "Sigmoid", "r", "s");
    onnx_node(b, "Concat", "x,r,s", "y");
    onnx_attr_int(b, "axis", 1);
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Conv Relu Sigmoid Concat");
    expect_additions(&r, 1);                            /* adds the Sigmoid's and the Concat's gradients */
    job_expect_load(data_gradient(&r, 3), 0, MAP, MAP); /* only the part for s is copied: r has another reader, and x
                                                         * needs no gradient */
    job_end(&r);
}

/* Scale, shift and both running statistics are read, the running statistics are written, and the scale and shift
 * gradients are written. This happens once per step for any batch, both for a BatchNormalization alone and inside a
 * convolution. */
static void batch_normalization_has_vectors_for_each_step(void **state)
{
    (void)state;
    enum { VECTOR = 16 * 4, WEIGHT = 16 * 16 * 9 * 4 };
    onnx_builder *b = job_begin("N,16,8,8");
    static const char *const vectors[] = {"s1", "b1", "m1", "v1", "s2", "b2", "m2", "v2"};
    for (int i = 0; i < 8; i++) onnx_initializer(b, vectors[i], MDOT_DTYPE_F32, "16", NULL);
    onnx_node(b, "Relu", "x", "r");
    onnx_node(b, "BatchNormalization", "r,s1,b1,m1,v1", "n");
    job_add_conv(b, "n", "c", "16,16,3,3", 1, false);
    onnx_node(b, "BatchNormalization", "c,s2,b2,m2,v2", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu BatchNormalization Conv");
    mdot_job_operator alone = job_operator(&r, 1), part = job_operator(&r, 2);
    job_expect_load(alone.per_step[MDOT_PHASE_FORWARD], 0, 4 * VECTOR, 2 * VECTOR);
    job_expect_load(alone.per_step[MDOT_PHASE_DATA_GRADIENT], 0, 0, 0);
    job_expect_load(alone.per_step[MDOT_PHASE_WEIGHT_GRADIENT], 0, 0, 2 * VECTOR);
    job_expect_load(part.per_step[MDOT_PHASE_FORWARD], 0, WEIGHT + 4 * VECTOR, 2 * VECTOR);
    job_expect_load(part.per_step[MDOT_PHASE_DATA_GRADIENT], 0, WEIGHT, 0);
    job_expect_load(part.per_step[MDOT_PHASE_WEIGHT_GRADIENT], 0, 0, WEIGHT + 2 * VECTOR);
    job_end(&r);
}

/* Nothing is written for a convolution's bias in a region without gradients, as in the target network of BYOL. */
static void convolution_before_normalisation_needs_no_gradient(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,16,8,8");
    job_add_conv(b, "x", "c", "16,16,3,3", 1, true);
    onnx_initializer(b, "v", MDOT_DTYPE_F32, "16", NULL);
    onnx_node(b, "BatchNormalization", "c,v,v,v,v", "n");
    onnx_node(b, "mdot:StopGradient", "n", "s");
    job_add_conv(b, "x", "d", "16,16,3,3", 1, false);
    onnx_node(b, "Sub", "d,s", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_load(job_operator(&r, 0).per_step[MDOT_PHASE_WEIGHT_GRADIENT], 0, 0, 0);
    job_end(&r);
}

/* A dense gradient has the table size, once per step. A sparse one has the rows picked by each sample. */
static void sparse_gradient_of_a_table_has_the_picked_rows(void **state)
{
    (void)state;
    for (int sparse = 0; sparse < 2; sparse++) {
        onnx_builder *b = onnx_begin(17);
        onnx_input(b, "places", MDOT_DTYPE_I64, "N,4");
        onnx_initializer(b, "table", MDOT_DTYPE_F32, "1000,64", NULL);
        onnx_node(b, "Gather", "table,places", "y");
        onnx_attr_int(b, "sparse_gradient", sparse);
        job_reading r = job_expect_output(b, "y");
        mdot_job_operator op = job_operator(&r, 0);
        double rows = 4 * 4 * 64;
        assert_compare(op.parameters, ==, 64000);
        job_expect_load(op.per_sample[MDOT_PHASE_WEIGHT_GRADIENT], 2 * 4 * 64, rows, sparse ? rows : 0);
        job_expect_load(op.per_step[MDOT_PHASE_WEIGHT_GRADIENT], 0, 0, sparse ? 0 : 4 * 64000);
        job_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_normalization_has_vectors_for_each_step),
        cmocka_unit_test(convolution_before_normalisation_needs_no_gradient),
        cmocka_unit_test(single_reader_adds_no_gradient_sum),
        cmocka_unit_test(gradients_of_all_readers_are_added),
        cmocka_unit_test(view_gradients_count_for_their_source),
        cmocka_unit_test(operator_reading_a_value_twice_sends_one_gradient),
        cmocka_unit_test(readers_without_a_gradient_do_not_count),
        cmocka_unit_test(merged_operator_sums_gradients_of_its_result),
        cmocka_unit_test(split_results_have_separate_gradients),
        cmocka_unit_test(concat_copies_gradients_of_single_readers),
        cmocka_unit_test(sparse_gradient_of_a_table_has_the_picked_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
