/* test_roofline_sums.c — step times from per-kind operator sums equal those from each group. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { BLOCKS = 3, OPERATORS_OF_BLOCK = 7 };

static void vary_loads(mdot_job_operator *op, double seed)
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        op->per_sample[phase] = (mdot_load){1e6 * seed * (1 + phase), 1e4 * seed, 3e4 * seed + 1e3 * phase};
        op->per_step[phase] = (mdot_load){1e5 * seed, 4 * op->parameters + 10 * seed, 100 * seed * phase};
    }
}

/* Blocks: two attentions and two matmuls with different sizes, a normalisation, and activations (one recomputed by the
 * program). A matmul and a loss follow. */
static void make_network(network *n)
{
    mdot_job_operator *op;
    network_add_matmul(n, 32, 16, "");
    char last[16];
    for (int block = 1; block <= BLOCKS; block++) {
        snprintf(last, sizeof last, "%zu", n->count - 1);
        size_t first = n->count;
        network_add_norm(n, last);
        snprintf(last, sizeof last, "%zu", first);
        network_add_matmul(n, 16, 16, last);
        snprintf(last, sizeof last, "%zu", first + 1);
        network_add_matmul(n, 16, 16 * (1 + block), last);
        for (int64_t k = 0; k < 2; k++) {
            snprintf(last, sizeof last, "%zu,%zu", first + 1, first + 2);
            op = network_add(n, "Attention", 0, last);
            op->setting[MDOT_SETTING_HEAD_SIZE] = 8 << k;
        }
        snprintf(last, sizeof last, "%zu,%zu", first + 3, first + 4);
        network_add(n, "Add", 0, last);
        snprintf(last, sizeof last, "%zu", first + 5);
        network_add(n, "Gelu", 0, last)->flags = block == 1 ? MDOT_OPERATOR_RECOMPUTED : 0;
        assert_int_equal(n->count - first, OPERATORS_OF_BLOCK);
        for (size_t i = first; i < n->count; i++) n->operators[i].block = (uint32_t)block;
    }
    snprintf(last, sizeof last, "%zu", n->count - 1);
    network_add_matmul(n, 16, 640, last);
    snprintf(last, sizeof last, "%zu", n->count - 1);
    network_add(n, "SoftmaxCrossEntropyLoss", 0, last);
    for (size_t i = 0; i < n->count; i++) vary_loads(&n->operators[i], 1 + (double)(i % 11));
}

static rt_roofline_terms terms_of(const mdot_job *job, mdot_configuration c)
{
    rt_configuration configuration;
    rt_gpu_names names = {0};
    rt_resolved_configuration resolved;
    assert_int_equal(rt_configuration_read(&c, 0, &names, &configuration, NULL), MDOT_OK);
    rt_resolve(job, &configuration, &resolved);
    return rt_step_roofline_terms(job, &resolved);
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * want)) fail_msg("%.17g instead of %.17g", got, want);
}

/* Compares the terms with a job whose sums are the group inputs. */
static void assert_same_terms(const mdot_job *job, mdot_configuration c)
{
    rt_analysis *a = job->analysis;
    rt_roofline_terms got = terms_of(job, c);
    rt_roofline_inputs *sums = a->roofline_sums;
    size_t count = a->roofline_sum_count;
    a->roofline_sums = a->roofline_inputs;
    a->roofline_sum_count = a->sharded_groups.count;
    rt_roofline_terms want = terms_of(job, c);
    a->roofline_sums = sums;
    a->roofline_sum_count = count;
    assert_compare(want.compute_ms, >, 0);
    assert_compare(want.memory_ms, >, 0);
    assert_near(got.compute_ms, want.compute_ms);
    assert_near(got.memory_ms, want.memory_ms);
    assert_near(got.masked_ms, want.masked_ms);
}

static void sums_give_the_terms_of_all_groups(void **state)
{
    (void)state;
    network n = {0};
    make_network(&n);
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_analysis *a = job->analysis;
    assert_compare(a->roofline_sum_count, >, 1);
    assert_compare(a->roofline_sum_count, <, a->sharded_groups.count);
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP_BF16, MDOT_PRECISION_BF16,
                                                MDOT_PRECISION_FP8};
    for (size_t p = 0; p < sizeof precisions / sizeof *precisions; p++) {
        for (int option = 0; option < 10; option++) {
            mdot_configuration c = predict_configuration(16, "H100-SXM-80GB");
            c.precision = precisions[p];
            c.attention = option % 2 == 0 ? MDOT_ATTENTION_EAGER : MDOT_ATTENTION_FLASH;
            if (option == 1) c.recompute = MDOT_RECOMPUTE_BLOCKS;
            if (option == 2) c.recompute = MDOT_RECOMPUTE_SELECTIVE;
            if (option == 3) c.loss = MDOT_LOSS_FUSED;
            if (option == 4) c.mode = MDOT_MODE_INFERENCE;
            if (option == 5) c.compiled = 1;
            if (option == 6) c.frozen_weights = MDOT_FROZEN_NF4;
            if (option == 7) c.gpu_count = c.tensor_parallel = 2;
            if (option == 8) c.gpu_count = c.pipeline_parallel = 3, c.micro_batches = 4;
            if (option == 9) c.gpu_count = c.context_parallel = 2;
            assert_same_terms(job, c);
        }
    }
    mdot_job_destroy(job);
}

/* Kinds are in first-operator order, and contain each of their operators. */
static void operators_of_a_kind_are_added(void **state)
{
    (void)state;
    network n = {0};
    static const struct {
        const char *type;
        double written;
    } operators[] = {{"Relu", 10}, {"Softmax", 20}, {"Relu", 10}, {"Softmax", 30}, {"Sigmoid", 7}};
    for (int i = 0; i < 5; i++)
        network_add(&n, operators[i].type, i, "")->per_sample[MDOT_PHASE_FORWARD].bytes_written = operators[i].written;
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_analysis *a = job->analysis;
    assert_int_equal(a->roofline_sum_count, 2);
    static const double bytes[] = {27, 50}, weights[] = {0 + 2 + 4, 1 + 3};
    for (int i = 0; i < 2; i++) {
        assert_compare(a->roofline_sums[i].sample[MDOT_PHASE_FORWARD].bytes, ==, bytes[i]);
        assert_compare(a->roofline_sums[i].weights, ==, weights[i]);
        assert_compare(a->roofline_sums[i].count, ==, 1);
    }
    assert_true(a->roofline_sums[1].kind.is_fp32);
    assert_true(!a->roofline_sums[0].kind.is_fp32);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_give_the_terms_of_all_groups),
        cmocka_unit_test(operators_of_a_kind_are_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
