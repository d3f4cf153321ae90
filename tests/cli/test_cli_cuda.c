/* test_cli_cuda.c — `mdot bench` on a GPU simulated by the fake libcuda without kernels. The fake GPU answers, so
 * everything except the results is as on a real GPU. */
#include "tests/fake_cuda/cuda_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static cuda_fixture shared;
static process_result result;

static int setup(void **state)
{
    (void)state;
    cuda_fixture_open(&shared);
    setenv("MDOT_LIBCUDA", MDOT_FAKE_CUDA, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cuda_fixture_close(&shared);
    return 0;
}

static void bench(const char *const arguments[])
{
    const char *argv[12] = {MDOT_CLI, "bench", shared.path, "--seconds=0.01", "--entry=predict"};
    for (int i = 0; arguments[i] != NULL; i++) argv[i + 5] = arguments[i];
    process_run(argv, &result);
}
#define BENCH(...) bench((const char *const[]){__VA_ARGS__, NULL})

static void assert_prints(const char *words)
{
    if (strstr(result.out, words) == NULL) fail_msg("\"%s\" is not in:\n%s%s", words, result.out, result.err);
}

static void bench_measures_a_gpu(void **state)
{
    (void)state;
    BENCH("--device", "cuda:0");
    assert_int_equal(result.status, 0);
    assert_prints("entry predict, Fake GPU 0, 1 thread");
    assert_null(strchr(result.out, '%')); /* a percentage of the CPU's peak is absent */
    BENCH("--device", "cuda:0", "--json", "--threads=2");
    assert_int_equal(result.status, 0);
    assert_prints("\"device\": \"cuda:0\", \"device_name\": \"Fake GPU 0\", \"device_kernel_precision\": \"bf16\"");
    assert_prints("{\"bucket\": 4, \"length\": 4,");
    assert_prints("{\"bucket\": 16, \"length\": 16,");
    assert_prints("\"peak_share\": null");
}

static void bench_measures_the_cpu_on_request(void **state)
{
    (void)state;
    BENCH("--device", "cpu", "--json");
    assert_int_equal(result.status, 0);
    assert_prints("\"device\": \"cpu\", \"device_name\": \"\", \"device_kernel_precision\": \"fp32\"");
}

static void a_profile_measures_the_cpu(void **state)
{
    (void)state;
    BENCH("--profile", "--json");
    assert_int_equal(result.status, 0);
    assert_prints("\"steps\": [");
    BENCH("--profile", "--device", "cuda");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.err, "cuda:0 runs all kernels in one launch"));
}

static void bench_refuses_an_absent_device(void **state)
{
    (void)state;
    BENCH("--device", "cuda:7");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.err, "CUDA device 7 is out of range"));
    BENCH("--device", "gpu");
    assert_int_equal(result.status, 1);
    assert_non_null(strstr(result.err, "unknown device \"gpu\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bench_measures_a_gpu),
        cmocka_unit_test(bench_measures_the_cpu_on_request),
        cmocka_unit_test(a_profile_measures_the_cpu),
        cmocka_unit_test(bench_refuses_an_absent_device),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
