/* cuda_program.h — a program as data: CUDA C with one persistent kernel for each bucket of each entry, and its
 * weights. */
#ifndef CU_CUDA_PROGRAM_H
#define CU_CUDA_PROGRAM_H

#include "codegen/byte_pool.h"

typedef struct cu_kernel {
    const char *name;  /* name of the function, a C identifier */
    int entry, bucket; /* entry and bucket of the kernel; kernels are ordered by mdot_abi_bucket.number */
    int threads;       /* threads per block */
    int tile_rows;     /* units of the length that a block takes at a time; 0 if the entry has no length */
    int grid_barriers; /* grid barriers in one launch */
    size_t dynamic_shared_bytes;
    size_t inline_input_bytes; /* part of the parameter after the call; 0: inputs are read from memory */
    size_t scratch_bytes;      /* per item */
} cu_kernel;

typedef struct cu_program {
    const char *prelude; /* the PTX wrappers that the source calls on the GPU */
    const char *source;
    cg_pool weights; /* data of mdot_abi_cuda_call.weights, 256-byte aligned */
    int kernel_count;
    cu_kernel *kernels; /* in the arena, as is all text */
} cu_program;

#endif
