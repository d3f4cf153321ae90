/* cuda_context.c — a thread's resources on a GPU: a stream, scratch, and device-accessible host memory.
 *
 * All of them are allocated here: calls allocate nothing. Inputs go into the kernel's parameter or into mapped memory.
 * Outputs and the completion word come through mapped memory. Therefore calls need no copies by the driver. */
#include "runtime/cuda/cuda_device.h"

#include <stdlib.h>

/* The host's waiting words are separate from the outputs, so that few processors write to these cache lines. */
enum { CACHE_LINE_BYTES = 64 };

/* A GPU that is training has little free memory. Then launches take fewer items, down to one. */
static mdot_status allocate_scratch(rt_cuda_context *c, mdot_error *err)
{
    const rt_cuda *cuda = c->cuda;
    uint64_t bytes = cuda->scratch_bytes, least_bytes = cuda->item_scratch_bytes;
    mdot_error reason = {0};
    for (;;) {
        mdot_status status = RT_CUDA_CALL(&cuda->driver, cuMemAlloc, &reason, &c->device_memory, c->scratch_at + bytes);
        if (status == MDOT_OK) break;
        c->device_memory = 0;
        if (status != MDOT_OUT_OF_MEMORY || bytes <= least_bytes)
            return mdot_fail(err, status, "%llu bytes of scratch on %s: %s", (unsigned long long)bytes, cuda->id,
                             reason.message);
        bytes = bytes / 2 > least_bytes ? bytes / 2 : least_bytes;
    }
    c->scratch_bytes = bytes;
    return MDOT_OK;
}

static mdot_status allocate_device(rt_cuda_context *c, mdot_error *err)
{
    const rt_cuda *cuda = c->cuda;
    uint64_t counter_bytes = (1 + (uint64_t)cuda->max_items) * sizeof(uint32_t);
    c->scratch_at = rt_round_up(counter_bytes, MDOT_ABI_CUDA_ALIGNMENT);
    BS_TRY(allocate_scratch(c, err));
    return RT_CUDA_CALL(&cuda->driver, cuMemsetD32Async, err, c->device_memory, 0, counter_bytes / sizeof(uint32_t),
                        c->stream);
}

static mdot_status allocate_mapped(rt_cuda_context *c, mdot_error *err)
{
    const rt_cuda *cuda = c->cuda;
    uint64_t done_bytes = cuda->max_items * sizeof(uint32_t);
    c->outputs_at = rt_round_up(done_bytes, MDOT_ABI_CUDA_ALIGNMENT);
    c->inputs_at = c->outputs_at + cuda->output_bytes;
    uint64_t size_bytes = c->inputs_at + cuda->input_bytes;
    void *memory = NULL;
    mdot_error reason = {0};
    mdot_status status = RT_CUDA_CALL(&cuda->driver, cuMemHostAlloc, &reason, &memory, size_bytes,
                                      RT_CU_MEMHOSTALLOC_PORTABLE | RT_CU_MEMHOSTALLOC_DEVICEMAP);
    if (status != MDOT_OK)
        return mdot_fail(err, status, "%llu bytes of memory that %s shares: %s", (unsigned long long)size_bytes,
                         cuda->id, reason.message);
    c->mapped = memory;
    return RT_CUDA_CALL(&cuda->driver, cuMemHostGetDevicePointer, err, &c->mapped_address, memory, 0);
}

/* The device's context stays current on the thread, for launches. */
static mdot_status acquire(void *object, mdot_error *err)
{
    rt_cuda_context *c = object;
    BS_TRY(rt_cuda_enter(&c->cuda->driver, c->cuda->primary, err));
    c->is_current = true;
    mdot_status status = RT_CUDA_CALL(&c->cuda->driver, cuStreamCreate, err, &c->stream, RT_CU_STREAM_NON_BLOCKING);
    if (status != MDOT_OK) {
        c->stream = NULL;
        return status;
    }
    BS_TRY(allocate_device(c, err));
    return allocate_mapped(c, err);
}

static const rt_cuda_step acquiring = {.what = "create a stream and allocate memory", .run = acquire};

/* Freeing waits for running work. An abandoned endless kernel would block it forever, and the kernel's memory must
 * outlive it. In this case all resources remain until the process ends. */
static void release(rt_cuda_context *c)
{
    rt_cuda *cuda = c->cuda;
    const rt_cuda_driver *d = &cuda->driver;
    if (c->is_stuck && d->cuStreamQuery(c->stream) == RT_CU_NOT_READY) {
        cuda->is_stuck = true;
        return;
    }
    if (c->mapped != NULL) d->cuMemFreeHost(c->mapped);
    if (c->device_memory != 0) d->cuMemFree(c->device_memory);
    if (c->stream != NULL) d->cuStreamDestroy(c->stream);
}

static void end_context(void *object)
{
    rt_cuda_context *c = object;
    if (!c->is_current) return;
    release(c);
    rt_cuda_leave(&c->cuda->driver);
}

static void free_context(void *object)
{
    rt_cuda_context *c = object;
    free(c->parameter);
    free(c);
}

void rt_cuda_context_destroy(rt_device_context *context)
{
    rt_cuda_context *c = (rt_cuda_context *)context;
    rt_cuda_thread_end(c->thread, rt_cuda_open_limit_ms(c->cuda));
}

mdot_status rt_cuda_context_create(rt_device *device, rt_device_context **out_context, mdot_error *err)
{
    rt_cuda *cuda = (rt_cuda *)device;
    rt_cuda_context *c = calloc(1, sizeof *c);
    unsigned char *parameter = calloc(1, cuda->parameter_bytes);
    if (c == NULL || parameter == NULL) {
        free(parameter);
        free(c);
        return BS_OUT_OF_MEMORY(err, "a context of %s", cuda->id);
    }
    c->cuda = cuda;
    c->parameter = parameter;
    mdot_status status = rt_cuda_thread_start(cuda, (rt_cuda_owner){c, end_context, free_context}, &c->thread, err);
    if (status != MDOT_OK) {
        free_context(c);
        return status;
    }
    status = rt_cuda_ask(c->thread, &acquiring, rt_cuda_open_limit_ms(cuda), err);
    if (status != MDOT_OK) {
        rt_cuda_context_destroy((rt_device_context *)c);
        return status;
    }
    *out_context = (rt_device_context *)c;
    return MDOT_OK;
}
