/* test_q_operators.c — operators on quantised bytes compute the same values as dequantisation, the operator on floats
 * and quantisation. */
#include "tests/support/frontend_fixture.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* x f32[N,4], quantised as q; weights w and bias with two channels; scales and zero points for all. */
static onnx_builder *begin(void)
{
    static const float one = 1, scale = 0.01F, result_scale = 0.02F, weight_scales[] = {0.02F, 0.005F};
    static const uint8_t zero = 120, condition[] = {1, 0, 0, 1};
    static const int8_t weights[] = {1, -2, 3, 100, 5, -128, 127, 8}, weight_zeros[] = {0, -3};
    static const int32_t bias[] = {700, -300};
    static const float float_bias[] = {0.5F, -0.25F};
    onnx_builder *b = onnx_begin(21);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,4");
    onnx_initializer(b, "s", MDOT_DTYPE_F32, "", &scale);
    onnx_initializer(b, "one", MDOT_DTYPE_F32, "", &one);
    onnx_initializer(b, "z", MDOT_DTYPE_U8, "", &zero);
    onnx_initializer(b, "rs", MDOT_DTYPE_F32, "", &result_scale);
    onnx_initializer(b, "w", MDOT_DTYPE_I8, "4,2", weights);
    onnx_initializer(b, "wt", MDOT_DTYPE_I8, "2,4", weights);
    onnx_initializer(b, "w3", MDOT_DTYPE_I8, "2,4,1", weights);
    onnx_initializer(b, "ws", MDOT_DTYPE_F32, "2", weight_scales);
    onnx_initializer(b, "wz", MDOT_DTYPE_I8, "2", weight_zeros);
    onnx_initializer(b, "bias", MDOT_DTYPE_I32, "2", bias);
    onnx_initializer(b, "fbias", MDOT_DTYPE_F32, "2", float_bias);
    onnx_initializer(b, "condition", MDOT_DTYPE_BOOL, "4", condition);
    onnx_node(b, "QuantizeLinear", "x,s,z", "q");
    onnx_node(b, "DequantizeLinear", "q,s,z", "f");
    onnx_output(b, "y");
    return b;
}

/* Compares the operator with the same in floats. `floats` makes "r" (quantised again if `quantises` is set). */
static void check(const char *op_type, const char *inputs, void (*attributes)(onnx_builder *b),
                  void (*floats)(onnx_builder *b), bool quantises)
{
    mdot_error err;
    onnx_builder *given = begin(), *wanted = begin();
    onnx_node(given, op_type, inputs, "y");
    if (attributes != NULL) attributes(given);
    floats(wanted);
    onnx_node(wanted, quantises ? "QuantizeLinear" : "Identity", quantises ? "r,rs,z" : "r", "y");
    imported a = expect_imported(given, NULL), b = expect_imported(wanted, NULL);
    a.graph->max_length = b.graph->max_length = 16;
    if (ir_infer(a.graph, &err) != MDOT_OK || ir_infer(b.graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_same_values(a.graph, b.graph, 7, 1e-9);
    release(&a);
    release(&b);
}

static void matmul(onnx_builder *b)
{
    onnx_node(b, "DequantizeLinear", "w,ws,wz", "wf");
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "MatMul", "f,wf", "r");
}

static void matmul_and_bias(onnx_builder *b)
{
    onnx_node(b, "DequantizeLinear", "w,ws,wz", "wf");
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "MatMul", "f,wf", "p");
    onnx_node(b, "Add", "p,fbias", "r");
}

static void dynamic_matmul(onnx_builder *b)
{
    onnx_node(b, "DynamicQuantizeLinear", "x", "dq,ds,dz");
    onnx_node(b, "DequantizeLinear", "dq,ds,dz", "df");
    onnx_node(b, "DequantizeLinear", "w,ws,wz", "wf");
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "MatMul", "df,wf", "p");
    onnx_node(b, "Add", "p,fbias", "r");
}

static void gemm_attributes(onnx_builder *b)
{
    onnx_attr_int(b, "transB", 1);
    onnx_attr_float(b, "alpha", 0.5F);
}

static void gemm(onnx_builder *b)
{
    static const float half = 0.5F;
    onnx_initializer(b, "half", MDOT_DTYPE_F32, "", &half);
    onnx_node(b, "DequantizeLinear", "wt,ws,wz", "wf");
    onnx_attr_int(b, "axis", 0);
    onnx_node(b, "Mul", "s,ws", "ps");
    onnx_node(b, "Mul", "ps,half", "bs");
    onnx_node(b, "DequantizeLinear", "bias,bs", "bf");
    onnx_attr_int(b, "axis", 0);
    onnx_node(b, "Gemm", "f,wf,bf", "r");
    gemm_attributes(b);
}

static void sums(onnx_builder *b) { onnx_node(b, "Add", "f,f", "r"); }

static void multiplications(onnx_builder *b) { onnx_node(b, "Mul", "f,f", "r"); }

static void sigmoid(onnx_builder *b) { onnx_node(b, "Sigmoid", "f", "r"); }

static void leaky_relu(onnx_builder *b)
{
    onnx_node(b, "LeakyRelu", "f", "r");
    onnx_attr_float(b, "alpha", 0.3F);
}

static void leak(onnx_builder *b) { onnx_attr_float(b, "alpha", 0.3F); }

static void softmax(onnx_builder *b)
{
    onnx_node(b, "Softmax", "f", "r");
    onnx_attr_int(b, "axis", -1);
}

static void softmax_attributes(onnx_builder *b)
{
    onnx_attr_int(b, "axis", -1);
    onnx_attr_int(b, "opset", 13);
}

static void concatenation(onnx_builder *b)
{
    onnx_node(b, "Concat", "f,f", "r");
    onnx_attr_int(b, "axis", -1);
}

static void last_axis(onnx_builder *b) { onnx_attr_int(b, "axis", -1); }

static void selection(onnx_builder *b) { onnx_node(b, "Where", "condition,f,f", "r"); }

static void own_input(onnx_builder *b) { onnx_node(b, "Identity", "x", "r"); }

static void dequantisation(onnx_builder *b) { onnx_node(b, "DequantizeLinear", "q,rs,z", "r"); }

static void quantised_operators_match_float_computation(void **state)
{
    (void)state;
    check("QLinearMatMul", "q,s,z,w,ws,wz,rs,z", NULL, matmul, true);
    check("com.microsoft:QLinearAdd", "q,s,z,q,s,z,rs,z", NULL, sums, true);
    check("com.microsoft:QLinearMul", "q,s,z,q,s,z,rs,z", NULL, multiplications, true);
    check("com.microsoft:QLinearSigmoid", "q,s,z,rs,z", NULL, sigmoid, true);
    check("com.microsoft:QLinearLeakyRelu", "q,s,z,rs,z", leak, leaky_relu, true);
    check("com.microsoft:QLinearSoftmax", "q,s,z,rs,z", softmax_attributes, softmax, true);
    check("com.microsoft:QLinearConcat", "rs,z,q,s,z,q,s,z", last_axis, concatenation, true);
    check("com.microsoft:QLinearWhere", "condition,q,s,z,q,s,z,rs,z", NULL, selection, true);
    check("com.microsoft:DequantizeLinear", "q,rs,z", NULL, dequantisation, false);
    check("com.microsoft:QuantizeLinear", "x,rs,z", NULL, own_input, true);
    check("com.microsoft:QGemm", "q,s,z,wt,ws,wz,bias,rs,z", gemm_attributes, gemm, true);
    check("com.microsoft:QGemm", "q,s,z,wt,ws,wz,bias", gemm_attributes, gemm, false);
    check("com.microsoft:MatMulIntegerToFloat", "q,w,s,ws,z,wz", NULL, matmul, false);
    check("com.microsoft:MatMulIntegerToFloat", "q,w,s,ws,z,wz,fbias", NULL, matmul_and_bias, false);
    check("com.microsoft:DynamicQuantizeMatMul", "x,w,ws,wz,fbias", NULL, dynamic_matmul, false);
}

/* x reshaped to [1, 4, N]: quantised as qc, in floats as fc. */
static void turn(onnx_builder *b)
{
    static const int64_t axis = 0;
    onnx_initializer(b, "axis0", MDOT_DTYPE_I64, "1", &axis);
    onnx_node(b, "Transpose", "x", "xt");
    onnx_node(b, "Unsqueeze", "xt,axis0", "xc");
    onnx_node(b, "QuantizeLinear", "xc,s,z", "qc");
}

static void convolutions_have_a_scale_for_each_channel(void **state)
{
    (void)state;
    mdot_error err;
    onnx_builder *given = begin(), *wanted = begin();
    turn(given);
    onnx_node(given, "QLinearConv", "qc,s,z,w3,ws,wz,rs,z,bias", "y");
    turn(wanted);
    onnx_node(wanted, "DequantizeLinear", "qc,s,z", "fc");
    onnx_node(wanted, "DequantizeLinear", "w3,ws,wz", "wf");
    onnx_attr_int(wanted, "axis", 0);
    onnx_node(wanted, "Mul", "s,ws", "bs");
    onnx_node(wanted, "DequantizeLinear", "bias,bs", "bf");
    onnx_attr_int(wanted, "axis", 0);
    onnx_node(wanted, "Conv", "fc,wf,bf", "r");
    onnx_node(wanted, "QuantizeLinear", "r,rs,z", "y");
    imported a = expect_imported(given, NULL), b = expect_imported(wanted, NULL);
    a.graph->max_length = b.graph->max_length = 16;
    if (ir_infer(a.graph, &err) != MDOT_OK || ir_infer(b.graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_same_values(a.graph, b.graph, 7, 1e-9);
    release(&a);
    release(&b);
}

/* Compares an operator on bytes [1, 4, N] with the same on floats, which makes "r" from "fc". */
static void check_spatial(const char *op_type, const char *inputs, void (*floats)(onnx_builder *b), bool casts)
{
    mdot_error err;
    onnx_builder *given = begin(), *wanted = begin();
    turn(given);
    onnx_node(given, op_type, inputs, "y");
    if (strstr(op_type, "AveragePool") != NULL && strstr(op_type, "Global") == NULL)
        onnx_attr_ints(given, "kernel_shape", 1, (int64_t[]){3});
    turn(wanted);
    onnx_node(wanted, "DequantizeLinear", casts ? "qc,one,z" : "qc,s,z", "fc");
    floats(wanted);
    onnx_node(wanted, casts ? "Cast" : "QuantizeLinear", casts ? "r" : "r,rs,z", "y");
    if (casts) onnx_attr_int(wanted, "to", MDOT_DTYPE_I32);
    imported a = expect_imported(given, NULL), b = expect_imported(wanted, NULL);
    a.graph->max_length = b.graph->max_length = 16;
    a.graph->min_length = b.graph->min_length = 3;
    if (ir_infer(a.graph, &err) != MDOT_OK || ir_infer(b.graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_same_values(a.graph, b.graph, 7, 1e-9);
    release(&a);
    release(&b);
}

static void pooling(onnx_builder *b)
{
    onnx_node(b, "AveragePool", "fc", "r");
    onnx_attr_ints(b, "kernel_shape", 1, (int64_t[]){3});
}

static void global_pooling(onnx_builder *b) { onnx_node(b, "GlobalAveragePool", "fc", "r"); }

static void whole_convolution(onnx_builder *b)
{
    onnx_node(b, "DequantizeLinear", "w3,one,wz", "wf");
    onnx_attr_int(b, "axis", 0);
    onnx_node(b, "Conv", "fc,wf", "r");
}

static void spatial_operators_match_float_computation(void **state)
{
    (void)state;
    check_spatial("com.microsoft:QLinearAveragePool", "qc,s,z,rs,z", pooling, false);
    check_spatial("com.microsoft:QLinearGlobalAveragePool", "qc,s,z,rs,z", global_pooling, false);
    check_spatial("ConvInteger", "qc,w3,z,wz", whole_convolution, true);
}

static void quantised_attention_becomes_float_attention(void **state)
{
    (void)state;
    static const int64_t axis = 0;
    static const float bias[6] = {0.5F, 1, -1, 0, 0.25F, 2};
    static const int8_t weights[24] = {1, 2, 3, 4, 5, 6, -7, -8, -9, 10, 11, 12, 50, -60, 70, 80, -90, 3, 2, 1};
    for (int quantised = 0; quantised < 2; quantised++) {
        onnx_builder *b = begin();
        onnx_initializer(b, "axis0", MDOT_DTYPE_I64, "1", &axis);
        onnx_initializer(b, "wa", MDOT_DTYPE_I8, "4,6", weights);
        onnx_initializer(b, "ba", MDOT_DTYPE_F32, "6", bias);
        onnx_node(b, "Unsqueeze", "q,axis0", "rows");
        if (quantised) onnx_node(b, "com.microsoft:QAttention", "rows,wa,ba,s,rs,,z", "y");
        if (!quantised) onnx_node(b, "com.microsoft:QAttention", "rows,wa,ba,s,rs,,z,,x", "y");
        onnx_attr_int(b, "num_heads", 2);
        imported m = expect_imported(b, NULL);
        const ir_value *past = ir_node_input(node_of(m.graph, IR_OP_MSAttention), 4);
        assert_true(quantised ? past == NULL : strcmp(past->name, "x") == 0);
        release(&m);
    }
}

static void missing_operands_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "QLinearMatMul", "q,s,z,w,,wz,rs,z", "y");
    expect_refused(b, NULL, MDOT_MALFORMED, "QLinearMatMul→y", "lacks an input", NULL);
    b = begin();
    onnx_node(b, "com.microsoft:QLinearSoftmax", "q,s,z,rs,z", "y");
    onnx_attr_int(b, "axis", 0);
    onnx_attr_int(b, "opset", 11);
    imported m = expect_imported(b, NULL);
    assert_null(m.graph->last->op);
    release(&m);
    b = begin();
    onnx_node(b, "com.microsoft:QLinearConcat", "rs,z,q,s,z,q", "y");
    m = expect_imported(b, NULL);
    assert_non_null(strstr(m.graph->last->op_type, "lacks its bytes or its scale"));
    release(&m);
    b = begin();
    onnx_node(b, "com.microsoft:QLinearAveragePool", "q,s,z,rs,z", "y");
    onnx_attr_int(b, "channels_last", 1);
    m = expect_imported(b, NULL);
    assert_non_null(strstr(m.graph->last->op_type, "channels last"));
    release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantised_operators_match_float_computation),
        cmocka_unit_test(convolutions_have_a_scale_for_each_channel),
        cmocka_unit_test(spatial_operators_match_float_computation),
        cmocka_unit_test(quantised_attention_becomes_float_attention),
        cmocka_unit_test(missing_operands_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
