/* test_resolved_configuration.c — runtime/perf/resolved_configuration.c: the values that follow from a job and a
 * configuration, and how often predictions compute them. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/resolved_configuration.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- Counters: linked with --wrap (tests/CMakeLists.txt) --------------------------------------------------------- */

static int resolve_count, rates_count;

void __real_rt_resolve(const mdot_job *job, const rt_configuration *configuration, rt_resolved_configuration *out);
void __wrap_rt_resolve(const mdot_job *job, const rt_configuration *configuration, rt_resolved_configuration *out);
rt_rates __real_rt_rates_of(const rt_configuration *configuration);
rt_rates __wrap_rt_rates_of(const rt_configuration *configuration);

void __wrap_rt_resolve(const mdot_job *job, const rt_configuration *configuration, rt_resolved_configuration *out)
{
    resolve_count++;
    __real_rt_resolve(job, configuration, out);
}

rt_rates __wrap_rt_rates_of(const rt_configuration *configuration)
{
    rates_count++;
    return __real_rt_rates_of(configuration);
}

/* ---- Jobs and configurations ------------------------------------------------------------------------------------- */

enum { BLOCKS = 4, OF_A_BLOCK = 3, OPERATORS = BLOCKS * OF_A_BLOCK };

/* Four blocks of a matmul, an attention and a matmul. */
static mdot_job *make_job(void)
{
    mdot_job_operator operators[OPERATORS];
    uint32_t inputs[OPERATORS];
    for (uint32_t i = 0; i < OPERATORS; i++) {
        mdot_job_operator *op = &operators[i];
        bool is_matmul = i % OF_A_BLOCK != 1;
        *op = (mdot_job_operator){.struct_size = sizeof *op, .known = true, .block = i / OF_A_BLOCK + 1};
        op->type = is_matmul ? "Linear" : "Attention";
        op->setting[MDOT_SETTING_INPUTS] = 1;
        op->setting[MDOT_SETTING_HEADS] = is_matmul ? 0 : 4;
        op->setting[MDOT_SETTING_HEAD_SIZE] = is_matmul ? 0 : 16;
        op->setting[MDOT_SETTING_CHANNELS_IN] = op->setting[MDOT_SETTING_CHANNELS_OUT] = is_matmul ? 64 : 0;
        op->parameters = is_matmul ? 1e6 : 0;
        for (int phase = 0; phase < (is_matmul ? 3 : 2); phase++) op->per_sample[phase] = (mdot_load){1e9, 1e7, 1e7};
        inputs[i] = i - 1;
        op->inputs = &inputs[i];
        op->input_count = i > 0;
    }
    return predict_make_job(operators, OPERATORS);
}

#define BASE .struct_size = sizeof(mdot_configuration), .batch = 8, .gpu = "A100"

static const mdot_configuration configurations[] = {
    {BASE},
    {BASE, .compiled = 1, .precision = MDOT_PRECISION_AMP},
    {BASE, .precision = MDOT_PRECISION_BF16, .attention = MDOT_ATTENTION_EAGER},
    {BASE, .recompute = MDOT_RECOMPUTE_BLOCKS, .accumulate = 4},
    {BASE, .gpu_count = 8, .zero_stage = 3, .node_count = 2},
    {BASE, .tensor_parallel = 2, .precision = MDOT_PRECISION_TF32},
    {BASE, .pipeline_parallel = 2, .micro_batches = 4, .optimizer = MDOT_OPTIMIZER_ADAMW},
    {BASE, .tensor_parallel = 2, .pipeline_parallel = 2, .data_parallel = 2},
};
enum { COUNT = sizeof configurations / sizeof *configurations };

static rt_resolved_configuration resolve(const mdot_job *job, const mdot_configuration *c)
{
    rt_gpu_names names = {0};
    rt_configuration configuration;
    rt_resolved_configuration resolved;
    mdot_error err = {0};
    if (rt_configuration_read(c, 0, &names, &configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (rt_configuration_check(&configuration, job, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolve(job, &configuration, &resolved);
    return resolved;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static void one_gpu_has_the_whole_job(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    rt_resolved_configuration r = resolve(job, &configurations[3]);
    assert_true(rt_is_unsharded(&r.shard));
    assert_compare(r.steps, ==, 4);
    assert_compare(r.micro_steps, ==, 4);
    assert_int_equal(r.activation_case.type, RT_ACTIVATION_FP32);
    assert_int_equal(r.activation_case.recompute, MDOT_RECOMPUTE_BLOCKS);
    mdot_job_destroy(job);
}

/* Two stages of four blocks: filling and emptying the pipeline takes one more micro-step. */
static void stage_of_a_pipeline_has_its_blocks(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    rt_resolved_configuration r = resolve(job, &configurations[6]);
    assert_compare(r.shard.of[RT_PIPELINE_BLOCKS], ==, 0.5);
    assert_compare(r.shard.of[RT_PIPELINE_BEFORE] + r.shard.of[RT_PIPELINE_AFTER], ==, 1);
    assert_compare(r.steps, ==, 4);
    assert_compare(r.micro_steps, ==, 5);
    mdot_job_destroy(job);
}

/* The pipeline runs at the pace of its slowest stage, whichever blocks its ends have beside embedding and head. */
static void a_pipeline_follows_its_slowest_stage(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    static const double ends[] = {0, 0.5, 1, 3};
    double *cost = job->analysis->sharding.cost; /* of four blocks */
    cost[RT_PIPELINE_BLOCKS] = 4;
    for (int before = 0; before < 4; before++)
        for (int after = 0; after < 4; after++)
            for (uint32_t first = 1; first < 4; first++)
                for (uint32_t last = 1; first + last <= 4; last++) {
                    cost[RT_PIPELINE_BEFORE] = ends[before];
                    cost[RT_PIPELINE_AFTER] = ends[after];
                    bool has_middle = first + last < 4;
                    mdot_configuration c = {BASE, .first_stage_blocks = first, .last_stage_blocks = last};
                    c.gpu_count = c.pipeline_parallel = has_middle ? 3 : 2;
                    c.micro_batches = 4;
                    c.batch = 40;
                    rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
                    rt_resolved_configuration r;
                    mdot_error err = {0};
                    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
                    rt_resolve(job, &configuration, &r);
                    double slowest = fmax(first + ends[before], last + ends[after]), load = 0;
                    if (has_middle) slowest = fmax(slowest, 4.0 - first - last);
                    for (int p = 0; p < RT_PIPELINE_POSITIONS; p++) load += r.shard.of[p] * cost[p];
                    assert_compare(load, ==, slowest);
                }
    mdot_job_destroy(job);
}

/* Four stages keep four micro-batches. If each is divided into two, the first stage keeps 3 / 2 more; it never keeps
 * more than there are. */
static void interleaved_stages_keep_more_micro_batches(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    static const struct {
        int virtual_stages, micro_batches;
        double in_flight;
    } cases[] = {{1, 8, 4}, {2, 8, 5.5}, {2, 4, 4}, {1, 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mdot_configuration c = {BASE, .pipeline_parallel = 4};
        c.batch = 40;
        c.gpu_count = 4;
        c.virtual_stages = cases[i].virtual_stages;
        c.micro_batches = cases[i].micro_batches;
        rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
        rt_resolved_configuration r;
        mdot_error err = {0};
        if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
        rt_resolve(job, &configuration, &r);
        assert_compare(r.in_flight, ==, cases[i].in_flight);
    }
    mdot_job_destroy(job);
}

static void compiled_code_recomputes_selectively(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    rt_resolved_configuration r = resolve(job, &configurations[1]);
    assert_int_equal(r.activation_case.type, RT_ACTIVATION_AMP);
    assert_int_equal(r.activation_case.recompute, MDOT_RECOMPUTE_SELECTIVE);
    mdot_job_destroy(job);
}

/* A variant equals a configuration with these values from the start. */
static void variant_is_resolved_like_the_configuration_it_stands_for(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    mdot_configuration other = configurations[5];
    other.compiled = 1;
    other.precision = MDOT_PRECISION_AMP;
    other.attention = MDOT_ATTENTION_EAGER;
    rt_resolved_configuration base = resolve(job, &configurations[5]), want = resolve(job, &other);
    rt_resolved_configuration got = rt_with_kernels_of(&base, &want);
    assert_memory_equal(&got.shard, &want.shard, sizeof got.shard);
    assert_memory_equal(&got.rates, &want.rates, sizeof got.rates);
    assert_int_equal(got.activation_case.type, want.activation_case.type);
    assert_int_equal(got.activation_case.attention, want.activation_case.attention);
    assert_int_equal(got.activation_case.recompute, want.activation_case.recompute);
    assert_compare(got.configuration.c.compiled, ==, 1);
    assert_compare(got.configuration.c.precision, ==, MDOT_PRECISION_AMP);
    got = rt_with_micro_batch(&base, 32);
    assert_int_equal(got.configuration.micro_batch, 32);
    assert_memory_equal(&got.shard, &base.shard, sizeof got.shard);
    mdot_job_destroy(job);
}

/* Each limit is the largest value that the job allows. */
static void configurations_beyond_the_job_are_refused(void **state)
{
    (void)state;
    const mdot_job_operator relu = {.struct_size = sizeof relu, .type = "Relu", .known = true};
    mdot_job *blocks = make_job(), *plain = predict_make_job(&relu, 1);
    const struct {
        const mdot_job *job;
        mdot_configuration c;
        const char *reason; /* NULL: accepted */
    } cases[] = {
        {plain, {.recompute = MDOT_RECOMPUTE_BLOCKS}, "--checkpoint is blocks, but the job lacks blocks"},
        {plain, {.recompute = MDOT_RECOMPUTE_SELECTIVE}, NULL},
        {blocks, {.recompute = MDOT_RECOMPUTE_BLOCKS}, NULL},
        {plain, {.pipeline_parallel = 2}, "--parallel pp is 2; each stage needs a block, and the job has 0"},
        {blocks, {.pipeline_parallel = 4}, NULL},
        {blocks, {.pipeline_parallel = 5}, "--parallel pp is 5; each stage needs a block, and the job has 4"},
        {plain, {.tensor_parallel = 2}, "--parallel tp needs matmuls that can be sharded"},
        {blocks, {.tensor_parallel = 4}, NULL},
        {blocks, {.tensor_parallel = 3}, "--parallel tp is 3; it must divide 4"},
        {blocks, {.tensor_parallel = 8}, "--parallel tp is 8; it must divide 4"},
        {plain, {.offload_activations = 1}, "but the job lacks blocks"},
        {blocks, {.offload_activations = 1}, NULL},
        {blocks, {.loss = MDOT_LOSS_CHUNKED}, "loss is chunked, but the job has no cross-entropy"},
        {blocks, {.loss = MDOT_LOSS_FUSED}, "loss is fused, but the job has no cross-entropy"},
        {plain, {.context_parallel = 2}, "--parallel cp is 2, but the job lacks attention"},
        {blocks, {.context_parallel = 2}, NULL},
        {blocks, {.pipeline_parallel = 2, .virtual_stages = 2, .micro_batches = 2}, NULL},
        {blocks, {.pipeline_parallel = 2, .virtual_stages = 3, .micro_batches = 2}, NULL}, /* two without blocks */
        {blocks,
         {.pipeline_parallel = 2, .virtual_stages = 4, .micro_batches = 2},
         "--parallel vpp is 4 on each of 2 stages; each part needs a block, besides one for the embedding"},
        {blocks, {.pipeline_parallel = 2, .first_stage_blocks = 1, .last_stage_blocks = 3}, NULL},
        {blocks,
         {.pipeline_parallel = 2, .first_stage_blocks = 1, .last_stage_blocks = 2},
         "the ends of the pipeline have 1 and 2 blocks, and 0 other stages share the rest of 4 blocks"},
        {blocks,
         {.pipeline_parallel = 3, .first_stage_blocks = 3, .last_stage_blocks = 1},
         "the ends of the pipeline have 3 and 1 blocks, and 1 other stages"},
        {blocks, {.pipeline_parallel = 2, .pipeline_blocks = 4}, NULL},
        {blocks, {.pipeline_parallel = 2, .pipeline_blocks = 3}, "have 3 blocks in all, and the job has 4"},
        {blocks, {.pipeline_parallel = 4, .pipeline_blocks = 22}, "have 22 blocks in all, and the job has 4"},
        {blocks, {.pipeline_blocks = 5}, "have 5 blocks in all, and the job has 4"},
        {blocks, {.pipeline_parallel = 6}, "--parallel pp is 6"},
        {blocks,
         {.pipeline_parallel = 6,
          .first_stage_blocks = MDOT_STAGE_WITHOUT_BLOCKS,
          .last_stage_blocks = MDOT_STAGE_WITHOUT_BLOCKS},
         NULL},
        {blocks, {.expert_parallel = 2}, "--parallel ep is 2, but the job lacks experts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_configuration configuration = {.c = cases[i].c, .gpu = {.pcie_gbps = 31.5}};
        configuration.c.batch = 120; /* a multiple of all micro-batches */
        mdot_error err = {0};
        if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("case %zu: %s", i, err.message);
        mdot_status status = rt_configuration_check(&configuration, cases[i].job, &err);
        if (status != (cases[i].reason == NULL ? MDOT_OK : MDOT_INVALID_ARGUMENT)) fail_msg("case %zu", i);
        if (cases[i].reason != NULL && strstr(err.message, cases[i].reason) == NULL)
            fail_msg("case %zu: %s", i, err.message);
    }
    mdot_job_destroy(plain);
    mdot_job_destroy(blocks);
}

/* Each stage has one end. The last one keeps one micro-batch, or, with v parts on each of p stages, those of all parts
 * but one: ((v - 1) p + 1) / v. */
static void stages_keep_their_end_and_their_micro_batches(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    static const struct {
        uint32_t virtual_stages;
        double first, last, micro_steps;
    } cases[] = {{1, 2, 1, 8 + 1}, {2, 2.5, 1.5, 8 + 1 / 2.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = {BASE, .pipeline_parallel = 2, .virtual_stages = cases[i].virtual_stages,
                                .micro_batches = 4};
        c.accumulate = 2;
        rt_resolved_configuration r = resolve(job, &c), first = rt_resolve_stage(&r, RT_STAGE_FIRST),
                                  last = rt_resolve_stage(&r, RT_STAGE_LAST);
        assert_compare(r.steps, ==, 8);
        assert_compare(r.micro_steps, ==, cases[i].micro_steps);
        assert_compare(first.in_flight, ==, cases[i].first);
        assert_compare(last.in_flight, ==, cases[i].last);
        static const double of_first[] = {1, .5, 0}, of_last[] = {0, .5, 1};
        assert_memory_equal(first.shard.of, of_first, sizeof of_first);
        assert_memory_equal(last.shard.of, of_last, sizeof of_last);
        if (c.virtual_stages > 1) continue;
        c.micro_batches = 1; /* no more than there are */
        c.accumulate = 1;
        r = resolve(job, &c);
        last = rt_resolve_stage(&r, RT_STAGE_LAST);
        assert_compare(r.in_flight, ==, 1);
        assert_compare(last.in_flight, ==, 1);
    }
    mdot_configuration c = {BASE, .pipeline_parallel = 2, .micro_batches = 4, .schedule = MDOT_SCHEDULE_ZERO_BUBBLE};
    assert_compare(resolve(job, &c).micro_steps, ==, 4 + 1 / 3.0);
    c = (mdot_configuration){BASE, .pipeline_parallel = 3, .micro_batches = 4};
    assert_compare(resolve(job, &c).shard.of[RT_PIPELINE_BLOCKS], ==, 2 / 4.0);
    c = (mdot_configuration){BASE, .tensor_parallel = 2, .context_parallel = 4};
    rt_resolved_configuration r = resolve(job, &c);
    assert_compare(r.sequence, ==, 4);
    assert_compare(r.replicated, ==, 1);
    assert_compare(r.shard.tensor, ==, 2);
    assert_compare(r.shard.experts, ==, 1);
    c.sequence_parallel = 1;
    assert_compare(resolve(job, &c).replicated, ==, 2);
    mdot_job_destroy(job);
}

/* Each option of kernels comes from the other configuration, and nothing else. */
static void kernels_of_another_configuration_are_taken(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    mdot_configuration one = {BASE, .accumulate = 2},
                       two = {BASE, .accumulate = 4, .ema = 1, .precision = MDOT_PRECISION_MIXED_BF16};
    two.optimizer = MDOT_OPTIMIZER_ADAMW;
    two.optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOR_LOOP;
    rt_resolved_configuration a = resolve(job, &one), b = resolve(job, &two), got = rt_with_kernels_of(&a, &b);
    const mdot_configuration *c = &got.configuration.c;
    assert_int_equal(c->accumulate, 2);
    assert_int_equal(c->ema, 1);
    assert_int_equal(c->precision, MDOT_PRECISION_MIXED_BF16);
    assert_int_equal(c->optimizer, MDOT_OPTIMIZER_ADAMW);
    assert_int_equal(c->optimizer_kernels, MDOT_OPTIMIZER_KERNELS_FOR_LOOP);
    assert_memory_equal(&got.widths, &b.widths, sizeof got.widths);
    b.configuration.c.step_in_backward = 1;
    b.configuration.c.frozen_weights = MDOT_FROZEN_NF4;
    b.configuration.c.loss = MDOT_LOSS_CHUNKED;
    got = rt_with_kernels_of(&a, &b);
    assert_int_equal(c->step_in_backward, 1);
    assert_int_equal(c->frozen_weights, MDOT_FROZEN_NF4);
    assert_int_equal(c->loss, MDOT_LOSS_CHUNKED);
    assert_int_equal(got.activation_case.loss, MDOT_LOSS_CHUNKED);
    assert_memory_equal(&got.rates, &b.rates, sizeof got.rates);
    b.configuration.c.attention = MDOT_ATTENTION_EAGER;
    b.configuration.c.compiled = 1;
    got = rt_with_kernels_of(&a, &b);
    assert_int_equal(c->attention, MDOT_ATTENTION_EAGER);
    assert_int_equal(c->compiled, 1);
    assert_int_equal(got.activation_case.attention, MDOT_ATTENTION_EAGER);
    assert_int_equal(got.activation_case.recompute, MDOT_RECOMPUTE_SELECTIVE);
    mdot_job_destroy(job);
}

/* ---- Counts ------------------------------------------------------------------------------------------------------ */

/* The requested configuration, and the projected one with which the predictor is queried. */
enum { EACH_PREDICTION = 2 };

static void expect_counts(size_t prediction_count)
{
    assert_int_equal(resolve_count, EACH_PREDICTION * prediction_count);
    assert_int_equal(rates_count, EACH_PREDICTION * prediction_count);
    resolve_count = rates_count = 0;
}

static void prediction_resolves_each_configuration_once(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    resolve_count = rates_count = 0;
    for (size_t i = 0; i < COUNT; i++) {
        predict_one(&predict_bandwidth, job, &configurations[i]);
        expect_counts(1);
    }
    mdot_job_destroy(job);
}

/* The shards change from pair to pair, so that every run ends with a pair that it has no space for. */
static void sweep_resolves_each_configuration_once(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    mdot_prediction predictions[COUNT];
    mdot_error err = {0};
    for (size_t i = 0; i < COUNT; i++) predictions[i] = MDOT_INIT(mdot_prediction);
    resolve_count = rates_count = 0;
    if (mdot_sweep(predict_bandwidth.context, job, configurations, COUNT, predictions, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    expect_counts(COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        mdot_prediction one = predict_one(&predict_bandwidth, job, &configurations[i]);
        assert_compare(predictions[i].step_ms, ==, one.step_ms);
        assert_compare(predictions[i].upper_ms, ==, one.upper_ms);
        assert_int_equal(predictions[i].peak_memory_bytes, one.peak_memory_bytes);
    }
    mdot_job_destroy(job);
}

static void explanation_reuses_what_its_prediction_resolved(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    resolve_count = rates_count = 0;
    for (size_t i = 0; i < COUNT; i++) {
        mdot_explanation *explanation = NULL;
        mdot_error err = {0};
        if (mdot_explain(predict_bandwidth.context, job, &configurations[i], &explanation, &err) != MDOT_OK)
            fail_msg("%s", err.message);
        expect_counts(1);
        mdot_explanation_destroy(explanation);
    }
    mdot_job_destroy(job);
}

/* Whatever the ends have, the stages together have all weights and blocks, each operator outside the blocks belongs to
 * one end, and a stage keeps fewer micro-batches than those before it. */
static void stages_divide_the_job(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    double weights = rt_sum_elements(rt_weights_part(&job->analysis->sharding, &(rt_shard){1, 1, {1, 1, 1}, 0}));
    size_t compared = 0;
    for (uint32_t stages = 2; stages <= 6; stages++) {
        for (uint32_t first = 0; first <= 5; first++) {
            for (uint32_t last = 0; last <= 5; last++) {
                mdot_configuration c = {BASE, .pipeline_parallel = stages, .micro_batches = 2 * stages};
                c.first_stage_blocks = first == 5 ? MDOT_STAGE_WITHOUT_BLOCKS : first;
                c.last_stage_blocks = last == 5 ? MDOT_STAGE_WITHOUT_BLOCKS : last;
                rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
                configuration.c.batch = 120;
                if (rt_configuration_complete(&configuration, NULL) != MDOT_OK) continue;
                if (rt_configuration_check(&configuration, job, NULL) != MDOT_OK) continue;
                rt_resolved_configuration r;
                rt_resolve(job, &configuration, &r);
                uint32_t sharing = stages - (first > 0) - (last > 0), given = first % 5 + last % 5;
                if (sharing > 0 && (BLOCKS - given) % sharing != 0) continue; /* rounded up */
                double sum = 0, blocks = 0, largest = 0, behind = stages + 1;
                for (uint32_t s = 0; s < stages; s++) {
                    rt_stage stage = s == 0 ? RT_STAGE_FIRST : s + 1 == stages ? RT_STAGE_LAST : RT_STAGE_MIDDLE;
                    rt_resolved_configuration one = rt_resolve_stage(&r, stage);
                    sum += rt_sum_elements(rt_weights_part(&job->analysis->sharding, &one.shard));
                    blocks += one.shard.of[RT_PIPELINE_BLOCKS];
                    largest = fmax(largest, one.shard.of[RT_PIPELINE_BLOCKS]);
                    assert_compare(one.shard.of[RT_PIPELINE_BEFORE], ==, s == 0);
                    assert_compare(one.shard.of[RT_PIPELINE_AFTER], ==, s + 1 == stages);
                    if (s < 2 || s + 1 == stages) assert_compare(one.in_flight, <, behind);
                    behind = one.in_flight;
                }
                assert_within(blocks, 1, 1e-12);
                assert_within(sum, weights, 1e-6);
                assert_compare(r.shard.of[RT_PIPELINE_BLOCKS], ==, largest);
                compared++;
            }
        }
    }
    assert_compare(compared, >, 20);
    mdot_job_destroy(job);
}

/* Megatron fills the last group of an interleaved pipeline: 3 micro-batches on 2 stages are one group. */
static void interleaved_stages_keep_groups(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    static const struct {
        uint32_t micro_batches;
        double last;
    } cases[] = {{2, 2 + 1}, {3, 3 + 1}, {4, 2 + 1}, {5, 3 + 1}, {6, 2 + 1}, {7, 4 + 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = {BASE, .pipeline_parallel = 2, .virtual_stages = 2,
                                .micro_batches = cases[i].micro_batches};
        c.batch = cases[i].micro_batches;
        rt_resolved_configuration r = resolve(job, &c), last = rt_resolve_stage(&r, RT_STAGE_LAST);
        if (last.in_flight != cases[i].last / 2) fail_msg("case %zu: %g", i, last.in_flight);
    }
    mdot_job_destroy(job);
}

/* The last stage's passes before the first backward pass: a group for each part but the last one, which has one. With
 * fewer blocks, the last part lacks them first. */
static void blocks_of_the_last_stage_lie_in_its_first_parts(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    size_t compared = 0;
    for (uint32_t parts = 2; parts <= 4; parts++) {
        for (uint32_t micro = 2; micro <= 12; micro += 2) {
            for (uint32_t blocks = 1; blocks < BLOCKS; blocks++) {
                mdot_configuration c = {BASE, .pipeline_parallel = 2, .virtual_stages = parts, .micro_batches = micro,
                                        .last_stage_blocks = blocks};
                c.batch = micro;
                rt_configuration configuration = {.c = c, .gpu = {.pcie_gbps = 31.5}};
                if (rt_configuration_complete(&configuration, NULL) != MDOT_OK) continue;
                if (rt_configuration_check(&configuration, job, NULL) != MDOT_OK) continue;
                rt_resolved_configuration r, last;
                rt_resolve(job, &configuration, &r);
                last = rt_resolve_stage(&r, RT_STAGE_LAST);
                double part = fmax(BLOCKS - blocks, blocks) / (double)parts, kept = 0, left = blocks;
                for (uint32_t k = 0; k < parts; k++) {
                    double here = fmin(left, part);
                    kept += here * (k + 1 < parts ? 2 : 1);
                    left -= here;
                }
                assert_within(last.in_flight, kept / blocks, 1e-12);
                compared++;
            }
        }
    }
    assert_compare(compared, >, 20);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_divide_the_job),
        cmocka_unit_test(interleaved_stages_keep_groups),
        cmocka_unit_test(blocks_of_the_last_stage_lie_in_its_first_parts),
        cmocka_unit_test(one_gpu_has_the_whole_job),
        cmocka_unit_test(stage_of_a_pipeline_has_its_blocks),
        cmocka_unit_test(a_pipeline_follows_its_slowest_stage),
        cmocka_unit_test(interleaved_stages_keep_more_micro_batches),
        cmocka_unit_test(compiled_code_recomputes_selectively),
        cmocka_unit_test(variant_is_resolved_like_the_configuration_it_stands_for),
        cmocka_unit_test(prediction_resolves_each_configuration_once),
        cmocka_unit_test(sweep_resolves_each_configuration_once),
        cmocka_unit_test(explanation_reuses_what_its_prediction_resolved),
        cmocka_unit_test(configurations_beyond_the_job_are_refused),
        cmocka_unit_test(stages_keep_their_end_and_their_micro_batches),
        cmocka_unit_test(kernels_of_another_configuration_are_taken),
    };
    return cmocka_run_group_tests(tests, predict_setup, predict_teardown);
}
