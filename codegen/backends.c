/* backends.c — the list of backends. */
#include "codegen/backend.h"

#include "codegen/cpu/cpu_images.h"
#include "codegen/cuda/cuda_images.h"

const cg_backend *const cg_backends[CG_BACKENDS] = {&cg_cpu_backend, &cu_backend};
