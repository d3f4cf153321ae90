/* test_runtime_cuda.c — predictions on a GPU, simulated by the fake libcuda: results and launch parameters.
 * test_runtime_cuda_device.c tests the choice of device, test_runtime_cuda_faults.c tests failures. */
#include "tests/fake_cuda/cuda_fixture.h"

#include "runtime/core/objects.h"
#include "runtime/cuda/cuda_device.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static void every_length_matches_the_cpu(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    for (int64_t length = 1; length <= FIXTURE_MAX_LENGTH; length++) {
        predict_call c;
        predict_prepare(&c, length, (int)length);
        mdot_error err = {0};
        if (predict_run(o.context, &c, &err) != MDOT_OK) fail_msg("%s", err.message);
        predict_assert(&c, true);
    }
    const char *message;
    assert_int_equal(mdot_context_get_device_status(o.context, &message), MDOT_OK);
    cuda_finish(&o);
}

static void named_tensors_may_be_in_any_order(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda");
    predict_call c;
    predict_prepare(&c, 5, 1);
    const int64_t x_dims[] = {5, 2}, keep_dims[] = {5};
    const mdot_input inputs[] = {{"bias", MDOT_DTYPE_I64, 0, NULL, &c.bias},
                                 {"keep", MDOT_DTYPE_BOOL, 1, keep_dims, c.keep},
                                 {"x", MDOT_DTYPE_F32, 2, x_dims, c.x}};
    const mdot_output outputs[] = {{"about", c.about, sizeof c.about}, {"y", c.y, sizeof c.y}};
    assert_int_equal(mdot_run(o.context, 0, inputs, 3, outputs, 2, NULL), MDOT_OK);
    predict_assert(&c, true);
    cuda_finish(&o);
}

static void entry_without_a_length_uses_one_block(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:1");
    const int32_t a[3] = {1, -2, 3};
    int32_t b[3] = {0};
    const void *inputs[] = {a};
    void *outputs[] = {b};
    int before = fake_cuda_last_launch().count;
    assert_int_equal(mdot_run_ordered(o.context, 1, 0, inputs, outputs, NULL), MDOT_OK);
    assert_int_equal(b[0], 2);
    assert_int_equal(b[1], -4);
    assert_int_equal(b[2], 6);
    fake_cuda_launch launch = fake_cuda_last_launch();
    assert_int_equal(launch.count, before + 1);
    assert_int_equal(launch.blocks, 1);
    cuda_finish(&o);
}

static void late_results_are_awaited(void **state)
{
    (void)state;
    for (fake_cuda_end end = FAKE_CUDA_LATE; end <= FAKE_CUDA_AT_QUERY; end++) {
        cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
        fake_cuda_end_launches(end, 0);
        for (int64_t length = 1; length <= FIXTURE_MAX_LENGTH; length += 5) {
            predict_call c;
            predict_prepare(&c, length, 2);
            assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
            predict_assert(&c, true);
        }
        cuda_finish(&o);
    }
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

static void single_item_has_one_block_per_tile(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    const struct {
        int64_t length;
        uint32_t blocks;
        bool is_inline;
    } expected[] = {{1, 1, true}, {3, 3, true}, {4, 4, true}, {5, 3, false}, {16, 8, false}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        predict_call c;
        predict_prepare(&c, expected[i].length, 0);
        assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
        fake_cuda_launch launch = fake_cuda_last_launch();
        assert_int_equal(launch.items, 1);
        assert_int_equal(launch.blocks, expected[i].blocks);
        assert_int_equal(launch.is_inline, expected[i].is_inline);
    }
    cuda_finish(&o);
}

static void call_makes_one_launch_without_copies(void **state)
{
    (void)state;
    enum { RUNS = 50 };
    static const char *const counted[] = {
#define NAME(name, suffix, parameters) #name,
        RT_CUDA_SYMBOL_MAP(NAME)
#undef NAME
    };
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    int before[sizeof counted / sizeof counted[0]];
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) before[i] = fake_cuda_calls(counted[i]);
    for (int i = 0; i < RUNS; i++) {
        predict_call c;
        predict_prepare(&c, 1 + i % FIXTURE_MAX_LENGTH, i);
        assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    }
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        bool is_part = strcmp(counted[i], "cuLaunchCooperativeKernel") == 0;
        int calls = fake_cuda_calls(counted[i]) - before[i];
        if (calls != (is_part ? RUNS : 0)) fail_msg("%s: %d calls in %d runs", counted[i], calls, RUNS);
    }
    cuda_finish(&o);
}

/* 16 blocks are resident. Therefore a launch has up to 16 items, and the remaining items are spread evenly over the
 * launches. */
static void many_items_fill_the_gpu(void **state)
{
    (void)state;
    enum { MOST = 40 };
    const struct {
        size_t count;
        int launches;
        uint32_t last_items, last_blocks;
    } expected[] = {{1, 1, 1, 8},  {2, 1, 2, 8},   {3, 1, 3, 5}, {16, 1, 16, 1},
                    {17, 2, 9, 1}, {40, 3, 14, 1}, {0, 0, 0, 0}};
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    const mdot_abi_entry *entry = rt_entry(o.predictor->table, 0);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        static predict_call calls[MOST];
        rt_item items[MOST];
        for (size_t k = 0; k < expected[i].count; k++) {
            predict_prepare(&calls[k], 16, (int)(i + k));
            items[k] = (rt_item){calls[k].inputs, calls[k].outputs};
        }
        int before = fake_cuda_last_launch().count;
        rt_run_many(o.context, entry, 16, items, expected[i].count);
        for (size_t k = 0; k < expected[i].count; k++) predict_assert(&calls[k], true);
        fake_cuda_launch launch = fake_cuda_last_launch();
        assert_int_equal(launch.count - before, expected[i].launches);
        if (expected[i].count == 0) continue;
        assert_int_equal(launch.items, expected[i].last_items);
        assert_int_equal(launch.blocks, expected[i].last_blocks);
    }
    cuda_finish(&o);
}

static void many_items_without_a_length_run_side_by_side(void **state)
{
    (void)state;
    enum { COUNT = 16 };
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    int32_t a[COUNT][3], b[COUNT][3];
    const void *inputs[COUNT];
    void *outputs[COUNT];
    rt_item items[COUNT];
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < 3; k++) a[i][k] = 3 * i + k;
        inputs[i] = a[i];
        outputs[i] = b[i];
        items[i] = (rt_item){&inputs[i], &outputs[i]};
    }
    int before = fake_cuda_last_launch().count;
    rt_run_many(o.context, rt_entry(o.predictor->table, 1), 0, items, COUNT);
    assert_int_equal(fake_cuda_last_launch().count, before + 1);
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k < 3; k++) assert_int_equal(b[i][k], 2 * a[i][k]);
    cuda_finish(&o);
}

/* If kernels need much scratch memory, a launch takes as many items as fit into 256 MiB, or into the GPU's free memory
 * if that is less. It takes at least one item. */
static void memory_limits_the_items_of_a_launch(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    const struct {
        size_t scratch_mib, memory_mib;
        uint32_t items; /* items in the last launch; 0 = the memory is too small for one item */
    } expected[] = {{100, 0, 2}, {300, 0, 1}, {40, 0, 4}, {40, 200, 2}, {40, 60, 1}, {40, 30, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        cuda_fixture large = cuda_fixture_shared;
        mdot_abi_cuda_kernel *kernel = &fixture_table_of(&large.artefact)->image_kernel[0];
        uint64_t small_bytes = kernel->scratch_bytes;
        kernel->scratch_bytes = (uint64_t)expected[i].scratch_mib << 20;
        fixture_seal(&large.artefact);
        large.path = fixture_save(&large.artefact, large.artefact.bytes, large.artefact.size_bytes);
        cuda_fixture_reset_memory(&cuda_fixture_shared, expected[i].memory_mib << 20);
        cuda_opened o = {0};
        mdot_status status = cuda_fixture_predictor(&large, "cuda:0", &o.predictor, NULL);
        assert_int_equal(status, expected[i].items > 0 ? MDOT_OK : MDOT_OUT_OF_MEMORY);
        if (status == MDOT_OK) {
            predict_call calls[COUNT];
            rt_item items[COUNT];
            assert_int_equal(mdot_context_create(o.predictor, &o.context, NULL), MDOT_OK);
            for (int k = 0; k < COUNT; k++) {
                predict_prepare(&calls[k], 4, k);
                items[k] = (rt_item){calls[k].inputs, calls[k].outputs};
            }
            rt_run_many(o.context, rt_entry(o.predictor->table, 0), 4, items, COUNT);
            for (int k = 0; k < COUNT; k++) predict_assert(&calls[k], true);
            assert_int_equal(fake_cuda_last_launch().items, expected[i].items);
        }
        cuda_finish(&o);
        kernel->scratch_bytes = small_bytes;
        fixture_seal(&large.artefact);
        free(large.path);
    }
}

/* A single item's barrier continues from its last value, in any order of buckets and batches. */
static void single_items_and_batches_alternate(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    const mdot_abi_entry *entry = rt_entry(o.predictor->table, 0);
    for (int round = 0; round < 5; round++) {
        predict_call lone, pair[2];
        predict_prepare(&lone, 7 + round, round);
        assert_int_equal(predict_run(o.context, &lone, NULL), MDOT_OK);
        predict_assert(&lone, true);
        predict_prepare(&pair[0], 9, round);
        predict_prepare(&pair[1], 9, round + 1);
        const rt_item items[] = {{pair[0].inputs, pair[0].outputs}, {pair[1].inputs, pair[1].outputs}};
        rt_run_many(o.context, entry, 9, items, 2);
        predict_assert(&pair[0], true);
        predict_assert(&pair[1], true);
    }
    cuda_finish(&o);
}

/* The ticket wraps around after 2^32 launches, which take half a day. Late answers show if a ticket is mistaken for an
 * earlier one. */
static void barrier_counters_wrap_around(void **state)
{
    (void)state;
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    const mdot_abi_entry *entry = rt_entry(o.predictor->table, 0);
    static const uint32_t tickets[] = {UINT32_MAX - 1, UINT32_MAX, 6, 6};
    fake_cuda_end_launches(FAKE_CUDA_LATE, 0);
    for (int i = 0; i < 4; i++) {
        predict_call pair[2];
        predict_prepare(&pair[0], 9, i);
        predict_prepare(&pair[1], 9, i + 1);
        const rt_item items[] = {{pair[0].inputs, pair[0].outputs}, {pair[1].inputs, pair[1].outputs}};
        ((rt_cuda_context *)o.context->device)->ticket = tickets[i];
        rt_run_many(o.context, entry, 9, items, 2);
        predict_assert(&pair[0], true);
        predict_assert(&pair[1], true);
    }
    cuda_finish(&o);
}

/* ---- Other users of the device in the process -------------------------------------------------------------------- */

/* Functions in the fake libcuda, linked into this program. */
int cuDevicePrimaryCtxRetain(rt_cu_context *out_context, rt_cu_device device);
int cuDevicePrimaryCtxRelease_v2(rt_cu_device device);
int cuCtxPushCurrent_v2(rt_cu_context context);
int cuCtxPopCurrent_v2(rt_cu_context *out_context);

static void context_of_the_program_stays_current(void **state)
{
    (void)state;
    cuda_fixture_reset(&cuda_fixture_shared);
    rt_cu_context own, popped;
    cuDevicePrimaryCtxRetain(&own, 1);
    cuCtxPushCurrent_v2(own);
    cuda_opened o = cuda_open_on(&cuda_fixture_shared, "cuda:0");
    predict_call c;
    predict_prepare(&c, 5, 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    mdot_context_destroy(o.context);
    mdot_predictor_close(o.predictor);
    assert_int_equal(cuCtxPopCurrent_v2(&popped), RT_CU_SUCCESS);
    assert_ptr_equal(popped, own);
    cuDevicePrimaryCtxRelease_v2(1);
    cuda_fixture_assert_clean();
}

typedef struct worker {
    const mdot_predictor *predictor;
    int64_t length;
    bool is_right;
} worker;

static void *work(void *argument)
{
    worker *w = argument;
    mdot_context *own = NULL;
    w->is_right = mdot_context_create(w->predictor, &own, NULL) == MDOT_OK;
    for (int i = 0; w->is_right && i < 200; i++) {
        predict_call c;
        predict_prepare(&c, w->length, i);
        w->is_right = predict_run(own, &c, NULL) == MDOT_OK && predict_is_right(&c, true);
    }
    mdot_context_destroy(own);
    return NULL;
}

static void threads_share_a_predictor(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    cuda_opened o = cuda_open_fresh(&cuda_fixture_shared, "cuda:0");
    pthread_t thread[THREADS];
    worker workers[THREADS] = {
        {o.predictor, 1, false}, {o.predictor, 4, false}, {o.predictor, 5, false}, {o.predictor, 16, false}};
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(workers[i].is_right);
    }
    cuda_finish(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_matches_the_cpu),
        cmocka_unit_test(named_tensors_may_be_in_any_order),
        cmocka_unit_test(entry_without_a_length_uses_one_block),
        cmocka_unit_test(late_results_are_awaited),
        cmocka_unit_test(single_item_has_one_block_per_tile),
        cmocka_unit_test(call_makes_one_launch_without_copies),
        cmocka_unit_test(many_items_fill_the_gpu),
        cmocka_unit_test(many_items_without_a_length_run_side_by_side),
        cmocka_unit_test(memory_limits_the_items_of_a_launch),
        cmocka_unit_test(single_items_and_batches_alternate),
        cmocka_unit_test(barrier_counters_wrap_around),
        cmocka_unit_test(context_of_the_program_stays_current),
        cmocka_unit_test(threads_share_a_predictor),
    };
    return cmocka_run_group_tests(tests, cuda_fixture_setup, cuda_fixture_teardown);
}
