/* cuda.h — plans → CUDA C: one persistent kernel for each bucket of each entry, and the weights in its layout.
 *
 * stages.c cuts a plan at its grid barriers (span.c tells what follows the units of length), places.c decides what lies
 * in shared memory, sync.c where a block meets; cuda_generate.c writes the kernels, and cuda_linear.c, cuda_attention.c, cuda_norm.c,
 * cuda_nest.c and cuda_expr.c a step of them; fragments.c packs weights. The source takes no header: with `prelude` before it
 * NVRTC compiles it for any architecture; with tests/cuda_host/device.h before it a C++ compiler does, and the emulator
 * runs it.
 *
 * How a kernel is launched stands in mdot_abi.h (mdot_abi_cuda_call).
 */
#ifndef CG_CUDA_H
#define CG_CUDA_H

#include "codegen/codegen.h"
#include "codegen/pool.h"

/* What the matrix operands are rounded to. Sums, norms, softmax and the residual stream are f32 in every mode. */
typedef enum cg_cuda_mode {
    CG_CUDA_FP32, /* no tensor cores: for verification */
    CG_CUDA_BF16, /* mma.m16n8k16, sm_80 and later */
    CG_CUDA_F16   /* mma.m16n8k8, sm_75 */
} cg_cuda_mode;
const char *cg_cuda_mode_name(cg_cuda_mode mode); /* "fp32", "bf16", "fp16": mdot_abi_cuda_image.compute_at */

typedef struct cg_cuda_kernel {
    const char *name;  /* of the function, a C identifier */
    int entry, bucket; /* whose it is; kernels come in the order of mdot_abi_bucket.first_code */
    int threads;       /* of a block */
    int tile_rows;     /* units of the length that a block takes at a time; 0: the entry has no length */
    int grid_barriers; /* that one launch passes */
    size_t dynamic_shared_bytes;
    size_t inline_input_bytes; /* of the parameter behind the call; 0: inputs come through memory */
    size_t scratch_bytes;      /* of one item */
} cg_cuda_kernel;

typedef struct cg_cuda_program {
    const char *prelude; /* the PTX wrappers that the source calls, for the card */
    const char *source;
    cg_pool weights; /* what mdot_abi_cuda_call.weights points to, 256-byte aligned */
    int kernel_count;
    cg_cuda_kernel *kernels; /* in the arena, as all text is */
} cg_cuda_program;

/* UNSUPPORTED names the plan kernel and the reason where a plan is not encoder-shaped; such entries stay on the CPU.
 * The program is the caller's to end with cg_cuda_program_done. */
mdot_status cg_cuda_generate(const cg_entry *entries, int entry_count, cg_cuda_mode mode, ir_arena *arena,
                             cg_cuda_program *out_program, mdot_error *err);
void cg_cuda_program_done(cg_cuda_program *program);

#endif
