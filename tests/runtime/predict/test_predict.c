/* test_predict.c — predictions of compiled predictors whose answers have a closed form: values, warnings, and calls
 * for many pairs. */
#include "mdot/mdotjob.h"
#include "runtime/core/objects.h"
#include "runtime/job/gpus.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/program_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SIZED .struct_size = sizeof(mdot_configuration)

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* 5 and 20 feature rows: the small bucket and the large one. */
static void times_come_from_the_predictor(void **state)
{
    (void)state;
    for (size_t count = 5; count <= 20; count += 15) {
        mdot_job *job = predict_job(count, count);
        static const char *const gpus[] = {"RTX-3090", "h200"};
        for (int64_t batch = 1; batch <= 1000; batch *= 10) {
            for (int i = 0; i < 2; i++) {
                mdot_configuration c = predict_configuration(batch, gpus[i]);
                mdot_prediction p = predict_one(&predict_bandwidth, job, &c);
                double ms = predict_bandwidth_ms(job, &c);
                predict_assert_close(p.step_ms, ms);
                predict_assert_close(p.lower_ms, ms / 2);
                predict_assert_close(p.upper_ms, ms * 2);
                assert_int_equal(predict_warnings(p), 0);
                assert_true(p.fits);
                assert_compare(p.peak_memory_bytes, >, 0);
            }
        }
        mdot_job_destroy(job);
    }
}

static void equal_operators_count_as_often_as_they_occur(void **state)
{
    (void)state;
    mdot_job *job = predict_job(20 * PREDICT_LARGE_BUCKET, 7);
    mdot_configuration c = predict_configuration(16, "V100");
    mdot_prediction p = predict_one(&predict_bandwidth, job, &c);
    predict_assert_close(p.step_ms, predict_bandwidth_ms(job, &c));
    assert_int_equal(predict_warnings(p), 0);
    mdot_job_destroy(job);
}

static void long_multiset_is_shortened_and_keeps_flops_and_bytes(void **state)
{
    (void)state;
    mdot_job *job = predict_job(20000, 20000);
    mdot_configuration c = predict_configuration(4, "A100");
    mdot_prediction p = predict_one(&predict_bandwidth, job, &c);
    predict_assert_close(p.step_ms, predict_bandwidth_ms(job, &c));
    assert_int_equal(predict_warnings(p), MDOT_WARN_SHORTENED);
    mdot_job_destroy(job);
}

static void sequence_keeps_its_order(void **state)
{
    (void)state;
    predict_fixture order = {0};
    predict_open(&order, predict_order_model());
    mdot_job *job = predict_job(11, 3);
    double sum = 0;
    for (size_t i = 0; i < 11; i++)
        sum += (double)(i + 1) * predict_operator(i % 3).per_sample[MDOT_PHASE_FORWARD].bytes_written;
    mdot_configuration c = predict_configuration(1, "A100");
    mdot_prediction p = predict_one(&order, job, &c);
    predict_assert_close(p.lower_ms, 1e-6 * sum);
    predict_assert_close(p.step_ms, 2e-6 * sum);
    predict_assert_close(p.upper_ms, 3e-6 * sum);
    assert_int_equal(predict_warnings(p), 0);
    mdot_job_destroy(job);
    job = predict_job(PREDICT_LARGE_BUCKET + 1, 3);
    assert_int_equal(predict_warnings(predict_one(&order, job, &c)), MDOT_WARN_SHORTENED);
    mdot_job_destroy(job);
    predict_close(&order);
}

static int64_t type_number(const char *type)
{
    mdot_operator_traits traits;
    assert_int_equal(mdot_operator_traits_find(type, &traits), MDOT_OK);
    return traits.number;
}

static void types_and_settings_reach_the_predictor(void **state)
{
    (void)state;
    predict_fixture settings = {0};
    predict_open(&settings, predict_settings_model());
    mdot_job *job = predict_job(6, 6);
    mdot_configuration c = predict_configuration(1, "A100");
    mdot_prediction p = predict_one(&settings, job, &c);
    predict_assert_close(p.lower_ms,
                         1e-3 * (1 + 2 * (double)(type_number("Conv") + type_number("Relu") + type_number("Add"))));
    predict_assert_close(p.step_ms, 1e-3 * (1 + 2 * 3));
    predict_assert_close(p.upper_ms, 1e-3 * (1 + 6));
    mdot_job_destroy(job);
    predict_close(&settings);
}

/* Contract for the input `configuration`: each configuration value has a separate column. */
static void configuration_reaches_the_predictor(void **state)
{
    (void)state;
    static const float weights[8 * 3] = {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 2, 0, 0, 4, 0, 0, 8, 0, 0, 16, 0, 0, 32};
    static const float base[3] = {1, 1, 1};
    const int64_t first = 0;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "8");
    onnx_initializer(b, "weights", MDOT_DTYPE_F32, "8,3", weights);
    onnx_initializer(b, "base", MDOT_DTYPE_F32, "3", base);
    onnx_initializer(b, "first", MDOT_DTYPE_I64, "1", &first);
    onnx_node(b, "Unsqueeze", "configuration,first", "row");
    onnx_node(b, "MatMul", "row,weights", "product");
    onnx_node(b, "Squeeze", "product,first", "squeezed");
    onnx_node(b, "Add", "squeezed,base", "step_ms");
    onnx_output(b, "step_ms");
    predict_fixture f = {0};
    predict_open(&f, b);
    static const struct {
        mdot_configuration c;
        double batch, gpus, flags;
    } cases[] = {
        {{SIZED, 7, "T4", NULL, 0, MDOT_PRECISION_FP32, MDOT_LAYOUT_NCHW, MDOT_OPTIMIZER_SGD}, 7, 1, 1},
        {{SIZED, 1, "T4", NULL, 4, MDOT_PRECISION_TF32, MDOT_LAYOUT_NHWC, MDOT_OPTIMIZER_ADAM}, 1, 4, 2 + 8 + 16},
        {{SIZED, 1 << 24, "T4", NULL, 1, MDOT_PRECISION_AMP, MDOT_LAYOUT_NCHW, MDOT_OPTIMIZER_ADAMW},
         1 << 24,
         1,
         4 + 32},
    };
    mdot_job *job = predict_job(3, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_prediction p = predict_one(&f, job, &cases[i].c);
        predict_assert_close(p.lower_ms, cases[i].batch + 1);
        predict_assert_close(p.step_ms, cases[i].gpus + 1);
        predict_assert_close(p.upper_ms, cases[i].flags + 1);
    }
    mdot_job_destroy(job);
    predict_close(&f);
}

/* Work that the program dispatched and the job lacks widens the interval upwards, and surplus work downwards: each by
 * the share of the larger one, from 2 % on, in the worse pass. Unpriced operators add four times their bytes' time. */
static void intervals_hold_what_the_job_lacks(void **state)
{
    (void)state;
    static const double own[] = {0, .001, .5, .97, .985, 1, 1.015, 1.03, 2, 1000}, unpriced[] = {0, 1e6, 3e9};
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    for (int i = 0; i < 10 * 10 * 3 * 2; i++) {
        double forward = own[i % 10], backward = own[i / 10 % 10], bytes = unpriced[i / 100 % 3];
        mdot_job_program program = program_fixture();
        mdot_configuration c = predict_configuration(6, "A100");
        if (i >= 300) c.mode = MDOT_MODE_INFERENCE;
        mdot_prediction p[2];
        double batch = 1;
        for (int k = 0; k < 2; k++) {
            program.check = (mdot_job_check){.dispatched_flops = {1e9, 2e9}, .job_flops = {1e9, 2e9}};
            if (k == 1) {
                program.check.job_flops[0] *= forward;
                program.check.job_flops[1] *= backward;
                program.check.unpriced_bytes = bytes;
            }
            mdot_job *job = program_fixture_job(&program);
            mdot_job_info info = MDOT_INIT(mdot_job_info);
            mdot_job_get_info(job, &info);
            batch = (double)info.batch;
            p[k] = predict_one(&predict_bandwidth, job, &c);
            mdot_job_destroy(job);
        }
        if (c.mode == MDOT_MODE_INFERENCE) backward = 1;
        double missing = fmax(fmax(1 - forward, 1 - backward), 0), surplus = 0;
        if (forward > 1) surplus = 1 - 1 / forward;
        if (backward > 1) surplus = fmax(surplus, 1 - 1 / backward);
        double upper_ms = p[0].gpu_upper_ms / (missing > .02 ? 1 - fmin(missing, .99) : 1);
        double lower_ms = p[0].gpu_lower_ms * (surplus > .02 ? 1 - fmin(surplus, .99) : 1);
        upper_ms += 4 * bytes * 6 / batch / (gpu.memory_gbps * 1e6);
        predict_assert_close(p[1].gpu_upper_ms, upper_ms);
        predict_assert_close(p[1].gpu_lower_ms, lower_ms);
        predict_assert_close(p[1].gpu_ms, p[0].gpu_ms);
    }
}

/* ---- Warnings ---------------------------------------------------------------------------------------------------- */

static mdot_job *job_of_one(const char *type, bool known)
{
    mdot_job_operator op = predict_operator(0);
    op.type = type;
    op.known = known;
    return predict_make_job(&op, 1);
}

static void unknown_operators_give_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        bool known;
        uint32_t warnings;
    } cases[] = {{"Conv", true, 0},
                 {"Conv", false, MDOT_WARN_UNKNOWN_OPERATOR},
                 {"QuantumConv", true, MDOT_WARN_UNKNOWN_OPERATOR},
                 {"?", true, MDOT_WARN_UNKNOWN_OPERATOR}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job *job = job_of_one(cases[i].type, cases[i].known);
        mdot_configuration c = predict_configuration(1, "T4");
        assert_int_equal(predict_warnings(predict_one(&predict_bandwidth, job, &c)), cases[i].warnings);
        mdot_job_destroy(job);
    }
}

static void inputs_outside_of_the_training_range_give_a_warning(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(1000, "T4");
    assert_int_equal(predict_warnings(predict_one(&predict_bandwidth, job, &c)), 0);
    c.batch = 1001;
    assert_int_equal(predict_warnings(predict_one(&predict_bandwidth, job, &c)), MDOT_WARN_OUTSIDE_TRAINING);
    mdot_job_destroy(job);
}

static void stale_gradients_give_a_warning(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    size_t stale = 0;
    for (int sync = 0; sync <= MDOT_SYNC_ASP; sync++)
        for (uint32_t servers = 0; servers < 3; servers++) {
            mdot_configuration c = predict_configuration(8, "T4");
            c.gpu_count = 4;
            c.servers = servers;
            c.sync = (mdot_sync)sync;
            mdot_prediction p = MDOT_INIT(mdot_prediction);
            if (mdot_predict(predict_bandwidth.context, job, &c, &p, NULL) != MDOT_OK) continue;
            assert_int_equal((p.warnings & MDOT_WARN_STALE_GRADIENTS) != 0, sync == MDOT_SYNC_ASP);
            stale += sync == MDOT_SYNC_ASP;
        }
    assert_compare(stale, >, 0);
    mdot_job_destroy(job);
}

static void falling_back_to_the_cpu_gives_a_warning(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(1, "T4");
    predict_bandwidth.context->device_error.status = MDOT_DEVICE; /* the state after run.c: test_runtime_cuda.c */
    assert_int_equal(predict_warnings(predict_one(&predict_bandwidth, job, &c)), MDOT_WARN_FALLBACK);
    predict_bandwidth.context->device_error.status = MDOT_OK;
    assert_int_equal(predict_warnings(predict_one(&predict_bandwidth, job, &c)), 0);
    mdot_job_destroy(job);
}

static void job_that_is_too_large_does_not_fit(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(1, "RTX-3090");
    assert_true(predict_one(&predict_bandwidth, job, &c).fits);
    c.batch = 1 << 24; /* the three results need at least 12 kB a sample */
    mdot_prediction p = predict_one(&predict_bandwidth, job, &c);
    assert_false(p.fits);
    assert_compare(p.peak_memory_bytes, >, UINT64_C(12000) << 24);
    mdot_job_destroy(job);
}

/* ---- Calls for many pairs ---------------------------------------------------------------------------------------- */

enum { PAIRS = 150 }; /* more than one run takes */

static void fill_configurations(mdot_configuration *c)
{
    static const char *const gpus[] = {"T4", "V100", "A100", "H100", "RTX-4090"};
    for (int i = 0; i < PAIRS; i++) c[i] = predict_configuration(1 + 7 * i, gpus[i % 5]);
}

static void assert_equal_predictions(const mdot_prediction *a, const mdot_prediction *b)
{
    assert_compare(a->step_ms, ==, b->step_ms);
    assert_compare(a->lower_ms, ==, b->lower_ms);
    assert_compare(a->upper_ms, ==, b->upper_ms);
    assert_compare(a->peak_memory_bytes, ==, b->peak_memory_bytes);
    assert_compare(a->fits, ==, b->fits);
    assert_compare(a->warnings, ==, b->warnings);
}

static void sweep_matches_single_calls(void **state)
{
    (void)state;
    mdot_job *job = predict_job(17, 17);
    mdot_configuration c[PAIRS];
    fill_configurations(c);
    mdot_prediction p[PAIRS] = {MDOT_INIT(mdot_prediction)};
    mdot_error err = {0};
    if (mdot_sweep(predict_bandwidth.context, job, c, PAIRS, p, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int i = 0; i < PAIRS; i++) {
        mdot_prediction single = predict_one(&predict_bandwidth, job, &c[i]);
        assert_equal_predictions(&p[i], &single);
    }
    mdot_job_destroy(job);
}

static void many_pairs_match_single_calls(void **state)
{
    (void)state;
    mdot_job *jobs[3] = {predict_job(4, 4), predict_job(30, 9), predict_job(100, 100)};
    const mdot_job *of_pair[PAIRS];
    mdot_configuration c[PAIRS];
    fill_configurations(c);
    /* one job's runs, then alternating jobs */
    for (int i = 0; i < PAIRS; i++) of_pair[i] = jobs[i < 100 ? i / 40 : i % 3];
    mdot_prediction p[PAIRS] = {MDOT_INIT(mdot_prediction)};
    mdot_error err = {0};
    if (mdot_predict_many(predict_bandwidth.context, of_pair, c, PAIRS, p, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < PAIRS; i++) {
        mdot_prediction single = predict_one(&predict_bandwidth, of_pair[i], &c[i]);
        assert_equal_predictions(&p[i], &single);
    }
    for (int i = 0; i < 3; i++) mdot_job_destroy(jobs[i]);
}

static void zero_pairs_are_accepted(void **state)
{
    (void)state;
    mdot_job *job = predict_job(2, 2);
    assert_int_equal(mdot_predict_many(predict_bandwidth.context, NULL, NULL, 0, NULL, NULL), MDOT_OK);
    assert_int_equal(mdot_sweep(predict_bandwidth.context, job, NULL, 0, NULL, NULL), MDOT_OK);
    mdot_job_destroy(job);
}

/* ---- GPUs ------------------------------------------------------------------------------------------------------- */

static void spec_values_replace_a_gpu_name(void **state)
{
    (void)state;
    mdot_job *job = predict_job(9, 9);
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    mdot_configuration named = predict_configuration(4, "A100"), figured = predict_configuration(4, NULL);
    figured.gpu_spec = &gpu;
    mdot_prediction a = predict_one(&predict_bandwidth, job, &named),
                    b = predict_one(&predict_bandwidth, job, &figured);
    assert_equal_predictions(&a, &b);
    gpu.name = NULL; /* a GPU model without a name */
    gpu.memory_gbps /= 4;
    gpu.memory_gib = 1e-3; /* and little memory */
    b = predict_one(&predict_bandwidth, job, &figured);
    predict_assert_close(b.step_ms, 4 * a.step_ms);
    assert_int_equal(b.peak_memory_bytes, a.peak_memory_bytes);
    assert_true(a.fits);
    assert_false(b.fits);
    mdot_job_destroy(job);
}

/* More names than there are slots to cache them, each at another address. */
static void every_pair_gets_its_own_gpu(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static char names[COUNT][24];
    static mdot_configuration c[COUNT];
    static mdot_prediction p[COUNT];
    mdot_job *job = predict_job(9, 9);
    size_t known = 0;
    while (mdot_gpu_names()[known] != NULL) known++;
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%s", mdot_gpu_names()[i * 7 % known]);
        c[i] = predict_configuration(1, names[i]);
    }
    p[0] = MDOT_INIT(mdot_prediction);
    assert_int_equal(mdot_sweep(predict_bandwidth.context, job, c, COUNT, p, NULL), MDOT_OK);
    for (size_t i = 0; i < COUNT; i++) {
        double ms = predict_bandwidth_ms(job, &c[i]);
        if (strncmp(names[i], "MI", 2) == 0) { /* AMD's matmuls are slower than their rates */
            assert_compare(p[i].step_ms, >, ms);
            assert_compare(p[i].step_ms, <, 1.3 * ms);
        } else {
            predict_assert_close(p[i].step_ms, ms);
        }
    }
    mdot_job_destroy(job);
}

static void invalid_spec_values_are_refused_by_name(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_gpu known = MDOT_INIT(mdot_gpu), gpu;
    assert_int_equal(mdot_gpu_find("T4", &known, NULL), MDOT_OK);
    static const struct {
        size_t offset;
        const char *name;
    } columns[] = {
#define COLUMN(field, key, ...) {offsetof(mdot_gpu, field), key},
#include "runtime/job/gpus.def"
    };
    static const double values[] = {0, -1, NAN, INFINITY};
    mdot_configuration c = predict_configuration(1, NULL);
    c.gpu_spec = &gpu;
    for (size_t i = 0; i < RT_GPU_NUMBERS * 4; i++) {
        /* fields added later may be 0 */
        bool may_be_zero = columns[i / 4].offset >= offsetof(mdot_gpu, nvlink_gbps);
        if (may_be_zero && values[i % 4] == 0) continue;
        gpu = known;
        memcpy((char *)&gpu + columns[i / 4].offset, &values[i % 4], sizeof values[0]);
        mdot_prediction p = {.struct_size = sizeof p, .step_ms = -7};
        mdot_error err = {0};
        assert_int_equal(mdot_predict(predict_bandwidth.context, job, &c, &p, &err), MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, columns[i / 4].name));
        assert_compare(p.step_ms, ==, -7);
    }
    gpu = known;
    gpu.struct_size = 0;
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    assert_int_equal(mdot_predict(predict_bandwidth.context, job, &c, &p, &err), MDOT_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the struct_size of a mdot_gpu is 0 instead of sizeof(mdot_gpu)");
    gpu = known;
    c.gpu = "T4";
    assert_int_equal(mdot_predict(predict_bandwidth.context, job, &c, &p, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "--gpu and --gpu-spec are both set"));
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_come_from_the_predictor),
        cmocka_unit_test(equal_operators_count_as_often_as_they_occur),
        cmocka_unit_test(long_multiset_is_shortened_and_keeps_flops_and_bytes),
        cmocka_unit_test(sequence_keeps_its_order),
        cmocka_unit_test(types_and_settings_reach_the_predictor),
        cmocka_unit_test(intervals_hold_what_the_job_lacks),
        cmocka_unit_test(configuration_reaches_the_predictor),
        cmocka_unit_test(unknown_operators_give_a_warning),
        cmocka_unit_test(inputs_outside_of_the_training_range_give_a_warning),
        cmocka_unit_test(stale_gradients_give_a_warning),
        cmocka_unit_test(falling_back_to_the_cpu_gives_a_warning),
        cmocka_unit_test(job_that_is_too_large_does_not_fit),
        cmocka_unit_test(sweep_matches_single_calls),
        cmocka_unit_test(many_pairs_match_single_calls),
        cmocka_unit_test(zero_pairs_are_accepted),
        cmocka_unit_test(spec_values_replace_a_gpu_name),
        cmocka_unit_test(every_pair_gets_its_own_gpu),
        cmocka_unit_test(invalid_spec_values_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
