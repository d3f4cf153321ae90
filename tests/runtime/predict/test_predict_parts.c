/* test_predict_parts.c — a predictor's output reaches every part of an answer: busy times by part, invalid times, the
 * data loaders' time, and memory by stage. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/predict/predict.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t next_random(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (*state >> 33) % below;
}

/* Adds the output `name`: these numbers for every configuration. */
static void add_constant(onnx_builder *b, const char *name, int count, const float *numbers)
{
    static const float nothing[RT_CONFIGURATION_NUMBERS * RT_PART_NUMBERS];
    char shape[32], inputs[64], text[4][32];
    static const char *const stems[] = {"%s_nothing", "%s_numbers", "%s_product", "%s_squeezed"};
    for (int i = 0; i < 4; i++) snprintf(text[i], sizeof text[i], stems[i], name);
    snprintf(shape, sizeof shape, "%d,%d", RT_CONFIGURATION_NUMBERS, count);
    onnx_initializer(b, text[0], MDOT_DTYPE_F32, shape, nothing);
    snprintf(shape, sizeof shape, "%d", count);
    onnx_initializer(b, text[1], MDOT_DTYPE_F32, shape, numbers);
    snprintf(inputs, sizeof inputs, "row,%s", text[0]);
    onnx_node(b, "MatMul", inputs, text[2]);
    snprintf(inputs, sizeof inputs, "%s,first", text[2]);
    onnx_node(b, "Squeeze", inputs, text[3]);
    snprintf(inputs, sizeof inputs, "%s,%s", text[3], text[1]);
    onnx_node(b, "Add", inputs, name);
    onnx_output(b, name);
}

/* Opens a predictor that reads the whole configuration and always gives these answers; `parts` may be NULL. */
static void open_constant(predict_fixture *f, const float step[3], const float *parts)
{
    const int64_t first = 0;
    char shape[16];
    snprintf(shape, sizeof shape, "%d", RT_CONFIGURATION_NUMBERS);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "first", MDOT_DTYPE_I64, "1", &first);
    onnx_node(b, "Unsqueeze", "configuration,first", "row");
    add_constant(b, "step_ms", RT_STEP_NUMBERS, step);
    if (parts != NULL) add_constant(b, "part_ms", RT_PART_NUMBERS, parts);
    predict_open(f, b);
}

/* Both passes' parts are those of one micro-step, the update's part of the whole step, and the last one the host's. A
 * part that is no time leaves the division to rooflines. */
static void parts_are_read_for_each_micro_step(void **state)
{
    (void)state;
    mdot_job *job = predict_job(12, 12);
    const float wrong[] = {-1e-3f, -INFINITY, INFINITY, NAN};
    uint64_t random = 3;
    for (int i = 0; i < 60; i++) {
        float parts[RT_PART_NUMBERS];
        for (int k = 0; k < RT_PART_NUMBERS; k++) parts[k] = (float)next_random(&random, 4) * (float)(k + 1) / 8;
        if (i % 3 == 1) parts[i / 3 % RT_PART_NUMBERS] = wrong[i / 3 % 4];
        predict_fixture f = {0};
        open_constant(&f, (const float[]){30, 40, 60}, i % 3 == 2 ? NULL : parts);
        for (uint32_t micro_steps = 1; micro_steps <= 8; micro_steps *= 2) {
            mdot_configuration c = predict_configuration(16, "A100");
            c.accumulate = micro_steps;
            c.optimizer = micro_steps == 4 ? MDOT_OPTIMIZER_ADAMW : MDOT_OPTIMIZER_SGD;
            rt_answer a;
            assert_int_equal(rt_answer_one(f.context, job, &c, &a, NULL), MDOT_OK);
            assert_int_equal(a.has_parts, i % 3 == 0);
            assert_within(a.queried_ms, 40, 1e-5);
            double queried_steps = a.queried.micro_steps;
            assert_within(queried_steps, micro_steps, 1e-9);
            if (i % 3 != 0) {
                rt_step_parts divided = rt_divide_step(job, &a.queried, a.queried_ms);
                assert_memory_equal(&a.parts.pass_ms, &divided.pass_ms, sizeof divided.pass_ms);
                assert_compare(a.parts.optimizer_ms, ==, divided.optimizer_ms);
                assert_false(a.parts.is_learned);
                continue;
            }
            const double *pass = &a.parts.pass_ms[0][0];
            for (int k = 0; k < 8; k++) assert_within(pass[k], (double)parts[k] / queried_steps, 1e-6);
            assert_within(a.parts.host_ms, (double)parts[9] / queried_steps, 1e-6);
            assert_within(a.parts.optimizer_ms, (double)parts[8] * rt_list_traffic(&a.queried.configuration.c), 1e-6);
            assert_compare(a.parts.wait_ms, ==, 0);
            assert_true(a.parts.is_learned);
        }
        predict_close(&f);
    }
    mdot_job_destroy(job);
}

/* Each of the three times must be positive and finite; otherwise the answer stays as it was. */
static void predictors_must_answer_times(void **state)
{
    (void)state;
    static const float wrong[] = {0, -1, NAN, INFINITY, -INFINITY};
    mdot_job *job = predict_job(5, 5);
    mdot_configuration c = predict_configuration(4, "T4"), many[3] = {c, c, c};
    for (size_t i = 0; i <= 3 * sizeof wrong / sizeof *wrong; i++) {
        float step[3] = {1, 2, 3};
        bool is_wrong = i > 0;
        if (is_wrong) step[(i - 1) % 3] = wrong[(i - 1) / 3];
        predict_fixture f = {0};
        open_constant(&f, step, NULL);
        mdot_prediction one = {.struct_size = sizeof one, .step_ms = -7}, all[3] = {MDOT_INIT(mdot_prediction)};
        mdot_error err = {0};
        assert_int_equal(mdot_predict(f.context, job, &c, &one, &err), is_wrong ? MDOT_MALFORMED : MDOT_OK);
        if (is_wrong) {
            expect_contains(err.message, "it must be three positive, finite numbers");
            assert_null(strstr(err.message, "pair"));
            assert_compare(one.step_ms, ==, -7);
        }
        assert_int_equal(mdot_sweep(f.context, job, many, 3, all, &err), is_wrong ? MDOT_MALFORMED : MDOT_OK);
        if (is_wrong) expect_contains(err.message, "pair 0: ");
        for (int k = 0; k < 3; k++) {
            assert_int_equal(all[k].status, is_wrong ? MDOT_MALFORMED : MDOT_OK);
            if (is_wrong) assert_compare(all[k].step_ms, ==, 0);
        }
        predict_close(&f);
    }
    mdot_job_destroy(job);
}

/* Loaders read a step's samples at the rate of one GPU's loaders, and then work on them with the CPUs. */
static void loaders_take_the_time_of_both_rates(void **state)
{
    (void)state;
    mdot_job *job = predict_job(5, 5);
    static const double rates[] = {0, .5, 10, 1e9};
    for (int i = 0; i < 4 * 4 * 3 * 3; i++) {
        mdot_configuration c = predict_configuration(4, "T4");
        c.loader_rate = rates[i % 4];
        c.cpu_rate = rates[i / 4 % 4];
        c.cpus = c.cpu_rate > 0 ? 1 + i / 16 % 3 * 3 : 0;
        c.accumulate = 1U << (i / 48);
        mdot_prediction p = predict_one(&predict_bandwidth, job, &c);
        double ms = 0, samples = 4 * c.accumulate;
        if (c.loader_rate > 0) ms += 1000 * samples / c.loader_rate;
        if (c.cpu_rate > 0) ms += 1000 * samples / c.cpu_rate / (double)c.cpus;
        assert_within(p.loader_ms, ms, 1e-9 * ms + 1e-12);
        assert_within(p.step_ms, fmax(p.gpu_ms, ms), 1e-9 * p.step_ms);
        assert_within(p.lower_ms, fmax(p.gpu_lower_ms, ms), 1e-9 * p.step_ms);
        assert_within(p.upper_ms, fmax(p.gpu_upper_ms, ms), 1e-9 * p.step_ms);
    }
    mdot_job_destroy(job);
}

/* An answer's memory is the performance model's, by part and by stage. */
static void memory_is_that_of_the_model(void **state)
{
    (void)state;
    for (size_t operators = 4; operators <= 24; operators += 10) {
        mdot_job_operator list[24];
        for (size_t i = 0; i < operators; i++) {
            list[i] = predict_operator(i);
            list[i].block = (uint32_t)(i / 2 + 1);
        }
        mdot_job *job = predict_make_job(list, operators);
        for (int i = 0; i < 4 * 3 * 2; i++) {
            mdot_configuration c = predict_configuration(8 << i % 3 * 2, i % 2 ? "T4" : "A100");
            c.pipeline_parallel = 1 << i / 6;
            c.gpu_count = c.pipeline_parallel;
            if (c.pipeline_parallel > operators / 2) continue;
            rt_answer a;
            mdot_error err = {0};
            if (rt_answer_one(predict_bandwidth.context, job, &c, &a, &err) != MDOT_OK) fail_msg("%s", err.message);
            const mdot_prediction *p = &a.prediction;
            rt_memory memory = rt_measure_memory(job, &a.requested);
            rt_reserved reserved = rt_reserve_memory(job, &a.requested, &memory);
            rt_memory_interval interval = rt_memory_within(job, &memory);
            assert_int_equal(p->peak_memory_bytes, rt_sum_memory(&memory));
            assert_within(p->weight_bytes + p->gradient_bytes + p->optimizer_bytes + p->activation_bytes,
                          (double)p->peak_memory_bytes, 2);
            assert_int_equal(p->memory_lower_bytes, interval.lower_bytes);
            assert_int_equal(p->memory_upper_bytes, interval.upper_bytes);
            assert_int_equal(p->reserved_bytes, rt_sum_reserved(&memory, &reserved));
            assert_int_equal(p->usable_bytes, rt_usable_memory(&a.requested.configuration.gpu));
            assert_int_equal(p->fits, p->reserved_bytes <= p->usable_bytes);
            assert_within((double)p->peak_memory_bytes + p->rounding_bytes + p->context_bytes + p->workspace_bytes +
                              p->collective_bytes,
                          (double)p->reserved_bytes, 4);
            rt_stage_memory stages = rt_measure_stages(job, &a.requested);
            assert_int_equal(p->first_stage_bytes, rt_sum_memory(&stages.first));
            assert_int_equal(p->last_stage_bytes, rt_sum_memory(&stages.last));
            uint64_t least = p->first_stage_bytes > p->last_stage_bytes ? p->first_stage_bytes : p->last_stage_bytes;
            assert_true(c.pipeline_parallel > 1 ? p->peak_memory_bytes >= least
                                                : p->peak_memory_bytes == least && p->last_stage_bytes == least);
        }
        mdot_job_destroy(job);
    }
}

/* Each call for many names its arguments if any one of them is missing, unless the count is 0. */
static void missing_arguments_are_named(void **state)
{
    (void)state;
    mdot_job *job = predict_job(5, 5);
    const mdot_job *jobs[] = {job};
    mdot_configuration c = predict_configuration(4, "T4");
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_context *context = predict_bandwidth.context;
    mdot_encoding *encoding = NULL;
    assert_int_equal(mdot_encoding_create(context, job, &encoding, NULL), MDOT_OK);
    for (int i = 0; i < 3 * 5 * 2; i++) {
        int call = i % 3, missing = i / 3 % 5; /* 4: none */
        size_t count = i < 15;
        mdot_context *x = missing == 0 ? NULL : context;
        const mdot_configuration *configurations = missing == 2 ? NULL : &c;
        mdot_prediction *out = missing == 3 ? NULL : &p;
        mdot_error err = {0};
        mdot_status status =
            call == 0   ? mdot_predict_many(x, missing == 1 ? NULL : jobs, configurations, count, out, &err)
            : call == 1 ? mdot_sweep(x, missing == 1 ? NULL : job, configurations, count, out, &err)
                        : mdot_evaluate(x, missing == 1 ? NULL : encoding, configurations, count, out, &err);
        bool is_needed = missing == 0 || (missing == 1 && call > 0) || (missing < 4 && count > 0);
        assert_int_equal(status, is_needed ? MDOT_INVALID_ARGUMENT : MDOT_OK);
        if (is_needed) expect_contains(err.message, "is NULL");
    }
    mdot_encoding_destroy(encoding);
    mdot_encoding_destroy(NULL);
    mdot_explanation_destroy(NULL);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_read_for_each_micro_step),  cmocka_unit_test(predictors_must_answer_times),
        cmocka_unit_test(loaders_take_the_time_of_both_rates), cmocka_unit_test(memory_is_that_of_the_model),
        cmocka_unit_test(missing_arguments_are_named),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
