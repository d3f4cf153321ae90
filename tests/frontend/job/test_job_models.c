/* test_job_models.c — published networks from ../shared/onnx as jobs. */
#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static mdot_job *read_shared(const char *file, const mdot_dim_binding *dims, size_t dim_count)
{
    char path[1024];
    mdot_job *job = NULL;
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/%s", MDOT_SHARED_ONNX, file);
    mdot_job_options options = {.struct_size = sizeof options, .dims = dims, .dim_count = dim_count};
    if (mdot_job_read(path, &options, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static int need_models(void **state)
{
    (void)state;
    if (access(MDOT_SHARED_ONNX "/light", R_OK) == 0) return 0;
    print_message("%s is absent\n", MDOT_SHARED_ONNX);
    return 1;
}

/* The operator count for a type, and a sum over all operators. */
static int count_type(const mdot_job *job, const char *type)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    int count = 0;
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        count += strcmp(op.type, type) == 0;
    }
    return count;
}

/* Multiply-adds of convolutions and linear layers for one sample, in billions. */
static double giga_macs(const mdot_job *job)
{
    static const char *const products[] = {"Conv", "Linear"};
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    double macs = 0;
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        for (int k = 0; k < 2; k++) {
            if (strcmp(op.type, products[k]) == 0) macs += op.per_sample[MDOT_PHASE_FORWARD].flops / 2e9;
        }
    }
    return macs;
}

/* Multiply-adds (billions) and parameters (millions) as published. ResNet-50, VGG-19: the papers' and torchvision's;
 * DenseNet-121, SqueezeNet 1.0: torchvision's weight tables; AlexNet: the original with two groups. */
static void known_networks_have_their_known_counts(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        double macs, parameters;
    } rows[] = {
        {"light/light_resnet50.onnx", 4.09, 25.6},
        {"light/light_vgg19.onnx", 19.63, 143.7},
        {"light/light_densenet121.onnx", 2.83, 7.98},
        {"light/light_bvlc_alexnet.onnx", 0.655, 60.97},
        {"real/cnn/mobilenetv2_100_dynamo.onnx", 0.31, 3.50},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mdot_job *job = read_shared(rows[i].file, NULL, 0);
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job_get_info(job, &info);
        double macs = giga_macs(job), parameters = info.parameters / 1e6;
        print_message("%s: %.3f GMAC, %.2f M parameters\n", rows[i].file, macs, parameters);
        assert_within(macs, rows[i].macs, 0.03 * rows[i].macs);
        assert_within(parameters, rows[i].parameters, 0.02 * rows[i].parameters);
        assert_int_equal(info.unknown_count, 0);
        mdot_job_destroy(job);
    }
}

/* A file of PyTorch 2.2's dynamo exporter: functions with branches, and a decomposed BatchNormalization. */
static void branches_are_taken_and_norms_found(void **state)
{
    (void)state;
    mdot_job *job = read_shared("real/cnn/mobilenetv2_100_dynamo.onnx", NULL, 0);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    assert_int_equal(count_type(job, "Conv"), 52);
    assert_int_equal(count_type(job, "Clip"), 35);
    assert_int_equal(count_type(job, "Add"), 10);
    assert_int_equal(count_type(job, "GlobalAveragePool"), 1);
    assert_int_equal(count_type(job, "Linear"), 1);
    assert_int_equal(info.operator_count, 99);
    mdot_job_destroy(job);
}

static void every_network_can_be_read(void **state)
{
    (void)state;
    static const mdot_dim_binding length[] = {{"max_seq_len_in_batch", 128, NULL},
                                              {"seq_len", 4, NULL},
                                              {"input-0_dim1", 784, NULL},
                                              {"inputs_attention_mask_dim1", 128, NULL},
                                              {"inputs_labels_dim1", 128, NULL}};
    static const struct {
        const char *file;
        size_t unknown;
    } rows[] = {
        {"light/light_inception_v1.onnx", 0},
        {"light/light_inception_v2.onnx", 0},
        {"light/light_shufflenet.onnx", 0},
        {"light/light_squeezenet.onnx", 0},
        {"light/light_zfnet512.onnx", 0},
        {"real/cnn/mnist_cntk.onnx", 0},
        {"real/cnn/pytorch_super_resolution.onnx", 0},
        {"real/cnn/squeezenet_tensor_input.onnx", 3}, /* ImageScaler, ArrayFeatureExtractor, ZipMap */
        {"real/transformer/bert_toy_optimized.onnx", 0},
        {"real/transformer/gpt2_past.onnx", 0},
        {"real/training/training_model.onnx", 0},
        {"real/training/3layer_bloom_optimized_training.onnx", 0},
        {"real/training/adamw.onnx", 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mdot_job *job = read_shared(rows[i].file, length, sizeof length / sizeof *length);
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job_get_info(job, &info);
        if (info.unknown_count != rows[i].unknown)
            fail_msg("%s: %zu unknown operators instead of %zu", rows[i].file, info.unknown_count, rows[i].unknown);
        mdot_job_destroy(job);
    }
}

static void transformer_has_linears_attentions_and_norms(void **state)
{
    (void)state;
    static const mdot_dim_binding length = {"max_seq_len_in_batch", 128, NULL};
    mdot_job *job = read_shared("real/transformer/bert_toy_optimized.onnx", &length, 1);
    assert_int_equal(count_type(job, "Attention"), 5);
    assert_int_equal(count_type(job, "LayerNormalization"), 12);
    assert_int_equal(count_type(job, "Gelu"), 6);
    assert_int_equal(count_type(job, "MatMul"), 0);
    mdot_job_destroy(job);
}

static void training_graph_becomes_its_forward_graph(void **state)
{
    (void)state;
    static const mdot_dim_binding dims[] = {{"inputs_attention_mask_dim1", 128, NULL},
                                            {"inputs_labels_dim1", 128, NULL}};
    mdot_job *job = read_shared("real/training/3layer_bloom_optimized_training.onnx", dims, 2);
    assert_int_equal(count_type(job, "Linear"), 13); /* four per layer, and the head */
    assert_int_equal(count_type(job, "LayerNormalization"), 8);
    assert_int_equal(count_type(job, "SoftmaxCrossEntropyLoss"), 1);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_networks_have_their_known_counts),
        cmocka_unit_test(branches_are_taken_and_norms_found),
        cmocka_unit_test(every_network_can_be_read),
        cmocka_unit_test(transformer_has_linears_attentions_and_norms),
        cmocka_unit_test(training_graph_becomes_its_forward_graph),
    };
    if (need_models(NULL) != 0) return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
