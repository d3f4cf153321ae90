/* cuda_fixture.c — see cuda_fixture.h. */
#include "tests/fake_cuda/cuda_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void stamp_images(fixture *f)
{
    size_t at, size;
    assert_true(fixture_find_section(f->bytes, f->size_bytes, MDOT_ABI_SECTION_CUBINS, &at, &size));
    for (size_t i = 0; i < FIXTURE_IMAGES; i++) f->bytes[at + i * FIXTURE_IMAGE_BYTES] = (unsigned char)i;
}

void cuda_fixture_open(cuda_fixture *f)
{
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        exit(77);
    }
    *f = (cuda_fixture){.timeout_ms = 60000};
    fixture_open_with_images(&f->artefact);
    stamp_images(&f->artefact);
    fixture_table *table = fixture_table_of(&f->artefact);
    table->image_kernel[0].tile_rows = 1;
    table->image_kernel[1].tile_rows = 2;
    fixture_seal(&f->artefact);
    f->path = fixture_save(&f->artefact, f->artefact.bytes, f->artefact.size_bytes);
    unsetenv("MDOT_DEVICE");
    mdot_error err = {0};
    if (cuda_fixture_predictor(f, "cpu", &f->cpu, &err) != MDOT_OK ||
        mdot_context_create(f->cpu, &f->cpu_context, &err) != MDOT_OK)
        fail_msg("%s", err.message);
}

void cuda_fixture_close(cuda_fixture *f)
{
    mdot_context_destroy(f->cpu_context);
    mdot_predictor_close(f->cpu);
    free(f->path);
    fixture_close(&f->artefact);
}

cuda_fixture cuda_fixture_shared;

int cuda_fixture_setup(void **state)
{
    (void)state;
    cuda_fixture_open(&cuda_fixture_shared);
    return 0;
}

int cuda_fixture_teardown(void **state)
{
    (void)state;
    cuda_fixture_close(&cuda_fixture_shared);
    return 0;
}

mdot_status cuda_fixture_predictor(const cuda_fixture *f, const char *device, mdot_predictor **out_predictor,
                                   mdot_error *err)
{
    const mdot_open_options options = {
        .struct_size = sizeof options, .cpu_isa = "x86-64-v3", .device = device, .device_timeout_ms = f->timeout_ms};
    return mdot_predictor_open(f->path, &options, out_predictor, err);
}

cuda_opened cuda_open_on(const cuda_fixture *f, const char *device)
{
    cuda_opened o = {0};
    mdot_error err = {0};
    if (cuda_fixture_predictor(f, device, &o.predictor, &err) != MDOT_OK ||
        mdot_context_create(o.predictor, &o.context, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return o;
}

cuda_opened cuda_open_fresh(cuda_fixture *f, const char *device)
{
    cuda_fixture_reset(f);
    return cuda_open_on(f, device);
}

void cuda_finish(cuda_opened *o)
{
    mdot_context_destroy(o->context);
    mdot_predictor_close(o->predictor);
    cuda_fixture_assert_clean();
}

/* A call on the GPU reads the clock before it, once on its way and after it. Hence two readings follow the kernel. */
static _Atomic uint64_t now_ns, gpu_step_ns, other_step_ns;
static _Atomic int readings_since_kernel;

void cuda_fixture_set_clock(uint64_t gpu_ns, uint64_t other_ns)
{
    gpu_step_ns = gpu_ns;
    other_step_ns = other_ns;
}

int clock_gettime(clockid_t clock, struct timespec *out_time)
{
    (void)clock;
    uint64_t step = atomic_fetch_add(&readings_since_kernel, 1) < 2 ? gpu_step_ns : other_step_ns;
    uint64_t t = atomic_fetch_add(&now_ns, step) + step;
    *out_time = (struct timespec){.tv_sec = (time_t)(t / 1000000000), .tv_nsec = (long)(t % 1000000000)};
    return 0;
}

static void check_weights(const unsigned char *weights)
{
    for (int i = 0; i < FIXTURE_IMAGE_BYTES; i++)
        if (weights[i] != (unsigned char)i) abort();
}

static void predict_body(void *user, int64_t length, const unsigned char *weights, const void *const *inputs,
                         void *const *outputs)
{
    const cuda_fixture *f = user;
    readings_since_kernel = 0;
    check_weights(weights);
    if (mdot_run_ordered(f->cpu_context, 0, length, inputs, outputs, NULL) != MDOT_OK) abort();
    *(int64_t *)outputs[1] = CUDA_FIXTURE_ON_GPU;
}

static void double_body(void *user, int64_t length, const unsigned char *weights, const void *const *inputs,
                        void *const *outputs)
{
    const cuda_fixture *f = user;
    readings_since_kernel = 0;
    check_weights(weights);
    if (mdot_run_ordered(f->cpu_context, 1, length, inputs, outputs, NULL) != MDOT_OK) abort();
}

void cuda_fixture_reset(cuda_fixture *f) { cuda_fixture_reset_memory(f, 0); }

void cuda_fixture_reset_memory(cuda_fixture *f, size_t memory_bytes)
{
    setenv("MDOT_LIBCUDA", MDOT_FAKE_CUDA, 1);
    cuda_fixture_set_clock(1000, 1000000);
    fake_cuda_reset(&(fake_cuda_machine){.device_count = 2,
                                         .major = 9,
                                         .multiprocessors = 8,
                                         .blocks_per_multiprocessor = 2,
                                         .memory_bytes = memory_bytes});
    const fixture_table *table = fixture_table_of(&f->artefact);
    fake_cuda_register("predict_4", &table->image_kernel[0], predict_body, f);
    fake_cuda_register("predict_16", &table->image_kernel[1], predict_body, f);
    fake_cuda_register("double_0", &table->image_kernel[2], double_body, f);
}

void predict_prepare(predict_call *c, int64_t length, int seed)
{
    *c = (predict_call){.bias = 10 + seed, .length = length};
    for (int i = 0; i < FIXTURE_MAX_LENGTH; i++) {
        c->x[i][0] = (float)(i + seed);
        c->x[i][1] = (float)(i * i);
        c->keep[i] = (i + seed) % 3 != 1;
        c->y[i] = -1;
    }
    c->inputs[0] = c->x;
    c->inputs[1] = c->keep;
    c->inputs[2] = &c->bias;
    c->outputs[0] = c->y;
    c->outputs[1] = c->about;
}

mdot_status predict_run(mdot_context *context, predict_call *c, mdot_error *err)
{
    return mdot_run_ordered(context, 0, c->length, c->inputs, c->outputs, err);
}

bool predict_is_right(const predict_call *c, bool on_gpu)
{
    for (int64_t i = 0; i < FIXTURE_MAX_LENGTH; i++) {
        float expected = 2 * c->x[i][0] + 3 * c->x[i][1] + (float)c->bias;
        if (c->y[i] != (i >= c->length ? -1 : c->keep[i] ? expected : 0)) return false;
    }
    return c->about[0] == (on_gpu ? CUDA_FIXTURE_ON_GPU : MDOT_CPU_X86_64_V3) &&
           c->about[1] == (c->length <= 4 ? 4 : FIXTURE_MAX_LENGTH) && c->about[2] == c->length && c->about[3] == 0;
}

void predict_assert(const predict_call *c, bool on_gpu)
{
    if (predict_is_right(c, on_gpu)) return;
    fail_msg("length %d on the %s: y[0] = %g, about %d %d %d %d", (int)c->length, on_gpu ? "GPU" : "CPU",
             (double)c->y[0], (int)c->about[0], (int)c->about[1], (int)c->about[2], (int)c->about[3]);
}

void cuda_fixture_assert_clean(void)
{
    if (fake_cuda_complaint() != NULL) fail_msg("the driver complains: %s", fake_cuda_complaint());
    assert_int_equal(fake_cuda_alive(), 0);
}
