/* program_fixture.c — see program_fixture.h. */
#include "tests/support/program_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/job_file_fixture.h"

static const mdot_peak_moment fp32_moments[] = {
    {.per_sample = 4096, .per_step = 17, .gradients = .25, .logits = 1024, .per_square = 99},
    {.per_sample = 1024, .gradients = 1}};
static const mdot_peak_moment amp_moments[] = {{.per_sample = 2048, .weight_copies = 3456, .gradients = 1 / 3.}};
static const mdot_recorded_memory records[] = {
    {.precision = MDOT_PRECISION_FP32, .moment_count = 2, .moments = fp32_moments},
    {.precision = MDOT_PRECISION_AMP, .recompute = MDOT_RECOMPUTE_BLOCKS, .moment_count = 1, .moments = amp_moments}};

mdot_job_program program_fixture(void)
{
    return (mdot_job_program){.struct_size = sizeof(mdot_job_program),
                              .precision = MDOT_PRECISION_BF16,
                              .attention = MDOT_ATTENTION_EAGER,
                              .trained_bytes = 3456,
                              .frozen_bytes = 100,
                              .buffer_bytes = 128,
                              .has_loss = true,
                              .recorded_count = 2,
                              .recorded = records,
                              .framework = 3,
                              .check = {.dispatched_flops = {1e9, 2e9},
                                        .job_flops = {9e8, 2e9},
                                        .recorded_peak = 5e6,
                                        .predicted_peak = 4e6,
                                        .unpriced_bytes = 77,
                                        .unpriced_operators = 2,
                                        .modules = "encoder.layer.3: 1e8 FLOPs are missing"}};
}

mdot_job *program_fixture_job(const mdot_job_program *program)
{
    mdot_job *plain = job_file_make(), *made = NULL;
    mdot_error err = {0};
    if (mdot_job_with_program(plain, program, &made, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(plain);
    return made;
}

mdot_job_program program_fixture_of(const mdot_job *job)
{
    mdot_job_program p = MDOT_INIT(mdot_job_program);
    assert_int_equal(mdot_job_get_program(job, &p), MDOT_OK);
    return p;
}

void program_fixture_expect_equal(const mdot_job_program *a, const mdot_job_program *b)
{
    assert_int_equal(a->precision, b->precision);
    assert_int_equal(a->attention, b->attention);
    assert_compare(a->trained_bytes, ==, b->trained_bytes);
    assert_compare(a->frozen_bytes, ==, b->frozen_bytes);
    assert_compare(a->buffer_bytes, ==, b->buffer_bytes);
    assert_int_equal(a->has_loss, b->has_loss);
    assert_int_equal(a->framework, b->framework);
    for (int i = 0; i < 2; i++) {
        assert_compare(a->check.dispatched_flops[i], ==, b->check.dispatched_flops[i]);
        assert_compare(a->check.job_flops[i], ==, b->check.job_flops[i]);
    }
    assert_compare(a->check.recorded_peak, ==, b->check.recorded_peak);
    assert_compare(a->check.predicted_peak, ==, b->check.predicted_peak);
    assert_compare(a->check.unpriced_bytes, ==, b->check.unpriced_bytes);
    assert_int_equal(a->check.unpriced_operators, b->check.unpriced_operators);
    if (a->check.modules != NULL) assert_string_equal(a->check.modules, b->check.modules);
    assert_int_equal(a->check.modules != NULL, b->check.modules != NULL);
    assert_int_equal(a->recorded_count, b->recorded_count);
    for (size_t i = 0; i < a->recorded_count; i++) {
        const mdot_recorded_memory *p = &a->recorded[i], *q = &b->recorded[i];
        assert_int_equal(p->precision, q->precision);
        assert_int_equal(p->recompute, q->recompute);
        assert_int_equal(p->compiled, q->compiled);
        assert_int_equal(p->moment_count, q->moment_count);
        for (size_t k = 0; k < p->moment_count; k++) {
            assert_compare(p->moments[k].per_sample, ==, q->moments[k].per_sample);
            assert_compare(p->moments[k].per_step, ==, q->moments[k].per_step);
            assert_compare(p->moments[k].weight_copies, ==, q->moments[k].weight_copies);
            assert_compare(p->moments[k].logits, ==, q->moments[k].logits);
            assert_compare(p->moments[k].per_square, ==, q->moments[k].per_square);
            assert_within(p->moments[k].gradients, q->moments[k].gradients, 1e-6);
        }
    }
}
