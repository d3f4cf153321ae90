/* gpu_device.h — a GPU for the measurements: the runtime's table of driver functions, further ones for measuring, a
 * stream, and device and mapped memory.
 *
 * Prototypes and values are as in runtime/cuda/cuda_driver.h: CUDA Driver API reference.
 */
#pragma once

#include "runtime/cuda/cuda_driver.h"

#include <stdio.h>

typedef struct gpu_event_object *gpu_event;
typedef struct gpu_graph_object *gpu_graph;
typedef struct gpu_graph_exec_object *gpu_graph_exec;

enum { GPU_CAPTURE_THREAD_LOCAL = 1 };       /* CUstreamCaptureMode */
enum { GPU_NON_PORTABLE_CLUSTER_SIZE = 14 }; /* CUfunction_attribute: clusters of more than 8 blocks */

/* name, version suffix, parameters */
#define GPU_SYMBOL_MAP(X)                                                                                              \
    X(cuLaunchKernel, ,                                                                                                \
      (rt_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned dynamic_shared_bytes, rt_cu_stream stream, void **parameters, void **extra))         \
    X(cuMemcpyHtoDAsync, _v2, (rt_cu_address to, const void *from, size_t size_bytes, rt_cu_stream stream))            \
    X(cuEventCreate, , (gpu_event * out_event, unsigned flags))                                                        \
    X(cuEventRecord, , (gpu_event event, rt_cu_stream stream))                                                         \
    X(cuEventSynchronize, , (gpu_event event))                                                                         \
    X(cuEventElapsedTime, , (float *out_ms, gpu_event start, gpu_event end))                                           \
    X(cuEventDestroy, _v2, (gpu_event event))                                                                          \
    X(cuStreamBeginCapture, _v2, (rt_cu_stream stream, int mode))                                                      \
    X(cuStreamEndCapture, , (rt_cu_stream stream, gpu_graph * out_graph))                                              \
    X(cuGraphInstantiateWithFlags, , (gpu_graph_exec * out_exec, gpu_graph graph, unsigned long long flags))           \
    X(cuGraphLaunch, , (gpu_graph_exec exec, rt_cu_stream stream))                                                     \
    X(cuGraphExecDestroy, , (gpu_graph_exec exec))                                                                     \
    X(cuGraphDestroy, , (gpu_graph graph))

typedef struct gpu_device {
    rt_cuda_driver driver;
#define GPU_MEMBER(name, suffix, parameters) int(*name) parameters;
    GPU_SYMBOL_MAP(GPU_MEMBER)
#undef GPU_MEMBER
    rt_cu_device device;
    char name[128];
    int driver_version, major, minor, multiprocessors;
    rt_cu_context context;
    rt_cu_stream stream;
    rt_cu_module floors;     /* NULL: there is no cubin of floors.cu for this GPU */
    unsigned char *mapped;   /* GPU_MAPPED_BYTES of host memory, mapped for the device */
    rt_cu_address mapped_at; /* its address on the device */
    rt_cu_address memory;    /* GPU_MEMORY_BYTES of device memory */
} gpu_device;

enum { GPU_MAPPED_BYTES = 1 << 20, GPU_MEMORY_BYTES = 1 << 20 };

/* Opens device 0 and leaves its context current on this thread, because the programs here are its only users.
 * `folder` holds the cubins of the floor kernels; NULL if they are unneeded. Zeroes the device first; gpu_device_close
 * accepts it in any state. */
mdot_status gpu_device_open(gpu_device *c, const char *folder, mdot_error *err);
void gpu_device_close(gpu_device *c);

/* Finds a kernel of floors.cu. NOT_FOUND if the GPU's cubin lacks it, for example on older architectures. */
mdot_status gpu_device_find(const gpu_device *c, const char *name, rt_cu_function *out_function, mdot_error *err);

#define GPU_CALL(c, function, err, ...) rt_cuda_check(&(c)->driver, (c)->function(__VA_ARGS__), #function, err)

/* Spins until *word is `value`; DEVICE if the stream fails or after 2 s. */
mdot_status gpu_device_await(const gpu_device *c, const uint32_t *word, uint32_t value, mdot_error *err);

double gpu_now_us(void);
