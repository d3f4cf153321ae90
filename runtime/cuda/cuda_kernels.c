/* cuda_kernels.c — the launch parameters of each bucket's kernel on a GPU: the number of concurrent blocks, the most
 * items, and the offsets of an item's tensors. */
#include "runtime/cuda/cuda_device.h"

/* Memory limits per context for launches with many items. A scratch of 256 MiB holds a batch for the largest dies at
 * lengths of hundreds. Beyond that, launches take fewer items, and each item more blocks. */
#define MAX_SCRATCH_BYTES (UINT64_C(256) << 20)
#define MAX_MAPPED_BYTES (UINT64_C(32) << 20)
enum { MAX_GRID_Y = 65535 }; /* CUDA programming guide, "Technical Specifications per Compute Capability" */

static uint64_t at_most(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t at_least(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Most bytes in a bucket's tensor, which rt_table_check has found to fit. */
static uint64_t most_bytes(const mdot_abi_tensor *tensor, int64_t min_length, int64_t max_length)
{
    uint64_t bytes = mdot_dtype_size_bytes((mdot_dtype)tensor->dtype);
    for (uint32_t i = 0; i < tensor->rank; i++) bytes *= (uint64_t)rt_dim_most(&tensor->dim[i], min_length, max_length);
    return bytes;
}

/* Tensor offsets have 32 bits; larger items are refused. */
#define TOO_MANY_BYTES (UINT64_C(1) << 32)

/* Places each tensor of an item at a multiple of 16, the same at every length. Returns the total bytes. */
static uint64_t lay_out_tensors(const mdot_abi_tensor *tensors, uint32_t count, int64_t min_length, int64_t max_length,
                                uint32_t offsets[MDOT_ABI_CUDA_MAX_TENSORS])
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count && bytes < TOO_MANY_BYTES; i++) {
        offsets[i] = (uint32_t)bytes;
        bytes = at_most(bytes + rt_round_up(most_bytes(&tensors[i], min_length, max_length), 16), TOO_MANY_BYTES);
    }
    return bytes;
}

static mdot_status plan_launches(rt_cuda *cuda, rt_cuda_kernel *kernel, const mdot_abi_entry *entry, uint32_t bucket,
                                 mdot_error *err)
{
    const mdot_abi_table *table = cuda->artefact->table;
    const char *name = rt_string(table, kernel->abi->name_at);
    int64_t max_length = rt_buckets(table, entry)[bucket].max_length;
    int64_t min_length = bucket > 0 ? rt_buckets(table, entry)[bucket - 1].max_length + 1 : entry->least_length;
    mdot_abi_cuda_call *call = &kernel->call;
    call->weights = cuda->weights;
    kernel->input_bytes =
        lay_out_tensors(rt_inputs(table, entry), entry->input_count, min_length, max_length, call->input_at);
    call->input_stride = rt_round_up(kernel->input_bytes, MDOT_ABI_CUDA_ALIGNMENT);
    call->output_stride = rt_round_up(
        lay_out_tensors(rt_outputs(table, entry), entry->output_count, min_length, max_length, call->output_at),
        MDOT_ABI_CUDA_ALIGNMENT);
    call->scratch_stride = rt_round_up(kernel->abi->scratch_bytes, MDOT_ABI_CUDA_ALIGNMENT);
    uint64_t mapped_bytes = call->input_stride + call->output_stride;
    if (mapped_bytes >= TOO_MANY_BYTES)
        return mdot_fail(err, MDOT_DEVICE, "kernel %s: inputs and outputs of %llu bytes are beyond what a launch takes",
                         name, (unsigned long long)mapped_bytes);
    uint64_t items = at_most(kernel->resident_blocks / kernel->abi->blocks_per_tile, MAX_GRID_Y);
    if (call->scratch_stride > 0) items = at_most(items, MAX_SCRATCH_BYTES / call->scratch_stride);
    if (mapped_bytes > 0) items = at_most(items, MAX_MAPPED_BYTES / mapped_bytes);
    kernel->max_items = items > 0 ? (uint32_t)items : 1;
    return MDOT_OK;
}

/* Counts a kernel's blocks that a device holds together. It places clusters within groups of multiprocessors. */
static mdot_status count_blocks(const rt_cuda *cuda, rt_cuda_kernel *kernel, mdot_error *err)
{
    const rt_cuda_driver *d = &cuda->driver;
    const mdot_abi_cuda_kernel *abi = kernel->abi;
    int count = 0;
    mdot_status status;
    if (abi->blocks_per_tile > 1 && d->cuOccupancyMaxActiveClusters == NULL)
        return mdot_fail(err, MDOT_DEVICE, "clusters of blocks need a driver for CUDA 11.8");
    if (abi->blocks_per_tile > 1) {
        const rt_cu_launch_config config = {.grid = {abi->blocks_per_tile, 1, 1},
                                            .block = {abi->threads, 1, 1},
                                            .dynamic_shared_bytes = abi->dynamic_shared_bytes};
        status = RT_CUDA_CALL(d, cuOccupancyMaxActiveClusters, err, &count, kernel->function, &config);
        kernel->resident_blocks = (uint32_t)count * abi->blocks_per_tile;
    } else {
        status = RT_CUDA_CALL(d, cuOccupancyMaxActiveBlocksPerMultiprocessor, err, &count, kernel->function,
                              (int)abi->threads, abi->dynamic_shared_bytes);
        kernel->resident_blocks = (uint32_t)count * (uint32_t)cuda->multiprocessors;
    }
    return status;
}

static mdot_status find_kernel(rt_cuda *cuda, rt_cuda_kernel *kernel, mdot_error *err)
{
    const rt_cuda_driver *d = &cuda->driver;
    const mdot_abi_cuda_kernel *abi = kernel->abi;
    const char *name = rt_string(cuda->artefact->table, abi->name_at);
    mdot_error reason = {0};
    mdot_status status = RT_CUDA_CALL(d, cuModuleGetFunction, &reason, &kernel->function, cuda->module, name);
    if (status == MDOT_OK)
        status = RT_CUDA_CALL(d, cuFuncSetAttribute, &reason, kernel->function, RT_CU_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                              (int)abi->dynamic_shared_bytes);
    if (status == MDOT_OK) status = count_blocks(cuda, kernel, &reason);
    if (status != MDOT_OK) return mdot_fail(err, status, "kernel %s: %s", name, reason.message);
    if (kernel->resident_blocks < 1)
        return mdot_fail(err, MDOT_DEVICE, "kernel %s: %u threads with %u bytes of shared memory do not fit %s (%s)",
                         name, abi->threads, abi->dynamic_shared_bytes, cuda->id, cuda->name);
    return MDOT_OK;
}

/* A context serves every kernel, so its sizes are the maximum over all of them. */
static void add_needs(rt_cuda *cuda, const rt_cuda_kernel *kernel)
{
    const mdot_abi_cuda_call *call = &kernel->call;
    cuda->max_items = (uint32_t)at_least(cuda->max_items, kernel->max_items);
    cuda->scratch_bytes = at_least(cuda->scratch_bytes, kernel->max_items * call->scratch_stride);
    cuda->item_scratch_bytes = at_least(cuda->item_scratch_bytes, call->scratch_stride);
    cuda->input_bytes = at_least(cuda->input_bytes, kernel->max_items * call->input_stride);
    cuda->output_bytes = at_least(cuda->output_bytes, kernel->max_items * call->output_stride);
    cuda->parameter_bytes = at_least(cuda->parameter_bytes, sizeof *call + kernel->abi->inline_input_bytes);
}

mdot_status rt_cuda_prepare_kernels(rt_cuda *cuda, mdot_error *err)
{
    const mdot_abi_table *table = cuda->artefact->table;
    for (uint32_t e = 0; e < table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(table, e);
        for (uint32_t b = 0; b < entry->bucket_count; b++) {
            rt_cuda_kernel *kernel = rt_cuda_kernel_of(cuda, &rt_buckets(table, entry)[b]);
            kernel->abi = &rt_cuda_kernels(table, cuda->image)[kernel - cuda->kernels];
            BS_TRY(find_kernel(cuda, kernel, err));
            BS_TRY(plan_launches(cuda, kernel, entry, b, err));
            add_needs(cuda, kernel);
        }
    }
    return MDOT_OK;
}
