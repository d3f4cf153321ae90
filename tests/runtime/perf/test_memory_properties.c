/* test_memory_properties.c — peak memory properties of every job and configuration, on random ones. */
#include "runtime/job/configuration_table.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/activation_memory.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/resolved_configuration.h"
#include "runtime/perf/sharding.h"
#include "runtime/perf/step_time.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 8, OF_A_BLOCK = 5, COUNT = BLOCKS * OF_A_BLOCK + 2, JOBS = 20, CONFIGURATIONS = 300, HEADS = 8 };

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % below;
}

/* A random network: a seed, a factor of the length or image area, and the quarters of the parameterised operators to
 * freeze. Networks with one seed have the same widths, and more quarters freeze further operators. */
typedef struct network {
    uint64_t seed;
    uint32_t longer, frozen_quarters;
    bool has_images;
} network;

/* Blocks with random sizes: normalisation, matmul, attention, activation, matmul; or convolutions. Then a matmul and a
 * cross-entropy. */
static mdot_job *job_of(network n)
{
    static const char *const types[2][OF_A_BLOCK] = {{"LayerNormalization", "Linear", "Attention", "Gelu", "Linear"},
                                                     {"BatchNormalization", "Conv", "Relu", "Sigmoid", "Conv"}};
    static uint32_t inputs[COUNT];
    mdot_job_operator operators[COUNT];
    random_state = n.seed;
    double width = 64.0 * (1 + draw(16)), tokens = (1 + draw(2000)) * (double)n.longer;
    for (uint32_t i = 0; i < COUNT; i++) {
        mdot_job_operator *op = &operators[i];
        uint32_t at = i % OF_A_BLOCK;
        bool is_loss = i == COUNT - 1, is_head = i == COUNT - 2, is_matmul = is_head || (!is_loss && at % 3 == 1);
        bool is_attention = !n.has_images && !is_loss && !is_head && at == 2;
        double columns = is_head ? 64.0 * (1 + draw(64)) : width;
        const char *type = is_loss ? "SoftmaxCrossEntropyLoss" : is_head ? "Linear" : types[n.has_images][at];
        *op = (mdot_job_operator){.struct_size = sizeof *op, .known = true, .type = type};
        op->block = i + 2 < COUNT ? i / OF_A_BLOCK + 1 : 0;
        double parameters = is_matmul ? width * columns : !is_loss && !is_head && at == 0 ? 2 * width : 0;
        double read = 4 * tokens * width,
               written = is_loss ? 4 : 4 * tokens * (at == 1 && !is_head ? 3 * width : columns);
        double flops = 2 * tokens * (parameters + 100);
        if (is_attention) flops = tokens * tokens * (4 * width + 5.0 * HEADS);
        for (int phase = 0; phase < (is_matmul ? 3 : 2); phase++)
            op->per_sample[phase] = (mdot_load){flops, read, written};
        bool is_frozen = draw(4) < n.frozen_quarters;
        op->parameters = is_frozen ? 0 : parameters;
        op->frozen_parameters = is_frozen ? parameters : 0;
        if (is_frozen) op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){0};
        op->setting[MDOT_SETTING_INPUTS] = 1;
        if (is_matmul) op->setting[MDOT_SETTING_CHANNELS_IN] = (int64_t)width;
        if (is_matmul) op->setting[MDOT_SETTING_CHANNELS_OUT] = (int64_t)columns;
        if (is_matmul && !is_head && n.has_images) op->setting[MDOT_SETTING_KERNEL_W] = 3;
        if (!is_loss && !is_head && at == 0) op->setting[MDOT_SETTING_AXIS] = 1;
        if (is_attention) {
            op->setting[MDOT_SETTING_HEADS] = HEADS;
            op->setting[MDOT_SETTING_HEAD_SIZE] = (int64_t)width / HEADS;
        }
        inputs[i] = i - 1;
        op->inputs = &inputs[i];
        op->input_count = i > 0;
    }
    return predict_make_job(operators, COUNT);
}

/* Network `j`: every second one has frozen operators, and every third one images. */
static network network_of(int j) { return (network){1 + (uint64_t)j, 1, j % 2 == 1, j % 3 == 2}; }

static mdot_configuration random_configuration(void)
{
    mdot_configuration c = {.struct_size = sizeof c, .batch = 1 << draw(6)};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (o->section == RT_SECTION_JOB || o->kind == RT_KIND_VERSION || o->kind == RT_KIND_REAL ||
            i == RT_OPTION_mode || i == RT_OPTION_link || i == RT_OPTION_gpu_count || i == RT_OPTION_node_count ||
            i == RT_OPTION_framework || i == RT_OPTION_first_stage_blocks || i == RT_OPTION_last_stage_blocks ||
            i == RT_OPTION_pipeline_blocks || /* their own laws follow */
            draw(3) > 0)
            continue;
        double value = o->kind == RT_KIND_COUNT ? 1u << draw(3) : draw((uint32_t)o->most + 1);
        rt_option_set(&c, o, value);
    }
    return c;
}

/* False if the job cannot be trained that way. */
static bool resolve(const mdot_job *job, mdot_configuration c, rt_resolved_configuration *out)
{
    rt_configuration configuration;
    rt_gpu_names names = {0};
    c.gpu = "B200";
    if (rt_configuration_read(&c, 0, &names, &configuration, NULL) != MDOT_OK) return false;
    if (rt_configuration_check(&configuration, job, NULL) != MDOT_OK) return false;
    rt_resolve(job, &configuration, out);
    return true;
}

static double peak(const mdot_job *job, mdot_configuration c)
{
    rt_resolved_configuration resolved;
    if (!resolve(job, c, &resolved)) return -1;
    rt_memory m = rt_measure_memory(job, &resolved);
    return m.weights + m.gradients + m.optimizer + m.activations;
}

/* The peak with one changed field is at most (sign < 0) or at least (sign > 0) the peak of `c`. Refused combinations
 * are left out. */
#define EXPECT_WITHIN(c, field, value, sign, tolerance)                                                                \
    do {                                                                                                               \
        mdot_configuration changed = (c);                                                                              \
        changed.field = (value);                                                                                       \
        double before = peak(job, (c)), after = peak(job, changed);                                                    \
        if (after >= 0 && ((sign) < 0 ? after > before * (1 + (tolerance)) : after < before * (1 - (tolerance))))      \
            fail_case(#field, before, after, &(c));                                                                    \
        if (after >= 0) compared++;                                                                                    \
    } while (0)
#define EXPECT(c, field, value, sign) EXPECT_WITHIN(c, field, value, sign, 1e-12)

static void fail_case(const char *field, double before, double after, const mdot_configuration *c)
{
    fprintf(stderr, "%s: %.0f bytes before, %.0f after, with", field, before, after);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_option_get(c, &rt_options[i]) != 0)
            fprintf(stderr, " %s=%g", rt_options[i].field, rt_option_get(c, &rt_options[i]));
    fail_msg(" ");
}

static void memory_is_at_least_that_of_weights_and_state(void **state)
{
    (void)state;
    size_t checked = 0;
    for (int j = 0; j < JOBS; j++) {
        mdot_job *job = job_of(network_of(j));
        for (int i = 0; i < CONFIGURATIONS; i++) {
            mdot_configuration c = random_configuration();
            rt_resolved_configuration resolved;
            if (!resolve(job, c, &resolved)) continue;
            rt_memory m = rt_measure_memory(job, &resolved);
            bool on_host = c.offload != MDOT_OFFLOAD_NOTHING || c.servers > 0;
            double trained = rt_sum_elements(rt_trained_part(&job->analysis->sharding, &resolved.shard));
            double copies = c.zero_stage >= 3 ? 1e9 : 1;
            double state_bytes = on_host ? 0 : rt_optimizer_memory_of(job, &resolved).state;
            double least = resolved.widths.weights * trained / copies + state_bytes;
            double sum = m.weights + m.gradients + m.optimizer + m.activations;
            bool is_pipeline = c.pipeline_parallel > 1; /* the peak may be in another stage */
            double most = is_pipeline ? sum : m.weights + m.optimizer;
            if (most < least * (1 - 1e-12)) fail_case("least", least, most, &c);
            if (!(m.gradients >= 0 && m.activations >= 0 && m.pass_activations >= 0)) fail_case("parts", 0, 0, &c);
            checked++;
        }
        mdot_job_destroy(job);
    }
    assert_compare(checked, >, JOBS * CONFIGURATIONS / 50);
}

static void memory_grows_with_work_and_falls_with_saving(void **state)
{
    (void)state;
    size_t compared = 0;
    for (int j = 0; j < JOBS; j++) {
        mdot_job *job = job_of(network_of(j));
        for (int i = 0; i < CONFIGURATIONS; i++) {
            mdot_configuration c = random_configuration();
            if (peak(job, c) < 0) continue;
            EXPECT(c, batch, 2 * c.batch, 1);
            if (c.accumulate < 2) EXPECT(c, accumulate, 2, 1);
            if (c.ema == 0) EXPECT(c, ema, 1, 1);
            if (c.keep_gathered == 0) EXPECT(c, keep_gathered, 1, 1);
            if (c.whole_gradients == 0) EXPECT(c, whole_gradients, 1, 1);
            if (c.zero_stage == 0) EXPECT(c, zero_stage, 1, -1);
            /* DeepSpeed's bucket is larger than these networks. */
            bool is_mixed = c.precision >= MDOT_PRECISION_MIXED_BF16;
            if (c.zero_stage == 1 && !is_mixed) EXPECT(c, zero_stage, 2, -1);
            EXPECT(c, mode, MDOT_MODE_INFERENCE, -1);
            if (c.offload_activations == 0) EXPECT(c, offload_activations, 1, -1);
            if (c.offload < MDOT_OFFLOAD_PARAMETERS) EXPECT(c, offload, c.offload + 1, -1);
            if (c.offload == MDOT_OFFLOAD_NOTHING) EXPECT(c, offload, MDOT_OFFLOAD_PAGES, -1);
            if (c.step_in_backward == 0) EXPECT(c, step_in_backward, 1, -1);
            if (c.sequence_parallel == 0) EXPECT(c, sequence_parallel, 1, -1);
            if (c.optimizer == MDOT_OPTIMIZER_ADAM) EXPECT(c, optimizer, MDOT_OPTIMIZER_ADAM8BIT, -1);
            if (c.optimizer == MDOT_OPTIMIZER_SGD) EXPECT(c, optimizer, MDOT_OPTIMIZER_SGD_PLAIN, -1);
            /* Offloading leaves the block tensors, whatever the other options save. With tensor parallelism, the
             * moments are the unsharded job's, and differ between the options. */
            if (c.offload_activations != 0 || c.tensor_parallel > 1) continue;
            /* Compiled code recomputes the loss's logit copies, which are outside the blocks. */
            if (c.recompute == MDOT_RECOMPUTE_NOTHING && c.compiled == 0)
                EXPECT(c, recompute, MDOT_RECOMPUTE_BLOCKS, -1);
            /* A few moments stand for all, and those of two losses may differ. At ZeRO stage 3, they may differ in
             * whether a block's whole gradients exist. */
            if (c.loss == MDOT_LOSS_WHOLE && c.zero_stage < 3) EXPECT_WITHIN(c, loss, MDOT_LOSS_CHUNKED, -1, 0.03);
        }
        mdot_job_destroy(job);
    }
    assert_compare(compared, >, JOBS * CONFIGURATIONS / 10);
}

/* Compares peaks in random configurations: `larger` has at least the peak of `smaller`. */
static void expect_order(network smaller, network larger, const char *property)
{
    size_t compared = 0;
    mdot_job *small = job_of(smaller), *large = job_of(larger);
    for (int i = 0; i < CONFIGURATIONS; i++) {
        mdot_configuration c = random_configuration();
        /* Gathered weights follow the existing gradient share. Shards have the moments of the whole. */
        c.keep_gathered = 0;
        c.frozen_weights = MDOT_FROZEN_UNCHANGED; /* quantised weights are dequantised, one matrix at a time */
        if (c.tensor_parallel > 1) continue;
        double less = peak(small, c), more = peak(large, c);
        assert_compare(less < 0, ==, more < 0);
        if (less < 0) continue;
        if (less > more * (1 + 1e-12)) fail_case(property, more, less, &c);
        compared++;
    }
    assert_compare(compared, >, 0);
    mdot_job_destroy(small);
    mdot_job_destroy(large);
}

static void memory_grows_with_length_and_resolution(void **state)
{
    (void)state;
    for (int j = 0; j < JOBS; j++) {
        network n = network_of(j), longer = n;
        longer.longer = 2;
        expect_order(n, longer, "length");
        longer.longer = 4;
        expect_order(n, longer, "length");
    }
}

static void memory_falls_with_freezing(void **state)
{
    (void)state;
    for (int j = 0; j < JOBS; j++) {
        network trained = network_of(j);
        for (trained.frozen_quarters = 0; trained.frozen_quarters < 4; trained.frozen_quarters++) {
            network frozen = trained;
            frozen.frozen_quarters++;
            expect_order(frozen, trained, "freezing");
        }
    }
}

static void memory_falls_with_sharding(void **state)
{
    (void)state;
    size_t compared = 0;
    for (int j = 0; j < JOBS; j++) {
        mdot_job *job = job_of(network_of(j));
        for (int i = 0; i < CONFIGURATIONS; i++) {
            mdot_configuration c = random_configuration();
            if (peak(job, c) < 0) continue;
            EXPECT(c, tensor_parallel, c.tensor_parallel == 0 ? 2 : 2 * c.tensor_parallel, -1);
            /* At ZeRO stage 3, blocks exist as a whole beside the shards, and pipelines keep whole gradients. A fused
             * loss has those of the root before the peak. */
            if (c.zero_stage == 2 && c.step_in_backward == 0 && c.data_parallel >= 4 && c.pipeline_parallel <= 1 &&
                c.loss != MDOT_LOSS_FUSED)
                EXPECT(c, zero_stage, 3, -1);
            /* Without ZeRO, the first worker beside a GPU adds buckets of gradients. */
            if (c.zero_stage == 0) continue;
            EXPECT(c, context_parallel, c.context_parallel == 0 ? 2 : 2 * c.context_parallel, -1);
            EXPECT(c, data_parallel, c.data_parallel == 0 ? 2 : 2 * c.data_parallel, -1);
        }
        mdot_job_destroy(job);
    }
    assert_compare(compared, >, JOBS * CONFIGURATIONS / 10);
}

/* ---- Plain configurations ---------------------------------------------------------------------------------------- */

/* The peak of a plain configuration with one field changed. It must be possible. */
#define PEAK_WITH(c, field_, value) peak_of_variant(job, (c), #field_, (value))

static double peak_of_variant(const mdot_job *job, mdot_configuration c, const char *field, double value)
{
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (strcmp(rt_options[i].field, field) == 0) rt_option_set(&c, &rt_options[i], value);
    double bytes = peak(job, c);
    if (bytes < 0) fail_case(field, 0, bytes, &c);
    return bytes;
}

/* Each row changes one option in a plain configuration with a large batch, where the pass is the peak. The effect is at
 * least a share of the peak. An option without effect, or with a tenth of it, fails. */
static void options_have_an_effect_on_plain_configurations(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        double value, most; /* of the peak without the option */
    } rows[] = {
        {"recompute", MDOT_RECOMPUTE_BLOCKS, 0.9},
        {"offload_activations", 1, 0.9},
        {"mode", MDOT_MODE_INFERENCE, 0.5},
        {"context_parallel", 2, 0.75},
        {"tensor_parallel", 2, 0.75},
    };
    for (int j = 0; j < JOBS; j++) {
        if (j % 3 == 2) continue; /* images have no sequence to divide, and their kernels save other tensors */
        mdot_job *job = job_of(network_of(j));
        mdot_configuration c = {.struct_size = sizeof c, .batch = 256};
        double before = peak(job, c);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            double after = peak_of_variant(job, c, rows[i].field, rows[i].value);
            if (after > rows[i].most * before) fail_case(rows[i].field, before, after, &c);
        }
        mdot_job_destroy(job);
    }
}

/* Where the pass is the peak, the tensors of samples are proportional to the batch, and all others are constant. */
static void plain_peaks_are_linear_in_the_batch(void **state)
{
    (void)state;
    for (int j = 0; j < JOBS; j++) {
        mdot_job *job = job_of(network_of(j));
        mdot_configuration c = {.struct_size = sizeof c, .batch = 256};
        double one = peak(job, c), two = PEAK_WITH(c, batch, 512), four = PEAK_WITH(c, batch, 1024);
        assert_compare(two, >, one);
        if (fabs((four - two) - 2 * (two - one)) > 1e-9 * four) fail_case("batch", two - one, four - two, &c);
        mdot_job_destroy(job);
    }
}

/* Two equal micro-batches keep gradient sums throughout the step, and ZeRO stage 2 divides these. In inference,
 * gradients and optimizer state have zero bytes. */
static void gradients_exist_and_are_divided(void **state)
{
    (void)state;
    for (int j = 0; j < JOBS; j++) {
        mdot_job *job = job_of(network_of(j));
        mdot_configuration c = {.struct_size = sizeof c, .batch = 256, .accumulate = 1};
        rt_resolved_configuration resolved;
        assert_true(resolve(job, c, &resolved));
        double trained = rt_sum_elements(rt_trained_part(&job->analysis->sharding, &resolved.shard));
        double once = peak(job, c);
        c.batch = 512;
        double twice = PEAK_WITH(c, accumulate, 2);
        if (twice < once + 2 * trained) fail_case("accumulate", once, twice, &c);
        c.accumulate = 2;
        c.data_parallel = 4;
        double whole = PEAK_WITH(c, zero_stage, 1), part = PEAK_WITH(c, zero_stage, 2);
        if (part > whole - 2 * trained) fail_case("zero_stage", whole, part, &c);
        c.mode = MDOT_MODE_INFERENCE;
        assert_true(resolve(job, (mdot_configuration){.struct_size = sizeof c, .batch = 8, .mode = c.mode}, &resolved));
        rt_memory inference = rt_measure_memory(job, &resolved);
        if (inference.gradients != 0 || inference.optimizer != 0) fail_case("inference", 0, inference.gradients, &c);
        mdot_job_destroy(job);
    }
}

/* The optimizer's part of the peak. */
static double state_of(const mdot_job *job, mdot_configuration c)
{
    rt_resolved_configuration resolved;
    assert_true(resolve(job, c, &resolved));
    return rt_measure_memory(job, &resolved).optimizer;
}

/* The optimizer has the documented bytes on one GPU, divided by the GPUs that share them. */
static void optimizers_have_their_documented_bytes(void **state)
{
    (void)state;
    for (int j = 0; j < JOBS; j++) {
        mdot_job *job = job_of(network_of(j));
        mdot_configuration c = {.struct_size = sizeof c, .batch = 256, .optimizer = MDOT_OPTIMIZER_SGD_PLAIN};
        rt_resolved_configuration resolved;
        assert_true(resolve(job, c, &resolved));
        double trained = rt_sum_elements(rt_trained_part(&job->analysis->sharding, &resolved.shard));
        double plain = peak(job, c), momentum = PEAK_WITH(c, optimizer, MDOT_OPTIMIZER_SGD);
        double adam = PEAK_WITH(c, optimizer, MDOT_OPTIMIZER_ADAM), ema = PEAK_WITH(c, ema, 1);
        double eight_bits = PEAK_WITH(c, optimizer, MDOT_OPTIMIZER_ADAM8BIT);
        if (fabs(momentum - plain - 4 * trained) > 1e-9 * plain) fail_case("momentum", plain, momentum, &c);
        if (fabs(adam - plain - 8 * trained) > 1e-9 * plain) fail_case("adam", plain, adam, &c);
        if (fabs(ema - plain - 4 * trained) > 1e-9 * plain) fail_case("ema", plain, ema, &c);
        if (eight_bits <= plain || eight_bits - plain > 0.4 * (adam - plain)) fail_case("8 bit", adam, eight_bits, &c);
        c.optimizer = MDOT_OPTIMIZER_ADAM;
        c.data_parallel = 4;
        double whole = state_of(job, c);
        if (fabs(whole - 8 * trained) > 1e-9 * whole) fail_case("whole state", 8 * trained, whole, &c);
        for (c.zero_stage = 1; c.zero_stage <= 3; c.zero_stage++) {
            double part = state_of(job, c);
            if (fabs(4 * part - whole) > 1e-9 * whole) fail_case("zero_stage", whole, part, &c);
        }
        mdot_job_destroy(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_at_least_that_of_weights_and_state),
        cmocka_unit_test(memory_grows_with_work_and_falls_with_saving),
        cmocka_unit_test(memory_grows_with_length_and_resolution),
        cmocka_unit_test(memory_falls_with_freezing),
        cmocka_unit_test(memory_falls_with_sharding),
        cmocka_unit_test(options_have_an_effect_on_plain_configurations),
        cmocka_unit_test(plain_peaks_are_linear_in_the_batch),
        cmocka_unit_test(gradients_exist_and_are_divided),
        cmocka_unit_test(optimizers_have_their_documented_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
