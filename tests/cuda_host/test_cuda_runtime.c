/* test_cuda_runtime.c — the whole path of a prediction on a simulated GPU. A model is compiled for sm_90a, and the
 * runtime opens it on the fake libcuda, whose launches run the same source in the emulator. The results are compared
 * with the artefact's CPU code. In addition to the separate tests of kernels and runtime, this shows that both sides
 * interpret mdot_abi.h alike. */
#include "codegen/codegen.h"
#include "codegen/cuda/cuda_program.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"
#include "tests/support/shard.h"

#include "codegen/cuda/nvrtc.h"
#include "mdot/mdotc.h"
#include "runtime/core/objects.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LONGEST = 64, MULTIPROCESSORS = 6, BATCH = 8, MOST_PARAMETER_BYTES = 32768 };
static const int64_t buckets[] = {32, LONGEST, 0};

static char *folder, *model;

static int setup(void **state)
{
    (void)state;
    folder = process_make_folder();
    model = write_model(folder, "encoder.onnx", encoder_model(1));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    process_remove_folder(folder);
    free(model);
    return 0;
}

/* Passed by value and as large as the largest kernel parameter. The callee only reads the part covered by its
 * structure. */
typedef struct parameter {
    mdot_abi_cuda_call call;
    unsigned char input[MOST_PARAMETER_BYTES - sizeof(mdot_abi_cuda_call)];
} parameter;

typedef struct kernel_call {
    void (*function)(parameter p);
    parameter parameter;
} kernel_call;

static void call_kernel(void *user)
{
    const kernel_call *c = user;
    c->function(c->parameter);
}

static const cu_kernel *kernel_named(const program *p, const char *name)
{
    for (int i = 0; i < p->code.kernel_count; i++)
        if (strcmp(p->code.kernels[i].name, name) == 0) return &p->code.kernels[i];
    return NULL;
}

static cuda_host_report fault; /* the first fault of a launch; stored here because a launcher must return */

/* Replaces the driver's memory by the emulator's, so that every access is checked. Scratch memory and outputs start
 * poisoned. The memory that the host reads afterwards is copied back. */
static void run_in_emulator(const program *p, const cu_kernel *kernel, const cuda_host_launch *how, kernel_call *c,
                            cuda_host_memory *memory)
{
    mdot_abi_cuda_call *call = &c->parameter.call;
    unsigned items = how->grid[1];
    const mdot_abi_cuda_call hosts = *call;
    size_t output_bytes = items * call->output_stride, words_bytes = items * sizeof(uint32_t);
    void *output = cuda_host_buffer(memory, "outputs", NULL, output_bytes, 4);
    void *barrier = cuda_host_buffer(memory, "barriers", (void *)(uintptr_t)call->barrier, words_bytes, 4);
    void *done = cuda_host_buffer(memory, "flags", (void *)(uintptr_t)call->done, words_bytes, 4);
    call->weights =
        (uintptr_t)cuda_host_constant(memory, "weights", (void *)(uintptr_t)call->weights, p->code.weights.size_bytes);
    if (!call->inline_input)
        call->input =
            (uintptr_t)cuda_host_constant(memory, "inputs", (void *)(uintptr_t)call->input, items * call->input_stride);
    call->scratch = (uintptr_t)cuda_host_buffer(memory, "scratch", NULL,
                                                (items - 1) * call->scratch_stride + kernel->scratch_bytes, 2);
    call->output = (uintptr_t)output;
    call->barrier = (uintptr_t)barrier;
    call->done = (uintptr_t)done;
    static cuda_host_report report;
    if (!cuda_host_run(memory, how, call_kernel, c, &report) && !fault.faulted) fault = report;
    memcpy((void *)(uintptr_t)hosts.output, output, output_bytes);
    memcpy((void *)(uintptr_t)hosts.barrier, barrier, words_bytes);
    memcpy((void *)(uintptr_t)hosts.done, done, words_bytes);
}

static void launch(void *user, const char *name, const fake_cuda_grid *grid, const mdot_abi_cuda_call *call)
{
    const program *p = user;
    const cu_kernel *kernel = kernel_named(p, name);
    kernel_call *c = calloc(1, sizeof *c);
    if (kernel == NULL || c == NULL) abort();
    *(void **)&c->function = cuda_host_symbol(p->module, name);
    memcpy(&c->parameter, call, sizeof *call + kernel->inline_input_bytes);
    cuda_host_memory *memory = cuda_host_memory_create();
    const cuda_host_launch how = {.module = p->module,
                                  .grid = {grid->blocks, grid->items},
                                  .block = {grid->threads},
                                  .shared_bytes = grid->shared_bytes,
                                  .cluster = (unsigned)kernel->blocks_per_tile,
                                  .seed = call->ticket};
    run_in_emulator(p, kernel, &how, c, memory);
    cuda_host_memory_destroy(memory);
    free(c);
}

static void assert_no_fault(void)
{
    if (fault.faulted) fail_msg("%s", fault.message);
}

static void plug_in(const program *p, int blocks_per_tile)
{
    fault.faulted = false;
    fake_cuda_reset(&(fake_cuda_machine){.device_count = 1,
                                         .major = 9,
                                         .multiprocessors = MULTIPROCESSORS * blocks_per_tile,
                                         .blocks_per_multiprocessor = 1});
    for (int i = 0; i < p->code.kernel_count; i++) {
        const cu_kernel *k = &p->code.kernels[i];
        const mdot_abi_cuda_kernel abi = {.threads = (uint32_t)k->threads,
                                          .tile_rows = (uint32_t)k->tile_rows,
                                          .blocks_per_tile = (uint32_t)k->blocks_per_tile,
                                          .grid_barriers = (uint32_t)k->grid_barriers,
                                          .dynamic_shared_bytes = (uint32_t)k->dynamic_shared_bytes,
                                          .inline_input_bytes = (uint32_t)k->inline_input_bytes,
                                          .scratch_bytes = k->scratch_bytes};
        fake_cuda_register(k->name, &abi, NULL, NULL);
    }
    fake_cuda_set_launcher(launch, (void *)(uintptr_t)p);
}

typedef struct prediction {
    int64_t type[LONGEST];
    float load[LONGEST][ENCODER_FEATURES];
    bool mask[LONGEST];
    float latency;
    const void *inputs[3];
    void *outputs[1];
} prediction;

static void prepare(prediction *c, int64_t length, unsigned seed)
{
    *c = (prediction){.inputs = {c->type, c->load, c->mask}, .outputs = {&c->latency}};
    for (int64_t i = 0; i < length; i++) {
        seed = seed * 1664525u + 1013904223u;
        c->type[i] = seed >> 8 & 7;
        for (int k = 0; k < ENCODER_FEATURES; k++) c->load[i][k] = (float)(seed >> (4 * k + 8) & 15) / 8 - 1;
        c->mask[i] = i == 0 || (seed >> 24 & 3) != 0;
    }
}

typedef struct device {
    mdot_predictor *predictor;
    mdot_context *context;
} device;

static device open_on(const char *path, const char *name)
{
    device d = {0};
    mdot_error err = {0};
    const mdot_open_options options = {.struct_size = sizeof options, .device = name, .device_timeout_ms = 60000};
    if (mdot_predictor_open(path, &options, &d.predictor, &err) != MDOT_OK ||
        mdot_context_create(d.predictor, &d.context, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return d;
}

static void close_device(device *d)
{
    mdot_context_destroy(d->context);
    mdot_predictor_close(d->predictor);
}

static void assert_alike(const prediction *gpu, device *cpu, int64_t length, double tolerance)
{
    float latency = 0;
    void *outputs[] = {&latency};
    assert_int_equal(mdot_run_ordered(cpu->context, 0, length, gpu->inputs, outputs, NULL), MDOT_OK);
    if (!(fabsf(gpu->latency - latency) <= tolerance * fmaxf(fabsf(latency), 1e-2f)))
        fail_msg("length %d: %.9g, and %.9g on the CPU", (int)length, (double)gpu->latency, (double)latency);
}

static void compile(const char *kernel_precision, const char *target, char *path, size_t size)
{
    const char *const targets[] = {"cpu", target};
    snprintf(path, size, "%s/%s.mdot", folder, kernel_precision);
    const mdotc_entry entry = {sizeof entry, "predict", model};
    const mdotc_options options = {.struct_size = sizeof options,
                                   .buckets = buckets,
                                   .bucket_count = 2,
                                   .targets = targets,
                                   .target_count = 2,
                                   .kernel_precision = kernel_precision};
    mdot_error err = {0};
    if (mdotc_compile(&entry, 1, path, &options, &err) != MDOT_OK) fail_msg("%s", err.message);
}

static void assert_right_on_gpu(cg_compute kernel_precision, const char *target, const cu_schedule *schedule,
                                double tolerance)
{
    char path[512];
    compile(cg_compute_name(kernel_precision), target, path, sizeof path);
    program p = program_in_schedule(model, buckets, kernel_precision, schedule);
    assert_int_equal(p.code.kernels[0].blocks_per_tile, schedule->blocks_per_tile);
    plug_in(&p, schedule->blocks_per_tile);
    device cpu = open_on(path, "cpu"), gpu = open_on(path, "cuda:0");
    assert_no_fault();
    static const int64_t lengths[] = {1, 16, 17, 32, 33, LONGEST};
    static prediction calls[BATCH];
    rt_item items[BATCH];
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        prepare(&calls[0], lengths[i], (unsigned)i);
        assert_int_equal(mdot_run_ordered(gpu.context, 0, lengths[i], calls[0].inputs, calls[0].outputs, NULL),
                         MDOT_OK);
        assert_no_fault();
        assert_alike(&calls[0], &cpu, lengths[i], tolerance);
    }
    for (unsigned i = 0; i < BATCH; i++) {
        prepare(&calls[i], 40, i);
        items[i] = (rt_item){calls[i].inputs, calls[i].outputs};
    }
    rt_run_many(gpu.context, rt_entry(gpu.predictor->table, 0), 40, items, BATCH);
    assert_no_fault();
    for (unsigned i = 0; i < BATCH; i++) assert_alike(&calls[i], &cpu, 40, tolerance);
    assert_int_equal(fake_cuda_last_launch().items, BATCH / 2);
    const char *message;
    if (mdot_context_get_device_status(gpu.context, &message) != MDOT_OK) fail_msg("%s", message);
    close_device(&gpu);
    close_device(&cpu);
    if (fake_cuda_complaint() != NULL) fail_msg("%s", fake_cuda_complaint());
    assert_int_equal(fake_cuda_alive(), 0);
    program_done(&p);
}

static void prediction_matches_in_fp32(void **state)
{
    (void)state;
    assert_right_on_gpu(CG_FP32, "sm_90a", &cu_blocks, 1e-4);
}

static void prediction_matches_in_bf16(void **state)
{
    (void)state;
    assert_right_on_gpu(CG_BF16, "sm_90a", &cu_blocks, 2e-2);
}

static void prediction_matches_in_clusters(void **state)
{
    (void)state;
    assert_right_on_gpu(CG_BF16, "sm_90a+clusters", &cu_clusters, 2e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prediction_matches_in_fp32),
        cmocka_unit_test(prediction_matches_in_bf16),
        cmocka_unit_test(prediction_matches_in_clusters),
    };
    cu_nvrtc nvrtc;
    mdot_error err = {0};
    if (!cuda_host_available() || cu_nvrtc_load(&nvrtc, &err) != MDOT_OK) {
        print_message("skipped: %s\n", err.status != MDOT_OK ? err.message : "no C++ compiler");
        return 77;
    }
    setenv("MDOT_LIBCUDA", MDOT_FAKE_CUDA, 1);
    return shard_run_group_tests(tests, setup, teardown);
}
