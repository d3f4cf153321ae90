/* test_predict_outside.c — a predictor's training range: the predictor's answer, one value or one per reason, becomes
 * warnings. */
#include "mdot/mdot.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { REASONS = 8 };

static const uint32_t reason[REASONS] = {MDOT_WARN_BATCH_BELOW_DATA,       MDOT_WARN_BATCH_ABOVE_DATA,
                                         MDOT_WARN_OPERATORS_BEYOND_DATA,  MDOT_WARN_GPU_NOT_MEASURED,
                                         MDOT_WARN_PRECISION_NOT_MEASURED, MDOT_WARN_SOFTWARE_NOT_MEASURED,
                                         MDOT_WARN_TYPES_NOT_MEASURED,     MDOT_WARN_OPTIMIZER_OR_GPUS_NOT_MEASURED};

/* Batch and GPU count, the first two values, are at least 1. The values of fp32, tf32, amp, NHWC, Adam and AdamW
 * follow. */
static const struct {
    mdot_precision precision;
    mdot_layout layout;
    mdot_optimizer optimizer;
    uint32_t numbers; /* bits for values equal to 1 */
} cases[] = {{MDOT_PRECISION_FP32, MDOT_LAYOUT_NCHW, MDOT_OPTIMIZER_SGD, 1u << 2},
             {MDOT_PRECISION_TF32, MDOT_LAYOUT_NHWC, MDOT_OPTIMIZER_ADAM, 1u << 3 | 1u << 5 | 1u << 6},
             {MDOT_PRECISION_AMP, MDOT_LAYOUT_NCHW, MDOT_OPTIMIZER_ADAMW, 1u << 4 | 1u << 7}};
enum { CASES = sizeof cases / sizeof *cases };

static mdot_configuration configuration_of(size_t i)
{
    mdot_configuration c = predict_configuration(3, "A100");
    c.precision = cases[i].precision;
    c.layout = cases[i].layout;
    c.optimizer = cases[i].optimizer;
    return c;
}

static uint32_t expected_of(size_t i, int reasons)
{
    uint32_t warnings = MDOT_WARN_OUTSIDE_TRAINING, numbers = cases[i].numbers | 1u << 0 | 1u << 1;
    for (int k = 0; reasons > 1 && k < reasons; k++)
        if ((numbers & 1u << k) != 0) warnings |= reason[k];
    return warnings;
}

static void predictors_return_one_value_per_reason(void **state)
{
    (void)state;
    mdot_job *job = predict_job(3, 3);
    for (int reasons = 1; reasons <= REASONS; reasons++) {
        predict_fixture f = {0};
        predict_open(&f, predict_outside_model(reasons, 0));
        for (size_t i = 0; i < CASES; i++) {
            mdot_configuration c = configuration_of(i);
            assert_int_equal(predict_warnings(predict_one(&f, job, &c)), expected_of(i, reasons));
        }
        predict_close(&f);
    }
    mdot_job_destroy(job);
}

/* In a block, each configuration has separate warnings. */
static void blocks_give_reasons_for_each_configuration(void **state)
{
    (void)state;
    enum { BLOCK = 4 };
    mdot_job *job = predict_job(3, 3);
    static const int counts[] = {1, 2, REASONS};
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        predict_fixture f = {0};
        mdot_error err = {0};
        mdot_configuration c[CASES];
        mdot_prediction p[CASES] = {MDOT_INIT(mdot_prediction)};
        for (size_t i = 0; i < CASES; i++) c[i] = configuration_of(i);
        predict_open_pair(&f, predict_bandwidth_encode(), predict_outside_model(counts[k], BLOCK));
        if (mdot_sweep(f.context, job, c, CASES, p, &err) != MDOT_OK) fail_msg("%s", err.message);
        for (size_t i = 0; i < CASES; i++) assert_int_equal(predict_warnings(p[i]), expected_of(i, counts[k]));
        predict_close(&f);
    }
    mdot_job_destroy(job);
}

static void one_mask_holds_all_reasons(void **state)
{
    (void)state;
    uint32_t all = 0;
    for (int k = 0; k < REASONS; k++) all |= reason[k];
    assert_int_equal(all, MDOT_WARN_OUTSIDE_REASONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predictors_return_one_value_per_reason),
        cmocka_unit_test(blocks_give_reasons_for_each_configuration),
        cmocka_unit_test(one_mask_holds_all_reasons),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
