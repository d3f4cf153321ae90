/* test_predictions.c — mdot-predictions: libmdot as a scheduler calls it, with the shipped predictor. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdot.h"
#include "mdot/mdotjob.h"
#include "simulator/input/input.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static const char resnet[] = MDOT_JOBS "/resnet50.onnx";
static const char header[] = "note,job,gpu,batch,precision,layout,optimizer,gpus,ms\n";

static int set_up(void **state)
{
    *state = process_make_folder();
    return 0;
}

static int tear_down(void **state)
{
    process_remove_folder(*state);
    return 0;
}

static double predicted_ms(const char *gpu, int64_t batch, mdot_precision precision)
{
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_job *job;
    mdot_prediction answer = MDOT_INIT(mdot_prediction);
    mdot_configuration c = {.struct_size = sizeof c, .batch = batch, .gpu = gpu, .precision = precision};
    assert_int_equal(mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_int_equal(mdot_job_read(resnet, NULL, &job, NULL), MDOT_OK);
    assert_int_equal(mdot_predict(context, job, &c, &answer, NULL), MDOT_OK);
    mdot_job_destroy(job);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return answer.step_ms;
}

static void a_table_of_measured_jobs_gets_predictions(void **state)
{
    char text[2048];
    snprintf(text, sizeof text, "%sr64,%s,A100,64,amp,nchw,sgd,1,100\nr128,%s,RTX-3090,128,amp,nchw,sgd,1,400\n",
             header, resnet, resnet);
    char *path = workload_write_file(*state, "measured.csv", text);
    process_result result;
    const char *const line[] = {MDOT_PREDICTIONS, path, MDOT_SHIPPED_PREDICTOR, NULL};
    process_run(line, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    free(path);
    path = workload_write_file(*state, "predictions.csv", result.out);
    static const char *const names[] = {"mdot", "roofline", "mean"};
    double *ratios[3];
    for (size_t i = 0; i < 3; i++) {
        size_t count;
        assert_int_equal(sc_read_predictions(path, names[i], &ratios[i], &count, NULL), MDOT_OK);
        assert_int_equal(count, 2);
    }
    assert_true(fabs(ratios[0][0] / (predicted_ms("A100", 64, MDOT_PRECISION_AMP) / 100) - 1) < 1e-4);
    assert_true(fabs(ratios[0][1] / (predicted_ms("RTX-3090", 128, MDOT_PRECISION_AMP) / 400) - 1) < 1e-4);
    /* The mean is 200 ms. The roofline's constant factor makes one of the two exact. */
    assert_true(fabs(ratios[2][0] - 2) < 1e-4);
    assert_true(fabs(ratios[2][1] - .5) < 1e-4);
    assert_true(fabs(ratios[1][0] - 1) < 1e-4 || fabs(ratios[1][1] - 1) < 1e-4);
    for (size_t i = 0; i < 3; i++) free(ratios[i]);
    free(path);
}

static void every_precision_is_accepted_by_name(void **state)
{
    static const struct {
        const char *name;
        mdot_precision precision;
    } entries[] = {{"fp32", MDOT_PRECISION_FP32},        {"tf32", MDOT_PRECISION_TF32},
                   {"amp", MDOT_PRECISION_AMP},          {"amp-fp16", MDOT_PRECISION_AMP_FP16},
                   {"bf16", MDOT_PRECISION_BF16},        {"pytorch", MDOT_PRECISION_PYTORCH},
                   {"amp-bf16", MDOT_PRECISION_AMP_BF16}};
    enum { COUNT = sizeof entries / sizeof entries[0] };
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", header);
    for (size_t i = 0; i < COUNT; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "r,%s,A100,64,%s,nchw,sgd,1,100\n", resnet,
                                 entries[i].name);
    char *path = workload_write_file(*state, "measured.csv", text);
    process_result result;
    const char *const line[] = {MDOT_PREDICTIONS, path, MDOT_SHIPPED_PREDICTOR, NULL};
    process_run(line, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    free(path);
    path = workload_write_file(*state, "predictions.csv", result.out);
    double *ratios;
    size_t count;
    assert_int_equal(sc_read_predictions(path, "mdot", &ratios, &count, NULL), MDOT_OK);
    assert_int_equal(count, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(fabs(ratios[i] / (predicted_ms("A100", 64, entries[i].precision) / 100) - 1) < 1e-4);
    free(ratios);
    free(path);
}

static void unpredictable_rows_are_named(void **state)
{
    static const char *const wrong[][2] = {{"a,nowhere.job,A100,64,amp,nchw,sgd,1,100\n", "m.csv:2: "},
                                           {"a,%s,A1000,64,amp,nchw,sgd,1,100\n", "A1000"},
                                           {"a,%s,A100,0,amp,nchw,sgd,1,100\n", "m.csv:2: batch is 0"},
                                           {"a,%s,A100,64,fp4,nchw,sgd,1,100\n", "m.csv:2: precision is \"fp4\""},
                                           {"", "holds no jobs"}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char row[512], text[1024];
        const char *mark = strstr(wrong[i][0], "%s");
        if (mark != NULL)
            snprintf(row, sizeof row, "%.*s%s%s", (int)(mark - wrong[i][0]), wrong[i][0], resnet, mark + 2);
        else
            snprintf(row, sizeof row, "%s", wrong[i][0]);
        snprintf(text, sizeof text, "%s%s", header, row);
        char *path = workload_write_file(*state, "m.csv", text);
        process_result result;
        const char *const line[] = {MDOT_PREDICTIONS, path, MDOT_SHIPPED_PREDICTOR, NULL};
        process_run(line, &result);
        assert_int_equal(result.status, 1);
        expect_contains(result.err, wrong[i][1]);
        assert_string_equal(result.out, "");
        free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_of_measured_jobs_gets_predictions),
        cmocka_unit_test(every_precision_is_accepted_by_name),
        cmocka_unit_test(unpredictable_rows_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
