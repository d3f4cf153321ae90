/* test_parallelism_options.c — effects on step memory and step time: context and sequence parallelism, pipelines, and
 * activations in host memory. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTH = 1024 };
static const double matrix = (double)WIDTH * WIDTH, norm = 2 * WIDTH;

static mdot_prediction predict(const mdot_job *job, mdot_configuration c)
{
    return predict_one(&predict_bandwidth, job, &c);
}

static void expect_error(const mdot_job *job, mdot_configuration c, const char *part)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    assert_int_equal(mdot_predict(predict_bandwidth.context, job, &c, &p, &err), MDOT_INVALID_ARGUMENT);
    if (strstr(err.message, part) == NULL) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
}

static bool is_near(double got, double want) { return fabs(got - want) <= 1e-9 * want + 1; }

static mdot_job *make_matmul(void)
{
    mdot_job_operator op = {.struct_size = sizeof op, .known = true, .type = "Linear", .parameters = 100};
    op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){100, 100, 100};
    return predict_make_job(&op, 1);
}

/* Eight blocks: normalisation, matmul, attention, matmul. */
static mdot_job *make_attention_job(void)
{
    enum { LAYERS = 8, EACH = 4, OPERATORS = LAYERS * EACH };
    static uint32_t inputs[OPERATORS];
    mdot_job_operator operators[OPERATORS];
    for (uint32_t i = 0; i < OPERATORS; i++) {
        static const char *const types[EACH] = {"LayerNormalization", "Linear", "Attention", "Linear"};
        mdot_job_operator *op = &operators[i];
        uint32_t at = i % EACH;
        *op = (mdot_job_operator){.struct_size = sizeof *op, .known = true, .type = types[at], .block = i / EACH + 1};
        /* Attention reads queries, keys and values, and writes a third as much. */
        double read = at == 2 ? 3e7 : 1e7, written = at == 1 ? 3e7 : 1e7;
        for (int phase = 0; phase < (at % 2 == 1 ? 3 : 2); phase++)
            op->per_sample[phase] = (mdot_load){at == 0 ? 1e7 : 1e10, read, written};
        op->setting[MDOT_SETTING_INPUTS] = 1;
        op->parameters = at % 2 == 1 ? matrix : at == 0 ? norm : 0;
        if (at == 0) op->setting[MDOT_SETTING_AXIS] = 1;
        if (at % 2 == 1) op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = WIDTH;
        if (at == 2) {
            op->setting[MDOT_SETTING_HEADS] = 16;
            op->setting[MDOT_SETTING_HEAD_SIZE] = 64;
        }
        inputs[i] = i - 1;
        op->inputs = &inputs[i];
        op->input_count = i > 0;
    }
    return predict_make_job(operators, OPERATORS);
}

#define WIDE .struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "A100-SXM-80GB"

static void context_parallelism_divides_sequences(void **state)
{
    (void)state;
    mdot_job *job = make_attention_job();
    mdot_configuration c = {WIDE, .accumulate = 2, .link_gbps = 1e6};
    mdot_prediction one = predict(job, c);
    c.context_parallel = 4;
    mdot_prediction four = predict(job, c);
    assert_true(is_near(four.activation_bytes, one.activation_bytes / 4));
    assert_compare(four.weight_bytes, ==, one.weight_bytes);
    assert_true(is_near(four.gradient_bytes, 2 * one.gradient_bytes)); /* buckets, as in data parallelism */
    {
        assert_compare(four.step_ms, <, 0.5 * one.step_ms);
        assert_compare(four.step_ms, >, 0.2 * one.step_ms);
    }
    c.link_gbps = 0.1; /* keys and values, and gradients */
    double slow = predict(job, c).step_ms;
    c.context_parallel = 1;
    c.data_parallel = 4;
    assert_compare(slow, >, predict(job, c).step_ms + 1);
    c.zero_stage = 1;
    double state_of_workers = predict(job, c).optimizer_bytes;
    c.data_parallel = 1;
    c.context_parallel = 4;
    assert_compare(predict(job, c).optimizer_bytes, ==, state_of_workers);
    mdot_configuration two = {WIDE, .context_parallel = 2};
    mdot_job *without = make_matmul();
    expect_error(without, two, "lacks attention");
    two.gpu_count = 4;
    two.data_parallel = 4;
    expect_error(job, two, "--parallel cp=2 multiply to 8");
    mdot_job_destroy(without);
    mdot_job_destroy(job);
}

static void sequence_parallelism_divides_replicated_tensors(void **state)
{
    (void)state;
    mdot_job *job = make_attention_job();
    mdot_configuration c = {WIDE, .accumulate = 2, .tensor_parallel = 4};
    mdot_prediction replicated = predict(job, c);
    c.sequence_parallel = 1;
    mdot_prediction divided = predict(job, c);
    const rt_activations *a = &job->analysis->activations.of[RT_ACTIVATION_FP32][MDOT_ATTENTION_FLASH][0];
    assert_true(is_near(replicated.activation_bytes, 8 * (a->whole + (a->all - a->whole) / 4)));
    assert_true(is_near(divided.activation_bytes, 8 * a->all / 4));
    assert_compare(divided.step_ms, <, replicated.step_ms); /* normalisations */
    c.tensor_parallel = 1;
    expect_error(job, c, "--parallel sp needs --parallel tp");
    mdot_job_destroy(job);
}

/* Four stages wait three micro-steps in eleven. Two virtual stages halve the wait, and keep (p - 1) / (p v) more. */
static void pipelines_trade_waiting_for_activations(void **state)
{
    (void)state;
    mdot_job *job = make_attention_job();
    mdot_configuration c = {WIDE, .pipeline_parallel = 4, .micro_batches = 8, .link_gbps = 1e6};
    mdot_prediction plain = predict(job, c);
    c.virtual_stages = 2;
    mdot_prediction interleaved = predict(job, c);
    assert_true(is_near(interleaved.activation_bytes, plain.activation_bytes * (1 + 3 / 8.0)));
    double ratio = interleaved.step_ms / plain.step_ms;
    assert_compare(ratio, >, (8 + 1.5) / 11 - 0.01);
    assert_compare(ratio, <, 0.95);
    c.virtual_stages = 3;
    expect_error(job, c, "each part needs a block");
    c.virtual_stages = 2;
    c.micro_batches = 2;
    c.framework = MDOT_FRAMEWORK_MEGATRON;
    expect_error(job, c, "Megatron needs at least --parallel pp");
    c.framework = MDOT_FRAMEWORK_PROGRAM;
    c.micro_batches = 8;
    c.schedule = MDOT_SCHEDULE_ZERO_BUBBLE;
    expect_error(job, c, "zero-bubble");
    c.virtual_stages = 1;
    mdot_prediction filled = predict(job, c);
    assert_compare(filled.activation_bytes, ==, plain.activation_bytes);
    assert_compare(filled.step_ms, <, interleaved.step_ms);
    assert_compare(filled.step_ms, >, plain.step_ms * (8 + 0.9) / 11);
    c.pipeline_parallel = 1;
    c.micro_batches = 1;
    expect_error(job, c, "zero-bubble needs --parallel pp");
    mdot_job_destroy(job);
}

/* With recomputed blocks, the block inputs move; without, also the other tensors saved by blocks. */
static void activations_move_to_host_memory(void **state)
{
    (void)state;
    mdot_job *job = make_attention_job();
    mdot_configuration c = {WIDE, .accumulate = 2};
    for (int recompute = 0; recompute < 2; recompute++) {
        c.recompute = recompute == 0 ? MDOT_RECOMPUTE_NOTHING : MDOT_RECOMPUTE_BLOCKS;
        c.offload_activations = 0;
        mdot_prediction kept = predict(job, c);
        c.offload_activations = 1;
        mdot_prediction moved = predict(job, c);
        assert_compare(moved.activation_bytes, <, 0.7 * kept.activation_bytes);
        assert_compare(moved.activation_bytes, >=, kept.activation_bytes / 8);
        mdot_gpu slow = MDOT_INIT(mdot_gpu);
        assert_int_equal(mdot_gpu_find(c.gpu, &slow, NULL), MDOT_OK);
        slow.pcie_gbps = 0.1;
        mdot_configuration by_slot = c;
        by_slot.gpu = NULL;
        by_slot.gpu_spec = &slow;
        double bytes = kept.activation_bytes - moved.activation_bytes, ms = 2 * 2 * bytes / 0.08e6;
        double waited = predict(job, by_slot).step_ms - kept.step_ms;
        assert_compare(waited, >, ms - kept.step_ms - 1);
        assert_compare(waited, <, ms);
        assert_compare(moved.step_ms, >=, kept.step_ms);
    }
    mdot_job_destroy(job);
    mdot_job *without = make_matmul();
    expect_error(without, c, "lacks blocks");
    mdot_job_destroy(without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_parallelism_divides_sequences),
        cmocka_unit_test(sequence_parallelism_divides_replicated_tensors),
        cmocka_unit_test(pipelines_trade_waiting_for_activations),
        cmocka_unit_test(activations_move_to_host_memory),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
