/* test_device.c — core with unknown devices: a table brings device kinds from this file (core.h). ../cuda tests the
 * CUDA device. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"

#include "runtime/core/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- The clock --------------------------------------------------------------------------------------------------- */

/* Each reading takes a microsecond, and each device run a set time: the machine's load is irrelevant. */
static int64_t now_ns;

int clock_gettime(clockid_t clock, struct timespec *out_time)
{
    (void)clock;
    now_ns += 1000;
    *out_time = (struct timespec){.tv_sec = (time_t)(now_ns / 1000000000), .tv_nsec = (long)(now_ns % 1000000000)};
    return 0;
}

/* ---- Devices of tin and zinc ------------------------------------------------------------------------------------- */

/* A device that triples the input of entry "double", so a test can see which device has answered. */
typedef struct metal {
    rt_device device;
    char id[16];
} metal;

typedef struct behaviour {
    mdot_status open, context, run; /* each call's status */
    long delay_ns;                  /* duration of a run, by this test's clock */
    /* The calls and arguments received. */
    int ordinal;
    uint32_t timeout_ms;
    const char *kernel_precision;
    int opened, open_devices, open_contexts, runs;
} behaviour;

static behaviour tin, zinc;

static mdot_status open_metal(behaviour *b, const char *name, const rt_device_request *request, rt_device **out_device,
                              mdot_error *err)
{
    b->opened++;
    b->ordinal = request->ordinal;
    b->timeout_ms = request->timeout_ms;
    b->kernel_precision = request->kernel_precision;
    if (b->open != MDOT_OK) return mdot_fail(err, b->open, "%s is rusty", name);
    metal *m = calloc(1, sizeof *m);
    assert_non_null(m);
    snprintf(m->id, sizeof m->id, "%s:%d", name, request->ordinal);
    m->device = (rt_device){.id = m->id, .name = "a sheet", .kernel_precision = "int8"};
    b->open_devices++;
    *out_device = &m->device;
    return MDOT_OK;
}

static mdot_status create_context(behaviour *b, rt_device_context **out_context, mdot_error *err)
{
    if (b->context != MDOT_OK) return mdot_fail(err, b->context, "no space on the sheet");
    b->open_contexts++;
    *out_context = (rt_device_context *)b;
    return MDOT_OK;
}

static void destroy_context(rt_device_context *context)
{
    behaviour *b = (behaviour *)context;
    b->open_contexts--;
}

static mdot_status run(rt_device_context *context, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                       int64_t length, const rt_item *items, size_t count, mdot_error *err)
{
    behaviour *b = (behaviour *)context;
    b->runs++;
    assert_compare(length, <=, bucket->max_length);
    now_ns += b->delay_ns;
    if (b->run != MDOT_OK) return mdot_fail(err, b->run, "bent");
    for (size_t i = 0; i < count && !entry->least_length; i++) {
        const int32_t *a = items[i].inputs[0];
        int32_t *triple = items[i].outputs[0];
        for (int k = 0; k < 3; k++) triple[k] = 3 * a[k];
    }
    return MDOT_OK;
}

#define METAL(metal)                                                                                                   \
    static mdot_status open_##metal(const rt_device_request *request, rt_device **out_device, mdot_error *err)         \
    {                                                                                                                  \
        return open_metal(&metal, #metal, request, out_device, err);                                                   \
    }                                                                                                                  \
    static void close_##metal(rt_device *device)                                                                       \
    {                                                                                                                  \
        metal.open_devices--;                                                                                          \
        free(device);                                                                                                  \
    }                                                                                                                  \
    static mdot_status create_##metal(rt_device *device, rt_device_context **out_context, mdot_error *err)             \
    {                                                                                                                  \
        (void)device;                                                                                                  \
        return create_context(&metal, out_context, err);                                                               \
    }                                                                                                                  \
    static const rt_device_ops metal##_ops = {#metal,         open_##metal,    close_##metal,                          \
                                              create_##metal, destroy_context, run};
METAL(tin)
METAL(zinc)
#undef METAL

static const rt_extension *const no_extensions[] = {NULL};
static const rt_device_ops *const no_devices[] = {NULL}, *const two_devices[] = {&tin_ops, &zinc_ops, NULL};
static const rt_components bare = {.devices = no_devices, .extensions = no_extensions},
                           metals = {.devices = two_devices, .extensions = no_extensions};

/* ---- Opening the artefact over them ------------------------------------------------------------------------------ */

static int reset(void **state)
{
    (void)state;
    tin = zinc = (behaviour){0};
    return 0;
}

static mdot_status open_in(const rt_components *components, const char *device, const char *kernel_precision,
                           mdot_predictor **out_predictor, mdot_error *err)
{
    fixture_skip_unless_v3();
    const mdot_open_options options = {
        .struct_size = sizeof options, .device = device, .device_timeout_ms = 77, .kernel_precision = kernel_precision};
    char *path = fixture_save(&fixture_shared, fixture_shared.bytes, fixture_shared.size_bytes);
    mdot_status status = rt_predictor_open(components, path, &options, out_predictor, err);
    unlink(path);
    free(path);
    return status;
}

static mdot_status open_over(const rt_components *components, const char *device, mdot_predictor **out_predictor,
                             mdot_error *err)
{
    return open_in(components, device, NULL, out_predictor, err);
}

static void expect_refused(const rt_components *components, const char *device, mdot_status status, const char *part)
{
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    assert_int_equal(open_over(components, device, &predictor, &err), status);
    assert_null(predictor);
    if (strstr(err.message, part) == NULL) fail_msg("\"%s\" does not hold \"%s\"", err.message, part);
    assert_int_equal(tin.open_devices + tin.open_contexts + zinc.open_devices + zinc.open_contexts, 0);
}

static mdot_predictor_info info_of(const mdot_predictor *predictor)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    return info;
}

/* The result of entry "double" for the input 5, on any device. */
static int32_t run_double(mdot_context *context)
{
    const int32_t a[3] = {5, 5, 5};
    int32_t b[3] = {0};
    const void *const inputs[] = {a};
    void *const outputs[] = {b};
    assert_int_equal(mdot_run_ordered(context, 1, 0, inputs, outputs, NULL), MDOT_OK);
    return b[0];
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

static void device_kind_of_the_table_answers(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    assert_int_equal(open_over(&metals, "zinc:3", &predictor, NULL), MDOT_OK);
    assert_int_equal(zinc.ordinal, 3);
    assert_int_equal(zinc.timeout_ms, 77);
    assert_int_equal(zinc.runs, 3); /* one run per bucket of each entry */
    assert_int_equal(tin.opened, 0);
    assert_string_equal(info_of(predictor).device, "zinc:3");
    assert_string_equal(info_of(predictor).device_name, "a sheet");
    assert_string_equal(info_of(predictor).device_kernel_precision, "int8");
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_int_equal(run_double(context), 15);
    assert_false(rt_fell_back(context));
    mdot_context_destroy(context);
    assert_int_equal(zinc.open_contexts, 0);
    mdot_predictor_close(predictor);
    assert_int_equal(zinc.open_devices, 0);
}

/* At open, the trial run uses an unregistered predictor's context. */
static void devices_are_tried_under_handle_validation(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    atomic_store(&rt_validation_state, RT_VALIDATION_ON);
    mdot_status status = open_over(&metals, "zinc", &predictor, NULL);
    bool is_zinc = status == MDOT_OK && strcmp(info_of(predictor).device, "zinc:0") == 0;
    mdot_predictor_close(predictor);
    atomic_store(&rt_validation_state, RT_VALIDATION_OFF);
    assert_int_equal(status, MDOT_OK);
    assert_true(is_zinc);
}

static void a_kind_without_an_index_means_its_first_device(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    assert_int_equal(open_over(&metals, "tin", &predictor, NULL), MDOT_OK);
    assert_string_equal(info_of(predictor).device, "tin:0");
    assert_string_equal(info_of(predictor).device_reason, "requested by name");
    mdot_predictor_close(predictor);
}

static void unknown_kinds_are_refused_with_the_known_ones(void **state)
{
    (void)state;
    static const char *const names[] = {
        "lead", "tinfoil", "ti", "tin:", "tin:-1", "tin: 1", "tin:1x", "tin:99999999999"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_refused(&metals, names[i], MDOT_INVALID_ARGUMENT,
                       "known are auto, cpu, tin and tin:0, tin:1 …, zinc and zinc:0, zinc:1 …");
    expect_refused(&metals, "znic", MDOT_INVALID_ARGUMENT, "unknown device \"znic\" (did you mean zinc?); known are");
    assert_int_equal(tin.opened, 0);
    expect_refused(&bare, "tin", MDOT_INVALID_ARGUMENT, "unknown device \"tin\"; known are auto, cpu");
}

static void a_requested_device_must_open(void **state)
{
    (void)state;
    tin.open = MDOT_DEVICE;
    expect_refused(&metals, "tin", MDOT_DEVICE, "device tin: tin is rusty");
    tin.open = MDOT_OK;
    tin.context = MDOT_OUT_OF_MEMORY;
    expect_refused(&metals, "tin", MDOT_OUT_OF_MEMORY, "device tin: no space on the sheet");
    tin.context = MDOT_OK;
    tin.run = MDOT_DEVICE;
    expect_refused(&metals, "tin", MDOT_DEVICE, "device tin: bent");
}

static void a_requested_device_must_create_its_context(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    assert_int_equal(open_over(&metals, "tin", &predictor, NULL), MDOT_OK);
    tin.context = MDOT_OUT_OF_MEMORY;
    mdot_error err = {0};
    assert_int_equal(mdot_context_create(predictor, &context, &err), MDOT_OUT_OF_MEMORY);
    assert_string_equal(err.message, "no space on the sheet");
    assert_null(context);
    mdot_predictor_close(predictor);
}

static void cpu_answers_after_the_device_fails(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL, *other = NULL;
    assert_int_equal(open_over(&metals, "tin", &predictor, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &other, NULL), MDOT_OK);
    int runs = tin.runs;
    tin.run = MDOT_DEVICE;
    assert_int_equal(run_double(context), 10);
    tin.run = MDOT_OK;
    assert_int_equal(run_double(context), 10);
    assert_int_equal(tin.runs, runs + 1);
    const char *message = NULL;
    assert_int_equal(mdot_context_get_device_status(context, &message), MDOT_DEVICE);
    assert_string_equal(message, "bent");
    assert_true(rt_fell_back(context));
    assert_int_equal(run_double(other), 15); /* one context's failure leaves the others unchanged */
    assert_false(rt_fell_back(other));
    mdot_context_destroy(context);
    mdot_context_destroy(other);
    assert_int_equal(tin.open_contexts, 0);
    mdot_predictor_close(predictor);
}

/* Entry "predict" takes x [L,2], keep [L] and bias. The simulated devices leave the outputs unchanged. */
static void items_of_one_length_are_batched_on_the_device(void **state)
{
    (void)state;
    static const int64_t lengths[] = {3, 1, 3, 2, 1, 3};
    enum { ITEMS = 6 };
    float x[6] = {0}, y[ITEMS][3];
    bool keep[3] = {true, true, true};
    int64_t bias = 4, about[4];
    const void *const inputs[] = {x, keep, &bias};
    void *outputs[ITEMS][2];
    mdot_item items[ITEMS];
    for (int i = 0; i < ITEMS; i++) {
        outputs[i][0] = y[i];
        outputs[i][1] = about;
        y[i][0] = -1;
        items[i] = (mdot_item){lengths[i], inputs, outputs[i]};
    }
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    assert_int_equal(open_over(&metals, "tin", &predictor, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    int runs = tin.runs;
    assert_int_equal(mdot_run_many(context, 0, items, ITEMS, NULL), MDOT_OK);
    assert_int_equal(tin.runs, runs + 3);
    assert_compare(y[0][0], ==, -1);
    tin.run = MDOT_DEVICE; /* after the first failure the device gets no further calls, and the CPU answers all items */
    assert_int_equal(mdot_run_many(context, 0, items, ITEMS, NULL), MDOT_OK);
    assert_int_equal(tin.runs, runs + 4);
    for (int i = 0; i < ITEMS; i++) assert_compare(y[i][0], ==, 4);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
}

/* By this test's clock, the fixture's kernels take a microsecond on the CPU. */
static void auto_tries_every_kind_and_rejects_slower_ones(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    tin.delay_ns = zinc.delay_ns = 2000000;
    assert_int_equal(open_over(&metals, "auto", &predictor, NULL), MDOT_OK);
    assert_int_equal(tin.opened, 1);
    assert_int_equal(zinc.opened, 1);
    assert_int_equal(tin.open_devices + zinc.open_devices + tin.open_contexts + zinc.open_contexts, 0);
    assert_string_equal(info_of(predictor).device, "cpu");
    assert_non_null(strstr(info_of(predictor).device_reason, "zinc:0 answers in"));
    mdot_predictor_close(predictor);
}

/* The artefact's CPU code computes in fp32, the simulated devices compute in int8. */
static void auto_chooses_a_device_with_the_requested_precision(void **state)
{
    (void)state;
    tin.open = MDOT_INCOMPATIBLE;
    zinc.delay_ns = 20000000; /* slower than the CPU */
    mdot_predictor *predictor = NULL;
    assert_int_equal(open_in(&metals, "auto", "int8", &predictor, NULL), MDOT_OK);
    assert_string_equal(zinc.kernel_precision, "int8");
    assert_string_equal(info_of(predictor).device, "zinc:0");
    assert_string_equal(info_of(predictor).device_reason, "the artefact's code for this CPU lacks precision int8");
    mdot_predictor_close(predictor);
    predictor = NULL;
    zinc.open = MDOT_INCOMPATIBLE;
    mdot_error err = {0};
    assert_int_equal(open_in(&metals, "auto", "int8", &predictor, &err), MDOT_INCOMPATIBLE);
    assert_non_null(strstr(err.message, "kernel_precision is int8"));
    assert_non_null(strstr(err.message, "zinc is rusty"));
    assert_int_equal(open_in(&metals, "cpu", "int8", &predictor, &err), MDOT_INCOMPATIBLE);
    assert_int_equal(open_in(&metals, "auto", "fp32", &predictor, NULL), MDOT_OK);
    assert_string_equal(info_of(predictor).device, "cpu");
    mdot_predictor_close(predictor);
}

static void auto_skips_devices_that_do_not_open(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    tin.open = zinc.open = MDOT_DEVICE;
    assert_int_equal(open_over(&metals, NULL, &predictor, NULL), MDOT_OK);
    assert_int_equal(tin.opened, 1);
    assert_int_equal(zinc.opened, 1);
    assert_string_equal(info_of(predictor).device, "cpu");
    assert_string_equal(info_of(predictor).device_reason, "zinc is rusty");
    mdot_predictor_close(predictor);
}

static void only_the_cpu_is_available_without_a_table(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    assert_int_equal(open_over(&bare, NULL, &predictor, NULL), MDOT_OK);
    assert_string_equal(info_of(predictor).device, "cpu");
    assert_string_equal(info_of(predictor).device_reason, "this build supports only the CPU");
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_int_equal(run_double(context), 10);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(device_kind_of_the_table_answers, reset),
        cmocka_unit_test_setup(devices_are_tried_under_handle_validation, reset),
        cmocka_unit_test_setup(a_kind_without_an_index_means_its_first_device, reset),
        cmocka_unit_test_setup(unknown_kinds_are_refused_with_the_known_ones, reset),
        cmocka_unit_test_setup(a_requested_device_must_open, reset),
        cmocka_unit_test_setup(a_requested_device_must_create_its_context, reset),
        cmocka_unit_test_setup(cpu_answers_after_the_device_fails, reset),
        cmocka_unit_test_setup(items_of_one_length_are_batched_on_the_device, reset),
        cmocka_unit_test_setup(auto_tries_every_kind_and_rejects_slower_ones, reset),
        cmocka_unit_test_setup(auto_chooses_a_device_with_the_requested_precision, reset),
        cmocka_unit_test_setup(auto_skips_devices_that_do_not_open, reset),
        cmocka_unit_test_setup(only_the_cpu_is_available_without_a_table, reset),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
