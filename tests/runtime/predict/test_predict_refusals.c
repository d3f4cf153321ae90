/* test_predict_refusals.c — predictions that are refused: wrong configurations, missing arguments, and answers of a
 * predictor that are not times. */
#include "runtime/core/objects.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SIZED .struct_size = sizeof(mdot_configuration)

static const struct {
    mdot_configuration c;
    const char *part;
} wrong[] = {
    {{SIZED, .batch = 0, .gpu = "T4"}, "batch is 0; accepted: 1 to 16777216"},
    {{SIZED, .batch = -3, .gpu = "T4"}, "batch is -3"},
    {{SIZED, .batch = (1 << 24) + 1, .gpu = "T4"}, "batch is 16777217"},
    {{SIZED, .batch = 1, .gpu = "T4", .gpu_count = -1}, "--gpus is -1; accepted: 0 to 65536"},
    {{SIZED, .batch = 1, .gpu = "T4", .precision = (mdot_precision)12},
     "precision is 12; accepted: 0 to 11: fp32, tf32, amp-fp16, amp-bf16, bf16, pytorch, mixed-bf16, mixed-fp16, fp8, "
     "fp8-rowwise, mxfp8, fp8-blockwise"},
    {{SIZED, .batch = 1, .gpu = "T4", .layout = (mdot_layout)2}, "layout is 2"},
    {{SIZED, .batch = 1, .gpu = "T4", .optimizer = (mdot_optimizer)11}, "optimizer is 11"},
    {{SIZED, .batch = 1, .gpu = "T4", .attention = (mdot_attention)3}, "attention is 3"},
    {{SIZED, .batch = 1, .gpu = "T4", .recompute = (mdot_recompute)3}, "--checkpoint is 3"},
    {{SIZED, .batch = 1, .gpu = "T4", .link = (mdot_link)3}, "link is 3"},
    {{SIZED, .batch = 1, .gpu = "T4", .compiled = 2}, "--compile is 2"},
    {{SIZED, .batch = 1, .gpu = "T4", .compiled = 1, .torch = 112}, "torch is 1.12"},
    {{SIZED, .batch = 1, .gpu = "T4", .accumulate = 65537}, "accumulate is 65537"},
    {{SIZED, .batch = 1, .gpu = "T4", .zero_stage = 4}, "--parallel zero is 4; accepted: 0 to 3"},
    {{SIZED, .batch = 1, .gpu = "T4", .torch = 24}, "torch is 24; a version is 100 * major + minor"},
    {{SIZED, .batch = 1, .gpu = "T4", .torch = 99}, "torch is 99"},
    {{SIZED, .batch = 1, .gpu = "T4", .torch = 10000}, "torch is 10000"},
    {{SIZED, .batch = 1, .gpu = "T4", .link_gbps = -1}, "--link is -1"},
    {{SIZED, .batch = 1, .gpu = "T4", .link_gbps = 1e-300}, "--link is 1e-300; accepted: 0, or 1e-06 to 1e+09"},
    {{SIZED, .batch = 1, .gpu = "T4", .link_gbps = 9e-7}, "--link is 9e-07"},
    {{SIZED, .batch = 1, .gpu = "T4", .network_gbps = 1.1e9}, "--network is 1.1e+09"},
    {{SIZED, .batch = 1, .gpu = "T4", .network_gbps = NAN}, "--network is nan"},
    {{SIZED, .batch = 1, .gpu = "T4", .network_gbps = INFINITY}, "--network is inf"},
    {{SIZED, .batch = 1, .gpu = "T4", .link = MDOT_LINK_PCIE, .link_gbps = 5}, "both a kind and a rate"},
    {{SIZED, .batch = 1, .gpu = "T4", .link = MDOT_LINK_NVLINK}, "T4 lacks NVLink"},
    {{SIZED, .batch = 1, .gpu = "T4", .gpu_count = 8, .tensor_parallel = 3}, "multiply to 3 GPUs, but --gpus is 8"},
    {{SIZED, .batch = 1, .gpu = "T4", .gpu_count = 2, .data_parallel = 4}, "multiply to 4 GPUs, but --gpus is 2"},
    {{SIZED, .batch = 1, .gpu = "T4", .expert_parallel = 2}, "the job lacks experts"},
    {{SIZED, .batch = 4, .gpu = "T4", .micro_batches = 2}, "--parallel micro needs --parallel pp"},
    {{SIZED, .batch = 6, .gpu = "T4", .pipeline_parallel = 2, .micro_batches = 4}, "a multiple of --parallel micro, 4"},
    {{SIZED, .batch = 1, .gpu = "T4", .gpu_count = 8, .node_count = 3}, "a multiple of --nodes, 3"},
    {{SIZED, .batch = 2, .gpu = "T4", .pipeline_parallel = 2},
     "--parallel pp is 2; each stage needs a block, and the job has 0"},
    {{SIZED, .batch = 1, .gpu = "T4", .tensor_parallel = 2}, "--parallel tp needs matmuls that can be sharded"},
    {{SIZED, .batch = 1, .gpu = "T4", .recompute = MDOT_RECOMPUTE_BLOCKS},
     "--checkpoint is blocks, but the job lacks blocks"},
    {{SIZED, .batch = 1, .gpu = "T5"}, "\"T5\""},
    {{SIZED, .batch = 1, .gpu = NULL}, "gpu is missing"},
};
enum { WRONG_COUNT = sizeof wrong / sizeof *wrong };

static void wrong_configurations_are_refused_by_name(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    for (size_t i = 0; i < WRONG_COUNT; i++) {
        mdot_prediction p = {.struct_size = sizeof p, .step_ms = -7};
        mdot_error err = {0};
        assert_int_equal(mdot_predict(predict_bandwidth.context, job, &wrong[i].c, &p, &err), MDOT_INVALID_ARGUMENT);
        if (strstr(err.message, wrong[i].part) == NULL) fail_msg("case %zu: \"%s\"", i, err.message);
        assert_compare(p.step_ms, ==, -7);
        assert_int_equal(mdot_predict(predict_bandwidth.context, job, &wrong[i].c, &p, NULL), MDOT_INVALID_ARGUMENT);
    }
    mdot_job_destroy(job);
}

/* The invalid pair stands among pairs with the same job and another one. */
static void a_wrong_pair_does_not_affect_other_pairs(void **state)
{
    (void)state;
    enum { COUNT = 5 };
    mdot_job *job = predict_job(3, 3), *other = predict_job(4, 4);
    const mdot_job *jobs[COUNT] = {job, job, job, other, job};
    for (size_t i = 0; i < WRONG_COUNT + 1; i++) {
        mdot_configuration c[COUNT];
        mdot_prediction p[COUNT] = {{.struct_size = sizeof(mdot_prediction)}}, s[COUNT];
        mdot_error err = {0};
        for (int k = 0; k < COUNT; k++) {
            c[k] = predict_configuration(k + 1, "T4");
            p[k].step_ms = -7;
        }
        memcpy(s, p, sizeof s);
        if (i < WRONG_COUNT) c[2] = wrong[i].c;
        jobs[2] = i < WRONG_COUNT ? job : NULL;
        assert_int_equal(mdot_predict_many(predict_bandwidth.context, jobs, c, COUNT, p, &err), MDOT_INVALID_ARGUMENT);
        if (strstr(err.message, "pair 2: ") == NULL) fail_msg("%s", err.message);
        for (int k = 0; k < COUNT; k++) {
            assert_int_equal(p[k].status, k == 2 ? MDOT_INVALID_ARGUMENT : MDOT_OK);
            if (k == 2) {
                assert_compare(p[k].step_ms, ==, 0);
                assert_compare(p[k].warnings, ==, 0);
            } else {
                assert_compare(p[k].step_ms, ==, predict_one(&predict_bandwidth, jobs[k], &c[k]).step_ms);
            }
        }
        if (i == WRONG_COUNT) break;
        assert_int_equal(mdot_sweep(predict_bandwidth.context, job, c, COUNT, s, &err), MDOT_INVALID_ARGUMENT);
        assert_int_equal(s[2].status, MDOT_INVALID_ARGUMENT);
        assert_compare(s[4].step_ms, ==, p[4].step_ms);
    }
    mdot_job_destroy(job);
    mdot_job_destroy(other);
}

static void every_pair_reports_its_fault_and_the_call_the_first(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c[3] = {predict_configuration(0, "T4"), predict_configuration(1, "T5"),
                               predict_configuration(1, "T4")};
    mdot_prediction p[3] = {{.struct_size = sizeof(mdot_prediction)}};
    mdot_error err = {0};
    assert_int_equal(mdot_sweep(predict_bandwidth.context, job, c, 3, p, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "pair 0: --batch is 0"));
    assert_int_equal(p[0].status, MDOT_INVALID_ARGUMENT);
    assert_int_equal(p[1].status, MDOT_INVALID_ARGUMENT);
    assert_int_equal(p[2].status, MDOT_OK);
    assert_compare(p[2].step_ms, >, 0);
    mdot_job_destroy(job);
}

static void missing_arguments_are_refused(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(1, "T4");
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    assert_int_equal(mdot_predict(NULL, job, &c, &p, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_predict(predict_bandwidth.context, NULL, &c, &p, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_predict(predict_bandwidth.context, job, NULL, &p, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_predict(predict_bandwidth.context, job, &c, NULL, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_predict_many(predict_bandwidth.context, NULL, &c, 1, &p, NULL), MDOT_INVALID_ARGUMENT);
    mdot_job_destroy(job);
}

/* A predictor with a division by the batch minus three. */
static void answers_that_are_not_times_are_errors(void **state)
{
    (void)state;
    static const float three = 3, quantiles[3] = {1, 1, 1};
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "8");
    const int64_t from = 0, to = 1;
    onnx_initializer(b, "from", MDOT_DTYPE_I64, "1", &from);
    onnx_initializer(b, "to", MDOT_DTYPE_I64, "1", &to);
    onnx_initializer(b, "three", MDOT_DTYPE_F32, "1", &three);
    onnx_initializer(b, "quantiles", MDOT_DTYPE_F32, "3", quantiles);
    onnx_node(b, "Slice", "configuration,from,to", "batch");
    onnx_node(b, "Sub", "batch,three", "less");
    onnx_node(b, "Div", "quantiles,less", "step_ms");
    onnx_output(b, "step_ms");
    predict_fixture f = {0};
    predict_open(&f, b);
    mdot_job *job = predict_job(3, 3);
    for (int64_t batch = 1; batch <= 3; batch++) { /* negative, negative, infinite */
        mdot_configuration c = predict_configuration(batch, "T4");
        mdot_prediction p = {.struct_size = sizeof p, .step_ms = -7};
        mdot_error err = {0};
        assert_int_equal(mdot_predict(f.context, job, &c, &p, &err), MDOT_MALFORMED);
        assert_non_null(strstr(err.message, "three positive, finite numbers"));
        assert_compare(p.step_ms, ==, -7);
    }
    mdot_configuration c[3] = {predict_configuration(5, "T4"), predict_configuration(3, "T4"),
                               predict_configuration(4, "T4")};
    mdot_prediction p[3] = {{.struct_size = sizeof(mdot_prediction)}};
    mdot_error err = {0};
    predict_assert_close(predict_one(&f, job, &c[2]).step_ms, 1);
    assert_int_equal(mdot_sweep(f.context, job, c, 3, p, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "pair 1: "));
    assert_int_equal(p[1].status, MDOT_MALFORMED);
    predict_assert_close(p[0].step_ms, 0.5);
    predict_assert_close(p[2].step_ms, 1);
    mdot_job_destroy(job);
    predict_close(&f);
}

/* A predictor has no time for inference without a forward pass, and the job is at fault; otherwise the predictor is.
 * Any number of a forward pass is work, and those of the backward pass are none. */
static void inference_needs_forward_work(void **state)
{
    (void)state;
    enum { NUMBERS = 3, LOADS = 2, KINDS = MDOT_PHASE_COUNT * LOADS * NUMBERS };
    static const float zeros[3] = {0};
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "8");
    onnx_initializer(b, "zeros", MDOT_DTYPE_F32, "3", zeros);
    const int64_t from = 0, to = 1;
    onnx_initializer(b, "from", MDOT_DTYPE_I64, "1", &from);
    onnx_initializer(b, "to", MDOT_DTYPE_I64, "1", &to);
    onnx_node(b, "Slice", "configuration,from,to", "batch");
    onnx_node(b, "Mul", "zeros,batch", "step_ms");
    onnx_output(b, "step_ms");
    predict_fixture f = {0};
    predict_open(&f, b);
    for (int kind = 0; kind <= KINDS; kind++) {
        mdot_job_operator operators[3];
        for (int i = 0; i < 3; i++)
            operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .known = true, .type = "Relu"};
        int phase = kind / (LOADS * NUMBERS), number = kind % NUMBERS;
        mdot_job_operator *op = &operators[kind % 3];
        if (kind < KINDS) {
            mdot_load *load = kind / NUMBERS % LOADS == 0 ? &op->per_sample[phase] : &op->per_step[phase];
            *(number == 0 ? &load->flops : number == 1 ? &load->bytes_read : &load->bytes_written) = 1e6;
        }
        mdot_job *job = predict_make_job(operators, 3);
        for (int mode = 0; mode < 2; mode++) {
            mdot_configuration c = predict_configuration(8, "T4");
            c.mode = mode == 0 ? MDOT_MODE_TRAIN : MDOT_MODE_INFERENCE;
            bool is_jobs_fault = mode == 1 && (kind == KINDS || phase != MDOT_PHASE_FORWARD);
            mdot_prediction p = MDOT_INIT(mdot_prediction);
            mdot_error err = {0};
            mdot_status status = mdot_predict(f.context, job, &c, &p, &err);
            if (status != (is_jobs_fault ? MDOT_INVALID_ARGUMENT : MDOT_MALFORMED))
                fail_msg("kind %d, mode %d: %s", kind, mode, err.message);
            assert_non_null(strstr(err.message, is_jobs_fault ? "no forward pass" : "three positive, finite numbers"));
        }
        mdot_job_destroy(job);
    }
    predict_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_configurations_are_refused_by_name),
        cmocka_unit_test(a_wrong_pair_does_not_affect_other_pairs),
        cmocka_unit_test(every_pair_reports_its_fault_and_the_call_the_first),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(answers_that_are_not_times_are_errors),
        cmocka_unit_test(inference_needs_forward_work),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
