/* test_option_effects.c — every training option, and every choice, changes step time and step memory. If it changes
 * only one, a row in the table below states the reason. A new option or choice without a row fails.
 *
 * The predictor reads the batch alone, so all effects are analytic estimates. */
#include "runtime/job/configuration_table.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A convolution; eight blocks (normalisation, matmul, attention, frozen matmul, router, experts, activation); the logit
 * matmul, and a cross-entropy. */
enum { BLOCKS = 8, EACH = 7, COUNT = BLOCKS * EACH + 3, WIDTH = 1024, WORDS = 16384, EXPERTS = 4, TOKENS = 256 };

static void put_matmul(mdot_job_operator *op, double in, double out, double matrices)
{
    double flops = 2.0 * TOKENS * in * out;
    op->parameters = in * out * matrices;
    op->setting[MDOT_SETTING_CHANNELS_IN] = (int64_t)in;
    op->setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)out;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        op->per_sample[phase] = (mdot_load){flops, 4 * TOKENS * in, 4 * TOKENS * out};
    op->per_step[MDOT_PHASE_FORWARD].bytes_read = op->per_step[MDOT_PHASE_DATA_GRADIENT].bytes_read =
        op->per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 4 * op->parameters;
}

static void put_block_operator(mdot_job_operator *op, uint32_t at)
{
    static const char *const types[EACH] = {
        "LayerNormalization", "Linear", "Attention", "Linear", "TopK", "MatMul", "Gelu"};
    const double tensor = 4.0 * TOKENS * WIDTH;
    op->type = types[at];
    for (int phase = 0; phase < 2; phase++) op->per_sample[phase] = (mdot_load){8.0 * TOKENS * WIDTH, tensor, tensor};
    if (at == 0) op->parameters = 2 * WIDTH;
    if (at == 0) op->setting[MDOT_SETTING_AXIS] = 1;
    if (at == 1) put_matmul(op, WIDTH, 3 * WIDTH, 1);
    if (at == 2) {
        op->setting[MDOT_SETTING_HEADS] = 16;
        op->setting[MDOT_SETTING_HEAD_SIZE] = 64;
        for (int phase = 0; phase < 2; phase++)
            op->per_sample[phase] = (mdot_load){16.0 * TOKENS * TOKENS * (4 * 64 + 5), 3 * tensor, tensor};
    }
    if (at == 3) {
        put_matmul(op, WIDTH, WIDTH, 1);
        op->frozen_parameters = op->parameters;
        op->parameters = 0;
        op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = op->per_step[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){0};
    }
    if (at == 5) put_matmul(op, WIDTH, WIDTH, EXPERTS);
    if (at == 5) op->setting[MDOT_SETTING_GROUPS] = EXPERTS;
}

static mdot_job *make_job(void)
{
    static uint32_t inputs[COUNT];
    mdot_job_operator operators[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        mdot_job_operator *op = &operators[i];
        *op = (mdot_job_operator){.struct_size = sizeof *op, .known = true};
        op->setting[MDOT_SETTING_INPUTS] = 1;
        op->inputs = &inputs[i];
        op->input_count = i > 0;
        inputs[i] = i - 1;
        if (i == 0) {
            op->type = "Conv";
            put_matmul(op, 9 * 64, WIDTH, 1);
            op->setting[MDOT_SETTING_CHANNELS_IN] = 64;
            for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) op->per_sample[phase].flops *= 16;
            op->setting[MDOT_SETTING_KERNEL_H] = op->setting[MDOT_SETTING_KERNEL_W] = 3;
        } else if (i == COUNT - 1) {
            op->type = "SoftmaxCrossEntropyLoss";
            for (int phase = 0; phase < 2; phase++)
                op->per_sample[phase] =
                    (mdot_load){5.0 * TOKENS * WORDS, 4.0 * TOKENS * WORDS, phase * 4.0 * TOKENS * WORDS};
        } else if (i == COUNT - 2) {
            op->type = "Linear";
            put_matmul(op, WIDTH, WORDS, 1);
        } else {
            op->block = (i - 1) / EACH + 1;
            put_block_operator(op, (i - 1) % EACH);
        }
    }
    return predict_make_job(operators, COUNT);
}

typedef enum effect { NOTHING, TIME, MEMORY, BOTH } effect;

/* With one sample, weights and gradients are most memory. */
#define SAMPLES(n) .struct_size = sizeof(mdot_configuration), .batch = (n)
#define FP32 .gpu = "A100-SXM-80GB", .precision = MDOT_PRECISION_FP32
#define A100 SAMPLES(4), FP32
#define AMP SAMPLES(4), .gpu = "A100-SXM-80GB", .precision = MDOT_PRECISION_AMP_BF16
#define BF16 .gpu = "B200", .precision = MDOT_PRECISION_MIXED_BF16, .optimizer = MDOT_OPTIMIZER_ADAM
#define MIXED SAMPLES(4), BF16
#define BY_PREDICTOR "a predictor that reads the option has measured its effect, which differs between kernels"
#define LOADERS "data loaders work on the host"
#define SAME "it is the default of this configuration"

static const struct row {
    const char *field;
    double value;
    mdot_configuration base;
    effect effect;
    const char *reason; /* NULL: both change */
} rows[] = {
    {"batch", 8, {A100}, BOTH, NULL},
    {"precision",
     MDOT_PRECISION_FP32,
     {SAMPLES(4), .gpu = "A100", .precision = MDOT_PRECISION_PYTORCH},
     TIME,
     "both have fp32 tensors"},
    {"precision", MDOT_PRECISION_TF32, {A100}, TIME, "tensors stay in fp32"},
    {"precision", MDOT_PRECISION_AMP, {A100}, BOTH, NULL},
    {"precision", MDOT_PRECISION_AMP_BF16, {A100}, BOTH, NULL},
    {"precision", MDOT_PRECISION_BF16, {A100}, BOTH, NULL},
    {"precision", MDOT_PRECISION_MIXED_BF16, {A100}, BOTH, NULL},
    {"precision", MDOT_PRECISION_MIXED_FP16, {A100}, BOTH, NULL},
    {"precision", MDOT_PRECISION_FP8, {MIXED}, TIME, "operands are cast just before their matmul, and are not kept"},
    {"precision", MDOT_PRECISION_FP8_ROWWISE, {MIXED}, TIME, "as fp8"},
    {"precision", MDOT_PRECISION_MXFP8, {MIXED}, TIME, "as fp8"},
    {"precision", MDOT_PRECISION_FP8_BLOCKWISE, {MIXED}, TIME, "as fp8"},
    {"precision", MDOT_PRECISION_FP8, {MIXED, .compiled = 1}, TIME, "as without compilation"},
    {"precision", MDOT_PRECISION_FP8_ROWWISE, {MIXED, .compiled = 1}, TIME, "as fp8"},
    {"precision", MDOT_PRECISION_MXFP8, {MIXED, .compiled = 1}, TIME, "as fp8"},
    {"precision", MDOT_PRECISION_FP8_BLOCKWISE, {MIXED, .compiled = 1}, TIME, "as fp8"},
    {"layout", MDOT_LAYOUT_NHWC, {A100}, NOTHING, BY_PREDICTOR},
    {"optimizer", MDOT_OPTIMIZER_ADAM, {A100}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_ADAMW, {A100}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_SGD_PLAIN, {A100}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_ADAM8BIT, {A100}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_ADAMW8BIT, {A100}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_ADAFACTOR, {A100}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_LION, {A100, .optimizer = MDOT_OPTIMIZER_ADAMW}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_MUON, {A100, .optimizer = MDOT_OPTIMIZER_ADAMW}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_ADAM_FUSED, {A100, .optimizer = MDOT_OPTIMIZER_ADAM}, BOTH, NULL},
    {"optimizer", MDOT_OPTIMIZER_ADAMW_FUSED, {A100, .optimizer = MDOT_OPTIMIZER_ADAMW}, BOTH, NULL},
    {"attention", MDOT_ATTENTION_EAGER, {A100}, BOTH, NULL},
    {"attention", MDOT_ATTENTION_FLASH, {A100, .attention = MDOT_ATTENTION_EAGER}, BOTH, NULL},
    {"compiled", 1, {A100}, BOTH, NULL},
    {"recompute", MDOT_RECOMPUTE_BLOCKS, {A100}, BOTH, NULL},
    {"recompute", MDOT_RECOMPUTE_SELECTIVE, {A100}, BOTH, NULL},
    {"accumulate", 4, {A100}, BOTH, NULL},
    {"torch", 200, {A100}, NOTHING, BY_PREDICTOR},
    {"optimizer_kernels", MDOT_OPTIMIZER_KERNELS_FOREACH, {MIXED}, BOTH, NULL},
    {"optimizer_kernels", MDOT_OPTIMIZER_KERNELS_FUSED, {A100, .optimizer = MDOT_OPTIMIZER_ADAM}, BOTH, NULL},
    {"optimizer_kernels", MDOT_OPTIMIZER_KERNELS_FOR_LOOP, {A100, .optimizer = MDOT_OPTIMIZER_ADAM}, BOTH, NULL},
    {"step_in_backward", 1, {SAMPLES(1), FP32}, BOTH, NULL},
    {"gradient_type", MDOT_NUMBER_FP32, {MIXED, .gpu_count = 8}, BOTH, NULL},
    {"gradient_type",
     MDOT_NUMBER_HALF,
     {SAMPLES(1), BF16, .gpu_count = 8, .zero_stage = 3},
     MEMORY,
     "FSDP sums in half precision by default, and only the shards that a GPU keeps change"},
    {"reduce_type", MDOT_NUMBER_FP32, {SAMPLES(1), BF16, .gpu_count = 8, .zero_stage = 3}, BOTH, NULL},
    {"reduce_type",
     MDOT_NUMBER_HALF,
     {A100, .gpu_count = 8},
     TIME,
     "hooks of DistributedDataParallel compress one bucket at a time"},
    {"offload", MDOT_OFFLOAD_OPTIMIZER, {A100}, BOTH, NULL},
    {"offload", MDOT_OFFLOAD_PARAMETERS, {A100, .gpu_count = 8, .zero_stage = 3}, BOTH, NULL},
    {"offload", MDOT_OFFLOAD_PAGES, {A100, .optimizer = MDOT_OPTIMIZER_ADAM}, BOTH, NULL},
    {"offload_activations", 1, {A100}, BOTH, NULL},
    {"loss", MDOT_LOSS_CHUNKED, {AMP}, BOTH, NULL},
    {"loss", MDOT_LOSS_FUSED, {AMP}, BOTH, NULL},
    {"loss", MDOT_LOSS_CHUNKED, {A100}, BOTH, NULL},
    {"loss", MDOT_LOSS_FUSED, {A100}, BOTH, NULL},
    {"frozen_weights", MDOT_FROZEN_INT8, {A100}, BOTH, NULL},
    {"frozen_weights", MDOT_FROZEN_NF4, {A100}, BOTH, NULL},
    {"frozen_weights", MDOT_FROZEN_NF4_SINGLE, {A100}, BOTH, NULL},
    {"ema", 1, {A100}, BOTH, NULL},
    {"grad_scaler", 1, {A100}, TIME, "it works on the gradients in place"},
    {"power_limit", 100, {A100}, TIME, "it lowers the clock"},
    {"mode", MDOT_MODE_INFERENCE, {A100}, BOTH, NULL},
    {"host_launch_us", 1000, {A100}, NOTHING, BY_PREDICTOR},
    {"framework", MDOT_FRAMEWORK_PYTORCH, {A100}, NOTHING, SAME},
    {"framework",
     MDOT_FRAMEWORK_HF_TRAINER,
     {A100},
     NOTHING,
     "its kernels are PyTorch's, and predictors read its launches"},
    {"framework", MDOT_FRAMEWORK_LIGER, {A100}, BOTH, NULL},
    {"framework", MDOT_FRAMEWORK_TRANSFORMER_ENGINE, {A100}, BOTH, NULL},
    {"framework", MDOT_FRAMEWORK_MEGATRON, {A100}, BOTH, NULL},
    {"loader_rate", 1, {A100}, TIME, LOADERS},
    {"cpu_rate", 1, {A100, .cpu_rate = 4, .cpus = 2}, TIME, LOADERS},
    {"cpus", 1, {A100, .cpu_rate = 1, .cpus = 2}, TIME, LOADERS},
    {"gpu_count", 8, {A100}, BOTH, NULL},
    {"data_parallel", 8, {A100}, BOTH, NULL},
    {"tensor_parallel", 2, {A100}, BOTH, NULL},
    {"pipeline_parallel", 2, {A100}, BOTH, NULL},
    {"expert_parallel", 2, {A100}, BOTH, NULL},
    {"context_parallel", 2, {A100}, BOTH, NULL},
    {"sequence_parallel", 1, {A100, .tensor_parallel = 2}, BOTH, NULL},
    {"micro_batches", 4, {A100, .pipeline_parallel = 2}, BOTH, NULL},
    {"virtual_stages", 2, {A100, .pipeline_parallel = 2}, BOTH, NULL},
    {"first_stage_blocks", 1, {A100, .pipeline_parallel = 2}, BOTH, NULL},
    {"last_stage_blocks", 1, {A100, .pipeline_parallel = 2}, BOTH, NULL},
    {"pipeline_blocks", BLOCKS, {A100, .pipeline_parallel = 2}, NOTHING, "it is compared with the job's"},
    {"zero_stage", 1, {MIXED, .gpu_count = 8}, BOTH, NULL},
    {"zero_stage", 2, {MIXED, .gpu_count = 8}, BOTH, NULL},
    {"zero_stage", 3, {MIXED, .gpu_count = 8}, BOTH, NULL},
    {"servers", 2, {A100, .gpu_count = 8}, BOTH, NULL},
    {"servers", 1, {A100, .gpu_count = 8, .servers = 2}, TIME, "servers have memory of their own"},
    {"sync", MDOT_SYNC_ASP, {A100, .gpu_count = 8, .servers = 2}, TIME, "servers have memory of their own"},
    {"schedule", MDOT_SCHEDULE_ZERO_BUBBLE, {A100, .pipeline_parallel = 2}, TIME, "ZB-H1 keeps what 1F1B keeps"},
    {"keep_gathered", 1, {A100, .gpu_count = 8, .zero_stage = 3}, BOTH, NULL},
    {"whole_gradients", 1, {A100, .gpu_count = 8, .zero_stage = 3, .accumulate = 4}, BOTH, NULL},
    {"node_count", 2, {A100, .gpu_count = 8}, TIME, "an exchange keeps the same tensors"},
    {"link", MDOT_LINK_PCIE, {A100, .gpu_count = 8}, TIME, "an exchange keeps the same tensors"},
    {"link", MDOT_LINK_NVLINK, {A100, .gpu_count = 8}, NOTHING, SAME},
    {"link_gbps", 10, {A100, .gpu_count = 8}, TIME, "an exchange keeps the same tensors"},
    {"network_gbps", 1, {A100, .gpu_count = 8, .node_count = 2}, TIME, "an exchange keeps the same tensors"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const rt_option *find(const char *field)
{
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (strcmp(rt_options[i].field, field) == 0) return &rt_options[i];
    fail_msg("%s is no option", field);
    return NULL;
}

static bool differs(double a, double b) { return fabs(a - b) > 1e-4 * fabs(a); }

static void each_option_has_the_stated_effect(void **state)
{
    (void)state;
    static const char *const names[] = {"nothing", "time", "memory", "both"};
    size_t different = 0;
    predict_fixture f;
    predict_open(&f, predict_batch_model());
    mdot_job *job = make_job();
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        mdot_configuration changed = row->base;
        rt_option_set(&changed, find(row->field), row->value);
        mdot_prediction p = MDOT_INIT(mdot_prediction), q = MDOT_INIT(mdot_prediction);
        mdot_error err = {0};
        if (mdot_predict(f.context, job, &row->base, &p, &err) != MDOT_OK ||
            mdot_predict(f.context, job, &changed, &q, &err) != MDOT_OK) {
            print_error("row %zu, %s = %g: %s\n", i, row->field, row->value, err.message);
            different++;
            continue;
        }
        bool in_time = differs(p.step_ms, q.step_ms);
        bool in_memory = differs((double)p.peak_memory_bytes, (double)q.peak_memory_bytes);
        effect got = (in_time ? TIME : NOTHING) | (in_memory ? MEMORY : NOTHING);
        if ((row->effect != BOTH) != (row->reason != NULL)) fail_msg("row %zu, %s: add a reason", i, row->field);
        if (got == row->effect) continue;
        print_error("row %zu, %s = %g: it changes %s, and the table states %s (%.3f and %.3f ms, %.1f and %.1f MiB)\n",
                    i, row->field, row->value, names[got], names[row->effect], p.step_ms, q.step_ms,
                    (double)p.peak_memory_bytes / 0x1p20, (double)q.peak_memory_bytes / 0x1p20);
        different++;
    }
    assert_int_equal(different, 0);
    mdot_job_destroy(job);
    predict_close(&f);
}

static rt_resolved_configuration resolve(const mdot_job *job, const mdot_configuration *c)
{
    rt_gpu_names names = {0};
    rt_configuration configuration;
    rt_resolved_configuration resolved;
    mdot_error err = {0};
    if (rt_configuration_read(c, 0, &names, &configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

/* For one shard and micro-batch, because the correction compares micro-steps like this. */
static void micro_steps_depend_on_the_options_with_that_fact_alone(void **state)
{
    (void)state;
    bool changes[RT_OPTION_COUNT] = {false};
    mdot_job *job = make_job();
    for (size_t i = 0; i < ROWS; i++) {
        const rt_option *option = find(rows[i].field);
        mdot_configuration changed = rows[i].base;
        rt_option_set(&changed, option, rows[i].value);
        rt_resolved_configuration a = resolve(job, &rows[i].base), b = resolve(job, &changed);
        b.shard = a.shard;
        b.configuration.micro_batch = a.configuration.micro_batch;
        rt_roofline before = rt_roofline_of(job, &a), after = rt_roofline_of(job, &b);
        if (before.forward_ms != after.forward_ms || before.backward_ms != after.backward_ms)
            changes[option - rt_options] = true;
    }
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (changes[i] != ((rt_options[i].facts & RT_MICRO_STEP) != 0))
            fail_msg("%s %s the time of a micro-step, unlike its row of configuration.def", rt_options[i].field,
                     changes[i] ? "changes" : "keeps");
    mdot_job_destroy(job);
}

/* ---- A step is a sum of parts ------------------------------------------------------------------------------------ */

typedef enum part { FORWARD, BACKWARD, UPDATE, HOST, COMMUNICATION, IDLE, DATA, PARTS } part;
static const char *const part_names[PARTS] = {"forward pass",  "backward pass", "update", "host",
                                              "communication", "idle",          "data"};
#define PASSES (1u << FORWARD | 1u << BACKWARD)
#define ALL_PARTS ((1u << PARTS) - 1)

/* The parts that an option may change. Options of an update change it alone, and those of a micro-step its passes. */
static unsigned parts_of(const rt_option *option, const mdot_configuration *c)
{
    static const struct {
        const char *field;
        unsigned parts;
    } named[] = {
        {"batch", ALL_PARTS}, /* this predictor does not divide its answer */
        {"accumulate", PASSES | 1u << HOST | 1u << COMMUNICATION},
        {"power_limit", ALL_PARTS},
        {"mode", ALL_PARTS},
        {"precision", ALL_PARTS}, /* of gradients and weights, too */
        {"tensor_parallel", ALL_PARTS},
        {"pipeline_parallel", ALL_PARTS},
        {"expert_parallel", ALL_PARTS},
        {"micro_batches", ALL_PARTS},
        {"offload", 1u << UPDATE | 1u << COMMUNICATION | 1u << HOST},
        {"zero_stage",
         1u << UPDATE | 1u << COMMUNICATION | 1u << HOST}, /* which launches the update of fewer tensors */
        {"first_stage_blocks", ALL_PARTS},
        {"last_stage_blocks", ALL_PARTS},
        {"virtual_stages", 1u << IDLE | 1u << COMMUNICATION},
        {"schedule", 1u << IDLE | 1u << COMMUNICATION},
        {"servers", 1u << UPDATE | 1u << HOST | 1u << COMMUNICATION}, /* the update is theirs */
        {"loader_rate", 1u << DATA},
        {"cpu_rate", 1u << DATA},
        {"cpus", 1u << DATA},
        {"context_parallel", PASSES | 1u << UPDATE | 1u << COMMUNICATION | 1u << IDLE},
    };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(named[i].field, option->field) == 0) return named[i].parts;
    unsigned waits = c->pipeline_parallel > 1 ? 1u << IDLE : 0;
    if ((option->facts & RT_MICRO_STEP) != 0) return PASSES | 1u << HOST | 1u << COMMUNICATION | waits;
    if ((option->facts & RT_KERNELS) != 0) return 1u << UPDATE | 1u << HOST;
    return 1u << COMMUNICATION;
}

/* False if the configuration is refused. */
static bool explain(mdot_context *context, const mdot_job *job, const mdot_configuration *c, double out_parts[PARTS],
                    mdot_explanation_info *out_info)
{
    mdot_explanation *explanation = NULL;
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    mdot_error err = {0};
    mdot_status status = mdot_explain(context, job, c, &explanation, &err);
    if (status != MDOT_OK && (status != MDOT_INVALID_ARGUMENT || err.message[0] == 0)) fail_msg("%s", err.message);
    if (status != MDOT_OK) return false;
    assert_int_equal(mdot_explanation_get_info(explanation, &info), MDOT_OK);
    mdot_explanation_destroy(explanation);
    *out_info = info;
    out_parts[FORWARD] = info.forward_ms;
    out_parts[BACKWARD] = info.data_gradient_ms + info.weight_gradient_ms;
    out_parts[UPDATE] = info.optimizer_ms;
    out_parts[HOST] = info.host_busy_ms;
    out_parts[COMMUNICATION] = info.communication_ms;
    out_parts[IDLE] = info.idle_ms;
    out_parts[DATA] = info.data_ms;
    return true;
}

/* The parts that changed although neither the option nor the one beside it names them. */
static size_t count_other_parts(size_t row, const mdot_configuration *c, unsigned coupled, const double before[PARTS],
                                const double after[PARTS], double step_ms, const char *beside)
{
    size_t faults = 0;
    unsigned named = parts_of(find(rows[row].field), c) | coupled;
    for (int k = 0; k < PARTS; k++) {
        if ((named >> k & 1) != 0 || fabs(before[k] - after[k]) <= 1e-9 * step_ms) continue;
        print_error("row %zu, %s = %g%s: the %s takes %g ms, then %g\n", row, rows[row].field, rows[row].value, beside,
                    part_names[k], before[k], after[k]);
        faults++;
    }
    return faults;
}

/* The law of the seam between a job and its step: an option changes the parts that it names, and the step by their
 * change. The rest overlaps: the GPU's time and the host's, (gpu^4 + host^4)^(1/4). */
static void each_option_changes_its_own_parts_alone(void **state)
{
    (void)state;
    size_t faults = 0;
    predict_fixture f;
    predict_open(&f, predict_batch_model());
    mdot_job *job = make_job();
    for (size_t i = 0; i < ROWS; i++) {
        const rt_option *option = find(rows[i].field);
        mdot_configuration changed = rows[i].base;
        rt_option_set(&changed, option, rows[i].value);
        double before[PARTS], after[PARTS];
        mdot_explanation_info info;
        if (!explain(f.context, job, &rows[i].base, before, &info) || !explain(f.context, job, &changed, after, &info))
            fail_msg("row %zu is refused", i);
        faults += count_other_parts(i, &rows[i].base, 0, before, after, info.step_ms, "");
        double sum = info.gpu_busy_ms + info.host_busy_ms - info.overlap_ms + info.communication_ms + info.idle_ms +
                     info.data_ms;
        assert_within(sum, info.step_ms, 1e-6 * info.step_ms);
        if (strcmp(rows[i].field, "accumulate") == 0)
            assert_within(after[FORWARD], rows[i].value * before[FORWARD], 1e-6 * after[FORWARD]);
    }
    assert_int_equal(faults, 0);
    mdot_job_destroy(job);
    predict_close(&f);
}

/* Parts that any option may change beside this one. */
static unsigned coupled_parts(const char *field)
{
    static const struct {
        const char *field;
        unsigned parts;
    } coupled[] = {
        {"loader_rate", 1u << DATA},            /* the wait is what the rest of the step leaves */
        {"power_limit", PASSES | 1u << UPDATE}, /* the clock follows the average power of a step */
        {"offload", 1u << COMMUNICATION},       /* the optimizer's state crosses the link */
        {"grad_scaler", 1u << UPDATE},          /* it reads gradients in their type */
        {"zero_stage", 1u << UPDATE},           /* workers share the update */
        {"framework", 1u << HOST},              /* Megatron's launches of a micro-step */
    };
    for (size_t i = 0; i < sizeof coupled / sizeof *coupled; i++)
        if (strcmp(coupled[i].field, field) == 0) return coupled[i].parts;
    return 0;
}

/* The same law beside each other option: of two changes, the second one changes its own parts alone. */
static void pairs_of_options_change_their_own_parts_alone(void **state)
{
    (void)state;
    size_t faults = 0, pairs = 0;
    predict_fixture f;
    predict_open(&f, predict_batch_model());
    mdot_job *job = make_job();
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < ROWS; k++) {
            mdot_configuration first = rows[i].base, both;
            rt_option_set(&first, find(rows[k].field), rows[k].value);
            both = first;
            rt_option_set(&both, find(rows[i].field), rows[i].value);
            double before[PARTS], after[PARTS];
            mdot_explanation_info info;
            if (strcmp(rows[i].field, rows[k].field) == 0 || !explain(f.context, job, &first, before, &info) ||
                !explain(f.context, job, &both, after, &info))
                continue;
            char beside[80];
            snprintf(beside, sizeof beside, " beside %s = %g", rows[k].field, rows[k].value);
            faults += count_other_parts(i, &first, coupled_parts(rows[k].field), before, after, info.step_ms, beside);
            pairs++;
        }
    assert_compare(pairs, >, ROWS * ROWS / 2);
    assert_int_equal(faults, 0);
    mdot_job_destroy(job);
    predict_close(&f);
}

static bool has_row(const rt_option *option, double value, bool of_any_value)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strcmp(rows[i].field, option->field) == 0 && (of_any_value || rows[i].value == value)) return true;
    return false;
}

static void each_option_and_choice_has_a_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        if (option->kind == RT_KIND_GPU) continue;
        if (!has_row(option, 0, true)) fail_msg("%s lacks a row", option->field);
        for (int k = 0; option->choices != NULL && option->choices[k] != NULL; k++)
            if (k != (int)option->fallback && !has_row(option, k, false))
                fail_msg("%s lacks a row for %s", option->field, option->choices[k]);
        for (double v = option->least; option->kind == RT_KIND_WHOLE && option->most < 10 && v <= option->most; v++)
            if (v != option->fallback && !has_row(option, v, false))
                fail_msg("%s lacks a row for %g", option->field, v);
    }
}

/* The predictor's bounds are half and twice its time. An answer that is no analytic estimate keeps these, and another
 * one has wider ones. PyTorch's default precision changes few networks, and those by their convolutions. */
static void answers_without_an_estimate_keep_their_bounds(void **state)
{
    (void)state;
    predict_fixture f = {0};
    predict_open(&f, predict_batch_model());
    int kept = 0, widened = 0;
    for (size_t convolutions = 0; convolutions < 6; convolutions++)
        for (int precision = 0; precision < 3; precision++) {
            static const mdot_precision precisions[] = {MDOT_PRECISION_PYTORCH, MDOT_PRECISION_FP32,
                                                        MDOT_PRECISION_BF16};
            mdot_job_operator operators[40];
            for (size_t i = 0; i < 40; i++) operators[i] = predict_operator(i < convolutions ? 3 * i : 3 * i + 1);
            for (size_t i = 0; i < 40; i++) operators[i].input_count = 0;
            mdot_job *job = predict_make_job(operators, 40);
            mdot_configuration c = predict_configuration(8, "A100");
            c.precision = precisions[precision];
            mdot_prediction p = predict_one(&f, job, &c);
            assert_compare(p.lower_ms, >, 0);
            if ((p.warnings & MDOT_WARN_ANALYTIC_ESTIMATE) == 0) {
                predict_assert_close(p.lower_ms, p.step_ms / 2);
                predict_assert_close(p.upper_ms, p.step_ms * 2);
                kept++;
            } else {
                assert_compare(p.lower_ms, <=, p.step_ms / 2 * 1.00001);
                assert_compare(p.upper_ms, >=, p.step_ms * 2 / 1.00001);
                widened++;
            }
            mdot_job_destroy(job);
        }
    assert_compare(kept, >, 0);
    assert_compare(widened, >, 0);
    predict_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_option_and_choice_has_a_row),
        cmocka_unit_test(each_option_has_the_stated_effect),
        cmocka_unit_test(each_option_changes_its_own_parts_alone),
        cmocka_unit_test(pairs_of_options_change_their_own_parts_alone),
        cmocka_unit_test(micro_steps_depend_on_the_options_with_that_fact_alone),
        cmocka_unit_test(answers_without_an_estimate_keep_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
