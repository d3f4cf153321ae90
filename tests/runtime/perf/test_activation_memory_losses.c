/* test_activation_memory_losses.c — activation memory with each loss kernel, compared with sums made by hand. Units and
 * names follow test_activation_memory.c. */
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static double with_loss(const mdot_job *job, rt_activation_type type, mdot_loss loss)
{
    const rt_activation_case which = {.type = type, .attention = MDOT_ATTENTION_FLASH, .loss = loss};
    return rt_activations_of(&job->analysis->activations, &which)->all / NETWORK_UNIT;
}

/* At the loss's backward operation: samples, the logits (8) and their gradient (8), the logarithms and their gradient.
 * In chunks, an eighth of the latter two exists. A fused loss has `hidden / classes` of all four, if this is less. A
 * logit view changes nothing. */
static void kernels_of_the_loss_keep_parts_of_the_logits(void **state)
{
    (void)state;
    static const struct {
        int64_t hidden, classes;
        double part;
    } cases[] = {{16, 128, 1 / 8.0}, {64, 128, 1 / 2.0}, {128, 128, 1},
                 {256, 128, 1},      {0, 128, 1},        {1, 128, 1 / 128.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int has_view = 0; has_view < 2; has_view++) {
            network n = {0};
            mdot_job_operator *logits = network_add_units(&n, "Linear", 8, 100, "");
            logits->setting[MDOT_SETTING_CHANNELS_IN] = cases[i].hidden;
            logits->setting[MDOT_SETTING_CHANNELS_OUT] = cases[i].classes;
            if (has_view) network_add_units(&n, "Transpose", 8, 0, "0");
            network_add_units(&n, "SoftmaxCrossEntropyLoss", 0, 0, has_view ? "1" : "0");
            mdot_job *job = predict_make_job(n.operators, n.count);
            assert_compare(with_loss(job, RT_ACTIVATION_FP32, MDOT_LOSS_WHOLE), ==, 1 + 4 * 8);
            assert_compare(with_loss(job, RT_ACTIVATION_BF16, MDOT_LOSS_WHOLE), ==, 1 + 4 * 4);
            assert_compare(with_loss(job, RT_ACTIVATION_FP32, MDOT_LOSS_CHUNKED), ==, 1 + 2 * 8 + 2 * 8 / 8.0);
            assert_compare(with_loss(job, RT_ACTIVATION_BF16, MDOT_LOSS_CHUNKED), ==, 1 + 2 * 4 + 2 * 4 / 8.0);
            assert_compare(with_loss(job, RT_ACTIVATION_FP32, MDOT_LOSS_FUSED), ==, 1 + 4 * 8 * cases[i].part);
            assert_compare(with_loss(job, RT_ACTIVATION_BF16, MDOT_LOSS_FUSED), ==, 1 + 4 * 4 * cases[i].part);
            mdot_job_destroy(job);
        }
    }
}

/* A tensor between the logits and the loss is whole, whatever the loss keeps. At f1: both operators' samples, the
 * logits and this tensor. */
static void tensors_beside_the_logits_are_whole(void **state)
{
    (void)state;
    network n = {0};
    mdot_job_operator *logits = network_add_units(&n, "Linear", 8, 100, "");
    logits->setting[MDOT_SETTING_CHANNELS_IN] = 16;
    logits->setting[MDOT_SETTING_CHANNELS_OUT] = 128;
    network_add_units(&n, "Sigmoid", 16, 0, "");
    network_add_units(&n, "SoftmaxCrossEntropyLoss", 0, 0, "0");
    mdot_job *job = predict_make_job(n.operators, n.count);
    assert_compare(with_loss(job, RT_ACTIVATION_FP32, MDOT_LOSS_CHUNKED), ==, 2 + 8 + 16);
    assert_compare(with_loss(job, RT_ACTIVATION_FP32, MDOT_LOSS_FUSED), ==, 2 + 1 + 16);
    mdot_job_destroy(job);
}

/* Eight copies of the logits (8) in a row, saved by their operators. A chunked loss has an eighth of each, of the
 * logarithms and of their gradient, and so has a fused one. fp32, at b9: samples 1, the copies 8, g8 1, the logarithms
 * and their gradient 2; at b1: samples, r1 1, g1 1, g0 8 or 1. amp, at b9: samples 1.5, the copies 4, their fp32 one 1,
 * g8 .5, and 2. A view of the last copy changes nothing. */
static void copies_of_the_logits_count_once_in_chunks(void **state)
{
    (void)state;
    for (int has_view = 0; has_view < 2; has_view++) {
        network n = {0};
        mdot_job_operator *logits = network_add_units(&n, "Linear", 8, 100, "");
        logits->setting[MDOT_SETTING_CHANNELS_IN] = 16;
        logits->setting[MDOT_SETTING_CHANNELS_OUT] = 128;
        static const char *const before[] = {"0", "1", "2", "3", "4", "5", "6", "7"};
        for (int i = 0; i < 8; i++) network_add_units(&n, "Sigmoid", 8, 0, before[i]);
        if (has_view) network_add_units(&n, "Transpose", 8, 0, "8");
        network_add_units(&n, "SoftmaxCrossEntropyLoss", 0, 0, has_view ? "9" : "8");
        mdot_job *job = predict_make_job(n.operators, n.count);
        for (int loss = MDOT_LOSS_CHUNKED; loss <= MDOT_LOSS_FUSED; loss++) {
            assert_float_equal(with_loss(job, RT_ACTIVATION_FP32, (mdot_loss)loss), 1 + 8 + 1 + 2, 0);
            assert_float_equal(with_loss(job, RT_ACTIVATION_AMP, (mdot_loss)loss), 1.5 + 4 + 1 + 0.5 + 2, 0);
            assert_float_equal(with_loss(job, RT_ACTIVATION_BF16, (mdot_loss)loss), 1 + 4 + 0.5 + 1, 0);
        }
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_the_loss_keep_parts_of_the_logits),
        cmocka_unit_test(tensors_beside_the_logits_are_whole),
        cmocka_unit_test(copies_of_the_logits_count_once_in_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
