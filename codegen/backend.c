/* backend.c — the list of backends. */
#include "codegen/backend.h"
#include "codegen/cpu/cpu_backend.h"
#include "codegen/cuda/cuda_backend.h"

const cg_backend *const cg_backends[CG_BACKENDS] = {&cg_cpu_backend, &cu_backend};
