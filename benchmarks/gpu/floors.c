/* floors.c — lower bounds for times on this GPU: launches, inputs, barriers, blocks that signal each other.
 *
 * Host times are for single calls, by the host's clock. Times within a kernel are for single rounds, by the
 * multiprocessor's clock, whose cycle is measured in the same launch. Every kernel also proves that it did the measured
 * work. */
#include "benchmarks/gpu/floors.h"
#include "benchmarks/gpu/gpu_bench.h"
#include "benchmarks/gpu/gpu_device.h"
#include "benchmarks/gpu/result_rows.h"
#include "mdot/mdot_abi.h"

#include <string.h>

/* Offsets in the two blocks of the GPU's memory. */
enum { DONE_AT = 0, REQUEST_AT = 256, RESULT_AT = 4096, MAPPED_INPUT_AT = 65536 };
enum { BARRIER_AT = 0, SCRATCH_AT = 4096, SCRATCH_WORDS = 4096, INPUT_AT = 65536 };
static_assert(RESULT_AT + sizeof(floor_result) <= MAPPED_INPUT_AT, "results end before inputs");

enum { WARM_UP_CALLS = 20, LEAST_CALLS = 50, MOST_CALLS = 20000, GRAPH_NODES = 20, SKIPPED_ROUNDS = 10 };

typedef struct floors {
    gpu_device c;
    uint32_t ticket;
    double seconds; /* time for one measurement */
} floors;

typedef mdot_status launcher(floors *f, rt_cu_function function, unsigned blocks, unsigned threads, void *parameter,
                             mdot_error *err);
/* Function that passes words to the kernel after a copy from the caller's memory. */
typedef mdot_status sender(floors *f, rt_cu_function function, const uint32_t *words, unsigned bytes, uint32_t ticket,
                           mdot_error *err);

typedef struct measurement {
    const char *name, *title;
    mdot_status (*measure)(floors *f, const struct measurement *m, samples *out, mdot_error *err);
    const char *kernel;
    launcher *start; /* of answers and of rounds in a kernel */
    sender *send;    /* of inputs */
    unsigned threads, blocks;
    /* inputs: bytes; rounds in a kernel: the right number of checks, and signals per round */
    unsigned bytes, right, signals;
} measurement;

/* ---- Launching --------------------------------------------------------------------------------------------------- */

static mdot_abi_cuda_call next_call(floors *f, int64_t length)
{
    const gpu_device *c = &f->c;
    return (mdot_abi_cuda_call){
        .weights = c->memory,
        .scratch = c->memory + SCRATCH_AT,
        .input = c->mapped_at + REQUEST_AT,
        .output = c->mapped_at + RESULT_AT,
        .barrier = c->memory + BARRIER_AT,
        .done = c->mapped_at + DONE_AT,
        .length = length,
        .ticket = ++f->ticket,
    };
}

static mdot_status launch(floors *f, rt_cu_function function, unsigned blocks, unsigned threads, void *parameter,
                          mdot_error *err)
{
    void *parameters[] = {parameter};
    return GPU_CALL(&f->c, cuLaunchKernel, err, function, blocks, 1, 1, threads, 1, 1, 0, f->c.stream, parameters,
                    NULL);
}

static mdot_status launch_cooperative(floors *f, rt_cu_function function, unsigned blocks, unsigned threads,
                                      void *parameter, mdot_error *err)
{
    void *parameters[] = {parameter};
    return RT_CUDA_CALL(&f->c.driver, cuLaunchCooperativeKernel, err, function, blocks, 1, 1, threads, 1, 1, 0,
                        f->c.stream, parameters);
}

static mdot_status await(floors *f, uint32_t value, mdot_error *err)
{
    return gpu_device_await(&f->c, (const uint32_t *)(f->c.mapped + DONE_AT), value, err);
}

static mdot_status synchronize(floors *f, mdot_error *err)
{
    return RT_CUDA_CALL(&f->c.driver, cuStreamSynchronize, err, f->c.stream);
}

static const floor_result *result_of(const floors *f) { return (const floor_result *)(f->c.mapped + RESULT_AT); }

/* Returns whether a measurement with these samples, which began at `start_us`, continues. */
static bool goes_on(const floors *f, const samples *s, double start_us)
{
    return s->count < s->capacity && (s->count < LEAST_CALLS || gpu_now_us() - start_us < f->seconds * 1e6);
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

/* Without a way to start, the kernel is launched, and the host synchronises with it. */
static mdot_status measure_answers(floors *f, const measurement *m, samples *out, mdot_error *err)
{
    rt_cu_function function;
    bool answers = m->start != NULL;
    mdot_status status = gpu_device_find(&f->c, m->kernel, &function, err);
    double begin = gpu_now_us();
    for (int i = -WARM_UP_CALLS; status == MDOT_OK && goes_on(f, out, begin); i++) {
        mdot_abi_cuda_call call = next_call(f, 0);
        double start = gpu_now_us();
        status = (answers ? m->start : launch)(f, function, m->blocks, FLOOR_THREADS, &call, err);
        if (status == MDOT_OK) status = answers ? await(f, call.ticket, err) : synchronize(f, err);
        if (i >= 0) samples_add(out, gpu_now_us() - start);
    }
    return status == MDOT_OK ? synchronize(f, err) : status;
}

/* ---- Graphs ------------------------------------------------------------------------------------------------------ */

/* Makes a graph with `nodes` kernels in a row; the last one answers `call`. */
static mdot_status make_graph(floors *f, int nodes, mdot_abi_cuda_call *call, gpu_graph_exec *out_exec, mdot_error *err)
{
    rt_cu_function empty, answer;
    gpu_graph graph = NULL;
    mdot_status status = gpu_device_find(&f->c, "floor_empty", &empty, err);
    if (status == MDOT_OK) status = gpu_device_find(&f->c, "floor_answer", &answer, err);
    if (status == MDOT_OK) status = GPU_CALL(&f->c, cuStreamBeginCapture, err, f->c.stream, GPU_CAPTURE_THREAD_LOCAL);
    if (status != MDOT_OK) return status;
    for (int i = 1; i <= nodes && status == MDOT_OK; i++)
        status = launch(f, i < nodes ? empty : answer, 1, FLOOR_THREADS, call, err);
    mdot_error end_err = {0};
    mdot_status end = GPU_CALL(&f->c, cuStreamEndCapture, &end_err, f->c.stream, &graph);
    if (status == MDOT_OK && end != MDOT_OK) status = mdot_fail(err, end, "%s", end_err.message);
    if (status == MDOT_OK) status = GPU_CALL(&f->c, cuGraphInstantiateWithFlags, err, out_exec, graph, 0);
    if (graph != NULL) f->c.cuGraphDestroy(graph);
    return status;
}

/* The graph's parameters, including its ticket, are fixed, so the word is cleared before. */
static mdot_status run_graph(floors *f, gpu_graph_exec exec, uint32_t ticket, double *out_us, mdot_error *err)
{
    __atomic_store_n((uint32_t *)(f->c.mapped + DONE_AT), 0, __ATOMIC_RELEASE);
    double start = gpu_now_us();
    mdot_status status = GPU_CALL(&f->c, cuGraphLaunch, err, exec, f->c.stream);
    if (status == MDOT_OK) status = await(f, ticket, err);
    *out_us = gpu_now_us() - start;
    return status == MDOT_OK ? synchronize(f, err) : status;
}

/* Alternates a graph of one kernel and a graph with many, to measure the time for each additional kernel. */
static mdot_status measure_graph(floors *f, const measurement *m, samples *out, mdot_error *err)
{
    (void)m;
    mdot_abi_cuda_call call = next_call(f, 0);
    gpu_graph_exec one = NULL, many = NULL;
    double one_us = 0, many_us = 0, begin = gpu_now_us();
    mdot_status status = make_graph(f, 1, &call, &one, err);
    if (status == MDOT_OK) status = make_graph(f, 1 + GRAPH_NODES, &call, &many, err);
    for (int i = -WARM_UP_CALLS; status == MDOT_OK && goes_on(f, out, begin); i++) {
        status = run_graph(f, one, call.ticket, &one_us, err);
        if (status == MDOT_OK) status = run_graph(f, many, call.ticket, &many_us, err);
        if (i >= 0) samples_add(out, (many_us - one_us) / GRAPH_NODES);
    }
    if (one != NULL) f->c.cuGraphExecDestroy(one);
    if (many != NULL) f->c.cuGraphExecDestroy(many);
    return status;
}

/* ---- Inputs ------------------------------------------------------------------------------------------------------ */

static mdot_status send_in_parameter(floors *f, rt_cu_function function, const uint32_t *words, unsigned bytes,
                                     uint32_t ticket, mdot_error *err)
{
    static struct {
        mdot_abi_cuda_call call;
        uint32_t words[FLOOR_LARGE_WORDS];
    } parameter;
    parameter.call = next_call(f, 0);
    parameter.call.ticket = f->ticket = ticket;
    parameter.call.inline_input = 1;
    memcpy(parameter.words, words, bytes);
    return launch(f, function, 1, FLOOR_THREADS, &parameter, err);
}

static mdot_status send_through_memory(floors *f, rt_cu_function function, const uint32_t *words, unsigned bytes,
                                       uint32_t ticket, bool is_copied, mdot_error *err)
{
    mdot_abi_cuda_call call = next_call(f, bytes / sizeof *words);
    call.ticket = f->ticket = ticket;
    unsigned char *mapped = f->c.mapped + MAPPED_INPUT_AT;
    call.input = is_copied ? f->c.memory + INPUT_AT : f->c.mapped_at + MAPPED_INPUT_AT;
    memcpy(mapped, words, bytes);
    if (is_copied) BS_TRY(GPU_CALL(&f->c, cuMemcpyHtoDAsync, err, call.input, mapped, bytes, f->c.stream));
    return launch(f, function, 1, FLOOR_THREADS, &call, err);
}

static mdot_status send_by_copy(floors *f, rt_cu_function function, const uint32_t *words, unsigned bytes,
                                uint32_t ticket, mdot_error *err)
{
    return send_through_memory(f, function, words, bytes, ticket, true, err);
}

static mdot_status send_mapped(floors *f, rt_cu_function function, const uint32_t *words, unsigned bytes,
                               uint32_t ticket, mdot_error *err)
{
    return send_through_memory(f, function, words, bytes, ticket, false, err);
}

/* The words differ every time, so that the sum reveals a kernel with old words. */
static mdot_status measure_inputs(floors *f, const measurement *m, samples *out, mdot_error *err)
{
    static uint32_t words[FLOOR_LARGE_WORDS];
    rt_cu_function function;
    mdot_status status = gpu_device_find(&f->c, m->kernel, &function, err);
    uint32_t count = m->bytes / sizeof words[0];
    double begin = gpu_now_us();
    for (int i = -WARM_UP_CALLS; status == MDOT_OK && goes_on(f, out, begin); i++) {
        uint32_t sum = 0, ticket = f->ticket + 1;
        for (uint32_t j = 0; j < count; j++) sum += words[j] = ticket * (j + 1);
        double start = gpu_now_us();
        status = m->send(f, function, words, m->bytes, ticket, err);
        if (status == MDOT_OK) status = await(f, ticket, err);
        if (i >= 0) samples_add(out, gpu_now_us() - start);
        if (status == MDOT_OK && result_of(f)->check != sum)
            status =
                mdot_fail(err, MDOT_DEVICE, "%s: the words' sum is %u, not %u", m->kernel, result_of(f)->check, sum);
    }
    return status == MDOT_OK ? synchronize(f, err) : status;
}

static mdot_status measure_parameter(floors *f, const measurement *m, samples *out, mdot_error *err)
{
    if (m->bytes > 4096 && f->c.driver_version < 12010)
        return mdot_fail(err, MDOT_UNSUPPORTED, "the driver is older than CUDA 12.1");
    return measure_inputs(f, m, out, err);
}

/* ---- A resident kernel ------------------------------------------------------------------------------------------- */

static mdot_status measure_resident(floors *f, const measurement *m, samples *out, mdot_error *err)
{
    enum { PATIENCE_NS = 2000000000 };
    uint32_t *request = (uint32_t *)(f->c.mapped + REQUEST_AT);
    rt_cu_function function;
    BS_TRY(gpu_device_find(&f->c, m->kernel, &function, err));
    mdot_abi_cuda_call call = next_call(f, PATIENCE_NS);
    __atomic_store_n(request, 0, __ATOMIC_RELEASE);
    mdot_status status = launch(f, function, 1, 32, &call, err);
    double begin = gpu_now_us();
    for (int i = -WARM_UP_CALLS; status == MDOT_OK && goes_on(f, out, begin); i++) {
        double start = gpu_now_us();
        __atomic_store_n(request, ++f->ticket, __ATOMIC_RELEASE);
        status = await(f, f->ticket, err);
        if (i >= 0) samples_add(out, gpu_now_us() - start);
    }
    __atomic_store_n(request, FLOOR_STOP, __ATOMIC_RELEASE);
    mdot_status end = synchronize(f, status == MDOT_OK ? err : NULL);
    return status == MDOT_OK ? end : status;
}

/* ---- Rounds inside a kernel -------------------------------------------------------------------------------------- */

static mdot_status clear(floors *f, mdot_error *err)
{
    const rt_cuda_driver *d = &f->c.driver;
    BS_TRY(RT_CUDA_CALL(d, cuMemsetD32Async, err, f->c.memory + BARRIER_AT, 0, 1, f->c.stream));
    return RT_CUDA_CALL(d, cuMemsetD32Async, err, f->c.memory + SCRATCH_AT, 0, SCRATCH_WORDS, f->c.stream);
}

/* The first rounds are left out, because blocks do not start together. */
static mdot_status add_rounds(const floors *f, const measurement *m, samples *out, mdot_error *err)
{
    const floor_result *r = result_of(f);
    if (r->check != m->right || r->rounds != FLOOR_ROUNDS || r->elapsed_cycles == 0)
        return mdot_fail(err, MDOT_DEVICE, "%s: %u of %u checks are right, after %u rounds of %u", m->kernel, r->check,
                         m->right, r->rounds, (unsigned)FLOOR_ROUNDS);
    double cycle_us = (double)r->elapsed_ns / (double)r->elapsed_cycles * 1e-3;
    for (uint32_t i = SKIPPED_ROUNDS; i < r->rounds; i++) samples_add(out, r->cycles[i] * cycle_us / m->signals);
    return MDOT_OK;
}

static mdot_status measure_rounds(floors *f, const measurement *m, samples *out, mdot_error *err)
{
    rt_cu_function function;
    mdot_status status = gpu_device_find(&f->c, m->kernel, &function, err);
    double begin = gpu_now_us();
    while (status == MDOT_OK && goes_on(f, out, begin)) {
        mdot_abi_cuda_call call = next_call(f, FLOOR_ROUNDS);
        status = clear(f, err);
        if (status == MDOT_OK) status = m->start(f, function, m->blocks, m->threads, &call, err);
        if (status == MDOT_OK) status = await(f, call.ticket, err);
        if (status == MDOT_OK) status = add_rounds(f, m, out, err);
    }
    return status == MDOT_OK ? synchronize(f, err) : status;
}

static mdot_status measure_cluster(floors *f, const measurement *m, samples *out, mdot_error *err)
{
    rt_cu_function function;
    mdot_status status = gpu_device_find(&f->c, m->kernel, &function, err);
    if (status != MDOT_OK) return status;
    mdot_error reason = {0};
    if (m->blocks > 8)
        status = RT_CUDA_CALL(&f->c.driver, cuFuncSetAttribute, &reason, function, GPU_NON_PORTABLE_CLUSTER_SIZE, 1);
    if (status != MDOT_OK)
        return mdot_fail(err, MDOT_UNSUPPORTED, "no clusters of %u blocks: %s", m->blocks, reason.message);
    return measure_rounds(f, m, out, err);
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

#define SMALL_BYTES (FLOOR_SMALL_WORDS * (unsigned)sizeof(uint32_t))
#define LARGE_BYTES (FLOOR_LARGE_WORDS * (unsigned)sizeof(uint32_t))
#define BARRIER_RIGHT(blocks) ((blocks) * (unsigned)FLOOR_CHECKS)

/* clang-format off */
static const measurement measurements[] = {
    /* name, title, how, kernel, start, send, threads, blocks, bytes, right, signals */
    {"launch_synchronise", "empty kernel, launch and synchronise", measure_answers, "floor_empty", NULL, NULL, 0, 1, 0, 0, 0},
    {"launch_answer", "launch, host spins on mapped memory", measure_answers, "floor_answer", launch, NULL, FLOOR_THREADS, 1, 0, 0, 0},
    {"cooperative_answer", "cooperative launch, host spins", measure_answers, "floor_answer", launch_cooperative, NULL, FLOOR_THREADS, 1, 0, 0, 0},
    {"cooperative_answer", "cooperative launch, host spins", measure_answers, "floor_answer", launch_cooperative, NULL, FLOOR_THREADS, 32, 0, 0, 0},
    {"cooperative_answer", "cooperative launch, host spins", measure_answers, "floor_answer", launch_cooperative, NULL, FLOOR_THREADS, 132, 0, 0, 0},
    {"graph_node", "one additional kernel in a CUDA graph", measure_graph, "floor_empty", NULL, NULL, 0, 1, 0, 0, 0},
    {"resident_poll", "resident kernel, round trip through mapped memory", measure_resident, "floor_resident", NULL, NULL, 0, 1, 0, 0, 0},
    {"grid_barrier", "grid barrier", measure_rounds, "floor_grid_barrier", launch_cooperative, NULL, FLOOR_THREADS, 32, 0, BARRIER_RIGHT(32), 1},
    {"grid_barrier", "grid barrier", measure_rounds, "floor_grid_barrier", launch_cooperative, NULL, FLOOR_THREADS, 64, 0, BARRIER_RIGHT(64), 1},
    {"grid_barrier", "grid barrier", measure_rounds, "floor_grid_barrier", launch_cooperative, NULL, FLOOR_THREADS, 132, 0, BARRIER_RIGHT(132), 1},
    {"flag", "flag through L2, release to acquire", measure_rounds, "floor_flag", launch_cooperative, NULL, 32, 2, 0, FLOOR_ROUNDS, 2},
    {"cluster_barrier", "cluster barrier", measure_cluster, "floor_cluster_barrier_8", launch, NULL, FLOOR_THREADS, 8, 0, FLOOR_CHECKS, 1},
    {"cluster_barrier", "cluster barrier", measure_cluster, "floor_cluster_barrier_16", launch, NULL, FLOOR_THREADS, 16, 0, FLOOR_CHECKS, 1},
    {"push", "st.async push of 16 bytes to another block of the cluster", measure_cluster, "floor_push", launch, NULL, FLOOR_THREADS, 8, 0, FLOOR_ROUNDS, 2},
    {"parameter", "inputs in kernel parameters", measure_parameter, "floor_small_parameter", NULL, send_in_parameter, 0, 1, SMALL_BYTES, 0, 0},
    {"copy", "inputs copied to the GPU, then launch", measure_inputs, "floor_memory_input", NULL, send_by_copy, 0, 1, SMALL_BYTES, 0, 0},
    {"mapped", "inputs read from mapped memory", measure_inputs, "floor_memory_input", NULL, send_mapped, 0, 1, SMALL_BYTES, 0, 0},
    {"parameter", "inputs in kernel parameters", measure_parameter, "floor_large_parameter", NULL, send_in_parameter, 0, 1, LARGE_BYTES, 0, 0},
    {"copy", "inputs copied to the GPU, then launch", measure_inputs, "floor_memory_input", NULL, send_by_copy, 0, 1, LARGE_BYTES, 0, 0},
    {"mapped", "inputs read from mapped memory", measure_inputs, "floor_memory_input", NULL, send_mapped, 0, 1, LARGE_BYTES, 0, 0},
};
/* clang-format on */
enum { MEASUREMENTS = sizeof measurements / sizeof measurements[0] };

/* NOT_FOUND and UNSUPPORTED mean a missing feature in GPU or driver, which is a result, too. */
static mdot_status measure_one(floors *f, const measurement *m, samples *s, FILE *out)
{
    mdot_error err = {0};
    s->count = 0;
    mdot_status status;
    if ((int)m->blocks > f->c.multiprocessors)
        status = mdot_fail(&err, MDOT_UNSUPPORTED, "the GPU has %d multiprocessors", f->c.multiprocessors);
    else
        status = m->measure(f, m, s, &err);
    bool is_absent = status == MDOT_NOT_FOUND || status == MDOT_UNSUPPORTED;
    row_begin(out, "floor");
    row_text(out, "name", m->name);
    row_text(out, "title", m->title);
    row_number(out, "blocks", m->blocks);
    if (m->bytes > 0) row_number(out, "bytes", m->bytes);
    if (status == MDOT_OK)
        row_samples(out, s);
    else
        row_text(out, is_absent ? "absent" : "failed", err.message);
    row_end(out);
    return is_absent ? MDOT_OK : status;
}

mdot_status bench_floors(const bench_options *options, FILE *out, mdot_error *err)
{
    floors f = {.seconds = options->seconds / MEASUREMENTS};
    samples s = {0};
    mdot_status status = gpu_device_open(&f.c, options->folder, err);
    if (status == MDOT_OK && !samples_reserve(&s, MOST_CALLS)) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    size_t failed = 0;
    for (int i = 0; i < MEASUREMENTS && status == MDOT_OK; i++)
        failed += measure_one(&f, &measurements[i], &s, out) != MDOT_OK;
    samples_free(&s);
    gpu_device_close(&f.c);
    if (status == MDOT_OK && failed > 0)
        status = mdot_fail(err, MDOT_DEVICE, "%zu of %d floors failed", failed, (int)MEASUREMENTS);
    return status;
}
