/* cuda_lifetime.c — a GPU stays open until the last driver thread that uses it has ended. */
#include "runtime/cuda/cuda_device.h"

#include <stdlib.h>

void rt_cuda_keep(rt_cuda *cuda) { atomic_fetch_add(&cuda->references, 1); }

/* The results are ignored. After a sticky error the driver returns it for every call, and the memory is freed with
 * the context. */
static void unload(const rt_cuda *cuda)
{
    const rt_cuda_driver *d = &cuda->driver;
    if (rt_cuda_enter(d, cuda->primary, NULL) != MDOT_OK) return;
    if (cuda->weights != 0) d->cuMemFree(cuda->weights);
    if (cuda->module != NULL) d->cuModuleUnload(cuda->module);
    rt_cuda_leave(&cuda->driver);
}

void rt_cuda_release(rt_cuda *cuda)
{
    if (atomic_fetch_sub(&cuda->references, 1) > 1) return;
    if (cuda->primary != NULL && !cuda->is_stuck) {
        unload(cuda);
        cuda->driver.cuDevicePrimaryCtxRelease(cuda->handle);
    }
    free(cuda->kernels);
    free(cuda);
}
