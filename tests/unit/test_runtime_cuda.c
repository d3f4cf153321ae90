/* test_runtime_cuda.c — predictions on a GPU, played by the fake libcuda: results, how launches look, and which device
 * an option, a machine and an artefact come down to. What fails is in test_runtime_cuda_faults.c.
 */
#include "tests/fake_cuda/cuda_fixture.h"

#include "runtime/cuda.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static cuda_fixture shared;

static int setup(void **state)
{
    (void)state;
    cuda_fixture_open(&shared);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cuda_fixture_close(&shared);
    return 0;
}

typedef struct opened {
    mdot_predictor *predictor;
    mdot_context *context;
} opened;

static opened open_on(const char *device)
{
    opened o = {0};
    mdot_error err = {0};
    if (cuda_fixture_predictor(&shared, device, &o.predictor, &err) != MDOT_OK ||
        mdot_context_create(o.predictor, &o.context, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return o;
}

static opened open_fresh(const char *device)
{
    cuda_fixture_reset(&shared);
    return open_on(device);
}

static void finish(opened *o)
{
    mdot_context_destroy(o->context);
    mdot_predictor_close(o->predictor);
    cuda_fixture_assert_clean();
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static void every_length_gives_what_the_cpu_gives(void **state)
{
    (void)state;
    opened o = open_fresh("cuda:0");
    for (int64_t length = 1; length <= FIXTURE_MAX_LENGTH; length++) {
        predict_call c;
        predict_prepare(&c, length, (int)length);
        mdot_error err = {0};
        if (predict_run(o.context, &c, &err) != MDOT_OK) fail_msg("%s", err.message);
        predict_assert(&c, true);
    }
    const char *message;
    assert_int_equal(mdot_context_get_device_status(o.context, &message), MDOT_OK);
    finish(&o);
}

static void named_tensors_come_in_any_order(void **state)
{
    (void)state;
    opened o = open_fresh("cuda");
    predict_call c;
    predict_prepare(&c, 5, 1);
    const int64_t x_dims[] = {5, 2}, keep_dims[] = {5};
    const mdot_input inputs[] = {{"bias", MDOT_DTYPE_I64, 0, NULL, &c.bias},
                                 {"keep", MDOT_DTYPE_BOOL, 1, keep_dims, c.keep},
                                 {"x", MDOT_DTYPE_F32, 2, x_dims, c.x}};
    const mdot_output outputs[] = {{"about", c.about, sizeof c.about}, {"y", c.y, sizeof c.y}};
    assert_int_equal(mdot_run(o.context, 0, inputs, 3, outputs, 2, NULL), MDOT_OK);
    predict_assert(&c, true);
    finish(&o);
}

static void entry_without_a_length_takes_one_block(void **state)
{
    (void)state;
    opened o = open_fresh("cuda:1");
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
    finish(&o);
}

static void answer_that_comes_late_is_waited_for(void **state)
{
    (void)state;
    for (fake_cuda_end end = FAKE_CUDA_LATE; end <= FAKE_CUDA_ASKED; end++) {
        opened o = open_fresh("cuda:0");
        fake_cuda_end_launches(end, 0);
        for (int64_t length = 1; length <= FIXTURE_MAX_LENGTH; length += 5) {
            predict_call c;
            predict_prepare(&c, length, 2);
            assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
            predict_assert(&c, true);
        }
        finish(&o);
    }
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

static void lone_item_has_a_block_for_each_of_its_tiles(void **state)
{
    (void)state;
    opened o = open_fresh("cuda:0");
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
    finish(&o);
}

static void call_is_one_launch_and_no_copy(void **state)
{
    (void)state;
    enum { RUNS = 50 };
    static const char *const counted[] = {
#define NAME(name, suffix, parameters) #name,
        RT_CUDA_SYMBOL_MAP(NAME)
#undef NAME
    };
    opened o = open_fresh("cuda:0");
    int before[sizeof counted / sizeof counted[0]];
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) before[i] = fake_cuda_calls(counted[i]);
    for (int i = 0; i < RUNS; i++) {
        predict_call c;
        predict_prepare(&c, 1 + i % FIXTURE_MAX_LENGTH, i);
        assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    }
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++) {
        bool is_part = strcmp(counted[i], "cuCtxPushCurrent") == 0 || strcmp(counted[i], "cuCtxPopCurrent") == 0 ||
                       strcmp(counted[i], "cuLaunchCooperativeKernel") == 0;
        int calls = fake_cuda_calls(counted[i]) - before[i];
        if (calls != (is_part ? RUNS : 0)) fail_msg("%s: %d calls in %d runs", counted[i], calls, RUNS);
    }
    finish(&o);
}

/* 16 blocks are resident: up to 16 items a launch, and what is over is spread evenly. */
static void many_items_fill_the_chip(void **state)
{
    (void)state;
    enum { MOST = 40 };
    const struct {
        size_t count;
        int launches;
        uint32_t last_items, last_blocks;
    } expected[] = {{1, 1, 1, 8},  {2, 1, 2, 8},   {3, 1, 3, 5}, {16, 1, 16, 1},
                    {17, 2, 9, 1}, {40, 3, 14, 1}, {0, 0, 0, 0}};
    opened o = open_fresh("cuda:0");
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
    finish(&o);
}

static void many_items_without_a_length_run_side_by_side(void **state)
{
    (void)state;
    enum { COUNT = 16 };
    opened o = open_fresh("cuda:0");
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
    finish(&o);
}

/* Of kernels that need much scratch, launches take what 256 MiB hold or, on a card with less memory left, what that
 * holds, and at least one item. */
static void memory_bounds_the_items_of_a_launch(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    const struct {
        size_t scratch_mib, memory_mib;
        uint32_t items; /* of the last launch; 0: there is no room for one */
    } expected[] = {{100, 0, 2}, {300, 0, 1}, {40, 0, 4}, {40, 200, 2}, {40, 60, 1}, {40, 30, 0}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        cuda_fixture large = shared;
        mdot_abi_cuda_kernel *kernel = &fixture_table_of(&large.artefact)->image_kernel[0];
        uint64_t small_bytes = kernel->scratch_bytes;
        kernel->scratch_bytes = (uint64_t)expected[i].scratch_mib << 20;
        fixture_seal(&large.artefact);
        large.path = fixture_save(&large.artefact, large.artefact.bytes, large.artefact.size_bytes);
        cuda_fixture_reset_memory(&shared, expected[i].memory_mib << 20);
        opened o = {0};
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
        finish(&o);
        kernel->scratch_bytes = small_bytes;
        fixture_seal(&large.artefact);
        free(large.path);
    }
}

/* A lone item's barrier goes on from where it was, in whatever order buckets and batches come. */
static void lone_items_and_batches_take_turns(void **state)
{
    (void)state;
    opened o = open_fresh("cuda:0");
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
    finish(&o);
}

/* 2^32 launches pass in half a day. The answers come late, so that a word which looks like one too early shows. */
static void tickets_begin_again(void **state)
{
    (void)state;
    opened o = open_fresh("cuda:0");
    const mdot_abi_entry *entry = rt_entry(o.predictor->table, 0);
    static const uint32_t tickets[] = {UINT32_MAX - 1, UINT32_MAX, 6, 6};
    fake_cuda_end_launches(FAKE_CUDA_LATE, 0);
    for (int i = 0; i < 4; i++) {
        predict_call pair[2];
        predict_prepare(&pair[0], 9, i);
        predict_prepare(&pair[1], 9, i + 1);
        const rt_item items[] = {{pair[0].inputs, pair[0].outputs}, {pair[1].inputs, pair[1].outputs}};
        o.context->cuda->ticket = tickets[i];
        rt_run_many(o.context, entry, 9, items, 2);
        predict_assert(&pair[0], true);
        predict_assert(&pair[1], true);
    }
    finish(&o);
}

/* ---- The program around ------------------------------------------------------------------------------------------ */

/* The fake's functions, which this program is linked to. */
int cuDevicePrimaryCtxRetain(rt_cu_context *out_context, rt_cu_device device);
int cuDevicePrimaryCtxRelease_v2(rt_cu_device device);
int cuCtxPushCurrent_v2(rt_cu_context context);
int cuCtxPopCurrent_v2(rt_cu_context *out_context);

static void context_of_the_programs_own_stays_current(void **state)
{
    (void)state;
    cuda_fixture_reset(&shared);
    rt_cu_context own, popped;
    cuDevicePrimaryCtxRetain(&own, 1);
    cuCtxPushCurrent_v2(own);
    opened o = open_on("cuda:0");
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
    opened o = open_fresh("cuda:0");
    pthread_t thread[THREADS];
    worker workers[THREADS] = {
        {o.predictor, 1, false}, {o.predictor, 4, false}, {o.predictor, 5, false}, {o.predictor, 16, false}};
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(workers[i].is_right);
    }
    finish(&o);
}

/* ---- Which device ------------------------------------------------------------------------------------------------ */

static mdot_predictor_info info_of(const opened *o)
{
    mdot_predictor_info info;
    mdot_predictor_get_info(o->predictor, &info);
    return info;
}

static void info_tells_the_device(void **state)
{
    (void)state;
    opened o = open_fresh("cuda:1");
    mdot_predictor_info info = info_of(&o);
    assert_string_equal(info.device, "cuda:1");
    assert_string_equal(info.device_name, "Fake GPU 1");
    assert_string_equal(info.device_compute, "bf16");
    assert_string_equal(info.compute, "fp32");
    assert_string_equal(info.device_reason, "it was asked for");
    finish(&o);
    o = open_fresh("cpu");
    info = info_of(&o);
    assert_string_equal(info.device, "cpu");
    assert_string_equal(info.device_name, "");
    assert_string_equal(info.device_compute, "fp32");
    assert_int_equal(fake_cuda_calls("cuInit"), 0);
    finish(&o);
}

static void auto_takes_what_answers_faster(void **state)
{
    (void)state;
    opened o = open_fresh("auto");
    mdot_predictor_info info = info_of(&o);
    assert_string_equal(info.device, "cuda:0");
    assert_string_equal(info.device_reason, "cuda:0 answers in 4 us, the CPU in 2000 us");
    predict_call c;
    predict_prepare(&c, 5, 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    predict_assert(&c, true);
    finish(&o);
    cuda_fixture_reset(&shared);
    cuda_fixture_set_clock(30000, 1000);
    o = open_on(NULL);
    info = info_of(&o);
    assert_string_equal(info.device, "cpu");
    assert_string_equal(info.device_reason, "cuda:0 answers in 120 us, the CPU in 2 us");
    assert_int_equal(fake_cuda_alive(), 0);
    assert_int_equal(predict_run(o.context, &c, NULL), MDOT_OK);
    predict_assert(&c, false);
    finish(&o);
}

static void environment_speaks_where_the_option_does_not(void **state)
{
    (void)state;
    setenv("MDOT_DEVICE", "cuda:1", 1);
    opened o = open_fresh(NULL);
    assert_string_equal(info_of(&o).device, "cuda:1");
    finish(&o);
    o = open_fresh("cpu");
    assert_string_equal(info_of(&o).device, "cpu");
    finish(&o);
    setenv("MDOT_DEVICE", "", 1);
    o = open_fresh(NULL);
    assert_string_equal(info_of(&o).device, "cuda:0");
    finish(&o);
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
    cuda_fixture_reset(&shared);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mdot_predictor *predictor = NULL;
        mdot_error err = {0};
        assert_int_equal(cuda_fixture_predictor(&shared, wrong[i], &predictor, &err), MDOT_INVALID_ARGUMENT);
        assert_null(predictor);
        assert_non_null(strstr(err.message, wrong[i]));
        assert_non_null(strstr(err.message, "auto, cpu, cuda"));
    }
    cuda_fixture_assert_clean();
}

/* Explicit: DEVICE with both pieces of text. "auto": the CPU, and the reason says the same. */
static void expect_no_device(const char *device, const char *says, const char *says_too)
{
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    assert_int_equal(cuda_fixture_predictor(&shared, device, &predictor, &err), MDOT_DEVICE);
    assert_null(predictor);
    if (strstr(err.message, says) == NULL || strstr(err.message, says_too) == NULL) fail_msg("%s", err.message);
    if (strcmp(device, "cuda:0") == 0) {
        opened o = open_on("auto");
        mdot_predictor_info info = info_of(&o);
        assert_string_equal(info.device, "cpu");
        if (strstr(info.device_reason, says) == NULL) fail_msg("%s", info.device_reason);
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
    cuda_fixture_reset(&shared);
    setenv("MDOT_LIBCUDA", "libcuda-that-is-not-there.so.1", 1);
    expect_no_device("cuda:0", "no CUDA driver", "libcuda-that-is-not-there.so.1");
    setenv("MDOT_LIBCUDA", "libm.so.6", 1);
    expect_no_device("cuda:0", "has no function cu", "libm.so.6");
}

static void device_that_is_not_there_is_named(void **state)
{
    (void)state;
    cuda_fixture_reset(&shared);
    expect_no_device("cuda:2", "no CUDA device 2", "shows 2");
    fake_cuda_reset(&(fake_cuda_machine){.device_count = 0});
    expect_no_device("cuda:0", "no CUDA device 0", "shows 0");
}

/* The fixture's images: 0 is sm_80, 1 is sm_90, 2 is sm_90a. */
static void image_is_the_best_that_the_device_runs(void **state)
{
    (void)state;
    const struct {
        int major, minor, image;
    } expected[] = {{8, 0, 0}, {8, 6, 0}, {8, 9, 0}, {9, 0, 2}, {9, 1, 1}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        cuda_fixture_reset(&shared);
        fake_cuda_machine m = {.device_count = 1, .multiprocessors = 4, .blocks_per_multiprocessor = 1};
        m.major = expected[i].major;
        m.minor = expected[i].minor;
        fake_cuda_reset(&m);
        opened o = open_on("cuda:0");
        assert_int_equal(*(const unsigned char *)fake_cuda_image(), expected[i].image);
        finish(&o);
    }
}

static void device_that_no_image_fits_is_refused(void **state)
{
    (void)state;
    const int versions[][2] = {{7, 5}, {10, 0}, {12, 0}};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        cuda_fixture_reset(&shared);
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
    cuda_fixture_reset(&shared);
    fake_cuda_reset(&(fake_cuda_machine){.device_count = 1, .major = 9, .multiprocessors = 4});
    expect_no_device("cuda:0", "do not fit cuda:0", "kernel predict_4");
    fake_cuda_reset(
        &(fake_cuda_machine){.device_count = 1, .major = 9, .multiprocessors = 4, .is_not_cooperative = true});
    expect_no_device("cuda:0", "cooperative", "Fake GPU 0");
}

static void artefact_without_images_looks_for_no_driver(void **state)
{
    (void)state;
    cuda_fixture_reset(&shared);
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
    assert_non_null(strstr(err.message, "no CUDA code"));
    assert_int_equal(fake_cuda_calls("cuInit"), 0);
    free(plain.path);
    fixture_close(&plain.artefact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_gives_what_the_cpu_gives),
        cmocka_unit_test(named_tensors_come_in_any_order),
        cmocka_unit_test(entry_without_a_length_takes_one_block),
        cmocka_unit_test(answer_that_comes_late_is_waited_for),
        cmocka_unit_test(lone_item_has_a_block_for_each_of_its_tiles),
        cmocka_unit_test(call_is_one_launch_and_no_copy),
        cmocka_unit_test(many_items_fill_the_chip),
        cmocka_unit_test(many_items_without_a_length_run_side_by_side),
        cmocka_unit_test(memory_bounds_the_items_of_a_launch),
        cmocka_unit_test(lone_items_and_batches_take_turns),
        cmocka_unit_test(tickets_begin_again),
        cmocka_unit_test(context_of_the_programs_own_stays_current),
        cmocka_unit_test(threads_share_a_predictor),
        cmocka_unit_test(info_tells_the_device),
        cmocka_unit_test(auto_takes_what_answers_faster),
        cmocka_unit_test(environment_speaks_where_the_option_does_not),
        cmocka_unit_test(wrong_device_names_are_refused),
        cmocka_unit_test(machine_without_a_driver_runs_on_the_cpu),
        cmocka_unit_test(device_that_is_not_there_is_named),
        cmocka_unit_test(image_is_the_best_that_the_device_runs),
        cmocka_unit_test(device_that_no_image_fits_is_refused),
        cmocka_unit_test(device_that_cannot_hold_the_kernels_is_refused),
        cmocka_unit_test(artefact_without_images_looks_for_no_driver),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
