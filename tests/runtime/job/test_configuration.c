/* test_configuration.c — resolved configurations: degrees of parallelism, micro-batches, rates of links, and the work
 * of one GPU of many. test_predict.c tests refused configurations. */
#include "runtime/job/configuration.h"
#include "runtime/job/gpus.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
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

/* Fractions of the rates in the table: V100 has 150 GB/s of NVLink, T4 has PCIe 3. */
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

/* Spec values of callers that predate the link fields, and of a GPU model that lacks NVLink. */
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
    assert_true(s.gpu.watts == 0);
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
#define EXPECT(field)                                                                                                  \
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {                                                        \
        mdot_gpu gpu = known;                                                                                          \
        mdot_error err = {0};                                                                                          \
        gpu.field = wrong[i];                                                                                          \
        assert_int_equal(read_status((mdot_configuration){.gpu_spec = &gpu}, &err), MDOT_INVALID_ARGUMENT);            \
        expect_contains(err.message, "the GPU's " #field " is ");                                                      \
        expect_contains(err.message, "; accepted: 1e-06 to 1e+09");                                                    \
        gpu.field = right[i % 3];                                                                                      \
        assert_int_equal(read_status((mdot_configuration){.gpu_spec = &gpu}, &err), MDOT_OK);                          \
    }
    RT_GPU_COLUMN_MAP(EXPECT)
#undef EXPECT
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(read_status((mdot_configuration){.gpu = "T4", .link_gbps = wrong[i]}, NULL),
                         MDOT_INVALID_ARGUMENT);
        assert_int_equal(read_status((mdot_configuration){.gpu = "T4", .network_gbps = wrong[i]}, NULL),
                         MDOT_INVALID_ARGUMENT);
        assert_int_equal(read_status((mdot_configuration){.gpu = "T4", .network_gbps = right[i % 3]}, NULL), MDOT_OK);
    }
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
    assert_non_null(strstr(err.message, "power_limit is 200 W"));
    assert_non_null(strstr(err.message, "set the GPU's watts"));
}

static void inference_refuses_options_of_the_backward_pass_and_several_gpus(void **state)
{
    (void)state;
    static const struct {
        mdot_configuration c;
        const char *name;
    } cases[] = {
        {{.gpu = "A100", .accumulate = 2}, "accumulate"},
        {{.gpu = "A100", .recompute = MDOT_RECOMPUTE_SELECTIVE}, "recompute"},
        {{.gpu = "A100", .offload = MDOT_OFFLOAD_OPTIMIZER}, "offload"},
        {{.gpu = "A100", .step_in_backward = 1}, "step_in_backward"},
        {{.gpu = "A100", .ema = 1}, "ema"},
        {{.gpu = "A100", .gradient_type = MDOT_NUMBER_FP32}, "gradient_type"},
        {{.gpu = "A100", .gpu_count = 2}, "number of GPUs"},
        {{.gpu = "A100", .tensor_parallel = 2}, "number of GPUs"},
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
    };
    assert_true(read((mdot_configuration){.gpu = "A100", .gpu_count = 2}).plain_workers);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (read(cases[i]).plain_workers) fail_msg("case %zu", i);
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
        cmocka_unit_test(power_limit_of_an_unlimited_gpu_is_refused),
        cmocka_unit_test(inference_refuses_options_of_the_backward_pass_and_several_gpus),
        cmocka_unit_test(parallelism_options_make_a_configuration_non_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
