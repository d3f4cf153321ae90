/* test_analytic_correction.c — options without a predictor input. The tests check the direction and size of each effect
 * on the step time, and the warning. If a predictor has the input, the answer is used unchanged. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/analytic_correction.h"
#include "runtime/predict/predictor_schema.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 4, OF_A_BLOCK = 5, COUNT = BLOCKS * OF_A_BLOCK };

/* Four blocks: matmul, Relu, Gelu, attention, matmul; operands with ten megabytes a sample, 64 by 64 matrices. */
static mdot_job *make_job(const char *matmul_type)
{
    mdot_job_operator operators[COUNT];
    uint32_t inputs[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        static const char *const types[OF_A_BLOCK] = {"", "Relu", "Gelu", "Attention", ""};
        mdot_job_operator *op = &operators[i];
        bool is_matmul = i % OF_A_BLOCK == 0 || i % OF_A_BLOCK == 4;
        *op = (mdot_job_operator){.struct_size = sizeof *op, .known = true, .block = i / OF_A_BLOCK + 1};
        op->type = is_matmul ? matmul_type : types[i % OF_A_BLOCK];
        for (int phase = 0; phase < (is_matmul ? 3 : 2); phase++)
            op->per_sample[phase] = (mdot_load){is_matmul ? 1e9 : 1e7, 1e7, 1e7};
        op->setting[MDOT_SETTING_INPUTS] = 1;
        if (is_matmul) {
            op->parameters = 1e6;
            op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = 64;
            op->setting[MDOT_SETTING_KERNEL_W] = strcmp(matmul_type, "Conv") == 0 ? 3 : 0;
        }
        if (i % OF_A_BLOCK == 3) {
            op->setting[MDOT_SETTING_HEADS] = 4;
            op->setting[MDOT_SETTING_HEAD_SIZE] = 16;
            op->per_sample[MDOT_PHASE_FORWARD].flops = 1e7 * (4 * 16 + 5);
        }
        inputs[i] = i - 1;
        op->inputs = &inputs[i];
        op->input_count = i > 0;
    }
    return predict_make_job(operators, COUNT);
}

static double step_ms(const mdot_job *job, const mdot_configuration *c)
{
    return predict_one(&predict_bandwidth, job, c).step_ms;
}

/* One option's difference from the base. This predictor assumes eager attention and fp32 as defaults. */
typedef struct option_case {
    mdot_configuration c;
    double least, most; /* ratio range to the base step time */
} option_case;

#define BASE .struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "A100", .attention = MDOT_ATTENTION_EAGER

static void check(const char *matmul_type, const option_case *cases, size_t count)
{
    mdot_job *job = make_job(matmul_type);
    const mdot_configuration base = {BASE};
    mdot_prediction before = predict_one(&predict_bandwidth, job, &base);
    assert_int_equal(predict_warnings(before), 0);
    for (size_t i = 0; i < count; i++) {
        mdot_prediction p = predict_one(&predict_bandwidth, job, &cases[i].c);
        double ratio = p.step_ms / before.step_ms;
        if (!(ratio >= cases[i].least && ratio <= cases[i].most)) fail_msg("case %zu: %g", i, ratio);
        assert_int_equal(predict_warnings(p), MDOT_WARN_ANALYTIC_ESTIMATE);
        assert_compare(p.lower_ms, <, p.step_ms);
        assert_compare(p.step_ms, <, p.upper_ms);
    }
    mdot_job_destroy(job);
}

static void options_change_the_step_as_estimated_analytically(void **state)
{
    (void)state;
    static const option_case cases[] = {
        {{.struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "A100"}, 0.2, 0.95}, /* flash attention */
        {{BASE, .compiled = 1}, 0.5, 0.99},
        {{BASE, .recompute = MDOT_RECOMPUTE_BLOCKS}, 1.2, 1.4},
        {{BASE, .recompute = MDOT_RECOMPUTE_SELECTIVE}, 1.01, 1.2},
        {{BASE, .accumulate = 4}, 3.5, 4},
        {{BASE, .pipeline_parallel = 2, .micro_batches = 4}, 0.62, 0.9},
        {{BASE, .tensor_parallel = 2, .link_gbps = 1e6}, 0.4, 0.8},
        {{BASE, .gpu_count = 2, .link_gbps = 0.01}, 100, 1000},
        {{BASE, .gpu_count = 2, .link_gbps = 1e6}, 1, 1.001},
    };
    check("Linear", cases, sizeof cases / sizeof *cases);
}

/* If the host is the limit, only the predictor can estimate the time. The analytic estimate keeps a larger batch's
 * cost. */
static void steps_grow_with_the_batch(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    static const mdot_configuration cases[] = {
        {.struct_size = sizeof(mdot_configuration), .gpu = "A100"},
        {BASE, .compiled = 1},
        {BASE, .precision = MDOT_PRECISION_BF16},
        {BASE, .accumulate = 4, .gpu_count = 4, .link_gbps = 0.1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = cases[i];
        double before = 0;
        for (c.batch = 1; c.batch <= 1000; c.batch *= 2) {
            double now = step_ms(job, &c);
            if (!(now > before)) fail_msg("case %zu: %g ms of batch %d after %g", i, now, (int)c.batch, before);
            before = now;
        }
    }
    mdot_job_destroy(job);
}

/* The predictor answers two seconds for any batch, for work finished by a GPU in milliseconds. */
static void faster_kernels_do_not_shorten_host_bound_steps(void **state)
{
    (void)state;
    static const struct {
        mdot_configuration c;
        double least, most;
    } cases[] = {
        {{.struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "A100"}, 0.98, 1}, /* flash attention */
        {{BASE, .compiled = 1}, 0.8, 0.9},                                                 /* it saves launches */
        {{BASE, .precision = MDOT_PRECISION_BF16}, 0.98, 1},
        {{BASE, .recompute = MDOT_RECOMPUTE_BLOCKS}, 1.2, 1.4},
        {{BASE, .accumulate = 4}, 3.5, 4},
    };
    predict_fixture f = {0};
    predict_open(&f, predict_order_model());
    mdot_job *job = make_job("Linear");
    const mdot_configuration base = {BASE};
    double before = predict_one(&f, job, &base).step_ms;
    assert_compare(before, >, 1000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double ratio = predict_one(&f, job, &cases[i].c).step_ms / before;
        if (!(ratio >= cases[i].least && ratio <= cases[i].most)) fail_msg("case %zu: %g", i, ratio);
    }
    mdot_job_destroy(job);
    predict_close(&f);
}

static void default_precision_speeds_up_convolutions_only(void **state)
{
    (void)state;
    const mdot_configuration fp32 = {BASE}, tf32 = {BASE, .precision = MDOT_PRECISION_TF32};
    const mdot_configuration pytorch = {BASE, .precision = MDOT_PRECISION_PYTORCH};
    mdot_job *linear = make_job("Linear"), *convolutions = make_job("Conv");
    mdot_prediction p = predict_one(&predict_bandwidth, linear, &pytorch);
    assert_compare(p.step_ms, ==, step_ms(linear, &fp32));
    assert_compare(predict_warnings(p), ==, 0);
    p = predict_one(&predict_bandwidth, convolutions, &pytorch);
    assert_compare(p.step_ms, ==, step_ms(convolutions, &tf32));
    assert_compare(predict_warnings(p), ==, 0);
    mdot_configuration old = pytorch, old_fp32 = fp32;
    old.gpu = old_fp32.gpu = "V100"; /* V100 lacks TF32 */
    p = predict_one(&predict_bandwidth, convolutions, &old);
    assert_compare(p.step_ms, ==, step_ms(convolutions, &old_fp32));
    assert_compare(predict_warnings(p), ==, 0);
    mdot_job_destroy(linear);
    mdot_job_destroy(convolutions);
}

/* The micro-step count is exact. All other analytic estimates widen the interval. */
static void analytic_estimates_widen_intervals(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    const mdot_configuration base = {BASE}, counted = {BASE, .accumulate = 64};
    const mdot_configuration blocks = {BASE, .recompute = MDOT_RECOMPUTE_BLOCKS};
    mdot_prediction p = predict_one(&predict_bandwidth, job, &base),
                    many = predict_one(&predict_bandwidth, job, &counted);
    mdot_prediction again = predict_one(&predict_bandwidth, job, &blocks);
    predict_assert_close(many.upper_ms / many.lower_ms, p.upper_ms / p.lower_ms);
    /* in each direction by the change to the power 1/4 */
    double wider = sqrt(again.step_ms / p.step_ms);
    predict_assert_close(again.upper_ms / again.lower_ms, p.upper_ms / p.lower_ms * wider);
    mdot_job_destroy(job);
}

/* The same step on two nodes takes longer if the network is slower, and ZeRO 3 exchanges more. */
static void exchanges_use_the_slowest_link(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    mdot_configuration c = {BASE, .gpu_count = 8, .link_gbps = 1, .network_gbps = 0.1};
    double one_node = step_ms(job, &c);
    c.node_count = 2;
    double two_nodes = step_ms(job, &c);
    assert_compare(two_nodes, >, 2 * one_node);
    c.zero_stage = 2;
    assert_compare(step_ms(job, &c), <=, two_nodes);
    c.zero_stage = 3;
    assert_compare(step_ms(job, &c), >, 1.3 * two_nodes);
    mdot_job_destroy(job);
}

/* An exchange over nodes has one ring through each GPU in the node, and as many network ports. */
static void gpus_of_a_node_share_its_network_ports(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    mdot_configuration many = {BASE, .gpu_count = 16, .node_count = 2, .link_gbps = 1, .network_gbps = 0.05};
    mdot_configuration alone = {BASE, .gpu_count = 16, .node_count = 16, .link_gbps = 1, .network_gbps = 0.4};
    predict_assert_close(step_ms(job, &many), step_ms(job, &alone));
    many.network_gbps = 5; /* the link is slower than the ports together */
    alone.network_gbps = 1;
    predict_assert_close(step_ms(job, &many), step_ms(job, &alone));
    /* If tensor parallelism takes all GPUs in a node, the gradient exchange has one GPU per node. */
    mdot_configuration spread = {BASE, .gpu_count = 8, .node_count = 2, .tensor_parallel = 4, .link_gbps = 1};
    spread.network_gbps = 1e-3;
    double one_port = step_ms(job, &spread);
    spread.network_gbps = 2e-3;
    double faster = step_ms(job, &spread) / one_port;
    assert_compare(faster, >, 0.5);
    assert_compare(faster, <, 0.6);
    mdot_job_destroy(job);
}

static double exchanged_ms(const mdot_job *job, const mdot_configuration *c)
{
    rt_gpu_names names = {0};
    rt_configuration configuration;
    rt_resolved_configuration resolved;
    assert_int_equal(rt_configuration_read(c, 0, &names, &configuration, NULL), MDOT_OK);
    rt_resolve(job, &configuration, &resolved);
    return rt_communication_ms(job, &resolved, 0);
}

/* Tensor-parallel all-reduces over a link with negligible transfer time. The time is for starting them, and half as
 * much again with recomputed blocks. test_experts.c tests the time to fill a link. */
static void starting_an_all_reduce_costs_time(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    mdot_configuration c = {BASE, .tensor_parallel = 2, .link_gbps = 1e9};
    double sums = job->analysis->sharding.summed_count;
    assert_compare(sums, >, 0);
    assert_within(exchanged_ms(job, &c), sums * 0.009, 1e-3);
    c.tensor_parallel = 4;
    assert_within(exchanged_ms(job, &c), sums * 0.013, 1e-3);
    c.recompute = MDOT_RECOMPUTE_BLOCKS;
    assert_within(exchanged_ms(job, &c), 1.5 * sums * 0.013, 1e-3);
    mdot_job_destroy(job);
}

/* In one sweep, the operator features change with the parallelism degree and change back. */
static void sweep_over_degrees_matches_single_calls(void **state)
{
    (void)state;
    enum { COUNT_OF = 12 };
    mdot_job *job = make_job("Linear");
    mdot_configuration c[COUNT_OF];
    mdot_prediction p[COUNT_OF] = {{.struct_size = sizeof(mdot_prediction)}};
    for (uint32_t i = 0; i < COUNT_OF; i++)
        c[i] = (mdot_configuration){BASE, .tensor_parallel = 1 + i % 2, .pipeline_parallel = i % 3 == 2 ? 2 : 1};
    assert_int_equal(mdot_sweep(predict_bandwidth.context, job, c, COUNT_OF, p, NULL), MDOT_OK);
    for (int i = 0; i < COUNT_OF; i++) assert_compare(p[i].step_ms, ==, step_ms(job, &c[i]));
    mdot_job_destroy(job);
}

/* ---- Predictors that have the inputs ----------------------------------------------------------------------------- */

/* The answer is 1 ms plus 0.001 * (i + 1) times configuration value i. */
static onnx_builder *knowing_model(int count)
{
    char shape[16], pick[16];
    float weights[RT_CONFIGURATION_NUMBERS * 3];
    static const float base[3] = {1, 1, 1};
    const int64_t first = 0;
    snprintf(shape, sizeof shape, "%d", count);
    snprintf(pick, sizeof pick, "%d,3", count);
    for (int i = 0; i < 3 * count; i++) weights[i] = 1e-3f * (float)(i / 3 + 1);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "weights", MDOT_DTYPE_F32, pick, weights);
    onnx_initializer(b, "base", MDOT_DTYPE_F32, "3", base);
    onnx_initializer(b, "first", MDOT_DTYPE_I64, "1", &first);
    onnx_node(b, "Unsqueeze", "configuration,first", "row");
    onnx_node(b, "MatMul", "row,weights", "product");
    onnx_node(b, "Squeeze", "product,first", "squeezed");
    onnx_node(b, "Add", "squeezed,base", "step_ms");
    onnx_output(b, "step_ms");
    return b;
}

/* The same for values by name. `numbers` has each value's RT_CONFIGURATION_… bit. */
static onnx_builder *knowing_model_of(rt_configuration_set numbers)
{
    static const char *const names[] = {
#define NAME(id, name) name,
        MDOT_CONFIGURATION_MAP(NAME)
#undef NAME
    };
    char list[512] = "";
    int count = 0;
    for (int i = RT_CONFIGURATION_NUMBERS - 1; i >= 0; i--) { /* not in the map's order */
        if ((numbers & RT_CONFIGURATION_BIT(i)) == 0) continue;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", count++ > 0 ? ", " : "", names[i]);
    }
    onnx_builder *b = knowing_model(count);
    onnx_metadata(b, "mdot.reads.configuration", list);
    return b;
}

#define ALL (RT_CONFIGURATION_BIT(RT_CONFIGURATION_NUMBERS) - 1)
#define BIT(number) RT_CONFIGURATION_BIT(RT_CONFIGURATION_##number)
#define PARALLELISM_INPUTS                                                                                             \
    (BIT(LINK_GBPS) | BIT(NETWORK_GBPS) | BIT(NODE_COUNT) | BIT(DATA_PARALLEL) | BIT(TENSOR_PARALLEL) |                \
     BIT(PIPELINE_PARALLEL) | BIT(EXPERT_PARALLEL) | BIT(MICRO_BATCHES) | BIT(ZERO_STAGE))

/* Each option is estimated analytically for a predictor with all inputs except the option's, for any model behind
 * it. */
static void only_unread_options_are_estimated_analytically(void **state)
{
    (void)state;
    static const struct {
        uint32_t without;
        mdot_configuration c;
    } options[] = {
        {BIT(IS_AMP_BF16), {BASE, .precision = MDOT_PRECISION_AMP_BF16}},
        {BIT(IS_BF16), {BASE, .precision = MDOT_PRECISION_BF16}},
        {BIT(IS_PYTORCH), {BASE, .precision = MDOT_PRECISION_PYTORCH}},
        {BIT(IS_EAGER), {.struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "A100"}}, /* flash attention */
        {BIT(IS_COMPILED), {BASE, .compiled = 1}},
        {BIT(RECOMPUTES_BLOCKS), {BASE, .recompute = MDOT_RECOMPUTE_BLOCKS}},
        {BIT(RECOMPUTES_SELECTIVELY), {BASE, .recompute = MDOT_RECOMPUTE_SELECTIVE}},
        {BIT(ACCUMULATE), {BASE, .accumulate = 4}},
        {BIT(ZERO_STAGE), {BASE, .gpu_count = 4, .zero_stage = 3}},
        {BIT(LINK_GBPS), {BASE, .gpu_count = 4, .tensor_parallel = 2}},
        {PARALLELISM_INPUTS, {BASE, .pipeline_parallel = 2, .micro_batches = 4}},
    };
    enum { COUNT_OF = sizeof options / sizeof *options };
    mdot_job *job = make_job("Linear");
    for (size_t without = 0; without < COUNT_OF; without++) {
        predict_fixture f = {0};
        predict_open(&f, knowing_model_of(ALL & ~options[without].without));
        for (size_t i = 0; i < COUNT_OF; i++) {
            uint32_t taken = options[without].without, wants = options[i].without;
            bool lacks =
                (taken & wants) != 0 || ((taken & PARALLELISM_INPUTS) != 0 && (wants & PARALLELISM_INPUTS) != 0);
            bool is_default = wants == BIT(IS_PYTORCH); /* fp32, for a job without convolutions */
            uint32_t warnings = predict_warnings(predict_one(&f, job, &options[i].c));
            if (warnings != (lacks && !is_default ? MDOT_WARN_ANALYTIC_ESTIMATE : 0))
                fail_msg("without %x, option %zu warns of %x", (unsigned)taken, i, (unsigned)warnings);
        }
        predict_close(&f);
    }
    mdot_job_destroy(job);
}

/* A predictor for versions, torch.compile and precisions, without inputs for several GPUs. */
static void predictor_of_software_options_gets_only_those(void **state)
{
    (void)state;
    rt_configuration_set numbers =
        BIT(BATCH) | BIT(IS_AMP) | BIT(IS_AMP_BF16) | BIT(IS_EAGER) | BIT(IS_COMPILED) | BIT(TORCH);
    predict_fixture f = {0};
    predict_open(&f, knowing_model_of(numbers));
    mdot_job *job = make_job("Linear");
    mdot_configuration c = {BASE, .precision = MDOT_PRECISION_AMP_BF16, .compiled = 1, .torch = 204};
    mdot_prediction one = predict_one(&f, job, &c);
    /* The columns are in reverse map order: torch, compiled, eager, amp in bf16, amp, batch. */
    predict_assert_close(one.step_ms, 1 + 1e-3 * (1 * 204 + 2 * 1 + 3 * 1 + 4 * 1 + 5 * 1 + 6 * 8));
    assert_int_equal(predict_warnings(one), 0);
    c.accumulate = 4;
    mdot_prediction several = predict_one(&f, job, &c);
    assert_compare(several.step_ms, >, 3 * one.step_ms);
    assert_compare(several.step_ms, <=, 4 * one.step_ms);
    assert_int_equal(predict_warnings(several), MDOT_WARN_ANALYTIC_ESTIMATE);
    c.accumulate = 0;
    c.gpu_count = 4;
    mdot_prediction together = predict_one(&f, job, &c);
    c.link = MDOT_LINK_NVLINK; /* an A100's default link */
    {
        assert_compare(together.step_ms, >, one.step_ms);
        assert_compare(together.step_ms, ==, predict_one(&f, job, &c).step_ms);
    }
    assert_int_equal(predict_warnings(together), MDOT_WARN_ANALYTIC_ESTIMATE);
    mdot_job_destroy(job);
    predict_close(&f);
}

static void options_that_the_predictor_reads_are_not_corrected(void **state)
{
    (void)state;
    predict_fixture f = {0};
    predict_open(&f, knowing_model(RT_CONFIGURATION_NUMBERS));
    mdot_job *job = make_job("Linear");
    const mdot_configuration c = {.struct_size = sizeof c,
                                  .batch = 8,
                                  .gpu = "A100",
                                  .gpu_count = 8,
                                  .precision = MDOT_PRECISION_BF16,
                                  .optimizer = MDOT_OPTIMIZER_ADAM,
                                  .recompute = MDOT_RECOMPUTE_BLOCKS,
                                  .compiled = 1,
                                  .accumulate = 3,
                                  .node_count = 2,
                                  .link_gbps = 7,
                                  .network_gbps = 5,
                                  .tensor_parallel = 2,
                                  .pipeline_parallel = 2,
                                  .micro_batches = 4,
                                  .zero_stage = 2,
                                  .torch = 204,
                                  .attention = MDOT_ATTENTION_EAGER};
    static const double numbers[RT_CONFIGURATION_NUMBERS] = {
        2, 8, 0, 0, 1, 0, 1, 0,   0,
        1, 0, 1, 1, 1, 0, 3, 7,   5,
        2, 2, 2, 2, 1, 4, 2, 204, [RT_CONFIGURATION_HOST_LAUNCH_US] = 50};
    double expected = 1;
    for (int i = 0; i < RT_CONFIGURATION_NUMBERS; i++) expected += 1e-3 * (i + 1) * numbers[i];
    mdot_prediction p = predict_one(&f, job, &c);
    predict_assert_close(p.step_ms, expected);
    assert_int_equal(predict_warnings(p), 0);
    mdot_job_destroy(job);
    predict_close(&f);
}

/* The predictor reads the attention kernel but lacks the values from later versions. */
static void predictor_gets_only_the_values_it_reads(void **state)
{
    (void)state;
    predict_fixture f = {0};
    predict_open(&f, knowing_model(RT_CONFIGURATION_IS_EAGER + 1));
    mdot_job *job = make_job("Linear");
    mdot_configuration c = {BASE};
    mdot_prediction eager = predict_one(&f, job, &c);
    c.attention = MDOT_ATTENTION_FLASH;
    mdot_prediction flash = predict_one(&f, job, &c);
    predict_assert_close(eager.step_ms - flash.step_ms, 1e-3 * (RT_CONFIGURATION_IS_EAGER + 1));
    assert_int_equal(predict_warnings(flash) | predict_warnings(eager), 0);
    c.compiled = 1;
    mdot_prediction compiled = predict_one(&f, job, &c);
    assert_int_equal(predict_warnings(compiled), MDOT_WARN_ANALYTIC_ESTIMATE);
    assert_compare(compiled.step_ms, <, flash.step_ms);
    mdot_job_destroy(job);
    predict_close(&f);
}

/* The analytic estimate has no model for software versions, so the predictor's own answer stays unchanged. */
static void unread_version_changes_nothing_and_gives_a_warning(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    for (int count = RT_CONFIGURATION_TORCH; count <= RT_CONFIGURATION_TORCH + 1; count++) {
        bool reads = count > RT_CONFIGURATION_TORCH;
        predict_fixture f = {0};
        predict_open(&f, knowing_model(count));
        mdot_configuration c = {BASE, .tensor_parallel = 2};
        mdot_prediction newest = predict_one(&f, job, &c);
        assert_int_equal(predict_warnings(newest), 0);
        c.torch = 112;
        mdot_prediction old = predict_one(&f, job, &c);
        predict_assert_close(old.step_ms - newest.step_ms, reads ? 1e-3 * (RT_CONFIGURATION_TORCH + 1) * 112 : 0);
        assert_int_equal(predict_warnings(old), reads ? 0 : MDOT_WARN_SOFTWARE_NOT_MEASURED);
        predict_close(&f);
    }
    mdot_job_destroy(job);
}

/* Predicts a step. The predictor reads the batch alone, and all of its time belongs to one part. */
static double step_with_part(double ms, int part, const mdot_job *job, const mdot_configuration *c)
{
    static const float nothing = 0;
    float step[3] = {(float)(ms * .9), (float)ms, (float)(ms * 1.1)}, parts[10] = {0};
    parts[part] = (float)ms;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "1");
    onnx_initializer(b, "nothing", MDOT_DTYPE_F32, "1", &nothing);
    onnx_initializer(b, "step", MDOT_DTYPE_F32, "3", step);
    onnx_initializer(b, "parts", MDOT_DTYPE_F32, "10", parts);
    onnx_node(b, "Mul", "configuration,nothing", "none");
    onnx_node(b, "Add", "step,none", "step_ms");
    onnx_output(b, "step_ms");
    onnx_node(b, "Add", "parts,none", "part_ms");
    onnx_output(b, "part_ms");
    predict_fixture f = {0};
    predict_open(&f, b);
    double answer = predict_one(&f, job, c).step_ms;
    predict_close(&f);
    return answer;
}

/* A predictor's own parts are divided, however short they are: an option that changes one of them changes the step in
 * proportion. */
static void parts_of_any_length_are_read(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    enum { BACKWARD_MATMULS = 4, UPDATE = 8 };
    mdot_configuration adamw = predict_configuration(8, "A100"), recomputed = adamw;
    adamw.optimizer = MDOT_OPTIMIZER_ADAMW;
    recomputed.recompute = MDOT_RECOMPUTE_BLOCKS;
    const double update = step_with_part(200, UPDATE, job, &adamw) / 200;
    const double backward = step_with_part(200, BACKWARD_MATMULS, job, &recomputed) / 200;
    assert_compare(update, >, 1.2);
    assert_compare(backward, >, 1.2);
    for (double ms = 50; ms > .004; ms /= 3) {
        assert_within(step_with_part(ms, UPDATE, job, &adamw) / ms, update, 1e-3 * update);
        assert_within(step_with_part(ms, BACKWARD_MATMULS, job, &recomputed) / ms, backward, 1e-3 * backward);
    }
    mdot_job_destroy(job);
}

/* torch.compile chooses the layout of convolutions from PyTorch 2.1 on, except on AMD's GPUs: the predictor learned
 * compiled inference in NCHW, and training in half precision in both. */
static void compiled_convolutions_have_their_learned_layout(void **state)
{
    (void)state;
    static const uint32_t versions[] = {0, 200, 201, 209};
    static const char *const gpus[] = {"A100", "MI300X"};
    mdot_job_operator op = predict_operator(0);
    op.type = "Conv";
    op.setting[MDOT_SETTING_CHANNELS_IN] = op.setting[MDOT_SETTING_CHANNELS_OUT] = 128;
    op.setting[MDOT_SETTING_KERNEL_H] = op.setting[MDOT_SETTING_KERNEL_W] = 3;
    op.setting[MDOT_SETTING_GROUPS] = 1;
    mdot_job *job = predict_make_job(&op, 1);
    for (int i = 0; i < 128; i++) {
        mdot_configuration c = predict_configuration(8, gpus[i % 2]);
        c.torch = versions[i / 2 % 4];
        c.compiled = i / 8 % 2;
        c.mode = i / 16 % 2 == 0 ? MDOT_MODE_TRAIN : MDOT_MODE_INFERENCE;
        c.layout = i / 32 % 2 == 0 ? MDOT_LAYOUT_NCHW : MDOT_LAYOUT_NHWC;
        c.precision = i / 64 == 0 ? MDOT_PRECISION_FP32 : MDOT_PRECISION_AMP;
        rt_gpu_names names = {0};
        rt_configuration requested, queried;
        if (rt_configuration_read(&c, 0, &names, &requested, NULL) != MDOT_OK) continue;
        rt_project_configuration(&requested, job, ~(rt_configuration_set)0, &queried);
        bool chooses = c.compiled != 0 && c.torch != 200 && i % 2 == 0;
        mdot_layout wanted = !chooses                            ? c.layout
                             : c.mode == MDOT_MODE_INFERENCE     ? MDOT_LAYOUT_NCHW
                             : c.precision == MDOT_PRECISION_AMP ? MDOT_LAYOUT_NHWC
                                                                 : c.layout;
        if (queried.c.layout != wanted) fail_msg("case %d", i);
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_change_the_step_as_estimated_analytically),
        cmocka_unit_test(steps_grow_with_the_batch),
        cmocka_unit_test(faster_kernels_do_not_shorten_host_bound_steps),
        cmocka_unit_test(default_precision_speeds_up_convolutions_only),
        cmocka_unit_test(analytic_estimates_widen_intervals),
        cmocka_unit_test(exchanges_use_the_slowest_link),
        cmocka_unit_test(gpus_of_a_node_share_its_network_ports),
        cmocka_unit_test(starting_an_all_reduce_costs_time),
        cmocka_unit_test(sweep_over_degrees_matches_single_calls),
        cmocka_unit_test(options_that_the_predictor_reads_are_not_corrected),
        cmocka_unit_test(predictor_gets_only_the_values_it_reads),
        cmocka_unit_test(only_unread_options_are_estimated_analytically),
        cmocka_unit_test(predictor_of_software_options_gets_only_those),
        cmocka_unit_test(unread_version_changes_nothing_and_gives_a_warning),
        cmocka_unit_test(parts_of_any_length_are_read),
        cmocka_unit_test(compiled_convolutions_have_their_learned_layout),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
