/* cuda.h — plans → images for GPUs: for each architecture a cubin, for each arithmetic its weights. The folder's
 * contract; the other headers here are its own, but nvrtc.h and cubin.h, which stand alone.
 *
 *   cuda_target.c     the architectures as data
 *   cuda_generate.h   plans → CUDA C and weights, a program an arithmetic
 *   nvrtc.h           CUDA C → cubin; cubin.h reads what its kernels need
 *   images.c          all of it in order, architectures side by side
 *
 * How a kernel is launched stands in mdot_abi.h (mdot_abi_cuda_call).
 */
#ifndef CU_CUDA_H
#define CU_CUDA_H

#include "codegen/codegen.h"
#include "codegen/cuda/cubin.h"
#include "codegen/pool.h"

/* What the matrix operands are rounded to. Sums, norms, softmax and the residual stream are f32 in every mode. */
typedef enum cu_mode {
    CU_FP32, /* no tensor cores: for verification */
    CU_BF16, /* mma.m16n8k16, sm_80 and later */
    CU_F16   /* mma.m16n8k8, sm_75 */
} cu_mode;
const char *cu_mode_name(cu_mode mode); /* "fp32", "bf16", "fp16": mdot_abi_image.compute_at */

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

enum { CU_TARGETS = 7, CU_MODES = CU_F16 + 1 };
extern const cg_cuda_target cu_targets[CU_TARGETS]; /* what `--target cuda` stands for; ascending */

size_t cu_shared_limit_bytes(cg_cuda_target target);
cu_mode cu_target_mode(cg_cuda_target target, bool fp32);

/* ---- Programs: one persistent kernel for each bucket of each entry ----------------------------------------------- */

typedef struct cu_kernel {
    const char *name;  /* of the function, a C identifier */
    int entry, bucket; /* whose it is; kernels come by mdot_abi_bucket.number */
    int threads;       /* of a block */
    int tile_rows;     /* units of the length that a block takes at a time; 0: the entry has no length */
    int grid_barriers; /* that one launch passes */
    size_t dynamic_shared_bytes;
    size_t inline_input_bytes; /* of the parameter behind the call; 0: inputs come through memory */
    size_t scratch_bytes;      /* of one item */
} cu_kernel;

typedef struct cu_program {
    const char *prelude; /* the PTX wrappers that the source calls, for the card */
    const char *source;
    cg_pool weights; /* what mdot_abi_cuda_call.weights points to, 256-byte aligned */
    int kernel_count;
    cu_kernel *kernels; /* in the arena, as all text is */
} cu_program;

/* ---- Images ------------------------------------------------------------------------------------------------------ */

typedef struct cu_image {
    cg_cuda_target target;
    cu_mode mode;
    cu_cubin cubin;
    size_t image_offset;                  /* in cu_images.cubins */
    size_t weights_offset, weights_bytes; /* in cu_images.weights */
} cu_image;

typedef struct cu_images {        /* zero: none */
    int nvrtc_major, nvrtc_minor; /* of what compiled them: drivers of an older major version refuse them */
    int count;
    cu_image *image;              /* in the order of options->cuda_targets */
    cu_program program[CU_MODES]; /* those of an image's mode are there */
    cg_pool cubins, weights;      /* the artefact's sections */
} cu_images;

/* Images for options->cuda_targets. None, and a warning with the reason, when a plan is not encoder-shaped; one less,
 * and a warning, where a kernel takes more than a device has. TOOLCHAIN without NVRTC, or when it refuses the source.
 * End with cu_images_done in either case. */
mdot_status cu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                           cu_images *out_images, mdot_error *err);
void cu_images_done(cu_images *images);

#endif
