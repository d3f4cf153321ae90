/* cuda_scatter.h — the scatters among the sequential kernels. */
#ifndef CU_CUDA_SCATTER_H
#define CU_CUDA_SCATTER_H

#include "codegen/cuda/cuda_step.h"
#include "codegen/cuda/step_finder.h"

/* As cu_step_kind has them. */
bool cu_find_scatter(cu_step_finder *f, const pl_kernel *kernel);
void cu_emit_scatter(cu_function *f);

#endif
