/* test_roofline_inputs.c — the roofline inputs for each operator property. */
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

static const rt_shard whole = {1, 1, {1, 1, 1}, 0};

static rt_roofline_inputs inputs_of(const network *n, size_t index, const rt_shard *shard)
{
    mdot_job *job = predict_make_job(n->operators, n->count);
    const rt_analysis *a = job->analysis;
    rt_roofline_inputs inputs = rt_roofline_inputs_of(job, &a->sharding, a->op_costs.fusing, index, shard);
    mdot_job_destroy(job);
    return inputs;
}

/* A matmul by parameters is linear if both sides are multiples of 16. Convolutions with one channel per group do not
 * use tensor cores. */
static void operators_have_their_rate(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double trained, frozen;
        int64_t in, out, kernel, groups;
        rt_rate rate;
    } cases[] = {
        {"Relu", 0, 0, 16, 16, 0, 0, RT_RATE_VECTOR},        {"Linear", 256, 0, 16, 16, 0, 0, RT_RATE_LINEAR},
        {"Linear", 0, 256, 16, 16, 0, 0, RT_RATE_LINEAR},    {"Linear", 1, 0, 32, 16, 0, 0, RT_RATE_LINEAR},
        {"Linear", 0, 0, 16, 16, 0, 0, RT_RATE_MATMUL},      {"Linear", 256, 0, 17, 16, 0, 0, RT_RATE_MATMUL},
        {"Linear", 256, 0, 16, 17, 0, 0, RT_RATE_MATMUL},    {"Linear", 256, 0, 0, 16, 0, 0, RT_RATE_MATMUL},
        {"Linear", 256, 0, 16, 0, 0, 0, RT_RATE_MATMUL},     {"Linear", 256, 0, 17, 17, 0, 0, RT_RATE_MATMUL},
        {"Conv", 256, 0, 16, 16, 1, 1, RT_RATE_CONVOLUTION}, {"Conv", 256, 0, 16, 16, 3, 0, RT_RATE_CONVOLUTION},
        {"Conv", 256, 0, 16, 16, 3, 2, RT_RATE_CONVOLUTION}, {"Conv", 256, 0, 16, 16, 3, 16, RT_RATE_VECTOR},
        {"Conv", 256, 0, 1, 16, 3, 1, RT_RATE_CONVOLUTION},  {"Conv", 256, 0, 2, 16, 3, 2, RT_RATE_VECTOR},
        {"Linear", 256, 0, 34, 34, 0, 0, RT_RATE_MATMUL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        mdot_job_operator *op = network_add(&n, cases[i].type, cases[i].trained, "");
        op->frozen_parameters = cases[i].frozen;
        op->setting[MDOT_SETTING_CHANNELS_IN] = cases[i].in;
        op->setting[MDOT_SETTING_CHANNELS_OUT] = cases[i].out;
        op->setting[MDOT_SETTING_KERNEL_W] = cases[i].kernel;
        op->setting[MDOT_SETTING_GROUPS] = cases[i].groups;
        rt_roofline_inputs inputs = inputs_of(&n, 0, &whole);
        if (inputs.kind.rate != cases[i].rate) fail_msg("case %zu: rate %d", i, inputs.kind.rate);
        assert_int_equal(inputs.kind.uses_tensor_cores, cases[i].type[0] != 'R');
        assert_compare(inputs.weights, ==, cases[i].trained + cases[i].frozen);
        assert_compare(inputs.frozen_weights, ==, cases[i].frozen);
    }
}

/* Matmuls before and in the blocks run in FP8, and those behind them do not, if there are blocks. */
static void a_head_behind_the_blocks_stays_in_half_precision(void **state)
{
    (void)state;
    for (uint32_t blocks = 0; blocks < 4; blocks++) {
        network n = {0};
        for (uint32_t i = 0; i <= blocks + 1; i++) {
            mdot_job_operator *op = network_add(&n, "Linear", 256, "");
            op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = 16;
            op->block = i <= blocks ? i : 0;
        }
        for (size_t i = 0; i < n.count; i++) {
            bool is_head = blocks > 0 && i == n.count - 1;
            assert_int_equal(inputs_of(&n, i, &whole).kind.rate, is_head ? RT_RATE_MATMUL : RT_RATE_LINEAR);
        }
    }
}

/* Bytes are the sum of both directions, by phase. An operand has a quarter as many elements as bytes. */
static void loads_are_taken_by_phase(void **state)
{
    (void)state;
    network n = {0};
    mdot_job_operator *op = network_add(&n, "Linear", 100, "");
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        op->per_sample[phase] = (mdot_load){1 + phase, 40 << phase, 800 << phase};
        op->per_step[phase] = (mdot_load){7 + phase, 3 << phase, 60 << phase};
    }
    rt_roofline_inputs inputs = inputs_of(&n, 0, &whole);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        assert_compare(inputs.sample[phase].flops, ==, 1 + phase);
        assert_compare(inputs.sample[phase].bytes, ==, 840 << phase);
        assert_compare(inputs.step[phase].flops, ==, 7 + phase);
        assert_compare(inputs.step[phase].bytes, ==, 63 << phase);
    }
    assert_compare(inputs.operand, ==, 10);
    assert_compare(inputs.result, ==, 200);
    assert_compare(inputs.count, ==, 1);
    assert_compare(inputs.score_bytes, ==, 0);
}

/* Each property of a chain's operators: a matmul, a normalisation and an activation in a block, and a loss. */
static void properties_are_those_of_the_operator(void **state)
{
    (void)state;
    network n = {0};
    network_add_matmul(&n, 16, 16, "");
    network_add_norm(&n, "0");
    network_add(&n, "Magic", 0, "1")->known = false;
    network_add(&n, "SoftmaxCrossEntropyLoss", 0, "2");
    n.operators[1].block = n.operators[2].block = 1;
    n.operators[1].flags = MDOT_OPERATOR_RECOMPUTED;
    n.operators[2].flags = MDOT_OPERATOR_RECOMPUTED | MDOT_OPERATOR_ONCE_MORE;
    n.operators[3].flags = n.operators[2].flags | MDOT_OPERATOR_TWICE_MORE;
    static const struct {
        bool is_fp32, is_loss, is_in_block, is_replicated, is_selected;
        uint8_t recomputations;
        rt_pipeline_position position;
    } cases[] = {{false, false, false, false, false, 0, RT_PIPELINE_BEFORE},
                 {true, false, true, true, true, 1, RT_PIPELINE_BLOCKS},
                 {false, false, true, true, false, 2, RT_PIPELINE_BLOCKS},
                 {true, true, false, false, true, 4, RT_PIPELINE_AFTER}};
    for (size_t i = 0; i < 4; i++) {
        rt_roofline_inputs inputs = inputs_of(&n, i, &whole);
        if (inputs.kind.is_fp32 != cases[i].is_fp32 || inputs.kind.is_loss != cases[i].is_loss ||
            inputs.kind.is_in_block != cases[i].is_in_block || inputs.kind.is_replicated != cases[i].is_replicated ||
            inputs.kind.is_selected != cases[i].is_selected || inputs.kind.recomputations != cases[i].recomputations ||
            inputs.kind.position != cases[i].position)
            fail_msg("operator %zu", i);
    }
}

/* One GPU in four has a quarter of a sharded activation's traffic and fusion savings. A replicated activation keeps
 * all. */
static void shards_have_a_part_of_fused_bytes(void **state)
{
    (void)state;
    network n = {0};
    network_add_matmul(&n, 16, 16, "");
    network_add(&n, "Relu", 0, "0");
    network_add(&n, "Sigmoid", 0, "1");
    network_add_matmul(&n, 16, 16, "2");
    network_add(&n, "Relu", 0, "3");
    network_add(&n, "Relu", 0, "4");
    for (int i = 0; i < 3; i++) n.operators[i].block = 1;
    const rt_shard quarter = {4, 1, {1, 1, 1}, 0};
    assert_compare(inputs_of(&n, 1, &whole).fused_bytes, ==, 2000);
    assert_compare(inputs_of(&n, 1, &quarter).fused_bytes, ==, 500);
    assert_compare(inputs_of(&n, 1, &quarter).sample[MDOT_PHASE_FORWARD].bytes, ==, 250);
    assert_compare(inputs_of(&n, 4, &quarter).fused_bytes, ==, 2000);
    assert_compare(inputs_of(&n, 0, &quarter).weights, ==, 64);
    assert_compare(inputs_of(&n, 0, &whole).weights, ==, 256);
    assert_false(inputs_of(&n, 1, &quarter).kind.is_replicated);
}

/* The collected inputs are those of each group's first operator, with an operator count. */
static void groups_have_the_inputs_of_their_first_operator(void **state)
{
    (void)state;
    network n = {0};
    static const double written[] = {10, 20, 10, 30, 20, 10};
    for (int i = 0; i < 6; i++)
        network_add(&n, "Softmax", 0, "")->per_sample[MDOT_PHASE_FORWARD].bytes_written = written[i];
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_analysis *a = job->analysis;
    assert_int_equal(a->sharded_groups.count, 3);
    static const double counts[] = {3, 2, 1}, bytes[] = {10, 20, 30};
    for (int i = 0; i < 3; i++) {
        assert_compare(a->roofline_inputs[i].count, ==, counts[i]);
        assert_compare(a->roofline_inputs[i].sample[MDOT_PHASE_FORWARD].bytes, ==, bytes[i]);
    }
    mdot_job_destroy(job);
}

/* A mask is the same work for each sample and for a step, once and twice. Keys without a gradient and a bias for each
 * head are no masks. */
static void traffic_does_not_depend_on_how_a_mask_was_recorded(void **state)
{
    (void)state;
    static const struct {
        int of_sample, of_step;
    } recorded[] = {{1, 0}, {2, 0}, {0, 1}, {0, 2}, {1, 1}};
    for (double length = 512; length <= 65536; length *= 2)
        for (double key_heads = 1; key_heads <= 16; key_heads *= 2)
            for (int heads = 0; heads < 2; heads++) {
                double queries = 4 * 64 * 16 * length, keys = 2 * 4 * 64 * key_heads * length;
                double square = 4 * length * length, bytes[sizeof recorded / sizeof *recorded];
                for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
                    network n = {0};
                    mdot_job_operator *op = network_add(&n, "Attention", 0, "");
                    op->setting[MDOT_SETTING_HEADS] = 16;
                    op->setting[MDOT_SETTING_HEAD_SIZE] = 64;
                    op->setting[MDOT_SETTING_QUERIES] = op->setting[MDOT_SETTING_KEYS] = (int64_t)length;
                    double sample = queries + keys + recorded[i].of_sample * square;
                    op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e6, sample, queries};
                    op->per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){2e6, sample + queries, queries + keys};
                    for (int phase = 0; phase < MDOT_PHASE_WEIGHT_GRADIENT; phase++)
                        op->per_step[phase].bytes_read = (heads != 0 ? 16 : recorded[i].of_step) * square;
                    rt_roofline_inputs inputs = inputs_of(&n, 0, &whole);
                    bytes[i] = inputs.sample[MDOT_PHASE_FORWARD].bytes;
                    if (heads != 0 && recorded[i].of_sample == 0)
                        assert_compare(inputs.step[MDOT_PHASE_FORWARD].bytes, ==, 16 * square);
                    if (heads != 0) continue;
                    assert_compare(inputs.step[MDOT_PHASE_FORWARD].bytes, ==, 2 * square);
                    assert_compare(inputs.step[MDOT_PHASE_DATA_GRADIENT].bytes, ==, 2 * square);
                    assert_compare(bytes[i], ==, 2 * queries + keys);
                    assert_compare(inputs.sample[MDOT_PHASE_DATA_GRADIENT].bytes, ==, 3 * queries + 2 * keys);
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_have_their_rate),
        cmocka_unit_test(a_head_behind_the_blocks_stays_in_half_precision),
        cmocka_unit_test(loads_are_taken_by_phase),
        cmocka_unit_test(properties_are_those_of_the_operator),
        cmocka_unit_test(shards_have_a_part_of_fused_bytes),
        cmocka_unit_test(groups_have_the_inputs_of_their_first_operator),
        cmocka_unit_test(traffic_does_not_depend_on_how_a_mask_was_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
