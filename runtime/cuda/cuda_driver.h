/* cuda_driver.h — the runtime's part of the CUDA driver library: types, values, and the table of functions.
 *
 * It is declared here because building then needs no CUDA header and running no CUDA library. libcuda.so.1 comes with
 * NVIDIA's driver and is loaded when a predictor with CUDA code opens. Source of every name, prototype and value: CUDA
 * Driver API reference, modules "Data types used by CUDA driver" to "Occupancy". The suffix _v2 marks names to which
 * cuda.h maps the plain name since CUDA 3.2 (64-bit addresses) and 4.0 (contexts). */
#pragma once

#include "base/status.h"

typedef int rt_cu_device;
typedef uint64_t rt_cu_address; /* CUdeviceptr */
typedef struct rt_cu_context_object *rt_cu_context;
typedef struct rt_cu_module_object *rt_cu_module;
typedef struct rt_cu_function_object *rt_cu_function;
typedef struct rt_cu_stream_object *rt_cu_stream;

enum { /* CUresult */
       RT_CU_SUCCESS = 0,
       RT_CU_OUT_OF_MEMORY = 2,
       RT_CU_NOT_READY = 600
};
enum { /* CUdevice_attribute */
       RT_CU_MULTIPROCESSOR_COUNT = 16,
       RT_CU_COMPUTE_CAPABILITY_MAJOR = 75,
       RT_CU_COMPUTE_CAPABILITY_MINOR = 76,
       RT_CU_COOPERATIVE_LAUNCH = 95
};
enum { RT_CU_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8 }; /* CUfunction_attribute */
enum { RT_CU_MEMHOSTALLOC_PORTABLE = 1, RT_CU_MEMHOSTALLOC_DEVICEMAP = 2 };
enum { RT_CU_STREAM_NON_BLOCKING = 1 };

/* Name, version suffix, parameters. Functions that release resources come last. */
#define RT_CUDA_SYMBOL_MAP(X)                                                                                          \
    X(cuGetErrorName, , (int result, const char **out_name))                                                           \
    X(cuGetErrorString, , (int result, const char **out_text))                                                         \
    X(cuInit, , (unsigned flags))                                                                                      \
    X(cuDriverGetVersion, , (int *out_version))                                                                        \
    X(cuDeviceGetCount, , (int *out_count))                                                                            \
    X(cuDeviceGet, , (rt_cu_device * out_device, int ordinal))                                                         \
    X(cuDeviceGetName, , (char *name, int size_bytes, rt_cu_device device))                                            \
    X(cuDeviceGetAttribute, , (int *out_value, int attribute, rt_cu_device device))                                    \
    X(cuDevicePrimaryCtxRetain, , (rt_cu_context * out_context, rt_cu_device device))                                  \
    X(cuCtxPushCurrent, _v2, (rt_cu_context context))                                                                  \
    X(cuCtxPopCurrent, _v2, (rt_cu_context * out_context))                                                             \
    X(cuModuleLoadData, , (rt_cu_module * out_module, const void *image))                                              \
    X(cuModuleGetFunction, , (rt_cu_function * out_function, rt_cu_module module, const char *name))                   \
    X(cuFuncSetAttribute, , (rt_cu_function function, int attribute, int value))                                       \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, ,                                                                   \
      (int *out_blocks, rt_cu_function function, int threads, size_t dynamic_shared_bytes))                            \
    X(cuMemAlloc, _v2, (rt_cu_address * out_address, size_t size_bytes))                                               \
    X(cuMemHostAlloc, , (void **out_memory, size_t size_bytes, unsigned flags))                                        \
    X(cuMemHostGetDevicePointer, _v2, (rt_cu_address * out_address, void *memory, unsigned flags))                     \
    X(cuMemcpyHtoD, _v2, (rt_cu_address to, const void *from, size_t size_bytes))                                      \
    X(cuMemsetD32Async, , (rt_cu_address to, unsigned value, size_t count, rt_cu_stream stream))                       \
    X(cuStreamCreate, , (rt_cu_stream * out_stream, unsigned flags))                                                   \
    X(cuStreamSynchronize, , (rt_cu_stream stream))                                                                    \
    X(cuStreamQuery, , (rt_cu_stream stream))                                                                          \
    X(cuLaunchCooperativeKernel, ,                                                                                     \
      (rt_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned dynamic_shared_bytes, rt_cu_stream stream, void **parameters))                       \
    X(cuStreamDestroy, _v2, (rt_cu_stream stream))                                                                     \
    X(cuMemFreeHost, , (void *memory))                                                                                 \
    X(cuMemFree, _v2, (rt_cu_address address))                                                                         \
    X(cuModuleUnload, , (rt_cu_module module))                                                                         \
    X(cuDevicePrimaryCtxRelease, _v2, (rt_cu_device device))

typedef struct rt_cu_launch_config { /* CUlaunchConfig */
    unsigned grid[3], block[3], dynamic_shared_bytes;
    rt_cu_stream stream;
    const void *attributes; /* CUlaunchAttribute[attribute_count] */
    unsigned attribute_count;
} rt_cu_launch_config;

typedef struct rt_cuda_driver {
    /* Since CUDA 11.8; NULL before. The function's own cluster size counts. */
    int (*cuOccupancyMaxActiveClusters)(int *out_clusters, rt_cu_function function, const rt_cu_launch_config *config);
#define RT_CUDA_MEMBER(name, suffix, parameters) int(*name) parameters;
    RT_CUDA_SYMBOL_MAP(RT_CUDA_MEMBER)
#undef RT_CUDA_MEMBER
} rt_cuda_driver;

/* Loads libcuda.so.1, or the library in the environment variable MDOT_LIBCUDA, and finds every function. The library
 * stays loaded until the process ends, because the driver's own threads need its code. Returns DEVICE on failure. */
mdot_status rt_cuda_driver_load(rt_cuda_driver *out_driver, mdot_error *err);

/* Returns MDOT_OK for RT_CU_SUCCESS, otherwise OUT_OF_MEMORY or DEVICE with the driver's error text. */
mdot_status rt_cuda_check(const rt_cuda_driver *driver, int result, const char *function, mdot_error *err);

#define RT_CUDA_CALL(driver, function, err, ...) rt_cuda_check(driver, (driver)->function(__VA_ARGS__), #function, err)

/* Makes `context` current on this thread. rt_cuda_leave restores the previous one. */
mdot_status rt_cuda_enter(const rt_cuda_driver *driver, rt_cu_context context, mdot_error *err);
void rt_cuda_leave(const rt_cuda_driver *driver);
