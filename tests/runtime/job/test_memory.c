/* test_memory.c — peak memory of a step against sums made by hand, for networks small enough to follow every tensor.
 *
 * Sizes are in units of a tensor of 1024 fp32 elements a sample. In the comments, f3 is the forward operation of
 * operator 3, b3 its backward operation, g3 the gradient of its result.
 */
#include "runtime/job/job_model.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_OPERATORS = 32, MAX_INPUTS = 4, UNIT = 4096 };

typedef struct network {
    mdot_job_operator operators[MAX_OPERATORS];
    uint32_t inputs[MAX_OPERATORS][MAX_INPUTS];
    size_t count;
} network;

/* An operator whose result has `units`; inputs as "0,3". The first of a network reads samples of one unit. */
static mdot_job_operator *add(network *n, const char *type, double units, double parameters, const char *inputs)
{
    mdot_job_operator *op = &n->operators[n->count];
    *op = (mdot_job_operator){.struct_size = sizeof(mdot_job_operator),
                              .type = type,
                              .known = true,
                              .parameters = parameters,
                              .inputs = n->inputs[n->count]};
    op->per_sample[MDOT_PHASE_FORWARD].bytes_written = units * UNIT;
    for (const char *at = inputs; *at != '\0'; at += *at == ',') {
        char *end;
        n->inputs[n->count][op->input_count++] = (uint32_t)strtoul(at, &end, 10);
        at = end;
    }
    op->setting[MDOT_SETTING_INPUTS] = op->input_count > 0 ? (int64_t)op->input_count : 1;
    if (op->input_count == 0) op->per_sample[MDOT_PHASE_FORWARD].bytes_read = UNIT;
    n->count++;
    return op;
}

static void expect_units(const network *n, double fp32, double amp)
{
    mdot_job *job = predict_make_job(n->operators, n->count);
    if (job->memory.activation_bytes != fp32 * UNIT)
        fail_msg("fp32: %g units, not %g", job->memory.activation_bytes / UNIT, fp32);
    if (job->memory.half_activation_bytes != amp * UNIT)
        fail_msg("amp: %g units, not %g", job->memory.half_activation_bytes / UNIT, amp);
    mdot_job_destroy(job);
}

/* ---- Activations --------------------------------------------------------------------------------------------------
 */

/* fp32, at b1: samples 1, r1 8 (it is saved), g1 8, g0 8. amp: samples 1 and their copy .5, the rest halved. */
static void small_cnn(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Conv", 8, 100, "");
    add(&n, "Relu", 8, 0, "0");
    add(&n, "GlobalAveragePool", 0.5, 0, "1");
    add(&n, "Linear", 0.25, 50, "2");
    expect_units(&n, 1 + 24, 1 + 0.5 + 12);
}

/* The convolution's own result is saved for its normalisation. fp32, at b1: samples, both maps, g1, g0: 1 + 4 * 8;
 * at b0: samples, the map before the normalisation and two gradients. */
static void convolution_keeps_what_its_normalisation_reads(void **state)
{
    (void)state;
    network n = {0};
    mdot_job_operator *conv = add(&n, "Conv", 16, 100, ""); /* two maps of 8 */
    conv->setting[MDOT_SETTING_NORMALISED] = 1;
    conv->per_sample[MDOT_PHASE_FORWARD].bytes_read = (1 + 2 * 8) * UNIT;
    add(&n, "Relu", 8, 0, "0");
    add(&n, "GlobalAveragePool", 0.5, 0, "1");
    expect_units(&n, 1 + 4 * 8, 1 + 0.5 + 4 * 4);
}

/* No operator saves anything. At b1: samples, g1 4, g0 4 with what b3 added to it, 4 more for what b1 adds. A table's
 * rows are fp32 under autocast, and so is all that follows. */
static void residual_sum_saves_nothing(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Gather", 4, 100, "");
    add(&n, "Neg", 4, 0, "0");
    add(&n, "Neg", 4, 0, "1");
    add(&n, "Add", 4, 0, "0,2");
    expect_units(&n, 12, 12);
}

/* A block of width 1 with samples of 1. Saved in fp32 at the end: r0, its norm 1, q, k, v, attention 5, sum 7, its norm
 * 8, the two wide ones 9 and 10: 16. The peak is at b11: with g7 1, g11 1, g10 4.
 * amp: saved are the fp32 copy for the norm 1, fp16 copies of its result for q, k, v 1.5, these 1.5, attention .5, the
 * copy of the sum 1, of its norm .5, the wide ones 4: 10, samples 1 + .5; with g7 .5, g11 .5, g10 2. */
static void transformer_block(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Linear", 1, 10, "");
    add(&n, "LayerNormalization", 1, 2, "0");
    add(&n, "Linear", 1, 10, "1");
    add(&n, "Linear", 1, 10, "1");
    add(&n, "Linear", 1, 10, "1");
    add(&n, "Attention", 1, 0, "2,3,4");
    add(&n, "Linear", 1, 10, "5");
    add(&n, "Add", 1, 0, "0,6");
    add(&n, "LayerNormalization", 1, 2, "7");
    add(&n, "Linear", 4, 40, "8");
    add(&n, "Gelu", 4, 0, "9");
    add(&n, "Linear", 1, 40, "10");
    add(&n, "Add", 1, 0, "7,11");
    expect_units(&n, 1 + 16 + 6, 1.5 + 10 + 3);
}

/* r0 is there once, whether its view is saved or it is itself. fp32, at b2: samples, r0 4, g2 2, g0 4. */
static void views_take_no_memory(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Linear", 4, 10, "");
    add(&n, "Transpose", 4, 0, "0");
    add(&n, "Linear", 2, 10, "1");
    expect_units(&n, 1 + 4 + 2 + 4, 1 + 0.5 + 5);
}

/* The pool saves its input 8 and 64-bit indices of its result 2 * 2. fp32, at b1: samples, those, g1 2, g0 8. */
static void max_pool_keeps_indices(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Conv", 8, 10, "");
    add(&n, "MaxPool", 2, 0, "0");
    expect_units(&n, 1 + 8 + 4 + 2 + 8, 1.5 + 4 + 4 + 1 + 4);
}

/* Softmax is fp32 under autocast and saves its result; the product behind it saves an fp16 copy. fp32, at b1: samples,
 * r1 4, g1 4, g0 4. amp, at b2: samples 1.5, r1 4, its copy 2, g2 .5, g1 4. */
static void softmax_is_fp32_under_autocast(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Linear", 4, 10, "");
    add(&n, "Softmax", 4, 0, "0");
    add(&n, "Linear", 1, 10, "1");
    expect_units(&n, 1 + 12, 1.5 + 4 + 2 + 0.5 + 4);
}

/* No parameter: no gradient passes, nothing is kept for one. At f1: samples and two results. */
static void what_learns_nothing_saves_nothing(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Sigmoid", 8, 0, "");
    add(&n, "Sigmoid", 8, 0, "0");
    expect_units(&n, 1 + 16, 1 + 16);
}

/* A factor is saved for the other one's gradient: both of two tensors; one for a parameter; none for a number. */
static void products_save_factors(void **state)
{
    (void)state;
    network both = {0}, scale = {0}, number = {0};
    add(&both, "Linear", 4, 10, "");
    add(&both, "Neg", 4, 0, "0");
    add(&both, "Mul", 4, 0, "0,1");
    expect_units(&both, 1 + 8 + 3 * 4, 1.5 + 4 + 3 * 2); /* at b2: r0, r1, g2, g1, g0 */
    add(&scale, "Linear", 4, 10, "");
    add(&scale, "Mul", 4, 4, "0");
    add(&scale, "Neg", 4, 0, "1");
    expect_units(&scale, 1 + 4 + 8, 1.5 + 2 + 8); /* at b2: r0, g2, g1, these widened to fp32 by the parameter */
    add(&number, "Linear", 4, 10, "");
    add(&number, "Mul", 4, 0, "0");
    add(&number, "Neg", 4, 0, "1");
    expect_units(&number, 1 + 8, 1.5 + 4); /* two at any moment */
}

/* What mdot does not know saves all it touches. */
static void unknown_operators_save_everything(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Linear", 4, 10, "");
    add(&n, "Magic", 4, 0, "0")->known = false;
    add(&n, "Neg", 4, 0, "1");
    expect_units(&n, 1 + 4 + 4 + 8, 1.5 + 2 + 2 + 4); /* at b2: r0, r1, g2, g1 */
}

/* ---- Configurations ------------------------------------------------------------------------------------------------
 */

static mdot_job *small_network(void)
{
    network n = {0};
    add(&n, "Conv", 8, 1000, "");
    add(&n, "Relu", 8, 0, "0");
    add(&n, "BatchNormalization", 8, 24, "1");
    return predict_make_job(n.operators, n.count);
}

static void peak_is_weights_gradients_state_and_activations(void **state)
{
    (void)state;
    mdot_job *job = small_network();
    double a = job->memory.activation_bytes, h = job->memory.half_activation_bytes;
    static const double weights = 4 * 1024;
    const struct {
        mdot_configuration c;
        double bytes;
    } cases[] = {
        {{.batch = 3}, 3 * weights + 3 * a},
        {{.batch = 3, .precision = MDOT_PRECISION_TF32}, 3 * weights + 3 * a},
        {{.batch = 3, .precision = MDOT_PRECISION_AMP}, 3 * weights + 3 * h + 2 * 1000},
        {{.batch = 3, .optimizer = MDOT_OPTIMIZER_ADAM}, 4 * weights + 3 * a},
        {{.batch = 3, .optimizer = MDOT_OPTIMIZER_ADAMW}, 4 * weights + 3 * a},
        {{.batch = 3, .gpu_count = 1}, 3 * weights + 3 * a},
        {{.batch = 3, .gpu_count = 2}, 4 * weights + 3 * a},
        {{.batch = 3, .layout = MDOT_LAYOUT_NHWC}, 3 * weights + 3 * a},
        {{.batch = 1 << 24}, 3 * weights + (1 << 24) * a},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if ((double)rt_peak_memory_bytes(job, &cases[i].c) != cases[i].bytes) fail_msg("case %zu", i);
    mdot_job_destroy(job);
}

/* Few activations: what Adam's update holds is more. */
static void update_of_adam_may_be_the_peak(void **state)
{
    (void)state;
    network n = {0};
    add(&n, "Linear", 1, 1e6, "");
    mdot_job *job = predict_make_job(n.operators, n.count);
    mdot_configuration c = {.struct_size = sizeof c, .batch = 1, .optimizer = MDOT_OPTIMIZER_ADAMW};
    assert_true(rt_peak_memory_bytes(job, &c) == 5 * 4 * 1000000);
    c.optimizer = MDOT_OPTIMIZER_SGD;
    assert_true(rt_peak_memory_bytes(job, &c) < 4 * 4 * 1000000);
    mdot_job_destroy(job);
}

static void peak_beyond_all_numbers_is_the_largest(void **state)
{
    (void)state;
    mdot_job_operator operators[100];
    for (size_t i = 0; i < 100; i++) {
        operators[i] = (mdot_job_operator){
            .struct_size = sizeof(mdot_job_operator), .type = "Magic", .parameters = RT_JOB_MAX_COUNT};
        operators[i].per_sample[MDOT_PHASE_FORWARD].bytes_written = RT_JOB_MAX_COUNT;
    }
    mdot_job *job = predict_make_job(operators, 100);
    mdot_configuration c = {.struct_size = sizeof c, .batch = 1 << 24};
    assert_true(rt_peak_memory_bytes(job, &c) == UINT64_MAX);
    assert_false(rt_fits(UINT64_MAX, 192));
    mdot_job_destroy(job);
}

static void some_memory_is_not_for_jobs(void **state)
{
    (void)state;
    assert_true(rt_fits(UINT64_C(22) << 30, 24)); /* 24 * 15 / 16 - .5 */
    assert_false(rt_fits((UINT64_C(22) << 30) + 1, 24));
    assert_true(rt_fits(0, 8));
}

static void long_jobs_are_measured(void **state)
{
    (void)state;
    mdot_job *job = predict_job(20000, 3);
    assert_true(job->memory.activation_bytes > 20000.0 / 3 * 2000);
    assert_true(job->memory.half_activation_bytes < job->memory.activation_bytes);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_cnn),
        cmocka_unit_test(convolution_keeps_what_its_normalisation_reads),
        cmocka_unit_test(residual_sum_saves_nothing),
        cmocka_unit_test(transformer_block),
        cmocka_unit_test(views_take_no_memory),
        cmocka_unit_test(max_pool_keeps_indices),
        cmocka_unit_test(softmax_is_fp32_under_autocast),
        cmocka_unit_test(what_learns_nothing_saves_nothing),
        cmocka_unit_test(products_save_factors),
        cmocka_unit_test(unknown_operators_save_everything),
        cmocka_unit_test(peak_is_weights_gradients_state_and_activations),
        cmocka_unit_test(update_of_adam_may_be_the_peak),
        cmocka_unit_test(peak_beyond_all_numbers_is_the_largest),
        cmocka_unit_test(some_memory_is_not_for_jobs),
        cmocka_unit_test(long_jobs_are_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
