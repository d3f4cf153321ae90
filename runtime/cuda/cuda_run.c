/* cuda_run.c — predictions on a GPU: writes inputs, launches once, waits on mapped memory, reads outputs.
 *
 * A single prediction uses as many blocks as its length has tiles. Many predictions run side by side, each on fewer
 * blocks, so that together they fill the die.
 */
#include "base/spin.h"
#include "runtime/cuda/cuda_device.h"

#include <string.h>
#include <time.h>

/* The host reads the word this often before it queries the driver for the launch's state: about 0.1 ms of x86's
 * PAUSE. This is longer than a healthy launch, and short enough to detect a fault at once. */
enum { LOOKS_BETWEEN_QUERIES = 4096 };

static void pack_inputs(const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length,
                        const rt_cuda_kernel *kernel, const rt_item *item, unsigned char *to)
{
    const mdot_abi_tensor *tensors = rt_inputs(table, entry);
    for (uint32_t i = 0; i < entry->input_count; i++)
        memcpy(to + kernel->call.input_at[i], item->inputs[i], rt_tensor_bytes(&tensors[i], length));
}

static void unpack_outputs(const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length,
                           const rt_cuda_kernel *kernel, const rt_item *item, const unsigned char *from)
{
    const mdot_abi_tensor *tensors = rt_outputs(table, entry);
    for (uint32_t i = 0; i < entry->output_count; i++)
        memcpy(item->outputs[i], from + kernel->call.output_at[i], rt_tensor_bytes(&tensors[i], length));
}

uint32_t rt_cuda_blocks_per_item(const rt_cuda_kernel *kernel, int64_t length, uint32_t items)
{
    uint32_t tile_rows = kernel->abi->tile_rows, cluster = kernel->abi->blocks_per_tile;
    uint64_t tiles = tile_rows > 0 ? ((uint64_t)length + tile_rows - 1) / tile_rows : 1;
    uint32_t capacity = kernel->resident_blocks / cluster / items;
    return (tiles < capacity ? (uint32_t)tiles : capacity) * cluster;
}

/* A single item's counter continues from call to call. A batch's counters restart, because batches differ in the
 * numbers of items and blocks. */
static void set_barriers(rt_cuda_context *c, mdot_abi_cuda_call *call, uint32_t items, uint32_t growth)
{
    if (items == 1) {
        call->barrier = c->device_memory;
        call->barrier_base = c->lone_barrier_base;
        c->lone_barrier_base += growth;
    } else {
        call->barrier = c->device_memory + sizeof(uint32_t);
        call->barrier_base = 0;
    }
    c->launch.barriers = items > 1 ? call->barrier : 0;
}

/* A ticket is never 0, and the items' words are cleared, because tickets repeat after 2^32 launches and an old word
 * must differ from a current ticket. */
static uint32_t take_ticket(rt_cuda_context *c, uint32_t items)
{
    uint32_t *done = (uint32_t *)c->mapped;
    for (uint32_t i = 0; i < items; i++) done[i] = 0;
    c->ticket++;
    if (c->ticket == 0) c->ticket = 1;
    return c->ticket;
}

static mdot_status run_launch(void *object, mdot_error *err)
{
    rt_cuda_context *c = object;
    const rt_cuda_driver *d = &c->cuda->driver;
    const rt_cuda_launch *l = &c->launch;
    if (l->barriers != 0) BS_TRY(RT_CUDA_CALL(d, cuMemsetD32Async, err, l->barriers, 0, l->items, c->stream));
    void *parameters[] = {c->parameter};
    return RT_CUDA_CALL(d, cuLaunchCooperativeKernel, err, l->function, l->blocks, l->items, 1, l->threads, 1, 1,
                        l->dynamic_shared_bytes, c->stream, parameters);
}

static const rt_cuda_step launching = {.what = "launch a kernel", .run = run_launch};

static mdot_status launch(rt_cuda_context *c, const mdot_abi_entry *entry, rt_cuda_kernel *kernel, int64_t length,
                          const rt_item *items, uint32_t count, mdot_error *err)
{
    const mdot_abi_table *table = c->cuda->artefact->table;
    mdot_abi_cuda_call *call = (mdot_abi_cuda_call *)c->parameter;
    *call = kernel->call;
    call->scratch = c->device_memory + c->scratch_at;
    call->input = c->mapped_address + c->inputs_at;
    call->output = c->mapped_address + c->outputs_at;
    call->done = c->mapped_address;
    call->length = length;
    call->ticket = take_ticket(c, count);
    call->inline_input = count == 1 && kernel->input_bytes <= kernel->abi->inline_input_bytes;
    unsigned char *inputs = call->inline_input ? c->parameter + sizeof *call : c->mapped + c->inputs_at;
    for (uint32_t i = 0; i < count; i++)
        pack_inputs(table, entry, length, kernel, &items[i], inputs + i * kernel->call.input_stride);
    uint32_t blocks = rt_cuda_blocks_per_item(kernel, length, count);
    c->launch = (rt_cuda_launch){.function = kernel->function,
                                 .blocks = blocks,
                                 .items = count,
                                 .threads = kernel->abi->threads,
                                 .dynamic_shared_bytes = kernel->abi->dynamic_shared_bytes};
    set_barriers(c, call, count, kernel->abi->grid_barriers * blocks);
    /* a kernel's first launch may load its code */
    bool is_first = !atomic_exchange(&kernel->has_run, true);
    return rt_cuda_ask(c->thread, &launching, is_first ? rt_cuda_open_limit_ms(c->cuda) : c->cuda->timeout_ms, err);
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* The kernel's release store of the ticket follows the item's outputs. */
static bool is_done(const uint32_t *done, uint32_t ticket) { return __atomic_load_n(done, __ATOMIC_ACQUIRE) == ticket; }

static bool spin(const uint32_t *done, uint32_t ticket)
{
    for (int i = 0; i < LOOKS_BETWEEN_QUERIES; i++) {
        if (is_done(done, ticket)) return true;
        bs_spin_pause();
    }
    return false;
}

static mdot_status run_query(void *object, mdot_error *err)
{
    rt_cuda_context *c = object;
    int result = c->cuda->driver.cuStreamQuery(c->stream);
    c->is_running = result == RT_CU_NOT_READY;
    return c->is_running ? MDOT_OK : rt_cuda_check(&c->cuda->driver, result, "cuStreamQuery", err);
}

static const rt_cuda_step querying = {.what = "report the state of a launch", .run = run_query};

static mdot_status wait_for_item(rt_cuda_context *c, uint32_t item, double deadline_ms, mdot_error *err)
{
    const uint32_t *done = (const uint32_t *)c->mapped + item;
    while (!spin(done, c->ticket)) {
        BS_TRY(rt_cuda_ask(c->thread, &querying, c->cuda->timeout_ms, err));
        if (!c->is_running) {
            /* the launch has ended, so all its writes are visible */
            if (is_done(done, c->ticket)) break;
            return mdot_fail(err, MDOT_DEVICE, "a kernel on %s ended before it signalled completion", c->cuda->id);
        }
        if (now_ms() > deadline_ms) {
            c->is_stuck = true;
            return mdot_fail(err, MDOT_DEVICE, "%s did not answer within %u ms", c->cuda->id, c->cuda->timeout_ms);
        }
    }
    return MDOT_OK;
}

static mdot_status answer(rt_cuda_context *c, const mdot_abi_entry *entry, rt_cuda_kernel *kernel, int64_t length,
                          const rt_item *items, uint32_t count, mdot_error *err)
{
    BS_TRY(launch(c, entry, kernel, length, items, count, err));
    double deadline_ms = now_ms() + c->cuda->timeout_ms;
    for (uint32_t i = 0; i < count; i++) {
        BS_TRY(wait_for_item(c, i, deadline_ms, err));
        unpack_outputs(c->cuda->artefact->table, entry, length, kernel, &items[i],
                       c->mapped + c->outputs_at + i * kernel->call.output_stride);
    }
    return MDOT_OK;
}

static size_t items_per_launch(const rt_cuda_context *c, const rt_cuda_kernel *kernel)
{
    uint64_t stride = kernel->call.scratch_stride;
    uint64_t capacity = stride > 0 ? c->scratch_bytes / stride : UINT64_MAX;
    return capacity < kernel->max_items ? (size_t)capacity : kernel->max_items;
}

mdot_status rt_cuda_run(rt_device_context *context, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                        int64_t length, const rt_item *items, size_t count, mdot_error *err)
{
    rt_cuda_context *c = (rt_cuda_context *)context;
    rt_cuda_kernel *kernel = rt_cuda_kernel_of(c->cuda, bucket);
    /* equal parts, because a last launch with few items would leave most of the die idle */
    size_t batch = items_per_launch(c, kernel), launches = (count + batch - 1) / batch;
    for (size_t i = 0; i < launches; i++) {
        size_t first = i * count / launches, end = (i + 1) * count / launches;
        BS_TRY(answer(c, entry, kernel, length, items + first, (uint32_t)(end - first), err));
    }
    return MDOT_OK;
}
