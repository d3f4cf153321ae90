/* test_recorded_memory_limits.c — recorded memory at the limits of the formulas: logit parts, network records without
 * tensors, and weights of programs that lack some sizes. */
#include "mdot/mdotjob.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static mdot_job *make_job(const network *n, mdot_job_program p)
{
    mdot_job *plain = predict_make_job(n->operators, n->count), *job = NULL;
    mdot_error err = {0};
    p.struct_size = sizeof p;
    if (mdot_job_with_program(plain, &p, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(plain);
    return job;
}

/* A job with one record (900 of 1000 bytes are logits) and 12 bytes of weight copies. */
static mdot_job *make_recorded(const network *n, mdot_precision precision)
{
    static const mdot_peak_moment moment = {.per_sample = 1000, .logits = 900, .weight_copies = 12};
    const mdot_recorded_memory record = {.precision = precision, .moment_count = 1, .moments = &moment};
    const mdot_precision programs = precision == MDOT_PRECISION_FP32 ? MDOT_PRECISION_PYTORCH : precision;
    return make_job(n, (mdot_job_program){.precision = programs, .recorded_count = 1, .recorded = &record});
}

static rt_resolved_configuration resolve(const mdot_job *job, mdot_precision precision)
{
    rt_configuration configuration = {.c = {.batch = 1, .precision = precision}, .gpu = {.pcie_gbps = 31.5}};
    mdot_error err = {0};
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

static mdot_peak_moment only_moment(const mdot_job *job, const rt_resolved_configuration *r)
{
    mdot_peak_moment out[MDOT_PEAK_MOMENTS_MAX] = {0};
    assert_int_equal(rt_recorded_moments(job, r, out), 1);
    return out[0];
}

/* The logit matmul is the first operator of the job. A fused loss has `hidden / classes` of the logits if this is less
 * than all. A chunked one has the logits, fp32 logarithms and one chunk's copy: 16 bytes for each logit. A compiled one
 * keeps the logits and a chunk's gradient, and at most what was recorded. */
static void losses_keep_their_part_of_the_logits(void **state)
{
    (void)state;
    static const struct {
        int64_t hidden, classes;
        double fused;
    } cases[] = {{16, 128, 1 / 8.0}, {127, 128, 127 / 128.0}, {128, 128, 1}, {256, 128, 1},
                 {0, 128, 1},        {1, 128, 1 / 128.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        mdot_job_operator *matmul = network_add_units(&n, "Linear", 1, 100, "");
        matmul->setting[MDOT_SETTING_CHANNELS_IN] = cases[i].hidden;
        matmul->setting[MDOT_SETTING_CHANNELS_OUT] = cases[i].classes;
        network_add_units(&n, "SoftmaxCrossEntropyLoss", 0, 0, "0");
        mdot_job *job = make_recorded(&n, MDOT_PRECISION_BF16);
        assert_int_equal(job->analysis->totals.logits, 1);
        rt_resolved_configuration r = resolve(job, MDOT_PRECISION_BF16);
        assert_float_equal(only_moment(job, &r).logits, 900, 1e-9);
        assert_float_equal(only_moment(job, &r).per_sample, 1000, 1e-9);
        r.activation_case.loss = MDOT_LOSS_FUSED;
        assert_float_equal(only_moment(job, &r).logits, 900 * cases[i].fused, 1e-9);
        assert_float_equal(only_moment(job, &r).per_sample, 100 + 900 * cases[i].fused, 1e-9);
        r.activation_case.loss = MDOT_LOSS_CHUNKED;
        assert_float_equal(only_moment(job, &r).logits, 900 * (2 + 4 + 4 / 8.0) / 16, 1e-9);
        r.configuration.c.compiled = 1;
        const int64_t elements[] = {50, 1 << 20};
        for (int k = 0; k < 2; k++) {
            job->operators[0].per_sample[MDOT_PHASE_FORWARD].bytes_written = 4.0 * (double)elements[k];
            double kept = (2 + 2 / 8.0) * (double)elements[k];
            assert_float_equal(only_moment(job, &r).logits, kept < 900 ? kept : 900, 1e-9);
        }
        mdot_job_destroy(job);
    }
}

/* Without a loss, the tensors as large as logits are whole. Without matmuls, autocast copies no weights. A record of a
 * network whose tensors have no bytes cannot be scaled. */
static void records_of_other_networks_are_taken_or_left(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Relu", 1, 0, "");
    mdot_job *job = make_recorded(&n, MDOT_PRECISION_AMP);
    rt_resolved_configuration r = resolve(job, MDOT_PRECISION_AMP);
    for (int loss = MDOT_LOSS_WHOLE; loss <= MDOT_LOSS_FUSED; loss++) {
        r.activation_case.loss = (mdot_loss)loss;
        mdot_peak_moment moment = only_moment(job, &r);
        assert_compare(moment.logits, ==, 900);
        assert_compare(moment.per_sample, ==, 1000);
        assert_compare(moment.weight_copies, ==, 0);
    }
    mdot_job_destroy(job);
    n.operators[0].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0};
    job = make_recorded(&n, MDOT_PRECISION_FP32);
    r = resolve(job, MDOT_PRECISION_PYTORCH);
    mdot_peak_moment out[MDOT_PEAK_MOMENTS_MAX];
    assert_int_equal(rt_recorded_moments(job, &r, out), 0);
    assert_false(r.differs_from_program);
    mdot_job_destroy(job);
    job = predict_make_job(n.operators, n.count);
    assert_false(resolve(job, MDOT_PRECISION_BF16).differs_from_program); /* there is no program */
    mdot_job_destroy(job);
}

/* Any size that a program states replaces the product of width and elements. Floats are converted to the width, and the
 * rest of the frozen bytes is packed. Buffers are neither converted nor divided. */
static void sizes_of_a_program_replace_the_analytic_ones(void **state)
{
    (void)state;
    static const struct {
        double trained, frozen; /* elements */
        mdot_precision precision;
        double trained_bytes, frozen_bytes, buffer_bytes, width, elements, want;
    } cases[] = {
        {100, 50, MDOT_PRECISION_PYTORCH, 0, 0, 0, 4, 150, 600},
        {100, 50, MDOT_PRECISION_PYTORCH, 400, 0, 0, 4, 150, 400},
        {100, 50, MDOT_PRECISION_PYTORCH, 0, 200, 0, 4, 150, 200},
        {100, 50, MDOT_PRECISION_PYTORCH, 0, 0, 7, 4, 150, 7},
        {100, 50, MDOT_PRECISION_PYTORCH, 200, 200, 0, 4, 150, 400},
        {100, 50, MDOT_PRECISION_PYTORCH, 200, 0, 200, 4, 150, 400},
        {100, 50, MDOT_PRECISION_PYTORCH, 0, 200, 200, 4, 150, 400},
        {100, 50, MDOT_PRECISION_PYTORCH, 400, 200, 8, 2, 75, 300 / 2.0 + 8},
        {100, 50, MDOT_PRECISION_PYTORCH, 400, 260, 8, 2, 75, (300 + 60) / 2.0 + 8}, /* 60 bytes are packed */
        {100, 50, MDOT_PRECISION_BF16, 200, 100, 8, 4, 150, 600 + 8},
        {0, 0, MDOT_PRECISION_PYTORCH, 0, 0, 8, 4, 0, 8},
        {0, 0, MDOT_PRECISION_PYTORCH, 0, 0, 0, 4, 0, 0},
        {1, 0, MDOT_PRECISION_PYTORCH, 4, 0, 8, 2, 1, 2 + 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        network_add_units(&n, "Linear", 1, cases[i].trained, "")->frozen_parameters = cases[i].frozen;
        mdot_job *job = make_job(&n, (mdot_job_program){.precision = cases[i].precision,
                                                        .trained_bytes = cases[i].trained_bytes,
                                                        .frozen_bytes = cases[i].frozen_bytes,
                                                        .buffer_bytes = cases[i].buffer_bytes});
        double got = rt_weight_bytes(job, cases[i].width, cases[i].width, cases[i].elements);
        if (got != cases[i].want) fail_msg("case %zu: %g, not %g", i, got, cases[i].want);
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_keep_their_part_of_the_logits),
        cmocka_unit_test(records_of_other_networks_are_taken_or_left),
        cmocka_unit_test(sizes_of_a_program_replace_the_analytic_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
