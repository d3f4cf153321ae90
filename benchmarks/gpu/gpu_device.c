/* gpu_device.c — see gpu_device.h. */
#include "benchmarks/gpu/gpu_device.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

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

mdot_status gpu_device_open(gpu_device *c, mdot_error *err)
{
    *c = (gpu_device){0};
    BS_TRY(load_driver(c, err));
    BS_TRY(read_device(c, err));
    BS_TRY(RT_CUDA_CALL(&c->driver, cuDevicePrimaryCtxRetain, err, &c->context, c->device));
    return RT_CUDA_CALL(&c->driver, cuCtxPushCurrent, err, c->context);
}

void gpu_device_close(gpu_device *c)
{
    const rt_cuda_driver *d = &c->driver;
    if (c->context != NULL) {
        rt_cu_context closed;
        d->cuCtxPopCurrent(&closed);
        d->cuDevicePrimaryCtxRelease(c->device);
    }
    *c = (gpu_device){0};
}
