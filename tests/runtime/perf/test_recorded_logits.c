/* test_recorded_logits.c — the part of recorded memory that the loss's kernel decides: whole, chunked, fused and
 * compiled losses, alone and divided over GPUs. */
#include "mdot/mdotjob.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/sharding.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { UNIT = 4096 };

static mdot_job_operator make(const char *type, double units, double parameters)
{
    mdot_job_operator op = {.struct_size = sizeof op, .type = type, .known = true, .parameters = parameters};
    op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e9, UNIT, units * UNIT};
    op.per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){1e9, UNIT, UNIT};
    op.setting[MDOT_SETTING_INPUTS] = 1;
    return op;
}

static rt_resolved_configuration resolve(const mdot_job *job, mdot_configuration c)
{
    rt_configuration configuration = {.c = c};
    configuration.gpu.pcie_gbps = 31.5;
    configuration.gpu.fp32_tflops = configuration.gpu.tf32_tflops = configuration.gpu.fp16_tflops = 10;
    configuration.gpu.memory_gbps = 1000;
    configuration.c.batch = 4;
    mdot_error err = {0};
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

/* A normalisation, a matmul from 16 to 128 channels, and a cross-entropy. Per sample, 800 of 1000 bytes are as large as
 * the logits. */
static mdot_job *with_loss(void)
{
    static const uint32_t before[2] = {0, 1};
    static const mdot_peak_moment moment = {.per_sample = 1000, .logits = 800};
    const mdot_recorded_memory recorded = {.precision = MDOT_PRECISION_BF16, .moment_count = 1, .moments = &moment};
    mdot_job_operator operators[3] = {make("LayerNormalization", 1, 32), make("Linear", 1, 2048),
                                      make("SoftmaxCrossEntropyLoss", 1, 0)};
    operators[0].setting[MDOT_SETTING_AXIS] = 1;
    operators[0].setting[MDOT_SETTING_EXTENT] = 16;
    operators[1].per_sample[MDOT_PHASE_FORWARD].bytes_written = 200; /* 50 logits, with 16 bytes for each */
    operators[1].traits.autocast = MDOT_AUTOCAST_HALF;
    operators[1].setting[MDOT_SETTING_CHANNELS_IN] = 16;
    operators[1].setting[MDOT_SETTING_CHANNELS_OUT] = 128;
    mdot_operator_traits_find(operators[2].type, &operators[2].traits);
    for (int i = 1; i < 3; i++) {
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
    }
    mdot_job *plain = predict_make_job(operators, 3), *job = NULL;
    const mdot_job_program p = {
        .struct_size = sizeof p, .precision = MDOT_PRECISION_BF16, .recorded_count = 1, .recorded = &recorded};
    assert_int_equal(mdot_job_with_program(plain, &p, &job, NULL), MDOT_OK);
    mdot_job_destroy(plain);
    return job;
}

static void other_losses_keep_a_part_of_the_logits(void **state)
{
    mdot_job *job = with_loss();
    static const double kept[] = {
        [MDOT_LOSS_WHOLE] = 1, [MDOT_LOSS_CHUNKED] = (2 + 4 + 4 / 8.0) / 16, [MDOT_LOSS_FUSED] = 1 / 8.0};
    for (int loss = MDOT_LOSS_WHOLE; loss <= MDOT_LOSS_FUSED; loss++) {
        mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
        rt_resolved_configuration r =
            resolve(job, (mdot_configuration){.precision = MDOT_PRECISION_PYTORCH, .loss = (mdot_loss)loss});
        assert_int_equal(rt_recorded_moments(job, &r, got), 1);
        if (fabs(got[0].per_sample - (200 + 800 * kept[loss])) > 1) fail_msg("loss %d: %.0f", loss, got[0].per_sample);
        assert_compare(got[0].logits, >, 0);
        r.configuration.micro_batch = 10000; /* so that the pass has more memory than the update */
        assert_float_equal(rt_measure_memory(job, &r).logits, 10000 * got[0].logits, 1e-3);
    }
    mdot_job_destroy(job);
}

/* Megatron's loss has the logits and one fp32 copy, divided over the GPUs that share the classes. */
static void megatron_computes_the_loss_in_place(void **state)
{
    mdot_job *job = with_loss();
    for (uint32_t tensor = 1; tensor <= 4; tensor *= 2) {
        mdot_configuration c = {.precision = MDOT_PRECISION_MIXED_BF16, .gradient_type = MDOT_NUMBER_FP32};
        c.tensor_parallel = tensor;
        mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
        rt_resolved_configuration r = resolve(job, c);
        assert_int_equal(rt_recorded_moments(job, &r, got), 1);
        assert_within(got[0].logits, 50 * (2 + 4.0) / tensor, 1e-9);
        c = (mdot_configuration){.precision = MDOT_PRECISION_MIXED_FP16, .framework = MDOT_FRAMEWORK_MEGATRON};
        c.tensor_parallel = tensor; /* its fp16 gradients are those of other frameworks, too */
        r = resolve(job, c);
        assert_int_equal(rt_recorded_moments(job, &r, got), 1);
        assert_within(got[0].logits, 50 * (2 + 4.0) / tensor, 1e-9);
    }
    mdot_job_destroy(job);
}

/* The backward pass of a compiled loss replaces logits by gradients, one chunk in eight at a time. */
static void compiled_chunks_of_a_loss_keep_the_logits_alone(void **state)
{
    mdot_job *job = with_loss();
    mdot_configuration c = {.precision = MDOT_PRECISION_PYTORCH, .recompute = MDOT_RECOMPUTE_BLOCKS};
    double logits[2];
    for (int i = 0; i < 2; i++) {
        mdot_peak_moment got[MDOT_PEAK_MOMENTS_MAX];
        c.loss = i == 0 ? MDOT_LOSS_WHOLE : MDOT_LOSS_CHUNKED;
        c.compiled = 1;
        rt_resolved_configuration r = resolve(job, c);
        assert_int_equal(rt_recorded_moments(job, &r, got), 1);
        logits[i] = got[0].logits;
    }
    assert_within(logits[1] / logits[0], (2 + 2 / 8.0) / 16, 1e-6);
    mdot_job_destroy(job);
}

/* The composed loss on sharded logits has four fp32 tensors instead of three. Other loss kernels do not. */
static void sharded_logits_have_a_fourth_tensor(void **state)
{
    mdot_job *job = with_loss();
    assert_int_equal(job->analysis->sharding.role[1], RT_ROLE_COLUMNS);
    for (int loss = MDOT_LOSS_WHOLE; loss <= MDOT_LOSS_FUSED; loss++) {
        mdot_peak_moment one[MDOT_PEAK_MOMENTS_MAX], two[MDOT_PEAK_MOMENTS_MAX];
        mdot_configuration c = {.precision = MDOT_PRECISION_PYTORCH, .loss = (mdot_loss)loss};
        rt_resolved_configuration r = resolve(job, c);
        assert_int_equal(rt_recorded_moments(job, &r, one), 1);
        c.tensor_parallel = 2;
        r = resolve(job, c);
        assert_int_equal(rt_recorded_moments(job, &r, two), 1);
        double more = loss == MDOT_LOSS_WHOLE ? 4 / 3.0 : 1;
        assert_within(two[0].logits, more * one[0].logits / 2, 1);
    }
    mdot_job_destroy(job);
}

/* A program with one fp32 record; 800 of 1000 bytes are as large as the logits: two fp32 logit tensors and two loss
 * tensors, 16 bytes for each logit. In chunks there are the logits and their logarithms; a compiled loss has the logits
 * and one chunk's gradient. */
static void losses_in_fp32_have_no_copies(void **state)
{
    mdot_job *job = with_loss();
    static const struct {
        uint32_t compiled;
        double kept;
    } cases[] = {{0, (4 + 4) / 16.0}, {1, (4 + 4 / 8.0) / 16}};
    for (size_t i = 0; i < 2; i++) {
        mdot_configuration c = {.precision = MDOT_PRECISION_FP32, .recompute = MDOT_RECOMPUTE_SELECTIVE};
        mdot_peak_moment whole[MDOT_PEAK_MOMENTS_MAX], chunked[MDOT_PEAK_MOMENTS_MAX];
        c.compiled = cases[i].compiled;
        rt_resolved_configuration r = resolve(job, c);
        assert_int_equal(rt_recorded_moments(job, &r, whole), 1);
        c.loss = MDOT_LOSS_CHUNKED;
        r = resolve(job, c);
        assert_int_equal(rt_recorded_moments(job, &r, chunked), 1);
        assert_compare(whole[0].logits, >, 0);
        assert_within(chunked[0].logits / whole[0].logits, cases[i].kept, 1e-9);
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_losses_keep_a_part_of_the_logits),
        cmocka_unit_test(megatron_computes_the_loss_in_place),
        cmocka_unit_test(compiled_chunks_of_a_loss_keep_the_logits_alone),
        cmocka_unit_test(sharded_logits_have_a_fourth_tensor),
        cmocka_unit_test(losses_in_fp32_have_no_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
