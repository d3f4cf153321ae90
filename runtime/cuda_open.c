/* cuda_open.c — a GPU made ready for a predictor: the image that it runs, loaded; the weights, uploaded; and for every
 * bucket what a launch of its kernel looks like.
 */
#include "runtime/cuda.h"

#include <stdio.h>
#include <string.h>

/* What one context may take for launches of many items. Scratch of 256 MiB holds a batch that fills the largest chips
 * at lengths of hundreds; beyond, launches take fewer items and items more blocks each. */
#define MAX_SCRATCH_BYTES (UINT64_C(256) << 20)
#define MAX_MAPPED_BYTES (UINT64_C(32) << 20)
enum { MAX_GRID_Y = 65535 }; /* CUDA programming guide, "Technical Specifications per Compute Capability" */

mdot_status rt_cuda_enter(const rt_cuda *cuda, mdot_error *err)
{
    return RT_CUDA_CALL(&cuda->driver, cuCtxPushCurrent, err, cuda->primary);
}

/* What it returns may come from an earlier launch; whoever waits for that launch learns of it. */
void rt_cuda_leave(const rt_cuda *cuda)
{
    rt_cu_context own;
    cuda->driver.cuCtxPopCurrent(&own);
}

/* ---- The device ----------------------------------------------------------------------------------------------------
 */

typedef struct properties {
    int major, minor, multiprocessors;
} properties;

static mdot_status find_device(rt_cuda *cuda, int ordinal, mdot_error *err)
{
    const rt_cuda_driver *d = &cuda->driver;
    int count = 0;
    mdot_status status = RT_CUDA_CALL(d, cuInit, err, 0);
    if (status == MDOT_OK) status = RT_CUDA_CALL(d, cuDeviceGetCount, err, &count);
    if (status != MDOT_OK) return status;
    if (ordinal >= count)
        return mdot_fail(err, MDOT_DEVICE, "there is no CUDA device %d; this machine shows %d, counted from 0", ordinal,
                         count);
    status = RT_CUDA_CALL(d, cuDeviceGet, err, &cuda->device, ordinal);
    if (status == MDOT_OK)
        status = RT_CUDA_CALL(d, cuDeviceGetName, err, cuda->name, (int)sizeof cuda->name, cuda->device);
    snprintf(cuda->id, sizeof cuda->id, "cuda:%d", ordinal);
    return status;
}

static mdot_status read_properties(const rt_cuda *cuda, properties *out, mdot_error *err)
{
    int cooperative = 0;
    properties p = {0};
    const struct {
        int attribute, *value;
    } wanted[] = {
        {RT_CU_COMPUTE_CAPABILITY_MAJOR, &p.major},
        {RT_CU_COMPUTE_CAPABILITY_MINOR, &p.minor},
        {RT_CU_MULTIPROCESSOR_COUNT, &p.multiprocessors},
        {RT_CU_COOPERATIVE_LAUNCH, &cooperative},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        mdot_status status =
            RT_CUDA_CALL(&cuda->driver, cuDeviceGetAttribute, err, wanted[i].value, wanted[i].attribute, cuda->device);
        if (status != MDOT_OK) return status;
    }
    if (!cooperative || p.multiprocessors < 1)
        return mdot_fail(err, MDOT_DEVICE, "%s (%s) launches no cooperative kernels", cuda->id, cuda->name);
    *out = p;
    return MDOT_OK;
}

/* ---- The image -----------------------------------------------------------------------------------------------------
 */

/* "sm_80, sm_90a": the artefact's images, for messages. */
static void list_images(const mdot_abi_table *table, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0, used = 0; i < table->cuda_image_count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%ssm_%u%s", i > 0 ? ", " : "", rt_cuda_image(table, i)->sm,
                                 rt_cuda_image(table, i)->is_accelerated ? "a" : "");
}

/* The highest that fits; the accelerated one where there are two, since it comes later. See mdot_abi_cuda_image. */
static mdot_status choose_image(const rt_cuda *cuda, const properties *p, const mdot_abi_cuda_image **out_image,
                                mdot_error *err)
{
    const mdot_abi_table *table = cuda->predictor->table;
    const mdot_abi_cuda_image *best = NULL;
    for (uint32_t i = 0; i < table->cuda_image_count; i++) {
        const mdot_abi_cuda_image *image = rt_cuda_image(table, i);
        uint32_t major = image->sm / 10, minor = image->sm % 10;
        bool fits = major == (uint32_t)p->major &&
                    (image->is_accelerated ? minor == (uint32_t)p->minor : minor <= (uint32_t)p->minor);
        if (fits && (best == NULL || image->sm >= best->sm)) best = image;
    }
    if (best == NULL) {
        char held[256];
        list_images(table, held, sizeof held);
        return mdot_fail(err, MDOT_DEVICE,
                         "the artefact has CUDA code for %s; %s (%s) needs sm_%d%d: compile with --target sm_%d%d",
                         held, cuda->id, cuda->name, p->major, p->minor, p->major, p->minor);
    }
    *out_image = best;
    return MDOT_OK;
}

static mdot_status load_image(rt_cuda *cuda, const mdot_abi_cuda_image *image, mdot_error *err)
{
    const unsigned char *bytes = cuda->predictor->library.cubins + image->image_offset;
    mdot_error reason = {0};
    mdot_status status = RT_CUDA_CALL(&cuda->driver, cuModuleLoadData, &reason, &cuda->module, bytes);
    if (status == MDOT_OK) return MDOT_OK;
    cuda->module = NULL;
    int version = 0;
    cuda->driver.cuDriverGetVersion(&version);
    return mdot_fail(err, status, "%s (driver for CUDA %d.%d) refuses the artefact's sm_%u%s code: %s", cuda->id,
                     version / 1000, version % 1000 / 10, image->sm, image->is_accelerated ? "a" : "", reason.message);
}

/* The copy goes through the default stream, which the contexts' streams do not wait for. */
static mdot_status upload_weights(rt_cuda *cuda, const mdot_abi_cuda_image *image, mdot_error *err)
{
    if (image->weights_bytes == 0) return MDOT_OK;
    const unsigned char *bytes = cuda->predictor->library.cuda_weights + image->weights_offset;
    size_t size_bytes = (size_t)image->weights_bytes;
    mdot_status status = RT_CUDA_CALL(&cuda->driver, cuMemAlloc, err, &cuda->weights, size_bytes);
    if (status != MDOT_OK) {
        cuda->weights = 0;
        return status;
    }
    status = RT_CUDA_CALL(&cuda->driver, cuMemcpyHtoD, err, cuda->weights, bytes, size_bytes);
    if (status == MDOT_OK) status = RT_CUDA_CALL(&cuda->driver, cuStreamSynchronize, err, NULL);
    return status;
}

/* ---- Kernels -------------------------------------------------------------------------------------------------------
 */

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t at_least(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Bytes of a tensor at its longest. Dimensions are linear in the length, so each is largest at an end of the range. */
static uint64_t most_bytes(const mdot_abi_tensor *tensor, int64_t least, int64_t most)
{
    uint64_t bytes = mdot_dtype_size_bytes((mdot_dtype)tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const mdot_abi_dim *dim = &tensor->dim[i];
        bytes *= (uint64_t)((dim->scale > 0 ? most : least) * dim->scale + dim->offset);
    }
    return bytes;
}

/* Offsets of tensors are of 32 bits; items beyond are refused. */
#define TOO_MANY_BYTES (UINT64_C(1) << 32)

/* Each tensor of an item at its own multiple of 16, the same at every length; returns the bytes of all. */
static uint64_t place(const mdot_abi_tensor *tensors, uint32_t count, int64_t least, int64_t most,
                      uint32_t at[MDOT_ABI_CUDA_MAX_TENSORS])
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count && bytes < TOO_MANY_BYTES; i++) {
        at[i] = (uint32_t)bytes;
        bytes = at_most(bytes + rt_round_up(most_bytes(&tensors[i], least, most), 16), TOO_MANY_BYTES);
    }
    return bytes;
}

static mdot_status plan_launches(rt_cuda *cuda, rt_cuda_kernel *kernel, const mdot_abi_entry *entry, uint32_t bucket,
                                 mdot_error *err)
{
    const mdot_abi_table *table = cuda->predictor->table;
    const char *name = rt_string(table, kernel->abi->name_at);
    int64_t most = rt_buckets(table, entry)[bucket].max_length;
    int64_t least = bucket > 0 ? rt_buckets(table, entry)[bucket - 1].max_length + 1 : entry->has_length ? 1 : 0;
    mdot_abi_cuda_call *call = &kernel->call;
    call->weights = cuda->weights;
    kernel->input_bytes = place(rt_inputs(table, entry), entry->input_count, least, most, call->input_at);
    call->input_stride = rt_round_up(kernel->input_bytes, MDOT_ABI_CUDA_ALIGNMENT);
    call->output_stride = rt_round_up(
        place(rt_outputs(table, entry), entry->output_count, least, most, call->output_at), MDOT_ABI_CUDA_ALIGNMENT);
    call->scratch_stride = rt_round_up(kernel->abi->scratch_bytes, MDOT_ABI_CUDA_ALIGNMENT);
    uint64_t mapped_bytes = call->input_stride + call->output_stride;
    if (mapped_bytes >= TOO_MANY_BYTES)
        return mdot_fail(err, MDOT_DEVICE, "kernel %s: inputs and outputs of %llu bytes are beyond what a launch takes",
                         name, (unsigned long long)mapped_bytes);
    uint64_t items = at_most(kernel->resident_blocks, MAX_GRID_Y);
    if (call->scratch_stride > 0) items = at_most(items, MAX_SCRATCH_BYTES / call->scratch_stride);
    if (mapped_bytes > 0) items = at_most(items, MAX_MAPPED_BYTES / mapped_bytes);
    kernel->max_items = items > 0 ? (uint32_t)items : 1;
    return MDOT_OK;
}

static mdot_status find_kernel(rt_cuda *cuda, const properties *p, rt_cuda_kernel *kernel, mdot_error *err)
{
    const rt_cuda_driver *d = &cuda->driver;
    const mdot_abi_cuda_kernel *abi = kernel->abi;
    const char *name = rt_string(cuda->predictor->table, abi->name_at);
    mdot_error reason = {0};
    int blocks = 0;
    mdot_status status = RT_CUDA_CALL(d, cuModuleGetFunction, &reason, &kernel->function, cuda->module, name);
    if (status == MDOT_OK)
        status = RT_CUDA_CALL(d, cuFuncSetAttribute, &reason, kernel->function, RT_CU_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              (int)abi->dynamic_shared_bytes);
    if (status == MDOT_OK)
        status = RT_CUDA_CALL(d, cuOccupancyMaxActiveBlocksPerMultiprocessor, &reason, &blocks, kernel->function,
                              (int)abi->threads, abi->dynamic_shared_bytes);
    if (status != MDOT_OK) return mdot_fail(err, status, "kernel %s: %s", name, reason.message);
    if (blocks < 1)
        return mdot_fail(err, MDOT_DEVICE, "kernel %s: %u threads with %u bytes of shared memory do not fit %s (%s)",
                         name, abi->threads, abi->dynamic_shared_bytes, cuda->id, cuda->name);
    kernel->resident_blocks = (uint32_t)blocks * (uint32_t)p->multiprocessors;
    return MDOT_OK;
}

/* A context serves every kernel, so it needs the most of each. */
static void add_needs(rt_cuda *cuda, const rt_cuda_kernel *kernel)
{
    const mdot_abi_cuda_call *call = &kernel->call;
    cuda->max_items = (uint32_t)at_least(cuda->max_items, kernel->max_items);
    cuda->scratch_bytes = at_least(cuda->scratch_bytes, kernel->max_items * call->scratch_stride);
    cuda->input_bytes = at_least(cuda->input_bytes, kernel->max_items * call->input_stride);
    cuda->output_bytes = at_least(cuda->output_bytes, kernel->max_items * call->output_stride);
    cuda->parameter_bytes = at_least(cuda->parameter_bytes, sizeof *call + kernel->abi->inline_input_bytes);
}

static mdot_status prepare_kernels(rt_cuda *cuda, const properties *p, const mdot_abi_cuda_image *image,
                                   mdot_error *err)
{
    const mdot_abi_table *table = cuda->predictor->table;
    for (uint32_t e = 0; e < table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(table, e);
        for (uint32_t b = 0; b < entry->bucket_count; b++) {
            rt_cuda_kernel *kernel = rt_cuda_kernel_of(cuda, &rt_buckets(table, entry)[b]);
            kernel->abi = &rt_cuda_kernels(table, image)[kernel - cuda->kernels];
            mdot_status status = find_kernel(cuda, p, kernel, err);
            if (status == MDOT_OK) status = plan_launches(cuda, kernel, entry, b, err);
            if (status != MDOT_OK) return status;
            add_needs(cuda, kernel);
        }
    }
    return MDOT_OK;
}

/* ---- Opening and closing -------------------------------------------------------------------------------------------
 */

/* With the device's context current. */
static mdot_status load(rt_cuda *cuda, const mdot_abi_cuda_image *image, const properties *p, mdot_error *err)
{
    mdot_status status = load_image(cuda, image, err);
    if (status == MDOT_OK) status = upload_weights(cuda, image, err);
    if (status == MDOT_OK) status = prepare_kernels(cuda, p, image, err);
    return status;
}

static mdot_status make_ready(rt_cuda *cuda, int ordinal, mdot_error *err)
{
    properties p;
    const mdot_abi_cuda_image *image;
    mdot_status status = rt_cuda_driver_load(&cuda->driver, err);
    if (status == MDOT_OK) status = find_device(cuda, ordinal, err);
    if (status == MDOT_OK) status = read_properties(cuda, &p, err);
    if (status == MDOT_OK) status = choose_image(cuda, &p, &image, err);
    if (status != MDOT_OK) return status;
    cuda->compute = rt_string(cuda->predictor->table, image->compute_at);
    cuda->kernel_count = image->kernel_count;
    cuda->kernels = rt_alloc(&cuda->predictor->allocator, image->kernel_count * sizeof *cuda->kernels);
    if (cuda->kernels == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %u kernels", image->kernel_count);
    status = RT_CUDA_CALL(&cuda->driver, cuDevicePrimaryCtxRetain, err, &cuda->primary, cuda->device);
    if (status != MDOT_OK) {
        cuda->primary = NULL;
        return status;
    }
    status = rt_cuda_enter(cuda, err);
    if (status != MDOT_OK) return status;
    status = load(cuda, image, &p, err);
    rt_cuda_leave(cuda);
    return status;
}

mdot_status rt_cuda_open(const mdot_predictor *predictor, int ordinal, uint32_t timeout_ms, rt_cuda **out_cuda,
                         mdot_error *err)
{
    rt_cuda *cuda = rt_alloc(&predictor->allocator, sizeof *cuda);
    if (cuda == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for a CUDA device");
    cuda->predictor = predictor;
    cuda->timeout_ms = timeout_ms;
    mdot_status status = make_ready(cuda, ordinal, err);
    if (status != MDOT_OK) {
        rt_cuda_close(cuda);
        return status;
    }
    *out_cuda = cuda;
    return MDOT_OK;
}

/* After a sticky error the driver answers every call with it, while the memory is gone with the context: what these
 * functions return says nothing. */
static void unload(const rt_cuda *cuda)
{
    const rt_cuda_driver *d = &cuda->driver;
    if (rt_cuda_enter(cuda, NULL) != MDOT_OK) return;
    if (cuda->weights != 0) d->cuMemFree(cuda->weights);
    if (cuda->module != NULL) d->cuModuleUnload(cuda->module);
    rt_cuda_leave(cuda);
}

void rt_cuda_close(rt_cuda *cuda)
{
    if (cuda == NULL) return;
    const rt_allocator *allocator = &cuda->predictor->allocator;
    if (cuda->primary != NULL && !cuda->is_stuck) {
        unload(cuda);
        cuda->driver.cuDevicePrimaryCtxRelease(cuda->device);
    }
    rt_free(allocator, cuda->kernels);
    rt_free(allocator, cuda);
}

const char *rt_cuda_id(const rt_cuda *cuda)
{
    return cuda->id;
}

const char *rt_cuda_name(const rt_cuda *cuda)
{
    return cuda->name;
}

const char *rt_cuda_compute(const rt_cuda *cuda)
{
    return cuda->compute;
}
