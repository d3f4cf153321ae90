/* test_roofline.c — the roofline of single operators, compared with values made by hand. Either a FLOP or a byte takes
 * time, so a phase shows one of both. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/step_time.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MATMUL, ATTENTION, NORM, LOSS, OPERATORS, SAMPLES = 4 };

/* A matmul (half of 256 weights frozen), and a block: an attention with 40 score bytes, and a normalisation, which
 * needs all channels. */
static mdot_job *make_job(void)
{
    static const uint32_t before[OPERATORS] = {0, 0, 1, 2};
    mdot_job_operator operators[OPERATORS] = {{.type = "Linear", .parameters = 128, .frozen_parameters = 128},
                                              {.type = "Attention", .block = 1, .flags = MDOT_OPERATOR_RECOMPUTED},
                                              {.type = "LayerNormalization", .parameters = 32, .block = 1},
                                              {.type = "SoftmaxCrossEntropyLoss"}};
    for (int i = 0; i < OPERATORS; i++) {
        operators[i].struct_size = sizeof operators[i];
        operators[i].known = true;
        operators[i].inputs = &before[i];
        operators[i].input_count = i > 0;
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){210, 64, 128};
        operators[i].per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){500, 60, 30};
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
    }
    mdot_job_operator *matmul = &operators[MATMUL];
    matmul->setting[MDOT_SETTING_CHANNELS_IN] = matmul->setting[MDOT_SETTING_CHANNELS_OUT] = 16;
    matmul->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){700, 70, 20};
    matmul->per_step[MDOT_PHASE_FORWARD] = (mdot_load){10, 1024, 0};
    matmul->per_step[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){30, 0, 512};
    operators[ATTENTION].setting[MDOT_SETTING_HEADS] = 1;
    operators[ATTENTION].setting[MDOT_SETTING_HEAD_SIZE] = 4;
    operators[NORM].setting[MDOT_SETTING_AXIS] = 1;
    return predict_make_job(operators, OPERATORS);
}

/* A byte takes 1 ms or 0, and a FLOP 0 or as many as its rate has here. */
static rt_resolved_configuration resolve(const mdot_job *job, mdot_configuration c, bool by_bytes)
{
    rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
    configuration.c.batch = SAMPLES;
    mdot_error err = {0};
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration r;
    rt_resolve(job, &configuration, &r);
    r.rates = (rt_rates){.half_byte_ratio = 0.5, .fp32_byte_ratio = 1, .ms_per_byte = by_bytes ? 1 : 0};
    for (int rate = 0; rate < RT_RATE_COUNT && !by_bytes; rate++) r.rates.ms_per_flop[rate] = rate + 2;
    return r;
}

static void expect(const mdot_job *job, size_t index, const rt_resolved_configuration *r, double forward, double data,
                   double weight)
{
    double ms[MDOT_PHASE_COUNT];
    rt_operator_roofline(job, index, r, ms);
    assert_float_equal(ms[MDOT_PHASE_FORWARD], forward, 1e-9);
    assert_float_equal(ms[MDOT_PHASE_DATA_GRADIENT], data, 1e-9);
    assert_float_equal(ms[MDOT_PHASE_WEIGHT_GRADIENT], weight, 1e-9);
}

/* Rates of matmuls alone follow the type in which the program ran them. */
static void a_matmul_of_another_type_has_that_type_s_rates(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    mdot_job_operator operators[OPERATORS];
    for (int i = 0; i < OPERATORS; i++) operators[i] = job->operators[i];
    operators[MATMUL].flags = operators[NORM].flags = MDOT_OPERATOR_RAN_FULL;
    mdot_job *mixed = predict_make_job(operators, OPERATORS);
    const mdot_configuration c = {.struct_size = sizeof c};
    for (int as_program = 0; as_program < 2; as_program++) {
        rt_resolved_configuration r = resolve(mixed, c, false);
        r.runs_as_program = as_program != 0;
        r.other_rates = r.rates;
        for (int rate = 0; rate < RT_RATE_COUNT; rate++) r.other_rates.ms_per_flop[rate] *= 8;
        for (size_t i = 0; i < OPERATORS; i++) {
            double ms[MDOT_PHASE_COUNT], alone[MDOT_PHASE_COUNT], times = as_program != 0 && i == MATMUL ? 8 : 1;
            rt_operator_roofline(mixed, i, &r, ms);
            rt_operator_roofline(job, i, &r, alone);
            for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
                assert_float_equal(ms[phase], times * alone[phase], 1e-9);
        }
        assert_float_equal(rt_step_roofline_terms(mixed, &r).compute_ms >
                               1.5 * rt_step_roofline_terms(job, &r).compute_ms,
                           as_program, 0);
    }
    mdot_job_destroy(mixed);
    mdot_job_destroy(job);
}

static void phases_have_their_flops_and_bytes(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    enum { VECTOR_MS = RT_RATE_VECTOR + 2, MATMUL_MS = RT_RATE_MATMUL + 2, LINEAR_MS = RT_RATE_LINEAR + 2 };
    rt_resolved_configuration flops = resolve(job, (mdot_configuration){0}, false),
                              bytes = resolve(job, (mdot_configuration){0}, true);
    expect(job, MATMUL, &flops, LINEAR_MS * (4 * 210 + 10), LINEAR_MS * 4 * 500, LINEAR_MS * (4 * 700 + 30));
    expect(job, NORM, &flops, VECTOR_MS * 4 * 210, VECTOR_MS * 4 * 500, 0);
    flops.recomputes_as_program = false;
    expect(job, ATTENTION, &flops, MATMUL_MS * 4 * 210, MATMUL_MS * 4 * 500 * 1.25, 0);
    expect(job, MATMUL, &bytes, (4 * 192 + 1024) / 2.0, 4 * 90 / 2.0, (4 * 90 + 512) / 2.0);
    expect(job, NORM, &bytes, 4 * 192, 4 * 90, 0);
    bytes.rates.fp32_byte_ratio = 2; /* autocast: copies of 256 weights, read in fp32 and written in half precision */
    expect(job, MATMUL, &bytes, (4 * 192 + 1024) / 2.0 + 6 * 256, 4 * 90 / 2.0, (4 * 90 + 512) / 2.0);
    expect(job, NORM, &bytes, 2 * 4 * 192, 2 * 4 * 90, 0);
    bytes.rates.fp32_byte_ratio = 1;
    bytes.sequence = 2;
    bytes.replicated = 4; /* of operators in blocks */
    expect(job, MATMUL, &bytes, (2 * 192 + 1024) / 2.0, 2 * 90 / 2.0, (2 * 90 + 512) / 2.0);
    expect(job, NORM, &bytes, 192 / 2.0, 90 / 2.0, 0);
    rt_resolved_configuration inference = resolve(job, (mdot_configuration){.mode = MDOT_MODE_INFERENCE}, false);
    expect(job, MATMUL, &inference, LINEAR_MS * (4 * 210 + 10), 0, 0);
    mdot_job_destroy(job);
}

/* Decomposed attention moves the 40 score bytes four times forward and six times backward. */
static void decomposed_attention_moves_its_scores(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    mdot_configuration c = {.attention = MDOT_ATTENTION_EAGER};
    rt_resolved_configuration flops = resolve(job, c, false), bytes = resolve(job, c, true);
    flops.recomputes_as_program = bytes.recomputes_as_program = false;
    expect(job, ATTENTION, &flops, 3 * 4 * 210, 3 * 4 * 500, 0);
    expect(job, ATTENTION, &bytes, (4 * 192 + 4 * 4 * 40) / 2.0, (4 * 90 + 6 * 4 * 40) / 2.0, 0);
    rt_resolved_configuration fused = resolve(job, (mdot_configuration){.attention = MDOT_ATTENTION_FLASH}, false);
    fused.recomputes_as_program = false;
    fused.steps = 3;
    double each = 4 * 210 + 4 * 500, matmul = 4 * 210 + 10 + 4 * 500 + 4 * 700 + 30;
    double attention = 3 * (4 * 210 + 1.25 * 4 * 500);
    rt_roofline_terms terms = rt_step_roofline_terms(job, &fused);
    assert_float_equal(terms.compute_ms, 3 * (4 * matmul + attention + 2 * 2 * each), 1e-9);
    assert_float_equal(terms.masked_ms, 3 * attention / 2, 1e-9);
    flops.steps = 3;
    assert_float_equal(rt_step_roofline_terms(job, &flops).masked_ms, 0, 0);
    rt_roofline sum = rt_roofline_of(job, &fused);
    assert_float_equal(sum.forward_ms, 4 * (4 * 210 + 10) + 3 * 4 * 210 + 2 * 2 * 4 * 210, 1e-9);
    assert_float_equal(sum.backward_ms, terms.compute_ms / 3 - sum.forward_ms, 1e-9);
    mdot_job_destroy(job);
}

/* Recomputed are operators in blocks, or all operators but matmuls, or those that the program marks, as often as it
 * marks. */
static void recomputed_operators_run_forward_again(void **state)
{
    (void)state;
    static const struct {
        mdot_recompute recompute;
        uint32_t more;
        double matmul, attention, norm, loss; /* how often each runs again */
    } cases[] = {{MDOT_RECOMPUTE_NOTHING, 0, 0, 1, 0, 0},
                 {MDOT_RECOMPUTE_NOTHING, MDOT_OPERATOR_ONCE_MORE, 0, 2, 0, 0},
                 {MDOT_RECOMPUTE_NOTHING, MDOT_OPERATOR_TWICE_MORE, 0, 3, 0, 0},
                 {MDOT_RECOMPUTE_NOTHING, MDOT_OPERATOR_ONCE_MORE | MDOT_OPERATOR_TWICE_MORE, 0, 4, 0, 0},
                 {MDOT_RECOMPUTE_BLOCKS, MDOT_OPERATOR_ONCE_MORE, 0, 1, 1, 0},
                 {MDOT_RECOMPUTE_SELECTIVE, 0, 0, 0, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_job *plain = make_job();
        mdot_job_operator operators[OPERATORS];
        for (int k = 0; k < OPERATORS; k++) operators[k] = plain->operators[k];
        operators[ATTENTION].flags |= cases[i].more;
        mdot_job *job = predict_make_job(operators, OPERATORS);
        rt_resolved_configuration r = resolve(job, (mdot_configuration){.recompute = cases[i].recompute}, true);
        assert_true(r.recomputes_as_program);
        const double all = 4 * 192, half = all / 2;
        expect(job, MATMUL, &r, half + 512, 180 + cases[i].matmul * (half + 512), 180 + 256);
        expect(job, ATTENTION, &r, half, 180 + cases[i].attention * half, 0);
        expect(job, NORM, &r, all, 360 + cases[i].norm * all, 0);
        expect(job, LOSS, &r, all, 360 + cases[i].loss * all, 0);
        double sum = half + 512 + half + 180 + 180 + 180 + 256 + 2 * (all + 360) + cases[i].attention * half +
                     (cases[i].norm + cases[i].loss) * all;
        rt_roofline pass = rt_roofline_of(job, &r);
        assert_float_equal(pass.forward_ms + pass.backward_ms, sum, 1e-9);
        assert_float_equal(rt_step_roofline_terms(job, &r).memory_ms, sum + pass.optimizer_ms, 1e-9);
        mdot_job_destroy(job);
        mdot_job_destroy(plain);
    }
}

/* Liger's kernel computes the gradient in the forward pass, in the type of computation. Inference has no gradient. */
static void a_fused_loss_has_no_backward_operation(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
        rt_resolved_configuration r = resolve(job, (mdot_configuration){.loss = MDOT_LOSS_CHUNKED}, by_bytes != 0);
        double forward = by_bytes ? 4 * 192 : 2 * 4 * 210, backward = by_bytes ? 4 * 90 : 2 * 4 * 500;
        expect(job, LOSS, &r, forward, backward, 0);
        r.configuration.c.loss = MDOT_LOSS_FUSED;
        expect(job, LOSS, &r, by_bytes ? (forward + backward) / 2 : forward + backward, 0, 0);
        expect(job, NORM, &r, forward, backward, 0);
        r.configuration.c.mode = MDOT_MODE_INFERENCE;
        expect(job, LOSS, &r, forward, 0, 0);
    }
    mdot_job_destroy(job);
}

/* A head with 16 columns and 64 classes; the fused loss has four parts. Each further part reads the 1024 two-byte
 * weights forward and backward, and writes a gradient for 1008 trained weights, then added to the others: read, read
 * and written. Where computation takes longer than traffic, it hides all but the sums. A tied head has a table's
 * weights. */
static void expect_parts(bool is_tied)
{
    static const uint32_t before[2] = {0, 0};
    enum { WEIGHTS = 1024, TRAINED = 1008 };
    mdot_job_operator operators[2] = {{.type = "Linear"}, {.type = "SoftmaxCrossEntropyLoss"}};
    for (int i = 0; i < 2; i++) {
        operators[i].struct_size = sizeof operators[i];
        operators[i].known = true;
        operators[i].inputs = &before[i];
        operators[i].input_count = i > 0;
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
        for (int phase = 0; phase < (i == 0 ? 3 : 2); phase++)
            operators[i].per_sample[phase] = (mdot_load){100, 64, 256};
    }
    operators[0].parameters = is_tied ? 0 : TRAINED;
    operators[0].frozen_parameters = is_tied ? 0 : WEIGHTS - TRAINED;
    operators[0].per_step[MDOT_PHASE_FORWARD].bytes_read = 4 * WEIGHTS;
    operators[0].per_step[MDOT_PHASE_DATA_GRADIENT].bytes_read = 4 * WEIGHTS;
    operators[0].per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * TRAINED;
    operators[0].setting[MDOT_SETTING_CHANNELS_IN] = 16;
    operators[0].setting[MDOT_SETTING_CHANNELS_OUT] = 64;
    mdot_job *job = predict_make_job(operators, 2);
    assert_int_equal(job->analysis->totals.logits, 1);
    static const struct {
        mdot_loss loss;
        double more;
    } cases[] = {{MDOT_LOSS_WHOLE, 0}, {MDOT_LOSS_CHUNKED, 7}, {MDOT_LOSS_FUSED, 3}};
    const double samples = 4 * 320 / 2.0, read = 2 * WEIGHTS, written = 2 * TRAINED;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_resolved_configuration r = resolve(job, (mdot_configuration){.loss = cases[i].loss}, true);
        double more = cases[i].more, reads = (1 + more) * read, writes = (1 + more) * written + 3 * more * written;
        expect(job, 0, &r, samples + reads, samples + reads, samples + writes);
        rt_roofline sum = rt_roofline_of(job, &r);
        double forward = 2 * samples; /* from the loss; fp32 unless fused */
        double backward = cases[i].loss == MDOT_LOSS_FUSED ? 0 : forward;
        assert_float_equal(sum.forward_ms, samples + reads + forward, 1e-9);
        assert_float_equal(sum.backward_ms, 2 * samples + reads + writes + backward, 1e-9);
        assert_float_equal(rt_step_roofline_terms(job, &r).memory_ms,
                           3 * samples + 2 * reads + writes + forward + backward + sum.optimizer_ms, 1e-9);
        r.rates.ms_per_flop[RT_RATE_LINEAR] = r.rates.ms_per_flop[RT_RATE_MATMUL] = 1000;
        expect(job, 0, &r, 4e5, 4e5, 4e5 + 3 * more * written);
        r.configuration.c.mode = MDOT_MODE_INFERENCE;
        expect(job, 0, &r, 4e5, 0, 0);
    }
    mdot_job_destroy(job);
}

static void parts_of_the_logits_read_their_weights_again(void **state)
{
    (void)state;
    expect_parts(false);
    expect_parts(true);
}

/* Before the forward operation and the data gradient, 128 frozen weights are read in 1 + 4 / 1024 bytes and written in
 * four, at a tenth of the bandwidth. At .8 of it, FP8 casts the operand (16 elements per sample), the result's
 * gradient (32) and the weights (256). */
static void operands_are_prepared(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    const double forward = (4 * 192 + 1024) / 2.0, data = 180, weight = 180 + 256;
    rt_resolved_configuration r = resolve(job, (mdot_configuration){.frozen_weights = MDOT_FROZEN_INT8}, true);
    double copies = 128 * (1 + 4.0 / 1024 + 4) / 0.26;
    expect(job, MATMUL, &r, forward + copies, data + copies, weight);
    expect(job, NORM, &r, 4 * 192, 4 * 90, 0);
    r.rates.ms_per_byte = 0.25;
    expect(job, MATMUL, &r, (forward + copies) / 4, (data + copies) / 4, weight / 4);
    static const struct {
        mdot_precision precision;
        uint32_t compiled;
        double bytes;
    } cases[] = {{MDOT_PRECISION_FP8, 0, 25},           {MDOT_PRECISION_FP8, 1, 5},
                 {MDOT_PRECISION_FP8_ROWWISE, 0, 25},   {MDOT_PRECISION_FP8_ROWWISE, 1, 10},
                 {MDOT_PRECISION_FP8_BLOCKWISE, 0, 25}, {MDOT_PRECISION_FP8_BLOCKWISE, 1, 3},
                 {MDOT_PRECISION_MXFP8, 1, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        r = resolve(job, (mdot_configuration){0}, true);
        r.configuration.c.precision = cases[i].precision;
        r.configuration.c.compiled = cases[i].compiled;
        r.sequence = 2;
        double bytes = cases[i].bytes / 0.8, f = (2 * 192 + 1024) / 2.0, d = 90, w = 90 + 256;
        expect(job, MATMUL, &r, f + bytes * (2 * 16 + 256), d + bytes * (2 * 32 + 256), w + bytes * (2 * 16 + 2 * 32));
    }
    mdot_job_destroy(job);
}

/* A compiled activation passes the result on to the next one: 400 bytes per sample less 100 written and 100 read by the
 * next. One GPU in two has half. */
static void compiled_activations_pass_their_results_on(void **state)
{
    (void)state;
    static const uint32_t before[] = {0, 1, 2};
    static const char *const types[] = {"Linear", "Relu", "Sigmoid", "Linear"};
    mdot_job_operator operators[4];
    for (int i = 0; i < 4; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = types[i], .known = true};
        operators[i].inputs = i > 0 ? &before[i - 1] : NULL;
        operators[i].input_count = i > 0;
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){10, 300, 100};
        operators[i].per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){10, 350, 100};
        if (i % 3 != 0) continue;
        operators[i].parameters = 64;
        operators[i].setting[MDOT_SETTING_CHANNELS_IN] = operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = 8;
    }
    mdot_job *job = predict_make_job(operators, 4);
    assert_int_equal(job->analysis->sharding.role[1], RT_ROLE_SHARDED);
    for (int compiled = 0; compiled < 2; compiled++) {
        for (int tensor = 1; tensor <= 2; tensor++) {
            mdot_configuration c = {.compiled = (uint32_t)compiled, .tensor_parallel = (uint32_t)tensor};
            rt_resolved_configuration r = resolve(job, c, true);
            double forward = SAMPLES * (400 - 200 * compiled) / 2.0 / tensor,
                   data = SAMPLES * (450 - 200 * compiled) / 2.0 / tensor;
            expect(job, 1, &r, forward, data, 0);
            expect(job, 2, &r, SAMPLES * 400 / 2.0 / tensor, SAMPLES * 450 / 2.0 / tensor, 0);
        }
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(phases_have_their_flops_and_bytes),
        cmocka_unit_test(a_matmul_of_another_type_has_that_type_s_rates),
        cmocka_unit_test(decomposed_attention_moves_its_scores),
        cmocka_unit_test(recomputed_operators_run_forward_again),
        cmocka_unit_test(a_fused_loss_has_no_backward_operation),
        cmocka_unit_test(parts_of_the_logits_read_their_weights_again),
        cmocka_unit_test(operands_are_prepared),
        cmocka_unit_test(compiled_activations_pass_their_results_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
