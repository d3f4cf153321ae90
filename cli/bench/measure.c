/* measure.c — the measurement of `mdot bench`. Every call is timed separately. Calls run in slices, and the core's peak
 * is measured between slices.
 *
 * Alternating keeps both measurements under the same clock frequency and the same load by neighbours, so the quotient
 * is meaningful even if the frequency varies. All memory is allocated and touched before the clock starts. */
#include "cli/bench/bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLICE_SECONDS 0.020
#define PEAK_SECONDS 0.002
enum { MAX_CALLS = 1 << 22, MAX_SLICES = 1 << 16, WARM_UP_CALLS = 3 };

double bench_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Holds the threads back until all exist, or cancels them if one of them fails to start. */
typedef enum gate { GATE_CLOSED, GATE_OPEN, GATE_CANCELLED } gate;

/* Context, tensors and times of one thread. */
typedef struct worker {
    const bench_task *task;
    const char *level;
    pthread_t thread;
    atomic_int *gate;
    mdot_context *context;
    bench_tensors tensors;
    float *call_us;
    float *peak_gflops;
    size_t calls, slices;
    double first_call_us, busy_seconds;
    mdot_status status;
    mdot_error err;
} worker;

static mdot_status worker_init(worker *w, mdot_error *err)
{
    w->call_us = bench_allocate(MAX_CALLS * sizeof *w->call_us);
    w->peak_gflops = bench_allocate(MAX_SLICES * sizeof *w->peak_gflops);
    if (w->call_us == NULL || w->peak_gflops == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    BS_TRY(bench_make_tensors(w->task->predictor, w->task->entry, w->task->length, &w->tensors, err));
    const mdot_context_options options = {.struct_size = sizeof options, .threads = (uint32_t)w->task->workers};
    return mdot_context_create_with(w->task->predictor, &options, &w->context, err);
}

static void worker_done(worker *w)
{
    bench_free_tensors(&w->tensors);
    free(w->call_us);
    free(w->peak_gflops);
    mdot_context_destroy(w->context);
}

/* Runs one call and returns its end time. */
static double timed_call(worker *w, double begin)
{
    const bench_tensors *t = &w->tensors;
    w->status = mdot_run(w->context, w->task->entry, t->inputs, t->input_count, t->outputs, t->output_count, &w->err);
    double end = bench_now();
    w->call_us[w->calls++] = (float)((end - begin) * 1e6);
    return end;
}

/* If the GPU has failed, the CPU answers, and its times must be excluded from the measurement. */
static mdot_status check_device(worker *w)
{
    const char *reason;
    mdot_status status = mdot_context_get_device_status(w->context, &reason);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(&w->err, status, "the GPU failed: %s", reason);
}

static void run_slice(worker *w)
{
    double begin = bench_now(), now = begin;
    do {
        now = timed_call(w, now);
    } while (w->status == MDOT_OK && now - begin < SLICE_SECONDS && w->calls < MAX_CALLS);
    w->busy_seconds += now - begin;
    if (w->status == MDOT_OK) w->status = check_device(w);
}

static void *work(void *argument)
{
    worker *w = argument;
    while (atomic_load(w->gate) == GATE_CLOSED) sched_yield();
    if (atomic_load(w->gate) == GATE_CANCELLED) return NULL;
    timed_call(w, bench_now());
    w->first_call_us = w->call_us[0];
    for (int i = 0; i < WARM_UP_CALLS && w->status == MDOT_OK; i++) timed_call(w, bench_now());
    w->calls = 0;
    double end = bench_now() + w->task->seconds;
    while (w->status == MDOT_OK && w->calls < MAX_CALLS && w->slices < MAX_SLICES) {
        run_slice(w);
        w->peak_gflops[w->slices++] = (float)bench_peak_gflops(w->level, PEAK_SECONDS);
        if (bench_now() >= end) break;
    }
    return NULL;
}

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void bench_sort(float *values, size_t count) { qsort(values, count, sizeof *values, compare_floats); }

double bench_percentile(const float *sorted, size_t count, double quantile)
{
    size_t rank = (size_t)(quantile * (double)count + 0.999999);
    if (rank < 1) rank = 1;
    return sorted[rank <= count ? rank - 1 : count - 1];
}

double bench_median(float *values, size_t count)
{
    bench_sort(values, count);
    return bench_percentile(values, count, 0.5);
}

static mdot_status summarise(const worker *workers, int count, bench_result *out, mdot_error *err)
{
    bench_result result = {.first_call_us = workers[0].first_call_us};
    size_t slices = 0;
    for (int i = 0; i < count; i++) {
        result.calls += workers[i].calls;
        slices += workers[i].slices;
        result.calls_per_second += (double)workers[i].calls / workers[i].busy_seconds;
    }
    float *all_us = malloc(result.calls * sizeof *all_us), *peaks = malloc(slices * sizeof *peaks);
    if (all_us == NULL || peaks == NULL) {
        free(all_us);
        free(peaks);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    size_t call = 0, slice = 0;
    for (int i = 0; i < count; i++) {
        memcpy(all_us + call, workers[i].call_us, workers[i].calls * sizeof *all_us);
        memcpy(peaks + slice, workers[i].peak_gflops, workers[i].slices * sizeof *peaks);
        call += workers[i].calls;
        slice += workers[i].slices;
    }
    bench_sort(all_us, result.calls);
    result.p50_us = bench_percentile(all_us, result.calls, 0.50);
    result.p90_us = bench_percentile(all_us, result.calls, 0.90);
    result.p99_us = bench_percentile(all_us, result.calls, 0.99);
    result.p999_us = bench_percentile(all_us, result.calls, 0.999);
    result.peak_gflops = bench_median(peaks, slices);
    free(all_us);
    free(peaks);
    *out = result;
    return MDOT_OK;
}

/* The calling thread is the first worker. */
static mdot_status run_workers(worker *workers, int count, mdot_error *err)
{
    atomic_int state = GATE_CLOSED;
    for (int i = 0; i < count; i++) workers[i].gate = &state;
    int started = 1;
    while (started < count && pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0) started++;
    atomic_store(&state, started == count ? GATE_OPEN : GATE_CANCELLED);
    if (started == count) work(&workers[0]);
    for (int i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
    if (started < count) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "only %d of %d threads started", started, count);
    for (int i = 0; i < count; i++)
        if (workers[i].status != MDOT_OK) return mdot_fail(err, workers[i].status, "%s", workers[i].err.message);
    return MDOT_OK;
}

mdot_status bench_measure(const bench_task *task, bench_result *out_result, mdot_error *err)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(task->predictor, &info);
    worker *workers = calloc((size_t)task->threads, sizeof *workers);
    if (workers == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = MDOT_OK;
    for (int i = 0; i < task->threads && status == MDOT_OK; i++) {
        workers[i].task = task;
        workers[i].level = info.cpu_isa;
        status = worker_init(&workers[i], err);
    }
    if (status == MDOT_OK) status = run_workers(workers, task->threads, err);
    if (status == MDOT_OK) status = summarise(workers, task->threads, out_result, err);
    for (int i = 0; i < task->threads; i++) worker_done(&workers[i]);
    free(workers);
    return status;
}
