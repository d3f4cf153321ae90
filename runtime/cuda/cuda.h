/* cuda.h — the interface of runtime/cuda: runs an artefact's CUDA images on a GPU, through NVIDIA's driver library.
 *
 * runtime/cuda uses only core.h from the other components, and they use only this table. Its own files share
 * cuda_device.h. */
#pragma once

#include "runtime/core/core.h"

extern const rt_device_ops rt_cuda_ops;
