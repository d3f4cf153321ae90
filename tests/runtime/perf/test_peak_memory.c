/* test_peak_memory.c — peak step memory on one GPU: the amount that each configuration option adds or saves. */
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/sharding.h"
#include "tests/support/assertions.h"
#include "tests/support/memory_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static double peak(const mdot_job *job, mdot_configuration c)
{
    rt_memory memory = memory_measure(job, c);
    return (double)rt_sum_memory(&memory);
}

typedef struct memory_case {
    mdot_configuration c;
    double bytes;
} memory_case;

static void check(const mdot_job *job, const memory_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double got = peak(job, cases[i].c);
        if (got != cases[i].bytes) fail_msg("case %zu: %.0f, not %.0f", i, got, cases[i].bytes);
    }
}

/* The largest sum of `samples` samples' activations and the gradients beside them. */
static double passing(const mdot_job *job, rt_activation_case which, double samples, double gradients)
{
    const rt_activations *a = &job->analysis->activations.of[which.type][which.attention][which.recompute];
    double largest = 0;
    for (size_t i = 0; i < a->moment_count; i++) {
        double bytes = samples * a->moments[i].all + gradients * a->moments[i].gradients;
        if (bytes > largest) largest = bytes;
    }
    return largest;
}

static double activations(const mdot_job *job, rt_activation_type type, mdot_attention attention,
                          mdot_recompute recompute)
{
    return job->analysis->activations.of[type][attention][recompute].all;
}

static void peak_is_weights_gradients_state_and_activations(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(1);
    const rt_activation_case fp32 = {.type = RT_ACTIVATION_FP32}, amp = {.type = RT_ACTIVATION_AMP},
                             bf16 = {.type = RT_ACTIVATION_BF16},
                             eager = {.type = RT_ACTIVATION_FP32, .attention = MDOT_ATTENTION_EAGER},
                             blocks = {.type = RT_ACTIVATION_FP32, .recompute = MDOT_RECOMPUTE_BLOCKS},
                             selective = {.type = RT_ACTIVATION_FP32, .recompute = MDOT_RECOMPUTE_SELECTIVE};
    static const double w = 4 * 1024;
    double a = passing(job, fp32, 3, w), h = passing(job, amp, 3, w);
    const memory_case cases[] = {
        {{.batch = 3}, 2 * w + a},
        {{.batch = 3, .precision = MDOT_PRECISION_TF32}, 2 * w + a},
        {{.batch = 3, .precision = MDOT_PRECISION_PYTORCH}, 2 * w + a},
        {{.batch = 3, .precision = MDOT_PRECISION_AMP}, 2 * w + h + 2 * 1000},
        {{.batch = 3, .precision = MDOT_PRECISION_AMP_BF16}, 2 * w + h + 2 * 1000},
        {{.batch = 3, .precision = MDOT_PRECISION_BF16}, 2 * w / 2 + passing(job, bf16, 3, w / 2)},
        {{.batch = 3, .optimizer = MDOT_OPTIMIZER_ADAM}, 3 * w + a},
        {{.batch = 3, .optimizer = MDOT_OPTIMIZER_ADAMW}, 3 * w + a},
        {{.batch = 3, .gpu_count = 1}, 2 * w + a},
        {{.batch = 3, .gpu_count = 2}, 3 * w + a},
        {{.batch = 3, .layout = MDOT_LAYOUT_NHWC}, 2 * w + a},
        /* All gradients exist in the last of eight passes. */
        {{.batch = 3, .accumulate = 8}, 3 * w + 3 * activations(job, RT_ACTIVATION_FP32, 0, 0)},
        {{.batch = 3, .attention = MDOT_ATTENTION_EAGER}, 2 * w + passing(job, eager, 3, w)},
        {{.batch = 3, .recompute = MDOT_RECOMPUTE_BLOCKS}, 2 * w + passing(job, blocks, 3, w)},
        {{.batch = 3, .compiled = 1}, 2 * w + passing(job, selective, 3, w)},
        {{.batch = 1 << 24}, 2 * w + passing(job, fp32, 1 << 24, w)},
    };
    check(job, cases, sizeof cases / sizeof *cases);
    mdot_job_destroy(job);
}

/* A chain of two matmuls: the second has all parameters and a small result. With few samples, the peak is after its
 * gradient; with many, before any gradient. */
static void gradients_begin_in_the_backward_pass(void **state)
{
    (void)state;
    static const uint32_t before[2] = {0, 1};
    mdot_job_operator operators[2] = {memory_operator("Linear", 1, 1000), memory_operator("Linear", 1, 9000)};
    operators[1].inputs = before;
    operators[1].input_count = 1;
    mdot_job *job = predict_make_job(operators, 2);
    const rt_activation_case fp32 = {.type = RT_ACTIVATION_FP32};
    double a = activations(job, RT_ACTIVATION_FP32, 0, 0);
    assert_compare(peak(job, (mdot_configuration){.batch = 1}), ==, 2 * 40000 + passing(job, fp32, 1, 40000));
    assert_compare(passing(job, fp32, 1, 40000), >, a);
    assert_compare(peak(job, (mdot_configuration){.batch = 1, .accumulate = 2}), ==, 3 * 40000 + a);
    assert_compare(peak(job, (mdot_configuration){.batch = 1000}), <, 3 * 40000 + 1000 * a);
    mdot_job_destroy(job);
}

/* Adam on four workers: each ZeRO stage shards one more part. 1000 of the 1024 parameters are in the block. */
static void zero_shards_over_workers(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(1);
    double a = activations(job, RT_ACTIVATION_FP32, 0, 0);
    static const double w = 4 * 1024;
    const mdot_configuration adam = {.batch = 4, .gpu_count = 4, .accumulate = 2, .optimizer = MDOT_OPTIMIZER_ADAM};
    mdot_configuration c[4] = {adam, adam, adam, adam};
    for (uint32_t stage = 0; stage <= 3; stage++) c[stage].zero_stage = stage;
    const memory_case cases[] = {
        {c[0], w + 2 * w + 2 * w + 4 * a},
        {c[1], w + w + 2 * w / 4 + 4 * a},
        {c[2], w + w / 4 + 2 * w / 4 + 4 * a},
    };
    check(job, cases, sizeof cases / sizeof *cases);
    /* Stage 3 also has the whole block and the outer normalisation, and in the backward pass their gradients and the
     * block gradients under summation. */
    double shards = w / 4 + w / 4 + 2 * w / 4, gathered = 4 * 1024, whole_gradients = 4 * 1024 + 4 * 1000;
    const rt_activations *fp32 = &job->analysis->activations.of[RT_ACTIVATION_FP32][0][0];
    double largest = 0;
    for (size_t i = 0; i < fp32->moment_count; i++) {
        double bytes = 4 * fp32->moments[i].all + (fp32->moments[i].gradients > 0 ? whole_gradients : 0);
        if (bytes > largest) largest = bytes;
    }
    assert_compare(peak(job, c[3]), ==, shards + gathered + largest);
    mdot_job_destroy(job);
}

static void tensor_parallelism_shards_matmuls(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(1);
    const rt_activations *a = &job->analysis->activations.of[RT_ACTIVATION_FP32][0][0];
    assert_int_equal(job->analysis->sharding.role[1], RT_ROLE_COLUMNS);
    assert_compare(a->whole, <, a->all);
    double weights = 4 * (24 + 1000 / 4.0), sample = a->whole + (a->all - a->whole) / 4;
    assert_compare(peak(job, (mdot_configuration){.batch = 1, .tensor_parallel = 4, .accumulate = 2}), ==,
                   3 * weights + sample);
    mdot_job_destroy(job);
}

/* Two blocks, one per stage. One stage may also have the normalisation before the blocks. The number of micro-batches
 * in flight is the number of stages or, if it is smaller, the number of micro-batches. */
static void pipeline_parallelism_distributes_blocks(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(2);
    double a = activations(job, RT_ACTIVATION_FP32, 0, 0);
    double weights =
        4 *
        (1000 / 2.0 +
         (job->analysis->sharding.cost[RT_PIPELINE_BEFORE] > job->analysis->sharding.cost[RT_PIPELINE_AFTER] ? 24 : 0));
    mdot_configuration c = {.batch = 8, .pipeline_parallel = 2, .micro_batches = 4};
    double sent = job->analysis->sharding.border_bytes;
    assert_compare(sent, ==, 8 * MEMORY_UNIT);
    assert_compare(peak(job, c), ==, 3 * weights + 2 * 2 * (a / 2 + sent));
    c.micro_batches = 1;
    c.accumulate = 2;
    assert_compare(peak(job, c), ==, 3 * weights + 8 * 2 * (a / 2 + sent));
    mdot_job_destroy(job);
}

/* A table of 8 x 50, blocks of 600 and 400 parameters, and a head (tied to the table if `own` is 0). */
static mdot_job *language_model(double own)
{
    static const uint32_t before[4] = {0, 1, 2, 3};
    mdot_job_operator operators[4] = {memory_operator("Gather", 2, 400), memory_operator("Linear", 2, 600),
                                      memory_operator("Linear", 2, 400), memory_operator("Linear", 2, own)};
    for (int i = 1; i < 4; i++) {
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
        operators[i].block = i < 3 ? (uint32_t)i : 0;
        operators[i].setting[MDOT_SETTING_CHANNELS_IN] = 8;
        operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = 50;
        operators[i].per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){1e9, MEMORY_UNIT, MEMORY_UNIT};
    }
    return predict_make_job(operators, 4);
}

/* The first stage has the table, and keeps two micro-batches with their results. The last one has the head, and keeps
 * one. A head that is tied to the table adds a copy of it to the last stage. */
static void stages_of_a_pipeline_have_one_end_each(void **state)
{
    (void)state;
    static const double heads[] = {0, 100, 400, 100000};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        mdot_job *job = language_model(heads[i]);
        double a = activations(job, RT_ACTIVATION_FP32, 0, 0);
        mdot_configuration c = {.batch = 8, .pipeline_parallel = 2, .micro_batches = 4};
        double copy = heads[i] > 0 ? heads[i] : 400;
        double sent = job->analysis->sharding.border_bytes;
        double first = 3 * 4 * (400 + 500) + 2 * 2 * (a / 2 + sent), last = 3 * 4 * (500 + copy) + 2 * a / 2;
        assert_compare(peak(job, c), ==, first > last ? first : last);
        c.precision = MDOT_PRECISION_MIXED_BF16; /* the flat gradients are those of the same stage */
        rt_memory mixed = memory_measure(job, c);
        assert_compare(mixed.flat, >, 0);
        assert_compare(mixed.flat, ==, 3 * mixed.weights);
        mdot_job_destroy(job);
    }
    mdot_job *job = language_model(0);
    const rt_sharding *d = &job->analysis->sharding;
    assert_compare(d->tied.all[RT_PIPELINE_AFTER], ==, 400);
    assert_compare(d->frozen_tied.all[RT_PIPELINE_AFTER], ==, 0);
    rt_shard last = {1, 1, {0, .5, 1}, 0};
    assert_compare(rt_sum_elements(rt_trained_part(&job->analysis->sharding, &last)), ==, 900);
    mdot_job_destroy(job);
}

/* DeepSpeed's BF16_Optimizer keeps half-precision gradients beside the fp32 ones. Megatron adds each at once. */
static void half_gradients_may_stay_beside_fp32_ones(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(0);
    mdot_configuration c = {
        .batch = 1, .precision = MDOT_PRECISION_MIXED_BF16, .gradient_type = MDOT_NUMBER_FP32, .zero_stage = 1};
    double megatron = peak(job, c);
    c.reduce_type = MDOT_NUMBER_HALF;
    assert_compare(peak(job, c), ==, megatron + 2 * 1024);
    mdot_job_destroy(job);
}

/* The flat gradients, in half precision and in fp32, are those of an update on the GPU. */
static void an_update_on_the_host_takes_no_memory(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(0);
    mdot_configuration c = {.batch = 1, .precision = MDOT_PRECISION_MIXED_BF16, .zero_stage = 1};
    assert_compare(memory_measure(job, c).flat, ==, (2 + 4) * 1024);
    assert_compare(memory_measure(job, c).optimizer, >, 0);
    c.offload = MDOT_OFFLOAD_OPTIMIZER;
    rt_memory m = memory_measure(job, c);
    assert_compare(m.flat, ==, 0);
    assert_compare(m.optimizer, ==, 0);
    mdot_job_destroy(job);
}

/* Managed memory is outside PyTorch's allocator. The fp32 weights of mixed precision are not managed. */
static void pages_of_the_optimizer_are_not_allocated(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(0);
    mdot_configuration c = {.batch = 1, .optimizer = MDOT_OPTIMIZER_ADAMW, .offload = MDOT_OFFLOAD_PAGES};
    assert_compare(memory_measure(job, c).optimizer, ==, 0);
    c.precision = MDOT_PRECISION_MIXED_BF16;
    assert_compare(memory_measure(job, c).optimizer, ==, 4 * 1024);
    assert_compare(memory_measure(job, c).flat, ==, (2 + 4) * 1024); /* the GPU updates */
    mdot_job_destroy(job);
}

/* The first gradients of the backward pass are smaller than the largest one. */
static void update_in_the_backward_pass_never_adds_gradients(void **state)
{
    (void)state;
    mdot_job_operator operators[2] = {memory_operator("Linear", 1, 1000), memory_operator("Linear", 1000, 10)};
    static const uint32_t before = 0;
    operators[1].inputs = &before;
    operators[1].input_count = 1;
    mdot_job *job = predict_make_job(operators, 2);
    mdot_configuration c = {.batch = 1 << 10};
    rt_memory whole = memory_measure(job, c);
    c.step_in_backward = 1;
    rt_memory by_tensor = memory_measure(job, c);
    assert_compare(whole.gradients, <, 4 * 1000);
    assert_compare(by_tensor.gradients, <=, whole.gradients);
    mdot_job_destroy(job);
}

/* The activations are small, so the temporary memory of Adam's update is larger. */
static void update_of_adam_may_be_the_peak(void **state)
{
    (void)state;
    mdot_job_operator op = memory_operator("Linear", 1, 1e6);
    mdot_job *job = predict_make_job(&op, 1);
    mdot_configuration c = {.batch = 1, .optimizer = MDOT_OPTIMIZER_ADAMW};
    assert_compare(peak(job, c), ==, 5 * 4 * 1000000);
    c.optimizer = MDOT_OPTIMIZER_SGD;
    assert_compare(peak(job, c), <, 4 * 4 * 1000000);
    c = (mdot_configuration){.batch = 1, .optimizer = MDOT_OPTIMIZER_ADAMW, .offload = MDOT_OFFLOAD_OPTIMIZER};
    assert_compare(peak(job, c), <, 3 * 4 * 1000000); /* the host has the temporary memory */
    mdot_job_destroy(job);
}

/* A matmul chain with results of 1, 2 and 4 units; their gradients have 1.25, 5 and 3.75. Moments have 10 tensor units
 * and 3.75 gradient units, then 5 and 8.75, then 2 and 10. The first of equal moments is the peak. */
static void the_first_of_equal_moments_is_the_peak(void **state)
{
    (void)state;
    static const uint32_t before[2] = {0, 1};
    mdot_job_operator operators[3] = {memory_operator("Linear", 1, 1280), memory_operator("Linear", 2, 5120),
                                      memory_operator("Linear", 4, 3840)};
    for (int i = 1; i < 3; i++) {
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
    }
    mdot_job *job = predict_make_job(operators, 3);
    rt_memory m = memory_measure(job, (mdot_configuration){.batch = 1});
    assert_compare(m.activations, ==, 10 * MEMORY_UNIT);
    assert_compare(m.gradients, ==, 3.75 * MEMORY_UNIT);
    mdot_job_destroy(job);
}

static void overflowing_peak_saturates(void **state)
{
    (void)state;
    mdot_job_operator operators[100];
    for (size_t i = 0; i < 100; i++) {
        operators[i] = (mdot_job_operator){
            .struct_size = sizeof(mdot_job_operator), .type = "Magic", .parameters = RT_JOB_MAX_COUNT};
        operators[i].per_sample[MDOT_PHASE_FORWARD].bytes_written = RT_JOB_MAX_COUNT;
    }
    mdot_job *job = predict_make_job(operators, 100);
    assert_compare(peak(job, (mdot_configuration){.batch = 1 << 24}), ==, (double)UINT64_MAX);
    mdot_job_destroy(job);
    const rt_memory largest = {.weights = 0x1p64 - 2048}, overflows = {.weights = 0x1p63, .optimizer = 0x1p63};
    assert_compare(rt_sum_memory(&largest), ==, UINT64_MAX - 2047);
    assert_compare(rt_sum_memory(&overflows), ==, UINT64_MAX);
}

/* A table of 10,000 elements (8 picked per sample) beside a matmul of 100 parameters. */
static void sparse_gradients_have_the_picked_rows(void **state)
{
    (void)state;
    static const uint32_t before = 0;
    mdot_job_operator operators[2] = {memory_operator("Gather", 1, 10000), memory_operator("Linear", 1, 100)};
    operators[0].per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * 8;
    operators[1].inputs = &before;
    operators[1].input_count = 1;
    mdot_job *job = predict_make_job(operators, 2);
    double a = activations(job, RT_ACTIVATION_FP32, 0, 0), weights = 4 * 10100;
    const memory_case cases[] = {
        /* Both passes of a step look up rows; all gradients exist in the second one. */
        {{.batch = 1, .accumulate = 2}, weights + 2 * 4 * (100 + 16) + a},
        {{.batch = 10, .accumulate = 2}, weights + 2 * 4 * (100 + 160) + 10 * a},
        {{.batch = 10000, .accumulate = 2}, weights + 2 * weights + 10000 * a}, /* at most the whole table */
        {{.batch = 1, .accumulate = 2, .optimizer = MDOT_OPTIMIZER_ADAM}, weights + 4 * (100 + 16) + 2 * weights + a},
        /* One gradient at a time: the matmul's, and the picked rows. */
        {{.batch = 1, .step_in_backward = 1}, weights + 2 * 4 * (100 + 8) + a},
    };
    check(job, cases, sizeof cases / sizeof *cases);
    /* The matmul's gradient is the only dense one. */
    assert_compare(job->analysis->activations.of[RT_ACTIVATION_FP32][0][0].moments[0].gradients, ==, 1);
    mdot_job_destroy(job);
}

/* All weights are 0, and fractions of them are undefined. */
static void networks_without_parameters_have_activations(void **state)
{
    (void)state;
    const mdot_job_operator relu = memory_operator("Relu", 8, 0);
    mdot_job *job = predict_make_job(&relu, 1);
    double plain = peak(job, (mdot_configuration){.batch = 4});
    assert_compare(plain, >, 0);
    const memory_case cases[] = {
        {{.batch = 4, .gpu_count = 2, .data_parallel = 2, .zero_stage = 3}, plain},
        {{.batch = 4, .gpu_count = 2, .data_parallel = 2, .zero_stage = 3, .keep_gathered = 1}, plain},
        {{.batch = 4, .frozen_weights = MDOT_FROZEN_NF4}, plain},
    };
    check(job, cases, sizeof cases / sizeof *cases);
    mdot_job_destroy(job);
}

/* The largest forward moment is the first Linear's: a result of 8 units beside an operand of 2. */
static void inference_has_weights_and_live_tensors(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(1);
    static const double w = 4 * 1024;
    const mdot_configuration c = {.batch = 3, .mode = MDOT_MODE_INFERENCE, .optimizer = MDOT_OPTIMIZER_ADAM};
    rt_memory m = memory_measure(job, c);
    assert_compare(m.weights, ==, w);
    assert_compare(m.gradients, ==, 0);
    assert_compare(m.optimizer, ==, 0);
    const rt_activation_case inference = {.type = RT_ACTIVATION_FP32, .is_inference = true};
    assert_compare(m.activations, ==, 3 * rt_activations_of(&job->analysis->activations, &inference)->all);
    assert_compare(m.activations, >=, 3 * (2 + 8) * MEMORY_UNIT);
    assert_compare(m.activations, <=, 3 * (1 + 8 + 8) * MEMORY_UNIT);
    assert_compare(m.activations, <, 3 * activations(job, RT_ACTIVATION_FP32, 0, 0));
    mdot_configuration half = c;
    half.precision = MDOT_PRECISION_BF16;
    assert_compare(memory_measure(job, half).weights, ==, w / 2);
    half.precision = MDOT_PRECISION_MIXED_BF16;
    m = memory_measure(job, half);
    assert_compare(m.weights, ==, w / 2);
    assert_compare(m.gradients, ==, 0);
    assert_compare(m.optimizer, ==, 0);
    assert_compare(m.flat, ==, 0);
    mdot_job_destroy(job);
}

/* Sequence parallelism divides the results that a stage sends, too. */
static void stages_send_parts_of_sequences(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(2);
    mdot_configuration c = {
        .batch = 8000, .pipeline_parallel = 2, .micro_batches = 4, .tensor_parallel = 2, .sequence_parallel = 1};
    double all = activations(job, RT_ACTIVATION_FP32, 0, 0);
    assert_compare(memory_measure(job, c).pass_activations, ==, 2 * 2000 * (all / 2 / 2 + 8 * MEMORY_UNIT / 2));
    mdot_job_destroy(job);
}

/* The largest gradient has 600 parameters. From ZeRO stage 2 on, one GPU in four keeps a quarter. */
static void update_in_the_backward_pass_has_the_largest_gradient(void **state)
{
    (void)state;
    mdot_job *job = memory_small_network(1);
    for (uint32_t stage = 1; stage <= 2; stage++) {
        mdot_configuration c = {.batch = 1,
                                .gpu_count = 4,
                                .zero_stage = stage,
                                .precision = MDOT_PRECISION_MIXED_BF16,
                                .gradient_type = MDOT_NUMBER_FP32,
                                .step_in_backward = 1};
        assert_compare(memory_measure(job, c).gradients, ==, 4 * 600 / (stage == 1 ? 1 : 4));
    }
    mdot_job_destroy(job);
}

/* Quantised weights: 600 in a byte or half a byte each, with scales. One matrix at a time is dequantised to the compute
 * type, beside autocast copies of the 400 other weights. */
static void quantised_weights_are_dequantised_one_by_one(void **state)
{
    (void)state;
    static const uint32_t before[2] = {0, 1};
    mdot_job_operator operators[3] = {memory_operator("Linear", 2, 0), memory_operator("Linear", 2, 0),
                                      memory_operator("Linear", 2, 400)};
    operators[0].frozen_parameters = 250;
    operators[1].frozen_parameters = 350;
    for (int i = 1; i < 3; i++) {
        operators[i].inputs = &before[i - 1];
        operators[i].input_count = 1;
    }
    mdot_job *job = predict_make_job(operators, 3);
    static const struct {
        mdot_precision precision;
        double width, copies; /* bytes per weight; bytes of half-precision copies */
    } cases[] = {{MDOT_PRECISION_FP32, 4, 4 * 350},
                 {MDOT_PRECISION_AMP_BF16, 4, 2 * 400 + 2 * 350},
                 {MDOT_PRECISION_BF16, 2, 2 * 350}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = {.batch = 1, .precision = cases[i].precision, .frozen_weights = MDOT_FROZEN_INT8};
        rt_memory m = memory_measure(job, c);
        assert_compare(m.weights, ==, cases[i].width * 400 + 600 * (1 + 4.0 / 1024));
        assert_compare(m.half_weights, ==, cases[i].copies);
        c.frozen_weights = MDOT_FROZEN_NF4;
        m = memory_measure(job, c);
        assert_compare(m.weights, ==, cases[i].width * 400 + 600 * (0.5 + 1 / 64.0 + 1 / 4096.0));
        assert_compare(m.half_weights, ==, cases[i].copies);
        c.frozen_weights = MDOT_FROZEN_UNCHANGED;
        m = memory_measure(job, c);
        assert_compare(m.weights, ==, cases[i].width * 1000);
        assert_compare(m.half_weights, ==, cases[i].precision == MDOT_PRECISION_AMP_BF16 ? 2 * 1000 : 0);
    }
    mdot_job_destroy(job);
    operators[0].frozen_parameters = 1;
    job = predict_make_job(operators, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = {.batch = 1, .precision = cases[i].precision, .frozen_weights = MDOT_FROZEN_INT8};
        assert_compare(memory_measure(job, c).half_weights, ==, cases[i].precision == MDOT_PRECISION_FP32 ? 4 : 2);
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peak_is_weights_gradients_state_and_activations),
        cmocka_unit_test(gradients_begin_in_the_backward_pass),
        cmocka_unit_test(zero_shards_over_workers),
        cmocka_unit_test(tensor_parallelism_shards_matmuls),
        cmocka_unit_test(pipeline_parallelism_distributes_blocks),
        cmocka_unit_test(stages_of_a_pipeline_have_one_end_each),
        cmocka_unit_test(half_gradients_may_stay_beside_fp32_ones),
        cmocka_unit_test(an_update_on_the_host_takes_no_memory),
        cmocka_unit_test(pages_of_the_optimizer_are_not_allocated),
        cmocka_unit_test(update_in_the_backward_pass_never_adds_gradients),
        cmocka_unit_test(update_of_adam_may_be_the_peak),
        cmocka_unit_test(the_first_of_equal_moments_is_the_peak),
        cmocka_unit_test(overflowing_peak_saturates),
        cmocka_unit_test(sparse_gradients_have_the_picked_rows),
        cmocka_unit_test(inference_has_weights_and_live_tensors),
        cmocka_unit_test(networks_without_parameters_have_activations),
        cmocka_unit_test(stages_send_parts_of_sequences),
        cmocka_unit_test(update_in_the_backward_pass_has_the_largest_gradient),
        cmocka_unit_test(quantised_weights_are_dequantised_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
