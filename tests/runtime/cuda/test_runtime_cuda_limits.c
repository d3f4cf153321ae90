/* test_runtime_cuda_limits.c — a driver with hung calls. Opening, creating, running, destroying and closing return
 * within the limits and report the call. Abandoned threads end by themselves when the driver continues. The limits are
 * short here: on a busy machine a healthy call may exceed them and is abandoned, too. Later calls are not reached in
 * this case. */
#include "tests/fake_cuda/cuda_life.h"

#include "runtime/core/objects.h"
#include "runtime/cuda/cuda_device.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static mdot_status open_on(const char *device, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_status status = cuda_fixture_predictor(&cuda_fixture_shared, device, &predictor, err);
    mdot_predictor_close(predictor);
    return status;
}

/* Waits until all abandoned threads have ended and the driver is called again. */
static void let_go_on(void)
{
    fake_cuda_block(NULL, 0);
    for (int i = 0; i < 60000; i++) {
        if (fake_cuda_alive() == 0 && open_on("cuda", NULL) == MDOT_OK) return;
        usleep(1000);
    }
    fail_msg("%d objects are alive in the driver, or the driver is never queried again", fake_cuda_alive());
}

static void block(const char *function, int call, uint32_t timeout_ms)
{
    cuda_fixture_reset(&cuda_fixture_shared);
    fake_cuda_block(function, call);
    cuda_fixture_shared.timeout_ms = timeout_ms;
}

static void hang_at(const char *device, const char *function, int call)
{
    block(function, call, 1);
    cuda_life l = cuda_live(device);
    cuda_life_check(&l, strcmp(device, "auto") != 0);
    if (fake_cuda_calls(function) >= call) {
        mdot_error err = {0};
        assert_int_equal(open_on("cuda", &err), MDOT_DEVICE);
        if (strstr(err.message, "an earlier call") == NULL) fail_msg("call %d of %s: %s", call, function, err.message);
    } else if (!cuda_life_was_noticed(&l)) { /* an earlier call was late */
        fail_msg("%s is called less than %d times", function, call);
    }
    let_go_on();
    cuda_fixture_assert_clean();
}

static void hang_at_each_call(const char *device)
{
    uint32_t timeout_ms = cuda_fixture_shared.timeout_ms;
    int calls[CUDA_FUNCTION_COUNT];
    cuda_fixture_reset(&cuda_fixture_shared);
    cuda_life healthy = cuda_live(device);
    cuda_life_check(&healthy, true);
    assert_int_equal(healthy.cpu_answers, 0);
    for (int i = 0; i < CUDA_FUNCTION_COUNT; i++) calls[i] = fake_cuda_calls(cuda_functions[i]);
    for (int i = 0; i < CUDA_FUNCTION_COUNT; i++)
        for (int call = 1; call <= calls[i]; call++) hang_at(device, cuda_functions[i], call);
    cuda_fixture_shared.timeout_ms = timeout_ms;
}

static void hanging_calls_end_within_the_limit_if_a_gpu_is_requested(void **state)
{
    (void)state;
    hang_at_each_call("cuda:0");
}

static void auto_answers_after_any_call_hangs(void **state)
{
    (void)state;
    hang_at_each_call("auto");
}

static void opening_names_the_driver_step_that_hung(void **state)
{
    (void)state;
    static const struct {
        const char *function, *part;
    } silent[] = {{"cuInit", "did not start within 30 ms"},
                  {"cuDeviceGetCount", "did not start within 30 ms"},
                  {"cuDevicePrimaryCtxRetain", "did not create a context within 30 ms"},
                  {"cuModuleLoadData", "did not load the artefact's code within 30 ms"},
                  {"cuMemcpyHtoD", "did not load the artefact's code within 30 ms"}};
    uint32_t timeout_ms = cuda_fixture_shared.timeout_ms;
    for (size_t i = 0; i < sizeof silent / sizeof silent[0]; i++) {
        block(silent[i].function, 1, 1);
        mdot_predictor *predictor = NULL;
        mdot_error err = {0};
        mdot_status status = MDOT_OK;
        /* On a busy machine an earlier step may be late, therefore the test tries again. */
        for (int tries = 0; tries < 100 && fake_cuda_calls(silent[i].function) == 0; tries++)
            status = open_on("cuda", &err);
        assert_int_equal(status, MDOT_DEVICE);
        if (strstr(err.message, silent[i].part) == NULL) fail_msg("%s", err.message);
        /* The driver gets no further calls, and "auto" uses the CPU. */
        assert_int_equal(open_on("cuda", &err), MDOT_DEVICE);
        if (strstr(err.message, "an earlier call") == NULL) fail_msg("%s", err.message);
        assert_int_equal(fake_cuda_calls(silent[i].function), 1);
        assert_int_equal(cuda_fixture_predictor(&cuda_fixture_shared, "auto", &predictor, &err), MDOT_OK);
        mdot_predictor_close(predictor);
        let_go_on();
        cuda_fixture_assert_clean();
    }
    cuda_fixture_shared.timeout_ms = timeout_ms;
}

/* The GPU's thread is lost. The other contexts stop calling the driver, and they are destroyed at once. */
static void hung_launch_ends_the_gpu_for_all_contexts_of_its_predictor(void **state)
{
    (void)state;
    enum { CONTEXTS = 4 };
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    mdot_context *others[CONTEXTS];
    for (int i = 0; i < CONTEXTS; i++) assert_int_equal(mdot_context_create(o.predictor, &others[i], NULL), MDOT_OK);
    ((rt_cuda *)o.predictor->device)->timeout_ms = 1;
    fake_cuda_block("cuLaunchCooperativeKernel", 1);
    predict_call c;
    predict_prepare(&c, 5, 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    predict_assert(&c, false);
    const char *message;
    assert_int_equal(mdot_context_get_device_status(o.context, &message), MDOT_DEVICE);
    assert_non_null(strstr(message, "did not launch a kernel within 1 ms"));
    int calls = fake_cuda_calls("cuLaunchCooperativeKernel");
    ((rt_cuda *)o.predictor->device)->timeout_ms = 1000000; /* calls return at once, although this limit is long */
    for (int i = 0; i < CONTEXTS; i++) {
        assert_int_equal(predict_run(others[i], &c, NULL), MDOT_OK);
        predict_assert(&c, false);
        assert_int_equal(mdot_context_get_device_status(others[i], &message), MDOT_DEVICE);
        assert_non_null(strstr(message, "an earlier call"));
    }
    assert_int_equal(fake_cuda_calls("cuLaunchCooperativeKernel"), calls);
    mdot_context *late = NULL;
    assert_int_equal(mdot_context_create(o.predictor, &late, NULL), MDOT_DEVICE);
    for (int i = 0; i < CONTEXTS; i++) mdot_context_destroy(others[i]);
    mdot_context_destroy(o.context);
    mdot_predictor_close(o.predictor);
    let_go_on();
    cuda_fixture_assert_clean();
}

/* A child has the predictor without the threads, so it answers on the CPU at once. */
static void cpu_answers_in_a_forked_child(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    predict_call c;
    predict_prepare(&c, 5, 0);
    pid_t child = fork();
    if (child == 0) {
        bool is_right = predict_run(o.context, &c, NULL) == MDOT_OK && predict_is_right(&c, false);
        mdot_context_destroy(o.context);
        mdot_predictor_close(o.predictor);
        _exit(is_right ? 0 : 1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    predict_assert(&c, true);
    cuda_finish(&o);
}

/* mdot_predictor_open in a library loaded with dlopen. */
static mdot_status open_by(void *library, uint32_t timeout_ms, mdot_predictor **out_predictor, mdot_error *err)
{
    union {
        void *object;
        mdot_status (*open)(const char *, const mdot_open_options *, mdot_predictor **, mdot_error *);
    } symbol = {dlsym(library, "mdot_predictor_open")};
    const mdot_open_options options = {
        .struct_size = sizeof options, .device = "cuda:0", .device_timeout_ms = timeout_ms};
    return symbol.open(cuda_fixture_shared.path, &options, out_predictor, err);
}

/* Simulates a program that unloads a plugin: the abandoned thread still runs the library's code. */
static void library_is_unloaded_while_a_call_hangs(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_predictor *predictor = NULL;
    cuda_fixture_reset(&cuda_fixture_shared);
    fake_cuda_block("cuInit", 1);
    void *library = dlopen(MDOT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) fail_msg("%s", dlerror());
    assert_int_equal(open_by(library, 1, &predictor, &err), MDOT_DEVICE);
    dlclose(library);
    fake_cuda_block(NULL, 0);
    library = dlopen(MDOT_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    mdot_status status = MDOT_DEVICE;
    for (int tries = 0; tries < 60000 && status != MDOT_OK; tries++) {
        status = open_by(library, 60000, &predictor, &err);
        usleep(1000);
    }
    if (status != MDOT_OK) fail_msg("%s", err.message);
    union {
        void *object;
        void (*close)(mdot_predictor *);
    } symbol = {dlsym(library, "mdot_predictor_close")};
    symbol.close(predictor);
    dlclose(library);
    cuda_fixture_assert_clean();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hanging_calls_end_within_the_limit_if_a_gpu_is_requested),
        cmocka_unit_test(auto_answers_after_any_call_hangs),
        cmocka_unit_test(opening_names_the_driver_step_that_hung),
        cmocka_unit_test(hung_launch_ends_the_gpu_for_all_contexts_of_its_predictor),
        cmocka_unit_test(cpu_answers_in_a_forked_child),
        cmocka_unit_test(library_is_unloaded_while_a_call_hangs),
    };
    return cmocka_run_group_tests(tests, cuda_fixture_setup, cuda_fixture_teardown);
}
