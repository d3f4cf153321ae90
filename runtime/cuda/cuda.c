/* cuda.c — the function table through which core uses CUDA GPUs. */
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_device.h"

const rt_device_ops rt_cuda_ops = {
    .name = "cuda",
    .open = rt_cuda_open,
    .close = rt_cuda_close,
    .create_context = rt_cuda_context_create,
    .destroy_context = rt_cuda_context_destroy,
    .run = rt_cuda_run,
};
