/* test_unfold_batchnorm.c — frontend/job/unfold_batchnorm.c and folded_norm_warnings.c. BatchNormalizations folded into
 * weights by exporters are restored if the folding left a trace, and a warning is given if the trace is missing.
 * Networks without normalisation stay unchanged. */
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void add_norm(onnx_builder *b, const char *in, const char *out)
{
    char inputs[128];
    snprintf(inputs, sizeof inputs, "%s,bn.weight,bn.bias,bn.running_mean,bn.running_var", in);
    onnx_initializer(b, "bn.weight", MDOT_DTYPE_F32, "16", NULL);
    onnx_initializer(b, "bn.bias", MDOT_DTYPE_F32, "16", NULL);
    onnx_initializer(b, "bn.running_mean", MDOT_DTYPE_F32, "16", NULL);
    onnx_initializer(b, "bn.running_var", MDOT_DTYPE_F32, "16", NULL);
    onnx_node(b, "BatchNormalization", inputs, out);
}

typedef struct form {
    const char *op_type, *shape, *weight_shape; /* 16 output channels */
} form;
static const form forms[] = {
    {"Conv", "N,3,8,8", "16,3,3,3"}, {"ConvTranspose", "N,3,8,8", "3,16,3,3"}, {"Gemm", "N,3", "3,16"}};

/* An operator with the weight and the bias so named (NULL: absent), followed by an activation. */
static onnx_builder *layer(const form *f, const char *weight, const char *bias, bool normalised)
{
    char inputs[256];
    onnx_builder *b = job_begin(f->shape);
    onnx_initializer(b, weight, MDOT_DTYPE_F32, f->weight_shape, NULL);
    if (bias != NULL) onnx_initializer(b, bias, MDOT_DTYPE_F32, "16", NULL);
    onnx_initializer(b, "act.weight", MDOT_DTYPE_F32, "1", NULL);
    snprintf(inputs, sizeof inputs, "x,%s%s%s", weight, bias != NULL ? "," : "", bias != NULL ? bias : "");
    if (normalised) {
        onnx_node(b, f->op_type, inputs, "c");
        add_norm(b, "c", "n");
    }
    onnx_node(b, "PRelu", "n,act.weight", "y");
    onnx_output(b, "y");
    if (!normalised) onnx_node(b, f->op_type, inputs, "n"); /* the metadata follow the node */
    return b;
}

static const char rule_key[] = "pkg.onnxscript.rewriter.rule_name";

/* Files with names or metadata as exporters write them, each with the same network's training file. */
static const struct {
    const char *weight, *bias;
    const char *key, *value; /* the node's metadata */
    bool own_bias;           /* the convolution has a bias besides the normalisation */
} traces[] = {
    {"onnx::Conv_12", "onnx::Conv_13", NULL, NULL, false},
    {"193", "194", NULL, NULL, false},
    {"conv1.weight", "conv1.weight_bias", NULL, NULL, false},
    {"ConvBnFusion_W_conv1.weight", "ConvBnFusion_BN_B_bn1.bias", NULL, NULL, false},
    {"conv1/Conv2D_weights_fused_bn", "conv1/Conv2D_bias_fused_bn", NULL, NULL, false},
    {"conv1.weight", "conv1.bias", rule_key, "FuseBatchNormIntoConv", true},
    /* an all-zero bias, such as a fresh normalisation's, was removed, too */
    {"conv1.weight", NULL, rule_key, "RemoveOptionalBiasFromConv, FuseBatchNormIntoConv, RemoveOptionalBiasFromConv",
     false},
    {"conv1.weight", NULL, "pkg.torch.onnx.class_hierarchy", "['', 'torch.nn.modules.batchnorm.BatchNorm2d', 'aten.x']",
     false},
    {"conv1.weight", "b", "namespace", ": Net/bn1: torch.nn.modules.batchnorm.BatchNorm2d/x: aten.x", false},
};

static void folded_normalisation_is_restored(void **state)
{
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        for (size_t i = 0; i < sizeof traces / sizeof *traces; i++) {
            print_message("%s with %s\n", forms[f].op_type, traces[i].key != NULL ? traces[i].value : traces[i].weight);
            onnx_builder *folded = layer(&forms[f], traces[i].weight, traces[i].bias, false);
            if (traces[i].key != NULL) onnx_node_metadata(folded, traces[i].key, traces[i].value);
            job_reading r =
                job_expect(layer(&forms[f], "conv1.weight", traces[i].own_bias ? "conv1.bias" : NULL, true));
            job_reading s = job_expect(folded);
            assert_string_equal(r.warnings, "");
            assert_non_null(strstr(s.warnings, "1 BatchNormalization is folded into the weights"));
            assert_int_equal(job_info(&r).notes, 0);
            assert_int_equal(job_info(&s).notes, MDOT_JOB_FOLDED);
            job_expect_same(&r, &s);
            job_end(&r);
            job_end(&s);
        }
    }
}

/* Names and metadata in networks without normalisation. */
static void convolution_without_trace_stays(void **state)
{
    (void)state;
    static const struct {
        const char *weight, *bias, *key, *value;
    } rows[] = {
        {"conv1.weight", "conv1.bias", NULL, NULL},
        {"conv1.weight", "conv1.bias", rule_key, "RemoveOptionalBiasFromConv"},
        {"conv1.weight", NULL, rule_key, "RemoveOptionalBiasFromConv"},
        {"conv1.weight", "conv1.bias", "namespace",
         ": Net/conv1: torchvision.ops.misc.Conv2dNormActivation/x: aten.conv2d"},
        {"conv1.weight", "conv1.bias", "pkg.torch.onnx.fx_node", "%conv2d(args = (%batch_norm_1, %p_conv1_weight))"},
        {"onnx::Conv_12", "conv1.bias", NULL, NULL}, /* standardised weights, computed by the exporter */
        {"conv1_w_0", "conv1_b_0", NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        onnx_builder *b = layer(&forms[0], rows[i].weight, rows[i].bias, false);
        if (rows[i].key != NULL) onnx_node_metadata(b, rows[i].key, rows[i].value);
        job_reading r = job_expect(b);
        job_expect_types(&r, "Conv PRelu");
        assert_int_equal(job_operator(&r, 0).setting[MDOT_SETTING_NORMALISED], 0);
        assert_string_equal(r.warnings, "");
        job_end(&r);
    }
}

/* PyTorch 0.4 gave numbers to all parameters. */
static void numeric_names_alone_do_not_indicate_a_folded_norm(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(9);
    onnx_input(b, "0", MDOT_DTYPE_F32, "N,3,8,8");
    onnx_initializer(b, "1", MDOT_DTYPE_F32, "16,3,3,3", NULL);
    onnx_initializer(b, "2", MDOT_DTYPE_F32, "16", NULL);
    onnx_node(b, "Conv", "0,1,2", "3");
    job_reading r = job_expect_output(b, "3");
    assert_int_equal(job_operator(&r, 0).setting[MDOT_SETTING_NORMALISED], 0);
    assert_string_equal(r.warnings, "");
    job_end(&r);
}

typedef enum block { PLAIN, RESIDUAL, SILU, DEPTHWISE, SUPER_RESOLUTION } block;

/* Ten blocks of convolutions with biases. */
static onnx_builder *network(block kind, bool with_bias, bool with_norm)
{
    char in[32] = "x", conv[32], out[32], pair[80];
    onnx_builder *b = job_begin("N,16,8,8");
    for (int i = 0; i < 10; i++) {
        snprintf(conv, sizeof conv, "c%d", i);
        snprintf(out, sizeof out, "y%d", i);
        snprintf(pair, sizeof pair, "%s,%s", conv, in);
        job_add_conv(b, in, conv, kind == DEPTHWISE ? "16,1,3,3" : "16,16,3,3", kind == DEPTHWISE ? 16 : 1, with_bias);
        if (kind == RESIDUAL) {
            char sum[32];
            snprintf(sum, sizeof sum, "s%d", i);
            onnx_node(b, "Add", pair, sum);
            onnx_node(b, "Relu", sum, out);
        } else if (kind == SUPER_RESOLUTION) {
            char relu[32], next[32];
            snprintf(relu, sizeof relu, "r%d", i);
            snprintf(next, sizeof next, "d%d", i);
            onnx_node(b, "Relu", conv, relu);
            job_add_conv(b, relu, next, "16,16,3,3", 1, with_bias);
            snprintf(pair, sizeof pair, "%s,%s", next, in);
            onnx_node(b, "Add", pair, out);
        } else if (kind == SILU) {
            char gate[32];
            snprintf(gate, sizeof gate, "g%d", i);
            onnx_node(b, "Sigmoid", conv, gate);
            snprintf(pair, sizeof pair, "%s,%s", conv, gate);
            onnx_node(b, "Mul", pair, out);
        } else {
            onnx_node(b, "Relu", conv, out);
        }
        strcpy(in, out);
    }
    if (with_norm) add_norm(b, in, "normalised");
    onnx_output(b, with_norm ? "normalised" : in);
    return b;
}

static void networks_that_need_norms_cause_a_warning(void **state)
{
    (void)state;
    static const block doubtful[] = {RESIDUAL, SILU, DEPTHWISE};
    for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++) {
        for (int with_bias = 0; with_bias < 2; with_bias++) {
            job_reading r = job_expect(network(doubtful[i], with_bias != 0, false));
            assert_non_null(strstr(r.warnings, "10 convolutions and no normalisation"));
            assert_int_equal(job_info(&r).notes, MDOT_JOB_MAYBE_FOLDED);
            job_end(&r);
        }
    }
}

static void networks_without_norms_cause_no_warning(void **state)
{
    (void)state;
    static const struct {
        block kind;
        bool with_norm;
    } rows[] = {{PLAIN, false}, {SUPER_RESOLUTION, false}, {RESIDUAL, true}, {SILU, true}, {DEPTHWISE, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        job_reading r = job_expect(network(rows[i].kind, true, rows[i].with_norm));
        assert_string_equal(r.warnings, "");
        assert_int_equal(job_info(&r).notes, 0);
        job_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_normalisation_is_restored),
        cmocka_unit_test(convolution_without_trace_stays),
        cmocka_unit_test(numeric_names_alone_do_not_indicate_a_folded_norm),
        cmocka_unit_test(networks_that_need_norms_cause_a_warning),
        cmocka_unit_test(networks_without_norms_cause_no_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
