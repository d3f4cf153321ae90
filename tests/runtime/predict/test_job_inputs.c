/* test_job_inputs.c — the caller runs an entry on the inputs from mdot_job_inputs. The results equal predictions and
 * explanations. */
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCK = 4, MAX_INPUTS = 8 };

static size_t find_entry(const predict_fixture *f, const char *name)
{
    size_t entry;
    assert_int_equal(mdot_predictor_find_entry(f->predictor, name, &entry), MDOT_OK);
    return entry;
}

static mdot_job_inputs *inputs_of(const predict_fixture *f, const char *entry, const mdot_job *job,
                                  const mdot_configuration *c)
{
    mdot_job_inputs *inputs = NULL;
    mdot_error err = {0};
    if (mdot_job_inputs_create(f->context, find_entry(f, entry), job, c, &inputs, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return inputs;
}

/* Runs the entry (one output). */
static void run(const predict_fixture *f, const char *entry, const mdot_job_inputs *inputs, mdot_output output)
{
    mdot_entry_info info = MDOT_INIT(mdot_entry_info);
    mdot_input in[MAX_INPUTS];
    mdot_output out[MAX_INPUTS] = {output};
    float rest[MAX_INPUTS][64];
    size_t index = find_entry(f, entry), outputs = 1;
    mdot_error err = {0};
    assert_int_equal(mdot_predictor_get_entry(f->predictor, index, &info), MDOT_OK);
    for (size_t i = 0; i < info.input_count; i++) assert_int_equal(mdot_job_inputs_get(inputs, i, &in[i]), MDOT_OK);
    for (size_t i = 0; i < info.output_count; i++) {
        mdot_tensor_info tensor = MDOT_INIT(mdot_tensor_info);
        assert_int_equal(mdot_predictor_get_output(f->predictor, index, i, &tensor), MDOT_OK);
        if (strcmp(tensor.name, output.name) != 0) out[outputs++] = (mdot_output){tensor.name, rest[i], sizeof rest[i]};
    }
    if (mdot_run(f->context, index, in, info.input_count, out, info.output_count, &err) != MDOT_OK)
        fail_msg("%s", err.message);
}

static void an_entry_run_on_job_inputs_predicts(void **state)
{
    (void)state;
    mdot_job *job = predict_job(7, 5);
    const mdot_configuration c = predict_configuration(24, "H100");
    mdot_job_inputs *inputs = inputs_of(&predict_bandwidth, "predict", job, &c);
    float step_ms[3];
    run(&predict_bandwidth, "predict", inputs, (mdot_output){"step_ms", step_ms, sizeof step_ms});
    predict_assert_close((double)step_ms[1], predict_bandwidth_ms(job, &c));
    mdot_job_inputs_destroy(inputs);
    mdot_job_destroy(job);
}

/* The configurations include tensor parallelism and other causes of changed operator features. Every column gets an
 * answer. */
static void encode_and_evaluate_run_on_job_inputs_predict(void **state)
{
    (void)state;
    predict_fixture f = {0};
    predict_open_pair(&f, predict_bandwidth_encode(), predict_bandwidth_evaluate("L,2", BLOCK));
    mdot_job *job = predict_job(7, 5);
    const mdot_configuration c = predict_configuration(24, "T4");
    mdot_job_inputs *rows = inputs_of(&f, "encode", job, &c), *evaluate_inputs = inputs_of(&f, "evaluate", job, &c);
    mdot_input encoded;
    float bytes[32][2], step_ms[3][BLOCK];
    run(&f, "encode", rows, (mdot_output){"row_bytes", bytes, sizeof bytes});
    size_t i = 0;
    while (mdot_job_inputs_get(evaluate_inputs, i, &encoded) == MDOT_OK && strcmp(encoded.name, "row_bytes") != 0) i++;
    assert_string_equal(encoded.name, "row_bytes");
    assert_int_equal(encoded.dims[0], 5); /* two among the seven equal others */
    assert_memory_equal(encoded.data, bytes, sizeof bytes[0] * 5);
    run(&f, "evaluate", evaluate_inputs, (mdot_output){"step_ms", step_ms, sizeof step_ms});
    for (int column = 0; column < BLOCK; column++)
        predict_assert_close((double)step_ms[1][column], predict_bandwidth_ms(job, &c));
    mdot_job_inputs_destroy(rows);
    mdot_job_inputs_destroy(evaluate_inputs);
    mdot_job_destroy(job);
    predict_close(&f);
}

static void explanations_read_job_inputs(void **state)
{
    (void)state;
    predict_fixture f = {0};
    predict_open_explained(&f, predict_bandwidth_model(), predict_bandwidth_explained());
    mdot_job *job = predict_job(3, 3);
    const mdot_configuration c = predict_configuration(2, "A100");
    mdot_job_inputs *inputs = inputs_of(&f, "explain", job, &c);
    float operator_ms[3][3], sum = 0;
    run(&f, "explain", inputs, (mdot_output){"operator_ms", operator_ms, sizeof operator_ms});
    for (int i = 0; i < 9; i++) sum += operator_ms[i / 3][i % 3];
    predict_assert_close((double)sum, .75 * predict_bandwidth_ms(job, &c));
    mdot_job_inputs_destroy(inputs);
    mdot_job_destroy(job);
    predict_close(&f);
}

static void unpredictable_jobs_have_no_inputs(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_job_inputs *inputs = NULL;
    mdot_error err = {0};
    c.batch = 0;
    assert_int_equal(mdot_job_inputs_create(predict_bandwidth.context, 0, job, &c, &inputs, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "batch"));
    assert_null(inputs);
    c.batch = 8;
    inputs = inputs_of(&predict_bandwidth, "predict", job, &c);
    mdot_input input;
    size_t count = 0;
    while (mdot_job_inputs_get(inputs, count, &input) == MDOT_OK) count++;
    assert_true(count > 0);
    assert_int_equal(mdot_job_inputs_get(inputs, count, &input), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_job_inputs_get(inputs, 0, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_job_inputs_get(NULL, 0, &input), MDOT_INVALID_ARGUMENT);
    mdot_job_inputs_destroy(inputs);
    mdot_job_inputs_destroy(NULL);
    inputs = NULL;
    assert_int_equal(mdot_job_inputs_create(predict_bandwidth.context, 9, job, &c, &inputs, &err), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_job_inputs_create(NULL, 0, job, &c, &inputs, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_job_inputs_create(predict_bandwidth.context, 0, NULL, &c, &inputs, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_job_inputs_create(predict_bandwidth.context, 0, job, NULL, &inputs, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_job_inputs_create(predict_bandwidth.context, 0, job, &c, NULL, &err), MDOT_INVALID_ARGUMENT);
    assert_null(inputs);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_run_on_job_inputs_predicts),
        cmocka_unit_test(encode_and_evaluate_run_on_job_inputs_predict),
        cmocka_unit_test(explanations_read_job_inputs),
        cmocka_unit_test(unpredictable_jobs_have_no_inputs),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
