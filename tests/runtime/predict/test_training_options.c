/* test_training_options.c — each training option's effect on step memory and step time; test_parallelism_options.c has
 * the others. */
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Eight blocks (normalisation, matmul, Gelu, matmul), then a matmul outside the blocks. */
enum { BLOCKS = 8, OF_A_BLOCK = 4, COUNT = BLOCKS * OF_A_BLOCK + 1, WIDTH = 1024 };
static const double matrix = (double)WIDTH * WIDTH, norm = 2 * WIDTH;
static const double all_parameters = (2 * BLOCKS + 1) * (double)WIDTH * WIDTH + BLOCKS * 2.0 * WIDTH;
static const double block_parameters = 2 * (double)WIDTH * WIDTH + 2 * WIDTH;

static mdot_job *make_job(bool frozen)
{
    static uint32_t inputs[COUNT];
    mdot_job_operator operators[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        static const char *const types[OF_A_BLOCK] = {"LayerNormalization", "Linear", "Gelu", "Linear"};
        mdot_job_operator *op = &operators[i];
        const char *type = i + 1 < COUNT ? types[i % OF_A_BLOCK] : "Linear";
        bool is_matmul = strcmp(type, "Linear") == 0, is_norm = strcmp(type, "LayerNormalization") == 0;
        *op = (mdot_job_operator){
            .struct_size = sizeof *op, .known = true, .type = type, .block = i + 1 < COUNT ? i / OF_A_BLOCK + 1 : 0};
        for (int phase = 0; phase < (is_matmul ? 3 : 2); phase++)
            op->per_sample[phase] = (mdot_load){is_matmul ? 1e9 : 1e7, 1e5, 1e5};
        if (is_matmul) op->per_step[MDOT_PHASE_FORWARD].bytes_read = 4 * matrix;
        op->setting[MDOT_SETTING_INPUTS] = 1;
        op->parameters = is_matmul ? matrix : is_norm ? norm : 0;
        if (is_norm) op->setting[MDOT_SETTING_AXIS] = 1;
        if (is_matmul) op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = WIDTH;
        if (frozen && is_matmul && i + 1 < COUNT) {
            op->frozen_parameters = op->parameters;
            op->parameters = 0;
            op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){0};
        }
        inputs[i] = i - 1;
        op->inputs = &inputs[i];
        op->input_count = i > 0;
    }
    return predict_make_job(operators, COUNT);
}

#define BASE .struct_size = sizeof(mdot_configuration), .batch = 4, .gpu = "A100-SXM-80GB"

static mdot_prediction predict(const mdot_job *job, mdot_configuration c)
{
    return predict_one(&predict_bandwidth, job, &c);
}

static double peak(const mdot_job *job, mdot_configuration c) { return (double)predict(job, c).peak_memory_bytes; }

static void expect_error(mdot_configuration c, const char *part)
{
    mdot_job *job = make_job(false);
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    assert_int_equal(mdot_predict(predict_bandwidth.context, job, &c, &p, &err), MDOT_INVALID_ARGUMENT);
    if (strstr(err.message, part) == NULL) fail_msg("\"%s\" lacks \"%s\"", err.message, part);
    mdot_job_destroy(job);
}

static bool is_near(double got, double want) { return fabs(got - want) <= 1e-9 * want + 1; }

/* Optimizer state bytes per parameter. */
static void each_optimizer_has_its_state(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    const double quantised = 1 + 4 / 256.0, matrices = 2 * BLOCKS * matrix;
    const struct {
        mdot_optimizer optimizer;
        double bytes;
    } cases[] = {
        {MDOT_OPTIMIZER_SGD, 4 * all_parameters},
        {MDOT_OPTIMIZER_SGD_PLAIN, 0},
        {MDOT_OPTIMIZER_ADAM, 8 * all_parameters},
        {MDOT_OPTIMIZER_ADAMW, 8 * all_parameters},
        {MDOT_OPTIMIZER_ADAMW_FUSED, 8 * all_parameters},
        {MDOT_OPTIMIZER_ADAM8BIT, 2 * quantised * all_parameters},
        {MDOT_OPTIMIZER_ADAMW8BIT, 2 * quantised * all_parameters},
        {MDOT_OPTIMIZER_ADAFACTOR, 4 * ((2 * BLOCKS + 1) * 2.0 * WIDTH + BLOCKS * norm)},
        {MDOT_OPTIMIZER_LION, 4 * all_parameters},
        {MDOT_OPTIMIZER_MUON, 4 * matrices + 8 * (all_parameters - matrices)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_prediction p = predict(job, (mdot_configuration){BASE, .optimizer = cases[i].optimizer});
        if (!is_near(p.optimizer_bytes, cases[i].bytes))
            fail_msg("optimizer %d: %.0f, not %.0f", (int)cases[i].optimizer, p.optimizer_bytes, cases[i].bytes);
        assert_compare(p.weight_bytes, ==, 4 * all_parameters);
    }
    mdot_job_destroy(job);
}

static double update_bytes(const mdot_job *job, mdot_configuration c)
{
    rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
    rt_resolved_configuration resolved;
    assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
    rt_resolve(job, &configuration, &resolved);
    return rt_optimizer_memory_of(job, &resolved).update;
}

static void kernels_decide_the_memory_and_time_of_the_update(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .optimizer = MDOT_OPTIMIZER_ADAMW};
    assert_compare(update_bytes(job, c), ==, 4 * all_parameters);
    double by_default = predict(job, c).step_ms;
    c.optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOREACH;
    assert_compare(update_bytes(job, c), ==, 4 * all_parameters);
    assert_compare(predict(job, c).step_ms, ==, by_default);
    c.optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FUSED;
    assert_compare(update_bytes(job, c), ==, 0);
    assert_compare(predict(job, c).step_ms, <, by_default);
    c.optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOR_LOOP;
    assert_compare(update_bytes(job, c), ==, 4 * matrix);
    assert_compare(predict(job, c).step_ms, >, by_default);
    c.optimizer_kernels = MDOT_OPTIMIZER_KERNELS_DEFAULT;
    c.optimizer = MDOT_OPTIMIZER_ADAMW8BIT;
    assert_compare(update_bytes(job, c), ==, 0);
    c.optimizer = MDOT_OPTIMIZER_MUON;
    assert_compare(predict(job, c).step_ms, >, by_default); /* 5 Newton-Schulz iterations */
    c = (mdot_configuration){BASE, .optimizer = MDOT_OPTIMIZER_ADAMW_FUSED};
    c.optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOR_LOOP;
    expect_error(c, "adamw-fused");
    mdot_job_destroy(job);
}

static void optimizers_with_less_state_take_less_time(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    const mdot_configuration sgd = {BASE}, plain = {BASE, .optimizer = MDOT_OPTIMIZER_SGD_PLAIN};
    assert_compare(predict(job, plain).step_ms, <, predict(job, sgd).step_ms);
    mdot_prediction p = predict(job, plain);
    assert_compare(p.warnings & MDOT_WARN_ANALYTIC_ESTIMATE, !=, 0);
    assert_compare(p.upper_ms, >, p.step_ms);
    mdot_job_destroy(job);
}

static void a_step_in_the_backward_pass_keeps_one_gradient(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .optimizer = MDOT_OPTIMIZER_SGD};
    double before = peak(job, c), before_ms = predict(job, c).step_ms;
    c.step_in_backward = 1;
    mdot_prediction p = predict(job, c);
    assert_compare(p.gradient_bytes, <=, 4 * matrix);
    assert_compare((double)p.peak_memory_bytes, <, before - 3 * all_parameters);
    assert_compare(p.step_ms, >, before_ms); /* a kernel for each tensor */
    c.accumulate = 2;
    expect_error(c, "--step-in-backward");
    mdot_job_destroy(job);
}

/* Weights, gradients and state in bytes per parameter, with gradients throughout the step. */
static void mixed_precision_has_two_weights_below_stage_3(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    const double n = all_parameters;
    mdot_configuration c = {BASE, .optimizer = MDOT_OPTIMIZER_ADAM, .accumulate = 2,
                            .precision = MDOT_PRECISION_MIXED_BF16};
    mdot_prediction p = predict(job, c);
    assert_true(is_near(p.weight_bytes, 2 * n));
    assert_true(is_near(p.gradient_bytes, 2 * n));
    assert_true(is_near(p.optimizer_bytes, 12 * n)); /* fp32 weights and two moments */
    c.gradient_type = MDOT_NUMBER_FP32;
    assert_true(is_near(predict(job, c).gradient_bytes, 4 * n));
    c.zero_stage = 1;
    c.gpu_count = 8;
    p = predict(job, c);
    assert_true(is_near(p.weight_bytes, 2 * n));
    assert_true(is_near(p.gradient_bytes, 4 * n));
    assert_true(is_near(p.optimizer_bytes, 12 * n / 8));
    c.zero_stage = 2;
    assert_true(is_near(predict(job, c).gradient_bytes, 4 * n / 8));
    mdot_configuration fp32 = {BASE, .gradient_type = MDOT_NUMBER_HALF};
    expect_error(fp32, "--gradient-type is half");
    mdot_job_destroy(job);
}

/* FSDP: fp32 shards, two gathered blocks and the outer matmul in bf16. */
static void stage_3_gathers_weights_in_the_type_of_computation(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .optimizer = MDOT_OPTIMIZER_ADAM, .gpu_count = 64, .zero_stage = 3,
                            .precision = MDOT_PRECISION_MIXED_BF16};
    mdot_prediction p = predict(job, c);
    double gathered = 2 * block_parameters + matrix;
    assert_true(is_near(p.weight_bytes, 4 * all_parameters / 64 + 2 * gathered));
    assert_true(is_near(p.optimizer_bytes, 8 * all_parameters / 64));
    double whole = p.gradient_bytes - 4 * all_parameters / 64 * 1; /* at most all shards */
    assert_compare(whole, <=, 2 * (block_parameters + matrix) + 2 * block_parameters);
    c.keep_gathered = 1;
    mdot_prediction kept = predict(job, c);
    assert_compare(kept.peak_memory_bytes, >, p.peak_memory_bytes);
    assert_compare(kept.step_ms, <, p.step_ms); /* the backward pass gathers nothing */
    c.zero_stage = 2;
    expect_error(c, "--keep-gathered");
    mdot_job_destroy(job);
}

/* Autocast under stage 3 copies the gathered block's weights, not the whole network's. */
static void autocast_under_stage_3_copies_a_block(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .optimizer = MDOT_OPTIMIZER_ADAM, .gpu_count = 64, .zero_stage = 3,
                            .precision = MDOT_PRECISION_AMP_BF16};
    mdot_configuration fp32 = c;
    fp32.precision = MDOT_PRECISION_FP32;
    double more = predict(job, c).activation_bytes - predict(job, fp32).activation_bytes;
    assert_compare(more, <, 2 * block_parameters);
    mdot_job_destroy(job);
}

static void sums_in_another_type_take_another_time(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .gpu_count = 64, .node_count = 8, .network_gbps = 0.1};
    double fp32 = predict(job, c).step_ms;
    c.reduce_type = MDOT_NUMBER_HALF;
    double half = predict(job, c).step_ms;
    assert_compare(half, <, 0.6 * fp32);
    assert_compare(half, >, 0.4 * fp32);
    mdot_job_destroy(job);
}

static void offloading_trades_memory_for_transfers(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .optimizer = MDOT_OPTIMIZER_ADAM, .zero_stage = 3, .gpu_count = 8,
                            .precision = MDOT_PRECISION_MIXED_BF16};
    mdot_prediction on_gpu = predict(job, c);
    c.offload = MDOT_OFFLOAD_OPTIMIZER;
    mdot_prediction optimizer = predict(job, c);
    assert_compare(optimizer.optimizer_bytes, ==, 0);
    assert_compare(optimizer.peak_memory_bytes, <, on_gpu.peak_memory_bytes);
    double update_ms = 28 * all_parameters / 112e6; /* at 112 GB/s from a host with eight shards */
    double weights_ms = 2 * all_parameters / 8 / (0.8 * 31.5e6);
    double added = optimizer.step_ms - on_gpu.step_ms;
    assert_compare(added, >, 0.9 * (update_ms + weights_ms) - on_gpu.step_ms);
    assert_compare(added, >, 0);
    c.offload = MDOT_OFFLOAD_PARAMETERS;
    mdot_prediction parameters = predict(job, c);
    assert_compare(parameters.peak_memory_bytes, <, optimizer.peak_memory_bytes);
    assert_true(is_near(parameters.weight_bytes, 2 * (2 * block_parameters + matrix)));
    c.zero_stage = 2;
    expect_error(c, "--parallel zero=3");
    mdot_job_destroy(job);
}

/* Fitting pages cost nothing. The others move to the GPU and back once per step. */
static void pages_that_do_not_fit_are_transferred(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .optimizer = MDOT_OPTIMIZER_ADAM, .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FUSED};
    mdot_prediction on_gpu = predict(job, c);
    c.optimizer_kernels = MDOT_OPTIMIZER_KERNELS_DEFAULT;
    c.offload = MDOT_OFFLOAD_PAGES;
    mdot_prediction paged = predict(job, c);
    assert_compare(paged.optimizer_bytes, ==, 0);
    assert_compare(paged.peak_memory_bytes, <, on_gpu.peak_memory_bytes);
    assert_true(is_near(paged.step_ms, on_gpu.step_ms));
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find(c.gpu, &gpu, NULL), MDOT_OK);
    gpu.memory_gib = (double)paged.reserved_bytes / 0x1p30 / 0.985; /* no state byte fits */
    c.gpu_spec = &gpu;
    c.gpu = NULL;
    mdot_prediction evicted = predict(job, c);
    double pages_ms = 2 * 8 * all_parameters / (0.8 * 1e6 * gpu.pcie_gbps);
    assert_within((evicted.step_ms - paged.step_ms) / pages_ms, 1, 1e-3);
    c.optimizer = MDOT_OPTIMIZER_SGD;
    expect_error(c, "offload is pages");
    mdot_job_destroy(job);
}

static void frozen_weights_are_quantised(void **state)
{
    (void)state;
    mdot_job *job = make_job(true);
    const double frozen = 2 * BLOCKS * matrix, trained = all_parameters - frozen;
    mdot_configuration c = {BASE, .precision = MDOT_PRECISION_BF16};
    mdot_prediction unchanged = predict(job, c);
    assert_compare(unchanged.weight_bytes, ==, 2 * all_parameters);
    c.frozen_weights = MDOT_FROZEN_INT8;
    mdot_prediction int8 = predict(job, c);
    assert_true(is_near(int8.weight_bytes, (1 + 4 / 1024.0) * frozen + 2 * trained));
    c.frozen_weights = MDOT_FROZEN_NF4;
    mdot_prediction nf4 = predict(job, c);
    double bits = 4 + 0.127; /* QLoRA, section 3 */
    assert_within(nf4.weight_bytes, bits / 8 * frozen + 2 * trained, 1e-3 * nf4.weight_bytes);
    assert_compare(nf4.activation_bytes, >=, unchanged.activation_bytes); /* a dequantised matrix */
    c.frozen_weights = MDOT_FROZEN_NF4_SINGLE;
    mdot_prediction single = predict(job, c);
    assert_true(is_near(single.weight_bytes, (0.5 + 4 / 64.0) * frozen + 2 * trained));
    assert_compare(single.step_ms, >, unchanged.step_ms);
    assert_compare(nf4.step_ms, >, unchanged.step_ms);
    assert_compare(int8.step_ms, >, unchanged.step_ms);
    mdot_job_destroy(job);
}

static void a_moving_average_is_an_fp32_copy(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE};
    mdot_prediction without = predict(job, c);
    c.ema = 1;
    mdot_prediction with = predict(job, c);
    assert_true(is_near(with.weight_bytes, without.weight_bytes + 4 * all_parameters));
    assert_compare(with.step_ms, >, without.step_ms);
    mdot_job_destroy(job);
}

/* A matmul from 64 to 1024 columns; a cross-entropy reads its result (a megabyte). */
static mdot_job *make_loss_job(void)
{
    static const uint32_t inputs[2] = {0, 1};
    mdot_job_operator operators[3];
    static const char *const types[3] = {"Linear", "Linear", "SoftmaxCrossEntropyLoss"};
    for (int i = 0; i < 3; i++) {
        double written = i == 0 ? 1e5 : i == 1 ? 1e6 : 0;
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i], .known = true, .type = types[i]};
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
        operators[i].inputs = i > 0 ? &inputs[i - 1] : NULL;
        operators[i].input_count = i > 0;
        for (int phase = 0; phase < (i < 2 ? 3 : 2); phase++)
            operators[i].per_sample[phase] = (mdot_load){1e6, i < 2 ? 1e5 : 1e6, written};
        if (i == 2) break;
        for (int phase = 0; phase < 3; phase++) operators[i].per_step[phase].bytes_read = 4e4;
        operators[i].parameters = 1e4;
        operators[i].setting[MDOT_SETTING_CHANNELS_IN] = 64;
        operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = i == 0 ? 64 : 1024;
    }
    return predict_make_job(operators, 3);
}

static void other_kernels_of_the_loss_keep_fewer_logits(void **state)
{
    (void)state;
    mdot_job *job = make_loss_job();
    mdot_configuration c = {BASE, .precision = MDOT_PRECISION_AMP_BF16};
    c.batch = 8;
    mdot_prediction whole = predict(job, c);
    c.loss = MDOT_LOSS_CHUNKED;
    mdot_prediction chunked = predict(job, c);
    c.loss = MDOT_LOSS_FUSED;
    mdot_prediction fused = predict(job, c);
    /* The fp32 logit copy, the log probabilities and their gradient are an eighth. */
    assert_true(is_near(whole.activation_bytes - chunked.activation_bytes, 3 * 8 * 1e6 * 7 / 8));
    assert_compare(fused.activation_bytes, <, 0.4 * chunked.activation_bytes);
    /* Parts read the 10,000 two-byte weights again, and add up gradients. A fused loss also saves fp32 logits. */
    {
        assert_compare(fused.step_ms, <, whole.step_ms);
        assert_compare(chunked.step_ms, >, whole.step_ms);
    }
    assert_compare(fused.gradient_bytes, >, 0); /* the matmul's, in the forward pass */
    mdot_job_destroy(job);
    mdot_configuration without = {BASE, .loss = MDOT_LOSS_FUSED};
    expect_error(without, "no cross-entropy");
}

/* FP8 doubles the matmul rate and costs casts, which compiled code fuses. Memory is as in mixed-bf16. */
static void fp8_needs_its_gpu_and_costs_casts(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .compiled = 1, .precision = MDOT_PRECISION_MIXED_BF16};
    c.gpu = "B200";
    mdot_prediction bf16 = predict(job, c);
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP8, MDOT_PRECISION_FP8_ROWWISE, MDOT_PRECISION_MXFP8,
                                                MDOT_PRECISION_FP8_BLOCKWISE};
    for (size_t i = 0; i < 4; i++) {
        c.precision = precisions[i];
        mdot_prediction fp8 = predict(job, c);
        assert_compare(fp8.peak_memory_bytes, ==, bf16.peak_memory_bytes);
        assert_compare(fp8.step_ms, >, 0.5 * bf16.step_ms);
    }
    c.gpu = "H100";
    c.precision = MDOT_PRECISION_FP8_ROWWISE;
    double by_row = predict(job, c).step_ms;
    c.precision = MDOT_PRECISION_FP8;
    double by_tensor = predict(job, c).step_ms;
    assert_compare(by_row, >, by_tensor); /* each matmul needs casts of its own */
    c.framework = MDOT_FRAMEWORK_TRANSFORMER_ENGINE;
    by_tensor = predict(job, c).step_ms; /* casts are kept for the backward pass */
    assert_compare(by_tensor, <, by_row);
    c.precision = MDOT_PRECISION_FP8_BLOCKWISE;
    assert_compare(predict(job, c).step_ms, >, by_tensor); /* slower matmuls */
    mdot_job_destroy(job);
    c.gpu = "A100";
    expect_error(c, "A100-SXM-40GB lacks FP8");
    c.gpu = "H100";
    c.precision = MDOT_PRECISION_MXFP8;
    expect_error(c, "H100-SXM-80GB lacks MX formats");
    mdot_gpu without = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("H100", &without, NULL), MDOT_OK);
    without.fp8_tflops = 0;
    without.name = "H1";
    mdot_configuration by_spec = {
        .struct_size = sizeof by_spec, .batch = 1, .gpu_spec = &without, .precision = MDOT_PRECISION_FP8};
    expect_error(by_spec, "H1 lacks FP8");
}

/* Parts add up to the peak for all these options, and explanations add up to the prediction. */
/* A step takes the longer of the GPU's time and of the data loaders', and nothing else changes. */
static void a_step_takes_as_long_as_its_data_loaders(void **state)
{
    (void)state;
    const mdot_configuration bases[] = {{BASE},
                                        {BASE, .accumulate = 3},
                                        {BASE, .gpu_count = 8, .node_count = 2},
                                        {BASE, .tensor_parallel = 2, .data_parallel = 4}};
    const double samples[] = {4, 12, 32, 16}, parts[] = {1e-3, 0.5, 0.999, 1.001, 1.2, 2, 1e3};
    mdot_job *job = make_job(false);
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        mdot_prediction plain = predict(job, bases[i]);
        predict_assert_close(plain.gpu_ms, plain.step_ms);
        assert_compare(plain.loader_ms, ==, 0);
        for (size_t k = 0; k < 2 * sizeof parts / sizeof *parts; k++) {
            double wanted_ms = parts[k / 2] * plain.step_ms, rate = samples[i] / wanted_ms * 1000;
            mdot_configuration c = bases[i];
            c.loader_rate = k % 2 == 0 ? rate : 4 * rate;
            if (k % 2 == 1) c.cpu_rate = rate / 9, c.cpus = 12; /* a quarter and three quarters of the time */
            mdot_prediction p = predict(job, c);
            predict_assert_close(p.loader_ms, wanted_ms);
            predict_assert_close(p.step_ms, fmax(plain.step_ms, wanted_ms));
            predict_assert_close(p.lower_ms, fmax(plain.lower_ms, wanted_ms));
            predict_assert_close(p.upper_ms, fmax(plain.upper_ms, wanted_ms));
            predict_assert_close(p.compute_share * p.step_ms, plain.compute_share * plain.step_ms);
            assert_compare(p.gpu_ms, ==, plain.gpu_ms);
            assert_compare(p.implausible, ==, plain.implausible);
            assert_compare(p.warnings, ==, plain.warnings);
            assert_compare(p.reserved_bytes, ==, plain.reserved_bytes);
        }
    }
    mdot_job_destroy(job);
    expect_error((mdot_configuration){BASE, .cpu_rate = 100}, "--cpu-rate needs --cpus");
    expect_error((mdot_configuration){BASE, .cpus = 8}, "--cpus needs --cpu-rate");
    expect_error((mdot_configuration){BASE, .cpus = 8, .loader_rate = 3}, "--cpus needs --cpu-rate");
    expect_error((mdot_configuration){BASE, .loader_rate = -1}, "--loader-rate");
}

/* Parameter servers keep the optimizer's state, and refuse to share their work. */
static void parameter_servers_keep_the_state(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    mdot_configuration c = {BASE, .gpu_count = 4, .optimizer = MDOT_OPTIMIZER_ADAM};
    c.offload = MDOT_OFFLOAD_OPTIMIZER;
    double without_state = peak(job, c);
    c.offload = MDOT_OFFLOAD_NOTHING;
    assert_compare(without_state, <, peak(job, c));
    c.servers = 2;
    mdot_prediction bsp = predict(job, c);
    assert_compare(peak(job, c), ==, without_state);
    assert_compare(bsp.collective_bytes, ==, 0);
    c.sync = MDOT_SYNC_ASP;
    mdot_prediction asp = predict(job, c);
    assert_compare(asp.step_ms, <, bsp.step_ms);
    assert_true((asp.warnings & ~bsp.warnings & MDOT_WARN_STALE_GRADIENTS) != 0);
    mdot_job_destroy(job);
    expect_error((mdot_configuration){BASE, .servers = 2}, "at least two workers");
    expect_error((mdot_configuration){BASE, .tensor_parallel = 2, .servers = 2}, "leave tp");
    expect_error((mdot_configuration){BASE, .gpu_count = 2, .zero_stage = 1, .servers = 2}, "zero");
    expect_error((mdot_configuration){BASE, .gpu_count = 2, .sync = MDOT_SYNC_ASP}, "needs --parallel ps");
}

static void parts_and_explanations_add_up(void **state)
{
    (void)state;
    mdot_job *job = make_job(false);
    const mdot_configuration cases[] = {
        {BASE, .optimizer = MDOT_OPTIMIZER_MUON, .ema = 1},
        {BASE, .optimizer = MDOT_OPTIMIZER_ADAM, .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOR_LOOP},
        {BASE, .zero_stage = 3, .gpu_count = 8, .offload = MDOT_OFFLOAD_PARAMETERS},
        {BASE, .precision = MDOT_PRECISION_MIXED_FP16, .step_in_backward = 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_prediction p = predict(job, cases[i]);
        double sum = p.weight_bytes + p.gradient_bytes + p.optimizer_bytes + p.activation_bytes;
        assert_compare(fabs(sum - (double)p.peak_memory_bytes), <=, 1);
        mdot_explanation *explanation = NULL;
        mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
        assert_int_equal(mdot_explain(predict_bandwidth.context, job, &cases[i], &explanation, NULL), MDOT_OK);
        assert_int_equal(mdot_explanation_get_info(explanation, &info), MDOT_OK);
        double ms = info.forward_ms + info.data_gradient_ms + info.weight_gradient_ms + info.optimizer_ms +
                    info.host_ms + info.communication_ms + info.idle_ms;
        if (fabs(ms - p.step_ms) > 1e-6 * p.step_ms) fail_msg("case %zu: %g ms, not %g", i, ms, p.step_ms);
        mdot_explanation_destroy(explanation);
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_optimizer_has_its_state),
        cmocka_unit_test(kernels_decide_the_memory_and_time_of_the_update),
        cmocka_unit_test(optimizers_with_less_state_take_less_time),
        cmocka_unit_test(a_step_in_the_backward_pass_keeps_one_gradient),
        cmocka_unit_test(mixed_precision_has_two_weights_below_stage_3),
        cmocka_unit_test(stage_3_gathers_weights_in_the_type_of_computation),
        cmocka_unit_test(autocast_under_stage_3_copies_a_block),
        cmocka_unit_test(sums_in_another_type_take_another_time),
        cmocka_unit_test(offloading_trades_memory_for_transfers),
        cmocka_unit_test(pages_that_do_not_fit_are_transferred),
        cmocka_unit_test(frozen_weights_are_quantised),
        cmocka_unit_test(a_moving_average_is_an_fp32_copy),
        cmocka_unit_test(other_kernels_of_the_loss_keep_fewer_logits),
        cmocka_unit_test(fp8_needs_its_gpu_and_costs_casts),
        cmocka_unit_test(a_step_takes_as_long_as_its_data_loaders),
        cmocka_unit_test(parameter_servers_keep_the_state),
        cmocka_unit_test(parts_and_explanations_add_up),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
