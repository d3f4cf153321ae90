/* test_activation_memory_moments.c — the moments of matmul chains, compared with a search over all moments. */
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MOST = 16, CHAINS = 100 };

static uint32_t draw(uint32_t below)
{
    static uint64_t random_state = 5;
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* Units of each result and parameter. The first matmul reads one-unit samples. */
static mdot_job *chain(size_t count, const double *units, const double *parameters)
{
    static uint32_t before[MOST];
    mdot_job_operator operators[MOST];
    for (size_t i = 0; i < count; i++) {
        before[i] = i > 0 ? (uint32_t)i - 1 : 0;
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i],
                                           .type = "Linear",
                                           .known = true,
                                           .parameters = parameters[i],
                                           .inputs = &before[i],
                                           .input_count = i > 0};
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0, NETWORK_UNIT, units[i] * NETWORK_UNIT};
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
    }
    return predict_make_job(operators, count);
}

/* The largest sum of a moment's bytes and `weight` times the moment's gradients. Backward operation k has the samples,
 * the results before k, the gradient of result k and the gradient before it. */
static double search(size_t count, const double *units, const double *parameters, double weight)
{
    double saved = 1, all = 0, largest = 0, gradients = 0;
    for (size_t i = 0; i < count; i++) {
        saved += units[i];
        all += parameters[i];
    }
    for (size_t k = count; k-- > 0;) {
        gradients += parameters[k];
        if (k + 1 == count) largest = saved; /* the end of the forward pass has no gradients */
        saved -= units[k];
        double bytes = saved + units[k] + (k > 0 ? units[k - 1] : 0);
        largest = fmax(largest, bytes + weight * gradients / all);
    }
    return largest;
}

static double largest_of(const rt_activations *a, double weight)
{
    double largest = 0;
    for (size_t i = 0; i < a->moment_count; i++)
        largest = fmax(largest, a->moments[i].all / NETWORK_UNIT + weight * a->moments[i].gradients);
    return largest;
}

/* Up to seven matmuls have at most eight moments, and all are kept. From more, the peak and the last one are kept, and
 * no moment has more bytes than exist. */
static void moments_have_the_largest_sum_at_any_batch(void **state)
{
    (void)state;
    size_t full = 0;
    for (int i = 0; i < CHAINS; i++) {
        double units[MOST], parameters[MOST];
        size_t count = 1 + (size_t)i % MOST;
        for (size_t k = 0; k < count; k++) {
            units[k] = i < CHAINS / 2 ? 1 + draw(20) : (double)(count - k); /* at random, or falling */
            parameters[k] = i < CHAINS / 2 ? 1 + draw(20) : 1;
        }
        mdot_job *job = chain(count, units, parameters);
        const rt_activations *a = &job->analysis->activations.of[RT_ACTIVATION_FP32][MDOT_ATTENTION_FLASH][0];
        assert_in_range(a->moment_count, 1, RT_ACTIVATION_MOMENTS);
        full += a->moment_count == RT_ACTIVATION_MOMENTS;
        assert_compare(a->all, ==, search(count, units, parameters, 0) * NETWORK_UNIT);
        assert_compare(a->all, ==, a->moments[0].all);
        assert_compare(a->moments[a->moment_count - 1].gradients, ==, 1);
        for (double weight = 0.125; weight < 1000; weight *= 1.5) {
            double want = search(count, units, parameters, weight), got = largest_of(a, weight);
            if (got > want * (1 + 1e-12)) fail_msg("chain %d: %g, more than %g", i, got, want);
            if (count < RT_ACTIVATION_MOMENTS && got < want * (1 - 1e-12))
                fail_msg("chain %d: %g, not %g", i, got, want);
            if (got < want * 0.9) fail_msg("chain %d: %g is far below %g", i, got, want);
        }
        mdot_job_destroy(job);
    }
    assert_compare(full, >, 0);
}

static void expect_moments(const rt_activations *a, size_t count, const double moments[][2])
{
    assert_int_equal(a->moment_count, count);
    for (size_t i = 0; i < count; i++) {
        const rt_activation_moment *m = &a->moments[i];
        if (m->all != moments[i][0] * NETWORK_UNIT || m->whole != m->all || m->gradients != moments[i][1])
            fail_msg("moment %zu: %g units, %g of the gradients", i, m->all / NETWORK_UNIT, m->gradients);
    }
}

/* Three matmuls with results of 1, 2 and 4. b2: samples 1, r0 1, r1 2, g2 4, g1 2; b1: samples, r0, g1, g0; b0:
 * samples, g0. Each adds the gradients of its parameters. */
static void moments_follow_the_backward_pass(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 1, 1, "");
    network_add_units(&n, "Linear", 2, 4, "0");
    network_add_units(&n, "Linear", 4, 3, "1");
    mdot_job *job = predict_make_job(n.operators, n.count);
    static const double moments[][2] = {{10, 3 / 8.0}, {5, 7 / 8.0}, {2, 1}}, inference[][2] = {{7, 0}};
    expect_moments(&job->analysis->activations.of[0][MDOT_ATTENTION_FLASH][0], 3, moments);
    expect_moments(&job->analysis->activations.inference[0][MDOT_ATTENTION_FLASH], 1, inference);
    mdot_job_destroy(job);
}

/* Eight equal matmuls of 1 unit. b7: samples, r0 to r6, g7, g6; each later moment has a unit less, and b0, without a
 * gradient behind it, two less. Moments on a line between two others are left out. */
static void moments_on_a_line_are_left_out(void **state)
{
    (void)state;
    static const char *const before[] = {"", "0", "1", "2", "3", "4", "5", "6"};
    network n = {0};
    for (int i = 0; i < 8; i++) network_add_units(&n, "Linear", 1, 10, before[i]);
    mdot_job *job = predict_make_job(n.operators, n.count);
    static const double moments[][2] = {{10, 1 / 8.0}, {4, 7 / 8.0}, {2, 1}};
    expect_moments(&job->analysis->activations.of[0][MDOT_ATTENTION_FLASH][0], 3, moments);
    mdot_job_destroy(job);
}

/* Ten matmuls of 1 unit, whose moments b9 to b1 fall by 1 unit each, and b0 by 2. A moment between two others
 * contributes the difference of the parameters on both sides of it: 870 at b8, 2 at b7, 3 at b6, 4 at b5, and more
 * after them. The ninth moment drops b7, so that b6 contributes 130 + 128 - 2 * 125 = 8, and the tenth drops b5. */
static void the_vertex_that_contributes_least_is_dropped(void **state)
{
    (void)state;
    static const double parameters[] = {95, 103, 110, 116, 121, 125, 128, 130, 1000, 1000};
    static const char *const before[] = {"", "0", "1", "2", "3", "4", "5", "6", "7", "8"};
    network n = {0};
    for (int i = 0; i < 10; i++) network_add_units(&n, "Linear", 1, parameters[i], before[i]);
    mdot_job *job = predict_make_job(n.operators, n.count);
    static const double moments[][2] = {
        {12, 1000 / 2928.0}, {11, 2000 / 2928.0}, {9, 2258 / 2928.0}, {7, 2504 / 2928.0},
        {6, 2620 / 2928.0},  {5, 2730 / 2928.0},  {4, 2833 / 2928.0}, {2, 1}};
    expect_moments(&job->analysis->activations.of[0][MDOT_ATTENTION_FLASH][0], 8, moments);
    mdot_job_destroy(job);
}

/* A fused loss has the gradient of the matmul parameters (3 of 8) from the forward pass on. */
static void fused_losses_have_gradients_early(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "Linear", 1, 5, "");
    mdot_job_operator *logits = network_add_units(&n, "Linear", 8, 3, "0");
    logits->setting[MDOT_SETTING_CHANNELS_IN] = 16;
    logits->setting[MDOT_SETTING_CHANNELS_OUT] = 128;
    network_add_units(&n, "SoftmaxCrossEntropyLoss", 0, 0, "1");
    mdot_job *job = predict_make_job(n.operators, n.count);
    /* b2: samples, r0, four tensors of the logits; b0: samples, g0 */
    static const double whole[][2] = {{1 + 1 + 32, 0}, {2, 1}}, fused[][2] = {{1 + 1 + 4, 3 / 8.0}, {2, 1}};
    const rt_activation_table *a = &job->analysis->activations;
    expect_moments(&a->of[0][MDOT_ATTENTION_FLASH][0], 2, whole);
    expect_moments(&a->with_loss[MDOT_LOSS_FUSED - 1][0][MDOT_ATTENTION_FLASH][0], 2, fused);
    mdot_job_destroy(job);
}

/* A normalisation of 1 unit, matmuls of 4 and 1 sharded by columns and rows, and a tensor of 3 without gradient; both
 * inputs are samples of 1. At b2: samples 2, r0 1, r1 4, g2 1, g1 4; without r1 and g1, 4. At f3, without r1: samples,
 * r0, r3 3: 6, the peak of the whole tensors. At b1: samples, r0, g1, g0; at b0: samples, g0. */
static void moments_of_shards_have_whole_tensors(void **state)
{
    (void)state;
    network n = {0};
    network_add_units(&n, "LayerNormalization", 1, 2, "")->setting[MDOT_SETTING_AXIS] = 1;
    for (int i = 1; i <= 2; i++) {
        mdot_job_operator *op = network_add_units(&n, "Linear", i == 1 ? 4 : 1, 10, i == 1 ? "0" : "1");
        op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = 8;
    }
    network_add_units(&n, "Sigmoid", 3, 0, "");
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_activation_case which = {.attention = MDOT_ATTENTION_FLASH};
    const rt_activations *a = rt_activations_of(&job->analysis->activations, &which);
    static const rt_activation_moment moments[] = {
        {.all = 12 * NETWORK_UNIT, .whole = 6 * NETWORK_UNIT, .gradients = 10 / 22.0},
        {.all = 8 * NETWORK_UNIT, .whole = 4 * NETWORK_UNIT, .gradients = 20 / 22.0},
        {.all = 3 * NETWORK_UNIT, .whole = 3 * NETWORK_UNIT, .gradients = 1}};
    assert_compare(a->all, ==, 12 * NETWORK_UNIT);
    assert_compare(a->whole, ==, 6 * NETWORK_UNIT);
    assert_int_equal(a->moment_count, 3);
    for (int i = 0; i < 3; i++) {
        const rt_activation_moment *m = &a->moments[i];
        assert_compare(m->all, ==, moments[i].all);
        assert_compare(m->whole, ==, moments[i].whole);
        assert_compare(m->gradients, ==, moments[i].gradients);
    }
    static const double units[2][4] = {{2, 8, 1, 1}, {2, 4, .5, .5 + 2}};
    for (int halved = 0; halved < 2; halved++) {
        double bytes[4];
        assert_true(rt_shard_activations(job, &job->analysis->sharding, job->analysis->totals.logits, &which,
                                         1 + halved, bytes));
        for (int i = 0; i < 4; i++) assert_float_equal(bytes[i] / NETWORK_UNIT, units[halved][i], 1e-12);
    }
    mdot_job_destroy(job);
}

static void long_jobs_get_an_estimate(void **state)
{
    (void)state;
    mdot_job *job = predict_job(20000, 3);
    double fp32 = job->analysis->activations.of[RT_ACTIVATION_FP32][0][0].all;
    assert_compare(fp32, >, 20000.0 / 3 * 2000);
    assert_compare(job->analysis->activations.of[RT_ACTIVATION_AMP][0][0].all, <, fp32);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_follow_the_backward_pass),
        cmocka_unit_test(moments_on_a_line_are_left_out),
        cmocka_unit_test(the_vertex_that_contributes_least_is_dropped),
        cmocka_unit_test(fused_losses_have_gradients_early),
        cmocka_unit_test(moments_of_shards_have_whole_tensors),
        cmocka_unit_test(moments_have_the_largest_sum_at_any_batch),
        cmocka_unit_test(long_jobs_get_an_estimate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
