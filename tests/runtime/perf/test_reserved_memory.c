/* test_reserved_memory.c — memory beyond the tensors, usable GPU memory, the peak interval. */
#include "mdot/mdotjob.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MIB 0x1p20

static mdot_job *make_job(const char *type)
{
    mdot_job_operator op = {.struct_size = sizeof op, .type = type, .known = true, .parameters = 1e6};
    op.per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e9, 4e6, 4e6};
    op.setting[MDOT_SETTING_CHANNELS_IN] = op.setting[MDOT_SETTING_CHANNELS_OUT] = 64;
    op.setting[MDOT_SETTING_INPUTS] = 1;
    if (strcmp(type, "Conv") == 0) op.setting[MDOT_SETTING_KERNEL_H] = op.setting[MDOT_SETTING_KERNEL_W] = 3;
    mdot_operator_traits_find(type, &op.traits);
    const mdot_job_description d = {.struct_size = sizeof d, .operators = &op, .operator_count = 1, .batch = 1};
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&d, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

/* A table, two blocks, a head with `own` parameters (tied to the table if 0), and its loss. */
static mdot_job *language_model(double own)
{
    static const uint32_t before[4] = {0, 1, 2, 3};
    static const char *const types[4] = {"Gather", "Linear", "Linear", "Linear"};
    static const uint32_t blocks[4] = {0, 1, 2, 0};
    mdot_job_operator operators[5];
    for (int i = 0; i < 4; i++) {
        operators[i] = (mdot_job_operator){
            .struct_size = sizeof *operators, .type = types[i], .known = true, .parameters = 400, .block = blocks[i]};
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1e9, 4096, 8192};
        operators[i].per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){1e9, 4096, 4096};
        operators[i].setting[MDOT_SETTING_CHANNELS_IN] = 8;
        operators[i].setting[MDOT_SETTING_CHANNELS_OUT] = 50;
        operators[i].setting[MDOT_SETTING_INPUTS] = 1;
        operators[i].inputs = i > 0 ? &before[i - 1] : NULL;
        operators[i].input_count = i > 0;
    }
    operators[3].parameters = own;
    operators[4] = (mdot_job_operator){
        .struct_size = sizeof *operators, .type = "SoftmaxCrossEntropyLoss", .known = true, .input_count = 1};
    operators[4].inputs = &before[3];
    mdot_operator_traits_find(operators[4].type, &operators[4].traits);
    return predict_make_job(operators, 5);
}

typedef struct answer {
    rt_memory memory;
    rt_reserved reserved;
} answer;

static answer reserve(const mdot_job *job, const char *gpu, mdot_configuration c)
{
    rt_configuration configuration = {.c = c, .gpu = MDOT_INIT(mdot_gpu)};
    mdot_error err = {0};
    if (c.batch == 0) configuration.c.batch = 1;
    assert_int_equal(mdot_gpu_find(gpu, &configuration.gpu, NULL), MDOT_OK);
    if (rt_configuration_complete(&configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    rt_resolved_configuration resolved;
    rt_resolve(job, &configuration, &resolved);
    answer a = {.memory = rt_measure_memory(job, &resolved)};
    a.reserved = rt_reserve_memory(job, &resolved, &a.memory);
    return a;
}

static void newer_architectures_reserve_more_context_and_workspace(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    rt_reserved v100 = reserve(job, "V100", (mdot_configuration){0}).reserved,
                a100 = reserve(job, "A100", (mdot_configuration){0}).reserved,
                h100 = reserve(job, "H100", (mdot_configuration){0}).reserved;
    assert_compare(250 * MIB, <=, v100.context);
    assert_compare(v100.context, <, a100.context);
    assert_compare(a100.context, <, h100.context);
    assert_compare(h100.context, <=, 650 * MIB);
    assert_compare(v100.workspace, ==, 2 * 8.125 * MIB);
    assert_compare(a100.workspace, ==, v100.workspace);
    assert_compare(h100.workspace, ==, 2 * 32 * MIB);
    mdot_job_destroy(job);
}

/* BLOOM's notes state 1573 MiB on an A100 and 1271 MiB on a V100, with PyTorch 1.11. */
static void early_versions_load_all_kernels(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    static const char *const gpus[] = {"V100", "A100"};
    static const double mib[] = {1271, 1573};
    for (size_t i = 0; i < 2; i++) {
        double newest = reserve(job, gpus[i], (mdot_configuration){0}).reserved.context;
        assert_compare(reserve(job, gpus[i], (mdot_configuration){.torch = 113}).reserved.context, ==, newest);
        assert_compare(reserve(job, gpus[i], (mdot_configuration){.torch = 112}).reserved.context, ==, mib[i] * MIB);
    }
    mdot_job_destroy(job);
}

static void convolutions_need_a_workspace_of_cudnn(void **state)
{
    (void)state;
    mdot_job *matmul = make_job("Linear"), *convolution = make_job("Conv");
    assert_compare(reserve(convolution, "A100", (mdot_configuration){0}).reserved.workspace, >,
                   reserve(matmul, "A100", (mdot_configuration){0}).reserved.workspace);
    mdot_job_destroy(matmul);
    mdot_job_destroy(convolution);
}

static void rounding_grows_with_the_tensors(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    double before = 0;
    for (int64_t batch = 1; batch <= 4096; batch *= 4) {
        answer a = reserve(job, "A100", (mdot_configuration){.batch = batch});
        assert_compare(a.reserved.rounding, >, before);
        assert_compare(a.reserved.rounding, <=, 0.15 * (double)rt_sum_memory(&a.memory) + 22 * MIB);
        before = a.reserved.rounding;
    }
    mdot_job_destroy(job);
}

/* The update copies half-precision gradients into one tensor and converts it. Both take segments beside those of the
 * pass, even if the update itself has the peak. fp32 gradients need none. */
static void flat_gradients_take_a_segment(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    mdot_configuration c = {.precision = MDOT_PRECISION_MIXED_BF16, .zero_stage = 1};
    static const int64_t batches[] = {1, 2, 4096};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++) {
        c.batch = batches[i];
        c.gradient_type = MDOT_NUMBER_DEFAULT;
        answer half = reserve(job, "A100", c);
        const rt_memory *m = &half.memory;
        double sum = m->weights + m->gradients + m->optimizer + m->activations;
        double persistent = 0.005 * (m->weights + m->gradients + m->optimizer), temporary = 0.06 * m->activations;
        double flat = half.reserved.rounding - persistent - temporary - 22 * MIB;
        assert_compare(m->pass, >, 0);
        assert_compare(fabs(sum + flat - (m->pass + 6e6)), <, 1);
        c.gradient_type = MDOT_NUMBER_FP32;
        answer full = reserve(job, "A100", c);
        m = &full.memory;
        persistent = 0.005 * (m->weights + m->gradients + m->optimizer), temporary = 0.06 * m->activations;
        assert_compare(fabs(full.reserved.rounding - persistent - temporary - 22 * MIB), <, 1);
    }
    mdot_job_destroy(job);
}

/* The language_model head has 8192 bytes of fp32 logits per sample. At a loss's peak, three fp32 tensors of this size
 * exist, and perhaps half-precision logits. If these were freed, the segment is unused. */
static void freed_logits_leave_a_segment(void **state)
{
    (void)state;
    static const double full = 8192;
    static const struct {
        mdot_precision precision;
        double tensors, segment;
    } cases[] = {{MDOT_PRECISION_BF16, 3, full / 2}, {MDOT_PRECISION_BF16, 4, full / 2},
                 {MDOT_PRECISION_BF16, 3.5, 0}, /* the logits exist */
                 {MDOT_PRECISION_BF16, 3.25, 0},     {MDOT_PRECISION_BF16, 3.76, full / 2},
                 {MDOT_PRECISION_BF16, 1.5, 0}, /* no loss */
                 {MDOT_PRECISION_BF16, 0, 0},        {MDOT_PRECISION_FP32, 3, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const mdot_peak_moment moment = {.per_sample = 5 * full, .logits = cases[i].tensors * full};
        const mdot_recorded_memory recorded = {.precision = cases[i].precision, .moment_count = 1, .moments = &moment};
        bool is_half = cases[i].precision == MDOT_PRECISION_BF16;
        const mdot_job_program program = {.struct_size = sizeof program,
                                          .precision = is_half ? MDOT_PRECISION_BF16 : MDOT_PRECISION_PYTORCH,
                                          .recorded_count = 1,
                                          .recorded = &recorded};
        mdot_job *plain = language_model(400), *job = NULL;
        mdot_error err = {0};
        if (mdot_job_with_program(plain, &program, &job, &err) != MDOT_OK) fail_msg("case %zu: %s", i, err.message);
        answer a = reserve(job, "A100", (mdot_configuration){.batch = 1000, .precision = cases[i].precision});
        const rt_memory *m = &a.memory;
        double others = 0.005 * (m->weights + m->gradients + m->optimizer) + 0.06 * m->activations + 22 * MIB;
        if (fabs(a.reserved.rounding - others - 1000 * cases[i].segment) > 0.1)
            fail_msg("case %zu: %.0f", i, a.reserved.rounding - others);
        mdot_job_destroy(job);
        mdot_job_destroy(plain);
    }
}

/* Tensor parallelism divides the logits of a column-sharded matmul, and context parallelism divides all. Only a whole
 * loss has fp32 tensors of full size. */
static void segments_of_logits_are_those_of_a_shard(void **state)
{
    (void)state;
    enum { HEAD = 3 };
    mdot_job *job = language_model(400);
    assert_int_equal(job->analysis->totals.logits, HEAD + 1);
    const uint8_t found = job->analysis->sharding.role[HEAD];
    rt_configuration configuration = {.c = {.batch = 6, .precision = MDOT_PRECISION_AMP}, .gpu = {.pcie_gbps = 16}};
    assert_int_equal(rt_configuration_complete(&configuration, NULL), MDOT_OK);
    rt_resolved_configuration r;
    rt_resolve(job, &configuration, &r);
    for (int role = RT_ROLE_REPLICATED; role <= RT_ROLE_TABLE; role++) {
        job->analysis->sharding.role[HEAD] = (uint8_t)role;
        for (r.shard.tensor = 1; r.shard.tensor <= 4; r.shard.tensor *= 2) {
            for (r.sequence = 1; r.sequence <= 2; r.sequence++) {
                double full = 6 * 8192 / r.sequence / (role == RT_ROLE_COLUMNS ? r.shard.tensor : 1);
                const rt_memory three = {.logits = 3 * full}, two = {.logits = 2 * full};
                assert_compare(rt_reserve_memory(job, &r, &three).rounding, ==, 22 * MIB + full / 2);
                assert_compare(rt_reserve_memory(job, &r, &two).rounding, ==, 22 * MIB);
            }
        }
    }
    const rt_memory whole = {.logits = 3 * 6 * 8192};
    r.sequence = r.shard.tensor = 1;
    for (int loss = MDOT_LOSS_WHOLE; loss <= MDOT_LOSS_FUSED; loss++) {
        r.activation_case.loss = (mdot_loss)loss;
        double segment = loss == MDOT_LOSS_WHOLE ? 6 * 8192 / 2 : 0;
        assert_compare(rt_reserve_memory(job, &r, &whole).rounding, ==, 22 * MIB + segment);
    }
    job->analysis->sharding.role[HEAD] = found;
    mdot_job_destroy(job);
    job = make_job("Linear"); /* has no loss, and therefore no logits */
    r.activation_case.loss = MDOT_LOSS_WHOLE;
    assert_compare(rt_reserve_memory(job, &r, &whole).rounding, ==, 22 * MIB);
    mdot_job_destroy(job);
}

static void several_gpus_need_buffers_for_collectives(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    const mdot_configuration two = {.gpu_count = 2}, linked = {.gpu_count = 2, .link = MDOT_LINK_PCIE},
                             both = {.data_parallel = 2, .tensor_parallel = 2},
                             pipeline = {.batch = 2, .pipeline_parallel = 2, .tensor_parallel = 2},
                             experts = {.expert_parallel = 8, .gpu_count = 8};
    assert_compare(reserve(job, "A100", (mdot_configuration){0}).reserved.collectives, ==, 0);
    double nvlink = reserve(job, "A100", two).reserved.collectives;
    assert_compare(100 * MIB, <, nvlink);
    assert_compare(nvlink, <, 400 * MIB);
    assert_compare(reserve(job, "A100", linked).reserved.collectives, <, nvlink / 2);
    assert_compare(reserve(job, "T4", two).reserved.collectives, <, nvlink / 2);
    /* One for each dimension, one for all GPUs, and one for the GPUs of a model that a pipeline divides, too. */
    assert_compare(reserve(job, "A100", both).reserved.collectives, ==, 3 * nvlink);
    assert_compare(reserve(job, "A100", pipeline).reserved.collectives, ==, 4 * nvlink);
    assert_compare(reserve(job, "H100", two).reserved.collectives, >, nvlink);
    double all_to_all = reserve(job, "H100", experts).reserved.collectives; /* 3.3 GB were measured */
    {
        assert_compare(1.5e9, <, all_to_all);
        assert_compare(all_to_all, <, 3.3e9);
    }
    /* An expert's tokens come from each other GPU in a node, or from one in another node. */
    double hopper = reserve(job, "H100", two).reserved.collectives;
    assert_compare(all_to_all, ==, 7 * hopper);
    static const uint32_t nodes[] = {2, 4, 8};
    for (int i = 0; i < 3; i++) {
        const mdot_configuration c = {.expert_parallel = 8, .gpu_count = 8, .node_count = nodes[i]};
        assert_compare(reserve(job, "H100", c).reserved.collectives, ==, (i == 0 ? 3 : 1) * hopper);
    }
    mdot_job_destroy(job);
}

/* NVIDIA/nccl issue 964 states 544 MB for a communicator between two of four A100, and 688 MB between three or more. */
static void early_versions_connect_rings_and_trees(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    mdot_configuration two = {.gpu_count = 2}, four = {.gpu_count = 4};
    double ring = reserve(job, "A100", two).reserved.collectives;
    assert_compare(reserve(job, "A100", four).reserved.collectives, ==, ring);
    two.torch = four.torch = 207;
    assert_compare(reserve(job, "A100", two).reserved.collectives, ==, ring);
    two.torch = four.torch = 206;
    double small = reserve(job, "A100", two).reserved.collectives;
    double large = reserve(job, "A100", four).reserved.collectives;
    assert_compare(0.8 * 544e6, <, small);
    assert_compare(small, <, 1.2 * 544e6);
    assert_compare(0.9 * 688e6, <, large);
    assert_compare(large, <, 1.1 * 688e6);
    const mdot_configuration three = {.gpu_count = 3, .torch = 206, .batch = 3};
    assert_compare(reserve(job, "A100", three).reserved.collectives, ==, large);
    mdot_job_destroy(job);
}

/* The first and the last stage sum the gradients of a tied table. */
static void tied_heads_have_a_communicator_in_a_pipeline(void **state)
{
    (void)state;
    const mdot_configuration c = {.batch = 2, .pipeline_parallel = 2};
    mdot_job *untied = language_model(100), *tied = language_model(0);
    double one = reserve(untied, "A100", c).reserved.collectives;
    assert_compare(one, >, 0);
    assert_compare(reserve(tied, "A100", c).reserved.collectives, ==, 2 * one);
    assert_compare(reserve(tied, "A100", (mdot_configuration){.gpu_count = 2}).reserved.collectives, ==, one);
    mdot_configuration early = c; /* a communicator has a ring and a tree */
    early.torch = 206;
    assert_compare(reserve(untied, "A100", early).reserved.collectives, ==, 2 * one);
    assert_compare(reserve(tied, "A100", early).reserved.collectives, ==, 4 * one);
    mdot_job_destroy(untied);
    mdot_job_destroy(tied);
}

static double usable_gib(const char *name)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find(name, &gpu, NULL), MDOT_OK);
    return (double)rt_usable_memory(&gpu) / 0x1p30;
}

/* Memory that PyTorch reports for the GPU, in GiB; drivers differ by about 1 %. */
static void usable_memory_is_near_the_total_that_pytorch_reports(void **state)
{
    (void)state;
    static const struct {
        const char *gpu;
        double gib;
    } reported[] = {{"T4", 14.75},  {"V100", 15.77}, {"A100", 39.4},      {"A100-80GB", 79.2},
                    {"A10G", 22.1}, {"L4", 22.05},   {"RTX-3090", 23.69}, {"RTX-4090", 23.64},
                    {"H100", 79.1}, {"L40S", 44.4},  {"H200", 139.8}};
    for (size_t i = 0; i < sizeof reported / sizeof *reported; i++) {
        double usable = usable_gib(reported[i].gpu);
        if (usable < 0.985 * reported[i].gib || usable > 1.01 * reported[i].gib)
            fail_msg("%s: %.2f GiB, PyTorch reports %.2f", reported[i].gpu, usable, reported[i].gib);
    }
    mdot_gpu unnamed = {.struct_size = sizeof unnamed, .memory_gib = 16};
    assert_compare(rt_usable_memory(&unnamed), <, UINT64_C(16) << 30);
}

static void the_interval_contains_the_estimate_and_is_narrower_for_recorded_memory(void **state)
{
    (void)state;
    static const mdot_peak_moment moment = {.per_sample = 4e6};
    const mdot_recorded_memory recorded = {.moment_count = 1, .moments = &moment};
    const mdot_job_program program = {
        .struct_size = sizeof program, .precision = MDOT_PRECISION_PYTORCH, .recorded_count = 1, .recorded = &recorded};
    mdot_job *onnx = make_job("Linear"), *traced = NULL;
    assert_int_equal(mdot_job_with_program(onnx, &program, &traced, NULL), MDOT_OK);
    rt_memory memory = reserve(onnx, "A100", (mdot_configuration){.batch = 1024}).memory;
    double peak = (double)rt_sum_memory(&memory);
    rt_memory_interval wide = rt_memory_within(onnx, &memory), narrow = rt_memory_within(traced, &memory);
    assert_compare((double)wide.lower_bytes, <, peak);
    assert_compare(peak, <, (double)wide.upper_bytes);
    assert_compare((double)narrow.lower_bytes, <, peak);
    assert_compare(peak, <, (double)narrow.upper_bytes);
    assert_compare(narrow.upper_bytes - narrow.lower_bytes, <, wide.upper_bytes - wide.lower_bytes);
    assert_compare((double)wide.lower_bytes, >, .8 * peak);
    assert_compare(narrow.lower_bytes, >, wide.lower_bytes);
    const mdot_job_program bare = {
        .struct_size = sizeof bare, .precision = MDOT_PRECISION_PYTORCH, .trained_bytes = 4e6};
    mdot_job *unrecorded = NULL;
    assert_int_equal(mdot_job_with_program(onnx, &bare, &unrecorded, NULL), MDOT_OK);
    rt_memory_interval same = rt_memory_within(unrecorded, &memory);
    assert_compare(same.lower_bytes, ==, wide.lower_bytes);
    assert_compare(same.upper_bytes, ==, wide.upper_bytes);
    mdot_job_destroy(unrecorded);
    const rt_memory weights = {.weights = 8e9, .optimizer = 16e9, .activations = 1e6};
    assert_compare(rt_memory_within(onnx, &weights).lower_bytes, >=, UINT64_C(24000000000));
    mdot_job_destroy(onnx);
    mdot_job_destroy(traced);
}

static void sums_saturate(void **state)
{
    (void)state;
    mdot_job *job = make_job("Linear");
    const rt_memory huge = {.activations = 0x1p64};
    assert_compare(rt_sum_reserved(&huge, &(rt_reserved){0}), ==, UINT64_MAX);
    assert_compare(rt_memory_within(job, &huge).upper_bytes, ==, UINT64_MAX);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_architectures_reserve_more_context_and_workspace),
        cmocka_unit_test(early_versions_load_all_kernels),
        cmocka_unit_test(convolutions_need_a_workspace_of_cudnn),
        cmocka_unit_test(rounding_grows_with_the_tensors),
        cmocka_unit_test(flat_gradients_take_a_segment),
        cmocka_unit_test(freed_logits_leave_a_segment),
        cmocka_unit_test(segments_of_logits_are_those_of_a_shard),
        cmocka_unit_test(several_gpus_need_buffers_for_collectives),
        cmocka_unit_test(early_versions_connect_rings_and_trees),
        cmocka_unit_test(tied_heads_have_a_communicator_in_a_pipeline),
        cmocka_unit_test(usable_memory_is_near_the_total_that_pytorch_reports),
        cmocka_unit_test(the_interval_contains_the_estimate_and_is_narrower_for_recorded_memory),
        cmocka_unit_test(sums_saturate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
