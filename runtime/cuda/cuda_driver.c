/* cuda_driver.c — loads the CUDA driver library, formats its errors, and enters and leaves a device's context. */
#include "runtime/cuda/cuda_driver.h"

#include <dlfcn.h>
#include <stdlib.h>

/* POSIX dlsym returns functions as `void *`, but plain C lacks a conversion between the two. */
typedef union symbol {
    void *object;
    void (*function)(void);
} symbol;

static mdot_status find(void *library, const char *library_name, const char *name, void (**out_function)(void),
                        mdot_error *err)
{
    symbol s = {.object = dlsym(library, name)};
    if (s.object == NULL)
        return mdot_fail(err, MDOT_DEVICE, "%s lacks function %s: the CUDA driver is too old", library_name, name);
    *out_function = s.function;
    return MDOT_OK;
}

mdot_status rt_cuda_driver_load(rt_cuda_driver *out_driver, mdot_error *err)
{
    const char *name = secure_getenv("MDOT_LIBCUDA");
    if (name == NULL || name[0] == '\0') name = "libcuda.so.1";
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *reason = dlerror();
        return mdot_fail(err, MDOT_DEVICE, "the CUDA driver is unavailable: %s", reason != NULL ? reason : name);
    }
    rt_cuda_driver driver;
    void (*function)(void) = NULL;
    mdot_status status = find(library, name, "cuOccupancyMaxActiveClusters", &function, NULL);
    driver.cuOccupancyMaxActiveClusters =
        status == MDOT_OK ? (int (*)(int *, rt_cu_function, const rt_cu_launch_config *))function : NULL;
#define FIND(member, suffix, parameters)                                                                               \
    status = find(library, name, #member #suffix, &function, err);                                                     \
    if (status != MDOT_OK) goto failed;                                                                                \
    driver.member = (int(*) parameters)function;
    RT_CUDA_SYMBOL_MAP(FIND)
#undef FIND
    *out_driver = driver;
failed:
    dlclose(library);
    return status;
}

mdot_status rt_cuda_check(const rt_cuda_driver *driver, int result, const char *function, mdot_error *err)
{
    if (result == RT_CU_SUCCESS) return MDOT_OK;
    const char *name = NULL, *text = NULL;
    if (driver->cuGetErrorName(result, &name) != RT_CU_SUCCESS || name == NULL) name = "an unknown error";
    if (driver->cuGetErrorString(result, &text) != RT_CU_SUCCESS || text == NULL) text = "no description";
    return mdot_fail(err, result == RT_CU_OUT_OF_MEMORY ? MDOT_OUT_OF_MEMORY : MDOT_DEVICE, "%s: %s (%d, %s)", function,
                     name, result, text);
}

mdot_status rt_cuda_enter(const rt_cuda_driver *driver, rt_cu_context context, mdot_error *err)
{
    return RT_CUDA_CALL(driver, cuCtxPushCurrent, err, context);
}

/* The result is ignored, because it may come from an earlier launch, whose caller reads it when it waits. */
void rt_cuda_leave(const rt_cuda_driver *driver)
{
    rt_cu_context left;
    driver->cuCtxPopCurrent(&left);
}
