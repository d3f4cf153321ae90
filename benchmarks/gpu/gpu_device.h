/* gpu_device.h — a GPU for the measurements: the runtime's table of driver functions, and those of events.
 *
 * Prototypes and values are as in runtime/cuda/cuda_driver.h: CUDA Driver API reference.
 */
#pragma once

#include "runtime/cuda/cuda_driver.h"

#include <stdio.h>

typedef struct gpu_event_object *gpu_event;

/* name, version suffix, parameters */
#define GPU_SYMBOL_MAP(X)                                                                                              \
    X(cuEventCreate, , (gpu_event * out_event, unsigned flags))                                                        \
    X(cuEventRecord, , (gpu_event event, rt_cu_stream stream))                                                         \
    X(cuEventSynchronize, , (gpu_event event))                                                                         \
    X(cuEventElapsedTime, , (float *out_ms, gpu_event start, gpu_event end))                                           \
    X(cuEventDestroy, _v2, (gpu_event event))

typedef struct gpu_device {
    rt_cuda_driver driver;
#define GPU_MEMBER(name, suffix, parameters) int(*name) parameters;
    GPU_SYMBOL_MAP(GPU_MEMBER)
#undef GPU_MEMBER
    rt_cu_device device;
    char name[128];
    int driver_version, major, minor, multiprocessors;
    rt_cu_context context;
} gpu_device;

/* Opens device 0 and leaves its context current on this thread, because the programs here are its only users. Zeroes
 * the device first; gpu_device_close accepts it in any state. */
mdot_status gpu_device_open(gpu_device *c, mdot_error *err);
void gpu_device_close(gpu_device *c);

#define GPU_CALL(c, function, err, ...) rt_cuda_check(&(c)->driver, (c)->function(__VA_ARGS__), #function, err)

double gpu_now_us(void);
