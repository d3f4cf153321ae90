/* test_parameters.c — frontend/job/parameters.c: which values count as parameters, and how often. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The position biases in Swin and BEiT: a table with 49 rows, gathered at 400 positions. */
static onnx_builder *with_table(int readers)
{
    static int64_t places[400];
    onnx_builder *b = onnx_begin(17);
    for (int i = 0; i < 400; i++) places[i] = i % 49;
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,400,4");
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "49,4", NULL);
    onnx_initializer(b, "places", MDOT_DTYPE_I64, "400", places);
    char last[16] = "x";
    for (int i = 0; i < readers; i++) {
        char picked[16], sum[16], inputs[40];
        snprintf(picked, sizeof picked, "p%d", i);
        snprintf(sum, sizeof sum, "s%d", i);
        onnx_node(b, "Gather", "table,places", picked);
        snprintf(inputs, sizeof inputs, "%s,%s", last, picked);
        onnx_node(b, "Add", inputs, sum);
        strcpy(last, sum);
    }
    onnx_output(b, last);
    return b;
}

static void gathered_table_counts_its_rows(void **state)
{
    (void)state;
    job_reading r = job_expect(with_table(1));
    job_expect_types(&r, "Add");
    assert_compare(job_operator(&r, 0).parameters, ==, 49 * 4);
    /* In every step, the added bias is as large as the gathered one. */
    job_expect_load(job_operator(&r, 0).per_step[MDOT_PHASE_FORWARD], 0, 4 * 1600, 0);
    job_expect_load(job_operator(&r, 0).per_step[MDOT_PHASE_WEIGHT_GRADIENT], 0, 0, 4 * 1600);
    job_end(&r);
}

static void shared_table_counts_at_its_first_reader(void **state)
{
    (void)state;
    job_reading r = job_expect(with_table(3));
    job_expect_types(&r, "Add Add Add");
    assert_compare(job_info(&r).parameters, ==, 49 * 4);
    assert_compare(job_operator(&r, 1).parameters, ==, 0);
    job_end(&r);
}

/* PyTorch's exporter computes masks and rotary tables, and names them after operators. It also transposes weights. */
static void tables_of_an_exporter_are_no_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name, *dims;
        int64_t count;
    } rows[] = {
        {"where", "2,1,4,8", 0},    {"val_160", "2,1,4,8", 0},  {"unsqueeze_14", "1,4,8", 0}, {"clone", "2,3,4,8", 0},
        {"_to_copy_3", "1,4,8", 0}, {"pos_embed", "1,4,8", 32}, {"cls_token", "1,1,8", 8},    {"value_5", "1,4,8", 32},
        {"h.0.where", "1,4,8", 32}, {"1", "1,4,8", 32},         {"val_39", "8", 8},           {"val_40", "1,8", 8},
        {"where2x", "1,4,8", 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int k = 0; k < 2; k++) {
            char inputs[64];
            onnx_builder *b = onnx_begin(17);
            onnx_input(b, "x", MDOT_DTYPE_F32, "2,3,4,8");
            onnx_initializer(b, "val_1", MDOT_DTYPE_F32, "8,8", NULL); /* a weight, transposed */
            onnx_initializer(b, rows[i].name, MDOT_DTYPE_F32, rows[i].dims, NULL);
            snprintf(inputs, sizeof inputs, "h,%s", rows[i].name);
            onnx_node(b, "MatMul", "x,val_1", "h");
            onnx_node(b, k == 0 ? "Add" : "Mul", inputs, "y");
            job_reading r = job_expect_output(b, "y");
            if (job_info(&r).parameters != 64 + rows[i].count)
                fail_msg("%s: %lld parameters", rows[i].name, (long long)job_info(&r).parameters);
            job_end(&r);
        }
    }
}

/* BEiT's query, key and value bias: two parameters and zeros. */
static void parameters_of_one_constant_count_together(void **state)
{
    (void)state;
    static const float zeros[8];
    onnx_builder *b = job_begin("N,10,8");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,24", NULL);
    onnx_initializer(b, "q_bias", MDOT_DTYPE_F32, "8", NULL);
    onnx_initializer(b, "v_bias", MDOT_DTYPE_F32, "8", NULL);
    onnx_node(b, "Constant", "", "k_bias");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_F32, "8", zeros);
    onnx_node(b, "Concat", "q_bias,k_bias,v_bias", "bias");
    onnx_attr_int(b, "axis", 0);
    onnx_node(b, "MatMul", "x,w", "p");
    onnx_node(b, "Add", "p,bias", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Linear");
    assert_compare(job_info(&r).parameters, ==, 8 * 24 + 2 * 8);
    job_end(&r);
}

/* The last layer of a recommendation model, and CLIP's temperature. */
static void single_elements_without_a_value_are_parameters(void **state)
{
    (void)state;
    static const float half = 0.5F;
    onnx_builder *b = job_begin("N,8");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,1", NULL);
    onnx_initializer_elsewhere(b, "b", MDOT_DTYPE_F32, "1");
    onnx_initializer_elsewhere(b, "temperature", MDOT_DTYPE_F32, "");
    onnx_initializer(b, "half", MDOT_DTYPE_F32, "", &half);
    onnx_node(b, "Gemm", "x,w,b", "p");
    onnx_node(b, "Exp", "temperature", "scale");
    onnx_node(b, "Mul", "p,scale", "scaled");
    onnx_node(b, "Max", "scaled,half", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Linear Mul Max");
    assert_compare(job_operator(&r, 0).parameters, ==, 9);
    assert_compare(job_operator(&r, 1).parameters, ==, 1);
    assert_compare(job_operator(&r, 2).parameters, ==, 0);
    job_end(&r);
}

/* The file stores one element and its value. Position and name decide whether it is a parameter. */
static void single_elements_with_a_value_count_in_weight_positions(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shape, *before, *op_type; /* name and shape of the element, the operator before the reader,
                                                      * and the reader */
        int parameters;
    } rows[] = {
        {"b", "1", "MatMul", "Add", 1},          /* a one-unit layer's bias */
        {"head.bias", "1", "MatMul", "Add", 1},  /* the same, recognised by name */
        {"one", "", "MatMul", "Add", 0},         /* a constant, because exporters write scalars with zero dimensions */
        {"model.scale", "", "MatMul", "Mul", 0}, /* also if the name has a module */
        {"eps", "1", "Relu", "Add", 0},          /* a constant whose name has no module */
        {"onnx::Mul_12", "1", "Relu", "Mul", 0},  {"norm.middle", "1", "Relu", "Mul", 0}, /* buffers */
        {"act.weight", "1", "Relu", "PRelu", 1},  {"gate.scale_weight", "1", "Relu", "Mul", 1},
        {"attn.inv_freq", "1", "Relu", "Mul", 0}, {"w2", "1,1", "Relu", "MatMul", 1},
    };
    static const float number = 0.5F;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        onnx_builder *b = onnx_begin(17);
        char inputs[64];
        onnx_input(b, "x", MDOT_DTYPE_F32, "N,8");
        onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,1", NULL);
        onnx_initializer(b, rows[i].name, MDOT_DTYPE_F32, rows[i].shape, &number);
        onnx_node(b, "MatMul", "x,w", "p");
        if (strcmp(rows[i].before, "MatMul") != 0) onnx_node(b, rows[i].before, "p", "q");
        snprintf(inputs, sizeof inputs, "%s,%s", strcmp(rows[i].before, "MatMul") == 0 ? "p" : "q", rows[i].name);
        onnx_node(b, rows[i].op_type, inputs, "y");
        job_reading r = job_expect_output(b, "y");
        if (job_info(&r).parameters != 8 + rows[i].parameters)
            fail_msg("%s: %g parameters", rows[i].name, job_info(&r).parameters);
        job_end(&r);
    }
}

/* For an unknown operator, the input roles are unknown, but names still identify parameters. */
static void single_elements_of_unknown_operators_count_by_their_names(void **state)
{
    (void)state;
    static const float number = 0.5F;
    onnx_builder *b = job_begin("N,8");
    onnx_import(b, "some.domain", 1);
    onnx_initializer(b, "a", MDOT_DTYPE_F32, "1", &number);
    onnx_initializer(b, "odd.weight", MDOT_DTYPE_F32, "1", &number);
    onnx_node(b, "some.domain:Odd", "x,a,odd.weight", "p");
    onnx_node(b, "Add", "p,a", "y"); /* the other operand comes from an unknown operator */
    job_reading r = job_expect_output(b, "y");
    assert_compare(job_info(&r).parameters, ==, 1);
    job_end(&r);
}

/* NFNet multiplies each branch by a trained scalar. An exporter's own scalars have other names. */
static void scalars_count_by_their_names(void **state)
{
    (void)state;
    static const float number = 0.5F;
    onnx_builder *b = job_begin("N,8");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,8", NULL);
    onnx_initializer(b, "blocks.0.skipinit_gain", MDOT_DTYPE_F32, "", &number);
    onnx_initializer(b, "onnx::Mul_12", MDOT_DTYPE_F32, "", &number);
    onnx_node(b, "MatMul", "x,w", "p");
    onnx_node(b, "Mul", "p,blocks.0.skipinit_gain", "q");
    onnx_node(b, "Mul", "q,onnx::Mul_12", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Linear Mul Mul");
    assert_compare(job_operator(&r, 1).parameters, ==, 1);
    assert_compare(job_operator(&r, 2).parameters, ==, 0);
    job_end(&r);
}

/* Linear(n, 1), by Gemm; and a convolution with one channel. */
static void single_biases_and_factors_count(void **state)
{
    (void)state;
    static const float number = 0.5F;
    onnx_builder *b = job_begin("N,8");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,8", NULL);
    onnx_initializer(b, "b", MDOT_DTYPE_F32, "1", &number);
    onnx_initializer(b, "k", MDOT_DTYPE_F32, "1,1,1", &number);
    onnx_initializer(b, "shape", MDOT_DTYPE_I64, "3", (int64_t[]){-1, 1, 1});
    onnx_node(b, "Gemm", "x,w,b", "p");
    onnx_attr_int(b, "transB", 1);
    onnx_node(b, "Reshape", "p,shape", "q");
    onnx_node(b, "Conv", "q,k,b", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Linear Conv");
    assert_compare(job_operator(&r, 0).parameters, ==, 9);
    assert_compare(job_operator(&r, 1).parameters, ==, 1); /* the first reader counts the bias */
    job_end(&r);
}

/* A class token before every sample, where the file has a fixed batch. */
static void repeated_parameter_counts_once(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("2,10,8");
    onnx_initializer(b, "cls_token", MDOT_DTYPE_F32, "1,1,8", NULL);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "3", (int64_t[]){2, 1, 8});
    onnx_node(b, "Expand", "cls_token,one", "tokens");
    onnx_node(b, "Concat", "tokens,x", "y");
    onnx_attr_int(b, "axis", 1);
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Concat");
    assert_compare(job_info(&r).parameters, ==, 8);
    job_end(&r);
}

static onnx_builder *with_constant(const char *name, bool stored)
{
    static const float numbers[] = {1, 2, 3, 4};
    onnx_builder *b = job_begin("N,4");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "4,4", NULL);
    if (stored) {
        onnx_initializer(b, name, MDOT_DTYPE_F32, "4", numbers);
    } else {
        onnx_node(b, "Constant", "", name);
        onnx_attr_tensor(b, "value", MDOT_DTYPE_F32, "4", numbers);
    }
    char inputs[64];
    snprintf(inputs, sizeof inputs, "x,%s", name);
    onnx_node(b, "Mul", inputs, "m");
    onnx_node(b, "MatMul", "m,w", "y");
    onnx_output(b, "y");
    return b;
}

static void constants_among_nodes_are_not_parameters(void **state)
{
    (void)state;
    job_reading stored = job_expect(with_constant("gamma", true)), number = job_expect(with_constant("c", false));
    assert_compare(job_info(&stored).parameters, ==, 4 + 16);
    assert_compare(job_info(&number).parameters, ==, 16);
    job_end(&stored);
    job_end(&number);
}

static void buffers_are_recognised_by_name(void **state)
{
    (void)state;
    job_reading mask = job_expect(with_constant("blocks.1.attn_mask", true));
    job_reading weight = job_expect(with_constant("blocks.1.attn_mask.weight", true));
    assert_compare(job_info(&mask).parameters, ==, 16);
    assert_compare(job_info(&weight).parameters, ==, 4 + 16);
    job_end(&mask);
    job_end(&weight);
}

/* As old exporters write files. */
static void weights_in_constant_nodes_are_parameters(void **state)
{
    (void)state;
    static const float weights[16];
    onnx_builder *b = job_begin("N,4");
    onnx_node(b, "Constant", "", "w");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_F32, "4,4", weights);
    onnx_node(b, "MatMul", "x,w", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Linear");
    assert_compare(job_info(&r).parameters, ==, 16);
    job_end(&r);
}

static void constants_of_a_shape_replace_missing_weights(void **state)
{
    (void)state;
    static const int64_t shape[] = {64, 64};
    onnx_builder *b = job_begin("N,64");
    onnx_initializer(b, "shape", MDOT_DTYPE_I64, "2", shape);
    onnx_initializer(b, "bias", MDOT_DTYPE_F32, "64", NULL);
    onnx_node(b, "ConstantOfShape", "shape", "w");
    onnx_node(b, "MatMul", "x,w", "p");
    onnx_node(b, "Add", "p,bias", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Linear");
    assert_compare(job_info(&r).parameters, ==, 64 * 64 + 64);
    job_end(&r);
}

/* The passes infer types again after the weights' data were dropped. */
static void the_scales_of_a_resize_are_never_weights(void **state)
{
    (void)state;
    static const float scales[] = {1, 1, 2, 2};
    onnx_builder *b = job_begin("N,3,8,8");
    job_add_conv(b, "x", "c", "4,3,3,3", 1, false);
    onnx_initializer(b, "scales", MDOT_DTYPE_F32, "4", scales);
    onnx_node(b, "Identity", "scales", "same");
    onnx_node(b, "Transpose", "c", "t");
    onnx_attr_ints(b, "perm", 4, (int64_t[]){0, 1, 2, 3});
    onnx_node(b, "Resize", "t,,same", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Conv Resize");
    assert_true(job_operator(&r, 1).known);
    assert_int_equal(job_operator(&r, 1).setting[MDOT_SETTING_SIZE_OUT], 256);
    assert_compare(job_info(&r).parameters, ==, 4 * 27);
    assert_string_equal(r.warnings, "");
    job_end(&r);
}

/* Weights standardised in every step, as in NFNet. PyTorch's TorchScript exporter stores them once for the
 * normalisation and once for its mean. */
static void running_statistics_are_not_parameters(void **state)
{
    (void)state;
    static const int64_t kernel[] = {16, 3, 3, 3};
    onnx_builder *b = job_begin("N,3,8,8");
    onnx_initializer(b, "weight", MDOT_DTYPE_F32, "1,16,27", NULL);
    onnx_initializer(b, "copy", MDOT_DTYPE_F32, "1,16,27", NULL);
    onnx_initializer(b, "gain", MDOT_DTYPE_F32, "16", NULL);
    onnx_initializer(b, "kernel", MDOT_DTYPE_I64, "4", kernel);
    onnx_node(b, "ReduceMean", "copy", "mean");
    onnx_attr_ints(b, "axes", 2, (int64_t[]){0, 2});
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "BatchNormalization", "weight,gain,gain,mean,mean", "standard");
    onnx_node(b, "Reshape", "standard,kernel", "w");
    onnx_node(b, "Conv", "x,w", "y");
    job_reading r = job_expect_output(b, "y");
    assert_compare(job_info(&r).parameters, ==, 432 + 16);
    job_end(&r);
}

/* Files without weights write them as ConstantOfShape. They are never computed, so they may exceed the memory. */
static void placeholders_of_any_size_are_parameters(void **state)
{
    (void)state;
    static const int64_t rows[] = {2, 511, 512, 513, 1 << 20, INT64_C(1) << 36};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char shape[32];
        const int64_t dims[] = {rows[i], 16};
        snprintf(shape, sizeof shape, "N,%lld", (long long)rows[i]);
        onnx_builder *b = job_begin(shape);
        onnx_initializer(b, "dims", MDOT_DTYPE_I64, "2", dims);
        onnx_node(b, "ConstantOfShape", "dims", "w");
        onnx_node(b, "MatMul", "x,w", "y");
        job_reading r = job_expect_output(b, "y");
        assert_compare(job_info(&r).parameters, ==, 16.0 * (double)rows[i]);
        assert_int_equal(job_info(&r).operator_count, 1);
        job_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gathered_table_counts_its_rows),
        cmocka_unit_test(shared_table_counts_at_its_first_reader),
        cmocka_unit_test(tables_of_an_exporter_are_no_parameters),
        cmocka_unit_test(single_elements_without_a_value_are_parameters),
        cmocka_unit_test(single_elements_with_a_value_count_in_weight_positions),
        cmocka_unit_test(single_elements_of_unknown_operators_count_by_their_names),
        cmocka_unit_test(scalars_count_by_their_names),
        cmocka_unit_test(single_biases_and_factors_count),
        cmocka_unit_test(parameters_of_one_constant_count_together),
        cmocka_unit_test(repeated_parameter_counts_once),
        cmocka_unit_test(constants_among_nodes_are_not_parameters),
        cmocka_unit_test(buffers_are_recognised_by_name),
        cmocka_unit_test(weights_in_constant_nodes_are_parameters),
        cmocka_unit_test(constants_of_a_shape_replace_missing_weights),
        cmocka_unit_test(the_scales_of_a_resize_are_never_weights),
        cmocka_unit_test(running_statistics_are_not_parameters),
        cmocka_unit_test(placeholders_of_any_size_are_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
