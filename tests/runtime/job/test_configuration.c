/* test_configuration.c — resolved configurations: parallelism degrees, micro-batches, link rates, and one GPU's work
 * among many. Options that exclude each other are refused, and so is each value out of range. */
#include "runtime/job/configuration.h"
#include "runtime/job/configuration_table.h"
#include "runtime/job/gpus.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static rt_configuration read(mdot_configuration c)
{
    rt_gpu_names names = {0};
    rt_configuration configuration;
    mdot_error err = {0};
    c.struct_size = sizeof c;
    if (c.batch == 0) c.batch = 8;
    if (rt_configuration_read(&c, 0, &names, &configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    return configuration;
}

static void one_gpu_is_one_worker(void **state)
{
    (void)state;
    rt_configuration s = read((mdot_configuration){.gpu = "T4"});
    assert_int_equal(s.c.gpu_count, 1);
    assert_int_equal(s.c.data_parallel, 1);
    assert_int_equal(s.c.accumulate, 1);
    assert_int_equal(s.c.micro_batches, 1);
    assert_int_equal(s.c.node_count, 1);
    assert_int_equal(s.micro_batch, 8);
    assert_true(s.plain_workers);
}

static void omitted_degrees_are_derived(void **state)
{
    (void)state;
    static const struct {
        mdot_configuration c;
        int gpus;
        uint32_t data, tensor, pipeline;
    } cases[] = {
        {{.gpu = "A100", .gpu_count = 8}, 8, 8, 1, 1},
        {{.gpu = "A100", .gpu_count = 8, .tensor_parallel = 2}, 8, 4, 2, 1},
        {{.gpu = "A100", .gpu_count = 8, .tensor_parallel = 2, .pipeline_parallel = 4}, 8, 1, 2, 4},
        {{.gpu = "A100", .tensor_parallel = 2, .data_parallel = 3}, 6, 3, 2, 1},
        {{.gpu = "A100", .gpu_count = 4, .data_parallel = 4, .expert_parallel = 1}, 4, 4, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_configuration s = read(cases[i].c);
        assert_int_equal(s.c.gpu_count, cases[i].gpus);
        assert_int_equal(s.c.data_parallel, cases[i].data);
        assert_int_equal(s.c.tensor_parallel, cases[i].tensor);
        assert_int_equal(s.c.pipeline_parallel, cases[i].pipeline);
    }
}

static void pipeline_has_as_many_micro_batches_as_stages(void **state)
{
    (void)state;
    rt_configuration s = read((mdot_configuration){.gpu = "A100", .pipeline_parallel = 4});
    assert_int_equal(s.c.micro_batches, 4);
    assert_int_equal(s.micro_batch, 2);
    s = read((mdot_configuration){.gpu = "A100", .pipeline_parallel = 4, .micro_batches = 8});
    assert_int_equal(s.micro_batch, 1);
}

/* Fractions of the table rates: V100 has 150 GB/s over NVLink, T4 has PCIe 3. */
static void links_reach_a_fraction_of_their_rate(void **state)
{
    (void)state;
    predict_assert_close(read((mdot_configuration){.gpu = "V100"}).c.link_gbps, 120);
    predict_assert_close(read((mdot_configuration){.gpu = "V100", .link = MDOT_LINK_NVLINK}).c.link_gbps, 120);
    predict_assert_close(read((mdot_configuration){.gpu = "V100", .link = MDOT_LINK_PCIE}).c.link_gbps, 0.4 * 15.75);
    predict_assert_close(read((mdot_configuration){.gpu = "T4"}).c.link_gbps, 0.4 * 15.75);
    predict_assert_close(read((mdot_configuration){.gpu = "T4", .link_gbps = 3}).c.link_gbps, 3);
    predict_assert_close(read((mdot_configuration){.gpu = "T4"}).c.network_gbps, 20);
    predict_assert_close(read((mdot_configuration){.gpu = "T4", .network_gbps = 3}).c.network_gbps, 3);
}

/* Spec values from callers older than the link fields, and for a GPU model without NVLink. */
static void specs_without_links_default_to_pcie_4(void **state)
{
    (void)state;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    gpu.nvlink_gbps = gpu.pcie_gbps = gpu.watts = 0;
    rt_configuration s = read((mdot_configuration){.gpu_spec = &gpu});
    predict_assert_close(s.c.link_gbps, 0.4 * 31.5);
    gpu.watts = 300;
    gpu.struct_size = offsetof(mdot_gpu, nvlink_gbps);
    s = read((mdot_configuration){.gpu_spec = &gpu});
    predict_assert_close(s.c.link_gbps, 0.4 * 31.5);
    assert_compare(s.gpu.watts, ==, 0);
}

static mdot_status read_status(mdot_configuration c, mdot_error *err)
{
    rt_gpu_names names = {0};
    rt_configuration configuration;
    c.struct_size = sizeof c;
    c.batch = 8;
    return rt_configuration_read(&c, 0, &names, &configuration, err);
}

static void implausible_spec_values_are_refused_by_name(void **state)
{
    (void)state;
    static const double wrong[] = {-1, 5e-324, 9e-7, 1.1e9, 1e300, NAN, INFINITY}, right[] = {1e-6, 1, 1e9};
    mdot_gpu known = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &known, NULL), MDOT_OK);
#define COLUMN(field, key, ...)                                                                                        \
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {                                                        \
        mdot_gpu gpu = known;                                                                                          \
        mdot_error err = {0};                                                                                          \
        gpu.field = wrong[i];                                                                                          \
        assert_int_equal(read_status((mdot_configuration){.gpu_spec = &gpu}, &err), MDOT_INVALID_ARGUMENT);            \
        expect_contains(err.message, "--gpu-spec " key " is ");                                                        \
        expect_contains(err.message, "; accepted: 1e-06 to 1e+09");                                                    \
        gpu.field = right[i % 3];                                                                                      \
        assert_int_equal(read_status((mdot_configuration){.gpu_spec = &gpu}, &err), MDOT_OK);                          \
    }
#include "runtime/job/gpus.def"
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_status((mdot_configuration){.gpu = "T4", .link_gbps = wrong[i]}, NULL),
                         MDOT_INVALID_ARGUMENT);
        assert_int_equal(read_status((mdot_configuration){.gpu = "T4", .network_gbps = wrong[i]}, NULL),
                         MDOT_INVALID_ARGUMENT);
        assert_int_equal(read_status((mdot_configuration){.gpu = "T4", .network_gbps = right[i % 3]}, NULL), MDOT_OK);
    }
}

static void unprintable_names_of_specs_are_refused(void **state)
{
    (void)state;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    gpu.name = "A100\n";
    assert_int_equal(read_status((mdot_configuration){.gpu_spec = &gpu}, &err), MDOT_INVALID_ARGUMENT);
    assert_compare(err.message[0], !=, '\0');
    gpu.name = "A100 of a lab";
    assert_int_equal(read_status((mdot_configuration){.gpu_spec = &gpu}, &err), MDOT_OK);
}

/* A lower limit changes the time only relative to the GPU's own limit. */
static void power_limit_of_an_unlimited_gpu_is_refused(void **state)
{
    (void)state;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    mdot_configuration c = {.gpu_spec = &gpu, .power_limit = 200};
    assert_int_equal(read_status(c, &err), MDOT_OK);
    gpu.watts = 0;
    assert_int_equal(read_status(c, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "--power-limit is 200 W"));
    assert_non_null(strstr(err.message, "set --gpu-spec power"));
}

/* ---- Refused configurations -------------------------------------------------------------------------------------- */

/* Reads a configuration on an A100, unless it has another GPU. */
static mdot_status read_refused(mdot_configuration c, mdot_error *err)
{
    rt_gpu_names names = {0};
    rt_configuration out;
    c.struct_size = sizeof c;
    if (c.batch == 0) c.batch = 8;
    if (c.gpu == NULL && c.gpu_spec == NULL) c.gpu = "A100";
    err->message[0] = '\0';
    return rt_configuration_read(&c, 0, &names, &out, err);
}

static void each_option_has_its_range(void **state)
{
    (void)state;
    mdot_error err = {0};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (o->kind == RT_KIND_GPU) continue;
        mdot_configuration c = {.batch = 8};
        bool is_version = o->kind == RT_KIND_VERSION;
        char range[80];
        snprintf(range, sizeof range,
                 is_version                ? "%s is "
                 : o->kind == RT_KIND_REAL ? "%s is %g; accepted: 0, or "
                                           : "%s is %.0f; accepted: ",
                 rt_option_label_of(o).text, is_version ? 0 : o->most * 2);
        rt_option_set(&c, o, o->most * 2); /* 2 for a flag, and far beyond each choice but the first */
        assert_int_equal(read_refused(c, &err), MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, range);
        double beyond = o->kind == RT_KIND_REAL ? o->most * 1.001 : o->most + 1;
        rt_option_set(&c, o, beyond);
        assert_int_equal(read_refused(c, &err), MDOT_INVALID_ARGUMENT);
        snprintf(range, sizeof range, "%s is ", rt_option_label_of(o).text);
        expect_contains(err.message, range);
        expect_contains(err.message, is_version ? "a version is" : "accepted: ");
        /* The last value may be refused for another reason, which does not name a range. */
        rt_option_set(&c, o, o->most);
        if (read_refused(c, &err) != MDOT_OK && o->field != rt_options[RT_OPTION_power_limit].field)
            assert_null(strstr(err.message, "; accepted: "));
        rt_option_set(&c, o, o->least);
        (void)read_refused(c, &err);
        if (o->field != rt_options[RT_OPTION_power_limit].field) assert_null(strstr(err.message, "; accepted: "));
    }
    mdot_configuration c = {.batch = -1};
    assert_int_equal(read_refused(c, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "batch is -1; accepted: 1 to 16777216");
    c = (mdot_configuration){.accumulate = 1 << 17};
    assert_int_equal(read_refused(c, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "accumulate is 131072; accepted: 0 to 65536");
    c = (mdot_configuration){.attention = 3};
    assert_int_equal(read_refused(c, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "attention is 3; accepted: 0 to 2: program, eager, flash");
}

static bool is_option(const char *name, size_t length)
{
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        rt_option_label label = rt_option_label_of(&rt_options[i]);
        if (strlen(label.text + 2) == length && strncmp(label.text + 2, name, length) == 0) return true;
    }
    return false;
}

/* A message names options as the command line does, each of which exists, and no member of the C struct. */
static void expect_option_names(const char *message)
{
    size_t count = 0;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (strchr(rt_options[i].field, '_') != NULL && strstr(message, rt_options[i].field) != NULL)
            fail_msg("%s: names the member %s", message, rt_options[i].field);
    for (const char *dashes = message; (dashes = strstr(dashes, "--")) != NULL; count++) {
        dashes += 2;
        size_t length = strspn(dashes, "abcdefghijklmnopqrstuvwxyz-");
        if (strncmp(dashes, "parallel ", 9) == 0) length = 9 + strspn(dashes + 9, "abcdefghijklmnopqrstuvwxyz");
        if (!is_option(dashes, length)) fail_msg("%s: %.*s is no option", message, (int)length, dashes);
    }
    if (count == 0) fail_msg("%s: names no option", message);
}

/* Each row is refused because of one option or an option pair, and accepted after the change in the next column. */
static void options_that_exclude_each_other_are_refused(void **state)
{
    (void)state;
    static mdot_gpu unknown_watts, plain;
    mdot_gpu a100 = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("A100", &a100, NULL), MDOT_OK);
    unknown_watts = plain = a100;
    unknown_watts.watts = 0;
    const struct {
        mdot_configuration refused, accepted;
        const char *reason;
    } cases[] = {
        {{.compiled = 1, .torch = 199}, {.compiled = 1, .torch = 200}, "--compile needs PyTorch 2.0 or later"},
        {{.compiled = 1, .torch = 100}, {.compiled = 1, .torch = 201}, "torch is 1.0"},
        {{.compiled = 1, .torch = 113}, {.compiled = 0, .torch = 113}, "torch is 1.13"},
        {{.compiled = 1, .torch = 113}, {.compiled = 1}, "torch is 1.13"},
        {{.gradient_type = MDOT_NUMBER_HALF},
         {.gradient_type = MDOT_NUMBER_HALF, .precision = MDOT_PRECISION_BF16},
         "--gradient-type is half"},
        {{.gradient_type = MDOT_NUMBER_HALF, .precision = MDOT_PRECISION_AMP},
         {.gradient_type = MDOT_NUMBER_HALF, .precision = MDOT_PRECISION_MIXED_FP16},
         "set --precision to bf16"},
        {{.step_in_backward = 1, .accumulate = 2}, {.step_in_backward = 1, .accumulate = 1}, "after one pass"},
        {{.step_in_backward = 1, .pipeline_parallel = 2, .gpu_count = 2},
         {.step_in_backward = 1, .pipeline_parallel = 1},
         "after one pass"},
        {{.step_in_backward = 1, .micro_batches = 2}, {.step_in_backward = 1, .micro_batches = 1}, "after one pass"},
        {{.offload = MDOT_OFFLOAD_PARAMETERS, .zero_stage = 2},
         {.offload = MDOT_OFFLOAD_PARAMETERS, .zero_stage = 3},
         "needs --parallel zero=3, because only that stage"},
        {{.offload = MDOT_OFFLOAD_OPTIMIZER, .step_in_backward = 1},
         {.offload = MDOT_OFFLOAD_PAGES, .optimizer = MDOT_OPTIMIZER_ADAMW8BIT, .step_in_backward = 1},
         "set one of them"},
        {{.keep_gathered = 1, .zero_stage = 2}, {.keep_gathered = 1, .zero_stage = 3}, "--keep-gathered needs"},
        {{.whole_gradients = 1, .zero_stage = 2, .accumulate = 2},
         {.whole_gradients = 1, .zero_stage = 3, .accumulate = 2},
         "--whole-gradients needs --parallel zero=3"},
        {{.whole_gradients = 1, .zero_stage = 3},
         {.whole_gradients = 1, .zero_stage = 3, .accumulate = 2},
         "--whole-gradients needs --parallel zero=3"},
        {{.whole_gradients = 1, .zero_stage = 3, .accumulate = 2, .offload = MDOT_OFFLOAD_PARAMETERS},
         {.whole_gradients = 1, .zero_stage = 3, .accumulate = 2, .offload = MDOT_OFFLOAD_OPTIMIZER},
         "--whole-gradients works neither with pipelines"},
        {{.optimizer = MDOT_OPTIMIZER_ADAM_FUSED, .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOREACH},
         {.optimizer = MDOT_OPTIMIZER_ADAM_FUSED, .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FUSED},
         "--optimizer is adam-fused, but --optimizer-kernels is foreach: set --optimizer to adam,"},
        {{.optimizer = MDOT_OPTIMIZER_ADAMW_FUSED, .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOR_LOOP},
         {.optimizer = MDOT_OPTIMIZER_ADAMW, .optimizer_kernels = MDOT_OPTIMIZER_KERNELS_FOR_LOOP},
         "set --optimizer to adamw,"},
        {{.precision = MDOT_PRECISION_FP8}, {.precision = MDOT_PRECISION_FP8, .gpu = "H100"}, "lacks FP8"},
        {{.precision = MDOT_PRECISION_MXFP8, .gpu = "H100"},
         {.precision = MDOT_PRECISION_MXFP8, .gpu = "B200"},
         "lacks MX formats"},
        {{.precision = MDOT_PRECISION_FP8_BLOCKWISE, .gpu = "L40S"},
         {.precision = MDOT_PRECISION_FP8_BLOCKWISE, .gpu = "H100"},
         "came with Hopper, but the GPU is L40S: use fp8"},
        {{.precision = MDOT_PRECISION_MXFP8, .gpu = "H100"},
         {.precision = MDOT_PRECISION_FP8_ROWWISE, .gpu = "H100"},
         "use fp8 or fp8-rowwise"},
        {{.power_limit = 79}, {.power_limit = 80}, "accepted for A100-SXM-40GB: 80 to 400 W"},
        {{.power_limit = 401}, {.power_limit = 400}, "80 to 400 W"},
        {{.power_limit = 200, .gpu_spec = &unknown_watts},
         {.power_limit = 200, .gpu_spec = &plain},
         "set --gpu-spec power, too"},
        {{.gpu = "A100", .gpu_spec = &plain}, {.gpu_spec = &plain}, "--gpu and --gpu-spec are both set"},
        {{.link = MDOT_LINK_PCIE, .link_gbps = 5}, {.link_gbps = 5}, "--link is both a kind and a rate"},
        {{.link = MDOT_LINK_NVLINK, .gpu = "T4"}, {.link = MDOT_LINK_PCIE, .gpu = "T4"}, "T4 lacks NVLink"},
        {{.gpu_count = 6, .tensor_parallel = 4},
         {.gpu_count = 8, .tensor_parallel = 4},
         "multiply to 4 GPUs, but --gpus is 6"},
        {{.gpu_count = 8, .data_parallel = 2, .expert_parallel = 2},
         {.gpu_count = 4, .data_parallel = 2, .expert_parallel = 2},
         "--parallel dp=2, --parallel ep=2 multiply to 4"},
        {{.gpu_count = 8, .data_parallel = 2, .context_parallel = 2},
         {.gpu_count = 4, .data_parallel = 2, .context_parallel = 2},
         "--parallel cp=2 multiply to 4"},
        {{.tensor_parallel = 1 << 16, .pipeline_parallel = 1 << 16},
         {.tensor_parallel = 1 << 16},
         "multiply to 4294967296"},
        {{.gpu_count = 4, .node_count = 3}, {.gpu_count = 4, .node_count = 2}, "--gpus is 4; it must be a multiple"},
        {{.sequence_parallel = 1}, {.sequence_parallel = 1, .tensor_parallel = 2}, "--parallel sp needs"},
        {{.virtual_stages = 2},
         {.virtual_stages = 2, .pipeline_parallel = 2, .micro_batches = 4},
         "--parallel vpp needs --parallel pp"},
        {{.schedule = MDOT_SCHEDULE_ZERO_BUBBLE},
         {.schedule = MDOT_SCHEDULE_ZERO_BUBBLE, .pipeline_parallel = 2},
         "--schedule zero-bubble needs"},
        {{.schedule = MDOT_SCHEDULE_ZERO_BUBBLE, .pipeline_parallel = 2, .virtual_stages = 2},
         {.schedule = MDOT_SCHEDULE_ZERO_BUBBLE, .pipeline_parallel = 2, .virtual_stages = 1},
         "leave --parallel vpp at 1"},
        {{.virtual_stages = 2, .pipeline_parallel = 4, .micro_batches = 2, .framework = MDOT_FRAMEWORK_MEGATRON},
         {.virtual_stages = 2, .pipeline_parallel = 4, .micro_batches = 2},
         "--parallel micro is 2; Megatron needs at least --parallel pp, 4"},
        {{.micro_batches = 2}, {.micro_batches = 2, .pipeline_parallel = 2}, "--parallel micro needs --parallel pp"},
        {{.batch = 9, .pipeline_parallel = 2},
         {.batch = 10, .pipeline_parallel = 2},
         "batch is 9; it must be a multiple"},
    };
    mdot_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_status status = read_refused(cases[i].refused, &err);
        if (status != MDOT_INVALID_ARGUMENT) fail_msg("case %zu (%s): status %d", i, cases[i].reason, (int)status);
        expect_contains(err.message, cases[i].reason);
        expect_option_names(err.message);
        if (read_refused(cases[i].accepted, &err) != MDOT_OK) fail_msg("case %zu: %s", i, err.message);
    }
    assert_int_equal(read_refused((mdot_configuration){.gpu = "A10x"}, &err), MDOT_INVALID_ARGUMENT);
}

static void structs_of_no_known_size_are_refused(void **state)
{
    (void)state;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    rt_gpu_names names = {0};
    rt_configuration out;
    assert_int_equal(mdot_gpu_find("A100", &gpu, NULL), MDOT_OK);
    gpu.struct_size = 1;
    assert_int_equal(read_refused((mdot_configuration){.gpu_spec = &gpu}, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "struct_size");
    const mdot_configuration c = {.struct_size = 1, .gpu = "A100", .batch = 8};
    assert_int_equal(rt_configuration_read(&c, 0, &names, &out, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "struct_size");
}

/* Each optimizer either has the pages moved by bitsandbytes to host memory, or is refused with them. */
static void pages_exist_for_some_optimizers(void **state)
{
    (void)state;
    for (int o = 0; rt_optimizer_names[o] != NULL; o++) {
        bool has_pages = o == MDOT_OPTIMIZER_ADAM || o == MDOT_OPTIMIZER_ADAMW || o == MDOT_OPTIMIZER_ADAM8BIT ||
                         o == MDOT_OPTIMIZER_ADAMW8BIT || o == MDOT_OPTIMIZER_LION;
        mdot_error err = {0};
        const mdot_configuration c = {.optimizer = (mdot_optimizer)o, .offload = MDOT_OFFLOAD_PAGES};
        assert_int_equal(read_refused(c, &err), has_pages ? MDOT_OK : MDOT_INVALID_ARGUMENT);
        if (!has_pages) expect_contains(err.message, "offload is pages");
    }
}

/* A GPU without a name is named otherwise in messages. */
static void nameless_gpus_are_refused_as_the_gpu(void **state)
{
    (void)state;
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    assert_int_equal(mdot_gpu_find("T4", &gpu, NULL), MDOT_OK);
    for (int named = 0; named < 2; named++) {
        gpu.name = named ? "a GPU of a lab" : NULL;
        gpu.watts = 70;
        const char *name = named ? "a GPU of a lab" : "the GPU";
        static const mdot_configuration refused[] = {
            {.precision = MDOT_PRECISION_FP8}, {.link = MDOT_LINK_NVLINK}, {.power_limit = 71}, {.power_limit = 71}};
        for (int i = 0; i < 4; i++) {
            mdot_configuration c = refused[i];
            if (i == 3) gpu.watts = 0;
            c.gpu_spec = &gpu;
            assert_int_equal(read_refused(c, &err), MDOT_INVALID_ARGUMENT);
            expect_contains(err.message, name);
        }
        gpu.watts = 70;
        gpu.fp8_tflops = 100;
        mdot_configuration c = {.precision = MDOT_PRECISION_MXFP8, .gpu_spec = &gpu};
        assert_int_equal(read_refused(c, &err), MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, name);
        gpu.compute_capability = 10;
        assert_int_equal(read_refused(c, &err), MDOT_OK);
        gpu.compute_capability = 7.5;
        gpu.fp8_tflops = 0;
    }
}

static void fused_optimizers_are_an_optimizer_and_its_kernels(void **state)
{
    (void)state;
    rt_configuration s = read((mdot_configuration){.gpu = "A100", .optimizer = MDOT_OPTIMIZER_ADAM_FUSED});
    assert_int_equal(s.c.optimizer, MDOT_OPTIMIZER_ADAM);
    assert_int_equal(s.c.optimizer_kernels, MDOT_OPTIMIZER_KERNELS_FUSED);
    s = read((mdot_configuration){.gpu = "A100", .optimizer = MDOT_OPTIMIZER_ADAMW_FUSED});
    assert_int_equal(s.c.optimizer, MDOT_OPTIMIZER_ADAMW);
    assert_int_equal(s.c.optimizer_kernels, MDOT_OPTIMIZER_KERNELS_FUSED);
    s = read((mdot_configuration){.gpu = "A100", .optimizer = MDOT_OPTIMIZER_LION});
    assert_int_equal(s.c.optimizer, MDOT_OPTIMIZER_LION);
    assert_int_equal(s.c.optimizer_kernels, MDOT_OPTIMIZER_KERNELS_DEFAULT);
}

/* A later configuration in a table may have an earlier name at the same address. */
static void names_of_gpus_are_found_once_for_each_address(void **state)
{
    (void)state;
    char name[16] = "A100";
    mdot_configuration c[3] = {{.batch = 1, .gpu = name}, {.batch = 1, .gpu = "T4"}, {.batch = 1, .gpu = name}};
    rt_gpu_names names = {0};
    rt_configuration out[3];
    for (size_t i = 0; i < 3; i++) {
        c[i].struct_size = sizeof c[i];
        assert_int_equal(rt_configuration_read(c, i, &names, &out[i], NULL), MDOT_OK);
    }
    assert_string_equal(out[0].gpu.name, "A100-SXM-40GB");
    assert_string_equal(out[1].gpu.name, "T4");
    assert_string_equal(out[2].gpu.name, "A100-SXM-40GB");
}

static void inference_refuses_options_of_the_backward_pass_and_several_gpus(void **state)
{
    (void)state;
    static const struct {
        mdot_configuration c;
        const char *name;
    } cases[] = {
        {{.gpu = "A100", .accumulate = 2}, "accumulate"},
        {{.gpu = "A100", .recompute = MDOT_RECOMPUTE_SELECTIVE}, "--checkpoint"},
        {{.gpu = "A100", .offload = MDOT_OFFLOAD_OPTIMIZER}, "leave --offload at"},
        {{.gpu = "A100", .offload_activations = 1}, "--offload-activations"},
        {{.gpu = "A100", .step_in_backward = 1}, "--step-in-backward"},
        {{.gpu = "A100", .ema = 1}, "ema"},
        {{.gpu = "A100", .grad_scaler = 1}, "--grad-scaler"},
        {{.gpu = "A100", .gradient_type = MDOT_NUMBER_FP32}, "--gradient-type"},
        {{.gpu = "A100", .reduce_type = MDOT_NUMBER_FP32}, "--reduce-type"},
        {{.gpu = "A100", .zero_stage = 1}, "--parallel zero"},
        {{.gpu = "A100", .gpu_count = 2}, "leave --gpus at 1"},
        {{.gpu = "A100", .data_parallel = 2}, "leave --gpus at 1"},
        {{.gpu = "A100", .tensor_parallel = 2}, "leave --gpus at 1"},
        {{.gpu = "A100", .pipeline_parallel = 2}, "leave --gpus at 1"},
        {{.gpu = "A100", .expert_parallel = 2}, "leave --gpus at 1"},
        {{.gpu = "A100", .context_parallel = 2}, "leave --gpus at 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_configuration c = cases[i].c;
        mdot_error err = {0};
        assert_int_equal(read_status(c, &err), MDOT_OK);
        c.mode = MDOT_MODE_INFERENCE;
        assert_int_equal(read_status(c, &err), MDOT_INVALID_ARGUMENT);
        if (strstr(err.message, cases[i].name) == NULL) fail_msg("case %zu: %s", i, err.message);
    }
    assert_int_equal(read_status((mdot_configuration){.gpu = "A100", .mode = MDOT_MODE_INFERENCE}, NULL), MDOT_OK);
    mdot_configuration ones = {.gpu = "A100",
                               .mode = MDOT_MODE_INFERENCE,
                               .accumulate = 1,
                               .gpu_count = 1,
                               .data_parallel = 1,
                               .tensor_parallel = 1,
                               .pipeline_parallel = 1,
                               .expert_parallel = 1,
                               .context_parallel = 1};
    assert_int_equal(read_status(ones, NULL), MDOT_OK);
}

static void parallelism_options_make_a_configuration_non_default(void **state)
{
    (void)state;
    static const mdot_configuration cases[] = {
        {.gpu = "A100", .gpu_count = 2, .link = MDOT_LINK_PCIE},
        {.gpu = "A100", .gpu_count = 2, .link_gbps = 5},
        {.gpu = "A100", .gpu_count = 2, .network_gbps = 5},
        {.gpu = "A100", .gpu_count = 2, .node_count = 2},
        {.gpu = "A100", .gpu_count = 2, .zero_stage = 1},
        {.gpu = "A100", .gpu_count = 2, .accumulate = 2},
        {.gpu = "A100", .gpu_count = 2, .tensor_parallel = 2},
        {.gpu = "A100", .gpu_count = 2, .pipeline_parallel = 2},
        {.gpu = "A100", .gpu_count = 2, .expert_parallel = 2},
        {.gpu = "A100", .gpu_count = 2, .context_parallel = 2},
    };
    assert_true(read((mdot_configuration){.gpu = "A100", .gpu_count = 2}).plain_workers);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (read(cases[i]).plain_workers) fail_msg("case %zu", i);
}

/* A caller whose struct is longer, as a later version's, may set nothing that this version lacks. */
static void bytes_behind_the_last_option_must_be_zero(void **state)
{
    (void)state;
    struct {
        mdot_configuration c;
        char more[sizeof(size_t)];
    } later = {.c = {.batch = 1, .gpu = "A100"}};
    later.c.struct_size = sizeof later;
    rt_gpu_names names = {0};
    rt_configuration configuration;
    assert_int_equal(rt_configuration_read(&later.c, 0, &names, &configuration, NULL), MDOT_OK);
    for (size_t i = 0; i < sizeof later.more; i++) {
        mdot_error err = {0};
        later.more[i] = 1;
        assert_int_equal(rt_configuration_read(&later.c, 0, &names, &configuration, &err), MDOT_INCOMPATIBLE);
        expect_contains(err.message, "sets fields that mdot");
        later.more[i] = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_gpu_is_one_worker),
        cmocka_unit_test(omitted_degrees_are_derived),
        cmocka_unit_test(pipeline_has_as_many_micro_batches_as_stages),
        cmocka_unit_test(links_reach_a_fraction_of_their_rate),
        cmocka_unit_test(specs_without_links_default_to_pcie_4),
        cmocka_unit_test(implausible_spec_values_are_refused_by_name),
        cmocka_unit_test(unprintable_names_of_specs_are_refused),
        cmocka_unit_test(power_limit_of_an_unlimited_gpu_is_refused),
        cmocka_unit_test(each_option_has_its_range),
        cmocka_unit_test(options_that_exclude_each_other_are_refused),
        cmocka_unit_test(structs_of_no_known_size_are_refused),
        cmocka_unit_test(bytes_behind_the_last_option_must_be_zero),
        cmocka_unit_test(pages_exist_for_some_optimizers),
        cmocka_unit_test(nameless_gpus_are_refused_as_the_gpu),
        cmocka_unit_test(fused_optimizers_are_an_optimizer_and_its_kernels),
        cmocka_unit_test(names_of_gpus_are_found_once_for_each_address),
        cmocka_unit_test(inference_refuses_options_of_the_backward_pass_and_several_gpus),
        cmocka_unit_test(parallelism_options_make_a_configuration_non_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
