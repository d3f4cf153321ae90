/* cuda_program.h — plans → CUDA C: one persistent kernel for each bucket of each entry, and the weights in its layout.
 *
 * grid_stages.c splits a plan at its grid barriers (index_range.c finds the indices that follow the units of length).
 * memory_placement.c selects the buffers in shared memory, and barriers.c places the block barriers. cuda_generate.c
 * prints the kernels; cuda_linear.c, cuda_attention.c, cuda_norm.c, cuda_nest.c and cuda_expr.c print their steps;
 * fragments.c packs weights. The source includes no header. With `prelude` before it, NVRTC compiles it for any
 * architecture. With tests/cuda_host/device.h before it, a C++ compiler does, and the emulator runs it.
 */
#pragma once

#include "codegen/byte_pool.h"
#include "codegen/codegen.h"
#include "codegen/cuda/cuda_stages.h"

/* ---- a program as data: CUDA C with one persistent kernel for each bucket of each entry, and its weights --------- */

typedef struct cu_kernel {
    const char *name;    /* name of the function, a C identifier */
    int entry, bucket;   /* entry and bucket of the kernel; kernels are ordered by mdot_abi_bucket.number */
    int threads;         /* threads per block */
    int tile_rows;       /* length units per block and turn; 0 if the entry has no length */
    int blocks_per_tile; /* blocks of a cluster; the grid's x is a multiple */
    int grid_barriers;   /* grid barriers in one launch */
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

/* ---- source/: texts of a kernel's source: those at its start, which are fixed, and templates -------------------- */

extern const char cu_prelude[];          /* for the GPU */
extern const char cu_common[];           /* portable, for every mode */
extern const char cu_bf16[], cu_f16[];   /* the 16-bit type and its matrix instruction */
extern const char cu_half_functions[];   /* functions on the 16-bit type */
extern const char cu_exact[], cu_fast[]; /* functions for f32 and for 16-bit modes */

/* Templates of steps, for cu_put_template (cuda_attention.c, cuda_linear.c). */
extern const char cu_attention_tensor[], cu_attention_heads[], cu_attention_shares[];
extern const char cu_attention_threads[], cu_attention_join[], cu_attention_store[];
extern const char cu_linear_bias[], cu_linear_sums[], cu_linear_results[];
extern const char cu_linear_rows[], cu_linear_vector[], cu_linear_parts[];

/* Returns UNSUPPORTED with the plan kernel and the reason if a plan is not encoder-shaped; such entries run on the
 * CPU only. The caller frees the program with cu_program_done. */
mdot_status cu_generate(const cg_entry *entries, int entry_count, cg_compute kernel_precision,
                        const cu_schedule *schedule, ir_arena *arena, cu_program *out_program, mdot_error *err);
void cu_program_done(cu_program *program);
