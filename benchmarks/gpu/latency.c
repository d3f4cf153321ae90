/* latency.c — prediction time from the host's call to the host's answer, the kernel's part, and predictions per second
 * in launches with many items. */
#include "benchmarks/gpu/gpu_bench.h"
#include "benchmarks/gpu/gpu_device.h"
#include "benchmarks/gpu/result_rows.h"
#include "benchmarks/gpu/subject.h"
#include "runtime/cuda/cuda_device.h"

enum { WARM_UP_CALLS = 20, LEAST_CALLS = 100, MOST_CALLS = 200000, KERNEL_CALLS = 200, MOST_ITEMS = 64 };
enum { LAUNCHES_AHEAD = 4 }; /* they keep the GPU busy while the host enqueues the timed launch */
#define CPU_SECONDS 0.1

typedef struct latency {
    subject s;
    gpu_device c;
    const bench_options *options;
    FILE *out;
    samples times;
    gpu_event start, end;
} latency;

static mdot_status latency_open(latency *l, mdot_error *err)
{
    mdot_status status = subject_open(&l->s, l->options->artefact, err);
    if (status == MDOT_OK) status = gpu_device_open(&l->c, err);
    if (status == MDOT_OK) status = GPU_CALL(&l->c, cuEventCreate, err, &l->start, 0);
    if (status == MDOT_OK) status = GPU_CALL(&l->c, cuEventCreate, err, &l->end, 0);
    if (status == MDOT_OK && !samples_reserve(&l->times, MOST_CALLS)) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    return status;
}

static void latency_close(latency *l)
{
    if (l->start != NULL) l->c.cuEventDestroy(l->start);
    if (l->end != NULL) l->c.cuEventDestroy(l->end);
    samples_free(&l->times);
    gpu_device_close(&l->c);
    subject_close(&l->s);
}

static void begin_row(const latency *l, const char *section, const batch *b, const mdot_abi_bucket *bucket)
{
    row_begin(l->out, section);
    row_text(l->out, "artefact", l->options->name);
    row_text(l->out, "entry", rt_string(b->table, b->entry->name_at));
    row_number(l->out, "bucket", (double)bucket->max_length);
    row_number(l->out, "length", (double)b->length);
    row_number(l->out, "items", (double)b->count);
}

typedef void runner(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                    size_t count);

static void measure(latency *l, mdot_context *context, const batch *b, runner *run, double seconds)
{
    l->times.count = 0;
    double begin = gpu_now_us();
    for (int i = -WARM_UP_CALLS; l->times.count < l->times.capacity; i++) {
        double start = gpu_now_us();
        if (l->times.count >= LEAST_CALLS && start - begin > seconds * 1e6) break;
        run(context, b->entry, b->length, b->items, b->count);
        if (i >= 0) samples_add(&l->times, gpu_now_us() - start);
    }
}

static mdot_status measure_host(latency *l, const batch *b, const mdot_abi_bucket *bucket, double seconds,
                                mdot_error *err)
{
    measure(l, l->s.gpu_context, b, rt_run_many, seconds);
    BS_TRY(subject_check(&l->s, err));
    begin_row(l, "latency", b, bucket);
    row_text(l->out, "side", "mdot");
    row_text(l->out, "kernel_precision", l->s.info.device_kernel_precision);
    row_samples(l->out, &l->times);
    row_end(l->out);
    measure(l, l->s.cpu_context, b, rt_run_on_cpu, CPU_SECONDS);
    begin_row(l, "latency", b, bucket);
    row_text(l->out, "side", "mdot on the CPU, one thread");
    row_text(l->out, "kernel_precision", l->s.info.kernel_precision);
    row_samples(l->out, &l->times);
    row_end(l->out);
    return MDOT_OK;
}

/* Repeats the context's last launch (a single item), whose parameter is still there. */
static mdot_status launch_again(rt_cuda_context *context, const rt_cuda_kernel *kernel, int64_t length, mdot_error *err)
{
    const mdot_abi_cuda_kernel *abi = kernel->abi;
    unsigned blocks = rt_cuda_blocks_per_item(kernel, length, 1);
    mdot_abi_cuda_call *call = (mdot_abi_cuda_call *)context->parameter;
    call->ticket = ++context->ticket;
    call->barrier_base = context->lone_barrier_base;
    context->lone_barrier_base += abi->grid_barriers * blocks;
    void *parameters[] = {context->parameter};
    return RT_CUDA_CALL(&context->cuda->driver, cuLaunchCooperativeKernel, err, kernel->function, blocks, 1, 1,
                        abi->threads, 1, 1, abi->dynamic_shared_bytes, context->stream, parameters);
}

/* Measures between two events that the GPU itself passes. They are enqueued while preceding launches of the kernel run,
 * so host time is excluded. */
static mdot_status time_kernel(latency *l, const batch *b, const mdot_abi_bucket *bucket, mdot_error *err)
{
    rt_cuda_context *context = (rt_cuda_context *)l->s.gpu_context->device;
    const rt_cuda_kernel *kernel = rt_cuda_kernel_of(context->cuda, bucket);
    float ms = 0;
    mdot_status status = MDOT_OK;
    for (int i = 0; status == MDOT_OK && i < LAUNCHES_AHEAD; i++)
        status = launch_again(context, kernel, b->length, err);
    if (status == MDOT_OK) status = GPU_CALL(&l->c, cuEventRecord, err, l->start, context->stream);
    if (status == MDOT_OK) status = launch_again(context, kernel, b->length, err);
    if (status == MDOT_OK) status = GPU_CALL(&l->c, cuEventRecord, err, l->end, context->stream);
    if (status == MDOT_OK) status = GPU_CALL(&l->c, cuEventSynchronize, err, l->end);
    if (status == MDOT_OK) status = GPU_CALL(&l->c, cuEventElapsedTime, err, &ms, l->start, l->end);
    if (status == MDOT_OK) samples_add(&l->times, ms * 1e3);
    return status;
}

static mdot_status measure_kernel(latency *l, const batch *b, const mdot_abi_bucket *bucket, mdot_error *err)
{
    rt_run_many(l->s.gpu_context, b->entry, b->length, b->items, 1);
    mdot_status status = subject_check(&l->s, err);
    l->times.count = 0;
    for (int i = 0; i < KERNEL_CALLS && status == MDOT_OK; i++) status = time_kernel(l, b, bucket, err);
    if (status != MDOT_OK) return status;
    begin_row(l, "kernel", b, bucket);
    row_samples(l->out, &l->times);
    row_end(l->out);
    return MDOT_OK;
}

typedef mdot_status bucket_measurement(latency *l, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                                       double seconds, mdot_error *err);

static size_t count_buckets(const mdot_abi_table *table)
{
    size_t count = 0;
    for (uint32_t e = 0; e < table->entry_count; e++) count += rt_entry(table, e)->bucket_count;
    return count;
}

static mdot_status measure_buckets(const bench_options *options, FILE *out, bucket_measurement *measure_bucket,
                                   mdot_error *err)
{
    latency l = {.options = options, .out = out};
    mdot_status status = latency_open(&l, err);
    for (uint32_t e = 0; status == MDOT_OK && e < l.s.table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(l.s.table, e);
        double seconds = options->seconds / (double)count_buckets(l.s.table);
        for (uint32_t b = 0; b < entry->bucket_count && status == MDOT_OK; b++)
            status = measure_bucket(&l, entry, &rt_buckets(l.s.table, entry)[b], seconds, err);
    }
    latency_close(&l);
    return status;
}

static mdot_status measure_latency(latency *l, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                                   double seconds, mdot_error *err)
{
    batch b;
    if (!batch_make(&b, l->s.table, entry, bucket->max_length, 1, 1)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = measure_host(l, &b, bucket, seconds, err);
    if (status == MDOT_OK) status = measure_kernel(l, &b, bucket, err);
    batch_free(&b);
    return status;
}

mdot_status bench_latency(const bench_options *options, FILE *out, mdot_error *err)
{
    return measure_buckets(options, out, measure_latency, err);
}

static mdot_status measure_batches(latency *l, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                                   double seconds, mdot_error *err)
{
    batch b;
    if (!batch_make(&b, l->s.table, entry, bucket->max_length, MOST_ITEMS, 1))
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = MDOT_OK;
    for (b.count = 1; b.count <= MOST_ITEMS && status == MDOT_OK; b.count *= 2) {
        measure(l, l->s.gpu_context, &b, rt_run_many, seconds / 7); /* 1, 2, 4 … 64 */
        status = subject_check(&l->s, err);
        if (status != MDOT_OK) break;
        begin_row(l, "batch", &b, bucket);
        row_samples(l->out, &l->times);
        row_number(l->out, "per_second", (double)b.count / samples_percentile(&l->times, 0.5) * 1e6);
        row_end(l->out);
    }
    batch_free(&b);
    return status;
}

mdot_status bench_batch(const bench_options *options, FILE *out, mdot_error *err)
{
    return measure_buckets(options, out, measure_batches, err);
}
