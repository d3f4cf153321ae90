/* driver.c — the functions of libcuda. Effects and error codes follow CUDA's Driver API reference; cuda_driver.h lists
 * them. */
#include "tests/fake_cuda/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DECLARE(name, suffix, parameters) FAKE_CUDA_API int name##suffix parameters;
RT_CUDA_SYMBOL_MAP(DECLARE)
#undef DECLARE
FAKE_CUDA_API int cuOccupancyMaxActiveClusters(int *out_clusters, rt_cu_function function,
                                               const rt_cu_launch_config *config);

/* Host pointers lack this bit, because user space ends below 2^57. */
#define DEVICE_BIT (UINT64_C(1) << 62)
#define MAPPED_BIT (UINT64_C(1) << 61)

static unsigned char last_image_byte;
static void (*on_load)(const void *image);

void fake_cuda_on_load(void (*loaded)(const void *image)) { on_load = loaded; }

unsigned char fake_cuda_image_byte(void) { return last_image_byte; }

/* A copy from pageable memory: the call may return when the bytes have been staged, and later work in another stream
 * may still see the old bytes ("API synchronization behavior"). Here the bytes arrive when the default stream is
 * synchronised. */
static struct {
    uint64_t to;
    void *bytes;
    size_t size_bytes;
} staged;

enum { MAX_DEVICES = 8 };
static object *primary[MAX_DEVICES];

void driver_reset(void)
{
    memset(primary, 0, sizeof primary);
    last_image_byte = 0;
    free(staged.bytes);
    staged.bytes = NULL;
}

/* ---- Errors, devices, contexts ----------------------------------------------------------------------------------- */

/* The real driver knows all errors. Here only one of them has a name, as if the others were newer than the driver. */
int cuGetErrorName(int result, const char **out_name)
{
    if (result != RT_CU_OUT_OF_MEMORY) return INVALID_VALUE;
    *out_name = "CUDA_ERROR_OUT_OF_MEMORY";
    return RT_CU_SUCCESS;
}

int cuGetErrorString(int result, const char **out_text)
{
    if (result != RT_CU_OUT_OF_MEMORY) return INVALID_VALUE;
    *out_text = "out of memory";
    return RT_CU_SUCCESS;
}

int cuInit(unsigned flags)
{
    int result = machine_enter("cuInit");
    if (result == RT_CU_SUCCESS && flags != 0) result = INVALID_VALUE;
    return machine_leave(result);
}

int cuDriverGetVersion(int *out_version)
{
    int result = machine_enter("cuDriverGetVersion");
    if (result == RT_CU_SUCCESS) *out_version = 13000;
    return machine_leave(result);
}

int cuDeviceGetCount(int *out_count)
{
    int result = machine_enter("cuDeviceGetCount");
    if (result == RT_CU_SUCCESS) *out_count = machine.device_count;
    return machine_leave(result);
}

int cuDeviceGet(rt_cu_device *out_device, int ordinal)
{
    int result = machine_enter("cuDeviceGet");
    if (result == RT_CU_SUCCESS && (ordinal < 0 || ordinal >= machine.device_count)) result = INVALID_DEVICE;
    if (result == RT_CU_SUCCESS) *out_device = ordinal;
    return machine_leave(result);
}

int cuDeviceGetName(char *name, int size_bytes, rt_cu_device device)
{
    int result = machine_enter("cuDeviceGetName");
    if (result == RT_CU_SUCCESS) snprintf(name, (size_t)size_bytes, "Fake GPU %d", device);
    return machine_leave(result);
}

int cuDeviceGetAttribute(int *out_value, int attribute, rt_cu_device device)
{
    int result = machine_enter("cuDeviceGetAttribute");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    if (device < 0 || device >= machine.device_count) return machine_leave(INVALID_DEVICE);
    switch (attribute) {
    case RT_CU_COMPUTE_CAPABILITY_MAJOR: *out_value = machine.major; break;
    case RT_CU_COMPUTE_CAPABILITY_MINOR: *out_value = machine.minor; break;
    case RT_CU_MULTIPROCESSOR_COUNT: *out_value = machine.multiprocessors; break;
    case RT_CU_COOPERATIVE_LAUNCH: *out_value = !machine.is_not_cooperative; break;
    default: result = INVALID_VALUE;
    }
    return machine_leave(result);
}

int cuDevicePrimaryCtxRetain(rt_cu_context *out_context, rt_cu_device device)
{
    int result = machine_enter("cuDevicePrimaryCtxRetain");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    if (device < 0 || device >= MAX_DEVICES) return machine_leave(INVALID_DEVICE);
    if (primary[device] == NULL) primary[device] = machine_add(CONTEXT);
    primary[device]->references++;
    *out_context = (rt_cu_context)primary[device];
    return machine_leave(result);
}

int cuDevicePrimaryCtxRelease_v2(rt_cu_device device)
{
    int result = machine_enter("cuDevicePrimaryCtxRelease");
    if (device < 0 || device >= MAX_DEVICES || primary[device] == NULL) {
        machine_complain("a context released that was not retained");
        return machine_leave(INVALID_CONTEXT);
    }
    if (--primary[device]->references == 0) {
        machine_remove(primary[device]);
        primary[device] = NULL;
        machine_end_context();
    }
    return machine_leave(result);
}

int cuCtxPushCurrent_v2(rt_cu_context context)
{
    int result = machine_enter("cuCtxPushCurrent");
    if (result != RT_CU_SUCCESS) {
        machine_excuse();
        return machine_leave(result);
    }
    object *o = machine_find(CONTEXT, context);
    return machine_leave(o != NULL && machine_push(o) ? RT_CU_SUCCESS : INVALID_CONTEXT);
}

/* The context is popped even if the function returns an earlier error. */
int cuCtxPopCurrent_v2(rt_cu_context *out_context)
{
    int result = machine_enter("cuCtxPopCurrent");
    object *o = machine_pop();
    if (o == NULL) return machine_leave(INVALID_CONTEXT);
    *out_context = (rt_cu_context)o;
    return machine_leave(result);
}

/* ---- Modules ----------------------------------------------------------------------------------------------------- */

int cuModuleLoadData(rt_cu_module *out_module, const void *image)
{
    int result = machine_enter_context("cuModuleLoadData");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    last_image_byte = *(const unsigned char *)image;
    if (on_load != NULL) on_load(image);
    *out_module = (rt_cu_module)machine_add(MODULE);
    return machine_leave(result);
}

int cuModuleGetFunction(rt_cu_function *out_function, rt_cu_module module, const char *name)
{
    int result = machine_enter_context("cuModuleGetFunction");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    object *m = machine_find(MODULE, module);
    if (m == NULL) return machine_leave(INVALID_HANDLE);
    object *o = machine_add(FUNCTION);
    snprintf(o->name, sizeof o->name, "%s", name);
    o->module = m;
    *out_function = (rt_cu_function)o;
    return machine_leave(result);
}

int cuModuleUnload(rt_cu_module module)
{
    int result = machine_enter_context("cuModuleUnload");
    object *m = machine_find(MODULE, module);
    if (m == NULL) return machine_leave(INVALID_HANDLE);
    machine_remove_functions(m);
    machine_remove(m);
    return machine_leave(result);
}

int cuFuncSetAttribute(rt_cu_function function, int attribute, int value)
{
    int result = machine_enter_context("cuFuncSetAttribute");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    object *o = machine_find(FUNCTION, function);
    if (o == NULL) return machine_leave(INVALID_HANDLE);
    if (attribute == RT_CU_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        o->shared_bytes = value;
    else if (attribute != NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
        result = INVALID_VALUE;
    return machine_leave(result);
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out_blocks, rt_cu_function function, int threads,
                                                size_t dynamic_shared_bytes)
{
    int result = machine_enter_context("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    const object *o = machine_find(FUNCTION, function);
    if (o == NULL || threads < 1 || dynamic_shared_bytes > (size_t)o->shared_bytes) return machine_leave(INVALID_VALUE);
    *out_blocks = machine.blocks_per_multiprocessor;
    return machine_leave(result);
}

int cuOccupancyMaxActiveClusters(int *out_clusters, rt_cu_function function, const rt_cu_launch_config *config)
{
    int result = machine_enter_context("cuOccupancyMaxActiveClusters");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    const object *o = machine_find(FUNCTION, function);
    unsigned cluster = o != NULL ? launch_cluster(o) : 0;
    if (cluster == 0 || config->grid[0] % cluster != 0 || config->block[0] < 1 ||
        config->dynamic_shared_bytes > (unsigned)o->shared_bytes)
        return machine_leave(INVALID_VALUE);
    *out_clusters = machine.multiprocessors / (int)cluster * machine.blocks_per_multiprocessor;
    return machine_leave(result);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Fresh memory is non-zero, and has the alignment of real memory. */
static object *allocate(object_kind kind, size_t size_bytes, uint64_t bit)
{
    object *o = machine_add(kind);
    size_t rounded = (size_bytes + MDOT_ABI_CUDA_ALIGNMENT - 1) / MDOT_ABI_CUDA_ALIGNMENT * MDOT_ABI_CUDA_ALIGNMENT;
    o->memory = aligned_alloc(MDOT_ABI_CUDA_ALIGNMENT, rounded);
    if (o->memory == NULL) abort();
    memset(o->memory, 0xA5, rounded);
    o->size_bytes = size_bytes;
    o->address = (uint64_t)(uintptr_t)o->memory | bit;
    return o;
}

int cuMemAlloc_v2(rt_cu_address *out_address, size_t size_bytes)
{
    int result = machine_enter_context("cuMemAlloc");
    if (result == RT_CU_SUCCESS && size_bytes == 0) result = INVALID_VALUE;
    if (result == RT_CU_SUCCESS && machine.memory_bytes > 0 && machine_used_bytes() + size_bytes > machine.memory_bytes)
        result = RT_CU_OUT_OF_MEMORY;
    if (result == RT_CU_SUCCESS) *out_address = allocate(DEVICE_BLOCK, size_bytes, DEVICE_BIT)->address;
    return machine_leave(result);
}

int cuMemHostAlloc(void **out_memory, size_t size_bytes, unsigned flags)
{
    int result = machine_enter_context("cuMemHostAlloc");
    if (result == RT_CU_SUCCESS && (size_bytes == 0 || !(flags & RT_CU_MEMHOSTALLOC_DEVICEMAP))) result = INVALID_VALUE;
    if (result == RT_CU_SUCCESS) *out_memory = allocate(HOST_BLOCK, size_bytes, MAPPED_BIT)->memory;
    return machine_leave(result);
}

int cuMemHostGetDevicePointer_v2(rt_cu_address *out_address, void *memory, unsigned flags)
{
    int result = machine_enter_context("cuMemHostGetDevicePointer");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    const object *o = machine_find_address((uint64_t)(uintptr_t)memory | MAPPED_BIT, 1);
    if (o == NULL || flags != 0) return machine_leave(INVALID_VALUE);
    *out_address = (uint64_t)(uintptr_t)memory | MAPPED_BIT;
    return machine_leave(result);
}

/* Memory that launches may still use must not be freed. A real driver waits for them. */
static int release(const char *function, object_kind kind, uint64_t address)
{
    int result = machine_enter_context(function);
    object *o = machine_find_address(address, 1);
    if (o == NULL || o->kind != kind || o->address != address) {
        machine_complain("%s of what is no allocation", function);
        return machine_leave(INVALID_VALUE);
    }
    if (machine_is_stuck()) machine_complain("%s waits for a kernel that never ends", function);
    machine_remove(o);
    return machine_leave(result);
}

int cuMemFree_v2(rt_cu_address address) { return release("cuMemFree", DEVICE_BLOCK, address); }

int cuMemFreeHost(void *memory)
{
    return release("cuMemFreeHost", HOST_BLOCK, (uint64_t)(uintptr_t)memory | MAPPED_BIT);
}

static void finish_copy(void)
{
    if (staged.bytes == NULL) return;
    const object *o = machine_find_address(staged.to, staged.size_bytes);
    if (o != NULL) memcpy(machine_pointer(o, staged.to), staged.bytes, staged.size_bytes);
    free(staged.bytes);
    staged.bytes = NULL;
}

int cuMemcpyHtoD_v2(rt_cu_address to, const void *from, size_t size_bytes)
{
    int result = machine_enter_context("cuMemcpyHtoD");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    if (machine_find_address(to, size_bytes) == NULL) return machine_leave(INVALID_VALUE);
    finish_copy();
    staged.to = to;
    staged.size_bytes = size_bytes;
    staged.bytes = malloc(size_bytes);
    if (staged.bytes == NULL) abort();
    memcpy(staged.bytes, from, size_bytes);
    return machine_leave(result);
}

int cuMemsetD32Async(rt_cu_address to, unsigned value, size_t count, rt_cu_stream stream)
{
    int result = machine_enter_context("cuMemsetD32Async");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    const object *o = machine_find_address(to, count * sizeof(uint32_t));
    if (o == NULL || machine_find(STREAM, stream) == NULL || to % sizeof(uint32_t) != 0)
        return machine_leave(INVALID_VALUE);
    uint32_t *words = machine_pointer(o, to);
    for (size_t i = 0; i < count; i++) words[i] = value;
    return machine_leave(result);
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

int cuStreamCreate(rt_cu_stream *out_stream, unsigned flags)
{
    int result = machine_enter_context("cuStreamCreate");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    if (flags != RT_CU_STREAM_NON_BLOCKING) machine_complain("a stream that waits for the program's own");
    *out_stream = (rt_cu_stream)machine_add(STREAM);
    return machine_leave(result);
}

/* NULL is the default stream, which has no launches here. */
int cuStreamSynchronize(rt_cu_stream stream)
{
    int result = machine_enter_context("cuStreamSynchronize");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    if (stream == NULL) {
        finish_copy();
        return machine_leave(result);
    }
    object *o = machine_find(STREAM, stream);
    if (o == NULL) return machine_leave(INVALID_HANDLE);
    while (launch_query(o) == RT_CU_NOT_READY) {
        if (!machine_is_stuck()) continue;
        machine_complain("cuStreamSynchronize waits for a kernel that never ends");
        break;
    }
    return machine_leave(result);
}

int cuStreamQuery(rt_cu_stream stream)
{
    int result = machine_enter_context("cuStreamQuery");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    object *o = machine_find(STREAM, stream);
    return machine_leave(o != NULL ? launch_query(o) : INVALID_HANDLE);
}

int cuStreamDestroy_v2(rt_cu_stream stream)
{
    int result = machine_enter_context("cuStreamDestroy");
    object *o = machine_find(STREAM, stream);
    if (o == NULL) return machine_leave(INVALID_HANDLE);
    launch_forget(o);
    machine_remove(o);
    return machine_leave(result);
}

int cuLaunchCooperativeKernel(rt_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes,
                              rt_cu_stream stream, void **parameters)
{
    int result = machine_enter_context("cuLaunchCooperativeKernel");
    if (result != RT_CU_SUCCESS) return machine_leave(result);
    object *f = machine_find(FUNCTION, function), *s = machine_find(STREAM, stream);
    if (f == NULL || s == NULL) return machine_leave(INVALID_HANDLE);
    if (grid_z != 1 || block_y != 1 || block_z != 1) machine_complain("a launch of more dimensions than grid x, y");
    const fake_cuda_grid g = {grid_x, grid_y, block_x, dynamic_shared_bytes};
    return machine_leave(launch_start(f, &g, s, parameters[0]));
}
