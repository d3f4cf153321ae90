/* cuda.h — the contract of runtime/cuda: an artefact's CUDA images on a GPU, reached through NVIDIA's driver library.
 *
 * Of the other rooms it uses core.h alone, and nothing of it is used but this table. Its own files share cuda_device.h.
 */
#ifndef RT_CUDA_H
#define RT_CUDA_H

#include "runtime/core/core.h"

extern const rt_device_ops rt_cuda_ops;

#endif
