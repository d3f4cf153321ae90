/* test_runtime_cuda_device.c — device choice from the option, the machine and the artefact, with the fake libcuda. */
#include "tests/fake_cuda/cuda_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static mdot_predictor_info info_of(const cuda_opened *o)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(o->predictor, &info);
    return info;
}

static void info_names_the_device(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:1");
    mdot_predictor_info info = info_of(&o);
    assert_string_equal(info.device, "cuda:1");
    assert_string_equal(info.device_name, "Fake GPU 1");
    assert_string_equal(info.device_kernel_precision, "bf16");
    assert_string_equal(info.kernel_precision, "fp32");
    assert_string_equal(info.device_reason, "requested by name");
    cuda_finish(&o);
    o = cuda_open_fresh(&cuda_fixture_shared, "cpu");
    info = info_of(&o);
    assert_string_equal(info.device, "cpu");
    assert_string_equal(info.device_name, "");
    assert_string_equal(info.device_kernel_precision, "fp32");
    assert_int_equal(fake_cuda_calls("cuInit"), 0);
    cuda_finish(&o);
}

static void auto_chooses_the_faster_device(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "auto");
    mdot_predictor_info info = info_of(&o);
    assert_string_equal(info.device, "cuda:0");
    assert_string_equal(info.device_reason, "cuda:0 answers in 4 us, the CPU in 2000 us");
    predict_call c;
    predict_prepare(&c, 5, 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    predict_assert(&c, true);
    cuda_finish(&o);
    cuda_fixture_reset(&cuda_fixture_shared);
    cuda_fixture_set_clock(30000, 1000);
    o = cuda_open_on(&cuda_fixture_shared, NULL);
    info = info_of(&o);
    assert_string_equal(info.device, "cpu");
    assert_string_equal(info.device_reason, "cuda:0 answers in 120 us, the CPU in 2 us");
    assert_int_equal(fake_cuda_alive(), 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    predict_assert(&c, false);
    cuda_finish(&o);
}

static void environment_applies_without_an_option(void **state)
{
    (void)state;
    setenv("MDOT_DEVICE", "cuda:1", 1);
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, NULL);
    assert_string_equal(info_of(&o).device, "cuda:1");
    cuda_finish(&o);
    o = cuda_open_fresh(&cuda_fixture_shared, "cpu");
    assert_string_equal(info_of(&o).device, "cpu");
    cuda_finish(&o);
    setenv("MDOT_DEVICE", "", 1);
    o = cuda_open_fresh(&cuda_fixture_shared, NULL);
    assert_string_equal(info_of(&o).device, "cuda:0");
    cuda_finish(&o);
    unsetenv("MDOT_DEVICE");
}

static void wrong_device_names_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"gpu",
                                        "CPU",
                                        "cuda:",
                                        "cuda:-1",
                                        "cuda:+1",
                                        "cuda: 1",
                                        "cuda:1x",
                                        "cuda:0x1",
                                        "cuda:99999999999999999999",
                                        "cuda:4294967296",
                                        "cuda0",
                                        "autos",
                                        " cpu"};
    cuda_fixture_reset(&cuda_fixture_shared);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mdot_predictor *predictor = NULL;
        mdot_error err = {0};
        assert_int_equal(cuda_fixture_predictor(&cuda_fixture_shared, wrong[i], &predictor, &err),
                         MDOT_INVALID_ARGUMENT);
        assert_null(predictor);
        assert_non_null(strstr(err.message, wrong[i]));
        assert_non_null(strstr(err.message, "auto, cpu, cuda"));
    }
    cuda_fixture_assert_clean();
}

/* An explicit device fails with DEVICE, and the message contains both pieces of text. "auto" opens on the CPU, and
 * the reason contains the same text. */
static void expect_no_device(const char *device, const char *part, const char *also)
{
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    assert_int_equal(cuda_fixture_predictor(&cuda_fixture_shared, device, &predictor, &err), MDOT_DEVICE);
    assert_null(predictor);
    if (strstr(err.message, part) == NULL || strstr(err.message, also) == NULL) fail_msg("%s", err.message);
    if (strcmp(device, "cuda:0") == 0) {
        cuda_opened o = cuda_open_on(&cuda_fixture_shared, "auto");
        mdot_predictor_info info = info_of(&o);
        assert_string_equal(info.device, "cpu");
        if (strstr(info.device_reason, part) == NULL) fail_msg("%s", info.device_reason);
        predict_call c;
        predict_prepare(&c, 5, 0);
        assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
        predict_assert(&c, false);
        mdot_context_destroy(o.context);
        mdot_predictor_close(o.predictor);
    }
    cuda_fixture_assert_clean();
}

static void machine_without_a_driver_runs_on_the_cpu(void **state)
{
    (void)state;
    cuda_fixture_reset(&cuda_fixture_shared);
    setenv("MDOT_LIBCUDA", "libcuda-that-is-not-there.so.1", 1);
    expect_no_device("cuda:0", "the CUDA driver is unavailable", "libcuda-that-is-not-there.so.1");
    setenv("MDOT_LIBCUDA", "libm.so.6", 1);
    expect_no_device("cuda:0", "lacks function cu", "libm.so.6");
}

static void absent_device_is_named(void **state)
{
    (void)state;
    cuda_fixture_reset(&cuda_fixture_shared);
    expect_no_device("cuda:2", "CUDA device 2 is out of range", "has 2");
    fake_cuda_reset(&(fake_cuda_machine){.device_count = 0});
    expect_no_device("cuda:0", "CUDA device 0 is out of range", "has 0");
}

/* The fixture images are 0: sm_80, 1: sm_90, 2: sm_90a. */
static void the_best_runnable_image_is_chosen(void **state)
{
    (void)state;
    const struct {
        int major, minor, image;
    } expected[] = {{8, 0, 0}, {8, 6, 0}, {8, 9, 0}, {9, 0, 2}, {9, 1, 1}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        cuda_fixture_reset(&cuda_fixture_shared);
        fake_cuda_machine m = {.device_count = 1, .multiprocessors = 4, .blocks_per_multiprocessor = 1};
        m.major = expected[i].major;
        m.minor = expected[i].minor;
        fake_cuda_reset(&m);
        cuda_opened o = cuda_open_on(&cuda_fixture_shared, "cuda:0");
        assert_int_equal(fake_cuda_image_byte(), expected[i].image);
        cuda_finish(&o);
    }
}

static void device_that_no_image_fits_is_refused(void **state)
{
    (void)state;
    const int versions[][2] = {{7, 5}, {10, 0}, {12, 0}};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        cuda_fixture_reset(&cuda_fixture_shared);
        fake_cuda_reset(&(fake_cuda_machine){.device_count = 1,
                                             .major = versions[i][0],
                                             .minor = versions[i][1],
                                             .multiprocessors = 4,
                                             .blocks_per_multiprocessor = 1});
        expect_no_device("cuda:0", "code for sm_80, sm_90, sm_90a;", versions[i][0] == 7 ? "needs sm_75" : "sm_1");
    }
}

static void device_that_cannot_hold_the_kernels_is_refused(void **state)
{
    (void)state;
    cuda_fixture_reset(&cuda_fixture_shared);
    fake_cuda_reset(&(fake_cuda_machine){.device_count = 1, .major = 9, .multiprocessors = 4});
    expect_no_device("cuda:0", "do not fit cuda:0", "kernel predict_4");
    fake_cuda_reset(
        &(fake_cuda_machine){.device_count = 1, .major = 9, .multiprocessors = 4, .is_not_cooperative = true});
    expect_no_device("cuda:0", "cooperative", "Fake GPU 0");
}

static void artefact_without_images_loads_no_driver(void **state)
{
    (void)state;
    cuda_fixture_reset(&cuda_fixture_shared);
    cuda_fixture plain = {.timeout_ms = 100};
    fixture_open(&plain.artefact);
    plain.path = fixture_save(&plain.artefact, plain.artefact.bytes, plain.artefact.size_bytes);
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    assert_int_equal(cuda_fixture_predictor(&plain, "auto", &predictor, &err), MDOT_OK);
    mdot_predictor_close(predictor);
    predictor = NULL;
    assert_int_equal(cuda_fixture_predictor(&plain, "cuda:0", &predictor, &err), MDOT_DEVICE);
    assert_null(predictor);
    assert_non_null(strstr(err.message, "lacks CUDA code"));
    assert_int_equal(fake_cuda_calls("cuInit"), 0);
    free(plain.path);
    fixture_close(&plain.artefact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(info_names_the_device),
        cmocka_unit_test(auto_chooses_the_faster_device),
        cmocka_unit_test(environment_applies_without_an_option),
        cmocka_unit_test(wrong_device_names_are_refused),
        cmocka_unit_test(machine_without_a_driver_runs_on_the_cpu),
        cmocka_unit_test(absent_device_is_named),
        cmocka_unit_test(the_best_runnable_image_is_chosen),
        cmocka_unit_test(device_that_no_image_fits_is_refused),
        cmocka_unit_test(device_that_cannot_hold_the_kernels_is_refused),
        cmocka_unit_test(artefact_without_images_loads_no_driver),
    };
    return cmocka_run_group_tests(tests, cuda_fixture_setup, cuda_fixture_teardown);
}
