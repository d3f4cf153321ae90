/* test_runtime_cuda_faults.c — a failing GPU: every error at every driver call, kernels without an answer, lack of
 * memory. Opening and creating fail cleanly or, for "auto", use the CPU. Every call gets a correct answer, the failure
 * is reported, and everything is freed. test_runtime_cuda_limits.c tests hung calls. */
#include "tests/fake_cuda/cuda_life.h"

#include "runtime/core/objects.h"
#include "runtime/cuda/cuda_driver.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { /* CUresult */
       INVALID_VALUE = 1,
       NOT_INITIALIZED = 3,
       ECC_UNCORRECTABLE = 214,
       ILLEGAL_ADDRESS = 700,
       LAUNCH_FAILED = 719,
       UNKNOWN = 999
};

/* ---- Every error at every call ----------------------------------------------------------------------------------- */

/* These functions may fail unnoticed, because they only end something unused or add detail to a message. */
static bool may_pass_unnoticed(const char *function)
{
    static const char *const names[] = {
        "cuCtxPopCurrent", "cuCtxPushCurrent",         "cuMemFree", "cuMemFreeHost", "cuModuleUnload",
        "cuStreamDestroy", "cuDevicePrimaryCtxRelease"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(function, names[i]) == 0) return true;
    return false;
}

static const struct {
    int result;
    bool is_sticky;
} errors[] = {{INVALID_VALUE, false},  {RT_CU_OUT_OF_MEMORY, false}, {NOT_INITIALIZED, true}, {ECC_UNCORRECTABLE, true},
              {ILLEGAL_ADDRESS, true}, {LAUNCH_FAILED, true},        {UNKNOWN, true},         {UNKNOWN, false}};

static void fail_each_call(const char *device, const char *function, int calls)
{
    for (int call = 1; call <= calls; call++) {
        for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
            cuda_fixture_reset(&cuda_fixture_shared);
            fake_cuda_fail(function, call, errors[i].result, errors[i].is_sticky);
            cuda_life l = cuda_live(device);
            if (fake_cuda_calls(function) < call) fail_msg("%s is called less than %d times", function, call);
            cuda_life_check(&l, strcmp(device, "auto") != 0);
            cuda_fixture_assert_clean();
            /* if memory is short, a context allocates less */
            bool takes_less = strcmp(function, "cuMemAlloc") == 0 && errors[i].result == RT_CU_OUT_OF_MEMORY;
            if (!cuda_life_was_noticed(&l) && !takes_less && !may_pass_unnoticed(function))
                fail_msg("call %d of %s: error %d passed unnoticed", call, function, errors[i].result);
        }
    }
}

static void fail_everything(const char *device)
{
    int calls[CUDA_FUNCTION_COUNT], called = 0;
    cuda_fixture_reset(&cuda_fixture_shared);
    cuda_life healthy = cuda_live(device);
    cuda_life_check(&healthy, true);
    cuda_fixture_assert_clean();
    assert_int_equal(healthy.cpu_answers, 0);
    for (int i = 0; i < CUDA_FUNCTION_COUNT; i++) calls[i] = fake_cuda_calls(cuda_functions[i]);
    for (int i = 0; i < CUDA_FUNCTION_COUNT; i++) {
        fail_each_call(device, cuda_functions[i], calls[i]);
        called += calls[i] > 0;
    }
    /* All functions except four: the two that translate errors, the version query after a refused module, and the
     * status query. */
    assert_int_equal(called, CUDA_FUNCTION_COUNT - 4);
}

static void every_driver_error_is_clean_if_a_gpu_is_requested(void **state)
{
    (void)state;
    fail_everything("cuda:0");
}

static void auto_answers_after_every_driver_error(void **state)
{
    (void)state;
    fail_everything("auto");
}

static void errors_include_the_drivers_message(void **state)
{
    (void)state;
    cuda_fixture_reset(&cuda_fixture_shared);
    fake_cuda_fail("cuMemHostAlloc", 2, RT_CU_OUT_OF_MEMORY, false); /* the first allocation belongs to the trial run */
    cuda_life l = cuda_live("cuda:0");
    assert_int_equal(l.create_status, MDOT_OUT_OF_MEMORY);
    assert_non_null(strstr(l.err.message, "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY (2, out of memory)"));
    cuda_fixture_reset(&cuda_fixture_shared);
    fake_cuda_fail("cuModuleLoadData", 1, 209, false);
    l = cuda_live("cuda:0");
    assert_int_equal(l.open_status, MDOT_DEVICE);
    assert_non_null(strstr(l.err.message, cuda_fixture_shared.path));
    assert_non_null(strstr(l.err.message, "driver for CUDA 13.0"));
    assert_non_null(strstr(l.err.message, "sm_90a"));
    assert_non_null(strstr(l.err.message, "209"));
    cuda_fixture_assert_clean();
}

/* ---- In mid-loop ------------------------------------------------------------------------------------------------- */

static void cpu_answers_in_the_same_call_after_the_device_is_lost(void **state)
{
    (void)state;
    enum { CALLS = 20, LOST_AT = 7 };
    for (int is_auto = 0; is_auto <= 1; is_auto++) {
        cuda_fixture_reset(&cuda_fixture_shared);
        mdot_predictor *predictor = NULL;
        mdot_context *context = NULL, *late = NULL;
        const char *message;
        mdot_error err = {0};
        assert_int_equal(cuda_fixture_predictor(&cuda_fixture_shared, is_auto ? "auto" : "cuda:0", &predictor, NULL),
                         MDOT_OK);
        assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
        int before = fake_cuda_calls("cuLaunchCooperativeKernel");
        fake_cuda_fail("cuLaunchCooperativeKernel", before + LOST_AT + 1, LAUNCH_FAILED, true);
        for (int i = 0; i < CALLS; i++) {
            predict_call c;
            predict_prepare(&c, 1 + i % FIXTURE_MAX_LENGTH, i);
            assert_int_equal(predict_run(context, &c, NULL), MDOT_OK);
            predict_assert(&c, i < LOST_AT);
            bool is_reported = mdot_context_get_device_status(context, &message) == MDOT_DEVICE;
            assert_int_equal(is_reported, i >= LOST_AT);
        }
        assert_non_null(strstr(message, "719"));
        /* the device gets no further launches */
        assert_int_equal(fake_cuda_calls("cuLaunchCooperativeKernel"), before + LOST_AT + 1);
        /* A context created after the loss. */
        mdot_status status = mdot_context_create(predictor, &late, &err);
        assert_int_equal(status, is_auto ? MDOT_OK : MDOT_DEVICE);
        if (is_auto) assert_int_equal(mdot_context_get_device_status(late, &message), MDOT_DEVICE);
        mdot_context_destroy(late);
        mdot_context_destroy(context);
        mdot_predictor_close(predictor);
        cuda_fixture_assert_clean();
    }
}

static void faulting_kernel_is_detected_while_waiting(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    fake_cuda_end_launches(FAKE_CUDA_LATE, 0);
    fake_cuda_fail("cuStreamQuery", fake_cuda_calls("cuStreamQuery") + 1, ILLEGAL_ADDRESS, true);
    predict_call c;
    predict_prepare(&c, 6, 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    predict_assert(&c, false);
    const char *message;
    assert_int_equal(mdot_context_get_device_status(o.context, &message), MDOT_DEVICE);
    assert_non_null(strstr(message, "700"));
    cuda_finish(&o);
}

/* The same holds for a batch after answers for some items. */
static void kernel_without_a_result_is_detected(void **state)
{
    (void)state;
    for (uint32_t answered = 0; answered < 4; answered += 3) {
        cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
        fake_cuda_end_launches(FAKE_CUDA_SILENT, answered);
        predict_call calls[5];
        rt_item items[5];
        for (int i = 0; i < 5; i++) {
            predict_prepare(&calls[i], 8, i);
            items[i] = (rt_item){calls[i].inputs, calls[i].outputs};
        }
        rt_run_many(o.context, rt_entry(o.predictor->table, 0), 8, items, 5);
        for (int i = 0; i < 5; i++) predict_assert(&calls[i], false);
        const char *message;
        assert_int_equal(mdot_context_get_device_status(o.context, &message), MDOT_DEVICE);
        assert_non_null(strstr(message, "before it signalled completion"));
        cuda_finish(&o);
    }
}

/* Makes the fake clock run fast, so that the time limit is reached soon. */
static void pass_time_quickly(void) { cuda_fixture_set_clock(UINT64_C(10000000000), UINT64_C(10000000000)); }

/* The kernel may still use the memory, therefore it is never freed. The caller does not wait for the kernel. */
static void hanging_kernel_is_abandoned(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    pass_time_quickly();
    fake_cuda_end_launches(FAKE_CUDA_NEVER, 0);
    for (int i = 0; i < 3; i++) {
        predict_call c;
        predict_prepare(&c, 6, i);
        assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
        predict_assert(&c, false);
    }
    const char *message;
    assert_int_equal(mdot_context_get_device_status(o.context, &message), MDOT_DEVICE);
    assert_non_null(strstr(message, "did not answer within 60000 ms"));
    int alive = fake_cuda_alive();
    mdot_context_destroy(o.context);
    mdot_predictor_close(o.predictor);
    assert_int_equal(fake_cuda_alive(), alive);
    assert_null(fake_cuda_complaint());
}

/* If the kernel ends after all, the memory is freed later. */
static void late_kernel_is_cleaned_up(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    pass_time_quickly();
    fake_cuda_end_launches(FAKE_CUDA_NEVER, 0);
    predict_call c;
    predict_prepare(&c, 6, 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    predict_assert(&c, false);
    fake_cuda_end_now();
    predict_assert(&c, false); /* the late answer goes into a buffer that is no longer read */
    const char *message;
    assert_int_equal(mdot_context_get_device_status(o.context, &message), MDOT_DEVICE);
    cuda_finish(&o);
}

static void hanging_trial_kernel_is_refused(void **state)
{
    (void)state;
    cuda_fixture_reset(&cuda_fixture_shared);
    pass_time_quickly();
    fake_cuda_end_launches(FAKE_CUDA_NEVER, 0);
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    assert_int_equal(cuda_fixture_predictor(&cuda_fixture_shared, "cuda:0", &predictor, &err), MDOT_DEVICE);
    assert_non_null(strstr(err.message, "did not answer within"));
    assert_int_equal(cuda_fixture_predictor(&cuda_fixture_shared, "auto", &predictor, &err), MDOT_OK);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    assert_string_equal(info.device, "cpu");
    assert_non_null(strstr(info.device_reason, "did not answer within"));
    mdot_predictor_close(predictor);
    assert_null(fake_cuda_complaint());
}

/* ---- Host memory ------------------------------------------------------------------------------------------------- */

typedef struct ledger {
    int limit, granted, live;
} ledger;

static void *take(void *user, size_t bytes, size_t alignment)
{
    ledger *l = user;
    if (l->granted >= l->limit) return NULL;
    void *memory = aligned_alloc(alignment, bytes);
    assert_non_null(memory);
    memset(memory, 0xA5, bytes); /* fresh memory may contain anything */
    l->granted++;
    l->live++;
    return memory;
}

static void give_back(void *user, void *memory)
{
    ledger *l = user;
    l->live--;
    free(memory);
}

/* Counts allocations from libc for the driver's threads. The linker redirects the runtime's calls to this function. */
static atomic_int callocs_left = INT_MAX;
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes)
{
    return atomic_fetch_sub(&callocs_left, 1) > 0 ? __real_calloc(count, bytes) : NULL;
}

/* Runs a predictor's life with limited allocations per kind. */
static mdot_status live_in(int granted, int granted_by_libc)
{
    cuda_fixture_reset(&cuda_fixture_shared);
    ledger l = {.limit = granted};
    const mdot_open_options options = {.struct_size = sizeof options,
                                       .cpu_isa = "x86-64-v3",
                                       .device = "cuda:0",
                                       .device_timeout_ms = cuda_fixture_shared.timeout_ms,
                                       .allocate = take,
                                       .release = give_back,
                                       .user = &l};
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_error err = {0};
    callocs_left = granted_by_libc;
    mdot_status status = mdot_predictor_open(cuda_fixture_shared.path, &options, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    callocs_left = INT_MAX;
    if (status != MDOT_OK) {
        assert_int_equal(status, MDOT_OUT_OF_MEMORY);
        if (strstr(err.message, "memory ran out") == NULL) fail_msg("%s", err.message);
        assert_null(context);
    }
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    assert_int_equal(l.live, 0);
    cuda_fixture_assert_clean();
    return status;
}

static void every_refused_allocation_is_a_clean_failure(void **state)
{
    (void)state;
    enum { ENOUGH = 100 };
    int limit = 0;
    while (live_in(limit, INT_MAX) != MDOT_OK && limit < ENOUGH) limit++;
    /* the predictor, a context with scratch memory (twice), the trial run */
    assert_in_range(limit, 7, ENOUGH - 1);
    limit = 0;
    while (live_in(ENOUGH, limit) != MDOT_OK && limit < ENOUGH) limit++;
    /* the artefact, the GPU, its thread and kernels, a context with a parameter and a thread (twice) */
    assert_in_range(limit, 10, ENOUGH - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_driver_error_is_clean_if_a_gpu_is_requested),
        cmocka_unit_test(auto_answers_after_every_driver_error),
        cmocka_unit_test(errors_include_the_drivers_message),
        cmocka_unit_test(cpu_answers_in_the_same_call_after_the_device_is_lost),
        cmocka_unit_test(faulting_kernel_is_detected_while_waiting),
        cmocka_unit_test(kernel_without_a_result_is_detected),
        cmocka_unit_test(hanging_kernel_is_abandoned),
        cmocka_unit_test(late_kernel_is_cleaned_up),
        cmocka_unit_test(hanging_trial_kernel_is_refused),
        cmocka_unit_test(every_refused_allocation_is_a_clean_failure),
    };
    return cmocka_run_group_tests(tests, cuda_fixture_setup, cuda_fixture_teardown);
}
