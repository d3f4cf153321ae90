/* test_job_exports.c — the job reader on networks in all PyTorch exporter forms. fixture/exports holds graphs without
 * weights, made by lab/mdot_lab/checks/exporters.py. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static job_reading read_export(const char *network, const char *kind)
{
    char path[1024];
    job_reading r = {.status = MDOT_OK};
    snprintf(path, sizeof path, MDOT_SOURCE_DIR "/tests/support/fixture/exports/%s.%s.onnx", network, kind);
    r.status = mdot_job_read(path, NULL, &r.job, &r.err);
    if (r.status != MDOT_OK) fail_msg("%s", r.err.message);
    return r;
}

/* Compares exports with separate or folded normalisations, with or without gradients, and with ATen or TorchScript
 * operators. */
static void expect_one_sequence(const char *network, const char *other)
{
    job_reading reference = read_export(network, "training"), r = read_export(network, other);
    print_message("%s: training and %s\n", network, other);
    job_expect_same(&reference, &r);
    job_end(&reference);
    job_end(&r);
}

static void inference_and_training_exports_give_equal_jobs(void **state)
{
    (void)state;
    static const char *const networks[] = {"bert-tiny",   "bert-tiny-sdpa", "convnext", "mobilenetv3_small",
                                           "regnety_002", "resnet18",       "vit"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) expect_one_sequence(networks[i], "inference");
}

static void torchscript_and_dynamo_exports_give_equal_jobs(void **state)
{
    (void)state;
    static const char *const networks[] = {"bert-tiny",         "bert-tiny-sdpa", "convnext",
                                           "mobilenetv3_small", "resnet18",       "vit"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        expect_one_sequence(networks[i], "dynamo-inference");
    }
}

/* Multiply-adds in convolutions and linear layers: the FLOPs except biases and normalisations. */
static double giga_macs(const job_reading *r)
{
    double macs = 0;
    for (size_t i = 0; i < job_info(r).operator_count; i++) {
        mdot_job_operator op = job_operator(r, i);
        if (strcmp(op.type, "Conv") != 0 && strcmp(op.type, "Linear") != 0) continue;
        double results = (double)op.setting[MDOT_SETTING_CHANNELS_OUT] * (double)op.setting[MDOT_SETTING_SIZE_OUT];
        double added = op.setting[MDOT_SETTING_NORMALISED] ? 5 : op.setting[MDOT_SETTING_BIAS] ? 1 : 0;
        macs += (op.per_sample[MDOT_PHASE_FORWARD].flops - added * results) / 2;
        if (op.setting[MDOT_SETTING_NORMALISED]) macs += 2 * results;
    }
    return macs / 1e9;
}

/* timm's published counts (results/benchmark-infer-amp-nchw-pt113-cu117-rtx3090.csv, gmacs and param_count). They are
 * fvcore's counts, with two FLOPs per element for a normalisation. */
static void parameter_counts_equal_those_of_timm(void **state)
{
    (void)state;
    static const struct {
        const char *network;
        double giga_macs, mega_parameters;
    } rows[] = {{"resnet18", 1.82, 11.69}, {"mobilenetv3_small", 0.06, 2.54}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        job_reading r = read_export(rows[i].network, "training");
        print_message("%s: %.3f GMAC\n", rows[i].network, giga_macs(&r));
        assert_compare(fabs(giga_macs(&r) - rows[i].giga_macs), <=, fmax(0.01 * rows[i].giga_macs, 0.005));
        assert_compare(fabs(job_info(&r).parameters / 1e6 - rows[i].mega_parameters), <=, 0.005);
        assert_int_equal(job_info(&r).unknown_count, 0);
        job_end(&r);
    }
}

/* The law: a job does the work of the file. */
static void exports_do_the_work_of_their_files(void **state)
{
    (void)state;
    static const char *const networks[] = {"bert-tiny",         "bert-tiny-sdpa", "convnext",
                                           "mobilenetv3_small", "resnet18",       "vit"};
    static const char *const kinds[] = {"training", "inference", "dynamo-inference"};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            job_reading r = read_export(networks[i], kinds[k]);
            print_message("%s, %s: %s\n", networks[i], kinds[k], r.warnings);
            assert_null(strstr(r.warnings, "work-differs"));
            job_end(&r);
        }
    }
}

/* Two passes over one input, as in a Siamese network. */
static void products_that_are_written_twice_run_twice(void **state)
{
    (void)state;
    static const struct {
        const char *op, *x, *w;
    } cases[] = {{"MatMul", "8,64", "64,64"}, {"Gemm", "8,64", "64,64"}, {"Conv", "8,4,6,6", "4,4,3,3"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        onnx_builder *b = job_begin(cases[i].x);
        onnx_initializer(b, "w", MDOT_DTYPE_F32, cases[i].w, NULL);
        onnx_node(b, cases[i].op, "x,w", "a");
        onnx_node(b, cases[i].op, "x,w", "b");
        onnx_node(b, "Tanh", "a", "c");
        onnx_node(b, "Tanh", "b", "d");
        onnx_node(b, "Add", "c,d", "y");
        job_reading r = job_expect_output(b, "y");
        job_expect_types(&r, i == 2 ? "Conv Conv Tanh Tanh Add" : "Linear Linear Tanh Tanh Add");
        assert_null(strstr(r.warnings, "work-differs"));
        job_end(&r);
    }
}

/* ONNX Runtime's optimised files. */
static void fused_convolutions_cost_their_parts(void **state)
{
    (void)state;
    static const char *const activations[] = {"Relu", "Clip", "Sigmoid"};
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
        onnx_builder *b = job_begin("8,4,6,6");
        onnx_initializer(b, "w", MDOT_DTYPE_F32, "4,4,3,3", NULL);
        onnx_node(b, "com.microsoft:FusedConv", "x,w", "y");
        onnx_attr_string(b, "activation", activations[i]);
        onnx_attr_floats(b, "activation_params", 2, (float[]){0, 6});
        job_reading r = job_expect_output(b, "y");
        char types[32];
        snprintf(types, sizeof types, "Conv %s", activations[i]);
        job_expect_types(&r, types);
        assert_compare(job_operator(&r, 0).per_sample[MDOT_PHASE_FORWARD].flops, ==, 2.0 * 4 * 9 * 4 * 16);
        job_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inference_and_training_exports_give_equal_jobs),
        cmocka_unit_test(torchscript_and_dynamo_exports_give_equal_jobs),
        cmocka_unit_test(parameter_counts_equal_those_of_timm),
        cmocka_unit_test(exports_do_the_work_of_their_files),
        cmocka_unit_test(products_that_are_written_twice_run_twice),
        cmocka_unit_test(fused_convolutions_cost_their_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
