/* gpu_device.c — see gpu_device.h. */
#include "benchmarks/gpu/gpu_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"

double gpu_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* POSIX has dlsym return functions as `void *`, but C itself has no conversion between the two. */
typedef union symbol {
    void *object;
    void (*function)(void);
} symbol;

/* rt_cuda_driver_load has loaded the library and keeps it loaded; this function looks up further symbols. */
static mdot_status load_driver(gpu_device *c, mdot_error *err)
{
    mdot_status status = rt_cuda_driver_load(&c->driver, err);
    if (status != MDOT_OK) return status;
    const char *name = secure_getenv("MDOT_LIBCUDA");
    if (name == NULL || name[0] == '\0') name = "libcuda.so.1";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return mdot_fail(err, MDOT_DEVICE, "%s has disappeared", name);
    symbol s;
#define FIND(member, suffix, parameters)                                                                               \
    s.object = dlsym(library, #member #suffix);                                                                        \
    if (s.object == NULL && status == MDOT_OK)                                                                         \
        status = mdot_fail(err, MDOT_DEVICE, "%s has no function %s: the CUDA driver is too old", name, #member);      \
    c->member = (int(*) parameters)s.function;
    GPU_SYMBOL_MAP(FIND)
#undef FIND
    dlclose(library);
    return status;
}

static mdot_status read_device(gpu_device *c, mdot_error *err)
{
    const rt_cuda_driver *d = &c->driver;
    mdot_status status = RT_CUDA_CALL(d, cuInit, err, 0);
    if (status == MDOT_OK) status = RT_CUDA_CALL(d, cuDriverGetVersion, err, &c->driver_version);
    if (status == MDOT_OK) status = RT_CUDA_CALL(d, cuDeviceGet, err, &c->device, 0);
    if (status == MDOT_OK) status = RT_CUDA_CALL(d, cuDeviceGetName, err, c->name, (int)sizeof c->name, c->device);
    const struct {
        int attribute, *value;
    } wanted[] = {
        {RT_CU_COMPUTE_CAPABILITY_MAJOR, &c->major},
        {RT_CU_COMPUTE_CAPABILITY_MINOR, &c->minor},
        {RT_CU_MULTIPROCESSOR_COUNT, &c->multiprocessors},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && status == MDOT_OK; i++)
        status = RT_CUDA_CALL(d, cuDeviceGetAttribute, err, wanted[i].value, wanted[i].attribute, c->device);
    return status;
}

static unsigned char *read_cubin(const char *folder, int sm, const char *suffix)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/floors.sm_%d%s.cubin", folder, sm, suffix);
    unsigned char *bytes = NULL;
    size_t size_bytes;
    if (bs_read_file(path, &bytes, &size_bytes, NULL) != MDOT_OK) return NULL;
    return bytes;
}

/* Loads the nearest cubin that runs here. Code for sm_Xy runs on compute capability X.y and higher minors; accelerated
 * code runs on exactly one capability. */
static mdot_status load_floors(gpu_device *c, const char *folder, mdot_error *err)
{
    unsigned char *bytes = read_cubin(folder, c->major * 10 + c->minor, "a");
    for (int minor = c->minor; bytes == NULL && minor >= 0; minor--)
        bytes = read_cubin(folder, c->major * 10 + minor, "");
    if (bytes == NULL)
        return mdot_fail(err, MDOT_NOT_FOUND, "%s lacks floors.sm_%d%d.cubin and a compatible one", folder, c->major,
                         c->minor);
    mdot_status status = RT_CUDA_CALL(&c->driver, cuModuleLoadData, err, &c->floors, bytes);
    if (status != MDOT_OK) c->floors = NULL;
    free(bytes);
    return status;
}

mdot_status gpu_device_find(const gpu_device *c, const char *name, rt_cu_function *out_function, mdot_error *err)
{
    if (c->floors == NULL) return mdot_fail(err, MDOT_NOT_FOUND, "no cubin of the floors was loaded");
    rt_cu_function function = NULL;
    int result = c->driver.cuModuleGetFunction(&function, c->floors, name);
    if (result != RT_CU_SUCCESS)
        return mdot_fail(err, MDOT_NOT_FOUND, "kernel %s is missing in the code for sm_%d%d", name, c->major, c->minor);
    *out_function = function;
    return MDOT_OK;
}

static mdot_status allocate(gpu_device *c, mdot_error *err)
{
    const rt_cuda_driver *d = &c->driver;
    BS_TRY(RT_CUDA_CALL(d, cuStreamCreate, err, &c->stream, RT_CU_STREAM_NON_BLOCKING));
    BS_TRY(RT_CUDA_CALL(d, cuMemAlloc, err, &c->memory, GPU_MEMORY_BYTES));
    void *mapped = NULL;
    BS_TRY(RT_CUDA_CALL(d, cuMemHostAlloc, err, &mapped, GPU_MAPPED_BYTES,
                        RT_CU_MEMHOSTALLOC_PORTABLE | RT_CU_MEMHOSTALLOC_DEVICEMAP));
    c->mapped = mapped;
    memset(c->mapped, 0, GPU_MAPPED_BYTES);
    return RT_CUDA_CALL(d, cuMemHostGetDevicePointer, err, &c->mapped_at, mapped, 0);
}

mdot_status gpu_device_open(gpu_device *c, const char *folder, mdot_error *err)
{
    *c = (gpu_device){0};
    BS_TRY(load_driver(c, err));
    BS_TRY(read_device(c, err));
    BS_TRY(RT_CUDA_CALL(&c->driver, cuDevicePrimaryCtxRetain, err, &c->context, c->device));
    BS_TRY(RT_CUDA_CALL(&c->driver, cuCtxPushCurrent, err, c->context));
    if (folder != NULL) BS_TRY(load_floors(c, folder, err));
    return allocate(c, err);
}

void gpu_device_close(gpu_device *c)
{
    const rt_cuda_driver *d = &c->driver;
    if (c->mapped != NULL) d->cuMemFreeHost(c->mapped);
    if (c->memory != 0) d->cuMemFree(c->memory);
    if (c->stream != NULL) d->cuStreamDestroy(c->stream);
    if (c->floors != NULL) d->cuModuleUnload(c->floors);
    if (c->context != NULL) {
        rt_cu_context closed;
        d->cuCtxPopCurrent(&closed);
        d->cuDevicePrimaryCtxRelease(c->device);
    }
    *c = (gpu_device){0};
}

mdot_status gpu_device_await(const gpu_device *c, const uint32_t *word, uint32_t value, mdot_error *err)
{
    enum { LOOKS_BETWEEN_QUERIES = 1 << 16 };
    double end_us = gpu_now_us() + 2e6;
    for (;;) {
        for (int i = 0; i < LOOKS_BETWEEN_QUERIES; i++)
            if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) return MDOT_OK;
        int result = c->driver.cuStreamQuery(c->stream);
        if (result != RT_CU_SUCCESS && result != RT_CU_NOT_READY)
            return rt_cuda_check(&c->driver, result, "cuStreamQuery", err);
        if (gpu_now_us() > end_us) return mdot_fail(err, MDOT_DEVICE, "no result from %s within 2 s", c->name);
    }
}
