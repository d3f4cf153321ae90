/* test_job_totals.c — sums over the operators of a job: FLOPs, costs, attention, and the matmul whose result a loss
 * reads. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Forward, data gradient and weight gradient count, and work per step does not. */
static void flops_of_all_phases_and_costs_are_summed(void **state)
{
    (void)state;
    network n = {0};
    for (int i = 0; i < 3; i++) {
        mdot_job_operator *op = network_add(&n, i == 1 ? "Magic" : "Relu", 0, "");
        op->known = i != 1;
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            op->per_sample[phase].flops = (double)((i + 1) << (8 * phase));
            op->per_step[phase].flops = 1 << 28;
        }
    }
    mdot_job *job = predict_make_job(n.operators, n.count);
    static const double costs[] = {10, 200, 3000};
    rt_job_totals t = rt_sum_job(job, costs);
    assert_compare(t.flops_per_sample, ==, 6 * (1 + 256 + 65536));
    assert_compare(t.forward_flops_per_sample, ==, 6);
    assert_compare(t.cost, ==, 3210);
    assert_compare(t.cost_without_type_id, ==, 200);
    assert_true(t.lacks_type_id);
    assert_int_equal(t.highest_type_id, job->operators[0].traits.number);
    assert_int_equal(t.logits, 0);
    assert_false(t.has_attention || t.is_recomputed || t.is_convolutional);
    mdot_job_destroy(job);
    n.operators[1] = n.operators[0];
    n.operators[1].traits.number = 1000;
    n.operators[2].flags = MDOT_OPERATOR_RECOMPUTED;
    job = predict_make_job(n.operators, n.count);
    t = rt_sum_job(job, costs);
    assert_int_equal(t.highest_type_id, 1000);
    assert_compare(t.cost_without_type_id, ==, 0);
    assert_false(t.lacks_type_id);
    assert_true(t.is_recomputed);
    mdot_job_destroy(job);
}

/* Keys and values are the attention bytes read beyond the queries, which are as large as the result. If an attention
 * reads no more than a result's bytes, all bytes read count. */
static void attention_reads_keys_and_values(void **state)
{
    (void)state;
    static const struct {
        double flops, read, written, key_values;
    } cases[] = {{21, 3000, 1000, 2000},
                 {21, 1001, 1000, 1},
                 {21, 1000, 1000, 1000},
                 {21, 900, 1000, 900},
                 {1, 3000, 1000, 2000}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        for (int k = 0; k < 2; k++) {
            mdot_job_operator *op = network_add(&n, "Attention", 0, k == 0 ? "" : "0");
            op->setting[MDOT_SETTING_HEADS] = 1;
            op->setting[MDOT_SETTING_HEAD_SIZE] = 4;
            op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){cases[i].flops, cases[i].read, cases[i].written};
        }
        network_add(&n, "Relu", 0, "1")->per_sample[MDOT_PHASE_FORWARD].flops = 100;
        mdot_job *job = predict_make_job(n.operators, n.count);
        const rt_job_totals *t = &job->analysis->totals;
        assert_true(t->has_attention);
        assert_compare(t->attention_count, ==, 2);
        assert_compare(t->attention_flops, ==, 2 * cases[i].flops);
        assert_compare(t->key_value_bytes, ==, 2 * cases[i].key_values);
        mdot_job_destroy(job);
    }
}

/* At any length, and with any number of heads for keys, a causal mask that the job reads for each sample is no key. */
static void masks_are_no_keys(void **state)
{
    (void)state;
    for (int64_t length = 4096; length <= 262144; length *= 2)
        for (int64_t key_heads = 1; key_heads <= 16; key_heads *= 2)
            for (int has_mask = 0; has_mask < 2; has_mask++) {
                double queries = 4.0 * 16 * 64 * (double)length, keys = 2 * 4.0 * 64 * (double)(key_heads * length);
                double mask = has_mask * 4 * (double)length * (double)length;
                network n = {0};
                mdot_job_operator *op = network_add(&n, "Attention", 0, "");
                op->setting[MDOT_SETTING_HEADS] = 16;
                op->setting[MDOT_SETTING_HEAD_SIZE] = 64;
                op->setting[MDOT_SETTING_QUERIES] = op->setting[MDOT_SETTING_KEYS] = length;
                op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){21, queries + keys + mask, queries};
                op->per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){42, 2 * queries + keys + mask, queries + keys};
                mdot_job *job = predict_make_job(n.operators, n.count);
                assert_compare(job->analysis->totals.key_value_bytes, ==, keys);
                mdot_job_destroy(job);
            }
}

/* A loss reads a matmul's result directly or through operators that write as much or less. */
static void logits_are_of_the_matmul_before_the_loss(void **state)
{
    (void)state;
    static const struct {
        double matmul, first, second; /* bytes of the results; 0: the operator is absent */
        const char *type;             /* of the first operator */
        size_t logits;
    } cases[] = {{1000, 0, 0, "Linear", 1},       {1000, 1000, 0, "Linear", 1},  {1000, 1000, 1000, "Linear", 1},
                 {1000, 1000, 1001, "Linear", 0}, {1000, 1001, 0, "Linear", 0},  {1000, 500, 0, "Linear", 1},
                 {1000, 2000, 500, "Linear", 0},  {1000, 1000, 0, "Sigmoid", 0}, {0.5, 0.5, 0, "Linear", 1},
                 {1000, 0, 0, "Sigmoid", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        network_add(&n, cases[i].type, 100, "")->per_sample[MDOT_PHASE_FORWARD].bytes_written = cases[i].matmul;
        if (cases[i].first > 0)
            network_add(&n, "Relu", 0, "0")->per_sample[MDOT_PHASE_FORWARD].bytes_written = cases[i].first;
        if (cases[i].second > 0)
            network_add(&n, "Relu", 0, "1")->per_sample[MDOT_PHASE_FORWARD].bytes_written = cases[i].second;
        network_add(&n, "SoftmaxCrossEntropyLoss", 0, n.count == 1 ? "0" : n.count == 2 ? "1" : "2");
        mdot_job *job = predict_make_job(n.operators, n.count);
        if (job->analysis->totals.logits != cases[i].logits) fail_msg("case %zu", i);
        mdot_job_destroy(job);
    }
}

/* Convolutions need more than half of the FLOPs on tensor cores; other operators do not count. */
static void convolutional_jobs_have_most_flops_in_convolutions(void **state)
{
    (void)state;
    static const struct {
        double convolution, matmul;
        bool is_convolutional;
    } cases[] = {{100, 100, false}, {101, 100, true}, {100, 101, false}, {100, 0, true},
                 {0, 100, false},   {60, 59, true},   {0, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        mdot_job_operator *convolution = network_add(&n, "Conv", 10, "");
        convolution->setting[MDOT_SETTING_KERNEL_W] = 1;
        convolution->per_sample[MDOT_PHASE_FORWARD].flops = cases[i].convolution;
        network_add(&n, "Linear", 10, "0")->per_sample[MDOT_PHASE_FORWARD].flops = cases[i].matmul;
        mdot_job_operator *pool = network_add(&n, "Relu", 0, "1"); /* has a window, but no tensor cores */
        pool->setting[MDOT_SETTING_KERNEL_W] = 3;
        pool->per_sample[MDOT_PHASE_FORWARD].flops = 1e6;
        network_add(&n, "Relu", 0, "2")->per_sample[MDOT_PHASE_FORWARD].flops = 1e6;
        mdot_job *job = predict_make_job(n.operators, n.count);
        if (job->analysis->totals.is_convolutional != cases[i].is_convolutional) fail_msg("case %zu", i);
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flops_of_all_phases_and_costs_are_summed),
        cmocka_unit_test(masks_are_no_keys),
        cmocka_unit_test(attention_reads_keys_and_values),
        cmocka_unit_test(logits_are_of_the_matmul_before_the_loss),
        cmocka_unit_test(convolutional_jobs_have_most_flops_in_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
